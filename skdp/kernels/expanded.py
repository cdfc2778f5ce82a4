"""A table with features that are made of standardized columns while they are read: none of them is stored."""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from skdp.kernels.protocols import Floats, Integers
from skdp.kernels.standardized import LazyTable, StandardizedTable

# Standardized cells that are made together, to stay in the second-level cache; a choice, not tuned.
MADE = 2**14
# Functions that the loops compute of each column, by the last one that is a feature.
EACH = (1, 2, 4, 4)


@dataclass(frozen=True, eq=False, repr=False)
class ExpandedTable(LazyTable):
    """Standardized cells, smooth functions of them, one-hots of raw cells and products, in this order.

    Attributes
    ----------
    table : StandardizedTable
        Of the columns that take part.
    lines : ndarray of int64
        Columns of ``table`` that are features.
    owner, order : ndarray of int64
        Of each smooth function: the column of ``table``, and which function of it, from 0.
    level_columns : ndarray of int64
        Of each one-hot: the column of ``table.X``, ascending.
    levels : ndarray of float64
        Of each one-hot: the value whose cells it marks.
    pairs : ndarray of int64 of shape (m, 2)
        Of each product: two columns of ``table``.
    edge : float
        Functions and products are made of cells clipped to +-edge.
    coefficients : ndarray of shape (4, 6)
        Of the functions, in 1, c, s, s^2, s^3, s^4 with s = sin(pi c / 5) of a clipped cell c.
    level_weight : float
        A one-hot is this or 0.
    """

    table: StandardizedTable
    lines: Integers
    owner: Integers
    order: Integers
    level_columns: Integers
    levels: Floats
    pairs: Integers
    edge: float
    coefficients: Floats
    level_weight: float

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.table.shape[0], int(self._ends[-1])

    @cached_property
    def _ends(self) -> Integers:
        """Where cells, functions, one-hots and products end."""
        return np.cumsum([self.lines.size, self.owner.size, self.levels.size, len(self.pairs)])

    def restricted(self, columns: Integers) -> "ExpandedTable":
        """The table of some features, ascending; only they, and the columns that they need, are made."""
        columns = np.asarray(columns, dtype=np.int64)
        if not (columns[1:] > columns[:-1]).all():
            raise ValueError("columns of an expanded table must ascend")
        split = np.split(columns, np.searchsorted(columns, self._ends[:3]))
        line, function, level, product = (
            of - begin for of, begin in zip(split, (0, *self._ends[:3]), strict=True)
        )
        lines, owner, pairs = self.lines[line], self.owner[function], self.pairs[product]
        used = np.unique(np.concatenate([lines, owner, pairs.reshape(-1)]))
        return replace(
            self,
            table=self.table.restricted(used),
            lines=np.searchsorted(used, lines),
            owner=np.searchsorted(used, owner),
            order=self.order[function],
            level_columns=self.level_columns[level],
            levels=self.levels[level],
            pairs=np.searchsorted(used, pairs),
        )

    def _fill(self, rows: Integers | None, first: int, count: int, out: Floats) -> None:
        from skdp.kernels.expanded_rows import add_features, add_levels
        from skdp.kernels.inputs import frozen

        d = self.table.shape[1]
        step = max(1, min(count, MADE // max(1, d)))
        cells = np.empty((step, d))
        for start in range(0, count, step):
            stop = min(count, start + step)
            made = cells[: stop - start]
            if rows is None:
                self.table.fill(first + start, first + stop, made)
            else:
                self.table.fill_rows(rows[first + start : first + stop], made)
            add_features(frozen(made), *self._functions, out[start:stop])
        if self.levels.size:
            add_levels(frozen(self.table.X), rows, first, *self._marks, out[:count])

    @cached_property
    def _functions(self) -> tuple[object, ...]:
        """The arguments of `add_features`."""
        columns = np.unique(np.concatenate([self.owner, self.pairs.reshape(-1)]))
        left, right = np.searchsorted(columns, self.pairs).T
        each = EACH[self.order.max(initial=0)]
        source = each * np.searchsorted(columns, self.owner) + self.order
        return (
            self.lines, columns, self.edge, self.coefficients, each, source,
            np.ascontiguousarray(left), np.ascontiguousarray(right), self.levels.size,
        )  # fmt: skip

    @cached_property
    def _marks(self) -> tuple[object, ...]:
        """The arguments of `add_levels`. A value that X's type cannot hold marks nothing."""
        with np.errstate(over="ignore"):
            levels = self.levels.astype(self.table.X.dtype)
        levels[~np.isfinite(levels)] = np.nan
        columns, begins = np.unique(self.level_columns, return_index=True)
        ends = np.append(begins, self.levels.size)
        return columns, ends, levels, self.level_weight, int(self._ends[1])
