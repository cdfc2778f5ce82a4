"""`sample_weight` in `fit`: None everywhere, weights where a bound is declared, and nothing spent otherwise."""

import inspect
import warnings
from contextlib import suppress

import numpy as np
import pytest
import sklearn
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import AdaBoostClassifier, BaggingClassifier
from sklearn.utils.validation import has_fit_parameter

import skdp
from skdp import BudgetAccountant, DPIGHTClassifier, DPWord2Vec
from tests.kinds import of_each_kind

ALL = dict(skdp.all_estimators())
SIGNATURES = {name: inspect.signature(cls).parameters for name, cls in ALL.items()}
WEIGHTED = sorted(name for name in ALL if "max_weight" in SIGNATURES[name])
PRIVATE = sorted(name for name in ALL if "epsilon" in SIGNATURES[name])
EXACT = {"IGHTClassifier", "IGHTRegressor", "STORMClassifier"}  # take weights, and have no bound
each = pytest.mark.parametrize("name", sorted(ALL))
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int)


def make(name, **params):
    settings = {"classes": (0, 1), "random_state": 0, "max_iter": 2, "vocabulary_size": 9, "max_length": 4}
    settings["hidden_layer_sizes"] = (2,)
    return ALL[name](**{k: v for k, v in {**settings, **params}.items() if k in SIGNATURES[name]})


def data(name):
    model = ALL[name]()
    target = Y if is_classifier(model) else X[:, 0] if is_regressor(model) else None
    return (np.abs(X) // 0.5 % 9 if "vocabulary_size" in SIGNATURES[name] else X), target


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", of_each_kind(ALL, pytest.mark.thorough))
def test_none_is_no_weights(name):
    table, target = data(name)
    model = make(name).fit(table, target, sample_weight=None)
    assert model.n_features_in_ == 4
    if hasattr(model, "fit_transform"):
        assert model.fit_transform(table, target, sample_weight=None).shape[0] == 60


def test_none_is_no_weights_of_words(monkeypatch):
    def read(self, X, y=None, groups=None):
        raise LookupError("read")

    monkeypatch.setattr(DPWord2Vec, "read", read)
    with pytest.raises(LookupError):
        DPWord2Vec().fit([["a", "b"]], groups=[0], sample_weight=None)
    with pytest.raises(TypeError, match="'sample_weight': this method has no weighted form"):
        DPWord2Vec().fit([["a", "b"]], groups=[0], sample_weight=[1.0])


@each
def test_weights_that_are_not_taken_are_refused_before_anything_is_reserved(name):
    table, target = data(name)
    if name in EXACT:
        assert make(name).fit(table, target, sample_weight=np.ones(60)).n_features_in_ == 4
        return
    kind, words = (ValueError, "max_weight=") if name in WEIGHTED else (TypeError, "weighted form")
    accountant = BudgetAccountant(10.0, 1e-3)
    with pytest.raises(kind, match=f"sample_weight.*{words}"):
        make(name, accountant=accountant).fit(table, target, sample_weight=np.ones(60))
    assert accountant.ledger() == []


@each
def test_the_signature_names_weights_where_they_are_taken(name):
    assert has_fit_parameter(ALL[name], "sample_weight") == (name in WEIGHTED)
    model = make(name)
    assert not has_fit_parameter(model, "sample_weight")
    assert "sample_weight :" not in inspect.getdoc(model.fit)
    assert ("sample_weight :" in ALL[name].fit.__doc__) == (name in WEIGHTED)
    if name in WEIGHTED:
        model.set_params(max_weight=2.0)
        assert has_fit_parameter(model, "sample_weight")
        assert has_fit_parameter(clone(model), "sample_weight")
        assert inspect.getdoc(model.fit).count("sample_weight :") == 1
        with sklearn.config_context(enable_metadata_routing=True):
            assert model.set_fit_request(sample_weight=True) is model


def seen_by(monkeypatch, run):
    """The weights and the numbers of rows that fits were given."""
    found, real = [], DPIGHTClassifier.read

    def read(self, X, y=None, groups=None, **more):
        found.append((more.get("sample_weight"), len(X)))
        return real(self, X, y, groups, **more)

    monkeypatch.setattr(DPIGHTClassifier, "read", read)
    run()
    return found


@pytest.mark.parametrize("bound", [None, 3.0])
def test_what_scikit_learn_hands_to_a_model_follows_the_declaration(monkeypatch, bound):
    model = make("DPIGHTClassifier", epsilon=5.0, max_weight=bound, max_iter=5)
    weights = RNG.uniform(1, 2, 60)
    calibrated = CalibratedClassifierCV(model, cv=2, ensemble=False)
    found = seen_by(monkeypatch, lambda: calibrated.fit(X, Y, sample_weight=weights))
    assert [given is not None for given, _ in found] == [bound is not None] * 3
    if bound is not None:
        assert np.array_equal(found[-1][0], weights)
    bagging = BaggingClassifier(model, n_estimators=2, max_samples=0.5, bootstrap=False)
    found = seen_by(monkeypatch, lambda: bagging.fit(X, Y))
    assert [n for _, n in found] == ([30] * 2 if bound is None else [60] * 2)
    boosted = AdaBoostClassifier(model, n_estimators=2)
    if bound is None:
        with pytest.raises(ValueError, match="sample_weight"):
            boosted.fit(X, Y)
    else:

        def boost():
            with suppress(ValueError):  # "worse than random", as a noisy model may be
                boosted.fit(X, Y)

        found = seen_by(monkeypatch, boost)
        assert len(found) >= 1
        assert all(given is not None for given, _ in found)


def test_the_exact_mutant_takes_none_and_refuses_what_it_does_not_know():
    from skdp import IGHTClassifier

    model = IGHTClassifier(classes=(0, 1), max_iter=2)
    plain, none = clone(model).fit(X, Y), clone(model).fit(X, Y, sample_weight=None)
    assert np.array_equal(plain.coef_, none.coef_)
    with pytest.raises(TypeError, match="unexpected keyword argument 'weight'"):
        model.fit(X, Y, weight=None)


def test_a_read_that_names_weights_takes_them_in_its_own_way():
    class Own(DPIGHTClassifier):
        def read(self, X, y=None, groups=None, sample_weight=None):
            self.told = sample_weight
            return super().read(X, y, groups)

    model = Own(classes=(0, 1), max_iter=2, random_state=0).fit(X, Y, sample_weight=np.ones(60))
    assert model.told.sum() == 60
