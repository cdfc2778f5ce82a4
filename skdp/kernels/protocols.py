"""Types that the kernels share: arrays, and the facts of a loss."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["Floats", "Integers", "KernelLoss", "Mask", "Rows"]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Mask = NDArray[np.bool_]
# Numbers of the chosen rows or units; None stands for all.
Rows = NDArray[np.int64] | None


class KernelLoss(Protocol):
    """A loss that the compiled passes have by its name; Huber's also has a ``threshold``."""

    @property
    def name(self) -> str:
        """Key of `skdp.kernels.rows.LOSS_CODES`."""

    @property
    def n_outputs(self) -> int:
        """Number K of linear predictors of a row."""
