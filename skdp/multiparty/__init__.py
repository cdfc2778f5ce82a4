"""Linear models that several owners of data fit together without pooling it, differentially private as a whole."""

from skdp._lazy import lazy_exports
from skdp.registry import estimators_of

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {**estimators_of(__name__), "OwnRecords": "skdp.multiparty.owners", "Owners": "skdp.multiparty.owners"},
)
