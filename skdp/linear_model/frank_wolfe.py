"""Private Frank-Wolfe over the l1 ball (Talwar, Thakurta & Zhang 2015), sparse where the data are.

Each step draws a vertex +-radius e_j by the exponential mechanism with the scores -+ (mean gradient)_j and moves
there by 2/(t + 2). Scores are kept up to date lazily after Raff, Khanna & Lu (2023).

Privacy: rows are clipped in the sup norm, so a replaced record moves a score by at most Delta = 2 clip / n. One
choice by Gumbel noise of scale 2 Delta / epsilon is epsilon-bounded-range. For counts to which records only
add, all scores move in one direction and half of that noise is enough. Here the scores of +e_j and -e_j move
against each other, so their difference moves by 2 Delta, and the factor 2 stays.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np

from skdp._docs import document
from skdp.base.declare import changed, fitted, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import real
from skdp.base.plan import BudgetSplit, Step
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.closing import Closing, LinearDecision, TargetUnits, sizes_of
from skdp.fitting.linear import LinearFit
from skdp.fitting.parameters import Auto, AutoInt
from skdp.fitting.scales import CLIP_FACTOR, QUESTIONS, grown_share
from skdp.fitting.search import noisy_search
from skdp.fitting.targets import LabelModel, NumberModel, Problem
from skdp.fitting.task import Task, given, linear_progress, parameter_shape
from skdp.losses import Loss
from skdp.privacy import PrivacySession, PrivateRecords, VertexScores, accounting

# Chosen on training hold-outs of a9a and IMDb and on synthetic data of other seeds (user guide).
STEPS = 0.3  # number of steps over (n mu)^(2/3)
PURE_STEPS = 0.5  # number of steps over sqrt(n epsilon), with delta = 0
MAX_STEPS = 1000  # largest number of steps
TOLERANCE = 0.02  # largest change of a row's gradient that is not yet in the sums, over the clip
# The radius in units of gradient norm / (row norm)^2: factor and power of n mu, and the largest value.
CLASSIFIER_RADIUS = (0.32, 1 / 2, 100.0)
REGRESSOR_RADIUS = (0.7, 1 / 3, 30.0)


def frank_wolfe(task: Task, *, radius: float, max_iter: int, clip_norm: float, **options: Any) -> Solution:
    """Run private Frank-Wolfe over the l1 ball of theta, the intercept included.

    Parameters
    ----------
    task : Task
        The T choices take all of its budget. An exact session takes the best vertex. A monitor costs O(d) a step.
    radius : float
        Of the ball; with several outputs of all their coefficients together.
    max_iter : int
        Number of steps T.
    clip_norm : float
        Sup norm to which a row's gradient is clipped.
    **options : dict
        Of `VertexScores`: ``lazy=False`` computes everything anew in every step, with the same result.

    Returns
    -------
    Solution
        With at most ``max_iter`` non-zero coefficients.
    """
    budget, records, loss = task.budget, task.records, task.loss
    epsilon = budget.selection_epsilon(max_iter)
    # Stale gradients may be off by about the scale of the noise, which for small n would be too much.
    tolerance = min(TOLERANCE, 2 / (epsilon * records.n_units))
    vertices = VertexScores(records, loss, clip_norm, **{"tolerance": tolerance, **options})
    point, shrink = np.zeros(records.n_parameters * loss.n_outputs), 1.0
    for t in range(max_iter):
        vertex = int(budget.session.gumbel_top_k(vertices.scores(), 1, epsilon, purpose="steps")[0])
        gamma = 2 / (t + 2)
        shrink *= 1 - gamma
        if shrink == 0.0:
            point[:], shrink = 0.0, 1.0
        point[vertex // 2] += (-gamma if vertex % 2 else gamma) * radius / shrink
        vertices.move(vertex, radius, gamma)
        if task.monitor is not None:
            task.show(t, _shaped(point * shrink, loss.n_outputs))
    return Solution(_shaped(point * shrink, loss.n_outputs), max_iter)


def _shaped(point: np.ndarray, n_outputs: int) -> np.ndarray:
    return point if n_outputs == 1 else point.reshape(-1, n_outputs)


def steps_for(n_units: int, epsilon: float, delta: float) -> int:
    """Number of steps from public numbers: their error falls like 1/T, the noise grows like sqrt(T)."""
    if math.isinf(epsilon):
        return MAX_STEPS
    if delta == 0:
        wanted = PURE_STEPS * math.sqrt(n_units * epsilon)
    else:
        wanted = STEPS * (n_units * accounting.gaussian_mu(epsilon, delta)) ** (2 / 3)
    return int(min(MAX_STEPS, max(2, round(wanted))))


def count_medians(loss: Loss) -> int:
    """Number of medians that `released_scales` releases."""
    return 1 + (loss.start_sup_norm is None)


def released_scales(
    budget: BudgetSplit, records: PrivateRecords, loss: Loss, *, radius: float | None, clip_norm: float | None
) -> tuple[float, float, float]:
    """Return the intercept's feature, the clip norm and the radius.

    A number that is None follows from the median sup norm of the rows; for regression also of the gradients at 0.
    The intercept's feature is the median sup norm of the rows, so that it takes nothing of the clip. No budget is
    spent if both are numbers; the value then is 1.
    """
    if radius is not None and clip_norm is not None:
        return 1.0, float(clip_norm), float(radius)
    residual = loss.start_sup_norm
    part = budget.equal(count_medians(loss))
    row = noisy_search(part, partial(records.norm_count, norm="max"))
    if residual is not None:
        gradient = residual * row
    else:
        scaled, start = records.with_intercept(row), np.zeros(parameter_shape(records, loss))
        gradient = noisy_search(part, partial(scaled.norm_count, loss=loss, theta=start, norm="max"))
    factor, power, size = REGRESSOR_RADIUS if residual is None else CLASSIFIER_RADIUS
    if not budget.session.exact:
        mu = accounting.gaussian_mu(budget.session.epsilon, budget.session.delta)
        size = min(size, factor * (records.n_units * mu) ** power)
    clip = CLIP_FACTOR * gradient if clip_norm is None else float(clip_norm)
    ball = size * gradient / row**2 if radius is None else float(radius)
    return row, clip, ball


@dataclass(frozen=True)
class Vertices:
    """Public numbers of the fit; None where it finds the number.

    Attributes
    ----------
    scale_share : float
        Share of mu^2 for the scales of the data; the rest chooses vertices.
    """

    radius: float | None
    clip_norm: float | None
    n_iter: int
    scale_share: float


class FrankWolfeFit(LinearFit):
    """The private fit; parameters are the estimators'."""

    _no_blocks: ClassVar[str | None] = "its steps keep a number for each row"

    delta = changed(text=parameters.PURE_DELTA, more="``delta=0`` needs numbers for ``radius`` and ``clip_norm``.")
    radius: Auto = parameter(
        real(low=1e-100, high=1e100, word="auto"),
        """Radius of the l1 ball that holds the coefficients of all classes together. "auto" is
        ``0.32 sqrt(n mu) g / m^2``, at most ``100 g / m^2``. Here m is the released median sup norm of the
        rows, and g of the gradients at 0, which follows from m. The recalibration may leave the ball.""",
        default="auto",
    )
    max_iter: AutoInt = parameters.more(
        parameters.MAX_ITER,
        """Each step is a private choice of one coefficient, so at most this many are not 0. "auto" is
        ``0.3 (n mu)^(2/3)``, at least 2 and at most 1000, with n the number of records or groups and mu the
        Gaussian-DP parameter of (epsilon, delta). With ``delta=0`` it is ``0.5 sqrt(n epsilon)``.""",
    )
    clip_norm: Auto = parameter(
        real(low=1e-100, high=1e100, word="auto"),
        """Largest absolute entry (sup norm) of one row's gradient. Larger gradients are clipped. "auto"
        computes it from released medians: the median sup norm of the rows and, for regression, of their
        gradients at the start. They take 2 % of the budget (of mu^2), up to 20 % if the records are few.
        "auto" is half the median sup norm of the gradients. ``radius="auto"`` needs the same medians. No
        budget is spent on them if both parameters are numbers.""",
        default="auto",
    )
    unit = changed(more=parameters.SHARED_WEIGHT)
    max_weight: float | None = parameters.MAX_WEIGHT
    verbose: bool = parameters.VERBOSE
    callback: Callable[..., object] | None = parameters.more(
        parameters.CALLBACK, "It costs time proportional to the number of features in each step."
    )
    radius_: float = fitted("float", 'The radius given, or the one that "auto" became.')
    clip_norm_: float = fitted()

    _pure_possible = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        for name in ("radius", "clip_norm"):
            value = getattr(self, name)
            if given(value) is None and self.delta == 0 and not math.isinf(self.epsilon):
                raise ValueError(
                    f"delta=0 allows pure mechanisms only, and {name}={value!r} adds Gaussian noise "
                    f"to a count; give {name} as a number, or delta > 0"
                )

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        records, loss = problem.records, problem.loss
        radius, clip, steps = given(self.radius), given(self.clip_norm), given(self.max_iter)
        if steps is None:
            steps = steps_for(records.n_units, budget.session.epsilon, budget.session.delta)
        questions, scale = QUESTIONS * count_medians(loss), 0.0
        if radius is None or clip is None:
            scale = grown_share(budget, records.n_units, questions)
        scales, rest = budget.split(scales=scale, steps=None)
        return LinearDecision(
            sizes=sizes_of(
                n_iter=int(steps),
                n_parameters=records.n_parameters * loss.n_outputs,
                radius=radius,
                clip_norm=clip,
            ),
            steps=(*scales.step("scale", questions), Step("steps", rest.of_session(), int(steps))),
            details=Vertices(radius, clip, int(steps), scale),
            thresholds="DPFrankWolfe",
        )

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        records, loss, plan = problem.records, problem.loss, problem.decision.details
        scales, rest = problem.budget.split(scales=plan.scale_share, steps=None)
        value, clip, radius = released_scales(scales, records, loss, radius=plan.radius, clip_norm=plan.clip_norm)
        with linear_progress(self, session, plan.n_iter) as monitor:
            task = Task(rest, records.with_intercept(value), loss, monitor=monitor)
            solution = frank_wolfe(task, radius=radius, max_iter=plan.n_iter, clip_norm=clip)
        attributes = {"radius_": radius, "clip_norm_": clip}
        return Solution(task.to_user(solution.theta), solution.n_iter, attributes)


@document()
class DPFrankWolfeClassifier(FrankWolfeFit, LabelModel, PrivateFit[Problem]):
    """Logistic or softmax regression in an l1 ball that is differentially private: private Frank-Wolfe.

    Each of ``max_iter`` steps draws a vertex of the l1 ball by the exponential mechanism, with the clipped
    mean gradient as scores. The step moves towards the vertex by 2 / (t + 2). The method follows [Talwar2015]_,
    its lazy scores follow [Raff2023]_.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPSparseERMClassifier : Releases a few entries of the gradient in each step.
    DPIGHTClassifier : Noisy gradient steps that keep a number of features.

    Notes
    -----
    **Privacy.** A row's gradient is clipped to L = ``clip_norm`` in the sup norm, and replacing one record (or
    group) moves no score by more than Delta = 2 L / n. Under zero-out and add-remove it is half of that. A choice
    by Gumbel noise of scale 2 Delta / eps0 is one eps0-bounded-range choice. The factor 2 is necessary, because
    the scores of +e_j and -e_j move against each other; the scale Delta / eps0 of [Durfee2019]_ is for counts to
    which records only add. T choices compose in Gaussian DP. With ``delta=0`` their epsilons add up.

    On CSR input a step costs about the non-zeros of the rows that its column touches. A row's part in the
    scores is refreshed if a step touches it and its gradient has moved by more than 2 / (n eps0) of the clip
    (at most 2 %). All rows are looked at after the steps 1, 2, 3, ..., whose distance grows like a quarter of
    the step's number. This rule holds for dense and sparse input alike. The sensitivity does not change: what
    a row adds is a function of this row, of released values and of public numbers (user guide).

    {privacy.unprotected}

    References
    ----------
    .. [Talwar2015]
    .. [Raff2023]
    .. [Durfee2019]

    Examples
    --------
    >>> from skdp import DPFrankWolfeClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 50, n_informative=3, random_state=0)
    >>> model = DPFrankWolfeClassifier(epsilon=2.0, max_iter=20, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, len(model.support_) <= 20
    ((1, 50), True)
    """

    fit_intercept = changed(
        more="""It is a coordinate of the ball, in units of that feature's value: the released median sup norm of
        the rows, or 1 if nothing was released."""
    )


@document(DPFrankWolfeClassifier)
class DPFrankWolfeRegressor(FrankWolfeFit, NumberModel, PrivateFit[Problem]):
    """Linear regression in an l1 ball that is differentially private: private Frank-Wolfe.

    Each of ``max_iter`` steps draws a vertex of the l1 ball by the exponential mechanism, with the clipped
    mean gradient as scores. The step moves towards the vertex by 2 / (t + 2). The method follows [Talwar2015]_,
    its lazy scores follow [Raff2023]_.

    {guarantee}

    See Also
    --------
    DPSparseERMRegressor : Releases a few entries of the gradient in each step.
    DPIGHTRegressor : Noisy gradient steps that keep a number of features.

    Notes
    -----
    {Notes}

    {privacy.targets}

    Examples
    --------
    >>> from skdp import DPFrankWolfeRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 50, n_informative=3, random_state=0)
    >>> model = DPFrankWolfeRegressor(epsilon=2.0, max_iter=20).fit(X, y)
    >>> model.coef_.shape, model.n_iter_
    ((50,), 20)
    """

    radius = changed(
        text="""Radius of the l1 ball that holds the coefficients. "auto" is ``0.7 (n mu)^(1/3) g / m^2``, at most
        ``30 g / m^2``. Here m is the released median sup norm of the rows, and g of the gradients at 0."""
    )
    fit_intercept = changed(
        text="""Whether to fit an intercept. A number near the median of y is released first, subtracted from y and
        added to the intercept in the end. With ``delta=0`` it is not released: subtract a public centre
        from y. The rest of the intercept is the coefficient of a constant feature, which is the released
        median sup norm of the rows, or 1 without one."""
    )

    loss: Literal["squared", "huber"] = parameters.NAMED_LOSS
    huber_threshold: float = parameters.STEP_HUBER_THRESHOLD

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        literal = given(self.radius) is not None and given(self.clip_norm) is not None
        units = TargetUnits.of(self, largest_factor=1.0)  # the coefficients stay in the ball
        return (replace(units, calibrates=units.calibrates and not literal),)
