"""A released statistic: a number or an array, its noise, and its report."""

from dataclasses import dataclass, field, fields

import numpy as np

from skdp.privacy import PrivacyReport


@dataclass(frozen=True, repr=False)
class Released:
    """A released statistic.

    Attributes
    ----------
    value : float or ndarray
        A number for a column, an array with one entry (of a histogram: one row) for each column of a table. Of
        several quantiles of a table it has shape (n_quantiles, n_features).
    noise_std : float or ndarray
        Standard deviation of the noise in each entry of ``value``. It is made of public and released numbers. For
        a quantile it is the noise of a count, as a share of the records: the level is off by about this share. Of
        several quantiles it has one entry a level.
    privacy_ : PrivacyReport
        The report of the statistic.
    bounds : tuple of (float, float) or of two ndarrays, or None
        The window to which values were clipped, or in which a quantile was searched: given or released. None where
        values are not clipped.
    bin_edges : ndarray or None
        Of a histogram.
    count : float or ndarray or None
        With ``skipna=True``: the released number of values that are not missing, of each column; a group counts
        by the share of its rows. The others are missing.
    count_noise_std : float or ndarray or None
        Standard deviation of the noise in ``count``.
    """

    value: float | np.ndarray
    noise_std: float | np.ndarray
    privacy_: PrivacyReport = field(repr=False)
    bounds: tuple[float, float] | tuple[np.ndarray, np.ndarray] | None = None
    bin_edges: np.ndarray | None = None
    count: float | np.ndarray | None = None
    count_noise_std: float | np.ndarray | None = None

    def __repr__(self) -> str:
        """All that there is, with six digits."""
        found = {item.name: getattr(self, item.name) for item in fields(self) if item.repr}
        given = (f"{name}={_text(value)}" for name, value in found.items() if value is not None)
        return f"{type(self).__name__}({', '.join(given)})"


def _text(value: object) -> str:
    if isinstance(value, tuple):
        return f"({', '.join(map(_text, value))})"
    if isinstance(value, np.ndarray):
        return np.array2string(value, precision=6, separator=", ", threshold=100)
    return f"{value:.6g}"
