"""One record never decides how the cells of the others are read: labels, targets, weights, groups and X."""

import math
from decimal import Decimal

import numpy as np
import pytest

from skdp import DPIGHTClassifier, DPIGHTRegressor, DPSparseERM, DPSparseERMRegressor
from skdp.base import encode_groups
from skdp.base.cells import as_table, cell_numbers, label_codes
from skdp.exceptions import PrivacyLeakWarning
from skdp.fitting import targets as _targets
from skdp.losses import MultinomialLoss

pd = pytest.importorskip("pandas")

ODD = [
    None, math.nan, pd.NA, pd.NaT, "x", "1", "", True, np.True_, 10**400, -(10**400), 2**64, b"1", [1, 2],
    {"a": 1}, Decimal(1), Decimal("NaN"), Decimal("sNaN"), 1 + 0j, 1j, complex(math.nan, 0), 1e308, math.inf,
    np.float32(1.0), np.datetime64("2020-01-01"), np.timedelta64(1, "s"),
]  # fmt: skip
CONTAINERS = {
    "list": list,
    "tuple": tuple,
    "object array": lambda cells: np.fromiter(cells, dtype=object),
    "object series": lambda cells: pd.Series(cells, dtype=object),
}
each_container = pytest.mark.parametrize(
    "container", ["list", pytest.param("tuple", marks=pytest.mark.slow), *list(CONTAINERS)[2:]]
)


class Accepted(Exception):
    """What a fit raises here as soon as its data are checked and read."""


@pytest.fixture
def read(monkeypatch):
    """Returns what the fit of a model hands to its algorithm: X, y, groups and sample_weight."""
    found = {}

    def records(X, y, **rest):
        found.update(rest, X=X, y=y)
        raise Accepted

    monkeypatch.setattr(_targets, "PrivateRecords", records)

    def fit(model, X, y, **more):
        with pytest.raises(Accepted):
            model.fit(X, y, **more)
        return dict(found)

    return fit


def replaced(cells, odd):
    return [odd, *cells[1:]]


def compare(read_it, cells):
    """With any odd first record: what is read of the others does not change, or it is refused by itself too."""
    expected = read_it(cells)
    for odd in ODD:
        compare_one(read_it, cells, expected, odd)


def compare_one(read_it, cells, expected, odd):
    try:
        found = read_it(replaced(cells, odd))
    except (TypeError, ValueError, pytest.fail.Exception) as error:
        assert not isinstance(error, pytest.fail.Exception)
        with pytest.raises((TypeError, ValueError)) as alone:
            read_it([odd])
        assert type(alone.value) is type(error)
        for message in (str(error), str(alone.value)):
            assert "1000000" not in message
            assert "'x'" not in message
        return
    assert found.dtype == expected.dtype
    assert np.array_equal(found[1:], expected[1:])


LABELS = [
    ((0, 1, 2), [0, 1, 2.0, 1.0, True]),
    ((0.0, 1.0), [0, 1, 1.0, False]),
    (("a", "b", "1"), ["a", "b", "1", np.str_("a")]),
    ((False, True), [True, False, 1, 0]),
]


@each_container
@pytest.mark.parametrize(("classes", "labels"), LABELS)
def test_labels(read, classes, labels, container):
    def read_it(cells):
        X = np.ones((len(cells), 2))
        model = DPIGHTClassifier(classes=classes)
        return read(model, X, CONTAINERS[container](cells))["y"]

    compare(read_it, labels)


def test_a_label_is_a_number_or_a_text_and_never_the_other(read):
    X = np.ones((4, 2))
    y = [0, 1.0, np.True_, Decimal(1)]
    assert read(DPIGHTClassifier(classes=(0, 1)), X, y)["y"].tolist() == [0, 1, 1, 1]
    for y in ([0, 1, 1, "1"], ["0", "1", "1", "1"], [0, 1, 1, b"1"], [0, 1, 1, 1 + 1j]):
        with pytest.raises(ValueError, match="1 and '1' are different labels"):
            DPIGHTClassifier(classes=(0, 1)).fit(X, y)
    for y in (["0", "1", "1", 1], [0, 1, 1, 1], ["0", "1", "1", b"1"]):
        with pytest.raises(ValueError, match="1 and '1' are different labels"):
            DPIGHTClassifier(classes=("0", "1")).fit(X, y)
    with pytest.raises(ValueError, match=r"Input y contains NaN.*leave out rows"):
        DPIGHTClassifier(classes=("0", "1")).fit(X, ["0", "1", "1", None])


def test_typed_and_untyped_labels_have_the_same_codes(read):
    rng = np.random.default_rng(0)
    for classes in ((3, 1, 2), (1.5, 1.0, -2.0), ("b", "a", "1")):
        y = rng.choice(np.array(classes), 50)
        model = DPIGHTClassifier(classes=classes)
        typed = read(model, np.ones((50, 2)), y)["y"]
        for container in CONTAINERS.values():
            assert np.array_equal(read(model, np.ones((50, 2)), container(y.tolist()))["y"], typed)


def test_undeclared_labels_of_two_kinds_are_refused():
    X = np.eye(4)
    for y in ([0, 1, 0, "secret"], np.array([0, 1, 0, "secret"], dtype=object)):
        with pytest.raises(ValueError, match=r"text and numbers.*declare the label set") as caught:
            DPIGHTClassifier().fit(X, y)
        assert "secret" not in str(caught.value)
    with pytest.warns(PrivacyLeakWarning):
        model = DPIGHTClassifier(random_state=0).fit(np.eye(60), [0, 1.0, True] * 20)
    assert model.classes_.tolist() == [0.0, 1.0]


@each_container
@pytest.mark.parametrize(
    ("model", "targets"),
    [
        (DPIGHTRegressor(), [0.1, 2, True, "3.5", 2**53 + 1]),
        (DPSparseERM(loss="squared"), [0.1, 2, True, "3.5", 2**53 + 1]),
        (DPSparseERM(loss="logistic"), [0, 1.0, True, "1"]),
        (DPSparseERM(loss=MultinomialLoss(3)), [0, 1.0, True, "2"]),
    ],
    ids=["regressor", "squared", "logistic", "multinomial"],
)
def test_targets(read, model, targets, container):
    def read_it(cells):
        return read(model, np.ones((len(cells), 2)), CONTAINERS[container](cells))["y"]

    assert read_it(targets).tolist() == [float(target) for target in targets]
    compare(read_it, targets)


@pytest.mark.parametrize("missing", [None, math.nan, pd.NA])
def test_missing_targets_of_any_loss_are_refused(missing):
    for loss in ("squared", "huber", "logistic", MultinomialLoss(2)):
        with pytest.raises(ValueError, match=r"Input y contains NaN.*leave out rows"):
            DPSparseERM(loss=loss).fit(np.eye(3), [0, 1, missing])


@each_container
def test_sample_weights(read, container):
    def read_it(cells):
        model = DPIGHTRegressor(max_weight=2.0)
        weights = CONTAINERS[container](cells)
        X = np.ones((len(cells), 2))
        return read(model, X, np.ones(len(cells)), sample_weight=weights)["sample_weight"]

    assert read_it([1, 0.5, True, "1.5"]).tolist() == [1.0, 0.5, 1.0, 1.5]
    compare(read_it, [1, 0.5, True, "1.5"])


@each_container
@pytest.mark.parametrize(
    "labels", [[7, 1, 2, 1, 3.0, 2.0], ["q", "b", "a", "b", "1"], [0, 1, "1", 1.0, "a", (1, 2), "a", (1, 2)]]
)
def test_groups(read, labels, container):
    """The others fall into the same groups; of which number is a matter of the order of labels."""

    def read_it(cells):
        model = DPIGHTRegressor(unit="group")
        found = read(model, np.ones((len(cells), 2)), np.ones(len(cells)), groups=CONTAINERS[container](cells))[
            "groups"
        ]
        assert set(found) == set(range(len(set(found))))
        others = found[1:]
        return np.vstack([others[:1] == others, *(others == other for other in others)])

    compare(read_it, labels)


@pytest.mark.parametrize(
    "labels",
    [[3, 1, 2, 1, 10], ["b", "a", "b", "10", "9"], [2.5, 1, 2.5, -1], [True, False, 2],
     [b"b", b"a"], [pd.Timestamp("2021-01-01"), pd.Timestamp("2020-01-01")],
     [Decimal(2), 1, 1.5, Decimal(1)]],
)  # fmt: skip
def test_labels_of_one_type_are_numbered_in_their_order(labels):
    expected = np.unique(np.array(labels, dtype=object), return_inverse=True)[1]
    for container in CONTAINERS.values():
        codes = encode_groups(container(labels), len(labels))
        assert np.array_equal(codes, expected)
        assert codes.dtype == np.intp


def test_groups_of_two_types_are_different_groups():
    assert encode_groups([1, "1", 1.0, "a", 0, True], 6).tolist() == [1, 2, 1, 3, 0, 1]
    with pytest.raises(ValueError, match="missing values"):
        encode_groups(["a", 1, pd.NA], 3)


# The target is a feature, so residuals shrink to nothing.
@pytest.mark.filterwarnings("ignore:the released clip_norm is tiny")
def test_batch_groups_of_two_types():
    X = np.random.default_rng(0).normal(size=(40, 3))
    labels = np.array([1, "1"] * 20, dtype=object)
    fits = [
        DPSparseERMRegressor(random_state=0, max_iter=4).fit(X, X[:, 0], batch_groups=batches)
        for batches in (labels, labels.tolist(), np.array([0, 1] * 20))
    ]
    for fit in fits[1:]:
        assert np.array_equal(fit.coef_, fits[0].coef_)


@pytest.mark.parametrize("container", ["list of lists", "object array", "frame"])
def test_cells_of_x(read, container):
    make = {
        "list of lists": list,
        "object array": as_table,
        "frame": lambda rows: pd.DataFrame(as_table(rows), dtype=object),
    }[container]
    others = [[0.1, 1], [True, "2.5"], [2**53 + 1, Decimal("0.5")]]

    def read_it(cells):
        rows = [[cells[0], 3], *others][: len(cells)]
        return read(DPIGHTRegressor(), make(rows), np.ones(len(rows)))["X"]

    compare(read_it, [1.5, None, None, None])


def test_a_number_beyond_float64_is_named():
    X = [[1.0, 2.0], [10**400, 1.0]]
    for table in (X, np.array(X, dtype=object), pd.DataFrame(X, dtype=object)):
        with pytest.raises(ValueError, match="too large for float64"):
            DPIGHTRegressor().fit(table, [0.0, 1.0])
    with pytest.raises(ValueError, match="Input y contains infinity"):
        DPIGHTRegressor().fit(np.eye(2), [0.0, 10**400])


def test_what_a_cell_is():
    cells = [True, "1e2", 10**400, -(10**400), Decimal("1e500"), None, pd.NaT, b"2"]
    assert np.array_equal(
        cell_numbers(cells), [1.0, 100.0, math.inf, -math.inf, math.inf, math.nan, math.nan, 2.0], equal_nan=True
    )
    assert cell_numbers([1 + 0j, 2]).tolist() == [1.0, 2.0]
    for cell in (1j, [1], {}, np.timedelta64(1, "s")):
        with pytest.raises(TypeError, match="must be a string or a real number"):
            cell_numbers([cell, 0])
    codes = label_codes([1.0, "1", None, [1], np.int8(0)], [0, 1])
    assert np.array_equal(codes, [1, -1, math.nan, -1, 0], equal_nan=True)
