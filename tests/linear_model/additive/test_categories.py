"""Public codes of columns: what is refused, and with which words; how they are sorted."""

import math

import numpy as np
import pytest

from skdp.linear_model.additive.categories import category_values, check_categories
from skdp.linear_model.auto.public_bounds import column_ends, column_positions

NAMES = np.array(["age", "region", "ward"], dtype=object)
WRONG = {
    "a list": ([[1, 2]], TypeError, "categories must be None or a dict"),
    "a number": (3, TypeError, "got int"),
    "text for values": ({"ward": "abc"}, TypeError, r"categories\['ward'\] must be a list of numbers, got str"),
    "one number for values": ({"ward": 3}, TypeError, "got int"),
    "a set": ({"ward": {1, 2}}, TypeError, "got set"),
    "a dict": ({"ward": {1: 2, 3: 4}}, TypeError, "got dict"),
    "none": ({"ward": []}, ValueError, "must have 2 to 64 values, got 0"),
    "one": ({2: [1]}, ValueError, r"categories\[2\] must have 2 to 64 values, got 1"),
    "too many": ({"ward": range(65)}, ValueError, "got 65"),
    "names": ({"ward": ["a", "b"]}, ValueError, "finite numbers, got 'a': encode text"),
    "flags": ({"ward": [False, True]}, ValueError, "finite numbers, got False"),
    "NaN": ({"ward": [1, math.nan]}, ValueError, "finite numbers, got nan"),
    "infinite": ({"ward": [1, math.inf]}, ValueError, "finite numbers, got inf"),
    "too large": ({"ward": [1, 10**400]}, ValueError, "finite numbers, got 1000"),
    "None": ({"ward": [1, None]}, ValueError, "finite numbers, got None"),
    "nested": ({"ward": [[1, 2], [3, 4]]}, ValueError, "finite numbers"),
    "twice": ({"ward": [1, 2, 1.0]}, ValueError, "has 1.0 twice"),
    "both zeros": ({"ward": [0.0, -0.0]}, ValueError, "twice"),
    "twice as float64": ({"ward": [2**53, 2**53 + 1]}, ValueError, "twice, as float64"),
    "a second column": ({"age": [1, 2], "ward": [3, 3]}, ValueError, r"categories\['ward'\] has 3.0 twice"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_wrong_codes_are_refused(name):
    given, error, told = WRONG[name]
    with pytest.raises(error, match=told):
        check_categories("categories", given)


def test_codes_come_by_column_and_then_as_given():
    given = {"ward": (30, 10.5, -20), 0: np.array([2, 1], dtype=np.float32), "region": range(64)}
    check_categories("categories", given)
    columns, values = category_values(given, 3, NAMES)
    assert columns.dtype == np.int64
    assert values.dtype == np.float64
    assert list(columns) == [0] * 2 + [1] * 64 + [2] * 3
    assert list(values) == [2, 1, *range(64), 30, 10.5, -20]


def test_codes_once_again_from_an_iterator_would_be_gone_but_a_list_is_not():
    given = {1: [5, 4]}
    for _ in range(2):
        check_categories("categories", given)
        assert [list(found) for found in category_values(given, 2)] == [[1, 1], [5.0, 4.0]]


@pytest.mark.parametrize("given", [None, {}])
def test_no_codes(given):
    check_categories("categories", given)
    columns, values = category_values(given, 3, NAMES)
    assert columns.shape == values.shape == (0,)
    assert (columns.dtype, values.dtype) == (np.int64, np.float64)


def test_unknown_columns():
    with pytest.raises(ValueError, match=r"categories names the column 'x', and X has the columns \['age'"):
        category_values({"x": [1, 2]}, 3, NAMES)
    with pytest.raises(ValueError, match="names the column 'ward', and X has 3 columns without names"):
        category_values({"ward": [1, 2]}, 3)
    for place in (3, -1, True, 1.0, None):
        with pytest.raises(ValueError, match=f"categories names the column {place}"):
            category_values({place: [1, 2]}, 3)


def test_no_column_is_named_twice():
    assert column_positions("it", {"ward": 0, np.int64(0): 0}, 3, NAMES) == [2, 0]
    with pytest.raises(ValueError, match="categories names column 2 twice, by name and by number"):
        category_values({"ward": [1, 2], 2: [1, 2]}, 3, NAMES)
    with pytest.raises(ValueError, match="feature_bounds names column 2 twice"):
        column_ends({"ward": (0, 1), 2: (0, 2)}, 3, NAMES)
