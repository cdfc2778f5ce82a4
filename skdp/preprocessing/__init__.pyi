from .public_bins import PublicBinsEncoder as PublicBinsEncoder
from .public_scaler import PublicScaler as PublicScaler
from .scalers import DPQuantileScaler as DPQuantileScaler
from .scalers import DPStandardScaler as DPStandardScaler
from .scattering.estimator import ScatteringTransform as ScatteringTransform
