"""Hints to the processor that memory will be read soon, and copies of chosen rows."""

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.base import BaseContext
from numba.core.typing import Context, Signature
from numba.extending import intrinsic

from skdp.kernels.numba_jit import inner_jit, jit

# Rows between the one at work and the one that is asked for.
AHEAD = 12


@intrinsic  # type: ignore[untyped-decorator]
def _prefetch(typingctx: Context, array: types.Type, offset: types.Type) -> tuple[Signature, object]:
    """Ask for the cache line ``offset`` bytes after the start of an array; it may lie outside."""

    def code(context: BaseContext, builder: ir.IRBuilder, signature: Signature, args: list[ir.Value]) -> ir.Value:
        data = context.make_array(signature.args[0])(context, builder, args[0]).data
        byte = builder.bitcast(data, cgutils.voidptr_t)
        place = builder.gep(byte, [args[1]])
        number = ir.IntType(32)
        kind = ir.FunctionType(ir.VoidType(), [cgutils.voidptr_t, number, number, number])
        hint = builder.module.declare_intrinsic("llvm.prefetch", [cgutils.voidptr_t], kind)
        # To be read, data, into the second-level cache: the first level can wait for fewer lines at
        # a time (1000 random rows of 100 numbers: 95 us instead of 155, and 240 without a hint).
        builder.call(hint, [place, number(0), number(2), number(1)])
        return context.get_dummy_value()

    return types.void(array, types.int64), code


@inner_jit
def prefetch_row(X, i):
    """Ask for all cache lines of row i of a C-ordered array."""
    row = X[i]
    last = row.size * row.itemsize - 1
    for offset in range(0, last, 64):
        _prefetch(row, offset)
    _prefetch(row, last)


@inner_jit
def _half_of(size):
    """Bytes of the first half of a row, a whole number of cache lines."""
    return size // 128 * 64


@inner_jit
def prefetch_begin(X, i):
    """Ask for the first half of row i of a C-ordered array."""
    row = X[i]
    for offset in range(0, _half_of(row.size * row.itemsize), 64):
        _prefetch(row, offset)


@inner_jit
def prefetch_end(X, i):
    """Ask for the rest of the row."""
    row = X[i]
    size = row.size * row.itemsize
    for offset in range(_half_of(size), size, 64):
        _prefetch(row, offset)
    _prefetch(row, size - 1)


@inner_jit
def prefetch_span(x, start, stop):
    """Ask for the entries ``start`` to ``stop`` of a vector."""
    for offset in range(start * x.itemsize, stop * x.itemsize, 64):
        _prefetch(x, offset)
    _prefetch(x, stop * x.itemsize - 1)


@inner_jit
def prefetch_entry(x, i):
    """Ask for one entry of a vector."""
    _prefetch(x, i * x.itemsize)


@jit
def copy_rows(X, rows, out):
    """Copy the chosen rows of a C-ordered array to the first rows of ``out``."""
    last = rows.size - 1
    for q in range(rows.size):
        prefetch_row(X, rows[min(last, q + AHEAD)])
        x, to = X[rows[q]], out[q]
        for j in range(x.size):
            to[j] = x[j]


@jit
def copy_columns(X, rows, out):
    """The same for a Fortran-ordered array, column by column, where the hint does not pay."""
    for j in range(X.shape[1]):
        column, to = X[:, j], out[:, j]
        for q in range(rows.size):
            to[q] = column[rows[q]]


@jit
def transpose_rows(X, rows, out):
    """Copy the chosen rows of a Fortran-ordered array to the first rows of a C-ordered one."""
    d = X.shape[1]
    for j in range(0, d, 4):
        # Four columns at a time, the last ones of which may be the same.
        j1, j2, j3 = min(j + 1, d - 1), min(j + 2, d - 1), min(j + 3, d - 1)
        x0, x1, x2, x3 = X[:, j], X[:, j1], X[:, j2], X[:, j3]
        for q in range(rows.size):
            i = np.uint64(rows[q])
            to = out[q]
            to[j] = x0[i]
            to[j1] = x1[i]
            to[j2] = x2[i]
            to[j3] = x3[i]
