"""The only door out of the data: bounded statistics, a session that releases them, its accounting and report."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "BatchGroup": "skdp.privacy.batches",
    "Bounded": "skdp.privacy.bounded",
    "BudgetAccountant": "skdp.privacy.budget",
    "PrivacyReport": "skdp.privacy.report",
    "PrivacySession": "skdp.privacy.session",
    "PrivateRecords": "skdp.privacy.records",
    "PublicShape": "skdp.privacy.shape",
    "VertexScores": "skdp.privacy.statistics.vertices",
}
_MODULES = ("accounting", "noise")

__all__ = [
    "BatchGroup",
    "Bounded",
    "BudgetAccountant",
    "PrivacyReport",
    "PrivacySession",
    "PrivateRecords",
    "PublicShape",
    "VertexScores",
    "accounting",
    "noise",
]

if TYPE_CHECKING:
    from skdp.privacy.batches import BatchGroup
    from skdp.privacy.bounded import Bounded
    from skdp.privacy.budget import BudgetAccountant
    from skdp.privacy.records import PrivateRecords
    from skdp.privacy.report import PrivacyReport
    from skdp.privacy.session import PrivacySession
    from skdp.privacy.shape import PublicShape
    from skdp.privacy.statistics.vertices import VertexScores


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in _MODULES:
        value = import_module(f"skdp.privacy.{name}")
    else:
        raise AttributeError(f"module 'skdp.privacy' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
