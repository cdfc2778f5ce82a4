"""Gradient descent with an adaptive privacy budget (DP-AGD, Lee & Kifer 2018).

A step releases the gradient and then chooses, privately, the distance to go along it, among a few that include 0.
If 0 wins, the gradient was too noisy. It is measured again with more of the budget, both measurements are averaged
by their inverse variances, and all later gradients are released that precisely. Because releases decide the number
of repetitions, the session holds a total in mu^2 and admits each release before it happens (a filter). The claim
is the total.
"""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from skdp._docs import document
from skdp.base.declare import changed, fitted, fixed, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import real
from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.closing import LinearDecision
from skdp.fitting.loop import NoisyGradient, square
from skdp.fitting.parameters import Auto, AutoInt, ClassLoss, Sampling
from skdp.fitting.start import Start, StepPlan, StepSettings, begin, scales_and_steps
from skdp.fitting.stochastic import StochasticFit
from skdp.fitting.targets import LabelModel, Problem
from skdp.fitting.task import NO_PENALTY, Task, given
from skdp.privacy.statistics import mean_losses

# All chosen on hold-outs of the training data of a9a, ijcnn1 and MNIST, near the published values.
STEPS = 30  # steps that the budget would hold if no gradient were measured again
CHOICE = 0.25  # part of a step's budget that chooses the distance
GROWTH = 0.1  # part of a gradient's budget that a second measurement costs
CANDIDATES = 5  # distances besides 0, evenly spaced
REACH = 2.0  # largest first distance, in sqrt(outputs) * gradient norm / curvature
EVERY, LONGER = 5, 1.1  # every 5 steps the largest distance becomes 1.1 times the largest chosen
SHORTER = 0.8  # factor of the largest distance when a choice is lost
LOSS_BOUND = 3.0  # in losses of the zero model
_LARGEST_GAP = 2.0**20  # larger differences of penalties are cut to this number of loss bounds
_ALMOST_ALL = 1.0 - 2.0**-30  # part that is spent, so that rounded shares do not exceed the total


class StepCosts:
    """The share of a session's mu^2 that is left, and the costs of a gradient and of a choice.

    It copies the account of the session's filter, so that the run ends before a release is refused.

    Parameters
    ----------
    share : float
        Of the session's mu^2, for all steps together.
    steps : int
        The first gradient and choice together cost ``share / steps``.
    """

    def __init__(self, share: float, steps: int) -> None:
        self.left = share * _ALMOST_ALL  # `holds` allows a smaller excess
        self.choice = CHOICE * self.left / steps
        self.gradient = (1.0 - CHOICE) * self.left / steps

    def holds(self, *costs: float) -> bool:
        """Whether all of ``costs`` can be paid."""
        return self.left * (1.0 + 2.0**-40) >= math.fsum(costs)

    def spend_the_rest(self) -> None:
        """Let the gradient of the last step cost all that its choice leaves."""
        self.gradient = self.left - self.choice

    def pay(self, cost: float) -> float:
        """Take ``cost`` out and return it."""
        self.left -= cost
        return cost


@dataclass(frozen=True)
class AdaptiveSettings(StepSettings):
    """Parameters of the estimator; None where the fit finds the number.

    ``max_iter`` gives the first step 1 / max_iter of the budget. ``learning_rate`` is the largest distance
    that the first steps may go. A unit's loss is clipped to [0, ``loss_bound``] where distances are compared.
    """

    loss_bound: float | None


def planned_descent(task: Task, settings: AdaptiveSettings) -> LinearDecision:
    """Divide the budget between the scales and the steps; how many there will be, releases decide."""
    scales, rest = scales_and_steps(task, settings)
    steps = settings.max_iter or STEPS
    _require_feasible(task.budget, StepCosts(rest.share, steps), task.theta.size)
    most = None if settings.max_iter is None else f"at most {settings.max_iter}"
    plan = StepPlan(settings, steps, scales.share)
    return plan.decision(
        task, rest.step("gradient and distance", None), n_iter=most, loss_bound=settings.loss_bound
    )


def adaptive_descent(task: Task, plan: StepPlan[AdaptiveSettings]) -> Solution:
    """Take steps until the budget does not hold another one, or ``max_iter`` of them."""
    settings, loss = plan.settings, task.loss
    half_width, bound = settings.learning_rate, settings.loss_bound
    _, rest = plan.split(task.budget)
    costs = StepCosts(rest.share, plan.n_iter)
    start = begin(task, plan)
    if half_width is None:
        downhill = start.scales.gradient * start.rows_per_unit / start.curvature
        half_width = REACH * math.sqrt(loss.n_outputs) * downhill
    if bound is None:
        assert loss.start_value is not None  # of classification
        bound = LOSS_BOUND * loss.start_value * start.rows_per_unit
    line = _Line(start, costs, float(bound), float(half_width))
    point = start.task.theta
    most = settings.max_iter or math.inf
    distances: list[float] = []
    # Not `descend`: releases decide how many steps the budget holds, and a step chooses its own length.
    while (
        (not distances or distances[-1] > 0)
        and len(distances) < most
        and costs.holds(costs.gradient, costs.choice)
    ):
        last = len(distances) + 1 == most
        if last or not costs.holds(*2 * (costs.gradient, costs.choice)):
            costs.spend_the_rest()
        distance, point = line.step(point)
        distances.append(distance)
        start.task.show(len(distances) - 1, point)
        if len(distances) % EVERY == 0:
            line.half_width = LONGER * max(distances[-EVERY:])
    return Solution(
        start.task.to_user(point),
        len(distances),
        {
            "learning_rate_": float(half_width),
            "last_distance_": distances[-1],
            "clip_norm_": start.clip_norm,
            "loss_bound_": float(bound),
        },
    )


class _Line:
    """One step: a gradient, and a distance along it; everything it returns is released."""

    def __init__(self, start: Start, costs: StepCosts, loss_bound: float, half_width: float) -> None:
        self._task, self._clip = start.task, start.clip_norm
        self._costs, self._bound = costs, loss_bound
        self.half_width = half_width

    def step(self, point: np.ndarray) -> tuple[float, np.ndarray]:
        """Return the distance that was chosen, 0 where the budget ended before, and the point there."""
        costs = self._costs
        gradient = self._measure(point, costs.gradient)
        while True:
            distance, moved = self._choose(point, gradient)
            extra = GROWTH * costs.gradient
            if distance > 0 or not costs.holds(extra, costs.choice):
                return distance, moved
            self.half_width *= SHORTER
            again = self._measure(point, extra)
            # The weights are inverse variances, which are in proportion to the cost.
            gradient = (costs.gradient * gradient + extra * again) / (costs.gradient + extra)
            costs.gradient += extra

    def _measure(self, point: np.ndarray, share: float) -> np.ndarray:
        plan = self._task.budget.plan_gaussian(1, self._costs.pay(share), purpose="gradient")
        loss_alone = replace(self._task, penalty=NO_PENALTY)
        return NoisyGradient(loss_alone, plan, self._clip)(point, 0)[0]

    def _choose(self, point: np.ndarray, gradient: np.ndarray) -> tuple[float, np.ndarray]:
        task = self._task
        direction = gradient + task.penalty.gradient(point)
        size = math.sqrt(square(direction))
        distances = self.half_width * np.arange(CANDIDATES + 1) / CANDIDATES
        points = np.stack([point - far / max(size, 1e-300) * direction for far in distances])
        with np.errstate(over="ignore", invalid="ignore"):
            values = [task.penalty.value(each) for each in points]
        # A penalty that is not finite in float64 counts as the largest.
        public = np.array([value if value < 1e100 else 1e100 for value in values])
        public = np.minimum(public - public.min(), _LARGEST_GAP * self._bound)
        losses = mean_losses(task.records, task.loss, points, self._bound)
        epsilon = task.budget.selection_epsilon(1, self._costs.pay(self._costs.choice))
        scores = (-losses).shifted(-public)
        best = int(task.session.gumbel_top_k(scores, 1, epsilon, purpose="distance")[0])
        return float(distances[best]), points[best]


def _require_feasible(budget: BudgetSplit, costs: StepCosts, size: int) -> None:
    """Refuse a fit whose sampling error the budget cannot hold, before the first release.

    Every gradient is followed by a choice, so there are at most as many of each as choices can be paid; the error
    of a choice is the error of 128 Gaussian values.
    """
    most = math.ceil(costs.left / costs.choice)
    budget.require_feasible(size + 128, most, costs.gradient * most)


@document()
class DPAGDClassifier(StochasticFit, LabelModel, PrivateFit[Problem]):
    """Logistic or softmax regression by private gradient descent with an adaptive budget.

    DP-AGD of [Lee2018]_, also in section 4.7.1 of [Wang2021]_. Each step releases a noisy
    full gradient and then chooses privately the distance to go along it. If the choice is to stay, the gradient is
    measured again with more budget.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPGDClassifier : A fixed number of steps.

    Notes
    -----
    **Privacy.** Replacing one record (or group) moves the mean gradient by at most ``2 clip_norm / n`` in l2
    norm and a mean loss by at most ``Delta = loss_bound / n``. Under zero-out and add-remove both are half of
    that. A gradient is a Gaussian release. A distance is chosen by Gumbel noise of scale ``2 Delta / eps0`` on
    mean losses, which is an eps0-bounded-range choice. Averaging two measurements by their inverse variances
    is post-processing.

    How often a gradient is measured again follows from released values, so the budget is spent adaptively. A
    privacy filter makes this safe, by the theorem of [Smith2022]_: the total in mu^2 is fixed first, and a release
    that it does not hold is refused before anything is drawn. The claim is the total, even if less was spent.

    {privacy.unprotected}

    References
    ----------
    .. [Lee2018]
    .. [Smith2022]
    .. [Wang2021] Section 4.7.1.

    Examples
    --------
    >>> from skdp import DPAGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPAGDClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_ >= 1, model.privacy_.epsilon
    ((1, 20), True, 2.0)
    """

    _no_blocks: ClassVar[str | None] = "it is a published method that is kept for comparison; take DPGDClassifier"

    loss: ClassLoss = parameters.CLASS_LOSS
    max_iter = changed(
        text="""Largest number of steps. The first step gets 1 / max_iter of the budget; "auto" gives it 1 / 30.
        The fit ends when the budget does not hold another step."""
    )
    learning_rate = changed(
        text="""Largest distance that the first steps may go. Five distances, evenly spaced up to it, are compared
        with 0. After every fifth step it becomes 1.1 times the largest distance that the last five steps chose.
        "auto" follows from the released median row norm."""
    )
    loss_bound: Auto = parameter(
        real(low=0, strict=True, high=1e100, word="auto"),
        """The loss of one record (or group) is clipped to [0, loss_bound] when distances are compared. "auto" is
        three times the loss of the zero model: ``3 log(n_classes)``. A loss of your own then needs a
        ``start_value``.""",
        default="auto",
    )
    clip_norm: Auto = parameters.DESCENT_CLIP_NORM
    batch_size: AutoInt = fixed(default="auto")  # full batches, so the fit keeps its mu
    sampling: Sampling = fixed(default="poisson")
    n_iter_: int = fitted("int", "Number of steps. It depends on released values only.")
    learning_rate_: float = fitted(
        "float", 'The largest distance of the first steps, given or computed by "auto".'
    )
    last_distance_: float = fitted(
        "float", "The distance of the last step. It is 0 if the last choice was to stay."
    )
    loss_bound_: float = fitted("float", 'The loss bound given, or the one that "auto" became.')

    _planned = staticmethod(planned_descent)
    _algorithm = staticmethod(adaptive_descent)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if given(self.loss_bound) is None and getattr(self.loss, "start_value", 0.0) is None:
            raise ValueError(
                "loss_bound='auto' is three times the loss of the zero model, and your loss has no start_value: "
                "give loss_bound as a number, or the loss a start_value"
            )

    def _settings(self) -> AdaptiveSettings:
        return AdaptiveSettings(**self._numbers("max_iter", "learning_rate", "clip_norm", "loss_bound"))
