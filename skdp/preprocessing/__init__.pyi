# Written by tools/make_stubs.py.

from skdp.preprocessing.public_bins import PublicBinsEncoder as PublicBinsEncoder
from skdp.preprocessing.public_scaler import PublicScaler as PublicScaler
from skdp.preprocessing.scalers import DPQuantileScaler as DPQuantileScaler
from skdp.preprocessing.scalers import DPStandardScaler as DPStandardScaler
from skdp.preprocessing.scattering.estimator import ScatteringTransform as ScatteringTransform
