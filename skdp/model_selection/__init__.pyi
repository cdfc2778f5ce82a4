# Written by tools/make_stubs.py.

from skdp.model_selection.search import DPRandomizedSearch as DPRandomizedSearch
