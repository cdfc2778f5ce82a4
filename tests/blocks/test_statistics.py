"""Each statistic over partitions is the statistic of the same records in one place, to the last bit.

With 200 records the grids are 2^-52, and finer for means: C and Fortran order are equal on coarser ones.
"""

import importlib
import itertools
import math
import pkgutil
import re
from collections import Counter
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import BatchGroup, Expansion, PrivacySession, PrivateRecords, Standardization, statistics
from skdp.privacy.partitions import part as part_module
from skdp.privacy.partitions import rows as rows_module
from skdp.privacy.statistics import row_moments
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


MEANS = (
    "mean_gradient",
    "mean_losses",
    "mean_sup_gradient",
    "recursive_gradient",
    "gradient_scores",
    "step_scores",
)

# A statistic that takes other forms has several calls.
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


def made_of(records, chain, adjacency="add-remove"):
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
        try:
            CHAINS[chain](PrivateRecords(**VARIANTS[kind]))
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


def units_of(name, of):
    """Grids to compare on; the first one twice, because a part keeps what it derived."""
    fine = 2.0**-52 if not name.endswith("count") else 2.0**-44
    if name in (*MEANS, "clipped_sum"):  # a unit adds at most 2^50 grid steps
        fine = 2.0 ** (math.ceil(math.log2(of.linf)) - (36 if name == "step_scores" else 50))
    # Counts are clamped at 128 on the third grid; moments have bits below the grid on coarse ones alone.
    more = {"norm_count": (2.0**-54,), "target_count": (2.0**-54,), "second_moment": (2.0**-10, 0.25)}
    return (fine, fine, *more.get(name, ()))


def differing(kind, cut, chains=None):
    """What differs between partitions and one place."""
    wrong, compared = [], Counter()
    data = VARIANTS[kind]
    local, parts = PrivateRecords(**data), partitioned(cuts_of(kind, cut), **data)
    for chain in chains_of(kind) if chains is None else chains:
        here, there = made_of(local, chain), made_of(parts, chain)
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
            for unit in units_of(key[0], expected):
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
            compared[key[0]] += not isinstance(one, type)
    return wrong, compared


@pytest.mark.parametrize("kind", VARIANTS)
@pytest.mark.parametrize(
    "cut", ["ragged", *(pytest.param(cut, marks=pytest.mark.slow) for cut in ("1", "7", "64"))]
)
def test_each_statistic_has_the_bits_of_one_place(kind, cut):
    wrong, compared = differing(kind, cut)
    assert not wrong
    refused = {"second_moment"} if kind == "weights" else set()
    assert (+compared).keys() >= {*CALLS, *MADE_OF_SUMS} - refused - ({"cell_sums"} if "csr" in kind else set())
    assert sum(compared.values()) > 350


def session_of(sampling):
    adjacency = "replace-one" if sampling == "without replacement" else "zero-out"
    return PrivacySession(epsilon=1.0, delta=1e-5, adjacency=adjacency, minibatches=True, random_state=0)


def test_batches_have_the_bits_of_one_place():
    for kind in ("f64", "f32", "csr", "groups", "weights"):
        data = dict(VARIANTS[kind], n_public=None)
        here, there = PrivateRecords(**data), partitioned(cuts_of(kind, "ragged"), **data)
        for size, sampling in [(30, "Poisson"), (2, "Poisson"), (30, "without replacement"), (30, "partition")]:
            both = []
            for records in (here, there):
                session = session_of(sampling)
                (plan,) = session.plan_batches([BatchGroup(4, size)], sampling=sampling, n_units=records.n_units)
                for _ in range(4):
                    batch = session.draw(plan, records)
                    both.append([
                        records.mean_gradient(loss_of(records), theta(records), 0.9, batch=batch),
                        statistics.recursive_gradient(
                            records, loss_of(records), theta(records), theta(records, 6), momentum=0.3,
                            clip_norm=0.9, clip_diff_norm=0.2, batch=batch,
                        ),
                        records.clipped_sum(doubled, 1.7, size=D, rowwise=True, batch=batch),
                    ])  # fmt: skip
            for one, other in zip(both[:4], both[4:], strict=True):
                for a, b in zip(one, other, strict=True):
                    (unit, _) = units_of("clipped_sum", a)
                    assert np.array_equal(a._value.on_grid(unit), b._value.on_grid(unit))
                    assert (a.l2, a._value.magnitude, a._value.usual) == (b.l2, b._value.magnitude, b._value.usual)


# ---------------------------------------------------------------- mutants, which the comparison must notice


def keep_fortran_order(monkeypatch):
    honest = part_module._in_form

    def in_form(records, dtype):
        rows = honest(records, dtype)._rows
        return PrivateRecords._of(rows.derived(X=np.asfortranarray(rows.matrix)))

    monkeypatch.setattr(part_module, "_in_form", in_form)


def round_in_each_part(monkeypatch):
    words, whole = row_moments.RowMoments.words, row_moments.RowMoments.whole
    monkeypatch.setattr(row_moments.RowMoments, "words", lambda self, u: (whole(self, u, words(self, u)),))
    monkeypatch.setattr(row_moments.RowMoments, "whole", lambda self, unit, words: words[0])


def clamp_in_each_part(monkeypatch):
    honest = part_module.Part.answer

    def answer(self, request, units):
        found = honest(self, request, units)
        if found is None or "count" not in request.statistic.__name__ or request.unit != 2.0**-54:
            return found
        return tuple(np.clip(word, -4, 4) for word in found)

    monkeypatch.setattr(part_module.Part, "answer", answer)


def take_the_shape_of_the_part(monkeypatch):
    honest = part_module.Part._of

    def of(self, chain, shape):
        return honest(self, chain, replace(shape, n_units=self._records._rows.n_real_units))

    monkeypatch.setattr(part_module.Part, "_of", of)


def drop_the_carry(monkeypatch):
    """Sums of low words are cut to their own bits, as if no two of them were added."""
    honest = row_moments._TwoWords.rounded

    def rounded(words, bits):
        low = (1 << row_moments.LOW_BITS) - 1
        return honest((words[0], *(word & low for word in words[1:])), bits)

    monkeypatch.setattr(row_moments._TwoWords, "rounded", staticmethod(rounded))


def cast_to(dtype):
    def mutate(monkeypatch):
        honest = part_module._in_form
        monkeypatch.setattr(part_module, "_in_form", lambda records, _: honest(records, dtype))

    return mutate


def mix_up_derivations(monkeypatch):
    monkeypatch.setattr(rows_module, "_keys", itertools.repeat(0))


MUTANTS = {
    "fortran": ("f64", "", keep_fortran_order),
    "rounded": ("f64", "", round_in_each_part),
    "clamped": ("f64", "", clamp_in_each_part),
    "shape": ("weights", "", take_the_shape_of_the_part),
    "shape of records": ("f64", "", take_the_shape_of_the_part),
    "carry": ("f64", "", drop_the_carry),
    "float32": ("f64", "", cast_to("float32")),
    "float64": ("f32", "shortened", cast_to("float64")),
    "kept": ("f64", "residual", mix_up_derivations),
}


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_noticed(monkeypatch, name):
    kind, chain, mutate = MUTANTS[name]
    assert not differing(kind, "7", ["centered", chain])[0]
    mutate(monkeypatch)
    assert differing(kind, "7", ["centered", chain])[0]
