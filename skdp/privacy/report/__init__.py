"""`PrivacyReport`: the cost of one fit, its proof and its assumptions."""

from skdp.privacy.report.report import PrivacyReport
from skdp.privacy.report.verify import CardCheck, verify_card

__all__ = ["CardCheck", "PrivacyReport", "verify_card"]
