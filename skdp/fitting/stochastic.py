"""The frame of a stochastic fit: parameters of the minibatches, the session that samples, the penalty."""

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from skdp.base import check_choice, check_number
from skdp.base.fit import Solution
from skdp.fitting.checks import check_callback, check_clip, check_finite
from skdp.fitting.coordinates import parameter_shape
from skdp.fitting.glm import Problem
from skdp.fitting.linear import LinearFit
from skdp.fitting.penalties import PENALTIES
from skdp.fitting.progress import linear_progress
from skdp.fitting.start_point import start_point
from skdp.fitting.task import Task, given
from skdp.privacy import PrivacySession, accounting

__all__ = ["SAMPLING", "StochasticFit", "StochasticRun", "check_common"]

# The parameter's words for the kinds of sampling, and the ledger's.
SAMPLING = {"poisson": "Poisson", "without_replacement": "without replacement"}


def _check_hinted(hint: str, name: str, value: Any, kind: type, **limits: Any) -> None:
    """`check_number`, with a hint at the end of its message."""
    try:
        check_number(name, value, kind, **limits)
    except (TypeError, ValueError) as error:
        raise type(error)(f"{error}{hint}") from None


def check_common(model: Any) -> None:
    """Check the parameters that private and exact stochastic fits share."""
    full = " (the number of records, or more, takes all of them in every step)"
    _check_hinted(full, "batch_size", model.batch_size, Integral, low=1, word="auto")
    check_choice("sampling", model.sampling, tuple(SAMPLING))
    check_number("max_iter", model.max_iter, Integral, low=1, word="auto")
    rate = model.learning_rate
    course = " (the course of the step sizes is schedule=)" if hasattr(model, "schedule") else ""
    _check_hinted(course, "learning_rate", rate, Real, low=0, strict=True, word="auto")
    check_number("alpha", model.alpha, Real, low=0)
    check_choice("penalty", model.penalty, tuple(PENALTIES))
    check_callback(model.callback)
    check_finite(model, "learning_rate", "alpha")


class StochasticRun:
    """Runs a stochastic algorithm, private or not; a subclass gives `_algorithm` and `_settings`."""

    learning_rate_: float
    clip_norm_: float
    penalty: str
    sampling: str
    alpha: float
    fit_intercept: bool
    coef_init: Any
    verbose: Any
    callback: Any
    _algorithm: Callable[..., Solution]
    _settings: Callable[[], Any]  # the parameters as the algorithm takes them

    def _numbers(self, *names: str) -> dict[str, Any]:
        """Parameters as the algorithm takes them: None for a word."""
        values = {name: given(getattr(self, name)) for name in names}
        return {k: int(v) if isinstance(v, Integral) else v for k, v in values.items()}

    def _start(self, problem: Problem) -> Any:
        return start_point(
            self.coef_init,
            parameter_shape(problem.records, problem.loss),
            problem.records.n_features,
            fit_intercept=self.fit_intercept,
            center=problem.center,
        )

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        records, loss, theta = problem.records, problem.loss, self._start(problem)
        settings = self._settings()
        with linear_progress(self, session, getattr(settings, "max_iter", None)) as monitor:
            penalty = PENALTIES[self.penalty](float(self.alpha), records.n_features)
            task = Task(session, records, loss, theta, monitor, penalty, problem.planned)
            return self._algorithm(task, settings)


class StochasticFit(StochasticRun, LinearFit):
    """A private fit by noisy gradients of minibatches.

    Its session may sample, so that an accountant is charged (epsilon, delta) by basic composition; fits on
    full batches keep their mu.
    """

    batch_size: int | str
    sampling: str
    max_iter: int | str
    learning_rate: float | str
    clip_norm: float | str

    # Whether batch_size="auto" takes batches that are smaller than the data.
    _auto_samples = False

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_common(self)
        check_clip("clip_norm", self.clip_norm, self.epsilon)
        if self.sampling == "without_replacement" and self._may_sample(None):
            if self.n_public is not None:
                raise ValueError(
                    "batches without replacement are part of all records, and n_public may be another number: "
                    "leave out n_public, or use sampling='poisson'"
                )
            accounting.sampled.require_supported(
                SAMPLING[self.sampling], self.adjacency, ["gaussian"]
            )

    def _noise(self, problem: Problem) -> tuple[float, str]:
        return self._gradient_noise(problem)

    def _may_sample(self, n_units: int | None) -> bool:
        """Whether a batch may be smaller than the data, given the public number of units.

        None is a number that is not known before the groups are read; a number of rows would not be public.
        """
        size = given(self.batch_size)
        if size is None:
            return self._auto_samples
        return n_units is None or size < n_units

    def _samples(self, n_units: int | None) -> bool:
        return self._may_sample(n_units)


class FullBatchFit(StochasticFit):
    """A fit on full batches, so it keeps its mu."""

    batch_size = "auto"
    sampling = "poisson"
