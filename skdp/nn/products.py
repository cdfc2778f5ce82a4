"""Matrix products in which a record's numbers do not depend on its place in the batch.

BLAS may add the terms of a row in another order where the row stands elsewhere. Under Poisson sampling a record
that is drawn or not moves the later ones, so their bits would tell of it. Here each product has 16 rows. They are
the columns of a product of transposed matrices, and whole multiples of 8 or 16 columns are treated alike. Measured
with OpenBLAS's kernels for six kinds of x86 processors, in float32 and float64: a row has the same bits in every
place. Another BLAS may differ. `skdp.privacy.check_batch_independence` looks at the one that is there.
"""

from skdp.nn.arrays import Array, array_module

SLAB = 16  # rows of one product


def rows_times(x: Array, W: Array) -> Array:
    """Return ``x @ W``, where a row's bits are a function of this row and of ``W``.

    Parameters
    ----------
    x : array of shape (n_rows, p)
    W : array of shape (p, q)

    Returns
    -------
    array of shape (n_rows, q)
    """
    xp = array_module(x)
    n_rows, p = x.shape
    q = W.shape[1]
    if q == 1:  # BLAS would take a product of a matrix and a vector, in which positions matter
        return rows_times(x, xp.concatenate([W, xp.zeros_like(W)], axis=1))[:, :1].copy()
    x, full = xp.ascontiguousarray(x), n_rows - n_rows % SLAB
    found = xp.empty((n_rows, q), dtype=x.dtype)
    if full:
        slabs = x[:full].reshape(-1, SLAB, p).transpose(0, 2, 1)
        found[:full].reshape(-1, SLAB, q)[:] = xp.matmul(W.T, slabs).transpose(0, 2, 1)
    if full < n_rows:
        last = xp.zeros((SLAB, p), dtype=x.dtype)
        last[: n_rows - full] = x[full:]
        found[full:] = xp.matmul(W.T, last.T).T[: n_rows - full]
    return found
