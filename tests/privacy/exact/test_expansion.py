"""Expanded records: functions of one record each, to the last bit; bounds stay; no array of all rows is made."""

import itertools
import math
import pickle
import tracemalloc
from dataclasses import replace
from types import SimpleNamespace

import mpmath as mp
import numpy as np
import pytest
import scipy.sparse as sp

from skdp.exceptions import UnsupportedAccounting
from skdp.kernels import expanded, expanded_rows, gradient_kernel, linear_scores
from skdp.kernels.expanded import ExpandedTable
from skdp.kernels.standardized import StandardizedTable
from skdp.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import (
    EDGE,
    N_FUNCTIONS,
    SMOOTH_FUNCTIONS,
    Expansion,
    PrivateRecords,
    Standardization,
    Vectors,
    check_batch_independence,
)

D = 6
MAP = Standardization.make(
    [0.0, 1.0, -2.0, 0.5, 0.0, 0.0], [1.0, 2.0, 0.7, 1.0, 1e-3, np.inf],
    [-3.0, -np.inf, -5.0, -1.0, -1.0, -1.0], [3.0, np.inf, 5.0, 2.0, 1.0, 1.0],
)  # fmt: skip
WEIGHTS = 0.7 * np.array([1.0, 0.8, 0.5, 0.5])
LEVELS = {"levels_of": [1, 1, 3], "levels": [0.1, 2.0, -0.5], "level_weight": 0.7}
EXPANSIONS = {
    "four each": Expansion.make([4] * D, weights=WEIGHTS),
    "two of some": Expansion.make([2, 0, 2, 0, 0, 2]),
    "one": Expansion.make([0, 0, 0, 1, 0, 0]),
    "three": Expansion.make([3, 1, 0, 3, 2, 0], weights=WEIGHTS),
    "pairs": Expansion.make([0] * D, [(4, 1), (0, 2), (1, 0)]),
    "levels": Expansion.make([0] * D, **LEVELS),
    "nothing": Expansion.make([0] * D),
    "all": Expansion.make([4, 0, 2, 1, 3, 0], [(5, 1), (0, 2), (4, 0)], WEIGHTS, **LEVELS),
}
FORMS = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "float32": lambda X: X.astype(np.float32),
    "columns apart": lambda X: np.repeat(X, 2, axis=1)[:, ::2],
}
WILD = [0.0, -0.0, 5e-324, 1e300, -1e300, np.inf, -np.inf, np.nan, 0.1, 2.0, -0.5]
each_expansion = pytest.mark.parametrize("name", sorted(EXPANSIONS))


def cells(n=700, seed=0):
    """Normal numbers, values of the one-hots, and numbers as bad as they come."""
    rng = np.random.default_rng(seed)
    X = np.round(rng.normal(size=(n, D)) * 2, 1)
    X.flat[rng.choice(X.size, X.size // 5, replace=False)] = np.resize(WILD, X.size // 5)
    return X


def table(expansion, X, form="C"):
    with np.errstate(all="ignore"):
        return expansion.of(MAP.of(FORMS[form](X)))


# ------------------------------------------------------------------ what the features are


@pytest.fixture(scope="module")
def functions():
    """Psi_1 to psi_4 by cosines, with coefficients in 1, c and the cosines by quadrature with 30 digits."""
    with mp.workdps(30):
        waves = [lambda c: mp.mpf(1), lambda c: c] + [
            lambda c, k=k: mp.cos(mp.pi * k * (c + 2.5) / 5) for k in (2, 1, 4, 3)
        ]

        def mean(f):
            return mp.quad(lambda t: f(t) * (mp.exp(-t * t / 2) + mp.mpf("0.05")), [-2.5, 0, 2.5])

        total = mean(waves[0])
        gram = mp.matrix(6, 6)
        for i, j in itertools.product(range(6), repeat=2):
            gram[i, j] = mean(lambda t, i=i, j=j: waves[i](t) * waves[j](t)) / total
        # The rows of the inverse of the Cholesky factor make the waves orthonormal, one after another.
        made = np.array((mp.cholesky(gram) ** -1).tolist(), dtype=float)[2:]

    def psi(c):
        v = (c + 2.5) / 5
        waves = np.stack([np.ones_like(c), c, *(np.cos(np.pi * k * v) for k in (2, 1, 4, 3))], axis=-1)
        return (waves[..., None, :] * made).sum(axis=-1)

    return SimpleNamespace(psi=psi, of_waves=made)


def test_the_constants_are_those_of_the_law(functions):
    """Cosines are polynomials of s = -cos(pi v): 2 s^2 - 1, -s, 8 s^4 - 8 s^2 + 1 and 3 s - 4 s^3."""
    of_powers = np.array(
        [[1, 0, 0, 0, 0, 0], [0, 1, 0, 0, 0, 0], [-1, 0, 0, 2, 0, 0], [0, 0, -1, 0, 0, 0],
         [1, 0, 0, -8, 0, 8], [0, 0, 3, 0, -4, 0]],
    )  # fmt: skip
    np.testing.assert_allclose(SMOOTH_FUNCTIONS, functions.of_waves @ of_powers, rtol=1e-14, atol=1e-14)
    assert (np.diag(functions.of_waves[:, 2:]) > 0).all()
    assert (EDGE, N_FUNCTIONS) == (2.5, 4)


def test_the_functions_are_orthonormal_and_flat_beyond_the_edge(functions):
    node, weight = np.polynomial.legendre.leggauss(120)
    t = EDGE * node
    law = weight * (np.exp(-(t**2) / 2) + 0.05)
    plain = Standardization.make([0.0], 1.0)

    def psi(t):
        return Expansion.make([4]).of(plain.of(t[:, None])).whole()[:, 1:]

    made = np.column_stack([np.ones_like(t), t, psi(t)])
    product = (made * (law / law.sum())[:, None]).T @ made
    variance = product[1, 1]  # of t under the law: not 1, so a line of slope 1 is not of mean square 1
    assert variance == pytest.approx(1.018766, abs=1e-6)
    product[1, 1] = 1.0
    np.testing.assert_allclose(product, np.eye(6), atol=1e-13)
    ends = psi(np.array([2.5, 2.6, 1e300, np.inf, -2.5, -1e300]))
    assert (ends[:4] == ends[0]).all()
    assert (ends[4:] == ends[4]).all()
    assert np.abs(psi(np.linspace(-3, 3, 10001))).max() < 6.0


def test_the_sine_is_off_by_less_than_a_few_last_bits():
    c = np.linspace(-EDGE, EDGE, 20001)
    off = np.abs(expanded_rows._sine.py_func(c) - np.sin(np.pi * c / 5))
    assert off.max() < 1e-15
    with mp.workdps(30):  # the polynomial itself, without float64's roundings
        of_powers = [mp.mpf(getattr(expanded_rows, f"S{k}")) for k in range(8)]
        worst = max(
            abs(sum(s * x ** (2 * k + 1) for k, s in enumerate(of_powers)) - mp.sin(mp.pi * x / 5))
            for x in mp.linspace(0, 2.5, 400)
        )
    assert worst < 3.5e-16


@each_expansion
def test_features_are_those_of_a_formula_in_their_order(name, functions):
    expansion, X = EXPANSIONS[name], cells()
    found = table(expansion, X).whole()
    t = MAP.of(X).whole()
    c = np.clip(t, -2.5, 2.5)
    columns = [t[:, j] for j in range(D)]
    psi = functions.psi(c) * expansion.weights
    columns += [psi[:, j, k] for j in range(D) for k in range(expansion.counts[j])]
    columns += [
        np.where(X[:, j] == value, expansion.level_weight, 0.0)
        for j, value in zip(expansion.levels_of, expansion.levels)
    ]
    columns += [c[:, a] * c[:, b] for a, b in expansion.pairs]
    assert found.shape == (len(X), expansion.n_features) == (len(X), len(columns))
    assert expansion.size == len(columns) - D
    assert list(zip(expansion.owner, expansion.order)) == [
        (j, k) for j in range(D) for k in range(expansion.counts[j])
    ]
    np.testing.assert_array_equal(found[:, :D], t)
    np.testing.assert_allclose(found[:, D:], np.column_stack(columns)[:, D:], rtol=0, atol=1e-13)
    added = expansion.owner.size + expansion.levels.size
    np.testing.assert_array_equal(
        found[:, D + expansion.owner.size :],
        np.column_stack([*columns, c[:, 0]])[:, D + expansion.owner.size : -1],
    )
    assert np.isfinite(found[:, D : D + added]).all()


def test_a_level_is_compared_as_the_table_s_type_holds_it():
    X = np.array([[0.1], [0.1 + 1e-12], [np.inf], [np.nan], [-0.0]])
    expansion = Expansion.make([0], levels_of=[0] * 3, levels=[0.1, 1e300, 0.0])
    plain, wanted = Standardization.make([0.0], 1.0), np.zeros((5, 3))
    wanted[0, 0] = wanted[4, 2] = 1.0
    np.testing.assert_array_equal(expansion.of(plain.of(X)).whole()[:, 1:], wanted)
    wanted[1, 0] = 1.0  # the same number as float32
    single = X.astype(np.float32)  # 1e300 is infinite as float32, and an infinite cell is not it
    np.testing.assert_array_equal(expansion.of(plain.of(single)).whole()[:, 1:], wanted)


@pytest.mark.parametrize("first", ["restricted", "standardized"])
def test_levels_follow_the_columns_of_restricted_records(first):
    records = PrivateRecords(np.arange(12.0).reshape(3, 4))
    if first == "restricted":
        made = records.restricted([1, 3]).standardized(Standardization.make([0, 0], 1.0))
    else:
        made = records.standardized(Standardization.make([0] * 4, 1.0)).restricted([1, 3])
    made = made.expanded(Expansion.make([0, 0], levels_of=[0, 1, 1], levels=[5.0, 3.0, 11.0]))
    assert made._rows.matrix.tolist() == [[1, 3, 0, 1, 0], [5, 7, 1, 0, 0], [9, 11, 0, 0, 1]]


# ------------------------------------------------------------------ bits


@each_expansion
@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_row_has_the_same_bits_in_every_block(name, form, monkeypatch):
    made = table(EXPANSIONS[name], cells(), form)
    whole, width = made.whole(), made.shape[1]
    monkeypatch.setattr(expanded, "MADE", 100)
    for first, last in ((0, 1), (3, 4), (0, 64), (17, 700), (699, 700), (5, 5)):
        out = np.full((last - first + 1, width + 2), 7.0)
        made.fill(first, last, out)
        np.testing.assert_array_equal(out[: last - first, :width], whole[first:last])
        assert (out[last - first :] == 7.0).all()
        assert (out[:, width:] == 7.0).all()
    for rows in ([0], [5, 9, 600], [600, 5, 5], list(range(30, 90)), [3, 4, 6, 5]):
        rows, out = np.array(rows), np.empty((len(rows), width))
        made.fill_rows(rows, out)
        np.testing.assert_array_equal(out, whole[rows])


@pytest.mark.parametrize("form", sorted(FORMS))
def test_chosen_features_are_those_of_the_whole(form, monkeypatch):
    made = table(EXPANSIONS["all"], cells(), form)
    whole, rng = made.whole(), np.random.default_rng(0)
    for size in (0, 1, 2, 5, 11, made.shape[1]):
        for _ in range(4):
            chosen = np.sort(rng.permutation(made.shape[1])[:size])
            few = made.restricted(chosen)
            np.testing.assert_array_equal(few.whole(), whole[:, chosen])
            again = np.flatnonzero(rng.random(size) < 0.5)
            np.testing.assert_array_equal(few.restricted(again).whole(), whole[:, chosen[again]])
    # A function of column 2 needs column 2 alone, and a one-hot no standardized column.
    assert made.restricted(np.array([10])).table.shape[1] == 1
    assert made.restricted(np.array([D + 10])).table.shape[1] == 0
    with pytest.raises(ValueError, match="must ascend"):
        made.restricted(np.array([3, 1]))


class OfAllRows(StandardizedTable):
    """The mutant: cells less the mean of all rows."""

    def _fill(self, rows, first, count, out):
        every = StandardizedTable(self.X, self.columns, self.numbers)
        every._fill(rows, first, count, out)
        with np.errstate(all="ignore"):
            out[:count, : self.shape[1]] -= np.clip(every.whole(), -9, 9).mean(axis=0)

    def restricted(self, columns):
        few = super().restricted(columns)
        return OfAllRows(few.X, few.columns, few.numbers)


def depends_on_its_row_alone(form, kind=StandardizedTable):
    """Whether an expanded row, and its weight, stay the same to the last bit among any other rows."""
    rng, expansion = np.random.default_rng(3), EXPANSIONS["all"]
    for own in (rng.normal(size=D), np.array([1e300, 0.1, np.nan, -0.5, np.inf, 0]), np.zeros(D)):
        found = set()
        for n, place, size in (
            (1, 0, 1), (8, 3, 1), (300, 299, 1e9), (301, 64, 1e-9), (999, 0, 1e300),
        ):  # fmt: skip
            X = size * rng.normal(size=(n, D))
            X[1::3] = np.resize(WILD, D)
            X[place] = own
            with np.errstate(all="ignore"):
                records = PrivateRecords(FORMS[form](X), fit_intercept=True).standardized(MAP)
            rows = records._rows
            mapped = kind(rows.X.X, rows.X.columns, rows.X.numbers)
            rows = records._derived(X=mapped).expanded(expansion).averaged(2.5)._rows
            found.add((rows.matrix[place].tobytes(), rows.weight[place].tobytes()))
        if len(found) > 1:
            return False
    return True


@pytest.mark.parametrize("form", sorted(FORMS))
def test_a_row_is_a_function_of_itself_and_a_mean_of_all_rows_is_found(form):
    assert depends_on_its_row_alone(form)
    assert not depends_on_its_row_alone(form, OfAllRows)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", ["all", "four each"])
def test_the_check_of_batch_independence_passes(name, dtype):
    check_batch_independence(lambda X, y: [Vectors(EXPANSIONS[name].of(MAP.of(X)).whole())], D, dtype)


def test_the_check_of_batch_independence_finds_a_table_of_all_rows():
    def mutant(X, y):
        made = MAP.of(X)
        of_all = OfAllRows(made.X, None, made.numbers)
        return [Vectors(EXPANSIONS["all"].of(of_all).whole())]

    with pytest.raises(UnsupportedAccounting, match="place"):
        check_batch_independence(mutant, D)


GROUPS = {
    "records": None,
    "groups": np.unique(np.random.default_rng(1).integers(0, 90, 700), return_inverse=True)[1],
    "one large group": np.minimum(np.arange(700) // 650, 1) * (1 + np.arange(700) % 7),
}
LOSSES = {"squared": SquaredLoss(), "logistic": LogisticLoss(), "multinomial": MultinomialLoss(3)}


@pytest.mark.parametrize("kind", sorted(GROUPS))
@pytest.mark.parametrize("name", sorted(LOSSES))
def test_sums_and_scores_are_those_of_a_copy(name, kind, monkeypatch):
    monkeypatch.setattr("skdp.kernels.threads.SERIAL_WORK", 0)
    monkeypatch.setattr("skdp.kernels.gradient.passes.MADE_ENTRIES", 2000)
    monkeypatch.setattr("skdp.kernels.gradient.passes.COLUMN_ENTRIES", 2000)
    monkeypatch.setenv("SKDP_NUM_THREADS", "3")
    made, rng, loss = table(EXPANSIONS["all"], cells()), np.random.default_rng(2), LOSSES[name]
    y = rng.integers(0, 3 if loss.n_outputs > 1 else 2, 700).astype(float)
    options = {"sample_weight": rng.random(700), "groups": GROUPS[kind], "intercept_value": 0.7}
    lazy, copied = (gradient_kernel(X, y, loss, **options) for X in (made, made.whole()))
    theta = rng.normal(size=copied.shape) * 0.3
    np.testing.assert_array_equal(lazy.norms(theta), copied.norms(theta))
    mask = np.arange(made.shape[1] + 1) > D
    some = np.flatnonzero(rng.random(copied.n_units) < 0.4)
    for arguments in ((), (mask,), (None, some)):
        found, wanted = (k.clipped_sum(theta, 0.5, 2.0**-20, *arguments) for k in (lazy, copied))
        np.testing.assert_array_equal(found, wanted)
    with np.errstate(all="ignore"):  # infinite cells times weights
        flat = theta[:-1].reshape(made.shape[1], -1)
        found, wanted = (linear_scores(X, flat, np.zeros(flat.shape[1])) for X in (made, made.whole()))
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("kind", sorted(GROUPS))
def test_statistics_of_records_are_those_of_a_copy(kind):
    X, y, groups = cells(), np.random.default_rng(1).normal(size=700), GROUPS[kind]
    lazy = PrivateRecords(X, y, groups=groups, fit_intercept=True, intercept_value=0.6)
    lazy = lazy.standardized(MAP).expanded(EXPANSIONS["all"])
    copied = PrivateRecords(lazy._rows.X.whole(), y, groups=groups, fit_intercept=True, intercept_value=0.6)
    assert lazy.shape == copied.shape
    p = lazy.n_parameters
    theta, few = np.linspace(-1, 1, p) * (np.arange(p) % 3 > 0), np.array([0, 2, 7, 17, 19])
    for statistic in (
        lambda r: r.second_moment(2.0, 3.0, adjacency="replace-one"),
        lambda r: r.second_moment(2.0, 3.0, adjacency="zero-out", mask=np.arange(p) % 2 > 0),
        lambda r: r.averaged(1.5, squared=True).mean_gradient(SquaredLoss(), theta, 1.0),
        lambda r: r.residual(theta).averaged(1.5).mean_gradient(SquaredLoss(), theta, 1.0),
        lambda r: r.restricted(few).mean_gradient(SquaredLoss(), np.ones(6), 1.0),
        lambda r: r.scored(theta).clipped_sum(lambda X, y: X * 1.0, 1.0, size=1),
    ):
        found, wanted = (statistic(r)._value.on_grid(2.0**-30) for r in (lazy, copied))
        np.testing.assert_array_equal(found, wanted)


# ------------------------------------------------------------------ bounds

SMALL = Expansion.make([4, 1, 0], [(0, 2)], WEIGHTS, levels_of=[2, 2], levels=[0.0, 1.0], level_weight=0.7)
P = SMALL.n_features + 1
CLIP, NORM = 0.7, 1.5
STATISTICS = {
    "logistic": lambda r, a: r.averaged(NORM).mean_gradient(LogisticLoss(), np.full(P, 0.1), CLIP),
    "squared": lambda r, a: r.averaged(NORM, squared=True).mean_gradient(SquaredLoss(), np.full(P, 0.1), CLIP),
    "masked": lambda r, a: r.averaged().mean_gradient(
        SquaredLoss(), np.full(P, 0.1), CLIP, mask=np.arange(P) >= P - 2
    ),
    "multinomial": lambda r, a: r.averaged(NORM).mean_gradient(MultinomialLoss(3), np.full((P, 3), 0.1), CLIP),
    "second_moment": lambda r, a: r.second_moment(NORM, 1.0, adjacency=a, target_weight=0.0),
    "with_targets": lambda r, a: r.second_moment(NORM, 1.0, adjacency=a, target_weight=0.5),
}
# What a unit adds, in this test's words: mean gradients divide by 11 or 31 units, and B^2 = (1 + w^2) (R^2 + 1).
ADDS = {"second_moment": NORM**2 + 1, "with_targets": 1.25 * (NORM**2 + 1)}
UNITS = [[1e300] * 3, [-1e300] * 3, [999.0, -9.0, 1.0], [math.nan] * 3, [0.0] * 3, [2.4, -2.4, 2.4],
         [-1.3, 0.2, 1.0], [math.inf, -math.inf, 0.0]]  # fmt: skip


def totals(name, adjacency, rows, kind=StandardizedTable):
    """The statistic with each of the worst units, of 1 to ``rows`` rows, and without one; and its bound."""
    rng = np.random.default_rng(5)
    others, map_ = rng.normal(size=(30, 3)), Standardization.make(0.0, [1.0, 0.5, 2.0], -9.0, 9.0)
    n_units, found, bound = 31 if rows is None else 11, [], None
    sizes = (1,) if rows is None else (1, 2, rows)
    for own, size, target in [*itertools.product(UNITS, sizes, (0.0, 1.0, 2.0)), (None, 0, 0.0)]:
        target = target if name in ("logistic", "multinomial") else 1e9 * (target - 1)
        target = min(target, 1.0) if name == "logistic" else target
        X = others if own is None else np.vstack([np.tile(own, (size, 1)), others])
        y = np.append(np.full(size, target), np.arange(30) % 2)
        groups = None
        if rows is not None:
            groups = np.append(np.zeros(size, int), 1 + np.arange(30) // 3)
            groups -= own is None
        records = PrivateRecords(X, y, groups=groups, fit_intercept=True, n_public=n_units)
        made = records.standardized(map_)
        table = made._rows.X
        made = made._derived(X=kind(table.X, None, table.numbers)).expanded(SMALL)
        statistic = STATISTICS[name](made, adjacency)
        found.append(statistic._value.on_grid(2.0**-30).astype(float) * 2.0**-30)
        bound = statistic.l2
    return found, bound


def largest_changes(found):
    """Between two of the units, and between one and none."""
    replaced = max(np.linalg.norm(a - b) for a in found[:-1] for b in found[:-1])
    return replaced, max(np.linalg.norm(a - found[-1]) for a in found[:-1])


@pytest.mark.parametrize("rows", [None, 70])
@pytest.mark.parametrize("name", sorted(STATISTICS))
def test_bounds_hold_on_replaced_and_absent_records_and_groups(name, rows):
    """Units are rows far outside, codes, missing values and rows inside; groups have 1, 2 or 70 of them.

    The changes come near what a unit can add, so half of a bound would be found too small. The mutant's rows are
    less the mean of all rows: then a unit changes what others add, and passes the bound.
    """
    adds = ADDS.get(name, CLIP / (31 if rows is None else 11))
    moment = name in ADDS
    replaced, absent = (
        adds * (math.sqrt(2.0) if moment else 2.0), adds,
    )  # fmt: skip
    found, declared = totals(name, "replace-one", rows)
    # A session multiplies a sum's bound by 2 under replace-one; a second moment has its own.
    assert declared * (1.0 if moment else 2.0) == pytest.approx(replaced, rel=1e-9)
    moved, alone = largest_changes(found)
    assert 0.6 * replaced < moved <= replaced * (1 + 1e-6)
    assert 0.6 * absent < alone <= absent * (1 + 1e-6)
    for adjacency in ("zero-out", "add-remove"):
        assert totals(name, adjacency, rows)[1] == pytest.approx(absent, rel=1e-9)


@pytest.mark.parametrize("name", ["logistic", "second_moment"])
def test_the_mutant_whose_rows_depend_on_each_other_passes_the_bounds(name):
    adds = ADDS.get(name, CLIP / 31)
    _, alone = largest_changes(totals(name, "add-remove", None, OfAllRows)[0])
    assert alone > 1.5 * adds


# ------------------------------------------------------------------ memory, refusals


@pytest.mark.parametrize("grouped", [False, True])
def test_no_array_of_all_expanded_rows_is_made(grouped, monkeypatch):
    """Not of those of one group either, which here has three quarters of them."""

    def never(self):
        raise AssertionError("a copy of all rows was made")

    monkeypatch.setattr(ExpandedTable, "whole", never)
    monkeypatch.setattr(StandardizedTable, "whole", never)
    rng, n = np.random.default_rng(0), 40_000
    X, y = rng.normal(size=(n, 12)), rng.normal(size=n)
    wide = Expansion.make([4] * 12, list(itertools.combinations(range(8), 2)), WEIGHTS)
    groups = np.maximum(np.arange(n) - 30_000, 0) if grouped else None
    records = PrivateRecords(X, y, groups=groups, fit_intercept=True)
    records = records.standardized(Standardization.make([0] * 12, 1)).expanded(wide)
    p = records.n_parameters

    def release():
        weighted = records.averaged(3.0, squared=True)
        weighted.mean_gradient(SquaredLoss(), np.ones(p), 1.0)._value.on_grid(2.0**-20)
        records.residual(np.ones(p))
        moments = records.second_moment(3.0, 1.0, adjacency="replace-one")
        moments._value.on_grid(2.0**-20)

    release()  # compiles
    tracemalloc.start()
    try:
        release()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 0.6 * 8 * n * p


@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_records_that_are_no_standardized_table_are_refused(form):
    records, expansion = PrivateRecords(form(np.eye(3))), Expansion.make([1, 0, 0])
    with pytest.raises(TypeError, match=r"call standardized\(\.\.\.\) on the records"):
        records.expanded(expansion)
    standardized = records.standardized(Standardization.make(np.zeros(3), 1.0))
    if form is sp.csr_matrix:
        with pytest.raises(TypeError, match=r"pass X\.toarray\(\)"):
            standardized.expanded(expansion)
        return
    once = standardized.expanded(expansion)
    assert once.n_features == 4
    with pytest.raises(TypeError, match="once"):
        once.expanded(expansion)
    with pytest.raises(ValueError, match="3 columns, the expansion has 2"):
        standardized.expanded(Expansion.make([1, 0]))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"counts": [5, 0]}, "from 0 to 4"), ({"counts": [-1, 0]}, "from 0 to 4"),
        ({"counts": [[1, 0]]}, "from 0 to 4"), ({"counts": [0.5, 0]}, "counts must be whole"),
        ({"pairs": [(0, 0)]}, "two different columns"), ({"pairs": [(0, 2)]}, "from 0 to 1"),
        ({"pairs": [0, 1, 1]}, "two different columns"), ({"pairs": [(-1, 0)]}, "from 0 to 1"),
        ({"weights": 0.0}, "finite and > 0"), ({"weights": [1, 1, 1, math.nan]}, "finite and > 0"),
        ({"weights": [1, 1]}, "one number or 4"), ({"level_weight": math.inf}, "finite and > 0"),
        ({"levels_of": [0], "levels": []}, "one finite value"),
        ({"levels_of": [0], "levels": [math.nan]}, "one finite value"),
        ({"levels_of": [1, 0], "levels": [1, 2]}, "ascending"),
        ({"levels_of": [2], "levels": [1]}, "from 0 to 1"),
        ({"levels_of": [0, 0], "levels": [1, 1]}, "different values"),
    ],
)  # fmt: skip
def test_wrong_descriptions_are_refused(given, message):
    with pytest.raises(ValueError, match=message):
        Expansion.make(**{"counts": [1, 0], **given})


def test_a_description_survives_pickle_and_changes_of_what_it_was_made_of():
    counts = np.array([1, 2])
    made = Expansion.make(counts, [(0, 1)])
    counts[:] = 0
    X = np.random.default_rng(0).normal(size=(5, 2))
    columns = Standardization.make([0.0, 0.0], 1.0).of(X)
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(again.of(columns).whole(), made.of(columns).whole())
    assert made.size == 4
    fewer = replace(made, pairs=np.zeros((0, 2), dtype=np.int64))
    assert fewer.of(columns).shape == (5, 5)
