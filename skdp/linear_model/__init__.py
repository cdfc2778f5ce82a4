"""Linear models: one file per algorithm."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "DPAGDClassifier": "skdp.linear_model._descent_estimators",
    "DPAMPClassifier": "skdp.linear_model._amp",
    "DPAMPRegressor": "skdp.linear_model._amp",
    "DPAdaSSPRegressor": "skdp.linear_model._adassp",
    "DPFrankWolfeClassifier": "skdp.linear_model._frank_wolfe",
    "DPFrankWolfeRegressor": "skdp.linear_model._frank_wolfe",
    "DPGDClassifier": "skdp.linear_model._descent_estimators",
    "DPIGHTClassifier": "skdp.linear_model._ight_estimators",
    "DPIGHTRegressor": "skdp.linear_model._ight_estimators",
    "DPLSSGDClassifier": "skdp.linear_model._lssgd_estimators",
    "DPLSSGDRegressor": "skdp.linear_model._lssgd_estimators",
    "DPRRPSGDClassifier": "skdp.linear_model._descent_estimators",
    "DPSGDClassifier": "skdp.linear_model._sgd_estimators",
    "DPSGDRegressor": "skdp.linear_model._sgd_estimators",
    "DPSLKTClassifier": "skdp.linear_model._slkt_estimators",
    "DPSLKTRegressor": "skdp.linear_model._slkt_estimators",
    "DPSRMClassifier": "skdp.linear_model._srm_estimators",
    "DPSparseERM": "skdp.linear_model._sparse_erm_estimators",
    "DPSparseERMClassifier": "skdp.linear_model._sparse_erm_estimators",
    "DPSparseERMRegressor": "skdp.linear_model._sparse_erm_estimators",
    "DPTwoStageClassifier": "skdp.linear_model._two_stage_estimators",
    "DPTwoStageRegressor": "skdp.linear_model._two_stage_estimators",
    "IGHTClassifier": "skdp.linear_model._ight_estimators",
    "IGHTRegressor": "skdp.linear_model._ight_estimators",
    "STORMClassifier": "skdp.linear_model._srm_estimators",
}

__all__ = [
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
    "STORMClassifier",
]

if TYPE_CHECKING:
    from skdp.linear_model._adassp import DPAdaSSPRegressor
    from skdp.linear_model._amp import DPAMPClassifier, DPAMPRegressor
    from skdp.linear_model._descent_estimators import (
        DPAGDClassifier,
        DPGDClassifier,
        DPRRPSGDClassifier,
    )
    from skdp.linear_model._frank_wolfe import DPFrankWolfeClassifier, DPFrankWolfeRegressor
    from skdp.linear_model._ight_estimators import (
        DPIGHTClassifier,
        DPIGHTRegressor,
        IGHTClassifier,
        IGHTRegressor,
    )
    from skdp.linear_model._lssgd_estimators import DPLSSGDClassifier, DPLSSGDRegressor
    from skdp.linear_model._sgd_estimators import DPSGDClassifier, DPSGDRegressor
    from skdp.linear_model._slkt_estimators import DPSLKTClassifier, DPSLKTRegressor
    from skdp.linear_model._sparse_erm_estimators import (
        DPSparseERM,
        DPSparseERMClassifier,
        DPSparseERMRegressor,
    )
    from skdp.linear_model._srm_estimators import DPSRMClassifier, STORMClassifier
    from skdp.linear_model._two_stage_estimators import DPTwoStageClassifier, DPTwoStageRegressor


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'skdp.linear_model' has no attribute {name!r}")
    value = getattr(import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
