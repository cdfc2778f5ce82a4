"""The evaluation of a regressor: scores of clipped targets and residuals, and mean errors by prediction."""

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp.kernels.protocols import Floats
from skdp.metrics.evaluation import Evaluation
from skdp.metrics.inversion import QUANTILE, accepted
from skdp.metrics.plots import RegressionPlots
from skdp.metrics.regression_moments import RegressionMoments
from skdp.metrics.released_score import ReleasedScore, released_score
from skdp.privacy import PrivacyReport
from skdp.statistics.released_tables import claim_text

MIDDLE = 2 / 3  # of a released window, over which bins of predictions are spread; a choice
SCORES = ("r2", "mean_squared_error", "root_mean_squared_error", "mean_absolute_error", "mean_error")


@dataclass(frozen=True)
class ScoreWindows:
    """The windows of targets and residuals, in units of y.

    Attributes
    ----------
    center, half_width : float
        Of the targets.
    residual_half_width : float
        Residuals are clipped to this magnitude.
    given : bool or None
        Whether the targets' window is public; None where targets are not clipped.
    """

    center: float
    half_width: float
    residual_half_width: float
    given: bool | None

    @property
    def y_window(self) -> tuple[float, float]:
        """Lower and upper end of the targets."""
        return self.center - self.half_width, self.center + self.half_width

    @property
    def residual_window(self) -> tuple[float, float]:
        """Lower and upper end of the residuals."""
        return -self.residual_half_width, self.residual_half_width

    def edges(self, n_bins: int) -> Floats:
        """Even edges of bins of predictions, strictly increasing: over given bounds, or most of a released window.

        A released window has room for nearly all targets, and predictions vary less.
        """
        part = 1.0 if self.given else MIDDLE
        edges = self.center + part * self.half_width * np.linspace(-1.0, 1.0, n_bins + 1)
        for i in range(1, n_bins + 1):  # a window may be shorter than a few steps of float64
            edges[i] = max(edges[i], math.nextafter(edges[i - 1], math.inf))
        return edges


@dataclass(frozen=True, eq=False)
class ErrorsByPrediction:
    """Mean errors in bins of the prediction.

    Attributes
    ----------
    edges : ndarray of shape (n_bins + 1,)
        The outer bins hold all predictions beyond them, too.
    counts : ndarray of shape (n_bins,)
        Estimated number of units in each bin.
    value : ndarray of shape (n_bins,)
        NaN where the noise leaves nothing of the count.
    interval : ndarray of shape (n_bins, 2)
    """

    edges: Floats
    counts: Floats
    value: Floats
    interval: Floats

    @classmethod
    def made(cls, sums: Floats, noise: float, edges: Floats, half_width: float) -> "ErrorsByPrediction":
        """Divide noisy sums of (v, 1) and invert: ``(s - a c)^2 <= q^2 noise^2 (1 + a^2)``."""
        values, intervals = [], []
        q2 = (QUANTILE * noise) ** 2
        for total, count in sums.tolist():
            if not count > QUANTILE * noise:  # it may be empty
                values.append(math.nan)
                intervals.append((-half_width, half_width))
                continue
            low, high = accepted(count * count - q2, -2.0 * total * count, total * total - q2, -1.0, 1.0)
            values.append(half_width * min(max(total / count, low), high))
            intervals.append((half_width * low, half_width * high))
        return cls(edges, sums[:, 1].copy(), np.array(values), np.array(intervals))

    @property
    def noise_std(self) -> Floats:
        """Half of the intervals' lengths over 1.96."""
        return np.asarray((self.interval[:, 1] - self.interval[:, 0]) / (2.0 * QUANTILE))


class RegressionEvaluation(Evaluation, RegressionPlots):
    """Released scores of a regressor, of clipped targets and residuals.

    It is a mapping from the name of a score to a `ReleasedScore`: "r2", "mean_squared_error",
    "root_mean_squared_error", "mean_absolute_error" and "mean_error", the mean of target less prediction. Targets
    outside of ``y_window`` and residuals outside of ``residual_window`` count as its nearer end. Values and
    intervals are computed from clipped numbers: rare large errors weigh less than in scikit-learn's scores.

    Attributes
    ----------
    y_window, residual_window : (float, float)
        The windows to which targets and residuals were clipped, released or from ``y_bounds``, in units of y.
    mean_error_by_prediction : ndarray of shape (n_bins,)
        Mean of the clipped residuals of the rows (or groups) whose prediction lies in each bin; NaN where the
        noise does not show that there are any.
    mean_error_by_prediction_noise_std : ndarray of shape (n_bins,)
        Standard deviations of the noise in it: half of the lengths of its 95 % noise intervals, over 1.96.
    mean_error_by_prediction_interval : ndarray of shape (n_bins, 2)
        These intervals: they cover the mean errors of the evaluated records.
    prediction_counts : ndarray of shape (n_bins,)
        Estimated number of records (or groups) in each bin; may be negative, because of the noise.
    prediction_edges : ndarray of shape (n_bins + 1,)
        Even edges over ``y_bounds``, or over the middle two thirds of a released ``y_window``. The outer bins hold
        all predictions beyond them, too.
    privacy_ : PrivacyReport
        The report of all releases together.

    Notes
    -----
    **Privacy.** The releases share the budget (mu^2). The number of units takes 5 % where it is private. Noisy
    counts choose a window of the residuals for 10 % and, without ``y_bounds``, one of the targets for 10 %, or 20
    % where they are far from 0. Mean errors by prediction take 15 %: a unit adds (v, 1) to the row of its bin, v
    in [-1, 1], with l2 sensitivity 2 under replace-one, and sqrt(2) under zero-out and add-remove. Squares for the
    sampling variances take 4 %. The rest is for the sums of (u / 2, u^2, v / 2, v^2, |v| / 2) of targets and
    residuals, with sensitivity 1.669 and 1.658.

    **Intervals** are found by inversion: they hold all values that agree with the release, see
    `skdp.metrics.regression_moments`. In simulations they cover 94.4 to 98 %, and all where a score's whole range
    is given (``tools/coverage_regression.py``). The lower end of R2 is ``-inf`` where the noise does not show that
    targets differ.
    """

    _kind = "a regressor"
    _instead = "It has mean_error_by_prediction and plot_residuals"

    def __init__(
        self,
        moments: RegressionMoments,
        windows: ScoreWindows,
        errors: ErrorsByPrediction,
        privacy: PrivacyReport,
        model: str,
        units: str,
    ) -> None:
        self._moments, self._windows = moments, windows
        self._model, self._units = model, units
        self.y_window, self.residual_window = windows.y_window, windows.residual_window
        self.mean_error_by_prediction = errors.value
        self.mean_error_by_prediction_noise_std = errors.noise_std
        self.mean_error_by_prediction_interval = errors.interval
        self.prediction_counts, self.prediction_edges = errors.counts, errors.edges
        self.privacy_ = privacy

    @cached_property
    def _scores(self) -> dict[str, ReleasedScore]:  # type: ignore[override]
        return {name: released_score(getattr(self._moments, name)(), self.privacy_) for name in SCORES}

    def _about(self) -> str:
        low, high = self.y_window
        origin = "given" if self._windows.given else "released"
        return (
            f"Evaluation of {self._model}: {self._units}, targets clipped to {low:.4g} .. {high:.4g} ({origin}) "
            f"and residuals to ±{self._windows.residual_half_width:.4g} (released), of which all scores are, "
            f'{claim_text(self.privacy_)}. "noise interval": of these records; "interval": of the population'
        )
