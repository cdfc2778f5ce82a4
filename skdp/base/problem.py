"""The results of an estimator's two methods: the problem that `read` makes, and the solution of `solve`."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from skdp.base.plan import Advice, Decision, FitPlan
from skdp.privacy import PublicShape


class Records(Protocol):
    """The records of a problem: any object with a public shape."""

    @property
    def shape(self) -> PublicShape:
        """The public facts; plans, warnings and the report read nothing else."""


@dataclass(frozen=True)
class Problem:
    """The result of `read`.

    Attributes
    ----------
    records : Records
        `PrivateRecords`, or another holder of private data with a `PublicShape`.
    fitted : dict
        Public fitted attributes, with their trailing underscore.
    leaks : tuple of str
        Lines for the report on facts that were taken from the data and that epsilon does not cover.
    plan : FitPlan, default=None
        `PrivateFit` puts it in before `solve`.
    """

    records: Records
    fitted: dict[str, object]
    leaks: tuple[str, ...]
    plan: FitPlan | None = field(default=None, kw_only=True)

    @property
    def decision(self) -> Decision:
        """The decision of the fit's plan."""
        assert self.plan is not None  # the frame of a fit makes it before `solve`
        return self.plan.decision

    @property
    def releases(self) -> Any:  # type: ignore[explicit-any]  # what the author made
        """The plans that the estimator's method ``releases(budget, shape)`` returned."""
        if self.plan is None or self.plan.decision.details is None:
            raise TypeError(
                "solve reads problem.releases, but no releases were planned: give the estimator a method "
                "releases(budget, shape) that returns its plans, such as budget.plan_gaussian(releases=1)"
            )
        return self.plan.decision.details


@dataclass(frozen=True)
class Solution:
    """The result of `solve`: the released numbers of a run.

    Attributes
    ----------
    theta : ndarray, default=empty
        The released parameters, in the layout of the method; linear models make ``coef_`` of it.
    n_iter : int
    attributes : dict
        Further fitted attributes, public or released, with their trailing underscore.
    converged : bool
        Of a fit that is not private: whether its stopping rule was met.
    slope_noise : float
        Known noise of the slope by which the scores of ``theta`` were recalibrated, over the slope.
    warnings : tuple of Advice
        What released numbers show.
    """

    theta: NDArray[np.float64] = field(default_factory=lambda: np.empty(0))
    n_iter: int = 1
    attributes: Mapping[str, object] = field(default_factory=dict)
    converged: bool = False
    slope_noise: float = 0.0
    warnings: tuple[Advice, ...] = ()
