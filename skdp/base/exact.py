"""The frame of a fit without privacy: the private one's methods, in a session that releases exact values."""

import math
from abc import ABCMeta, abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Generic, Literal, Self

import numpy as np
from sklearn.base import BaseEstimator

from skdp.base.cells import check_collected
from skdp.base.declare import Declared, check_parameters, fixed
from skdp.base.fit import Adjacency, PrivateFit, ProblemT, Unit, decision_of, replace_fitted, tell
from skdp.base.plan import BudgetSplit, Decision, FitPlan
from skdp.base.problem import Solution
from skdp.base.tables import taken_arguments
from skdp.privacy import PrivacySession

if TYPE_CHECKING:  # a method for both frames is typed for the private one
    _Frame = PrivateFit
else:

    class _Frame(Declared, BaseEstimator, Generic[ProblemT], metaclass=ABCMeta):
        """What an exact fit is: no `PrivateFit`, since it spends no budget."""


class ExactFit(_Frame[ProblemT]):  # type: ignore[explicit-any]  # of the base
    """Base of the estimators without privacy: the same method through a session that releases exact values."""

    epsilon: float = fixed(default=math.inf)
    delta: float = fixed(default=0.0)
    adjacency: Adjacency = fixed(default="replace-one")
    unit: Unit = fixed(default="record")
    n_public: int | None = fixed(default=None)
    accountant: Literal[False] = fixed(default=False)
    random_state: int | np.random.RandomState | np.random.Generator | None = fixed(default=None)

    def fit(self, X: object, y: object, **more: object) -> Self:
        """Fit the model without privacy.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Neither copied (if it is float32 or float64) nor changed.
        y : array-like of shape (n_samples,)
            Targets.
        **more : dict
            ``sample_weight`` of shape (n_samples,), or None for no weights.

        Returns
        -------
        self : estimator
        """
        check_collected(X=X, y=y, **more)
        check_parameters(self)
        self._check_parameters()
        if "groups" in more:
            raise TypeError(
                "fit got an unexpected keyword argument 'groups': a model that is not private has no unit"
            )
        more = taken_arguments(self, more)
        session = PrivacySession.without_privacy(random_state=self.random_state)
        problem = self.read(X, y, **more)
        shape = problem.records.shape
        problem = replace(problem, plan=FitPlan.of(self, shape, self._decide(session, problem)))
        solution = self._run(session, problem)
        tell(solution.warnings)
        replace_fitted(self, self._fitted(problem, solution))
        return self

    @abstractmethod
    def read(self, X: object, y: object = None, groups: object = None) -> ProblemT:
        """Check the data of `fit`; further keyword arguments of `fit` are passed on."""

    @abstractmethod
    def solve(self, session: PrivacySession, problem: ProblemT) -> Solution:
        """Run the method on exact statistics of the records."""

    def _run(self, session: PrivacySession, problem: ProblemT) -> Solution:
        """Run `solve`, and what a family of estimators puts around it."""
        return self.solve(session, problem)

    def _check_parameters(self) -> None:
        """Check the parameters together, before anything is read."""

    def _decide(self, session: PrivacySession, problem: ProblemT) -> Decision:
        """Decide from public numbers what the fit does."""
        return decision_of(self, BudgetSplit(session), problem.records.shape)

    def _fitted(self, problem: ProblemT, solution: Solution) -> dict[str, object]:
        """Fitted attributes."""
        return {**problem.fitted, "n_iter_": solution.n_iter, **solution.attributes}
