"""The report of an intermediate model: what somebody learns who sees one iterate and no other."""

import math
from numbers import Integral
from typing import Any

from skdp.base import check_number
from skdp.privacy import PrivacyReport

__all__ = ["report_at"]


def report_at(report: PrivacyReport, iteration: int, n_iter: int) -> PrivacyReport:
    """Return the report of the first ``iteration`` of ``n_iter`` equal releases.

    Parameters
    ----------
    report : PrivacyReport
        Of a fit whose only releases are these, all of them made.
    iteration, n_iter : int

    Returns
    -------
    PrivacyReport
    """
    check_number("iteration", iteration, Integral, low=1, high=n_iter)
    mu = report.plan_mu
    made: dict[str, Any] = {
        **report.__getstate__(),
        "mechanisms": [{**row, "count": int(iteration)} for row in report.mechanisms],
        "plan_mu": None if mu is None else mu * math.sqrt(iteration / n_iter),
        "assumptions": [
            *report.assumptions,
            f"only the iterate of round {iteration} is seen: owners and servers see all {n_iter}",
        ],
    }
    made["epsilon"] = PrivacyReport(**made).epsilon_at(report.delta)
    return PrivacyReport(**made)
