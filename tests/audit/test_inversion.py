"""The input of a dense layer from the gradient of one record, and theorem 5.1 of Zhu and Blaschko (2023)."""

import numpy as np
import pytest

from skdp.audit import invert_dense_gradient
from skdp.nn import CrossEntropy, Dense, Sequential, Tanh


def one_gradient(seed=0):
    """Input, and gradient of the first layer, of a record in a small net, clipped to norm 1."""
    rng = np.random.default_rng(seed)
    x = rng.random(20)
    net = Sequential([Dense(12), Tanh(), Dense(3)]).build((20,), dtype="float64")
    pieces = net.record_gradients(
        net.initialize(rng), x[None], lambda outputs: CrossEntropy(3).derivative(outputs, np.array([1]))
    )
    weight, bias = pieces[0].dense().reshape(20, 12), pieces[1].dense()[0]
    scale = min(1.0, 1.0 / np.sqrt(sum(np.sum(piece.dense() ** 2) for piece in pieces)))
    return x, scale * weight, scale * bias


def test_a_clipped_gradient_shows_the_input():
    x, weight, bias = one_gradient()
    np.testing.assert_allclose(invert_dense_gradient(weight, bias), x, atol=1e-9)


def test_half_of_the_coordinates_show_it_too():
    x, weight, bias = one_gradient(1)
    kept = tuple(np.random.default_rng(0).random(part.shape) < 0.5 for part in (weight, bias))
    hidden = [np.where(mask, part, np.inf) for mask, part in zip(kept, (weight, bias))]
    found = invert_dense_gradient(*hidden, kept=kept, max_iter=5000)
    np.testing.assert_allclose(found, x, atol=1e-5)


def test_inputs_that_are_not_seen_are_nan():
    x, weight, bias = one_gradient(2)
    kept = (np.ones(weight.shape, bool), np.ones(bias.shape, bool))
    kept[0][3] = False
    found = invert_dense_gradient(weight, bias, kept=kept)
    assert np.flatnonzero(np.isnan(found)).tolist() == [3]
    np.testing.assert_allclose(np.delete(found, 3), np.delete(x, 3), atol=1e-9)
    assert np.isnan(invert_dense_gradient(weight, bias, kept=(kept[0], ~kept[1]))).all()


def errors(signal, std, masks, seed=0):
    """Squared errors of many inputs with one mask each: an input for each row of a weight."""
    rng = np.random.default_rng(seed)
    x = rng.random(len(masks))
    weight = np.outer(x, signal) + rng.normal(0.0, std, masks.shape)
    kept = (masks, np.ones(len(signal), bool))
    return (invert_dense_gradient(weight, signal, kept=kept, signal=signal) - x) ** 2


def test_theorem_with_masks_of_a_fixed_number():
    """The mean error is s^2 E[1 / ||m k||^2], which is above the bound; false alarm: 5 standard errors, 6e-7."""
    rng, std = np.random.default_rng(3), 0.1
    signal = rng.uniform(0.5, 1.5, 10)
    for n_hidden in (0, 3, 7):
        masks = np.argsort(rng.random((40_000, 10)), axis=1) >= n_hidden
        found = errors(signal, std, masks)
        exact = std**2 * np.mean(1.0 / (masks @ signal**2))
        assert abs(found.mean() - exact) < 5 * found.std() / np.sqrt(len(found))
        bound = std**2 / ((1 - n_hidden / 10) * np.sum(signal**2))
        assert exact >= bound * (1 - 1e-12)
        assert exact < 1.2 * bound


def test_the_printed_bound_fails_where_all_coordinates_may_be_hidden():
    """Each coordinate is hidden with probability .9. Errors of what can be estimated are below the printed bound.

    They are above the mended one, which is 1 - r^d times as large. False alarm: 5 standard errors, 6e-7.
    """
    rng, std, rate = np.random.default_rng(4), 0.1, 0.9
    signal = np.array([1.0, 1.1])
    masks = rng.random((40_000, 2)) >= rate
    found = errors(signal, std, masks)
    assert np.array_equal(np.isnan(found), ~masks.any(axis=1))
    found = found[masks.any(axis=1)]
    spread = 5 * found.std() / np.sqrt(len(found))
    printed = std**2 / ((1 - rate) * np.sum(signal**2))
    assert found.mean() + spread < printed
    assert found.mean() + spread > (1 - rate**2) * printed


def test_an_attacker_who_estimates_the_signal_and_knows_the_range():
    """With little noise the error is near that of a known signal; the range only helps."""
    x, weight, bias = one_gradient(5)
    rng = np.random.default_rng(6)
    shown = [part + rng.normal(0.0, 0.005, part.shape) for part in (weight, bias)]
    known = np.mean((invert_dense_gradient(*shown, signal=bias) - x) ** 2)
    estimated = invert_dense_gradient(*shown)
    assert np.mean((estimated - x) ** 2) < 4 * known < 0.1
    within = invert_dense_gradient(*shown, input_range=(0.0, 1.0))
    assert within.min() >= 0.0
    assert within.max() <= 1.0
    blind = [rng.normal(0.0, 1.0, part.shape) for part in (weight, bias)]
    found = invert_dense_gradient(*blind, input_range=(0.0, 1.0))
    assert np.mean((found - x) ** 2) > 20 * known


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"weight": np.zeros(3)}, r"shapes \(n_inputs, n_units\) and \(n_units,\), got \(3,\)"),
        ({"bias": np.zeros(3)}, r"got \(4, 2\) and \(3,\)"),
        ({"weight": np.full((4, 2), np.nan)}, "must be finite"),
        ({"kept": (np.ones((4, 2)), np.ones(2))}, "pair of bool arrays"),
        ({"kept": (np.ones((2, 4), bool), np.ones(2, bool))}, "pair of bool arrays"),
        ({"signal": np.ones(3)}, "signal must be finite and of shape"),
        ({"input_range": (1.0, 1.0)}, "low < high"),
        ({"max_iter": 0}, "max_iter must be >= 1"),
    ],
)
def test_bad_input(given, message):
    with pytest.raises(ValueError, match=message):
        invert_dense_gradient(**{"weight": np.ones((4, 2)), "bias": np.ones(2), **given})
