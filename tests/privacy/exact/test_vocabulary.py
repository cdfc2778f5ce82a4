"""A released vocabulary: its threshold, its sensitivity, and what words of one unit alone show."""

import copy
import functools
import itertools
import math
import pickle
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.stats import beta, chi2

from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import PrivacySession, PrivateWords, accounting, noise
from skdp.privacy.mechanisms.vocabulary import release as vocabulary
from skdp.privacy.mechanisms.vocabulary.cost import shares_of_words, word_threshold
from tests.privacy import audit

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("one_calibration")]

GRID, SIGMA = 2**27, 2.0**30


@pytest.fixture(scope="module")
def one_calibration():
    """Sessions by the hundred with one calibration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounting, "gaussian_mu", functools.lru_cache(accounting.gaussian_mu))
        yield


def opened(seed=0, epsilon=2.0, delta=1e-3, adjacency="zero-out", **options):
    return PrivacySession(
        epsilon=epsilon, delta=delta, adjacency=adjacency, unit="group", random_state=seed, **options
    )  # fmt: skip


def row(threshold, max_words, grid=GRID, sigma=SIGMA):
    unit = 1.0 / grid
    return {
        "name": "gaussian", "noise_multiplier": sigma * unit, "threshold": threshold * unit,
        "max_words": max_words, "noise_std": sigma * unit, "grid": unit, "delta": 0.0,
    }  # fmt: skip


# ------------------------------------------------------------------ the threshold


@pytest.mark.parametrize("grid", [100, 2**20, 2**30 - 1])
def test_a_units_words_have_norm_one(grid):
    shares = shares_of_words(grid, 500).tolist()
    for k, share in enumerate(shares, start=1):
        assert k * share**2 <= grid**2 < k * (share + 1) ** 2


@pytest.mark.parametrize("delta", [1e-3, 1e-9, 1e-14])
@pytest.mark.parametrize("max_words", [1, 7, 300])
@pytest.mark.parametrize("z", [0.3, 8.0])
def test_the_threshold_keeps_delta_and_no_more_than_it_needs(delta, max_words, z):
    """Against the recheck, which is other code; a threshold of 1 % of the noise less is caught."""
    grid = int(SIGMA / z)
    found = word_threshold(grid, SIGMA, max_words, delta)
    assert 0.999 * delta <= accounting.recheck_tail([row(found, max_words, grid)]) <= delta
    lower = row(found - 0.01 * SIGMA, max_words, grid)
    assert accounting.recheck_tail([lower]) > delta


def test_the_worst_number_of_words_is_not_always_one_of_the_ends():
    """So all numbers are looked at: with little noise one word is the worst, with much noise the most words."""
    sizes = np.arange(1, 51)
    worst = set()
    for z in (0.05, 0.5, 50.0):
        grid = int(SIGMA / z)
        each = shares_of_words(grid, 50) + 0.5
        tails = [
            -math.expm1(k * math.log1p(-0.5 * math.erfc((3 * SIGMA + grid - a) / (SIGMA * 2**0.5))))
            for k, a in zip(sizes, each)
        ]
        worst.add(int(np.argmax(tails)) + 1)
    assert {1, 50} <= worst


# ------------------------------------------------------------------ what is released

UNITS = [["a", "b"], ["a", "c", "a"], ["b", "a"]] * 400


def test_words_that_many_units_have_are_released_in_alphabetical_order():
    session = opened()
    plan = session.plan_vocabulary(0.5, 5)
    words, counts = session.release_vocabulary(PrivateWords([*UNITS, ["secret"]]), plan)
    assert words == ("a", "b", "c")
    np.testing.assert_allclose(counts, np.array([1200, 800, 400]) / 2**0.5, atol=30)
    report = session.report()
    (line,) = report.mechanisms
    assert line["max_words"] == 5
    assert line["delta"] <= 1e-4 * 1e-3 / 4
    assert line["delta"] < report.numerical_error[1] < 1e-7
    assert "one group alone" in str(report)


def test_a_unit_keeps_its_most_frequent_words():
    words = PrivateWords([["x", "y", "z", "z"], ["y"]])
    shares = shares_of_words(100, 2).tolist()
    assert words._counts(shares) == {"z": 70, "x": 70, "y": 100}


def test_without_privacy_all_words_are_released():
    session = PrivacySession.without_privacy(unit="group")
    plan = session.plan_vocabulary(0.5, 5)
    words, counts = session.release_vocabulary(PrivateWords([["b"], ["a"]]), plan)
    assert (words, counts) == (("a", "b"), (1.0, 1.0))


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_a_replaced_unit_moves_the_counts_by_at_most_the_sensitivity(adjacency):
    session = opened(adjacency=adjacency)
    plan = session.plan_vocabulary(0.5, 6)
    shares = shares_of_words(plan.grid, 6).tolist()
    moved = math.sqrt(2.0) if adjacency == "replace-one" else 1.0
    assert plan.grid * moved * plan.gaussian.noise_multiplier <= SIGMA
    rng, largest = np.random.default_rng(0), 0.0
    names = [f"w{i}" for i in range(30)]
    for run in range(200):
        own, other = (rng.choice(names, rng.integers(0, 40)).tolist() for _ in range(2))
        if run < 20:  # of one word each, or nearly: they share no word, which is the worst
            own, other = own[:1] or ["v0"], [f"v{i}" for i in range(1, 2 + run % 3)]
        other = [] if adjacency == "zero-out" else other
        found = [PrivateWords([*UNITS[:9], unit])._counts(shares) for unit in (own, other)]
        change = [found[0].get(w, 0) - found[1].get(w, 0) for w in {*found[0], *found[1]}]
        largest = max(largest, math.sqrt(sum(c * c for c in change)) / plan.grid)
    assert 0.99 * moved < largest <= moved


def test_what_a_unit_adds_follows_from_it_alone():
    """Also where its words are equally frequent, and which of them it keeps is a matter of ties."""
    shares = shares_of_words(1000, 2).tolist()
    units = [["x", "y", "z", "z"], ["y"], ["y", "x"], ["z", "y", "x"], []]
    for unit, other in itertools.product(units, units):
        alone, rest = (PrivateWords([one])._counts(shares) for one in (unit, other))
        for both in (PrivateWords([unit, other]), PrivateWords([other, unit])):
            counts = both._counts(shares)
            change = {w: counts[w] - rest.get(w, 0) for w in counts if counts[w] != rest.get(w, 0)}
            assert change == alone


@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove", "replace-one"])
def test_the_row_has_the_noise_and_the_sensitivity_of_what_was_drawn(adjacency):
    session = opened(adjacency=adjacency)
    plan = session.plan_vocabulary(0.5, 5)
    public = {"n_public": 1200} if adjacency == "add-remove" else {}
    session.release_vocabulary(PrivateWords(UNITS, **public), plan)
    (line,) = session.report().mechanisms
    moved = math.sqrt(2.0) if adjacency == "replace-one" else 1.0
    assert line["noise_std"] == SIGMA / plan.grid
    assert moved <= line["sensitivity"] <= moved * (1 + 1e-12)
    assert line["noise_std"] / moved >= plan.gaussian.noise_multiplier


def released(units, seed, adjacency="zero-out", epsilon=2.0, lower=None):
    """Words and counts of one release that takes the whole budget, and whether the recheck found a fault."""
    session = opened(seed, epsilon, adjacency=adjacency)
    with pytest.MonkeyPatch.context() as patch:
        if lower is not None:
            patch.setattr(vocabulary, "word_threshold", lambda grid, *rest: int(lower * grid))
        plan = session.plan_vocabulary(1.0, 4)
    found = dict(zip(*session.release_vocabulary(PrivateWords(units), plan)))
    try:
        session.report()
    except PrivacyAccountingError:
        return found, True
    return found, False


MANY = [[f"w{k}"] for k in range(50)] * 30


def shown(epsilon=2.0, runs=10, adjacency="zero-out"):
    """A lower bound of epsilon from the count of a word that one unit has or not; false alarms 2.5e-7.

    The noise is that of 50 words, of which 30 other units have each. A replaced unit has another word.
    """
    other = [*MANY, ["w1"]] if adjacency == "replace-one" else MANY
    pairs = [
        [list(released(D, seed, adjacency, epsilon)[0].values()) for D in ([*MANY, ["w0"]], other)]
        for seed in range(runs)
    ]
    found = np.array(pairs)
    assert found.shape == (runs, 2, 50)
    moved = ((found[:, 0] - found[:, 1]) ** 2).sum() / runs
    counts = np.full(50, 30.0)
    counts[1] += adjacency == "replace-one"
    square = ((found[:, 1] - counts) ** 2).sum() / chi2.ppf(audit.ALARM, runs * 50)
    return accounting.gaussian_epsilon(math.sqrt(moved / square), 1e-3) if square else math.inf


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_an_adversary_stays_below_the_claim_and_comes_near(adjacency):
    assert 0.6 * 2.0 <= shown(adjacency=adjacency) <= 2.0


def test_a_sensitivity_of_1_under_replace_one_is_caught(monkeypatch):
    monkeypatch.setitem(vocabulary.MOVED, "replace-one", 1.0)
    assert shown(adjacency="replace-one", runs=30) > 2.0


def test_a_vocabulary_without_noise_is_caught(monkeypatch):
    silent = {name: getattr(noise, name) for name in ("CANONICAL_SIGMA", "gaussian_numerical_error")}
    made = SimpleNamespace(**silent, rounded_gaussian=lambda sigma, size, stream: np.zeros(size, dtype=np.int64))
    monkeypatch.setattr(vocabulary, "noise", made)
    assert shown(runs=1) > 2.0


def test_half_the_noise_is_caught(monkeypatch):
    half = {name: getattr(noise, name) for name in ("CANONICAL_SIGMA", "gaussian_numerical_error")}
    made = SimpleNamespace(**half, rounded_gaussian=lambda sigma, *rest: noise.rounded_gaussian(sigma / 2, *rest))
    monkeypatch.setattr(vocabulary, "noise", made)
    assert shown() > 2.0


def test_a_word_of_one_unit_is_as_likely_as_the_recheck_says_and_a_low_threshold_is_caught():
    """With a threshold that is too low; the exact interval of the share is wrong with probability 5e-7."""
    runs, lower = 150, 1.2
    own, hits = [["k1", "k2", "k3"]], 0
    for seed in range(runs):
        found, faulty = released([*UNITS[:30], *own], seed, lower=lower)
        assert faulty  # the recheck sees it by itself
        hits += bool({"k1", "k2", "k3"} & set(found))
    plan = opened(0).plan_vocabulary(1.0, 4)
    std = SIGMA / plan.grid
    share = -math.expm1(3 * math.log1p(-0.5 * math.erfc((lower - 3**-0.5) / std / 2**0.5)))
    low, high = (beta.ppf(audit.ALARM, hits, runs - hits + 1), beta.ppf(1 - audit.ALARM, hits + 1, runs - hits))
    assert low <= share <= high
    assert low > 1e-3  # delta: an adversary who looks for these words breaks the claim


def test_a_word_of_one_unit_is_not_seen():
    assert not any("secret" in released([*UNITS, ["secret"]], s)[0] for s in range(20))


# ------------------------------------------------------------------ refusals


def test_plans_and_words_are_checked():
    session = opened()
    plan = session.plan_vocabulary(0.5, 5)
    words = PrivateWords(UNITS)
    session.release_vocabulary(words, plan)
    with pytest.raises(PrivacyBudgetExceeded, match="all are used"):
        session.release_vocabulary(words, plan)
    with pytest.raises(PrivacyBudgetExceeded, match="another session"):
        opened().release_vocabulary(words, plan)
    with pytest.raises(TypeError, match="PrivateWords"):
        session.release_vocabulary(UNITS, plan)
    with pytest.raises(UnsupportedAccounting, match="unit='group'"):
        PrivacySession(epsilon=1.0, delta=1e-5).plan_vocabulary(0.5, 5)
    for wrong in (0, 2.5, 10**7):
        with pytest.raises(ValueError, match="max_words"):
            opened().plan_vocabulary(0.5, wrong)
    for share in (0.0, 1.5):
        with pytest.raises(ValueError, match="share"):
            opened().plan_vocabulary(share, 5)
    with pytest.raises(PrivacyBudgetExceeded, match="leaves nothing of a vocabulary"):
        opened(epsilon=1e-3, delta=1e-9).plan_vocabulary(1e-3, 5)
    removed = opened(adjacency="add-remove")
    with pytest.raises(ValueError, match="n_public"):
        removed.release_vocabulary(words, removed.plan_vocabulary(0.5, 5))
    assert removed.release_vocabulary(PrivateWords(UNITS, n_public=9), removed.plan_vocabulary(0.5, 5))


@pytest.mark.parametrize("changed", [{}, {"threshold": 0}, {"grid": 2**50}, {"max_words": 10**6}])
def test_a_copy_of_a_plan_releases_nothing(changed):
    """A lower threshold shows words of one unit, a finer grid takes the noise away: the recheck comes too late."""
    for session in (opened(), opened(epsilon=math.inf)):
        plan = session.plan_vocabulary(0.5, 5)
        with pytest.raises(PrivacyBudgetExceeded, match="is a copy"):
            session.release_vocabulary(PrivateWords([["secret"]]), replace(plan, **changed))
        session.release_vocabulary(PrivateWords(UNITS), plan)


class Token(str):
    """A word with more than its text, as parsers make them; it says that it is every other word."""

    def __eq__(self, other):
        return True

    def __hash__(self):
        return 0


def test_released_words_are_plain_text_whatever_the_first_unit_had():
    token = Token("a")
    token.document = "what only one unit has"
    for units in ([[token], *UNITS], [*UNITS, [token]]):
        for session in (opened(), opened(epsilon=math.inf)):
            plan = session.plan_vocabulary(0.5, 5)
            words, _ = session.release_vocabulary(PrivateWords(units), plan)
            assert words == ("a", "b", "c")
            assert {type(word) for word in words} == {str}
    assert PrivateWords([[Token("x"), Token("y")]])._counts([9, 8]) == {"x": 8, "y": 8}


def test_each_of_several_vocabularies_is_in_the_report_and_the_recheck():
    """One row for both would have the limit and the threshold of one of them, and count its delta once."""
    session = opened(epsilon=8.0)
    plans = [session.plan_vocabulary(0.2, most) for most in (3, 40, 40)]
    for plan in plans:
        session.release_vocabulary(PrivateWords(UNITS), plan)
    rows = session.report().mechanisms
    assert [(line["max_words"], line["count"]) for line in rows] == [(3, 1), (40, 2)]
    one, two = (accounting.recheck_tail([row]) for row in rows)
    assert one == pytest.approx(rows[0]["delta"], rel=1e-3)
    assert two == pytest.approx(2 * rows[1]["delta"], rel=1e-3)


@pytest.mark.parametrize("attempt", [copy.copy, copy.deepcopy, pickle.dumps, list, len, lambda r: r[0]])
def test_words_cannot_be_read(attempt):
    with pytest.raises(TypeError):
        attempt(PrivateWords(UNITS))


def test_repr_shows_public_numbers_only():
    assert repr(PrivateWords(UNITS)) == "PrivateWords(n_groups=1200)"
    assert repr(PrivateWords(UNITS, n_public=9)) == "PrivateWords(n_public=9)"
