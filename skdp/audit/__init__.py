"""Attacks that measure what a fitted model shows of its training data; finding nothing proves nothing.

A claim of privacy comes from a proof, which `privacy_` of a fit reports. These measurements cannot replace it.
"""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "SecretSharerDisplay": "skdp.audit.display",
        "cbow_log_perplexity": "skdp.audit.cbow",
        "invert_dense_gradient": "skdp.audit.inversion",
        "secret_sharer": "skdp.audit.sharer",
    },
)
