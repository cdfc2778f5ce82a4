"""Exceptions and warnings of skdp.

They take one message, so that they survive pickling between worker processes.
"""

__all__ = [
    "ClusterError",
    "PrivacyAccountingError",
    "PrivacyBudgetExceeded",
    "PrivacyLeakWarning",
    "UnprovenPrivacyWarning",
    "UnsupportedAccounting",
    "UtilityWarning",
]


class PrivacyBudgetExceeded(ValueError):
    """The plan or the accountant does not hold this release or this fit; nothing was released."""


class PrivacyAccountingError(RuntimeError):
    """The recheck after a fit found more than was allowed. This is a bug in skdp: report it."""


class ClusterError(RuntimeError):
    """A Dask cluster must not hold the parts of a fit, or lost them; what was released before stays charged."""


class UnsupportedAccounting(ValueError):
    """No valid proof supports this combination of mechanism, sampling and adjacency."""


class PrivacyLeakWarning(UserWarning):
    """Something that no epsilon covers was taken from the data, for example the label set."""


class UnprovenPrivacyWarning(UserWarning):
    """The method has no valid privacy proof; its report says epsilon = inf."""


class UtilityWarning(UserWarning):
    """The claim holds, but this budget cannot learn this: few records, many coefficients, columns not scaled.

    It follows from public or released numbers alone.
    """
