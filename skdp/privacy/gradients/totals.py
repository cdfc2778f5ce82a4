"""A thread's total of the sums of blocks, and the entries that it has touched."""

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.gradients.parts import Part
from skdp.privacy.pieces import SparseRows

Array = NDArray[np.float64]


class Total:
    """A flat sum of blocks, of which tables are visited only where records touch them.

    Pages of memory that nothing is written to cost nothing, so neither time nor memory grows with the other rows.

    Parameters
    ----------
    size : int
        Number of entries.
    dtype : {"float64", "int64"}
    scale : float or None
        The nearest integers of ``scale`` times a block's sum are added; None adds the sum as it is.

    Attributes
    ----------
    values : ndarray of shape (size,)
    """

    def __init__(self, size: int, dtype: str, scale: float | None) -> None:
        self.values = np.zeros(size, dtype=dtype)
        self._scale = scale
        # For each piece, by its first entry: its end and, for a table, the touched rows and zeros to add in.
        self._pieces: dict[int, tuple[int, NDArray[np.bool_] | None, Array | None]] = {}

    def add(self, first: int, part: Part, factors: Array) -> int:
        """Add a piece of a block whose entries begin at ``first``; return where the next piece begins."""
        with np.errstate(all="ignore"):  # a warning would tell of a value
            if isinstance(part.piece, SparseRows) and part.positions is None:
                return self._add_table(first, part.piece, factors.astype(part.piece.values.dtype))
            found = part.sum(factors)
            here = self.values[first : first + found.size]
            if self._scale is None:
                here += found
            else:
                from skdp.kernels import add_rounded

                add_rounded(here, found, self._scale)
        self._pieces[first] = (first + found.size, None, None)
        return first + int(found.size)

    def _add_table(self, first: int, table: SparseRows, factors: Array) -> int:
        from skdp.kernels import add_rounded_rows

        n_table, width = table.n_table, table.values.shape[2]
        end, touched, block = self._pieces.get(first, (first + n_table * width, None, None))
        if touched is None or block is None:
            touched, block = (np.zeros(n_table, dtype=bool), np.zeros((n_table, width), table.values.dtype))
            self._pieces[first] = (end, touched, block)
        total = self.values[first:end].reshape(n_table, width)
        add_rounded_rows(table.rows, table.values, factors, block, self._scale, total, touched)
        return end

    def positions(self) -> NDArray[np.int64]:
        """Ascending positions of all entries that were added to."""
        found = [np.zeros(0, dtype=np.int64)]
        for first, (end, touched, block) in sorted(self._pieces.items()):
            if touched is None or block is None:
                found.append(np.arange(first, end))
            else:
                rows = np.flatnonzero(touched)
                width = block.shape[1]
                found.append((first + rows[:, None] * width + np.arange(width)).ravel())
        return np.concatenate(found)

    def absorb(self, other: "Total") -> None:
        """Add what another thread has."""
        at = other.positions()
        self.values[at] += other.values[at]
        for first, (end, touched, block) in other._pieces.items():
            own = self._pieces.get(first, (end, touched, block))[1]
            if own is not None and touched is not None:
                touched = own | touched
            self._pieces[first] = (end, touched, block)
