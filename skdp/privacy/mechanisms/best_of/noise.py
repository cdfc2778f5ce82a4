"""A random number of trials from a key stream, in decimal arithmetic."""

from decimal import Decimal, localcontext

from skdp.privacy.mechanisms.best_of.trials import TrialCount
from skdp.privacy.noise.keystream import KeyStream

_BITS = 62  # bits of one integer of the key stream
_DIGITS = 60
# Total variation between the drawn and the exact law, of the number of trials and of the order of trials with
# equal scores together. The number's law is off by less than 2^-120. Two of K trials have the same 124 bits with a
# probability of at most E K^2 / 2 times 2^-124, and E K^2 is below 2^24 for means up to 1000 (2^23.2 of shape 0).
TRIALS_ERROR = 2.0**-80


def draw_trial_count(stream: KeyStream, trials: TrialCount) -> int:
    """Draw K: the first k whose cumulative probability passes a uniform number of 124 bits.

    The parameter of the law is a float and counts as exact. Probabilities have 60 decimal digits. The search ends
    where less than 2^-124 is left, so that the law is off by less than 2^-120 in all.

    Examples
    --------
    >>> from skdp.privacy.mechanisms.best_of.trials import TrialCount
    >>> from skdp.privacy.noise.keystream import KeyStream
    >>> stream = KeyStream(0)
    >>> drawn = [draw_trial_count(stream, TrialCount(10)) for _ in range(400)]
    >>> min(drawn) >= 1, 8 < sum(drawn) / 400 < 12
    (True, True)
    """
    high, low = tie_break(stream)
    with localcontext() as context:
        context.prec = _DIGITS
        uniform = Decimal((high << _BITS) | low) / Decimal(1 << 2 * _BITS)
        g = Decimal(trials.rate)
        p = g if trials.shape else (1 - g) / -g.ln()
        smallest, passed, k = g / Decimal(1 << 2 * _BITS), p, 1
        while uniform >= passed and p > smallest:
            p *= (1 - g) if trials.shape else (1 - g) * k / (k + 1)
            passed += p
            k += 1
    return k


def tie_break(stream: KeyStream) -> tuple[int, int]:
    """Two uniform integers of 62 bits, which order trials with equal scores."""
    first, second = stream.integers(2**_BITS, 2).tolist()
    return first, second
