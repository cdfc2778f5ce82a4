"""The fit of the hard-thresholding estimators, private and exact."""

import math
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from skdp._compat import warn_user
from skdp.base import check_choice, check_number
from skdp.linear_model.frame import ExactLinearFit, LinearFit, Solution, parameter_shape
from skdp.linear_model.glm import Problem
from skdp.linear_model.ight.solver import Settings, solve
from skdp.linear_model.parts.checks import (
    check_callback,
    check_clip,
    check_features,
    check_finite,
    check_refit,
)
from skdp.linear_model.parts.penalties import L2Penalty
from skdp.linear_model.parts.progress import Progress
from skdp.linear_model.parts.task import Task, given
from skdp.linear_model.start import start_point
from skdp.privacy import PrivacySession

EXACT_MAX_ITER = 1000  # steps of a fit without privacy
ERRATUM = (
    "The proof of Theorem 2.5.2 of Wang (2021) charges G^2/(n sigma)^2 a step where the sensitivity 2G/n costs "
    "2G^2/(n sigma)^2. Its claim needs twice the published variance, which this fit uses."
)

__all__ = ["ExactThresholdingFit", "PrivateThresholdingFit"]


class _ThresholdingFit:
    """What the private and the exact fit share: check, run, collect; a subclass gives `_settings`."""

    n_nonzero_coefs: int | None
    max_iter: int | str
    learning_rate: float | str
    alpha: float
    fit_intercept: bool
    coef_init: Any
    verbose: Any
    callback: Any
    _poor_score = False

    def _check_parameters(self) -> None:
        check_number("n_nonzero_coefs", self.n_nonzero_coefs, Integral, low=1, none=True)
        check_number("max_iter", self.max_iter, Integral, low=1, word="auto")
        check_number("learning_rate", self.learning_rate, Real, low=0, strict=True, word="auto")
        check_number("alpha", self.alpha, Real, low=0)
        check_callback(self.callback)
        check_finite(self, "learning_rate", "alpha")

    def _settings(self) -> Settings:
        """The parameters as the algorithm takes them: no words."""
        return Settings(
            n_nonzero_coefs=self.n_nonzero_coefs,
            max_iter=given(self.max_iter),
            learning_rate=given(self.learning_rate),
        )

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        records, loss = problem.records, problem.loss
        check_features(self.n_nonzero_coefs, records.n_features)
        theta = start_point(
            self.coef_init,
            parameter_shape(records, loss),
            records.n_features,
            fit_intercept=self.fit_intercept,
        )
        penalty = L2Penalty(self.alpha, records.n_features)
        with Progress(
            self.verbose, self.callback, self.fit_intercept, hasattr(self, "classes")
        ) as monitor:
            return solve(Task(session, records, loss, theta, monitor, penalty), self._settings())


class PrivateThresholdingFit(_ThresholdingFit, LinearFit):
    """The private fit."""

    _poor_score = True
    _erratum = ERRATUM

    def _noise(self, problem: Problem) -> tuple[float, str]:
        # With few coefficients, only those of the noise that survive the threshold count.
        return self._gradient_noise(problem) if self.n_nonzero_coefs is None else (0.0, "")

    def _settings(self) -> Settings:
        return replace(
            super()._settings(),
            clip_norm=given(self.clip_norm),
            refit=given(self.refit),
            selection=self.selection,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        LinearFit._check_parameters(self)
        check_clip("clip_norm", self.clip_norm, self.epsilon)
        check_refit(self.refit)
        check_choice("selection", self.selection, ("gaussian", "peeling"))


class ExactThresholdingFit(_ThresholdingFit, ExactLinearFit):
    """The non-private fit: the same algorithm through a session that releases exact values."""

    tol: float
    max_iter: int | str

    def _warn_after(self, solution: Solution) -> None:
        if self.tol and not solution.converged and given(self.max_iter) is None:
            warn_user(
                f"the steps did not become smaller than tol={self.tol:g} within {EXACT_MAX_ITER} iterations; "
                "scale the features, set max_iter and tol, or alpha > 0 if the classes are separable",
                ConvergenceWarning,
            )

    def _settings(self) -> Settings:
        settings = replace(super()._settings(), clip_norm=math.inf, refit=0.0, tol=self.tol)
        return settings if settings.max_iter else replace(settings, max_iter=EXACT_MAX_ITER)

    def _check_parameters(self) -> None:
        ExactLinearFit._check_parameters(self)
        super()._check_parameters()
        check_number("tol", self.tol, Real, low=0)
