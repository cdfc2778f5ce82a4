"""Linear models: one file per algorithm."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "DPAGDClassifier": "skdp.linear_model.descent.estimators",
    "DPAMPClassifier": "skdp.linear_model.amp",
    "DPAMPRegressor": "skdp.linear_model.amp",
    "DPAdaSSPRegressor": "skdp.linear_model.adassp",
    "DPFrankWolfeClassifier": "skdp.linear_model.frank_wolfe",
    "DPFrankWolfeRegressor": "skdp.linear_model.frank_wolfe",
    "DPGDClassifier": "skdp.linear_model.descent.estimators",
    "DPIGHTClassifier": "skdp.linear_model.ight.estimators",
    "DPIGHTRegressor": "skdp.linear_model.ight.estimators",
    "DPLSSGDClassifier": "skdp.linear_model.sgd.smoothed",
    "DPLSSGDRegressor": "skdp.linear_model.sgd.smoothed",
    "DPRRPSGDClassifier": "skdp.linear_model.descent.estimators",
    "DPSGDClassifier": "skdp.linear_model.sgd.plain",
    "DPSGDRegressor": "skdp.linear_model.sgd.plain",
    "DPSLKTClassifier": "skdp.linear_model.slkt.estimators",
    "DPSLKTRegressor": "skdp.linear_model.slkt.estimators",
    "DPSRMClassifier": "skdp.linear_model.srm.estimators",
    "DPSparseERM": "skdp.linear_model.sparse_erm.estimators",
    "DPSparseERMClassifier": "skdp.linear_model.sparse_erm.estimators",
    "DPSparseERMRegressor": "skdp.linear_model.sparse_erm.estimators",
    "DPTwoStageClassifier": "skdp.linear_model.two_stage.estimators",
    "DPTwoStageRegressor": "skdp.linear_model.two_stage.estimators",
    "IGHTClassifier": "skdp.linear_model.ight.estimators",
    "IGHTRegressor": "skdp.linear_model.ight.estimators",
    "STORMClassifier": "skdp.linear_model.srm.estimators",
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
    from skdp.linear_model.adassp import DPAdaSSPRegressor
    from skdp.linear_model.amp import DPAMPClassifier, DPAMPRegressor
    from skdp.linear_model.descent.estimators import (
        DPAGDClassifier,
        DPGDClassifier,
        DPRRPSGDClassifier,
    )
    from skdp.linear_model.frank_wolfe import DPFrankWolfeClassifier, DPFrankWolfeRegressor
    from skdp.linear_model.ight.estimators import (
        DPIGHTClassifier,
        DPIGHTRegressor,
        IGHTClassifier,
        IGHTRegressor,
    )
    from skdp.linear_model.sgd.plain import DPSGDClassifier, DPSGDRegressor
    from skdp.linear_model.sgd.smoothed import DPLSSGDClassifier, DPLSSGDRegressor
    from skdp.linear_model.slkt.estimators import DPSLKTClassifier, DPSLKTRegressor
    from skdp.linear_model.sparse_erm.estimators import (
        DPSparseERM,
        DPSparseERMClassifier,
        DPSparseERMRegressor,
    )
    from skdp.linear_model.srm.estimators import DPSRMClassifier, STORMClassifier
    from skdp.linear_model.two_stage.estimators import DPTwoStageClassifier, DPTwoStageRegressor


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'skdp.linear_model' has no attribute {name!r}")
    value = getattr(import_module(_NAMES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
