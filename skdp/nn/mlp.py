"""Dense nets in the words of scikit-learn's ``MLPClassifier`` and ``MLPRegressor``."""

from collections.abc import Iterable
from numbers import Integral
from typing import Any

from skdp._docs import document
from skdp.base import check_choice, check_number
from skdp.nn.architectures import ACTIVATIONS, default_mlp
from skdp.nn.model import NetClassifier, NetRegressor
from skdp.nn.network import Network

__all__ = ["DPMLPClassifier", "DPMLPRegressor", "layer_sizes"]


def layer_sizes(sizes: Any) -> tuple[Any, ...]:
    """``hidden_layer_sizes`` as a tuple; TypeError unless it is an int or several."""
    if isinstance(sizes, Integral) and not isinstance(sizes, bool):
        return (int(sizes),)
    if isinstance(sizes, (str, bytes, bool)) or not isinstance(sizes, Iterable):
        raise TypeError(
            f"hidden_layer_sizes must be an int or a tuple of them, got {type(sizes).__name__}"
        )
    return tuple(sizes)


class DenseNet:
    """A net of dense layers; a mixin before the kind of net."""

    hidden_layer_sizes: Any
    activation: str

    def _check_parameters(self) -> None:
        super()._check_parameters()  # type: ignore[misc]
        check_choice("activation", self.activation, tuple(ACTIVATIONS))
        for size in layer_sizes(self.hidden_layer_sizes):
            check_number("hidden_layer_sizes", size, Integral, low=1)

    def _network(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        return default_mlp(layer_sizes(self.hidden_layer_sizes), self.activation, n_outputs).build(
            shape
        )


@document()
class DPMLPClassifier(DenseNet, NetClassifier):
    """A net of dense layers for classification, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    {recalibrated}

    Parameters
    ----------
    {epsilon} {delta}
    hidden_layer_sizes : tuple of int, default=(64,)
        Number of units in each hidden layer. Fewer parameters have less noise.
    activation : {"relu", "tanh"}, default="relu"
        Between the layers.
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
    {classes_} {n_iter_} {batch_size_} {learning_rate_.net} {clip_norm_} {sparsity_}
    {privacy_} {n_features_in_} {feature_names_in_}

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

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        hidden_layer_sizes=(64,),
        activation="relu",
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
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
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
class DPMLPRegressor(DenseNet, NetRegressor):
    """A net of dense layers for regression, by differentially private SGD.

    Steps along noisy clipped gradients of minibatches, as in [Abadi2016]_.

    {guarantee}

    Parameters
    ----------
    {epsilon} {delta}
    hidden_layer_sizes : tuple of int, default=(64,)
        Number of units in each hidden layer. Fewer parameters have less noise.
    activation : {"relu", "tanh"}, default="relu"
        Between the layers.
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
    {line_} {prediction_bounds_.net} {n_iter_} {batch_size_} {learning_rate_.net} {clip_norm_} {sparsity_}
    {privacy_} {n_features_in_} {feature_names_in_}

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

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        hidden_layer_sizes=(64,),
        activation="relu",
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
        self.hidden_layer_sizes = hidden_layer_sizes
        self.activation = activation
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
