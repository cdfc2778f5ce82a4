"""The evaluation of a model of two classes: everything follows from one released table (score bin x label)."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.protocols import Floats
from skdp.metrics import workloads
from skdp.metrics.evaluation import Evaluation
from skdp.metrics.inversion import Estimate, NoisyTable
from skdp.metrics.plots import ClassPlots
from skdp.metrics.released_score import ReleasedScore, released_score
from skdp.privacy import PrivacyReport
from skdp.statistics.released_tables import claim_text


@dataclass(frozen=True, eq=False)
class ScoreGrid:
    """The public bins of scores.

    Attributes
    ----------
    edges : ndarray of shape (n_bins - 1,)
        Inner edges, in units of the score: probabilities of the second class, or values of ``decision_function``.
        Bin i holds ``edges[i - 1] <= score < edges[i]``.
    probability : bool
        Whether scores are probabilities.
    centers : ndarray of shape (n_bins,)
        One score in the place of all scores of a bin.
    """

    edges: Floats
    probability: bool
    centers: Floats

    @property
    def n_bins(self) -> int:
        """Number of bins."""
        return len(self.centers)

    def nearest(self, threshold: float) -> int:
        """Return the number of the first bin at or above the edge that is nearest to ``threshold``.

        Infinite thresholds, and probabilities of 0 and 1, stand for the outer ends.
        """
        low, high = (0.0, 1.0) if self.probability else (-math.inf, math.inf)
        if threshold <= low:
            return 0
        if threshold >= high:
            return self.n_bins
        edges, at = (self.edges, threshold)
        if self.probability:
            edges, at = np.log(edges) - np.log1p(-edges), math.log(at) - math.log1p(-at)
        return int(np.abs(edges - at).argmin()) + 1

    def edge(self, first: int) -> float:
        """Return the threshold below bin ``first``."""
        if 0 < first < self.n_bins:
            return float(self.edges[first - 1])
        low, high = (0.0, 1.0) if self.probability else (-math.inf, math.inf)
        return low if first == 0 else high


class ClassificationEvaluation(Evaluation, ClassPlots):
    """Released scores and curves of a model of two classes, from one released table.

    It is a mapping from the name of a score to a `ReleasedScore`. A row is predicted to be of the second class
    if its score is at least ``threshold``.

    Attributes
    ----------
    table : ndarray of shape (n_bins, 2)
        Estimated number of records (or groups) in each score bin; the columns are `classes_`. Entries may be
        negative, because of the noise.
    table_noise_std : ndarray of shape (n_bins, 2)
        Standard deviations of the noise in it.
    bin_edges : ndarray of shape (n_bins - 1,)
        Public inner edges of the bins.
    threshold : float
        In use: the edge nearest to the one that was asked for.
    classes_ : ndarray of shape (2,)
    fpr, tpr, thresholds : ndarray of shape (n_bins + 1,)
        The ROC curve, from (0, 0) to (1, 1), with decreasing thresholds.
    precision, recall : ndarray of shape (n_bins + 1,)
        The precision-recall curve at the same thresholds.
    prob_true, prob_pred : ndarray
        The calibration curve: the share of the second class and the mean score, in bins that were merged until
        about ten are left. For models with ``predict_proba`` only.
    confusion_matrix : ndarray of shape (2, 2)
        Estimated counts at ``threshold``; rows are true classes, columns predicted ones.
    privacy_ : PrivacyReport
        The report of all releases together.
    """

    def __init__(
        self,
        noisy: NoisyTable,
        grid: ScoreGrid,
        first: int,
        classes: NDArray[np.generic],
        privacy: PrivacyReport,
        model: str,
        units: str,
        chosen: set[int] | None = None,
    ) -> None:
        self._noisy, self._grid, self._first = noisy, grid, first
        self._model, self._units = model, units
        self._chosen: set[int] = set() if chosen is None else chosen
        self.classes_, self.privacy_ = classes, privacy
        self.threshold, self.bin_edges = grid.edge(first), grid.edges

    @cached_property
    def _scores(self) -> dict[str, ReleasedScore]:
        found = {name: score() for name, score in self._ways().items()}
        hidden = THRESHOLD_SCORES if self._first in self._chosen else frozenset()
        return {name: self._score(score, name in hidden) for name, score in found.items()}

    def _score(self, found: Estimate, hidden: bool) -> ReleasedScore:
        score = released_score(found, self.privacy_)
        return replace(score, noise_interval=None, interval=None) if hidden else score

    def _ways(self) -> dict[str, Callable[[], Estimate]]:
        """How each score is computed."""
        noisy, b = self._noisy, self._grid.n_bins
        tp, fp, fn, tn = _cells(b, self._first)
        one, everything = np.repeat((1.0, 0.0), b), np.ones(2 * b)
        upper = (np.arange(b) >= self._first).astype(np.float64)
        balanced = 0.5 * (upper[:, None] + (1.0 - upper)[None, :])
        ranks = np.tril(np.ones((b, b)), -1) + 0.5 * np.eye(b)
        ways: dict[str, Callable[[], Estimate]] = {
            "accuracy": lambda: noisy.ratio(tp + tn, everything),
            "balanced_accuracy": lambda: noisy.pairs(balanced),
            "precision": lambda: noisy.ratio(tp, tp + fp),
            "recall": lambda: noisy.ratio(tp, one),
            "specificity": lambda: noisy.ratio(tn, 1.0 - one),
            "f1": lambda: noisy.ratio(2.0 * tp, 2.0 * tp + fp + fn),
            "roc_auc": lambda: noisy.pairs(ranks),
            "average_precision": self._average_precision,
        }
        if self._grid.probability:
            log_loss, brier = workloads.losses_of_bins(self._grid.centers)
            ways["log_loss"] = lambda: noisy.ratio(log_loss, everything, 0.0, float(log_loss.max()))
            ways["brier_score"] = lambda: noisy.ratio(brier, everything)
        return ways

    def _average_precision(self) -> Estimate:
        """Sum over bins of precision times the step of recall, with its gradient."""
        b = self._grid.n_bins
        p, q = self._noisy.nonnegative[:b], self._noisy.nonnegative[b:]
        positives = p.sum()
        right, wrong = np.cumsum(p[::-1])[::-1], np.cumsum(q[::-1])[::-1]
        called = right + wrong
        called = np.where(called > 1e-9 * called[0], called, math.inf)  # bins above all scores
        one = np.repeat((1.0, 0.0), b)
        if not positives > 0.0:
            return Estimate(0.5, (0.0, 1.0), (0.0, 1.0))
        precision, step = right / called, p / positives
        value = float(step @ precision)
        # A count in bin j is in all totals of bins i <= j.
        of_positive = (precision - value) / positives + np.cumsum(step * wrong / called**2)
        of_negative = -np.cumsum(step * right / called**2)
        return self._noisy.by_gradient(value, np.concatenate((of_positive, of_negative)), one, 1.0 - one)

    # ---------------------------------------------------------------- thresholds

    def at(self, *, threshold: float) -> "ClassificationEvaluation":
        """Return the evaluation at another threshold; it costs nothing.

        Parameters
        ----------
        threshold : float
            In units of the score. The nearest edge of the public grid is taken.

        Returns
        -------
        ClassificationEvaluation
            The intervals hold for a threshold that was fixed beforehand. At one that `best_threshold` returned
            they are None: a threshold that looks best in a noisy table is one that the noise favoured. Evaluate
            another part of the records at it.
        """
        if isinstance(threshold, bool) or not isinstance(threshold, Real) or math.isnan(threshold):
            raise TypeError(f"threshold must be a number, got {threshold!r}")
        if self._grid.probability and not 0 <= threshold <= 1:
            raise ValueError(
                f"threshold must be a probability in [0, 1] for a model with predict_proba, got {threshold!r}"
            )
        return self._at(self._grid.nearest(float(threshold)))

    def _at(self, first: int) -> "ClassificationEvaluation":
        return ClassificationEvaluation(
            self._noisy, self._grid, first, self.classes_, self.privacy_, self._model, self._units,
            self._chosen,
        )  # fmt: skip

    def best_threshold(self, *, costs: Mapping[str, float] | None = None) -> float:
        """Return the threshold with the least cost in the released table; it costs no privacy.

        Parameters
        ----------
        costs : mapping with keys "fp" and "fn", default=None
            Cost of a false positive and of a false negative, at least 0. None gives both the cost 1:
            the best accuracy.

        Returns
        -------
        float
            An edge of the public grid; give it to `at`. Of the thresholds whose cost is within one standard
            deviation of the noise of the least, it is the one nearest to ``fp / (fp + fn)``, which is right for
            calibrated probabilities, or to the threshold in use for a ``decision_function``.
        """
        given = check_costs(costs)
        first = self._cheapest(given)
        self._chosen.add(first)
        return self._grid.edge(first)

    def _cheapest(self, costs: dict[str, float]) -> int:
        firsts = np.arange(self._grid.n_bins + 1)
        cells = [_cells(self._grid.n_bins, int(first)) for first in firsts]
        questions = np.array([costs["fp"] * fp + costs["fn"] * fn for _, fp, fn, _ in cells])
        found = questions @ self._noisy.nonnegative
        more = questions - questions[found.argmin()]
        noise = np.einsum("ij,ji->i", more, self._noisy.noise(more.T))
        alike = more @ self._noisy.nonnegative <= np.sqrt(np.maximum(noise, 0.0))
        both = costs["fp"] + costs["fn"]
        usual = costs["fp"] / both if self._grid.probability and both > 0.0 else self.threshold
        away = np.abs(firsts - self._grid.nearest(usual))
        return int(np.where(alike, away, math.inf).argmin())

    # ---------------------------------------------------------------- table and curves

    @cached_property
    def table(self) -> Floats:
        return self._by_class(self._noisy.counts)

    @cached_property
    def table_noise_std(self) -> Floats:
        return self._by_class(np.sqrt(np.maximum(np.diag(self._noisy.covariance), 0.0)))

    def _by_class(self, cells: Floats) -> Floats:
        b = self._grid.n_bins
        return np.column_stack((cells[b:], cells[:b]))

    @cached_property
    def thresholds(self) -> Floats:
        return np.array([self._grid.edge(first) for first in self._firsts])

    @property
    def _firsts(self) -> range:
        return range(self._grid.n_bins, -1, -1)

    @cached_property
    def _curves(self) -> dict[str, Floats]:
        """False and true positive rate and precision at all thresholds, with their intervals: (n, 3)."""
        b = self._grid.n_bins
        one = np.repeat((1.0, 0.0), b)
        found: dict[str, list[tuple[float, float, float]]] = {"fpr": [], "tpr": [], "precision": []}
        for first in self._firsts:
            tp, fp, _, _ = _cells(b, first)
            for name, over, under in (
                ("fpr", fp, 1.0 - one), ("tpr", tp, one), ("precision", tp, tp + fp),
            ):  # fmt: skip
                if not under.any():  # nobody is predicted to be of the second class
                    found[name].append((1.0, 0.0, 1.0))
                    continue
                score = self._noisy.ratio(over, under)
                found[name].append((score.value, *score.interval))
        return {name: np.array(rows) for name, rows in found.items()}

    @cached_property
    def fpr(self) -> Floats:
        return _rising(self._curves["fpr"][:, 0])

    @cached_property
    def tpr(self) -> Floats:
        return _rising(self._curves["tpr"][:, 0])

    @cached_property
    def recall(self) -> Floats:
        return self.tpr

    @cached_property
    def precision(self) -> Floats:
        return self._curves["precision"][:, 0]

    @cached_property
    def _calibration(self) -> Floats:
        """Mean score, share of the second class and its interval, in merged bins: (n, 4)."""
        if not self._grid.probability:
            raise ValueError(
                "a calibration curve needs probabilities: the model has no predict_proba, or bins are edges of "
                "decision values"
            )
        return self._noisy.calibration(self._grid.centers)

    @cached_property
    def confusion_matrix(self) -> Floats:
        tp, fp, fn, tn = (float(cells @ self._noisy.counts) for cells in _cells(self._grid.n_bins, self._first))
        return np.array([[tn, fp], [fn, tp]])

    def _about(self) -> str:
        return (
            f"Evaluation of {self._model}: classes {self.classes_.tolist()}, the second is positive; "
            f"{self._grid.n_bins} score bins, {self._units}, threshold {self.threshold:g}, "
            f"{claim_text(self.privacy_)}. "
            '"noise interval": of these records; "interval": of the population'
        )


def check_costs(costs: Mapping[str, float] | None) -> dict[str, float]:
    """Return the costs of false positives and false negatives; None gives both the cost 1."""
    given = {"fp": 1.0, "fn": 1.0} if costs is None else dict(costs)
    if set(given) != {"fp", "fn"} or not all(
        isinstance(c, Real) and not isinstance(c, bool) and 0 <= c < math.inf for c in given.values()
    ):
        raise ValueError(f"costs must be {{'fp': cost, 'fn': cost}}, finite and >= 0, got {costs!r}")
    return given


THRESHOLD_SCORES = frozenset({"accuracy", "balanced_accuracy", "precision", "recall", "specificity", "f1"})


def _cells(n_bins: int, first: int) -> tuple[Floats, Floats, Floats, Floats]:
    """Indicators of true positives, false positives, false negatives and true negatives."""
    upper, zeros = (np.arange(n_bins) >= first).astype(np.float64), np.zeros(n_bins)
    return (
        np.concatenate((upper, zeros)),
        np.concatenate((zeros, upper)),
        np.concatenate((1.0 - upper, zeros)),
        np.concatenate((zeros, 1.0 - upper)),
    )


def _rising(curve: Floats) -> Floats:
    """The nearest curve that never falls, from 0 to 1."""
    from sklearn.isotonic import isotonic_regression

    weights = np.ones(len(curve))
    weights[[0, -1]] = 1e9
    ends = curve.copy()
    ends[0], ends[-1] = 0.0, 1.0
    return np.clip(isotonic_regression(ends, sample_weight=weights), 0.0, 1.0)
