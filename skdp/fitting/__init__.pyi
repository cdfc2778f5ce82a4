# Written by tools/make_stubs.py.

from skdp.fitting.linear import LinearFit as LinearFit
from skdp.fitting.targets import LabelModel as LabelModel
from skdp.fitting.targets import NumberModel as NumberModel
from skdp.fitting.task import parameter_shape as parameter_shape
