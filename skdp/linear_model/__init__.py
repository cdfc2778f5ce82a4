"""Linear and additive models: a file for each method, or a folder of its algorithm and its estimators."""

from skdp._lazy import lazy_exports
from skdp.registry import estimators_of

_ADDITIVE = "skdp.linear_model.additive"
__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        **estimators_of(__name__),
        "SGD": "skdp.fitting.optimizers",
        "Adam": "skdp.fitting.optimizers",
        "Explanation": f"{_ADDITIVE}.explanation",
        "Interaction": f"{_ADDITIVE}.shapes",
        "Shape": f"{_ADDITIVE}.shapes",
    },
)
