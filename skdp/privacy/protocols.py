"""What statistics need of features and of the kernels: the types of what other rooms make."""

from typing import TYPE_CHECKING, Literal, Protocol, TypeGuard

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "GradientKernel",
    "Matrix",
    "OnDevice",
    "SparseMatrix",
    "SupKernel",
    "is_cupy",
    "issparse",
]

Array = NDArray[np.float64]
Indices = NDArray[np.int64]


class _Layout(Protocol):
    @property
    def c_contiguous(self) -> bool: ...


class Matrix(Protocol):
    """Features: an array or a CSR matrix, of NumPy and SciPy or of CuPy."""

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns."""

    @property
    def flags(self) -> _Layout:
        """Of an array: how it lies in memory."""

    def copy(self, order: Literal["C"] = ...) -> "Matrix":
        """A copy."""

    def __getitem__(self, key: slice | Indices | tuple[slice, Indices]) -> "Matrix": ...


class SparseMatrix(Protocol):
    """A sparse matrix of SciPy: what of its members is used; `issparse` knows one."""

    format: str
    shape: tuple[int, int]
    data: Array
    indices: Indices
    indptr: Indices


class OnDevice(Protocol):
    """What `is_cupy` knows: an array or a CSR matrix of CuPy."""

    def get(self) -> Matrix:
        """A copy on the host."""


if TYPE_CHECKING:  # the types that these functions lack

    def issparse(x: object) -> TypeGuard[SparseMatrix]: ...
    def is_cupy(x: object) -> TypeGuard[OnDevice]: ...

else:
    from scipy.sparse import issparse

    from skdp.kernels import is_cupy


class GradientKernel(Protocol):
    """Sums of gradients over rows or groups; see `skdp.kernels.gradient_kernel`."""

    shape: tuple[int, ...]

    def clipped_sum(
        self, theta: Array, clip_norm: float, unit: float,
        mask: NDArray[np.bool_] | None = None, rows: Indices | None = None,
    ) -> NDArray[np.int64]:  # fmt: skip
        """Sum of gradients clipped in l2 norm, in multiples of ``unit``."""

    def plain_sum(
        self, theta: Array, mask: NDArray[np.bool_] | None = None, rows: Indices | None = None
    ) -> Array:
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
