# Written by tools/make_stubs.py.

from skdp.multiparty.estimators import (
    MPCGradientPerturbationClassifier as MPCGradientPerturbationClassifier,
)
from skdp.multiparty.estimators import (
    MPCGradientPerturbationRegressor as MPCGradientPerturbationRegressor,
)
from skdp.multiparty.owners import Owners as Owners
from skdp.multiparty.owners import OwnRecords as OwnRecords
