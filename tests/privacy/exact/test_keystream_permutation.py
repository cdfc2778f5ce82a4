"""Permutations and bounded integers of a key stream: exact counts, chi-square, inclusion, refusals."""

import itertools

import numpy as np
import pytest
from scipy.stats import chi2

from skdp.privacy.noise import KeyStream
from skdp.privacy.noise.shuffle import below

ALARM = 1e-7


def p_value(counts, expected=None):
    counts = np.asarray(counts, dtype=float)
    expected = counts.sum() / counts.size if expected is None else expected
    return chi2.sf(((counts - expected) ** 2 / expected).sum(), counts.size - 1)


@pytest.mark.parametrize("n", [2, 4, 5])
def test_every_permutation_is_equally_likely(n):
    stream = KeyStream(n)
    known = dict.fromkeys(itertools.permutations(range(n)), 0)
    for _ in range(12_000):
        known[tuple(stream.permutation(n).tolist())] += 1
    assert p_value(list(known.values())) > ALARM


def test_the_shuffle_that_swaps_with_any_position_is_caught():
    """The classical mistake (n^n equally likely paths) with the same chi-square test."""
    stream, known = KeyStream(3), dict.fromkeys(itertools.permutations(range(4)), 0)
    for row in stream.integers(4, 4 * 12_000).reshape(-1, 4).tolist():
        order = list(range(4))
        for i, j in enumerate(row):
            order[i], order[j] = order[j], order[i]
        known[tuple(order)] += 1
    assert p_value(list(known.values())) < ALARM


def test_a_subset_includes_everybody_equally_often_and_pairs_too():
    stream, n, size, runs = KeyStream(5), 7, 3, 20_000
    subsets = dict.fromkeys(itertools.combinations(range(n), size), 0)
    for _ in range(runs):
        subsets[tuple(sorted(stream.permutation(n, size).tolist()))] += 1
    assert p_value(list(subsets.values())) > ALARM


def test_position_of_an_item_in_a_long_permutation_is_uniform():
    n, runs = 1000, 4000
    stream = KeyStream(6)
    positions = [int(np.flatnonzero(stream.permutation(n) == 17)[0]) for _ in range(runs)]
    assert p_value(np.bincount(np.array(positions) // 50, minlength=20)) > ALARM


@pytest.mark.parametrize("n", [0, 1, 3, 1000, 300_001])
def test_it_is_a_permutation_and_follows_the_seed(n):
    order = KeyStream(1).permutation(n)
    assert order.dtype == np.int64
    assert np.array_equal(np.sort(order), np.arange(n))
    assert np.array_equal(order, KeyStream(1).permutation(n))
    if n > 100:
        assert not np.array_equal(order, KeyStream(2).permutation(n))
        assert not np.array_equal(order, KeyStream().permutation(n))


def test_blocks_of_a_shuffle_are_the_whole_shuffle():
    whole, blocks = KeyStream(1).permutation(5000), np.arange(5000)
    stream = KeyStream(1)
    for start in range(0, 5000, 700):
        stream.shuffle(blocks, start, min(start + 700, 5000))
    assert np.array_equal(whole, blocks)
    assert np.array_equal(whole[:40], KeyStream(1).permutation(5000, 40))


def test_every_integer_below_m_has_the_same_number_of_words():
    """The words at both ends of each interval of the multiplication, with exact integers."""
    for m in (3, 5, 7, 1000, 2**31 + 11, 2**32 - 5):
        each, reject = 2**64 // m, 2**64 % m
        for value in (0, 1, m // 2, m - 1):
            # Accepted words of `value`: value 2^64 <= w m < (value + 1) 2^64 and (w m mod 2^64) >= reject.
            first = -(-(value * 2**64 + reject) // m)
            last = ((value + 1) * 2**64 - 1) // m
            assert last - first + 1 == each
            for word in (first, last):
                assert below(np.uint64(word), np.uint64(m)) == value
        if reject:
            assert below(np.uint64(0), np.uint64(m)) == -1


@pytest.mark.parametrize("bound", [1, 2, 6, 1000])
def test_integers_are_uniform(bound):
    drawn = KeyStream(bound).integers(bound, 60_000)
    assert drawn.dtype == np.int64
    assert p_value(np.bincount(drawn, minlength=bound)) > ALARM if bound > 1 else not drawn.any()


def test_integers_reject_what_would_be_biased():
    bound = 2**63 - 2**61  # 3/8 of the words: two whole multiples fit, a quarter is rejected
    stream = KeyStream(0)
    drawn = stream.integers(bound, 40_000)
    assert drawn.max() < bound
    assert p_value(np.bincount((drawn // (bound // 8)).clip(max=7), minlength=8)) > ALARM
    assert 40_000 / 0.75 * 0.97 < stream.counter < 40_000 / 0.75 * 1.03
    assert np.array_equal(drawn[:9], KeyStream(0).integers(bound, 40_000)[:9])


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda s: s.integers(0, 1), ValueError, "bound must be between 1"),
        (lambda s: s.integers(2**63 + 1, 1), ValueError, "bound must be between"),
        (lambda s: s.integers(2.0, 1), TypeError, "bound must be an integer"),
        (lambda s: s.integers(True, 1), TypeError, "bound must be an integer"),
        (lambda s: s.integers(2, -1), ValueError, "size must be between"),
        (lambda s: s.permutation(-1), ValueError, "n must be between"),
        (lambda s: s.permutation(2**32), ValueError, "n must be between"),
        (lambda s: s.permutation(3, 4), ValueError, "size must be between 0 and 3"),
        (lambda s: s.shuffle(np.arange(3), 0, 4), ValueError, "stop must be between 0 and 3"),
        (lambda s: s.shuffle(np.arange(3), 2, 1), ValueError, "start must be between 0 and 1"),
    ],
)
def test_bad_arguments_draw_nothing(call, error, words):
    stream = KeyStream(0)
    with pytest.raises(error, match=words):
        call(stream)
    assert stream.counter == 0
