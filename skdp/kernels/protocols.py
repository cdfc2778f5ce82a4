"""Types that the kernels and other packages share, and which library an array belongs to, without importing it."""

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeGuard, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Unsigned = NDArray[np.uint32] | NDArray[np.uint64]
Csr: TypeAlias = tuple[Floats, Unsigned, Unsigned]  # data, indices and row pointers, checked
Mask = NDArray[np.bool_]
# Numbers of the chosen rows or units; None stands for all.
Rows = NDArray[np.int64] | None
Block: TypeAlias = "slice[int]"  # of rows
CupyArray: TypeAlias = Any  # CuPy has no types; also an array of NumPy where the same code reads both
Sum = TypeVar("Sum", Floats, Integers)


class SparseMatrix(Protocol):
    """A sparse matrix of SciPy, by the members that are used here; `issparse` knows one."""

    format: str
    ndim: int
    dtype: np.dtype[np.float64]
    shape: tuple[int, int]
    data: Floats
    indices: Integers
    indptr: Integers
    has_canonical_format: bool

    @property
    def T(self) -> "SparseMatrix": ...
    def __abs__(self) -> "SparseMatrix": ...
    def __getitem__(self, key: "Block | Integers | tuple[slice[None], Integers]") -> "SparseMatrix": ...
    @overload
    def __matmul__(self, other: Floats) -> Floats: ...
    @overload
    def __matmul__(self, other: "SparseMatrix") -> "SparseMatrix": ...
    def __rmatmul__(self, other: Floats) -> Floats: ...
    def astype(self, dtype: type[np.float64], copy: bool = True) -> "SparseMatrix": ...
    def copy(self) -> "SparseMatrix": ...
    def multiply(self, other: "SparseMatrix") -> "SparseMatrix": ...
    def sum(self, axis: int) -> Floats: ...
    def sum_duplicates(self) -> None: ...
    def toarray(self) -> Floats: ...
    def tocsr(self) -> "SparseMatrix": ...


# Features; also CuPy's arrays and CSR matrices, which have no types, and arrays of float32.
Matrix: TypeAlias = Floats | SparseMatrix


class OnDevice(Protocol):
    """An array or a CSR matrix of CuPy; `is_cupy` knows one."""

    dtype: np.dtype[np.float64]
    shape: tuple[int, ...]

    def __getitem__(self, rows: "slice[int, int, None]") -> "OnDevice": ...
    def get(self) -> Matrix:
        """A copy on the host."""


if TYPE_CHECKING:  # the type that this function lacks
    from typing_extensions import TypeIs

    def issparse(x: object) -> TypeIs[SparseMatrix]: ...

else:

    def issparse(x: object) -> bool:
        from scipy import sparse  # noise is imported without SciPy

        return sparse.issparse(x)


class KernelLoss(Protocol):
    """A loss of which `skdp.kernels.losses` has a row."""

    @property
    def n_outputs(self) -> int:
        """Number K of linear predictors of a row."""


def is_cupy(x: object) -> TypeGuard[OnDevice]:
    """Whether ``x`` is a CuPy array or a CuPy sparse matrix; CuPy is not imported.

    Examples
    --------
    >>> from skdp.kernels import is_cupy
    >>> is_cupy([1.0])
    False
    """
    if type(x) is np.ndarray:  # most are, and every sum asks
        return False
    return any(kind.__module__.partition(".")[0] in ("cupy", "cupyx") for kind in type(x).__mro__)


def on_host(value: object) -> Any:
    """The value itself, or a copy on the host of an array on a device."""
    return value.get() if is_cupy(value) else value
