"""`PrivacyReport`: the cost of one fit, its proof and its assumptions."""

from skdp.privacy.report.report import PrivacyReport
from skdp.privacy.report.verify import verify_card

__all__ = ["PrivacyReport", "verify_card"]
