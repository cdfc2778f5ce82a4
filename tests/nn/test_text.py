"""Sequences of token ids, and the net that is trained on them."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

from skdp import BudgetAccountant, DPLSTMClassifier, DPNetworkClassifier
from skdp.exceptions import UnsupportedAccounting, UtilityWarning
from skdp.nn import LSTM, Dense, Embedding, Layer, MaskedMeanPool, Sequential, task
from skdp.nn.tokens import token_rows

pd = pytest.importorskip("pandas")


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="random_state is a seed")
        warnings.filterwarnings("ignore", message="delta=.* is too large for")
        warnings.simplefilter("ignore", UtilityWarning)
        yield


ROWS = [[3, 1], [], [2, 2, 2, 2], [5], [4, 0, 4], [1, 2, 3, 4, 5]]
PADDED = np.array([[3, 1, 0], [0, 0, 0], [2, 2, 2], [5, 0, 0], [4, 4, 0], [1, 2, 3]])


def objects(rows):
    found = np.empty(len(rows), dtype=object)
    found[:] = [np.array(row, dtype=np.int32) for row in rows]
    return found


@pytest.mark.parametrize(
    "X",
    [
        ROWS,
        tuple(map(tuple, ROWS)),
        objects(ROWS),
        pd.Series(ROWS),
        PADDED,
        PADDED.astype(np.uint8),
        PADDED.astype(np.float64),
        PADDED.astype(object),
        PADDED.tolist(),
        np.hstack([np.zeros((6, 3), dtype=int), PADDED]),  # padded on the left, as Keras does
        [[0, *row, 0] for row in ROWS],
        pd.DataFrame(PADDED),
    ],
    ids=lambda X: f"{type(X).__name__} {getattr(X, 'dtype', '')}",
)
def test_rows_are_cut_and_padded(X):
    found = token_rows(X, 3, 5)
    assert found.dtype == np.float32
    assert found.tolist() == PADDED.tolist()
    assert token_rows(X, 2, 5).tolist() == PADDED[:, :2].tolist()


BAD = [-1, 6, 1.5, np.nan, np.inf, 10**30, "a", None, 1j, [1], np.datetime64("2020-01-01")]


@pytest.mark.parametrize("bad", BAD, ids=repr)
@pytest.mark.parametrize("place", [0, 3])
def test_what_is_no_id_is_refused_and_nothing_spent(bad, place):
    """Also behind the length that is read, and whatever the other records hold."""
    accountant = BudgetAccountant(2.0, 1e-4)
    model = DPLSTMClassifier(vocabulary_size=5, max_length=3, classes=(0, 1), accountant=accountant)
    row = [1, 2, 3, 4]
    row[place] = bad
    for X in ([row], [*ROWS, row]):
        with pytest.raises((TypeError, ValueError), match=r"ids must be|token ids") as told:
            model.fit(X, [0] * len(X))
        assert "1000000" not in str(told.value)
    assert accountant.spent() == (0.0, 0.0)


@pytest.mark.parametrize("X", ["abc", b"abc", 3, ["abc", "d"], [1, 2, 3], np.arange(3), np.ones((2, 2, 2))])
def test_what_holds_no_sequences_is_refused(X):
    with pytest.raises((TypeError, ValueError), match="a sequence of token ids for each record"):
        token_rows(X, 3, 5)


@pytest.mark.parametrize(
    ("X", "advice"),
    [
        (sparse.csr_array(PADDED), "Counts of words are for a linear model"),
        (iter(ROWS), r"use list\(X\)"),
        ({"input_ids": ROWS}, "got dict. Of a tokenizer's output give the ids alone"),
        (["good film", "bad film"], "a row is text: .* give each token of your vocabulary a number"),
        (np.array(["good film", "bad film"]), "got text: .* give each token"),
        ([3, 1], r"One record needs \[X\]"),
        ([{3, 1}, {2}], "a row is no sequence"),
        ([{3: 2}], "a row is no sequence"),
        (np.arange(3), r"X.reshape\(1, -1\)"),
        (pd.DataFrame({"ids": ROWS}), "give the column"),
        (pd.DataFrame([[3, 1], [2, None]]), "fill gaps with 0"),
    ],
    ids=range(11),
)
def test_messages_say_what_to_do(X, advice):
    with pytest.raises((TypeError, ValueError), match=advice):
        token_rows(X, 3, 5)


@pytest.mark.parametrize("missing", ["vocabulary_size", "max_length"])
def test_public_numbers_are_required(missing):
    given = {"vocabulary_size": 5, "max_length": 3, missing: None}
    with pytest.raises(ValueError, match=f"{missing} must be given: the public number"):
        DPLSTMClassifier(**given).fit(ROWS, [0, 1] * 3)


def test_the_largest_vocabulary_is_told_in_full():
    with pytest.raises(ValueError, match=f"vocabulary_size must be <= {2**24 - 1}, got"):
        DPLSTMClassifier(vocabulary_size=2**24, max_length=3).fit(ROWS, [0, 1] * 3)


def documents(n, seed=0):
    """Documents of 2 to 9 words of 40, of which those of 1 to 5 tell the label."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    X = [rng.integers(6, 41, rng.integers(2, 10)) for _ in y]
    for row, label in zip(X, y):
        row[rng.integers(row.size)] = rng.integers(1, 4) + 2 * label
    return X, y


def small(**params):
    given = dict(vocabulary_size=40, max_length=8, n_features=8, n_units=8, classes=(0, 1), random_state=0)
    return DPLSTMClassifier(**{**given, **params})


@pytest.mark.thorough
def test_words_are_learned():
    """Seeded. Guessing gives .5 with a standard deviation of .011; .6 is 8.9 of them (false alarm < 1e-15)."""
    X, y = documents(3000)
    model = small(epsilon=8.0, max_iter=40, batch_size=300).fit(X, y)
    assert model.score(*documents(2000, seed=1)) > 0.6


def test_ragged_and_padded_rows_train_the_same_net():
    X, y = documents(60)
    padded = token_rows(X, 8, 40)
    models = [small(max_iter=2).fit(table, y) for table in (X, padded, padded.astype(np.int64), objects(X))]
    for model in models[1:]:
        assert np.array_equal(model.parameters_, models[0].parameters_)
        assert np.array_equal(model.predict_proba(X), models[0].predict_proba(padded))
    assert clone(models[0]).get_params() == models[0].get_params()


def test_predictions_read_what_the_fit_read():
    X, y = documents(60)
    model = small(max_iter=1).fit(X, y)
    expected = model.predict_proba(X)
    model.set_params(max_length=3, vocabulary_size=2)
    assert np.array_equal(model.predict_proba(X), expected)
    with pytest.raises(ValueError, match="vocabulary_size=40"):
        model.predict([[41]])
    assert model.predict([[], [40] * 100]).shape == (2,)


def ids_of(texts):
    return [[int(word) for word in text.split()] for text in texts]


ids_of.learns_from_data = False


def test_a_pipeline_from_words_to_labels():
    X, y = documents(60)
    texts = [" ".join(map(str, row)) for row in X]
    split = FunctionTransformer(ids_of)
    model = make_pipeline(split, small(max_iter=1)).fit(texts, y)
    assert np.array_equal(model.predict(texts), small(max_iter=1).fit(X, y).predict(X))


def test_authors_are_the_units():
    X, y = documents(60)
    model = small(max_iter=2, unit="group", n_public=20, batch_size=10, max_rows_per_group=2)
    model.fit(X, y, groups=np.arange(60) % 20)
    assert model.privacy_.unit == "group"
    assert model.privacy_.guarantee == "proven"
    assert any("vocabulary_size, max_length" in line for line in model.privacy_.assumptions)


# ------------------------------------------------------------------ nets of layers


def net(*more):
    return Sequential([Embedding(40, 4), *more, LSTM(3), MaskedMeanPool(), Dense(2)])


class BesideTokens(Layer):
    """Adds what other rows hold, where there is a token at all."""

    def shapes(self, input_shape):
        return input_shape, {}

    def forward(self, parameters, x):
        return x + x[:, :, -1:] * x.mean(axis=0), None

    def backward(self, parameters, state, dy):
        return dy


def test_the_check_of_batch_independence_looks_at_tokens():
    task.require_batch_independence(net().build((8,)), "materialized", "float32")
    with pytest.raises(UnsupportedAccounting, match="last bits"):
        task.require_batch_independence(net(BesideTokens()).build((8,)), "materialized", "float32")


def test_a_net_of_layers_takes_ids_as_they_are():
    X, y = documents(60)
    padded = token_rows(X, 8, 40)
    given = dict(network=net(), classes=(0, 1), max_iter=1, random_state=0)
    model = DPNetworkClassifier(**given).fit(padded, y)
    assert not any(row["purpose"] == "inputs" for row in model.privacy_.mechanisms)
    assert np.array_equal(model.inputs_.of(padded), padded)
    with pytest.raises(ValueError, match="input_range must be None for a net with an Embedding"):
        DPNetworkClassifier(**given, input_range=(0, 40)).fit(padded, y)
