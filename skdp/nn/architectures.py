"""Published nets by name, with their numbers of parameters.

References: the tutorial of TensorFlow Privacy, whose net DP-SGD-JL trains (26,010 parameters), and which is the
MNIST net of pytorch-dp in Wang (2021), too; Papernot et al., "Tempered sigmoid activations for deep learning with
differential privacy", AAAI 2021 (DP-CNN); Tramer and Boneh,
"Differentially private learning needs better features", ICLR 2021 (H-CNN, on scattering features); the PyTorch
tutorial's net, CNN5 of Wang (2021), chapter 4. Bu et al., "Fast and memory efficient differentially private-SGD
via JL projections", NeurIPS 2021, name larger nets and print their numbers of parameters: one for CIFAR-10 after
Papernot et al., AlexNet (Krizhevsky et al. 2012), VGG13 (Simonyan and Zisserman 2014), and an LSTM for IMDb. They
print neither strides nor pools: those here lead to the same numbers.
"""

from collections.abc import Callable
from math import sqrt
from typing import NamedTuple

from skdp.nn.layers.conv2d import Conv2D
from skdp.nn.layers.dense import Dense
from skdp.nn.layers.embedding import Embedding
from skdp.nn.layers.flatten import Flatten
from skdp.nn.layers.layer import Layer
from skdp.nn.layers.lstm import LSTM
from skdp.nn.layers.masked_mean_pool import MaskedMeanPool
from skdp.nn.layers.max_pool import MaxPool2D
from skdp.nn.layers.relu import ReLU
from skdp.nn.layers.rescaling import Rescaling
from skdp.nn.layers.tanh import Tanh
from skdp.nn.network import Sequential

__all__ = ["ARCHITECTURES", "architecture", "default_cnn", "default_mlp"]

ACTIVATIONS: dict[str, Callable[[], Layer]] = {"relu": ReLU, "tanh": Tanh}
SMALLEST_IMAGE = 16  # height and width from which the tutorial's net is the default


def tutorial(n_outputs: int, activation: Callable[[], Layer] = ReLU) -> Sequential:
    """Two wide convolutions with pooling, then a hidden layer."""
    return Sequential(
        [
            Conv2D(16, 8, stride=2, padding=3), activation(), MaxPool2D(2, stride=1),
            Conv2D(32, 4, stride=2), activation(), MaxPool2D(2, stride=1),
            Flatten(), Dense(32), activation(), Dense(n_outputs),
        ]
    )  # fmt: skip


def dp_cnn(n_outputs: int) -> Sequential:
    """Three pairs of 3 x 3 convolutions with tanh, and a hidden layer."""
    layers: list[Layer] = []
    for filters in (32, 64, 128):
        layers += [*[Conv2D(filters, 3, padding="same"), Tanh()] * 2, MaxPool2D(2, stride=2)]
    return Sequential([*layers, Flatten(), Dense(128), Tanh(), Dense(n_outputs)])


def dp_cnn_small(n_outputs: int) -> Sequential:
    """The tutorial's net with tanh."""
    return tutorial(n_outputs, Tanh)


# `ScatteringTransform` gives rows of l2 norm 1 or a little less. The nets on them bring the root mean square of a
# feature to about 1.


def h_cnn(n_outputs: int) -> Sequential:
    """Two convolutions on the scattering features of a colour image."""
    return Sequential(
        [
            Rescaling(sqrt(8 * 8 * 243)),
            Conv2D(64, 3, padding=1), Tanh(), MaxPool2D(2, stride=2),
            Conv2D(64, 3, padding=1), Tanh(), Flatten(), Dense(n_outputs),
        ]
    )  # fmt: skip


def h_cnn_small(n_outputs: int) -> Sequential:
    """Two convolutions and a hidden layer on the scattering features of a grey image."""
    return Sequential(
        [
            Rescaling(sqrt(7 * 7 * 81)),
            Conv2D(16, 3, stride=2, padding=1), Tanh(), Conv2D(32, 3, padding=1), Tanh(),
            Flatten(), Dense(32), Tanh(), Dense(n_outputs),
        ]
    )  # fmt: skip


def cnn5(n_outputs: int) -> Sequential:
    """Two convolutions and three dense layers."""
    return Sequential(
        [
            Conv2D(6, 5), ReLU(), MaxPool2D(2, stride=2), Conv2D(16, 5), ReLU(), MaxPool2D(2, stride=2),
            Flatten(), Dense(120), ReLU(), Dense(84), ReLU(), Dense(n_outputs),
        ]
    )  # fmt: skip


def cifar_cnn(n_outputs: int) -> Sequential:
    """Seven 3 x 3 convolutions with tanh, and no hidden layer."""
    layers: list[Layer] = []
    for filters in (32, 64, 128):
        layers += [*[Conv2D(filters, 3, padding="same"), Tanh()] * 2, MaxPool2D(2, stride=2)]
    layers += [Conv2D(256, 3, padding="same"), Tanh()]
    return Sequential([*layers, Flatten(), Dense(n_outputs)])


def with_relu(sizes: tuple[int, ...], n_outputs: int) -> list[Layer]:
    """Wide dense layers on flattened maps."""
    dense = [layer for size in sizes for layer in (Dense(size, initialization="he"), ReLU())]
    return [Flatten(), *dense, Dense(n_outputs)]


def alexnet(n_outputs: int) -> Sequential:
    """Five convolutions and three dense layers, for small grey images."""
    layers: list[Layer] = []
    for filters, size, stride, pool in (
        (96, 11, 2, 2), (256, 5, 1, 2), (384, 3, 1, 0), (384, 3, 1, 0), (256, 3, 1, 3),
    ):  # fmt: skip
        layers += [Conv2D(filters, size, stride, "same", initialization="he"), ReLU()]
        layers += [MaxPool2D(pool, stride=pool)] if pool else []
    return Sequential([*layers, *with_relu((4096, 4096), n_outputs)])


def vgg13(n_outputs: int) -> Sequential:
    """Ten 3 x 3 convolutions and four dense layers: VGG13 for 1,000 classes, and one more layer after it."""
    layers: list[Layer] = []
    for filters in (64, 128, 256, 512, 512):
        layers += [*[Conv2D(filters, 3, padding="same", initialization="he"), ReLU()] * 2, MaxPool2D(2, stride=2)]
    return Sequential([*layers, *with_relu((4096, 4096, 1000), n_outputs)])


def lstm(
    vocabulary_size: int,
    n_outputs: int,
    *,
    n_features: int = 64,
    n_units: int = 64,
    bidirectional: bool = True,
    hidden_layer_sizes: tuple[int, ...] = (64,),
) -> Sequential:
    """Embedded tokens, an LSTM, the mean of its states, and dense layers."""
    dense = default_mlp(hidden_layer_sizes, "relu", n_outputs)
    first = [Embedding(vocabulary_size, n_features), LSTM(n_units, bidirectional), MaskedMeanPool()]
    return Sequential([*first, *dense.layers])


IMDB_VOCABULARY = 8185  # ids of TensorFlow's "imdb_reviews/subwords8k"; the paper prints 8k


def imdb_lstm(n_outputs: int) -> Sequential:
    """Both directions, and a hidden layer, for subwords of film reviews."""
    return lstm(IMDB_VOCABULARY, n_outputs)


class Published(NamedTuple):
    """A net by name.

    Attributes
    ----------
    make : callable
        From a number of classes to the net.
    shape : tuple of int
        Of the records for which it was published.
    n_parameters : int
        For ``n_outputs`` classes.
    n_outputs : int, default=10
    """

    make: Callable[[int], Sequential]
    shape: tuple[int, ...]
    n_parameters: int
    n_outputs: int = 10


ARCHITECTURES: dict[str, Published] = {
    "mnist-26010": Published(tutorial, (28, 28, 1), 26_010),
    "tf-tutorial": Published(tutorial, (28, 28, 1), 26_010),
    "dp-cnn": Published(dp_cnn, (32, 32, 3), 550_570),
    "dp-cnn-s": Published(dp_cnn_small, (28, 28, 1), 26_010),
    "h-cnn": Published(h_cnn, (8, 8, 243), 187_210),
    "h-cnn-s": Published(h_cnn_small, (7, 7, 81), 33_066),
    "cnn5": Published(cnn5, (32, 32, 3), 62_006),
    "cifar-623146": Published(cifar_cnn, (32, 32, 3), 623_146),
    "alexnet": Published(alexnet, (28, 28, 1), 21_598_922),
    "vgg13": Published(vgg13, (32, 32, 3), 32_394_562),
    "imdb-lstm": Published(imdb_lstm, (150,), 598_274, 2),
}


def architecture(name: str, n_outputs: int) -> Sequential:
    """A published net.

    Parameters
    ----------
    name : str
        A key of ``ARCHITECTURES``.
    n_outputs : int
        Number of classes.

    Returns
    -------
    Sequential

    Raises
    ------
    ValueError
        If no net has this name.

    Examples
    --------
    >>> from skdp.nn.architectures import architecture
    >>> architecture("mnist-26010", 10).build((28, 28, 1)).n_parameters
    26010
    """
    if name not in ARCHITECTURES:
        raise ValueError(f"architecture must be one of {sorted(ARCHITECTURES)}, got {name!r}")
    return ARCHITECTURES[name].make(n_outputs)


def default_cnn(image: tuple[int, ...], n_outputs: int) -> Sequential:
    """The tutorial's net with tanh for images, one small convolution for smaller inputs.

    MNIST at epsilon 3, 1,000 steps, one seed: .978 held out, and .965 with ReLU in place of tanh.
    """
    if min(image[:2]) >= SMALLEST_IMAGE:
        return dp_cnn_small(n_outputs)
    return Sequential([Conv2D(16, 3, padding="same"), ReLU(), Flatten(), Dense(32), ReLU(), Dense(n_outputs)])


def default_mlp(hidden_layer_sizes: tuple[int, ...], activation: str, n_outputs: int) -> Sequential:
    """Dense layers with an activation between them."""
    layers = [layer for size in hidden_layer_sizes for layer in (Dense(size), ACTIVATIONS[activation]())]
    return Sequential([*layers, Dense(n_outputs)])
