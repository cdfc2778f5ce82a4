# Written by tools/make_stubs.py.

from skdp.model_selection.comparison import Comparison as Comparison
from skdp.model_selection.comparison import compare as compare
from skdp.model_selection.cross_validation import cross_validate as cross_validate
from skdp.model_selection.search import DPRandomizedSearch as DPRandomizedSearch
from skdp.model_selection.split import train_test_split as train_test_split
from skdp.model_selection.threshold import DPTunedThresholdClassifier as DPTunedThresholdClassifier
