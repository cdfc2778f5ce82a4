"""Functions with a fit behind them: the parameters that all take, and a statistic of a column or a table."""

import functools
import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import Any, Literal, ParamSpec, TypedDict, TypeVar

import numpy as np
from sklearn.base import BaseEstimator

from skdp.base.blocks import is_blocks
from skdp.base.cells import check_collected
from skdp.base.declare import parameters_of
from skdp.base.fit import Adjacency, PrivateFit, Unit
from skdp.privacy import BudgetAccountant
from skdp.statistics.released import Released

P = ParamSpec("P")
T = TypeVar("T")


class Budget(TypedDict, total=False):
    """Parameters of every fit, which a function hands on: `PrivateFit` declares their defaults and checks them."""

    epsilon: float
    delta: float
    unit: Unit
    adjacency: Adjacency
    n_public: int | None
    accountant: BudgetAccountant | Literal[False] | None
    random_state: int | np.random.RandomState | np.random.Generator | None


def takes_budget(**reasons: str) -> Callable[[Callable[P, T]], Callable[P, T]]:
    """Return a decorator of functions that take ``**budget``.

    It shows the parameters of `Budget` in the signature and the docstring, and refuses other names. A name that
    users of scikit-learn may give is refused with its reason.
    """

    def decorate(function: Callable[P, T]) -> Callable[P, T]:
        own = inspect.signature(function)
        declared = parameters_of(PrivateFit)
        shown = [known for known in own.parameters.values() if known.kind is not inspect.Parameter.VAR_KEYWORD]
        for name, annotation in Budget.__annotations__.items():
            default = declared[name].default
            shown.append(
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=annotation)
            )
        signature = own.replace(parameters=shown)

        @functools.wraps(function)
        def called(*args: P.args, **given: P.kwargs) -> T:
            for name in given:
                if name in reasons:
                    raise TypeError(f"{function.__name__} takes no {name}: {reasons[name]}")
                if name not in signature.parameters:
                    raise TypeError(f"{function.__name__}() got an unexpected keyword argument {name!r}")
            return function(*args, **given)

        called.__signature__ = signature  # type: ignore[attr-defined]
        unit = replace(declared["unit"], text=declared["unit"].text.replace(" in `fit`", ""))
        called._arguments = {**{name: declared[name] for name in Budget.__annotations__}, "unit": unit}  # type: ignore[attr-defined]
        return called

    return decorate


def released(fit: BaseEstimator, X: Any, groups: object) -> Released:
    """Run the fit; of a column give numbers in place of arrays with one entry."""
    if not is_blocks(X):
        check_collected(X=X, groups=groups)  # before a lazy column is asked for its dimensions
    column = not is_blocks(X) and is_column(X)
    done = fit.fit(as_table(X) if column else X, None, groups=groups)
    column = getattr(done, "is_column_", column)
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


def is_column(X: object) -> bool:
    """Whether X has one dimension."""
    return not hasattr(X, "indptr") and np.ndim(X) == 1  # type: ignore[arg-type]


def as_table(X: Any) -> object:
    """A column as a table of one column, without a copy of an array."""
    return np.asarray(X).reshape(-1, 1) if hasattr(X, "__array__") else [[x] for x in X] or np.empty((0, 1))


def _first(part: Any) -> Any:
    """The part that is about the first column, as a Python number where it is one."""
    if isinstance(part, tuple):
        return tuple(_first(end) for end in part)
    if not isinstance(part, np.ndarray):
        return part
    return part[0].tolist() if part.ndim == 1 else part[0]
