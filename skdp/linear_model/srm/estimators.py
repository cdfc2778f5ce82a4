"""The estimators of stochastic recursive momentum: parameters here, the algorithm in `solver`."""

import math
from collections.abc import Iterable, Sequence
from typing import ClassVar, Literal

import numpy as np

from skdp._docs import document
from skdp.base.declare import changed, fitted, fixed, parameter
from skdp.base.exact import NonPrivateFit
from skdp.base.fit import PrivateFit
from skdp.base.kinds import choice, described, integer, real
from skdp.fitting import parameters
from skdp.fitting.closing import Closing
from skdp.fitting.parameters import Auto, AutoInt, ClassLoss
from skdp.fitting.stochastic import SAMPLING, StochasticFit
from skdp.fitting.targets import LabelModel, Problem
from skdp.fitting.task import check_clip, given
from skdp.linear_model.srm.solver import SRMSettings, planned_momentum, recursive_momentum

ERRATUM = "Section 4.7.1 of Wang (2021) swaps the two clip norms; this fit uses the correct order."

# Largest max_iter, which takes days; a choice, not tuned.
MOST_STEPS_GIVEN = 10**8


class MomentumFit(StochasticFit):
    """The fit of both estimators."""

    max_iter = changed(kind=integer(low=1, high=MOST_STEPS_GIVEN, word="auto"))
    initial_batch_size: AutoInt = parameter(
        integer(low=1, word="auto"),
        """Expected number of records (or groups) in the first batch. "auto" is 3 times ``batch_size``.""",
        default="auto",
    )
    momentum: Auto = parameter(
        real(low=0, high=1, word="auto"),
        """The weight g in [0, 1] of the new gradients; 1 is plain SGD. A number is used in every step. "auto"
        falls linearly from ``14 / max_iter`` to ``5.8 / max_iter`` (at most 1).""",
        default="auto",
    )
    max_step_norm: Auto = parameter(
        real(low=0, strict=True, word="auto"),
        """Length of the longest step, zeta / (n0 L) in the paper. inf is no limit. "auto" is
        ``60 / (row_norm * max_iter)`` with the released median row norm, or no limit if ``clip_norm`` and
        ``learning_rate`` are both numbers.""",
        default="auto",
    )
    output: Literal["last", "random"] = parameter(
        choice("last", "random"),
        """Which iterate is the result. "random" draws one uniformly from all before the last, the
        start among them.""",
        default="last",
    )
    n_iter_: int = fitted("int", 'Number of steps taken: ``max_iter``, or fewer with ``output="random"``.')
    learning_rate_: float = fitted("float", "The number given, or the largest step size of the first step.")
    clip_norm_: float = fitted("float", "The number given, or the value at the last of the ``max_iter`` steps.")
    max_step_norm_: float = fitted("float", 'The number given, or the one that "auto" became.')
    momentum_: float = fitted("float", "The number given, or the value at the last of the ``max_iter`` steps.")
    clip_diff_norm_: float = fitted("float", 'The number given, or the one that "auto" became.')
    batch_size_: int = fitted(
        "int", 'The number given, but at most the number of records, or the one that "auto" became.'
    )
    initial_batch_size_: int = fitted(
        "int", 'The number given, but at most the number of records, or the one that "auto" became.'
    )

    _planned = staticmethod(planned_momentum)
    _algorithm = staticmethod(recursive_momentum)

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        # Gradients of two classes are hardly clipped here: their mean probability is right without.
        return super()._closing(problem) if problem.loss.n_outputs > 2 else ()

    def _settings(self) -> SRMSettings:
        names = ("max_iter", "batch_size", "initial_batch_size", "momentum", "learning_rate")
        return SRMSettings(
            **self._numbers(*names, "max_step_norm", "clip_norm", "clip_diff_norm"),
            sampling=SAMPLING[self.sampling],
            output=self.output,
        )


@document()
class DPSRMClassifier(MomentumFit, LabelModel, PrivateFit[Problem]):
    """Logistic or softmax regression by differentially private stochastic recursive momentum.

    DP-SRM of [Wang2021]_ steps along a released estimate of the gradient. Each minibatch corrects the estimate by
    the change of its gradients since the last step. The momentum moves the estimate towards the new gradients. Few
    passes over the data suffice.

    {guarantee}

    {recalibrated.several}

    See Also
    --------
    STORMClassifier : The same without privacy.
    DPSGDClassifier : Momentum 1.

    Notes
    -----
    **Privacy.** The estimate v_0 is a mean over the first batch of gradients clipped to C1. Then ``v_t`` is
    ``(1 - g) v_{t-1}``, which is released already, plus a mean over batch t of
    ``(1 - g) clip(grad_i(theta_t) - grad_i(theta_{t-1}), C2) + g clip(grad_i(theta_t), C1)``. Both parts are
    clipped, so nothing is assumed of the loss. A record (or group) adds at most ``C1 / b0`` in l2 norm to the
    first mean, and at most ``((1 - g) C2 + g C1) / b`` to a later one; b0 and b are the public expected batch
    sizes. Replacing it moves a mean by at most twice that, and by at most that under zero-out and add-remove.
    Minibatches are Poisson samples, whose privacy loss distributions are composed numerically. All noise is
    planned before the data are read, and the claim covers the whole plan.

    Errata of [Wang2021]_: section 4.7.1 swaps C1 and C2 in the sensitivity and loses b; section 4.5 is
    correct. The noise constants of Theorem 4.5.1 are not used.

    {privacy.unprotected}

    References
    ----------
    .. [Wang2021] Chapter 4, Algorithm 4, Theorems 4.5.1 and 4.5.4.

    Examples
    --------
    >>> from skdp import DPSRMClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPSRMClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_ >= 20, model.privacy_.epsilon
    ((1, 20), True, 2.0)
    """

    loss: ClassLoss = parameters.CLASS_LOSS
    max_iter = changed(
        more="""
        It is at most 10^8. "auto" is ``1.65 n mu / sqrt(p)``, with p parameters and the mu of (epsilon,
        delta). It is at most 2000, at most the number that leaves batches of 16, and at least 20. With a given
        ``batch_size`` it makes four passes over the data, but at least 20 steps: batches of more than 18 % of the
        records make more passes, and a batch of all records makes 20."""
    )
    batch_size = changed(
        more="""
        "auto" is the size that makes four passes over the data in ``max_iter`` steps. A pass reads every record
        once, and a step computes two gradients of a record."""
    )
    momentum = changed(more="The noise of the first half then has 1.45 times the multiplier of the second.")
    clip_norm = changed(
        more="""
        It is the C1 of the notes. A number is used in every step. "auto" is 0.63 to 0.84 times the largest
        gradient norm that a record with the median row norm can have. The less noise there is, the larger it
        is (theory). In the beginning it is 0.65 of that."""
    )
    clip_diff_norm: Auto = parameter(
        real(low=0, strict=True, word="auto"),
        """Largest l2 norm C2 of the change of one record's (or group's) gradient in one step. "auto" is
        ``0.41 clip_norm / max_iter``.""",
        default="auto",
    )
    learning_rate = changed(
        more="""
        It is the largest step size, 1 / (2 n0 L) in the paper. "auto" is 1.16 over the smoothness that the
        median row norm tells, up to 1.55 if the clip norm is small. It falls linearly by 15 %."""
    )
    output = changed(more="The paper's theorem is about that one, but the last is much better.")
    sampling = changed(more="The paper draws without replacement.")

    _erratum = ERRATUM
    _auto_samples = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_clip("clip_diff_norm", self.clip_diff_norm, self.epsilon, word="auto")
        if self.clip_diff_norm == math.inf and self.clip_norm != math.inf:
            raise ValueError("clip_diff_norm=inf needs clip_norm=inf (and epsilon=inf)")
        if self.clip_norm == math.inf and self.clip_diff_norm not in (math.inf, "auto"):
            raise ValueError('clip_norm=inf needs clip_diff_norm=inf or "auto"')

    def _samples(self, n_units: int | None) -> bool:
        first = given(self.initial_batch_size)
        smaller = first is not None and (n_units is None or first < n_units)
        return smaller or super()._samples(n_units)


@document(DPSRMClassifier)
class STORMClassifier(MomentumFit, LabelModel, NonPrivateFit[Problem]):
    """Logistic or softmax regression by stochastic recursive momentum, not private.

    STORM of [Cutkosky2019]_ is the algorithm of `DPSRMClassifier` without clipping and noise.
    Both give the same model at ``epsilon=inf, clip_norm=inf, clip_diff_norm=inf``, equal other parameters and
    the same ``random_state``.

    See Also
    --------
    DPSRMClassifier : The same with privacy.

    Notes
    -----
    **Privacy.** This class is not private: it releases exact values.

    References
    ----------
    .. [Cutkosky2019]

    Examples
    --------
    >>> from skdp import STORMClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = STORMClassifier(random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.6)
    True
    """

    loss: ClassLoss = parameters.CLASS_LOSS
    clip_norm_: float = fitted("float", "Always inf, because nothing is clipped.")
    clip_diff_norm_: float = fitted("float", "Always inf, because nothing is clipped.")
    max_iter = changed(
        text="""Number of steps, at most 10^8. There is no stopping rule. "auto" is 2000, at most the number that
        leaves batches of 16, and at least 20. With a given ``batch_size`` it makes 20 passes over the data, but at
        least 20 steps."""
    )
    batch_size = changed(
        text="""Expected number of records in a batch, by which means are divided. n or more takes all of them in
        every step. "auto" is the size that makes 20 passes over the data in ``max_iter`` steps."""
    )
    learning_rate = changed(
        text="""Largest step size. A number is used in every step. "auto" is 1.16 over the smoothness that the
        median row norm tells, and falls linearly by 15 %."""
    )
    max_step_norm = changed(
        text="""Length of the longest step. inf is no limit. "auto" is ``60 / (row_norm * max_iter)`` with the
        median row norm, or no limit if ``learning_rate`` is a number."""
    )
    sampling = changed(text="How minibatches are drawn.")
    classes: Iterable[object] | None = parameters.EXACT_CLASSES
    class_weight: object = parameters.EXACT_CLASS_WEIGHT
    coef_init: object = parameters.EXACT_COEF_INIT
    random_state: int | np.random.RandomState | np.random.Generator | None = parameter(
        described("None, int, RandomState or Generator"), "Of the minibatches.", default=None, place="last"
    )
    callback = changed(text="Called as ``callback(iteration, coef)`` with each iterate.")

    clip_norm: float = fixed(default=math.inf)
    clip_diff_norm: ClassVar[float] = math.inf
    max_weight: float = fixed(default=math.inf)
