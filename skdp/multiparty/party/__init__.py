"""One process of several data owners: a public plan, pinned keys, mutual TLS, and a ledger of its own."""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__, {"load_model": "skdp.multiparty.party.model"}
)
