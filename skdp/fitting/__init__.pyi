from .linear import LinearFit as LinearFit
from .targets import LabelModel as LabelModel
from .targets import NumberModel as NumberModel
from .task import parameter_shape as parameter_shape
