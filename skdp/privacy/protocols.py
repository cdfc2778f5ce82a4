"""What statistics need of features and of the kernels: the types of the objects that other packages make."""

from typing import Protocol

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class GradientKernel(Protocol):
    """Sums of gradients over rows or groups; see `skdp.kernels.gradient_kernel`."""

    shape: tuple[int, ...]

    def clipped_sum(
        self, theta: Array, clip_norm: float, unit: float,
        mask: NDArray[np.bool_] | None = None, rows: Indices | None = None,
    ) -> NDArray[np.int64]:  # fmt: skip
        """Sum of gradients clipped in l2 norm, in multiples of ``unit``."""

    def plain_sum(self, theta: Array, mask: NDArray[np.bool_] | None = None, rows: Indices | None = None) -> Array:
        """Sum of gradients as they are."""

    def norms(self, theta: Array) -> Array:
        """Norm of every unit's gradient."""

    def recursive_sum(
        self, theta: Array, previous: Array, momentum: float, clip_norm: float,
        clip_diff_norm: float, unit: float, rows: Indices | None = None,
    ) -> NDArray[np.int64]:  # fmt: skip
        """Sum of gradients and of their changes, both clipped, in multiples of ``unit``."""

    def loss_sums(self, thetas: Array, bound: float, unit: float) -> NDArray[np.int64]:
        """Sums of clipped and centred losses, in multiples of ``unit``."""


class SupKernel(Protocol):
    """Sums of gradients clipped in the sup norm; see `skdp.kernels.sup_gradient_kernel`."""

    shape: tuple[int, ...]

    def clipped_sum(
        self, theta: Array, clip_norm: float, unit: float, rows: Indices | None = None
    ) -> NDArray[np.int64]:
        """Sum of rows' gradients clipped in the sup norm, in multiples of ``unit``."""

    def plain_sum(self, theta: Array, rows: Indices | None = None) -> Array:
        """Sum of rows' gradients as they are."""

    def norms(self, theta: Array) -> Array:
        """Sup norm of every row's gradient."""
