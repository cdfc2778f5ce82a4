"""Noisy gradient descent (DP-GD, Wang, Ye & Xu 2017): a fixed number of steps on full gradients."""

from skdp._docs import document
from skdp.base.declare import changed, fixed
from skdp.base.fit import PrivateFit
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.closing import LinearDecision
from skdp.fitting.loop import step_rule
from skdp.fitting.parameters import Auto, AutoInt, ClassLoss, Sampling
from skdp.fitting.start import StepPlan, StepSettings, begin, descent_from, precision, scales_and_steps
from skdp.fitting.stochastic import StochasticFit
from skdp.fitting.targets import LabelModel, Problem
from skdp.fitting.task import Task

# All chosen on hold-outs of the training data of a9a, ijcnn1 and MNIST.
PRECISION_PER_STEP = 8.0  # `precision` for each step of gradient descent
LEAST_STEPS, MOST_STEPS = 20, 100  # bounds of the number of steps


def planned_descent(task: Task, settings: StepSettings) -> LinearDecision:
    """Choose the number of steps; all of the budget that the scales leave goes to them equally."""
    size, steps = task.theta.size, settings.max_iter
    if steps is None:
        seen = precision(task.session, task.records, size) / PRECISION_PER_STEP
        steps = round(min(MOST_STEPS, max(LEAST_STEPS, seen)))
    scales, rest = scales_and_steps(task, settings)
    rest.require_feasible(size, steps)
    return StepPlan(settings, steps, scales.share).decision(task, rest.step("steps", steps))


def gradient_descent(task: Task, plan: StepPlan[StepSettings]) -> Solution:
    """Take noisy steps on full gradients."""
    steps, size = plan.n_iter, task.theta.size
    task.expect(steps)
    start = begin(task, plan)
    rule = step_rule(plan.settings.learning_rate, start.task.theta, start.scales.distance, steps, size, size)
    _, rest = plan.split(task.budget)
    return descent_from(start, rest.plan_gaussian(steps), rule, steps)


@document()
class DPGDClassifier(StochasticFit, LabelModel, PrivateFit[Problem]):
    """Logistic or softmax regression by differentially private gradient descent.

    A fixed number of noisy steps on full gradients, as in [WangYe2017]_ and section 4.7.1 of [Wang2021]_.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPRRPSGDClassifier : Steps on minibatches, up to a random round.
    DPAGDClassifier : Fewer steps, whose sizes are chosen privately.

    Notes
    -----
    {privacy.full_batch}

    [WangYe2017]_ size the noise by the moments accountant, whose constants are larger than
    necessary. Here the noise is calibrated to the exact formula.

    {privacy.unprotected}

    References
    ----------
    .. [WangYe2017]
    .. [Wang2021] Section 4.7.1.

    Examples
    --------
    >>> from skdp import DPGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPGDClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_ >= 20, model.privacy_.epsilon
    ((1, 20), True, 2.0)
    """

    loss: ClassLoss = parameters.CLASS_LOSS
    max_iter = changed(
        more="""
        Each step reads all records. "auto" is ``n mu / (8 sqrt(p))``, at least 20 and at most 100, with p
        parameters and the mu of (epsilon, delta)."""
    )
    learning_rate = changed(
        more="""
        With a number the last iterate is the result. "auto" is dual averaging, which needs no tuning (user
        guide of `DPIGHTClassifier`); the result is its average."""
    )
    clip_norm: Auto = parameters.DESCENT_CLIP_NORM
    batch_size: AutoInt = fixed(default="auto")  # full batches, so the fit keeps its mu
    sampling: Sampling = fixed(default="poisson")

    _planned = staticmethod(planned_descent)
    _algorithm = staticmethod(gradient_descent)

    def _settings(self) -> StepSettings:
        return StepSettings(**self._numbers("max_iter", "learning_rate", "clip_norm"))
