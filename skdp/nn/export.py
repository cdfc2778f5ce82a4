"""Nets of dense layers as scikit-learn's own."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp._export import clipped_regressor, clipper, name_features, shifted_and_divided
from skdp.nn.inputs import Inputs
from skdp.nn.layers.dense import Dense
from skdp.nn.layers.flatten import Flatten
from skdp.nn.layers.relu import ReLU
from skdp.nn.layers.tanh import Tanh
from skdp.nn.network import Network

__all__ = ["ExportableNet"]

ACTIVATIONS = {ReLU: "relu", Tanh: "tanh"}
Layers = tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]  # weights and biases


class ExportableNet:
    """What every net offers after a fit."""

    network_: Network
    parameters_: NDArray[np.float32]
    inputs_: Inputs

    def to_sklearn(self) -> Any:
        """Return the net as a fitted estimator of scikit-learn, with the same predictions.

        It computes in float64, so probabilities and predictions are equal up to the rounding of float32. It holds
        released and public numbers only, no data and nothing of skdp: pickle it and use it where skdp is not
        installed. Do not fit it again on private records; that fit would not be private.

        Returns
        -------
        Pipeline, MLPClassifier or TransformedTargetRegressor
            An ``MLPClassifier`` or ``MLPRegressor``. Where inputs are scaled, it is a ``Pipeline`` that scales and
            clips them first, and takes dense tables only. Predicted numbers are clipped to the range of the
            targets by a ``TransformedTargetRegressor`` around it.

        Raises
        ------
        TypeError
            If the net has other layers than dense ones with one kind of activation between them, ReLU or tanh.
        """
        check_is_fitted(self)
        layers, activation = _dense(self.network_, self.parameters_)
        make = self._as_classifier if is_classifier(self) else self._as_regressor
        return make(layers, activation)

    def _as_classifier(self, layers: Layers, activation: str) -> Any:
        from sklearn.neural_network import MLPClassifier

        weights, biases = layers
        if biases[-1].size == 2:  # scikit-learn has one score for two classes
            weights[-1], biases[-1] = np.diff(weights[-1], axis=1), np.diff(biases[-1])
        calibration = self.calibration_  # type: ignore[attr-defined]
        if calibration is not None:
            weights[-1] = weights[-1] @ calibration[:-1]
            biases[-1] = biases[-1] @ calibration[:-1] + calibration[-1]
        classes = np.array(self.classes_)  # type: ignore[attr-defined]
        made = MLPClassifier(**_settings(layers, activation))
        made.partial_fit(np.zeros((len(classes), len(weights[0]))), classes, classes=classes)
        return self._after_inputs(made, layers)

    def _as_regressor(self, layers: Layers, activation: str) -> Any:
        """``center + reach * clip(slope * clip(output, -1, 1) + shift, -1, 1)`` is a line that is clipped once."""
        from sklearn.neural_network import MLPRegressor

        center, reach = self.target_center_, self.target_reach_  # type: ignore[attr-defined]
        slope, shift = self.line_  # type: ignore[attr-defined]
        weights, biases = layers
        weights[-1] = weights[-1] * (reach * slope)
        biases[-1] = biases[-1] * (reach * slope) + (center + reach * shift)
        made = MLPRegressor(**_settings(layers, activation))
        made.partial_fit(np.zeros((1, len(weights[0]))), np.zeros(1))
        bounds = self.prediction_bounds_  # type: ignore[attr-defined]
        return clipped_regressor(self._after_inputs(made, layers), *bounds)

    def _after_inputs(self, made: Any, layers: Layers) -> Any:
        """The net with these numbers, behind what turns a row into its input."""
        from sklearn.pipeline import make_pipeline

        made.coefs_, made.intercepts_ = layers
        if self.inputs_.bounds == (-math.inf, math.inf):
            return name_features(made, self)
        n = len(layers[0][0])
        center, scale = (
            np.broadcast_to(part, (n,)) for part in (self.inputs_.center, self.inputs_.scale)
        )
        scaler = name_features(shifted_and_divided(center, scale), self)
        scaler.set_output(transform="default")
        return make_pipeline(scaler, clipper(*self.inputs_.bounds, n), made)


def _settings(layers: Layers, activation: str) -> dict[str, Any]:
    sizes = tuple(bias.size for bias in layers[1][:-1])
    return {"hidden_layer_sizes": sizes, "activation": activation, "random_state": 0}


def _dense(network: Network, parameters: NDArray[np.float32]) -> tuple[Layers, str]:
    """Weights and biases of the layers, and the activation between them; TypeError for any other net."""
    layers, views = list(network.sequential.layers), network.views(parameters)
    if (
        type(layers[0]) is Flatten
    ):  # a row is an image already, in the order in which this layer reads it
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
