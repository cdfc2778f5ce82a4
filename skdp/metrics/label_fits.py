"""The fits behind single scores of labels and probabilities: each releases the statistic with the least noise."""

import functools
import math
from dataclasses import replace
from numbers import Integral
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from skdp.base.declare import parameter
from skdp.base.kinds import choice, described
from skdp.base.plan import BudgetSplit, Decision
from skdp.base.problem import Solution
from skdp.fitting.utility import Released, released_warnings
from skdp.kernels.protocols import Floats, Integers
from skdp.metrics import workloads
from skdp.metrics.fits import EvaluationFit, EvaluationProblem, TwoClassTable
from skdp.metrics.inversion import QUANTILE, Estimate, NoisyCounts, NoisyTable, unbiased_ratios
from skdp.metrics.models import class_codes, count_rows, label_type
from skdp.metrics.strategies import GRID, optimal, rounded, scaled
from skdp.privacy import PrivacySession
from skdp.privacy.statistics import cell_sums
from skdp.statistics.column_moments import released_once

MOST_LABELS = 100  # of a balanced accuracy: the strategy for more takes many seconds
COUNTED = 0.2  # share of mu^2 that releases the number of units, where it is private; a choice


def check_labels(labels: object, *, two: bool = False) -> NDArray[np.generic]:
    """Return public labels, in the order given."""
    try:
        found = np.asarray(labels)
    except ValueError:
        found = np.empty(0)
    if found.ndim != 1 or len(found) < 2 or len(set(found.tolist())) < len(found) or (two and len(found) > 2):
        many = "two" if two else "at least two"
        raise ValueError(
            f"labels must be {many} different public labels, for example model.classes_, got {labels!r}: "
            "labels are never taken from y_true"
        )
    return found


LABELS: object = parameter(
    described("sequence of labels"), "The public label set, in the order of the columns.", default=None
)
LABELS_OF_TWO: object = parameter(
    described("pair of labels"), "The public labels, the label of the score last.", default=(0, 1)
)


class GivenAnswers(EvaluationFit):
    """A statistic of true labels and of a model's answers."""

    labels: object = LABELS

    _record_checks = "none: no value of a label or a score raises"
    _function = ""  # that runs this fit

    @property
    def _ledger_name(self) -> str:
        return self._function

    def _assumptions(self, problem: EvaluationProblem) -> tuple[str, ...]:
        return (
            *super(EvaluationFit, self)._assumptions(problem),
            "each row's prediction was made from this row alone, by a model that is released or was fitted to "
            "other people",
        )


class RightShare(GivenAnswers):
    """The share of rows whose predicted label is the true one."""

    _function = "accuracy_score"
    _purpose = "right predictions"

    def read(self, X: object, y: object = None, groups: object = None) -> EvaluationProblem:
        """Compare each pair of labels."""
        count_rows(X, y)
        if self.labels is None:
            right = _equal(y, X)
        else:
            labels = check_labels(self.labels)
            right = class_codes(X, labels) == class_codes(y, labels)
        return EvaluationProblem(self._codes(right.astype(np.float64)[:, None], groups), {}, ())

    def solve(self, session: PrivacySession, problem: EvaluationProblem) -> Solution:
        """Release the number of right rows."""
        records = problem.records
        edges = np.array([[0.5, 1.5]])
        total = self._total(records)
        if total is None:  # right and wrong rows, because their sum is private too
            edges = np.array([[-0.5, 0.5, 1.5]])
        counts = records.histogram(edges, adjacency=session.adjacency)
        found, noise = released_once(session, counts, self._purpose)
        return self._solution(records, found[0], noise)

    def score(self) -> Estimate:
        """The share, from released numbers."""
        if self.total_ is not None:
            return share_of(float(self.answers_[0]), self.noise_std_, self.total_)
        counts = NoisyCounts.of(self.answers_, self.noise_std_, None)
        return counts.ratio(np.array([0.0, 1.0]), np.ones(2))


def share_of(count: float, noise: float, total: float) -> Estimate:
    """Return a share of a public number of units from a noisy count, with its intervals.

    The one for the population inverts ``(count - a n)^2 <= q^2 (noise^2 + n a (1 - a))``: Wilson's, with noise.
    """
    from skdp.metrics.inversion import accepted

    value, half = count / total, QUANTILE * noise / total
    within = min(max(value - half, 0.0), 1.0), min(max(value + half, 0.0), 1.0)
    q2 = QUANTILE**2
    beyond = accepted(
        total * total + q2 * total, -2.0 * count * total - q2 * total, count * count - q2 * noise * noise,
        0.0, 1.0,
    )  # fmt: skip
    beyond = min(beyond[0], within[0]), max(beyond[1], within[1])
    return Estimate(min(max(value, 0.0), 1.0), within, beyond)


class LossMean(GivenAnswers):
    """The mean of a loss of the true label and the probabilities of a row: log loss or Brier score."""

    loss: str = parameter(choice("log_loss", "brier"), "Name of the loss.", default="log_loss")

    @property
    def _ledger_name(self) -> str:
        return "log_loss" if self.loss == "log_loss" else "brier_score_loss"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_labels(self.labels)

    def read(self, X: object, y: object = None, groups: object = None) -> EvaluationProblem:
        """Compute the loss of each row from this row; a probability that is no number counts as 0."""
        count_rows(X, y)
        labels = check_labels(self.labels)
        table = _probabilities(X, len(labels))
        codes = class_codes(y, labels)
        own = np.take_along_axis(table, codes[:, None], axis=1)[:, 0]
        if self.loss == "log_loss":
            clip = workloads.CLIP
            losses = -np.log(np.clip(own, clip, 1.0 - clip))
        elif len(labels) == 2:
            losses = (1.0 - own) ** 2
        else:
            losses = (table**2).sum(axis=1) - 2.0 * own + 1.0
        return EvaluationProblem(self._codes(losses[:, None], groups), {}, ())

    @property
    def _range(self) -> tuple[float, float]:
        if self.loss == "log_loss":
            return -math.log1p(-workloads.CLIP), -math.log(workloads.CLIP)
        return 0.0, 1.0 if len(check_labels(self.labels)) == 2 else 2.0

    @property
    def _window(self) -> tuple[float, float]:
        """Middle and half width of the range."""
        low, high = self._range
        return 0.5 * (low + high), 0.5 * (high - low)

    def _decide(self, session: PrivacySession, problem: EvaluationProblem) -> Decision:
        counted = COUNTED if self._total(problem.records) is None else 0.0
        losses, units = BudgetSplit(session).split(losses=None, units=counted)
        return Decision(steps=(*losses.step("losses"), *units.step("units")), details=counted)

    def solve(self, session: PrivacySession, problem: EvaluationProblem) -> Solution:
        """Release the sum of the losses, and under a private number of units that number too."""
        records, counted = problem.records, cast("float", problem.decision.details)
        losses, units = BudgetSplit(session).split(losses=None, units=counted)
        center, half_width = self._window
        sums = records.column_sums(center, half_width)
        plan = losses.plan_gaussian(1, purpose="losses")
        answers, noise = [session.gaussian(sums, plan)], [session.noise_std(sums, plan)]
        if counted:
            everything = np.array([[-math.inf, math.inf]])
            counts = records.histogram(everything, adjacency=session.adjacency)
            plan = units.plan_gaussian(1, purpose="units")
            answers.append(session.gaussian(counts, plan)[0])
            noise.append(session.noise_std(counts, plan))
        return self._solution(records, np.concatenate(answers), np.array(noise))

    def score(self) -> Estimate:
        """The mean, from released numbers."""
        (low, high), (center, half_width) = self._range, self._window
        total = max(float(self.answers_[1]), 1.0) if self.total_ is None else self.total_
        counted = float(self.noise_std_[1]) if self.total_ is None else 0.0
        mean = float(self.answers_[0]) / total
        value = min(max(center + half_width * mean, low), high)
        noise = half_width * math.hypot(float(self.noise_std_[0]), mean * counted) / total
        # Numbers in [-1, 1] with this mean have a variance of at most 1 - mean^2.
        spread = half_width * math.sqrt(max(0.0, 1.0 - mean * mean) / total)
        within, beyond = (
            (max(low, value - QUANTILE * sd), min(high, value + QUANTILE * sd))
            for sd in (noise, math.hypot(noise, spread))
        )
        return Estimate(value, within, beyond)


class ConfusionCounts(GivenAnswers):
    """The number of rows of each pair of a true and a predicted label."""

    _function = "confusion_matrix"
    _purpose = "confusion matrix"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_labels(self.labels)

    def read(self, X: object, y: object = None, groups: object = None) -> EvaluationProblem:
        """Find the cell of each row; a label that is missing or unknown counts as the first."""
        count_rows(X, y)
        labels = check_labels(self.labels)
        cells = class_codes(y, labels) * len(labels) + class_codes(X, labels)
        return EvaluationProblem(self._codes(cells.astype(np.float64)[:, None], groups), {}, ())

    def solve(self, session: PrivacySession, problem: EvaluationProblem) -> Solution:
        """Release all counts together."""
        k = len(check_labels(self.labels))
        flat = np.full(k * k, round(1.0 / GRID), dtype=np.int64)
        sums = cell_sums(problem.records, [flat], GRID, adjacency=session.adjacency)
        counts, noise = released_once(session, sums, self._purpose)
        return self._solution(problem.records, counts.reshape(k, k), noise)


class BalancedAccuracy(ConfusionCounts):
    """The mean over the labels of the share of right rows."""

    _function = "balanced_accuracy_score"
    _purpose = "right predictions by label"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if len(check_labels(self.labels)) > MOST_LABELS:
            raise ValueError(
                f"balanced_accuracy_score takes at most {MOST_LABELS} labels, because its strategy is computed "
                "for their number; for more use confusion_matrix"
            )

    def read(self, X: object, y: object = None, groups: object = None) -> EvaluationProblem:
        """Find the cell (true label x right or wrong) of each row."""
        count_rows(X, y)
        labels = check_labels(self.labels)
        true = class_codes(y, labels)
        cells = true + len(labels) * (true != class_codes(X, labels))
        return EvaluationProblem(self._codes(cells.astype(np.float64)[:, None], groups), {}, ())

    def solve(self, session: PrivacySession, problem: EvaluationProblem) -> Solution:
        """Release the best strategy's answers about the right and wrong rows of each label."""
        records, k = problem.records, len(check_labels(self.labels))
        matrix = _balanced_strategy(k, session.adjacency == "replace-one")
        sums = cell_sums(records, [matrix], GRID, adjacency=session.adjacency)
        return self._solution(records, *released_once(session, sums, self._purpose))

    def score(self) -> Estimate:
        """The mean, from released numbers."""
        k = len(check_labels(self.labels))
        matrix = scaled(_balanced_strategy(k, self.adjacency == "replace-one"))
        noisy = NoisyTable.solved(matrix, self.answers_, self.noise_std_, self.total_)
        if k > 2:
            return _mean_recall(noisy, k)
        # Cells: right of label 0, right of label 1, wrong of label 0, wrong of label 1.
        order = np.array([1, 3, 0, 2])
        halves = NoisyTable(
            noisy.counts[order], noisy.covariance[np.ix_(order, order)], noisy.total,
            noisy.strategy[:, order], noisy.answers,
        )  # fmt: skip
        right = np.array([1.0, 0.0])
        return halves.pairs(0.5 * (right[:, None] + right[None, :]))


def _mean_recall(noisy: NoisyTable, k: int) -> Estimate:
    first, lines = np.eye(k, 2 * k), np.tile(np.eye(k), 2)
    clear = noisy.clear(*lines)
    counts = noisy.counts if clear else noisy.nonnegative
    right, wrong = counts[:k], counts[k:]
    units = np.maximum(right + wrong, 1e-300)
    part = np.where(right + wrong > 0.0, right / units, 0.0)
    known = np.where(right + wrong > 0.0, 1.0 / units, 0.0)
    gradient = np.concatenate(((1.0 - part) * known, -part * known)) / k
    if clear:
        moved = noisy.noise(lines.T)
        variance, covariance = ((rows * moved.T).sum(axis=1) for rows in (lines, first))
        part = unbiased_ratios(right, units, variance, covariance)
    return noisy.by_gradient(float(part.mean()), gradient, *lines)


@functools.lru_cache(maxsize=16)
def _balanced_strategy(k: int, replaced: bool) -> Integers:
    """For the gradients of the mean recall under a public family: equal classes, one class rare or frequent."""
    questions = []
    for rare in range(-1, k):
        for share in (0.02, 0.1) if rare >= 0 else (1.0 / k,):
            units = np.full(k, (1.0 - share) / max(k - 1, 1))
            units[rare] = share
            right = 0.8
            gradient = np.concatenate(((1.0 - right) / units, -right / units))
            questions.append(gradient / (gradient.max() - gradient.min()))
    lines = np.tile(np.eye(k), 2)
    stacked = np.array(questions)
    workload = stacked.T @ stacked / len(stacked) * 6.0 + 0.5 * lines.T @ lines / k + 0.05 * np.eye(2 * k)
    return rounded(optimal(workload, replaced=replaced, rounds=100)[0])


class GivenScores(TwoClassTable):
    """The table (score bin x label) of given scores."""

    labels: object = LABELS_OF_TWO

    _record_checks = "none: no value of a label or a score raises"

    def _check_model(self) -> str:
        check_labels(self.labels, two=True)
        # Given scores are probabilities, unless there are edges of other numbers.
        if isinstance(self.bins, str | int):
            return "predict_proba"
        edges = np.asarray(self.bins, dtype=np.float64)
        return "predict_proba" if bool(((edges > 0) & (edges < 1)).all()) else "decision_function"

    def _labels(self) -> NDArray[np.generic]:
        return check_labels(self.labels, two=True)

    def solve(self, session: PrivacySession, problem: EvaluationProblem) -> Solution:
        found = super().solve(session, problem)
        if not isinstance(self.bins, str | Integral):
            return found
        shown = cast("dict[str, Any]", found.attributes)
        matrix = scaled(self._matrix(shown["effective_n_"]))
        table = NoisyTable.solved(matrix, shown["answers_"], shown["noise_std_"], shown["total_"])
        outer = np.zeros(matrix.shape[1])
        outer[[0, matrix.shape[1] // 2 - 1, matrix.shape[1] // 2, -1]] = 1.0
        outside = table.ratio(outer, np.ones_like(outer)).noise_interval[0]
        return replace(found, warnings=released_warnings(Released(outside=outside)))

    def _usual_threshold(self, plain: float) -> float:
        return plain

    def _with_threshold(self, edges: Floats, at: float) -> Floats:
        return edges  # an area needs no threshold

    def _scores(self, X: object) -> Floats:
        return _numbers(X, "y_score")

    _function = "roc_auc_score"
    _ledger_name = GivenAnswers._ledger_name
    _assumptions = GivenAnswers._assumptions


def _numbers(given: object, name: str) -> Floats:
    found = _typed_numbers(given)
    if found is None or found.ndim not in (1, 2) or (found.ndim == 2 and found.shape[1] != 1):
        raise ValueError(f"{name} must be a column of numbers, got {_described(given)}")
    return found.reshape(len(found))


def _typed_numbers(given: object) -> Floats | None:
    """Scores as float64, or None where the type of their container, which is public, is not one of numbers.

    A container without a type, such as a list, is read cell by cell: a cell that is no number is NaN, and nothing
    raises.
    """
    from skdp.base.cells import as_cells, is_untyped, number

    if label_type(given) == "text":
        return None
    cells = as_cells(given)
    if not is_untyped(cells):
        table = np.asarray(cells)
        return table.astype(np.float64) if table.dtype.kind in "biuf" else None

    def plain(cell: object) -> float:
        try:
            return number(cell)
        except (TypeError, ValueError, OverflowError):
            return math.nan

    flat = np.fromiter(map(plain, cells.ravel()), dtype=np.float64, count=cells.size)
    return flat.reshape(cells.shape)


def _described(given: Any) -> str:
    """The public type and the number of columns of an argument."""
    dtype = getattr(given, "dtype", None)
    kind = type(given).__name__ if dtype is None else str(dtype)
    return f"{kind} of {np.ndim(given)} dimensions"


def _probabilities(given: object, n_classes: int) -> Floats:
    """The probability of each class, from a table, or for two classes from a column of the second one's."""
    found = _typed_numbers(given)
    if found is None or found.ndim not in (1, 2):
        raise ValueError(f"y_prob must be a column or a table of numbers, got {_described(given)}")
    if found.ndim == 2 and found.shape[1] == 1:
        found = found[:, 0]
    if found.ndim == 1:
        if n_classes != 2:
            raise ValueError(f"y_prob must have a column for each of the {n_classes} labels")
        found = np.column_stack((1.0 - found, found))
    if found.shape[1] != n_classes:
        raise ValueError(
            f"y_prob has {found.shape[1]} columns, and labels= has {n_classes} labels: give the labels of the "
            f"columns"
        )
    return np.where(np.isnan(found), 0.0, np.clip(found, 0.0, 1.0))


def _equal(y_true: Any, y_pred: Any) -> NDArray[np.bool_]:
    """Whether two columns of labels agree in each row; missing labels agree with none."""
    from skdp.base.cells import as_cells, is_missing, python_number

    if {label_type(y_true), label_type(y_pred)} == {"number", "text"}:
        raise ValueError(
            f"y_true holds {y_true.dtype} and y_pred holds {y_pred.dtype}: no label would be equal. Give both the "
            "same type"
        )
    a, b = (np.asarray(as_cells(column)) for column in (y_true, y_pred))
    if a.ndim != 1 or b.ndim != 1:
        a, b = (x[:, 0] if x.ndim == 2 and x.shape[1] == 1 else x for x in (a, b))
    if a.ndim != 1 or b.ndim != 1:
        raise ValueError("y_true and y_pred must be columns of labels")
    numbers = "biuf"
    if a.dtype.kind in numbers and b.dtype.kind in numbers:
        return np.asarray(a == b)
    if a.dtype.kind in "US" and b.dtype.kind in "US" and a.dtype.kind == b.dtype.kind:
        return np.asarray(a == b)

    def same(one: object, other: object) -> bool:
        if is_missing(one) or is_missing(other):
            return False
        one, other = python_number(one), python_number(other)
        try:
            hash((one, other))
        except TypeError:  # a cell that cannot be hashed is no label; arrays would raise when compared
            return False
        return bool(one == other)

    return np.fromiter(map(same, a.tolist(), b.tolist()), dtype=bool, count=len(a))
