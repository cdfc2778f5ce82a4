"""`describe` and `crosstab`: a frame or two columns in, tables of released numbers and one report out."""

from typing import Any, Unpack

import numpy as np

from skdp._docs import document
from skdp.base.blocks import Blocks, is_blocks
from skdp.base.cells import check_collected
from skdp.base.each_block import paired
from skdp.statistics.calls import Budget, takes_budget
from skdp.statistics.column_moments import MIN_SIGNIFICANT_COUNT, ColumnMoments, Counted
from skdp.statistics.describe_fit import Crosstab, Describe
from skdp.statistics.frames import check_categories, labels_of
from skdp.statistics.functions import count, mean
from skdp.statistics.released_tables import Description, ReleasedTable

QUARTILES = ("25%", "50%", "75%")
OF_COLUMNS = ("count", "missing", "share", "mean", "std", *QUARTILES, "low", "high", "clipped")
OF_GROUPS = ("count", "share", "mean", "std")
NO_CATEGORY = ""  # the category of a row that is about a column of numbers


@document(mean)
@takes_budget()
def describe(
    frame: object,
    *,
    bounds: object = None,
    categories: object = None,
    by: object = None,
    groups: object = None,
    **budget: Unpack[Budget],
) -> Description:
    """Release the first table of a paper: means, deviations and quartiles of columns, and counts.

    All is paid by one charge. Columns of numbers and of bools are known by their types. NaN is a missing value.
    A column of text needs public categories.

    Parameters
    ----------
    frame : DataFrame, ndarray, CSR matrix or Blocks of shape (n_samples, n_columns)
        A data frame of pandas or Polars, or an array, whose columns then have the names 0, 1, ... It is not
        changed, and a sparse one is never densified. Names and types of columns count as public.
    bounds : tuple of (low, high) or dict, default=None
        Public numbers: a pair for all columns of numbers, or a dict of pairs by column. Values are clipped to
        them. None, or a column that the dict leaves out, searches for a window on a public grid, which takes up to
        40 % of the budget of the columns of numbers. The window leaves out values that few units have, and
        ``noise_std`` does not show it: the mean of a skewed column is then too low, and the mean of a rare 0 or 1
        in a column of floats may be 0. Of whole numbers (types without NaN) a window is at least 2 long.
    categories : dict of list, default=None
        Public labels, by column. A number is the label of equal value, and a text of equal text. Other values
        count as "other" and missing ones as "missing", unless these are labels. A column of bools has the labels
        False and True. A pandas Categorical needs them, too: its own may come from the data.
    by : str, default=None
        Name of a column with categories: means, deviations and counts are released for each of its groups as well,
        for 30 % of the budget of the columns of numbers. Quartiles are not.
    {unit}
        A group counts as one: it adds the mean over its rows.
    n_public : int, default=None
        Public number of records (or groups), which "add-remove" needs. Shares of categories and of missing values
        are divided by it; means are not.

    Returns
    -------
    Description
        Its ``table`` has a row for each column of numbers and for each category: ``count`` of the values that are
        there, or of the category; ``missing`` and ``share``, as shares of the units; ``mean``, ``std`` and
        quartiles; ``low`` and ``high``, the window; ``clipped``, the share of values beyond a released one. Its
        ``by_table`` has a row for each of these rows and each group; ``share`` is then the share of the group. A
        number that the noise hides is NaN. The noise of a quartile is the noise of its level, ``level_noise_std``.

    See Also
    --------
    mean : A mean alone has all of the budget.
    crosstab : Counts of pairs of categories.

    Notes
    -----
    **Privacy.** Each of d columns of numbers counts 5 times as much as one of q columns of categories when mu^2
    is divided. The releases have Gaussian noise, and these l2 sensitivities under replace-one, and under
    zero-out and add-remove:

    * counts of all categories, as one vector: each unit adds 1 to one cell of each column, or a group its shares.
      ``sqrt(2 q)``, and ``sqrt(q)``. With ``by`` a cell is a pair of a category and a group, and counts of
      categories are sums over groups.
    * numbers of values, where NaN is possible and a window is searched: ``sqrt(d)`` and ``sqrt(d)``.
    * values in a released window: ``sqrt(d)`` and ``sqrt(d)``.
    * windows: questions as in `quantile`, ``sqrt(d)`` and ``sqrt(d) / 2`` each.
    * moments: a value adds ``(u, p, s (u^2 - 1/2))``, u in [-1, 1] its place in the window, and NaN adds 0. With
      p = s = 1.5 that is ``2 sqrt(d)``, as for the values alone; with p = s = 0.75 it is ``1.31 sqrt(d)``.
    * moments by group: the same in the row of the group. Two rows may change at once, so p = 0.86 and s = 1, and
      it is ``2 sqrt(d)`` again; with p = s = 0.75 it is ``1.31 sqrt(d)``.
    * quartiles: a histogram of four intervals a question, ``sqrt(2 d)`` and ``sqrt(d)``.

    A group of rows adds the mean over its rows, a point of their convex hull, so no bound grows. All numbers shown
    are functions of releases and public numbers. Types count as public, but pandas infers them: one missing value
    makes a column of whole numbers a column of floats. Declare them where a file is read, by ``dtype=``. Time and
    memory are not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import describe
    >>> rng = np.random.default_rng(0)
    >>> X = np.column_stack([rng.normal(50, 10, 20_000), rng.integers(0, 2, 20_000)])
    >>> found = describe(X, categories={1: [0, 1]}, by=1, epsilon=1.0)
    >>> row = found.table.value[found.table.index.index((0, ""))]
    >>> bool(abs(row[found.table.columns.index("mean")] - 50) < 2)
    True
    """
    if not is_blocks(frame):
        check_collected(frame=frame, groups=groups)
    names = frame.feature_names if isinstance(frame, Blocks) else None
    fit = Describe(bounds=bounds, categories=categories, by=by, names=names, **budget)
    done = fit.fit(frame, None, groups=groups)
    n_units = _units(done)
    over_groups = None if by is None else _by_group(done)
    return Description(
        _table(done, _of_columns(done, n_units), OF_COLUMNS, ("column", "category")),
        None if over_groups is None else _table(done, over_groups, OF_GROUPS, ("column", "category", str(by))),
        _bounds(done),
        getattr(done, "level_noise_std_", np.full(3, np.nan)),
        by,
        done.privacy_,
    )


@document(count)
@takes_budget()
def crosstab(
    a: object, b: object, *, categories: Any, groups: object = None, **budget: Unpack[Budget]
) -> ReleasedTable:
    """Release how many units have each pair of categories of two columns.

    Parameters
    ----------
    a, b : array-like or Blocks of shape (n_samples,)
        Columns of labels: numbers, text, bools or a pandas Categorical. They are not changed.
    categories : tuple of two lists
        Public labels of ``a`` and of ``b``. A number is the label of equal value, and a text of equal text. Other
        values count as "other" and missing ones as "missing", unless these are labels.
    {unit}
        A group counts as one: it adds to each cell the share of its rows.

    Returns
    -------
    ReleasedTable
        The rows are the labels of ``a``, the columns the labels of ``b``. Counts may be negative, because of the
        noise.

    See Also
    --------
    describe : Counts of all columns by group, with the means of others.

    Notes
    -----
    **Privacy.** A unit adds at most 1 in all to the cells. Hence their l2 sensitivity is ``sqrt(2)`` under
    replace-one, and 1 under zero-out and add-remove. They are released as one vector with Gaussian noise. Time and
    memory are not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import crosstab
    >>> rng = np.random.default_rng(0)
    >>> ward, ill = rng.integers(0, 3, 10_000), rng.random(10_000) < 0.2
    >>> table = crosstab(ward, ill, categories=([0, 1, 2], [False, True]), epsilon=0.5)
    >>> table.index, table.columns
    ((0, 1, 2, 'other', 'missing'), (False, True, 'other', 'missing'))
    """
    first, second = paired(a, b)
    if not is_blocks(first):
        check_collected(a=a, b=b, groups=groups)
    fit = Crosstab(categories=categories, **budget)
    done = fit.fit(first, second, groups=groups)
    rows, columns = (labels_of(check_categories("categories", labels)) for labels in categories)
    noise = np.full(done.value_.shape, done.noise_std_)
    name = getattr(a, "name", None)  # the name of a Series is public, as the name of a frame's column is
    return ReleasedTable(done.value_, noise, rows, columns, ("a" if name is None else str(name),), done.privacy_)


# ---------------------------------------------------------------- tables from releases


def _units(done: Any) -> int:
    """The public number of units, from the report."""
    public = done.privacy_.public
    return int(next(public[name] for name in ("n_public", "n_groups", "n_records") if name in public))


Row = tuple[tuple[object, ...], dict[str, tuple[float, float]]]


def _table(done: Describe, rows: list[Row], columns: tuple[str, ...], names: tuple[str, ...]) -> ReleasedTable:
    empty = (np.nan, np.nan)
    cells = np.array([[row.get(name, empty) for name in columns] for _, row in rows])
    index = tuple(label for label, _ in rows)
    return ReleasedTable(cells[..., 0], cells[..., 1], index, columns, names, done.privacy_)


def _of_columns(done: Describe, n_units: int) -> list[Row]:
    """A row for each column of numbers and for each category, in the order of the frame."""
    numbers = _parts(done.moments_) if done.columns_.numbers else {}
    rows: list[Row] = []
    for name in done.columns_.names:
        if name in done.columns_.numbers:
            row = _of_numbers(done, numbers, done.columns_.numbers.index(name), n_units)
            rows.append(((name, NO_CATEGORY), row))
            continue
        counts, noise = _over_groups(done.tables_[name])
        for label, found in zip(done.columns_.categories[name], counts):
            row = {"count": (found, noise), "share": (found / n_units, noise / n_units)}
            rows.append(((name, label), row))
    return rows


def _parts(found: ColumnMoments) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Of each statistic the values and their noise."""
    counted = found.counted
    return {"count": (counted.value, counted.noise_std), "mean": found.mean(), "std": found.std()}


def _over_groups(table: Counted) -> tuple[np.ndarray, float]:
    """Counts of a column's categories, of all groups together, and the noise in each."""
    noise = float(table.noise_std.flat[0])
    if table.value.ndim == 1:
        return table.value, noise
    return table.value.sum(axis=1), noise * table.value.shape[1] ** 0.5


def _of_numbers(
    done: Describe, parts: dict[str, tuple[np.ndarray, np.ndarray]], j: int, n_units: int
) -> dict[str, tuple[float, float]]:
    row = {name: _at(*part, j) for name, part in parts.items()}
    count, noise = row["count"]
    row["missing"] = (float(np.clip(1.0 - count / n_units, 0.0, 1.0)), noise / n_units)
    low, high = done.bounds_
    more = {"low": low[j], "high": high[j]}
    if not np.isnan(row["mean"][0]):  # else the noise hides whether there is any value
        more.update(zip(QUARTILES, done.quartiles_[:, j]))
    row["clipped"] = _at(done.clipped_.value, done.clipped_.noise_std, j)
    return {**row, **{name: (float(value), np.nan) for name, value in more.items()}}


def _at(value: np.ndarray, noise: np.ndarray, place: int | tuple[int, int]) -> tuple[float, float]:
    return float(value[place]), float(noise[place])


def _by_group(done: Describe) -> list[Row]:
    """A row for each column of numbers or category, and each group."""
    labels, sizes = done.columns_.categories[done.by], done.tables_[done.by]
    numbers = _parts(done.moments_by_) if done.columns_.numbers else {}
    rows: list[Row] = []
    for name in done.columns_.names:
        for g, label in enumerate(labels):
            size = _at(sizes.value, sizes.noise_std, g)
            if name == done.by:
                rows.append(((name, NO_CATEGORY, label), {"count": size}))
            elif name in done.columns_.numbers:
                place = g, done.columns_.numbers.index(name)
                row = {part: _at(*pair, place) for part, pair in numbers.items()}
                rows.append(((name, NO_CATEGORY, label), row))
            else:
                table = done.tables_[name]
                for k, category in enumerate(done.columns_.categories[name]):
                    row = _in_group(_at(table.value, table.noise_std, (k, g)), size)
                    rows.append(((name, category, label), row))
    return rows


def _in_group(count: tuple[float, float], size: tuple[float, float]) -> dict[str, tuple[float, float]]:
    """A count, and its share of the group where the noise does not hide the group."""
    if not size[0] > max(1.0, MIN_SIGNIFICANT_COUNT * size[1]):
        return {"count": count}
    share = count[0] / size[0]
    return {"count": count, "share": (share, float(np.hypot(count[1], share * size[1])) / size[0])}


def _bounds(done: Describe) -> dict[object, tuple[float, float]]:
    names = done.columns_.numbers
    if not names:
        return {}
    return {name: (float(low), float(high)) for name, low, high in zip(names, *done.bounds_)}
