from . import audit as audit
from . import datasets as datasets
from . import exceptions as exceptions
from . import kernels as kernels
from . import linear_model as linear_model
from . import losses as losses
from . import metrics as metrics
from . import model_selection as model_selection
from . import multiparty as multiparty
from . import nn as nn
from . import preprocessing as preprocessing
from . import privacy as privacy
from . import reproductions as reproductions
from . import statistics as statistics
from . import text as text
from ._export import to_sklearn as to_sklearn
from ._version import __version__ as __version__
from .linear_model.adassp import DPAdaSSPRegressor as DPAdaSSPRegressor
from .linear_model.additive.estimators import DPAdditiveClassifier as DPAdditiveClassifier
from .linear_model.additive.estimators import DPAdditiveRegressor as DPAdditiveRegressor
from .linear_model.amp import DPAMPClassifier as DPAMPClassifier
from .linear_model.amp import DPAMPRegressor as DPAMPRegressor
from .linear_model.auto.estimators import DPLinearRegression as DPLinearRegression
from .linear_model.auto.estimators import DPLogisticRegression as DPLogisticRegression
from .linear_model.frank_wolfe import DPFrankWolfeClassifier as DPFrankWolfeClassifier
from .linear_model.frank_wolfe import DPFrankWolfeRegressor as DPFrankWolfeRegressor
from .linear_model.gradient_descent import DPGDClassifier as DPGDClassifier
from .linear_model.ight.estimators import DPIGHTClassifier as DPIGHTClassifier
from .linear_model.ight.estimators import DPIGHTRegressor as DPIGHTRegressor
from .linear_model.ight.estimators import IGHTClassifier as IGHTClassifier
from .linear_model.ight.estimators import IGHTRegressor as IGHTRegressor
from .linear_model.sgd.estimators import DPLSSGDClassifier as DPLSSGDClassifier
from .linear_model.sgd.estimators import DPLSSGDRegressor as DPLSSGDRegressor
from .linear_model.sgd.estimators import DPSGDClassifier as DPSGDClassifier
from .linear_model.sgd.estimators import DPSGDRegressor as DPSGDRegressor
from .linear_model.slkt.estimators import DPSLKTClassifier as DPSLKTClassifier
from .linear_model.slkt.estimators import DPSLKTRegressor as DPSLKTRegressor
from .linear_model.sparse_erm.estimators import DPSparseERM as DPSparseERM
from .linear_model.sparse_erm.estimators import DPSparseERMClassifier as DPSparseERMClassifier
from .linear_model.sparse_erm.estimators import DPSparseERMRegressor as DPSparseERMRegressor
from .linear_model.srm.estimators import DPSRMClassifier as DPSRMClassifier
from .linear_model.srm.estimators import STORMClassifier as STORMClassifier
from .linear_model.two_stage.estimators import DPTwoStageClassifier as DPTwoStageClassifier
from .linear_model.two_stage.estimators import DPTwoStageRegressor as DPTwoStageRegressor
from .multiparty.estimators import MPCGradientPerturbationClassifier as MPCGradientPerturbationClassifier
from .multiparty.estimators import MPCGradientPerturbationRegressor as MPCGradientPerturbationRegressor
from .multiparty.output_estimators import MPCOutputPerturbationClassifier as MPCOutputPerturbationClassifier
from .multiparty.output_estimators import MPCOutputPerturbationRegressor as MPCOutputPerturbationRegressor
from .nn.cnn import DPCNNClassifier as DPCNNClassifier
from .nn.mlp import DPMLPClassifier as DPMLPClassifier
from .nn.mlp import DPMLPRegressor as DPMLPRegressor
from .nn.networks import DPNetworkClassifier as DPNetworkClassifier
from .nn.networks import DPNetworkRegressor as DPNetworkRegressor
from .nn.text import DPLSTMClassifier as DPLSTMClassifier
from .preprocessing.public_bins import PublicBinsEncoder as PublicBinsEncoder
from .preprocessing.public_scaler import PublicScaler as PublicScaler
from .preprocessing.scalers import DPQuantileScaler as DPQuantileScaler
from .preprocessing.scalers import DPStandardScaler as DPStandardScaler
from .preprocessing.scattering.estimator import ScatteringTransform as ScatteringTransform
from .privacy import BudgetAccountant as BudgetAccountant
from .privacy import PrivacyReport as PrivacyReport
from .privacy import PrivacySession as PrivacySession
from .privacy import PrivateRecords as PrivateRecords
from .registry import all_estimators as all_estimators
from .registry import show_versions as show_versions
from .registry import trusted_types as trusted_types
from .reproductions.adaptive_descent import DPAGDClassifier as DPAGDClassifier
from .reproductions.local_gradient import (
    DPLocalGradientPerturbationClassifier as DPLocalGradientPerturbationClassifier,
)
from .reproductions.local_gradient import (
    DPLocalGradientPerturbationRegressor as DPLocalGradientPerturbationRegressor,
)
from .reproductions.local_objective import (
    DPLocalObjectivePerturbationClassifier as DPLocalObjectivePerturbationClassifier,
)
from .reproductions.local_objective import (
    DPLocalObjectivePerturbationRegressor as DPLocalObjectivePerturbationRegressor,
)
from .reproductions.local_output import DPLocalOutputPerturbationClassifier as DPLocalOutputPerturbationClassifier
from .reproductions.local_output import DPLocalOutputPerturbationRegressor as DPLocalOutputPerturbationRegressor
from .reproductions.pathak import MPCPathakClassifier as MPCPathakClassifier
from .reproductions.pathak import MPCPathakRegressor as MPCPathakRegressor
from .reproductions.rajkumar_agarwal import DPRajkumarAgarwalClassifier as DPRajkumarAgarwalClassifier
from .reproductions.rajkumar_agarwal import DPRajkumarAgarwalRegressor as DPRajkumarAgarwalRegressor
from .reproductions.random_round import DPRRPSGDClassifier as DPRRPSGDClassifier
from .text.word2vec import DPWord2Vec as DPWord2Vec
