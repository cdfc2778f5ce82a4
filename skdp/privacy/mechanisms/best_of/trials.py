"""The law of a random number of trials: the truncated negative binomial of shape 0 or 1."""

import math
from dataclasses import dataclass

from skdp.kernels.protocols import Floats

SHAPES = (0, 1)
# The mean is at most this: what drawn noise misses in its tails counts once for each trial, and takes 20 % of
# delta with it.
MOST_TRIALS = 1000


@dataclass(frozen=True)
class TrialCount:
    """How many trials are made: K >= 1 with a known mean.

    Shape 1 is the geometric law, P(K = k) = g (1 - g)^(k - 1). Shape 0 is the logarithmic law,
    P(K = k) = (1 - g)^k / (k log(1/g)).

    Parameters
    ----------
    mean : float in (1, 1000]
        Expected number of trials.
    shape : {0, 1}, default=1

    Notes
    -----
    The generating function phi(s) = E s^K has the derivative phi'(s) = m (g / (1 - (1 - g) s))^(shape + 1), with
    m = phi'(1) the mean. It increases in s, which the proofs of `skdp.privacy.mechanisms.best_of.bound` need.

    References
    ----------
    Papernot and Steinke, "Hyperparameter tuning with Renyi differential privacy" (2022), definition 1.

    Examples
    --------
    >>> from skdp.privacy.mechanisms.best_of.trials import TrialCount
    >>> TrialCount(10).rate, round(TrialCount(10, shape=0).rate, 4)
    (0.1, 0.0269)
    """

    mean: float
    shape: int = 1

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise ValueError(f"shape must be one of {list(SHAPES)}, got {self.shape!r}")
        if not 1.0 < self.mean <= MOST_TRIALS:
            raise ValueError(f"mean_trials must be above 1 and at most {MOST_TRIALS}, got {self.mean!r}")
        object.__setattr__(self, "mean", float(self.mean))
        object.__setattr__(self, "shape", int(self.shape))

    @property
    def rate(self) -> float:
        """The parameter g in (0, 1): the law has this float as its parameter, and its mean is `exact_mean`."""
        return 1.0 / self.mean if self.shape else _logarithmic_rate(self.mean)

    @property
    def exact_mean(self) -> float:
        """The mean of the law with parameter `rate`, which differs from ``mean`` by a few roundings."""
        g = self.rate
        return 1.0 / g if self.shape else (1.0 - g) / (-g * math.log(g))

    def weight(self, rest: Floats) -> Floats:
        """The part g + (1 - g) (1 - s) of the derivative, at ``rest`` = 1 - s."""
        return self.rate + (1.0 - self.rate) * rest

    def slope(self, rest: Floats) -> Floats:
        """phi'(s) at ``rest`` = 1 - s."""
        found: Floats = self.exact_mean * (self.rate / self.weight(rest)) ** (self.shape + 1)
        return found


def _logarithmic_rate(mean: float) -> float:
    """The g of the logarithmic law with this mean: the root of (1/g - 1) / log(1/g) = mean in y = log(1/g)."""
    low, high = 0.0, 2.0 * math.log(mean) + 4.0
    for _ in range(200):
        y = 0.5 * (low + high)
        if y in (low, high):
            break
        low, high = (y, high) if math.expm1(y) / y < mean else (low, y)
    return math.exp(-high)
