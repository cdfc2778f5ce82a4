"""From rows of a table to inputs of a net: shifted, scaled, clipped, shaped. Each row is treated by itself."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import cast

import numpy as np
from numpy.typing import NDArray

from skdp.base.column_search import released_window
from skdp.fitting.columns import check_bounds
from skdp.kernels.protocols import Matrix
from skdp.nn.arrays import Array, array_module
from skdp.privacy import PrivacySession, PrivateRecords

__all__ = ["Inputs", "as_rows", "check_image_shape", "image_of", "own_shape", "public_inputs", "released_inputs"]

WINDOW_TAIL = 0.012  # part of a normal column outside of its window, as in `DPStandardScaler`


@dataclass(frozen=True, eq=False)
class Inputs:
    """How a row becomes an input; all numbers are public or released.

    Attributes
    ----------
    center, scale : ndarray of shape () or (n_features,)
        A value x becomes ``(x - center) / scale``.
    bounds : tuple of (float, float)
        To which it is then clipped. With infinite bounds the values stay as they are.
    shape : tuple of int
        Of one input.
    """

    center: NDArray[np.float64]
    scale: NDArray[np.float64]
    bounds: tuple[float, float]
    shape: tuple[int, ...]

    def of(self, X: Matrix) -> Array:
        """Inputs of float32 and shape (n_rows, *shape) of an array (also of a device) or a CSR matrix."""
        X = X.toarray() if hasattr(X, "toarray") else X
        xp = array_module(X)
        if self.bounds == (-math.inf, math.inf):  # values stay as they are
            with np.errstate(all="ignore"):
                # A copy, since X may be the caller's memory, and a layer of a user may break its duties.
                return xp.array(X, dtype=np.float32, order="C").reshape(len(X), *self.shape)
        center, scale = xp.asarray(self.center), xp.asarray(self.scale)
        with np.errstate(all="ignore"):  # a warning would tell of a value
            x = X - center
            x /= scale
            xp.clip(x, *self.bounds, out=x)
            return xp.ascontiguousarray(x, dtype=np.float32).reshape(len(X), *self.shape)


def public_inputs(input_range: object, shape: tuple[int, ...], n_features: int) -> Inputs:
    """Inputs by a public range of all values, columns or channels; as they are where it is None.

    Images come into [-1, 1], so that their values lie about 0. Rows of a table come into [0, 1], so that zeros
    stay zeros where a range begins with 0.
    """
    ends = check_bounds(input_range, name="input_range")
    if ends is None:
        return Inputs(np.zeros(()), np.ones(()), (-math.inf, math.inf), shape)
    low, high = (_each_column(end, shape, n_features) for end in ends)
    if len(shape) == 3:
        # Held out, "dp-cnn-s", one seed, against [0, 1]: Fashion-MNIST .824 and .817 at epsilon 1; MNIST .962 and
        # .965 at epsilon 1, .979 and .978 at 3. Digits at epsilon 1, 3, 8: .65, .89, .92 and .68, .87, .91.
        return Inputs(0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low, (-1.0, 1.0), shape)
    return Inputs(low, high - low, (0.0, 1.0), shape)


def _each_column(end: NDArray[np.float64], shape: tuple[int, ...], n_features: int) -> NDArray[np.float64]:
    """A public number for each column, of one number, one for each column, or one for each channel."""
    if end.shape in ((), (n_features,)):
        return np.array(np.broadcast_to(end, (n_features,)))
    if len(shape) == 3 and end.shape == shape[2:]:
        return np.tile(end, shape[0] * shape[1])  # channels are last, so they change fastest
    images = f", and images of {shape[2]} channels" if len(shape) == 3 else ""
    raise ValueError(f"input_range has {end.size} numbers, but X has {n_features} columns{images}")


def released_inputs(session: PrivacySession, records: PrivateRecords, share: float) -> Inputs:
    """Inputs in [-1, 1]: a window is released for each column, which is not centred for CSR rows."""
    window = released_window(session, records, share, tail=WINDOW_TAIL, centered=records.shape.container != "csr")
    return Inputs(window.center, window.half_width, (-1.0, 1.0), (records.n_features,))


def check_image_shape(name: str, image_shape: object) -> None:
    """Raise unless the shape is None, (height, width) or (height, width, channels)."""
    if image_shape is None:
        return
    wrong = f"{name} must be None, (height, width) or (height, width, channels), whole numbers >= 1"
    if isinstance(image_shape, (str, bytes)) or not isinstance(image_shape, Iterable):
        raise TypeError(f"{wrong}; got {type(image_shape).__name__}")
    sizes = list(image_shape)
    if any(isinstance(s, bool) or not isinstance(s, Integral) for s in sizes):
        raise TypeError(wrong)
    if len(sizes) not in (2, 3) or min(sizes) < 1:
        raise ValueError(f"{wrong}; got {tuple(sizes)}")


def image_of(image_shape: Sequence[int] | None, n_features: int) -> tuple[int, int, int]:
    """(height, width, channels) of rows of ``n_features``; None is one row of pixels, (1, n_features, 1)."""
    if image_shape is None:
        return 1, n_features, 1
    height, width, channels = (*(int(s) for s in image_shape), 1)[:3]
    if height * width * channels != n_features:
        raise ValueError(
            f"image_shape={tuple(image_shape)} has {height * width * channels} pixels, but X has {n_features} "
            "features; a row of X holds an image in the order height, width, channels. The outputs of "
            "ScatteringTransform have the shape output_shape_"
        )
    return height, width, channels


def own_shape(X: object) -> tuple[int, int, int] | None:
    """Height, width and channels of images that are given as such; None for a table."""
    try:
        shape = np.shape(X) if isinstance(X, (list, tuple)) else getattr(X, "shape", ())
    except ValueError:  # rows of different lengths: the checks of tables say so
        return None
    if len(shape) not in (3, 4):
        return None
    height, width, channels = (*(int(s) for s in shape[1:]), 1)[:3]
    return height, width, channels


def as_rows(X: object, image: object) -> object:
    """Return a row for each image of this shape; a table stays as it is."""
    own = own_shape(X)
    if own is None:
        return X
    if own != image:
        seen = "a table" if image is None else f"images of shape {image}"
        raise ValueError(f"X holds images of shape {own}, but fit saw {seen}")
    images = np.asarray(X) if isinstance(X, (list, tuple)) else cast("Array", X)
    return images.reshape(len(images), math.prod(own))
