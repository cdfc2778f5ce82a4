"""What statistics need of features and of the kernels: the types of what other rooms make."""

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

__all__ = ["GradientKernel", "Matrix", "SupKernel"]


class Matrix(Protocol):
    """Features: an array or a CSR matrix, of NumPy and SciPy or of CuPy."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def flags(self) -> Any:
        """Of an array: how it lies in memory."""

    def copy(self, order: Any = ...) -> "Matrix":
        """A copy."""

    def __getitem__(self, key: Any) -> "Matrix": ...


class GradientKernel(Protocol):
    """Sums of gradients over rows or groups; see `skdp.kernels.gradient_kernel`."""

    shape: tuple[int, ...]

    def clipped_sum(
        self, theta: Any, clip_norm: float, unit: float, mask: Any = None, rows: Any = None
    ) -> NDArray[np.int64]:
        """Sum of gradients clipped in l2 norm, in multiples of ``unit``."""

    def plain_sum(self, theta: Any, mask: Any = None, rows: Any = None) -> NDArray[np.float64]:
        """Sum of gradients as they are."""

    def norms(self, theta: Any) -> NDArray[np.float64]:
        """Norm of every unit's gradient."""

    def recursive_sum(
        self, theta: Any, previous: Any, momentum: float, clip_norm: float, clip_diff_norm: float,
        unit: float, rows: Any = None,
    ) -> NDArray[np.int64]:  # fmt: skip
        """Sum of gradients and of their changes, both clipped, in multiples of ``unit``."""

    def loss_sums(self, thetas: Any, bound: float, unit: float) -> NDArray[np.int64]:
        """Sums of clipped and centred losses, in multiples of ``unit``."""


class SupKernel(Protocol):
    """Sums of gradients clipped in the sup norm; see `skdp.kernels.sup_gradient_kernel`."""

    shape: tuple[int, ...]

    def clipped_sum(
        self, theta: Any, clip_norm: float, unit: float, rows: Any = None
    ) -> NDArray[np.int64]:
        """Sum of rows' gradients clipped in the sup norm, in multiples of ``unit``."""

    def plain_sum(self, theta: Any, rows: Any = None) -> NDArray[np.float64]:
        """Sum of rows' gradients as they are."""

    def norms(self, theta: Any) -> NDArray[np.float64]:
        """Sup norm of every row's gradient."""
