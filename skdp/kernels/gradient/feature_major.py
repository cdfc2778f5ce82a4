"""Gradient sums of many outputs over sparse rows, feature by feature.

With many classes theta and the sum do not fit into the cache, and a pass row by row reads and writes all outputs
of a feature for every entry of X. Feature by feature each of them is read or written once. What is read for every
entry instead is a row of the predictors, and these are few enough to stay in the cache.

Privacy: a row's predictors, norm and factors are the same bits as in the pass row by row, because each row adds
its entries in ascending order and calls the same functions. The sums are of integers below 2**53, so any order
gives the same.
"""

from typing import TypeAlias

import numpy as np
import scipy.sparse as sp

from skdp.kernels.gradient.csr_rows import BLOCK, square_of_row
from skdp.kernels.gradient.passes import bounds
from skdp.kernels.inputs import frozen, unsigned
from skdp.kernels.numba_jit import jit
from skdp.kernels.protocols import Csr, Floats, Integers, Mask, Unsigned
from skdp.kernels.row_factors import ROUNDED, factors
from skdp.kernels.threads import n_threads, run_blocks

# From so many outputs on, where theta does not fit into a cache and a feature has so many entries in the rows that
# are worked on together. Their predictors stay in the third-level cache.
FEWEST_OUTPUTS, LEAST_THETA, LEAST_PER_FEATURE, PREDICTORS = 8, 2**20, 4, 2**20
# Most entries of X in a multiple of theta: the copy of X takes twelve bytes an entry.
MOST_ENTRIES = 8
# Parts of the features that are handed out to threads.
PARTS = 16

Storage: TypeAlias = tuple[Floats, Unsigned, Unsigned, Unsigned]  # data, indices, begins and ends of the rows


@jit
def _predictors(data, rows, starts, theta, base, first, last, scores):
    """Linear predictors of the outputs ``first`` to ``last``."""
    for i in range(scores.shape[0]):
        scores[i, first:last] = base[first:last]
    for j in range(starts.size - 1):
        w = theta[j, first:last]
        for e in range(starts[j], starts[j + 1]):
            x = data[e]
            z = scores[rows[e], first:last]
            for k in range(w.size):
                z[k] += x * w[k]


@jit
def _row_factors(
    data, indices, begins, ends, top, lo, hi, y, weight, mask, code, parameter, kappa, p, one,
    limit, inverse_unit, predictors, kept,
):  # fmt: skip
    """Turn the predictors of the rows ``lo`` to ``hi``, of which ``top`` is the first, into factors."""
    n_outputs = predictors.shape[1]
    scores = np.empty((n_outputs, BLOCK))
    squares = np.empty(BLOCK)
    norms = np.empty(0)
    for first in range(lo, hi, BLOCK):
        m = min(BLOCK, hi - first)
        for q in range(m):
            i = first + q
            scores[:, q] = predictors[i - top]
            squares[q] = one + square_of_row(data, indices, begins[i], ends[i], mask)
        factors(
            scores, squares, None, first, m, y, weight, code, parameter, p, limit, inverse_unit,
            ROUNDED, norms,
        )  # fmt: skip
        for q in range(m):
            i = first + q - top
            predictors[i] = scores[:, q]
            kept[i] = np.any(predictors[i] != 0.0)


@jit
def _feature_sums(data, rows, starts, c, kept, clean, mask, lo, hi, total):
    """Add the rounded products of the features ``lo`` to ``hi``; dropped rows are skipped."""
    n_outputs = c.shape[1]
    acc = np.empty(n_outputs)
    for j in range(lo, hi):
        if mask.size and not mask[j]:
            continue
        acc[:] = 0.0
        for e in range(starts[j], starts[j + 1]):
            i = rows[e]
            if clean or kept[i]:
                x = data[e]
                f = c[i]
                for k in range(n_outputs):
                    acc[k] += np.rint(f[k] * x)
        for k in range(n_outputs):
            total[j, k] += np.int64(acc[k])


@jit
def _intercept_sums(c, kappa, total):
    """Add the rows' part of the intercepts."""
    acc = np.zeros(c.shape[1])
    for i in range(c.shape[0]):
        for k in range(c.shape[1]):
            acc[k] += np.rint(c[i, k] * kappa)
    for k in range(c.shape[1]):
        total[k] += np.int64(acc[k])


class FeatureMajor:
    """Rows in the order of their features, some thousand rows together.

    Parameters
    ----------
    storage : tuple of ndarray
        Data, indices, begins and ends of the rows.
    n_features, n_outputs : int
    """

    def __init__(self, storage: Storage, n_features: int, n_outputs: int) -> None:
        self._storage = storage
        data, indices, begins, ends = storage
        n = len(begins)
        self._step = max(1, PREDICTORS // n_outputs)
        self._chunks: list[tuple[int, int, Csr]] = []
        for lo in range(0, n, self._step):
            hi = min(n, lo + self._step)
            first, last = int(begins[lo]), int(ends[hi - 1])
            pointers = np.append(begins[lo:hi], ends[hi - 1]).astype(np.int64) - first
            kind = np.int32 if indices.itemsize == 4 and last - first < 2**31 else np.int64
            own = indices[first:last].astype(kind)
            part = sp.csr_matrix(
                (data[first:last], own, pointers.astype(kind)), shape=(hi - lo, n_features)
            ).tocsc()
            rows, starts = unsigned(part.indices), unsigned(part.indptr)
            self._chunks.append((lo, hi, (frozen(part.data), frozen(rows), frozen(starts))))

    @staticmethod
    def is_beneficial(n_rows: int, n_entries: int, n_features: int, n_outputs: int) -> bool:
        """Whether the order by features is faster than the order by rows."""
        together = min(n_rows, max(1, PREDICTORS // n_outputs))
        return (
            n_rows > 0
            and n_outputs >= FEWEST_OUTPUTS
            and n_features * n_outputs >= LEAST_THETA
            and n_entries * together >= LEAST_PER_FEATURE * n_features * n_rows
            and n_entries <= MOST_ENTRIES * n_features * n_outputs
        )

    def clipped_sum(
        self, theta: Floats, vectors: tuple[Floats, Floats], mask: Mask, constants: tuple[int, float, float],
        limit: float, inverse_unit: float,
    ) -> Integers:  # fmt: skip
        """The sum of `GradientKernel.clipped_sum` over all rows, theta (p, K) in the user's units."""
        kappa, (p, n_outputs), d = constants[-1], theta.shape, len(self._chunks[0][-1][-1]) - 1
        base = theta[d] * kappa if p > d else np.zeros(n_outputs)
        one = kappa * kappa if p > d and (mask.size == 0 or mask[d]) else 0.0
        total = np.zeros((p, n_outputs), dtype=np.int64)
        for lo, hi, arrays in self._chunks:
            factors_of = np.empty((hi - lo, n_outputs)), np.empty(hi - lo, dtype=np.bool_)
            self._predict(arrays, theta, base, factors_of[0])
            rest = one, limit, inverse_unit
            self._turn((lo, hi), vectors, mask, constants, p, rest, factors_of)
            self._add(arrays, factors_of, mask, total)
            if p > d and (mask.size == 0 or mask[d]):
                _intercept_sums(factors_of[0], kappa, total[d])
        return total

    def _predict(self, arrays: Csr, theta: Floats, base: Floats, scores: Floats) -> None:
        """Fill in the predictors: each thread takes some outputs."""
        n_outputs = scores.shape[1]
        parts = min(n_threads(), n_outputs)

        def one(_slot: int, part: int) -> None:
            _predictors(*arrays, theta, base, *bounds(n_outputs, parts, part), scores)

        run_blocks(one, parts)

    def _turn(
        self, rows: tuple[int, int], vectors: tuple[Floats, Floats], mask: Mask,
        constants: tuple[int, float, float], p: int, rest: tuple[float, float, float],
        factors_of: tuple[Floats, Mask],
    ) -> None:  # fmt: skip
        """Turn predictors into factors: each thread takes some rows."""
        top, end = rows

        def one(_slot: int, part: int) -> None:
            lo, hi = bounds(end - top, PARTS, part)
            _row_factors(
                *self._storage, top, top + lo, top + hi, *vectors, mask, *constants, p, *rest,
                *factors_of,
            )  # fmt: skip

        run_blocks(one, PARTS)

    def _add(self, arrays: Csr, factors_of: tuple[Floats, Mask], mask: Mask, total: Integers) -> None:
        """Add up: each thread takes some features."""
        clean = bool(factors_of[1].all())

        def one(_slot: int, part: int) -> None:
            cuts = bounds(len(arrays[-1]) - 1, PARTS, part)
            _feature_sums(*arrays, *factors_of, clean, mask, *cuts, total)

        run_blocks(one, PARTS)
