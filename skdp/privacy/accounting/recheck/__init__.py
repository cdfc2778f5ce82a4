"""Epsilon of a ledger by other code than the calibration, so that a mistake in one of them shows."""

from skdp.privacy.accounting.recheck.composition import recheck_epsilon, recheck_tail

__all__ = ["recheck_epsilon", "recheck_tail"]
