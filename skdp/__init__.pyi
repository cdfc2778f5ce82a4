# Written by tools/make_stubs.py.

from skdp import datasets as datasets
from skdp import exceptions as exceptions
from skdp import kernels as kernels
from skdp import linear_model as linear_model
from skdp import losses as losses
from skdp import multiparty as multiparty
from skdp import preprocessing as preprocessing
from skdp import privacy as privacy
from skdp import statistics as statistics
from skdp._version import __version__ as __version__
from skdp.linear_model.adassp import DPAdaSSPRegressor as DPAdaSSPRegressor
from skdp.linear_model.amp import DPAMPClassifier as DPAMPClassifier
from skdp.linear_model.amp import DPAMPRegressor as DPAMPRegressor
from skdp.linear_model.descent.estimators import DPAGDClassifier as DPAGDClassifier
from skdp.linear_model.descent.estimators import DPGDClassifier as DPGDClassifier
from skdp.linear_model.descent.estimators import DPRRPSGDClassifier as DPRRPSGDClassifier
from skdp.linear_model.frank_wolfe import DPFrankWolfeClassifier as DPFrankWolfeClassifier
from skdp.linear_model.frank_wolfe import DPFrankWolfeRegressor as DPFrankWolfeRegressor
from skdp.linear_model.front.estimators import DPLinearRegression as DPLinearRegression
from skdp.linear_model.front.estimators import DPLogisticRegression as DPLogisticRegression
from skdp.linear_model.ight.estimators import DPIGHTClassifier as DPIGHTClassifier
from skdp.linear_model.ight.estimators import DPIGHTRegressor as DPIGHTRegressor
from skdp.linear_model.ight.estimators import IGHTClassifier as IGHTClassifier
from skdp.linear_model.ight.estimators import IGHTRegressor as IGHTRegressor
from skdp.linear_model.sgd.estimators import DPLSSGDClassifier as DPLSSGDClassifier
from skdp.linear_model.sgd.estimators import DPLSSGDRegressor as DPLSSGDRegressor
from skdp.linear_model.sgd.estimators import DPSGDClassifier as DPSGDClassifier
from skdp.linear_model.sgd.estimators import DPSGDRegressor as DPSGDRegressor
from skdp.linear_model.slkt.estimators import DPSLKTClassifier as DPSLKTClassifier
from skdp.linear_model.slkt.estimators import DPSLKTRegressor as DPSLKTRegressor
from skdp.linear_model.sparse_erm.estimators import DPSparseERM as DPSparseERM
from skdp.linear_model.sparse_erm.estimators import DPSparseERMClassifier as DPSparseERMClassifier
from skdp.linear_model.sparse_erm.estimators import DPSparseERMRegressor as DPSparseERMRegressor
from skdp.linear_model.srm.estimators import DPSRMClassifier as DPSRMClassifier
from skdp.linear_model.srm.estimators import STORMClassifier as STORMClassifier
from skdp.linear_model.two_stage.estimators import DPTwoStageClassifier as DPTwoStageClassifier
from skdp.linear_model.two_stage.estimators import DPTwoStageRegressor as DPTwoStageRegressor
from skdp.multiparty.baselines.local_gradient import (
    DPLocalGradientPerturbationClassifier as DPLocalGradientPerturbationClassifier,
)
from skdp.multiparty.baselines.local_gradient import (
    DPLocalGradientPerturbationRegressor as DPLocalGradientPerturbationRegressor,
)
from skdp.multiparty.baselines.rajkumar_agarwal import (
    DPRajkumarAgarwalClassifier as DPRajkumarAgarwalClassifier,
)
from skdp.multiparty.baselines.rajkumar_agarwal import (
    DPRajkumarAgarwalRegressor as DPRajkumarAgarwalRegressor,
)
from skdp.multiparty.estimators import (
    MPCGradientPerturbationClassifier as MPCGradientPerturbationClassifier,
)
from skdp.multiparty.estimators import (
    MPCGradientPerturbationRegressor as MPCGradientPerturbationRegressor,
)
from skdp.preprocessing.public_bins import PublicBinsEncoder as PublicBinsEncoder
from skdp.preprocessing.public_scaler import PublicScaler as PublicScaler
from skdp.preprocessing.scalers import DPQuantileScaler as DPQuantileScaler
from skdp.preprocessing.scalers import DPStandardScaler as DPStandardScaler
from skdp.privacy import BudgetAccountant as BudgetAccountant
from skdp.privacy import PrivacyReport as PrivacyReport
from skdp.privacy import PrivacySession as PrivacySession
from skdp.privacy import PrivateRecords as PrivateRecords
from skdp.registry import all_estimators as all_estimators
from skdp.registry import show_versions as show_versions
