"""Key stream, samplers and selection: statistics with a false-alarm rate below 1e-6 a test.

Seeds are fixed, so a pass is reproducible; the rate is that of a fresh seed.
"""

import copy
import dataclasses
import math
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from skdp.privacy.mechanisms.top_k.noise import gumbel_top_k
from skdp.privacy.noise import (
    KeyStream,
    discrete_laplace,
    gaussian_numerical_error,
    integers,
    laplace_numerical_error,
    rounded_gaussian,
    selection_numerical_error,
)
from skdp.privacy.noise.keystream import _AHEAD, _KEY_BLOCKS
from tests.kinds import quick_alone

ALARM = 1e-8
SIGMAS = [0.5, 1.0, 3.7, 300.0, 513.0, 777.7, 2.0**20, 2.0**30, 2.0**40]
SCALES = [0.25, 1.0, 3.7, 65.0, 2.0**20, 2.0**40]


def gaussian_cdf(k, sigma):
    return stats.norm.cdf((k + 0.5) / sigma)


def laplace_cdf(k, scale):
    """P(X <= k)."""
    q = np.exp(-1 / scale)
    return np.where(k < 0, q ** -np.minimum(k, 0), 1 + q - q ** (np.maximum(k, 0) + 1)) / (1 + q)


def chi_square(values, cdf, scale, n_cells=400, tail=5.0):
    """p-value of ``values`` in cells of equal width, single values where they are few."""
    edges = np.unique(np.floor(np.linspace(-tail, tail, n_cells) * scale))
    cumulative = np.concatenate([[0.0], cdf(edges, scale), [1.0]])
    expected = np.diff(cumulative) * values.size
    observed = np.bincount(np.searchsorted(edges, values), minlength=expected.size)
    wide = np.add.reduceat
    starts = cell_starts(expected)
    expected = wide(expected, starts)
    expected *= values.size / expected.sum()
    return stats.chisquare(wide(observed, starts), expected).pvalue


def cell_starts(expected, least=20.0):
    """Merge neighbouring cells until each expects at least ``least`` values."""
    starts, total_weight = [0], 0.0
    for i, e in enumerate(expected):
        if total_weight >= least and expected[i:].sum() >= least:
            starts.append(i)
            total_weight = 0.0
        total_weight += e
    return np.array(starts)


@pytest.mark.parametrize("sigma", SIGMAS)
def test_gaussian_distribution(sigma):
    """Chi-square over 400 cells and its extremes; false alarms below 1e-6."""
    values = rounded_gaussian(sigma, 1_000_000, 11)
    assert chi_square(values, gaussian_cdf, sigma) > ALARM
    for z in (2.0, 3.0, 4.0):
        k = np.ceil(z * sigma)
        p = 2 * stats.norm.sf((k - 0.5) / sigma)
        count = int((np.abs(values) >= k).sum())
        assert stats.binomtest(count, values.size, p).pvalue > ALARM
    assert stats.binomtest(int((values > 0).sum()), int((values != 0).sum())).pvalue > ALARM


@pytest.mark.parametrize("scale", SCALES)
def test_laplace_distribution(scale):
    """Chi-square over 400 cells and its tails; false alarms below 1e-6."""
    values = discrete_laplace(scale, 1_000_000, 12)
    assert chi_square(values, laplace_cdf, scale, tail=10.0) > ALARM
    for z in (4.0, 9.0):
        k = np.ceil(z * scale)
        p = float(2 * laplace_cdf(-k, scale))
        assert stats.binomtest(int((np.abs(values) >= k).sum()), values.size, p).pvalue > ALARM


@pytest.mark.parametrize(
    "sigma", quick_alone([3.7, 2.0**30], [3.7, 300.0, 2.0**20, 2.0**30], pytest.mark.thorough)
)
@pytest.mark.parametrize("mutant", ["half", "shifted"])
def test_mutants_are_caught(monkeypatch, sigma, mutant):
    """The same test on half the noise and on a table moved by one cell must fail."""
    honest = integers.gaussian_table

    def broken(value):
        if mutant == "half":
            return honest(value / 2)
        table = honest(value)
        moved = [np.roll(a, 1, axis=0) for a in (table.high, table.low, table.alias)]
        return dataclasses.replace(table, high=moved[0], low=moved[1], alias=moved[2])

    monkeypatch.setattr(integers, "gaussian_table", broken)
    values = rounded_gaussian(sigma, 4_000_000, 11)
    assert chi_square(values, gaussian_cdf, sigma) < ALARM


@pytest.mark.parametrize("sigma", [1.0, 2.0**30])
def test_low_bits_are_uniform(sigma):
    """At a large sigma the last bits of a value carry no structure (false alarms below 1e-6)."""
    values = rounded_gaussian(2.0**30, 400_000, 13)
    for low in (values & 255, (values >> 14) & 255):
        assert stats.chisquare(np.bincount(low, minlength=256)).pvalue > ALARM


@pytest.mark.parametrize("sigma", [1.0, 300.0, 2.0**30])
def test_draws_are_independent(sigma):
    """Neighbours in a call and the same place in consecutive calls: chi-square of four classes."""
    stream = KeyStream(14)
    first, second = (rounded_gaussian(sigma, 200_000, stream) for _ in range(2))
    cut = np.round(sigma * np.array([-0.7, 0.0, 0.7]))
    pairs = [(first[:-1], first[1:]), (first, second), (first[:-16384], first[16384:])]
    for a, b in pairs:
        table = np.zeros((4, 4))
        np.add.at(table, (np.searchsorted(cut, a), np.searchsorted(cut, b)), 1)
        assert stats.chi2_contingency(table).pvalue > ALARM
    assert not np.array_equal(first, second)


def test_shapes_and_types():
    assert rounded_gaussian(1.0, 0).shape == (0,)
    assert rounded_gaussian(1, ()).shape == ()
    for draw in (rounded_gaussian, discrete_laplace):
        values = draw(np.float64(3.0), (2, 3), np.int64(1))
        assert values.shape == (2, 3)
        assert values.dtype == np.int64


@pytest.mark.parametrize("draw", [rounded_gaussian, discrete_laplace])
def test_seeds(draw):
    """A seed repeats, None and generators do not, and numpy's global seed has no influence."""
    for scale in (3.0, 2.0**30):
        np.testing.assert_array_equal(draw(scale, 50, 5), draw(scale, 50, 5))
        for other in (6, 2**200, None):
            assert not np.array_equal(draw(scale, 50, 5), draw(scale, 50, other))
        for make in (np.random.RandomState, np.random.default_rng):
            np.testing.assert_array_equal(draw(scale, 50, make(1)), draw(scale, 50, make(1)))
            generator = make(1)
            assert not np.array_equal(draw(scale, 50, generator), draw(scale, 50, generator))
        fresh = []
        for _ in range(2):
            np.random.seed(0)
            fresh.append(draw(scale, 50))
        assert not np.array_equal(*fresh)


def test_one_seed_gives_each_scale_its_own_words():
    a, b = rounded_gaussian(2.0**30, 100, 0), rounded_gaussian(2.0**31, 100, 0)
    assert not np.array_equal(a, b >> 1)
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.55


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: rounded_gaussian(0.49, 1), ValueError, "sigma must be between 0.5"),
        (lambda: rounded_gaussian(2.0**40 * 1.01, 1), ValueError, "sigma must be between"),
        (lambda: rounded_gaussian(float("nan"), 1), ValueError, "sigma must be between"),
        (lambda: rounded_gaussian("1", 1), TypeError, "sigma must be a real number, got str"),
        (lambda: rounded_gaussian(True, 1), TypeError, "sigma must be a real number"),
        (lambda: rounded_gaussian(1.0, -1), ValueError, "size must not be negative"),
        (lambda: rounded_gaussian(1.0, (2, -1)), ValueError, "size must not be negative"),
        (lambda: rounded_gaussian(1.0, 1.5), TypeError, "size must be an integer"),
        (lambda: rounded_gaussian(1.0, 1, -1), ValueError, "non-negative integer"),
        (lambda: rounded_gaussian(1.0, 1, 1.0), TypeError, "random_state must be"),
        (lambda: rounded_gaussian(1.0, 1, True), TypeError, "random_state must be"),
        (lambda: rounded_gaussian(1.0, 1, "seed"), TypeError, "random_state must be"),
        (lambda: discrete_laplace(0.01, 1), ValueError, "scale must be between"),
        (lambda: discrete_laplace(float("inf"), 1), ValueError, "scale must be between"),
        (lambda: discrete_laplace(None, 1), TypeError, "scale must be a real number"),
        (lambda: gumbel_top_k(np.array([1.0]), 1, 1.0), TypeError, "scores must be integers"),
        (lambda: gumbel_top_k(np.array([True]), 1, 1.0), TypeError, "scores must be integers"),
        (lambda: gumbel_top_k(np.array([1], dtype=np.uint64), 1, 1.0), TypeError, "fit int64"),
        (lambda: gumbel_top_k(np.ones((2, 2), dtype=int), 1, 1.0), ValueError, "must be a vector"),
        (lambda: gumbel_top_k(np.array([1, 2]), 3, 1.0), ValueError, "k must be between 1 and the 2"),
        (lambda: gumbel_top_k(np.array([1, 2]), 0, 1.0), ValueError, "k must be between"),
        (lambda: gumbel_top_k(np.array([1, 2]), 1.0, 1.0), TypeError, "k must be an integer"),
        (lambda: gumbel_top_k(np.array([1, 2]), 1, 0.0), ValueError, "positive and finite"),
        (lambda: gumbel_top_k(np.array([1, 2]), 1, float("inf")), ValueError, "positive and finite"),
        (lambda: gaussian_numerical_error(-1), ValueError, "n_values must not be negative"),
        (lambda: selection_numerical_error(1, 0), ValueError, "n_candidates must be between"),
        (lambda: KeyStream(info="text"), TypeError, "info must be bytes"),
    ],
)
def test_bad_input(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_numerical_error():
    for epsilon, delta in (
        gaussian_numerical_error(10),
        gaussian_numerical_error(10, 1.0),
        laplace_numerical_error(10, 1.0),
    ):
        assert epsilon == 20 * 2.0**-50
        assert 10 * 2.0**-100 <= delta <= 11 * 2.0**-100
    # Little noise: the neighbour's value is often out of the table's reach.
    assert gaussian_numerical_error(1, 0.1)[1] == pytest.approx(math.erfc(3.25 / math.sqrt(2)))
    assert laplace_numerical_error(1, 80.0)[1] == pytest.approx(math.exp(-3.2))
    assert selection_numerical_error(1, 10, 10.0)[1] == pytest.approx(2.0**-100 * math.exp(10))
    assert selection_numerical_error(3, 100) == (6 * 2.0**-43, 3 * 2.0**-100)


class TestKeyStream:
    def test_known_answer(self):
        """First block of ChaCha20 with key and nonce zero (RFC 8439, appendix A.1)."""
        stream = KeyStream()
        stream._open(bytes(32))
        block = bytes.fromhex(
            "76b8e0ada0f13d90405d6ae55386bd28bdd219b8a08ded1aa836efcc8b770dc7"
            "da41597c5157488d7724e03fb8d84a376a43b8f41518a11cc387b669b2ee6586"
        )
        np.testing.assert_array_equal(stream.words(8), np.frombuffer(block, dtype="<u8"))

    def test_pieces_are_one_stream(self):
        sizes = [1, 7, 8, 9, 0, 64, 3, 1000, 5]
        stream = KeyStream(1)
        pieces = np.concatenate([stream.words(n) for n in sizes])
        assert stream.counter == sum(sizes)
        np.testing.assert_array_equal(pieces, KeyStream(1).words(sum(sizes)))

    def test_requests_around_what_is_generated_together(self):
        sizes = [_AHEAD - 1, 3, _AHEAD, 1, _AHEAD + 5, 2 * _AHEAD, 7]
        stream = KeyStream(1)
        pieces = np.concatenate([stream.words(n) for n in sizes])
        assert stream.counter == sum(sizes)
        np.testing.assert_array_equal(pieces, KeyStream(1).words(sum(sizes)))

    def test_words_are_the_callers_own(self):
        stream = KeyStream(1)
        first = stream.words(5)
        kept = first.copy()
        first[:] = 0
        stream.words(3)
        np.testing.assert_array_equal(np.append(kept, 0)[:5], KeyStream(1).words(5))

    def test_long_request(self):
        """More than one OpenSSL call; the zero-filled buffer stays zero."""
        n = (1 << 17) + 1000
        stream = KeyStream(1)
        halves = np.concatenate([stream.words(n), stream.words(n)])
        np.testing.assert_array_equal(KeyStream(1).words(2 * n), halves)
        assert np.unique(halves).size == 2 * n

    def test_rekeys_before_the_block_counter_ends(self):
        key = bytes(range(32))
        blocks_left = 6
        stream, whole = KeyStream(), KeyStream()
        for s in (stream, whole):
            s._open(key, _KEY_BLOCKS - blocks_left)
        first = stream.words(8 * blocks_left - 3)
        across = stream.words(3 + 200)
        np.testing.assert_array_equal(np.concatenate([first, across]), whole.words(8 * blocks_left + 200))
        direct = KeyStream()
        direct._open(key, _KEY_BLOCKS - blocks_left)
        old = direct._cipher.update(bytes(64 * blocks_left + 32))
        direct._open(old[-32:])
        np.testing.assert_array_equal(first, np.frombuffer(old, dtype="<u8")[: first.size])
        np.testing.assert_array_equal(across[3:], direct.words(200))

    def test_info_separates_streams(self):
        words = [KeyStream(3, info=i).words(4).tobytes() for i in (b"", b"a", b"b")]
        words += [KeyStream(s).words(4).tobytes() for s in (0, 1, 2**64, 2**300)]
        words += [KeyStream().words(4).tobytes() for _ in range(2)]
        assert len(set(words)) == len(words)

    def test_seeded_and_repr(self):
        secret = 123456789123
        stream = KeyStream(secret)
        assert stream.seeded
        assert not KeyStream().seeded
        stream.words(2)
        assert repr(stream) == "KeyStream(seeded=True, counter=2)"

    @pytest.mark.parametrize(
        "take", [copy.copy, copy.deepcopy, pickle.dumps, lambda s: pickle.dumps([s], protocol=0)]
    )
    def test_is_never_copied(self, take):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            take(KeyStream())

    @pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
    def test_refused_in_a_forked_child(self):
        code = (
            "import os\n"
            "from skdp.privacy.noise import KeyStream, rounded_gaussian\n"
            "stream = KeyStream()\n"
            "stream.words(1)\n"
            "pid = os.fork()\n"
            "if pid == 0:\n"
            "    try:\n"
            "        rounded_gaussian(1.0, 1, stream)\n"
            "    except RuntimeError as error:\n"
            "        os._exit(7 if 'another process' in str(error) else 1)\n"
            "    os._exit(0)\n"
            "assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 7\n"
            "stream.words(1)\n"
        )
        subprocess.run([sys.executable, "-c", code], check=True, timeout=300)

    def test_shared_by_threads_hands_out_no_word_twice(self):
        stream = KeyStream(2)
        with ThreadPoolExecutor(4) as pool:
            parts = list(pool.map(lambda _: stream.words(1001), range(64)))
        words = np.concatenate(parts)
        np.testing.assert_array_equal(np.sort(words), np.sort(KeyStream(2).words(words.size)))


def test_threads_with_own_streams():
    """Concurrent draws, tables being built meanwhile, equal the serial ones."""

    def draw(seed):
        sigma = 600.0 + seed % 5
        return rounded_gaussian(sigma, 20_000, seed), discrete_laplace(sigma, 20_000, seed)

    integers.gaussian_table.cache_clear()
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(draw, range(12)))
    for seed, (a, b) in enumerate(together):
        c, d = draw(seed)
        np.testing.assert_array_equal(a, c)
        np.testing.assert_array_equal(b, d)


def test_stream_position_does_not_depend_on_values():
    """The words used are a function of the sizes only, unless a buffer ran out."""
    counts = set()
    for seed in range(20):
        stream = KeyStream(seed)
        rounded_gaussian(2.0**30, 500, stream)
        counts.add(stream.counter)
    assert len(counts) == 1


def test_import_is_light():
    code = (
        "import sys, skdp.privacy.noise\n"
        "bad = {'numba', 'cryptography', 'mpmath', 'scipy'} & set(sys.modules)\n"
        "assert not bad, bad\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300)


class TestSelection:
    def test_order_has_the_law_of_sequential_softmax(self):
        """Chi-square over all ordered triples of 5 candidates; false alarms below 1e-6."""
        scores, scale, k = np.array([10, 4, 0, -3, 7]), 6.0, 3
        weights = np.exp(scores / scale)
        stream = KeyStream(21)
        orders = list(permutations(range(5), k))
        counts = dict.fromkeys(orders, 0)
        n = 40_000
        for _ in range(n):
            counts[tuple(gumbel_top_k(scores, k, scale, stream).tolist())] += 1
        expected = []
        for order in orders:
            p, rest = 1.0, weights.sum()
            for i in order:
                p *= weights[i] / rest
                rest -= weights[i]
            expected.append(n * p)
        assert stats.chisquare([counts[o] for o in orders], expected).pvalue > ALARM
        wrong = np.array(expected) * (1 + 0.1 * np.sign(np.arange(len(orders)) - 29.5))
        wrong *= n / wrong.sum()
        assert stats.chisquare([counts[o] for o in orders], wrong).pvalue < ALARM

    def test_agrees_with_gumbel_noise(self):
        """First and last of 4 out of 30 against numpy's Gumbel numbers; false alarms below 1e-6."""
        rng = np.random.default_rng(22)
        scores, n = rng.integers(-20, 20, 30), 20_000
        stream = KeyStream(23)
        ours = np.array([gumbel_top_k(scores, 4, 9.0, stream) for _ in range(n)])
        noisy = scores + 9.0 * rng.gumbel(size=(n, 30))
        theirs = np.argsort(-noisy, axis=1)[:, :4]
        for column in (0, 3):
            table = np.array([np.bincount(x[:, column], minlength=30) for x in (ours, theirs)])
            table = table[:, table.sum(axis=0) > 10]
            assert stats.chi2_contingency(table).pvalue > ALARM

    def test_equal_scores_have_no_favourite(self):
        """Ties are broken by chance, not by index; false alarms below 1e-6."""
        stream = KeyStream(24)
        first = [gumbel_top_k(np.zeros(16, dtype=np.int64), 1, 1.0, stream)[0] for _ in range(16_000)]
        assert stats.chisquare(np.bincount(first, minlength=16)).pvalue > ALARM

    @pytest.mark.parametrize("gap", [50, 100, 300, 10**5, 2**58])
    def test_far_scores(self, gap):
        """Whole groups far apart: each is exhausted before the next one is touched."""
        scores = np.repeat(np.arange(8) - 4, 3) * gap
        order = gumbel_top_k(scores, scores.size, 1.0, KeyStream(25))
        np.testing.assert_array_equal(np.sort(order), np.arange(scores.size))
        assert (np.diff(scores[order]) <= 0).all()

    def test_extreme_integers(self):
        info = np.iinfo(np.int64)
        scores = np.array([info.min, 0, info.max, info.max - 1, info.min + 1])
        order = gumbel_top_k(scores, 5, 1e-3, 0)
        np.testing.assert_array_equal(order, [2, 3, 1, 4, 0])

    def test_second_choice_among_dropped_candidates(self):
        """After the top is gone the others have their softmax law, 200 scales below it."""
        stream, n = KeyStream(26), 20_000
        scores = np.array([0, 200, 1])
        second = [gumbel_top_k(scores, 2, 1.0, stream)[1] for _ in range(n)]
        p = np.e / (1 + np.e)
        assert stats.binomtest(int(np.sum(np.equal(second, 2))), n, p).pvalue > ALARM

    def test_many_candidates(self):
        rng = np.random.default_rng(27)
        scores = rng.integers(-(10**6), 10**6, 100_000).astype(np.int32)
        chosen = gumbel_top_k(scores, 3000, 10.0, 28)
        assert np.unique(chosen).size == 3000
        assert scores[chosen].min() > np.sort(scores)[-3000] - 400
        np.testing.assert_array_equal(chosen, gumbel_top_k(scores, 3000, 10.0, 28))
