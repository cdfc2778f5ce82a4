"""Seeds are for tests: they warn, accountants refuse them, and two different fits of one seed share no noise."""

import copy
import inspect
import itertools
import json
import math
import os
import pickle
import subprocess
import sys
import types
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.linear_model import Ridge

import skdp
from skdp import BudgetAccountant, DPIGHTClassifier, DPIGHTRegressor, DPSLKTRegressor, PrivacySession
from skdp.datasets import make_sparse_regression
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning
from skdp.linear_model.auto.fit import AutoFit
from skdp.losses import HuberLoss, LogisticLoss, SquaredLoss
from skdp.privacy import BoundedStatistic
from skdp.privacy.budget import carried_accountant, read_ledger
from skdp.privacy.seed_context import seed_context
from tests import texts
from tests.kinds import of_each_kind

ALL = dict(skdp.all_estimators())
PRIVATE = sorted(name for name in ALL if "epsilon" in inspect.signature(ALL[name]).parameters)
D = 40
X, Y = make_sparse_regression(2000, D, n_informative=4, random_state=0)
SEEDS = {
    "int": 3,
    "numpy int": np.int64(3),
    "RandomState": np.random.RandomState(3),
    "Generator": np.random.default_rng(3),
}
each_seed = pytest.mark.parametrize("seed", SEEDS.values(), ids=SEEDS)


def poked(array, place=(700, 7), by=1e-12):
    """A copy that differs in one entry, where NumPy's repr shows dots."""
    array = array.copy()
    array[place[: array.ndim]] += by
    return array


# ------------------------------------------------------------------ no noise is shared

PUBLIC = np.random.default_rng(1).normal(size=(1500, D))
PAIRS = {
    "public_X": (DPSLKTRegressor, "public_X", PUBLIC, poked(PUBLIC)),
    "sparse public_X": (
        DPSLKTRegressor, "public_X", sp.csr_matrix(PUBLIC), sp.csr_matrix(poked(PUBLIC)),
    ),
    "coef_init": (DPIGHTRegressor, "coef_init", np.zeros(D), poked(np.zeros(D), (7,))),
    "coef_init as a list": (DPIGHTRegressor, "coef_init", [0.0] * D, [0.0] * (D - 1) + [1e-12]),
}  # fmt: skip


@pytest.mark.parametrize("pair", PAIRS.values(), ids=PAIRS)
def test_the_difference_of_two_models_does_not_cancel_the_noise(pair):
    cls, name, one, other = pair
    common = {"epsilon": 1.0, "delta": 1e-6, "random_state": 0}
    a, again, b = (cls(**common, **{name: value}).fit(X, Y).coef_ for value in (one, one, other))
    assert np.array_equal(a, again)
    # One noise would leave a difference of the size of the poke, 1e-12.
    assert np.abs(a - b).max() > 1e-4


def first_words(model):
    return model._open_session()._keys.commit().words(4).tolist()


def test_long_classes_that_print_alike_share_no_noise():
    labels = np.arange(1500)
    other = labels.copy()
    other[700] = 5000
    assert repr(labels) == repr(other)
    a, again, b = (
        first_words(DPIGHTClassifier(classes=which, random_state=0)) for which in (labels, labels.copy(), other)
    )
    assert a == again != b


def test_no_two_classes_share_noise():
    """Their parameters have different names, so the contexts of one seed differ."""
    assert len({seed_context(ALL[name]()._noise_parameters()) for name in PRIVATE}) == len(PRIVATE)


class Scale:
    """A value that scikit-learn and skdp know nothing of."""

    def __init__(self, factor):
        self.factor = factor

    def __repr__(self):
        return "Scale(...)"


class NoPickle(Scale):
    def __reduce__(self):
        raise RuntimeError("not today")


def frame(**columns):
    return pd.DataFrame({"a": [1, 2, 3], **columns})


def power(exponent):
    return lambda x: x**exponent


LONG = np.linspace(0.0, 1.0, 3000)
# Pairwise different: every other line prints like its neighbour, or is equal to it for NumPy.
VALUES = [
    None, "None", True, 1, 1.0, np.float64(1.0), np.float32(1.0), np.int64(1), "1", b"1", -0.0, 0.0,
    0.1, np.float32(0.1), math.inf, "inf", math.nan, "nan", 1 + 0j,
    (), [], "()", {}, set(), frozenset(), (1,), [1], ((1,),), [(1,)], (1, (2, 3)), ((1, 2), 3), "(1,)",
    np.array([0, 1]), [0, 1], (0, 1), "array([0, 1])", np.array([[0, 1]]), np.array([0, 1], dtype=np.int32),
    np.array([0.0, 1.0]), np.array([-0.0, 1.0]), np.array(["a", "b"]), np.array(["a", "b"], dtype=object),
    np.array(["a', 'b"]), ["a", "b"], np.array([0.123456789012]), np.array([0.123456789013]),
    np.zeros((0, 3)), np.zeros((3, 0)), LONG, poked(LONG), LONG.astype(np.float32), LONG[::-1],
    np.ma.array([1.0, 2.0], mask=[0, 1]), np.ma.array([1.0, 2.0], mask=[1, 0]),
    np.array(["2020-01-01"], dtype="M8[D]"), np.array(["2020-01-01"], dtype="M8[s]"),
    sp.csr_matrix([[0.0, 1.0]]), sp.csr_matrix([[1.0, 0.0]]), sp.csr_matrix([[0.0, 1.0, 0.0]]),
    sp.csr_matrix([[0, 1]]),
    frame(), frame(a=[1, 2, 4]), frame(b=[1, 2, 3]), frame(a=[1.0, 2.0, 3.0]), frame().set_index("a"),
    frame(a=pd.Categorical([1, 2, 3])), frame(a=pd.Categorical([1, 2, 3], categories=[3, 2, 1])),
    pd.Series([1, 2]), pd.Series([1, 2], name="a"), pd.Series([1, 2], index=[1, 0]), pd.Index([1, 2]),
    stats.norm(), stats.norm(0.0, 1.0), stats.norm(0, 2), stats.norm(loc=0, scale=2), stats.uniform(0, 2),
    stats.rv_histogram(([1, 2], [0, 1, 2]))(), stats.rv_histogram(([2, 1], [0, 1, 2]))(),
    HuberLoss(1.0), HuberLoss(2.0), LogisticLoss(), SquaredLoss(), repr(SquaredLoss()),
    Ridge(), Ridge(alpha=2.0), Ridge().fit([[1.0], [2.0]], [1.0, 2.0]),
    {"a": 1}, {"a": 2}, {"b": 1}, {"a": {"b": 1}}, {1: 2}, {"a": LONG}, {"a": poked(LONG)}, {1, 2}, {1, 3},
    power(2), power(3), lambda x: x, lambda x: -x, np.log, np.exp, Scale, Scale(1), Scale(2),
]  # fmt: skip


def test_contexts_tell_values_apart():
    contexts = [seed_context({"value": value}) for value in VALUES]
    for (i, a), (j, b) in itertools.combinations(enumerate(contexts), 2):
        assert a != b, (VALUES[i], VALUES[j])
    # Beside a parameter that is hashed, plain ones stay apart as well.
    hashed = {seed_context({"value": value, "public_X": LONG}) for value in VALUES}
    assert len(hashed) == len(VALUES)
    assert all(len(context) == 33 and context[0] == 0 for context in hashed)
    names = [seed_context({name: 1, "public_X": LONG}) for name in ("a", "b")]
    assert names[0] != names[1]


def test_contexts_of_equal_values_are_equal():
    for value in VALUES:
        assert seed_context({"value": value}) == seed_context({"value": copy.deepcopy(value)}), value
    halves = sp.csr_matrix((np.array([0.5, 0.5]), np.array([1, 1]), np.array([0, 2])), shape=(1, 2))
    assert seed_context({"a": halves}) == seed_context({"a": sp.csr_matrix([[0.0, 1.0]])})
    assert halves.nnz == 2  # not changed on the way


def test_what_has_no_pickle_or_holds_itself_is_unlike_everything():
    ring = [1]
    ring.append(ring)
    for value in (NoPickle(1), ring):
        assert seed_context({"value": value}) != seed_context({"value": value})


LOSS = """
class Own:
    name, smoothness, table = "own", {smoothness}, {{"slope": {entry}}}

    def value(self, z, y):
        return abs(z - y) {more}

    def derivative(self, z, y):
        return {slope} * SLOPE * (z > y) + helper(z)
"""


def own_loss(monkeypatch, smoothness=1.0, entry=1.0, more="", slope=2, helped=0.0, number=1.0):
    """A loss that is written anew under its old name, as in a notebook."""
    notebook = types.ModuleType("notebook")
    monkeypatch.setitem(sys.modules, "notebook", notebook)
    notebook.SLOPE = number
    exec(f"def helper(z):\n    return {helped}", vars(notebook))
    exec(LOSS.format(smoothness=smoothness, entry=entry, more=more, slope=slope), vars(notebook))
    return notebook.Own()


def test_two_losses_of_one_name_have_different_contexts(monkeypatch):
    others = (
        {}, {"smoothness": 2.0}, {"entry": 2.0}, {"more": "+ 1"}, {"slope": 3}, {"helped": 1.0}, {"number": 2.0}
    )  # fmt: skip
    found = [seed_context({"loss": own_loss(monkeypatch, **changes)}) for changes in others]
    assert len(set(found)) == len(others)
    assert seed_context({"loss": own_loss(monkeypatch)}) == found[0]


def test_a_loss_that_may_not_be_looked_at_is_unlike_all_others():
    class Own:
        def value(self, z, y):
            return z

        derivative = value

        def __getstate__(self):
            raise RuntimeError("private")

    assert seed_context({"loss": Own()}) != seed_context({"loss": Own()})


def test_print_options_have_no_influence():
    pairs = ((np.array([1.25, 2.0]), np.array([1.26, 2.0])), (np.arange(9), poked(np.arange(9), (4,), 1)))
    for one, other in pairs:
        usual = seed_context({"a": one})
        with np.printoptions(precision=1, threshold=3, edgeitems=1, legacy="1.13"):
            assert usual == seed_context({"a": one}) != seed_context({"a": other})


@pytest.mark.slow
def test_another_process_has_the_same_contexts():
    code = (
        "import json, sys; sys.path.insert(0, 'tests'); from skdp.privacy.seed_context import seed_context as c\n"
        "import numpy as np, pandas as pd, scipy.sparse as sp; from scipy import stats\n"
        "from skdp.losses import HuberLoss\n"
        "values = [stats.norm(0, 2), HuberLoss(1.0), {'x', 'y', 'z'}, np.linspace(0, 1, 3000),\n"
        "          pd.DataFrame({'a': ['x', 'y']}), sp.eye_array(4, format='csr')]\n"
        "print(json.dumps([c({'value': value}).hex() for value in values]))"
    )
    found = set()
    for seed in ("1", "2"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        out = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        found.add(tuple(json.loads(out.stdout)))
    assert len(found) == 1


@pytest.mark.parametrize("name", PRIVATE)
def test_plain_parameters_are_spelled_out(name):
    """Two versions draw the same where a fit's parameters have the same names and values."""
    params = {
        key: value
        for key, value in ALL[name]().get_params().items()
        if key
        not in (
            "accountant",
            "random_state",
            "verbose",
            "callback",
            "coef_init",
            "class_weight",
            "validation",
            "bounded",
            "feature_bounds",
            "monotone",
            "categories",
        )
        # Not there in earlier versions.
        and (key, value) != ("loss", "logistic")
        and (not (issubclass(ALL[name], AutoFit) and is_regressor(ALL[name]())) or key not in {"y_bounds", "C"})
    }
    assert seed_context(ALL[name]()._noise_parameters()) == repr(sorted(params.items())).encode()


def test_streams_of_plain_parameters_stay():
    assert first_words(DPIGHTClassifier(random_state=0)) == STREAMS["default"]
    labels = np.unique([1.0, 0.0, 1.0])  # as in examples/utility_tables.py
    assert first_words(DPIGHTClassifier(classes=labels, random_state=0)) == STREAMS["labels"]


# Drawn on 27 November 2026, when the parameters got the names that they have.
STREAMS = {
    "default": [6445202824495622365, 3239988181137060203, 15851785440584093035, 4061017899280262129],
    "labels": [10203485719309867525, 1470493799441433620, 11637426531424094305, 13078608897210578496],
}


# ------------------------------------------------------------------ a warning, and accountants


def caught(call):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        call()
    return [w for w in found if str(w.message).startswith("random_state is a seed")]


@pytest.mark.parametrize("name", of_each_kind(PRIVATE, pytest.mark.thorough))
def test_a_seeded_fit_warns_once(name):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 5)), rng.normal(size=60)
    labels = is_classifier(ALL[name]())
    y = (y > 0).astype(int) if labels else y
    more = {"classes": (0, 1)} if labels else {}
    more.update(texts.required(ALL[name]))
    X = texts.ids(X) if texts.required(ALL[name]) else X
    (warning,) = caught(lambda: ALL[name](random_state=0, **more).fit(X, y))
    assert warning.category is PrivacyLeakWarning
    assert warning.filename == __file__
    assert "subtract the noise" in str(warning.message)
    assert "random_state=None" in str(warning.message)
    assert not caught(lambda: ALL[name](**more).fit(X, y))


def test_without_noise_nobody_warns_or_refuses():
    y = (Y > 0).astype(int)
    assert not caught(lambda: DPIGHTRegressor(epsilon=math.inf, random_state=0).fit(X, Y))
    assert not caught(lambda: skdp.STORMClassifier(max_iter=2, random_state=0).fit(X, y))
    with BudgetAccountant(1.0, 1e-5) as accountant:
        skdp.STORMClassifier(max_iter=2, random_state=0).fit(X, y)
        PrivacySession.without_privacy(random_state=0)
    assert accountant.ledger() == []


@each_seed
@pytest.mark.parametrize("how", ["given", "ambient", "carried"])
def test_an_accountant_refuses_a_seed_before_anything_is_read(how, seed):
    accountant = BudgetAccountant(5.0, 1e-5)
    model = DPIGHTRegressor(random_state=seed, accountant=accountant if how == "given" else None)
    if how == "carried":
        with accountant:
            state = model.__getstate__()
        state["_ambient_accountant"].home = "another process"
        model = pickle.loads(pickle.dumps(clone(model)))
        model.__setstate__(pickle.loads(pickle.dumps(state)))  # as in a worker that got it in a pickle
        assert carried_accountant(model) is accountant

    def fit():
        with pytest.raises(PrivacyBudgetExceeded, match="allow_seeded=True"):
            model.fit(object(), None)

    if how == "ambient":
        with accountant:
            assert not caught(fit)
    else:
        assert not caught(fit)  # an error says it all
    assert accountant.ledger() == []
    model.random_state = None
    if how == "given":
        model.fit(X, Y)
        assert [row["estimator"] for row in accountant.ledger()] == ["DPIGHTRegressor"]


@each_seed
def test_a_ledger_for_tests_admits_seeds_and_says_so(seed, tmp_path):
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(5.0, 1e-5, path=path, allow_seeded=True)
    model = DPIGHTRegressor(epsilon=0.5, accountant=accountant)
    assert len(caught(lambda: model.set_params(random_state=seed).fit(X, Y))) == 1
    model.set_params(random_state=None).fit(X, Y)
    names = ["DPIGHTRegressor (seeded, for testing only)", "DPIGHTRegressor"]
    assert [row["estimator"] for row in accountant.ledger()] == names
    assert [row["estimator"] for row in read_ledger(path)["fits"]] == names


def test_the_file_remembers_what_it_admits(tmp_path):
    for name, allowed in (("tests", True), ("real", False)):
        path = tmp_path / name
        accountant = BudgetAccountant(5.0, 1e-5, path=path, allow_seeded=allowed)
        assert BudgetAccountant(5.0, 1e-5, path=path, allow_seeded=allowed) == accountant
        with pytest.raises(ValueError, match="was made with allow_seeded"):
            BudgetAccountant(5.0, 1e-5, path=path, allow_seeded=not allowed)
    with pytest.raises(TypeError, match="allow_seeded must be True or False"):
        BudgetAccountant(5.0, 1e-5, allow_seeded=1)


def test_where_warnings_are_errors_nothing_is_charged():
    accountant = BudgetAccountant(5.0, 1e-5, allow_seeded=True)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        with pytest.raises(PrivacyLeakWarning, match="random_state is a seed"):
            DPIGHTRegressor(random_state=0, accountant=accountant).fit(X, Y)
    assert [row["state"] for row in accountant.ledger()] == ["returned"]


def test_a_session_of_ones_own_warns_and_is_refused():
    def total(**more):
        with PrivacySession(epsilon=1.0, delta=0.0, random_state=0, **more) as session:
            session.laplace(BoundedStatistic([3.0], l1=1.0), epsilon=0.5)

    assert len(caught(total)) == 1
    with pytest.raises(PrivacyBudgetExceeded, match="seed"):
        total(accountant=BudgetAccountant(5.0, 1e-5))


@pytest.mark.parametrize(
    ("seed", "error"), [("7", TypeError), (True, TypeError), (1.5, TypeError), (-1, ValueError)]
)
def test_a_bad_seed_is_refused_before_the_data_are_read(seed, error):
    accountant = BudgetAccountant(5.0, 1e-5, allow_seeded=True)
    with pytest.raises(error, match="random_state must be"):
        DPIGHTRegressor(random_state=seed, accountant=accountant).fit(object(), None)
    assert accountant.ledger() == []


def test_a_range_is_spelled_out_as_ever():
    """The README's figures on MNIST declare classes=range(10): their streams must not change."""
    assert seed_context({"classes": range(10)}) == b"[('classes', range(0, 10))]"
    assert seed_context({"classes": "range(0, 10)"}) == b"[('classes', 'range(0, 10)')]"
