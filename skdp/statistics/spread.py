"""The functions for variances and standard deviations."""

from typing import Unpack

from skdp._docs import document
from skdp.statistics.calls import Budget, released, takes_budget
from skdp.statistics.fits import Std, Var
from skdp.statistics.functions import mean
from skdp.statistics.released import Released


@document(mean)
@takes_budget()
def var(
    X: object, *, bounds: object = None, skipna: bool = False, groups: object = None, **budget: Unpack[Budget]
) -> Released:
    """Release the variance of a column, or of each column of a table.

    Parameters
    ----------
    bounds : tuple of (low, high), default=None
        Public numbers, or one for each column: values are clipped to them. None searches for a window of each
        column on a public grid, which takes 40 % of the budget (of mu^2). The window leaves out values that few
        units have, and ``noise_std`` does not say so.
    {unit}
        A group counts as one: its rows share its weight.

    Returns
    -------
    Released
        ``value`` is a number for a column, an array for a table: the mean square around the mean, without a
        correction for degrees of freedom. ``noise_std`` is right to first order.

    See Also
    --------
    std : Its root.
    skdp.preprocessing.DPStandardScaler : Releases means and scales and applies them.

    Notes
    -----
    **Privacy.** Each unit adds ``u = (x - c) / h`` of each column, clipped to [-1, 1], and ``s (u^2 - 1/2)``, with
    c and h the middle and the half width of the bounds. With s = 1.5 the l2 sensitivity of d columns is ``2
    sqrt(d)`` under replace-one, the same as for the values alone. With s = 1 it is ``1.12 sqrt(d)`` under zero-out
    and add-remove. They are released as one vector with Gaussian noise. With ``skipna`` a value that is there adds
    a third entry, 1.5 under replace-one at the same sensitivity; else it is 0.75, with s = 0.75, and the
    sensitivity is ``1.31 sqrt(d)``. Time and memory are not protected.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import var
    >>> ages = np.random.default_rng(0).integers(18, 90, size=10_000)
    >>> found = var(ages, bounds=(18, 90), epsilon=0.5)
    >>> bool(abs(found.value - ages.var()) < 5 * found.noise_std)
    True
    """
    fit = Var(bounds=bounds, skipna=skipna, **budget)
    return released(fit, X, groups)


@document(var)
@takes_budget()
def std(
    X: object, *, bounds: object = None, skipna: bool = False, groups: object = None, **budget: Unpack[Budget]
) -> Released:
    """Release the standard deviation of a column, or of each column of a table.

    Returns
    -------
    Released
        ``value`` is a number for a column, an array for a table: the root of the variance that `var` releases.
        ``noise_std`` is right to first order; where the value is near 0 it is the root of the variance's noise.

    See Also
    --------
    var : Its square.

    Notes
    -----
    **Privacy.** It is a function of the variance, which is released as in `var`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.statistics import std
    >>> ages = np.random.default_rng(0).integers(18, 90, size=10_000)
    >>> found = std(ages, bounds=(18, 90), epsilon=0.5)
    >>> bool(abs(found.value - ages.std()) < 5 * found.noise_std)
    True
    """
    fit = Std(bounds=bounds, skipna=skipna, **budget)
    return released(fit, X, groups)
