"""Votes for a support: blocks of units each fit a sparse model and vote for its features.

Privacy
-------
One unit lies in one block, so it can change the votes of that block only. A block votes once or not at all for
a feature, so every count moves by at most 1: by +1 for some and by -1 for others at the same time, under every
adjacency (sample and aggregate: Nissim, Raskhodnikova & Smith 2007; Kifer, Smith & Thakurta 2012). As counts
move both ways, a selection needs Gumbel noise of scale 2 / epsilon, not 1 / epsilon: votes (6, 5) can become
(5, 6), and with scale 1 / epsilon the log odds would move by 2 epsilon.

This rests on two properties, both tested. A block's vote is a function of its rows alone: sums are taken in an
order that follows from these rows. A vote is always s features or none, and no rows raise an exception.
"""

import math
from collections.abc import Callable
from itertools import pairwise

import numpy as np

from skdp.kernels.protocols import Floats, Integers, Matrix, SparseMatrix, issparse
from skdp.losses import Loss
from skdp.privacy.batches import Partition
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.gradients.device import rows_on_host
from skdp.privacy.rows import HoldsRows

__all__ = ["block_vote", "count_votes", "support_votes"]

_Predict = Callable[[Floats, Integers], Floats]
_Gather = Callable[[Floats], Floats]

ITERATIONS = 10  # steps of a block's model; a choice, not tuned


def support_votes(
    records: HoldsRows, loss: Loss, n_nonzero_coefs: int, blocks: Partition, *, adjacency: str
) -> BoundedStatistic:
    """Count for each feature the blocks of units whose own sparse model uses it.

    Each block fits a model that is not private and votes for ``n_nonzero_coefs`` features, or for none.

    Parameters
    ----------
    records : PrivateRecords
    loss : object from `skdp.losses`
    n_nonzero_coefs : int
    blocks : Partition
        Of `PrivacySession.partition` and these records.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    BoundedStatistic
        Of shape (n_features,), of whole numbers.

    Notes
    -----
    **Privacy.** A unit lies in one block. A block that changes its vote withdraws at most s votes and gives at
    most s others: every count moves by at most 1, and all of them by at most 2 s together, under every adjacency:
    linf = 1, l1 = 2 s, l2 = sqrt(2 s).
    """
    rows = records._rows
    if rows.weight is not None:
        raise ValueError("votes have no weighted form; fit without sample_weight")
    s, d = int(n_nonzero_coefs), rows.shape.n_features
    if not isinstance(blocks, Partition):
        raise TypeError("blocks must come from session.partition(records, n_blocks)")
    if blocks._family is not rows.family or not 1 <= s <= d:
        raise ValueError(f"blocks must be drawn for these records, and n_nonzero_coefs be between 1 and {d}")
    block = blocks._blocks
    counted: list[Integers] = []

    def votes() -> Integers:
        if not counted:
            of_rows = block if rows.groups is None else block[rows.groups]
            y = np.asarray(rows.y)
            found = count_votes(rows.matrix, y, loss, s, of_rows, intercept=rows.shape.fit_intercept)
            counted.append(found)
        return counted[0]

    source = rows.source(
        lambda unit: votes() * np.int64(math.floor(1.0 / unit)),
        lambda: votes().astype(np.float64),
        magnitude=float(rows.shape.most_units),  # there are at most as many blocks
    )
    return BoundedStatistic.from_source(
        source, (d,), l1=2.0 * s, l2=math.sqrt(2.0 * s), linf=1.0, adjacency=adjacency
    )


def count_votes(X: Matrix, y: Floats, loss: Loss, s: int, blocks: Integers, *, intercept: bool) -> Integers:
    """Number of blocks that vote for each feature.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n, d), or their CuPy counterparts
    y : ndarray of shape (n,)
    loss : object from `skdp.losses`
    s : int
        Features that a block votes for.
    blocks : ndarray of int of shape (n,)
        The block of each row.
    intercept : bool

    Returns
    -------
    ndarray of int64 of shape (d,)
    """
    votes = np.zeros(X.shape[1], dtype=np.int64)
    order = np.argsort(blocks, kind="stable")
    starts = np.searchsorted(blocks[order], np.arange(int(blocks.max(initial=-1)) + 2))
    for first, last in pairwise(starts):
        rows = order[first:last]
        chosen = block_vote(rows_on_host(X, rows), y[rows], loss, s, intercept)
        votes[chosen] += 1
    return votes


def block_vote(X: Matrix, y: Floats, loss: Loss, s: int, intercept: bool) -> Integers:
    """The s features of a block's sparse model, or none.

    A few steps of normalised iterative hard thresholding from 0; the intercept follows along.
    """
    none = np.empty(0, dtype=np.int64)
    if not X.shape[0] or s > X.shape[1]:
        return none
    with np.errstate(all="ignore"):
        predict, gather = _sparse_products(X) if issparse(X) else _dense_products(X)
        k, size = loss.n_outputs, 1.0 / X.shape[0]
        theta, offset = np.zeros((X.shape[1], k)), np.zeros(k)
        chosen = none
        for _ in range(ITERATIONS):
            z = predict(theta, chosen) + offset
            slope = loss.derivative(z[:, 0] if k == 1 else z, y).reshape(-1, k)
            if intercept:
                change = -slope.sum(axis=0) * size / loss.smoothness
                offset = offset + change
                slope = loss.derivative((z + change)[:, 0] if k == 1 else z + change, y)
                slope = slope.reshape(-1, k)
            gradient = gather(slope)
            before = chosen
            if not len(before):
                before = _largest(gradient, s)
            step = _step_length(predict, gradient, before, loss.smoothness)
            theta = theta - step * gradient
            chosen = _largest(theta, s)
            if len(chosen) < s:
                return none
            kept = np.zeros_like(theta)
            kept[chosen] = theta[chosen]
            theta = kept
    return chosen


def _step_length(predict: _Predict, gradient: Floats, chosen: Integers, smoothness: float) -> float:
    """Minimiser of the quadratic bound along the gradient on the chosen features."""
    along = predict(gradient, chosen)
    square, bend = float((gradient[chosen] ** 2).sum()), float((along * along).sum())
    return square / (smoothness * bend) if bend > 0 else 0.0


def _largest(theta: Floats, s: int) -> Integers:
    """The s rows of largest norm, sorted, ties to the lowest number; none if fewer are finite and not 0."""
    size = (theta * theta).sum(axis=1)
    usable = (size > 0) & (size < np.inf)
    if not np.isfinite(size).all() or int(usable.sum()) < s:
        return np.empty(0, dtype=np.int64)
    return np.sort(np.argsort(-size, kind="stable")[:s])


def _dense_products(X: Matrix) -> tuple[_Predict, _Gather]:
    """X theta on chosen rows of theta, and X^T r, by sums whose order only the shape decides."""
    dense = np.ascontiguousarray(X, dtype=np.float64)

    def predict(theta: Floats, chosen: Integers) -> Floats:
        columns = np.ascontiguousarray(dense[:, chosen])
        products = [(columns * theta[chosen, k]).sum(axis=1) for k in range(theta.shape[1])]
        return np.stack(products, axis=1)

    def gather(r: Floats) -> Floats:
        sums = [np.add.reduce(dense * r[:, [k]], axis=0) for k in range(r.shape[1])]
        return np.stack(sums, axis=1)

    return predict, gather


def _sparse_products(X: SparseMatrix) -> tuple[_Predict, _Gather]:
    """The same for CSR: each sum runs over the stored entries from the first to the last."""
    data, column = X.data.astype(np.float64), X.indices
    m, d = X.shape
    row = np.repeat(np.arange(m), np.diff(X.indptr))

    def predict(theta: Floats, chosen: Integers) -> Floats:
        inside = np.zeros(d, dtype=bool)
        inside[chosen] = True
        used = inside[column]
        products = [
            np.bincount(row[used], weights=data[used] * theta[column[used], k], minlength=m)
            for k in range(theta.shape[1])
        ]
        return np.stack(products, axis=1)

    def gather(r: Floats) -> Floats:
        sums = [np.bincount(column, weights=data * r[row, k], minlength=d) for k in range(r.shape[1])]
        return np.stack(sums, axis=1)

    return predict, gather
