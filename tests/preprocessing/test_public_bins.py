"""PublicBinsEncoder: the bins, the names, the contract, and that nothing is learnt."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix, issparse
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp.preprocessing import PublicBinsEncoder

FINITE = st.floats(allow_nan=False, allow_infinity=False, width=64)


# tests/test_contract.py has those of the defaults.
@parametrize_with_checks([PublicBinsEncoder(sparse_output=False), PublicBinsEncoder(bins=[-1.0, 0.0, 1.0])])
def test_sklearn_contract(estimator, check):
    check(estimator)


def import_frames(library):
    """The module, where this scikit-learn reads column names from its frames."""
    frames = pytest.importorskip(library)
    probe = StandardScaler().fit(frames.DataFrame({"a": [1.0, 2.0]}))
    if not hasattr(probe, "feature_names_in_"):
        pytest.skip(f"this scikit-learn does not know the frames of this {library}")
    return frames


def reference(values, edges):
    """One-hot row by row, straight from the definition."""
    out = np.zeros((len(values), len(edges) + 2))
    for row, value in enumerate(values):
        if np.isnan(value):
            out[row, -1] = 1
        else:
            out[row, sum(value >= edge for edge in edges)] = 1
    return out


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.lists(FINITE, min_size=1, max_size=8, unique=True).map(sorted),
    st.lists(st.floats(width=64), min_size=1, max_size=20),
)
def test_bins_equal_the_definition(edges, values):
    # The edges themselves are the values where a wrong side would show.
    values = np.array([*values, *edges, np.nan, np.inf, -np.inf])
    X = values[:, np.newaxis]
    out = PublicBinsEncoder(bins=edges).fit_transform(X)
    np.testing.assert_array_equal(out.toarray(), reference(values, edges))


@settings(deadline=None, derandomize=True, max_examples=50)
@given(
    st.lists(st.integers(-5, 5), min_size=1, max_size=6, unique=True),
    st.lists(st.one_of(st.integers(-7, 7), st.just(np.nan)), min_size=1, max_size=20),
)
def test_numeric_categories_equal_the_lookup(categories, values):
    encoder = PublicBinsEncoder(categories={0: categories})
    numbers = np.array(values, dtype=float)[:, np.newaxis]
    objects = np.array(values, dtype=object)[:, np.newaxis]
    expected = np.zeros((len(values), len(categories) + 2))
    for row, value in enumerate(values):
        known = value in categories
        place = categories.index(value) if known else len(categories) + (value != value)
        expected[row, place] = 1
    np.testing.assert_array_equal(encoder.fit_transform(numbers).toarray(), expected)
    np.testing.assert_array_equal(encoder.fit_transform(objects).toarray(), expected)


def test_crosses_are_products_of_bins():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    X[rng.uniform(size=X.shape) < 0.1] = np.nan
    encoder = PublicBinsEncoder(bins={0: [0], 1: [-1, 1], 2: [0]}, crosses=[(0, 1), (2, 1, 0)])
    out = encoder.fit_transform(X).toarray()
    a, b, c = out[:, :3], out[:, 3:7], out[:, 7:10]
    np.testing.assert_array_equal(out[:, 10:22], np.einsum("ni,nj->nij", a, b).reshape(200, -1))
    np.testing.assert_array_equal(out[:, 22:], np.einsum("ni,nj,nk->nijk", c, b, a).reshape(200, -1))
    assert out.shape[1] == encoder.n_features_out_ == 3 + 4 + 3 + 12 + 36
    assert encoder.row_norm_ == np.sqrt(5)
    np.testing.assert_allclose(np.linalg.norm(out, axis=1), encoder.row_norm_)


def test_output_is_canonical_csr():
    X = np.random.default_rng(0).normal(size=(50, 4))
    out = PublicBinsEncoder(crosses=[(0, 3)]).fit_transform(X)
    assert isinstance(out, csr_matrix)
    assert out.dtype == np.float64
    assert out.indices.dtype == out.indptr.dtype == np.int32
    assert out.has_canonical_format
    assert out.nnz == 50 * 5


def test_nothing_is_learnt():
    """Encoders fitted on different records of one shape are the same, and act row by row."""
    rng = np.random.default_rng(0)
    train, other = rng.normal(size=(30, 3)), rng.normal(size=(30, 3)) * 1e6
    X = rng.normal(size=(10, 3))
    encoder = PublicBinsEncoder(crosses=[(0, 1)])
    first, second = clone(encoder).fit(train), clone(encoder).fit(other)
    assert pickle.dumps(first) == pickle.dumps(second)
    whole = first.transform(X).toarray()
    rows = np.vstack([first.transform(X[i : i + 1]).toarray() for i in range(10)])
    np.testing.assert_array_equal(whole, rows)


def test_names():
    encoder = PublicBinsEncoder(bins={0: [0.5, 65, 1e6, 1234567.5]}, categories={1: ["a", "b"]}, crosses=[(1, 0)])
    X = np.array([[1.0, "a"]], dtype=object)
    names = encoder.fit(X).get_feature_names_out(["age", "kind"])
    assert names[:6].tolist() == [
        "age < 0.5",
        "age in [0.5, 65)",
        "age in [65, 1e+06)",
        "age in [1e+06, 1234567.5)",
        "age >= 1234567.5",
        "age missing",
    ]
    assert names[6:10].tolist() == ["kind = a", "kind = b", "kind other", "kind missing"]
    assert names[10] == "kind = a & age < 0.5"
    assert len(names) == len(set(names)) == encoder.n_features_out_
    place = encoder.transform(X).indices
    assert names[place].tolist() == ["age in [0.5, 65)", "kind = a", "kind = a & age in [0.5, 65)"]
    with pytest.raises(ValueError, match="length equal to number of features"):
        encoder.get_feature_names_out(["age"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_dataframes(library):
    frames = import_frames(library)
    columns = {"age": [17.0, 42.0, None], "city": ["Rome", None, "Oslo"], "unused": [1, 2, 3]}
    frame = frames.DataFrame(columns)
    encoder = PublicBinsEncoder(bins={"age": [18]}, categories={"city": ["Rome"]}, crosses=[("age", "city")]).fit(
        frame
    )
    out = encoder.transform(frame).toarray()
    np.testing.assert_array_equal(out[:, :3], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    np.testing.assert_array_equal(out[:, 3:6], [[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    assert encoder.feature_names_in_.tolist() == ["age", "city", "unused"]
    with pytest.raises(ValueError, match="feature names should match"):
        encoder.transform(frames.DataFrame({**columns, "other": [1, 2, 3]}))
    with pytest.raises(ValueError, match="input_features is not equal to feature_names_in_"):
        encoder.get_feature_names_out(["a", "b", "c"])


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_set_output(library):
    frames = import_frames(library)
    frame = frames.DataFrame({"age": [17.0, 42.0]})
    sparse = PublicBinsEncoder(bins={"age": [18]}).set_output(transform=library)
    with pytest.raises(ValueError, match="sparse"):
        sparse.fit_transform(frame)
    dense = PublicBinsEncoder(bins={"age": [18]}, sparse_output=False)
    out = dense.set_output(transform=library).fit_transform(frame)
    assert list(out.columns) == ["age < 18", "age >= 18", "age missing"]
    np.testing.assert_array_equal(np.asarray(out), [[1, 0, 0], [0, 1, 0]])


def test_pandas_nullable_types():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(
        {
            "n": pandas.array([1, None, 3], dtype="Int64"),
            "flag": pandas.array([True, None, False], dtype="boolean"),
            "kind": pandas.Categorical(["x", None, "y"]),
        }
    )
    encoder = PublicBinsEncoder(bins={"n": [2], "flag": [0.5]}, categories={"kind": ["x", "y"]})
    out = encoder.fit_transform(frame).toarray()
    np.testing.assert_array_equal(out[:, :3], [[1, 0, 0], [0, 0, 1], [0, 1, 0]])
    np.testing.assert_array_equal(out[:, 3:6], [[0, 1, 0], [0, 0, 1], [1, 0, 0]])
    np.testing.assert_array_equal(out[:, 6:], [[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0]])


def test_pipeline_and_column_transformer():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 2))
    y = (np.abs(X[:, 0]) > 0.5).astype(int)  # not linear in X, but in the bins
    encoder = PublicBinsEncoder(bins=[-0.5, 0.5])
    assert make_pipeline(encoder, LogisticRegression()).fit(X, y).score(X, y) == 1.0
    both = make_column_transformer((encoder, [0]), ("passthrough", [1]))
    assert both.fit_transform(X).shape == (100, 5)


def test_read_only_input_is_not_changed():
    X = np.array([[1.0, np.nan], [np.inf, 2.0]])
    X.setflags(write=False)
    before = X.copy()
    assert issparse(PublicBinsEncoder().fit_transform(X))
    np.testing.assert_array_equal(X, before)


def test_refused_fit_changes_nothing():
    X = np.zeros((3, 2))
    encoder = PublicBinsEncoder(bins={0: [1]}).fit(X)
    state = pickle.dumps({k: v for k, v in vars(encoder).items() if k != "bins"})
    encoder.set_params(bins={7: [1]})
    with pytest.raises(ValueError, match="has 5 features"):
        encoder.fit(np.zeros((3, 5)))
    assert pickle.dumps({k: v for k, v in vars(encoder).items() if k != "bins"}) == state


def test_refit_replaces_everything():
    pandas = pytest.importorskip("pandas")
    encoder = PublicBinsEncoder(bins=[0.0]).fit(pandas.DataFrame({"a": [1.0], "b": [2.0]}))
    encoder.fit(np.zeros((1, 1)))
    assert not hasattr(encoder, "feature_names_in_")
    assert encoder.n_features_out_ == 3


def test_not_fitted():
    with pytest.raises(NotFittedError):
        PublicBinsEncoder().transform([[1.0]])


NUMBERS = np.zeros((2, 2))


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"bins": [1, 1]}, ValueError, "strictly increasing"),
        ({"bins": [0, np.inf]}, ValueError, "finite"),
        ({"bins": [np.nan]}, ValueError, "finite"),
        ({"bins": []}, ValueError, "at least one edge"),
        ({"bins": {}}, ValueError, "nothing to encode"),
        ({"bins": 3}, TypeError, "sequence of numbers"),
        ({"bins": "auto"}, TypeError, "sequence of numbers"),
        ({"bins": {0: ["a"]}}, TypeError, "must be numbers"),
        ({"bins": {2: [1]}}, ValueError, "X has 2 features"),
        ({"bins": {-1: [1]}}, ValueError, "X has 2 features"),
        ({"bins": {"age": [1]}}, ValueError, "X has no column names"),
        ({"bins": {1.0: [1]}}, TypeError, "by str or int"),
        ({"bins": {0: [1]}, "categories": {0: [1]}}, ValueError, "given twice"),
        ({"categories": [1, 2]}, TypeError, "must be a dict"),
        ({"categories": {0: "ab"}}, TypeError, "must be a sequence"),
        ({"categories": {0: ["a", 1]}}, TypeError, "all strings or all numbers"),
        ({"categories": {0: []}}, ValueError, "non-empty"),
        ({"categories": {0: [1, 1]}}, ValueError, "without repetition"),
        ({"categories": {0: [np.nan]}}, ValueError, "missing values have a bin"),
        ({"categories": {0: ["a"]}}, TypeError, "holds numbers"),
        ({"crosses": "ab"}, TypeError, "sequence of tuples"),
        ({"crosses": [(0,)]}, ValueError, "at least two"),
        ({"crosses": [(0, 0)]}, ValueError, "different columns"),
        ({"bins": {0: [1]}, "crosses": [(0, 1)]}, ValueError, "`bins` or `categories` encode"),
        ({"sparse_output": "yes"}, TypeError, "True or False"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        PublicBinsEncoder(**parameters).fit_transform(NUMBERS)


def test_unknown_name_in_frame():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"age": [1.0]})
    with pytest.raises(ValueError, match="'income', which X does not have"):
        PublicBinsEncoder(bins={"income": [1]}).fit(frame)


def test_text_is_refused_without_quoting_a_record():
    X = np.array([[1.0, "secret"]], dtype=object)
    with pytest.raises(ValueError, match="Column 1 holds text") as caught:
        PublicBinsEncoder().fit(X)
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__
    with pytest.raises(TypeError, match="holds text, but its public categories are numbers"):
        PublicBinsEncoder(categories={0: [1]}).fit(np.array([["a"]]))
