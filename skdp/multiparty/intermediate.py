"""The report of an intermediate model: the claim against an observer who sees one iterate and no other."""

from numbers import Integral
from typing import Any

from skdp.base import check_number
from skdp.privacy import PrivacyReport, accounting


def report_at(report: PrivacyReport, iteration: int, n_iter: int) -> PrivacyReport:
    """Return the report of the first ``iteration`` of ``n_iter`` equal releases.

    Parameters
    ----------
    report : PrivacyReport
        Of a fit whose only releases are these, all of them made.
    iteration, n_iter : int

    Notes
    -----
    **Privacy.** The number of releases and their noise were fixed before the first one. The first t of them are a
    fixed plan too, and cost as much as its rows; the iterate is a function of these releases.
    """
    check_number("iteration", iteration, Integral, low=1, high=n_iter)
    rows = [{**row, "count": int(iteration)} for row in report.mechanisms]
    made: dict[str, Any] = {
        **report.__getstate__(),
        "mechanisms": rows,
        "rechecked": None,
        "plan_mu": None if report.plan_mu is None else accounting.rows_mu(rows),
        "assumptions": [
            *report.assumptions,
            f"only the iterate of round {iteration} is seen: owners and servers see all {n_iter}",
        ],
    }
    made["epsilon"] = PrivacyReport(**made).epsilon_at(report.delta)
    return PrivacyReport(**made)
