"""skdp: differentially private scikit-learn estimators whose claim is proved, tested and reported.

``import skdp`` loads nothing but this table; each name is imported from its room when it is first used,
so that one broken room cannot take the package down and a cold import stays light.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from skdp._version import __version__

_NAMES = {
    "BudgetAccountant": "skdp.privacy",
    "DPAGDClassifier": "skdp.linear_model",
    "DPAMPClassifier": "skdp.linear_model",
    "DPAMPRegressor": "skdp.linear_model",
    "DPAdaSSPRegressor": "skdp.linear_model",
    "DPFrankWolfeClassifier": "skdp.linear_model",
    "DPFrankWolfeRegressor": "skdp.linear_model",
    "DPGDClassifier": "skdp.linear_model",
    "DPIGHTClassifier": "skdp.linear_model",
    "DPIGHTRegressor": "skdp.linear_model",
    "DPLSSGDClassifier": "skdp.linear_model",
    "DPLSSGDRegressor": "skdp.linear_model",
    "DPRRPSGDClassifier": "skdp.linear_model",
    "DPSGDClassifier": "skdp.linear_model",
    "DPSGDRegressor": "skdp.linear_model",
    "DPSLKTClassifier": "skdp.linear_model",
    "DPSLKTRegressor": "skdp.linear_model",
    "DPSRMClassifier": "skdp.linear_model",
    "DPSparseERM": "skdp.linear_model",
    "DPSparseERMClassifier": "skdp.linear_model",
    "DPSparseERMRegressor": "skdp.linear_model",
    "DPTwoStageClassifier": "skdp.linear_model",
    "DPTwoStageRegressor": "skdp.linear_model",
    "IGHTClassifier": "skdp.linear_model",
    "IGHTRegressor": "skdp.linear_model",
    "PrivacyReport": "skdp.privacy",
    "PrivacySession": "skdp.privacy",
    "PrivateRecords": "skdp.privacy",
    "PublicBinsEncoder": "skdp.preprocessing",
    "STORMClassifier": "skdp.linear_model",
    "all_estimators": "skdp._discovery",
    "show_versions": "skdp._discovery",
}
_ROOMS = ("datasets", "exceptions", "kernels", "linear_model", "losses", "preprocessing", "privacy")

__all__ = [
    "BudgetAccountant",
    "DPAGDClassifier",
    "DPAMPClassifier",
    "DPAMPRegressor",
    "DPAdaSSPRegressor",
    "DPFrankWolfeClassifier",
    "DPFrankWolfeRegressor",
    "DPGDClassifier",
    "DPIGHTClassifier",
    "DPIGHTRegressor",
    "DPLSSGDClassifier",
    "DPLSSGDRegressor",
    "DPRRPSGDClassifier",
    "DPSGDClassifier",
    "DPSGDRegressor",
    "DPSLKTClassifier",
    "DPSLKTRegressor",
    "DPSRMClassifier",
    "DPSparseERM",
    "DPSparseERMClassifier",
    "DPSparseERMRegressor",
    "DPTwoStageClassifier",
    "DPTwoStageRegressor",
    "IGHTClassifier",
    "IGHTRegressor",
    "PrivacyReport",
    "PrivacySession",
    "PrivateRecords",
    "PublicBinsEncoder",
    "STORMClassifier",
    "__version__",
    "all_estimators",
    "datasets",
    "exceptions",
    "kernels",
    "linear_model",
    "losses",
    "preprocessing",
    "privacy",
    "show_versions",
]

if TYPE_CHECKING:
    from skdp._discovery import all_estimators, show_versions
    from skdp.linear_model import (
        DPAdaSSPRegressor,
        DPAGDClassifier,
        DPAMPClassifier,
        DPAMPRegressor,
        DPFrankWolfeClassifier,
        DPFrankWolfeRegressor,
        DPGDClassifier,
        DPIGHTClassifier,
        DPIGHTRegressor,
        DPLSSGDClassifier,
        DPLSSGDRegressor,
        DPRRPSGDClassifier,
        DPSGDClassifier,
        DPSGDRegressor,
        DPSLKTClassifier,
        DPSLKTRegressor,
        DPSparseERM,
        DPSparseERMClassifier,
        DPSparseERMRegressor,
        DPSRMClassifier,
        DPTwoStageClassifier,
        DPTwoStageRegressor,
        IGHTClassifier,
        IGHTRegressor,
        STORMClassifier,
    )
    from skdp.preprocessing import PublicBinsEncoder
    from skdp.privacy import BudgetAccountant, PrivacyReport, PrivacySession, PrivateRecords


def __getattr__(name: str) -> Any:
    if name in _NAMES:
        value = getattr(import_module(_NAMES[name]), name)
    elif name in _ROOMS:
        value = import_module(f"skdp.{name}")
    else:
        raise AttributeError(f"module 'skdp' has no attribute {name!r}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
