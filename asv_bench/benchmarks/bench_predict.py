"""Predictions of automatic estimators beside scikit-learn's: missing cells are filled and far ones cut."""

import warnings

import numpy as np
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks.common import ratio
from skdp import DPLinearRegression, DPLogisticRegression

warnings.filterwarnings("ignore")

ROWS, COLUMNS, FITTED = 1_000_000, 20, 20_000
LAYOUTS = {
    "float64": lambda X: X,
    "float32": lambda X: X.astype(np.float32),
    "float64, by column": np.asfortranarray,
}


class Predictions:
    """Our processor time over scikit-learn's, one thread, a million rows."""

    params = (list(LAYOUTS), [2, 3])
    param_names = ("layout", "classes")
    timeout = 300

    def setup(self, layout, classes):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(ROWS, COLUMNS))
        score = X @ rng.normal(size=COLUMNS) + rng.normal(size=ROWS)
        y = np.digitize(score, [0.0] if classes == 2 else [-2.0, 2.0])
        part = slice(FITTED)
        labels = tuple(range(classes))
        self.ours = DPLogisticRegression(classes=labels, random_state=0).fit(X[part], y[part])
        self.theirs = LogisticRegression().fit(X[part], y[part])
        self.our_line = DPLinearRegression(random_state=0).fit(X[part], score[part])
        self.their_line = LinearRegression().fit(X[part], score[part])
        self.full = LAYOUTS[layout](X)
        self.holes = self.full.copy(order="K")
        self.holes[::1000, 3] = np.nan

    def track_predict(self, layout, classes):
        return ratio(lambda: self.ours.predict(self.full), lambda: self.theirs.predict(self.full))

    def track_predict_with_missing_cells(self, layout, classes):
        """A cell is missing in one row of a thousand; scikit-learn's table has none."""
        return ratio(lambda: self.ours.predict(self.holes), lambda: self.theirs.predict(self.full))

    def track_predict_proba(self, layout, classes):
        return ratio(lambda: self.ours.predict_proba(self.full), lambda: self.theirs.predict_proba(self.full))

    def track_regression(self, layout, classes):
        return ratio(lambda: self.our_line.predict(self.full), lambda: self.their_line.predict(self.full))


class OneRow:
    """A single row, as a service scores it."""

    def setup(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(FITTED, COLUMNS))
        y = (X[:, 0] + rng.normal(size=FITTED) > 0).astype(int)
        self.ours = DPLogisticRegression(classes=(0, 1), random_state=0).fit(X, y)
        self.theirs = LogisticRegression().fit(X, y)
        self.row = X[:1]

    def many(self, model):
        for _ in range(200):
            model.predict(self.row)

    def track_predict(self):
        return ratio(lambda: self.many(self.ours), lambda: self.many(self.theirs))


for benchmarks in (Predictions, OneRow):
    for name in [name for name in vars(benchmarks) if name.startswith("track_")]:
        getattr(benchmarks, name).unit = "times scikit-learn's time"
