"""Estimators whose records may be images: X of shape (n, height, width) or (n, height, width, channels)."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import cast

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from skdp.base.declare import fitted, parameter
from skdp.base.kinds import described
from skdp.fitting.minibatch_warnings import ImageFacts
from skdp.fitting.targets import Problem
from skdp.nn.inputs import as_rows, check_image_shape, image_of, own_shape
from skdp.nn.net_fit import NetFit
from skdp.privacy import PublicShape


@dataclass(frozen=True)
class ImageProblem(Problem):
    """Records that may be images, and their public facts before the fit."""

    facts: ImageFacts | None = field(default=None, kw_only=True)


class ImageModel(NetFit):
    """How images become rows; a mixin before the kind of net."""

    image_shape: Sequence[int] | None = parameter(
        described("tuple of int", check_image_shape),
        """(height, width) or (height, width, channels) of the image in each row of X, for a net of images. None is
        the shape of the images, if X holds images, and else a row of numbers.""",
        default=None,
    )
    image_shape_: tuple[int, int, int] | None = fitted(
        "tuple of int or None", "(height, width, channels) of an image; None where a record is a row of numbers."
    )

    def _row_image(self, n_features: int) -> tuple[int, int, int] | None:
        """The image in a row of a table; None where rows are no images."""
        return None if self.image_shape is None else image_of(self.image_shape, n_features)

    def read(self, X: object, y: object = None, groups: object = None, **weights: object) -> Problem:
        """Check images, or a table whose rows hold them, and the targets."""
        own = own_shape(X)
        problem: Problem = super().read(as_rows(X, own), y, groups, **weights)  # type: ignore[safe-super]
        image = self._row_image(problem.records.n_features) if own is None else own
        if own is not None and self.image_shape is not None:
            given = image_of(self.image_shape, problem.records.n_features)
            if given != own:
                raise ValueError(f"X holds images of shape {own}, but image_shape={tuple(self.image_shape)}")
        return self._of_images(problem, image, own is not None, getattr(X, "dtype", None))

    def _imagined(self, shape: PublicShape) -> Problem:
        """A table whose rows hold images: ``n_features`` counts the pixels, times the channels."""
        problem = super()._imagined(shape)
        image = self._row_image(shape.n_features)
        return self._of_images(problem, image, False, None)

    def _of_images(
        self, problem: Problem, image: tuple[int, int, int] | None, given: bool, dtype: object
    ) -> ImageProblem:
        """The problem of images of a shape, which X may have ``given``."""
        facts = None
        if image is not None:
            high = None if self.input_range is None else float(np.max(self.input_range[1]))
            facts = ImageFacts(image, given or self.image_shape is not None, dtype, high)
        fitted = {**problem.fitted, "image_shape_": image}
        return ImageProblem(**{**vars(problem), "fitted": fitted}, facts=facts)

    def _image_facts(self, problem: Problem) -> ImageFacts | None:
        return cast("ImageProblem", problem).facts

    def _outputs(self, X: object) -> NDArray[np.float64]:
        check_is_fitted(self)
        return super()._outputs(as_rows(X, self.image_shape_))
