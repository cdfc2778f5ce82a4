"""Any net of layers of `skdp.nn`."""

from skdp._docs import document
from skdp.base.declare import changed, parameter
from skdp.base.kinds import described
from skdp.fitting.targets import Problem
from skdp.nn.architectures import default_mlp
from skdp.nn.images import ImageModel
from skdp.nn.layers.flatten import Flatten
from skdp.nn.mlp import DPMLPClassifier, DPMLPRegressor
from skdp.nn.model import NetClassifier, NetRegressor
from skdp.nn.network import Network, Sequential
from skdp.nn.task import vocabulary_of

HIDDEN, ACTIVATION = (64,), "relu"  # the default of `DPMLPClassifier`


def _check_network(name: str, net: object) -> None:
    if net is None or isinstance(net, Sequential):
        return
    hint = ""
    if isinstance(net, (list, tuple)):
        hint = f"; give {name}=Sequential([...])"
    elif isinstance(net, Network):
        hint = "; give its .sequential, which each fit builds anew"
    raise TypeError(f"{name} must be None or a skdp.nn.Sequential, got {type(net).__name__}{hint}")


class GivenNet(ImageModel):
    """A net that the user gives; a mixin before the kind of net."""

    network: Sequential | None = parameter(
        described("Sequential", _check_network),
        "The net, whose last layer has an output for each class. None is the default of `DPMLPClassifier`.",
        default=None,
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self._takes_ids() and self.input_range is not None:
            raise ValueError("input_range must be None for a net with an Embedding: ids of tokens are not scaled")

    def _takes_ids(self) -> bool:
        return isinstance(self.network, Sequential) and vocabulary_of(self.network) is not None

    def _standardizes(self, problem: Problem) -> bool:
        return not self._takes_ids() and super()._standardizes(problem)

    def _network(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        if self.network is not None:
            return _built(self.network, shape)
        net = default_mlp(HIDDEN, ACTIVATION, n_outputs)
        return (net if len(shape) == 1 else Sequential([Flatten(), *net.layers])).build(shape)


def _built(net: Sequential, shape: tuple[int, ...]) -> Network:
    """The user's net, built; a net of images for rows of numbers is told of image_shape."""
    try:
        return net.build(shape)
    except ValueError as error:
        if len(shape) > 1:
            raise
        raise ValueError(
            f"{error}. If a row of X holds an image, give image_shape=(height, width) or (height, width, channels)"
        ) from None


@document(DPMLPClassifier)
class DPNetworkClassifier(GivenNet, NetClassifier):
    """Any net of `skdp.nn` layers for classification, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPMLPClassifier : Dense layers in the words of scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPNetworkClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    >>> model = DPNetworkClassifier(epsilon=4.0, classes=(0, 1), input_range=(-1, 1)).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.score(X, X[:, 0] * X[:, 1] > 0) > 0.8
    True
    """


@document(DPMLPRegressor)
class DPNetworkRegressor(GivenNet, NetRegressor):
    """Any net of `skdp.nn` layers for regression, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    See Also
    --------
    DPMLPRegressor : Dense layers in the words of scikit-learn.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPNetworkRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2))
    >>> model = DPNetworkRegressor(epsilon=4.0, input_range=(-1, 1), y_bounds=(0, 1)).fit(X, X[:, 0] ** 2)
    >>> model.score(X, X[:, 0] ** 2) > 0.5
    True
    """

    network = changed(text="The net, whose last layer has one output. None is the default of `DPMLPRegressor`.")
