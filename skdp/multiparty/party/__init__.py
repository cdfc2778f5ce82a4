"""One process of several data owners: a public plan, pinned keys, mutual TLS, and a ledger of its own."""
