# Written by tools/make_stubs.py.

from skdp.metrics.evaluation import Evaluation as Evaluation
from skdp.metrics.functions import evaluate as evaluate
from skdp.metrics.released_score import ReleasedScore as ReleasedScore
