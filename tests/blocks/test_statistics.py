"""Each statistic over partitions is the statistic of the same records in one place, to the last bit of 2^-44."""

import importlib
import pkgutil
import re

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import Expansion, PrivateRecords, Standardization, statistics
from skdp.privacy.partitions import part as part_module
from tests.blocks.toys import CUTS, partitioned

N, D = 200, 13
LOSSES = {"logistic": LogisticLoss(), "squared": SquaredLoss(), "multinomial": MultinomialLoss(3)}


def decorated(decorator, holders):
    """Names of functions that a decorator made."""
    return {
        name
        for holder in holders
        for name, made in vars(holder).items()
        if getattr(made, "__code__", None) is not None
        and made.__code__.co_qualname.startswith(f"{decorator}.<locals>")
    }


def of_statistics():
    names = [module.name for module in pkgutil.iter_modules(statistics.__path__)]
    modules = [importlib.import_module(f"{statistics.__name__}.{name}") for name in names]
    return decorated("over_partitions", modules)


def loss_of(r):
    return LOSSES["multinomial"] if r.shape.n_classes == 3 else LOSSES["logistic"]


def theta(r, seed=5):
    shape = (r.n_parameters, 3) if r.shape.n_classes == 3 else (r.n_parameters,)
    return 0.3 * np.random.default_rng(seed).normal(size=shape)


def doubled(X, y):
    return X * 2.0


# A statistic that takes other forms has several calls. 2^-40: a mean's scale is finer than its grid.
CALLS = {
    "binned_residuals": [lambda r, a: statistics.binned_residuals(r, [-0.5, 0.3], 1.3, adjacency=a)],
    "cell_sums": [
        lambda r, a: statistics.cell_sums(r, [np.arange(6).reshape(2, 3)] * r.n_features, 0.37, adjacency=a)
    ],
    "class_counts": [lambda r, a: statistics.class_counts(r, 3, adjacency=a)],
    "clipped_sum": [lambda r, a: r.clipped_sum(doubled, 1.7, size=r.n_features, rowwise=True)],
    "column_counts": [
        lambda r, a: r.column_counts(np.linspace(-1, 1, r.n_features)),
        lambda r, a: r.column_counts(np.full(r.n_features, 0.7), np.zeros(r.n_features), absolute=True),
    ],
    "column_moments": [
        lambda r, a: statistics.column_moments(r, 0.1, 1.3, present=1.0, squares=1.0, adjacency=a),
        lambda r, a: statistics.column_moments(
            r, 0.1, 1.3, present=1.0, squares=1.0, n_classes=3, adjacency=a
        ),
    ],
    "column_sums": [lambda r, a: r.column_sums(0.1, 1.3), lambda r, a: r.column_sums(0.1, 1.3, around=0.2)],
    "histogram": [lambda r, a: r.histogram([-1.0, -0.2, 0.1, 2.0], adjacency=a)],
    "magnitude_counts": [lambda r, a: statistics.magnitude_counts(r, -6, 6, adjacency=a)],
    "mean_gradient": [
        lambda r, a: r.mean_gradient(loss_of(r), theta(r), 0.9),
        lambda r, a: r.mean_gradient(loss_of(r), theta(r), 0.9, mask=np.arange(r.n_parameters) % 2 == 0),
        lambda r, a: r.mean_gradient(LOSSES["squared"], theta(r), 0.9),
    ],
    "mean_losses": [
        lambda r, a: statistics.mean_losses(r, loss_of(r), np.stack([theta(r), theta(r, 6)]), 1.5)
    ],
    "mean_sup_gradient": [lambda r, a: statistics.mean_sup_gradient(r, loss_of(r), theta(r), 0.4)],
    "norm_count": [
        lambda r, a: r.norm_count(2.0),
        lambda r, a: r.norm_count(1.2, norm="max"),
        lambda r, a: r.norm_count(1.0, loss=loss_of(r), theta=theta(r)),
        lambda r, a: r.norm_count(1.0, loss=loss_of(r), theta=theta(r), each_row=True),
        lambda r, a: r.norm_count(0.6, loss=loss_of(r), theta=theta(r), norm="max"),
    ],
    "recursive_gradient": [
        lambda r, a: statistics.recursive_gradient(
            r, loss_of(r), theta(r), theta(r, 6), momentum=0.3, clip_norm=0.9, clip_diff_norm=0.2
        )
    ],
    "residual_moments": [
        lambda r, a: statistics.residual_moments(r, 0.0, 1.0, 1.0, np.full(5, 0.7), adjacency=a)
    ],
    "residual_squares": [
        lambda r, a: statistics.residual_squares(r, 0.0, 1.0, 1.0, (1.0, 1.0, 0.0), [0, 1], adjacency=a)
    ],
    "second_moment": [
        lambda r, a: r.second_moment(2.2, 1.1, adjacency=a),
        lambda r, a: r.second_moment(1.3, 0.0, target_weight=0.0, adjacency=a),
    ],
    "target_count": [
        lambda r, a: statistics.target_count(r, 0.4),
        lambda r, a: statistics.target_count(r, 0.6, center=0.3, absolute=True),
    ],
}  # fmt: skip

# Those that are made of one that is a sum.
MADE_OF_SUMS = {
    "gradient_scores": lambda r, a: statistics.gradient_scores(r, loss_of(r), theta(r), 0.4),
    "step_scores": lambda r, a: statistics.step_scores(r, loss_of(r), theta(r), 0.4, 0.5),
}


def table(kind, dtype=np.float64):
    draw = np.random.default_rng(3)
    X = draw.standard_t(3, size=(N, D)).astype(dtype)
    if kind == "nan":
        X[draw.uniform(size=X.shape) < 0.1] = np.nan
    if kind == "csr":
        X = sp.csr_matrix(np.where(draw.uniform(size=X.shape) < 0.4, X, 0.0))
    return X


def targets(kind):
    y = np.random.default_rng(4).uniform(-1, 1, size=N)
    return np.floor(1.5 * (y + 1)).astype(np.int64) if kind == "multiclass" else (y > 0).astype(float)


SORTED = np.sort(np.random.default_rng(8).integers(0, 70, size=N))
CODES = np.unique(SORTED, return_inverse=True)[1]
VARIANTS = {
    "f64": dict(X=table("f64"), y=targets("f64"), fit_intercept=True),
    "f32": dict(X=table("f32", np.float32), y=targets("f64"), fit_intercept=True),
    "csr": dict(X=table("csr"), y=targets("f64")),
    "csr-intercept-public": dict(X=table("csr"), y=targets("f64"), fit_intercept=True, n_public=150),
    "nan": dict(X=table("nan"), y=targets("f64"), fit_intercept=True),
    "groups": dict(X=table("f64"), y=targets("f64"), groups=CODES, fit_intercept=True),
    "groups-csr-public": dict(X=table("csr"), y=targets("f64"), groups=CODES, n_public=60),
    "weights": dict(
        X=table("f64"), y=targets("f64"), sample_weight=np.random.default_rng(6).uniform(0.2, 1, N), n_public=300
    ),
    "multiclass": dict(X=table("f64"), y=targets("multiclass"), n_classes=3, fit_intercept=True),
}


def first_columns(X):
    dense = X.toarray() if sp.issparse(X) else np.asarray(X, dtype=np.float64)
    return np.nan_to_num(dense[:, :3] ** 2 - 1.0)


CHAINS = {
    "": lambda r: r,
    "averaged": lambda r: r.averaged(1.5, squared=True),
    "centered": lambda r: r.centered(0.3),
    "expanded": lambda r: r.standardized(standard(r)).expanded(
        Expansion.make([2] * D, pairs=[(0, 1), (2, 4)])
    ),
    "mapped": lambda r: r.mapped(first_columns, 3, fit_intercept=True),
    "predicted": lambda r: r.predicted(theta(r)),
    "residual": lambda r: r.residual(theta(r)),
    "restricted": lambda r: r.restricted([0, 1, 3, 4, 6, 7, 8, 9, 11, 12]),
    "scored": lambda r: r.scored(np.stack([theta(r).reshape(r.n_parameters, -1)[:, 0]] * 2, axis=1), [0.1, 0.2]),
    "select_targets": lambda r: r.select_targets(),
    "shortened": lambda r: r.shortened(1.1),
    "standardized": lambda r: r.standardized(standard(r)),
    "with_intercept": lambda r: r.with_intercept(0.5),
    # chains of several
    "standardized residual shortened": lambda r: r.standardized(standard(r)).residual(theta(r)).shortened(1.1),
    "restricted standardized": lambda r: r.restricted([0, 5]).standardized(Standardization.make(np.zeros(2), 2.0)),
    "restricted shortened": lambda r: r.restricted(np.arange(2, 12)).shortened(0.7),
    "standardized restricted": lambda r: r.standardized(standard(r)).restricted(np.arange(1, 11)),
    "two columns": lambda r: r.restricted([2, 3]),
}  # fmt: skip


def standard(r):
    center = 0.0 if r.shape.container == "csr" else 0.25
    return Standardization.make(np.full(r.n_features, center), 1.5, -3.0, 3.0)


def test_each_sum_and_each_derivation_has_a_case():
    assert of_statistics() == set(CALLS)
    assert decorated("chained", [PrivateRecords]) == {name for name in CHAINS if name.isidentifier()}


def made_of(records, kind, chain, adjacency="add-remove"):
    """All statistics of derived records that can be made; the reason of others."""
    derived = CHAINS[chain](records)
    found = {}
    for name, calls in {**CALLS, **{name: [call] for name, call in MADE_OF_SUMS.items()}}.items():
        for i, call in enumerate(calls):
            try:
                found[name, i] = call(derived, adjacency)
            except (TypeError, ValueError, IndexError) as error:
                found[name, i] = re.sub(r"\d", "", f"{type(error).__name__}: {error}")
    return found


def chains_of(kind):
    """Chains that these records can be derived by."""
    for chain in CHAINS:
        data = dict(VARIANTS[kind])
        try:
            CHAINS[chain](PrivateRecords(data.pop("X"), **data))
        except (TypeError, ValueError, IndexError):
            continue
        yield chain


def cuts_of(kind, cut):
    """Places of cuts: between groups where there are groups."""
    cuts = np.asarray(CUTS[cut](N))
    if "groups" in VARIANTS[kind]:
        starts = np.append(np.flatnonzero(np.diff(CODES, prepend=-1)), N)
        cuts = starts[np.searchsorted(starts, cuts)]
    return list(cuts)


def differing(kind, cut, chains=None, local=None):
    """What differs between partitions and one place."""
    wrong, compared = [], 0
    for chain in chains_of(kind) if chains is None else chains:
        data = dict(VARIANTS[kind])
        here = made_of(PrivateRecords(data.pop("X"), **data), kind, chain)
        data = dict(VARIANTS[kind])
        there = made_of(partitioned(cuts_of(kind, cut), data.pop("X"), **data), kind, chain)
        for key, expected in here.items():
            found = there[key]
            where = (kind, cut, chain, *key)
            if isinstance(expected, str) or isinstance(found, str):
                if type(found) is not type(expected) or found != expected:
                    wrong.append((where, "refused", expected, found))
                continue
            for field in ("shape", "l1", "l2", "linf", "adjacency"):
                if getattr(found, field) != getattr(expected, field):
                    wrong.append((where, field))
            a, b = expected._value, found._value
            for field in ("magnitude", "usual", "roundings", "unit", "needs_public_n"):
                if getattr(a, field) != getattr(b, field):
                    wrong.append((where, field))
            unit = 2.0**-40 if key[0] in ("mean_gradient", "recursive_gradient") else 2.0**-44
            for _ in range(2):  # the second time by what a part has kept
                try:
                    one = a.on_grid(unit)
                except (TypeError, ValueError, IndexError) as error:
                    one = type(error)
                try:
                    other = b.on_grid(unit)
                except (TypeError, ValueError, IndexError) as error:
                    other = type(error)
                if not np.array_equal(one, other):
                    wrong.append((where, "bits"))
            compared += 1
    return wrong, compared


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize("cut", CUTS)
def test_each_statistic_has_the_bits_of_one_place(kind, cut):
    wrong, compared = differing(kind, cut)
    assert not wrong
    assert compared > 50
