"""One cell never decides how PublicBinsEncoder reads another, whatever the container."""

import math
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pytest

from skdp.preprocessing import PublicBinsEncoder

pd = pytest.importorskip("pandas")

ODD = [
    None, math.nan, pd.NA, pd.NaT, "x", "1", "", True, np.False_, 10**400, -(10**400), 2**53 + 1, b"1", [1, 2],
    {"a": 1}, Decimal(1), Decimal("NaN"), Decimal("sNaN"), 1 + 0j, 1j, complex(math.nan, 0), math.inf,
    np.float32(1.0), np.datetime64("2020-01-01"), np.timedelta64(1, "s"), pd.Timestamp("2020-01-01"),
]  # fmt: skip
ROWS = [
    [0.5, 1, "a", 1],
    [3, 2.0, "b", "1"],
    [True, 0, "1", 2.5],
    ["7.5", True, "other", None],
    [2**53 + 1, 2**53 + 1, None, False],
]


def objects(rows):
    table = np.empty((len(rows), len(rows[0])), dtype=object)
    for i, row in enumerate(rows):
        for j, cell in enumerate(row):
            table[i, j] = cell
    return table


def frame(data):
    """A frame, where this pandas can hold the cells: pandas 2.2 refuses whole numbers beyond float64 by itself."""
    try:
        return pd.DataFrame(data)
    except OverflowError:
        pytest.skip("this pandas holds no whole number beyond float64")


CONTAINERS = {
    "list of lists": lambda rows: [list(row) for row in rows],
    "tuple of tuples": lambda rows: tuple(tuple(row) for row in rows),
    "list of arrays": lambda rows: list(objects(rows)),
    "object array": objects,
    "object frame": lambda rows: frame(objects(rows)),
    "inferred frame": lambda rows: frame([list(row) for row in rows]),
}
ENCODER = PublicBinsEncoder(
    bins={0: [0, 1, 5]},
    categories={1: [0, 1, 2, 2**53], 2: ["a", "1"], 3: [1, 2.5]},
    crosses=[(0, 2)],
    sparse_output=False,
)
EXPECTED = [  # the bin of each cell
    [1, 1, 0, 0],
    [2, 2, 2, 2],
    [2, 0, 1, 1],
    [3, 1, 2, 3],
    [3, 3, 3, 2],
]


def bins(table):
    encoded = ENCODER.fit_transform(table)
    starts = np.cumsum([0, 5, 6, 4, 4])
    return [[int(np.argmax(row[a:b])) for a, b in pairwise(starts)] for row in encoded]


@pytest.mark.parametrize("container", CONTAINERS)
def test_each_cell_has_the_bin_of_the_definition(container):
    assert bins(CONTAINERS[container](ROWS)) == EXPECTED


@pytest.mark.parametrize("odd", ODD, ids=lambda cell: repr(cell)[:20])
@pytest.mark.parametrize("container", CONTAINERS)
def test_one_odd_cell_changes_no_other_row(container, odd):
    for column in range(4):
        look_at_the_others(CONTAINERS[container], odd, column)


def look_at_the_others(make, odd, column):
    record = list(ROWS[0])
    record[column] = odd
    try:
        found = bins(make([record, *ROWS[1:]]))
    except (TypeError, ValueError) as error:
        assert column == 0  # a category is never refused
        assert "secret" not in str(error)
        with pytest.raises(type(error), match=r"^Column 0 ") as alone:
            bins(make([record, record]))
        assert str(alone.value) == str(error)
        return
    assert found[1:] == EXPECTED[1:]
    others = [bin_ for place, bin_ in enumerate(found[0]) if place != column]
    assert others == [bin_ for place, bin_ in enumerate(EXPECTED[0]) if place != column]


@pytest.mark.parametrize("odd", ODD, ids=lambda cell: repr(cell)[:20])
def test_a_cell_has_the_same_bin_in_every_container(odd):
    for column in range(4):
        record = [list(ROWS[0]), list(ROWS[1])]
        record[0][column] = odd
        found = []
        for make in CONTAINERS.values():
            try:
                found.append(bins(make(record)))
            except (TypeError, ValueError) as error:
                found.append((type(error), str(error)))
        assert all(other == found[0] for other in found)


def test_text_in_a_column_with_edges_is_a_number_or_refused():
    encoder = PublicBinsEncoder(bins=[2], sparse_output=False)
    for table in ([["3"], [1]], [["3"], ["1"]], np.array([["3"], ["1"]]), objects([["3"], [1]])):
        assert encoder.fit_transform(table).tolist() == [[0, 1, 0], [1, 0, 0]]
        assert encoder.fit_transform(list(table[:1])).tolist() == [[0, 1, 0]]
    for odd in ("secret", b"secret"):
        for table in ([[odd], [1]], [[odd], ["1"]], objects([[odd], [1]]), np.array([[odd]])):
            with pytest.raises(ValueError, match="Column 0 holds text that is not a number") as told:
                encoder.fit(table)
            assert "secret" not in str(told.value)


def test_the_type_of_an_array_is_public_and_may_be_refused():
    texts, numbers = (PublicBinsEncoder(categories={0: ["1"]}), PublicBinsEncoder(categories={0: [1]}))
    for table in (np.array([[1.0]]), np.array([[1]]), np.array([[True]]), pd.DataFrame({"a": [1]})):
        with pytest.raises(TypeError, match="holds numbers, but its public categories are strings"):
            texts.fit(table)
    for table in (np.array([["1"]]), np.array([[b"1"]])):
        with pytest.raises(TypeError, match="holds text, but its public categories are numbers"):
            numbers.fit(table)
    assert texts.fit_transform([[1], [2]]).toarray().tolist() == [[0, 1, 0]] * 2
    assert numbers.fit_transform([["1"], ["2"]]).toarray().tolist() == [[0, 1, 0]] * 2


def test_each_column_of_a_frame_has_its_own_type():
    frame = pd.DataFrame({"n": [1, 2], "f": [0.5, math.nan], "s": ["a", None], "b": [True, False]})
    encoder = PublicBinsEncoder(bins={"f": [0]}, categories={"n": [2], "s": ["a"], "b": [1]}, sparse_output=False)
    expected = [[0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 0, 0], [1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 1, 0]]
    assert encoder.fit_transform(frame).tolist() == expected
    kinds = {"n": "Int64", "f": "Float64", "s": "string", "b": "boolean"}
    assert encoder.fit_transform(frame.astype(kinds)).tolist() == expected
    assert encoder.fit_transform(frame.astype({"s": "category"})).tolist() == expected
    with pytest.raises(TypeError, match="'n' holds numbers, but its public categories are strings"):
        PublicBinsEncoder(categories={"n": ["1"]}).fit(frame)
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        encoder.fit(frame[:0])


def test_a_missing_cell_of_polars_changes_no_type():
    pl = pytest.importorskip("polars")
    for column, categories in (([1, 0, 1], [1]), ([True, False, True], [1]), (["a", "b", "a"], ["a"])):
        whole, hole = column, [*column[:2], None]
        found = []
        for cells in (whole, hole):
            frame = pl.DataFrame({"a": cells, "other": [0.5, 1.5, 2.5]})
            encoder = PublicBinsEncoder(bins={1: [1]}, categories={0: categories})
            found.append(encoder.fit_transform(frame).toarray())
        assert np.array_equal(found[0][:2], found[1][:2])
        assert found[0][:, 0].tolist() == [1, 0, 1]
        assert found[1][2, 2] == 1
    for cells in ([True, False], [True, None]):
        encoder = PublicBinsEncoder(categories={0: ["a"]}, bins={})
        assert encoder.fit_transform(pl.DataFrame({"a": cells})).toarray()[0].tolist() == [0, 1, 0]


def test_typed_and_untyped_numbers_fall_into_the_same_bins():
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, (200, 2)) / 2
    X[rng.random(X.shape) < 0.1] = math.nan
    encoder = PublicBinsEncoder(bins={0: [-1, 0.5]}, categories={1: [0, 1, -1.5]})
    expected = encoder.fit_transform(X).toarray()
    for make in CONTAINERS.values():
        np.testing.assert_array_equal(encoder.fit_transform(make(X.tolist())).toarray(), expected)
    np.testing.assert_array_equal(encoder.fit_transform(pd.DataFrame(X)).toarray(), expected)


def test_dates_have_no_bin_between_edges():
    table = np.array([["2020-01-01"], ["NaT"]], dtype="datetime64[D]")
    for X in (table, pd.DataFrame(table), table.astype(object)):
        with pytest.raises(TypeError, match="must be a string or a real number"):
            PublicBinsEncoder().fit(X)
        found = PublicBinsEncoder(categories={0: [1]}).fit_transform(X).toarray()
        assert found.tolist() == [[0, 1, 0], [0, 0, 1]]


def test_categories_that_are_one_float_are_refused():
    with pytest.raises(ValueError, match="without repetition"):
        PublicBinsEncoder(categories={0: [2**53, 2**53 + 1]}).fit([[1.0]])
    with pytest.raises(ValueError, match="must be finite"):
        PublicBinsEncoder(categories={0: [10**400]}).fit([[1.0]])


def test_rows_of_different_lengths_are_refused():
    with pytest.raises(ValueError, match="same number of cells"):
        PublicBinsEncoder().fit([[1, 2], [3]])
