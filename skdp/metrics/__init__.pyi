# Written by tools/make_stubs.py.

from skdp.metrics.evaluation import Evaluation as Evaluation
from skdp.metrics.functions import evaluate as evaluate
from skdp.metrics.label_functions import accuracy_score as accuracy_score
from skdp.metrics.label_functions import balanced_accuracy_score as balanced_accuracy_score
from skdp.metrics.label_functions import brier_score_loss as brier_score_loss
from skdp.metrics.label_functions import confusion_matrix as confusion_matrix
from skdp.metrics.label_functions import log_loss as log_loss
from skdp.metrics.label_functions import roc_auc_score as roc_auc_score
from skdp.metrics.released_score import ReleasedScore as ReleasedScore
