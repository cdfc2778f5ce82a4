"""What scikit-learn puts around a fit is told from the classes on the call stack, and from no data."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from joblib import parallel_config
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer, TransformedTargetRegressor
from sklearn.decomposition import PCA
from sklearn.ensemble import (
    AdaBoostClassifier,
    AdaBoostRegressor,
    BaggingClassifier,
    BaggingRegressor,
    StackingClassifier,
    StackingRegressor,
    VotingClassifier,
)
from sklearn.feature_extraction.text import CountVectorizer, HashingVectorizer, TfidfVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.frozen import FrozenEstimator
from sklearn.impute import SimpleImputer
from sklearn.kernel_approximation import Nystroem, RBFSampler
from sklearn.model_selection import (
    FixedThresholdClassifier,
    GridSearchCV,
    TunedThresholdClassifierCV,
)
from sklearn.pipeline import FeatureUnion, Pipeline, make_pipeline
from sklearn.preprocessing import (
    FunctionTransformer,
    KBinsDiscretizer,
    MinMaxScaler,
    Normalizer,
    OneHotEncoder,
    PolynomialFeatures,
    StandardScaler,
)
from sklearn.random_projection import GaussianRandomProjection
from sklearn.semi_supervised import SelfTrainingClassifier

from skdp import BudgetAccountant, DPIGHTClassifier, DPIGHTRegressor, PublicBinsEncoder
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] > 0).astype(int)
SETTINGS = {"epsilon": 5.0, "delta": 1e-6, "clip_norm": 1.0, "learning_rate": 0.5, "max_iter": 5}


class Weighted(DPIGHTClassifier):
    """A signature that AdaBoostClassifier accepts; it refuses skdp's own."""

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


def leaks(call):
    """Warnings about leaks, without those of the seed."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    found = [w for w in found if issubclass(w.category, PrivacyLeakWarning)]
    return [w for w in found if not str(w.message).startswith("random_state is a seed")]


Y_PART = np.where(np.arange(200) < 100, Y, -1)
META = {
    "BaggingClassifier": (BaggingClassifier(classifier(), n_estimators=2), Y, "repeats records"),
    "BaggingRegressor": (BaggingRegressor(regressor(), n_estimators=2), X[:, 1], "repeats records"),
    "AdaBoostClassifier": (
        AdaBoostClassifier(classifier(Weighted), n_estimators=2), Y, "repeats or weights records",
    ),
    "AdaBoostRegressor": (
        AdaBoostRegressor(regressor(), n_estimators=2), X[:, 1], "repeats or weights records",
    ),
    "StackingClassifier": (StackingClassifier([("a", classifier())], cv=2), Y, "last estimator"),
    "StackingRegressor": (StackingRegressor([("a", regressor())], cv=2), X[:, 1], "last estimator"),
    "TunedThresholdClassifierCV": (TunedThresholdClassifierCV(classifier(), cv=2), Y, "threshold"),
    "CalibratedClassifierCV": (CalibratedClassifierCV(classifier(), cv=2), Y, "calibrator"),
    "SelfTrainingClassifier": (
        SelfTrainingClassifier(classifier(), threshold=0.6, max_iter=2), Y_PART, "labels records",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", META)
def test_a_meta_estimator_is_named_once_in_every_fit(name, reports):
    model, y, words = META[name]
    found = leaks(lambda: model.fit(X, y))
    assert len(found) == len(reports) > 0
    for warning, report in zip(found, reports):
        text = str(warning.message)
        assert text.startswith(f"{name} around this fit")
        assert words in text
        assert text.endswith("the report says so")
        assert warning.filename == __file__
        assert text.removesuffix("; the report says so") in report.assumptions


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
    model, y, _ = META.get(name, (SILENT.get(name), Y, ""))
    leaks(lambda: model.fit(X, y))
    if fits is None:
        fits = model.n_iter_ + 1  # the rounds, and one at the end
    assert len(reports) == fits
    assert ["seeded" in report.noise for report in reports] == [seeded] * fits


def test_adaboost_refuses_a_classifier_whose_fit_does_not_name_weights(reports):
    with pytest.raises(ValueError, match="sample_weight"):
        AdaBoostClassifier(classifier(), n_estimators=2).fit(X, Y)
    assert reports == []


SILENT = {
    "subsets without copies": BaggingClassifier(
        classifier(), n_estimators=2, bootstrap=False, max_samples=0.5
    ),
    "VotingClassifier": VotingClassifier([("a", classifier())]),
    "FixedThresholdClassifier": FixedThresholdClassifier(classifier(), threshold=0.3),
    "alone": classifier(),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_makes_plain_fits_is_not_named(name, reports):
    assert leaks(lambda: SILENT[name].fit(X, Y)) == []
    assert not any("around this fit" in line for report in reports for line in report.assumptions)


def test_a_search_over_a_pipeline_names_both():
    pipe = Pipeline([("scale", StandardScaler()), ("model", classifier())])
    search = GridSearchCV(pipe, {"model__epsilon": [1.0, 2.0]}, cv=2, refit=True)
    texts = [str(w.message) for w in leaks(lambda: search.fit(X, Y))]
    assert sum("a scikit-learn search chose" in text for text in texts) == 1  # the refit
    assert sum(text.startswith("StandardScaler learnt") for text in texts) == 5
    lines = search.best_estimator_["model"].privacy_.assumptions
    assert any("no epsilon covers the choice" in line for line in lines)
    assert any(line.startswith("StandardScaler learnt") for line in lines)


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


class Unknown:
    """Not of scikit-learn's base classes."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X


MISSING = X.copy()
MISSING[3, 1] = np.nan
TEXT = np.array(["rain and sun", "sun"] * 100, dtype=object)
CODES = (X > 0).astype(int)
LEARN = {
    "StandardScaler": (StandardScaler(), X),
    "MinMaxScaler": (MinMaxScaler(), X),
    "PCA": (PCA(2), X),
    "SimpleImputer": (SimpleImputer(), MISSING),
    "SimpleImputer with indicator": (
        SimpleImputer(strategy="constant", fill_value=0.0, add_indicator=True), MISSING,
    ),
    "TfidfVectorizer": (TfidfVectorizer(), TEXT),
    "TfidfVectorizer, given words": (TfidfVectorizer(vocabulary=["rain", "sun"]), TEXT),
    "CountVectorizer": (CountVectorizer(), TEXT),
    "OneHotEncoder": (OneHotEncoder(), CODES),
    "OneHotEncoder that counts": (OneHotEncoder(categories=[[0, 1]] * 4, min_frequency=2), CODES),
    "KBinsDiscretizer": (KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), X),
    "SelectKBest": (SelectKBest(k=2), X),
    "Nystroem": (Nystroem(n_components=5), X),
    "Undeclared": (Undeclared(), X),
    "Unknown": (Unknown(), X),
    "PCA in a union": (FeatureUnion([("a", PCA(2)), ("b", Normalizer())]), X),
    "PCA in columns": (ColumnTransformer([("a", PCA(1), [0, 1]), ("b", "drop", [2, 3])]), X),
    "PCA in a pipeline": (make_pipeline(Normalizer(), PCA(2)), X),
}  # fmt: skip
PUBLIC = {
    "nothing": ("passthrough", X),
    "FunctionTransformer": (FunctionTransformer(np.tanh), X),
    "Normalizer": (Normalizer(), X),
    "HashingVectorizer": (HashingVectorizer(n_features=16), TEXT),
    "PublicBinsEncoder": (PublicBinsEncoder(bins=(-1.0, 0.0, 1.0)), X),
    "PolynomialFeatures": (PolynomialFeatures(2), X),
    "GaussianRandomProjection": (GaussianRandomProjection(3), X),
    "RBFSampler": (RBFSampler(n_components=5), X),
    "FrozenEstimator": (FrozenEstimator(StandardScaler().fit(X[:50])), X),
    "StandardScaler that does nothing": (StandardScaler(with_mean=False, with_std=False), X),
    "SimpleImputer with a constant": (SimpleImputer(strategy="constant", fill_value=0.0), MISSING),
    "CountVectorizer, given words": (CountVectorizer(vocabulary=["rain", "sun"]), TEXT),
    "TfidfVectorizer without idf": (TfidfVectorizer(vocabulary=["rain", "sun"], use_idf=False), TEXT),
    "OneHotEncoder with given categories": (OneHotEncoder(categories=[[0, 1]] * 4), CODES),
    "Declared": (Declared(), X),
    "columns": (
        ColumnTransformer([("a", Normalizer(), [0, 1]), ("b", "passthrough", [2]), ("c", "drop", [3])]),
        X,
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", LEARN)
def test_an_earlier_step_that_learnt_is_named(name):
    step, data = LEARN[name]
    pipe = Pipeline([("learn", step), ("model", classifier())])
    (warning,) = leaks(lambda: pipe.fit(data, Y))
    word = name.split()[0].rstrip(",")
    line = f"{word} learnt from these records before this fit: no epsilon covers that"
    assert str(warning.message) == f"{line}; the report says so"
    assert line in pipe["model"].privacy_.assumptions


@pytest.mark.parametrize("name", PUBLIC)
def test_an_earlier_step_that_learns_nothing_is_not(name):
    step, data = PUBLIC[name]
    pipe = Pipeline([("public", step), ("model", classifier())])
    assert leaks(lambda: pipe.fit(data, Y)) == []
    assert not any("learnt from" in line for line in pipe["model"].privacy_.assumptions)


@pytest.mark.parametrize("learns", [True, False])
def test_a_target_that_was_transformed(learns):
    how = (
        {"transformer": StandardScaler()}
        if learns
        else {"func": np.arcsinh, "inverse_func": np.sinh}
    )
    model = TransformedTargetRegressor(regressor(), **how)
    assert len(leaks(lambda: model.fit(X, X[:, 1]))) == learns


def test_several_steps_are_named_in_one_warning():
    pipe = make_pipeline(SimpleImputer(), StandardScaler(), Normalizer(), classifier())
    (warning,) = leaks(lambda: pipe.fit(X, Y))
    assert str(warning.message).startswith("SimpleImputer, StandardScaler learnt")


# ------------------------------------------------------------------ what an ensemble does


def test_bagging_seeds_every_copy_with_31_bits_and_an_accountant_refuses():
    with pytest.warns(PrivacyLeakWarning, match="BaggingClassifier around this fit"):
        bag = BaggingClassifier(classifier(), n_estimators=3).fit(X, Y)
    seeds = [model.random_state for model in bag.estimators_]
    assert all(isinstance(seed, int) and 0 <= seed < 2**31 for seed in seeds)
    assert all("seeded" in model.privacy_.noise for model in bag.estimators_)
    with (
        BudgetAccountant(100.0, 1e-3) as accountant,
        pytest.raises(PrivacyBudgetExceeded, match="seed"),
    ):
        BaggingClassifier(classifier(), n_estimators=3).fit(X, Y)
    assert accountant.ledger() == []


@pytest.mark.slow
def test_frames_are_not_on_the_stack_of_a_worker():
    """What the guide says of them; the seed is seen all the same."""
    bag = BaggingClassifier(classifier(), n_estimators=2, n_jobs=2)
    with parallel_config("threading"):
        found = leaks(lambda: bag.fit(X, Y))
    assert found == []
    with BudgetAccountant(100.0, 1e-3), pytest.raises(PrivacyBudgetExceeded, match="seed"):
        bag.fit(X, Y)


# ------------------------------------------------------------------ records

ONCE = "each record appears once: resampling, oversampling or augmentation before fit multiplies"
ONE_GROUP = "all rows of one person carry one group"


@pytest.mark.parametrize("unit", ["record", "group"])
def test_a_report_says_that_a_person_is_there_once(unit):
    groups = {"groups": np.repeat(np.arange(50), 4)} if unit == "group" else {}
    lines = classifier(unit=unit).fit(X, Y, **groups).privacy_.assumptions
    assert sum(line.startswith(ONCE) for line in lines) == (unit == "record")
    assert sum(line.startswith(ONE_GROUP) for line in lines) == (unit == "group")


@pytest.mark.parametrize("sparse", [False, True])
def test_copies_of_a_record_change_no_warning_no_report_and_no_message(sparse, capsys):
    """To look for them would be an output that nothing pays for."""

    def everything(X, y):
        steps = []
        model = classifier(
            clip_norm="adaptive", learning_rate="auto", max_iter="auto", verbose=True,
            callback=lambda *released: steps.append(np.shape(released[-1])), random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model.fit(sp.csr_matrix(X) if sparse else X, y)
        said = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
        texts = [(w.category, str(w.message)) for w in found]
        return texts, model.privacy_.assumptions, model.privacy_.public, len(steps), len(said)

    usual = everything(X, Y)
    copies = X.copy(), Y.copy()
    for array in copies:
        array[1:] = array[:1]
    assert everything(*copies) == usual
    one = copy.deepcopy((X, Y))
    one[0][1], one[1][1] = one[0][0], one[1][0]
    assert everything(*one) == usual


def test_a_transformer_that_keeps_what_it_learnt_under_another_name_is_seen():
    class Centre(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.mean = X.mean(axis=0)
            return self

        def transform(self, X):
            return X - self.mean

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    pipe = make_pipeline(Centre(), DPIGHTClassifier(classes=(0, 1)))
    with pytest.warns(PrivacyLeakWarning, match="Centre learnt from these records"):
        report = pipe.fit(X, y)[-1].privacy_
    lines = " ".join(report.assumptions)
    assert "Centre learnt" in lines
    assert "did not learn" not in lines  # one of the two, not both
