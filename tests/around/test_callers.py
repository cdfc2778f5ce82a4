"""Callers of a fit: the safe ones are safe, by replaced records; all others are named before anything is spent."""

import warnings

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
    VotingRegressor,
)
from sklearn.feature_selection import RFE, RFECV, SelectFromModel, SequentialFeatureSelector
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import RANSACRegressor
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV, KFold, TunedThresholdClassifierCV
from sklearn.multiclass import OneVsOneClassifier, OneVsRestClassifier, OutputCodeClassifier
from sklearn.multioutput import ClassifierChain, MultiOutputClassifier, MultiOutputRegressor, RegressorChain
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler
from sklearn.semi_supervised import SelfTrainingClassifier
from sklearn.utils import get_tags

from skdp import (
    BudgetAccountant,
    DPIGHTClassifier,
    DPIGHTRegressor,
    DPLinearRegression,
    DPLogisticRegression,
    DPSGDClassifier,
    DPStandardScaler,
)
from skdp.around.callers import _SAFE, _WORDS
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning
from tests.around.leaks import leak_warnings as leaks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 4))
Y = (X[:, 0] > 0).astype(int)
Y_PART = np.where(np.arange(120) < 60, Y, -1)
Y3 = np.digitize(X[:, 0], [-0.5, 0.5])
TWO = np.stack([Y, 1 - Y], axis=1)
SETTINGS = {"epsilon": 5.0, "delta": 1e-6, "clip_norm": 1.0, "learning_rate": 0.5, "max_iter": 2}


class Weighted(DPIGHTClassifier):
    """A signature that AdaBoostClassifier accepts."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y)


def classifier(cls=DPIGHTClassifier, **params):
    return cls(**{**SETTINGS, "classes": (0, 1), **params})


def regressor(**params):
    return DPIGHTRegressor(**{**SETTINGS, **params})


@pytest.fixture
def reports(monkeypatch):
    """Reports of all fits, also of those that nobody keeps."""
    kept = []
    real = DPIGHTClassifier._report

    def keep(self, *args):
        kept.append(real(self, *args))
        return kept[-1]

    for cls in (DPIGHTClassifier, DPIGHTRegressor):
        monkeypatch.setattr(cls, "_report", keep)
    return kept


class Unknown(ClassifierMixin, BaseEstimator):
    def __init__(self, estimator=None):
        self.estimator = estimator

    def fit(self, X, y):
        self.estimator.fit(X, y)
        return self


class Declared(Unknown):
    learns_from_data = False


class Searching(Unknown):
    """As the searches of other libraries: no base class of scikit-learn's."""

    cv, refit, scoring = 3, True, None


# Of two fits or folds each.
NAMED = {
    "BaggingClassifier": (BaggingClassifier(classifier(), n_estimators=2), Y, "repeats records"),
    "BaggingRegressor": (BaggingRegressor(regressor(), n_estimators=2), X[:, 1], "repeats records"),
    "subsets without copies": (
        BaggingClassifier(classifier(), n_estimators=2, bootstrap=False, max_samples=0.5), Y, "renumbers",
    ),
    "AdaBoostClassifier": (AdaBoostClassifier(classifier(Weighted), n_estimators=2), Y, "weights records"),
    "AdaBoostRegressor": (AdaBoostRegressor(regressor(), n_estimators=2), X[:, 1], "weights records"),
    "StackingClassifier": (StackingClassifier([("a", classifier())], cv=2), Y, "last estimator"),
    "StackingRegressor": (StackingRegressor([("a", regressor())], cv=2), X[:, 1], "last estimator"),
    "VotingClassifier": (VotingClassifier([("a", classifier())]), Y, "renumbers the labels"),
    "TunedThresholdClassifierCV": (TunedThresholdClassifierCV(classifier(), cv=2), Y, "threshold"),
    "CalibratedClassifierCV": (CalibratedClassifierCV(classifier(), cv=2), Y, "calibrator"),
    "SelfTrainingClassifier": (
        SelfTrainingClassifier(classifier(), threshold=0.6, max_iter=2), Y_PART, "labels records",
    ),
    "OneVsRestClassifier": (OneVsRestClassifier(classifier()), Y3, "shows the label set"),
    "OneVsOneClassifier": (OneVsOneClassifier(classifier()), Y3, "how many have them"),
    "OutputCodeClassifier": (
        OutputCodeClassifier(classifier(classes=(-1, 1)), random_state=0), Y3, "code word",
    ),
    "RANSACRegressor": (RANSACRegressor(regressor(), min_samples=60, max_trials=2), X[:, 1], "by their errors"),
    "RFE": (RFE(classifier(), n_features_to_select=3), Y, "many fits"),
    "RFECV": (RFECV(classifier(), cv=2, min_features_to_select=3), Y, "non-private scores"),
    "SequentialFeatureSelector": (
        SequentialFeatureSelector(classifier(), n_features_to_select=1, cv=2), Y, "non-private scores",
    ),
    "Unknown": (Unknown(classifier()), Y, "is not known to give each record once"),
    "ClassifierChain": (ClassifierChain(classifier(), cv=2), TWO, "use cv=None"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMED)
def test_a_caller_that_is_not_safe_is_named_once_and_in_every_report(name, reports):
    model, y, words = NAMED[name]
    (warning,) = leaks(lambda: model.fit(X, y))
    text = str(warning.message)
    assert text.startswith(f"{type(model).__name__} around this fit")
    assert words in text
    assert text.endswith("; the report says so")
    assert warning.filename == __file__
    assert len(reports) > 0
    for report in reports:
        assert text.removesuffix("; the report says so") in report.leaks
        assert not any("did not learn" in line for line in report.assumptions)


@pytest.mark.parametrize("name", NAMED)
def test_a_warning_that_is_an_error_spends_nothing(name):
    model, y, _ = NAMED[name]
    with BudgetAccountant(100.0, 1e-3, allow_seeded=True) as accountant, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.filterwarnings("error", category=PrivacyLeakWarning, message=".* around this fit")
        with pytest.raises(PrivacyLeakWarning):
            model.fit(X, y)
    assert accountant.ledger() == []


def test_each_outer_call_is_warned_of():
    bag = BaggingClassifier(classifier(), n_estimators=2)

    def thrice():
        for _ in range(3):
            bag.fit(X, Y)

    assert len(leaks(thrice)) == 3


def test_a_search_by_its_properties(reports):
    (first, second) = leaks(lambda: Searching(classifier()).fit(X, Y))
    assert str(first.message).startswith("Searching, a search, chooses hyper-parameters")
    for tool in ("model_selection.DPRandomizedSearch", "model_selection.train_test_split", "metrics.evaluate"):
        assert f"skdp.{tool}" in str(first.message)
    assert str(second.message).startswith("StratifiedKFold, the default")
    assert any("no epsilon covers the choice" in line for line in reports[0].leaks)


def test_a_search_over_a_pipeline_names_both():
    pipe = Pipeline([("scale", StandardScaler()), ("model", classifier())])
    search = GridSearchCV(pipe, {"model__epsilon": [1.0, 2.0]}, cv=KFold(2))
    texts = [str(w.message) for w in leaks(lambda: search.fit(X, Y))]
    assert [text.split()[0] for text in texts] == ["GridSearchCV,", "StandardScaler"]
    lines = search.best_estimator_["model"].privacy_.leaks
    assert any("no epsilon covers the choice" in line for line in lines)
    assert any(line.startswith("StandardScaler learnt") for line in lines)


def test_what_is_inside_a_safe_caller_is_named():
    inner = MultiOutputClassifier(BaggingClassifier(classifier(), n_estimators=2))
    (warning,) = leaks(lambda: inner.fit(X, TWO))
    assert str(warning.message).startswith("BaggingClassifier")


def test_a_subclass_of_a_safe_caller_is_not_known():
    class Mine(FixedThresholdClassifier):
        pass

    (warning,) = leaks(lambda: Mine(classifier(), threshold=0.3).fit(X, Y))
    assert str(warning.message).startswith("Mine around this fit is not known")


@pytest.mark.parametrize(
    ("name", "fits", "seeded"),
    [
        ("BaggingClassifier", 2, True),
        ("BaggingRegressor", 2, True),
        ("AdaBoostRegressor", 2, True),
        ("StackingClassifier", 3, False),
        ("StackingRegressor", 3, False),
        ("TunedThresholdClassifierCV", 3, False),
        ("CalibratedClassifierCV", 2, False),
        ("SelfTrainingClassifier", None, False),
        ("VotingClassifier", 1, False),
    ],
)
def test_how_often_they_fit_and_who_sets_a_seed(name, fits, seeded, reports):
    """The table of the guide: two members or two folds here, one member where the folds are two."""
    model, y, _ = NAMED[name]
    leaks(lambda: model.fit(X, y))
    if fits is None:
        fits = model.n_iter_ + 1  # the rounds, and one at the end
    assert len(reports) == fits
    assert ["seeded" in report.noise for report in reports] == [seeded] * fits


# ------------------------------------------------------------------ the safe ones


class Spy(ClassifierMixin, BaseEstimator):
    """Keeps the tables of its fits; never private."""

    tables = []

    def fit(self, X, y=None):
        kept = () if y is None else (np.asarray(y).reshape(len(X), -1),)
        Spy.tables.append(np.hstack([np.asarray(X, dtype=float), *kept]))
        self.classes_, self.coef_ = np.array([0, 1]), np.arange(X.shape[1], dtype=float)
        return self

    def transform(self, X):
        return X

    def predict(self, X):
        return (np.asarray(X)[:, 0] > 0).astype(int)

    def predict_proba(self, X):
        chance = 1 / (1 + np.exp(-np.asarray(X)[:, 0]))
        return np.stack([1 - chance, chance], axis=1)


class SpyRegressor(RegressorMixin, Spy):
    pass


def unchanged(y):
    return y


unchanged.learns_from_data = False
# By class: a safe use around an estimator and a transformer, and a target.
SAFE = {
    "Pipeline": (lambda spy: Pipeline([("a", Normalizer()), ("b", spy)]), Y),
    "FeatureUnion": (lambda spy: FeatureUnion([("a", spy), ("b", Normalizer())]), Y),
    "ColumnTransformer": (lambda spy: ColumnTransformer([("a", spy, [0, 2])]), Y),
    "TransformedTargetRegressor": (
        lambda spy: TransformedTargetRegressor(spy, func=unchanged, inverse_func=unchanged, check_inverse=False),
        X[:, 1],
    ),
    "FixedThresholdClassifier": (lambda spy: FixedThresholdClassifier(spy, threshold=0.3), Y),
    "MultiOutputClassifier": (lambda spy: MultiOutputClassifier(spy), TWO),
    "MultiOutputRegressor": (lambda spy: MultiOutputRegressor(spy), X[:, :2]),
    "ClassifierChain": (lambda spy: ClassifierChain(spy), TWO),
    "RegressorChain": (lambda spy: RegressorChain(spy, order=[1, 0]), X[:, :2]),
    "VotingRegressor": (lambda spy: VotingRegressor([("a", spy)]), X[:, 1]),
    "SelectFromModel": (lambda spy: SelectFromModel(spy, max_features=2), Y),
}
FROZEN = ("sklearn.frozen", "FrozenEstimator")  # it fits nothing
ELSEWHERE = {FROZEN, ("imblearn.pipeline", "Pipeline"), ("dask_ml.wrappers", "ParallelPostFit")}


def tables(make, rows, target):
    Spy.tables.clear()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        make(SpyRegressor() if target.dtype == float else Spy()).fit(rows, target)
    return list(Spy.tables)


def moves_others(make, target, label):
    """Whether another fourth record changes the number of fits, a shape, or more than one row of a table."""
    rows, changed = X.copy(), target.copy()
    rows[3] = 1e3
    changed[3] = label
    one, two = tables(make, X, target), tables(make, rows, changed)
    if [table.shape for table in one] != [table.shape for table in two]:
        return True
    return any((a != b).any(axis=1).sum() > 1 for a, b in zip(one, two))


def test_each_safe_caller_has_an_example():
    assert {name for _, name in set(_SAFE.table) - ELSEWHERE} == set(SAFE)


@pytest.mark.parametrize("name", SAFE)
def test_a_replaced_record_changes_one_row_of_each_table(name):
    make, target = SAFE[name]
    assert not moves_others(make, target, 1 - target[3])
    assert not moves_others(make, target, np.unique(target)[-1])


@pytest.mark.parametrize(
    ("make", "target", "label"),
    [
        (lambda spy: VotingClassifier([("a", spy)]), np.where(np.arange(120) == 3, 0, Y + 1), 2),
        (lambda spy: OneVsRestClassifier(spy), Y3, 9),
        (lambda spy: OneVsOneClassifier(spy), Y3, 2 - Y3[3]),
        (lambda spy: OutputCodeClassifier(spy, random_state=0), Y3, -1),
        (lambda spy: BaggingClassifier(spy, random_state=0, n_estimators=8), Y, 1 - Y[3]),
        (lambda spy: StackingClassifier([("a", spy)], cv=3), Y, -1),
    ],
)  # fmt: skip
def test_the_same_look_finds_what_others_do(make, target, label):
    assert moves_others(make, target, label)


@pytest.mark.parametrize("name", SAFE)
def test_a_safe_caller_is_not_named(name):
    make, target = SAFE[name]
    if name in ("FeatureUnion", "ColumnTransformer"):
        private = DPStandardScaler(epsilon=5.0, delta=1e-6)
    elif "Regress" in name:
        private = regressor()
    else:
        private = classifier()
    assert leaks(lambda: make(private).fit(X, target)) == []


PLAIN = [
    *(classifier(cls) for cls in (DPIGHTClassifier, DPLogisticRegression, DPSGDClassifier)
      if cls is DPIGHTClassifier),
    DPLogisticRegression(epsilon=2.0, delta=1e-6, classes=(0, 1)),
    DPSGDClassifier(epsilon=2.0, delta=1e-6, classes=(0, 1), max_iter=2),
    Declared(classifier()),
    make_pipeline(classifier()),
    make_pipeline(make_pipeline(Normalizer()), FixedThresholdClassifier(classifier())),
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(PLAIN)))
def test_plain_fits_are_not_named(place):
    assert leaks(lambda: PLAIN[place].fit(X, Y)) == []
    assert leaks(lambda: DPLinearRegression(epsilon=2.0, delta=1e-6).fit(X, X[:, 1])) == []


def test_the_words_are_of_classes_that_exist():
    from importlib import import_module

    for module, name in [*_SAFE.table, *_WORDS.table]:
        if module.startswith("sklearn."):
            if module == "sklearn.impute" and name == "IterativeImputer":
                import sklearn.experimental.enable_iterative_imputer  # noqa: F401
            assert isinstance(getattr(import_module(module), name), type)


# ------------------------------------------------------------------ what an ensemble does


def test_adaboost_refuses_a_classifier_whose_fit_does_not_name_weights(reports):
    with (
        pytest.warns(PrivacyLeakWarning, match="AdaBoostClassifier around this fit"),
        pytest.raises(ValueError, match="sample_weight"),
    ):
        AdaBoostClassifier(classifier(), n_estimators=2).fit(X, Y)
    assert reports == []


def test_bagging_seeds_every_copy_with_31_bits_and_an_accountant_refuses():
    with pytest.warns(PrivacyLeakWarning, match="BaggingClassifier around this fit"):
        bag = BaggingClassifier(classifier(), n_estimators=3).fit(X, Y)
    seeds = [model.random_state for model in bag.estimators_]
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 for seed in seeds)
    assert all("seeded" in model.privacy_.noise for model in bag.estimators_)
    with (
        BudgetAccountant(100.0, 1e-3) as accountant,
        pytest.warns(PrivacyLeakWarning, match="BaggingClassifier around this fit"),
        pytest.raises(PrivacyBudgetExceeded, match="seed"),
    ):
        BaggingClassifier(classifier(), n_estimators=3).fit(X, Y)
    assert accountant.ledger() == []


# ------------------------------------------------------------------ what a wrapper may look like


def test_a_released_model_in_a_frozen_estimator_is_not_fitted():
    """A calibrator of public rows around it costs nothing, and nobody writes a report."""
    released = FrozenEstimator(classifier().fit(X, Y))
    for model in (
        released,
        make_pipeline(released),
        CalibratedClassifierCV(released, cv=2),
        FixedThresholdClassifier(released),
        SelectFromModel(released, max_features=2),
    ):
        assert leaks(lambda model=model: model.fit(X, Y)) == []


class Hidden(BaseEstimator):
    """Its estimators are in a list, and `get_params` does not go into it."""

    def __init__(self, models=()):
        self.models = models

    def fit(self, X, y):
        self.fitted_ = [clone(model).fit(X - X.mean(axis=0), y) for model in self.models]
        return self

    def transform(self, X):
        return X


def test_what_is_in_lists_is_looked_at_before_anything_is_spent():
    pipe = make_pipeline(DPStandardScaler(epsilon=1.0, delta=1e-6), Hidden([classifier()]))
    with BudgetAccountant(100.0, 1e-3) as accountant, warnings.catch_warnings():
        warnings.filterwarnings("error", category=PrivacyLeakWarning)
        with pytest.raises(PrivacyLeakWarning, match="Hidden around this fit"):
            pipe.fit(X, Y)
    assert accountant.ledger() == []


class Named(Unknown):
    """Fits under other names."""

    def train(self, X, y):
        self.model_ = clone(self.estimator).fit(X, y)
        return self

    def variable(*args, **more):
        self, X, y = args
        self.model_ = clone(self.estimator).fit(X, y)
        return self


Named.fit_ = Named.train


@pytest.mark.parametrize(
    "way",
    [lambda model: model.train(X, Y), lambda model: model.variable(X, Y), lambda model: Named.fit_(model, X, Y)],
    ids=["train", "variable", "alias"],
)
def test_methods_of_other_names_are_callers_of_a_fit(way):
    model = Named(classifier())
    (warning,) = leaks(lambda: way(model))
    assert str(warning.message).startswith("Named around this fit")
    assert not any("did not learn" in line for line in model.model_.privacy_.assumptions)


def test_no_other_method_than_a_fit_is_named():
    pipe = make_pipeline(StandardScaler(), classifier())
    assert leaks(lambda: (repr(pipe), pipe._repr_html_(), clone(pipe), get_tags(pipe))) == []


class Learning(DPIGHTClassifier):
    def fit(self, X, y):
        return super().fit(X - X.mean(axis=0), y)


def test_a_subclass_that_changes_the_records_first_is_named():
    (warning,) = leaks(lambda: classifier(Learning).fit(X, Y))
    assert str(warning.message).startswith("Learning.fit, of a class outside skdp, may have learnt")

    class RowAlone(Learning):
        learns_from_data = False

    assert leaks(lambda: classifier(RowAlone).fit(X, Y)) == []


def test_functions_of_other_libraries_are_named():
    """As mlxtend.evaluate.bias_variance_decomp; the module's name is what is seen."""
    module = {"__name__": "mlxtend.evaluate.made_up"}
    exec("def decomposed(model, X, y):\n    return model.fit(X, y)", module)
    (warning,) = leaks(lambda: module["decomposed"](classifier(), X, Y))
    assert str(warning.message).startswith("a function of mlxtend around this fit")
