"""The samplers' exact probabilities, enumerated from tables and thresholds, against mpmath."""

import dataclasses
from fractions import Fraction
from math import factorial

import mpmath
import numpy as np
import pytest

from skdp.kernels import jit
from skdp.privacy.noise import (
    CANONICAL_SIGMA,
    NOISE_CUTOFF,
    NOISE_LOG_ERROR,
    SELECTION_LOG_ERROR,
    alias_tables,
    rounded_gaussian,
    samplers,
)

PRECISION = 400
U64 = np.uint64


def bin_masses(table):
    """Exact mass of every bin in units of 2^-191: what the cells of the alias table add up to."""
    cell = 1 << (191 - table.cell_bits)
    masses = [0] * table.high.size
    for i, (high, low, alias) in enumerate(zip(table.high, table.low, table.alias)):
        threshold = (int(high) << 128) | (int(low[0]) << 64) | int(low[1])
        assert threshold <= cell
        masses[i] += threshold
        masses[alias] += cell - threshold
    assert sum(masses) == 1 << 191
    return masses


@jit
def sum_rejects(near, offset_bits, slope, curve, square):
    """Sum of the rejection thresholds of a bin (high and low halves), and the largest."""
    high, low, largest = U64(0), U64(0), U64(0)
    for r in range(1 << offset_bits):
        reject = samplers.reject_threshold(samplers.exponent(r, near, slope, curve, square))
        high += reject >> U64(32)
        low += reject & U64(0xFFFFFFFF)
        largest = max(largest, reject)
    return high, low, largest


class Algorithm:
    """The exact law of the sampler as rational numbers."""

    def __init__(self, table, square):
        self.table, self.square, self.masses = table, square, bin_masses(table)
        self.bins = {}
        if table.offset_bits:
            zero = Fraction(self.masses[0], 1 << 192) * self.offset_probability(0, 0)
            self.total = 1 - zero

    def offset_probability(self, j, r):
        t = self.table
        shape = (t.offset_bits, t.slope, t.curve, self.square)
        near = j << t.offset_bits
        if j not in self.bins:
            high, low, largest = (int(v) for v in sum_rejects(near, *shape))
            quick, step = samplers.quick_accept(t.offset_bits, t.slope, self.square)
            assert quick + j * step >= largest >> t.offset_bits
            self.bins[j] = (1 << (64 + t.offset_bits)) - ((high << 32) + low)
        d = samplers.exponent(r, near, *shape[1:])
        return Fraction((1 << 64) - int(samplers.reject_threshold(d)), self.bins[j])

    def probability(self, k):
        """Probability of the value ``k``."""
        j, r = divmod(abs(k), 1 << self.table.offset_bits)
        if not self.table.offset_bits:
            return Fraction(self.masses[j], 1 << (191 + (k != 0)))
        return Fraction(self.masses[j], 1 << 192) * self.offset_probability(j, r) / self.total


def log_error(p, truth):
    return abs(mpmath.log(mpmath.mpf(p.numerator) / p.denominator / truth))


def gaussian_probability(k, sigma):
    scale = mpmath.sqrt(2) * sigma
    return (mpmath.erfc((abs(k) - mpmath.mpf(0.5)) / scale) - mpmath.erfc((abs(k) + mpmath.mpf(0.5)) / scale)) / 2


def laplace_probability(k, scale):
    q = mpmath.exp(-1 / mpmath.mpf(scale))
    return (1 - q) / (1 + q) * q ** abs(k)


def points(scale, half_width, offset_bits, rng):
    """Bin edges and random values up to ``half_width`` scales; all of them where they are few."""
    top = int(half_width * scale)
    if top <= 1000:
        return range(top + 1)
    width = 1 << offset_bits
    last = top // width
    bins = {0, 1, 2, last // 50, last // 13, last // 4, last // 2, last - 1, *rng.integers(last, size=4)}
    inside = {0, 1, width // 2, width - 1, int(rng.integers(width))}
    return sorted(int(j) * width + r for j in bins for r in inside if r < width)


@pytest.mark.parametrize("sigma", [0.5, 1.0, 3.7, 300.0, 512.0, 513.0, 2.0**12 - 1, 2.0**20, 2.0**30])
def test_gaussian_probabilities(sigma):
    table = alias_tables.gaussian_table(sigma)
    algorithm = Algorithm(table, True)
    with mpmath.workprec(PRECISION):
        for k in points(sigma, 13, table.offset_bits, np.random.default_rng(0)):
            error = log_error(algorithm.probability(k), gaussian_probability(k, sigma))
            assert error < NOISE_LOG_ERROR, (k, mpmath.log(error, 2))


@pytest.mark.parametrize("scale", [2.0**-5, 1.0, 3.7, 64.0, 65.0, 1000.5, 2.0**20])
def test_laplace_probabilities(scale):
    table = alias_tables.laplace_table(scale)
    algorithm = Algorithm(table, False)
    with mpmath.workprec(PRECISION):
        for k in points(scale, 83, table.offset_bits, np.random.default_rng(1)):
            error = log_error(algorithm.probability(k), laplace_probability(k, scale))
            assert error < NOISE_LOG_ERROR, (k, mpmath.log(error, 2))


@pytest.mark.parametrize("sigma", [0.5, 3.7, 512.0, pytest.param(700.3, marks=pytest.mark.slow), 2.0**40])
def test_gaussian_bins_and_cutoff(sigma):
    """Every bin of any sigma, also where offsets are too many to enumerate."""
    table = alias_tables.gaussian_table(sigma)
    masses = bin_masses(table)
    n_bins = len(alias_tables.gaussian_masses(Fraction(sigma), table.offset_bits))
    assert not any(masses[n_bins:])
    check_bins(masses[:n_bins], sigma, table.offset_bits)


def check_bins(masses, sigma, offset_bits):
    with mpmath.workprec(PRECISION):
        scale = mpmath.sqrt(2) * sigma
        half = mpmath.mpf(0.5)
        edges = [mpmath.erfc((j * 2**offset_bits - half) / scale) for j in range(len(masses) + 1)]
        total = edges[0] if offset_bits else mpmath.mpf(1)
        edges[0] = total
        cut = edges[-1] / total
        assert cut < NOISE_CUTOFF / 2**18
        for j, total_weight in enumerate(masses):
            truth = (edges[j] - edges[j + 1]) / total
            assert abs(mpmath.log(mpmath.ldexp(total_weight, -191) / truth)) < 2.0**-53


def test_shipped_table():
    """Every entry of the shipped file is recomputed, and every bin mass compared with mpmath."""
    shipped = alias_tables.gaussian_table(float(CANONICAL_SIGMA))
    built = alias_tables.build_gaussian(float(CANONICAL_SIGMA))
    for name in ("high", "low", "alias"):
        np.testing.assert_array_equal(getattr(shipped, name), getattr(built, name))
        assert getattr(shipped, name).dtype == getattr(built, name).dtype
        assert not getattr(shipped, name).flags.writeable
    for name in ("cell_bits", "offset_bits", "slope", "curve"):
        assert getattr(shipped, name) == getattr(built, name)
    n_bins = len(alias_tables.gaussian_masses(Fraction(CANONICAL_SIGMA), shipped.offset_bits))
    check_bins(bin_masses(shipped)[:n_bins], CANONICAL_SIGMA, shipped.offset_bits)


def test_series_of_the_log_mass():
    """The expansion in the docstring of ``samplers``, order by order in h^2."""
    order = 3
    moments = []
    for n in range(order + 1):
        row = [Fraction(0)] * (order + 1)
        for i in range(n + 1):
            hermite = Fraction(factorial(2 * n), factorial(n - i) * factorial(2 * i) * 2 ** (n - i))
            row[i] = (-1) ** (n - i) * hermite / (4**n * factorial(2 * n + 1))
        moments.append(row)

    def times(a, b):
        full = np.convolve(np.array(a, dtype=object), np.array(b, dtype=object))
        assert not any(full[order + 1 :])
        return full[: order + 1]

    logs = [None]
    for n in range(1, order + 1):
        row = np.array(moments[n], dtype=object)
        for i in range(1, n):
            row = row - Fraction(i, n) * times(logs[i], moments[n - i])
        logs.append(row)
    assert list(logs[1][1:]) == [Fraction(1, 24), 0, 0]
    assert list(logs[2][1:]) == [Fraction(-1, 720), Fraction(-1, 2880), 0]
    assert logs[3][3] == Fraction(1, 181440)
    assert max(abs(logs[3][1]), abs(logs[3][2])) < Fraction(1, 5000)


@pytest.mark.parametrize(("sigma", "mutant"), [(300.0, "shifted"), (2.0**20, "shifted"), (600.0, "density at k")])
def test_enumeration_catches_a_broken_table(sigma, mutant):
    """A table moved by one cell; no correction of the density; both far beyond the bound."""
    table = alias_tables.gaussian_table(sigma)
    if mutant == "shifted":
        moved = [np.roll(a, 1, axis=0) for a in (table.high, table.low, table.alias)]
        table = dataclasses.replace(table, high=moved[0], low=moved[1], alias=moved[2])
    else:
        table = dataclasses.replace(table, slope=0.5 / sigma**2, curve=0.0)
    algorithm = Algorithm(table, True)
    k = 12 * int(sigma) + 1
    with mpmath.workprec(PRECISION):
        k += -k % (1 << table.offset_bits)
        assert log_error(algorithm.probability(k), gaussian_probability(k, sigma)) > NOISE_LOG_ERROR


def signed(value, sign):
    return -value if sign else value


@pytest.mark.parametrize("sigma", [3.7, 300.0])
def test_thresholds_are_compared_to_the_last_bit(sigma):
    """Words just below, at and above a threshold, in each of its three parts."""
    table = alias_tables.gaussian_table(sigma)
    shape = (table.high, table.low, table.alias, table.cell_bits)
    cells = [i for i in range(table.high.size) if table.high[i] and table.low[i].all()][:20]
    for cell in cells:
        parts = [int(table.high[cell]), int(table.low[cell, 0]), int(table.low[cell, 1])]
        for part in range(3):
            for step in (-1, 0, 1):
                words = [*parts]
                words[part] += step
                expected = cell if part < 3 and step < 0 else int(table.alias[cell])
                if words[part] >> 64 or (part == 0 and words[0] >> (63 - table.cell_bits)):
                    continue
                if step == 0:
                    words, expected = parts, int(table.alias[cell])
                for sign in (0, 1):
                    first = (cell << (64 - table.cell_bits)) | (words[0] << 1) | sign
                    out = np.zeros(1, dtype=np.int64)
                    stream = np.array([first, *words[1:]], dtype=U64)
                    assert samplers.fill_plain(stream, *shape, out) == 1
                    assert out[0] == signed(expected, sign)


@pytest.mark.parametrize("step", [-1, 0, 1])
@pytest.mark.parametrize("part", [0, 1])
def test_acceptance_is_compared_to_the_last_bit(part, step):
    """An offset is rejected exactly if its 64 bits are below the threshold."""
    table = alias_tables.gaussian_table(2.0**20)
    b, c = table.offset_bits, table.cell_bits
    cell = next(i for i in range(500, table.high.size) if table.alias[i] != i and table.high[i])
    r = (1 << b) - 5
    d = samplers.exponent(r, cell << b, table.slope, table.curve, True)
    reject = int(samplers.reject_threshold(d))
    parts = [reject >> b, reject & ((1 << b) - 1)]
    parts[part] += step
    accepted = (parts[0] << b) + parts[1] >= reject
    words = np.zeros(70, dtype=U64)
    words[0] = cell << (64 - c)
    words[1] = (r << (64 - b)) | parts[0]
    words[2] = parts[1] << (64 - b)
    words[3] = (3 << (64 - b)) | ((1 << (64 - b)) - 1)
    out = np.zeros(1, dtype=np.int64)
    shape = (table.high, table.low, table.alias, c, b, table.slope, table.curve, True)
    assert samplers.fill_offset(words, *shape, out) == 1
    assert out[0] == (cell << b) + (r if accepted else 3)


def test_minus_zero_starts_again():
    table = alias_tables.gaussian_table(2.0**20)
    c, b = table.cell_bits, table.offset_bits
    shape = (table.high, table.low, table.alias, c, b, table.slope, table.curve, True)
    accept = (1 << (64 - b)) - 1
    words = np.zeros(80, dtype=U64)
    # Cell 0, a rest that is neither 0 nor the threshold: bin 0, directly or as its own alias.
    assert table.high[0] > 5 or table.alias[0] == 0
    words[:4] = [(5 << 1) | 1, accept, 5 << 1, (7 << (64 - b)) | accept]
    out = np.full(1, -99, dtype=np.int64)
    assert samplers.fill_offset(words, *shape, out) == 1
    assert out[0] == 7


def test_exponential():
    rng = np.random.default_rng(3)
    t = np.concatenate([rng.uniform(0, 128, 2000), rng.uniform(0, 1, 2000), [0.0, 128.0]])
    with mpmath.workprec(PRECISION):
        for value in t:
            ratio = mpmath.mpf(samplers.exp_minus(value)) * mpmath.exp(mpmath.mpf(value))
            assert abs(ratio - 1) < 4 * 2.0**-53


def tree_probability(tree, n, leaf):
    """Exact probability with which the descent of a tree of sums ends at ``leaf``."""
    p = Fraction(1)
    node = leaf + n
    while node > 1:
        parent, sibling = node >> 1, node ^ 1
        left, right = tree[2 * parent], tree[2 * parent + 1]
        small = Fraction(min(left, right) / (left + right))
        is_small = (left <= right) == (node < sibling)
        p *= small if is_small else 1 - small
        node = parent
    return p


@pytest.mark.parametrize("n", [1, 2, 3, 7, 1000, 4097])
def test_selection_probabilities(n):
    """Each softmax probability, down to e^-120, to the claimed relative error."""
    rng = np.random.default_rng(n)
    scale = 1234.567
    scores = rng.integers(-int(120 * scale), 0, n, endpoint=True)
    tree = np.zeros(2 * n)
    samplers.build_tree(scores, scale, np.zeros(n, dtype=bool), tree)
    with mpmath.workprec(PRECISION):
        top = int(scores.max())
        weights = [mpmath.exp((int(s) - top) / mpmath.mpf(scale)) for s in scores]
        total = mpmath.fsum(weights)
        for leaf in {0, n - 1, int(scores.argmax()), int(scores.argmin()), *range(0, n, 97)}:
            error = log_error(tree_probability(tree, n, leaf), weights[leaf] / total)
            assert error < SELECTION_LOG_ERROR


def test_vote_that_moves_costs_no_more_than_its_epsilon():
    """A vote from one candidate to another: range of the log ratios at scale 2/eps0 is eps0."""
    epsilon = 0.7
    ratios = {}
    for scale in (2 / epsilon, 1 / epsilon):
        p = []
        for scores in ([6, 5, 4], [5, 6, 4]):
            tree = np.zeros(6)
            samplers.build_tree(np.array(scores), scale, np.zeros(3, dtype=bool), tree)
            p.append([float(tree_probability(tree, 3, i)) for i in range(3)])
        logs = np.log(p[0]) - np.log(p[1])
        ratios[scale] = logs.max() - logs.min()
    assert ratios[2 / epsilon] <= epsilon * (1 + 1e-12)
    assert ratios[1 / epsilon] == pytest.approx(2 * epsilon)


def test_sum_of_two_tables_is_the_stochastic_rounding():
    """The convolution of two rounded Gaussians against quadrature."""
    s1, s2 = 3.0, 4.0
    p1, p2 = (
        np.array([float(Algorithm(alias_tables.gaussian_table(s), True).probability(k)) for k in range(-30, 31)])
        for s in (s1, s2)
    )
    both = np.convolve(p1, p2)
    s = np.hypot(s1, s2)
    u = np.linspace(-1, 1, 20001)
    triangle = (1 - np.abs(u)) * (u[1] - u[0])
    for k in range(-12, 13):
        smooth = np.sum(triangle * np.exp(-((k - u) ** 2) / (2 * s * s))) / np.sqrt(2 * np.pi) / s
        assert both[k + 60] == pytest.approx(smooth, rel=1e-7)


def test_canonical_sigma_needs_no_build(monkeypatch):
    def build(sigma):
        raise AssertionError("the shipped table was not used")

    monkeypatch.setattr(alias_tables, "build_gaussian", build)
    alias_tables.gaussian_table.cache_clear()
    assert rounded_gaussian(CANONICAL_SIGMA, 3, 0).shape == (3,)
