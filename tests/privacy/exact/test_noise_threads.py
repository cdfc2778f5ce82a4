"""Noise of a long release is the same whatever draws it: threads, eight values at once or one after the other."""

import numpy as np
import pytest

from skdp.privacy.noise import KeyStream, add_noise, rounded_gaussian, samplers
from skdp.privacy.noise.alias_tables import gaussian_table, laplace_table
from skdp.privacy.noise.integers import BLOCK

SIZES = [5, 3 * BLOCK + 5, 16 * BLOCK, 8 * BLOCK - 1, 20 * BLOCK + 17]


def drawn():
    found = []
    for size in SIZES:
        stream = KeyStream(3)
        found.append((rounded_gaussian(2.0**30, size, stream).tobytes(), stream.counter))
    return found


@pytest.mark.parametrize("often", [None, 2, 3, 7])
def test_threads_draw_the_same(monkeypatch, often):
    """Also where blocks end early, as if their words had run out; which ones follows from the words."""
    honest = samplers.fill_offset

    def early(words, *rest):
        block = rest[-1]
        if often and int(words[0]) % often == 0 and block.size > 5:
            block = block[: block.size // 2]
        return honest(words, *rest[:-1], block)

    monkeypatch.setattr(samplers, "fill_offset", early)
    monkeypatch.setenv("SKDP_NUM_THREADS", "1")
    alone = drawn()
    for threads in ("2", "3"):
        monkeypatch.setenv("SKDP_NUM_THREADS", threads)
        assert drawn() == alone


@pytest.mark.parametrize(
    ("table", "square"),
    [(gaussian_table(2.0**30), True), (gaussian_table(600.5), True), (laplace_table(100.0), False)],
)
def test_eight_at_once_are_eight_one_by_one(monkeypatch, table, square):
    """Words with many ties, zeros and rejections; the reference never draws eight at once."""
    monkeypatch.setattr(samplers, "_fill_eight", lambda *arguments: False)
    one_by_one = samplers.fill_offset.py_func
    rng = np.random.default_rng(0)
    shape = (table.high, table.low, table.alias, table.cell_bits)
    shape += (table.offset_bits, table.slope, table.curve, square)
    assert table.high.max() < 2**63
    for _ in range(12):
        words = rng.integers(0, 2**64, size=2400, dtype=np.uint64)
        some = rng.random(words.size) < 0.2
        words[some] = rng.choice(np.array([0, 1, 2**64 - 1], dtype=np.uint64), some.sum())
        tied = rng.random(words.size) < 0.2
        cell = rng.integers(0, table.high.size, words.size).astype(np.uint64)
        tie = (cell << np.uint64(64 - table.cell_bits)) | (table.high[cell] << np.uint64(1))
        words[tied] = tie[tied]
        # The last value may begin only if 64 words are left.
        size = int(rng.integers(500, 1300))
        together, alone = np.zeros(size, np.int64), np.zeros(size, np.int64)
        done = samplers.fill_offset(words, *shape, together)
        assert one_by_one(words, *shape, alone) == done
        np.testing.assert_array_equal(together[:done], alone[:done])


def test_sum_and_noise_wrap_around():
    rng = np.random.default_rng(0)
    for size in (3, 2 * BLOCK + 9):
        noise = rng.integers(-(2**62), 2**62, size)
        integers = rng.integers(-(2**62), 2**62, size) * 2
        with np.errstate(over="ignore"):
            expected = (noise + integers) * np.float64(0.37)
        np.testing.assert_array_equal(add_noise(noise.copy(), integers, 0.37), expected)
