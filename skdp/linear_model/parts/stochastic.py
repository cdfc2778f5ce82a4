"""The frame of a stochastic fit: parameters of the minibatches, the session that samples, the penalty."""

import math
from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from skdp.base import check_choice, check_number
from skdp.linear_model.frame import LinearFit, Solution, parameter_shape
from skdp.linear_model.glm import Problem
from skdp.linear_model.parts.penalties import PENALTIES, penalty_of
from skdp.linear_model.parts.progress import Progress
from skdp.linear_model.start import start_point
from skdp.privacy import accounting
from skdp.privacy.session import PrivacySession

__all__ = ["SAMPLING", "StochasticFit", "StochasticRun", "check_clip", "check_common"]

# The parameter's words and the ledger's.
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
    check_choice("penalty", model.penalty, PENALTIES)
    if model.callback is not None and not callable(model.callback):
        raise TypeError("callback must be callable: callback(iteration, coef)")
    for name in ("learning_rate", "alpha"):
        if not isinstance(getattr(model, name), str) and math.isinf(getattr(model, name)):
            raise ValueError(f"{name} must be finite, got inf")


def check_clip(name: str, value: Any, epsilon: float, word: str | None = "adaptive") -> None:
    """Check a clip norm: a number that the fixed-point sums can hold, or the word."""
    check_number(name, value, Real, low=0, strict=True, word=word)
    if not isinstance(value, str) and not (
        1e-100 <= value <= 1e100 or value == epsilon == math.inf
    ):
        raise ValueError(
            f"{name} must be finite and between 1e-100 and 1e100, got {value!r} "
            "(inf is possible with epsilon=inf only)"
        )


class StochasticRun:
    """Runs a stochastic algorithm, private or not."""

    penalty: str
    sampling: str
    alpha: float
    fit_intercept: bool
    coef_init: Any
    verbose: Any
    callback: Any

    def _run(
        self,
        algorithm: Callable[..., Solution],
        session: PrivacySession,
        problem: Problem,
        **settings: Any,
    ) -> Solution:
        """Call ``algorithm(session, records, loss, penalty=, theta=, monitor=, **settings)``."""
        records, loss = problem.records, problem.loss
        steps = settings.get("max_iter")
        progress = Progress(
            self.verbose,
            self.callback,
            self.fit_intercept,
            hasattr(self, "classes"),
            name=type(self).__name__,
            total=None if isinstance(steps, str) else steps,
        )
        with progress:
            return algorithm(
                session,
                records,
                loss,
                penalty=penalty_of(self.penalty, float(self.alpha), records.n_features),
                theta=start_point(
                    self.coef_init,
                    parameter_shape(records, loss),
                    records.n_features,
                    fit_intercept=self.fit_intercept,
                ),
                monitor=progress,
                **settings,
            )


class StochasticFit(StochasticRun, LinearFit):
    """A private fit by noisy gradients of minibatches; a subclass gives `solve`.

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
        if isinstance(self.batch_size, str):
            return self._auto_samples
        return n_units is None or self.batch_size < n_units

    def _samples(self, n_units: int | None) -> bool:
        return self._may_sample(n_units)
