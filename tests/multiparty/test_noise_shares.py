"""Sums of rounded Gaussians are random roundings of one Gaussian: the proof's factor, against quadrature."""

from math import comb, erf, erfc, factorial, log, pi, sqrt

import numpy as np
import pytest

from skdp.multiparty.engine.noise_shares import (
    LEAST_SHARE,
    convolution_error,
    gaussian_shares_numerical_error,
    share_std,
)
from skdp.privacy import noise
from skdp.privacy.noise.numerical_error import NOISE_LOG_ERROR

SHARES = pytest.mark.parametrize("j", [2, 3, 4])


def rounded(std, half_width):
    """Probabilities of round(N(0, std^2)) at -reach .. reach."""
    edges = np.arange(-half_width, half_width + 2) - 0.5
    cdf = np.array([0.5 * erfc(-x / std / sqrt(2)) for x in edges])
    upper = np.array([0.5 * erfc(x / std / sqrt(2)) for x in edges])
    return np.where(edges[1:] > 0, upper[:-1] - upper[1:], cdf[1:] - cdf[:-1])


def spline(j, points):
    """Density of the sum of j uniform numbers on [-1/2, 1/2]."""
    total = np.zeros_like(points)
    for i in range(j + 1):
        above = points + j / 2 - i
        total += (-1) ** i * comb(j, i) * np.where(above > 0, above ** (j - 1), 0.0)
    return total / factorial(j - 1)


def randomly_rounded(std, j, n):
    """P(random rounding of N(0, std^2) is n), by Gauss-Legendre on each unit of the spline's support."""
    nodes, weights = np.polynomial.legendre.leggauss(40)
    total = 0.0
    for left in np.arange(-j / 2, j / 2):
        y = left + 0.5 + nodes / 2
        density = np.exp(-(((n + y) / std) ** 2) / 2) / sqrt(2 * pi) / std
        total += (weights / 2 * spline(j, y) * density).sum()
    return total


def log_gap(stds, splines):
    """Largest log-ratio between the convolution and the random rounding, over the bulk."""
    half_width = 40
    law = rounded(stds[0], half_width)
    for std in stds[1:]:
        law = np.convolve(law, rounded(std, half_width))
    total, centre = sqrt(sum(std**2 for std in stds)), law.size // 2
    within = range(-int(4 * total), int(4 * total) + 1)
    return max(abs(log(law[centre + n] / randomly_rounded(total, splines, n))) for n in within)


@SHARES
@pytest.mark.parametrize("std", [0.5, 0.55, 0.6, 0.7])
def test_the_factor_holds_and_is_no_larger_than_it_must_be(j, std):
    bound, found = convolution_error([std] * j), log_gap([std] * j, j)
    assert bound / 50 < found <= bound + 1e-12


def test_unequal_shares():
    for stds in ([0.5, 1.5], [1.5, 0.5, 0.6], [0.6, 0.5, 0.9, 0.7]):
        assert log_gap(stds, len(stds)) <= convolution_error(stds) + 1e-12


def test_a_mutant_that_rounds_once_is_caught():
    """The sum of two rounded Gaussians is not the rounded Gaussian of the total variance."""
    assert log_gap([0.7, 0.7], 1) > 10 * convolution_error([0.7, 0.7])


def test_the_roundings_of_the_spline_add_up_to_one():
    for j in (2, 3, 4):
        for y in np.linspace(-0.5, 0.5, 7):
            assert spline(j, y - np.arange(-5.0, 6.0)).sum() == pytest.approx(1.0, abs=1e-13)


@SHARES
def test_the_honest_shares_alone_reach_sigma(j):
    for sigma in (2.0**11, 2.0**30, 12345.678):
        std = share_std(sigma, j)
        assert 1 <= std * sqrt(j) / sigma < 1 + 1e-14
    for sigma in (LEAST_SHARE, 2.0**41):
        with pytest.raises(ValueError, match="share of the noise"):
            share_std(sigma / 2 if sigma == LEAST_SHARE else sigma * 2, j)


@SHARES
def test_what_a_cut_off_share_misses_is_within_its_part_of_the_numerical_error(j):
    """Given a sum of 10.5 sigma, a share is Gaussian; the part beyond 13.25 of its own std is missing."""
    mean, std = 10.5 / sqrt(j), sqrt(1 - 1 / j)
    missing = erfc((13.25 - 0.002 - mean) / std / sqrt(2))
    epsilon, delta = gaussian_shares_numerical_error(1, 4.0, j)
    assert 2 * j * (missing + NOISE_LOG_ERROR) <= epsilon < 2 * j * 2.0**-48
    assert delta == pytest.approx(erfc((10.4 - 0.25) / sqrt(2)) + j * 2.0**-100)
    assert gaussian_shares_numerical_error(7, 4.0, j) == pytest.approx((7 * epsilon, 7 * delta))


def test_other_numbers_of_shares_are_refused():
    for j in (1, 5):
        with pytest.raises(ValueError, match="n_honest"):
            gaussian_shares_numerical_error(1, 1.0, j)


def test_drawn_shares_have_the_law_of_the_proof():
    """Chi-square of 2^18 sums of two shares at s = 512 against N(0, sigma^2); false alarms below 1e-6."""
    sigma, n, stream = 512 * sqrt(2), 2**18, noise.KeyStream(4)
    std = share_std(sigma, 2)
    total = sum(noise.rounded_gaussian(std, n, stream) for _ in range(2))

    def statistic(scale):
        edges = np.linspace(-3, 3, 25)
        cdf = np.array([0.0, *(0.5 * (1 + erf(x / sqrt(2))) for x in edges), 1.0])
        expected = np.diff(cdf) * n
        counts = np.bincount(np.searchsorted(edges * scale, total), minlength=expected.size)
        return ((counts - expected) ** 2 / expected).sum()

    most = 90.0  # chi-square with 25 degrees of freedom exceeds it with probability 3e-9
    assert statistic(sigma) < most
    assert statistic(sigma * 1.02) > most  # a mutant with 2 % less noise is caught
