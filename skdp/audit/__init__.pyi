# Written by tools/make_stubs.py.

from skdp.audit.cbow import cbow_log_perplexity as cbow_log_perplexity
from skdp.audit.display import SecretSharerDisplay as SecretSharerDisplay
from skdp.audit.inversion import invert_dense_gradient as invert_dense_gradient
from skdp.audit.sharer import secret_sharer as secret_sharer
