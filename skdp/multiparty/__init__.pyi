# Written by tools/make_stubs.py.

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
from skdp.multiparty.owners import OwnRecords as OwnRecords
from skdp.multiparty.owners import Owners as Owners
