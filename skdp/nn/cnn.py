"""Convolutional nets for images."""

from typing import Any

from skdp._docs import document
from skdp.base import check_choice
from skdp.nn.architectures import ARCHITECTURES, architecture, default_cnn
from skdp.nn.images import ImageModel
from skdp.nn.inputs import image_of
from skdp.nn.model import NetClassifier
from skdp.nn.network import Network

__all__ = ["DPCNNClassifier"]

NETS = {name: net for name, net in ARCHITECTURES.items() if len(net.shape) == 3}  # of images


class ConvolutionalNet(ImageModel, NetClassifier):
    """A net for images of a public shape."""

    architecture: str

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("architecture", self.architecture, ("auto", *sorted(NETS)))

    def _row_image(self, n_features: int) -> tuple[int, int, int]:
        if self.image_shape is None and self.architecture in NETS:
            height, width, channels = NETS[self.architecture].shape
            if n_features == height * width * channels:
                return height, width, channels
        return image_of(self.image_shape, n_features)

    def _network(self, shape: Any, n_outputs: int) -> Network:
        if self.architecture == "auto":
            return default_cnn(shape, n_outputs).build(shape)
        try:
            return architecture(self.architecture, n_outputs).build(shape)
        except ValueError as error:
            made_for = NETS[self.architecture].shape
            raise ValueError(
                f"architecture={self.architecture!r} was made for images of shape {made_for}, and does not fit "
                f"those of {shape}: use architecture='auto', or check image_shape. {error}"
            ) from None


@document()
class DPCNNClassifier(ConvolutionalNet):
    """A convolutional net for images, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    {recalibrated}

    Parameters
    ----------
    {epsilon} {delta}
    architecture : str, default="auto"
        A published net: "mnist-26010" (also "tf-tutorial"), "dp-cnn", "dp-cnn-s", "cnn5", "cifar-623146",
        "alexnet" (21.6 million parameters), "vgg13" (32.4 million), and on scattering features "h-cnn", "h-cnn-s"
        (`skdp.nn.architectures`). "auto" is "dp-cnn-s" for images of at least 16
        by 16 pixels, and one small convolution for others.
    image_shape : tuple of int, default=None
        (height, width) or (height, width, channels) of the image in each row of X, channels last. None is the
        shape of the images, if X holds images; else that for which a named net was published, if its rows are as
        long as those of X; else (1, n_features), one row of pixels.
    {batch_size.net} {max_iter.net} {n_epochs} {sampling.net} {learning_rate.net} {schedule.net}
    {momentum.net} {solver.net}
    {smoothing.net} {average.net} {clip_norm.net} {clipping} {microbatch_size} {n_projections}
    {recursive} {sparsification} {select}
    {input_range.image}
    {classes}
    {parameters_init}
    {adjacency.net} {unit} {max_rows_per_group} {n_public} {validation} {accountant} {random_state} {verbose}
    {callback.net}

    Attributes
    ----------
    {parameters_} {network_} {inputs_} {calibration_}
    image_shape_ : tuple of int
        (height, width, channels) of an image.
    {classes_} {n_iter_} {batch_size_} {learning_rate_.net} {clip_norm_} {sparsity_}
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPNetworkClassifier : Any net of `skdp.nn` layers.
    DPMLPClassifier : Dense layers, for tables.

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
    >>> from skdp import DPCNNClassifier
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, 2000)
    >>> images = rng.integers(0, 64, (2000, 8, 8)) + 128 * y[:, None, None]
    >>> model = DPCNNClassifier(epsilon=3.0, classes=(0, 1), input_range=(0, 255)).fit(images, y)
    >>> model.score(images, y) > 0.9
    True
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        architecture="auto",
        image_shape=None,
        batch_size="auto",
        max_iter="auto",
        n_epochs=None,
        sampling="poisson",
        learning_rate="auto",
        schedule="linear",
        momentum=0.9,
        solver="sgd",
        smoothing=0.0,
        average=None,
        clip_norm="adaptive",
        clipping="auto",
        microbatch_size=8,
        n_projections=20,
        recursive=None,
        sparsification=None,
        select=None,
        input_range=None,
        classes=None,
        parameters_init=None,
        adjacency="zero-out",
        unit="record",
        max_rows_per_group=None,
        n_public=None,
        validation=None,
        accountant=None,
        random_state=None,
        verbose=False,
        callback=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.architecture = architecture
        self.image_shape = image_shape
        self.batch_size = batch_size
        self.max_iter = max_iter
        self.n_epochs = n_epochs
        self.sampling = sampling
        self.learning_rate = learning_rate
        self.schedule = schedule
        self.momentum = momentum
        self.solver = solver
        self.smoothing = smoothing
        self.average = average
        self.clip_norm = clip_norm
        self.clipping = clipping
        self.microbatch_size = microbatch_size
        self.n_projections = n_projections
        self.recursive = recursive
        self.sparsification = sparsification
        self.select = select
        self.input_range = input_range
        self.classes = classes
        self.parameters_init = parameters_init
        self.adjacency = adjacency
        self.unit = unit
        self.max_rows_per_group = max_rows_per_group
        self.n_public = n_public
        self.validation = validation
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
