"""The estimators of stochastic gradient descent, plain and smoothed; the algorithm is in `solver`."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from skdp._docs import document
from skdp.base.declare import changed, fitted, fixed, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import real
from skdp.fitting import parameters
from skdp.fitting.closing import Closing, TargetUnits
from skdp.fitting.optimizers import SGD, Adam, check_unsmoothed, rule_of
from skdp.fitting.parameters import Auto, ClassLoss, NumberLoss
from skdp.fitting.stochastic import SAMPLING, StochasticFit
from skdp.fitting.targets import LabelModel, NumberModel, Problem, is_classifier
from skdp.fitting.task import given
from skdp.linear_model.sgd.solver import AVERAGE, SGDSettings, planned_descent, stochastic_descent
from skdp.losses import is_shipped


class StochasticDescentFit(StochasticFit):
    """A fit by `stochastic_descent`; without a parameter ``smoothing`` nothing is smoothed."""

    batch_size = changed(
        more="""
        "auto" takes all, which is most accurate for the same budget. From 2 10^8 records times coefficients on,
        it takes Poisson batches of a sixteenth or more, where X is dense and the fit has no accountant. Whoever
        gives smaller batches should raise ``max_iter``: n / batch_size steps read the data once."""
    )
    max_iter = changed(
        more="""
        "auto" is 100, also with small batches, and 600 where ``batch_size="auto"`` takes batches. It counts
        steps, not epochs."""
    )
    learning_rate = changed(
        kind=real(
            low=0,
            strict=True,
            word="auto",
            finite=True,
            hint=" (the course of the step sizes is optimizer=SGD(schedule=...))",
        ),
        more="""
        The steps of "auto" are as long as the noise and the curvature allow, and need no tuning (theory).""",
    )
    optimizer: Literal["sgd", "adam"] | SGD | Adam = parameters.OPTIMIZER
    clip_norm: Auto = parameters.HALF_CLIP_NORM
    penalty: Literal["l2", "nonconvex"] = changed(default="l2")
    alpha: float = changed(default=0.0)
    smoothing: float = fixed(default=0.0)
    learning_rate_: float = fitted(
        "float", 'Step size of the first step: the given one, or the one that "auto" chose.'
    )
    _gone = parameters.GONE_OPTIMIZER

    def _samples(self, n_units: int | None) -> bool:
        if given(self.batch_size) is None:
            # Not under an accountant: it adds up the epsilons of fits that sample, and the mu of all others.
            return self.sampling == "poisson" and self._payer() is False
        return super()._samples(n_units)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_unsmoothed(self.optimizer)

    _planned = staticmethod(planned_descent)
    _algorithm = staticmethod(stochastic_descent)

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        if is_classifier(self):
            return super()._closing(problem)
        # Numbers for all scales make it the published algorithm.
        searched = given(self.clip_norm) is None or given(self.learning_rate) is None
        return (TargetUnits.of(self, searched=searched and is_shipped(problem.loss)),)

    def _settings(self) -> SGDSettings:
        # Iterates of the user's own step size are not averaged.
        average = AVERAGE if given(self.learning_rate) is None else None
        rule = rule_of(self.optimizer, "constant", average)
        return SGDSettings(
            **self._numbers("max_iter", "learning_rate", "clip_norm", "batch_size"),
            sampling=SAMPLING[self.sampling],
            rule=replace(rule, smoothing=float(self.smoothing)),
        )


OF_TARGETS = """
        With an intercept, another 5 % (up to 20 % if the records are few) go to the median of y, which is
        subtracted. It is not released if both parameters are numbers, or if the records are fewer than
        ``50 / mu``. In these cases subtract a public centre of y yourself."""


@document()
class DPLSSGDClassifier(StochasticDescentFit, LabelModel, PrivateFit[Problem]):
    """Logistic or softmax regression by differentially private Laplacian smoothing SGD.

    DP-LSSGD of [WangB2020]_ and [Wang2021]_: each step follows a noisy gradient that is
    smoothed over neighbouring features.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPSGDClassifier : The same without smoothing.
    DPIGHTClassifier : Steps on full batches that keep a number of features.

    Notes
    -----
    **Privacy.** The gradient of each record (or group) is clipped to l2 norm ``clip_norm``. Replacing one in a
    batch moves the batch mean by at most ``2 clip_norm / batch_size`` in l2 norm. Under zero-out and
    add-remove it is half of that. Steps on all records compose as exact Gaussian DP. For Poisson batches the
    noise is calibrated by the privacy loss distributions of the sampled Gaussian; under replace-one, of its
    dominating pair. For batches without replacement it is calibrated by Renyi DP. Smoothing, momentum, Adam and
    averaging are post-processing of released gradients and cost no budget.

    Erratum of [Wang2021]_: Remark 5.5.6 says that smoothing lowers the sensitivity. That is no guarantee
    and is not used.

    {privacy.unprotected}

    References
    ----------
    .. [WangB2020]
    .. [Wang2021] Chapter 5, Algorithm 5.

    Examples
    --------
    >>> from skdp import DPLSSGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLSSGDClassifier(epsilon=2.0, batch_size=500, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_, model.privacy_.epsilon
    ((1, 20), 100, 2.0)
    >>> next(row["sampling"] for row in model.privacy_.mechanisms if row["purpose"] == "steps")
    'Poisson'
    """

    loss: ClassLoss = parameters.CLASS_LOSS
    smoothing: float = parameter(
        real(low=0, finite=True),
        """The number s >= 0 of the matrix I - s L, by whose inverse every noisy gradient is multiplied. The
        published values are 1 to 3, and 0 is `DPSGDClassifier`. It helps if features that are neighbours in X
        should be neighbours in the model: pixels, times, sorted bins. Each class has its own system. The
        intercept is left out.""",
        default=1.0,
    )


@document(DPLSSGDClassifier)
class DPLSSGDRegressor(StochasticDescentFit, NumberModel, PrivateFit[Problem]):
    """Linear regression by differentially private Laplacian smoothing SGD.

    DP-LSSGD of [WangB2020]_ and [Wang2021]_: each step follows a noisy gradient that is
    smoothed over neighbouring features.

    {guarantee}

    See Also
    --------
    DPSGDRegressor : The same without smoothing.
    DPIGHTRegressor : Steps on full batches that keep a number of features.

    Notes
    -----
    {Notes}

    {privacy.targets}

    Examples
    --------
    >>> from skdp import DPLSSGDRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLSSGDRegressor(epsilon=2.0).fit(X, y)
    >>> model.coef_.shape, model.n_iter_, model.privacy_.epsilon
    ((20,), 100, 2.0)
    """

    loss: NumberLoss = parameters.LOSS
    huber_threshold: float = parameters.STEP_HUBER_THRESHOLD
    clip_norm = changed(more=OF_TARGETS)

    smoothing: float = parameter(
        real(low=0, finite=True),
        """The number s >= 0 of the matrix I - s L, by whose inverse every noisy gradient is multiplied. The
        published values are 1 to 3, and 0 is `DPSGDRegressor`. It helps if features that are neighbours in X
        should be neighbours in the model: pixels, times, sorted bins. The intercept is left out.""",
        default=1.0,
    )


@document(DPLSSGDClassifier)
class DPSGDClassifier(StochasticDescentFit, LabelModel, PrivateFit[Problem]):
    """Logistic or softmax regression by differentially private stochastic gradient descent.

    Steps along noisy clipped gradients of all records or of minibatches, as in [Bassily2014]_ and [Abadi2016]_.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPLSSGDClassifier : Smooths its noisy gradients.
    DPIGHTClassifier : Steps on full batches that keep a number of features.

    Notes
    -----
    **Privacy.** The gradient of each record (or group) is clipped to l2 norm ``clip_norm``. Replacing one in a
    batch moves the batch mean by at most ``2 clip_norm / batch_size`` in l2 norm. Under zero-out and
    add-remove it is half of that. Steps on all records compose as exact Gaussian DP. For Poisson batches the
    noise is calibrated by the privacy loss distributions of the sampled Gaussian; under replace-one, of its
    dominating pair. For batches without replacement it is calibrated by Renyi DP. Momentum, Adam and averaging are
    post-processing of released gradients and cost no budget.

    {privacy.unprotected}

    References
    ----------
    .. [Bassily2014]
    .. [Abadi2016]

    Examples
    --------
    >>> from skdp import DPSGDClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPSGDClassifier(epsilon=2.0, batch_size=500, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, model.n_iter_, model.privacy_.epsilon
    ((1, 20), 100, 2.0)
    >>> next(row["sampling"] for row in model.privacy_.mechanisms if row["purpose"] == "steps")
    'Poisson'
    """

    loss: ClassLoss = parameters.CLASS_LOSS


@document(DPLSSGDRegressor)
class DPSGDRegressor(StochasticDescentFit, NumberModel, PrivateFit[Problem]):
    """Linear regression by differentially private stochastic gradient descent.

    Steps along noisy clipped gradients of all records or of minibatches, as in [Bassily2014]_ and [Abadi2016]_.

    {guarantee}

    See Also
    --------
    DPLSSGDRegressor : Smooths its noisy gradients.
    DPIGHTRegressor : Steps on full batches that keep a number of features.

    Notes
    -----
    **Privacy.** As for `DPSGDClassifier`: a batch mean of clipped gradients moves by at most ``2 clip_norm /
    batch_size`` in l2 norm under replace-one, and by half of that under zero-out and add-remove. The Gaussian
    noise is calibrated to all steps together.

    {privacy.targets}

    {privacy.unprotected}

    References
    ----------
    .. [Bassily2014]
    .. [Abadi2016]

    Examples
    --------
    >>> from skdp import DPSGDRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = DPSGDRegressor(epsilon=2.0).fit(X, y)
    >>> model.coef_.shape, model.n_iter_, model.privacy_.epsilon
    ((20,), 100, 2.0)
    """

    loss: NumberLoss = parameters.LOSS
    huber_threshold: float = parameters.STEP_HUBER_THRESHOLD
    clip_norm = changed(more=OF_TARGETS)
