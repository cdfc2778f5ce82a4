"""The last release of a regression: how far its predictions can be trusted.

Let f be a prediction and t a target in units of the reach, both clipped to [-1, 1]. The mean of (f f, f t, f, t)
is released. The line of t on f through these moments, its slope shrunk by what the noise could have made of it,
replaces f. So a net that has learnt nothing predicts about the mean.
"""

from typing import Any

import numpy as np

from skdp.nn.task import NetTask
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["released_line"]

LARGEST_SLOPE = 3.0


def released_line(
    session: PrivacySession, records: PrivateRecords, task: NetTask, parameters: Any, share: float
) -> tuple[float, float]:
    """Release slope and shift of the line that maps predictions to targets, in units of the reach."""

    def moments(X: Any, y: Any) -> Any:
        f = task.network.forward(parameters, task.inputs.of(X))[:, 0].astype(np.float64)
        f = np.clip(np.nan_to_num(f), -1.0, 1.0)
        t = task.targets.of(y)
        return np.column_stack([f * f, f * t, f, t])

    plan = session.plan_gaussian(1, share, purpose="calibration")
    total = records.clipped_sum(moments, 2.0, size=4)  # the norm of such a vector is at most 2
    mean = total * (1.0 / records.n_units)
    noise = session.noise_std(mean, plan)
    square, product, f, t = session.gaussian(mean, plan)
    variance, covariance = square - f * f, product - f * t
    slope = 0.0
    if variance > noise:
        # The noise of the slope, against a slope of about 1.
        sure = covariance**2 / (covariance**2 + noise**2)
        slope = float(np.clip(sure * covariance / variance, 0.0, LARGEST_SLOPE))
    return slope, float(t - slope * f)
