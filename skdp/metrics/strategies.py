"""Strategies: linear queries of a table of counts by which a workload of linear questions has the least noise.

A strategy is a matrix A. Released are the numbers A x of the counts x, with Gaussian noise. Every other linear
question q^T x is then answered by least squares, with variance ``s^2 q^T (A^T A)^-1 q / mu^2``, where s is the
sensitivity of A x. `optimal` minimises the sum of these variances over a workload (the matrix mechanism of Li,
Miklau, Hay, McGregor & Rastogi 2015; for Gaussian noise the problem is convex, Yuan, Yang, Zhang & Hao 2016).

**Privacy.** `skdp.privacy.statistics.cell_sums` has the proof. The sensitivity is computed there, from the
integers that are released, and not from the optimum that they were rounded from.
"""

import functools
import importlib.resources
import math

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.protocols import Floats, Integers
from skdp.metrics import workloads

# Grid of the entries of a released strategy; a choice: a coarser grid costs accuracy, a finer one a larger file.
GRID = 2.0**-12
TOTAL = 0.5  # weight of the number of units, where it is not public; as the weight of the other counts
UNSHIPPED_ROUNDS = 60  # rounds for strategies that are not shipped: within 2 %, in two seconds at most
ROUNDS = 150  # rounds of the fixed point: the objective is then within 1 % of the least; a choice
KINDS = {
    "table": workloads.table_workload,
    "confidence": workloads.confidence_workload,
    "probability": workloads.probability_workload,
}
SHIPPED = {"table": (64, 128, 256), "confidence": (32,), "probability": (64,)}
FILE = "strategies.npz"


def optimal(workload: Floats, *, replaced: bool, rounds: int = ROUNDS) -> tuple[Floats, float]:
    """Return the symmetric strategy of sensitivity 1 with the least weighted variance, and its duality gap.

    Minimises tr(V X^-1) over X = A^T A, where all pairs of cells have (e_i - e_j)^T X (e_i - e_j) <= 1 for
    replaced records, on the complement of the vector of ones (the total is public), or X_ii <= 1 for records
    that come or go. For multipliers v, with L the Laplacian of the graph of weights v (or the diagonal matrix of
    v), the best X is ``L^-1/2 (L^1/2 V L^1/2)^1/2 L^-1/2`` up to its scale. Multiplying v by the constraints'
    values is the fixed point of the dual; the gap is tr(V X^-1) max(D) over the dual's value, less 1.

    Parameters
    ----------
    workload : ndarray of shape (n_cells, n_cells)
    replaced : bool
    rounds : int

    Returns
    -------
    strategy : ndarray of shape (n_cells, n_cells)
    gap : float
    """
    k = len(workload)
    basis, ones = np.eye(k), np.ones((k, k)) / k
    v = np.ones(k) / k
    # Scores are shares: of a question only its difference from its mean counts, and of the rest the total.
    centred = np.eye(k) - ones
    workload = centred @ workload @ centred + TOTAL * k * ones
    if replaced:
        basis = np.linalg.qr(np.column_stack((np.ones(k), np.eye(k)[:, 1:])))[0][:, 1:]
        v = (np.ones((k, k)) - np.eye(k)) * 2.0 / (k * (k - 1))
    inside = basis.T @ workload @ basis
    inside += 1e-9 * np.trace(inside) / len(inside) * np.eye(len(inside))
    best, dual = math.inf, 0.0
    for _ in range(rounds):
        weights = np.diag(v.sum(axis=1)) - v if replaced else np.diag(v)
        root, inverse = _roots(basis.T @ weights @ basis)
        middle, _ = _roots(root @ inside @ root)
        x = basis @ (inverse @ middle @ inverse) @ basis.T
        sizes = np.diag(x)
        moved = sizes[:, None] + sizes[None, :] - 2.0 * x if replaced else sizes
        value = float(np.trace(np.linalg.solve(basis.T @ x @ basis, inside)) * moved.max())
        dual = max(dual, float(np.trace(middle) ** 2 / (v.sum() / (2 if replaced else 1))))
        if value < best:
            best, kept = value, x / moved.max()
        v = v * np.maximum(moved, 1e-300)
        v /= v.sum() / (2 if replaced else 1)
    return _roots(kept)[0], best / dual - 1.0


def _roots(matrix: Floats) -> tuple[Floats, Floats]:
    """Square root of a positive matrix, and its inverse."""
    values, vectors = np.linalg.eigh(matrix)
    size = np.sqrt(np.maximum(values, 1e-13 * values.max()))
    return (vectors * size) @ vectors.T, (vectors / size) @ vectors.T


def rounded(matrix: Floats) -> Integers:
    """Return a strategy in integers, in units of ``GRID``."""
    return np.rint(matrix / GRID).astype(np.int64)


def scaled(integers: Integers) -> Floats:
    """Return the strategy that integers in units of ``GRID`` stand for."""
    return np.asarray(integers * GRID, dtype=np.float64)


@functools.lru_cache(maxsize=16)
def strategy(kind: str, n_bins: int, adjacency: str) -> Integers:
    """Return the strategy for a kind of table: from the package's file, or computed where it is not in it.

    Parameters
    ----------
    kind : {"table", "confidence", "probability"}
    n_bins : int
    adjacency : {"replace-one", "zero-out", "add-remove"}

    Returns
    -------
    ndarray of int64 of shape (n_answers, n_cells)
        In units of ``GRID``, of sensitivity about 1. Not to be written to.
    """
    replaced = adjacency == "replace-one"
    if n_bins in SHIPPED[kind]:
        lower = _file()[f"{kind}_{n_bins}_{'pairs' if replaced else 'columns'}"]
        size = int(math.isqrt(8 * lower.size + 1) - 1) // 2
        integers = np.zeros((size, size), dtype=np.int64)
        integers[np.tril_indices(size)] = lower
        integers += np.tril(integers, -1).T
    else:
        integers = rounded(optimal(KINDS[kind](n_bins), replaced=replaced, rounds=UNSHIPPED_ROUNDS)[0])
    integers.setflags(write=False)
    return integers


def _file() -> dict[str, NDArray[np.int16]]:
    found = importlib.resources.files("skdp.metrics").joinpath(FILE)
    with found.open("rb") as opened, np.load(opened) as arrays:
        return {name: arrays[name] for name in arrays.files}
