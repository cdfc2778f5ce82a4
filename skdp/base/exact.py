"""The frame of a fit without privacy: the private one's methods, in a session that releases exact values."""

import math
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, Self

import numpy as np

from skdp.base.blocks import is_blocks
from skdp.base.cells import check_collected
from skdp.base.declare import check_parameters, fixed
from skdp.base.fit import Adjacency, FitFrame, PrivateFit, ProblemT, Unit, replace_fitted, tell
from skdp.base.plan import FitPlan
from skdp.base.user_tables import taken_arguments
from skdp.privacy import PrivacySession

if TYPE_CHECKING:  # a method for both frames is typed for the private one
    _Frame = PrivateFit
else:
    _Frame = FitFrame  # no `PrivateFit`, since it spends no budget


class NonPrivateFit(_Frame[ProblemT]):  # type: ignore[explicit-any]  # of the base
    """Base of the estimators without privacy: the same method through a session that releases exact values."""

    epsilon: float = fixed(default=math.inf)
    delta: float = fixed(default=0.0)
    adjacency: Adjacency = fixed(default="replace-one")
    unit: Unit = fixed(default="record")
    n_public: int | None = fixed(default=None)
    accountant: Literal[False] = fixed(default=False)
    random_state: int | np.random.RandomState | np.random.Generator | None = fixed(default=None)

    def fit(self, X: object, y: object = None, **more: object) -> Self:
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
        if is_blocks(X):
            name = type(self).__name__
            raise TypeError(f"{name} takes no blocks: it is for comparisons, without privacy. Fit data in memory")
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
