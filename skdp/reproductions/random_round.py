"""Random round private SGD (Zhang, Zheng, Mou & Wang 2017).

It takes steps on minibatches and keeps the iterate of a round that was drawn before the data were touched. That is
a fixed plan of Gaussian releases, and the claim is the cost of the whole plan.
"""

from typing import ClassVar

from skdp._docs import document
from skdp.base.declare import changed, fitted
from skdp.base.fit import PrivateFit
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.closing import LinearDecision
from skdp.fitting.loop import ConstantStep
from skdp.fitting.parameters import Auto, ClassLoss
from skdp.fitting.start import BatchSettings, StepPlan, begin, descent_from, precision, scales_and_steps
from skdp.fitting.stochastic import SAMPLING, StochasticFit
from skdp.fitting.targets import LabelModel, Problem
from skdp.fitting.task import Task
from skdp.privacy import BatchGroup

# All chosen on hold-outs of the training data of a9a, ijcnn1 and MNIST.
ROUNDS = 500  # planned steps of random round SGD
PARTS = 64  # batches of an epoch; 500 / 64 is about 8 data passes, as published
LEAST_BATCH = 64  # least number of units of a batch
WALK = 4.0  # distance that all noise may move theta, over the first distance of the steps
LARGEST_RATE = 5.0  # largest step size, in 1 / curvature


def planned_rounds(task: Task, settings: BatchSettings) -> LinearDecision:
    """Plan all rounds, before anything is released, and refuse what the budget cannot hold."""
    budget, n_units = task.budget, task.records.n_units
    rounds = settings.max_iter or ROUNDS
    size = settings.batch_size or max(LEAST_BATCH, -(-n_units // PARTS))
    scales, rest = scales_and_steps(task, settings)
    (plan,) = rest.plan_batches([BatchGroup(rounds, size)], sampling=settings.sampling, n_units=n_units)
    budget.session.require_feasible_batches(task.theta.size, [plan])
    found = StepPlan(settings, rounds, scales.share, (plan,))
    return found.decision(task, batch_size=plan.batch_size)


def random_round(task: Task, plan: StepPlan[BatchSettings]) -> Solution:
    """Take noisy steps on minibatches up to a round drawn beforehand, whose iterate is the result.

    The round R is uniform on 1..T and does not depend on the records. The steps after it are not taken, because
    their results would be dropped. The noise and the claim cover all T steps.
    """
    budget, settings, rounds = task.budget, plan.settings, plan.n_iter
    rate = settings.learning_rate
    last = 1 + int(budget.session.integers(rounds, 1)[0])
    task.expect(last)
    start = begin(task, plan)
    if rate is None:
        # The softmax of K classes has curvature 1 / K at 0, and at most 1 / 2.
        flatter = max(1.0, task.loss.n_outputs / 2.0)
        seen = precision(budget.session, task.records, task.theta.size)
        walk = WALK * flatter * seen / start.clip_factor / rounds
        rate = min(LARGEST_RATE, walk) / (start.curvature + task.penalty.smoothness)
    return descent_from(start, plan.plans[0], ConstantStep(rate), last)


@document()
class DPRRPSGDClassifier(StochasticFit, LabelModel, PrivateFit[Problem]):
    """Logistic or softmax regression by random round private stochastic gradient descent.

    Noisy steps on minibatches, as in [ZhangJ2017]_ and section 4.7.1 of [Wang2021]_. The
    result is the iterate of a random round, which is drawn uniformly before the records are touched.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPGDClassifier : Steps on full gradients, the last iterate or an average.

    Notes
    -----
    **Privacy.** The gradient of each record (or group) is clipped to ``clip_norm``. Batch sums are divided by
    the expected batch size, a public constant. T releases on Poisson samples of rate q are dominated, under
    replace-one, by T copies of the pair ``(1-q) N(0) + q N(C)``, ``(1-q) N(0) + q N(-C)``. Under zero-out and
    add-remove the second is ``N(0)``. The noise is calibrated by their privacy loss distributions, not by the
    bound of [ZhangJ2017]_.

    The claim covers all T steps, even if the drawn round is early. A round that is drawn before the data are
    touched could be charged alone; that would be another method, with less noise for early rounds.

    {privacy.unprotected}

    References
    ----------
    .. [ZhangJ2017]
    .. [Wang2021] Section 4.7.1.

    Examples
    --------
    >>> from skdp import DPRRPSGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPRRPSGDClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, 1 <= model.n_iter_ <= 500, model.privacy_.epsilon
    ((1, 20), True, 2.0)
    """

    _no_blocks: ClassVar[str | None] = "it is a published method that is kept for comparison; take DPGDClassifier"

    loss: ClassLoss = parameters.CLASS_LOSS
    batch_size = changed(more='"auto" is n / 64, but at least 64. The paper has 1.')
    max_iter = changed(
        text="""Number T of planned steps. The iterate of one of them is kept, drawn uniformly from 1 to T. "auto"
        is 500. With the automatic batch size that is about 8 passes over the data, as published. All T steps are
        paid for. Those after the drawn round are not taken."""
    )
    learning_rate = changed(
        more="""
        "auto" is a constant over the smoothness of the mean loss, which follows from the released median row
        norm. It is at most 5, and less if the noise of T steps would carry the iterate too far (theory)."""
    )
    clip_norm: Auto = parameters.DESCENT_CLIP_NORM
    n_iter_: int = fitted(
        "int", "The round that was drawn, which is the number of steps taken. It does not depend on the records."
    )
    learning_rate_: float = fitted("float", "The step size, the same in every step.")

    _auto_samples = True

    _planned = staticmethod(planned_rounds)
    _algorithm = staticmethod(random_round)

    def _settings(self) -> BatchSettings:
        numbers = self._numbers("max_iter", "learning_rate", "clip_norm", "batch_size")
        return BatchSettings(**numbers, sampling=SAMPLING[self.sampling])
