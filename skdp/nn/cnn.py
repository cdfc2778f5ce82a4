"""Convolutional nets for images."""

from skdp._docs import document
from skdp.base import check_choice
from skdp.base.declare import changed, fitted, parameter
from skdp.base.kinds import described
from skdp.nn.architectures import ARCHITECTURES, architecture, default_cnn
from skdp.nn.images import ImageModel
from skdp.nn.inputs import image_of
from skdp.nn.mlp import DPMLPClassifier
from skdp.nn.model import NetClassifier
from skdp.nn.network import Network

NETS = {name: net for name, net in ARCHITECTURES.items() if len(net.shape) == 3}  # of images


def _check_architecture(name: str, value: object) -> None:
    check_choice(name, value, ("auto", *sorted(NETS)))


class ConvolutionalNet(ImageModel, NetClassifier):
    """A net for images of a public shape."""

    architecture: str = parameter(
        described("str", _check_architecture),
        """A published net: "mnist-26010" (also "tf-tutorial"), "dp-cnn", "dp-cnn-s", "cnn5", "cifar-623146",
        "alexnet" (21.6 million parameters), "vgg13" (32.4 million), and on scattering features "h-cnn", "h-cnn-s"
        (`skdp.nn.architectures`). "auto" is "dp-cnn-s" for images of at least 16 by 16 pixels, and one small
        convolution for others.""",
        default="auto",
    )
    image_shape = changed(
        text="""(height, width) or (height, width, channels) of the image in each row of X, channels last. None is
        the shape of the images, if X holds images; else the shape for which a named net was published, if X has as
        many features; else (1, n_features), one row of pixels."""
    )
    input_range = changed(
        text="""Public numbers, such as (0, 255), or ``([low, ...], [high, ...])`` for each column or channel:
        values are clipped to them and scaled to [-1, 1]. None takes values as they are."""
    )
    image_shape_: tuple[int, int, int] = fitted("tuple of int", "(height, width, channels) of an image.")

    def _row_image(self, n_features: int) -> tuple[int, int, int]:
        if self.image_shape is None and self.architecture in NETS:
            height, width, channels = NETS[self.architecture].shape
            if n_features == height * width * channels:
                return height, width, channels
        return image_of(self.image_shape, n_features)

    def _network(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        if self.architecture == "auto":
            return default_cnn(shape, n_outputs).build(shape)
        try:
            return architecture(self.architecture, n_outputs).build(shape)
        except ValueError as error:
            made_for = NETS[self.architecture].shape
            raise ValueError(
                f"architecture={self.architecture!r} was made for images of shape {made_for}, and does not fit "
                f"the shape {shape}: use architecture='auto', or check image_shape. {error}"
            ) from None


@document(DPMLPClassifier)
class DPCNNClassifier(ConvolutionalNet):
    """A convolutional net for images, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPNetworkClassifier : Any net of `skdp.nn` layers.
    DPMLPClassifier : Dense layers, for tables.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPCNNClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> images = rng.integers(0, 64, (2000, 8, 8)) + 128 * y[:, None, None]
    >>> model = DPCNNClassifier(epsilon=3.0, classes=(0, 1), input_range=(0, 255)).fit(images, y)
    >>> model.score(images, y) > 0.9
    True
    """
