"""The evaluation of a model of three or more classes: three tables in one release, and one for each
class if asked.

A record is in one cell of each of these tables:

* its true and its predicted class;
* the bin of its confidence (the largest probability) x whether the prediction is right;
* the bin of the probability that the model gave its true class;
* with ``ovr=True``, for each class: the bin of that class's probability x whether the record is of that class.

Each table's strategy has sensitivity 1, and j tables that are released together have l2 sensitivity sqrt(j).
Tables for single classes are therefore an option: 10 classes make every score's noise 2.1 times as large.
"""

import math
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri

from skdp.base.declare import parameter
from skdp.base.kinds import flag
from skdp.base.problem import Solution
from skdp.kernels.protocols import Floats, Integers
from skdp.metrics import workloads
from skdp.metrics.evaluation import Evaluation
from skdp.metrics.fits import EvaluationFit, EvaluationProblem
from skdp.metrics.inversion import CLEAR, CONFIDENCE, QUANTILE, Estimate, NoisyCounts, NoisyTable, unbiased_ratios
from skdp.metrics.models import class_codes, classes_of, count_rows, kind_of, name_of, row_scores, score_method
from skdp.metrics.plots import ManyClassPlots
from skdp.metrics.released_score import ReleasedScore, released_score
from skdp.metrics.strategies import GRID, SHIPPED, scaled, strategy
from skdp.privacy import PrivacyReport, PrivacySession
from skdp.privacy.statistics import cell_sums
from skdp.statistics.column_moments import released_once
from skdp.statistics.released_tables import claim_text

(CONFIDENCES,), (PROBABILITIES,) = SHIPPED["confidence"], SHIPPED["probability"]
OF_CLASS = 64  # bins of the table of one class
MOST_CLASSES = 1000  # their confusion matrix has a million cells


class ManyClassEvaluation(Evaluation, ManyClassPlots):
    """Released scores of a model of three or more classes.

    It is a mapping from the name of a score to a `ReleasedScore`. Predictions are the classes of the
    largest probability.

    Attributes
    ----------
    confusion_matrix : ndarray of shape (n_classes, n_classes)
        Estimated counts; rows are true classes, columns predicted ones. Entries may be negative, because
        of the noise.
    confusion_noise_std : float
        Standard deviation of the noise in each entry.
    recall_by_class, precision_by_class : dict of label to ReleasedScore
    roc_auc_by_class : dict of label to ReleasedScore
        One class against the rest; empty unless ``ovr=True`` was asked for.
    prob_true, prob_pred : ndarray
        Calibration of the confidence: the share of right predictions, and the mean confidence, in merged bins.
    classes_ : ndarray of shape (n_classes,)
    privacy_ : PrivacyReport
        The report of all releases together.
    """

    _kind = "a model of three or more classes"
    _instead = (
        "It has confusion_matrix, recall_by_class, precision_by_class and, with evaluate(..., ovr=True), "
        "roc_auc_by_class"
    )

    def __init__(
        self,
        confusion: NoisyCounts,
        confidence: NoisyTable,
        probability: NoisyTable,
        of_class: list[NoisyTable],
        classes: NDArray[np.generic],
        privacy: PrivacyReport,
        model: str,
        units: str,
    ) -> None:
        self._confusion, self._confidence, self._probability = confusion, confidence, probability
        self._of_class, self._model, self._units = of_class, model, units
        self.classes_, self.privacy_ = classes, privacy

    @cached_property
    def _scores(self) -> dict[str, ReleasedScore]:
        right = np.repeat((1.0, 0.0), CONFIDENCES)
        centers = workloads.bin_centers(workloads.logit_edges(PROBABILITIES))
        losses = -np.log(np.clip(centers, workloads.CLIP, 1.0))
        found = {
            "accuracy": self._confidence.ratio(right, np.ones_like(right)),
            "balanced_accuracy": self._mean_of_classes("recall"),
            "f1_macro": self._mean_of_classes("f1"),
            "log_loss": self._probability.ratio(losses, np.ones_like(losses), 0.0, float(losses.max())),
        }
        if self._of_class:
            found["roc_auc_ovr"] = self._mean_area()
        return {name: self._score(score) for name, score in found.items()}

    def _score(self, found: Estimate) -> ReleasedScore:
        return released_score(found, self.privacy_)

    def _line(self, k: int, *, true: bool) -> Floats:
        """Indicator of the cells of one true, or predicted, class."""
        cells = np.zeros((len(self.classes_), len(self.classes_)))
        if true:
            cells[k] = 1.0
        else:
            cells[:, k] = 1.0
        return cells.ravel()

    def _mean_of_classes(self, name: str) -> Estimate:
        """Mean over the classes of recall, or F1, with its gradient."""
        k, noisy = len(self.classes_), self._confusion
        # For one class these are the sum over its line of weights, its squares, and its product with the
        # numerator's weights.
        summed, squares, both, twice = (k, k, 1.0, 1.0)
        if name == "f1":  # twice the right ones over the sum of a row and a column
            summed, squares, both, twice = (2 * k, 2 * k + 2, 4.0, 2.0)
        # A known total takes the mean off the noise of all counts.
        held = 0.0 if noisy.total is None else summed / k**2
        variance = noisy.noise_std**2 * (squares - held * summed)
        covariance = noisy.noise_std**2 * (both - held * twice)
        alone = noisy.noise_std * math.sqrt(k)  # in the number of one class, at most
        true, under = self._sizes(noisy.counts, name)
        clear = bool((true > CLEAR * alone).all() and (under > CLEAR * math.sqrt(max(variance, 0.0))).all())
        table = noisy.counts if clear else noisy.nonnegative
        right, under = np.diag(table.reshape(k, k)), self._sizes(table, name)[1]
        known = under > 0.0
        over = np.where(known, 1.0 / np.where(known, under, 1.0), 0.0)
        part = twice * right * over
        if not clear:
            return Estimate(float(np.clip(part.mean(), 0.0, 1.0)), (0.0, 1.0), (0.0, 1.0))
        gradient = -np.repeat((part * over)[:, None], k, axis=1)
        if name == "f1":
            gradient = gradient + -(part * over)[None, :]
        gradient[np.arange(k), np.arange(k)] += twice * over
        part = unbiased_ratios(twice * right, under, np.full(k, variance), np.full(k, covariance))
        return noisy.by_gradient(float(part.mean()), gradient.ravel() / k)

    def _sizes(self, table: Floats, name: str) -> tuple[Floats, Floats]:
        """The number of units of each class, and the denominator of its recall or F1."""
        k = len(self.classes_)
        true, called = table.reshape(k, k).sum(axis=1), table.reshape(k, k).sum(axis=0)
        return true, true if name == "recall" else true + called

    def _areas(self) -> list[Estimate]:
        ranks = np.tril(np.ones((OF_CLASS, OF_CLASS)), -1) + 0.5 * np.eye(OF_CLASS)
        return [table.pairs(ranks) for table in self._of_class]

    def _mean_area(self) -> Estimate:
        """Mean of the areas of all classes. The noise of tables is independent, so the squares of the lengths on
        each side add up. The records are the same, so for the population the lengths add up. Where an interval
        ends at 0 or 1, values may be cut, and errors are to one side: then both are means of intervals that hold
        for all classes at once. Where a class is not clear, its value is biased, and nothing is known."""
        areas, k = self._areas(), len(self._of_class)
        value = np.array([area.value for area in areas])
        mean, one = float(value.mean()), np.repeat((1.0, 0.0), OF_CLASS)
        if not all(table.clear(one, 1.0 - one) for table in self._of_class):
            return Estimate(mean, (0.0, 1.0), (0.0, 1.0))
        inner, outer = (np.array(ends).T for ends in zip(*((a.noise_interval, a.interval) for a in areas)))
        at_once = float(-ndtri((1.0 - CONFIDENCE) / (2 * k))) / QUANTILE
        cut = bool(inner[0].min() <= 0.0 or inner[1].max() >= 1.0)

        def ends(limits: Floats, independent: bool) -> tuple[float, float]:
            sides = np.abs(limits - value)
            if cut:
                sides = np.minimum(at_once * sides, (value, 1.0 - value))
            lengths = np.linalg.norm(sides, axis=1) if independent else sides.sum(axis=1)
            below, above = (float(length) / k for length in lengths)
            return max(0.0, mean - below), min(1.0, mean + above)

        within, beyond = ends(inner, not cut), ends(outer, False)
        return Estimate(mean, within, (min(within[0], beyond[0]), max(within[1], beyond[1])))

    @cached_property
    def confusion_matrix(self) -> Floats:
        return self._confusion.counts.reshape(len(self.classes_), -1)

    @property
    def confusion_noise_std(self) -> float:
        return self._confusion.noise_std

    def _by_class(self, *, true: bool) -> dict[object, ReleasedScore]:
        k = len(self.classes_)
        found = {}
        for i, label in enumerate(self.classes_.tolist()):
            hit = np.zeros((k, k))
            hit[i, i] = 1.0
            found[label] = self._score(self._confusion.ratio(hit.ravel(), self._line(i, true=true)))
        return found

    @cached_property
    def recall_by_class(self) -> dict[object, ReleasedScore]:
        return self._by_class(true=True)

    @cached_property
    def precision_by_class(self) -> dict[object, ReleasedScore]:
        return self._by_class(true=False)

    @cached_property
    def roc_auc_by_class(self) -> dict[object, ReleasedScore]:
        return {label: self._score(area) for label, area in zip(self.classes_.tolist(), self._areas())}

    @cached_property
    def _calibration(self) -> Floats:
        b = CONFIDENCES
        centers = (np.arange(b) + 0.5) / b
        return self._confidence.calibration(centers)

    def _about(self) -> str:
        more = ", one table for each class" if self._of_class else ""
        return (
            f"Evaluation of {self._model}: {len(self.classes_)} classes{more}, {self._units}, "
            f'{claim_text(self.privacy_)}. "noise interval": of these records; "interval": of the population'
        )


class ManyClassTables(EvaluationFit):
    """The tables of a model of three or more classes."""

    ovr: bool = parameter(flag(), "Whether to release scores of each class.", default=False)

    _purpose = "class tables"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kind_of(self.model)
        if score_method(self.model) != "predict_proba":
            raise TypeError(
                f"{type(self.model).__name__} has no predict_proba, which an evaluation of three or more classes "
                "needs; for labels alone use skdp.metrics.accuracy_score or confusion_matrix"
            )
        if len(classes_of(self.model)) > MOST_CLASSES:
            raise ValueError(
                f"the model has {len(classes_of(self.model))} classes, and an evaluation holds {MOST_CLASSES}; "
                "use skdp.metrics.accuracy_score"
            )

    def read(self, X: object, y: object = None, groups: object = None) -> EvaluationProblem:
        """Find the cells of each row; from here on the record is its cells."""
        count_rows(X, y)
        classes = classes_of(self.model)
        k = len(classes)
        true = class_codes(y, classes)
        scores = row_scores(self.model, "predict_proba", X, k, fixed=self._fixed())
        scores = np.where(np.isnan(scores), 0.0, scores)
        called, rows = scores.argmax(axis=1), np.arange(len(scores))
        sure = np.clip((scores[rows, called] * CONFIDENCES).astype(np.int64), 0, CONFIDENCES - 1)
        edges = _probability_edges(PROBABILITIES)
        own = np.searchsorted(edges, scores[rows, true], side="right")
        columns = [true * k + called, sure + CONFIDENCES * (called != true), own]
        if self.ovr:
            edges = _probability_edges(OF_CLASS)
            columns += [
                np.searchsorted(edges, scores[:, i], side="right") + OF_CLASS * (true != i) for i in range(k)
            ]
        table = np.column_stack(columns).astype(np.float64)
        return EvaluationProblem(self._codes(table, groups), {}, ())

    def solve(self, session: PrivacySession, problem: EvaluationProblem) -> Solution:
        """Release all tables as one vector."""
        records, matrices = problem.records, self._matrices()
        sums = cell_sums(records, matrices, GRID, adjacency=session.adjacency)
        return self._solution(records, *released_once(session, sums, self._purpose))

    def _matrices(self) -> list[Integers]:
        """The strategy of each table; for the confusion matrix it is a multiple of the counts."""
        k, adjacency = len(classes_of(self.model)), self.adjacency
        flat = round(1.0 / (GRID * (math.sqrt(2.0) if adjacency == "replace-one" else 1.0)))
        return [
            np.full(k * k, flat, dtype=np.int64),
            strategy("confidence", CONFIDENCES, adjacency),
            strategy("probability", PROBABILITIES, adjacency),
            *([strategy("table", OF_CLASS, adjacency)] * (k if self.ovr else 0)),
        ]

    def evaluation(self) -> ManyClassEvaluation:
        """The result of the fitted release."""
        flat, *matrices = map(scaled, self._matrices())
        ends = np.cumsum([len(flat), *map(len, matrices)])
        counts, *others = np.split(self.answers_, ends[:-1])
        tables = [
            NoisyTable.solved(matrix, part, self.noise_std_, self.total_) for matrix, part in zip(matrices, others)
        ]
        one = float(flat[0])
        return ManyClassEvaluation(
            NoisyCounts.of(counts / one, self.noise_std_ / one, self.total_),
            tables[0],
            tables[1],
            tables[2:],
            classes_of(self.model),
            self.privacy_,
            name_of(self.model),
            self.units_,
        )


def _probability_edges(n_bins: int) -> Floats:
    return np.asarray(1.0 / (1.0 + np.exp(-workloads.logit_edges(n_bins))))
