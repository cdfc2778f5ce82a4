"""Linear models: one file per algorithm."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "DPIGHTClassifier": "skdp.linear_model._ight",
    "DPIGHTRegressor": "skdp.linear_model._ight",
    "IGHTClassifier": "skdp.linear_model._ight",
    "IGHTRegressor": "skdp.linear_model._ight",
}

__all__ = ["DPIGHTClassifier", "DPIGHTRegressor", "IGHTClassifier", "IGHTRegressor"]

if TYPE_CHECKING:
    from skdp.linear_model._ight import (
        DPIGHTClassifier,
        DPIGHTRegressor,
        IGHTClassifier,
        IGHTRegressor,
    )


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'skdp.linear_model' has no attribute {name!r}")
    value = getattr(import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
