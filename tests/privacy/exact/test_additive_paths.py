"""Every path of an additive model: what is released decides, and every statistic stays within its sensitivity.

A fit is replayed on a neighbour, and on tables that have nothing in common but their public shape. Nothing
that leaves may differ: attributes, report, ledger, warnings, log. The mutants are the shipped code with
one thing replaced.
"""

import logging
import math
import warnings

import numpy as np
import pytest

from skdp.base.plan import BudgetSplit
from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded
from skdp.kernels.expanded import ExpandedTable
from skdp.privacy import BoundedStatistic, PrivateRecords, accounting
from skdp.privacy.mechanisms import grid
from skdp.privacy.session import claim
from skdp.privacy.session.ledger import Ledger
from skdp.privacy.statistics.row_moments import RowMoments
from tests.kinds import quick_alone
from tests.privacy.additive import (
    ALL,
    CASES,
    CLAIM,
    LOOKS,
    MORE,
    OPEN,
    PATHS,
    TASKS,
    N,
    Replay,
    counted,
    family,
    looking_at_the_rows,
    model_of,
    set_thresholds,
    table,
)

pytestmark = pytest.mark.filterwarnings(
    "ignore:random_state is a seed", "ignore:delta=0.01 is not below", "ignore:the model may be no better"
)
# The search is the same for both tasks, and most paths are some of the steps of others.
QUICK_PATHS = ("a rare class", "three classes", "all", "few records", "nothing shown", "add-remove", "monotone")
QUICK_CASES = [(task, path) for task, path in CASES if path in QUICK_PATHS]
EACH_CASE = pytest.mark.parametrize(("task", "path"), CASES)
EACH_TASK = pytest.mark.parametrize("task", TASKS)
# Sensitivities that a replaced record must attain at least in one of the pairs. Of classes a residual is
# at most 1, and few records attain the clip on both sides.
ATTAINED = {
    "classes": {"wide gradient": 0.65, "products": 0.6, MORE: 0.85},
    "numbers": {"wide gradient": 0.99, "products": 0.99, MORE: 0.85},
}
ROUNDING = 1e-9


def fitted(task, path, seed=0, **more):
    """A function that fits a table; groups, where there are some, come third."""

    def fit(X, y, groups=None):
        unit = {} if groups is None else {"unit": "group"}
        return model_of(task, path, seed, **unit, **more).fit(X, y, groups=groups)

    return fit


class Counted:
    """Sees every plan of a fit: its share must be left."""

    def __init__(self, monkeypatch):
        self.left, self.taken = 1.0, 0.0
        honest = BudgetSplit.take

        def plan(shares, share, purpose, releases=1):
            assert 0.0 < share <= shares.left + 1e-12, purpose
            found = honest(shares, share, purpose, releases)
            self.taken += found.share
            self.left = shares.left
            return found

        monkeypatch.setattr(BudgetSplit, "take", plan)


def check_spending(model):
    """The ledger's own sum against the claim, which it must not pass; return what it leaves over."""
    report = model.privacy_
    spent = sum(row["count"] / row["noise_multiplier"] ** 2 for row in report.mechanisms)
    mu = accounting.gaussian_mu(model.epsilon, model.delta)
    assert 0.0 < spent <= mu**2
    assert report.epsilon <= model.epsilon
    return 1.0 - spent / mu**2


# ------------------------------------------------------------------ neighbours


@pytest.mark.parametrize(("task", "path"), quick_alone(QUICK_CASES, CASES, pytest.mark.thorough))
def test_neighbours_take_one_path_within_the_sensitivities_and_the_claim(task, path, monkeypatch):
    """Under zero-out a replaced record is two records that are absent."""
    set_thresholds(monkeypatch, PATHS[path][1])
    replay, factor = Replay(monkeypatch), 2.0 if path == "zero-out" else 1.0
    with monkeypatch.context() as patch:
        seen, tables = Counted(patch), family(task, path)
        model = fitted(task, path)(*tables[0])
        assert seen.taken <= 1.0 + 1e-9
        assert 0.0 <= seen.left <= 1e-9
        assert check_spending(model) <= 0.01
    replay.compare(fitted(task, path), tables, first_alone=path == "add-remove")
    assert max(replay.costs) <= (factor * CLAIM) ** 2
    assert max(replay.moved.values()) <= factor + ROUNDING
    wanted, found = PATHS[path][2], counted(model.privacy_)
    if wanted is not None:
        assert tuple(found[purpose] for purpose in LOOKS) == wanted
    for purpose, least in ATTAINED[task].items():
        if purpose in replay.moved:
            assert replay.moved[purpose] >= least


def groups_of(size, n=N):
    """The first ``size`` rows are of one group, the others of groups of three or four."""
    return np.append(np.zeros(size, int), 1 + np.arange(n - 4) % ((n - 4) // 4))


def with_a_group_of(size, one):
    """The table with ``size`` rows like the first one in place of the first four."""
    X, y = one
    X = np.vstack([np.tile(X[:1], (size, 1)), X[4:]])
    return X, np.append(np.repeat(y[:1], size), y[4:]), groups_of(size)


SIZES = (1, 40, 3, 1100, 4, 17, 2, 300)
# Across the counts at which the package works in another way: blocks of 64 to 8192 rows.
LARGE_SIZES = (1, 9000, 3, 4200, 17_000, 70, 300, 1100)


@EACH_TASK
@pytest.mark.parametrize("sizes", [SIZES, pytest.param(LARGE_SIZES, marks=pytest.mark.slow)])
@pytest.mark.parametrize("path", ["categories", "nothing shown"])
def test_a_group_of_any_size_takes_the_same_path_within_the_sensitivities(task, sizes, path, monkeypatch):
    set_thresholds(monkeypatch, PATHS[path][1])
    replay = Replay(monkeypatch)
    tables = [with_a_group_of(n, one) for n, one in zip(sizes, family(task, path), strict=True)]
    replay.compare(fitted(task, path), tables)
    assert max(replay.costs) <= CLAIM**2
    assert max(replay.moved.values()) <= 1 + ROUNDING
    for purpose, least in ATTAINED[task].items():
        if purpose in replay.moved:
            assert replay.moved[purpose] >= least


@EACH_TASK
def test_a_group_that_comes_or_goes_stays_within_the_sensitivities(task, monkeypatch):
    set_thresholds(monkeypatch, ALL)
    replay = Replay(monkeypatch)
    fit = fitted(task, "categories", adjacency="add-remove", n_public=60)
    tables = [with_a_group_of(n, one) for n, one in zip(SIZES, family(task, "all"), strict=True)]
    without = tuple(part[SIZES[0] :] for part in tables[0])
    replay.compare(fit, [without, *tables], first_alone=True)
    replay.compare(fit, [tables[1], without])
    assert max(replay.costs) <= CLAIM**2
    assert 0.8 <= min(replay.moved[name] for name in ("wide gradient", "products", MORE))
    assert max(replay.moved.values()) <= 1 + ROUNDING


# ------------------------------------------------------------------ mutants


def worst(task, path, monkeypatch, tables=None):
    """The largest change over its sensitivity of each purpose, and the largest cost over the claim's."""
    with monkeypatch.context() as patch:
        replay = Replay(patch)
        replay.compare(fitted(task, path), tables or family(task, path))
    return replay.moved, max(replay.costs) / CLAIM**2


@EACH_TASK
def test_the_mutant_with_half_the_noise_is_caught(task, monkeypatch):
    """Half the noise by the plan: the recheck of the ledger sees it, and so does the exact cost."""
    set_thresholds(monkeypatch, ALL)
    assert 0.3 <= worst(task, "all", monkeypatch)[1] <= 1
    calibrate = Ledger.calibrate
    monkeypatch.setattr(Ledger, "calibrate", lambda ledger: 4 * calibrate(ledger))
    with pytest.raises(PrivacyAccountingError):
        fitted(task, "all")(*table(task, "all"))
    monkeypatch.setattr(claim, "recheck", lambda ledger, claimed: None)
    assert worst(task, "all", monkeypatch)[1] > 1


@EACH_TASK
def test_the_mutant_with_add_remove_noise_under_replace_one_is_caught(task, monkeypatch):
    set_thresholds(monkeypatch, ALL)
    monkeypatch.setattr(grid, "factor", lambda adjacency: 1.0)
    moved = worst(task, "all", monkeypatch)[0]
    assert min(moved["wide gradient"], moved["products"]) > 1.2


@EACH_TASK
def test_the_mutant_of_gram_matrices_with_add_remove_noise_is_caught(task, monkeypatch):
    set_thresholds(monkeypatch, ALL)
    honest = PrivateRecords.second_moment

    def second_moment(records, *args, **options):
        found = honest.__get__(records)(*args, **options)
        return BoundedStatistic.from_source(
            found._value, found.shape, l2=found.l2 / math.sqrt(2), adjacency=found.adjacency
        )

    monkeypatch.setattr(PrivateRecords, "second_moment", second_moment)
    assert worst(task, "all", monkeypatch)[0][MORE] > 1.2


@EACH_TASK
def test_the_mutant_that_clips_too_late_is_caught(task, monkeypatch):
    set_thresholds(monkeypatch, ALL)
    honest = PrivateRecords.mean_gradient

    def mean_gradient(records, loss, theta, clip_norm, **options):
        found = honest.__get__(records)(loss, theta, 8.0 * clip_norm, **options)
        return BoundedStatistic.from_source(found._value, found.shape, l2=found.l2 / 8.0)

    monkeypatch.setattr(PrivateRecords, "mean_gradient", mean_gradient)
    moved = worst(task, "all", monkeypatch)[0]
    # The weights of long rows bound a gradient of classes too, but not a masked one.
    assert (moved["wide gradient"] > 1.2) or task == "classes"
    assert moved["products"] > 1.2


def test_the_mutant_whose_group_adds_all_its_rows_is_caught(monkeypatch):
    """Gram matrices of expanded rows in which a group of 40 rows counts 40 times."""
    set_thresholds(monkeypatch, ALL)
    monkeypatch.setattr(RowMoments, "_weights", lambda self, rows: np.empty(0))
    tables = [with_a_group_of(40, one) for one in family("numbers", "all")[:3]]
    assert worst("numbers", "all", monkeypatch, tables)[0][MORE] > 2


# ------------------------------------------------------------------ released numbers decide, and nothing else


def strangers(task, X, y):
    """Tables of the same public shape, in which nothing else is the same."""
    rng = np.random.default_rng(9)
    labels = np.unique(y) if task == "classes" else np.array([-1e9, 0.0, 1e-9])
    yield np.full_like(X, np.nan), np.full_like(y, labels[0])
    yield 1e300 * rng.normal(size=X.shape), rng.choice(labels, len(y)).astype(y.dtype)


@pytest.mark.thorough
@EACH_CASE
def test_any_table_takes_the_path_of_what_was_released(task, path, monkeypatch, caplog):
    """Not only neighbours: so neither choices nor shapes, shares, clip norms and warnings read a row."""
    set_thresholds(monkeypatch, PATHS[path][1])
    replay = Replay(monkeypatch)
    own = table(task, path)
    own = (own[0][:-1], own[1][:-1]) if path == "add-remove" else own
    with caplog.at_level(logging.DEBUG, logger="skdp"):
        fit, logs = fitted(task, path, verbose=True), []
        _, wanted = replay.record(fit, *own)
        for other in [own, *strangers(task, *own)]:
            caplog.clear()
            _, found = replay.play(fit, *other)
            logs.append([(line.levelname, line.getMessage()) for line in caplog.records])
            assert {name: found[name] == wanted[name] for name in wanted} == dict.fromkeys(wanted, True)
            assert found.keys() == wanted.keys()
    assert all(log == logs[0] for log in logs)
    assert logs[0]


@EACH_TASK
def test_any_groups_take_the_path_of_what_was_released(task, monkeypatch):
    """How many rows a group has is private: only the number of groups is the same."""
    set_thresholds(monkeypatch, ALL)
    replay, fit = Replay(monkeypatch), fitted(task, "categories")
    X, y, groups = with_a_group_of(4, table(task, "categories"))
    _, wanted = replay.record(fit, X, y, groups)
    assert replay.play(fit, *with_a_group_of(900, (1e300 * X, y)))[1] == wanted
    assert replay.play(fit, X[::-1], np.roll(y, 5), np.sort(groups))[1] == wanted
    alone = np.append(np.arange(groups.max()), np.full(len(y) - groups.max(), groups.max()))
    assert replay.play(fit, 0.0 * X, y, alone)[1] == wanted


@EACH_TASK
def test_other_released_numbers_take_another_path(task, monkeypatch):
    """One table, several draws of noise: the path is that of the draw, also on a table of zeros."""
    set_thresholds(monkeypatch, {**OPEN, "_look": 0.3, "_look_at_pairs": 0.3})
    replay, signatures = Replay(monkeypatch), set()
    X, y = table(task, "categories")
    for seed in range(10):
        fit = fitted(task, "categories", seed)
        model, wanted = replay.record(fit, X, y)
        other, found = replay.play(fit, np.zeros_like(X), np.zeros_like(y))
        assert found == wanted
        found = other._curves.expansion
        signatures.add(
            (str(found.counts), str(found.pairs), str(found.levels), str(dict(counted(model.privacy_))))
        )
    assert len(signatures) >= 3


@EACH_TASK
def test_the_mutant_whose_choice_looks_at_the_rows_is_caught(task, monkeypatch):
    set_thresholds(monkeypatch, OPEN)
    own = table(task, "all")
    other = np.zeros_like(own[0]), np.zeros_like(own[1])
    replay, fit = Replay(monkeypatch), fitted(task, "all")
    replay.compare(fit, [own, other])
    with looking_at_the_rows(monkeypatch), pytest.raises(AssertionError):
        replay.compare(fit, [own, other])


def test_the_mutant_whose_rows_depend_on_each_other_is_caught(monkeypatch):
    """The first record decides the sign of all expanded rows."""
    set_thresholds(monkeypatch, ALL)
    honest = ExpandedTable._fill

    def _fill(self, rows, first, count, out):
        honest(self, rows, first, count, out)
        out[:count] *= np.sign(4.0 - self.table.X[0, 1])

    monkeypatch.setattr(ExpandedTable, "_fill", _fill)
    assert max(worst("numbers", "all", monkeypatch)[0].values()) > 1 + ROUNDING


# ------------------------------------------------------------------ shares and the claim


@EACH_TASK
def test_the_mutant_that_plans_more_than_is_left_is_refused(task, monkeypatch):
    """The session admits no plan beyond the claim, whatever a method takes for what is left."""
    set_thresholds(monkeypatch, ALL)

    def plan(shares, share, purpose, releases=1):
        return shares.session.plan_gaussian(releases, 1.2 * share, purpose=purpose)

    monkeypatch.setattr(BudgetSplit, "take", plan)
    with pytest.raises(PrivacyBudgetExceeded):
        fitted(task, "all")(*table(task, "all"))


def column(rng, n):
    """A column or targets of a kind that hurts."""
    x = rng.normal(size=n)
    kinds = [
        x * 10.0 ** rng.integers(-8, 9), np.zeros(n), np.full(n, 10.0 ** rng.integers(-12, 13)),
        (rng.random(n) < 0.3).astype(float), np.append(1e300, x[1:]), 1e300 * np.sign(x), np.exp(2.5 * x),
        np.where(rng.random(n) < 0.03, 9999.0, x), 1e6 + x * 1e-6, np.where(rng.random(n) < 0.5, np.nan, x),
        np.full(n, np.nan), rng.standard_cauchy(n), np.round(x), x, x,
    ]  # fmt: skip
    return kinds[rng.integers(len(kinds))]


def any_fit(rng):
    """An additive model with public numbers that fit the table or do not, and what it is fitted to."""
    n, d = int(10 ** rng.uniform(1.5, 3.5)), int(rng.choice([1, 2, 5]))
    X = np.column_stack([column(rng, n) for _ in range(d)])
    task = ["classes", "numbers"][rng.integers(2)]
    params = {
        "epsilon": float(np.exp(rng.uniform(np.log(0.1), np.log(8.0)))),
        "delta": 1e-5,
        "adjacency": ["replace-one", "zero-out", "add-remove"][rng.integers(3)],
        "interactions": int(rng.integers(0, 9)),
        "C": [math.inf, 1.0, "auto"][rng.integers(3)],
    }
    if params["adjacency"] == "add-remove":
        params["n_public"] = int(max(2, n * rng.choice([0.5, 1.0, 2.0])))
    if rng.random() < 0.4:
        params["categories"] = {int(rng.integers(d)): [0.0, 1.0, -1.0, 9999.0]}
    elif rng.random() < 0.4:
        params["monotone"] = {int(rng.integers(d)): int(rng.choice([-1, 1]))}
    if rng.random() < 0.3:
        size = 10.0 ** rng.integers(-3, 4, d)
        params["feature_bounds"] = (np.where(rng.random(d) < 0.3, -np.inf, -size), size)
    k = 3 if task == "classes" and "monotone" not in params and rng.random() < 0.4 else 2
    params["classes"] = tuple(range(k))
    y = column(rng, n) if task == "numbers" else rng.integers(0, k, n)
    y = np.nan_to_num(y)
    groups = rng.integers(0, max(2, n // 4), n) if rng.random() < 0.3 else None
    low = (0.0, 250.0, math.inf)
    thresholds = {
        "MIN_EFFECTIVE_N": low[rng.integers(2)], "CURVES_EFFECTIVE_N": low[rng.integers(3)],
        "MOST_NOISE": math.inf, "_look": [-1.0, 0.1, 0.25][rng.integers(3)],
        "_look_at_pairs": [-1.0, 0.1, 0.25][rng.integers(3)],
    }  # fmt: skip
    return fitted(task, "all", **params), (X, y, groups), thresholds


def swept(monkeypatch, seeds):
    """Fit adversarial tables: every plan has a share that is left, and every model is finite."""
    curves = 0
    for seed in seeds:
        fit, data, thresholds = any_fit(np.random.default_rng(seed))
        with monkeypatch.context() as patch, warnings.catch_warnings():
            warnings.simplefilter("ignore")
            set_thresholds(patch, thresholds, every_step=False)
            seen = Counted(patch)
            model = fit(*data)
            check_spending(model)
            assert seen.taken <= 1.0 + 1e-9
            scores = model._scores(data[0])
            assert np.isfinite(scores).all(), seed
            curves += model._curves is not None
    return curves


def test_no_fit_of_an_adversarial_table_raises_or_spends_more_than_its_claim(monkeypatch):
    assert swept(monkeypatch, range(60)) >= 5


@pytest.mark.slow
def test_thousands_of_adversarial_tables(monkeypatch):
    assert swept(monkeypatch, range(1000, 4000)) >= 300
