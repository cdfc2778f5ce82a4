"""Local output perturbation: every owner adds the whole noise to its own minimiser, and all are averaged.

The baseline "Local Out P" of Wang (2021), Table 6.1: output perturbation of Chaudhuri, Monteleoni & Sarwate
(2011) by each owner, with the noise of the right norm.
"""

import math
from typing import Any

from skdp._docs import document
from skdp.base import Solution
from skdp.base.declare import fixed
from skdp.fitting.targets import Problem
from skdp.multiparty.multiparty_fit import MultipartyClassifier, MultipartyRegressor
from skdp.multiparty.output_estimators import (
    RIDGE_LOSS,
    MPCOutputPerturbationClassifier,
    OutputDecision,
    OutputPerturbationFit,
)
from skdp.privacy import PrivacySession
from skdp.reproductions.local_gradient import OWN_NOISE
from skdp.reproductions.own_noise import release_with_own_noise


class _LocalOutputFit(OutputPerturbationFit):
    """Output perturbation without a secure sum."""

    engine: object = fixed(default="plain")

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        owners: Any = problem.records
        made: OutputDecision = problem.decision
        statistics = owners.minimizer(made.loss, alpha=made.alpha, adjacency=session.adjacency)
        largest = max(statistic.l2 for statistic in statistics)
        ratios = [statistic.l2 / largest for statistic in statistics]
        release = release_with_own_noise(session, ratios, noise=self.noise, releases=1)
        return Solution(self._rescaled(release(statistics), owners))

    def _widening(self, problem: Problem) -> float:
        owners: Any = problem.records
        return math.hypot(*map(owners.weight, range(owners.n_owners)))

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        return (*super()._assumptions(problem), OWN_NOISE)


@document(MPCOutputPerturbationClassifier)
class DPLocalOutputPerturbationClassifier(MultipartyClassifier, _LocalOutputFit):
    """The average of several owners' own private models for classification.

    A baseline of [Wang2021]_: nobody needs to be trusted. Every owner minimises the mean loss of its own records
    plus ``alpha / 2 * ||theta||^2`` and adds noise for the whole budget. The noise of the average is sqrt(m) times
    the noise of `MPCOutputPerturbationClassifier` with m owners of equal size.

    {guarantee}

    See Also
    --------
    MPCOutputPerturbationClassifier : One noise for the average of all owners.

    Notes
    -----
    **Privacy.** Replacing one of the n_j records of owner j moves its minimiser by at most ``2 G / (n_j alpha) + 2
    tau_j / alpha`` in l2 norm ([Chaudhuri2011]_) (under zero-out the first term is half of that), with the
    solver's gap tau_j; the models of other owners do not change, and the claim covers whoever sees every owner's
    noisy model (parallel composition). In this process the session draws the noise of the owner with the largest
    sensitivity, and the noise of all others is added to the released average.

    Erratum: ``Lap(2 G / (n_j alpha epsilon))`` in each coordinate, as in Table 6.1 of [Wang2021]_, is
    calibrated to the l2 norm, and costs sqrt(n_parameters) times epsilon. Laplace noise here has the l1 norm.

    {privacy.unprotected}

    References
    ----------
    .. [Wang2021] Section 6.4, Table 6.1.
    .. [Chaudhuri2011]

    Examples
    --------
    >>> from skdp import DPLocalOutputPerturbationClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLocalOutputPerturbationClassifier(epsilon=2.0, alpha=0.1, classes=(0, 1))
    >>> model.fit(X, y, owners=["east", "west"] * 1000).coef_.shape
    (1, 20)
    """


@document(DPLocalOutputPerturbationClassifier)
class DPLocalOutputPerturbationRegressor(MultipartyRegressor, _LocalOutputFit):
    """The average of several owners' own private models for regression.

    A baseline of [Wang2021]_: every owner adds noise for the whole budget to its own minimiser. Targets are
    clipped to ``y_bounds``, then moved and scaled to [-1, 1].

    {guarantee}

    See Also
    --------
    MPCOutputPerturbationRegressor : One noise for the average of all owners.

    Examples
    --------
    >>> from skdp import DPLocalOutputPerturbationRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLocalOutputPerturbationRegressor(epsilon=2.0, alpha=0.1, y_bounds=(-5, 5))
    >>> model.fit(X, y, owners=[0, 1] * 1000).coef_.shape
    (20,)
    """

    loss = RIDGE_LOSS
