"""Curves of an evaluation, drawn by scikit-learn's displays, with bands for the intervals."""

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.calibration import CalibrationDisplay
    from sklearn.metrics import ConfusionMatrixDisplay, PrecisionRecallDisplay, RocCurveDisplay

from skdp._docs import document
from skdp.kernels.protocols import Floats


def _pyplot() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need matplotlib: pip install "skdp[plot]"') from error
    return pyplot


class _Plots:
    """The plots of a model of any number of classes."""

    if TYPE_CHECKING:
        confusion_matrix: Any
        classes_: np.ndarray
        _model: str

        @property
        def _calibration(self) -> Floats: ...

    @property
    def prob_pred(self) -> "Floats":
        return np.asarray(self._calibration[:, 0])

    @property
    def prob_true(self) -> "Floats":
        return np.asarray(self._calibration[:, 1])

    def plot_calibration(self, *, ax: "Axes | None" = None) -> "CalibrationDisplay":
        """Draw the calibration curve with the 95 % intervals of the shares.

        Parameters
        ----------
        ax : matplotlib Axes, default=None

        Returns
        -------
        sklearn.calibration.CalibrationDisplay
        """
        from sklearn.calibration import CalibrationDisplay

        _pyplot()
        rows = self._calibration
        # The display keeps all scores of a model; here there are none but the centres of bins.
        display = CalibrationDisplay(rows[:, 1], rows[:, 0], rows[:, 0])
        display.plot(ax=ax, name=self._model)
        display.ax_.errorbar(
            rows[:, 0], rows[:, 1], np.abs(rows[:, 2:].T - rows[:, 1]), fmt="none", color="C0", alpha=0.5
        )
        return display

    @document(plot_calibration)
    def plot_confusion(self, *, ax: "Axes | None" = None) -> "ConfusionMatrixDisplay":
        """Draw the confusion matrix at the threshold in use.

        Returns
        -------
        sklearn.metrics.ConfusionMatrixDisplay
        """
        from sklearn.metrics import ConfusionMatrixDisplay

        _pyplot()
        display = ConfusionMatrixDisplay(self.confusion_matrix, display_labels=self.classes_)
        return display.plot(ax=ax, values_format=".0f", cmap="Blues")


class ClassPlots(_Plots):
    """The plots of a model of two classes."""

    if TYPE_CHECKING:
        fpr: Any
        tpr: Any
        precision: Any

        @property
        def _curves(self) -> dict[str, Floats]: ...
        def __getitem__(self, name: str) -> Any: ...

    @document(_Plots.plot_calibration)
    def plot_roc(self, *, ax: "Axes | None" = None) -> "RocCurveDisplay":
        """Draw the ROC curve with the 95 % intervals of the true positive rates.

        Returns
        -------
        sklearn.metrics.RocCurveDisplay
        """
        from sklearn.metrics import RocCurveDisplay

        _pyplot()
        display = RocCurveDisplay(fpr=self.fpr, tpr=self.tpr, roc_auc=self["roc_auc"].value)
        display.plot(ax=ax, name=self._model)
        _band(display.ax_, self.fpr, self._curves["tpr"])
        display.ax_.plot([0, 1], [0, 1], "--", color="0.6", linewidth=0.8)
        return display

    @document(_Plots.plot_calibration)
    def plot_precision_recall(self, *, ax: "Axes | None" = None) -> "PrecisionRecallDisplay":
        """Draw the precision-recall curve with the 95 % intervals of the precisions.

        Returns
        -------
        sklearn.metrics.PrecisionRecallDisplay
        """
        from sklearn.metrics import PrecisionRecallDisplay

        _pyplot()
        band = self._curves["precision"]
        # Where hardly anybody is predicted to be of the second class, noise is all that there is to draw.
        known = (band[:, 2] - band[:, 1] < 1.0) & (self.tpr > 0.0)
        recall, band = self.tpr[known], band[known]
        display = PrecisionRecallDisplay(
            precision=self.precision[known][::-1], recall=recall[::-1],
            average_precision=self["average_precision"].value,
        )  # fmt: skip
        display.plot(ax=ax, name=self._model)
        _band(display.ax_, recall, band)
        display.ax_.set_ylim(-0.02, 1.02)
        return display


class ManyClassPlots(_Plots):
    """The plots of a model of three or more classes."""

    @document(_Plots.plot_calibration)
    def plot_calibration(self, *, ax: "Axes | None" = None) -> "CalibrationDisplay":
        """Draw the share of right predictions by confidence, with the 95 % intervals of the shares."""
        display = super().plot_calibration(ax=ax)
        display.ax_.set(xlabel="Mean confidence", ylabel="Share of right predictions")
        return display


class RegressionPlots:
    """The plot of a regressor."""

    if TYPE_CHECKING:
        mean_error_by_prediction: Floats
        mean_error_by_prediction_interval: Floats
        prediction_edges: Floats
        _model: str

    @document(_Plots.plot_calibration)
    def plot_residuals(self, *, ax: "Axes | None" = None) -> "Axes":
        """Draw the mean error by prediction, with the 95 % noise intervals of the bins that have one.

        Returns
        -------
        matplotlib Axes
        """
        ax = _pyplot().subplots()[1] if ax is None else ax
        edges, mean = self.prediction_edges, self.mean_error_by_prediction
        known = ~np.isnan(mean)
        at, ends = (0.5 * (edges[1:] + edges[:-1])[known], self.mean_error_by_prediction_interval[known])
        name = f"{self._model}, 95 % noise interval"
        ax.errorbar(at, mean[known], np.abs(ends.T - mean[known]), fmt="o", capsize=3, label=name)
        ax.axhline(0.0, linestyle="--", color="0.6", linewidth=0.8)
        ax.set(xlabel="prediction", ylabel="mean of target less prediction", xlim=(edges[0], edges[-1]))
        ax.legend()
        return ax


def _band(ax: "Axes", at: "Floats", curve: "Floats") -> None:
    ax.fill_between(at, curve[:, 1], curve[:, 2], color="C0", alpha=0.15, linewidth=0, label="95 % interval")
    ax.legend()
