"""A BoundedStatistic cannot become numbers, and its bounds follow what is done to it (REFEREE 27)."""

import copy
import math
import operator
import pickle

import numpy as np
import pytest

from skdp.privacy import BoundedStatistic


@pytest.fixture
def bounded():
    return BoundedStatistic([3.0, -4.0, 0.5], l2=2.0)


@pytest.mark.parametrize(
    "attempt",
    [
        np.asarray,
        np.array,
        lambda b: np.array([b, b]),
        lambda b: np.ones(3) * b,
        lambda b: b * np.ones(3),
        lambda b: np.float64(2.0) * b,
        lambda b: b * np.float64(2.0),
        lambda b: b * True,
        lambda b: b * math.inf,
        lambda b: b * math.nan,
        lambda b: b / 0,
        lambda b: np.add(b, 1.0),
        lambda b: b + 1.0,
        lambda b: 1.0 + b,
        lambda b: 1.0 / b,
        float,
        int,
        bool,
        complex,
        len,
        list,
        iter,
        hash,
        operator.index,
        lambda b: b[0],
        lambda b: b[0:1],
        lambda b: b == b,
        lambda b: b < 1,
        lambda b: 3.0 in b,
        lambda b: max(b, 0),
        lambda b: sum([b]),
        copy.copy,
        copy.deepcopy,
        pickle.dumps,
        lambda b: f"{b:.3f}",
        lambda b: round(b),
    ],
)
def test_no_way_to_numbers(bounded, attempt):
    with pytest.raises(TypeError):
        attempt(bounded)


def test_repr_shows_bounds_and_no_value(bounded):
    assert repr(bounded) == "BoundedStatistic(shape=(3,), l1=3.4641, l2=2, linf=2)"
    assert "4.0" not in str(bounded)


def test_cannot_be_changed(bounded):
    with pytest.raises(AttributeError):
        bounded.l2 = 0.1
    with pytest.raises(AttributeError):
        del bounded.l2
    with pytest.raises(AttributeError):
        bounded.other = 1


def test_array_is_copied_in():
    values = np.ones(3)
    b = BoundedStatistic(values, l2=1.0)
    values[:] = 1e9
    assert np.all(b._value.plain() == 1.0)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"l2": 2.0}, (2.0 * math.sqrt(4), 2.0, 2.0)),
        ({"l1": 2.0}, (2.0, 2.0, 2.0)),
        ({"linf": 1.0}, (4.0, 2.0, 1.0)),
        ({"l1": 1.0, "l2": 3.0}, (1.0, 1.0, 1.0)),
        ({"l1": 5.0, "l2": 3.0, "linf": 0.5}, (2.0, 1.0, 0.5)),
    ],
)
def test_bounds_are_completed_on_the_safe_side(given, expected):
    b = BoundedStatistic(np.zeros(4), **given)
    for bound, exact in zip((b.l1, b.l2, b.linf), expected):
        assert exact <= bound <= exact * (1 + 1e-12)


@pytest.mark.parametrize("bad", [{}, {"l2": -1.0}, {"l1": math.nan}])
def test_bounds_are_checked(bad):
    with pytest.raises(ValueError, match=r"l1|l2"):
        BoundedStatistic([1.0], **bad)


def test_scaling_and_adding_carry_the_bounds(bounded):
    scaled = -3 * bounded
    assert (scaled.l2, scaled.linf) == (6.0, 6.0)
    assert np.allclose(scaled._value.plain(), [-9.0, 12.0, -1.5])
    assert np.array_equal(scaled._value.on_grid(0.5), [-18, 24, -3])
    total = bounded + bounded / 2
    assert total.l2 == 3.0
    assert np.array_equal(total._value.on_grid(0.25), [18, -24, 3])
    assert (bounded - bounded).l2 == 4.0  # bounds add: what one record can do to each part
    assert np.all((0 * bounded)._value.on_grid(1.0) == 0)


def test_adding_other_records_is_refused(bounded):
    with pytest.raises(ValueError, match="same PrivateRecords"):
        bounded + BoundedStatistic([1.0], l2=1.0)
    with pytest.raises(ValueError, match="adjacency"):
        bounded + BoundedStatistic.with_sensitivity(np.zeros(3), adjacency="zero-out", l2=1.0)


def test_values_that_are_not_finite_count_as_zero():
    b = BoundedStatistic([math.nan, math.inf, 1.0], l2=1.0)
    assert np.array_equal(b._value.on_grid(1.0), [0, 0, 1])


def test_huge_values_are_clamped_not_wrapped():
    b = BoundedStatistic([1e300, -1e300], l2=1.0)
    assert np.array_equal(b._value.on_grid(1e-3), [2**58, -(2**58)])


def test_rounding_is_counted():
    a = BoundedStatistic([1.0], l2=1.0)
    assert (a._value.roundings, (a + a)._value.roundings, (0 * a)._value.roundings) == (65, 130, 0)


def test_scaling_down_and_up_cannot_lose_the_grid():
    """Once the grid underflowed to 0 on the way: +-0.001 became +-2^58 units under a bound of 1."""
    small = BoundedStatistic([1e-3], l2=1.0) * 1e-160
    with pytest.raises(ValueError, match="float64"):
        small * 1e-160
    with pytest.raises(ValueError, match="float64"):
        BoundedStatistic([1e-3], l2=1.0) * 1e200 * 1e100
    assert (BoundedStatistic([1e-3], l2=1.0) * 0.0).l2 == 0
    back = small * 1e160
    assert back._value.on_grid(2.0**-20)[0] == round(1e-3 * 2**20)
    with pytest.raises(ValueError, match="grid"):
        BoundedStatistic([1e-3], l2=1.0)._value.on_grid(2.0**-800)


def test_shifts_do_not_wrap_a_clamped_statistic():
    """32 shifts of 2^58 units once passed 2^63: a choice then followed from the sign of a record."""
    found = []
    for value in (1e-3, -1e-3):
        bounded = BoundedStatistic([value, 0.0], linf=1.0)
        for _ in range(40):
            bounded = bounded.shifted([1e300, 0.0])
        found.append(bounded._value.on_grid(2.0**-30))
    assert np.array_equal(*found)
    assert found[0][0] == 2**60


def test_a_count_and_an_exact_sum_stay_within_64_bits():
    from skdp.losses import SquaredLoss
    from skdp.privacy import PrivateRecords

    r = PrivateRecords(np.ones((3, 1)), np.full(3, -1.0))
    both = r.mean_gradient(SquaredLoss(), np.zeros(1), 1.0) + r.norm_count(2.0)
    with pytest.raises(ValueError, match="one by one"):
        both._value.on_grid(2.0**-60)
    assert both._value.on_grid(2.0**-20)[0] == pytest.approx(2.5 * 2**20, rel=1e-5)
