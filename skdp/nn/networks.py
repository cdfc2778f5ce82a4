"""Any net of layers of `skdp.nn`."""

from typing import Any

from skdp._docs import document
from skdp.fitting.targets import Problem
from skdp.nn.architectures import default_mlp
from skdp.nn.images import ImageModel
from skdp.nn.layers.flatten import Flatten
from skdp.nn.model import NetClassifier, NetRegressor
from skdp.nn.network import Network, Sequential
from skdp.nn.task import vocabulary_of

__all__ = ["DPNetworkClassifier", "DPNetworkRegressor"]

HIDDEN, ACTIVATION = (64,), "relu"  # of the default, that of `DPMLPClassifier`


class GivenNet(ImageModel):
    """A net that the user gives; a mixin before the kind of net."""

    network: Any

    def _check_parameters(self) -> None:
        super()._check_parameters()
        net = self.network
        if self._takes_ids() and self.input_range is not None:
            raise ValueError(
                "input_range must be None for a net with an Embedding: ids of tokens are not scaled"
            )
        if net is None or isinstance(net, Sequential):
            return
        hint = ""
        if isinstance(net, (list, tuple)):
            hint = "; give network=Sequential([...])"
        elif isinstance(net, Network):
            hint = "; give its .sequential, which each fit builds anew"
        raise TypeError(
            f"network must be None or a skdp.nn.Sequential, got {type(net).__name__}{hint}"
        )

    def _takes_ids(self) -> bool:
        return isinstance(self.network, Sequential) and vocabulary_of(self.network) is not None

    def _standardizes(self, problem: Problem) -> bool:
        return not self._takes_ids() and super()._standardizes(problem)  # type: ignore[misc]

    def _network(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        if self.network is not None:
            return self._given(shape)
        net = default_mlp(HIDDEN, ACTIVATION, n_outputs)
        return (net if len(shape) == 1 else Sequential([Flatten(), *net.layers])).build(shape)

    def _given(self, shape: tuple[int, ...]) -> Network:
        """The user's net, built; a net of images for rows of numbers is told of image_shape."""
        try:
            network: Network = self.network.build(shape)
        except ValueError as error:
            if len(shape) > 1:
                raise
            raise ValueError(
                f"{error}. If a row of X holds an image, give image_shape=(height, width) or (height, width, "
                "channels)"
            ) from None
        return network


@document()
class DPNetworkClassifier(GivenNet, NetClassifier):
    """Any net of `skdp.nn` layers for classification, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    {recalibrated}

    Parameters
    ----------
    {epsilon} {delta}
    network : Sequential, default=None
        The net, whose last layer has an output for each class. None is the default of `DPMLPClassifier`.
    image_shape : tuple of int, default=None
        (height, width) or (height, width, channels) of the image in each row of X, for a net of images. None is
        the shape of the images, if X holds images, and else a row of numbers.
    {batch_size.net} {max_iter.net} {n_epochs} {sampling.net} {learning_rate.net} {schedule.net}
    {momentum.net} {solver.net}
    {smoothing.net} {average.net} {clip_norm.net} {clipping} {microbatch_size} {n_projections}
    {recursive} {sparsification} {select}
    {input_range}
    {classes}
    {parameters_init}
    {adjacency.net} {unit} {max_rows_per_group} {n_public} {validation} {accountant} {random_state} {verbose}
    {callback.net}

    Attributes
    ----------
    {parameters_} {network_} {inputs_} {calibration_}
    image_shape_ : tuple of int or None
        (height, width, channels) of an image; None where a record is a row of numbers.
    {classes_} {n_iter_} {batch_size_} {learning_rate_.net} {clip_norm_} {sparsity_}
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPMLPClassifier : Dense layers in the words of scikit-learn.

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
    >>> from skdp import DPNetworkClassifier
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    >>> model = DPNetworkClassifier(epsilon=4.0, classes=(0, 1), input_range=(-1, 1)).fit(X, X[:, 0] * X[:, 1] > 0)
    >>> model.score(X, X[:, 0] * X[:, 1] > 0) > 0.8
    True
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        network=None,
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
        self.network = network
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


@document()
class DPNetworkRegressor(GivenNet, NetRegressor):
    """Any net of `skdp.nn` layers for regression, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    Parameters
    ----------
    {epsilon} {delta}
    network : Sequential, default=None
        The net, whose last layer has one output. None is the default of `DPMLPRegressor`.
    image_shape : tuple of int, default=None
        (height, width) or (height, width, channels) of the image in each row of X, for a net of images. None is
        the shape of the images, if X holds images, and else a row of numbers.
    {batch_size.net} {max_iter.net} {n_epochs} {sampling.net} {learning_rate.net} {schedule.net}
    {momentum.net} {solver.net}
    {smoothing.net} {average.net} {clip_norm.net} {clipping} {microbatch_size} {n_projections}
    {recursive} {sparsification} {select}
    {input_range}
    {y_bounds.net}
    {parameters_init}
    {adjacency.net} {unit} {max_rows_per_group} {n_public} {validation} {accountant} {random_state} {verbose}
    {callback.net}

    Attributes
    ----------
    {parameters_} {network_} {inputs_} {target_center_.net} {target_reach_}
    image_shape_ : tuple of int or None
        (height, width, channels) of an image; None where a record is a row of numbers.
    {line_} {prediction_bounds_.net} {n_iter_} {batch_size_} {learning_rate_.net} {clip_norm_} {sparsity_}
    {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPMLPRegressor : Dense layers in the words of scikit-learn.

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
    >>> from skdp import DPNetworkRegressor
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(5000, 2))
    >>> model = DPNetworkRegressor(epsilon=4.0, input_range=(-1, 1), y_bounds=(0, 1)).fit(X, X[:, 0] ** 2)
    >>> model.score(X, X[:, 0] ** 2) > 0.5
    True
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        network=None,
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
        y_bounds="adaptive",
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
        self.network = network
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
        self.y_bounds = y_bounds
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
