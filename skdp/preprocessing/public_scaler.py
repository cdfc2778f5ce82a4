"""Scaling by known constants: nothing is learnt."""

from copy import copy

import numpy as np
from sklearn.base import BaseEstimator

from skdp._docs import document
from skdp.base.declare import Declared, check_parameters, fitted, parameter
from skdp.base.each_block import fit_by_block
from skdp.base.kinds import described
from skdp.base.user_tables import refuse_weights, validate_table
from skdp.fitting.columns import check_bounds, column_numbers, per_column
from skdp.preprocessing.affine import AffineTransformer, Numbers, refuse_centering, refuse_device

MIN_SCALE, MAX_SCALE = (
    1e-150,
    1e150,
)  # of scales and centres, so that no finite cell becomes infinite by rounding


def _check_center(name: str, given: object) -> None:
    if given is not None and not (np.abs(column_numbers(name, given)) <= MAX_SCALE).all():
        raise ValueError(f"{name} must be finite and at most {MAX_SCALE:g} in magnitude")


def _check_scale(name: str, given: object) -> None:
    if given is None:
        return
    scale = column_numbers(name, given)
    if not ((scale >= MIN_SCALE) & (scale <= MAX_SCALE)).all():
        raise ValueError(f"{name} must be > 0, between {MIN_SCALE:g} and {MAX_SCALE:g}")


@document()
class PublicScaler(AffineTransformer, Declared, BaseEstimator):
    """Scale columns by public constants: ``(x - center) / scale``.

    The scaler learns nothing from the records, costs no budget and may stand before a private estimator in a
    ``Pipeline``. Choose the constants from public knowledge (units, ranges, code books), never by looking at the
    records.

    See Also
    --------
    DPStandardScaler : Releases means and scales, for a part of the budget.
    PublicBinsEncoder : Public bins, also for text and missing values.

    Notes
    -----
    **Privacy.** `transform` maps each row by itself, and the map follows from the parameters: one record decides
    one scaled row and nothing else, and no budget is spent. `fit` looks at the records only to refuse what
    `transform` would refuse.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import PublicScaler
    >>> X = np.array([[18.0, 0.0], [90.0, 20.0], [54.0, 5.0]])  # age, years of school
    >>> PublicScaler(bounds=([18, 0], [90, 20])).fit_transform(X).tolist()
    [[-1.0, -1.0], [1.0, 1.0], [0.0, -0.5]]
    """

    center: object = parameter(
        described("float or array-like of shape (n_features,)", _check_center),
        "Subtracted from each column. None is 0. CSR matrices are scaled and never centred.",
        default=None,
    )
    scale: object = parameter(
        described("float or array-like of shape (n_features,)", _check_scale),
        "What each column is divided by, > 0. None is 1.",
        default=None,
    )
    bounds: object = parameter(
        described("tuple of (low, high)", lambda name, given: check_bounds(given, name=name)),
        """In place of ``center`` and ``scale``: numbers, or one for each column, that become -1 and 1. Values
        beyond them are not clipped.""",
        default=None,
    )
    center_: np.ndarray = fitted("ndarray of shape (n_features_in_,)", "The constants given, one for each column.")
    scale_: np.ndarray = fitted("ndarray of shape (n_features_in_,)", "The constants given, one for each column.")
    n_features_in_: int = fitted()
    feature_names_in_: np.ndarray = fitted()

    @fit_by_block
    def fit(self, X: object, y: object = None, **more: object) -> "PublicScaler":
        """Check the parameters against the columns.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The records.
        y : None
            Ignored.
        **more : dict
            ``sample_weight=None`` or nothing.

        Returns
        -------
        self : PublicScaler
            The fitted scaler.

        Raises
        ------
        TypeError
            If a parameter is not a number or a sequence of numbers.
        ValueError
            If a number is out of its range, if there is not one for each column, or if X is sparse and would
            have to be centred.
        """
        refuse_weights(more)
        check_parameters(self)
        if self.bounds is not None and not (self.center is None and self.scale is None):
            raise ValueError("give bounds, or center and scale, but not both")
        refuse_device(X)
        scratch = copy(self)
        table = validate_table(scratch, X)
        scratch.center_, scratch.scale_ = scratch._constants(table.shape[1])
        if hasattr(table, "indptr") and np.any(scratch.center_):
            refuse_centering()
        # Only now, so that a refused fit leaves the scaler as it was.
        self.__dict__ = scratch.__dict__
        return self

    learns_from_data = False  # `skdp._compat` asks what stands before a private fit

    def _constants(self, n_features: int) -> tuple[np.ndarray, np.ndarray]:
        ends = per_column("bounds", self.bounds, n_features)
        if ends is not None:
            low, high = ends
            return 0.5 * low + 0.5 * high, 0.5 * high - 0.5 * low
        made = []
        for name, given, default in (("center", self.center, 0.0), ("scale", self.scale, 1.0)):
            values = column_numbers(name, default if given is None else given)
            if values.shape not in ((), (n_features,)):
                raise ValueError(f"{name} has {values.size} numbers, but X has {n_features} columns")
            made.append(np.array(np.broadcast_to(values, (n_features,))))
        return made[0], made[1]

    def _numbers(self) -> Numbers:
        return self.center_, self.scale_, None
