"""Checks of public parameters, so that a refusal comes before anything is spent."""

from collections.abc import Collection, Mapping
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import ArrayLike

from skdp.base.cells import as_cells, label_codes
from skdp.base.user_tables import validate_table
from skdp.fitting.noisy_mean import GradientEstimator, estimator_of
from skdp.fitting.targets import numeric_targets, unfitted_copy
from skdp.fitting.task import check_clip, given
from skdp.kernels.protocols import Matrix
from skdp.nn.layers.embedding import Embedding
from skdp.nn.network import Sequential
from skdp.privacy import LEAST_CLIP

if TYPE_CHECKING:
    from skdp.nn.net_fit import NetFit

FORM = "must be None or a pair (X, y) of public data"


def check_clipping(model: "NetFit") -> None:
    """Raise unless the clip norm can be held, and the units can be clipped in the way that is asked for."""
    check_clip("clip_norm", model.clip_norm, model.epsilon)
    norm = given(model.clip_norm)
    if norm is not None and norm < LEAST_CLIP:
        raise ValueError(f"clip_norm must be at least 2**-29, got {model.clip_norm!r}")
    if not isinstance(model.clipping, str):
        model.clipping.check(model)
    estimator = estimator_of(model.gradient_estimator)
    if model.sampling == "partition":
        if not estimator.partitions:
            raise ValueError(
                f"gradient_estimator={type(estimator).__name__}() is proven for Poisson batches: use "
                "sampling='poisson'"
            )
        if model.n_public is not None or model.adjacency == "add-remove":
            raise ValueError(
                "sampling='partition' needs a public number of records: leave out n_public and "
                "adjacency='add-remove', or use sampling='poisson'"
            )
    estimator.check(model)


def check_table(estimator: GradientEstimator, net: Sequential) -> None:
    """Raise unless the net has the table that the estimator needs."""
    if not estimator.needs_table:
        return
    if not isinstance(net.layers[0], Embedding) or 0 in net.frozen:
        raise ValueError(
            f"gradient_estimator={type(estimator).__name__}() needs a net that begins with an Embedding which is "
            "not frozen"
        )


def check_validation(name: str, validation: object) -> None:
    """Raise TypeError unless the validation data are None or two things."""
    if validation is None:
        return
    if not isinstance(validation, (tuple, list)):
        raise TypeError(
            f"{name} {FORM}, got {type(validation).__name__}; no part of the private records is held out"
        )
    if len(validation) != 2:
        raise ValueError(f"{name} {FORM}, got {len(validation)} parts")


def public_data(model: "NetFit", seen: Mapping[str, object]) -> tuple[Matrix, np.ndarray] | None:
    """Check the validation data against what a fit has seen of its records.

    Parameters
    ----------
    seen : mapping
        Attributes such as ``n_features_in_``, and ``classes_`` of a classification.

    Returns
    -------
    tuple of (table, targets), or None
        Targets are numbers, or positions in ``classes_``.
    """
    if model.validation is None:
        return None
    scratch, (X, y) = unfitted_copy(model), model.validation  # the checks of the table may mark the copy
    try:
        X = cast("ArrayLike", model._table(X, seen))
        if "classes_" not in seen:
            found, targets = numeric_targets(scratch, X, y)
        else:
            classes = np.asarray(seen["classes_"])
            codes = label_codes(as_cells(cast("Collection[object]", y)), classes)  # NaN where a label is missing
            if not np.all(codes >= 0):
                raise ValueError(f"every label must be one of the classes {classes.tolist()}")
            found, targets = validate_table(scratch, X, codes)
    except (TypeError, ValueError) as error:
        raise type(error)(f"validation does not fit: {error}") from None
    if found.shape[1] != seen["n_features_in_"]:
        raise ValueError(
            f"validation does not fit: its X has {found.shape[1]} features, but the records have "
            f"{seen['n_features_in_']}"
        )
    return found, np.asarray(targets)
