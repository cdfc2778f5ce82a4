"""The claim that follows from a ledger, its recheck and the report."""

import math
from collections.abc import Iterable, Mapping

from skdp.exceptions import PrivacyAccountingError
from skdp.privacy import accounting
from skdp.privacy.accounting.amplification import WITHOUT_REPLACEMENT
from skdp.privacy.accounting.text import ACCOUNTANTS
from skdp.privacy.batches import BatchPlan
from skdp.privacy.log import LOGGER
from skdp.privacy.report import PrivacyReport
from skdp.privacy.report.text import SEEDED, UNIT_ASSUMPTIONS, noise_name
from skdp.privacy.session.ledger import GaussianPlan, Ledger


def make_report(
    ledger: Ledger,
    estimator: str,
    seeded: bool,
    public: Mapping[str, object] | None,
    assumptions: tuple[str, ...],
    leaks: tuple[str, ...],
    unproven: bool,
    erratum: str | None,
    post_processing: tuple[str, ...] = (),
) -> PrivacyReport:
    """See `PrivacySession.report`; ``seeded`` says whether a key stream of a seed was drawn from."""
    if unproven and not ledger.exact:
        raise ValueError("a session with a finite epsilon makes proven releases only")
    claim = math.inf if ledger.exact else claimed(ledger)
    rechecked = None if ledger.exact else recheck(ledger, claim)
    assumptions = (UNIT_ASSUMPTIONS[ledger.protects], *ledger.assumptions, *assumptions)
    leaks = (*leaks, SEEDED) if seeded and SEEDED not in leaks else leaks
    plans = [plan.planned_row() for plan in ledger.plans if isinstance(plan, BatchPlan)]
    drawn = "none" if ledger.exact else noise_name(ledger.rows, seeded)
    report = PrivacyReport(
        epsilon=claim,
        delta=max(ledger.delta, ledger.numerical_error[1]),
        adjacency=ledger.adjacency,
        unit=ledger.protects,
        guarantee="unproven" if unproven else "none" if ledger.exact else "proven",
        accountant="none" if ledger.exact else _accountant_name(ledger),
        noise="the method's own, without a proof" if unproven else drawn,
        public=dict(public or {}),
        assumptions=list(assumptions),
        leaks=list(leaks),
        mechanisms=[] if ledger.exact else [dict(line) for line in ledger.rows],
        numerical_error=tuple(ledger.numerical_error),
        plan_mu=None if ledger.exact else claimed_mu(ledger),
        sampled_plan=plans if ledger.sampled else None,
        erratum=erratum,
        estimator=estimator,
        post_processing=post_processing,
        rechecked=rechecked,
    )
    if not ledger.exact:
        LOGGER.info("%s: report, epsilon=%.6g, delta=%.6g", estimator, report.epsilon, report.delta)
    return report


def claimed(ledger: Ledger) -> float:
    """Epsilon of everything that was planned, rounded up; never more than the budget.

    Notes
    -----
    **Privacy.** A plan made after a release may depend on it. The costs of such a plan are random, and their sum
    is no valid claim: of 400 releases with mu = 0.1 that stop at a lucky one, the realised sum understates the
    loss too often. The whole budget is valid, because every plan was admitted against it before its releases, and
    sums of mu^2 (or of pure epsilons) below a fixed total compose adaptively.
    """
    if ledger.late or ledger.set_aside or ledger.sampled or ledger.best_of:
        return ledger.epsilon
    if ledger.delta == 0:
        return ledger.pure_epsilon() + ledger.numerical_error[0]
    planned = ledger.planned_mu2()
    if planned >= ledger.mu2 * (1 - 1e-6):
        return ledger.epsilon
    if planned == 0:
        return 0.0
    epsilon = accounting.gaussian_epsilon(math.sqrt(planned), ledger.ideal_delta)
    return min(ledger.epsilon, epsilon + ledger.epsilon_numerical_error)


def claimed_mu(ledger: Ledger) -> float:
    """The mu of the claim; inf with a share set aside, or trials, which have (epsilon, delta) and no mu."""
    if ledger.set_aside or ledger.best_of:
        return math.inf
    if ledger.sampled:  # the budget of the other releases, beside the sampled ones
        batches = sum(plan.share for plan in ledger.plans if isinstance(plan, BatchPlan))
        return math.sqrt(max(0.0, 1.0 - batches) * ledger.mu2)
    if not ledger.late:
        return math.sqrt(ledger.planned_mu2())
    return math.sqrt(ledger.mu2) if ledger.delta > 0 else accounting.pure_mu(ledger.epsilon)


def recheck(ledger: Ledger, claim: float) -> float | None:
    """Compute the cost of the rows by other code than the calibration; a larger one than the claim is a bug.

    Returns
    -------
    float or None
        The epsilon of the rows, or of the claims of fits inside the session; None without rows.
    """
    if not ledger.rows:
        return None
    if ledger.inner_claims:
        return _recheck_sums(ledger, claim)
    words = accounting.recheck_tail(ledger.rows)
    if words > ledger.numerical_error[1]:
        raise PrivacyAccountingError(
            f"a word of one unit alone is released with probability {words:.3g}, and "
            f"{ledger.numerical_error[1]:.3g} was charged; this is a bug in skdp, please report it. The result is "
            "discarded"
        )
    pure = ledger.delta == 0
    ideal = 0.0 if pure else (ledger.delta - ledger.numerical_error[1]) * math.exp(-ledger.numerical_error[0])
    found = accounting.recheck_epsilon(ledger.rows, ideal, adjacency=ledger.adjacency, complete=True)
    found += ledger.numerical_error[0]
    if not found <= claim * (1 + 1e-9):
        raise PrivacyAccountingError(
            f"the ledger costs epsilon={found:.9g} but {claim:.9g} was claimed; "
            "this is a bug in skdp, please report it. The result is discarded"
        )
    return found


def inner_lines(ledger: Ledger, reports: Iterable[Iterable[PrivacyReport]]) -> list[str]:
    """The assumptions of fits inside a session, each line once, without the session's own."""
    lines = (line for some in reports for report in some for line in report.assumptions)
    return [line for line in dict.fromkeys(lines) if line != UNIT_ASSUMPTIONS[ledger.protects]]


def inner_leaks(reports: Iterable[Iterable[PrivacyReport]]) -> list[str]:
    """The leaks of fits inside a session, each line once."""
    return list(dict.fromkeys(line for some in reports for report in some for line in report.leaks))


def _recheck_sums(ledger: Ledger, claim: float) -> float:
    """Add up the claims of fits inside the session; each was rechecked by the session of its own fit."""
    epsilon, delta = (math.fsum(part) for part in zip(*ledger.inner_claims))
    if epsilon > claim * (1 + 1e-9) or delta > ledger.delta * (1 + 1e-9):
        raise PrivacyAccountingError(
            f"fits inside this one cost epsilon={epsilon:.9g} and delta={delta:.9g} together, but {claim:.9g} and "
            f"{ledger.delta:.9g} were claimed; this is a bug in skdp, please report it. The result is discarded"
        )
    return epsilon


def _accountant_name(ledger: Ledger) -> str:
    if ledger.delta == 0:
        return ACCOUNTANTS["pure"]
    if ledger.set_aside:
        return ACCOUNTANTS["basic"]
    if ledger.best_of:
        return ACCOUNTANTS["best"]
    if ledger.sampled:
        kinds = {plan.sampling for plan in ledger.plans if isinstance(plan, BatchPlan)}
        if WITHOUT_REPLACEMENT in kinds:
            return ACCOUNTANTS["fixed size"]
        extras = [plan.extra for plan in ledger.plans if isinstance(plan, BatchPlan) and plan.extra is not None]
        if extras:
            return extras[0].accountant
        return ACCOUNTANTS["Poisson"]
    gaussian = all(isinstance(plan, GaussianPlan | BatchPlan) for plan in ledger.plans)
    exact = gaussian and not ledger.pure
    return ACCOUNTANTS["gaussian"] if exact else ACCOUNTANTS["mixed"]
