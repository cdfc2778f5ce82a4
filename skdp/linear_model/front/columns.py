"""Columns in units of their own: released windows, means and deviations, and the way back to the user's units."""

from dataclasses import dataclass

import numpy as np

from skdp.linear_model.front.windows import released_windows
from skdp.privacy import PrivacySession, PrivateRecords, Standardization

__all__ = ["Columns", "standardize"]

WIDE = 0.012  # part of a normal column that lies outside of its window
LEAST_VARIANCE = 1e-6  # of a column over its squared reach


@dataclass(frozen=True)
class Columns:
    """The records in standard units, and the way back.

    Attributes
    ----------
    records : PrivateRecords
        Standardized.
    scaled : Standardization
        Its numbers are public or released.
    """

    records: PrivateRecords
    scaled: Standardization

    def outward(self, theta: np.ndarray) -> np.ndarray:
        """Turn parameters for standard units into those for the user's units.

        Parameters
        ----------
        theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)

        Returns
        -------
        ndarray of the same shape
        """
        d = self.scaled.center.size
        each = (self.scaled.scale * self.scaled.reach).reshape(-1, *[1] * (theta.ndim - 1))
        found = theta.copy()
        found[:d] = theta[:d] / each
        if len(theta) > d:
            offset = self.scaled.center + self.scaled.mean * self.scaled.reach
            found[d] = theta[d] - offset @ found[:d]
        return found


def standardize(
    session: PrivacySession, records: PrivateRecords, share_windows: float, share_moments: float
) -> Columns:
    """Release windows and moments of the columns, and standardize the records with them.

    Without an intercept, and for CSR rows, columns are scaled by their root mean square and not centred.

    Parameters
    ----------
    share_windows, share_moments : float
        Shares of the session's mu^2.

    Notes
    -----
    **Privacy.** u = clip((x - c) / h, -1, 1) has d entries of at most 1, so a unit adds a vector of norm at most
    sqrt(d) to their sum. The entries of min((u - m)^2, 1) - 1/2 lie between -1/2 and 1/2: norm sqrt(d) / 2. A
    group adds the means of its rows, which are no longer.
    """
    d, n = records.n_features, records.n_units
    centered = records.fit_intercept and records.shape.container == "dense"
    windows = released_windows(session, records, share_windows, tail=WIDE, centered=centered)
    mean, error = np.zeros(d), 0.0
    part = share_moments / 2 if centered else share_moments
    if centered:
        plan = session.plan_gaussian(1, part, purpose="column means")
        total = records.column_sums(windows.center, windows.reach)
        mean = np.clip(session.gaussian(total, plan) / n, -1.0, 1.0)
        error = session.noise_std(total, plan) / n
    plan = session.plan_gaussian(1, part, purpose="column variances")
    squares = records.column_sums(windows.center, windows.reach, around=mean)
    variance = np.maximum(session.gaussian(squares, plan) / n + 0.5, 0.0)
    noise = session.noise_std(squares, plan) / n
    # A column that cannot be told from its noise becomes small, and so does what it adds to a model.
    scale = np.sqrt(np.maximum(variance, noise + error**2 + LEAST_VARIANCE))
    scaled = Standardization.make(windows.center, windows.reach, mean, scale)
    return Columns(records.standardized(scaled), scaled)
