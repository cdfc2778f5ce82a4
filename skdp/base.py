"""What every private estimator shares: parameter checks, the frame of a fit, the accountant in pickles.

A fit goes: parameters, then the accountant's reservation (nothing of the data was read), then the data,
then releases, then the recheck; only then are fitted attributes set. Whatever fails before the first
release hands the reservation back and leaves the estimator as it was.
"""

import math
import re
from collections.abc import Hashable, Iterable
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data

from skdp._cells import as_cells, is_missing, is_untyped, kind, python_number
from skdp.kernels import is_cupy
from skdp.privacy.adjacency import check_adjacency, check_unit
from skdp.privacy.budget import AmbientAccountantMixin, BudgetAccountant, check_accountant
from skdp.privacy.seed_context import seed_context
from skdp.privacy.session import PrivacySession, check_budget

__all__ = [
    "PrivateEstimator",
    "check_choice",
    "check_flag",
    "check_number",
    "encode_groups",
    "replace_fitted",
    "validate_table",
]


class PrivateEstimator(AmbientAccountantMixin, BaseEstimator):
    """Base of the estimators that spend a privacy budget.

    Subclasses store the parameters ``epsilon, delta, adjacency, unit, accountant, random_state`` in
    their constructor and open their session with `_open_session`.
    """

    # Share of (epsilon, delta) for a release that has no mu.
    _set_aside = 0.0

    def _check_privacy_parameters(self) -> None:
        check_budget(self.epsilon, self.delta)
        check_adjacency(self.adjacency)
        check_unit(self.unit)
        check_accountant(self.accountant)
        if self.n_public is not None:
            check_number("n_public", self.n_public, Integral, low=1)
        if self.adjacency == "add-remove" and self.n_public is None:
            raise ValueError(
                "under adjacency='add-remove' the number of records is private: give n_public, a "
                "public number that means divide by, or use adjacency='zero-out'"
            )

    def _share_aside(self, n_units: int | None) -> float:
        """Share of (epsilon, delta) to set aside, given the public number of units; None is not known yet."""
        return self._set_aside

    def _samples(self, n_units: int | None) -> bool:
        """Whether the fit may sample minibatches, given the public number of units; None is not known yet."""
        return False

    def _payer(self) -> BudgetAccountant | Literal[False]:
        """Whom a fit charges; False for nobody."""
        if self.accountant is not None:
            return self.accountant
        return self._carried_accountant() or False

    def _open_session(self, n_units: int | None = None) -> PrivacySession:
        """Reserve the budget; no value of the data has been read."""
        return PrivacySession(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            unit=self.unit,
            accountant=self._payer(),
            random_state=self.random_state,
            estimator=type(self).__name__,
            context=b"" if self.random_state is None else seed_context(self._noise_parameters()),
            set_aside=self._share_aside(n_units),
            minibatches=self._samples(n_units),
        )

    def _noise_parameters(self) -> dict[str, Any]:
        """What separates the noise of two fits with one seed: all that changes what is released."""
        free = {"accountant", "random_state", "verbose", "callback"}
        if getattr(self, "coef_init", None) is None:
            free.add("coef_init")
        return {k: v for k, v in self.get_params(deep=False).items() if k not in free}

    def _check_unit_and_groups(self, groups: Any) -> None:
        if self.unit == "group" and groups is None:
            raise ValueError(
                "unit='group' needs groups= in fit: who each row belongs to. scikit-learn hands groups "
                "to a search's splitter only; route them with "
                "sklearn.set_config(enable_metadata_routing=True) and then set_fit_request(groups=True), "
                "or cross_validate(params={'groups': ...})"
            )
        if self.unit == "record" and groups is not None:
            raise ValueError(
                "groups= was given but unit='record' protects single rows; "
                "use unit='group' to protect everything that belongs to one group"
            )


def check_number(
    name: str,
    value: Any,
    kind: type,
    *,
    low: float | None = None,
    high: float | None = None,
    strict: bool = False,
    word: str | None = None,
    none: bool = False,
) -> None:
    """Raise TypeError or ValueError unless ``value`` is a number of ``kind`` in its range.

    Parameters
    ----------
    name : str
    value : object
    kind : type
        ``numbers.Integral`` or ``numbers.Real``.
    low, high : float, default=None
        Inclusive bounds; ``low`` is exclusive with ``strict``.
    strict : bool, default=False
    word : str, default=None
        A string that is allowed as well.
    none : bool, default=False
        Whether None is allowed as well.
    """
    if none and value is None:
        return
    wanted = "an int" if kind is Integral else "a number"
    also = (f" or {word!r}" if word else "") + (" or None" if none else "")
    if word is not None and isinstance(value, str):
        if value != word:
            raise ValueError(f"{name} must be {wanted}{also}, got {value!r}")
        return
    number: Any = value
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}{also}, got {type(value).__name__}")
    try:
        float(number)
    except OverflowError:
        raise ValueError(f"{name} must be a number that float64 can hold") from None
    if math.isnan(number) or (low is not None and (number <= low if strict else number < low)):
        raise ValueError(f"{name} must be {'>' if strict else '>='} {low:g}{also}, got {value!r}")
    if high is not None and number > high:
        raise ValueError(f"{name} must be <= {high:g}{also}, got {value!r}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")


def check_flag(name: str, value: Any) -> None:
    """Raise TypeError unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")


def validate_table(estimator: Any, X: Any, y: Any = None, *, reset: bool = True) -> Any:
    """Validate X (and y) by scikit-learn, without ever quoting a cell of the data.

    Parameters
    ----------
    estimator : estimator
        Receives ``n_features_in_`` and ``feature_names_in_`` when ``reset``.
    X : array-like, DataFrame or CSR matrix of shape (n_samples, n_features)
    y : array-like of shape (n_samples,), default=None
    reset : bool, default=True

    Returns
    -------
    X : ndarray or CSR matrix of float32 or float64
        The caller's own array where it is already right.
    y : ndarray
        Only if ``y`` was given.
    """
    options: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "reset": reset,
    }
    if is_cupy(X):
        return _validate_on_device(estimator, X, y, reset)
    error_type: type[Exception]
    try:
        # Its sums of finite cells may overflow, and a warning would tell.
        with np.errstate(all="ignore"):
            if y is None:
                return validate_data(estimator, X, **options)
            return validate_data(estimator, X, y, y_numeric=False, **options)
    except (TypeError, ValueError) as error:
        error_type = TypeError if isinstance(error, TypeError) else ValueError
        message = _without_cells(str(error), estimator, X, y)
        if message is None:
            raise
    except OverflowError:
        error_type, message = ValueError, "Input X contains a number that is too large for float64."
    raise error_type(message)


def _without_cells(text: str, estimator: Any, X: Any, y: Any = None) -> str | None:
    """A message in place of one of scikit-learn's that quotes values or row counts, or None if it quotes none."""
    if "could not convert" in text or "invalid literal" in text or "DateTime" in text:
        return _text_columns(X)
    if "TimeDelta" in text or "promoted" in text:
        return _text_columns(X)
    if text.startswith("Complex data"):
        return "Complex data not supported: X and y must be real"
    if text.startswith("Expected 2D array"):
        return (
            f"Expected 2D array of shape (n_samples, n_features), got {np.ndim(X)}D. Reshape your data: "
            "X.reshape(-1, 1) for one feature, X.reshape(1, -1) for one record"
        )
    # How many rows there are is private where groups are the unit, and under add-remove.
    if "inconsistent numbers of samples" in text:
        return "Found input variables with inconsistent numbers of samples: X and y need one entry a row"
    if text.startswith("y should be a 1d array"):
        return f"y should be a 1d array, got {np.ndim(y)} dimensions"
    if "contains NaN" in text and "Input X" in text:
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


def _validate_on_device(estimator: Any, X: Any, y: Any, reset: bool) -> Any:
    """Check a CuPy array or CSR matrix where it lies: it never reaches scikit-learn's validation."""
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
    y = column_or_1d(y.get() if is_cupy(y) else y, warn=True)
    if len(y) != X.shape[0]:
        raise ValueError("X and y need one entry a row: they have different lengths")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    return X, y


def _text_columns(X: Any) -> str:
    advice = "encode it first, for example with skdp.preprocessing.PublicBinsEncoder"
    names = []
    columns = getattr(X, "columns", None)
    if columns is not None:
        for name in columns:
            dtype = X[name].dtype
            if not re.match(r"u?int|float|bool", str(dtype).lower()):
                names.append(f"{str(name)!r} ({dtype})")
    else:
        table = np.asarray(X, dtype=object)
        for j in range(table.shape[1] if table.ndim == 2 else 0):
            if any(isinstance(cell, (str, bytes)) for cell in table[:, j]):
                names.append(f"{j} (text)")
    which = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"X must be numeric; not numeric: column {which or 'of text'}. Drop it or {advice}"


def encode_groups(groups: Any, n_samples: int) -> np.ndarray:
    """Return group codes 0..G-1.

    Labels are one group if they are equal: 1 and 1.0, but not 1 and "1", whatever the others are.

    Raises
    ------
    ValueError
        If the shape is wrong, or a label is missing or cannot be hashed.
    """
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
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def _codes_of_cells(labels: np.ndarray) -> np.ndarray:
    """Codes of labels that are read one by one: each is a number, a text or something else that is hashable.

    Labels of one type are numbered in their order, as NumPy does. Of several types, numbers come first.
    """
    found: dict[Any, int] = {}
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


def _in_order(labels: Iterable[Any]) -> list[Any]:
    """Numbers, then text, then the other types by name, each in its own order where it has one."""
    by_kind: dict[str, list[Any]] = {"number": [], "text": []}
    for label in labels:
        name = kind(label)
        name = type(label).__qualname__ if name == "other" else name
        by_kind.setdefault(name, []).append(label)
    order = []
    for name in ("number", "text", *sorted(by_kind.keys() - {"number", "text"})):
        try:
            order += sorted(by_kind[name])
        except (TypeError, ValueError):  # the type has no order: as they came
            order += by_kind[name]
    return order


def _is_absent(label: Any) -> bool:
    """Missing, infinite, or not equal to itself, as complex NaN."""
    if is_missing(label) or (isinstance(label, float) and math.isinf(label)):
        return True
    try:
        return bool(label != label)
    except (TypeError, ValueError):
        return False


def replace_fitted(estimator: Any, fitted: dict[str, Any]) -> None:
    """Set the fitted attributes of a finished fit and drop those of the previous one."""
    stale = [n for n in vars(estimator) if n.endswith("_") and not n.startswith("_")]
    for name in stale:
        if name not in fitted:
            delattr(estimator, name)
    for name, value in fitted.items():
        setattr(estimator, name, value)
