"""Local objective perturbation: every owner minimises a noisy objective, and the minimisers are averaged.

The baseline "Local Obj P" of Wang (2021), Table 6.1: objective perturbation of Chaudhuri, Monteleoni & Sarwate
(2011) by each owner, with the constants of `skdp.privacy.mechanisms.objective_perturbation.cost`.

Each owner has a session of its own with the whole budget. Nothing that one owner releases depends on the records
of another, and every record is with one owner: the claim covers whoever sees all models (parallel composition).
The smallest owner's session writes the report. Each session rechecks its own ledger.
"""

import math
import warnings
from dataclasses import dataclass
from typing import Any, Literal, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import Tags

from skdp._docs import document
from skdp.base import Solution
from skdp.base.declare import changed, fitted, fixed
from skdp.base.fit import SessionOptions
from skdp.base.kinds import choice
from skdp.base.plan import BudgetSplit, Step, gaussian_steps
from skdp.exceptions import PrivacyLeakWarning, UnsupportedAccounting
from skdp.fitting.targets import Problem
from skdp.linear_model.amp import require_two
from skdp.losses import Loss
from skdp.multiparty.multiparty_fit import (
    DELTA_OF_GAUSSIAN,
    MultipartyClassifier,
    MultipartyFit,
    MultipartyRegressor,
    OwnersDecision,
)
from skdp.multiparty.output_estimators import WEIGHTING_OF_MODELS, MPCOutputPerturbationClassifier
from skdp.multiparty.owners import Owners
from skdp.privacy import PrivacySession
from skdp.reproductions.local_gradient import OWN_NOISE

# The random linear term gets this share of (epsilon, delta). The rest covers the distance between the computed and
# the exact minimiser, which is tiny.
OBJECTIVE_SHARE = 0.95


def least_penalty(loss: Loss, radius: float, epsilon: float) -> float:
    """Penalty beside a sum of losses at which curvature takes half of epsilon, as in Chaudhuri et al. (2011).

    The determinants of two neighbours' Hessians differ by at most the factor 1 + smoothness R^2 / penalty. Below
    this penalty no noise would be enough, or it would have to be far larger.
    """
    if math.isinf(epsilon):
        return 0.0
    return loss.smoothness * radius**2 / math.expm1(epsilon / 2)


@dataclass(frozen=True, kw_only=True)
class ObjectiveDecision(OwnersDecision):
    """The objectives of the owners.

    Attributes
    ----------
    penalties : tuple of float
        Weight of ``||theta||^2 / 2`` beside the sum of the losses of each owner's records.
    first : int
        The smallest owner, whose session writes the report.
    alpha : float
        The penalty of the smallest owner, where rows are measured in units of ``row_norm``.
    """

    penalties: tuple[float, ...]
    first: int
    alpha: float


class _LocalObjectiveFit(MultipartyFit):
    """Objective perturbation by each owner."""

    delta = DELTA_OF_GAUSSIAN
    alpha = changed(
        more="""With few records an owner takes a larger penalty, ``alpha_``: below it no noise would make its
        model private."""
    )
    weighting = WEIGHTING_OF_MODELS
    noise: Literal["gaussian"] = fixed(default="gaussian")
    engine: object = fixed(default="plain")
    unit = changed(kind=choice("record"), text="Only the change of one record is proven.")
    n_iter_: int = fitted("int", "1, the number of releases.")
    alpha_: float = fitted("float", "The penalty of the smallest owner.")

    _erratum = (
        "Lap(2 G / (n eps)) in the objective, as in Table 6.1 of Wang (2021), is calibrated to an l2 bound, and "
        "leaves no budget for the determinant of the Hessian. The noise here is Gaussian with proven constants"
    )

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        options["set_aside"] = OBJECTIVE_SHARE
        return super()._open_session(n_units, **options)

    def _check_before_data(self, groups: object) -> None:
        if self.unit != "record":
            raise UnsupportedAccounting(
                f"unit={self.unit!r} is not proven: objective perturbation protects records, because a group's "
                "gradients have no one direction; use unit='record'"
            )
        super()._check_before_data(groups)

    def _method(self, budget: BudgetSplit, problem: Problem) -> ObjectiveDecision:
        session, owners = budget.session, cast("Owners", problem.records)
        least = least_penalty(problem.loss, owners.radius, OBJECTIVE_SHARE * self.epsilon)
        asked = [size * self._penalty(owners) for size in owners.sizes]
        penalties = [max(penalty, least) for penalty in asked]
        first = int(np.argmin(owners.sizes))
        alpha = penalties[first] / owners.sizes[first] / owners.row_norm**2
        (gap,) = gaussian_steps(session, ("gap", 1.0, 1))  # of all that is not set aside
        return ObjectiveDecision(
            sizes={**self._sizes(problem), "n_iter": 1, "alpha": alpha},
            steps=(Step("minimiser", OBJECTIVE_SHARE), gap._replace(share=1.0 - OBJECTIVE_SHARE)),
            penalties=tuple(penalties), first=first, alpha=alpha,
            penalty=1.0 if session.exact else least / asked[first],
        )  # fmt: skip

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        owners = cast("Owners", problem.records)
        made: ObjectiveDecision = problem.decision
        average = np.zeros(owners.n_parameters)
        minimizers = owners.perturbed_minimizers(problem.loss, made.penalties)
        plan = session.plan_gaussian(len(minimizers) if session.exact else 1, purpose="gap")
        for j, minimizer in enumerate(minimizers):
            if j == made.first or session.exact:
                theta = session.objective_perturbation(minimizer, plan)
            else:
                theta = self._released_alone(session, minimizer)
            average += owners.weight(j) * owners.sizes[j] / owners.divisor * theta
        return Solution(self._rescaled(average, owners), attributes={"alpha_": made.alpha})

    def _released_alone(self, session: PrivacySession, minimizer: Any) -> NDArray[np.float64]:
        """One owner's model, from a session of its own; the fit's session holds the accountant's reservation."""
        seed = None if self.random_state is None else int(session.integers(2**31, 1)[0])
        with warnings.catch_warnings():
            # The fit's own session has said it.
            warnings.filterwarnings("ignore", "random_state is a seed", PrivacyLeakWarning)
            own = PrivacySession(
                epsilon=self.epsilon,
                delta=self.delta,
                adjacency=self.adjacency,
                unit=self.unit,
                accountant=False,
                random_state=seed,
                estimator=type(self).__name__,
                set_aside=OBJECTIVE_SHARE,
            )
        with own:
            theta = own.objective_perturbation(minimizer, own.plan_gaussian(1, purpose="gap"))
            own.report()  # rechecks the ledger
        return theta

    def _several_owners(self) -> str:
        # The owners release by themselves, and objective perturbation has no mu: basic composition.
        return "a person with one record at each of h owners is protected with h times epsilon and h times delta"

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        return (*super()._assumptions(problem), OWN_NOISE)


@document(MPCOutputPerturbationClassifier)
class DPLocalObjectivePerturbationClassifier(MultipartyClassifier, _LocalObjectiveFit):
    """The average of several owners' own models for two classes, each by objective perturbation.

    A baseline of [Wang2021]_: every owner minimises the mean loss of its own records plus ``alpha / 2 *
    ||theta||^2`` plus a random linear term.

    {guarantee}

    See Also
    --------
    MPCOutputPerturbationClassifier : A secure average of minimisers.

    Notes
    -----
    **Privacy.** `skdp.privacy.PrivacySession.objective_perturbation` releases each owner's model for the whole
    budget, with the density argument of [Chaudhuri2011]_ and Gaussian noise. Under
    zero-out a record moves the gradient by half as much. The other owners' models do not depend on a record, and
    the claim covers whoever sees every owner's model (parallel composition).

    {privacy.unprotected}

    References
    ----------
    .. [Wang2021] Section 6.4, Table 6.1.
    .. [Chaudhuri2011]

    Examples
    --------
    >>> from skdp import DPLocalObjectivePerturbationClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLocalObjectivePerturbationClassifier(epsilon=2.0, classes=(0, 1))
    >>> model.fit(X, y, owners=["east", "west"] * 1000).coef_.shape
    (1, 20)
    """

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _check_targets(self) -> None:
        super()._check_targets()
        declared = self._declared_classes()
        if declared is not None:
            require_two(declared.size)

    def _method(self, budget: BudgetSplit, problem: Problem) -> ObjectiveDecision:
        require_two(len(np.asarray(problem.fitted["classes_"])))
        return super()._method(budget, problem)


@document(DPLocalObjectivePerturbationClassifier)
class DPLocalObjectivePerturbationRegressor(MultipartyRegressor, _LocalObjectiveFit):
    """The average of several owners' own models with Huber's loss, each by objective perturbation.

    A baseline of [Wang2021]_. Targets are clipped to ``y_bounds``, then moved and scaled to [-1, 1]. The squared
    loss has unbounded gradients, and a random linear term may move its minimiser anywhere: it is not offered.

    {guarantee}

    See Also
    --------
    MPCOutputPerturbationRegressor : A secure average of minimisers.

    Examples
    --------
    >>> from skdp import DPLocalObjectivePerturbationRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLocalObjectivePerturbationRegressor(epsilon=2.0, y_bounds=(-5, 5))
    >>> model.fit(X, y, owners=[0, 1] * 1000).coef_.shape
    (20,)
    """

    loss: Literal["huber"] = fixed(default="huber")
