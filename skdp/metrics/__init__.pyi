# Written by tools/make_stubs.py.

from skdp.metrics.evaluation import Evaluation as Evaluation
from skdp.metrics.functions import evaluate as evaluate
from skdp.metrics.number_functions import mean_absolute_error as mean_absolute_error
from skdp.metrics.number_functions import mean_squared_error as mean_squared_error
from skdp.metrics.number_functions import r2_score as r2_score
from skdp.metrics.released_score import ReleasedScore as ReleasedScore
