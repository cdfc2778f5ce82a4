# Written by tools/make_stubs.py.

from skdp.metrics.evaluation import Evaluation as Evaluation
from skdp.metrics.functions import evaluate as evaluate
from skdp.metrics.label_functions import accuracy_score as accuracy_score
from skdp.metrics.label_functions import balanced_accuracy_score as balanced_accuracy_score
from skdp.metrics.label_functions import brier_score_loss as brier_score_loss
from skdp.metrics.label_functions import confusion_matrix as confusion_matrix
from skdp.metrics.label_functions import log_loss as log_loss
from skdp.metrics.label_functions import roc_auc_score as roc_auc_score
from skdp.metrics.number_functions import mean_absolute_error as mean_absolute_error
from skdp.metrics.number_functions import mean_squared_error as mean_squared_error
from skdp.metrics.number_functions import r2_score as r2_score
from skdp.metrics.released_score import ReleasedScore as ReleasedScore
