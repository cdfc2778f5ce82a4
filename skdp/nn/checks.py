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
from skdp.nn.layers.embedding import Embedding
from skdp.nn.network import Sequential
from skdp.privacy import LEAST_CLIP, check_projected

__all__ = [
    "check_clipping",
    "check_recursive",
    "check_select",
    "check_table",
    "check_validation",
    "public_data",
]

FORM = "must be None or a pair (X, y) of public data"

# How a step releases its gradient, if not as DP-SGD.
WAYS = ("recursive", "sparsification", "select")
# Ways to clip in which a record's whole gradient is there.
WHOLE = ("auto", "materialized", "one-by-one")


def check_clipping(model: Any) -> None:
    """Raise unless the clip norm can be held, and the units can be clipped in the way that is asked for."""
    check_clip("clip_norm", model.clip_norm, model.epsilon)
    norm = given(model.clip_norm)
    if norm is not None and norm < LEAST_CLIP:
        raise ValueError(f"clip_norm must be at least 2**-29, got {model.clip_norm!r}")
    _check_one_way(model)
    _check_sparsification(model)
    _check_sampling(model)
    if model.clipping == "projections":
        check_projected(model.adjacency, int(model.n_projections), math.inf)
    if model.clipping == "microbatch" and (model.unit != "record" or model.n_public is not None):
        raise ValueError(
            "clipping='microbatch' needs unit='record' and a public number of records (no n_public=): a unit that "
            "comes or goes would move others to other microbatches; use clipping='auto'"
        )


def _check_one_way(model: Any) -> None:
    """Refuse two ways to release a gradient at once."""
    given_ways = [name for name in WAYS if getattr(model, name) is not None]
    if len(given_ways) > 1:
        raise ValueError(f"give one of {' and '.join(f'{name}=' for name in given_ways)}, not both")
    if model.sampling == "partition" and given_ways not in ([], ["sparsification"]):
        raise ValueError(f"{given_ways[0]}= is proven for Poisson batches: use sampling='poisson'")


def _check_sparsification(model: Any) -> None:
    if model.sparsification is None:
        return
    if not isinstance(model.sparsification, RandomSparsification):
        raise TypeError(
            "sparsification must be None or a skdp.nn.RandomSparsification, such as "
            f"RandomSparsification(rate=0.5), got {type(model.sparsification).__name__}"
        )
    if model.clipping in ("ghost", "projections"):
        raise ValueError(
            f"clipping={model.clipping!r} takes the norms of whole gradients, and sparsification clips some of "
            "their entries: use clipping='auto', 'materialized', 'microbatch' or 'one-by-one'"
        )


def _check_sampling(model: Any) -> None:
    if model.sampling != "partition":
        return
    if model.clipping == "projections":
        raise ValueError(
            "clipping='projections' is proven for Poisson batches only: use sampling='poisson'"
        )
    if model.n_public is not None or model.adjacency == "add-remove":
        raise ValueError(
            "sampling='partition' needs a public number of records: leave out n_public and "
            "adjacency='add-remove', or use sampling='poisson'"
        )


def check_select(model: Any) -> None:
    """Raise unless the choice fits the other parameters of a net."""
    select = model.select
    if select is None:
        return
    if not isinstance(select, (SparseSelection, AdaFEST)):
        raise TypeError(
            f"select must be None, a SparseSelection or an AdaFEST, got {type(select).__name__}"
        )
    if model.clipping == "projections":
        raise ValueError("select has no proof with clipping='projections'; use another clipping")


def check_table(select: Any, net: Sequential) -> None:
    """Raise unless the net has the table that DP-AdaFEST is for."""
    if not isinstance(select, AdaFEST):
        return
    if not isinstance(net.layers[0], Embedding) or 0 in net.frozen:
        raise ValueError(
            "select=AdaFEST() needs a net that begins with an Embedding which is not frozen"
        )


def check_recursive(model: Any) -> None:
    """Raise unless ``recursive`` is None, or fits the other parameters of an estimator."""
    recursive = model.recursive
    if recursive is None:
        return
    if not isinstance(recursive, RecursiveMomentum):
        raise TypeError(
            f"recursive must be None or a skdp.nn.RecursiveMomentum, got {type(recursive).__name__}"
        )
    if model.clipping not in WHOLE:
        raise ValueError(
            f"recursive needs each record's gradient: clipping must be one of {list(WHOLE)}, got "
            f"{model.clipping!r}"
        )
    clip_norm, clip_diff_norm = given(model.clip_norm), given(recursive.clip_diff_norm)
    if clip_diff_norm is not None and (clip_norm == math.inf) != (clip_diff_norm == math.inf):
        raise ValueError(
            "clip_norm and the clip_diff_norm of recursive must both be finite, or both inf"
        )
    norm = RecursiveMean(Clipping(CLIP_NORM if clip_norm is None else clip_norm), recursive).norm
    if norm < LEAST_CLIP:
        raise ValueError(
            f"what a record may add to a sum must be at least 2**-29; momentum and the clip norms give {norm:g}"
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
