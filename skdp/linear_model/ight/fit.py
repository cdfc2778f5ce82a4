"""The fit of the hard-thresholding estimators, private and exact."""

import math
from numbers import Integral, Real
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from skdp._compat import warn_user
from skdp.base import check_choice, check_number
from skdp.linear_model.frame import ExactLinearFit, LinearFit, Solution, parameter_shape
from skdp.linear_model.glm import Problem
from skdp.linear_model.parts.progress import Progress
from skdp.linear_model.start import start_point
from skdp.privacy.session import PrivacySession

EXACT_MAX_ITER = 1000
ERRATUM = (
    "the proof of Theorem 2.5.2 of the dissertation charges G^2/(n sigma)^2 a step where the sensitivity "
    "2G/n costs 2G^2/(n sigma)^2: its claim needs twice the published variance, which this fit uses"
)

__all__ = ["ExactThresholdingFit", "PrivateThresholdingFit"]


class _ThresholdingFit:
    """What the private and the exact fit share: check, run, collect. `_algorithm` does the work."""

    n_nonzero_coefs: int | None
    max_iter: int | str
    learning_rate: float | str
    alpha: float
    fit_intercept: bool
    coef_init: Any
    verbose: Any
    callback: Any
    _algorithm: Any
    _poor_score = False

    def _check_parameters(self) -> None:
        check_number("n_nonzero_coefs", self.n_nonzero_coefs, Integral, low=1, none=True)
        check_number("max_iter", self.max_iter, Integral, low=1, word="auto")
        check_number("learning_rate", self.learning_rate, Real, low=0, strict=True, word="auto")
        check_number("alpha", self.alpha, Real, low=0)
        if self.callback is not None and not callable(self.callback):
            raise TypeError("callback must be callable: callback(iteration, coef)")
        for name in ("learning_rate", "alpha"):
            if not isinstance(getattr(self, name), str) and math.isinf(getattr(self, name)):
                raise ValueError(f"{name} must be finite, got inf")

    def _run(self, session: PrivacySession, problem: Problem, **settings: Any) -> Solution:
        records, loss = problem.records, problem.loss
        if self.n_nonzero_coefs is not None and self.n_nonzero_coefs > records.n_features:
            raise ValueError(
                f"n_nonzero_coefs={self.n_nonzero_coefs} is more than the "
                f"{records.n_features} features of X"
            )
        progress = Progress(
            self.verbose, self.callback, self.fit_intercept, hasattr(self, "classes")
        )
        with progress:
            return self._algorithm(
                session,
                records,
                loss,
                n_nonzero_coefs=self.n_nonzero_coefs,
                learning_rate=self.learning_rate,
                alpha=self.alpha,
                theta=start_point(
                    self.coef_init,
                    parameter_shape(records, loss),
                    records.n_features,
                    fit_intercept=self.fit_intercept,
                ),
                monitor=progress,
                **settings,
            )


class PrivateThresholdingFit(_ThresholdingFit, LinearFit):
    """The private fit."""

    _poor_score = True
    _erratum = ERRATUM

    def _noise(self, problem: Problem) -> tuple[float, str]:
        # With few coefficients, only those of the noise that survive the threshold count.
        return self._gradient_noise(problem) if self.n_nonzero_coefs is None else (0.0, "")

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        return self._run(
            session,
            problem,
            max_iter=self.max_iter,
            clip_norm=self.clip_norm,
            refit=self.refit,
            selection=self.selection,
        )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        LinearFit._check_parameters(self)
        check_number("clip_norm", self.clip_norm, Real, low=0, strict=True, word="adaptive")
        if not isinstance(self.clip_norm, str) and not (
            1e-100 <= self.clip_norm <= 1e100 or self.clip_norm == self.epsilon == math.inf
        ):
            raise ValueError(
                f"clip_norm must be finite and between 1e-100 and 1e100, got {self.clip_norm!r} "
                "(inf is possible with epsilon=inf only)"
            )
        check_number("refit", self.refit, Real, low=0, word="auto")
        if not isinstance(self.refit, str) and self.refit >= 1:
            raise ValueError(f"refit must be a share of the budget in [0, 1), got {self.refit!r}")
        check_choice("selection", self.selection, ("gaussian", "peeling"))


class ExactThresholdingFit(_ThresholdingFit, ExactLinearFit):
    """The non-private fit: the same algorithm through a session that releases exact values."""

    tol: float
    max_iter: int | str

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        return self._run(
            session,
            problem,
            max_iter=EXACT_MAX_ITER if isinstance(self.max_iter, str) else self.max_iter,
            clip_norm=math.inf,
            refit=0.0,
            selection="gaussian",
            tol=self.tol,
        )

    def _warn_after(self, solution: Solution) -> None:
        if self.tol and not solution.converged and isinstance(self.max_iter, str):
            warn_user(
                f"the steps did not become smaller than tol={self.tol:g} within {EXACT_MAX_ITER} iterations; "
                "scale the features, set max_iter and tol, or alpha > 0 if the classes are separable",
                ConvergenceWarning,
            )

    def _check_parameters(self) -> None:
        ExactLinearFit._check_parameters(self)
        super()._check_parameters()
        check_number("tol", self.tol, Real, low=0)
