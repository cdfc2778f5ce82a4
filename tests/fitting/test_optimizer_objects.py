"""``optimizer=``, ``clipping=`` and ``gradient_estimator=``: words, objects, grids and the words that are gone."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import ParameterGrid

from skdp import BudgetAccountant, DPLSSGDClassifier, DPMLPClassifier, DPSGDClassifier, DPSGDRegressor, DPWord2Vec
from skdp.fitting.optimizers import Rule, rule_of
from skdp.nn import SGD, Adam, Microbatch, Projections

RNG = np.random.default_rng(0)
# The nets here learn nothing: what is looked at are the words of their constructors.
pytestmark = pytest.mark.filterwarnings("ignore:.* are few for a net")
X, Y = RNG.uniform(-1, 1, (60, 3)), RNG.integers(0, 2, 60)
COMMON = {"classes": (0, 1), "max_iter": 3, "random_state": 0}


@pytest.mark.parametrize("cls", [DPMLPClassifier, DPSGDClassifier, DPLSSGDClassifier])
@pytest.mark.parametrize(("word", "made"), [("sgd", SGD()), ("adam", Adam())], ids=str)
def test_a_word_is_the_object_with_its_defaults(monkeypatch, cls, word, made):
    monkeypatch.setattr("skdp.base.fit.seed_context", lambda params: b"")  # other parameters draw other noise
    one, other = (cls(optimizer=o, **COMMON).fit(X, Y) for o in (word, made))
    assert np.array_equal(one.predict_proba(X), other.predict_proba(X))
    assert one.privacy_.mechanisms == other.privacy_.mechanisms


def test_auto_is_of_the_family_and_numbers_are_kept():
    assert rule_of("sgd", "linear", None) == Rule("sgd", 0.9, "linear", 0.0, None)
    assert rule_of("adam", "constant", 6.0) == Rule("adam", 0.9, "constant", 0.0, 6.0)
    own = SGD(momentum=0.5, schedule="inverse", average=None, smoothing=2.0)
    assert rule_of(own, "constant", 6.0) == Rule("sgd", 0.5, "inverse", 2.0, None)
    assert rule_of(Adam(beta_1=0.3, average=1), "linear", None).momentum == 0.3


def test_parts_are_set_in_a_grid_and_cloned():
    """A grid names them as scikit-learn does; a clone has objects of its own, and a fit changes none."""
    model = DPMLPClassifier(optimizer=SGD(), clipping=Microbatch(size=4), **COMMON)
    seen = []
    for params in ParameterGrid({"optimizer__momentum": [0.0, 0.7], "clipping__size": [2, 5]}):
        copy = clone(model).set_params(**params).fit(X, Y)
        seen.append((copy.optimizer.momentum, copy.clipping.size, *copy.parameters_[:3]))
        assert copy.privacy_.public["microbatch_size"] == params["clipping__size"]
    assert len(set(seen)) == 4
    assert (model.optimizer.momentum, model.clipping.size) == (0.9, 4)
    assert repr(model.optimizer) == "SGD()"


@pytest.mark.parametrize("cls", [DPMLPClassifier, DPSGDRegressor, DPWord2Vec])
def test_old_words_are_refused_with_the_new_one(cls):
    for old, new in cls._gone.items():
        with pytest.raises(TypeError, match=f"unexpected keyword argument '{old}': give") as told:
            cls(**{old: None})
        assert new in str(told.value)


BAD = [
    ({"optimizer": "rmsprop"}, ValueError, "optimizer must be one of"),
    ({"optimizer": SGD}, TypeError, "optimizer must be one of"),
    ({"optimizer": Adam(beta_1=1.0)}, ValueError, r"optimizer__beta_1 must be in \[0, 1\)"),
    ({"optimizer": SGD(schedule="cyclic")}, ValueError, "optimizer__schedule must be one of"),
    ({"optimizer": SGD(average=-1.0)}, ValueError, "optimizer__average must be >= 0"),
    ({"clipping": "microbatch"}, ValueError, r"or an object Microbatch\(...\)"),
    ({"clipping": Microbatch(size=0)}, ValueError, "clipping__size must be >= 1"),
    ({"clipping": Projections(n_projections=1.5)}, TypeError, "clipping__n_projections must be an int"),
    ({"gradient_estimator": None}, TypeError, "gradient_estimator must be one of"),
    ({"gradient_estimator": "median"}, ValueError, "gradient_estimator must be one of"),
]


@pytest.mark.parametrize(("params", "error", "message"), BAD, ids=lambda value: str(value)[:40])
def test_what_is_no_word_or_object_is_refused_before_anything_is_spent(params, error, message):
    accountant = BudgetAccountant(2.0, 1e-3)
    with pytest.raises(error, match=message):
        DPMLPClassifier(accountant=accountant, classes=(0, 1), **params).fit(X, Y)
    assert accountant.spent() == (0.0, 0.0)


@pytest.mark.parametrize("model", [DPSGDClassifier(), DPLSSGDClassifier()], ids=str)
def test_tensors_are_smoothed_in_nets_alone(model):
    model.set_params(optimizer=SGD(smoothing=1.0), **COMMON)
    with pytest.raises(ValueError, match="optimizer__smoothing is for nets"):
        model.fit(X, Y)
    with pytest.raises(ValueError, match="optimizer__smoothing is for nets"):
        DPWord2Vec(optimizer=Adam(smoothing=1.0)).fit([["a", "b"]] * 9, groups=range(9))
