from .cbow import cbow_log_perplexity as cbow_log_perplexity
from .display import SecretSharerDisplay as SecretSharerDisplay
from .inversion import invert_dense_gradient as invert_dense_gradient
from .sharer import secret_sharer as secret_sharer
