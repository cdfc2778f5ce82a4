"""Progress of a fit: a bar with the plan's epsilon, and the user's callback; both see released parameters only."""

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from skdp.fitting.coordinates import from_theta
from skdp.privacy import PrivacySession

__all__ = ["Monitor", "Progress", "linear_progress"]

# Of the iteration and a released iterate.
Monitor = Callable[[int, np.ndarray], object]

SCORES = 20  # how often the score of the public validation data is computed


class Progress:
    """Shows a bar and calls the user's function.

    Parameters
    ----------
    name : str
        Of the estimator.
    total : int or None
        Number of steps; None where `expect` says it, or nobody does.
    session : PrivacySession
        Its epsilon is that of the plan, which also stands after a fit that was interrupted.
    verbose : bool
    callback : callable or None
        Called with the step and what ``view`` makes of the parameters.
    view : callable, default=numpy.copy
        Of the parameters: what the callback gets, which it may change.
    score : callable or None
        Of the parameters: a score on public data.
    """

    def __init__(
        self,
        name: str,
        total: int | None,
        session: PrivacySession,
        verbose: object,
        callback: Callable[[int, Any], object] | None,
        *,
        view: Callable[[np.ndarray], Any] = np.copy,
        score: Callable[[Any], float] | None = None,
    ) -> None:
        self._callback, self._view, self._score = callback, view, score
        self._total, self._facts = total, {"epsilon of the whole plan": f"{session.epsilon:g}"}
        self._bar: Any = None
        if verbose:
            from tqdm.auto import tqdm

            self._bar = tqdm(desc=f"skdp {name}", total=total, unit="step", postfix=self._facts)

    def __enter__(self) -> Self | None:
        """Return the monitor, or None where nobody watches."""
        return None if self._bar is None and self._callback is None else self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def expect(self, steps: int) -> None:
        """Tell the bar how many steps there will be, a public number."""
        self._total = steps
        if self._bar is not None:
            self._bar.reset(total=steps)

    def __call__(self, step: int, theta: np.ndarray) -> None:
        if self._bar is not None:
            if self._score is not None and self._is_due(step):
                self._facts["validation"] = f"{self._score(theta):.4f}"
                self._bar.set_postfix(self._facts, refresh=False)
            self._bar.update()
        if self._callback is not None:
            self._callback(step, self._view(theta))

    def _is_due(self, step: int) -> bool:
        """Whether the score is shown after this step."""
        total = self._total or 1
        return (step + 1) * SCORES // total > step * SCORES // total


def linear_progress(model: Any, session: PrivacySession, total: int | None = None) -> Progress:
    """Progress of a linear model, whose callback gets ``coef_`` as scikit-learn has it."""

    def coef(theta: np.ndarray) -> Any:
        return from_theta(theta, model.fit_intercept, hasattr(model, "classes"))[0]

    name = type(model).__name__
    return Progress(name, total, session, model.verbose, model.callback, view=coef)
