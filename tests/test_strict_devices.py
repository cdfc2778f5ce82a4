"""Every estimator on arrays of a device, with every option: it fits, predicts and scores, or refuses unspent.

Strict arrays stand for CuPy's, and the CUDA sources are compiled for the host. Nothing here runs on a device.
"""

import inspect
import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier
from sklearn.model_selection import GridSearchCV, KFold

from skdp.exceptions import UnsupportedAccounting
from skdp.nn import AdaFEST, RandomSparsification, RecursiveMomentum, SparseSelection
from skdp.privacy import BudgetAccountant
from tests import strict_arrays
from tests.gpu_sources.host_kernels import OneLane, compiler
from tests.test_contract import ALL, NETS, TEXT, VOCABULARY, make

N, D = 60, 6
METHODS = ("predict", "predict_proba", "predict_log_proba", "decision_function", "transform")
CURE = re.compile("NumPy array|asnumpy")  # what a refusal must say: where the data could be instead
# Words that are not tried: engines are other processes, architectures need images of 28 x 28 pixels and are made
# of the layers of tests/nn/test_devices.py, and the others change public numbers only: noise, steps, divisors.
SKIPPED = {
    "engine", "architecture", "unit", "adjacency", "schedule", "activation", "epsilon_of", "version",
}  # fmt: skip
WEIGHT, GROUPS = np.linspace(0.1, 1.0, N), np.arange(N) // 2
# Values that are no words, with what `fit` gets besides; each for the classes that have all these parameters.
MORE = [
    ({"max_weight": 1.0}, {"sample_weight": WEIGHT}),
    ({"unit": "group"}, {"groups": GROUPS}),
    ({"unit": "group", "max_rows_per_group": 1}, {"groups": GROUPS}),
    ({"unit": "group", "clipping": "one-by-one"}, {"groups": GROUPS}),
    ({"weighting": "record"}, {"owners": GROUPS % 3}),
    ({"adjacency": "add-remove", "n_public": N}, {}),
    ({"class_weight": {0: 1.0, 1: 2.0}}, {}),
    ({"n_nonzero_coefs": 2}, {}),
    ({"n_nonzero_coefs": 2, "solver": "ight"}, {}),
    ({"n_hits": 2, "split": "optimal"}, {"batch_groups": GROUPS}),
    ({"fit_intercept": False}, {}),
    ({"max_iter": 4}, {}),
    ({"max_iter": 3, "batch_size": 20}, {}),
    ({"input_range": None}, {}),
    ({"gradient_estimator": RecursiveMomentum()}, {}),
    ({"gradient_estimator": RandomSparsification(rate=0.5)}, {}),
    ({"gradient_estimator": SparseSelection()}, {}),
    ({"gradient_estimator": AdaFEST()}, {}),
    ({"validation": "rows"}, {}),
    ({"public_X": "rows"}, {}),
    ({"with_mean": False}, {}),
]


@pytest.fixture(scope="module")
def compiled(tmp_path_factory):
    if compiler() is None:
        pytest.skip("no C++ compiler")
    return OneLane(tmp_path_factory.mktemp("kernels"), compiler())


def data(name):
    X = np.random.default_rng(0).uniform(-1, 1, size=(N, D))
    y = (X[:, 0] > 0).astype(int) if is_classifier(ALL[name]()) else X[:, 0]
    return (1.0 + np.floor(np.abs(X) * (VOCABULARY - 1)) if name in TEXT else X), y


def known(name):
    return inspect.signature(ALL[name]).parameters


def words(name, parameter):
    """The values of a parameter that are words, as the refusal of a wrong one lists them."""
    X, y = data(name)
    with pytest.raises((TypeError, ValueError)) as told:
        made(name, {parameter: "?"}).fit(X, y)
    listed, _, got = str(told.value).rpartition(", got '?'")
    return re.findall(r"'([^']+)'", listed) if not got.startswith("?") else []


def made(name, options, accountant=False):
    ours = {"accountant": accountant, "random_state": None, "epsilon": 20.0}
    if name in NETS and name not in TEXT:
        ours["input_range"] = (-1, 1)
    return make(name, **{k: v for k, v in ours.items() if k in known(name)} | options)


def settings(name):
    """Pairs of parameters and of what `fit` gets besides."""
    yield {}, {}
    if name in TEXT:
        return  # refused when the ids are read, whatever the options
    for parameter, default in ((p.name, p.default) for p in known(name).values()):
        if isinstance(default, str) and parameter not in SKIPPED:
            yield from (({parameter: word}, {}) for word in words(name, parameter) if word != default)
    yield from ((more, rows) for more, rows in MORE if set(more) <= set(known(name)))


def brought(value, bring):
    return bring(value) if isinstance(value, np.ndarray) else value


def dense(values):
    values = values.toarray() if sp.issparse(values) else values
    return strict_arrays.MODULE.asnumpy(values)


def run(name, options, rows, bring, form):
    """Fit, predict and score where ``bring`` puts arrays. What was refused, or None; and whether it was paid."""
    X, y = data(name)
    options = {
        k: ((form(X), bring(y)) if k == "validation" else form(X)) if v == "rows" else v
        for k, v in options.items()
    }
    accountant = BudgetAccountant(1000.0, 1e-2)
    model = made(name, options, accountant)
    try:
        model.fit(form(X), bring(y), **{k: bring(v) for k, v in rows.items()})
    except (TypeError, ValueError, UnsupportedAccounting) as error:
        return error, accountant.spent() != (0.0, 0.0)
    for method in METHODS:
        if hasattr(model, method):
            found = getattr(model, method)(form(X))
            host = getattr(model, method)(X)
            found, host = map(dense, (found, host))
            np.testing.assert_allclose(found, host, rtol=1e-4, atol=1e-4)
    if hasattr(model, "score"):
        score = model.score(form(X), bring(y), sample_weight=bring(WEIGHT))
        assert type(score) is float
        assert score == pytest.approx(model.score(X, y, sample_weight=WEIGHT), rel=1e-5, abs=1e-3)
        assert model.score(form(X), y) == pytest.approx(model.score(X, y), rel=1e-5, abs=1e-3)
    return None, True


def look(name, options, rows, cupy, form):
    """Refused alike on the host, or refused for the device unspent, or all works."""
    refused, paid = run(name, options, rows, cupy.asarray, form)
    if refused is None:
        return "fits"
    assert not paid, refused
    on_host, _ = run(name, options, rows, np.asarray, np.asarray)
    if on_host is not None:
        assert str(on_host) == str(refused)
        return "refused everywhere"
    assert CURE.search(str(refused)), refused
    return "refused on a device"


@pytest.mark.thorough
@pytest.mark.parametrize("name", sorted(ALL))
def test_a_device_does_it_or_refuses_it_unspent(compiled, name):
    with strict_arrays.installed(compiled) as cupy, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = [look(name, *setting, cupy, cupy.asarray) for setting in settings(name)]
        look(name, {}, {}, cupy, lambda X: cupy.asarray(X.astype(np.float32)))
        look(name, {}, {}, cupy, lambda X: strict_arrays.csr_matrix(sp.csr_matrix(X)))
    # Steps before a fit and texts are read on the host; a model that takes no device at all would be noticed here.
    assert ("fits" in found) == (name not in TEXT and not hasattr(ALL[name], "transform"))


def test_a_search_scores_on_a_device(compiled, monkeypatch):
    """scikit-learn divides rows by NumPy indices, which CuPy brings to the device; strict arrays refuse them."""
    strict = strict_arrays.ndarray.__getitem__

    def chosen(self, key):
        parts = key if isinstance(key, tuple) else (key,)
        return strict(self, tuple(brought(part, strict_arrays.MODULE.asarray) for part in parts))

    X, y = data("DPGDClassifier")
    model = made("DPGDClassifier", {"max_iter": 3})
    with strict_arrays.installed(compiled) as cupy, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        monkeypatch.setattr(strict_arrays.ndarray, "__getitem__", chosen)
        for target in (y, cupy.asarray(y)):
            search = GridSearchCV(model, {"alpha": [0.1, 0.01]}, cv=KFold(2), error_score="raise")
            found = search.fit(cupy.asarray(X), target).cv_results_["mean_test_score"]
            assert np.isfinite(found).all()
