"""The common code of a search's trials: the data in two parts, their checks, and the best trial."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils import _safe_indexing  # it is in scikit-learn's API reference

from skdp._compat import no_warnings
from skdp.base.fit import PrivateFit
from skdp.base.problem import Problem
from skdp.model_selection.candidates import Candidate
from skdp.model_selection.composed import ComposedFit
from skdp.privacy import PrivacyReport, no_log_lines

_CLAIM_ROUNDING = 1.0 + 1e-6  # of claims, which are rounded up


@dataclass(frozen=True)
class SearchProblem(Problem):
    """The validated data, and the unit of each row."""

    X: object = field(repr=False)
    y: object = field(repr=False)
    units: Any = field(repr=False)


@dataclass(frozen=True)
class Winner:
    """The released part of the best trial."""

    candidate: Candidate
    model: BaseEstimator
    score: float
    noise_std: float


@dataclass(frozen=True)
class Parts:
    """The two parts of the data, as a trial takes them."""

    fit_X: object
    fit_y: object
    fit_groups: dict[str, object]
    score_X: object
    score_y: object
    score_groups: object

    @classmethod
    def of(cls, problem: SearchProblem, first: np.ndarray, second: np.ndarray, unit: str) -> "Parts":
        """Take the rows of both parts once for all trials."""
        grouped = unit == "group"
        return cls(
            _safe_indexing(problem.X, first),
            _safe_indexing(problem.y, first),
            {"groups": problem.units[first]} if grouped else {},
            _safe_indexing(problem.X, second),
            _safe_indexing(problem.y, second),
            np.unique(problem.units[second], return_inverse=True)[1] if grouped else None,
        )


def check_frame(estimator: BaseEstimator) -> None:
    """Refuse estimators whose fit is outside of the proof.

    Fits inside a candidate's fit are not counted in its noise errors, have progress bars of their own, and leave
    intervals and reports of the winner's own cost.
    """
    frame, kind = PrivateFit, type(estimator)
    if isinstance(estimator, ComposedFit):
        raise TypeError(
            f"{kind.__name__} cannot be searched, as it fits and evaluates models inside: search its estimator, "
            "and choose the threshold of the best one on records of their own"
        )
    if (kind._shape_type, kind._counts) != (frame._shape_type, frame._counts) or hasattr(
        estimator, "param_distributions"
    ):
        raise TypeError(
            f"{kind.__name__} cannot be searched: its budget or its unit is not of one table's records"
        )


def check_claim(report: PrivacyReport, limits: tuple[float, float, float | None]) -> None:
    """Let a trial fail whose fit claims more than a trial may cost, by public numbers."""
    epsilon, delta, mu = limits
    if epsilon == float("inf"):
        return
    within = report.epsilon <= epsilon * _CLAIM_ROUNDING and report.delta <= delta * _CLAIM_ROUNDING
    if mu is not None:
        within = within and report.mu <= mu * _CLAIM_ROUNDING
    if not within or report.guarantee != "proven":
        raise RuntimeError("the fit of a trial claims more than its budget")


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """No log lines and no warnings: of checks that a user did not ask for."""
    with no_log_lines(), no_warnings(Warning):
        yield
