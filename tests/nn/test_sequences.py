"""Nets for sequences of tokens: padding, odd ids, and what one record's tokens change of others."""

import warnings

import numpy as np
import pytest

from skdp.nn import LSTM, CrossEntropy, Dense, Embedding, MaskedMeanPool, ReLU, Sequential
from skdp.privacy.gradients import parts
from skdp.privacy.gradients.device import arrays_of

pytestmark = pytest.mark.blas

LENGTH, WORDS = 9, 20
NET = Sequential([Embedding(WORDS, 3), LSTM(5, bidirectional=True), MaskedMeanPool(), Dense(4), ReLU(), Dense(2)])
ODD = (0, -3, 2.5, WORDS + 1, 1e30, -1e30, 1.7e308, 5e-324, 1e-40, np.nan, np.inf, -np.inf)


def tokens(n, seed=0):
    """Ids with ties, sequences of all lengths, and padding at the end or anywhere."""
    rng = np.random.default_rng(seed)
    x = rng.integers(1, WORDS + 1, (n, LENGTH)).astype(float)
    x[rng.random(n) < 0.3] = 7
    x[np.arange(LENGTH) >= rng.integers(0, LENGTH + 1, (n, 1))] = 0
    gaps = rng.random(n) < 0.3
    x[gaps] *= rng.random((gaps.sum(), LENGTH)) < 0.6
    return x


def pieces_of(network, flat, x, method="materialized"):
    y, loss = np.arange(len(x)) % 2, CrossEntropy(2)
    return network.record_gradients(flat, x, lambda outputs: loss.derivative(outputs, y), method)


def built(dtype="float32"):
    network = NET.build((LENGTH,), dtype=dtype)
    return network, network.initialize(np.random.default_rng(1))


@pytest.mark.parametrize("method", ["materialized", "ghost"])
def test_tokens_of_one_record_change_no_bit_of_others(method):
    network, flat = built()

    def numbers(x):
        pieces = pieces_of(network, flat, x, method)
        found = [network.forward(flat, x)] + [a for piece in pieces for a in arrays_of(piece)]
        return found + [part.squares for part in parts.parts_of(pieces, ghost=method == "ghost")]

    x, rng = tokens(11), np.random.default_rng(2)
    before = numbers(x)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("error")  # a warning would tell of a record
        for trial in range(60):
            place, other = rng.integers(11), x.copy()
            other[place] = tokens(1, seed=trial)[0]
            odd = rng.random(LENGTH) < rng.choice([0.0, 0.3, 1.0])
            other[place, odd] = rng.choice(ODD, odd.sum())
            kept = np.arange(11) != place
            for one, two in zip(before, numbers(other), strict=True):
                assert one[kept].tobytes() == two[kept].tobytes()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_everything_that_is_no_id_is_padding(dtype):
    network, flat = built(dtype)
    x = tokens(len(ODD), seed=3)
    with np.errstate(over="ignore"):
        odd = np.where(x == 0, np.array(ODD)[:, None], x)
        np.testing.assert_array_equal(network.forward(flat, odd), network.forward(flat, x))
        for one, other in zip(pieces_of(network, flat, odd), pieces_of(network, flat, x)):
            np.testing.assert_array_equal(one.dense(), other.dense())


def test_padding_is_passed_over_wherever_it_stands():
    network, flat = built("float64")
    x = tokens(40, seed=4)
    packed = np.zeros_like(x)
    for row, found in zip(x, packed):
        ids = row[row > 0]
        found[: ids.size] = ids
    assert (packed != x).any()
    np.testing.assert_allclose(network.forward(flat, x), network.forward(flat, packed), atol=1e-14)
    for one, other in zip(pieces_of(network, flat, x), pieces_of(network, flat, packed)):
        np.testing.assert_allclose(one.dense(), other.dense(), atol=1e-14)


def test_a_record_without_tokens_teaches_the_last_layers_only():
    network, flat = built()
    x = np.zeros((1, LENGTH))
    *others, weight, bias = [piece.dense() for piece in pieces_of(network, flat, x)]
    assert not any(values.any() for values in others)
    assert bias.any()
    assert not weight.any()  # the hidden units are 0
    pooled, _ = MaskedMeanPool().forward({}, np.ones((2, 3, 4)) * [1, 1, 1, 0])
    np.testing.assert_array_equal(pooled, 0)


def test_gradients_belong_to_the_derivatives_that_were_given():
    """Pieces and derivatives by inputs share what they need, but not for other derivatives by outputs."""
    layer, rng = LSTM(3, bidirectional=True), np.random.default_rng(5)
    own = layer.initialize((4, 3), rng)
    x = rng.standard_normal((5, 4, 3)).astype(np.float32)
    one, other = rng.standard_normal((2, 5, 4, 7)).astype(np.float32)
    _, state = layer.forward(own, x)
    layer.record_gradients(own, state, one)
    mixed = layer.backward(own, state, other)
    _, fresh = layer.forward(own, x)
    np.testing.assert_array_equal(mixed, layer.backward(own, fresh, other))
    assert np.abs(mixed - layer.backward(own, fresh, one)).max() > 0.01


def test_sizes_and_starts():
    net = Sequential(
        [Embedding(8185, 64), LSTM(64, bidirectional=True), MaskedMeanPool(), Dense(64), ReLU(), Dense(2)]
    )
    network = net.build((256,))
    assert network.n_parameters == 598_274  # the published net for IMDb
    table, lstm, *_ = network.views(network.initialize(np.random.default_rng(6)))
    assert np.linalg.norm(table["weight"], axis=1).mean() == pytest.approx(1, abs=0.01)
    for weight in lstm.values():
        np.testing.assert_array_equal(weight[-1], np.repeat([0, 1, 0, 0], 64))
        assert np.abs(weight[:-1]).max() <= 1 / 8
        assert weight[:-1].std() == pytest.approx(1 / 8 / 3**0.5, rel=0.02)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: Embedding(0, 3), "vocabulary_size"),
        (lambda: Embedding(2**24, 3), "2\\*\\*24"),
        (lambda: Embedding(5, 0), "n_features"),
        (lambda: LSTM(0), "n_units"),
        (lambda: LSTM(3, bidirectional="yes"), "bidirectional"),
        (lambda: Sequential([Embedding(5, 3)]).build((4, 4)), "shape \\(length,\\)"),
        (lambda: Sequential([LSTM(3)]).build((4,)), "n_features \\+ 1"),
        (lambda: Sequential([MaskedMeanPool()]).build((4, 1)), "n_features \\+ 1"),
    ],
)
def test_what_does_not_fit_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()
