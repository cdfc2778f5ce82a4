"""What a released statistic is: a number or an array, how noisy it is, and what it cost."""

from dataclasses import dataclass, field

import numpy as np

from skdp.privacy import PrivacyReport

__all__ = ["Released"]


@dataclass(frozen=True)
class Released:
    """A released statistic.

    Attributes
    ----------
    value : float or ndarray
        A number for a column, an array with one entry (of a histogram: one row) for each column of a table.
    noise_std : float or ndarray
        Standard deviation of the noise in each entry of ``value``, a public number. Of a quantile it is that of
        a count, as a share of the records: the level is off by about so much.
    privacy_ : PrivacyReport
        What the statistic cost.
    bounds : tuple of (float, float) or of two ndarrays, or None
        To what values were clipped, or where a quantile was searched: given or released. None where values
        are not clipped.
    bin_edges : ndarray or None
        Of a histogram.
    """

    value: float | np.ndarray
    noise_std: float | np.ndarray
    privacy_: PrivacyReport = field(repr=False)
    bounds: tuple[float, float] | tuple[np.ndarray, np.ndarray] | None = None
    bin_edges: np.ndarray | None = None
