"""Numbers, means and variances of columns with missing values, from one release of sums."""

from dataclasses import dataclass

import numpy as np

from skdp.base.column_search import Present, Window
from skdp.kernels.protocols import Floats
from skdp.privacy import BoundedStatistic, PrivacySession, PrivateRecords
from skdp.privacy.statistics import column_moments

# Weights of the numbers and of the squares beside the values, by the largest change of a unit. Under replace-one
# they are about as large as they may be without more noise for the values, see `column_moments`: 1 + p^2 + s^2 / 4
# is at most 4 with one class, and at most 2 with several. Else they cost 31 % more noise, which is a choice.
OF_ONE_CLASS = (1.5, 1.5)
OF_CLASSES = (0.86, 1.0)
OF_ABSENT = (0.75, 0.75)
ALONE = (1.7, 1.0)  # the numbers without squares, and the squares without numbers, where a unit is absent
MIN_SIGNIFICANT_COUNT = (
    3.0  # least number of values, in standard deviations of its noise, that a mean is divided by
)


@dataclass(frozen=True)
class Counted:
    """Numbers of values that are there, of each column, with the standard deviation of their noise."""

    value: Floats
    noise_std: Floats

    @classmethod
    def known(cls, records: PrivateRecords) -> "Counted":
        """The public number of units in each column."""
        d = records.n_features
        return cls(np.full(d, float(records.n_units)), np.zeros(d))

    def present(self, n_units: int, *, missing: bool, less: float = 0.0) -> Present:
        """The numbers that a search for quantiles takes; without ``missing`` values each unit has one."""
        if missing:
            return Present(self.share(n_units, less=less))
        values = np.maximum(self.value - less * self.noise_std, 0.0) / n_units
        return Present(values, np.maximum(self.value, 0.0) / n_units)

    def share(self, n_units: int, *, less: float = 0.0) -> Floats:
        """As shares of the units, in [0, 1]; ``less`` standard deviations of their noise lower.

        A search for a quantile that more values than there are do not exceed would find the end of its grid.
        """
        lower = self.value - less * self.noise_std
        return np.asarray(np.clip(lower / n_units, 0.0, 1.0))

    def with_(self, other: "Counted") -> "Counted":
        """The average, weighted by inverse variances; a number without noise is taken as it is."""
        with np.errstate(divide="ignore", invalid="ignore"):
            part = self.noise_std**2 / (self.noise_std**2 + other.noise_std**2)
            part = np.where(self.noise_std == 0, 0.0, part)
            value = self.value + part * (other.value - self.value)
            noise = np.sqrt(part) * other.noise_std
        return Counted(value, np.asarray(noise))


def released_once(
    session: PrivacySession, sums: BoundedStatistic, purpose: str, share: float = 1.0
) -> tuple[Floats, float]:
    """Release a statistic for a share of mu^2; return it and the standard deviation of the noise in each entry."""
    plan = session.plan_gaussian(1, share, purpose=purpose)
    return session.gaussian(sums, plan), session.noise_std(sums, plan)


def released_counts(session: PrivacySession, records: PrivateRecords, share: float) -> Counted:
    """Release how many values of each column are not missing."""
    counts = records.histogram([-np.inf, np.inf], adjacency=session.adjacency)
    value, noise = released_once(session, counts, "counts", share)
    return Counted(value[:, 0], np.full(len(value), noise))


@dataclass(frozen=True)
class ColumnMoments:
    """Released sums over the values u in [-1, 1] of a window that are there.

    Attributes
    ----------
    window : Window
    values, squares : ndarray of shape (n_features,) or (n_classes, n_features)
        Sums of u, and of u^2 - 1/2.
    counted : Counted
        Their number.
    noise_std, square_noise_std : float
        Standard deviations of the noise in the two sums.
    """

    window: Window
    values: Floats
    squares: Floats
    counted: Counted
    noise_std: float
    square_noise_std: float

    @classmethod
    def released(
        cls,
        session: PrivacySession,
        records: PrivateRecords,
        window: Window,
        share: float,
        *,
        counted: Counted | None = None,
        squares: bool = True,
        n_classes: int | None = None,
    ) -> "ColumnMoments":
        """Release the sums. Numbers that are known are left out; released ones are averaged with the numbers of
        this call.

        Parameters
        ----------
        share : float
            Of the session's mu^2.
        counted : Counted, default=None
        squares : bool, default=True
            Whether a variance is wanted.
        n_classes : int, default=None
            Sums by the classes of the records' targets.
        """
        asked = counted is None or bool(counted.noise_std.any()) or session.exact
        present, bend = _weights(session.adjacency, n_classes, counts=asked, squares=squares)
        sums = column_moments(records,
            window.center, window.half_width, present=present, squares=bend,
            adjacency=session.adjacency, n_classes=n_classes,
        )  # fmt: skip
        found, noise = released_once(session, sums, "moments", share)
        values, counts, bent = found[0] if n_classes is None else found.transpose(1, 0, 2)
        if counted is None or asked:
            own = Counted(counts / present, np.full(counts.shape, noise / present))
            counted = own if counted is None else counted.with_(own)
        return cls(window, values, bent / (bend or 1.0), counted, noise, noise / (bend or 1.0))

    @property
    def _number(self) -> Floats:
        """The denominators of the means; NaN where the noise hides whether there is any value."""
        n = self.counted
        seen = (n.value > MIN_SIGNIFICANT_COUNT * n.noise_std) & (n.value >= 1.0)
        return np.where(seen, n.value, np.nan)

    @property
    def _mean(self) -> Floats:
        return np.asarray(np.clip(self.values / self._number, -1.0, 1.0))

    def mean(self) -> tuple[Floats, Floats]:
        """Means in the units of the data, and the standard deviations of their noise."""
        m, number = self._mean, self._number
        noise = np.hypot(self.noise_std, m * self.counted.noise_std) / number
        return self.window.center + self.window.half_width * m, self.window.half_width * noise

    def variance(self) -> tuple[Floats, Floats]:
        """Variances, at least 0, and the standard deviations of their noise, to first order."""
        found, noise = self._variance()
        return self.window.half_width**2 * found, self.window.half_width**2 * noise

    def std(self) -> tuple[Floats, Floats]:
        """Standard deviations, and their noise; near 0 the root of the variance's noise."""
        found, noise = self._variance()
        root = np.sqrt(found)
        with np.errstate(divide="ignore", invalid="ignore"):
            of_root = np.fmin(0.5 * noise / root, np.sqrt(noise))
        return self.window.half_width * root, self.window.half_width * of_root

    def _variance(self) -> tuple[Floats, Floats]:
        m, number, bent = self._mean, self._number, self.squares / self._number
        found = np.clip(bent + 0.5 - m**2, 0.0, 1.0)
        # The derivatives by the sums of u^2 - 1/2 and of u, and by their number.
        noise = np.sqrt(
            self.square_noise_std**2
            + (2 * m * self.noise_std) ** 2
            + ((2 * m**2 - bent) * self.counted.noise_std) ** 2
        )
        return found, noise / number


def _weights(adjacency: str, n_classes: int | None, *, counts: bool, squares: bool) -> tuple[float, float]:
    if adjacency != "replace-one":
        present, bend = OF_ABSENT if counts else (0.0, ALONE[1])
        return (present, bend) if squares else (present, 0.0)
    present, bend = OF_ONE_CLASS if n_classes is None else OF_CLASSES
    if not squares and n_classes is None:
        present, bend = ALONE[0], 0.0
    return (present if counts else 0.0), bend if squares else 0.0
