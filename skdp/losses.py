"""Loss functions of generalised linear models: value, derivative and smoothness.

A loss is a function of the linear predictor z and the target y. The objects are small and
immutable; the kernels of :mod:`skdp.kernels` recognise them by ``name`` and compute the same
derivative.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

__all__ = ["HuberLoss", "LogisticLoss", "MultinomialLoss", "SquaredLoss"]

Array = NDArray[np.float64]


def _both(z: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    return np.asarray(z, dtype=np.float64), np.asarray(y, dtype=np.float64)


@dataclass(frozen=True, slots=True)
class SquaredLoss:
    """Half the squared residual, ``(z - y)**2 / 2``.

    Attributes
    ----------
    smoothness : float
        Bound on the second derivative, 1.
    n_outputs : int
        1.

    Examples
    --------
    >>> from skdp.losses import SquaredLoss
    >>> SquaredLoss().derivative([1.0, 2.0], [0.5, 3.0]).tolist()
    [0.5, -1.0]
    """

    name: ClassVar[str] = "squared"
    n_outputs: ClassVar[int] = 1
    smoothness: ClassVar[float] = 1.0

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Loss of each record; ``z`` and ``y`` have shape (n,)."""
        z, y = _both(z, y)
        return 0.5 * np.square(z - y)

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Derivative with respect to ``z``, shape (n,)."""
        z, y = _both(z, y)
        return z - y


@dataclass(frozen=True, slots=True)
class HuberLoss:
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
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35
    (1964).

    Examples
    --------
    >>> from skdp.losses import HuberLoss
    >>> HuberLoss(1.0).value([0.5, 3.0], [0.0, 0.0]).tolist()
    [0.125, 2.5]
    """

    threshold: float

    name: ClassVar[str] = "huber"
    n_outputs: ClassVar[int] = 1
    smoothness: ClassVar[float] = 1.0

    def __post_init__(self) -> None:
        if not (np.isfinite(self.threshold) and self.threshold > 0):
            raise ValueError(f"threshold must be finite and positive, got {self.threshold!r}.")

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
class LogisticLoss:
    """Negative log-likelihood of a 0/1 target, ``log(1 + exp(z)) - y z``.

    Attributes
    ----------
    smoothness : float
        Bound on the second derivative, 1/4.
    n_outputs : int
        1.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> LogisticLoss().derivative([0.0, -800.0], [1, 1]).tolist()
    [-0.5, -1.0]
    """

    name: ClassVar[str] = "logistic"
    n_outputs: ClassVar[int] = 1
    smoothness: ClassVar[float] = 0.25

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

    def __post_init__(self) -> None:
        if int(self.n_classes) != self.n_classes or self.n_classes < 2:
            raise ValueError(f"n_classes must be an integer >= 2, got {self.n_classes!r}.")

    @property
    def n_outputs(self) -> int:
        """Number of columns of the linear predictor, K."""
        return self.n_classes

    def value(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Loss of each record; ``z`` has shape (n, K), ``y`` holds class indices, shape (n,)."""
        z, target = _both(z, y)
        top = z.max(axis=1)
        chosen = np.take_along_axis(z, target.astype(np.intp)[:, None], axis=1)[:, 0]
        return np.log(np.exp(z - top[:, None]).sum(axis=1)) + (top - chosen)

    def derivative(self, z: ArrayLike, y: ArrayLike) -> Array:
        """Softmax minus the indicator of the class, shape (n, K)."""
        z, target = _both(z, y)
        p: Any = np.exp(z - z.max(axis=1, keepdims=True))
        p /= p.sum(axis=1, keepdims=True)
        p[np.arange(p.shape[0]), target.astype(np.intp)] -= 1.0
        return p
