"""Progress of a fit: a bar with the plan's epsilon, and the user's callback; both see released parameters only."""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Progress"]

SCORES = 20  # how often the score of the public validation data is computed


class Progress:
    """Shows a bar and calls the user's function.

    Parameters
    ----------
    name : str
    total : int
        Number of steps.
    epsilon : float
        Of the plan, which also stands after a fit that was interrupted.
    verbose : bool
    callback : callable or None
        Called with the step and a copy of the parameters.
    score : callable or None
        Of the parameters: a score on public data.
    """

    def __init__(
        self,
        name: str,
        total: int,
        epsilon: float,
        verbose: object,
        callback: Callable[[int, Any], object] | None,
        score: Callable[[Any], float] | None,
    ) -> None:
        self._callback, self._score, self._total = callback, score, total
        self._facts: dict[str, object] = {"epsilon of the whole plan": f"{epsilon:g}"}
        self._bar: Any = None
        if verbose:
            from tqdm.auto import tqdm

            self._bar = tqdm(desc=f"skdp {name}", total=total, unit="step", postfix=self._facts)

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def __call__(self, step: int, theta: NDArray[np.float64]) -> None:
        if self._bar is not None:
            due = (step + 1) * SCORES // self._total > step * SCORES // self._total
            if self._score is not None and due:
                self._facts["validation"] = f"{self._score(theta):.4f}"
                self._bar.set_postfix(self._facts, refresh=False)
            self._bar.update()
        if self._callback is not None:
            self._callback(step, theta.copy())
