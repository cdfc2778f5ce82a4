"""The frame of a fit without privacy: the private one's methods, in a session that releases exact values."""

import math
from abc import ABCMeta, abstractmethod
from collections.abc import Iterable
from dataclasses import replace
from typing import Generic, Self

from sklearn.base import BaseEstimator

from skdp.base.containers import check_collected
from skdp.base.declare import Declared, check_parameters
from skdp.base.fit import ProblemT, Solution, releases_of, replace_fitted, tell
from skdp.base.plan import Advice, Decision, FitPlan
from skdp.base.weights import taken_arguments
from skdp.privacy import PrivacySession, PublicShape

__all__ = ["ExactFit"]


class ExactFit(Declared, BaseEstimator, Generic[ProblemT], metaclass=ABCMeta):
    """Base of the estimators without privacy: the same method through a session that releases exact values."""

    epsilon, delta, adjacency = math.inf, 0.0, "replace-one"

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
        session = PrivacySession.without_privacy(random_state=getattr(self, "random_state", None))
        problem = self.read(X, y, **more)
        shape = problem.records.shape
        problem = replace(problem, plan=FitPlan.of(self, shape, self._decide(session, problem)))
        solution = self.solve(session, problem)
        tell(self._advice_after(shape, solution))
        replace_fitted(self, self._fitted(problem, solution))
        return self

    @abstractmethod
    def read(self, X: object, y: object = None, groups: object = None) -> ProblemT:
        """Check the data of `fit`; further keyword arguments of `fit` are passed on."""

    @abstractmethod
    def solve(self, session: PrivacySession, problem: ProblemT) -> Solution:
        """Run the method on exact statistics of the records."""

    def _check_parameters(self) -> None:
        """Check the parameters together, before anything is read."""

    def _decide(self, session: PrivacySession, problem: ProblemT) -> Decision:
        """Decide from public numbers what the fit does."""
        return releases_of(self, session, problem)

    def _advice_after(self, shape: PublicShape, solution: Solution) -> Iterable[Advice]:
        """Return warnings of what the fit found."""
        return ()

    def _fitted(self, problem: ProblemT, solution: Solution) -> dict[str, object]:
        """Fitted attributes."""
        return {**problem.fitted, "n_iter_": solution.n_iter, **solution.attributes}
