"""Private fits: seconds, memory, and scores at a fixed epsilon.

Fits are warm: the first one compiles kernels and does not count.
"""

import tracemalloc
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit

from benchmarks.common import ratio, text_like
from skdp import DPIGHTClassifier, DPIGHTRegressor, IGHTClassifier, PublicBinsEncoder
from skdp.datasets import load_rand_hie, make_sparse_regression, rand_hie_bins


class RandHIE:
    """A quarter of the people is for testing, as in the demonstration."""

    def setup_cache(self):
        hie = load_rand_hie()
        X = PublicBinsEncoder(**rand_hie_bins()).fit_transform(hie.data)
        y, person = hie.target, hie.person
        split = GroupShuffleSplit(n_splits=1, test_size=0.25, random_state=0)
        train, test = next(split.split(X, y, groups=person))
        return X[train], y[train], person[train], X[test], y[test]

    def setup(self, cache):
        self.X, self.y, self.person, self.X_test, self.y_test = cache
        self.private(random_state=0, max_iter=2)

    def private(self, groups=None, **options):
        model = DPIGHTClassifier(classes=[0, 1], **options)
        return model.fit(self.X, self.y, groups=groups)

    def auc(self, model):
        return roc_auc_score(self.y_test, model.decision_function(self.X_test))

    def mean_auc(self, **options):
        return float(np.mean([self.auc(self.private(random_state=seed, **options)) for seed in (0, 1, 2)]))

    def time_fit(self, cache):
        self.private()

    def time_fit_sparse(self, cache):
        self.private(n_nonzero_coefs=20)

    def time_fit_group(self, cache):
        self.private(unit="group", groups=self.person)

    def time_predict(self, cache):
        self.fitted = getattr(self, "fitted", None) or self.private(random_state=0)
        self.fitted.predict(self.X_test)

    def peakmem_fit(self, cache):
        self.private()

    def track_auc_epsilon_1(self, cache):
        """Mean AUC on new people over three seeds, record level."""
        return self.mean_auc(epsilon=1.0)

    def track_auc_epsilon_1_group(self, cache):
        """The same, person level."""
        return self.mean_auc(epsilon=1.0, unit="group", groups=self.person)

    def track_auc_epsilon_1_20_features(self, cache):
        """The same, record level, 20 features."""
        return self.mean_auc(epsilon=1.0, n_nonzero_coefs=20)

    def track_auc_no_privacy(self, cache):
        """The non-private counterpart."""
        return self.auc(IGHTClassifier(classes=[0, 1], tol=1e-3).fit(self.X, self.y))

    def track_auc_logistic_regression(self, cache):
        """The ceiling: scikit-learn's LogisticRegression."""
        return self.auc(LogisticRegression(max_iter=1000).fit(self.X, self.y))


class TextLike:
    """CSR of RCV1's shape: a full fit of 50 iterations against its floor."""

    timeout = 300

    def setup(self):
        self.X, self.y = text_like()
        self.model = DPIGHTClassifier(classes=[0, 1], max_iter=50, clip_norm=0.5, learning_rate=1.0)
        self.model.fit(self.X, self.y)

    def fit(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self.model.fit(self.X, self.y)

    def floor(self):
        """50 times X w and X^T r by scipy on one thread, and d normal numbers."""
        rng = np.random.default_rng(0)
        w = np.zeros(self.X.shape[1])
        for _ in range(50):
            w = 0.01 * (self.X.T @ (self.X @ w - self.y)) + rng.standard_normal(w.size)

    def track_floor_ratio(self):
        """Time of a warm fit, validation and report included, over the floor's, one thread each."""
        return ratio(self.fit, self.floor, repeats=5)

    track_floor_ratio.unit = "times the floor"

    def track_fit_mb(self):
        """Peak of a second fit beyond the caller's arrays, by tracemalloc."""
        tracemalloc.start()
        before, _ = tracemalloc.get_traced_memory()
        self.fit()
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        return (peak - before) / 1e6

    track_fit_mb.unit = "MB"


class Synthetic:
    """The published regression setting (1000, 1000, 10) at epsilon 6, delta 0.01."""

    def setup(self):
        self.X, self.y, self.theta = make_sparse_regression(coef=True, random_state=0)

    def time_fit(self):
        DPIGHTRegressor(epsilon=6.0, delta=1e-4, n_nonzero_coefs=10).fit(self.X, self.y)

    def track_relative_error(self):
        """Mean distance to the true coefficients over their norm, three seeds."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the paper's delta is above 1/n
            fits = [
                DPIGHTRegressor(
                    epsilon=6.0, delta=0.01, n_nonzero_coefs=10, fit_intercept=False, random_state=seed
                ).fit(self.X, self.y)
                for seed in (0, 1, 2)
            ]
        far = [np.linalg.norm(model.coef_ - self.theta) for model in fits]
        return float(np.mean(far) / np.linalg.norm(self.theta))
