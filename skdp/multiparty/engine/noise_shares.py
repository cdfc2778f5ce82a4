"""Gaussian noise that no t servers know: every server draws a share of it.

Each of k servers draws round(N(0, s^2)) with ``s^2 = sigma^2 / (k - t)``. Up to t servers may tell their draws:
the other k - t shares alone are noise of variance sigma^2. All k shares together have the variance ``k / (k - t)
sigma^2``: 22 % more standard deviation than one drawer would need at t = 1 of 3, 29 % at t = 2 of 5. Nobody can
leave this surplus out, since nobody knows who is honest.

Privacy
-------
Whoever knows t of the shares subtracts them. The rest is ``x + R_1 + ... + R_j`` with an integer vector x and
``j = k - t`` independent rounded Gaussians. It is, up to a factor, a post-processing of the Gaussian mechanism.

*Two shares.* Let R_1 = round(N(0, s^2)), R_2 = round(N(0, r^2)), v^2 = s^2 + r^2, and phi_s the density. Then ::

    P(R_1 + R_2 = n) = integral over u, w in [-1/2, 1/2] of sum_a phi_s(a + u) phi_r(n - a + w)

and ``phi_s(z) phi_r(m - z) = phi_v(m) phi_tau(z - m s^2 / v^2)`` with ``tau = s r / v``. A sum of phi_tau over all
integers, shifted by any number, lies within ``1 +- e``, ``e = 2 sum_{h >= 1} exp(-2 pi^2 tau^2 h^2)`` (Poisson's
summation). Up to the factor 1 +- e this gives ::

    P(R_1 + R_2 = n) = integral of phi_v(y) B_2(y - n) dy

with B_2 the density of a sum of two uniform numbers on [-1/2, 1/2]. The values B_2(y - n) over all integers n
add up to 1 for every y: so this is the law of a random rounding of y ~ N(0, v^2), which takes n with
probability B_2(y - n).

*j shares.* Let the claim hold for the sum of j - 1 shares, of variance v^2 and with B_{j-1}. The same
calculation, with u of density B_{j-1}, gives it for j, with B_j and one more factor ``1 +- e``, where ``tau^2 =
v^2 s^2 / (v^2 + s^2)``. With equal shares tau^2 = s^2 (i - 1) / i in the step from i - 1 to i shares, i = 2 ..
j. The values of a B-spline at the integers add up to 1 for every j.

This rounding moves with an integer x: ``x + R_1 + ... + R_j`` is the random rounding of ``x + N(0, sigma^2)``.
Every theorem on the Gaussian mechanism holds, also for batches and for adaptive releases; both data sets'
probabilities carry the factors. At s = 512, the least that `open` accepts, the factor is 1 +- exp(-2.5 million).

*Error of the sampler.* A share is drawn with a log-error of 2^-50, up to 13.25 s, and a probability of 2^-100 is
treated wrongly (`skdp.privacy.noise`). The log-errors of j shares add up. The cut-off has two effects on a sum n:

* Let |n| <= 10.5 sigma. A share beyond 13.25 s is missing from the sum over all ways to make n. Given the sum, it
  is Gaussian with mean n / j, at most 10.5 s / sqrt(j), and variance s^2 (1 - 1/j): all its ways are a part of at
  most j 2 Q((13.25 - 10.5 / sqrt j) / sqrt(1 - 1/j)) <= 2^-49 j (2 <= j <= 4) of the whole.
* Sums beyond 10.5 sigma count as if they were wrong. On a neighbouring data set the same output needs another
  noise, different by at most sigma / noise_multiplier: all outputs but a probability of
  ``erfc((10.4 - 1 / noise_multiplier) / sqrt 2)`` a value are within 10.5 sigma on both; the 0.1 covers the shift
  by rounding, j / 2 units.

References
----------
The convolution of rounded Gaussians: our own proof; P. Kairouz, Z. Liu and T. Steinke,
"The distributed discrete Gaussian mechanism for federated learning with secure aggregation" (ICML 2021), bound
sums of discrete Gaussians by the same summation.
"""

from math import erfc, exp, expm1, log1p, pi, sqrt

from skdp.privacy.noise import NOISE_CUTOFF, NOISE_LOG_ERROR, SIGMA_RANGE

LEAST_SHARE = 512.0
"""Least standard deviation of a share, in units of the grid."""

# A sum of shares counts up to this many sigma. A choice: the two errors that it weighs are both negligible here.
_REACH, _ROUNDED_REACH = 10.5, 10.4
# Part of the ways to make a sum below `_REACH` that the cut-off of a share misses: at most 2^-52.3 a share; the
# rest is for rounding.
_MISSING = 2.0**-49
# The factor of the convolution is far below the least float; this is charged in its place.
_LEAST_ERROR = 2.0**-1000


def share_std(sigma: float, n_honest: int) -> float:
    """Standard deviation of a server's share so that ``n_honest`` shares alone reach ``sigma``, rounded up.

    Raises
    ------
    ValueError
        If the share is outside of the sampler's range, or below `LEAST_SHARE`.
    """
    std = sigma / sqrt(n_honest) * (1 + 2.0**-50)
    if not LEAST_SHARE <= std <= SIGMA_RANGE[1]:
        raise ValueError(
            f"a share of the noise must have a standard deviation between {LEAST_SHARE:g} and "
            f"{SIGMA_RANGE[1]:g} units, got {std:g}"
        )
    return std


def share_surplus(n_servers: int, n_honest: int) -> float:
    """Standard deviation of all servers' shares together over sigma, which ``n_honest`` of them reach alone.

    Parameters
    ----------
    n_servers, n_honest : int
    """
    return sqrt(n_servers / n_honest)


def convolution_error(stds: list[float]) -> float:
    """Bound on the log-error between a sum of rounded Gaussians and a random rounding of their sum.

    Parameters
    ----------
    stds : list of float
        Standard deviations of the shares, in units of the grid, each at least 0.5.

    Returns
    -------
    float
        At least 2^-1000. For shares of 512 units and more it is 2^-1000.
    """
    total, error = stds[0] ** 2, 0.0
    for std in stds[1:]:
        tau2 = total * std**2 / (total + std**2)
        total += std**2
        first = exp(-2 * pi**2 * tau2)
        part = 2 * first / -expm1(-6 * pi**2 * tau2)  # h^2 >= 3 h - 2: a geometric series bounds the rest
        error += -log1p(-part) if part < 1 else float("inf")
    return max(error, _LEAST_ERROR)


def gaussian_shares_numerical_error(n_values: int, noise_multiplier: float, n_honest: int) -> tuple[float, float]:
    """Additions to (epsilon, delta) of a release for the error in ``n_values`` sums of ``n_honest`` shares.

    Parameters
    ----------
    n_values : int >= 0
        Number of values, over all releases.
    noise_multiplier : float > 0
        sigma over the l2 sensitivity.
    n_honest : int in 2 .. 4
        Number of shares whose sum has the standard deviation sigma.

    Returns
    -------
    numerical_error : tuple of float
        Both data sets' probabilities carry the error, hence the factor 2 in epsilon.
    """
    if not 2 <= n_honest <= 4:
        raise ValueError(f"n_honest must be 2, 3 or 4, got {n_honest!r}")
    each = n_honest * (NOISE_LOG_ERROR + _MISSING) + convolution_error([LEAST_SHARE] * n_honest)
    far = erfc((_ROUNDED_REACH - 1.0 / noise_multiplier) / sqrt(2.0))
    return 2 * n_values * each, n_values * (n_honest * NOISE_CUTOFF + far)
