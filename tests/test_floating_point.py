"""No floating-point warning leaves a private fit: one record of 1e38 would show itself by "invalid value"."""

import re
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

from skdp import statistics
from skdp.base import Solution
from skdp.kernels import run_blocks
from skdp.losses import LogisticLoss
from skdp.nn import Dense, DPNetworkClassifier, Flatten, Sequential
from skdp.privacy import PrivateRecords
from skdp.privacy.expansion import Expansion
from skdp.privacy.standardization import Standardization
from tests.test_contract import ALL, TEXT, make

PRIVATE = [name for name, cls in sorted(ALL.items()) if hasattr(cls(), "epsilon")]
ROW = 7
# What one record holds, its target too, and how the table is stored: all finite.
EXTREMES = [
    (1e308, np.asarray),
    (-1e308, sp.csr_matrix),
    (5e-324, np.asarray),
    (1e38, np.float32),
    (-1e38, np.asarray),
    (1e-40, np.float32),
]


def table(value=None, n=40, d=3):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, d))
    if value is not None:
        X[ROW] = value
        X[ROW, 1] = 0.5 * value  # so that sums and differences of features overflow too
    return X


def told(call):
    """What warnings and errors say, without numbers."""
    with np.errstate(all="warn"), warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        raised = None
        try:
            call()
        except Exception as error:
            raised = error
    messages = [warning.message for warning in found] + ([] if raised is None else [raised])
    return {(type(what).__name__, re.sub(r"[-+.\de]+", "#", str(what))) for what in messages}


def test_the_measure_sees_what_numpy_warns_of():
    assert [name for name, _ in told(lambda: np.float64(1e308) * np.ones(2) * 10)] == ["RuntimeWarning"]
    assert [name for name, _ in told(lambda: np.exp(np.full(2, -800.0)))] == ["RuntimeWarning"]


@pytest.mark.thorough
@pytest.mark.parametrize("name", [name for name in PRIVATE if name not in TEXT])
def test_one_extreme_record_changes_no_warning_of_a_fit(name, monkeypatch):
    """Ids of texts are whole numbers, so they are left out. Those of a solution are of released numbers."""
    monkeypatch.setattr(Solution, "warnings", property(lambda self: (), lambda self, value: None))
    labels = is_classifier(ALL[name]())
    usual = {}
    for value, form in EXTREMES:
        X, extreme = table(), table(value)
        y = (X[:, 0] > 0).astype(int) if labels else X[:, 0]
        target = y.copy()
        if not labels:
            target[ROW] = value

        def fit(X, y):
            return lambda: make(name, epsilon=50.0).fit(X, y)

        if form not in usual:
            usual[form] = told(fit(form(X), y))
        assert told(fit(form(extreme), target)) == usual[form]
        assert "RuntimeWarning" not in {kind for kind, _ in usual[form]}


@pytest.mark.parametrize("name", [name for name, cls in sorted(ALL.items()) if hasattr(cls, "transform")])
def test_one_extreme_record_changes_no_warning_of_a_step_before_a_fit(name):
    X, options = table(d=16), {
        "PublicBinsEncoder": {"bins": {column: [-0.5, 0.5] for column in range(16)}},
        "PublicScaler": {"bounds": (-1, 1)},
        "ScatteringTransform": {"image_shape": (4, 4), "J": 1},
    }  # fmt: skip
    step, largest = (ALL[name](**options.get(name, {})), 1e15 if name == "ScatteringTransform" else np.inf)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        step.fit(X)
    for value, form in EXTREMES:
        if form is sp.csr_matrix and name != "PublicScaler":
            form = np.asarray  # the other steps take no sparse tables, or do not centre them
        both = form(X), form(np.clip(table(value, d=16), -largest, largest))
        usual, found = (told(lambda rows=rows: step.transform(rows)) for rows in both)
        assert found == usual
        assert "RuntimeWarning" not in {kind for kind, _ in usual}


@pytest.mark.parametrize("name", ["mean", "quantile", "histogram", "count", "std", "describe"])
def test_one_extreme_record_changes_no_warning_of_a_statistic(name):
    def release(value):
        X = table(value)
        return told(lambda: getattr(statistics, name)(X, bounds=(0, 1), epsilon=10.0, random_state=0))

    usual = release(None)
    for value in (1e308, -1e38, 5e-324):
        assert release(value) == usual
    assert {kind for kind, _ in usual} == {"PrivacyLeakWarning"}  # of the seed


def test_the_recalibration_of_a_net_does_not_warn():
    """Both outputs of a record of 1e38 are infinite, and a score is their difference."""
    X = table(n=400, d=16)
    y = (X[:, 0] > 0).astype(int)
    extreme = X.copy()
    extreme[ROW] = 1e38

    def fit(X):
        return DPNetworkClassifier(
            network=Sequential([Flatten(), Dense(2)]), parameters_init=np.ones(34), image_shape=(4, 4),
            classes=[0, 1], epsilon=100.0, max_iter=3, learning_rate=1e-3, random_state=0,
        ).fit(X, y)  # fmt: skip

    usual = told(lambda: fit(X))
    assert told(lambda: fit(extreme)) == usual
    assert "RuntimeWarning" not in {kind for kind, _ in usual}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert fit(X).calibration_ is not None


@pytest.mark.parametrize("value", [1e308, -1e308, 1e38, 5e-324])
def test_records_made_from_records_do_not_warn(value):
    """Outside of a fit, as a method of one's own may call them; and what they release."""
    X = table(value)
    y, theta = np.append(np.full(39, 1.0), value), np.array([3.0, -2.0, 1e5])

    def call():
        for groups in (None, np.arange(40) // 4):
            records = PrivateRecords(X, y, groups=groups)
            columns = records.standardized(Standardization.make(np.ones(3), np.full(3, 0.1)))
            made = [
                records.mapped(lambda rows: rows * 1e300 - rows * 1e301, 3),
                records.scored(theta),
                records.residual(theta),
                records.predicted(theta),
                records.centered(-1e308),
                records.shortened(1e-3),
                records.averaged(1e-3),
                columns,
                columns.expanded(Expansion.make([4, 4, 4], [(0, 1)])),
            ]
            for one in made:
                one.clipped_sum(lambda X, y: X * 1e300, 1.0, size=one.n_features)._value.on_grid(2.0**-20)
            records.with_intercept(1.0).mean_gradient(LogisticLoss(), theta, 1.0)._value.on_grid(2.0**-20)
            records.second_moment(1.0, 1.0, adjacency="replace-one")._value.on_grid(2.0**-20)

    assert told(call) == set()


def test_threads_of_blocks_do_not_warn(monkeypatch):
    """A thread does not inherit `np.errstate` of its caller."""
    monkeypatch.setenv("SKDP_NUM_THREADS", "3")
    out = np.zeros(64)

    def one(slot, block):
        out[block] = np.float64(np.inf) - np.float64(np.inf) + np.ones(1000).sum()

    assert told(lambda: run_blocks(one, 64)) == set()
    assert np.isnan(out).all()
