"""
A private search beside the default parameters
==============================================

Test accuracy of both, on tables that scikit-learn has::

    python examples/search_or_default.py [--seeds 10] [--epsilon 1 2 4]

The search has 13 candidates of linear methods and ten trials on average. All rows of the training part are its
budget, as they are the default's: the same (epsilon, delta), and the same people.
"""

import argparse
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import MinMaxScaler

from skdp import DPGDClassifier, DPIGHTClassifier, DPLogisticRegression, DPSGDClassifier
from skdp.model_selection import DPRandomizedSearch

TABLES = {"breast_cancer": load_breast_cancer, "digits": load_digits}


def candidates(classes, d):
    """Thirteen linear models, as estimators and parameters."""
    estimators = [
        DPLogisticRegression(classes=classes),
        DPIGHTClassifier(classes=classes),
        DPGDClassifier(classes=classes),
        DPSGDClassifier(classes=classes),
    ]
    some = sorted({max(1, d // k) for k in (2, 4, 8)})
    grids = [
        {"C": [np.inf, 0.1, 0.01, 1.0]},
        {"n_nonzero_coefs": [*some, d]},
        {"alpha": [1e-4, 1e-3, 1e-2]},
        {"fit_intercept": [True, False]},
    ]
    return estimators, grids


def main():
    """Print a line for each table and epsilon."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--epsilon", type=float, nargs="+", default=[1.0, 2.0, 4.0])
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, load in TABLES.items():
        X, y = load(return_X_y=True)
        X = MinMaxScaler().fit_transform(X)  # tables of an example: their ranges count as public
        classes = np.unique(y)
        for epsilon in given.epsilon:
            rows = []
            for seed in range(given.seeds):
                X_train, X_test, y_train, y_test = train_test_split(X, y, random_state=seed)
                terms = dict(epsilon=epsilon, delta=1e-5)
                default = DPLogisticRegression(classes=classes, **terms).fit(X_train, y_train)
                search = DPRandomizedSearch(*candidates(classes, X.shape[1]), **terms)
                search.fit(X_train, y_train)
                rows.append([default.score(X_test, y_test), search.score(X_test, y_test)])
            mean, error = np.mean(rows, axis=0), np.std(rows, axis=0) / np.sqrt(given.seeds)
            print(
                f"{name:14s} epsilon {epsilon:g}: default {mean[0]:.3f} ± {error[0]:.3f}, "
                f"search {mean[1]:.3f} ± {error[1]:.3f}",
                flush=True,
            )


if __name__ == "__main__":
    main()
