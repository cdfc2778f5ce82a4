"""Attributes of a fitted net that predictions need, in the file of its parameters."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import TYPE_CHECKING

import numpy as np
from sklearn.utils.validation import check_is_fitted

from skdp.nn.inputs import Inputs
from skdp.nn.layout import MORE, npz_file

if TYPE_CHECKING:
    from skdp.nn.net_fit import NetFit

CALIBRATION = "calibration_"  # this attribute exists only if the fit released a calibration
INPUTS = ("center", "scale", "bounds", "shape")
# Attributes that a model may have, and the function that makes each from an array.
KEPT: dict[str, Callable[[np.ndarray], object]] = {
    "classes_": np.asarray,
    "target_center_": float,
    "target_scale_": float,
    "line_": lambda values: tuple(values.tolist()),
    CALIBRATION: np.asarray,
}


def kept_arrays(model: "NetFit") -> dict[str, np.ndarray]:
    """Arrays of a fitted model, by their names in the file; None is left out."""
    found = {f"{MORE}inputs_.{part}": np.asarray(getattr(model.inputs_, part)) for part in INPUTS}
    for name in KEPT:
        value = getattr(model, name, None)
        if value is not None:
            array = np.asarray(value)
            # An array of Python objects would be pickled.
            found[MORE + name] = np.asarray(array.tolist()) if array.dtype == object else array
    return found


def _read_kept(model: "NetFit", path: str | PathLike[str]) -> dict[str, object]:
    """Read the attributes that `kept_arrays` wrote, all that this fitted model has; others are refused."""
    with np.load(npz_file(path), allow_pickle=False) as file:
        stored = {name: file[name] for name in file.files if name.startswith(MORE)}
    attributes: dict[str, object] = {"inputs_": _inputs(model, stored)}
    for name, made in KEPT.items():
        array = stored.get(MORE + name)
        if (array is None) != (getattr(model, name, None) is None) and name != CALIBRATION:
            raise ValueError(f"the file is of another kind of model: only one of them has {name}")
        if array is not None:
            attributes[name] = made(array)
        elif hasattr(model, name):
            attributes[name] = None
    return attributes


def _inputs(model: "NetFit", stored: Mapping[str, np.ndarray]) -> Inputs:
    try:
        center, scale, bounds, shape = (stored[f"{MORE}inputs_.{part}"] for part in INPUTS)
    except KeyError:
        raise ValueError(
            "the file holds parameters alone, without the scale of inputs for which they were trained: give it as "
            "parameters_init= to a fit"
        ) from None
    low, high = bounds.tolist()
    inputs = Inputs(center, scale, (low, high), tuple(shape.tolist()))
    if inputs.shape != model.inputs_.shape:
        raise ValueError(f"the file is of a net for inputs of shape {inputs.shape}, not {model.inputs_.shape}")
    return inputs


def load_kept(model: "NetFit", path: str | PathLike[str]) -> None:
    """Give a fitted model the parameters and attributes of a file; one that does not fit changes nothing."""
    check_is_fitted(
        model,
        msg="load() replaces the parameters of a model that was fitted, and this %(name)s was not. Keep whole "
        "models with pickle or skops; to train on from a file, give the constructor parameters_init=path",
    )
    parameters, kept = model.network_.load(path), _read_kept(model, path)
    model.parameters_ = parameters
    for name, value in kept.items():
        setattr(model, name, value)
