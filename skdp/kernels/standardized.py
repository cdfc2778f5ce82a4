"""Tables whose cells are made while they are read: clipped, centred and scaled, so that no copy is made."""

from abc import ABC, abstractmethod
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from skdp.kernels.protocols import Floats, Integers

REPEATED = 256  # cells that a loop works on at once where rows are shorter; a choice, not tuned


class LazyTable(ABC):
    """A table of float64 whose rows are made while they are read, each from one stored row."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @property
    def dtype(self) -> np.dtype[np.float64]:
        """Of the cells."""
        return np.dtype(np.float64)

    @abstractmethod
    def restricted(self, columns: Integers) -> "LazyTable":
        """The table of some columns, ascending, of which alone the cells are made."""

    @abstractmethod
    def _fill(self, rows: Integers | None, first: int, count: int, out: Floats) -> None:
        """Write the chosen rows (None means all) ``first`` to ``first + count`` to ``out``."""

    def fill(self, first: int, last: int, out: Floats) -> None:
        """Write the rows ``first`` to ``last`` to the first rows and columns of ``out``."""
        self._fill(None, first, last - first, out)

    def fill_rows(self, rows: Integers, out: Floats) -> None:
        """Write chosen rows to the first rows and columns of ``out``."""
        count = len(rows)
        if count and rows[-1] - rows[0] == count - 1 and bool((rows[1:] > rows[:-1]).all()):
            self.fill(int(rows[0]), int(rows[0]) + count, out)  # neighbours, which are read faster
        else:
            self._fill(rows, 0, count, out)

    def whole(self) -> Floats:
        """All rows, in C order: a copy in float64."""
        made = np.empty(self.shape)
        self.fill(0, len(made), made)
        return made


@dataclass(frozen=True, eq=False, repr=False)
class StandardizedTable(LazyTable):
    """Cells ``(clip(x, low, high) - center) / scale`` of float64, made a block of rows at a time.

    NaN becomes 0. Each operation is rounded by itself, so a cell's bits do not depend on its place, on the memory
    order of X or on the block.

    Attributes
    ----------
    X : ndarray of shape (n, n_columns), float32 or float64
        In any memory order; never written to.
    columns : ndarray of int64 of shape (d,), or None
        Columns of X, ascending; None means all.
    numbers : ndarray of shape (4, d)
        Centre, scale, and the two ends of each column of the table.
    """

    X: Floats
    columns: Integers | None
    numbers: Floats

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self.X.shape[0], self.numbers.shape[1]

    def restricted(self, columns: Integers) -> "StandardizedTable":
        """The table of some columns; X is shared."""
        columns = np.asarray(columns, dtype=np.int64)
        own = columns if self.columns is None else self.columns[columns]
        return StandardizedTable(self.X, own, np.ascontiguousarray(self.numbers[:, columns]))

    def _fill(self, rows: Integers | None, first: int, count: int, out: Floats) -> None:
        from skdp.kernels.inputs import frozen
        from skdp.kernels.standardized_rows import by_columns, by_rows, flat

        X, columns, out = frozen(self.X), self.columns, out[:count]
        if not X.flags.c_contiguous:
            by_columns(X, columns, *self.numbers, rows, first, out)
        elif rows is None and columns is None and out.shape == (count, X.shape[1]):
            cells = X[first : first + count].reshape(-1)
            flat(cells, *self._repeated, out.reshape(-1))
        else:
            by_rows(X, columns, *self.numbers, rows, first, out)

    @cached_property
    def _repeated(self) -> Floats:
        """The numbers of the columns, repeated for as many rows as make a loop long enough."""
        d = self.numbers.shape[1]
        return np.tile(self.numbers, max(1, -(-REPEATED // max(1, d))))
