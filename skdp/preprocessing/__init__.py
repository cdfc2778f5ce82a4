"""Transformers that learn nothing from the data. So they cost no privacy budget."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {"PublicBinsEncoder": "skdp.preprocessing.public_bins"}

__all__ = ["PublicBinsEncoder"]

if TYPE_CHECKING:
    from skdp.preprocessing.public_bins import PublicBinsEncoder


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'skdp.preprocessing' has no attribute {name!r}")
    value = getattr(import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
