"""Fits of the automatic solvers at other numbers, and their skill: 0 as a constant, 1 as without privacy."""

import math
import warnings
from dataclasses import fields
from functools import cache

import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.metrics import log_loss, r2_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLinearRegression, DPLogisticRegression
from skdp.exceptions import UtilityWarning
from skdp.fitting.defaults import NUMERICAL, PROOF, SHARE
from tools.defaults.override import groups, override
from tools.defaults.tables import load

EPSILONS = (0.5, 1.0, 3.0)
# A table takes part where the model without privacy gains so much, in R2 or nats: less is no scale for a skill.
LEAST_GAIN = 0.02
# Skills are cut here: a single fit that fails counts as much as one fit can be good.
WORST, BEST = -1.0, 1.5
FACTORS = (0.25, 0.5, 2.0, 4.0)
# Units of numbers between 0 and 1, whose odds are multiplied.
PARTS = ("part of", "posterior probability", "quantile", SHARE)
# Groups that only regressions, or only classifications, read; and those that move no default fit's scores.
OF_NUMBERS, OF_CLASSES = {"numbers", "targets", "slopes"}, {"classes", "intercepts", "recalibration"}
NO_SCORES = {
    "penalty": 'read with C="auto" only: examples/penalty_choice.py',
    "doubts": "moves warnings only",
    "calibration": "read by other regressors",
    "quantiles": "read by other regressors",
    "runs": "read by nets and words",
}


def constants():
    """``group.name`` of the numbers that can be multiplied, and why the others are not."""
    found, left_out = {}, {}
    for group, table in groups().items():
        for field in fields(table):
            value, name = getattr(table, field.name), f"{group}.{field.name}"
            if field.metadata["origin"] in (PROOF, NUMERICAL):
                left_out[name] = field.metadata["origin"]
            elif group in NO_SCORES:
                left_out[name] = NO_SCORES[group]
            elif field.metadata["unit"].startswith(("exponent", "log2")):
                left_out[name] = "an end of a grid of powers"
            elif isinstance(value, tuple):
                left_out[name] = "several numbers"
            else:
                found[name] = field
    return found, left_out


def scaled(name, factor):
    """Arguments of `override` for a multiple of a constant; a part of 1 has its odds multiplied."""
    group, field = name.split(".")
    table = groups()[group]
    value = getattr(table, field)
    unit = table.__dataclass_fields__[field].metadata["unit"]
    if unit.startswith(PARTS) and value < 1.0:
        odds = factor * value / (1.0 - value)
        other = odds / (1.0 + odds)
    else:
        other = factor * value
        other = type(value)(round(other)) if isinstance(value, int) else other
    found = {f"{group}__{field}": other}
    if name == "numbers.last_gradient_part":  # together with the others it is the whole
        rest = (1.0 - other) / (1.0 - value)
        found["numbers__gradient_parts"] = tuple(rest * part for part in table.gradient_parts)
    return found


@cache
def bounds(name, seed):
    """The rows of a split, and the scores of a constant and of a model without privacy."""
    table = load(name)
    X, X_test, y, y_test = table.split(seed)
    start = make_pipeline(SimpleImputer(keep_empty_features=True), StandardScaler())
    if table.labels is None:
        model = make_pipeline(start, Ridge(1e-3)).fit(X, y)
        none = r2_score(y_test, np.full(len(y_test), y.mean()))
        return (X, X_test, y, y_test), none, r2_score(y_test, model.predict(X_test))
    model = make_pipeline(start, LogisticRegression(C=10.0, max_iter=300)).fit(X, y)
    frequency = np.array([np.mean(y == label) for label in table.labels])
    none = -log_loss(y_test, np.tile(frequency, (len(y_test), 1)), labels=table.labels)
    return (X, X_test, y, y_test), none, _minus_log_loss(model, X_test, y_test, table.labels)


def _minus_log_loss(model, X, y, labels):
    chances = np.clip(model.predict_proba(X), 1e-6, 1.0)
    return -log_loss(y, chances / chances.sum(axis=1, keepdims=True), labels=labels)


def skill(name, seed, epsilon):
    """(score - constant) / (without privacy - constant); NaN where the table is no scale."""
    (X, X_test, y, y_test), none, free = bounds(name, seed)
    if free - none < LEAST_GAIN:
        return math.nan
    labels = load(name).labels
    known = {"epsilon": epsilon, "delta": min(1e-5, len(X) ** -1.5), "random_state": seed}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        warnings.filterwarnings("ignore", "random_state is a seed")
        if labels is None:
            score = r2_score(y_test, DPLinearRegression(**known).fit(X, y).predict(X_test))
        else:
            model = DPLogisticRegression(classes=tuple(labels), **known).fit(X, y)
            score = _minus_log_loss(model, X_test, y_test, labels)
    return float(np.clip((score - none) / (free - none), WORST, BEST))


def skills(names, seeds, epsilons=EPSILONS):
    """Skills of shape (tables, epsilons, seeds)."""
    return np.array([[[skill(name, seed, e) for seed in range(seeds)] for e in epsilons] for name in names])


def skills_at(names, seeds, epsilons, **numbers):
    """The same with other numbers, and where a fit failed: some values are impossible for some tables."""

    def attempted(*cell):
        try:
            return skill(*cell)
        except Exception:
            return math.nan

    with override(**numbers):
        found = np.array([[[attempted(name, s, e) for s in range(seeds)] for e in epsilons] for name in names])
    has_failed = np.isnan(found)
    return np.where(has_failed, WORST, found), has_failed


def scale(found):
    """Which tables are a scale: those with a skill at every seed."""
    return np.isfinite(found).all(axis=(1, 2))


def reads(name, table):
    """Whether a fit of this table may read the constant."""
    group = name.split(".")[0]
    return group not in (OF_NUMBERS if load(table).labels is not None else OF_CLASSES)


def median(found):
    """Median over tables by epsilon, and its standard error over seeds."""
    by_seed = np.median(found, axis=0)
    return by_seed.mean(axis=-1), by_seed.std(axis=-1, ddof=1) / math.sqrt(by_seed.shape[-1])


__all__ = ["EPSILONS", "FACTORS", "constants", "median", "reads", "scale", "scaled", "skills", "skills_at"]
