"""Pathak, Rastogi & Raj (2010): a secure average of the owners' minimisers with the noise of one owner.

"Multiparty differential privacy via aggregation of locally trained classifiers" (NIPS 2010) adds independent noise
Lap(2 G / (n_(1) alpha epsilon)) to the average of m minimisers, with n_(1) the records of the smallest owner.

Cost
----
A record moves its owner's minimiser by at most D = 2 G / (n_(1) alpha) in l2 norm. It moves the average by D / m
in l2 norm, and so by at most sqrt(p) D / m in l1 norm, with p parameters. Independent Laplace noise of scale b is
(l1 norm / b)-differentially private, and noise of the published scale D / epsilon costs

    sqrt(p) / m * epsilon.

It is calibrated to the l2 norm, which is sqrt(p) too little, and forgets the average, which is m too much. The
corrected version calibrates to the l1 norm and keeps the rest of the rule: scale sqrt(p) D / epsilon. It costs
epsilon / m.
"""

import math
from dataclasses import replace
from typing import Literal, cast

from skdp._docs import document
from skdp.base import Solution
from skdp.base.declare import changed, fixed, parameter
from skdp.base.kinds import choice
from skdp.base.plan import BudgetSplit, Step
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.fitting.targets import Problem
from skdp.losses import Loss
from skdp.multiparty.multiparty_fit import MultipartyClassifier, MultipartyRegressor
from skdp.multiparty.output_estimators import (
    RIDGE_LOSS,
    MPCOutputPerturbationClassifier,
    OutputDecision,
    OutputPerturbationFit,
)
from skdp.multiparty.owners import Owners
from skdp.multiparty.release import laplace_epsilon
from skdp.privacy import BoundedStatistic, PrivacySession, sum_of_owners


class _PathakFit(OutputPerturbationFit):
    """An average with the noise of one owner."""

    epsilon = changed(more="`privacy_` states the cost of the noise, which is much less with many owners.")
    version: Literal["corrected", "published"] = parameter(
        choice("corrected", "published"),
        """"corrected" has noise for the l1 norm, and costs epsilon / m. "published" has noise for the l2 norm,
        and costs sqrt(p) / m times epsilon with p parameters and m owners; with fewer owners than sqrt(p) that
        is above epsilon, and the fit is refused before anything is released.""",
        default="corrected",
    )
    weighting: Literal["owner"] = fixed(default="owner")
    noise: Literal["laplace"] = fixed(default="laplace")
    engine: object = fixed(default="plain")
    _erratum = (
        "Lap(2 G / (n_(1) alpha eps)) of Pathak et al. (2010) is calibrated to an l2 bound, sqrt(p) too small for "
        "independent coordinates, and to one owner's minimiser, m times what a record moves the average: it costs "
        "sqrt(p) / m times eps. This report states the cost of the noise that was added"
    )

    def _method(self, budget: BudgetSplit, problem: Problem) -> OutputDecision:
        made, session = super()._method(budget, problem), budget.session
        cost = 1.0 if session.exact else cast("float", made.epsilon) / laplace_epsilon(session, 1)
        return replace(made, steps=(Step("minimiser", cost),))

    def _epsilon(self, session: PrivacySession, owners: Owners, loss: Loss, alpha: float) -> float:
        total = sum_of_owners(owners.minimizer(loss, alpha=alpha, adjacency=session.adjacency))
        return self._cost(total, owners.n_owners) * laplace_epsilon(session, 1)

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        owners = cast("Owners", problem.records)
        made: OutputDecision = problem.decision
        total = sum_of_owners(owners.minimizer(made.loss, alpha=made.alpha, adjacency=session.adjacency))
        epsilon = cast("float", made.epsilon)
        theta = session.laplace(total, epsilon, purpose="minimiser")
        return Solution(self._rescaled(theta, owners))

    def _cost(self, total: BoundedStatistic, n_owners: int) -> float:
        """Epsilon of the noise over the epsilon that it is meant for."""
        if self.version == "corrected":
            return 1.0 / n_owners
        cost = total.l1 / total.l2 / n_owners
        if cost > 1.0:
            raise PrivacyBudgetExceeded(
                f"the published noise costs {cost:.3g} times epsilon with {n_owners} owners and {total.size} "
                "parameters: use version='corrected', or at least as many owners as the square root of the number "
                "of parameters"
            )
        return cost

    def _widening(self, problem: Problem) -> float:
        owners = cast("Owners", problem.records)
        if self.version == "corrected":
            return float(owners.n_owners)
        return owners.n_owners / math.sqrt(self._n_values(problem))

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        return {**super()._public_facts(problem), "version": self.version}


@document(MPCOutputPerturbationClassifier)
class MPCPathakClassifier(MultipartyClassifier, _PathakFit):
    """Several owners' average model for classification, with the noise of Pathak, Rastogi & Raj (2010).

    A baseline of [Wang2021]_: a secure sum as in `MPCOutputPerturbationClassifier`, with m times the Laplace
    noise that it needs.

    {guarantee}

    See Also
    --------
    MPCOutputPerturbationClassifier : The same average with as much noise as it needs.

    Notes
    -----
    **Privacy.** Replacing one of the n_j records of owner j moves its minimiser by at most ``D_j = 2 G / (n_j
    alpha)`` in l2 norm ([Chaudhuri2011]_) and a solver's gap. The average of m moves by ``max_j D_j / m``, in l1
    norm by sqrt(p) times that; under zero-out it is half. With "corrected" the Laplace noise has scale ``sqrt(p)
    max_j D_j / epsilon``, with "published" ``max_j D_j / epsilon``. The formulas hold at delta = 0. With delta > 0
    the pure epsilon whose mu is the budget's takes the place of epsilon.

    {privacy.unprotected}

    References
    ----------
    .. [Wang2021] Section 6.4, Table 6.1.
    .. [Chaudhuri2011]

    Examples
    --------
    >>> from skdp import MPCPathakClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = MPCPathakClassifier(epsilon=2.0, delta=0.0, alpha=0.1, classes=(0, 1))
    >>> round(model.fit(X, y, owners=[0, 1, 2, 3] * 500).privacy_.epsilon, 3)
    0.5
    """


@document(MPCPathakClassifier)
class MPCPathakRegressor(MultipartyRegressor, _PathakFit):
    """Several owners' average model for regression, with the noise of Pathak, Rastogi & Raj (2010).

    A baseline of [Wang2021]_. Targets are clipped to ``y_bounds``, then moved and scaled to [-1, 1].

    {guarantee}

    See Also
    --------
    MPCOutputPerturbationRegressor : The same average with as much noise as it needs.

    Examples
    --------
    >>> from skdp import MPCPathakRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = MPCPathakRegressor(epsilon=2.0, alpha=0.1, y_bounds=(-5, 5))
    >>> model.fit(X, y, owners=[0, 1] * 1000).coef_.shape
    (20,)
    """

    loss = RIDGE_LOSS
