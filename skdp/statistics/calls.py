"""Run the fit of a statistic on a column or a table."""

from typing import Any

import numpy as np

from skdp.base.cells import check_collected
from skdp.statistics.released import Released

__all__ = ["released"]


def released(fit: Any, X: Any, groups: Any) -> Released:
    """Run the fit; of a column give numbers in place of arrays with one entry."""
    check_collected(X=X, groups=groups)  # before a lazy column is asked for its dimensions
    column = not hasattr(X, "indptr") and np.ndim(X) == 1
    done = fit.fit(_as_table(X) if column else X, None, groups=groups)
    value, noise = done.value_, done.noise_std_
    names = ("bounds_", "bin_edges_", "count_", "count_noise_std_")
    more = [getattr(done, name, None) for name in names]
    if np.ndim(getattr(done, "q", 0.5)):  # several levels: first of each column, in the end of each level
        value = value[0] if column else value.T
    elif column:
        value, noise = _first(value), _first(noise)
    if column:
        more = [_first(part) for part in more]
    return Released(value, noise, done.privacy_, *more)


def _as_table(X: Any) -> Any:
    """A column as a table of one column, without a copy of an array."""
    return np.asarray(X).reshape(-1, 1) if hasattr(X, "__array__") else [[x] for x in X] or np.empty((0, 1))


def _first(part: Any) -> Any:
    """The part that is about the first column, as a Python number where it is one."""
    if isinstance(part, tuple):
        return tuple(_first(end) for end in part)
    if not isinstance(part, np.ndarray):
        return part
    return part[0].tolist() if part.ndim == 1 else part[0]
