"""
Utility on a9a and IMDb
=======================

Test accuracy of :class:`~skdp.linear_model.DPIGHTClassifier` with default parameters, beside non-private logistic
regression. Splits are as the files give them; means and standard errors are over seeds of the noise. Nothing is
tuned.

The script needs data that are not bundled: ``skdp data fetch a9a`` and ``skdp data fetch imdb``, or a folder that
``SKDP_DATA`` names. It is not run by the documentation. It prints Markdown tables::

    python examples/utility_tables.py --seeds 10
    python examples/utility_tables.py --only a9a
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import LogisticRegression

from skdp import DPIGHTClassifier, show_versions
from skdp.datasets import fetch_a9a, fetch_imdb

# Seeds make these figures repeatable. Each seeded fit warns.
warnings.filterwarnings("ignore", "random_state is a seed")

DELTA = 1e-5


def load_a9a():
    """Train and test parts of a9a: 32,561 and 16,281 rows, 123 binary features."""
    train, test = fetch_a9a(subset="train"), fetch_a9a(subset="test")
    return train.data, train.target, test.data, test.target


def load_imdb():
    """25,000 and 25,000 reviews as hashed binary words; the vectorizer learns nothing."""
    words = HashingVectorizer(n_features=32768, binary=True, alternate_sign=False, stop_words="english", norm="l2")
    train, test = fetch_imdb(subset="train"), fetch_imdb(subset="test")
    return words.transform(train.data), train.target, words.transform(test.data), test.target


LOADERS = {"a9a": load_a9a, "IMDb": load_imdb}
# (data, epsilon, kept features)
LINES = [
    ("a9a", 0.2, None),
    ("a9a", 1.0, None),
    ("IMDb", 1.0, 2000),
    ("IMDb", 4.0, 2000),
    ("IMDb", 1.0, None),
    ("IMDb", 4.0, None),
]


def accuracies(data, epsilon, kept, seeds):
    """Test accuracy for every seed, and the seconds of a fit."""
    X, y, X_test, y_test = data
    found, seconds = [], []
    for seed in range(seeds):
        model = DPIGHTClassifier(
            epsilon=epsilon, delta=DELTA, n_nonzero_coefs=kept, classes=np.unique(y_test), random_state=seed
        )
        start = time.perf_counter()
        model.fit(X, y)
        seconds.append(time.perf_counter() - start)
        found.append(model.score(X_test, y_test))
    return np.array(found), float(np.median(seconds))


def main():
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[1])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--only", choices=[name.lower() for name in LOADERS])
    arguments = parser.parse_args()
    show_versions()
    print("\n| data | epsilon | features kept | test accuracy | s.e. | seconds a fit |")
    print("|---|---|---|---|---|---|")
    for name, load in LOADERS.items():
        if arguments.only not in (None, name.lower()):
            continue
        data = load()
        for line, epsilon, kept in LINES:
            if line != name:
                continue
            found, seconds = accuracies(data, epsilon, kept, arguments.seeds)
            error = found.std(ddof=1) / np.sqrt(found.size) if found.size > 1 else float("nan")
            print(
                f"| {name} | {epsilon:g} | {kept or 'all'} | {found.mean():.4f} | {error:.4f} | {seconds:.2f} |",
                flush=True,
            )
        exact = LogisticRegression(max_iter=1000).fit(data[0], data[1]).score(data[2], data[3])
        print(f"| {name} | no privacy (LogisticRegression) | all | {exact:.4f} | | |", flush=True)


if __name__ == "__main__":
    main()
