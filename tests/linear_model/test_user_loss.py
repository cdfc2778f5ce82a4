"""A loss of the user's own works where gradients are clipped, and is refused where a constant is believed."""

import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp import DPSparseERM
from skdp.kernels import gradient_kernel, sup_gradient_kernel, vertex_kernel
from skdp.losses import HuberLoss, LogisticLoss, Loss, SquaredLoss, check_loss, is_shipped
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.mechanisms.objective_perturbation.cost import objective_terms
from skdp.privacy.statistics import mean_losses, perturbed_minimizer, ridge_minimizer


class Declared(Loss):
    """A Huber loss as a user would write it, under a name that is not his."""

    name, smoothness = "logistic", 1.0

    def value(self, z, y):
        return HuberLoss(0.7).value(z, y)

    def derivative(self, z, y):
        return np.clip(z - y, -0.7, 0.7)


class Wild(Declared):
    """Derivatives that no bound holds."""

    def derivative(self, z, y):
        return np.where(y > 0, np.array([np.inf, 1e300, -1e300, np.nan])[y.astype(int) % 4], z - y)


class Subclass(LogisticLoss):
    __slots__ = ()

    def derivative(self, z, y):
        return 1e6 * np.asarray(z)


def table(kind="dense", n=60, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    if kind == "csr":
        X = sp.csr_matrix(np.where(abs(X) > 0.5, X, 0.0))
    return (X.astype(np.float32) if kind == "float32" else np.asfortranarray(X) if kind == "fortran" else X), y


@pytest.mark.parametrize("kind", ["dense", "csr", "float32", "fortran"])
@pytest.mark.parametrize("grouped", [False, True])
def test_sums_are_those_of_the_same_loss_of_the_package(kind, grouped):
    X, y = table(kind)
    rng = np.random.default_rng(1)
    weight, theta, unit = rng.uniform(0, 2, size=60), rng.normal(size=8), 2.0**-30
    groups = np.arange(60) // 3 if grouped else None
    options = {"sample_weight": weight, "intercept_value": 0.3}
    mask, rows = np.arange(8) % 2 == 0, np.arange(0, 20, 2)
    mine, own = (gradient_kernel(X, y, loss, groups=groups, **options) for loss in (Declared(), HuberLoss(0.7)))
    for more in ((), (mask,), (None, rows)):
        a, b = (k.clipped_sum(theta, 0.5, unit, *more) for k in (mine, own))
        assert np.abs(a - b).max() <= 60  # last bits of the predictors
    assert np.allclose(mine.plain_sum(theta), own.plain_sum(theta), rtol=1e-12)
    assert np.allclose(mine.norms(theta), own.norms(theta), rtol=1e-12)
    sup = [sup_gradient_kernel(X, y, loss, **options) for loss in (Declared(), HuberLoss(0.7))]
    a, b = (k.clipped_sum(theta, 0.5, unit) for k in sup)
    assert np.abs(a - b).max() <= 60


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_wild_derivative_moves_the_sum_by_no_more_than_the_clip(kind):
    X, y = table(kind)
    theta, unit = np.ones(8), 2.0**-30
    for target in (0.0, 1.0, 2.0, 3.0, 4.0, -1e308):
        changed = y.copy()
        changed[5] = target
        sums = [
            gradient_kernel(X, t, Wild()).clipped_sum(theta, 0.5, unit).astype(float)
            for t in (np.minimum(y, 0.0), np.where(np.arange(60) == 5, changed, np.minimum(y, 0.0)))
        ]
        assert np.linalg.norm(sums[1] - sums[0]) <= 2 * 0.5 / unit
        sups = [
            sup_gradient_kernel(X, t, Wild()).clipped_sum(theta, 0.5, unit).astype(float)
            for t in (np.minimum(y, 0.0), np.where(np.arange(60) == 5, changed, np.minimum(y, 0.0)))
        ]
        assert np.abs(sups[1] - sups[0]).max() <= 2 * 0.5 / unit


def test_a_row_adds_the_same_whatever_rows_are_beside_it():
    for kind in ("dense", "csr"):
        X, y = table(kind, n=64)
        theta = np.random.default_rng(3).normal(size=8)
        alone = [
            gradient_kernel(X[i : i + 1], y[i : i + 1], Declared()).clipped_sum(theta, 0.5, 2.0**-30)
            for i in range(64)
        ]
        whole = gradient_kernel(X, y, Declared()).clipped_sum(theta, 0.5, 2.0**-30)
        assert np.array_equal(np.sum(alone, axis=0), whole)


def test_a_fit_is_near_that_of_the_package_and_says_what_it_rests_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=3000)
    mine, own = (
        DPSparseERM(loss=loss, epsilon=math.inf, max_iter=50).fit(X, y) for loss in (Declared(), HuberLoss(0.7))
    )
    assert np.allclose(mine.coef_, own.coef_, atol=1e-8)
    private = DPSparseERM(loss=Declared(), epsilon=8.0, random_state=0).fit(X, y)
    assert any("by the user's declaration" in line for line in private.privacy_.assumptions)
    own = DPSparseERM(loss=HuberLoss(0.7), epsilon=8.0, random_state=0).fit(X, y)
    assert not any("declaration" in line for line in own.privacy_.assumptions)
    assert np.allclose(private.predict(X), X @ private.coef_ + private.intercept_)


@pytest.mark.parametrize("loss", [Declared(), Subclass()])
def test_minimisers_refuse_all_but_the_losses_of_the_package(loss):
    """A wrong Lipschitz constant would void their sensitivity, whatever the loss calls itself."""
    X, y = table()
    records = PrivateRecords(X, (y > 0).astype(float))
    assert not is_shipped(loss)
    with pytest.raises(TypeError, match="a minimiser is released"):
        ridge_minimizer(records, loss, alpha=1.0, row_norm=1.0, adjacency="replace-one")
    with pytest.raises(TypeError, match="a minimiser is released"):
        perturbed_minimizer(records, loss, penalty=1.0, row_norm=1.0)
    with pytest.raises(ValueError, match="not proven"):
        objective_terms(loss, radius=1.0, penalty=1.0, adjacency="replace-one")


def test_passes_that_cannot_compute_the_loss_refuse_it():
    X, y = table()
    with pytest.raises(TypeError, match="compiled passes"):
        vertex_kernel(X, y, Declared())
    records, session = PrivateRecords(X, y), PrivacySession.without_privacy()
    with pytest.raises(TypeError, match="compiled passes"):
        plan = session.plan_gaussian(1)
        session.gaussian(mean_losses(records, Declared(), np.zeros((2, 7)), 1.0), plan)


def test_what_is_missing_is_named():
    class NoFacts:
        name = "mine"

        def derivative(self, z, y):
            return z - y

    class Unhashable(Declared):
        __hash__ = None

    for wrong, message in (
        (NoFacts(), "without smoothness"),
        (Declared, r"must be an instance: pass Declared\(\)"),
        (Unhashable(), "hashable"),
        (3, "must be one of"),
    ):
        with pytest.raises(TypeError, match=message):
            check_loss(wrong)

    class Wide(Declared):
        n_outputs = 2

    with pytest.raises(TypeError, match="one linear predictor"):
        check_loss(Wide())
    assert check_loss(SquaredLoss()) is None

    class Wrong(Declared):
        def derivative(self, z, y):
            return 1.0

    with pytest.raises(ValueError, match="one real number"):
        gradient_kernel(*table(), Wrong()).norms(np.zeros(8))
