"""Steps before a fit: safe ones are safe, by replaced records; all others are named before anything is spent."""

import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import special
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor, make_column_selector
from sklearn.decomposition import PCA
from sklearn.feature_extraction import FeatureHasher
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfTransformer, TfidfVectorizer
from sklearn.feature_selection import SelectFromModel, SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import KNNImputer, SimpleImputer
from sklearn.kernel_approximation import (
    AdditiveChi2Sampler,
    Nystroem,
    PolynomialCountSketch,
    RBFSampler,
    SkewedChi2Sampler,
)
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    Binarizer,
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    OrdinalEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection, SparseRandomProjection

from skdp import (
    BudgetAccountant,
    DPIGHTClassifier,
    DPIGHTRegressor,
    DPStandardScaler,
    PublicBinsEncoder,
    PublicScaler,
)
from skdp.around.steps import CELL_BY_CELL, SAFE_STEPS
from tests.around.leaks import leaks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int)
COUNTS = np.abs(X) + 0.1
CODES = (X > 0).astype(int)
MISSING = X.copy()
MISSING[:, 1] = np.nan
MISSING[3, 1] = 2.0  # the one cell of its column: another record has nothing there
TEXT = np.array(["rain and sun", "sun"] * 30, dtype=object)
SETTINGS = {"epsilon": 5.0, "delta": 1e-6, "clip_norm": 1.0, "learning_rate": 0.5, "max_iter": 2}


def classifier(**params):
    return DPIGHTClassifier(**{**SETTINGS, "classes": (0, 1), **params})


def row_alone(rows):
    return np.tanh(rows)


row_alone.learns_from_data = False


def centred(rows):
    return rows - rows.mean(axis=0)


class Declared(TransformerMixin, BaseEstimator):
    """Learns nothing, and says so."""

    learns_from_data = False

    def fit(self, X, y=None):
        self.n_features_in_ = X.shape[1]
        return self

    def transform(self, X):
        return X


class Undeclared(Declared):
    learns_from_data = True


class Stateless(TransformerMixin, BaseEstimator):
    """scikit-learn asks for no fit, but `transform` looks at all rows."""

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        return tags

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X - X.mean(axis=0)


class Unknown:
    """Not of scikit-learn's base classes."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


# By class: a safe use, a table, and a row that replaces the fourth one.
WORDS = ["rain", "sun"]
SAFE = {
    "Normalizer": (Normalizer(), X, 1e300),
    "Binarizer": (Binarizer(), X, -5.0),
    "HashingVectorizer": (HashingVectorizer(n_features=8), TEXT, "never seen"),
    "FeatureHasher": (FeatureHasher(8, input_type="string"), [t.split() for t in TEXT], ["new"]),
    "AdditiveChi2Sampler": (AdditiveChi2Sampler(), COUNTS, 1e6),
    "PolynomialFeatures": (PolynomialFeatures(2), X, 1e6),
    "PolynomialCountSketch": (PolynomialCountSketch(n_components=6, random_state=0), X, 1e6),
    "SkewedChi2Sampler": (SkewedChi2Sampler(n_components=6, random_state=0), COUNTS, 1e6),
    "RBFSampler": (RBFSampler(gamma=1, n_components=6, random_state=0), X, 1e6),
    "GaussianRandomProjection": (GaussianRandomProjection(3, random_state=0), X, 1e6),
    "SparseRandomProjection": (SparseRandomProjection(3, random_state=0), X, 1e6),
    "FrozenEstimator": (FrozenEstimator(StandardScaler().fit(RNG.normal(size=(9, 4)))), X, 1e6),
    "OneHotEncoder": (OneHotEncoder(categories=[[0, 1]] * 4, handle_unknown="ignore"), CODES, 7),
    "OrdinalEncoder": (
        OrdinalEncoder(categories=[[0, 1]] * 4, handle_unknown="use_encoded_value", unknown_value=-1),
        CODES,
        7,
    ),
    "CountVectorizer": (CountVectorizer(vocabulary=WORDS), TEXT, "never seen"),
    "TfidfVectorizer": (TfidfVectorizer(vocabulary=WORDS, use_idf=False), TEXT, "never seen"),
    "TfidfTransformer": (TfidfTransformer(use_idf=False), sp.csr_matrix(CODES), 9),
    "SimpleImputer": (
        SimpleImputer(strategy="constant", fill_value=0.0, keep_empty_features=True),
        MISSING,
        np.nan,
    ),
    "FunctionTransformer": (FunctionTransformer(row_alone), X, 1e6),
    "SelectFromModel": (SelectFromModel(classifier(), max_features=2), None, None),
}


def replaced(table, value):
    """The table with another fourth record."""
    if isinstance(table, list):
        return [value if i == 3 else row for i, row in enumerate(table)]
    changed = sp.lil_matrix(table) if sp.issparse(table) else table.copy()
    changed[3] = value
    return changed.tocsr() if sp.issparse(table) else changed


def table_and_warnings(step, data):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        made = clone(step).fit(data, None).transform(data)
    return made, [str(w.message) for w in found]


def moves_others(step, data, value):
    """Whether another fourth record shows in the other rows, the shape, the type, the container or a warning."""
    (one, said), (two, said_two) = (table_and_warnings(step, rows) for rows in (data, replaced(data, value)))
    if (type(one), one.shape, one.dtype, said) != (type(two), two.shape, two.dtype, said_two):
        return True
    rest = np.arange(one.shape[0]) != 3
    a, b = (made.toarray() if sp.issparse(made) else made for made in (one, two))
    return not np.array_equal(a[rest], b[rest], equal_nan=True)


def test_each_safe_step_has_an_example():
    assert set(SAFE) == {name for _, name in SAFE_STEPS.table}


@pytest.mark.parametrize("name", [name for name in SAFE if name != "SelectFromModel"])
def test_a_replaced_record_moves_only_its_own_row(name):
    assert not moves_others(*SAFE[name])


@pytest.mark.parametrize("name", [name for name in SAFE if SAFE[name][1] is not None])
def test_a_safe_step_is_not_named(name):
    step, data, _ = SAFE[name]
    pipe = Pipeline([("public", step), ("model", classifier())])
    assert leaks(lambda: pipe.fit(data, Y)) == []
    said = pipe["model"].privacy_.assumptions
    assert any(line.startswith("earlier pipeline steps did not learn") for line in said)


def test_columns_chosen_by_released_coefficients():
    """The selector's own fit and the model's are two private fits."""
    with BudgetAccountant(10.0, 1e-4) as accountant:
        pipe = make_pipeline(SAFE["SelectFromModel"][0], classifier())
        assert leaks(lambda: pipe.fit(X, Y)) == []
    assert len(accountant.ledger()) == 2


# By what is said: a use that is not safe, a table, and the row that shows it (None: it shows otherwise).
OTHERS = {
    "SimpleImputer before this fit drops columns": (
        SimpleImputer(strategy="constant", fill_value=0.0), MISSING, np.nan,
    ),
    "SimpleImputer before this fit has a column for each": (
        SimpleImputer(strategy="constant", add_indicator=True, keep_empty_features=True),
        np.where(np.isnan(MISSING), 0.0, MISSING), np.nan,
    ),
    "RBFSampler before this fit takes its scale": (
        RBFSampler(gamma="scale", n_components=6, random_state=0), X, 1e6,
    ),
    "GaussianRandomProjection before this fit shows": (
        GaussianRandomProjection(eps=0.99), RNG.normal(size=(60, 500)), None,
    ),
    "SparseRandomProjection before this fit shows": (
        SparseRandomProjection(eps=0.99), RNG.normal(size=(60, 500)), None,
    ),
    "FunctionTransformer before this fit may learn": (FunctionTransformer(centred), X, 1e6),
    "FunctionTransformer before this fit warns": (
        FunctionTransformer(row_alone, row_alone, check_inverse=True), X, None,
    ),
    "OneHotEncoder before this fit warns": (
        OneHotEncoder(categories=[[0, 1]] * 4, drop="first", handle_unknown="ignore"), CODES, 7,
    ),
    "ColumnTransformer before this fit is dense or sparse": (
        ColumnTransformer([("a", OneHotEncoder(categories=[[0, 1]] * 4, drop="if_binary"), [0, 1, 2, 3])]),
        np.where(np.arange(60)[:, None] < 18, 1, 0) * np.ones((60, 4), dtype=int), 0,
    ),
    "ColumnTransformer before this fit chooses columns": (
        ColumnTransformer([("a", Normalizer(), lambda rows: np.flatnonzero(rows[:, 1:].mean(axis=0) < 0.5))]),
        X, np.array([0.0, 1e6, 0.0, 0.0]),
    ),
    "SelectFromModel before this fit chooses columns": (
        SelectFromModel(LogisticRegression()), X, None,
    ),
}  # fmt: skip


@pytest.mark.parametrize("start", OTHERS)
def test_what_shows_a_record_otherwise_is_named_with_its_repair(start):
    step, data, value = OTHERS[start]
    pipe = Pipeline([("step", step), ("model", classifier())])
    (text,) = leaks(lambda: pipe.fit(data, Y))
    assert text.startswith(start)
    assert text.removesuffix("; the report says so") in pipe["model"].privacy_.leaks
    if value is not None:
        assert moves_others(step, data, value)


LEARN = {
    "StandardScaler": (StandardScaler(), X),
    "StandardScaler that counts missing values": (StandardScaler(with_mean=False, with_std=False), X),
    "MinMaxScaler": (MinMaxScaler(), X),
    "PCA": (PCA(2), X),
    "SimpleImputer": (SimpleImputer(), np.where(np.isnan(MISSING), 0.0, MISSING)),
    "KNNImputer": (KNNImputer(), X),
    "TfidfVectorizer": (TfidfVectorizer(), TEXT),
    "TfidfVectorizer, given words": (TfidfVectorizer(vocabulary=WORDS), TEXT),
    "CountVectorizer": (CountVectorizer(), TEXT),
    "OneHotEncoder": (OneHotEncoder(), CODES),
    "OneHotEncoder that counts": (OneHotEncoder(categories=[[0, 1]] * 4, min_frequency=2), CODES),
    "KBinsDiscretizer": (KBinsDiscretizer(3, strategy="uniform"), X),
    "SelectKBest": (SelectKBest(k=2), X),
    "Nystroem": (Nystroem(n_components=5), X),
    "Undeclared": (Undeclared(), X),
    "Stateless": (Stateless(), X),
    "Unknown": (Unknown(), X),
    "PCA in a union": (FeatureUnion([("a", PCA(2)), ("b", Normalizer())]), X),
    "PCA in columns": (ColumnTransformer([("a", PCA(1), [0, 1]), ("b", "drop", [2, 3])]), X),
    "PCA in a remainder": (ColumnTransformer([("a", "drop", [0, 1])], remainder=PCA(1)), X),
    "PCA in a pipeline": (make_pipeline(Normalizer(), PCA(2)), X),
}


@pytest.mark.parametrize("name", LEARN)
def test_an_earlier_step_that_learns_is_named(name):
    step, data = LEARN[name]
    pipe = Pipeline([("learn", step), ("model", classifier())])
    (text,) = leaks(lambda: pipe.fit(data, Y))
    word = name.split()[0].rstrip(",")
    if type(step).__module__.startswith("sklearn"):
        assert text.startswith(f"{word} learnt from these records before this fit: no epsilon covers that")
        assert (
            "skdp.preprocessing" if not word.endswith("Encoder") else "PublicBinsEncoder(categories=...)"
        ) in text
    else:
        assert text.startswith(f"{word} before this fit may have learnt from these records")
        assert "learns_from_data = False" in text
    report = pipe["model"].privacy_
    assert text.removesuffix("; the report says so") in report.leaks
    assert not any("did not learn" in other for other in report.assumptions)  # one of the two, not both


CELLS = {
    f"{module.__name__}.{name}": (FunctionTransformer(getattr(module, name)), COUNTS)
    for module in (np, special) for name in CELL_BY_CELL if hasattr(module, name)
}  # fmt: skip
PUBLIC = {
    **CELLS,
    "nothing": ("passthrough", X),
    "identity": (FunctionTransformer(), X),
    "PublicBinsEncoder": (PublicBinsEncoder(bins=(-1.0, 0.0, 1.0)), X),
    "Declared": (Declared(), X),
    "columns": (
        ColumnTransformer([("a", Normalizer(), [0, 1]), ("b", "passthrough", [2]), ("c", "drop", [3])]), X,
    ),
    "sparse columns": (
        ColumnTransformer([("a", OneHotEncoder(categories=[[0, 1]] * 4), [0, 1, 2, 3])], sparse_threshold=0),
        CODES,
    ),
    "dense columns": (
        ColumnTransformer(
            [("a", OneHotEncoder(categories=[[0, 1]] * 4, sparse_output=False), [0, 1, 2, 3])]
        ),
        CODES,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", PUBLIC)
def test_other_steps_that_learn_nothing(name):
    step, data = PUBLIC[name]
    pipe = Pipeline([("public", step), ("model", classifier())])
    assert leaks(lambda: pipe.fit(data, Y)) == []


@pytest.mark.parametrize("name", CELLS)
def test_functions_of_a_cell_leave_other_cells_alone(name):
    assert not moves_others(*CELLS[name], 3.0)
    step = clone(CELLS[name][0]).set_params(kw_args={"where": np.ones((60, 4), dtype=bool)})
    (text,) = leaks(lambda: make_pipeline(step, classifier()).fit(COUNTS, Y))
    assert text.startswith("FunctionTransformer before this fit may learn")


def test_sparse_rows_make_a_sparse_part():
    columns = ColumnTransformer([("a", "passthrough", [0, 1, 2, 3])])
    (text,) = leaks(lambda: make_pipeline(columns, classifier()).fit(sp.csr_matrix(X), Y))
    assert "sparse_threshold=0" in text


def test_columns_by_type_are_chosen_by_the_records():
    """One string in a column of numbers makes it a column of objects."""
    frame = pd.DataFrame(X)
    columns = ColumnTransformer([("a", "passthrough", make_column_selector(dtype_include=float))])
    (text,) = leaks(lambda: make_pipeline(columns, classifier()).fit(frame, Y))
    assert "name the columns" in text


def test_several_steps_are_named_in_one_warning():
    pipe = make_pipeline(SimpleImputer(), StandardScaler(), Normalizer(), classifier())
    (text,) = leaks(lambda: pipe.fit(X, Y))
    assert text.startswith("SimpleImputer, StandardScaler learnt")


def test_an_attribute_of_a_step_is_lost_at_a_clone_and_a_function_keeps_it():
    step = FunctionTransformer(centred)
    step.learns_from_data = False
    assert clone(FunctionTransformer(row_alone)).func.learns_from_data is False
    assert not hasattr(clone(step), "learns_from_data")


def test_steps_behind_a_private_scaler_are_not_in_its_report():
    pipe = make_pipeline(DPStandardScaler(epsilon=5.0, delta=1e-6), StandardScaler(), classifier())
    leaks(lambda: pipe.fit(X, Y))
    learnt = ["learnt from these records" in " ".join(pipe[i].privacy_.leaks) for i in (0, 2)]
    assert learnt == [False, True]


def test_a_private_scaler_is_named_with_a_reference_to_its_report():
    pipe = make_pipeline(DPStandardScaler(epsilon=5.0, delta=1e-6), classifier())
    assert leaks(lambda: pipe.fit(X, Y)) == []
    assert any("but for DPStandardScaler" in line for line in pipe[-1].privacy_.assumptions)
    exact = make_pipeline(DPStandardScaler(epsilon=np.inf), classifier())
    (text,) = leaks(lambda: exact.fit(X, Y))
    assert text.startswith("DPStandardScaler learnt")


@pytest.mark.parametrize(
    ("how", "starts"),
    [
        ({"func": row_alone, "inverse_func": np.arctanh, "check_inverse": False}, []),
        ({"func": row_alone, "inverse_func": np.arctanh}, ["TransformedTargetRegressor warns"]),
        ({"func": np.arcsinh, "inverse_func": np.sinh, "check_inverse": False},
         ["TransformedTargetRegressor may learn"]),
        ({"func": np.square, "inverse_func": np.sqrt, "check_inverse": False}, []),
        ({"func": special.expm1, "inverse_func": special.log1p, "check_inverse": False}, []),
        ({"transformer": StandardScaler(), "check_inverse": False}, ["StandardScaler learnt"]),
    ],
)  # fmt: skip
def test_a_target_that_is_transformed(how, starts):
    model = TransformedTargetRegressor(DPIGHTRegressor(**SETTINGS), **how)
    texts = leaks(lambda: model.fit(X, 0.5 * np.tanh(X[:, 1])))
    assert [text.startswith(start) for text, start in zip(texts, starts, strict=True)] == [True] * len(starts)


class Centred(PublicScaler):
    """Says what its parent says, and learns."""

    def fit(self, X, y=None):
        self.center = X.mean(axis=0)
        return super().fit(X)


class Proxy(TransformerMixin, BaseEstimator):
    """Hands every question on to a scaler of skdp, and learns."""

    def __init__(self, scaler=None):
        self.scaler = scaler

    def __getattr__(self, name):
        return getattr(vars(self)["scaler"], name)

    def fit(self, X, y=None):
        self.mean_ = X.mean(axis=0)
        return self

    def transform(self, X):
        return X - self.mean_


@pytest.mark.parametrize("step", [Centred(), Proxy(PublicScaler())], ids=["subclass", "proxy"])
def test_what_a_class_of_skdp_says_holds_for_no_other_class(step):
    (text,) = leaks(lambda: make_pipeline(step, classifier()).fit(X, Y))
    assert text.startswith(f"{type(step).__name__} before this fit may have learnt")


def test_frozen_steps_may_hide_others():
    mixes = FrozenEstimator(FunctionTransformer(centred).fit(X))
    (text,) = leaks(lambda: make_pipeline(mixes, classifier()).fit(X, Y))
    assert text.startswith("FrozenEstimator before this fit may learn from the records in its func")
    own = FrozenEstimator(Undeclared().fit(X))
    (text,) = leaks(lambda: make_pipeline(own, classifier()).fit(X, Y))
    assert text.startswith("FrozenEstimator before this fit holds a Undeclared")
    codes = FrozenEstimator(OneHotEncoder(categories=[[0, 1]] * 4).fit(CODES))
    columns = ColumnTransformer([("a", codes, [0, 1, 2, 3])])
    (text,) = leaks(lambda: make_pipeline(columns, classifier()).fit(CODES, Y))
    assert "sparse_threshold=0" in text


@pytest.mark.parametrize(
    "step",
    [
        HashingVectorizer(n_features=8, analyzer=lambda text: text.split()),
        CountVectorizer(vocabulary=WORDS, tokenizer=lambda text: text.split(), token_pattern=None),
    ],
    ids=["analyzer", "tokenizer"],
)
def test_functions_of_texts_declare_themselves(step):
    (text,) = leaks(lambda: make_pipeline(step, classifier()).fit(TEXT, Y))
    assert "may learn from the records in its" in text


def test_a_private_selector_is_in_the_report():
    selector = SelectFromModel(classifier(), max_features=2)
    pipe = make_pipeline(selector, classifier()).fit(X, Y)
    assert any("but for SelectFromModel" in line for line in pipe[-1].privacy_.assumptions)


def test_the_guide_lists_the_steps_of_the_code():
    """docs/guide/safe_steps.inc is written by tools/make_safe_steps.py."""
    from pathlib import Path

    page = Path(__file__).parents[2] / "docs" / "guide" / "safe_steps.inc"
    lines = [f"* {how}" for _, how in SAFE_STEPS.table.values()]
    found = page.read_text().splitlines()
    assert [line for line in found if line.startswith("*")] == lines, "run: python tools/make_safe_steps.py"
