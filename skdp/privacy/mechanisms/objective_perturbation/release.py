"""Objective perturbation as a release of a session: (epsilon, delta)-DP, outside of Gaussian DP."""

import math

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.losses import Loss
from skdp.privacy import noise
from skdp.privacy.bounded import BoundedStatistic, rounded_source
from skdp.privacy.mechanisms.gaussian.release import GaussianReleases
from skdp.privacy.mechanisms.objective_perturbation.cost import (
    ObjectivePerturbation,
    ObjectiveTerms,
    objective_noise,
    objective_terms,
)
from skdp.privacy.session.ledger import GaussianPlan
from skdp.privacy.statistics.perturbed import PerturbedMinimizer


class PerturbedMinima(GaussianReleases):
    """Minimisers of perturbed objectives."""

    def objective_noise_std(self, loss: Loss, *, radius: float, penalty: float) -> float:
        """Standard deviation of the random linear term, from public numbers; 0 without privacy.

        Parameters
        ----------
        loss : object from `skdp.losses`
        radius : float
            Bound on the norm of a row with the intercept's feature.
        penalty : float
            Weight of ``||theta||^2 / 2`` beside the sum of the losses.

        Returns
        -------
        float
            inf if the penalty is too small for the part of the budget that is set aside.
        """
        ledger = self._ledger
        if ledger.exact:
            return 0.0
        epsilon, delta = ledger.aside()
        terms = objective_terms(loss, radius, penalty, ledger.adjacency)
        return objective_noise(epsilon, delta, terms)

    def objective_perturbation(
        self, minimizer: PerturbedMinimizer, plan: GaussianPlan, *, purpose: str = "minimiser"
    ) -> NDArray[np.float64]:
        """Release the minimiser of the objective plus ``<b, theta>`` for Gaussian b, computed approximately.

        Takes the whole part of the budget that was set aside, once. A second Gaussian noise, of ``plan``,
        covers the distance between the computed and the exact minimiser, and floating point. The theory page
        "Approximate minima perturbation" has the theorem.

        Parameters
        ----------
        minimizer : PerturbedMinimizer
            Made by `skdp.privacy.statistics.perturbed_minimizer`.
        plan : GaussianPlan
            Of this session, with a release left.
        purpose : str, default="minimiser"
            Written to the report.

        Returns
        -------
        ndarray of float64 of shape (n_parameters,)

        Raises
        ------
        PrivacyBudgetExceeded
            If nothing is set aside, or it is used up. Nothing was drawn or released.
        ValueError
            If the penalty is too small for the share that is set aside. Nothing was drawn or released.
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            if not isinstance(minimizer, PerturbedMinimizer):
                raise TypeError(f"only a PerturbedMinimizer can be released, got {type(minimizer).__name__}")
            if ledger.exact:
                ledger.check_plan(plan, plan.releases)
                ledger.use(plan)
                origin = np.zeros(minimizer.n_parameters)
                return minimizer._domain(0.0).minimizer(minimizer._rows, origin)
            epsilon, delta = ledger.aside()
            self._check_aside()
            terms = objective_terms(minimizer.loss, minimizer.radius, minimizer.penalty, ledger.adjacency)
            needed = objective_noise(epsilon, delta, terms)
            if needed == math.inf:
                raise ValueError(
                    f"penalty={minimizer.penalty:.3g} is too small: no noise makes the minimiser "
                    f"({epsilon:.3g}, {delta:.3g})-DP; use a larger one"
                )
            return self._perturbed(minimizer, plan, (epsilon, delta), needed, terms, purpose)

    def _check_aside(self) -> None:
        """Refuse a second release: the first one takes all that was set aside."""
        if any(line["name"] == ObjectivePerturbation.name for line in self._ledger.rows):
            raise PrivacyBudgetExceeded("the share that was set aside is spent; nothing was released")

    def _perturbed(
        self, minimizer: PerturbedMinimizer, plan: GaussianPlan,
        cost: tuple[float, float], needed: float, terms: ObjectiveTerms, purpose: str,
    ) -> NDArray[np.float64]:  # fmt: skip
        ledger = self._ledger
        grid = needed / noise.CANONICAL_SIGMA * (1 + 2.0**-40)
        std, p = grid * noise.CANONICAL_SIGMA, minimizer.n_parameters
        domain, rows = minimizer._domain(std), minimizer._rows
        # The second grid holds every point that the minimiser can be.
        least = domain.reach / (plan.noise_multiplier * 2.0**29)
        eta = max(domain.distance(grid), least)
        solved: list[NDArray[np.float64]] = []
        source = rounded_source(
            lambda: solved[0], owner=rows, unit=rows.shape.unit, needs_public_n=rows.shape.n_public is None
        )
        computed = BoundedStatistic.from_source(source, (p,), l2=2 * eta, adjacency=ledger.adjacency)
        # Everything that could be refused is refused before b is drawn.
        ledger.check_statistic(computed)
        ledger.check_plan(plan, plan.releases)
        ledger.noise(computed, plan)
        first = noise.gaussian_numerical_error(p, std / terms.sensitivity)
        second = noise.gaussian_numerical_error(p, plan.noise_multiplier)
        ledger.check_numerical_error((first[0] + second[0], first[1] + second[1]))
        made = ObjectivePerturbation(
            epsilon=cost[0], delta=cost[1], noise_std=std, sensitivity=terms.sensitivity, grid=grid,
            penalty=minimizer.penalty, curvature=terms.curvature, trade=terms.trade,
            one_signed=terms.one_signed, replaced=terms.replaced,
        )  # fmt: skip
        drawn = self._release(
            lambda stream: (noise.rounded_gaussian(float(noise.CANONICAL_SIGMA), p, stream), made.describe()),
            numerical_error=first,
            admit=self._check_aside,
            purpose=purpose,
        )
        solved.append(domain.minimizer(rows, drawn * np.float64(grid)))
        return self.gaussian(computed, plan)
