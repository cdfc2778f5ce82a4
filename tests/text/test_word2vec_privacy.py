"""Whole fits of DPWord2Vec: replayed on neighbours, and against an adversary who sees every release.

With one seed, two data sets get the same noise: the difference of their releases is what the unit moved. The
noise is measured over seeds, with an exact bound for normal numbers. So a few fits bound from below what an
adversary can claim. The mutants are the shipped code with one thing replaced.
"""

import contextlib
import functools
import math

import numpy as np
import pytest
from scipy.stats import chi2

from skdp import DPWord2Vec
from skdp.exceptions import PrivacyAccountingError
from skdp.nn import SGD, AdaFEST, SparseSelection
from skdp.privacy import PrivacySession, accounting
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.text import sentences as read
from tests.privacy import audit
from tests.privacy.exact.test_replay import Tape

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("one_calibration")]

WORDS = ["a", "b", "c", "d", "e"]


@pytest.fixture(scope="module")
def one_calibration():
    """Fits by the hundred with one calibration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounting, "gaussian_mu", functools.lru_cache(accounting.gaussian_mu))
        yield


def made(**params):
    settings = {
        "epsilon": 4.0, "delta": 1e-3, "vocabulary": WORDS, "vector_size": 3, "window": 2, "negative": 3,
        "max_iter": 4, "random_state": 0,
    }  # fmt: skip
    return DPWord2Vec(**{**settings, **params})


def texts(n, seed=0, words=WORDS):
    """Sentences of 6 words."""
    rng = np.random.default_rng(seed)
    return [rng.choice(words, 6).tolist() for _ in range(n)]


# ------------------------------------------------------------------ replays


class WordTape(Tape):
    """Also records the released vocabulary and plays it back."""

    def __init__(self, monkeypatch):
        super().__init__(monkeypatch)
        for name in ("release_vocabulary",):
            honest = getattr(PrivacySession, name)
            monkeypatch.setattr(PrivacySession, name, self.chance(name, honest))

    @staticmethod
    def for_fewer(name, found, rest):
        return found if name == "release_vocabulary" else Tape.for_fewer(name, found, rest)


RECORD_VARIANTS = [
    {}, {"tied": False, "optimizer": "adam"}, {"batch_size": 60},
    {"batch_size": 60, "gradient_estimator": AdaFEST(0.5)},
]  # fmt: skip


@pytest.mark.parametrize("params", RECORD_VARIANTS)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_a_replaced_window_takes_the_same_path_within_the_sensitivity(adjacency, params, monkeypatch):
    """Sentences of two words are two windows each: other words of one are two windows that are replaced."""
    tape, largest = WordTape(monkeypatch), 0.0
    D = texts(40, words=WORDS)
    D = [sentence[:2] for sentence in D]

    def fit(sentences):
        return made(unit="record", adjacency=adjacency, **params).fit(sentences)

    for seed in range(3):
        other = [texts(1, seed + 9)[0][:2], *D[1:]]
        largest = max(largest, tape.compare(fit, (D,), (other,)))
    # Two windows were replaced: at most twice the sensitivity, and four times under zero-out, where two words are
    # no absence.
    assert 0.2 < largest <= (2 if adjacency == "replace-one" else 4) + 1e-9


GROUP_VARIANTS = [
    {}, {"batch_size": 7}, {"tied": False, "n_public": 12},
    {
        "vocabulary": "private", "max_words_per_group": 4, "negative_weights": "released", "epsilon": 60.0,
        "vocabulary_share": 0.5,
    },
    {"gradient_estimator": AdaFEST(0.5), "batch_size": 7},
    {"gradient_estimator": AdaFEST(-9.0), "vocabulary": "private", "epsilon": 60.0, "vocabulary_share": 0.5},
]  # fmt: skip


@pytest.mark.parametrize("params", GROUP_VARIANTS)
def test_a_replaced_group_of_any_size_takes_the_same_path(params, monkeypatch):
    """How many sentences, words and windows a group has is private: nothing public may follow from it."""
    tape, largest = WordTape(monkeypatch), 0.0
    rest, codes = texts(45, 1), np.repeat(np.arange(1, 16), 3)

    def fit(sentences, groups):
        return made(adjacency="replace-one", **params).fit(sentences, groups=groups)

    one = [*texts(3, 2), *rest], [0, 0, 0, *codes]
    for size in (1, 3, 60, 700):
        other = [*texts(size, 3), *rest], [*[0] * size, *codes]
        largest = max(largest, tape.compare(fit, one, other))
    for empty in ([[]], [["x", "y"]], [["a"]]):
        largest = max(largest, tape.compare(fit, one, ([*empty, *rest], [0, *codes])))
    assert 0.2 < largest <= 1 + 1e-9


@pytest.mark.parametrize("unit", ["group", "record"])
def test_too_many_windows_do_not_say_how_many_words_there_are(unit, monkeypatch):
    """NumPy's own error has the shape of what it could not make, which counts private words."""
    honest = read.windows_of

    def large(texts, vocabulary, window):
        words = sum(len(text) for text in texts)
        np.empty((words, 2**50))
        return honest(texts, vocabulary, window)

    monkeypatch.setattr(read, "windows_of", large)
    found = []
    for n in (30, 33):
        with pytest.raises(MemoryError) as caught:
            groups = np.arange(n) % 30 if unit == "group" else None
            made(unit=unit, adjacency="add-remove", n_public=30).fit(texts(n), groups=groups)
        found.append(str(caught.value))
        assert caught.value.__context__ is None
    assert found[0] == found[1]


def test_add_remove_replays_with_one_group_less(monkeypatch):
    tape = WordTape(monkeypatch)
    sentences, codes = texts(45, 1), np.repeat(np.arange(15), 3)

    def fit(sentences, groups):
        return made(adjacency="add-remove", n_public=14).fit(sentences, groups=groups)

    fewer = sentences[:-3], codes[:-3]
    assert 0.2 < tape.compare(fit, (sentences, codes), fewer) <= 1 + 1e-9


@pytest.mark.parametrize("select", [SparseSelection(0.5), SparseSelection(0.5, method="uniform"), AdaFEST(0.5)])
def test_chosen_numbers_replay_with_an_absent_group(select, monkeypatch):
    tape, rest = WordTape(monkeypatch), texts(20, 1)

    def fit(sentences, groups):
        return made(gradient_estimator=select, batch_size=8).fit(sentences, groups=groups)

    found = []
    for sentences in (texts(1, 2), texts(300, 3)):
        present = [*sentences, *rest], [*[0] * len(sentences), *range(1, 21)]
        absent = [[], *rest], range(21)
        found.append(tape.compare(fit, present, absent))
    assert 0.1 < max(found) <= 1 + 1e-9


def test_a_mutant_with_half_the_sensitivity_is_caught(monkeypatch):
    """The noise of zero-out under replace-one; the pair of groups is one whose gradients point apart."""
    monkeypatch.setattr(grid, "factor", lambda adjacency: 1.0)
    tape, rest = WordTape(monkeypatch), texts(8, 1)

    def fit(sentences, groups):
        return made(adjacency="replace-one", clip_norm=0.01).fit(sentences, groups=groups)

    found = []
    for seed in range(12):
        one, other = ([*texts(1, 10 * seed + k), *rest] for k in (1, 2))
        found.append(tape.compare(fit, (one, range(9)), (other, range(9))))
    assert max(found) > 1 + 1e-9


# ------------------------------------------------------------------ an adversary

STEPS, RUNS, N, EPSILON, DELTA = 5, 8, 8, 12.0, 1e-5


@pytest.fixture
def releases(monkeypatch):
    """The tables that a fit released, one a step; the fit has all groups in every batch, and does not move."""
    found, usual = [], PrivacySession.gaussian
    monkeypatch.setattr(PrivacySession, "gaussian", lambda *args: (found.append(usual(*args)), found[-1])[1])

    def tables(sentences, seed, **params):
        found.clear()
        model = made(
            epsilon=EPSILON, delta=DELTA, max_iter=STEPS, batch_size=N, clip_norm=0.01, learning_rate=1e-30,
            optimizer=SGD(schedule="constant"), random_state=seed, **params,
        )  # fmt: skip
        try:
            model.fit(sentences, groups=range(len(sentences)))
        except PrivacyAccountingError:  # the recheck finds a mutant; what it released is out
            assert len(found) == STEPS
        return np.array(found)

    return tables


PRESENT = [["a", "b", "c", "a", "b", "c"] * 5, *([[]] * (N - 1))]
ABSENT = [[]] * N


def shown(releases, low=ABSENT, high=PRESENT, **params):
    """The lower bound of epsilon for a pair of data sets; false alarms below 1e-6.

    Without any word a table is its noise. The vectors start elsewhere for every seed, and so do the gradients; but
    all that is clipped has one norm.
    """
    found = np.array([[releases(D, seed, **params) for D in (low, high, ABSENT)] for seed in range(RUNS)])
    square = (found[:, 2] ** 2).sum() / chi2.ppf(audit.ALARM, found[:, 2].size)
    moved = ((found[:, 1] - found[:, 0]) ** 2).sum() / RUNS
    return accounting.gaussian_epsilon(math.sqrt(moved / square), DELTA)


@pytest.mark.parametrize("tied", [True, False])
def test_zero_out_comes_near_the_claim_and_stays_below(releases, tied):
    assert 0.6 * EPSILON <= shown(releases, tied=tied) <= EPSILON


def test_replace_one_comes_near_the_claim_and_stays_below(releases):
    """Of two words: one group pulls each to itself, and the other one each to the other."""
    low, high = ([words * 10, *([[]] * (N - 1))] for words in (["a", "b"], ["a"]))
    params = {"vocabulary": ["a", "b"], "window": 1, "vector_size": 12, "adjacency": "replace-one"}
    found = shown(releases, low, high, **params)
    assert 0.6 * EPSILON <= found <= EPSILON


def test_half_the_noise_is_caught(releases, monkeypatch):
    honest = grid.gaussian_grid
    monkeypatch.setattr(grid, "gaussian_grid", lambda bounded, z, *rest: honest(bounded, z / 2, *rest))
    assert shown(releases) > EPSILON


def shown_with_counts(monkeypatch, low=ABSENT, high=PRESENT):
    """`shown` for DP-AdaFEST, whose steps release counts and gradients; all words pass, so both come every time.

    This adversary sees the noisy counts. A fit releases which of them pass.
    Each release is measured in the standard deviations that the session states, and all noise together.
    """
    found, usual = [], PrivacySession.gaussian

    def seen(session, bounded, plan):
        found.append(usual(session, bounded, plan) / session.noise_std(bounded, plan))
        return found[-1]

    monkeypatch.setattr(PrivacySession, "gaussian", seen)
    monkeypatch.setattr(
        PrivacySession, "gaussian_above",
        lambda *given: np.flatnonzero(seen(*given[:3]) * given[0].noise_std(*given[1:3]) >= given[3]),
    )  # fmt: skip

    def all_of(sentences, seed):
        found.clear()
        model = made(
            epsilon=EPSILON, delta=DELTA, max_iter=STEPS, batch_size=N, clip_norm=0.01, learning_rate=1e-30,
            optimizer=SGD(schedule="constant"), random_state=seed, gradient_estimator=AdaFEST(-1e6, share=0.4),
        )  # fmt: skip
        # The recheck finds a mutant; what it released is out.
        with contextlib.suppress(PrivacyAccountingError):
            model.fit(sentences, groups=range(len(sentences)))
        assert len(found) == 2 * STEPS
        return np.concatenate([np.ravel(release) for release in found])

    runs = np.array([[all_of(D, seed) for D in (low, high, ABSENT)] for seed in range(RUNS)])
    square = (runs[:, 2] ** 2).sum() / chi2.ppf(audit.ALARM, runs[:, 2].size)
    moved = ((runs[:, 1] - runs[:, 0]) ** 2).sum() / RUNS
    return accounting.gaussian_epsilon(math.sqrt(moved / square), DELTA)


def test_counts_and_gradients_come_near_the_claim_and_stay_below(monkeypatch):
    assert 0.6 * EPSILON <= shown_with_counts(monkeypatch) <= EPSILON


@pytest.mark.parametrize("halved", ["all noise", "that of the counts"])
def test_half_the_noise_of_counts_is_caught(halved, monkeypatch):
    honest = grid.gaussian_grid

    def halved_grid(bounded, z, *rest):
        mutant = halved == "all noise" or bounded.shape == (len(WORDS),)
        return honest(bounded, z / 2 if mutant else z, *rest)

    monkeypatch.setattr(grid, "gaussian_grid", halved_grid)
    assert shown_with_counts(monkeypatch) > EPSILON


def silent_rows(releases, sentences, runs=40):
    """Of each fit: how many of the words get no noise in any step."""
    found = [releases(sentences, seed, tied=True) for seed in range(runs)]
    return np.array([np.sum((tables == 0).all(axis=(0, 2))) for tables in found])


def test_all_words_get_noise_and_noise_on_touched_rows_only_is_caught(releases, monkeypatch):
    """An adversary who counts the words without noise sees whether somebody used the word."""
    for sentences in (PRESENT, ABSENT):
        assert not silent_rows(releases, sentences).any()
    honest = gaussian_release.gaussian

    def mutant(bounded, drawn_with, stream):
        table, line = honest(bounded, drawn_with, stream)
        table[(bounded._value.on_grid(drawn_with.unit) == 0).all(axis=1)] = 0.0
        return table, line

    monkeypatch.setattr(gaussian_release, "gaussian", mutant)
    used, unused = (silent_rows(releases, sentences) for sentences in (PRESENT, ABSENT))
    assert (unused == len(WORDS)).all()
    assert (used < len(WORDS)).all()
    assert audit.epsilon_lower(used, unused, DELTA, len(WORDS) - 0.5) > 0.5
