"""`PrivacyReport`: what one fit cost, how that was proved, and what the proof takes for granted."""

from skdp.privacy.report.report import PrivacyReport

__all__ = ["PrivacyReport"]
