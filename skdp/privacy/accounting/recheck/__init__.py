"""Epsilon of a ledger by other code than the calibration, so that one mistake does not hide itself."""

from skdp.privacy.accounting.recheck.ledger import recheck_epsilon

__all__ = ["recheck_epsilon"]
