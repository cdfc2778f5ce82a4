"""Fitted additive models made of given numbers, and the same scores by a NumPy formula."""

from functools import cache

import numpy as np

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.fitting.predictions import NOWHERE
from skdp.linear_model.additive.curves import Curves
from skdp.privacy import Expansion

D = 6  # columns; number 4 is not seen by the fit
COLUMNS = np.array([0, 1, 2, 3, 5])
CENTER = np.array([40.0, 0.1, -3.0, 2000.0, 2.0])
SCALE = np.array([12.0, 1.0, 0.5, 8.0, 1.5])
LOW = np.array([18.0, -5.0, -8.0, 1990.0, -10.0])
HIGH = np.array([90.0, np.inf, -2.5, 2012.0, 10.0])


def made_curves(n_classes=None, *, levels=True, pairs=((0, 3), (1, 0), (2, 3)), counts=(4, 2, 1, 3, 0), seed=0):
    rng = np.random.default_rng(seed)
    values = (0.1, 1.0, 3.0) if levels else ()
    expansion = Expansion.make(list(counts), list(pairs), 1.0, [4] * len(values), values)
    shape = (expansion.size,) if n_classes is None else (expansion.size, n_classes)
    p = COLUMNS.size + expansion.size + 1
    root = rng.normal(size=(n_classes or 1, p, p)) * 0.01
    variance = root @ root.transpose(0, 2, 1)
    theta = 0.3 * rng.normal(size=shape)
    return Curves(COLUMNS, CENTER, SCALE, LOW, HIGH, expansion, theta, variance if n_classes else variance[0])


def made_model(kind="two classes", *, curves="default", names=None, cut=NOWHERE, **options):
    """A fitted model of "two classes", "three classes" or "regression"."""
    rng = np.random.default_rng(7)
    k = 3 if kind == "three classes" else None
    cls = DPAdditiveRegressor if kind == "regression" else DPAdditiveClassifier
    model = cls()
    linear = np.zeros((k or 1, D))
    linear[:, COLUMNS] = rng.normal(size=(k or 1, COLUMNS.size)) / SCALE
    model.linear_ = linear if k else linear[0]
    offset = rng.normal(size=k or 1) - linear[:, COLUMNS] @ CENTER
    model._offset = offset if k else float(offset[0])
    model.fill_values_ = np.zeros(D)
    model.fill_values_[COLUMNS] = CENTER
    model.feature_bounds_ = np.outer([-np.inf, np.inf], np.ones(D))
    model.feature_bounds_[:, COLUMNS] = LOW, HIGH
    model._curves = made_curves(k, **options) if isinstance(curves, str) else curves
    model.n_features_in_, model.n_iter_ = D, 3
    if names is not None:
        model.feature_names_in_ = np.array(names, dtype=object)
    if kind == "regression":
        model.prediction_bounds_ = cut
    else:
        model.classes_ = np.array(["no", "yes"] if k is None else ["a", "b", "c"])
    return model


def made_rows(n=400, seed=1, missing=True):
    """Rows within and far beyond the windows, with levels and missing cells."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    X[:, COLUMNS] = CENTER + 1.7 * SCALE * X[:, COLUMNS]
    X[::3, 5] = rng.choice([0.1, 1.0, 3.0, 4.0], size=len(X[::3]))
    X[:20, COLUMNS] += 30.0 * SCALE * rng.choice([-1.0, 1.0], size=(20, COLUMNS.size))[:n]
    if missing:
        X[rng.random(X.shape) < 0.05] = np.nan
    return X


def waves(c):
    """1, c and four cosines of clipped cells."""
    v = (c + 2.5) / 5.0
    return np.stack([np.ones_like(c), c, *(np.cos(np.pi * m * v) for m in (2, 1, 4, 3))], axis=-1)


@cache
def turn():
    """Gram-Schmidt of them under the public law, by QR at the points of a Gauss rule."""
    x, w = np.polynomial.legendre.leggauss(200)
    x, w = 2.5 * x, w * (np.exp(-0.5 * (2.5 * x) ** 2) + 0.05)
    q, r = np.linalg.qr(waves(x) * np.sqrt(w / w.sum())[:, None])
    return np.linalg.inv(r) * np.sign(np.diag(r))


def smooth(t):
    """psi_1 to psi_4 of standardized cells, of shape (..., 4)."""
    return (waves(np.clip(t, -2.5, 2.5)) @ turn())[..., 2:]


def added_by_formula(curves, X):
    """The added features of rows."""
    own = X[:, curves.columns]
    t = (np.clip(own, curves.low, curves.high).astype(float) - curves.center) / curves.scale
    t[np.isnan(t)] = 0.0
    made, functions, c = curves.expansion, smooth(t), np.clip(t, -2.5, 2.5)
    parts = [functions[:, j, k] for j in range(t.shape[1]) for k in range(made.counts[j])]
    parts += [own[:, j] == X.dtype.type(value) for j, value in zip(made.levels_of, made.levels, strict=True)]
    parts += [c[:, a] * c[:, b] for a, b in made.pairs]
    return np.column_stack(parts).astype(float) if parts else np.zeros((len(X), 0))


def scores_by_formula(model, X):
    filled = np.where(np.isnan(X), model.fill_values_.astype(X.dtype), X).astype(float)
    line = np.clip(filled, *model.feature_bounds_) @ model.linear_.T + model._offset
    return line + added_by_formula(model._curves, X) @ model._curves.theta
