"""Every launch that the package makes on a device, by small problems on strict arrays."""

import numpy as np
import scipy.sparse as sp

from skdp.kernels import gradient_kernel, numeric_sparse
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss
from tests import strict_arrays

LOSSES = [SquaredLoss(), HuberLoss(0.5), LogisticLoss(), MultinomialLoss(3)]
STORAGES = ("dense", "csr int32", "csr int64")
UNIT = 2.0**-30


def stored(X, storage, cupy=None):
    """X on the host, or on the "device" of ``cupy``, in one storage."""
    if storage == "dense":
        return X if cupy is None else cupy.asarray(X)
    matrix = sp.csr_matrix(X)
    index = storage.removeprefix("csr ")
    matrix.indices, matrix.indptr = matrix.indices.astype(index), matrix.indptr.astype(index)
    return matrix if cupy is None else strict_arrays.csr_matrix(matrix)


def problem(loss, dtype, n=24, seed=0):
    """Records with zeros, targets, a point and group codes."""
    rng = np.random.default_rng(seed)
    X = (rng.standard_normal((n, 37)) * (rng.random((n, 37)) < 0.7)).astype(dtype)
    y = rng.integers(0, max(2, loss.n_outputs), n)
    theta = rng.standard_normal(38 if loss.n_outputs == 1 else (38, loss.n_outputs))
    return X, y, theta, rng.integers(0, 6, n)


def sums(kernel, theta, rows=None):
    """Everything that a gradient kernel computes, with and without a mask."""
    yield "rounded", kernel.clipped_sum(theta, 0.3, UNIT, rows=rows)
    yield "rounded", kernel.clipped_sum(theta, 0.3, UNIT, np.arange(38) % 3 > 0, rows)
    yield "rounded", kernel.recursive_sum(theta, theta + 0.05, 0.25, 0.9, 0.02, UNIT, rows=rows)
    yield "rounded", kernel.loss_sums([theta, -theta], 0.5, UNIT, rows=rows)
    yield "plain", kernel.plain_sum(theta, rows=rows)
    yield "plain", kernel.norms(theta)


def kernels(loss, dtype, storage, cupy, grouped, weighted):
    """The kernel of the device, that of the CPU, and a point."""
    X, y, theta, groups = problem(loss, dtype)
    options = {
        "groups": groups if grouped else None,
        "sample_weight": np.linspace(0.5, 1.0, len(y)) if weighted else None,
        "intercept_value": 2.0,
    }
    positions = (cupy, None)
    device, host = (gradient_kernel(stored(X, storage, at), y, loss, **options) for at in positions)
    return device, host, theta


def scan(cupy, n=150, hits=5):
    """Arguments of the sparse vector scan on the host, and its two results on the device."""
    rng = np.random.default_rng(0)
    values, noise = rng.integers(-50, 50, n), rng.integers(-9, 9, n)
    order, thresholds = rng.permutation(n), rng.integers(40, 50, hits)
    arguments = values, order, noise, thresholds, rng.integers(-9, 9, hits)
    return arguments, numeric_sparse(cupy.asarray(values), *arguments[1:])
