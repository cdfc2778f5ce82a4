"""Names and values of parameters as they were when the golden fits were recorded.

The key of a seeded fit has them, so that fits keep their bits while names change. This file goes with the golden
fits.
"""

from collections.abc import Mapping

__all__ = ["in_old_words"]

# The parameter of today's gradient estimators, by the names of their classes.
GRADIENTS = {
    "AdaFEST": "select",
    "RandomSparsification": "sparsification",
    "RecursiveMomentum": "recursive",
    "SparseSelection": "select",
}


def in_old_words(params: Mapping[str, object]) -> dict[str, object]:
    """The parameters of an estimator in old names and values."""
    old = dict(params)
    net, words = "clipping" in old, "vocabulary" in old
    if "optimizer" in old:
        old |= _optimizer(old.pop("optimizer"), net, words)
    if "gradient_estimator" in old:
        found = old.pop("gradient_estimator")
        names = ("recursive", "sparsification", "select") if net else ("select",)
        old |= dict.fromkeys(names)
        if not isinstance(found, str):
            old[GRADIENTS[type(found).__name__]] = found
    if net:
        way = old["clipping"]
        old["microbatch_size"] = getattr(way, "size", 8)
        old["n_projections"] = getattr(way, "n_projections", 20)
        if not isinstance(way, str):
            old["clipping"] = {"Microbatch": "microbatch"}.get(type(way).__name__, "projections")
    return old


def _optimizer(optimizer: object, net: bool, words: bool) -> dict[str, object]:
    adam = optimizer == "adam" or type(optimizer).__name__ == "Adam"
    schedule: object = getattr(optimizer, "schedule", "auto")
    average: object = getattr(optimizer, "average", "auto")
    smoothing: object = getattr(optimizer, "smoothing", 0.0)
    if schedule == "auto":
        schedule = "linear" if net or words else "constant"
    if isinstance(average, str) and (net or words):
        average = None
    found: dict[str, object] = {
        "momentum": getattr(optimizer, "beta_1" if adam else "momentum", 0.9),
        "solver": "adam" if adam else "sgd",
        "schedule": schedule,
    }
    if not words or average is not None:
        found["average"] = average
    if net:
        found["smoothing"] = smoothing
    return found
