"""Loss functions of generalised linear models: value, derivative, and facts such as bounds.

A loss is a function of the linear predictor z and the target y. The objects are small and immutable. The compiled
kernels of :mod:`skdp.kernels` compute the same derivative. To add a loss of your own, see `Loss`.
"""

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from skdp.exceptions import UnsupportedAccounting

__all__ = ["HuberLoss", "LogisticLoss", "Loss", "MultinomialLoss", "SquaredLoss", "check_loss", "is_shipped"]

Array = NDArray[np.float64]


class Loss(Protocol):
    """The interface of a loss; inherit from it to write one of your own.

    A loss of your own fits where gradients are clipped record by record: the parameter ``loss`` of the
    estimators that take gradient steps. The clip then bounds the addend of a record, whatever the derivative is,
    so no fact below enters the privacy claim. One thing does: the derivative of a record must follow from that
    record alone, to the last bit. The package looks at it with generated records and can prove nothing, and the
    report says "record-wise by the user's declaration". A record adds nothing if its derivative is not finite or
    cannot be computed. Mechanisms that release a minimiser refuse such a loss: there a wrong ``lipschitz`` would
    void the claim.

    The facts are class attributes or properties, so ``__init__`` cannot set them; all but ``name`` and
    ``smoothness`` have a default.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSparseERM
    >>> from skdp.losses import Loss
    >>> class LogCosh(Loss):
    ...     name, smoothness = "log-cosh", 1.0
    ...
    ...     def value(self, z, y):
    ...         return np.logaddexp(z - y, y - z) - np.log(2.0)
    ...
    ...     def derivative(self, z, y):
    ...         return np.tanh(z - y)
    >>> X = np.random.default_rng(0).normal(size=(2000, 5))
    >>> model = DPSparseERM(loss=LogCosh(), epsilon=8.0).fit(X, X[:, 0])
    >>> any("user's declaration" in line for line in model.privacy_.assumptions)
    True
    """

    @property
    def name(self) -> str:
        """Name in messages and reports."""

    @property
    def smoothness(self) -> float:
        """Bound on the second derivative with respect to z."""

    @property
    def n_outputs(self) -> int:
        """Number of linear predictors of a record; 1 for a loss of your own."""
        return 1

    @property
    def lipschitz(self) -> float:
        """Largest l2 norm of the derivative with respect to z; inf where it is not bounded."""
        return math.inf

    @property
    def is_classification(self) -> bool:
        """Whether y is a class index, so that residuals stay large however well a model fits."""
        return False

    @property
    def is_quadratic(self) -> bool:
        """Whether normal equations give the minimiser."""
        return False

    @property
    def start_norm(self) -> float | None:
        """Norm of the derivative at z = 0 where it is the same for every y, else None."""
        return None

    @property
    def start_sup_norm(self) -> float | None:
        """Sup norm of the derivative at z = 0 where it is the same for every y, else None."""
        return None

    @property
    def start_value(self) -> float | None:
        """Loss at z = 0 where it is the same for every y, else None."""
        return None

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Loss of each record; ``z`` and ``y`` have shape (n,)."""

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Derivative with respect to ``z``, shape (n,): entry i follows from ``z[i]`` and ``y[i]`` alone."""


def _both(z: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    return np.asarray(z, dtype=np.float64), np.asarray(y, dtype=np.float64)


class _Defaults:
    """Facts that most losses of this module share."""

    __slots__ = ()
    n_outputs: ClassVar[int] = 1
    is_classification: ClassVar[bool] = False
    is_quadratic: ClassVar[bool] = False
    start_norm: ClassVar[float | None] = None
    start_sup_norm: ClassVar[float | None] = None
    start_value: ClassVar[float | None] = None


@dataclass(frozen=True, slots=True)
class SquaredLoss(_Defaults):
    """Half the squared residual, ``(z - y)**2 / 2``.

    Attributes as for `Loss`.

    Examples
    --------
    >>> from skdp.losses import SquaredLoss
    >>> SquaredLoss().derivative([1.0, 2.0], [0.5, 3.0]).tolist()
    [0.5, -1.0]
    """

    name: ClassVar[str] = "squared"
    smoothness: ClassVar[float] = 1.0
    lipschitz: ClassVar[float] = math.inf
    is_quadratic: ClassVar[bool] = True

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Loss of each record; ``z`` and ``y`` have shape (n,)."""
        z, y = _both(z, y)
        return 0.5 * np.square(z - y)

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Derivative with respect to ``z``, shape (n,)."""
        z, y = _both(z, y)
        return z - y


@dataclass(frozen=True, slots=True)
class HuberLoss(_Defaults):
    """Huber's loss: quadratic up to ``threshold``, linear beyond.

    Parameters
    ----------
    threshold : float
        Residual from which the loss grows linearly; finite and positive. The derivative stays
        within ``[-threshold, threshold]``.

    Raises
    ------
    ValueError
        If ``threshold`` is not a finite positive number.

    References
    ----------
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35 (1964).

    Examples
    --------
    >>> from skdp.losses import HuberLoss
    >>> HuberLoss(1.0).value([0.5, 3.0], [0.0, 0.0]).tolist()
    [0.125, 2.5]
    """

    threshold: float

    name: ClassVar[str] = "huber"
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.threshold) and self.threshold > 0):
            raise ValueError(f"threshold must be finite and positive, got {self.threshold!r}.")

    @property
    def lipschitz(self) -> float:
        """Largest absolute derivative, the threshold."""
        return float(self.threshold)

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Loss of each record; ``z`` and ``y`` have shape (n,)."""
        z, y = _both(z, y)
        size = np.abs(z - y)
        inner = np.minimum(size, self.threshold)
        return 0.5 * np.square(inner) + self.threshold * (size - inner)

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Derivative with respect to ``z``, shape (n,)."""
        z, y = _both(z, y)
        return np.clip(z - y, -self.threshold, self.threshold)


@dataclass(frozen=True, slots=True)
class LogisticLoss(_Defaults):
    """Negative log-likelihood of a 0/1 target, ``log(1 + exp(z)) - y z``.

    Attributes as for `Loss`.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> LogisticLoss().derivative([0.0, -800.0], [1, 1]).tolist()
    [-0.5, -1.0]
    """

    name: ClassVar[str] = "logistic"
    smoothness: ClassVar[float] = 0.25
    lipschitz: ClassVar[float] = 1.0
    is_classification: ClassVar[bool] = True
    start_norm: ClassVar[float] = 0.5
    start_sup_norm: ClassVar[float] = 0.5
    start_value: ClassVar[float] = math.log(2.0)

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Loss of each record; ``z`` and ``y`` (0 or 1) have shape (n,)."""
        z, y = _both(z, y)
        return np.logaddexp(0.0, z) - y * z

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Derivative with respect to ``z``, shape (n,)."""
        z, y = _both(z, y)
        tail = np.exp(-np.abs(z))
        return np.where(z >= 0, 1.0, tail) / (1.0 + tail) - y


@dataclass(frozen=True, slots=True)
class MultinomialLoss:
    """Negative log-likelihood of the softmax of K linear predictors.

    Parameters
    ----------
    n_classes : int
        Number of classes K, at least 2.

    Raises
    ------
    ValueError
        If ``n_classes`` is below 2.

    Notes
    -----
    The largest eigenvalue of the second derivative ``diag(p) - p p^T`` is at most 1/2 (Boehning,
    "Multinomial logistic regression algorithm", 1992).

    Examples
    --------
    >>> from skdp.losses import MultinomialLoss
    >>> MultinomialLoss(2).derivative([[0.0, 0.0]], [1]).tolist()
    [[0.5, -0.5]]
    """

    n_classes: int

    name: ClassVar[str] = "multinomial"
    smoothness: ClassVar[float] = 0.5
    lipschitz: ClassVar[float] = math.sqrt(2.0)
    is_classification: ClassVar[bool] = True
    is_quadratic: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if int(self.n_classes) != self.n_classes or self.n_classes < 2:
            raise ValueError(f"n_classes must be an integer >= 2, got {self.n_classes!r}.")

    @property
    def n_outputs(self) -> int:
        """Number of columns of the linear predictor, K."""
        return self.n_classes

    @property
    def start_norm(self) -> float:
        """Norm of ``p - e_y`` at p = 1/K: ``sqrt(1 - 1/K)``."""
        return math.sqrt(1 - 1 / self.n_classes)

    @property
    def start_sup_norm(self) -> float:
        """Largest entry of ``p - e_y`` at p = 1/K: ``1 - 1/K``."""
        return 1 - 1 / self.n_classes

    @property
    def start_value(self) -> float:
        """Loss where all classes are as likely: ``log K``."""
        return math.log(self.n_classes)

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Loss of each record; ``z`` has shape (n, K), ``y`` holds class indices, shape (n,)."""
        z, target = _both(z, y)
        top = z.max(axis=1)
        chosen = np.take_along_axis(z, target.astype(np.intp)[:, None], axis=1)[:, 0]
        return np.log(np.exp(z - top[:, None]).sum(axis=1)) + (top - chosen)

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Softmax minus the indicator of the class, shape (n, K)."""
        z, target = _both(z, y)
        p: Array = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(p.shape[0]), target.astype(np.intp)] -= 1.0
        return p


PROBES = 64  # generated records at which a loss of the user's own is looked at
# Linear predictors among them that are far from 0, or no numbers.
EXTREME_SCORES = np.array([0.0, -0.0, 1e3, -1e3, 1e300, -1e300, np.inf, -np.inf, np.nan])
_SHIPPED = (SquaredLoss, HuberLoss, LogisticLoss, MultinomialLoss)
# A loss of the user's own must give these: the other facts have a default.
_REQUIRED = {
    "name": "a word for messages and reports",
    "smoothness": "a bound on the second derivative in z, which sizes the steps: a public number that you prove",
    "value": "a method (z, y) that returns the loss of each record",
    "derivative": "a method (z, y) that returns the derivative in z of each record's loss",
}
# Losses of regressions by gradient steps, by the word that these take, made of the parameter ``huber_threshold``.
NAMED: dict[str, Callable[[Any], Loss]] = {
    "squared": lambda _: SquaredLoss(),
    "huber": lambda t: HuberLoss(float(t)),
}


def is_shipped(loss: object) -> bool:
    """Whether the loss is one of this module, whose facts are proven.

    A subclass is not: it may compute another derivative under the same facts.
    """
    return any(type(loss) is kind for kind in _SHIPPED)


def check_loss(loss: Any, words: tuple[str, ...] = ()) -> None:
    """Raise unless ``loss`` is of this module, or has all of `Loss` with one linear predictor and may be used.

    ``words`` are taken by the caller in place of an object.

    TypeError or ValueError name the missing part; UnsupportedAccounting says that the derivative or the value
    raises for some numbers, or that a record's number depends on other records.
    """
    if is_shipped(loss):
        return
    facts = [name for name, value in vars(Loss).items() if isinstance(value, property)]
    missing = [name for name in facts if not hasattr(loss, name)]
    missing += [name for name in ("name", "smoothness") if getattr(loss, name, missing) is None]  # inherited
    missing += [
        name for name in ("value", "derivative") if getattr(type(loss), name, None) in (None, getattr(Loss, name))
    ]
    if isinstance(loss, type):
        raise TypeError(f"loss must be an instance: pass {loss.__name__}(), not the class")
    if missing and Loss in type(loss).__mro__:
        told = "; ".join(f"{name} is {_REQUIRED[name]}" for name in missing)
        raise TypeError(f"{type(loss).__name__} has no {' and no '.join(missing)} (see skdp.losses.Loss): {told}")
    if missing:
        choices = ", ".join([*map(repr, words), "an object of skdp.losses"])
        raise TypeError(
            f"loss must be {choices}, or inherit from skdp.losses.Loss and give {', '.join(_REQUIRED)}, got "
            f"{type(loss).__name__}"
        )
    if loss.n_outputs != 1:
        raise TypeError("a loss of your own has one linear predictor: n_outputs must be 1")
    if not 1e-100 <= float(loss.smoothness) <= 1e100:
        raise ValueError(f"smoothness must be between 1e-100 and 1e100, got {loss.smoothness!r}")
    for name in ("start_norm", "start_sup_norm", "start_value"):
        given = getattr(loss, name)
        if given is not None and not 0.0 < float(given) < math.inf:
            raise ValueError(f"{name} must be None, or finite and > 0, got {given!r}")
    try:
        hash(loss)
    except TypeError:
        raise TypeError("a loss of your own must be hashable: it is a key of cached passes") from None
    for name in ("derivative", "value"):
        _check_records(f"the {name} of your loss", getattr(loss, name), bool(loss.is_classification))


def _check_records(name: str, function: Callable[[Array, Array], ArrayLike], classes: bool) -> None:
    """Refuse a function that raises, or whose number of a record depends on its place or on other records.

    The records are generated, none is read. It cannot show that a function keeps its promise for all values.
    """
    rng = np.random.default_rng(0)
    z = np.concatenate((3.0 * rng.normal(size=PROBES - EXTREME_SCORES.size), EXTREME_SCORES))
    y = rng.integers(0, 2 if classes else 4, PROBES).astype(np.float64)
    if not classes:
        y[::2] = np.nan_to_num(z[::-2], nan=0.5)
    for part in (z, y):
        part.flags.writeable = False

    def numbers(positions: NDArray[np.intp]) -> Array:
        try:
            with np.errstate(all="ignore"):
                found = np.array(function(z[positions], y[positions]))
        except Exception as error:
            raise UnsupportedAccounting(
                f"{name} raised {type(error).__name__} for some numbers, which would tell of a record: no values "
                "may make it raise"
            ) from error
        if found.shape != positions.shape or found.dtype.kind not in "fiub":
            raise ValueError(f"{name} must return one real number for each record")
        return found.astype(np.float64)

    order = np.arange(PROBES)
    whole = numbers(order)
    shuffled = rng.permutation(PROBES)
    for positions in (order[::-1], shuffled, order[1::2], order[:7], np.repeat(order, 2), *order[:, None]):
        if not np.array_equal(numbers(positions), whole[positions], equal_nan=True):
            raise UnsupportedAccounting(
                f"{name} changed a record's number, if only in its last bits, with its place or with the "
                f"other records of a batch of {positions.size}: one record would change what others add. Compute "
                "it from z[i] and y[i] alone, without random numbers"
            )
