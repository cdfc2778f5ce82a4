"""`PrivacyReport`: the cost of one fit, its proof and its assumptions."""

from skdp.privacy.report.report import PrivacyReport

__all__ = ["PrivacyReport"]
