"""Dense nets in the words of scikit-learn's ``MLPClassifier`` and ``MLPRegressor``."""

from collections.abc import Iterable, Sequence
from numbers import Integral
from typing import Literal

from skdp._docs import document
from skdp.base import check_number
from skdp.base.declare import parameter
from skdp.base.kinds import choice, described
from skdp.nn.architectures import ACTIVATIONS, default_mlp
from skdp.nn.model import NetClassifier, NetRegressor
from skdp.nn.net_fit import NetFit
from skdp.nn.network import Network


def layer_sizes(sizes: object) -> tuple[int, ...]:
    """``hidden_layer_sizes`` as a tuple; TypeError unless it is an int or several."""
    if isinstance(sizes, Integral) and not isinstance(sizes, bool):
        return (int(sizes),)
    if isinstance(sizes, (str, bytes, bool)) or not isinstance(sizes, Iterable):
        raise TypeError(f"hidden_layer_sizes must be an int or a tuple of them, got {type(sizes).__name__}")
    return tuple(sizes)


def check_sizes(name: str, sizes: object) -> None:
    """Raise unless ``sizes`` is an int >= 1 or several."""
    for size in layer_sizes(sizes):
        check_number(name, size, Integral, low=1)


class DenseNet(NetFit):
    """A net of dense layers; a mixin before the kind of net."""

    hidden_layer_sizes: int | Sequence[int] = parameter(
        described("int or tuple of int", check_sizes),
        "Number of units in each hidden layer. Fewer parameters have less noise.",
        default=(64,),
    )
    activation: Literal["relu", "tanh"] = parameter(choice(*ACTIVATIONS), "Between the layers.", default="relu")

    def _network(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        return default_mlp(layer_sizes(self.hidden_layer_sizes), self.activation, n_outputs).build(shape)


@document()
class DPMLPClassifier(DenseNet, NetClassifier):
    """A net of dense layers for classification, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPNetworkClassifier : Any net of `skdp.nn` layers.
    DPCNNClassifier : Convolutional nets for images.
    skdp.DPLogisticRegression : Better for small tables.

    Notes
    -----
    {privacy.net}

    {privacy.unprotected}

    References
    ----------
    .. [Abadi2016]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMLPClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    >>> model = DPMLPClassifier(epsilon=4.0, classes=(0, 1), input_range=(-1, 1)).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.score(X, X[:, 0] * X[:, 1] > 0) > 0.8
    True
    """


@document()
class DPMLPRegressor(DenseNet, NetRegressor):
    """A net of dense layers for regression, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    See Also
    --------
    DPNetworkRegressor : Any net of `skdp.nn` layers.
    skdp.DPLinearRegression : Better for small tables.

    Notes
    -----
    {privacy.net}

    {privacy.net_targets}

    {privacy.unprotected}

    References
    ----------
    .. [Abadi2016]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMLPRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2))
    >>> model = DPMLPRegressor(epsilon=4.0, input_range=(-1, 1), y_bounds=(0, 1)).fit(X, X[:, 0] ** 2)
    >>> model.score(X, X[:, 0] ** 2) > 0.5
    True
    """
