"""Linear answers about cells: what one record, or one group of any size, changes, in exact integers."""

import itertools
import math

import numpy as np
import pytest

from skdp.metrics.strategies import GRID, strategy
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.cell_matrices import LARGEST_ENTRY, columns_moved
from skdp.privacy.statistics import cell_sums

ADJACENCIES = ("replace-one", "zero-out", "add-remove")
MATRIX = np.random.default_rng(0).integers(-900, 900, size=(5, 4))
DIAGONAL = np.array([700, 300, 500])
GRIDS = (2.0**-20, 0.3 * GRID, GRID / 7, 5.1 * GRID)


def made(cells, matrices=(MATRIX,), groups=None, adjacency="replace-one", **options):
    table = np.asarray(cells, dtype=float).reshape(len(cells), -1)
    records = PrivateRecords(table, groups=groups, **options)
    return cell_sums(records, list(matrices), GRID, adjacency=adjacency)


def integers(cells, unit, **options):
    return made(cells, **options)._value.on_grid(unit)


def norm(difference):
    return math.sqrt(sum(int(v) ** 2 for v in difference))


def allowed(bounded, unit):
    """The declared bound, in units: with the one rounding of each answer that the session adds."""
    assert bounded._value.roundings == 1
    return bounded.l2 / unit + math.sqrt(bounded.size)


def test_the_answers_are_the_matrix_times_the_counts():
    cells = [0, 3, 3, 1, 2, 3]
    assert made(cells)._value.plain() == pytest.approx(GRID * MATRIX @ [1, 1, 1, 3])
    found = integers(cells, GRID / 16)
    assert found.tolist() == (16 * MATRIX @ [1, 1, 1, 3]).tolist()
    groups = [0, 0, 1, 1, 1, 1]
    shares = np.array([0.5, 0.25, 0.25, 0.5 + 0.5])
    assert made(cells, groups=groups)._value.plain() == pytest.approx(GRID * MATRIX @ shares)


def test_cells_that_are_not_there_count_nowhere():
    assert made([4, -1, math.nan, 7, 0])._value.plain() == pytest.approx(GRID * MATRIX[:, 0])


def test_several_tables_are_answered_together():
    cells = [[0, 2], [3, 1], [3, 2]]
    found = made(cells, (MATRIX, DIAGONAL))
    assert found._value.plain() == pytest.approx(
        GRID * np.concatenate((MATRIX @ [1, 0, 0, 2], DIAGONAL * [0, 1, 2]))
    )
    assert found.l2 == pytest.approx(
        GRID * math.hypot(columns_moved(MATRIX, "replace-one"), math.hypot(700, 500)), rel=1e-9
    )


def test_the_bound_is_that_of_the_columns():
    columns = MATRIX.T.astype(float)
    apart = [np.linalg.norm(a - b) for a in [*columns, 0 * columns[0]] for b in columns]
    assert columns_moved(MATRIX, "replace-one") == pytest.approx(max(apart), rel=1e-12)
    for adjacency in ADJACENCIES[1:]:
        longest = max(map(np.linalg.norm, columns))
        assert columns_moved(MATRIX, adjacency) == pytest.approx(longest, rel=1e-12)
        assert columns_moved(DIAGONAL, adjacency) == pytest.approx(700, rel=1e-12)
    whole = np.diag(DIAGONAL)
    assert columns_moved(DIAGONAL, "replace-one") == columns_moved(whole, "replace-one")


@pytest.mark.parametrize("unit", GRIDS)
def test_a_record_moves_no_more_than_declared(unit):
    others = [0, 1, 2, 2, 3]
    every = [integers([*others, c], unit, n_public=6) for c in (0, 1, 2, 3, 9)]
    gone = integers(others, unit, n_public=6)
    both, one = made([0]), made([0], adjacency="zero-out")
    moved = max(norm(a - b) for a, b in itertools.combinations(every, 2))
    assert moved <= allowed(both, unit)
    assert moved >= 0.99 * both.l2 / unit - math.sqrt(both.size)
    # The mutant that takes the bound of a record that comes or goes.
    assert moved > 1.2 * allowed(one, unit) or unit > GRID
    assert max(norm(a - gone) for a in every) <= allowed(one, unit)


@pytest.mark.parametrize("unit", GRIDS)
def test_a_group_moves_no_more_whatever_its_size(unit):
    rng = np.random.default_rng(0)
    rest, codes = [0, 1, 2, 2, 3], [1, 1, 2, 3, 3]
    every = []
    for rows in (1, 2, 3, 7, 49, 1000):
        for own in [np.full(rows, c) for c in range(4)] + [rng.integers(0, 5, rows)]:
            groups = np.concatenate([np.zeros(rows, int), codes])
            every.append(integers([*own, *rest], unit, groups=groups))
    empty = integers([9, *rest], unit, groups=[0, *codes])
    both, one = made([0]), made([0], adjacency="zero-out")
    assert max(norm(a - b) for a, b in itertools.combinations(every, 2)) <= allowed(both, unit)
    assert max(norm(a - empty) for a in every) <= allowed(one, unit)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("kind", "n_bins"), [("table", 64), ("confidence", 32), ("probability", 64)])
def test_shipped_strategies_move_as_declared(adjacency, kind, n_bins):
    matrix = strategy(kind, n_bins, adjacency)
    cells = range(matrix.shape[1])
    every = np.array([integers([c], GRID, matrices=(matrix,), n_public=1) for c in cells])
    assert (every == matrix.T).all()
    declared = made([0], (matrix,), adjacency=adjacency).l2 / GRID
    largest = max(map(norm, every))
    if adjacency == "replace-one":
        largest = max(norm(a - b) for a, b in itertools.combinations(every, 2))
    assert 0.999 * declared <= largest <= declared


def test_more_units_than_it_is_laid_out_for_wrap_around():
    unit = GRID * 2.0**-45
    few, many = (integers([3] * n, unit, n_public=1) for n in (1, 3000))
    assert many.tolist() == [(int(v) * 3000 + 2**63) % 2**64 - 2**63 for v in few]


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_it_can_be_released(adjacency):
    session = PrivacySession(epsilon=8.0, delta=1e-6, adjacency=adjacency, accountant=False)
    sums = made([0, 1, 1, 3] * 5000, adjacency=adjacency, n_public=20000)
    answers = session.gaussian(sums, session.plan_gaussian(1, 1.0))
    assert answers == pytest.approx(GRID * MATRIX @ [5000, 10000, 0, 5000], abs=5)


def test_refusals():
    with pytest.raises(ValueError, match="one matrix of int64 for each of the 2 features"):
        made([[0, 1]])
    with pytest.raises(ValueError, match="int64"):
        made([0], (MATRIX.astype(float),))
    with pytest.raises(ValueError, match="entries up to"):
        made([0], (np.array([[LARGEST_ENTRY + 1]]),))
    with pytest.raises(ValueError, match="grid"):
        cell_sums(PrivateRecords(np.zeros((1, 1))), [MATRIX], 0.0, adjacency="zero-out")
