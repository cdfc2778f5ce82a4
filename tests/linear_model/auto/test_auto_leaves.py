"""What leaves automatic estimators follows from released and public numbers; wrong public bounds cost nothing."""

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from skdp import BudgetAccountant, DPLinearRegression, DPLogisticRegression
from skdp.base.plan import Advice
from skdp.exceptions import UtilityWarning
from skdp.linear_model.auto import regression
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from tests.kinds import quick_alone

N, D = 400, 3
RNG = np.random.default_rng(0)
TABLE = RNG.normal(size=(N, D)) * [1.0, 30.0, 1e-3]
# Tables that share nothing with it but their shape.
OTHERS = [np.zeros((N, D)), np.full((N, D), 1e300), np.full((N, D), np.nan), 1e-300 * TABLE]
TARGETS = {
    "clear": 5.0 * TABLE[:, 0] + 100.0,
    "noise": RNG.normal(size=N),
    "nowhere": 2.0 ** RNG.uniform(-25, 40, size=N),
}
FAR_TARGETS = np.where(np.arange(N) % 2, 1e300, -7.0)
CLASSES = (0, 1)


@pytest.fixture
def replayed(monkeypatch):
    """A fit, and a fit to other data that is given the outputs of the first one, release by release."""
    honest, tape = gaussian_release.gaussian, {"events": [], "place": None}

    def release(bounded, drawn_with, stream):
        if tape["place"] is None:
            released, line = honest(bounded, drawn_with, stream)
            tape["events"].append((released.copy(), dict(line)))
            return released, line
        released, line = tape["events"][tape["place"]]
        tape["place"] += 1
        return released.copy(), dict(line)

    monkeypatch.setattr(gaussian_release, "gaussian", release)

    def fit(model, own, others):
        tape.update(events=[], place=None)
        found = [seen(model, *own)]
        for other in others:
            tape["place"] = 0
            found.append(seen(model, *other))
            assert tape["place"] == len(tape["events"])
        return found

    return fit


def seen(model, X, y):
    """Everything that leaves a fit: warnings, attributes, the report, and the exported model."""
    model = clone(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    attributes = {
        name: (type(value), np.shape(value), np.asarray(value).tobytes())
        for name, value in vars(model).items()
        if name.endswith("_") and name != "privacy_"
    }
    made = model.to_sklearn()
    steps = [type(step).__name__ for _, step in getattr(made, "steps", [("", made)])]
    told = [(w.category, str(w.message)) for w in caught]
    return told, attributes, str(model.privacy_), type(made).__name__, steps


def differing(found):
    """Which parts of what left differ between the fits."""
    parts = ("warnings", "attributes", "report", "type", "steps")
    return {name for other in found[1:] for name, a, b in zip(parts, found[0], other) if a != b}


SETTINGS = [{}, {"fit_intercept": False}, {"feature_bounds": ([-3.0, -np.inf, 0.0], 3.0)}, {"C": "auto"}]


@pytest.mark.parametrize(
    ("setting", "csr"),
    quick_alone(
        [(0, False), (1, False), (2, False), (3, False), (1, True)],
        itertools.product(range(len(SETTINGS)), (False, True)),
        pytest.mark.thorough,
    ),
)
@pytest.mark.parametrize("epsilon", [0.3, pytest.param(1.5, marks=pytest.mark.thorough), 30.0])
@pytest.mark.parametrize("kind", TARGETS)
def test_a_regression_shows_what_was_released_and_nothing_else(setting, csr, epsilon, kind, replayed):
    model = DPLinearRegression(epsilon=epsilon, random_state=0, **SETTINGS[setting])
    container = (lambda X: sp.csr_matrix(np.nan_to_num(X))) if csr else np.asarray
    others = [(container(X), FAR_TARGETS) for X in OTHERS]
    assert not differing(replayed(model, (container(TABLE), TARGETS[kind]), others))


@pytest.mark.parametrize("setting", range(len(SETTINGS)))
@pytest.mark.parametrize("epsilon", [0.3, 1.5, 30.0])
def test_a_classification_shows_what_was_released_and_nothing_else(setting, epsilon, replayed):
    model = DPLogisticRegression(epsilon=epsilon, classes=CLASSES, random_state=0, **SETTINGS[setting])
    others = [(X, np.zeros(N, int)) for X in OTHERS]
    assert not differing(replayed(model, (TABLE, (TABLE[:, 0] > 0).astype(int)), others))


def test_the_warnings_that_follow_from_releases_are_among_them(replayed):
    """The tests above look at fits with each of them, and at fits without."""
    told = set()
    for kind in TARGETS:
        for epsilon in (0.3, 1.5, 30.0):
            for more in SETTINGS[:2]:
                model = DPLinearRegression(epsilon=epsilon, random_state=0, **more)
                ((found, *_),) = replayed(model, (TABLE, TARGETS[kind]), [])
                messages = [m for c, m in found if c is UtilityWarning]
                told |= {m.split(":")[0].split(" with ")[0][:40] for m in messages} or {""}
    assert any(m.startswith("the model may be no better") for m in told)
    assert any(m.startswith("the size of y cannot be told from noise") for m in told)
    assert any("are few" in m for m in told)
    assert "" in told


def test_ends_that_follow_the_data_are_caught(replayed, monkeypatch):
    honest = regression.standardize

    def peeking(shares, records, *args, **more):
        columns = honest(shares, records, *args, **more)
        lowest = np.fmax(columns.low, np.nanmin(records._rows.X, axis=0))
        columns.low = np.minimum(lowest, columns.high)
        return columns

    monkeypatch.setattr(regression, "standardize", peeking)
    model = DPLinearRegression(epsilon=8.0, random_state=0)
    others = [(np.full((N, D), 0.25), FAR_TARGETS)]
    assert "attributes" in differing(replayed(model, (TABLE, TARGETS["clear"]), others))


def test_a_warning_that_follows_the_data_is_caught(replayed, monkeypatch):
    honest, peeked = regression.moment_regression, []

    def peeking(session, records, *args, **more):
        peeked.append(records)
        return honest(session, records, *args, **more)

    monkeypatch.setattr("skdp.linear_model.auto.families.moment_regression", peeking)
    monkeypatch.setattr(
        regression,
        "doubt_of_numbers",
        lambda *args: () if np.ptp(peeked[-1]._rows.X[:, 0]) else (Advice("a constant column", UtilityWarning),),
    )
    model = DPLinearRegression(epsilon=8.0, random_state=0)
    others = [(OTHERS[0], FAR_TARGETS)]
    assert differing(replayed(model, (TABLE, TARGETS["clear"]), others)) == {"warnings"}


# ------------------------------------------------------------------ wrong public bounds

NAN = math.nan
WRONG = {
    "three ends": ({"feature_bounds": (0.0, 1.0, 2.0)}, ValueError, "feature_bounds must be"),
    "too many ends": ({"feature_bounds": ([0.0] * 4, [1.0] * 4)}, ValueError, "feature_bounds"),
    "NaN": ({"feature_bounds": (NAN, 1.0)}, ValueError, "feature_bounds must be"),
    "low is high": ({"feature_bounds": ([0.0, 1.0, 0.0], 1.0)}, ValueError, "low < high"),
    "low above high": ({"feature_bounds": {0: (2.0, 1.0)}}, ValueError, "low < high"),
    "one infinity twice": ({"feature_bounds": {0: (math.inf, math.inf)}}, ValueError, "low < high"),
    "NaN in a dict": ({"feature_bounds": {0: (NAN, 1.0)}}, ValueError, "must not be NaN"),
    "text": ({"feature_bounds": "public"}, TypeError, "feature_bounds must be"),
    "text in a pair": ({"feature_bounds": {0: ("a", 1.0)}}, ValueError, "two numbers"),
    "a number": ({"feature_bounds": 3.0}, TypeError, "feature_bounds must be"),
    "an unknown number": ({"feature_bounds": {3: (0.0, 1.0)}}, ValueError, "3 columns without names"),
    "a negative number": ({"feature_bounds": {-1: (0.0, 1.0)}}, ValueError, "names the column -1"),
    "a flag": ({"feature_bounds": {True: (0.0, 1.0)}}, ValueError, "names the column True"),
    "a name": ({"feature_bounds": {"age": (0.0, 1.0)}}, ValueError, "names the column 'age'"),
    "not an iterable": ({"feature_bounds": {0: 5}}, ValueError, "two numbers"),
    "another solver": ({"feature_bounds": (0.0, 1.0), "solver": "ight"}, ValueError, "solver='moments'"),
    "a third solver": ({"feature_bounds": {0: (0.0, 1.0)}, "solver": "lssgd"}, ValueError, "'lssgd'"),
    "y: one end": ({"y_bounds": (0.0,)}, ValueError, "y_bounds must be"),
    "y: NaN": ({"y_bounds": (0.0, NAN)}, ValueError, "y_bounds must be"),
    "y: infinite": ({"y_bounds": (0.0, math.inf)}, ValueError, "y_bounds must be"),
    "y: low above high": ({"y_bounds": (1.0, 0.0)}, ValueError, "low < high"),
    "y: empty": ({"y_bounds": (1.0, 1.0)}, ValueError, "low < high"),
    "y: text": ({"y_bounds": "auto"}, TypeError, "y_bounds must be"),
    "y: arrays": ({"y_bounds": ([0.0], [1.0])}, TypeError, "y_bounds must be"),
    "y: a dict": ({"y_bounds": {0: (0.0, 1.0)}}, TypeError, "y_bounds must be"),
    "y: flags": ({"y_bounds": (False, True)}, TypeError, "y_bounds must be"),
}  # fmt: skip


def refused(make, params, X, y, error, told):
    """Refuse with words; nothing is spent, and an earlier fit stays what it was."""
    accountant = BudgetAccountant(epsilon=50.0, delta=1e-3, allow_seeded=True)
    model = make(epsilon=2.0, accountant=accountant, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(np.nan_to_num(X.toarray() if sp.issparse(X) else X), y)
        left, before = accountant.remaining(), vars(model).copy()
        with pytest.raises(error, match=told) as caught:
            model.set_params(**params).fit(X, y)
    assert accountant.remaining() == left
    after = {name: value for name, value in vars(model).items() if name not in params}
    assert set(after) == set(before) - set(params)
    assert all(value is before[name] for name, value in after.items())
    return str(caught.value)


@pytest.mark.parametrize("name", WRONG)
def test_wrong_public_bounds_are_refused_before_anything_is_spent(name):
    params, error, told = WRONG[name]
    refused(DPLinearRegression, params, TABLE, TARGETS["clear"], error, told)
    if "y_bounds" not in params:
        make = lambda **more: DPLogisticRegression(classes=CLASSES, **more)  # noqa: E731
        refused(make, params, TABLE, np.arange(N) % 2, error, told)


@pytest.mark.parametrize("cls", [DPLinearRegression, DPLogisticRegression])
def test_a_csr_matrix_takes_bounds_that_leave_out_0_as_wider_ones(cls):
    """Its zeros stay zeros: the window is widened to 0, by public numbers."""
    params = {"classes": CLASSES} if cls is DPLogisticRegression else {}
    X = sp.random(400, 3, density=0.5, random_state=0, format="csr")
    model = cls(epsilon=4.0, random_state=0, feature_bounds=(0.5, 1.0), solver="moments", **params)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X, np.arange(400) % 2)
    assert (model.feature_bounds_ == [[0.0] * 3, [1.0] * 3]).all()


def test_the_message_never_quotes_a_cell():
    X = TABLE.copy()
    X[0, 0] = 123456.75
    told = refused(DPLinearRegression, {"feature_bounds": {9: (0, 1)}}, X, TARGETS["clear"], ValueError, "9")
    assert "123456" not in told
