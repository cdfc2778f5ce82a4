"""Tables, groups and weights of the user: when `fit` takes them, and how they are checked before they are records.

No message quotes a cell of the data.

scikit-learn's meta-estimators ask the signature of a model's `fit` whether they may hand weights to it. A private
fit takes weights only where their public bound ``max_weight`` is declared: the signature of the class names
``sample_weight`` if its constructor has ``max_weight``, and the signature of an instance if a bound is declared.
Then CalibratedClassifierCV and AdaBoostClassifier hand weights to a model that takes them, and BaggingClassifier
draws rows of one that does not.

The checks of scikit-learn ask a model that takes weights to treat weight 0 as a row that is left out. No private
fit may: the number of records is public, and so is the divisor of the sums.
"""

import math
import re
from collections.abc import Hashable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import update_wrapper
from inspect import signature
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Protocol, TypeVar, cast, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data

from skdp.around import notice
from skdp.base.cells import (
    as_cells,
    cell_numbers,
    check_collected,
    is_missing,
    is_untyped,
    kind,
    python_number,
    refuse_dates,
)
from skdp.kernels.protocols import Matrix, is_cupy
from skdp.privacy import note_use

if TYPE_CHECKING:
    import cupy
    import pandas as pd

UNBOUNDED = (
    "sample_weight is private: declare its public upper bound with max_weight= "
    "in the constructor; weights are clipped to [0, max_weight]"
)

_ENTRY = re.compile(r"^( *)sample_weight : .*\n(?:\1 +.*\n)*", re.MULTILINE)

FitT = TypeVar("FitT")


class _Fit:
    """A method `fit` that notes who looks at it, and of which an object shows the signature that holds for it.

    Meta-estimators look at `fit` before they start workers, in the context that knows the block of the accountant
    and the callers.
    """

    def __init__(self, fit: FunctionType, without: FunctionType) -> None:
        self._named, self._without = fit, without
        self.__wrapped__ = fit  # what `inspect.unwrap` finds of a class's own method

    def __get__(self, estimator: object, owner: type) -> object:
        if estimator is None:
            return self._named if "max_weight" in signature(owner).parameters else self._without
        note_use(estimator, outside=True)
        notice(estimator)
        is_bounded = getattr(estimator, "max_weight", None) is not None
        return MethodType(self._named if is_bounded else self._without, estimator)


class _Fits(Protocol):
    fit: object


class WatchedFit:
    """The attribute `fit` of a class of private fits, which notes who looks at it as `_Fit` does.

    It holds any object that the class defines, or was given later: a function, a ``partialmethod``, a property. A
    class that inherits a `fit` which is not watched, from a mixin, has one of these that passes on. It looks for
    the method of the later bases at each look, so it hides none of them.

    Parameters
    ----------
    owner : type
        The class that has the attribute.
    own : object, default=None
        Its own `fit`; None is the `fit` of its bases.
    """

    def __init__(self, owner: type, own: object = None) -> None:
        self._owner, self._own = owner, own
        if isinstance(own, FunctionType):
            self.__wrapped__ = own  # what `inspect.unwrap` finds of a class's own method

    def __get__(self, estimator: object, owner: type) -> object:
        if estimator is not None:
            note_use(estimator, outside=True)
            notice(estimator)
        if self._own is None:
            seen = owner if estimator is None else estimator
            found: object = super(self._owner, seen).fit  # type: ignore[misc, arg-type]
            return found
        bind = getattr(type(self._own), "__get__", None)
        return self._own if bind is None else bind(self._own, estimator, owner)


def watch_fit(cls: type[_Fits]) -> None:
    """Let a class of private fits note who looks at its `fit`: its own, or one of a base which notes nothing.

    It is called before an estimator of the class is made, as a `fit` may be assigned to a class at any time.
    """
    own = vars(cls).get("fit")
    found = next(vars(base)["fit"] for base in cls.__mro__ if "fit" in vars(base))
    if not isinstance(found, (_Fit, WatchedFit)):
        cls.fit = WatchedFit(cls, own)


def names_weights(fit: FitT) -> FitT:
    """Make a method `fit` with ``sample_weight=None`` name it as this module says, and note who looks at it.

    Without a bound the method takes the same arguments, and only its signature says less.
    """
    # The same code under another signature: a call passes through no wrapper.
    written = cast("FunctionType", fit)
    without = FunctionType(
        written.__code__, written.__globals__, closure=written.__closure__, argdefs=written.__defaults__
    )
    update_wrapper(without, written)
    without.__kwdefaults__ = written.__kwdefaults__
    told = signature(written)
    kept = [p for name, p in told.parameters.items() if name != "sample_weight"]
    vars(without)["__signature__"] = told.replace(parameters=kept)
    if without.__doc__ is not None:  # as with python -OO
        without.__doc__ = _ENTRY.sub("", without.__doc__)
    return cast("FitT", _Fit(written, without))


def refuse_weights(more: dict[str, object]) -> None:
    """Refuse all further arguments of a `fit` that has none, except for ``sample_weight=None``.

    Raises
    ------
    TypeError
        If there is another one.
    """
    for name, value in more.items():
        if name != "sample_weight" or value is not None:
            raise TypeError(_unexpected(name))


def _unexpected(name: str) -> str:
    hint = ": this method has no weighted form; leave it out" if name == "sample_weight" else ""
    return f"fit got an unexpected keyword argument {name!r}{hint}"


class _Reads(Protocol):
    def read(self, X: object, y: object = None, groups: object = None) -> object: ...


def taken_arguments(estimator: _Reads, more: dict[str, object]) -> dict[str, object]:
    """Return further arguments of `fit` without weights of None; refuse weights that the estimator does not take.

    Nothing of the weights is read.

    Parameters
    ----------
    estimator : object
        Its method `read` takes weights in its own way if it names ``sample_weight``.
    more : dict

    Raises
    ------
    TypeError
        If the method has no weighted form.
    ValueError
        If ``max_weight`` is not declared.
    """
    if more.get("sample_weight") is None:
        return {name: value for name, value in more.items() if name != "sample_weight"}
    if "sample_weight" in signature(estimator.read).parameters:
        return more
    if not hasattr(estimator, "max_weight"):
        raise TypeError(_unexpected("sample_weight"))
    if estimator.max_weight is None:
        raise ValueError(UNBOUNDED)
    return more


LONGEST = 4  # entries of a table of integer labels, over the number of labels

Targets = NDArray[np.float64 | np.int64 | np.bool_ | np.str_ | np.object_]


@overload
def validate_table(
    estimator: BaseEstimator, X: object, y: None = None, *,
    reset: bool = True, missing: bool = False, sparse: bool = True,
) -> Matrix:  # fmt: skip
    """A table alone."""


@overload
def validate_table(
    estimator: BaseEstimator, X: object, y: object, *,
    reset: bool = True, missing: bool = False, sparse: bool = True,
) -> tuple[Matrix, Targets]:  # fmt: skip
    """A table and its targets."""


def validate_table(
    estimator: BaseEstimator, X: object, y: object = None, *,
    reset: bool = True, missing: bool = False, sparse: bool = True,
) -> Matrix | tuple[Matrix, Targets]:  # fmt: skip
    """Validate X (and y) by scikit-learn, without ever quoting a cell of the data.

    Parameters
    ----------
    estimator : estimator
        Receives ``n_features_in_`` and ``feature_names_in_`` when ``reset``.
    X : array-like, DataFrame or CSR matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), default=None
    reset : bool, default=True
    missing : bool, default=False
        Whether X may hold NaN.
    sparse : bool, default=True
        Whether X may be sparse; False refuses it by a TypeError.

    Returns
    -------
    X : ndarray or CSR matrix of float32 or float64
        The caller's own array where it is already right.
    y : ndarray
        Only if ``y`` was given.
    """
    check_collected(X=X, y=y)
    if not is_untyped(X):  # untyped cells are read one by one, and those that are no numbers refused
        refuse_dates(X, "X")
    options: dict[str, object] = {
        "accept_sparse": "csr" if sparse else False,
        "dtype": [np.float64, np.float32],
        "reset": reset,
        "ensure_all_finite": "allow-nan" if missing else True,
    }
    if is_cupy(X):
        return _validate_on_device(estimator, X, y, reset)
    error_type: type[Exception]
    try:
        # scikit-learn sums the cells. The sum may overflow, and a warning would reveal that.
        with np.errstate(all="ignore"):
            made = validate_data(estimator, X, **({} if y is None else {"y": y, "y_numeric": False}), **options)
            if reset:
                _name_columns(estimator)
            return made
    except (TypeError, ValueError) as error:
        error_type = TypeError if isinstance(error, TypeError) else ValueError
        message = _without_cells(
            str(error), estimator, *cast("tuple[ArrayLike, ArrayLike]", (X, () if y is None else y))
        )
        if message is None:
            raise
    except OverflowError:
        error_type, message = ValueError, "Input X contains a number that is too large for float64."
    raise error_type(message)


_NAMES: ContextVar[tuple[str, ...] | None] = ContextVar("names of columns", default=None)


@contextmanager
def columns_named(names: tuple[str, ...] | None) -> Iterator[None]:
    """Give the columns of arrays these public names, where `validate_table` sees them first inside the block."""
    token = _NAMES.set(names)
    try:
        yield
    finally:
        _NAMES.reset(token)


def _name_columns(estimator: BaseEstimator) -> None:
    names = _NAMES.get()
    if names is None or hasattr(estimator, "feature_names_in_"):
        return
    if len(names) != estimator.n_features_in_:
        raise ValueError(f"feature_names has {len(names)} names for {estimator.n_features_in_} columns")
    estimator.feature_names_in_ = np.array(names, dtype=object)


def _without_cells(text: str, estimator: BaseEstimator, X: ArrayLike, y: ArrayLike) -> str | None:
    """Return a message for one of scikit-learn's that quotes values or row counts; None if it quotes none."""
    if "could not convert" in text or "invalid literal" in text or "DateTime" in text:
        return _text_columns(X)
    # pandas says "Cannot cast" of categories that are text.
    if "TimeDelta" in text or "promoted" in text or "Cannot cast" in text:
        return _text_columns(X)
    if text.startswith("Complex data"):
        return "Complex data not supported: X and y must be real"
    if text.startswith("Expected 2D array"):
        return (
            f"Expected 2D array of shape (n_samples, n_features), got {np.ndim(X)}D. Reshape your data: "
            "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one record"
        )
    if "inhomogeneous" in text:
        return "X must be a table: every row needs one number for each feature"
    # The number of rows is private where groups are the unit, and under add-remove.
    if "inconsistent numbers of samples" in text:
        return "Found input variables with inconsistent numbers of samples: X and y need one entry a row"
    if text.startswith("y should be a 1d array"):
        return f"y should be a 1d array, got {np.ndim(y)} dimensions"
    if "contains NaN" in text and "Input X" in text:
        if "skipna" in estimator.get_params(deep=False):  # a statistic
            return (
                "Input X contains NaN: leave missing values out by skipna=True; the result then says how many "
                "values are left"
            )
        return (
            f"Input X contains NaN. {type(estimator).__name__} does not accept missing values: give "
            "them a bin of their own with skdp.preprocessing.PublicBinsEncoder, or replace them by a "
            "public constant. An imputer that learns from the data is not covered by epsilon"
        )
    if text.startswith(("Input contains", "Input y contains")):
        what = "NaN" if "contains NaN" in text else "infinity"
        return (
            f"Input y contains {what}. Every record needs a label or a finite target: leave out rows "
            "without one (the number of those that are left is then published), or clip targets to a public range"
        )
    return None


def _validate_on_device(
    estimator: BaseEstimator, X: "cupy.ndarray", y: object, reset: bool
) -> Matrix | tuple[Matrix, Targets]:
    """Check a CuPy array or CSR matrix on its device; scikit-learn's validation cannot read it."""
    values = X.data if hasattr(X, "indptr") else X
    if X.ndim != 2 or min(X.shape) < 1:
        raise ValueError(f"X must be a 2-d CuPy array that is not empty, got {X.ndim} dimensions")
    if values.dtype not in (np.float32, np.float64):
        raise TypeError(f"a CuPy X must be float32 or float64, got {values.dtype}; use X.astype")
    if not bool((abs(values) < math.inf).all()):
        raise ValueError("Input X contains NaN or infinity.")
    if reset:
        estimator.n_features_in_ = int(X.shape[1])
    elif X.shape[1] != estimator.n_features_in_:
        raise ValueError(
            f"X has {X.shape[1]} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )
    if y is None:
        return X
    targets = column_or_1d(y.get() if is_cupy(y) else y, warn=True)
    if len(targets) != X.shape[0]:
        raise ValueError("X and y need one entry a row: they have different lengths")
    if targets.dtype.kind == "f" and not np.isfinite(targets).all():
        raise ValueError("Input y contains NaN or infinity.")
    return X, targets


def _text_columns(X: object) -> str:
    advice = "encode it first, for example with skdp.preprocessing.PublicBinsEncoder"
    names = []
    columns = getattr(X, "columns", None)
    if columns is not None:
        for name in columns:
            dtype = cast("pd.DataFrame", X)[name].dtype  # it has columns
            dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
            if not re.match(r"u?int|float|bool", str(dtype).lower()):
                names.append(f"{str(name)!r} ({dtype})")
                if str(dtype).startswith(("datetime", "timedelta")):
                    advice = "subtract a public date and count days; encode text with PublicBinsEncoder"
    else:
        table = np.asarray(X, dtype=object)
        for j in range(table.shape[1] if table.ndim == 2 else 0):
            if any(isinstance(cell, (str, bytes)) for cell in table[:, j]):
                names.append(f"{j} (text)")
    which = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"X must be numeric; not numeric: column {which or 'of text'}. Drop it or {advice}"


def encode_groups(groups: object, n_samples: int) -> NDArray[np.intp]:
    """Return group codes 0..G-1; a label that is missing or cannot be hashed raises ValueError.

    Labels are one group if they are equal: 1 and 1.0, but not 1 and "1", whatever the others are.
    """
    if is_cupy(groups):
        groups = groups.get()
    if isinstance(groups, list | tuple) and any(isinstance(label, tuple) for label in groups):
        groups = np.fromiter(groups, dtype=object, count=len(groups))  # each tuple is a label
    labels = np.asarray(as_cells(groups))
    if labels.shape != (n_samples,):
        raise ValueError("groups must be of shape (n_samples,): one entry for each row of X")
    if is_untyped(labels):
        return _codes_of_cells(labels)
    absent = labels.dtype.kind == "f" and not np.isfinite(labels).all()
    if absent or (labels.dtype.kind in "mM" and bool(np.isnat(labels).any())):
        raise ValueError("groups contains missing values; every row must belong to a group")
    positions = _positions(labels)
    if positions is None:
        return np.unique(labels, return_inverse=True)[1].reshape(-1)
    return np.asarray((np.cumsum(_seen(positions)) - 1)[positions])


def distinct(given: ArrayLike) -> NDArray[np.int64]:
    """Return what `numpy.unique` does, without sorting or hashing integers that lie close together."""
    labels = np.asarray(given)
    positions = _positions(labels)
    if positions is None:
        return np.unique(labels)
    found = np.flatnonzero(_seen(positions)) + int(labels.min())
    return np.asarray(found.astype(labels.dtype))


def _seen(positions: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Which positions from 0 to the largest one occur."""
    seen = np.zeros(int(positions.max()) + 1, dtype=bool)
    seen[positions] = True
    return seen


def _positions(given: ArrayLike) -> NDArray[np.int64] | None:
    """Integers less the smallest one; None for other labels, and where a table of all in between is too long."""
    labels = np.asarray(given)
    if labels.dtype.kind not in "iu" or not labels.size:
        return None
    low, high = int(labels.min()), int(labels.max())
    if high - low > LONGEST * labels.size or not -(2**62) <= low <= high < 2**62:
        return None
    return np.asarray(labels.astype(np.int64) - low)


def _codes_of_cells(labels: NDArray[np.object_]) -> NDArray[np.intp]:
    """Return codes of labels that are read one by one: numbers, text or other hashable objects.

    Labels of one type are numbered in their order, as NumPy does. Of several types, numbers come first.
    """
    found: dict[object, int] = {}
    codes = np.empty(labels.size, dtype=np.intp)
    for row, label in enumerate(labels):
        if _is_absent(label):
            raise ValueError("groups contains missing values; every row must belong to a group")
        if not isinstance(label, Hashable):
            raise ValueError("groups must hold numbers, text or other labels that can be hashed")
        codes[row] = found.setdefault(python_number(label), len(found))
    ranks = np.empty(len(found), dtype=np.intp)
    ranks[[found[label] for label in _in_order(found)]] = np.arange(len(found))
    return ranks[codes]


def _in_order(labels: Iterable[object]) -> list[object]:
    """Sort numbers, then text, then the other types by name; a type without an order stays as it came."""
    by_kind: dict[str, list[object]] = {"number": [], "text": []}
    for label in labels:
        name = kind(label)
        name = type(label).__qualname__ if name == "other" else name
        by_kind.setdefault(name, []).append(label)
    order: list[object] = []
    for name in ("number", "text", *sorted(by_kind.keys() - {"number", "text"})):
        try:
            order += sorted(cast("list[float]", by_kind[name]))  # tried out
        except (TypeError, ValueError):  # the type has no order: as they came
            order += by_kind[name]
    return order


def _is_absent(label: object) -> bool:
    """Missing, infinite, or not equal to itself, as complex NaN."""
    if is_missing(label) or (isinstance(label, float) and math.isinf(label)):
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):
        return False


def clipped_weights(sample_weight: object, max_weight: float | None, n_samples: int) -> NDArray[np.float64]:
    """Return the weights of the rows, clipped to [0, ``max_weight``], which must be declared."""
    if max_weight is None:
        raise ValueError(UNBOUNDED)
    if is_cupy(sample_weight):
        sample_weight = sample_weight.get()
    cells = as_cells(sample_weight)
    refuse_dates(cells, "sample_weight")
    try:
        values = cell_numbers(cells)
    except (TypeError, ValueError):
        values = None
    if values is None:
        raise ValueError("sample_weight must be numeric; it holds text or other objects")
    if values.shape != (n_samples,):
        raise ValueError("sample_weight must be of shape (n_samples,): one entry for each row")
    if not np.isfinite(values).all():
        raise ValueError("sample_weight contains NaN or infinity")
    return np.clip(values, 0.0, float(max_weight))
