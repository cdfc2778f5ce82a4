"""Evaluations beside scikit-learn's scores of the same rows, in one process and on one thread.

Each ``track`` is the processor time of `skdp.metrics.evaluate` over the time of the model's ``predict_proba`` and
scikit-learn's accuracy, area under the ROC curve, log loss and Brier score.
"""

import warnings
from functools import cache

import numpy as np
from sklearn import metrics
from sklearn.linear_model import LogisticRegression

from benchmarks.common import ratio
from skdp.metrics import evaluate


@cache
def judged(n_classes, n):
    """A model that was fitted to the first thousand rows, the rows and their labels."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, 20))
    scores = X @ rng.normal(size=(20, n_classes)) / 2 + rng.gumbel(size=(n, n_classes))
    y = scores.argmax(axis=1)
    return LogisticRegression().fit(X[:1000], y[:1000]), X, y


def theirs(model, X, y):
    """The scores that a user would publish without noise."""
    p = model.predict_proba(X)
    found = [metrics.accuracy_score(y, p.argmax(axis=1)), metrics.log_loss(y, p)]
    if p.shape[1] == 2:
        found += [metrics.roc_auc_score(y, p[:, 1]), metrics.brier_score_loss(y, p[:, 1])]
    return found


class Evaluate:
    params = ([2, 5], [1_000_000], ["records", "groups of 4"])
    param_names = ("n_classes", "n", "unit")
    timeout = 600

    def setup(self, n_classes, n, unit):
        warnings.simplefilter("ignore")
        self.model, self.X, self.y = judged(n_classes, n)
        self.more = {}
        if unit != "records":
            self.more = {"unit": "group", "groups": np.arange(n) // 4}
        self.ours(n_classes, 1000)

    def ours(self, n_classes, n):
        more = dict(self.more)
        if "groups" in more:
            more["groups"] = more["groups"][:n]
        return repr(evaluate(self.model, self.X[:n], self.y[:n], delta=1e-7, **more))

    def track_time(self, n_classes, n, unit):
        return ratio(lambda: self.ours(n_classes, n), lambda: theirs(self.model, self.X, self.y))

    track_time.unit = "times scikit-learn"
