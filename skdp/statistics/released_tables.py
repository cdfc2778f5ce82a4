"""Tables of released numbers, with the noise in each: the results of `describe` and `crosstab`."""

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from skdp._docs import document
from skdp.privacy import PrivacyReport

MOST_DIGITS = 6  # after the point of a number that is shown


def table_text(rows: Sequence[Sequence[str]], n_labels: int = 1) -> str:
    """Return rows of cells as lines, the first columns to the left and the others to the right."""
    widths = [max(map(len, column)) for column in zip(*rows)]
    lines = (
        "  ".join(
            cell.ljust(width) if j < n_labels else cell.rjust(width)
            for j, (cell, width) in enumerate(zip(row, widths))
        ).rstrip()
        for row in rows
    )
    return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False)
class ReleasedTable:
    """A table of released numbers and of the noise in them.

    Attributes
    ----------
    value : ndarray of shape (n_rows, n_columns)
        NaN where a row has no such number, or where the noise hides it.
    noise_std : ndarray of shape (n_rows, n_columns)
        Standard deviation of the noise in each number, made of public and released numbers; NaN where
        there is none.
    index, columns : tuple
        Labels of the rows and of the columns. With several ``index_names`` a row's label is a tuple.
    index_names : tuple of str
    privacy_ : PrivacyReport
        The report of the table.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import crosstab
    >>> rng = np.random.default_rng(0)
    >>> smokes, ill = rng.integers(0, 2, size=(2, 10_000))
    >>> table = crosstab(smokes, ill, categories=([0, 1], [0, 1]), epsilon=1.0)
    >>> table.value.shape, table.columns
    ((4, 4), (0, 1, 'other', 'missing'))
    """

    value: np.ndarray
    noise_std: np.ndarray
    index: tuple[Any, ...]
    columns: tuple[object, ...]
    index_names: tuple[str, ...]
    privacy_: PrivacyReport

    def to_frame(self, *, noise_std: bool = False) -> Any:
        """Return the numbers as a pandas DataFrame.

        Parameters
        ----------
        noise_std : bool, default=False
            Return the standard deviations of the noise in place of the numbers.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError(
                "to_frame needs pandas: pip install pandas; value and noise_std have the same numbers as arrays"
            ) from error
        several = len(self.index_names) > 1
        index = (
            pd.MultiIndex.from_tuples(self.index, names=self.index_names)
            if several
            else pd.Index(self.index, name=self.index_names[0], dtype=object)
        )
        numbers = self.noise_std if noise_std else self.value
        return pd.DataFrame(numbers.copy(), index=index, columns=list(self.columns))

    def __repr__(self) -> str:
        return f"{self._text()}\n<{_about(self.privacy_)}>"

    def _text(self) -> str:
        """The table alone."""
        return table_text(self._cells(), len(self.index_names))

    def _repr_html_(self) -> str:
        return self._html(_about(self.privacy_))

    def _html(self, caption: str = "") -> str:
        """The table, with a caption below it."""
        head, *rows = [[html.escape(cell) for cell in row] for row in self._cells()]
        k = len(self.index_names)
        parts = ["<table><thead><tr>", *(f"<th>{cell}</th>" for cell in head), "</tr></thead><tbody>"]
        for row in rows:
            parts += ["<tr>", *(f"<th>{cell}</th>" for cell in row[:k])]
            parts += [*(f"<td>{cell}</td>" for cell in row[k:]), "</tr>"]
        end = f"<caption style='caption-side:bottom'>{html.escape(caption)}</caption>" if caption else ""
        return "".join([*parts, f"</tbody>{end}</table>"])

    def _cells(self) -> list[list[str]]:
        """The table as text, its head first."""
        rows = [[*self.index_names, *map(str, self.columns)]]
        for label, numbers, noise in zip(self.index, self.value, self.noise_std):
            labels = label if len(self.index_names) > 1 else (label,)
            rows.append([*map(str, labels), *map(shown, numbers, noise)])
        return rows


def shown(number: float, noise: float) -> str:
    """A number with as many digits as its noise leaves, and the noise with one or two."""
    if math.isnan(number):
        return ""
    if not 0 < noise < math.inf:
        return f"{number + 0.0:.6g}"  # not -0
    digits = max(0, 1 - math.floor(math.log10(noise)))
    if digits > MOST_DIGITS:  # it would be shown as 0
        return f"{number:.3g} ± {noise:.2g}"
    return f"{round(number, digits) + 0.0:.{digits}f} ± {noise:.{digits}f}"


def claim_text(report: PrivacyReport) -> str:
    """The claim of a report, in the words of a table's last line."""
    return f"epsilon={report.epsilon:.6g}, delta={report.delta:g}, {report.adjacency}, unit {report.unit}"


def _about(report: PrivacyReport, *, clipped: bool = False) -> str:
    """One line on the release and its noise: public numbers and parameters alone."""
    more = "; values beyond low and high count as these, which ± leaves out" if clipped else ""
    return f"±: standard deviation of the noise{more}. {claim_text(report)}"


@dataclass(frozen=True, eq=False, repr=False)
class Description:
    """The releases of `describe` for a frame.

    Attributes
    ----------
    table : ReleasedTable
        A row for each column of numbers, with an empty category, and for each category of the other columns.
    by_table : ReleasedTable or None
        With ``by``: the same for each group.
    bounds : dict
        Of each column of numbers the window (low, high) to which values were clipped: given or released.
    level_noise_std : ndarray of shape (3,)
        Of the three quartiles the standard deviation of the noise in an answer of the search, as a share of the
        units: the level is off by about so much.
    by : object
        The name of the column of the groups, or None.
    privacy_ : PrivacyReport
        The report of both tables together.

    See Also
    --------
    describe : Releases it.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import describe
    >>> X = np.random.default_rng(0).normal(170, 10, size=(20_000, 2))
    >>> found = describe(X, epsilon=1.0)
    >>> found.table.index, found.table.columns[:4]
    (((0, ''), (1, '')), ('count', 'missing', 'share', 'mean'))
    """

    table: ReleasedTable
    by_table: ReleasedTable | None
    bounds: dict[object, tuple[float, float]]
    level_noise_std: np.ndarray
    by: object
    privacy_: PrivacyReport = field(repr=False)

    @property
    def noise_std(self) -> np.ndarray:
        """Standard deviations of the noise in the numbers of ``table``."""
        return self.table.noise_std

    @document(ReleasedTable.to_frame)
    def to_frame(self, *, noise_std: bool = False) -> Any:
        """Return the table of the columns as a pandas DataFrame; the groups' table is ``by_table.to_frame()``."""
        return self.table.to_frame(noise_std=noise_std)

    def __repr__(self) -> str:
        by = "" if self.by_table is None else f"\n\nby {self.by}\n{self.by_table._text()}"
        return f"{self.table._text()}{by}\n<{self._about()}>"

    def _about(self) -> str:
        return _about(self.privacy_, clipped=bool(self.bounds))

    def _repr_html_(self) -> str:
        page = self.table._html(self._about())
        if self.by_table is None:
            return page
        return f"{page}<p>by {html.escape(str(self.by))}</p>{self.by_table._html()}"
