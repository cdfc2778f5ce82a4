"""Noise: integers from an OpenSSL key stream, with a proven error.

Privacy
-------
``round(N(0, sigma^2))`` added to an integer vector x is the rounding of the continuous Gaussian mechanism's
output, because round(x + N) = x + round(N). Rounding is post-processing, so every theorem on that mechanism holds,
and no released bit depends on unrounded values. `skdp.privacy.noise.alias_tables` and
`skdp.privacy.noise.samplers` bound the error of the drawn probabilities; the ``*_numerical_error`` functions give
what this error adds to epsilon and delta.

The samplers are not constant-time. Their running time depends on the noise. A choice among listed scores
(`skdp.privacy.mechanisms.selected_gaussian`) takes a time that depends on their number, and a search for large
values (`rounded_gaussian_above`) one that depends on how many are found.

References
----------
I. Mironov, "On significance of the least significant bits for differential privacy" (CCS 2012);
S. Haney et al., "Precision-based attacks and interval refining" (2022); A. J. Walker, "An efficient
method for generating discrete random variables with general distributions" (ACM TOMS 1977).
"""

from skdp.privacy.noise.alias_tables import CANONICAL_SIGMA
from skdp.privacy.noise.integers import (
    SCALE_RANGE,
    SIGMA_RANGE,
    add_noise,
    discrete_laplace,
    rounded_gaussian,
    rounded_gaussian_above,
)
from skdp.privacy.noise.keystream import KeyStream
from skdp.privacy.noise.numerical_error import (
    NOISE_CUTOFF,
    NOISE_LOG_ERROR,
    SELECTION_CUTOFF,
    SELECTION_LOG_ERROR,
    gaussian_numerical_error,
    laplace_numerical_error,
    numeric_sparse_numerical_error,
    selection_numerical_error,
)

__all__ = [
    "CANONICAL_SIGMA",
    "NOISE_CUTOFF",
    "NOISE_LOG_ERROR",
    "SCALE_RANGE",
    "SELECTION_CUTOFF",
    "SELECTION_LOG_ERROR",
    "SIGMA_RANGE",
    "KeyStream",
    "add_noise",
    "discrete_laplace",
    "gaussian_numerical_error",
    "laplace_numerical_error",
    "numeric_sparse_numerical_error",
    "rounded_gaussian",
    "rounded_gaussian_above",
    "selection_numerical_error",
]
