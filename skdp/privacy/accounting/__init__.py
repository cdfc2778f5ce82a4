"""The cost of a release: exact Gaussian accounting, calibration, the recheck, and the kinds of release.

`skdp.privacy.accounting.adapter` is the only module that translates to dp-accounting. It is not imported here,
because a full-batch fit never needs it.
"""

from skdp.privacy.accounting.amplification import amplified_epsilon, unamplified_epsilon
from skdp.privacy.accounting.gaussian import (
    bounded_range_epsilon,
    bounded_range_mu,
    compose_mu,
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    noise_multiplier,
    pure_epsilon,
    pure_mu,
    tradeoff,
)
from skdp.privacy.accounting.ledger_cost import rows_delta, rows_epsilon, rows_mu
from skdp.privacy.accounting.minibatch import calibrate_batches, sampled_epsilon
from skdp.privacy.accounting.recheck import recheck_epsilon, recheck_tail

__all__ = [
    "amplified_epsilon",
    "bounded_range_epsilon",
    "bounded_range_mu",
    "calibrate_batches",
    "compose_mu",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_mu",
    "noise_multiplier",
    "pure_epsilon",
    "pure_mu",
    "recheck_epsilon",
    "recheck_tail",
    "rows_delta",
    "rows_epsilon",
    "rows_mu",
    "sampled_epsilon",
    "tradeoff",
    "unamplified_epsilon",
]
