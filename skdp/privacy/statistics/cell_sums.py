"""Linear answers about tables of counts: a public matrix times the number of units in each cell."""

import math
from collections.abc import Sequence
from fractions import Fraction

import numpy as np

from skdp.kernels.protocols import Floats, Integers
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.cell_matrices import columns_moved
from skdp.privacy.partitions.rows import over_partitions
from skdp.privacy.rows import HoldsRows
from skdp.privacy.statistics.column_counts import host_only

__all__ = ["cell_sums"]


# A group's shares of the cells are rounded down to multiples of the inverse of this number.
_SHARES = 2**30


@over_partitions
def cell_sums(
    records: HoldsRows, matrices: Sequence[Integers], grid: float, *, adjacency: str
) -> BoundedStatistic:
    """Answer linear questions about the cells of one or more tables.

    Feature j of a record is the number of its cell in table j, an integer from 0. Any other number is in no cell.
    The answers of table j are ``grid * matrices[j] @ counts``, with the number of units in each cell. A group
    counts in each cell by the share of its rows. Sample weights and the intercept take no part.

    Parameters
    ----------
    records : PrivateRecords
    matrices : sequence of ndarray of int64 of shape (n_answers, n_cells) or (n_cells,)
        One for each feature. Public. A vector stands for a diagonal matrix.
    grid : float
        > 0: the unit of their entries. Public.
    adjacency : {"replace-one", "zero-out", "add-remove"}
        The session's.

    Returns
    -------
    BoundedStatistic
        Of shape (total number of answers,).

    Notes
    -----
    **Privacy.** A record adds the column of its cell, of each table, or 0. A group of r rows, m_c of them in
    cell c, adds the sum of w_c a_c with w_c = floor(H m_c / r) / H and H = 2**30: the weights are not negative and
    add up to at most 1, so a unit adds a point of the convex hull of the columns and 0. The distance of two points
    is a convex function of each of them, and largest at corners: a replaced unit moves the answers by at most the
    largest distance of two columns, or of a column and 0. A unit that comes or goes moves them by at most the
    longest column. Both are computed from the integer matrix itself (`columns_moved`). Tables are released
    together, and the squares of a unit's changes add up.

    The counts are integers, and so is their product with a matrix: it is computed without rounding. Then the
    answers are rounded to the nearest multiples of the release's unit, exactly, by integers of any length. Two
    roundings of numbers that are x apart are at most x + 1 apart: this is the one rounding that the session adds
    for each answer. Which cell a record counts in follows from its own feature, see `skdp.kernels.counts`. An
    empty group adds 0.
    """
    rows = records._rows
    d = rows.shape.n_features
    if len(matrices) != d or any(m.dtype != np.int64 or m.ndim not in (1, 2) for m in matrices):
        raise ValueError(f"give one matrix of int64 for each of the {d} features")
    if not (math.isfinite(grid) and grid > 0):
        raise ValueError("grid must be finite and > 0")
    host_only(rows)
    tables = [np.array(matrix) for matrix in matrices]
    moved = math.fsum(columns_moved(table, adjacency) ** 2 for table in tables)
    largest = max(int(np.abs(table).max()) for table in tables)
    size = sum(len(table) for table in tables)

    def words(_unit: float = 1.0) -> tuple[Integers, ...]:
        """The units of each cell, in shares of H."""
        from skdp.kernels.counts.counts_by_bin import bin_counts

        members = rows.members()
        columns = np.asarray(rows.matrix)  # codes are never sparse: most are not 0
        found = []
        for j, table in enumerate(tables):
            edges = np.arange(table.shape[-1] + 1.0)
            # A code of [c, c + 1) is cell c; the last bin would hold its right edge too.
            edges[-1] = math.nextafter(edges[-1], 0.0)
            found.append(bin_counts(columns[:, j : j + 1], members, edges[None], _SHARES)[0])
        return tuple(found)

    def exact(words: tuple[Integers, ...]) -> list[int]:
        """The answers in units of grid / H."""
        found: list[int] = []
        for table, counts in zip(tables, words, strict=True):
            high, low = np.divmod(counts, _SHARES)
            two = (table * high, table * low) if table.ndim == 1 else (table @ high, table @ low)
            found += [int(a) * _SHARES + int(b) for a, b in zip(*two, strict=True)]
        return found

    def whole(unit: float, words: tuple[Integers, ...]) -> Integers:
        scale = Fraction(grid) / (Fraction(unit) * _SHARES)
        top, bottom = scale.numerator, scale.denominator
        nearest = ((2 * top * answer + bottom) // (2 * bottom) for answer in exact(words))
        # Sums of more units than they are laid out for wrap around modulo 2**64, see `Source.usual`.
        wrapped = ((number + 2**63) % 2**64 - 2**63 for number in nearest)
        return np.fromiter(wrapped, dtype=np.int64, count=size)

    def plain() -> Floats:
        return np.array([answer * (grid / _SHARES) for answer in exact(words())])

    return BoundedStatistic.from_source(
        rows.source(
            lambda unit: whole(unit, words(unit)),
            plain,
            contribution=grid * largest,
            roundings=1,
            words=words,
            whole=whole,
        ),
        (size,),
        l2=grid * math.sqrt(moved) * (1 + 2.0**-50),
        adjacency=adjacency,
    )
