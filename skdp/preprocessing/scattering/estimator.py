"""ScatteringTransform: public features of images, for private models that are linear or small."""

from collections.abc import Callable
from copy import copy
from math import prod
from numbers import Integral
from typing import ClassVar, Literal

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from skdp._docs import document
from skdp.base import check_number
from skdp.base.blocks import tables_by_block
from skdp.base.cells import check_collected
from skdp.base.declare import Declared, check_parameters, fitted, parameter
from skdp.base.each_block import fit_by_block
from skdp.base.kinds import choice, described, integer
from skdp.base.user_tables import refuse_weights, validate_table
from skdp.kernels import is_cupy

MOST_SCALES, MOST_ANGLES = 10, 64
MAX_PIXEL = 1e15  # largest pixel, so that no square of a sum over an image overflows float32
LEAST_GROUP = 3  # paths of a group
# Added to a group's variance, as a share of the mean square of the record: groups of rounding errors stay small.
FLOOR = 1e-3


def _check_image_shape(name: str, value: object) -> None:
    if value is None:
        return
    wanted = f"{name} must be (height, width) or (height, width, channels)"
    if not isinstance(value, (tuple, list)):
        raise TypeError(f"{wanted}, got {type(value).__name__}")
    if len(value) not in (2, 3):
        raise ValueError(f"{wanted}, got {value!r}")
    for side in value:
        check_number(f"each number of {name}", side, Integral, low=1)


@document()
@tables_by_block
class ScatteringTransform(TransformerMixin, Declared, BaseEstimator):
    """Scattering coefficients of images: moduli of Morlet wavelets, averaged over 2**J pixels.

    The wavelets are fixed, as in [Mallat2012]_: the transform learns nothing, costs no privacy budget, and may
    stand before a private estimator in a ``Pipeline``. Private linear models on these features are level with
    private convolutional nets on small images ([Tramer2021]_).

    See Also
    --------
    DPSGDClassifier : Its defaults serve the features of this transform.
    PublicScaler : Scales columns by public constants.

    Notes
    -----
    **Privacy.** `transform` maps each row by itself, to the last bit, and the map follows from the parameters and
    the shape of the images: one record decides one row of features and nothing else, and no budget is spent. `fit`
    looks at the records only to refuse what `transform` would refuse.

    The coefficients equal the ones of kymatio 0.3 ([Andreux2020]_), but for its 3.1415 in place of pi: a factor of
    3.1415 / pi for each filter that a coefficient has passed. Numbers are float32.

    References
    ----------
    .. [Mallat2012]
    .. [Andreux2020]
    .. [Tramer2021]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import ScatteringTransform
    >>> images = np.random.default_rng(0).random((10, 28, 28))
    >>> transform = ScatteringTransform().fit(images)
    >>> transform.output_shape_
    (7, 7, 81)
    >>> features = transform.transform(images)
    >>> features.shape, features.dtype
    ((10, 3969), dtype('float32'))
    >>> transform.get_feature_names_out()[[0, 1, 80]].tolist()
    ['r0c0 k0 mean', 'r0c0 k0 j0a0', 'r0c0 k0 j0a7 j1a7']
    """

    J: int = parameter(
        integer(low=1, high=MOST_SCALES),
        "Number of scales, 1 to 10. A feature is an average over about 2**J pixels in each direction.",
        default=2,
    )
    L: int = parameter(integer(low=1, high=MOST_ANGLES), "Number of angles of the wavelets, 1 to 64.", default=8)
    image_shape: tuple[int, ...] | None = parameter(
        described("tuple of int", _check_image_shape),
        """(height, width) or (height, width, channels) of the images that the rows of a table hold, in C order.
        None takes the shape of images given as arrays of three or four dimensions. For a table, None takes each
        row as one line of pixels: (1, n_features).""",
        default=None,
    )
    normalize: Literal["group", "l2"] | None = parameter(
        choice("group", "l2", none=True),
        """"group" divides the paths of a record into ``n_groups`` groups. Each group is shifted to mean 0 and
        scaled to variance 1. All is then scaled such that the row has l2 norm at most 1. "l2" scales each row
        to l2 norm 1. None returns the coefficients. Each record is normalised by itself, which costs nothing.""",
        default="group",
    )
    n_groups: int = parameter(
        integer(low=1),
        """Number of groups of paths that follow each other, of sizes that differ by at most one. A group has at
        least three paths, where there are as many: alone, a path would lose how strong it is among the others.
        27 groups are published for J=2, L=8.""",
        default=27,
    )
    image_shape_: tuple[int, ...] = fitted("tuple of int", "(height, width, channels).")
    output_shape_: tuple[int, ...] = fitted(
        "tuple of int",
        """(height, width, channels) of the features of an image. The features are in this C order. The height
        is ``max(1, height // 2**J)``, and so is the width. An image channel has ``1 + J L + L**2 J (J - 1) / 2``
        of the channels, its paths, one after the other.""",
    )
    n_features_in_: int = fitted("int", "Number of columns of a table, or of numbers of an image.")
    feature_names_in_: np.ndarray = fitted()

    learns_from_data: ClassVar[bool] = False  # `skdp._compat` asks what stands before a private fit

    @fit_by_block
    def fit(self, X: object, y: object = None, **more: object) -> "ScatteringTransform":
        """Check the parameters against the shape of the images.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), (n_samples, height, width) or \
(n_samples, height, width, channels)
            The images.
        y : None
            Ignored.
        **more : dict
            ``sample_weight=None`` or nothing.

        Returns
        -------
        self : ScatteringTransform
            The fitted transform.

        Raises
        ------
        TypeError
            If a parameter is of a wrong type, or X is sparse or in the memory of a GPU.
        ValueError
            If a parameter is out of its range, or the images do not fit ``image_shape``.
        """
        refuse_weights(more)
        check_parameters(self)
        scratch = copy(self)
        check_collected(X=X)
        own = _own_shape(X)
        table = _table(scratch, X, reset=True)
        shape = scratch._shape(own, table.shape[1])
        height, width, channels = shape
        paths = 1 + self.J * self.L + self.L**2 * self.J * (self.J - 1) // 2
        out = (max(1, height >> self.J), max(1, width >> self.J), int(channels * paths))
        # Only now, so that a refused fit leaves the transform as it was.
        self.__dict__ = {**scratch.__dict__, "image_shape_": shape, "output_shape_": out}
        return self

    def transform(self, X: object) -> np.ndarray:
        """Compute the features, on all threads.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), (n_samples, height, width) or \
(n_samples, height, width, channels)
            Images of the shape seen in `fit`, with finite numbers of magnitude at most 1e15.

        Returns
        -------
        ndarray of float32 of shape (n_samples, prod(output_shape_))
            The features of an image, in the C order of ``output_shape_``.

        Raises
        ------
        TypeError
            If X is sparse or in the memory of a GPU.
        ValueError
            If the images have another shape, or a pixel is not finite or larger than 1e15.
        """
        from skdp.preprocessing.scattering.filters import filters_of
        from skdp.preprocessing.scattering.transform import scatter

        check_is_fitted(self)
        check_collected(X=X)
        own = _own_shape(X)
        if own is not None and own != self.image_shape_:
            raise ValueError(f"X holds images of shape {own}, but fit saw {self.image_shape_}")
        table = _table(self, X, reset=False)
        height, width, _ = self.image_shape_
        images = table.reshape(-1, *self.image_shape_)
        with np.errstate(all="ignore"):  # a warning would tell of a pixel
            features = scatter(images, filters_of(height, width, self.J, self.L), self._finish())
        return features.reshape(len(features), -1)

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Name the features: row and column of the sample, image channel, scales and angles of the wavelets.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Ignored, because a feature is made of many pixels.

        Returns
        -------
        ndarray of str objects of shape (prod(output_shape_),)
            For example ``"r3c5 k0 j0a2 j1a7"``.
        """
        check_is_fitted(self)
        wavelets = [[f"j{j}a{a}" for a in range(self.L)] for j in range(self.J)]
        first = [name for of_scale in wavelets for name in of_scale]
        second = [
            f"{name} {other}"
            for j, of_scale in enumerate(wavelets)
            for name in of_scale
            for larger in wavelets[j + 1 :]
            for other in larger
        ]
        rows, columns, _ = self.output_shape_
        names = [
            f"r{r}c{c} k{k} {path}"
            for r in range(rows)
            for c in range(columns)
            for k in range(self.image_shape_[2])
            for path in ("mean", *first, *second)
        ]
        return np.array(names, dtype=object)

    def _shape(self, own: tuple[int, ...] | None, n_features: int) -> tuple[int, int, int]:
        """Height, width and channels, from the parameter and from the images' own shape."""
        if self.image_shape is None:
            return own or (1, n_features, 1)  # type: ignore[return-value]
        height, width, *channels = (int(side) for side in self.image_shape)
        shape = (height, width, channels[0] if channels else 1)
        if own is not None and own != shape:
            raise ValueError(f"X holds images of shape {own}, but image_shape={self.image_shape!r}")
        if prod(shape) != n_features:
            raise ValueError(
                f"image_shape={self.image_shape!r} has {prod(shape)} numbers, but a row of X has {n_features}"
            )
        return shape

    def _finish(self) -> Callable[[np.ndarray], np.ndarray]:
        """Return the post-processing of the coefficients of some records."""
        from skdp.preprocessing.scattering.loops import group_normalize, unit_rows

        rows, columns, paths = self.output_shape_
        if self.normalize is None:
            return np.asarray
        n_groups = max(1, min(self.n_groups, paths // LEAST_GROUP))
        starts = np.arange(n_groups + 1, dtype=np.int64) * paths // n_groups

        def grouped(records: np.ndarray) -> np.ndarray:
            out = np.empty_like(records)
            shape = (len(records), rows * columns, paths)
            group_normalize(records.reshape(shape), starts, FLOOR, out.reshape(shape))
            return out

        def scaled(records: np.ndarray) -> np.ndarray:
            out = np.empty_like(records)
            unit_rows(records.reshape(len(records), -1), out.reshape(len(records), -1))
            return out

        return grouped if self.normalize == "group" else scaled

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = False
        tags.transformer_tags.preserves_dtype = ["float32"]
        return tags


def _own_shape(X: object) -> tuple[int, ...] | None:
    """Height, width and channels of images that are given as such; None for a table."""
    if is_cupy(X):
        raise TypeError("ScatteringTransform works in the host's memory: pass X as a NumPy array")
    shape = np.shape(X) if isinstance(X, (np.ndarray, list, tuple)) else getattr(X, "shape", ())
    if len(shape) == 3:
        return (*shape[1:], 1)
    return tuple(shape[1:]) if len(shape) == 4 else None


def _table(estimator: BaseEstimator, X: object, *, reset: bool) -> np.ndarray:
    """X validated, one row an image."""
    if _own_shape(X) is not None:
        X = np.asarray(X)
        X = X.reshape(len(X), -1)
    if isinstance(X, np.ndarray) and X.dtype in (np.uint8, np.int8, np.bool_):
        X = X.astype(np.float32)  # exact, and half the memory of float64
    table = validate_table(estimator, X, reset=reset)
    if hasattr(table, "indptr"):
        raise TypeError("ScatteringTransform needs dense images, and X is sparse: pass X.toarray()")
    if not (np.abs(table) <= MAX_PIXEL).all():
        raise ValueError(f"X holds pixels of magnitude above {MAX_PIXEL:g}: scale them by a public constant")
    return np.asarray(table)
