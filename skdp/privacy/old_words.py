"""Names and values of parameters as they were when the golden fits were recorded.

The key of a seeded fit has them, so that fits keep their bits while names change. This file goes with the golden
fits.
"""

from collections.abc import Mapping

# Parameters whose word for a released number was "adaptive".
ADAPTIVE = ("clip_norm", "row_norm", "huber_threshold", "y_bounds")

# Modules of the objects that replaced several parameters, and the parameter of each gradient estimator.
OPTIMIZERS, CLIPPINGS = "skdp.fitting.optimizers", "skdp.nn.clipping"
GRADIENTS = {
    "skdp.fitting.recursive": "recursive",
    "skdp.fitting.selection": "select",
    "skdp.fitting.sparsification": "sparsification",
}


def in_old_words(params: Mapping[str, object], kind: type | None) -> dict[str, object]:
    """The parameters of an estimator of this class in old names and values; only skdp's own classes had them."""
    old = dict(params)
    if kind is None or not kind.__module__.startswith("skdp."):
        return old
    if not {"weighting", "version"} & old.keys():  # estimators of owners had the new word before
        found = [x for x in ADAPTIVE if isinstance(old.get(x), str) and old[x] == "auto"]
        old |= dict.fromkeys(found, "adaptive")
    if "classes" in old and isinstance(old.get("loss"), str) and old["loss"] == "logistic":
        del old["loss"]  # classifiers had no such parameter
    if not {"optimizer", "batch_size"} <= old.keys():
        return old
    optimizer = old["optimizer"]
    net, words = "clipping" in old, "vocabulary" in old
    word = isinstance(optimizer, str) and optimizer in ("sgd", "adam")
    if word or type(optimizer).__module__ == OPTIMIZERS:
        del old["optimizer"]
        old |= _optimizer(optimizer, net, words)
    gradient = old.get("gradient_estimator")
    mean = isinstance(gradient, str) and gradient == "mean"
    if mean or type(gradient).__module__ in GRADIENTS:
        del old["gradient_estimator"]
        old |= dict.fromkeys(GRADIENTS.values() if net else ("select",))
        if not mean:
            old[GRADIENTS[type(gradient).__module__]] = gradient
    if net:
        way = old["clipping"]
        old["microbatch_size"] = getattr(way, "size", 8)
        old["n_projections"] = getattr(way, "n_projections", 20)
        if type(way).__module__ == CLIPPINGS:
            old["clipping"] = {"Microbatch": "microbatch"}.get(type(way).__name__, "projections")
    return old


def _optimizer(optimizer: object, net: bool, words: bool) -> dict[str, object]:
    adam = "adam" in (optimizer, type(optimizer).__name__.lower())
    schedule: object = getattr(optimizer, "schedule", "auto")
    average: object = getattr(optimizer, "average", "auto")
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
        found["smoothing"] = getattr(optimizer, "smoothing", 0.0)
    return found
