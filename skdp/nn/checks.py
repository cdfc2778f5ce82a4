"""Checks of public parameters, so that a refusal comes before anything is spent."""

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from skdp.base.cells import as_cells, label_codes
from skdp.base.tables import validate_table
from skdp.fitting.checks import check_clip
from skdp.fitting.clipped_mean import Clipping
from skdp.fitting.recursive import RecursiveMean, RecursiveMomentum
from skdp.fitting.selection import AdaFEST, SparseSelection
from skdp.fitting.sizes import CLIP_NORM
from skdp.fitting.sparsification import RandomSparsification
from skdp.fitting.targets import numeric_targets
from skdp.fitting.task import given
from skdp.nn.clipping import Microbatch, Projections
from skdp.nn.layers.embedding import Embedding
from skdp.nn.network import Sequential
from skdp.privacy import LEAST_CLIP, check_projected

__all__ = ["check_clipping", "check_gradient_estimator", "check_table", "check_validation", "public_data"]

FORM = "must be None or a pair (X, y) of public data"

# Ways to clip in which a record's whole gradient is there.
WHOLE = ("auto", "materialized", "one-by-one")


def check_clipping(model: Any) -> None:
    """Raise unless the clip norm can be held, and the units can be clipped in the way that is asked for."""
    check_clip("clip_norm", model.clip_norm, model.epsilon)
    norm = given(model.clip_norm)
    if norm is not None and norm < LEAST_CLIP:
        raise ValueError(f"clip_norm must be at least 2**-29, got {model.clip_norm!r}")
    way = model.clipping
    if model.sampling == "partition":
        _check_partition(model)
    if isinstance(way, Projections):
        check_projected(model.adjacency, int(way.n_projections), math.inf)
    if isinstance(way, Microbatch) and (model.unit != "record" or model.n_public is not None):
        raise ValueError(
            "clipping=Microbatch() needs unit='record' and a public number of records (no n_public=): a unit that "
            "comes or goes would move others to other microbatches; use clipping='auto'"
        )


def _check_partition(model: Any) -> None:
    if isinstance(model.clipping, Projections):
        raise ValueError("clipping=Projections() is proven for Poisson batches only: use sampling='poisson'")
    if not isinstance(model.gradient_estimator, (str, RandomSparsification)):
        raise ValueError(
            f"gradient_estimator={type(model.gradient_estimator).__name__}() is proven for Poisson batches: use "
            "sampling='poisson'"
        )
    if model.n_public is not None or model.adjacency == "add-remove":
        raise ValueError(
            "sampling='partition' needs a public number of records: leave out n_public and "
            "adjacency='add-remove', or use sampling='poisson'"
        )


def check_gradient_estimator(model: Any) -> None:
    """Raise unless the gradient estimator fits the other parameters of a net."""
    estimator, way = model.gradient_estimator, model.clipping
    norms = "projections" if isinstance(way, Projections) else way
    if isinstance(estimator, RandomSparsification) and norms in ("ghost", "projections"):
        raise ValueError(
            f"clipping={way!r} takes the norms of whole gradients, and RandomSparsification clips some of their "
            "entries: use clipping='auto', 'materialized', 'one-by-one' or Microbatch()"
        )
    if isinstance(estimator, (SparseSelection, AdaFEST)) and norms == "projections":
        raise ValueError(
            f"gradient_estimator={type(estimator).__name__}() has no proof with clipping={way!r}; use another "
            "clipping"
        )
    if isinstance(estimator, RecursiveMomentum):
        _check_recursive(estimator, model)


def _check_recursive(recursive: RecursiveMomentum, model: Any) -> None:
    if model.clipping not in WHOLE:
        raise ValueError(
            f"RecursiveMomentum needs each record's gradient: clipping must be one of {list(WHOLE)}, got "
            f"{model.clipping!r}"
        )
    clip_norm, clip_diff_norm = given(model.clip_norm), given(recursive.clip_diff_norm)
    if clip_diff_norm is not None and (clip_norm == math.inf) != (clip_diff_norm == math.inf):
        raise ValueError("clip_norm and the clip_diff_norm of RecursiveMomentum must both be finite, or both inf")
    norm = RecursiveMean(Clipping(CLIP_NORM if clip_norm is None else clip_norm), recursive).norm
    if norm < LEAST_CLIP:
        raise ValueError(
            f"what a record may add to a sum must be at least 2**-29; momentum and the clip norms give {norm:g}"
        )


def check_table(estimator: object, net: Sequential) -> None:
    """Raise unless the net has the table that DP-AdaFEST is for."""
    if not isinstance(estimator, AdaFEST):
        return
    if not isinstance(net.layers[0], Embedding) or 0 in net.frozen:
        raise ValueError(
            "gradient_estimator=AdaFEST() needs a net that begins with an Embedding which is not frozen"
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


def public_data(
    scratch: Any, validation: Any, seen: Mapping[str, Any], table: Callable[[Any, Any], Any]
) -> tuple[Any, np.ndarray] | None:
    """Check the validation data against what a fit has seen of its records.

    Parameters
    ----------
    scratch : estimator
        An unfitted copy, which the checks of the table may mark.
    validation : tuple of (X, y) or None
    seen : mapping
        Attributes such as ``n_features_in_``, and ``classes_`` of a classification.
    table : callable
        Of X and ``seen``: X as a table.

    Returns
    -------
    tuple of (table, targets), or None
        Targets are numbers, or places in ``classes_``.
    """
    if validation is None:
        return None
    X, y = validation
    try:
        X = table(X, seen)
        if "classes_" not in seen:
            found, targets = numeric_targets(scratch, X, y)
        else:
            codes = label_codes(as_cells(y), seen["classes_"])  # NaN where a label is missing
            if not np.all(codes >= 0):
                known = np.asarray(seen["classes_"]).tolist()
                raise ValueError(f"every label must be one of the classes {known}")
            found, targets = validate_table(scratch, X, codes)
    except (TypeError, ValueError) as error:
        raise type(error)(f"validation does not fit: {error}") from None
    if found.shape[1] != seen["n_features_in_"]:
        raise ValueError(
            f"validation does not fit: its X has {found.shape[1]} features, but the records have "
            f"{seen['n_features_in_']}"
        )
    return found, np.asarray(targets)
