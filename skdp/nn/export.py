"""Nets of dense layers as scikit-learn's own."""

import math
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp._export import clipped_regressor, clipper, name_features, shifted_and_divided
from skdp.nn.layers.dense import Dense
from skdp.nn.layers.flatten import Flatten
from skdp.nn.layers.relu import ReLU
from skdp.nn.layers.tanh import Tanh
from skdp.nn.network import Network

if TYPE_CHECKING:
    from skdp.nn.model import NetClassifier, NetRegressor
    from skdp.nn.net_fit import NetFit

ACTIVATIONS = {ReLU: "relu", Tanh: "tanh"}
Layers = tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]  # weights and biases


def exported(net: Any) -> Any:
    """The net as a fitted estimator of scikit-learn; see ``to_sklearn`` of the estimators."""
    check_is_fitted(net)
    layers, activation = _dense(net.network_, net.parameters_)
    make = _as_classifier if is_classifier(net) else _as_regressor
    return make(net, layers, activation)


def _as_classifier(net: "NetClassifier", layers: Layers, activation: str) -> BaseEstimator:
    from sklearn.neural_network import MLPClassifier

    weights, biases = layers
    if biases[-1].size == 2:  # scikit-learn has one score for two classes
        weights[-1], biases[-1] = np.diff(weights[-1], axis=1), np.diff(biases[-1])
    calibration = net.calibration_
    if calibration is not None:
        weights[-1] = weights[-1] @ calibration[:-1]
        biases[-1] = biases[-1] @ calibration[:-1] + calibration[-1]
    classes = np.array(net.classes_)
    made = MLPClassifier(**_settings(layers, activation))
    made.partial_fit(np.zeros((len(classes), len(weights[0]))), classes, classes=classes)
    return _after_inputs(net, made, layers)


def _as_regressor(net: "NetRegressor", layers: Layers, activation: str) -> BaseEstimator:
    """``center + half_width * clip(slope * clip(output, -1, 1) + shift, -1, 1)`` is a line, clipped once."""
    from sklearn.neural_network import MLPRegressor

    center, half_width = net.target_center_, net.target_scale_
    slope, shift = net.line_
    weights, biases = layers
    weights[-1] = weights[-1] * (half_width * slope)
    biases[-1] = biases[-1] * (half_width * slope) + (center + half_width * shift)
    made = MLPRegressor(**_settings(layers, activation))
    made.partial_fit(np.zeros((1, len(weights[0]))), np.zeros(1))
    bounds = net.prediction_bounds_
    return clipped_regressor(_after_inputs(net, made, layers), *bounds)


def _after_inputs(net: "NetFit", made: BaseEstimator, layers: Layers) -> BaseEstimator:
    """The net with these numbers, behind what turns a row into its input."""
    from sklearn.pipeline import make_pipeline

    made.coefs_, made.intercepts_ = layers
    if net.inputs_.bounds == (-math.inf, math.inf):
        return name_features(made, net)
    n = len(layers[0][0])
    center, scale = (np.broadcast_to(part, (n,)) for part in (net.inputs_.center, net.inputs_.scale))
    scaler = name_features(shifted_and_divided(center, scale), net)
    scaler.set_output(transform="default")
    low, high = net.inputs_.bounds
    return make_pipeline(scaler, clipper(low, high, n), made)


def _settings(layers: Layers, activation: str) -> dict[str, object]:
    sizes = tuple(bias.size for bias in layers[1][:-1])
    return {"hidden_layer_sizes": sizes, "activation": activation, "random_state": 0}


def _dense(network: Network, parameters: NDArray[np.float32]) -> tuple[Layers, str]:
    """Weights and biases of the layers, and the activation between them; TypeError for any other net."""
    layers, views = list(network.sequential.layers), network.views(parameters)
    if type(layers[0]) is Flatten:  # a row is an image already, in the order in which this layer reads it
        layers, views = layers[1:], views[1:]
    between = {type(layer) for layer in layers[1::2]}
    dense = all(type(layer) is Dense for layer in layers[::2]) and len(layers) % 2 == 1
    if not dense or len(between) > 1 or not between <= ACTIVATIONS.keys():
        raise TypeError(
            "scikit-learn's nets have dense layers with one kind of activation between them, ReLU or tanh, and "
            f"this net is {network.sequential!r}: keep it with save() or pickle, where skdp is installed"
        )
    weights = [np.array(view["weight"], dtype=np.float64) for view in views[::2]]
    biases = [np.array(view["bias"], dtype=np.float64) for view in views[::2]]
    return (weights, biases), ACTIVATIONS[between.pop()] if between else "identity"
