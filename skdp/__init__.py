"""skdp: differentially private scikit-learn estimators whose claim is proved, tested and reported.

``import skdp`` loads nothing but the table of names; each name is imported from its package when it is first used.
So a cold import is light, and an error in one subpackage leaves the others usable.
"""

from skdp._lazy import lazy_exports
from skdp._version import __version__ as __version__
from skdp.registry import ESTIMATORS, OTHERS

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        **ESTIMATORS,
        **OTHERS,
        "BudgetAccountant": "skdp.privacy",
        "PrivacyReport": "skdp.privacy",
        "PrivacySession": "skdp.privacy",
        "PrivateRecords": "skdp.privacy",
        "__version__": "skdp._version",
        "all_estimators": "skdp.registry",
        "show_versions": "skdp.registry",
        "to_sklearn": "skdp._export",
        "trusted_types": "skdp.registry",
    },
    modules=(
        "audit",
        "datasets",
        "exceptions",
        "kernels",
        "linear_model",
        "losses",
        "metrics",
        "model_selection",
        "multiparty",
        "nn",
        "preprocessing",
        "privacy",
        "reproductions",
        "statistics",
        "text",
    ),
)
