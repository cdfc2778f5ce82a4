"""Every row of the table of losses, by finite differences through each kernel; a loss without a row is refused."""

import dataclasses

import numpy as np
import pytest
import scipy.sparse as sp

from skdp import losses
from skdp.kernels import gradient_kernel, sup_gradient_kernel
from skdp.kernels.losses import LOSSES, GivenDerivatives, code_of, cuda_losses
from skdp.losses import HuberLoss, SquaredLoss

UNIT = 2.0**-30
# Thresholds and numbers of classes are 3.
OWN = [row.loss(*(3 for _ in dataclasses.fields(row.loss))) for row in LOSSES if row.loss is not GivenDerivatives]
STORAGES = {"C": np.ascontiguousarray, "Fortran": np.asfortranarray, "CSR": sp.csr_matrix}


def problem(loss, n=60, d=5):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d)) * (rng.random((n, d)) < 0.7)
    classes = max(2, loss.n_outputs)
    y = rng.integers(0, classes, n).astype(float) if loss.is_classification else 4 * rng.normal(size=n)
    theta = rng.normal(size=(d + 1, loss.n_outputs))
    weight = rng.uniform(0.5, 2.0, n)
    return X, y, theta[:, 0] if loss.n_outputs == 1 else theta, weight, rng.integers(0, 9, n)


def total(loss, X, y, theta, weight):
    """The sum of the weighted losses in NumPy."""
    return float(weight @ loss.value(X @ theta[:-1] + 2.0 * theta[-1], y))


def slope(loss, X, y, theta, weight, step=1e-6):
    """Its gradient by central differences."""
    found = np.zeros_like(theta)
    for at in np.ndindex(theta.shape):
        move = np.zeros_like(theta)
        move[at] = step
        ends = [total(loss, X, y, theta + sign * move, weight) for sign in (1, -1)]
        found[at] = (ends[0] - ends[1]) / (2 * step)
    return found


@pytest.mark.parametrize("grouped", [False, True], ids=["records", "groups"])
@pytest.mark.parametrize("storage", STORAGES)
@pytest.mark.parametrize("loss", OWN, ids=lambda loss: loss.name)
def test_each_row_by_finite_differences_in_each_kernel(loss, storage, grouped):
    X, y, theta, weight, groups = problem(loss)
    options = {"sample_weight": weight, "intercept_value": 2.0}
    kernel = gradient_kernel(STORAGES[storage](X), y, loss, groups=groups if grouped else None, **options)
    before = theta + 0.1
    now, then = (slope(loss, X, y, at, weight) for at in (theta, before))
    assert np.allclose(kernel.plain_sum(theta), now, rtol=1e-5, atol=1e-5)
    assert np.allclose(kernel.clipped_sum(theta, 1e5, UNIT) * UNIT, now, rtol=1e-5, atol=1e-5)
    both = kernel.recursive_sum(theta, before, 0.25, 1e5, 1e5, UNIT) * UNIT
    assert np.allclose(both, now - 0.75 * then, rtol=1e-5, atol=1e-5)
    value = kernel.loss_sums([theta], 1e6, UNIT)[0] * UNIT + 0.5e6 * kernel.n_units
    assert value == pytest.approx(total(loss, X, y, theta, weight), rel=1e-9)
    if not grouped:
        sup = sup_gradient_kernel(STORAGES[storage](X), y, loss, **options)
        assert np.allclose(sup.clipped_sum(theta, 1e5, UNIT) * UNIT, now, rtol=1e-5, atol=1e-5)


def test_a_loss_without_a_row_is_refused_and_a_code_without_a_row_adds_nothing():
    class Mine(HuberLoss):
        __slots__ = ()

    class Named:
        name, n_outputs = "squared", 1

    assert {row.loss for row in LOSSES} == {*losses._SHIPPED, GivenDerivatives}
    for unknown in (Mine(1.0), Named()):
        with pytest.raises(TypeError, match="has compiled passes for the losses of"):
            code_of(unknown)
    X, y, theta, *_ = problem(SquaredLoss())
    kernel = gradient_kernel(X, y, SquaredLoss())
    assert kernel.clipped_sum(theta, 1.0, UNIT).any()
    kernel._constants = (len(LOSSES), *kernel._constants[1:])
    assert not kernel.clipped_sum(theta, 1.0, UNIT).any()
    assert np.isinf(kernel.norms(theta)).all()
    assert kernel.loss_sums([theta], 1.0, UNIT)[0] * UNIT == 0.5 * len(y)


def test_the_cuda_program_has_each_code_in_each_function_of_its_kind():
    text = cuda_losses()
    for code, row in enumerate(LOSSES):
        assert text.count(f"(code == {code})") == 2
        assert row.cuda.derivative in text
        assert row.cuda.value in text
