"""Private choice of coordinates: its law without visiting zeros, its sensitivity, and what a session refuses."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import BatchGroup, BoundedStatistic, Choices, PrivacySession, PrivateRecords, noise
from skdp.privacy.entries import clipped, values_at
from skdp.privacy.mechanisms.selected_gaussian import release as selection
from skdp.privacy.mechanisms.selected_gaussian.noise import sparse_top_k
from skdp.privacy.mechanisms.top_k import release as top_k_release

ALARM = 1e-7  # of each chi-square test


def positions_of(chosen, table):
    return np.array([table[tuple(one)] for one in chosen])


def two_samples(a, b, cells):
    """Chi-square statistic of two samples over the same cells, and what it passes with probability ALARM."""
    counts = np.array([np.bincount(x, minlength=cells) for x in (a, b)]).astype(float)
    counts = counts[:, counts.sum(axis=0) > 20]
    share = counts.sum(axis=0) / counts.sum()
    expected = counts.sum(axis=1, keepdims=True) * share
    return ((counts - expected) ** 2 / expected).sum(), chi2.isf(ALARM, counts.shape[1] - 1)


@pytest.mark.parametrize("scale", [3.0, 40.0])
def test_zeros_are_chosen_with_the_law_of_the_dense_choice(scale):
    """All 56 sets of 3 of 8 candidates, of which 3 have a score."""
    positions, scores = np.array([1, 4, 6]), np.array([9, 2, 5])
    dense = np.zeros(8, dtype=np.int64)
    dense[positions] = scores
    sets = {}
    stream, other = noise.KeyStream(1), noise.KeyStream(2)
    lazy, full = [], []
    for _ in range(2500):
        one = sparse_top_k(positions, scores, 8, 3, scale, stream)
        two = np.sort(top_k_release.gumbel_top_k(dense, 3, scale, other))
        for found, kept in ((one, lazy), (two, full)):
            kept.append(sets.setdefault(tuple(found.tolist()), len(sets)))
    statistic, limit = two_samples(np.array(lazy), np.array(full), len(sets))
    assert statistic < limit
    # Mutant: only candidates with a score take part.
    assert len(sets) > 40
    touched = np.full(2500, sets.get((1, 4, 6), len(sets)))
    statistic, limit = two_samples(touched, np.array(full), len(sets) + 1)
    assert statistic > limit


def test_positions_of_zeros_are_uniform():
    """Each of the 97 positions without a score in 1/97 of 8,000 draws; false alarm 1e-7."""
    positions, scores = np.array([0, 50, 99]), np.array([5, 5, 5])
    stream = noise.KeyStream(3)
    counts = np.zeros(100)
    for _ in range(1600):
        counts[sparse_top_k(positions, scores, 100, 5, 1e6, stream)] += 1
    others = np.delete(counts, positions)
    expected = others.mean()
    # Positions of one draw differ from each other, so the statistic is below a chi-square one.
    assert ((others - expected) ** 2 / expected).sum() < chi2.isf(ALARM, others.size - 1)
    assert abs(counts.sum() - 8000) < 0.5


@pytest.mark.parametrize(("size", "k"), [(5, 5), (5, 1), (10**7, 1000), (2, 2)])
def test_exactly_k_different_candidates(size, k):
    positions = np.array([0, size - 1])
    for seed in range(20):
        found = sparse_top_k(positions, np.array([3, 10**18]), size, k, 2.0, seed)
        assert found.size == k
        assert (np.diff(found) > 0).all()
        assert found[0] >= 0
        assert found[-1] < size
        assert size - 1 in found  # thousands of scales above the others


def test_no_scores_and_all_scores():
    nothing = np.array([], dtype=np.int64)
    assert sparse_top_k(nothing, nothing, 7, 3, 1.0, 0).size == 3
    every = np.arange(4)
    assert sparse_top_k(every, np.zeros(4, dtype=np.int64), 4, 4, 1.0, 0).tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("positions", "scores", "k"),
    [
        ([3, 1], [1, 1], 1), ([1, 9], [1, 1], 1), ([1, 1], [1, 1], 1), ([1], [1, 2], 1), ([1], [1], 9),
        ([1], [1], 0),
    ],
)  # fmt: skip
def test_what_is_no_choice_is_refused(positions, scores, k):
    with pytest.raises(ValueError, match="must"):
        sparse_top_k(np.array(positions), np.array(scores), 8, k, 1.0, 0)


# ------------------------------------------------------------------ entries


@settings(max_examples=100, deadline=None)
@given(
    st.lists(st.integers(-(2**40), 2**40), min_size=1, max_size=6),
    st.lists(st.integers(-(2**12), 2**12), min_size=6, max_size=6),
    st.floats(1.0, 2.0**42),
)
def test_a_clip_moves_two_vectors_no_further_apart(values, change, limit):
    a = np.array(values, dtype=np.int64)
    b = a + np.array(change[: a.size])
    moved = np.linalg.norm((clipped(a, limit) - clipped(b, limit)).astype(float))
    before = np.linalg.norm((a - b).astype(float))
    allowed = min(before, 2 * limit) + (a.size + 16) * 2.0**-52 * limit + np.sqrt(a.size)
    assert moved <= allowed * (1 + 1e-12)
    assert np.linalg.norm(clipped(a, limit).astype(float)) <= limit * (1 + 1e-14) + np.sqrt(a.size) / 2


def test_entries_are_entries():
    bounded = BoundedStatistic(np.arange(6.0).reshape(2, 3), l2=1.0, linf=0.5)
    kept = bounded.entries([1, 5])
    assert (kept.shape, kept.l2, kept.linf) == ((2,), pytest.approx(0.5 * 2**0.5), 0.5)
    session = PrivacySession.without_privacy()
    assert session.gaussian(kept, session.plan_gaussian(1)).tolist() == [1.0, 5.0]
    short = bounded.entries([1, 5], clip=0.25)
    assert 0.5 < short.l2 < 0.5 * (1 + 1e-12)
    got = session.gaussian(short, session.plan_gaussian(1))
    assert got == pytest.approx(np.array([1.0, 5.0]) * 0.25 / np.sqrt(26))
    for wrong in ([5, 1], [1, 6], [-1], [1, 1]):
        with pytest.raises(ValueError, match="ascend"):
            bounded.entries(wrong)
    with pytest.raises(TypeError):
        bounded.entries([0.5])
    with pytest.raises(ValueError, match="clip"):
        bounded.entries([1], clip=0.0)


def test_values_of_a_list_are_those_of_the_vector():
    whole = np.array([0, 3, 0, -4, 0, 0])
    at = np.array([0, 3, 5])
    assert values_at(at, np.array([1, 3]), np.array([3, -4])).tolist() == whole[at].tolist()
    nothing = np.array([], dtype=np.int64)
    assert values_at(at, nothing, nothing).tolist() == [0, 0, 0]


# ------------------------------------------------------------------ in a session

N, P = 400, 30
FOUR = Choices(4)


def session_of(seed=0, extra=FOUR):
    session = PrivacySession(epsilon=2.0, delta=1e-5, adjacency="zero-out", minibatches=True, random_state=seed)
    group = BatchGroup(3, 50, extra=extra)
    (plan,) = session.plan_batches([group], n_units=N)
    return session, plan


@pytest.fixture
def records():
    X = np.random.default_rng(0).normal(size=(N, P)) * (np.arange(P) % 3 == 0)
    return PrivateRecords(X)


pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.PrivacyLeakWarning")


def mean_of(records, session, plan):
    batch = session.draw(plan, records)
    total = records.clipped_sum(lambda X, y: X, 1.0, size=P, batch=batch, rowwise=True)
    return total * (1 / plan.batch_size)


def with_list(bounded):
    """The same statistic, which lists its integers."""
    source = bounded._value

    def listed(unit):
        whole = source.on_grid(unit).ravel()
        at = np.flatnonzero(whole)
        return at, whole[at]

    return BoundedStatistic.from_source(
        replace(source, sparse=listed), bounded.shape, l1=bounded.l1, l2=bounded.l2, linf=bounded.linf
    )


@pytest.mark.parametrize("clips", [{}, {"score_clip": 0.01, "value_clip": 0.02}])
def test_a_listed_statistic_is_released_like_the_vector(records, clips):
    found = []
    for listed in (False, True):
        session, plan = session_of()
        mean = mean_of(records, session, plan)
        released = session.selected_gaussian((with_list(mean) if listed else mean) * 2.0, plan, **clips)
        found.append(released)
        assert [x.size for x in released] == [4, 4]
        session.report()
    for a, b in zip(*found):
        assert np.array_equal(a, b)


def test_a_scaled_shifted_or_added_list_is_right():
    mean = with_list(BoundedStatistic(np.array([0.0, 3.0, 0.0]), l2=1.0))
    for made, expected in (
        (mean * -2.0, [-6.0]), (mean.shifted([1.0, 0.0, 0.0]), [1.0, 3.0]), (mean + mean, [6.0]), (mean * 0.0, []),
    ):  # fmt: skip
        at, values = made._value.support(2.0**-20)
        assert (values * 2.0**-20).tolist() == expected


def test_the_report_has_choices_and_noise(records):
    session, plan = session_of()
    for _ in range(3):
        session.selected_gaussian(mean_of(records, session, plan), plan)
    report = session.report()
    (row,) = report.mechanisms
    assert (row["name"], row["choices"], row["count"]) == ("selected_gaussian", 4, 3)
    assert row["choice_epsilon"] == plan.extra.epsilon
    assert "4 chosen coordinates" in str(report)
    assert 1.9 < report.epsilon_at(1e-5) <= 2.0


def test_refusals_release_nothing(records):
    session, plan = session_of()
    mean = mean_of(records, session, plan)
    with pytest.raises(UnsupportedAccounting, match="selected_gaussian"):
        session.gaussian(mean, plan)
    for wrong in ({"score_clip": 1e-15}, {"score_clip": -1.0}, {"value_clip": 0.0}):
        with pytest.raises(ValueError, match="clip"):
            session.selected_gaussian(mean, plan, **wrong)
    assert not session.released
    session.selected_gaussian(mean, plan)
    with pytest.raises(PrivacyBudgetExceeded):
        session.selected_gaussian(mean, plan)
    other, whole = session_of(extra=None)
    with pytest.raises(UnsupportedAccounting, match="selected_gaussian"):
        other.selected_gaussian(mean_of(records, other, whole), whole)
    with pytest.raises(ValueError, match="cannot be chosen"):
        session.require_feasible_batches(3, (plan,))


def test_a_threshold_finds_what_is_above_it_and_fills_up():
    """One entry is hundreds of scales above the threshold, all others as far below; false alarm below 1e-50."""
    choice = selection.Selection(3, 1e4, None, None, 0.5)
    bounded = BoundedStatistic(np.eye(1, 40, 7)[0], l2=1.0)
    drawn_with, sensitivity = selection.selection_grid(bounded, choice, 1.0, "zero-out")
    stream, others = noise.KeyStream(4), np.zeros(40)
    for _ in range(400):
        (at, values), line = selection.selected_gaussian(bounded, choice, drawn_with, sensitivity, stream)
        assert at.size == 3
        assert 7 in at
        others[at] += 1
    others = np.delete(others, 7)
    expected = others.mean()
    assert ((others - expected) ** 2 / expected).sum() < chi2.isf(ALARM, others.size - 1)
    # Threshold and query together cost half of the bounded range.
    scale = selection._vector_scale(choice, sensitivity)
    assert 3 * sensitivity / scale == pytest.approx(choice.epsilon / 2)
    assert 3 * sensitivity / scale <= choice.epsilon / 2
    for wrong in (choice._replace(threshold=1e30), choice._replace(epsilon=1e-12)):
        with pytest.raises(ValueError, match="threshold"):
            selection.selection_grid(bounded, wrong, 1.0, "zero-out")


def test_without_privacy_the_largest_are_kept(records):
    session = PrivacySession.without_privacy()
    (plan,) = session.plan_batches([BatchGroup(1, N, extra=Choices(4))], n_units=N)
    mean = mean_of(records, session, plan)
    whole = mean._value.plain()
    positions, values = session.selected_gaussian(mean, plan, value_clip=1e-3)
    assert set(positions) == set(np.argsort(-np.abs(whole))[:4])
    assert np.linalg.norm(values) == pytest.approx(1e-3)


def test_a_full_batch_of_a_large_epsilon_can_be_planned():
    """Every loss counts, however far below 0 it is; the other rate differs by one record of sixty."""
    found = []
    for size in (60, 59):
        session = PrivacySession(epsilon=45.0, delta=1e-9, adjacency="zero-out", minibatches=True)
        group = BatchGroup(1, size, extra=Choices(5, 0.5))
        (plan,) = session.plan_batches([group], n_units=60)
        found.append(plan.noise_multiplier)
    assert 0.95 < found[1] / found[0] <= 1.001
