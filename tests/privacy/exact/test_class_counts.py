"""Class counts: what one record, or one group of any size, changes, in exact integers."""

import itertools
import math

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.statistics import class_counts

ADJACENCIES = ("replace-one", "zero-out", "add-remove")


def made(codes, k=3, groups=None, adjacency="replace-one", **options):
    codes = np.asarray(codes, dtype=float)
    records = PrivateRecords(np.zeros((codes.size, 2)), codes, groups=groups, **options)
    return class_counts(records, k, adjacency=adjacency)


def integers(codes, grid=2.0**-20, **options):
    return made(codes, **options)._value.on_grid(grid)


def norm(difference):
    return math.sqrt(sum(int(v) ** 2 for v in difference))


def test_it_counts():
    assert made([0, 2, 2, 1, 2])._value.plain().tolist() == [1, 1, 3]
    assert made([0, 2, 2, 1, 2], groups=[0, 0, 1, 1, 1])._value.plain() == pytest.approx([0.5, 1 / 3, 0.5 + 2 / 3])


def test_other_targets_count_nowhere():
    assert made([0, 7, -1, math.nan, 1])._value.plain().tolist() == [1, 1, 0]


def test_declared_bounds():
    assert made([0, 1]).l2 == pytest.approx(math.sqrt(2), rel=1e-12)
    for adjacency in ADJACENCIES[1:]:
        assert made([0, 1], adjacency=adjacency).l2 == 1.0


@pytest.mark.parametrize("grid", [2.0**-20, 0.3, 1 / 3, 7e-5])
def test_a_record_moves_no_more_than_declared(grid):
    others = [0, 1, 2, 2]
    every = [integers([*others, c], grid, n_public=5) for c in (0, 1, 2, 9, math.nan)]
    gone = integers(others, grid, n_public=5)
    largest = max(norm(a - b) for a, b in itertools.combinations(every, 2))
    assert 0.6 * math.sqrt(2) <= largest * grid <= math.sqrt(2)
    assert max(norm(a - gone) for a in every) * grid <= 1.0


@pytest.mark.parametrize("grid", [2.0**-20, 0.3, 1 / 3, 7e-5])
def test_a_group_moves_no_more_whatever_its_size(grid):
    rng = np.random.default_rng(0)
    every = []
    for rows in (1, 2, 3, 7, 49, 1000):
        for own in (np.zeros(rows), np.ones(rows), rng.integers(0, 3, rows), np.arange(rows) % 4):
            codes = np.concatenate([own, [0, 1, 1, 2]])
            groups = np.concatenate([np.zeros(rows, int), [1, 1, 2, 3]])
            every.append(integers(codes, grid, groups=groups))
    empty = integers([9, 0, 1, 1, 2], grid, groups=[0, 1, 1, 2, 3])
    assert max(norm(a - b) for a, b in itertools.combinations(every, 2)) * grid <= math.sqrt(2)
    assert max(norm(a - empty) for a in every) * grid <= 1.0


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_it_can_be_released(adjacency):
    session = PrivacySession(epsilon=8.0, delta=1e-6, adjacency=adjacency, accountant=False)
    bounded = made([0, 1, 1] * 50, adjacency=adjacency, n_public=150)
    plan = session.plan_gaussian(1, 1.0)
    assert session.gaussian(bounded, plan) == pytest.approx([50, 100, 0], abs=20)
    assert session.report().epsilon == 8.0


def test_the_container_does_not_matter():
    X, y = np.eye(4), np.array([0.0, 1.0, 1.0, 2.0])
    for form in (np.asfortranarray, sp.csr_matrix, np.float32):
        records = PrivateRecords(form(X), y)
        assert class_counts(records, 3, adjacency="zero-out")._value.plain().tolist() == [1, 2, 1]
