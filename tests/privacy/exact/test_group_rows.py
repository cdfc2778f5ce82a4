"""Rows of long groups are drawn away, each with the same chance."""

import warnings

import numpy as np
import pytest

from skdp.losses import LogisticLoss
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.statistics import class_counts, magnitude_counts


def session(seed, unit="group"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return PrivacySession(epsilon=1.0, delta=1e-5, unit=unit, random_state=seed)


GROUPS = np.array([0, 1, 1, 1, 1, 2, 2])


def kept(seed, groups=GROUPS, max_rows=2):
    X = np.arange(float(len(groups)))[:, None]
    records = PrivateRecords(X, X[:, 0], groups=groups)
    few = session(seed).limit_rows(records, max_rows)
    assert few.shape == records.shape
    rows = few._rows
    assert np.array_equal(rows.X[:, 0], rows.y)
    assert np.array_equal(groups[rows.X[:, 0].astype(int)], rows.groups)
    return rows.X[:, 0].astype(int)


def test_every_row_of_a_long_group_stays_with_the_same_chance():
    found = np.array([np.isin(np.arange(7), kept(seed)) for seed in range(1500)])
    assert found[:, [0, 5, 6]].all()
    assert (found[:, 1:5].sum(axis=1) == 2).all()
    # A half of 1500, with a standard deviation of 19.4: outside of 5.4 of them with chance 7e-8, four times.
    assert np.all(np.abs(found[:, 1:5].sum(axis=0) - 750) < 105)


def test_records_have_no_groups_to_limit():
    with pytest.raises(ValueError, match="unit='record'"):
        session(0, "record").limit_rows(PrivateRecords(np.eye(3), np.zeros(3)), 2)
    with pytest.raises(ValueError, match="max_rows"):
        kept(0, max_rows=0)


@pytest.mark.parametrize("before", [False, True], ids=["fresh", "after a statistic"])
def test_limited_records_and_their_parents_share_no_order_of_rows(before):
    # Rows of a group are sorted once a fit. The limited records have other rows at other positions.
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(400, 3)), rng.integers(0, 2, 400).astype(float)
    groups, theta = rng.integers(0, 5, 400), np.array([0.3, -1.0, 2.0])
    records = PrivateRecords(X, y, groups=groups)

    def integers(of):
        counts = magnitude_counts(of, -3, 3, adjacency="replace-one")
        found = [
            of.mean_gradient(LogisticLoss(), theta, 1.0),
            counts,
            class_counts(of, 2, adjacency="replace-one"),
        ]
        found.append(of.predicted(theta).column_sums(0.0, 9.0))
        return [np.array(one._value.on_grid(2.0**-20)) for one in found]

    whole = integers(records) if before else integers(PrivateRecords(X, y, groups=groups))
    few = session(1).limit_rows(records, 10)
    rows = few._rows
    alone = integers(PrivateRecords(rows.X, rows.y, groups=rows.groups))
    for got, wanted in zip(integers(few) + integers(records), alone + whole, strict=True):
        assert np.array_equal(got, wanted)
