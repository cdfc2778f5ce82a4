"""Estimators of output perturbation; the algorithm is in `output`."""

import math
from dataclasses import dataclass
from typing import Literal

from skdp._docs import document
from skdp.base import Solution
from skdp.base.declare import changed, fitted
from skdp.base.plan import BudgetSplit
from skdp.fitting.targets import Problem
from skdp.losses import Loss
from skdp.multiparty.estimators import MPCGradientPerturbationClassifier
from skdp.multiparty.multiparty_fit import MultipartyClassifier, MultipartyFit, MultipartyRegressor, OwnersDecision
from skdp.multiparty.output import average_of_minimizers, ridge_loss
from skdp.multiparty.owners import Owners, owners_of
from skdp.multiparty.release import is_plain, laplace_epsilon, opened_engine
from skdp.privacy import PrivacySession, factor

WEIGHTING_OF_MODELS: Literal["owner", "record"] = changed(
    text=""""owner" averages the models with equal weights, as published. "record" weighs them by their number of
    records (or groups)."""
)
RIDGE_LOSS = changed(text=""""squared" is ridge regression. Huber's loss is linear beyond ``huber_threshold``.""")


@dataclass(frozen=True, kw_only=True)
class OutputDecision(OwnersDecision):
    """The objective that every owner minimises.

    Attributes
    ----------
    loss : Loss
        With bounded gradients, and the minimiser of the loss that was asked for.
    alpha : float
        Weight of ``||theta||^2 / 2``.
    epsilon : float or None
        Of the Laplace noise; None is Gaussian noise.
    """

    loss: Loss
    alpha: float
    epsilon: float | None
    penalised: bool = True


class OutputPerturbationFit(MultipartyFit):
    """Output perturbation."""

    alpha = changed(more="The noise is as large as 1 / alpha.")
    weighting = WEIGHTING_OF_MODELS
    n_iter_: int = fitted("int", "1, the number of releases.")

    _erratum = (
        "Theorem 6.3.1 of Wang (2021) holds for noise with the density exp(-eps ||v|| / Delta) of the l2 norm, "
        "which its proof takes. Independent Laplace coordinates, as in its Lemma 6.5.1, have the l1 density: "
        "for them the l2 bound is sqrt(n_parameters) times too small. The noise here is calibrated to its own "
        "norm"
    )

    def _method(self, budget: BudgetSplit, problem: Problem) -> OutputDecision:
        session, owners = budget.session, owners_of(problem)
        alpha, loss = self._penalty(owners), problem.loss
        if loss.is_quadratic:
            loss = ridge_loss(alpha, owners.radius)
        epsilon = None if self.noise == "gaussian" else self._epsilon(session, owners, loss, alpha)
        if is_plain(self.engine):
            session.require_feasible(self._n_values(problem), 1, 1.0, epsilon=epsilon)
        noise = 0.0 if session.exact else self._prediction_noise(session, problem, loss, alpha)
        return OutputDecision(
            sizes={**self._sizes(problem), "n_iter": 1},
            steps=self._steps(session, 1),
            signal=self._half_width / noise if noise else None,  # of predictions
            loss=loss,
            alpha=alpha,
            epsilon=epsilon,
            prediction_noise=noise,
        )

    def _epsilon(self, session: PrivacySession, owners: Owners, loss: Loss, alpha: float) -> float:
        """Epsilon of the Laplace noise."""
        return laplace_epsilon(session, 1)

    def _prediction_noise(self, session: PrivacySession, problem: Problem, loss: Loss, alpha: float) -> float:
        """For a row of the largest length, which the fit takes."""
        owners = owners_of(problem)
        moved = loss.lipschitz * owners.radius / alpha / owners.divisor
        moved *= factor(session.adjacency) * self._widening(problem)
        if self.noise == "laplace":
            moved *= math.sqrt(2.0 * self._n_values(problem)) / laplace_epsilon(session, 1)
        else:
            moved /= session.mu
        return owners.radius * moved * self._half_width

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        owners = owners_of(problem)
        made: OutputDecision = problem.decision
        with opened_engine(self.engine, owners.n_owners, 1) as engine:
            theta = average_of_minimizers(
                session, owners, made.loss, alpha=made.alpha, noise=self.noise, engine=engine
            )
        return Solution(self._rescaled(theta, owners))


@document(MPCGradientPerturbationClassifier)
class MPCOutputPerturbationClassifier(MultipartyClassifier, OutputPerturbationFit):
    """Logistic or softmax regression of several owners by a secure noisy average of their models.

    Every owner minimises the mean loss of its own records plus ``alpha / 2 * ||theta||^2``, the intercept
    penalised too. Only the noisy average of the minimisers is opened, once, as in section 6.3.1 of
    [Wang2021]_. With many small owners the average is not the minimiser of the pooled data, whatever the noise:
    then `MPCGradientPerturbationClassifier` is more accurate.

    {guarantee}

    See Also
    --------
    MPCGradientPerturbationClassifier : Many rounds, and less noise.

    Notes
    -----
    **Privacy.** Let G be the largest norm of a gradient: the loss's Lipschitz constant times the largest norm of a
    row with the intercept's constant. Replacing one of the n_j units of owner j moves its minimiser by at most ``2
    G / (n_j alpha) + 2 tau_j / alpha`` in l2 norm ([Chaudhuri2011]_), with the solver's gap tau_j, which no data
    set widens; under zero-out the first term is half of that. The average moves by a weight's share, 1/m with
    weighting="owner". The largest over the owners counts, because one owner changes at a time. A person with
    records at several owners is protected as several units: the report explains the effect on epsilon.

    {privacy.unprotected}

    References
    ----------
    .. [Wang2021] Section 6.3.1.
    .. [Chaudhuri2011]

    Examples
    --------
    >>> from skdp import MPCOutputPerturbationClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> hospital = ["east", "west", "south", "north"] * 500
    >>> model = MPCOutputPerturbationClassifier(epsilon=2.0, alpha=0.1, classes=(0, 1))
    >>> model.fit(X, y, owners=hospital).coef_.shape
    (1, 20)
    """


@document(MPCOutputPerturbationClassifier)
class MPCOutputPerturbationRegressor(MultipartyRegressor, OutputPerturbationFit):
    """Linear regression of several owners by a secure noisy average of their models.

    Every owner minimises its own objective, and only the noisy average of the minimisers is opened, once, as in
    section 6.3.1 of [Wang2021]_. Targets are clipped to ``y_bounds``, then moved and scaled to [-1, 1].

    {guarantee}

    See Also
    --------
    MPCGradientPerturbationRegressor : Many rounds, and less noise.

    Notes
    -----
    {Notes}

    Ridge regression has the same minimiser as a Huber loss with a large threshold, for which G is finite: with
    targets in [-1, 1] and rows of norm at most R, ``G = R (1 + R / (2 sqrt(alpha)))``.

    Examples
    --------
    >>> from skdp import MPCOutputPerturbationRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = MPCOutputPerturbationRegressor(epsilon=2.0, alpha=0.1, y_bounds=(-5, 5))
    >>> model.fit(X, y, owners=[0, 1, 2, 3] * 500).coef_.shape
    (20,)
    """

    loss = RIDGE_LOSS
