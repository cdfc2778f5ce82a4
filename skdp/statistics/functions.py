"""The functions: a column or a table in, a released statistic and its report out."""

from typing import Unpack

from skdp._docs import document
from skdp.statistics.calls import Budget, released, takes_budget
from skdp.statistics.fits import Count, Histogram, Mean, Quantile
from skdp.statistics.released import Released


@document()
@takes_budget()
def mean(
    X: object, *, bounds: object = None, skipna: bool = False, groups: object = None, **budget: Unpack[Budget]
) -> Released:
    """Release the mean of a column, or of each column of a table.

    Parameters
    ----------
    X : array-like, CSR matrix, Blocks or Dask collection of shape (n_samples,) or (n_samples, n_features)
        A column or a table of finite numbers. It is not changed, and a sparse one is never densified.
    bounds : tuple of (low, high), default=None
        Public numbers, or one for each column: values are clipped to them. None searches for a window of each
        column on a public grid, which takes 40 % of the budget (of mu^2). The window leaves out values that few
        units have, and ``noise_std`` does not say so. For shares, of a column of 0 and 1, give ``(0, 1)``.
    skipna : bool, default=False
        Whether NaN is a missing value, which is left out; ``count`` then says how many values are left.
        It is released, too: with bounds at no more noise under replace-one, else for 5 % of the budget.
        False refuses NaN.
    {unit}
        A group counts as one: the mean of its rows.

    Returns
    -------
    Released
        ``value`` is a number for a column, an array for a table. ``bounds`` are those given or released. With
        ``skipna`` a mean is NaN where the noise hides whether there is any value.

    Raises
    ------
    ValueError, TypeError
        If a parameter or the data are not as described. No budget is spent.
    PrivacyBudgetExceeded
        If the accountant does not hold (epsilon, delta). Nothing was read.

    See Also
    --------
    skdp.preprocessing.DPStandardScaler : Releases means and scales and applies them.

    Notes
    -----
    **Privacy.** Each unit adds ``(x - c) / h`` of each column, clipped to [-1, 1], with c and h the middle and the
    half width of the bounds: d columns have l2 sensitivity ``2 sqrt(d)`` under replace-one, and ``sqrt(d)`` under
    zero-out and add-remove. They are released as one vector with Gaussian noise. With ``skipna`` a value that is
    there adds a second entry, which counts it: 1.7 under replace-one, where the l2 sensitivity stays, and 0.75
    else, where it is ``1.25 sqrt(d)``. NaN adds 0 to both. Time and memory are not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import mean
    >>> ages = np.random.default_rng(0).integers(18, 90, size=10_000)
    >>> found = mean(ages, bounds=(18, 90), epsilon=0.5)
    >>> bool(abs(found.value - ages.mean()) < 5 * found.noise_std)
    True
    """
    fit = Mean(bounds=bounds, skipna=skipna, **budget)
    return released(fit, X, groups)


@document(mean)
@takes_budget()
def quantile(
    X: object,
    q: object = 0.5,
    *,
    bounds: object = None,
    skipna: bool = False,
    groups: object = None,
    **budget: Unpack[Budget],
) -> Released:
    """Release a quantile of a column, or of each column of a table; by default the median.

    Parameters
    ----------
    q : float or sequence of float, default=0.5
        In (0, 1): the part of the values that does not exceed the result. Several levels are searched together
        for one charge, by histograms between a threshold for each level.
    bounds : tuple of (low, high), default=None
        Public numbers, or one for each column, between which an even grid is searched. None searches for the
        scale of each column on public grids, which takes 60 % of the budget (of mu^2), of several levels 40 %.
    skipna : bool, default=False
        Whether NaN is a missing value, which is left out; ``count`` then says how many values are left. It is
        released, too, for 5 % of the budget (of mu^2). False refuses NaN.
    {unit}
        A group counts as one: the share of its rows that does not exceed a number.

    Returns
    -------
    Released
        ``value`` is a number for a column, an array for a table. Of several levels it has shape (n_levels,) or
        (n_levels, n_features), as in ``numpy.quantile``. ``noise_std`` is the noise of a count of the search, as a
        share of the records; of several levels it has an entry for each.

    See Also
    --------
    skdp.preprocessing.DPQuantileScaler : Releases medians and quantiles of distances and applies them.

    Notes
    -----
    **Privacy.** A question releases for each column the number of units at or below a grid point. Each unit adds
    1/2 or -1/2 to each column, so d columns have l2 sensitivity ``sqrt(d)`` under replace-one, and half of that
    under zero-out and add-remove. For several levels it is a histogram of the intervals between their points,
    with l2 sensitivity ``sqrt(2 d)`` under replace-one and ``sqrt(d)`` else, however many levels there are. The
    number of questions is public, and each has Gaussian noise. Time and memory are not protected.

    Examples
    --------
    Find a clip norm for a method that clips rows:

    >>> import numpy as np
    >>> from skdp.statistics import quantile
    >>> X = np.random.default_rng(0).normal(size=(5000, 16))
    >>> found = quantile(np.linalg.norm(X, axis=1), 0.9, epsilon=1.0)
    >>> bool(4 < found.value < 6)
    True
    """
    fit = Quantile(q=q, bounds=bounds, skipna=skipna, **budget)
    return released(fit, X, groups)


@document(mean)
@takes_budget()
def count(
    X: object, *, bounds: object = None, skipna: bool = False, groups: object = None, **budget: Unpack[Budget]
) -> Released:
    """Release how many values of a column, or of each column of a table, lie between bounds.

    Parameters
    ----------
    bounds : tuple of (low, high), default=None
        Public numbers, or one for each column; both ends count, and they may be infinite. None counts all:
        under "add-remove" this releases the number of records.
    skipna : bool, default=False
        Whether NaN is a missing value, which lies between no bounds: without bounds the values that are there are
        counted. False refuses NaN.
    {unit}
        A group counts as one: the share of its rows that lies between the bounds.
    n_public : int, default=None
        Public number of records (or groups), which "add-remove" needs. A count does not divide by it, so the
        order of magnitude is enough.

    Returns
    -------
    Released
        ``value`` is a number for a column, an array for a table. It may be negative, because of the noise.

    Notes
    -----
    **Privacy.** Each unit adds at most 1 to each column, so d columns have l2 sensitivity ``sqrt(d)`` under all
    adjacencies. They are released as one vector with Gaussian noise. Time and memory are not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import count
    >>> ages = np.random.default_rng(0).integers(18, 90, size=10_000)
    >>> found = count(ages, bounds=(65, np.inf), epsilon=0.5)
    >>> bool(abs(found.value - (ages >= 65).sum()) < 5 * found.noise_std)
    True
    """
    fit = Count(bounds=bounds, skipna=skipna, **budget)
    return released(fit, X, groups)


@document(mean)
@takes_budget()
def histogram(
    X: object,
    bins: object = 10,
    *,
    bounds: object = None,
    skipna: bool = False,
    groups: object = None,
    **budget: Unpack[Budget],
) -> Released:
    """Release a histogram of a column, or of each column of a table.

    Parameters
    ----------
    bins : int or sequence of float, default=10
        Number of bins of equal width between the bounds, or public edges for all columns. As in
        ``numpy.histogram`` a bin holds its left edge, and the last one holds both. Outer edges may be infinite.
    bounds : tuple of (low, high), default=None
        Public numbers, or one for each column; values beyond them are in no bin. None searches for a window of
        each column on a public grid, which takes 40 % of the budget (of mu^2). Not used with edges.
    skipna : bool, default=False
        Whether NaN is a missing value, which is in no bin; ``count`` then says how many values are left. It is
        released, too, for 5 % of the budget (of mu^2). False refuses NaN.
    {unit}
        A group counts as one: it adds to each bin the share of its rows.

    Returns
    -------
    Released
        ``value`` has shape (n_bins,) for a column, (n_features, n_bins) for a table, and ``bin_edges`` one more
        entry in the last axis. Counts may be negative, because of the noise.

    Notes
    -----
    **Privacy.** A unit adds at most 1 in all to the bins of a column: d columns have l2 sensitivity ``sqrt(2 d)``
    under replace-one, and ``sqrt(d)`` under zero-out and add-remove. They are released as one vector with Gaussian
    noise. Time and memory are not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import histogram
    >>> ages = np.random.default_rng(0).integers(18, 90, size=10_000)
    >>> found = histogram(ages, bins=[18, 30, 45, 65, 90], epsilon=0.5)
    >>> found.value.shape, found.bin_edges.tolist()
    ((4,), [18.0, 30.0, 45.0, 65.0, 90.0])
    """
    fit = Histogram(bins=bins, bounds=bounds, skipna=skipna, **budget)
    return released(fit, X, groups)
