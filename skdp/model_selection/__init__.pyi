# Written by tools/make_stubs.py.

from skdp.model_selection.search import DPRandomizedSearch as DPRandomizedSearch
from skdp.model_selection.split import train_test_split as train_test_split
