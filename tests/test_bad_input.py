"""Bad input: every message says what was wrong, what was expected and what to do; nothing is spent."""

import math
import re
import warnings
from dataclasses import replace
from numbers import Integral

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_regressor

from skdp import (
    BudgetAccountant,
    DPAdaSSPRegressor,
    DPIGHTClassifier,
    DPIGHTRegressor,
    DPSparseERMRegressor,
    DPTwoStageRegressor,
    IGHTRegressor,
    all_estimators,
)
from skdp.base.declare import WordOrObject, declares, parameters_of
from skdp.base.kinds import Choice, Flag, Number, Required
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.model_selection import DPRandomizedSearch, DPTunedThresholdClassifier
from tests.kinds import of_each_kind

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 4))
Y = (X[:, 0] > 0).astype(int)


# By the words of a kind that has no range: values that a fit refuses before it reads anything. None: what is wrong
# with a value shows at the data only, or not at all.
DESCRIBED = {
    "BudgetAccountant or False": (3, "x", True),
    "None, int, RandomState or Generator": ("x", 0.5),
    "bool": None,
    "callable": (3, "print"),
    "array-like": None,
    "array-like or CSR matrix of shape (m, n_features)": ([1.0], [[math.nan]]),
    "sequence of labels": (2, "yes", (1,), (1, 1), (0, "a")),
    "sequence of two labels": (2, "yes", (1,), (1, 1), (0, "a")),
    "dict": (3, "x", [1]),
    "dict of {label: weight}": ("balanced", 3, {0: 0.0}, {0: "x"}),
    '{"record"}': ("person", None),
    '{"basis", "uniform", "gaussian"} or frozen distribution': ("x", 3, None),
    '{"plain", "mpyc"} or engine': ("x", None),
    "tuple of (low, high)": ("x", 3, (1, 0), (0, math.nan), (0,)),
    "tuple of (low, high) or dict": ("x", 3, (1, 0), (0,)),
    "tuple of (float, float)": ("x", 3, (1, 0), (0, math.nan), (0,), ("0", "1")),
    'tuple of (float, float) or "auto"': ("x", 3, (1, 0), (0, math.nan), (0,), ("0", "1")),
    "float or array-like of shape (n_features,)": ("x", True, math.nan, [0.0, math.inf]),
    "sequence of float or dict": None,
    "sequence of tuple": (3, "ab", None),
    "int or tuple of int": (0, (2, 0), (2.5,), "ab", None),
    "tuple of (X, y)": (3, (1, 2, 3), "ab"),
    "str, path or array-like of shape (n_parameters,)": None,
    "Sequential": (3, "x", []),
    "tuple of int": (8, (8,), (0, 5), "ab"),
    '{"squared", "huber", "logistic", "multinomial"} or object of `skdp.losses`': ("x", 3, None),
    '{"squared", "huber"}': ("x", 3, None, LogisticLoss()),
    '{"squared", "huber"} or object of `skdp.losses.Loss`': ("x", 3, None, LogisticLoss(), MultinomialLoss(2)),
    '{"logistic"} or object of `skdp.losses.Loss`': ("x", 3, None, SquaredLoss(), MultinomialLoss(2)),
    "private estimator, or list of them": (3, None, []),
    "private classifier, or a Pipeline that ends in one": (3, None),
    "dict, list of dict, or None": (3, "x"),
    "str": ("x", 3),
    '"auto", int or array-like of float': ("x", 3, [1, 0]),
    'dict with keys "fp" and "fn"': ({"fp": 1}, {"fp": -1, "fn": 1}, {"fp": 1, "fn": math.inf}),
    "float": ("x", True, math.nan, -1.0),
    "{0, 1}": (2, 0.5, None, "x"),
}


def bad_values(declared):
    """Values that are not of the kind of a declared parameter."""
    kind = declared.kind
    match kind:
        case Choice():
            found = ["no such word", 3]
        case Flag():
            found = ["yes", 1]
        case Number():
            whole = kind.type is Integral
            found = ["no such word", [1], True, math.nan, *([2.5, math.inf] if whole else [])]
            if kind.low is not None:
                found += [kind.low - 1, *([kind.low] if kind.strict else [])]
            if kind.high is not None:
                found.append(int(kind.high) + 1 if whole else 2.0 * kind.high + 1.0)
            found += [kind.below] * (kind.below is not None) + [math.inf] * kind.finite
        case Required():
            found = bad_values(replace(declared, kind=kind.kind))
        case WordOrObject():
            found = ["no such word", 3]
            for part in kind.types:
                for name, inner in parameters_of(part).items():
                    found += [part(**{name: value}) for value in bad_values(inner)]
        case _:
            return DESCRIBED[kind.words] or ()
    return found if getattr(kind, "none", False) else [*found, None]


def required(cls):
    """What the constructor of a class needs."""
    needed = {
        "estimator": DPIGHTClassifier(classes=(0, 1)),
        "param_distributions": {"alpha": [0.0]},
        "vocabulary_size": 9,
        "max_length": 4,
    }
    return {name: value for name, value in needed.items() if declares(cls, name)}


SEARCHES = (DPRandomizedSearch, DPTunedThresholdClassifier)
DECLARED = {cls.__name__: cls for cls in (*dict(all_estimators()).values(), *SEARCHES) if parameters_of(cls)}


@pytest.mark.parametrize("name", of_each_kind(DECLARED, pytest.mark.thorough))
def test_values_that_are_not_of_the_declared_kind_are_refused(name):
    """Each declared parameter: the message names it, nothing is spent, and the estimator stays as it was."""
    cls, accountant = DECLARED[name], BudgetAccountant(10.0, 1e-3)
    paid = {"accountant": accountant} if declares(cls, "accountant") else {}
    for parameter, declared in parameters_of(cls).items():
        for value in bad_values(declared):
            model = cls(**{**required(cls), **paid, parameter: value})
            before = dict(vars(model))
            with pytest.raises((TypeError, ValueError), match=parameter), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.fit(X, Y)
            assert vars(model) == before
            assert accountant.spent() == (0.0, 0.0)


def refused(cls=DPIGHTClassifier, X=X, y=Y, fit=None, **params):
    """Fit under an accountant, return the message; nothing may be charged."""
    accountant = BudgetAccountant(10.0, 1e-3)
    if cls is DPIGHTClassifier:
        params.setdefault("classes", (0, 1))
    model = cls(**{"accountant": accountant, **params})
    with pytest.raises((ValueError, TypeError)) as caught, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, y, **(fit or {}))
    assert accountant.spent() == (0.0, 0.0)
    assert not [name for name in vars(model) if name.endswith("_")]
    return str(caught.value)


@pytest.mark.parametrize(
    ("params", "words"),
    [
        ({"epsilon": 0.0}, "epsilon must be > 0 (inf means no privacy)"),
        ({"delta": 1.0}, "delta must be in [0, 1)"),
        ({"delta": 0.0}, "delta=0 needs pure mechanisms"),
        ({"clip_norm": "adaptive"}, "clip_norm must be a number or 'auto'"),
        ({"clip_norm": 1e-200}, "between 1e-100 and 1e100"),
        ({"n_nonzero_coefs": 5}, "n_nonzero_coefs=5 is more than the 4 features"),
        ({"adjacency": "add-remove"}, "n_public"),
    ],
)
def test_what_parameters_mean_together_and_for_the_data(params, words):
    assert words in refused(**params)


@pytest.mark.parametrize("bounds", ["adaptive", (0,), ("0", "1"), (1, 0), (0, math.nan), 3, np.eye(2)])
def test_every_wrong_range_of_targets_has_the_same_message(bounds):
    for cls in (DPAdaSSPRegressor, DPTwoStageRegressor):
        assert "y_bounds must be 'auto' or two finite numbers" in refused(cls, y_bounds=bounds)


def test_an_array_is_a_range_of_targets():
    for cls in (DPAdaSSPRegressor, DPTwoStageRegressor):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = cls(y_bounds=np.array([-3, 3]), epsilon=50.0).fit(X, X[:, 0])
        assert model.predict(X).shape == (40,)


def test_a_published_schedule_needs_batches():
    words = refused(DPSparseERMRegressor, schedule="published")
    assert "give batch_groups= or use schedule='cyclic'" in words


def test_a_probability_in_a_message_is_at_most_one():
    with pytest.raises(ValueError, match=r"\(probability 1\) are not negligible") as caught:
        DPTwoStageRegressor(epsilon=1000.0).fit(X, X[:, 0])
    assert "use a smaller epsilon (a few dozen at most)" in str(caught.value)


def test_a_column_of_dates_is_named():
    pd = pytest.importorskip("pandas")
    table = pd.DataFrame({"a": X[:, 0], "when": pd.date_range("2020-01-01", periods=40)})
    with pytest.raises(TypeError, match=r"not numeric: column 'when'") as caught:
        DPIGHTRegressor().fit(table, X[:, 0])
    assert type(caught.value) is TypeError


def test_a_column_of_text_categories_is_named():
    pd = pytest.importorskip("pandas")
    names, codes = pd.Categorical(["a", "b"] * 20), pd.Categorical([1, 2] * 20)
    table = pd.DataFrame({"a": X[:, 0], "ward": names, "code": codes})
    for cls in (DPIGHTRegressor, DPAdaSSPRegressor):
        with pytest.raises(ValueError, match=r"X must be numeric; not numeric: column 'ward' \(\w+\)\. "):
            cls().fit(table, X[:, 0])


def test_parameters_are_checked_before_data():
    assert "epsilon" in refused(X=np.full((3, 2), np.nan), epsilon=-1.0)


def with_cell(value, row=3, column=1):
    table = X.astype(object)
    table[row, column] = value
    return table


@pytest.mark.parametrize(
    ("table", "words"),
    [
        (with_cell(np.nan).astype(float), "contains NaN"),
        (with_cell(np.inf).astype(float), "contains infinity"),
        (np.empty((0, 4)), "0 sample"),
        (np.empty((40, 0)), "0 feature"),
        (X[0], "Expected 2D array"),
        (X[None], "Found array with dim 3"),
        (X[:39], "inconsistent numbers of samples"),
        (X + 1j, "Complex data not supported"),
    ],
)
def test_tables(table, words):
    assert words in refused(X=table)


def test_text_is_named_by_column_and_never_quoted():
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    secret = "Mrs Jane Smith, 4 Elm St"
    message = refused(X=with_cell(secret))
    assert "column 1 (text)" in message
    assert "PublicBinsEncoder" in message
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["b"] = secret
    for table in (frame, pl.DataFrame({name: frame[name].tolist() for name in frame})):
        text = refused(X=table)
        assert "'b'" in text
        assert "'a'" not in text
        assert "Smith" not in text + message


def test_text_is_not_quoted_in_the_traceback():
    import traceback

    secret = "Mrs Jane Smith"
    try:
        DPIGHTClassifier(classes=(0, 1)).fit(with_cell(secret), Y)
    except ValueError as error:
        text = "".join(traceback.format_exception(error))
        assert secret not in text
        assert error.__cause__ is None
        assert error.__context__ is None or error.__suppress_context__
    else:
        pytest.fail("text was accepted")


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.full(40, np.nan), "contains NaN"),
        (np.r_[np.zeros(39), 7], "labels that are not in classes"),
        (np.array(["secret"] * 40), "labels that are not in classes"),
        (None, "requires y"),
        (np.zeros((40, 2)), "y should be a 1d array"),
    ],
)
def test_labels(y, words):
    message = refused(y=y)
    assert words in message
    assert "secret" not in message


@pytest.mark.parametrize(
    ("classes", "y", "words"),
    [
        (("No", "Yes"), ["no", "yes"] * 20, "classes=['No', 'Yes'] (text: case and spaces count)"),
        ((0, 1), ["0", "1"] * 20, "classes=[0, 1] (1 and '1' are different labels)"),
        (range(12), np.r_[np.zeros(39), 77], "classes=[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, ...]"),
    ],
)
def test_a_label_that_is_not_declared_is_refused_with_those_that_are(classes, y, words):
    model = DPIGHTClassifier(classes=classes)
    for given in (np.array(y), np.array(y, dtype=object)):
        with pytest.raises(ValueError, match=re.escape(words)) as caught:
            model.fit(np.zeros((40, 2)), given)
        assert "77" not in str(caught.value)


def test_regression_targets():
    assert "y must be numeric" in refused(DPIGHTRegressor, y=np.array(["secret"] * 40))
    assert "contains infinity" in refused(DPIGHTRegressor, y=np.full(40, np.inf))


@pytest.mark.parametrize("name", [n for n, cls in all_estimators() if is_regressor(cls())])
@pytest.mark.parametrize("value", [None, np.nan, np.inf, -math.inf])
def test_missing_targets_of_object_arrays_are_refused(name, value):
    y = X[:, 0].astype(object)
    y[3] = value
    model = dict(all_estimators())[name]()
    what = "infinity" if value in (np.inf, -math.inf) else "NaN"
    with pytest.raises(ValueError, match=rf"Input y contains {what}.*leave out rows"):
        model.fit(X, y)


def test_messages_never_hold_values():
    pd = pytest.importorskip("pandas")
    secret = "SECRET"
    assert "sample_weight must be numeric" in refused(fit={"sample_weight": [secret] * 40}, max_weight=2.0)
    assert refused(X=X + 1j).endswith("must be real")
    assert refused(X=X[0]).startswith("Expected 2D array of shape (n_samples, n_features), got 1D")
    frame = pd.DataFrame(X, columns=list("abcd"))
    frame["c"] = pd.Timestamp("2020-01-01")
    assert "'c' (datetime64" in refused(X=frame)
    assert "PublicBinsEncoder" in refused(X=with_cell(np.nan).astype(float))


@pytest.mark.parametrize(
    ("classes", "words"),
    [
        (2, "classes must list the labels"),
        ("yes", "classes must list the labels"),
        ([0, "a"], "all text or all numbers"),
        ([0, 0, 1], "without repetition"),
    ],
)
def test_classes(classes, words):
    assert words in refused(classes=classes)


def test_hopeless_budgets_are_refused_before_anything_is_spent():
    wide = sp.csr_matrix((40, 150_000))
    assert "too small for so many" in refused(X=wide, epsilon=1e-5, delta=1e-6)
    assert "so little noise" in refused(epsilon=1e4, accountant=None)
    assert "pass model.coef_" in refused(coef_init=DPIGHTClassifier())


def test_one_class_without_classes_says_how_to_go_on():
    message = refused(y=np.zeros(40, int), classes=None)
    assert "one class only" in message
    assert "classes=" in message


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (np.zeros(3), "one entry for each row of X"),
        (np.full(40, np.nan), "groups contains missing values"),
        (np.array([None] * 40), "groups contains missing values"),
        (["a", "b", "c", np.nan] * 10, "groups contains missing values"),
        (np.array(["2020-01-01", "NaT"] * 20, dtype="datetime64[D]"), "groups contains missing"),
        (["a", "b", "c", math.inf] * 10, "groups contains missing values"),
        (np.fromiter([1, ["a"]] * 20, dtype=object), "labels that can be hashed"),
    ],
)
def test_groups(groups, words):
    assert words in refused(unit="group", fit={"groups": groups})


def test_group_unit_needs_groups_and_names_the_cause():
    message = refused(unit="group")
    assert "needs groups=" in message
    assert "set_fit_request" in message
    assert "unit='group'" in refused(fit={"groups": np.zeros(40)})


def test_sparse_matrices():
    S = sp.csr_matrix(X)
    S.data[5] = np.nan
    assert "contains NaN" in refused(X=S)


def test_ceiling_is_named_and_nothing_is_read():
    accountant = BudgetAccountant(0.5, 1e-5)
    with pytest.raises(PrivacyBudgetExceeded, match=r"1.*0\.5"):
        DPIGHTClassifier(epsilon=1.0, accountant=accountant).fit(object(), None)
    assert accountant.spent() == (0.0, 0.0)


def test_inf_under_an_accountant_is_refused():
    with pytest.raises(ValueError, match="epsilon=inf"):
        DPIGHTClassifier(epsilon=math.inf, accountant=BudgetAccountant(1.0, 1e-5)).fit(X, Y)


def test_large_delta_warns():
    with pytest.warns(UserWarning, match="is too large for"):
        DPIGHTClassifier(delta=0.1, classes=(0, 1)).fit(X, Y)


def delta_to_use(model, n, **more):
    """What the warning about delta says for n rows: the number that it names."""
    X = np.random.default_rng(0).normal(size=(n, 2))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, np.arange(n) % 2, **more)
    (said,) = {str(w.message) for w in caught if "is too large for" in str(w.message)}
    return re.search(r"Use delta <= (\S+)$", said)[1]


@pytest.mark.parametrize(
    ("n", "named"), [(9, "0.01"), (10, "0.01"), (11, "0.001"), (99, "0.001"), (100, "0.001"), (101, "0.0001")]
)
def test_the_warning_about_delta_names_one_below_a_tenth_of_a_record(n, named):
    assert delta_to_use(DPIGHTClassifier(delta=0.2, classes=(0, 1)), n) == named
    assert float(named) <= 0.1 / n < 10 * float(named)


def test_the_warning_about_delta_names_no_private_count():
    """Under add-remove it follows from n_public, and for groups from their number, whatever the rows are."""
    private = DPIGHTClassifier(delta=0.2, classes=(0, 1), adjacency="add-remove", n_public=1000)
    assert {delta_to_use(private, n) for n in (20, 21, 300)} == {"0.0001"}
    grouped = DPIGHTClassifier(delta=0.2, classes=(0, 1), unit="group")
    assert {delta_to_use(grouped, n, groups=np.arange(n) % 10) for n in (20, 21, 300)} == {"0.01"}


def test_overflow_does_not_stop_the_fit():
    big = X.copy()
    big[0] = 1e308
    model = DPIGHTRegressor(random_state=0).fit(big, Y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("cls", [DPAdaSSPRegressor, DPIGHTRegressor])
@pytest.mark.parametrize("sparse", [False, True])
def test_extreme_cells_and_targets_make_no_warning(cls, sparse):
    """Sums and differences of finite numbers overflow: a warning would tell so of private data."""
    big, y = 1.7e308 * np.sign(X), 1.7e308 * np.where(Y, 1.0, -1.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = cls(delta=1e-3, random_state=0).fit(sp.csr_matrix(big) if sparse else big, y)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("cls", [DPIGHTRegressor, IGHTRegressor])
def test_predict_on_other_shapes(cls):
    with pytest.raises(ValueError, match=r"3 features, but .* is expecting 4 features"):
        cls().fit(X, Y).predict(X[:, :3])


def test_constant_and_extreme_columns_fit():
    for table in (np.ones((40, 4)), np.zeros((40, 4)), X * 1e-300, X * 1e150):
        model = DPIGHTClassifier(classes=(0, 1), random_state=0).fit(table, Y)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.predict_proba(X)).all()


def test_batches_without_replacement_refuse_another_public_number():
    from skdp import DPSGDClassifier

    accountant = BudgetAccountant(2.0, 1e-3)
    X, y = np.eye(40), np.arange(40) % 2
    model = DPSGDClassifier(
        classes=(0, 1), sampling="without_replacement", batch_size=5, n_public=50,
        accountant=accountant,
    )  # fmt: skip
    with pytest.raises(ValueError, match="leave out n_public"):
        model.fit(X, y)
    assert accountant.spent() == (0.0, 0.0)


@pytest.mark.parametrize("batch_size", ["full", None, 50.0, 0])
def test_batch_size_says_how_to_take_full_batches(batch_size):
    from skdp import DPSGDClassifier

    with pytest.raises((TypeError, ValueError), match="or more, takes all of them"):
        DPSGDClassifier(classes=(0, 1), batch_size=batch_size).fit(X, Y)
    with pytest.raises(ValueError, match="schedule="):
        DPSGDClassifier(classes=(0, 1), learning_rate="constant").fit(X, Y)


@pytest.mark.parametrize(
    ("coef", "message"),
    [
        (np.full((1, X.shape[1]), np.nan), "NaN or infinity"),
        (np.zeros((2, X.shape[1])), "coef_init must be of shape"),
        ("x", "coef_init must be an array of numbers"),
        ([[1.0], [2.0, 3.0]], "coef_init must be an array of numbers"),
    ],
)
def test_coef_init_says_what_is_wrong(coef, message):
    with pytest.raises((TypeError, ValueError), match=message) as told:
        DPIGHTClassifier(classes=(0, 1), coef_init=coef).fit(X, Y)
    assert ("NaN" in str(told.value)) == ("NaN" in message)


# What is spent matters here; the released clip norm is drawn anew each time, and is sometimes tiny.
@pytest.mark.filterwarnings("ignore:the released clip_norm is tiny:skdp.exceptions.UtilityWarning")
def test_full_batches_of_groups_keep_their_mu():
    from skdp import DPSGDClassifier

    groups, spent = np.arange(len(X)) // 2, []
    n_groups = len(np.unique(groups))
    for batch_size, n_public in (("auto", None), (n_groups, n_groups)):
        accountant = BudgetAccountant(10.0, 1e-4)
        model = DPSGDClassifier(
            classes=(0, 1), unit="group", batch_size=batch_size, n_public=n_public,
            accountant=accountant,
        )  # fmt: skip
        model.fit(X, Y, groups=groups).fit(X, Y, groups=groups)
        spent.append(accountant.spent())
    assert spent[0] == spent[1]
    assert spent[1][0] < 2.0  # by mu, not by a sum of epsilons


@pytest.mark.filterwarnings(
    "ignore:the released clip_norm is tiny"
)  # noise decides whether the last fit warns, too
def test_tiny_released_scales_are_named():
    with pytest.warns(UserWarning, match="unless the data are on such a scale"):
        DPIGHTClassifier(classes=(0, 1), epsilon=5.0).fit(1e-6 * X, Y)
    with pytest.warns(UserWarning, match="n_public=4 records at epsilon=1 are few"):
        DPIGHTClassifier(classes=(0, 1), n_public=4).fit(X, Y)
    with pytest.warns(UserWarning, match="1 record at epsilon=1 is few"):
        DPIGHTClassifier(classes=(0, 1)).fit(X[:1], Y[:1])


def test_a_ragged_table_does_not_tell_its_number_of_rows():
    ragged = [[1.0, 2.0]] * 4320 + [[1.0]]
    message = refused(X=ragged, y=[0, 1] * 2160 + [1])
    assert "every row needs one number for each feature" in message
    assert "4321" not in message
