"""What every private estimator shares: parameter checks, the frame of a fit, the accountant in pickles.

A fit goes: parameters, then the accountant's reservation (nothing of the data was read), then the data,
then releases, then the recheck; only then are fitted attributes set. Whatever fails before the first
release hands the reservation back and leaves the estimator as it was.
"""

import inspect
import math
import re
from numbers import Integral
from typing import Any, Literal

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import column_or_1d, validate_data

from skdp.kernels import is_cupy
from skdp.privacy.adjacency import check_adjacency, check_unit
from skdp.privacy.budget import AmbientAccountantMixin, BudgetAccountant, check_accountant
from skdp.privacy.session import PrivacySession, check_budget

__all__ = [
    "PrivateEstimator",
    "check_choice",
    "check_flag",
    "check_number",
    "chosen_by_search",
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

    def _share_aside(self, n_units: int) -> float:
        """Share of (epsilon, delta) to set aside, given the public number of units."""
        return self._set_aside

    def _samples(self, n_units: int) -> bool:
        """Whether the fit may sample minibatches, given the public number of units."""
        return False

    def _payer(self) -> BudgetAccountant | Literal[False]:
        """Whom a fit charges; False for nobody."""
        if self.accountant is not None:
            return self.accountant
        return self._carried_accountant() or False

    def _open_session(self, n_units: int = 1) -> PrivacySession:
        """Reserve the budget; no value of the data has been read."""
        free = {"accountant", "random_state", "verbose", "callback", "coef_init"}
        public = {k: v for k, v in self.get_params(deep=False).items() if k not in free}
        return PrivacySession(
            epsilon=self.epsilon,
            delta=self.delta,
            adjacency=self.adjacency,
            unit=self.unit,
            accountant=self._payer(),
            random_state=self.random_state,
            estimator=type(self).__name__,
            context=repr(sorted(public.items())).encode(),
            set_aside=self._share_aside(n_units),
            minibatches=self._samples(n_units),
        )

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
    try:
        # Its sums of finite cells may overflow, and a warning would tell.
        with np.errstate(all="ignore"):
            if y is None:
                return validate_data(estimator, X, **options)
            return validate_data(estimator, X, y, y_numeric=False, **options)
    except (TypeError, ValueError) as error:
        kind = TypeError if isinstance(error, TypeError) else ValueError
        message = _without_cells(str(error), estimator, X)
        if message is None:
            raise
    raise kind(message)


def _without_cells(text: str, estimator: Any, X: Any) -> str | None:
    """A message in place of one of scikit-learn's that quotes values, or None if it quotes none."""
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
            "without one, or clip targets to a public range"
        )
    return None


def _validate_on_device(estimator: Any, X: Any, y: Any, reset: bool) -> Any:
    """Check a CuPy array or CSR matrix where it lies: it never reaches scikit-learn's validation."""
    values = X.data if hasattr(X, "indptr") else X
    if X.ndim != 2 or min(X.shape) < 1:
        raise ValueError(f"X must be a 2-d CuPy array that is not empty, got shape {X.shape}")
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
        raise ValueError(f"X has {X.shape[0]} rows but y has {len(y)} entries")
    if y.dtype.kind == "f" and not np.isfinite(y).all():
        raise ValueError("Input y contains NaN or infinity.")
    return X, y


def _text_columns(X: Any) -> str:
    advice = "encode it first, for example with skdp.preprocessing.PublicBinsEncoder"
    names = []
    columns = getattr(X, "columns", None)
    if columns is not None:
        for name in columns:
            kind = X[name].dtype
            if not re.match(r"u?int|float|bool", str(kind).lower()):
                names.append(f"{str(name)!r} ({kind})")
    else:
        table = np.asarray(X, dtype=object)
        for j in range(table.shape[1] if table.ndim == 2 else 0):
            if any(isinstance(cell, (str, bytes)) for cell in table[:, j]):
                names.append(f"{j} (text)")
    which = ", ".join(names[:10]) + (", ..." if len(names) > 10 else "")
    return f"X must be numeric; not numeric: column {which or 'of text'}. Drop it or {advice}"


def encode_groups(groups: Any, n_samples: int) -> np.ndarray:
    """Return group codes 0..G-1.

    Raises
    ------
    ValueError
        If the shape is wrong or a value is missing.
    """
    labels = np.asarray(groups, dtype=object if isinstance(groups, (list, tuple)) else None)
    if labels.shape != (n_samples,):
        raise ValueError(
            f"groups must have shape ({n_samples},), one entry a row, got {labels.shape}"
        )
    if labels.dtype.kind == "f" and not np.isfinite(labels).all():
        raise ValueError("groups contains missing values; every row must belong to a group")
    absent = labels.dtype.kind in "mM" and bool(np.isnat(labels).any())
    if labels.dtype.kind == "O":
        absent = any(label is None or _is_missing(label) for label in labels)
    if absent:
        raise ValueError("groups contains missing values; every row must belong to a group")
    try:
        return np.unique(labels, return_inverse=True)[1].reshape(-1)
    except TypeError:
        pass
    raise ValueError("groups must all be of one type, for example all strings or all integers")


def _is_missing(label: Any) -> bool:
    """NaN, NaT and pandas' NA are not equal to themselves, or do not say so."""
    try:
        return bool(label != label)
    except TypeError:
        return True


def chosen_by_search() -> bool:
    """Whether this fit is the refit of a scikit-learn search, which always runs in the caller's process.

    A search sets ``best_params_`` on itself before it refits; it tells the estimator nothing.
    """
    frame = inspect.currentframe()
    while frame is not None:
        caller = frame.f_locals.get("self")
        if frame.f_code.co_name == "fit" and "best_params_" in getattr(caller, "__dict__", {}):
            return True
        frame = frame.f_back
    return False


def replace_fitted(estimator: Any, fitted: dict[str, Any]) -> None:
    """Set the fitted attributes of a finished fit and drop those of the previous one."""
    stale = [n for n in vars(estimator) if n.endswith("_") and not n.startswith("_")]
    for name in stale:
        if name not in fitted:
            delattr(estimator, name)
    for name, value in fitted.items():
        setattr(estimator, name, value)
