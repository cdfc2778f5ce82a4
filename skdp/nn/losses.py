"""Losses of a record's outputs, with their derivatives."""

from dataclasses import dataclass
from types import ModuleType

from skdp.nn.arrays import Array, array_module
from skdp.nn.layers.layer import check_positive_int


@dataclass(frozen=True)
class CrossEntropy:
    """Minus the logarithm of the probability that softmax gives to a record's class.

    Parameters
    ----------
    n_classes : int
        Number of classes and of outputs, >= 2.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.nn import CrossEntropy
    >>> CrossEntropy(2).derivative(np.zeros((1, 2)), np.array([1]))
    array([[ 0.5, -0.5]])
    """

    n_classes: int

    def __post_init__(self) -> None:
        check_positive_int(self.n_classes, "n_classes")
        if self.n_classes < 2:
            raise ValueError("n_classes must be at least 2")

    @property
    def n_outputs(self) -> int:
        """Number of outputs of a net for this loss."""
        return self.n_classes

    def derivative(self, outputs: Array, y: Array) -> Array:
        """Return the derivative by the outputs.

        Parameters
        ----------
        outputs : array of shape (n_rows, n_classes)
        y : array of shape (n_rows,)
            Numbers of the classes, from 0.

        Returns
        -------
        array of shape (n_rows, n_classes), of the dtype of ``outputs``
        """
        xp = array_module(outputs)
        e = xp.exp(outputs - outputs.max(axis=1, keepdims=True))
        e /= e.sum(axis=1, keepdims=True)
        e -= self._of_class(xp, y)
        return e

    def value(self, outputs: Array, y: Array) -> Array:
        """Return the loss of each row, of shape (n_rows,); arguments as in `derivative`."""
        xp = array_module(outputs)
        centred = outputs - outputs.max(axis=1, keepdims=True)
        of_class = xp.where(self._of_class(xp, y), centred, xp.zeros_like(centred)).sum(axis=1)
        return xp.log(xp.exp(centred).sum(axis=1)) - of_class

    def _of_class(self, xp: ModuleType, y: Array) -> Array:
        """Whether each class is the record's class. A label that is no class has none: nothing may raise here."""
        return xp.asarray(y)[:, None] == xp.arange(self.n_classes)


@dataclass(frozen=True)
class SquaredError:
    """Half the squared distance of a record's outputs from its targets.

    Parameters
    ----------
    n_outputs : int, default=1
        Number of outputs and of targets of a record, >= 1.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.nn import SquaredError
    >>> SquaredError().value(np.array([[3.0]]), np.array([1.0]))
    array([2.])
    """

    n_outputs: int = 1

    def __post_init__(self) -> None:
        check_positive_int(self.n_outputs, "n_outputs")

    def derivative(self, outputs: Array, y: Array) -> Array:
        """Return ``outputs - y``, of shape (n_rows, n_outputs) and of the dtype of ``outputs``.

        Parameters
        ----------
        outputs : array of shape (n_rows, n_outputs)
        y : array of shape (n_rows,) or (n_rows, n_outputs)
        """
        targets = array_module(outputs).asarray(y).reshape(len(outputs), self.n_outputs)
        return outputs - targets.astype(outputs.dtype)

    def value(self, outputs: Array, y: Array) -> Array:
        """Return the loss of each row, of shape (n_rows,); arguments as in `derivative`."""
        difference = self.derivative(outputs, y)
        return (difference * difference).sum(axis=1) / 2
