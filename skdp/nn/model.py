"""The two kinds of nets: classifiers, and regressors in units of a released range of the targets."""

import math
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp.base.declare import fitted, fixed, parameter
from skdp.base.kinds import described
from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.fitting.columns import check_bounds
from skdp.fitting.predictions import cut_text
from skdp.fitting.quantiles import SMALLEST_SHARE, released_range
from skdp.fitting.recalibrate import Recalibration
from skdp.fitting.scales import grown_share
from skdp.fitting.sizes import REGRESSION_WALK
from skdp.fitting.targets import LabelModel, NumberModel, Problem
from skdp.kernels.protocols import Matrix
from skdp.nn.arrays import Array
from skdp.nn.calibration import plan_scores, released_line, released_scores, scores_of
from skdp.nn.decision import TARGET_QUESTIONS
from skdp.nn.losses import CrossEntropy, SquaredError
from skdp.nn.net_fit import NetFit
from skdp.nn.task import NetTask, Targets, outputs_of
from skdp.privacy import PrivacySession

LARGEST_RANGE = 0.3  # largest part of mu^2 for the range of the targets, if the units are few
CALIBRATION, CALIBRATION_ANSWERS = (0.1, 60)  # least part of mu^2 for the calibration; answers for `grown_share`


class NetClassifier(LabelModel, NetFit):
    """Softmax over the outputs of a net, recalibrated at the end where the budget allows it."""

    class_weight: None = fixed(default=None)
    calibration_: NDArray[np.float64] | None = fitted(
        "ndarray of shape (n_scores + 1, n_scores), or None",
        """Released by the recalibration: the matrix by which the scores of the net are multiplied, and in its last
        row the terms that are added. There is one score a class, and for two classes the second's over the
        first's. None: nothing was recalibrated.""",
    )

    def _loss(self, problem: Problem) -> CrossEntropy:
        return CrossEntropy(len(np.asarray(problem.fitted["classes_"])))

    def _recalibration(self, session: PrivacySession, problem: Problem) -> Recalibration | None:
        return plan_scores(session, problem.records, len(np.asarray(problem.fitted["classes_"])))

    def _after(self, session: PrivacySession, problem: Problem, task: NetTask, flat: Array) -> dict[str, object]:
        last = problem.decision.details.recalibration
        if last is None:
            return {"calibration_": None}
        return {"calibration_": released_scores(session, last, problem.records, task, flat)}

    def _scores(self, X: object) -> NDArray[np.float64]:
        scores = scores_of(self._outputs(X))
        if self.calibration_ is not None:
            scores = scores @ self.calibration_[:-1] + self.calibration_[-1]
        return scores[:, 0] if scores.shape[1] == 1 else scores

    def _score_of(self, task: NetTask, X: Matrix, y: np.ndarray, theta: NDArray[np.float64]) -> float:
        """Accuracy on the public validation data."""
        found = outputs_of(task.network, task.whole(theta), task.inputs, X)
        return float(np.mean(found.argmax(axis=1) == y))


def _ends(targets: Targets, line: tuple[float, float]) -> tuple[float, float]:
    """The least and the largest prediction of outputs that are clipped to [-1, 1]."""
    slope, shift = line
    low, high = sorted(float(end) for end in targets.back(shift + np.array([-slope, slope])))
    return low, high


def _check_range(name: str, bounds: object) -> None:
    if isinstance(bounds, str):
        if bounds != "auto":
            raise ValueError(f"{name} must be 'auto' or (low, high), got {bounds!r}")
        return
    wrong = f"{name} must be 'auto' or (low, high), two finite numbers, low < high"
    try:
        ends = check_bounds(bounds)
    except (TypeError, ValueError) as error:
        raise type(error)(wrong) from None
    if ends is None or any(end.ndim for end in ends):
        raise TypeError(wrong)


class NetRegressor(NumberModel, NetFit):
    """One output, in units of the half-width of the targets about their centre."""

    y_bounds: tuple[float, float] | Literal["auto"] = parameter(
        described('tuple of (float, float) or "auto"', _check_range),
        """Public range (low, high) to which targets are clipped. "auto" releases a median and a quantile of
        the distances from it. It needs a spread of at least about a ten-thousandth of the targets' size: of
        targets from 99,998 to 100,002 subtract 100,000, or give the range.""",
        default="auto",
    )
    bounded: bool = fixed(default=False)  # outputs are clipped, so all predictions lie within bounds
    _walk = REGRESSION_WALK
    shrinkage_: float = fitted(is_set=False)
    target_center_: float = fitted("float", "The centre of y, given or released.")
    line_: tuple[float, float] = fitted(
        "tuple of (float, float)", "Released slope and shift of the predictions, in units of the half-width."
    )

    def _loss(self, problem: Problem) -> SquaredError:
        return SquaredError()

    def _shares(self, session: PrivacySession, problem: Problem) -> dict[str, float]:
        shares, n_units = super()._shares(session, problem), problem.records.n_units
        budget = BudgetSplit(session)
        if isinstance(self.y_bounds, str):
            shares["targets"] = grown_share(
                budget, n_units, TARGET_QUESTIONS, SMALLEST_SHARE, largest=LARGEST_RANGE
            )
        if not session.exact:
            shares["calibration"] = grown_share(budget, n_units, CALIBRATION_ANSWERS, CALIBRATION)
        return shares

    def _targets(self, session: PrivacySession, problem: Problem) -> Targets:
        shares = problem.decision.details.shares
        if "targets" in shares:
            found = released_range(BudgetSplit(session, shares["targets"]), problem.records)
            return Targets(found.center, found.bound)
        low, high = (float(end) for end in self.y_bounds)
        return Targets(0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low)

    def _after(self, session: PrivacySession, problem: Problem, task: NetTask, flat: Array) -> dict[str, object]:
        line, share = (1.0, 0.0), problem.decision.details.shares.get("calibration")
        if share is not None:
            line = released_line(session, problem.records, task, flat, share)
        return {"target_center_": task.targets.center, "target_scale_": task.targets.half_width, "line_": line}

    @property  # type: ignore[misc]
    def prediction_bounds_(self) -> tuple[float, float]:  # type: ignore[override]
        """The ends between which all predictions lie: released or public numbers."""
        check_is_fitted(self)
        return _ends(Targets(self.target_center_, self.target_scale_), self.line_)

    def _post_processing(self, solution: Solution) -> tuple[str, ...]:
        found: Any = solution.attributes
        targets = Targets(found["target_center_"], found["target_scale_"])
        return (*super()._post_processing(solution), cut_text(_ends(targets, found["line_"])))

    def _predicted(self, outputs: Array, targets: Targets, line: tuple[float, float]) -> NDArray[np.float64]:
        slope, shift = line
        return targets.back(slope * np.clip(outputs[:, 0], -1.0, 1.0) + shift)

    def _scores(self, X: object) -> NDArray[np.float64]:
        outputs = self._outputs(X)
        return self._predicted(outputs, Targets(self.target_center_, self.target_scale_), self.line_)

    def _score_of(self, task: NetTask, X: Matrix, y: np.ndarray, theta: NDArray[np.float64]) -> float:
        """R^2 on the public validation data."""
        found = outputs_of(task.network, task.whole(theta), task.inputs, X)
        away, spread = y - self._predicted(found, task.targets, (1.0, 0.0)), np.var(y)
        return 1.0 - float(np.mean(away**2) / spread) if spread else -math.inf
