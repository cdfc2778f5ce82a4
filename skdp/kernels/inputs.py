"""Inputs of kernels, brought into the few forms that the compiled passes read."""

import math
from typing import NamedTuple, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import (
    Csr,
    Floats,
    Integers,
    KernelLoss,
    Matrix,
    SparseMatrix,
    Unsigned,
    issparse,
    on_host,
)

A = TypeVar("A", bound=NDArray[np.generic])


def frozen(array: A) -> A:
    """A read-only view: kernels are then compiled once, for writable and read-only input."""
    view = array.view()
    view.flags.writeable = False
    return view


@jit
def csr_state(indices, indptr, n_features):
    """0: every row strictly ascending; 1: no duplicates; 2: duplicates; -1: not a valid CSR."""
    n = indptr.size - 1
    if n < 0 or indptr[0] != 0 or indptr[n] > indices.size:
        return -1
    for i in range(n):
        # All of them before the first row is read, which could lie outside.
        if indptr[i + 1] < indptr[i]:
            return -1
    ascending = True
    for i in range(n):
        row = indices[indptr[i] : indptr[i + 1]]
        if row.size == 0:
            continue
        # Counted without a way out, so that the compiler compares many at a time.
        falls = 0
        for e in range(1, row.size):
            falls += row[e] <= row[e - 1]
        if falls == 0:
            if row[0] < 0 or row[row.size - 1] >= n_features:
                return -1
            continue
        ascending = False
        for e in range(row.size):
            if row[e] < 0 or row[e] >= n_features:
                return -1
    return 0 if ascending else _repeats(indices, indptr, n_features)


@jit
def _repeats(indices, indptr, n_features):
    """1: no row stores a column twice; 2: one does."""
    seen = np.full(n_features, -1, np.int64)
    for i in range(indptr.size - 1):
        for e in range(indptr[i], indptr[i + 1]):
            if seen[indices[e]] == i:
                return 2
            seen[indices[e]] = i
    return 1


def csr_parts(X: SparseMatrix) -> Csr:
    """Data and unsigned index arrays, read-only, of a CSR matrix in which no row stores a column twice."""
    sizes = X.data.size == X.indices.size and X.indptr.size == X.shape[0] + 1
    state = csr_state(frozen(X.indices), frozen(X.indptr), X.shape[1]) if sizes else -1
    if state < 0:
        raise ValueError("X is not a valid CSR matrix: an index is out of range.")
    if state:
        # Privacy: duplicates add up in a product, but the sum of their squares is not the square of the sum, so
        # the norm would be too small. Rows are always sorted too. Otherwise one record's duplicates would
        # change the order of summation, and so the last bits, of every other record.
        X = sp.csr_matrix((X.data.copy(), X.indices.copy(), X.indptr.copy()), shape=X.shape)
        X.has_canonical_format = False
        X.sum_duplicates()
    return frozen(X.data), frozen(unsigned(X.indices)), frozen(unsigned(X.indptr))


def unsigned(index: Integers) -> Unsigned:
    """View of non-negative indices as unsigned, which compiled loops read without a sign check."""
    return index.view(np.uint32) if index.dtype == np.int32 else index.view(np.uint64)


def checked_vectors(
    y: object, sample_weight: object, n: int, loss: KernelLoss, intercept_value: float
) -> tuple[Floats, Floats]:
    """Targets and sample weights on the host, checked against the loss; an empty vector for no weights.

    Every kernel calls this, so that no device reads a class index out of range.
    """
    if not 0 < intercept_value < math.inf:
        raise ValueError(f"intercept_value must be finite and positive, got {intercept_value!r}.")
    y = vector(on_host(y), n, "y")
    if loss.n_outputs > 1 and n and not (y.min() >= 0 and y.max() < loss.n_outputs):
        raise ValueError(f"y must hold class indices from 0 to {loss.n_outputs - 1}.")
    if sample_weight is None:
        return y, frozen(np.empty(0))
    return y, vector(on_host(sample_weight), n, "sample_weight")


def vector(value: object, n: int, name: str) -> Floats:
    """A read-only float64 vector of length n."""
    value = np.ascontiguousarray(value, dtype=np.float64)
    if value.shape != (n,):
        raise ValueError(f"{name} must have shape ({n},), got {value.shape}.")
    return frozen(value)


class GroupRows(NamedTuple):
    """The rows of each group.

    Attributes
    ----------
    order : ndarray of int64 of shape (n,)
        Row numbers, group by group; rows of one group in their own order.
    starts : ndarray of int64 of shape (n_groups + 1,)
        Where each group starts in ``order``, and the end.
    """

    order: Integers
    starts: Integers


def group_rows(groups: object, n: int) -> GroupRows | None:
    """Sort rows by their group codes (stable); what was sorted before is returned as it is."""
    if groups is None:
        return None
    if isinstance(groups, GroupRows):
        return groups
    groups = np.asarray(on_host(groups))
    if groups.shape != (n,) or groups.dtype.kind not in "iu":
        raise ValueError(f"groups must be integer codes of shape ({n},).")
    if n and int(groups.min()) < 0:
        raise ValueError("groups must be codes from 0.")
    return sorted_groups(groups)


def sorted_groups(groups: Integers) -> GroupRows:
    """Sort rows by their group codes, which count from 0."""
    starts = np.concatenate(([0], np.cumsum(np.bincount(groups))))
    return GroupRows(rows_by_group(frozen(np.asarray(groups)), frozen(starts)), starts)


def members_of(order: Integers, starts: Integers, groups: Integers) -> tuple[Integers, Integers]:
    """Return the rows of the chosen groups, group by group, and where each of these starts."""
    first = starts[groups]
    sizes = starts[groups + 1] - first
    ends = np.zeros(len(groups) + 1, dtype=np.int64)
    np.cumsum(sizes, out=ends[1:])
    return order[np.repeat(first - ends[:-1], sizes) + np.arange(ends[-1])], ends


def usable(X: object) -> Matrix:
    """X itself where a kernel can read it, else a converted copy."""
    if issparse(X):
        if X.format != "csr":
            raise ValueError(f"Sparse X must be CSR, got {X.format}.")
        return X if X.dtype in (np.float32, np.float64) else X.astype(np.float64)
    X = np.asarray(X)
    if X.ndim != 2:
        raise ValueError(f"X must have two dimensions, got {X.ndim}.")
    if X.dtype not in (np.float32, np.float64) or not X.dtype.isnative:
        X = X.astype(np.float64)
    if not (X.flags.c_contiguous or X.flags.f_contiguous):
        X = np.ascontiguousarray(X)
    return X


def checked_clip_units(clip_norm: float, unit: float) -> float:
    """How many units a clip norm is; ValueError unless both are in their ranges."""
    for name, value in (("clip_norm", clip_norm), ("unit", unit)):
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name} must be finite and positive, got {value!r}.")
    if not 2.0**-500 <= unit <= 2.0**500:
        raise ValueError(f"unit must lie between 2**-500 and 2**500, got {unit!r}.")
    return clip_norm / unit


@jit
def rows_by_group(groups, starts):
    """Row numbers, group by group, in their own order within a group; ``starts`` says where each group begins."""
    order = np.empty(groups.size, np.int64)
    following = starts[:-1].copy()
    for i in range(groups.size):
        g = groups[i]
        order[following[g]] = i
        following[g] += 1
    return order
