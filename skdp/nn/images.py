"""Estimators whose records may be images: X of shape (n, height, width) or (n, height, width, channels)."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp._compat import warn_user
from skdp.base.declare import fitted, parameter
from skdp.base.kinds import described
from skdp.exceptions import UtilityWarning
from skdp.fitting.targets import Problem
from skdp.nn.frame import NetFit
from skdp.nn.inputs import as_rows, check_image_shape, image_of, own_shape
from skdp.privacy import PublicShape

__all__ = ["ImageModel"]

CHANNELS_FIRST = (1, 3)  # channels that other libraries write before height and width
SMALLEST_SIDE = 8  # from which so many columns are rather an image than a table


def warn_of_square(image: tuple[int, int, int]) -> None:
    """Warn where one row of pixels may be an image whose shape was not given."""
    height, width, channels = image
    side = math.isqrt(width)
    if height == channels == 1 and side**2 == width and side >= SMALLEST_SIDE:
        warn_user(
            f"X has {width} columns, which are read as one row of pixels; if a row holds an image of {side} by "
            f"{side} pixels, give image_shape=({side}, {side})",
            UtilityWarning,
        )


class ImageModel(NetFit):
    """How images become rows; a mixin before the kind of net."""

    image_shape: Sequence[int] | None = parameter(
        described("tuple of int", check_image_shape),
        """(height, width) or (height, width, channels) of the image in each row of X, for a net of images. None is
        the shape of the images, if X holds images, and else a row of numbers.""",
        default=None,
    )
    image_shape_: tuple[int, int, int] | None = fitted()

    def _row_image(self, n_features: int) -> tuple[int, int, int] | None:
        """The image in a row of a table; None where rows are no images."""
        return None if self.image_shape is None else image_of(self.image_shape, n_features)

    def read(self, X: Any, y: Any = None, groups: Any = None, **weights: Any) -> Problem:
        """Check images, or a table whose rows hold them, and the targets."""
        own = own_shape(X)
        problem: Problem = super().read(as_rows(X, own), y, groups, **weights)  # type: ignore[safe-super]
        image = self._row_image(problem.records.n_features) if own is None else own
        if own is not None and self.image_shape is not None:
            given = image_of(self.image_shape, problem.records.n_features)
            if given != own:
                raise ValueError(f"X holds images of shape {own}, but image_shape={tuple(self.image_shape)}")
        if image is not None:
            self._warn_of(image, getattr(X, "dtype", None))
            if own is None and self.image_shape is None:
                warn_of_square(image)
        return replace(problem, fitted={**problem.fitted, "image_shape_": image})

    def _imagined(self, shape: PublicShape) -> Problem:
        """A table whose rows hold images: ``n_features`` counts the pixels, times the channels."""
        problem: Problem = super()._imagined(shape)
        image = self._row_image(shape.n_features)
        return replace(problem, fitted={**problem.fitted, "image_shape_": image})

    def _warn_of(self, image: tuple[int, int, int], dtype: Any) -> None:
        """Warn of what the public shape and type of images show."""
        if image[0] in CHANNELS_FIRST and image[0] < min(image[1:]):
            warn_user(
                f"images of shape {image} are read as {image[0]} x {image[1]} pixels of {image[2]} channels; if "
                "the first number counts channels, move them to the end: X.transpose(0, 2, 3, 1)",
                UtilityWarning,
            )
        whole = isinstance(dtype, np.dtype) and dtype.kind in "iu"
        if dtype == np.uint8 and self.input_range is not None and np.max(self.input_range[1]) <= 1:
            warn_user(
                f"X holds whole numbers ({dtype}), but input_range ends at {np.max(self.input_range[1]):g}, to "
                "which larger ones are clipped; the range of pixels of 8 bits is (0, 255)",
                UtilityWarning,
            )
        if self.input_range is None and whole:
            warn_user(
                f"X holds whole numbers ({dtype}), which the net takes as they are; declare their public range, "
                "for pixels of 8 bits input_range=(0, 255)",
                UtilityWarning,
            )

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        found: NDArray[np.float64] = super()._outputs(  # type: ignore[misc]
            as_rows(X, self.image_shape_)
        )
        return found
