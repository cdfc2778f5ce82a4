"""Progress of a fit: a bar and the user's callback, both fed with released iterates only."""

from typing import Any

import numpy as np

from skdp.fitting.coordinates import from_theta
from skdp.fitting.task import Monitor

__all__ = ["Progress", "announce"]


class Progress:
    """Shows a bar and calls the user's function; ``idle`` says that it does neither."""

    def __init__(
        self,
        verbose: Any,
        callback: Monitor | None,
        fit_intercept: bool,
        classifier: bool,
        *,
        name: str = "skdp",
        total: int | None = None,
    ) -> None:
        self._verbose, self._callback = verbose, callback
        self.idle = not verbose and callback is None
        self._name, self._total = name, total
        self._shape = (fit_intercept, classifier)
        self._bar: Any = None

    def __enter__(self) -> "Progress":
        if self._verbose:
            from tqdm.auto import tqdm

            self._bar = tqdm(desc=self._name, total=self._total, unit="step")
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def expect(self, steps: int) -> None:
        """Tell the bar how many steps there will be."""
        if self._bar is not None:
            self._bar.reset(total=steps)

    def __call__(self, iteration: int, theta: np.ndarray) -> None:
        if self._bar is not None:
            self._bar.update()
        if self._callback is not None:
            self._callback(iteration, from_theta(theta, *self._shape)[0])


def announce(monitor: Monitor, steps: int) -> None:
    """Tell a monitor that shows a bar how many steps there will be, a public number."""
    if isinstance(monitor, Progress):
        monitor.expect(steps)
