from .comparison import Comparison as Comparison
from .comparison import compare as compare
from .cross_validation import cross_validate as cross_validate
from .search import DPRandomizedSearch as DPRandomizedSearch
from .split import train_test_split as train_test_split
from .threshold import DPTunedThresholdClassifier as DPTunedThresholdClassifier
