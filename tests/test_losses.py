"""Losses: derivatives against differences, stability, and the bound on the second derivative."""

import numpy as np
import pytest

from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss

BINARY = [SquaredLoss(), HuberLoss(0.7), LogisticLoss()]


@pytest.mark.parametrize("loss", BINARY, ids=lambda loss: loss.name)
def test_derivative_is_the_slope_of_the_value(loss):
    z = np.linspace(-3.0, 3.0, 61) + 0.01
    y = (np.arange(61) % 2).astype(float)
    h = 1e-5
    slope = (loss.value(z + h, y) - loss.value(z - h, y)) / (2 * h)
    np.testing.assert_allclose(loss.derivative(z, y), slope, atol=1e-8)


@pytest.mark.parametrize("loss", BINARY, ids=lambda loss: loss.name)
def test_smoothness_bounds_the_second_derivative_and_is_reached(loss):
    z = np.linspace(-5.0, 5.0, 2001)
    slopes = np.diff(loss.derivative(z, np.zeros_like(z))) / np.diff(z)
    assert slopes.max() <= loss.smoothness + 1e-9
    assert slopes.max() >= 0.99 * loss.smoothness
    assert loss.n_outputs == 1


def test_multinomial_derivative_is_the_gradient_of_the_value():
    loss = MultinomialLoss(4)
    rng = np.random.default_rng(0)
    z, y = rng.standard_normal((20, 4)), rng.integers(0, 4, 20)
    h = 1e-5
    for k in range(4):
        step = h * np.eye(4)[k]
        slope = (loss.value(z + step, y) - loss.value(z - step, y)) / (2 * h)
        np.testing.assert_allclose(loss.derivative(z, y)[:, k], slope, atol=1e-8)
    assert loss.n_outputs == 4


def test_multinomial_smoothness_is_the_largest_eigenvalue():
    p = np.array([0.5, 0.5, 0.0])
    top = np.linalg.eigvalsh(np.diag(p) - np.outer(p, p)).max()
    assert MultinomialLoss(3).smoothness == pytest.approx(top)


def test_two_classes_equal_the_logistic_loss():
    z, y = np.linspace(-4, 4, 9), np.arange(9) % 2
    two = np.stack([np.zeros_like(z), z], axis=1)
    np.testing.assert_allclose(MultinomialLoss(2).value(two, y), LogisticLoss().value(z, y))
    np.testing.assert_allclose(
        MultinomialLoss(2).derivative(two, y)[:, 1], LogisticLoss().derivative(z, y), atol=1e-15
    )


@pytest.mark.filterwarnings("error")
def test_extreme_scores_do_not_overflow():
    z = np.array([-1e308, -800.0, 800.0, 1e308])
    y = np.array([0.0, 1.0, 0.0, 1.0])
    assert LogisticLoss().derivative(z, y).tolist() == [0.0, -1.0, 1.0, 0.0]
    assert LogisticLoss().value(z[1:3], y[1:3]).tolist() == [800.0, 800.0]
    both = np.stack([z[1:3], -z[1:3]], axis=1)
    np.testing.assert_array_equal(MultinomialLoss(2).derivative(both, [0, 1]), [[-1, 1], [1, -1]])
    assert np.isfinite(HuberLoss(1.0).value(1e300, 0.0))


@pytest.mark.parametrize("threshold", [0.0, -1.0, np.inf, np.nan])
def test_huber_refuses_a_threshold_that_bounds_nothing(threshold):
    with pytest.raises(ValueError, match="threshold must be finite and positive"):
        HuberLoss(threshold)


@pytest.mark.parametrize("n_classes", [1, 0, 2.5])
def test_multinomial_refuses_a_wrong_number_of_classes(n_classes):
    with pytest.raises(ValueError, match="n_classes must be an integer >= 2"):
        MultinomialLoss(n_classes)


def test_losses_are_immutable_and_comparable():
    with pytest.raises(AttributeError):
        HuberLoss(1.0).threshold = 2.0
    assert HuberLoss(1.0) == HuberLoss(1.0) != HuberLoss(2.0)
