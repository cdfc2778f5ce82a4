"""At most a public number of rows of each group, drawn from the key of the fit."""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.rows import Rows, beside
from skdp.privacy.session.base import SessionBase
from skdp.privacy.session.ledger import check_number

if TYPE_CHECKING:
    from skdp.privacy.records import PrivateRecords

_WORD = 2**62


class GroupRows(SessionBase):
    """The choice of a few rows of each group."""

    def limit_rows(self, records: "PrivateRecords", max_rows: int) -> "PrivateRecords":
        """Return the records with at most ``max_rows`` rows of each group; the others are drawn away.

        Parameters
        ----------
        records : PrivateRecords
            Whose unit is the group.
        max_rows : int
            Public, at least 1.

        Returns
        -------
        PrivateRecords
            With the same public shape.

        Raises
        ------
        ValueError
            If the unit is the record.

        Notes
        -----
        **Privacy.** Each row draws a word of its own, and a group keeps its rows with the smallest words. The
        words are independent: the kept rows of a group are a random function of this group alone, and the kept
        rows of the others have the same law on a neighbouring data set.
        """
        with self._lock:
            self._check_open()
            max_rows, rows = check_number(max_rows, "max_rows"), records._rows
            if rows.groups is None:
                raise ValueError("rows are limited for groups only: these records have unit='record'")
            words = self._keys.commit().integers(_WORD, rows.X.shape[0])
            return type(records)._of(_kept(rows, words, max_rows))


def _kept(rows: Rows, words: NDArray[np.int64], max_rows: int) -> Rows:
    """The first ``max_rows`` of each group by their words, in the order of the records."""
    codes = np.asarray(rows.groups)
    order = np.lexsort((words, codes))
    sorted_codes = codes[order]
    rank = np.arange(codes.size) - np.searchsorted(sorted_codes, sorted_codes)
    chosen = np.sort(order[rank < max_rows])
    return rows.derived(
        X=rows.matrix[beside(rows.matrix, chosen)],
        y=None if rows.y is None else np.asarray(rows.y)[chosen],
        groups=codes[chosen],
        weight=None if rows.weight is None else np.asarray(rows.weight)[chosen],
    )
