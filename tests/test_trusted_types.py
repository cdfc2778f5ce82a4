"""`skdp.trusted_types`: files of skops with any estimator are read with this list, and with no type less."""

import inspect
import warnings

import numpy as np
import pytest
from sklearn.base import is_classifier, is_regressor
from sklearn.pipeline import make_pipeline

import skdp
from skdp import nn
from skdp.losses import HuberLoss, Loss
from skdp.model_selection import DPRandomizedSearch
from tests.kinds import of_each_kind

sio = pytest.importorskip("skops.io")
ALL = dict(skdp.all_estimators())
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 4))
Y = (X[:, 0] > 0).astype(int)
NET = {"classes": (0, 1), "max_iter": 2, "random_state": 0}
CLIP = {"clip_norm": 1.0, "learning_rate": 0.1, "max_iter": 2}


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def again(model):
    """The model, from a file of skops that needs every type of skdp in it to be trusted."""
    blob, trusted = sio.dumps(model), skdp.trusted_types()
    needed = sio.get_untrusted_types(data=blob)
    assert needed != []
    assert set(needed) <= set(trusted)
    return sio.loads(blob, trusted=trusted)


@pytest.mark.parametrize("name", of_each_kind(ALL, pytest.mark.thorough))
def test_every_estimator(name):
    settings = {**NET, "vocabulary_size": 9, "max_length": 4, "hidden_layer_sizes": (2,)}
    known = inspect.signature(ALL[name]).parameters
    model = ALL[name](**{k: v for k, v in settings.items() if k in known})
    table = np.abs(X) // 0.5 % 9 if "vocabulary_size" in known else X
    target = Y if is_classifier(model) else X[:, 0] if is_regressor(model) else None
    found = again(model.fit(table, target))
    method = "predict" if hasattr(model, "predict") else "transform"
    ours, theirs = getattr(model, method)(table), getattr(found, method)(table)
    assert np.array_equal(*(v.toarray() if hasattr(v, "toarray") else v for v in (ours, theirs)))
    assert getattr(found, "privacy_", None) == getattr(model, "privacy_", None)


def special():
    layers = [nn.Dense(4), nn.ScaledTanh(), nn.LayerNorm(), nn.Rescaling(2.0), nn.Dense(2)]
    image = [nn.Conv2D(2, 1), nn.GroupNorm(1), nn.AvgPool2D(1), nn.MaxPool2D(1), nn.Flatten(), nn.Dense(2)]
    return {
        "layers": skdp.DPNetworkClassifier(network=nn.Sequential(layers, frozen=[0]), **NET),
        "images": skdp.DPNetworkClassifier(network=nn.Sequential(image), image_shape=(2, 2), **NET),
        "loss": skdp.DPSparseERM(loss=HuberLoss(1.0), max_iter=2),
        "part of a ledger": skdp.DPIGHTClassifier(
            classes=(0, 1), accountant=skdp.BudgetAccountant(10.0, 1e-3).disjoint("train")[0], **CLIP
        ),
        "accountant": skdp.DPIGHTClassifier(
            classes=(0, 1), accountant=skdp.BudgetAccountant(10.0, 1e-3), **CLIP
        ),
        "momentum": skdp.DPMLPClassifier(
            gradient_estimator=nn.RecursiveMomentum(), optimizer=nn.SGD(momentum=0.0), **NET
        ),
        "sparsification": skdp.DPMLPClassifier(gradient_estimator=nn.RandomSparsification(0.5), **NET),
        "bins": skdp.PublicBinsEncoder(bins={0: [0, 1]}, categories={1: [0, 1]}, crosses=[(0, 1)]),
        "search": DPRandomizedSearch(skdp.DPLogisticRegression(classes=(0, 1)), {"C": [1.0, 0.1]}),
        "pipeline": make_pipeline(skdp.DPStandardScaler(), skdp.DPIGHTRegressor(**CLIP)),
        "generator": skdp.DPIGHTRegressor(random_state=np.random.default_rng(0), **CLIP),
    }  # fmt: skip


@pytest.mark.parametrize("name", special())
def test_parts_and_parameters(name):
    model = special()[name].fit(X, Y)
    found = again(model)
    assert repr(found.get_params(deep=False).keys()) == repr(model.get_params(deep=False).keys())
    if hasattr(model, "predict"):
        assert np.array_equal(found.predict(X), model.predict(X))


def test_a_fit_inside_a_block_of_an_accountant():
    with skdp.BudgetAccountant(10.0, 1e-3):
        model = skdp.DPIGHTClassifier(classes=(0, 1), **CLIP).fit(X, Y)
        assert np.array_equal(again(model).coef_, model.coef_)


def test_words():
    words = [["a", "b", "c", "a"]] * 200
    model = skdp.DPWord2Vec(epsilon=4.0, vocabulary=["a", "b", "c"], vector_size=2, max_iter=2, random_state=0)
    found = again(model.fit(words, groups=range(200)))
    assert found.privacy_ == model.privacy_


class Mine(Loss):
    """A loss of a user's."""

    name, lipschitz, smoothness, task, n_outputs = "mine", 1.0, 1.0, "regression", 1

    def value(self, z, y):
        return np.abs(z - y)

    def derivative(self, z, y):
        return np.sign(z - y)


def test_what_is_not_of_skdp_is_not_trusted():
    assert all(name.startswith("skdp.") for name in skdp.trusted_types())
    model = skdp.DPSparseERM(loss=Mine(), max_iter=2).fit(X, X[:, 0])
    with pytest.raises(Exception, match="Mine"):
        sio.loads(sio.dumps(model), trusted=skdp.trusted_types())
