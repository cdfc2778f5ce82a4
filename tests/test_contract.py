"""The estimator contract of DESIGN.md, a test per line, over every estimator of skdp."""

import copy
import inspect
import io
import json
import pickle
import warnings

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import StackingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import check_estimator

import skdp
from skdp import DPIGHTClassifier, DPIGHTRegressor, IGHTClassifier, IGHTRegressor
from skdp.exceptions import PrivacyAccountingError, PrivacyLeakWarning, UnsupportedAccounting, UtilityWarning
from skdp.linear_model.additive.additive_fit import AdditiveFit
from skdp.linear_model.auto.fit import AutoFit
from skdp.linear_model.frank_wolfe import FrankWolfeFit
from skdp.linear_model.ight.estimators import ThresholdingFit
from skdp.privacy.mechanisms import grid
from skdp.registry import ESTIMATORS
from tests.kinds import of_each_kind

ALL = dict(skdp.all_estimators())
NETS = [name for name, module in ESTIMATORS.items() if module.startswith("skdp.nn.")]
TEXT, VOCABULARY = ({"DPLSTMClassifier"}, 1000)  # sequences of ids from 1 to 1,000, of length 5 in these tests
MODELS = {name: cls for name, cls in ALL.items() if is_classifier(cls()) or is_regressor(cls())}
PRIVATE = {name: cls for name, cls in MODELS.items() if "epsilon" in inspect.signature(cls).parameters}
EXACT = {name: cls for name, cls in MODELS.items() if name not in PRIVATE}


def each_of(names):
    """Parametrise over estimators; quick tests take one of each kind."""
    return pytest.mark.parametrize("name", of_each_kind(names, pytest.mark.thorough))


def every_of(names):
    """Parametrise over all estimators, for tests that are cheap or look at what a model keeps."""
    return pytest.mark.parametrize("name", sorted(names))


each, every = each_of(ALL), every_of(ALL)
each_model, every_model = each_of(MODELS), every_of(MODELS)
ADDITIVE = {name for name, cls in MODELS.items() if issubclass(cls, AdditiveFit)}
each_additive = pytest.mark.parametrize("name", sorted(ADDITIVE))
# Nets have no coefficients, and compute with dense blocks of rows: tests/nn/test_estimators.py has their shapes.
# Additive models have curves beside their lines: tests/linear_model/additive/test_estimators.py has their shapes.
each_linear = each_of(set(MODELS) - set(NETS) - ADDITIVE)
# Sequences are cut or padded, so their tables have no columns with names and no width of their own.
each_table = each_of(set(MODELS) - TEXT)
each_private, every_private = each_of(PRIVATE), every_of(PRIVATE)


def having(*params, names=PRIVATE):
    """Parametrise over the estimators whose constructors have all of ``params``."""
    return each_of(n for n in names if set(params) <= set(inspect.signature(ALL[n]).parameters))


def classifies(name):
    return is_classifier(ALL[name]())


def required(name):
    """Parameters that an estimator cannot do without."""
    return {"vocabulary_size": VOCABULARY, "max_length": 5} if name in TEXT else {}


def refuses_groups(cls):
    """Only the change of one row is proven: the estimator says so when it is asked for groups, before any data."""
    with pytest.raises(ValueError, match=r"unit='group' is not proven|requires y") as told:
        cls(unit="group", **required(cls.__name__)).fit(np.eye(4), None, groups=[0, 0, 1, 1])
    return "not proven" in str(told.value)


# The hard-thresholding classes: the paper's algorithm is a step of theirs, so it can be compared literally.
THRESHOLDING = {n for n, cls in PRIVATE.items() if issubclass(cls, ThresholdingFit)}
COUNTERPARTS = {DPIGHTClassifier: IGHTClassifier, DPIGHTRegressor: IGHTRegressor}
each_ight = pytest.mark.parametrize("name", sorted(THRESHOLDING))
RECORDS_ONLY = {name for name, cls in PRIVATE.items() if refuses_groups(cls)}
each_grouped = each_of(set(PRIVATE) - RECORDS_ONLY)
each_classifier = each_of(n for n in MODELS if classifies(n))


def multi_class(name):
    return ALL[name]().__sklearn_tags__().classifier_tags.multi_class


each_multiclass = each_of(n for n in set(MODELS) - set(NETS) - ADDITIVE if classifies(n) and multi_class(n))


def without_noise(name, **params):
    """The same method without privacy."""
    return make(COUNTERPARTS[ALL[name]].__name__, **params)


def learned(model):
    """The released numbers that predict: of a linear model its coefficients and intercepts.

    Of an additive one without products also the coefficients of all functions, 0 for those that it does not have.
    """
    if hasattr(model, "parameters_"):
        return model.parameters_
    if hasattr(model, "linear_"):
        return np.concatenate([*map(np.ravel, (model.linear_, model.intercept_)), curves(model)])
    return np.append(np.ravel(model.coef_), model.intercept_)


def curves(model):
    functions = np.zeros((model.n_features_in_, 4, np.size(model.intercept_)))
    if model._curves is not None:
        made = model._curves.expansion
        assert made.size == made.owner.size
        theta = model._curves.theta.reshape(made.size, functions.shape[-1])
        functions[model._curves.columns[made.owner], made.order] = theta
    return functions.ravel()


def data(name, n=60, d=5, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    if name in TEXT:
        X = 1 + np.abs(X) * 1000 // 1 % VOCABULARY  # token ids
        return X, (X[:, 0] // 1 % n_classes).astype(int)
    if not classifies(name):
        return X, X @ np.arange(1.0, d + 1) + rng.normal(size=n)
    return X, np.argmax(X[:, :n_classes] + 0.1 * rng.normal(size=(n, n_classes)), axis=1)


def make(name, **params):
    """An estimator with declared classes and a seed, where it has such parameters."""
    cls = ALL[name]
    known = inspect.signature(cls).parameters
    defaults = {"random_state": 0, "classes": (0, 1) if classifies(name) else None}
    if issubclass(cls, AutoFit):
        defaults["epsilon"] = 40.0  # below, it releases a constant for so few records
    if name in NETS:
        defaults["max_iter"] = 4
    if name in TEXT:
        defaults.update(n_features=4, n_units=3, **required(name))
    return cls(**{**{k: v for k, v in defaults.items() if k in known and v is not None}, **params})


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="delta=.* is too large for")
        warnings.simplefilter("ignore", UtilityWarning)
        yield


def test_classes_are_chosen_by_what_they_are():
    assert MODELS.keys() == PRIVATE.keys() | EXACT.keys()
    assert {"epsilon", "delta", "accountant"} <= set.intersection(
        *(set(inspect.signature(cls).parameters) for cls in PRIVATE.values())
    )
    assert THRESHOLDING == {cls.__name__ for cls in COUNTERPARTS}
    assert RECORDS_ONLY == {
        "DPAMPClassifier",
        "DPAMPRegressor",
        "DPLocalObjectivePerturbationClassifier",
        "DPLocalObjectivePerturbationRegressor",
    }


# ------------------------------------------------------------------ scikit-learn's own contract


def slow_for(*slow):
    """Parametrise over all estimators; those in ``slow`` fit for seconds."""
    names = [pytest.param(n, marks=pytest.mark.slow) for n in slow] + of_each_kind(
        set(ALL) - set(slow), pytest.mark.thorough
    )
    return pytest.mark.parametrize("name", names)


@slow_for(
    "DPAGDClassifier",
    "DPRRPSGDClassifier",
    "DPSRMClassifier",
    "DPSparseERM",
    "DPSparseERMClassifier",
    "DPSparseERMRegressor",
    "DPAMPRegressor",
    "DPFrankWolfeRegressor",
    "DPLSSGDClassifier",
    "DPLSSGDRegressor",
    "DPSLKTRegressor",
    "DPTwoStageRegressor",
    "DPIGHTRegressor",
    "DPSGDRegressor",
    "IGHTRegressor",
    "DPAMPClassifier",
    "DPAdaSSPRegressor",
    "DPFrankWolfeClassifier",
    "DPGDClassifier",
    "DPSGDClassifier",
    "DPSLKTClassifier",
    "DPTwoStageClassifier",
    "IGHTClassifier",
    "STORMClassifier",
    "DPLocalGradientPerturbationClassifier",
    "DPLocalGradientPerturbationRegressor",
    "DPLocalObjectivePerturbationClassifier",
    "DPLocalObjectivePerturbationRegressor",
    "DPLocalOutputPerturbationClassifier",
    "DPLocalOutputPerturbationRegressor",
    "DPRajkumarAgarwalClassifier",
    "DPRajkumarAgarwalRegressor",
    "MPCPathakClassifier",
    "MPCPathakRegressor",
    *NETS,
)
def test_check_estimator_with_default_parameters(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(ALL[name](), on_fail=None)
    failed = [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")]
    assert failed == []
    assert not any(r["expected_to_fail"] for r in results)
    assert not ALL[name]().__sklearn_tags__().non_deterministic


@every
def test_constructor_is_keyword_only_and_stores_only(name):
    cls = ALL[name]
    parameters = list(inspect.signature(cls).parameters.values())
    assert all(p.kind is p.KEYWORD_ONLY for p in parameters)
    marks = {p.name: object() for p in parameters}
    made = cls(**marks)
    assert vars(made) == marks


@every_private
def test_defaults_of_the_private_classes(name):
    expected = dict(
        epsilon=1.0,
        delta=1e-5,
        n_nonzero_coefs=None,
        clip_norm="auto",
        max_iter="auto",
        learning_rate="auto",
        refit="auto",
        alpha=0.0,
        fit_intercept=True,
        adjacency="replace-one",
        unit="record",
    )
    if name in {*NETS, *ADDITIVE}:  # an intercept is part of every net, and of every sum of shapes
        del expected["fit_intercept"]
    if name in NETS:
        expected["adjacency"] = "zero-out"
    params = ALL[name]().get_params()
    always = set(expected) & {"epsilon", "delta", "fit_intercept", "adjacency", "unit"}
    assert always <= set(params)
    known = set(expected) if name in THRESHOLDING else always
    assert {k: params[k] for k in known} == {k: expected[k] for k in known}


@each
def test_clone_and_set_params_round_trip(name):
    X, y = data(name)
    model = make(name).fit(X, y)
    again = clone(model)
    assert not hasattr(again, "n_features_in_")
    assert repr(again.get_params()) == repr(model.get_params())
    before = copy.deepcopy({k: v for k, v in vars(model).items() if k.endswith("_")})
    for key, value in model.get_params().items():
        model.set_params(**{key: value})
    model.set_params(**dict.fromkeys(list(model.get_params())[:1], 0.123))
    after = {k: v for k, v in vars(model).items() if k.endswith("_")}
    assert before.keys() == after.keys()


@each_model
def test_fit_changes_no_parameter_and_no_input(name):
    X, y = data(name)
    S = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    # A sparse table holds counts, and no sequences; additive models refuse it.
    sparse = [] if name in TEXT | ADDITIVE else [S]
    for table in (X, np.asfortranarray(X), X.astype(np.float32), *sparse):
        model = make(name)
        params = repr(model.get_params())
        parts = [table.data, table.indices, table.indptr] if sp.issparse(table) else [table]
        copies = [np.array(p) for p in parts]
        y_read = y.copy()
        for part in [*parts, y_read]:
            part.setflags(write=False)
        model.fit(table, y_read)
        model.predict(table)
        assert repr(model.get_params()) == params
        assert all(np.array_equal(a, b) for a, b in zip(parts, copies))


@each_linear
def test_shapes_of_fitted_attributes(name):
    X, y = data(name)
    limited = "n_nonzero_coefs" in inspect.signature(ALL[name]).parameters
    model = make(name, **({"n_nonzero_coefs": 2} if limited else {})).fit(X, y)
    if is_classifier(model):
        assert model.coef_.shape == (1, 5)
        assert model.intercept_.shape == (1,)
        assert model.decision_function(X).shape == (60,)
        assert np.allclose(np.exp(model.predict_log_proba(X)), model.predict_proba(X))
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1)
    else:
        assert model.coef_.shape == (5,)
        assert isinstance(model.intercept_, float)
    assert model.predict(X).shape == (60,)
    assert model.n_features_in_ == 5
    assert model.support_.dtype == np.int64
    assert np.array_equal(model.support_, np.flatnonzero(np.atleast_2d(model.coef_)[0]))
    assert len(model.support_) <= (2 if limited else 5)
    assert model.n_iter_ >= 1
    assert np.isfinite(model.score(X, y))


@each_multiclass
def test_multiclass_is_softmax_and_keeps_columns(name):
    X, y = data(name, n_classes=3)
    limited = "n_nonzero_coefs" in inspect.signature(ALL[name]).parameters
    limit = {"n_nonzero_coefs": 2} if limited else {}
    model = make(name, classes=(0, 1, 2), **limit).fit(X, y)
    assert model.coef_.shape == (3, 5)
    assert model.intercept_.shape == (3,)
    kept = np.flatnonzero(np.any(model.coef_ != 0, axis=0))
    assert np.array_equal(kept, model.support_)
    assert len(kept) == 2 or not limited
    scores = model.decision_function(X)
    exp = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert np.allclose(model.predict_proba(X), exp / exp.sum(axis=1, keepdims=True))


@each_classifier
def test_declared_classes_stay_although_absent_from_y(name):
    X, _ = data(name)
    y = np.array(["b"] * len(X))
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        warnings.filterwarnings("ignore", "random_state is a seed")
        labels = ("c", "b", "a") if multi_class(name) else ("c", "b")
        model = make(name, classes=labels).fit(X, y)  # one class only: no error (REFEREE 18)
    assert model.classes_.tolist() == sorted(labels)
    assert model.predict_proba(X).shape == (60, len(labels))


@each_of(n for n in PRIVATE if classifies(n))
def test_inferred_classes_warn_once_and_are_reported(name):
    X, y = data(name)
    with pytest.warns(PrivacyLeakWarning, match="classes=") as caught:
        model = ALL[name](random_state=0, **required(name)).fit(X, y)
    leaks = [str(w.message) for w in caught if issubclass(w.category, PrivacyLeakWarning)]
    assert len([text for text in leaks if not text.startswith("random_state is a seed")]) == 1
    assert any("label set" in line for line in model.privacy_.leaks)


@every_model
def test_not_fitted(name):
    with pytest.raises(NotFittedError):
        ALL[name]().predict(data(name)[0])


# ------------------------------------------------------------------ nothing of the data stays


def _walk(value, seen):
    if id(value) in seen:
        return
    seen.add(id(value))
    yield value
    if isinstance(value, dict):
        children = list(value.values())
    elif isinstance(value, (list, tuple, set)):
        children = list(value)
    elif hasattr(value, "__dict__"):
        children = list(vars(value).values())
    else:
        children = []
    for child in children:
        yield from _walk(child, seen)


def without_rows(model):
    """A copy whose report lists no releases.

    How many rows there are follows from public and released numbers: more steps, or a search more. A row holds a
    few words and numbers, which is checked here.
    """
    report = getattr(model, "privacy_", None)
    if report is None:
        return model
    state = report.__getstate__()
    rows = [*state["mechanisms"], *(state["sampled_plan"] or ())]
    # Additive fits release residuals and a Gram matrix again; DPAGD measures gradients again as often as it must.
    most = 26 if hasattr(model, "linear_") else 30 if "DPAGD" in type(model).__name__ else 20
    assert len(rows) <= most
    for row in rows:
        assert len(row) <= 14
        assert {type(value) for value in row.values()} <= {str, bool, int, float}
        assert max(len(str(value)) for value in row.values()) <= 30
    bare = copy.copy(model)
    bare.privacy_ = {**state, "mechanisms": [], "sampled_plan": None}
    return bare


@every_model
def test_a_fitted_model_holds_nothing_of_the_data(name):
    sizes = []
    for n in (60, 600):
        X, y = data(name, n=n)
        model = make(name).fit(X, y)
        for value in _walk(vars(model), set()):
            module = type(value).__module__
            assert not module.startswith(("skdp.privacy.records", "skdp.privacy.session"))
            assert type(value).__name__ not in ("KeyStream", "BoundedStatistic", "GradientKernel")
            if isinstance(value, np.ndarray):
                parameters = getattr(model, "parameters_", None)  # of a net: more than records
                assert value.size < n or value.size <= 10 or value is parameters
        sizes.append(len(pickle.dumps(without_rows(model))))
        blob = pickle.dumps(model)
        assert X[0].tobytes() not in blob
        assert X[:, 0].tobytes() not in blob
    assert abs(sizes[1] - sizes[0]) < 128


@each_model
def test_pickle_joblib_and_skops_round_trips(name, tmp_path):
    import skops.io as sio

    X, y = data(name)
    model = make(name).fit(X, y)
    buffer = io.BytesIO()
    joblib.dump(model, buffer)
    buffer.seek(0)
    blob = sio.dumps(model)
    trusted = sio.get_untrusted_types(data=blob)
    for again in (pickle.loads(pickle.dumps(model)), joblib.load(buffer), sio.loads(blob, trusted=trusted)):
        assert np.array_equal(again.predict(X), model.predict(X))
        if name in PRIVATE:
            assert again.privacy_ == model.privacy_


@each_private
def test_failed_fit_leaves_the_old_model(name):
    X, y = data(name)
    model = make(name).fit(X, y)
    before = pickle.dumps({k: v for k, v in vars(model).items() if k.endswith("_")})
    bad = np.full((10, 9), np.inf if model.__sklearn_tags__().input_tags.allow_nan else np.nan)
    with pytest.raises(ValueError, match=r"NaN|infinity"):
        model.fit(bad, y[:10])
    with pytest.raises(ValueError, match="epsilon"):
        model.set_params(epsilon=-1.0).fit(X, y)
    assert pickle.dumps({k: v for k, v in vars(model).items() if k.endswith("_")}) == before


@each_table
def test_refit_replaces_everything(name):
    pd = pytest.importorskip("pandas")
    X, y = data(name)
    model = make(name).fit(pd.DataFrame(X, columns=list("abcde")), y)
    assert model.feature_names_in_.tolist() == list("abcde")
    model.fit(X[:, :3], y)
    assert model.n_features_in_ == 3
    assert not hasattr(model, "feature_names_in_")


# ------------------------------------------------------------------ inputs


@each_table
def test_pandas_and_polars_frames(name):
    pd = pytest.importorskip("pandas")
    pl = pytest.importorskip("polars")
    X, y = data(name)
    reference = make(name).fit(X, y)
    for frame in (pd.DataFrame(X, columns=list("abcde")), pl.DataFrame(X, schema=list("abcde"))):
        model = make(name).fit(frame, y)
        old = tuple(int(part) for part in sklearn.__version__.split(".")[:2]) < (1, 7)
        if isinstance(frame, pd.DataFrame) or not old:  # 1.6 does not see the names of new polars
            assert model.feature_names_in_.tolist() == list("abcde")
        assert np.allclose(learned(model), learned(reference))
    wrong = pd.DataFrame(X, columns=list("abcdf"))
    with pytest.raises(ValueError, match="feature names should match"):
        make(name).fit(pd.DataFrame(X, columns=list("abcde")), y).predict(wrong)


CENTERED = {"DPLinearRegression", "DPLogisticRegression"}


@each_linear
def test_csr_is_never_densified(name, monkeypatch):
    X, y = data(name)
    S = sp.csr_matrix(np.where(np.abs(X) > 0.8, X, 0.0))
    dense = make(name).fit(S.toarray(), y)

    def refuse(*args, **kwargs):
        raise AssertionError("a sparse matrix was densified")

    for kind in (sp.csr_matrix, sp.csr_array):
        for method in ("toarray", "todense"):
            monkeypatch.setattr(kind, method, refuse)
    model = make(name).fit(S, y)
    model.predict(S)
    if name not in CENTERED:  # these centre dense columns, which CSR rows cannot be
        assert np.allclose(model.coef_, dense.coef_, rtol=1e-6, atol=1e-9)


@each_additive
def test_csr_is_refused_by_name_where_nothing_is_computed_of_it(name, monkeypatch):
    X, y = data(name)
    fitted = make(name).fit(X, y)
    methods = ["predict", "score", "explain"]
    methods += ["decision_function", "predict_proba", "predict_log_proba"] if classifies(name) else []

    def refuse(*args, **kwargs):
        raise AssertionError("a sparse matrix was densified")

    for kind in (sp.csr_matrix, sp.csr_array, sp.csc_matrix, sp.coo_array):
        S = kind(np.where(np.abs(X) > 0.8, X, 0.0))
        with monkeypatch.context() as patched:
            for method in ("toarray", "todense"):
                patched.setattr(type(S), method, refuse)
            accountant = skdp.BudgetAccountant(100.0, 1e-3, allow_seeded=True)
            model = make(name, accountant=accountant)
            with pytest.raises(TypeError, match=rf"^{name} takes no sparse matrix.* or use DPL\w+R\w+,"):
                model.fit(S, y)
            assert accountant.spent() == (0.0, 0.0)
            assert not hasattr(model, "n_features_in_")
            for method in methods:
                more = (y,) if method == "score" else ()
                with pytest.raises(TypeError, match=rf"^{name} takes no sparse matrix"):
                    getattr(fitted, method)(S, *more)


@each_linear
def test_csr_duplicates_empty_rows_and_zero_columns(name):
    X, y = data(name)
    X = np.where(np.abs(X) > 0.8, X, 0.0)
    X[3] = 0.0
    X[:, 4] = 0.0
    tidy = sp.csr_matrix(X)
    halves = sp.csr_matrix(
        (np.repeat(tidy.data / 2, 2), np.repeat(tidy.indices, 2), tidy.indptr * 2), shape=tidy.shape
    )
    kept = halves.data.copy()
    model = make(name).fit(halves, y)
    assert np.array_equal(halves.data, kept)
    assert halves.nnz == 2 * tidy.nnz
    assert np.allclose(model.coef_, make(name).fit(tidy, y).coef_)
    if name in THRESHOLDING:  # columns without any entry get noise like any other (REFEREE 25)
        if hasattr(model, "shrinkage_"):  # so few records leave nothing; steps of one's own are not calibrated
            model = make(name, learning_rate=0.1).fit(tidy, y)
        assert np.atleast_2d(model.coef_)[0, 4] != 0


@each_model
def test_float32_is_kept_and_close(name):
    X, y = data(name)
    X = X.astype(np.float32)
    a, b = make(name).fit(X, y), make(name).fit(X.astype(np.float64), y)
    assert np.allclose(learned(a), learned(b), rtol=1e-4, atol=1e-5)


@each_linear
def test_sparsify_and_densify(name):
    X, y = data(name)
    limited = "n_nonzero_coefs" in inspect.signature(ALL[name]).parameters
    model = make(name, **({"n_nonzero_coefs": 2} if limited else {})).fit(X, y)
    expected = model.predict(X)
    assert sp.issparse(model.sparsify().coef_)
    assert np.allclose(model.predict(X), expected)
    assert np.allclose(model.predict(sp.csr_matrix(X)), expected)
    assert np.allclose(model.densify().predict(X), expected)
    assert not sp.issparse(model.coef_)


@having("max_weight")
def test_sample_weight_needs_a_public_bound(name):
    X, y = data(name)
    with pytest.raises(ValueError, match="max_weight"):
        make(name).fit(X, y, sample_weight=np.ones(60))
    model = make(name, max_weight=2.0)
    plain = clone(model).fit(X, y)
    ones = clone(model).fit(X, y, sample_weight=np.ones(60))
    huge = clone(model).fit(X, y, sample_weight=np.full(60, 1e9))
    twos = clone(model).fit(X, y, sample_weight=np.full(60, 2.0))
    assert np.array_equal(plain.coef_, ones.coef_)
    assert np.array_equal(huge.coef_, twos.coef_)  # clipped to the public bound
    with pytest.raises(ValueError, match="shape"):
        clone(model).fit(X, y, sample_weight=np.ones(3))
    with pytest.raises(ValueError, match="NaN"):
        clone(model).fit(X, y, sample_weight=np.full(60, np.nan))
    with pytest.raises(TypeError, match="unexpected keyword"):
        clone(model).fit(X, y, weight=1)


@pytest.mark.parametrize(
    "name", sorted(n for n in PRIVATE if "max_weight" not in inspect.signature(ALL[n]).parameters)
)
def test_methods_without_weights_refuse_them(name):
    X, y = data(name)
    with pytest.raises(TypeError, match="no weighted form"):
        make(name).fit(X, y, sample_weight=np.ones(60))


# ------------------------------------------------------------------ the private fit


@each_private
def test_report_of_a_fit(name):
    X, y = data(name)
    report = make(name, epsilon=2.0, delta=1e-4).fit(X, y).privacy_
    assert (report.epsilon, report.delta) == (2.0, 1e-4)
    assert report.guarantee == "proven"
    assert report.adjacency == ("zero-out" if name in NETS else "replace-one")
    assert report.unit == "record"
    assert report.scope == "one fit"
    assert "seeded" in report.noise
    assert json.dumps(report.to_dict())
    assert all(row["purpose"] and row["count"] >= 1 for row in report.mechanisms)
    fresh = make(name, random_state=None).fit(X, y).privacy_
    assert "seeded" not in fresh.noise
    assert "OpenSSL" in fresh.noise


@each_ight
def test_the_report_of_dp_ight_names_scale_and_erratum(name):
    X, y = data(name)
    report = make(name).fit(X, y).privacy_
    assert "scale" in [row["purpose"] for row in report.mechanisms]
    assert report.erratum


@pytest.mark.parametrize(
    ("epsilon", "unused"), [pytest.param(1.0, 0.2, marks=pytest.mark.thorough), (40.0, 0.021)]
)
@pytest.mark.parametrize("name", sorted(set(PRIVATE) - RECORDS_ONLY))
def test_every_row_of_the_ledger_adds_up_to_the_claim(name, epsilon, unused):
    X, y = data(name)
    sampled = name in NETS or ALL[name] is skdp.DPSRMClassifier  # their minibatches have no mu
    full = {"batch_size": len(X)} if sampled else {}
    report = make(name, epsilon=epsilon, **full).fit(X, y).privacy_
    mu2 = skdp.privacy.accounting.rows_mu(report.mechanisms) ** 2
    claimed = skdp.privacy.accounting.gaussian_mu(report.epsilon, report.delta) ** 2
    assert mu2 <= claimed
    # A search for the scale may ask fewer questions than planned, and its share grows where n mu is small.
    # A random round takes fewer steps than planned, whatever the records.
    assert mu2 >= claimed * (1 - unused) or ALL[name] is skdp.DPRRPSGDClassifier
    assert report.mu**2 >= claimed * (1 - 1e-3)  # the plan leaves no budget lying about


@each_private
def test_seed_repeats_a_fit_and_none_does_not(name):
    X, y = data(name)
    assert np.array_equal(learned(make(name).fit(X, y)), learned(make(name).fit(X, y)))
    more = drawn(name)
    found = [make(name, random_state=None, **more).fit(X, y) for _ in range(2)]
    # Coefficients of pure noise may shrink to 0; the intercept is released, too.
    a, b = map(learned, found)
    if not more:
        assert not np.any((a == b) & (a != 0))  # sparse fits have common zeros
    assert not np.array_equal(a, b)


def drawn(name):
    """Frank-Wolfe releases choices alone: two short runs may well be equal, two of 1000 steps are not."""
    return {"max_iter": 1000} if issubclass(ALL[name], FrankWolfeFit) else {}


@each_ight
def test_one_seed_and_two_parameters_share_no_noise(name):
    X, y = np.zeros((60, 5)), np.zeros(60)
    params = dict(max_iter=1, learning_rate=1.0, refit=0, fit_intercept=False)
    a = make(name, clip_norm=1.0, **params).fit(X, y).coef_.ravel()
    b = make(name, clip_norm=2.0, **params).fit(X, y).coef_.ravel()
    assert abs(np.corrcoef(a, b)[0, 1]) < 0.999
    assert not np.any(np.isclose(2 * a, b, rtol=1e-6))


@each_private
def test_numpy_global_seed_has_no_influence(name):
    X, y = data(name)
    fits = []
    for _ in range(2):
        np.random.seed(0)
        model = make(name, random_state=None, **drawn(name)).fit(X, y)
        # So few records may leave no coefficient; what they leave is the intercept.
        fits.append(learned(model))
    assert not np.array_equal(*fits)


@each_ight
def test_callback_and_verbose_see_released_values(name, capsys):
    X, y = data(name)
    seen = []
    model = make(
        name,
        max_iter=3,
        learning_rate=0.1,
        refit=0,
        verbose=True,
        callback=lambda i, coef: seen.append((i, coef.copy())),
    ).fit(X, y)
    assert [i for i, _ in seen] == [0, 1, 2]
    assert np.array_equal(seen[-1][1], model.coef_)
    assert "skdp" in capsys.readouterr().err


@pytest.mark.slow
@each_ight
def test_numbers_of_the_user_are_honoured_literally(name):
    """max_iter=1, learning_rate=1.0, refit=0 is one noisy step: -(mean clipped gradient + noise)."""
    X, y = np.zeros((50, 4)), np.zeros(50)
    settings = dict(clip_norm=1.0, max_iter=1, learning_rate=1.0, refit=0, fit_intercept=False, epsilon=1.0)
    draws = np.concatenate(
        [make(name, **settings, random_state=seed).fit(X, y).coef_.ravel() for seed in range(250)]
    )
    std = 3.730632 * 2 * 1.0 / 50
    assert abs(draws.std() / std - 1) < 5 / np.sqrt(2 * draws.size)  # false alarm below 1e-6
    assert abs(draws.mean()) < 5 * std / np.sqrt(draws.size)


def test_noise_scale_of_dp_ight_is_the_exact_formula():
    X, y = np.zeros((1000, 3)), np.zeros(1000)
    model = DPIGHTRegressor(epsilon=1.0, delta=1e-5, clip_norm=1.0, max_iter=50, learning_rate=0.1, refit=0).fit(
        X, y
    )
    (row,) = model.privacy_.mechanisms
    assert row["count"] == 50
    assert abs(row["noise_multiplier"] - 26.3796) < 1e-3
    assert np.isclose(row["sensitivity"], 2 * 1.0 / 1000)
    assert np.isclose(row["noise_std"], row["noise_multiplier"] * 2 / 1000)


@each_ight
def test_epsilon_inf_is_the_algorithm_without_noise(name):
    X, y = data(name)
    settings = dict(max_iter=20, learning_rate=0.1, n_nonzero_coefs=3)
    model = make(name, epsilon=np.inf, clip_norm=np.inf, refit=0, **settings).fit(X, y)
    exact = without_noise(name, tol=0, **settings).fit(X, y)
    assert np.array_equal(model.coef_, exact.coef_)
    assert model.privacy_.guarantee == "none"
    assert model.privacy_.epsilon == np.inf
    clipped = make(name, epsilon=np.inf, clip_norm=1e6, refit=0, **settings).fit(X, y)
    assert np.allclose(clipped.coef_, exact.coef_, atol=1e-3)


@pytest.mark.parametrize("name", sorted(EXACT))
def test_non_private_classes_take_no_privacy_parameters(name):
    assert not {"epsilon", "delta", "adjacency", "unit", "accountant"} & set(ALL[name]().get_params())
    X, y = data(name)
    assert not hasattr(make(name).fit(X, y), "privacy_")


@every
def test_no_partial_fit_warm_start_n_jobs_or_balanced_weights(name):
    model = ALL[name]()
    assert not hasattr(model, "partial_fit")
    assert not {"warm_start", "n_jobs"} & set(model.get_params())
    if "class_weight" in model.get_params():
        with pytest.raises(ValueError, match="would read the class counts"):
            model.set_params(class_weight="balanced").fit(None, None)


@having("penalty", "clip_norm")
def test_half_the_noise_is_caught_by_the_recheck(name, monkeypatch):
    """The shipped fit with one thing replaced: the mechanism adds half of the planned noise."""
    X, y = data(name, n=200)
    honest = grid.gaussian_grid
    make(name, max_iter=20).fit(X, y)
    monkeypatch.setattr(grid, "gaussian_grid", lambda bounded, z, *rest: honest(bounded, z / 2, *rest))
    with pytest.raises(PrivacyAccountingError, match="bug in skdp"):
        make(name, max_iter=20).fit(X, y)


@pytest.mark.parametrize("batch_size", ["auto", 10])
@having("batch_size", "sampling")
def test_a_hopeless_plan_of_batches_is_refused_before_anything_is_spent(name, batch_size):
    X, y = data(name, n=40, d=500)
    accountant = skdp.BudgetAccountant(1.0, 1e-3, allow_seeded=True)
    seen = []
    model = make(
        name, epsilon=1e-6, delta=1e-6, max_iter=100, batch_size=batch_size, accountant=accountant,
        callback=lambda *released: seen.append(released),
    )  # fmt: skip
    with pytest.raises(UnsupportedAccounting, match="too small for so many noisy values"):
        model.fit(X, y)
    assert (seen, accountant.spent()) == ([], (0.0, 0.0))


@pytest.mark.parametrize("name", sorted(THRESHOLDING | {cls.__name__ for cls in COUNTERPARTS.values()}))
def test_coef_init_is_where_the_fit_starts(name):
    X, y = np.zeros((60, 5)), np.zeros(60)
    start = np.arange(5.0)
    tiny = dict(max_iter=1, learning_rate=1e-12, fit_intercept=False)
    model = make(name, coef_init=start, **tiny).fit(X, y)
    assert np.allclose(model.coef_.ravel(), start, atol=1e-9)
    with pytest.raises(ValueError, match="coef_init"):
        make(name, coef_init=np.zeros(3)).fit(X, y)


@pytest.mark.parametrize("name", sorted(set(PRIVATE) & RECORDS_ONLY))
def test_group_unit_is_refused_where_nothing_proves_it(name):
    X, y = data(name)
    with pytest.raises(ValueError, match="unit='group'"):
        make(name, unit="group").fit(X, y, groups=np.repeat(np.arange(20), 3))


@each_grouped
def test_group_unit(name):
    X, y = data(name)
    groups = np.repeat(np.arange(20), 3)
    model = make(name, unit="group").fit(X, y, groups=groups)
    assert model.privacy_.unit == "group"
    assert model.privacy_.public["n_groups"] == 20
    renamed = make(name, unit="group").fit(X, y, groups=[f"p{g:03d}" for g in groups])
    assert np.array_equal(learned(renamed), learned(model))


@each_private
def test_zero_out_uses_the_same_plan_with_a_zeroed_record(name):
    X, y = data(name)
    X0, y0 = X.copy(), y.copy()
    X0[0], y0[0] = 0, 0
    a, b = (make(name, adjacency="zero-out").fit(u, v) for u, v in ((X, y), (X0, y0)))
    if name != "DPAGDClassifier":  # its steps follow from released numbers
        assert a.n_iter_ == b.n_iter_
    assert a.privacy_.public == b.privacy_.public
    keys = ("noise_multiplier", "epsilon", "count", "purpose")

    def planned(value):  # a released scale may change the last bit of a multiplier
        return f"{value:.12g}" if isinstance(value, float) else value

    def rows(model):  # a search for the scale ends when its answers are as small as their noise
        searches = [{**r, "count": 1} if r["purpose"] == "scale" else r for r in model.privacy_.mechanisms]
        if name in ADDITIVE:  # which columns get curves, and so what follows, is decided by the wide gradient
            last = max(i for i, row in enumerate(searches) if row["purpose"] == "wide gradient")
            searches = searches[: last + 1]
        return [[planned(row.get(k)) for k in keys] for row in searches]

    assert rows(a) == rows(b)


@having("n_public")
def test_add_remove_needs_a_public_n(name):
    X, y = data(name)
    with pytest.raises(ValueError, match="n_public"):
        make(name, adjacency="add-remove").fit(X, y)
    settings = dict(adjacency="add-remove", n_public=60)
    a = make(name, **settings).fit(X, y)
    b = make(name, **settings).fit(X[:-1], y[:-1])
    assert "n_records" not in a.privacy_.public
    assert a.privacy_.public == b.privacy_.public
    if name != "DPAGDClassifier":  # its steps follow from released numbers
        assert a.n_iter_ == b.n_iter_


# ------------------------------------------------------------------ with the rest of scikit-learn


# tests/around looks for the warnings of what wraps a fit.
@pytest.mark.filterwarnings("ignore:.* around this fit")
@pytest.mark.filterwarnings("ignore:FunctionTransformer before this fit may learn")
@pytest.mark.parametrize("cls", [DPIGHTClassifier, pytest.param(IGHTClassifier, marks=pytest.mark.thorough)])
def test_meta_estimators(cls):
    X, y = data("DPIGHTClassifier", n=200)
    params = {"epsilon": 50.0, "delta": 1e-4, "random_state": 0} if cls is DPIGHTClassifier else {}
    model = cls(classes=(0, 1), **params)
    assert SelectFromModel(model, max_features=2, threshold=-np.inf).fit(X, y).transform(X).shape[1] == 2
    assert CalibratedClassifierCV(model, cv=3).fit(X, y).predict_proba(X).shape == (200, 2)
    assert StackingClassifier([("a", model)], model, cv=3).fit(X, y).score(X, y) > 0.5
    pipe = make_pipeline(FunctionTransformer(np.tanh), model).fit(X, y)
    assert pipe.score(X, y) > 0.5
    columns = ColumnTransformer([("all", "passthrough", slice(0, 5))])
    assert make_pipeline(columns, model).fit(X, y).score(X, y) > 0.5
    three = data("DPIGHTClassifier", n=200, n_classes=3)
    ovr = OneVsRestClassifier(cls(classes=(0, 1), **params)).fit(*three)
    assert ovr.predict(three[0]).shape == (200,)


# The next test looks for this warning.
@pytest.mark.filterwarnings("ignore:GridSearchCV, a search, chooses")
@pytest.mark.parametrize("cls", [DPIGHTRegressor, pytest.param(IGHTRegressor, marks=pytest.mark.thorough)])
def test_grid_search(cls):
    X, y = data("DPIGHTRegressor", n=200)
    params = {"epsilon": 50.0, "random_state": 0} if cls is DPIGHTRegressor else {}
    search = GridSearchCV(cls(**params), {"n_nonzero_coefs": [2, 5]}, cv=3).fit(X, y)
    assert search.best_params_["n_nonzero_coefs"] == 5


@pytest.mark.slow
# tests/around looks for the warnings of splitters.
@pytest.mark.filterwarnings("ignore:.* from fold to fold")
@each_private
def test_a_search_is_named_as_unpaid(name):
    X, y = data(name)
    search = GridSearchCV(make(name), {"epsilon": [1.0, 2.0]}, cv=KFold(2))
    with pytest.warns(PrivacyLeakWarning, match="search"):
        search.fit(X, y)
    assert any("no epsilon covers the choice" in a for a in search.best_estimator_.privacy_.leaks)
    alone = make(name).fit(X, y)
    assert not any("covers the choice" in a for a in alone.privacy_.leaks)


# scikit-learn warns that its splitters do not use the groups.
@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
@each_grouped
def test_groups_are_dropped_by_scikit_learn_and_we_say_so(name):
    X, y = data(name)
    groups = np.repeat(np.arange(20), 3)
    model = make(name, unit="group")
    with (
        pytest.warns(PrivacyLeakWarning, match="one group moves others from fold to fold"),
        pytest.raises(ValueError, match="set_fit_request"),
    ):
        cross_val_score(model, X, y, groups=groups, cv=3, error_score="raise")
    with pytest.raises(ValueError, match="unit='group'"):
        make(name).fit(X, y, groups=groups)


@having("max_weight", names=set(PRIVATE) - RECORDS_ONLY)
def test_groups_and_weights_routed(name):
    X, y = data(name)
    groups = np.repeat(np.arange(20), 3)
    pipe = make_pipeline(FunctionTransformer(), make(name, unit="group", max_weight=1.0))
    step = f"{name.lower()}__"
    pipe.fit(X, y, **{step + "groups": groups, step + "sample_weight": np.ones(60)})
    assert pipe[-1].privacy_.unit == "group"
    with sklearn.config_context(enable_metadata_routing=True):
        model = make(name, unit="group", max_weight=1.0)
        model.set_fit_request(groups=True, sample_weight=True)
        model.set_score_request(sample_weight=False)
        from sklearn.model_selection import cross_validate

        with pytest.warns(PrivacyLeakWarning, match="one group moves others from fold to fold"):
            found = cross_validate(
                model,
                X,
                y,
                params={"groups": groups, "sample_weight": np.ones(60)},
                cv=3,
                error_score="raise",
                return_estimator=True,
            )
        assert all(m.privacy_.unit == "group" for m in found["estimator"])
