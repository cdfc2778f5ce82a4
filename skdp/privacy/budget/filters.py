"""Which fits a ceiling admits, and the proof that the total holds.

Let (E, D) be the ceiling. Whatever was released before, a fit is one of these:

* mu-GDP: its releases are Gaussian, on all records;
* pure epsilon-DP, which is mu-GDP with mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon));
* (epsilon, delta)-DP without a mu, as with objective perturbation.

The first fit that is charged decides about the rule. It is chosen before anything was released. If it has a
mu, a fit without one is refused later. A fit with a mu is refused unless one of these holds for it and all
that is charged:

A. all are pure, and the sum of epsilon is at most E;
B. sqrt(sum of mu^2) is at most M, the largest mu that is (E, D)-DP;
C. it is the only one, and its own claim is at most (E, D).

If the first fit has no mu, there is one rule for all fits of the ledger, whatever they are:

D. the sum of epsilon, as each fit claims it, is at most E, and the sum of delta at most D.

Privacy
-------
*Claim.* Everything released under one ledger is (E, D)-DP, also when each fit, its cost and the
time to stop are chosen by looking at earlier results.

*Proof.* Choices made between the fits are functions of the released numbers and of coins, so condition on the
coins. Sums only grow with further releases (a row that was handed back released nothing), so a history that ends
under A was under A all the time, and the same is true for B. If the first fit is admitted by C alone, neither A
nor B can hold with it later: it stays the only one, and its own claim is enough. Otherwise split a set S of
histories into those that end under B, S_B, and the others, S_A. Take the process that stops at the first fit that
would leave B: it is M-GDP by the filter for Gaussian differential privacy (Smith and Thakurta 2022; Koskela,
Tobaben and Honkela 2023), and S_B are histories that it does not cut, so P(S_B) <= e^E Q(S_B) + D. On S_A every
factor of the likelihood ratio is at most e^epsilon_i, and the sum is at most E, so P(S_A) <= e^E Q(S_A). Add both.
Fits that run at the same time are no exception: the filter is applied to the single releases in their order of
time, and their reservations were made before.

Under D nothing else can ever hold: a fit without mu is neither pure nor under B, and it stays. All histories of
the ledger then end under D, and the claim is the filter of basic composition (Rogers et al. 2016). Stop at the
first fit that would leave D. After a history h with (a, b) left, P(S | h) <= e^a Q(S | h) + b: if the next fit is
(e, d)-DP, induction from the end and min(1, .) give P(S | h) <= b - d + E_P min(1, e^(a-e) Q(S | h, output)) <=
b - d + e^e E_Q min(1, ...) + d <= e^a Q(S | h) + b. This is for fits one after the other. A fit without mu is only
known as a whole, so fits that run at the same time and choose by each other's releases need more: (epsilon, delta)
of interactive mechanisms add up under concurrent composition as well (Lyu 2022), also when they are chosen on the
way (Haney et al. 2023).

Rules B and D must not be mixed within one ledger. After an early result one would go on under B where
the likelihood ratio is already large, and under D where it is small: each part may fail with
probability up to the ceiling's delta, and together with twice that. This is why the first fit
decides, before anything was released, and why a first fit without mu is not handed back once others
are charged (`Reservation.release`): the rule would change after a release.

Sampled noise has a tiny error (`noise_error`, a and b). For neighbouring data sets let V be the outputs
that can be drawn on both. The drawn laws p, q and the exact ones P, Q of a fit satisfy, whatever came
before, p(S) <= e^a P(S and V) + b and q(S) >= e^-a Q(S and V). Step by step over the fits the a and the
b add up, and p(S) <= e^a P(S and V) + b <= e^a (e^E' Q(S and V) + D') + b <= e^(E' + 2a) q(S) + e^a D' + b.
Rule B therefore uses the M of E' = E - 2a and D' = e^-a (D - b).

*Parts.* A ledger may name parts whose records have no record, and no group, in common
(`BudgetAccountant.disjoint`). A fit of a part reads its records only; a fit of no part may read all. The sequence
of a part holds the fits of no part and its own, in order of time; the records outside all parts have the fits of
no part alone. A fit is admitted if rules A to D admit it at the end of each sequence that it enters: of one, if it
belongs to a part, and of all, if it belongs to none. Then everything released under the ledger is (E, D)-DP:

Two neighbouring tables differ in one part p only, or outside all parts. Whatever was released before, a fit of
another part reads the same records on both, so its output has the same law on both. In the likelihood ratio of a
history its factor is 1: it is a coin of the adaptive process of sequence p. This process may choose its next fit
by looking at it, as by any coin, so the proof above holds for sequence p word for word. "The first fit" is the
first one of the sequence, and it is chosen before anything of p was released: what other parts released before it
are coins. One part may go by rule D and another by A to C. A fit of no part that is charged after a fit of p comes
after it in sequence p, whatever comes first in other sequences. Only the fits of sequence p add their errors of
drawn noise: of another part the drawn laws are equal on both tables, which adds nothing to a or b. Parts that run
at the same time are interactive mechanisms on data that the two tables share; an adversary that knows all other
records can run them itself, so the concurrent composition of all parts is the composition of sequence p.

A row that is handed back leaves every sequence that it is in. A fit without mu that comes first in one of them
stays charged once that sequence holds others (`skdp.privacy.budget.parts.returned_state`).

*What the parts must be.* The proof needs that neighbouring tables differ in one part. Let every record have its
part by its position, from coins that read no record. Condition on the coins: a replaced or zeroed record stays in
its part, the tables of all other parts are equal, and the two tables of its own part are neighbours. A mixture
over coins of (E, D)-DP pairs is (E, D)-DP. Under add-remove each record (or group) needs a secret coin of its own:
couple the two tables such that those who are in both have equal coins; the one who comes or goes then is in one
part, and nobody else moves. A split by value (by date, site or label) is sound under zero-out, where the absent
record stays in its part, and under add-remove. Under replace-one it is not: the record may leave one part and
enter another, which pays in both. A split by labels of groups from fresh coins is sound, also if the replaced
group has another label or another number of rows: exchanging the old label and the new one in a uniform choice of
labels gives a uniform one.

For Gaussian fits this is never worse than the sum of zCDP (rho = mu^2 / 2), because mu-GDP is converted exactly. A
filter is proven for mu^2. None is proven for privacy loss distributions that are chosen by looking at results.

Tolerance. `gaussian_mu` rounds M down by 1e-10. Rule B gives back 9.5e-11 of that, so it stays below the true
bound. Rule A allows 1e-12 of E for the rounding of decimal numbers (3 times 0.1 is more than 0.3).

Scores of a search on private rows are not covered, nor are the parameters that are chosen by them.

References
----------
A. Smith and A. Thakurta, Fully adaptive composition for Gaussian differential privacy (2022).
A. Koskela, M. Tobaben and A. Honkela, Individual privacy accounting with Gaussian differential
privacy, ICLR 2023.
R. Rogers, A. Roth, J. Ullman and S. Vadhan, Privacy odometers and filters, NeurIPS 2016.
X. Lyu, Composition theorems for interactive differential privacy, NeurIPS 2022.
S. Haney, M. Shoemate, G. Tian, S. Vadhan, A. Vyrros, V. Xu and W. Zhang, Concurrent composition for
interactive differential privacy with adaptive privacy-loss parameters, CCS 2023.
"""

import functools
import math
from collections.abc import Mapping
from typing import NamedTuple, TypeAlias

from scipy.special import log_ndtr

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.accounting import compose_mu, gaussian_epsilon, gaussian_mu, pure_mu

_TOLERANCE_MU, _TOLERANCE_PURE = 9.5e-11, 1e-12  # relative margin of rules B and A; see the docstring


class Ceiling(NamedTuple):
    """The ceiling and the settings of a ledger file; `kept` is False for a temporary one.

    `allow_seeded` is True where fits with a seed are admitted, for tests.
    """

    identity: str
    epsilon: float
    delta: float
    kept: bool
    allow_seeded: bool = False


class Charge(NamedTuple):
    """The part of a row that admission looks at."""

    epsilon: float
    delta: float
    mu: float  # inf: none is proven
    pure: bool
    log_error: float
    tail: float

    @property
    def approximate(self) -> bool:
        """Whether the fit is (epsilon, delta)-DP only."""
        return self.mu == math.inf


# The charges to the records of each part, by its name, in order of time. None stands for the records of no part.
Sequences: TypeAlias = Mapping[str | None, list[Charge]]


@functools.lru_cache(maxsize=64)
def _largest_mu(epsilon: float, delta: float) -> float:
    """M of rule B, 0 where no Gaussian noise is enough."""
    return gaussian_mu(epsilon, delta) if epsilon > 0.0 and delta > 0.0 else 0.0


def _noise_error(fits: list[Charge]) -> float:
    return math.fsum(fit.log_error for fit in fits)


def _exact_delta(fits: list[Charge], ceiling: Ceiling) -> float:
    """D' of rule B: the rest of delta for the exact mechanisms; at most 0 if none is left."""
    tail = math.fsum(fit.tail for fit in fits)
    return (ceiling.delta - tail) * math.exp(-_noise_error(fits))


def _allowed_mu(fits: list[Charge], ceiling: Ceiling) -> float:
    epsilon = ceiling.epsilon - 2.0 * _noise_error(fits)
    return _largest_mu(epsilon, _exact_delta(fits, ceiling))


def _total_mu(fits: list[Charge]) -> float:
    return compose_mu(fit.mu for fit in fits)


def _pure_sum(fits: list[Charge]) -> float:
    """Sum of epsilon where every fit is pure, else inf."""
    return math.fsum(fit.epsilon for fit in fits) if all(fit.pure for fit in fits) else math.inf


def _basic_left(fits: list[Charge], ceiling: Ceiling) -> tuple[float, float] | None:
    """What basic composition leaves of the ceiling, None if it is passed."""
    epsilon = ceiling.epsilon * (1.0 + _TOLERANCE_PURE) - math.fsum(fit.epsilon for fit in fits)
    delta = ceiling.delta * (1.0 + _TOLERANCE_PURE) - math.fsum(fit.delta for fit in fits)
    return (epsilon, delta) if epsilon >= 0.0 and delta >= 0.0 else None


def admits(fits: list[Charge], ceiling: Ceiling) -> bool:
    """Rules A to D of this module; `fits` in order of time."""
    if fits[0].approximate:
        return _basic_left(fits, ceiling) is not None
    if any(fit.approximate for fit in fits):
        return False
    if _pure_sum(fits) <= ceiling.epsilon * (1.0 + _TOLERANCE_PURE):
        return True
    if _total_mu(fits) <= _allowed_mu(fits, ceiling) * (1.0 + _TOLERANCE_MU):
        return True
    return len(fits) == 1 and fits[0].epsilon <= ceiling.epsilon and fits[0].delta <= ceiling.delta


def spent_by(fits: list[Charge], ceiling: Ceiling) -> tuple[float, float]:
    """Smallest cost of the charged fits, proven if the fits were fixed beforehand; the ceiling always is."""
    if not fits:
        return 0.0, 0.0
    if fits[0].approximate:
        return math.fsum(fit.epsilon for fit in fits), math.fsum(fit.delta for fit in fits)
    candidates = [(ceiling.epsilon, ceiling.delta), (_pure_sum(fits), 0.0)]
    if len(fits) == 1 and fits[0].delta <= ceiling.delta:
        candidates.append(fits[0][:2])
    delta = _exact_delta(fits, ceiling)
    if delta > 0.0:
        epsilon = gaussian_epsilon(_total_mu(fits), delta) + 2.0 * _noise_error(fits)
        if epsilon <= ceiling.epsilon:
            candidates.append((epsilon, ceiling.delta))
    return min(candidates)


def admits_all(sequences: Sequences, fit: Charge, ceiling: Ceiling) -> bool:
    """Whether `fit` is admitted at the end of every one of these sequences."""
    return all(admits([*charged, fit], ceiling) for charged in sequences.values())


def spent_by_worst(sequences: Sequences, ceiling: Ceiling) -> tuple[float, float]:
    """Smallest (epsilon, delta) that holds for every part; each sequence as in `spent_by`.

    The largest epsilon may be of one part and the largest delta of another.
    """
    costs = [spent_by(charged, ceiling) for charged in sequences.values()]
    return max(epsilon for epsilon, _ in costs), max(delta for _, delta in costs)


def remaining_after_all(sequences: Sequences, ceiling: Ceiling) -> tuple[float, float]:
    """Largest epsilon of one further fit that every one of these sequences admits, and its delta.

    A Gaussian fit of a smaller epsilon or delta has a smaller mu, so each sequence admits the smallest numbers of
    all of them; likewise for pure fits.
    """
    lefts = [_gaussian_left(charged, ceiling) for charged in sequences.values()]
    gauss = min(epsilon for epsilon, _ in lefts), min(delta for _, delta in lefts)
    pure = min(_pure_left(charged, ceiling) for charged in sequences.values())
    if gauss[0] >= pure and gauss[1] > 0.0:
        return gauss if gauss[0] > 0.0 else (0.0, 0.0)
    return max(pure, 0.0), 0.0


def _mu_left(fits: list[Charge], ceiling: Ceiling) -> float:
    """What rule B leaves: without cancellation, and a little less, so that a fit of this size is admitted."""
    allowed, used = _allowed_mu(fits, ceiling), _total_mu(fits)
    return math.sqrt((allowed - used) * (allowed + used)) * (1.0 - 1e-9) if allowed > used else 0.0


def _basic_point(fits: list[Charge], ceiling: Ceiling) -> tuple[float, float]:
    """What rule D leaves, a little less."""
    epsilon, delta = _basic_left(fits, ceiling) or (0.0, 0.0)
    epsilon = max(0.0, epsilon - 2e-12 * ceiling.epsilon)
    return (epsilon, max(0.0, delta - 2e-12 * ceiling.delta)) if epsilon else (0.0, 0.0)


def _gaussian_left(fits: list[Charge], ceiling: Ceiling) -> tuple[float, float]:
    """(epsilon, delta) of the largest further Gaussian fit; under rule D of a fit of any kind."""
    if not fits:
        return ceiling.epsilon, ceiling.delta
    if fits[0].approximate:
        return _basic_point(fits, ceiling)
    left = _mu_left(fits, ceiling)
    if not left:
        return 0.0, ceiling.delta
    return min(gaussian_epsilon(left, ceiling.delta), ceiling.epsilon) * (1.0 - 1e-9), ceiling.delta


def _pure_left(fits: list[Charge], ceiling: Ceiling) -> float:
    """Epsilon of the largest further pure fit."""
    if not fits:
        return ceiling.epsilon
    if fits[0].approximate:
        return _basic_point(fits, ceiling)[0]
    # Rule B admits a pure fit up to this mu, and mu = 2 Phi^-1(e^epsilon / (1 + e^epsilon)).
    half = _mu_left(fits, ceiling) / 2.0
    by_mu = (log_ndtr(half) - log_ndtr(-half)) * (1.0 - 1e-9)
    return max(0.0, ceiling.epsilon - _pure_sum(fits), float(by_mu))


def check_number(name: str, value: float, low: float, high: float, what: str) -> float:
    """`value` as a float strictly between `low` and `high`; TypeError or ValueError otherwise."""
    try:
        number = float(value)
    except (TypeError, ValueError) as error:
        raise TypeError(f"{name} must be a number, got {type(value).__name__}.") from error
    if not low < number < high:
        raise ValueError(f"{name} must be {what}, got {number!r}.")
    return number


def check_delta(delta: float) -> float:
    """`delta` as a float in [0, 1)."""
    return check_number("delta", delta, -math.ulp(0.0), 1.0, "at least 0 and below 1") + 0.0


def check_charge(
    estimator: str, epsilon: float, delta: float, mu: float | None, pure: bool, noise_error: tuple[float, float]
) -> Charge:
    """The charge of one fit (parameters of `BudgetAccountant.reserve`), or the reason for none."""
    if epsilon == math.inf:
        raise PrivacyBudgetExceeded(
            f"{estimator} claims no privacy (epsilon=inf): no ceiling holds it. Fit it without an"
            " accountant, or choose a finite epsilon."
        )
    epsilon = check_number("epsilon", epsilon, 0.0, math.inf, "positive and finite")
    delta = check_delta(delta)
    error, tail = (
        check_number("noise_error", part, -math.ulp(0.0), 1.0, "at least 0 and below 1") + 0.0
        for part in noise_error
    )
    if pure:
        if delta or mu is not None or error or tail:
            raise ValueError("A pure fit has delta=0, no mu, and its noise error in epsilon.")
        return Charge(epsilon, 0.0, pure_mu(epsilon), True, 0.0, 0.0)
    if mu is None:
        if error or tail:
            raise ValueError("A fit without mu has its noise error in (epsilon, delta).")
        return Charge(epsilon, delta, math.inf, False, 0.0, 0.0)
    mu = check_number("mu", mu, 0.0, math.inf, "positive and finite")
    if not delta or mu > gaussian_mu(epsilon, delta) * (1.0 + 1e-6):
        raise ValueError(f"mu={mu!r} costs more than the claimed ({epsilon!r}, {delta!r}).")
    return Charge(epsilon, delta, mu, False, error, tail)


def refusal(estimator: str, fit: Charge, sequences: Sequences, ceiling: Ceiling) -> str:
    """Message for a fit that is not admitted, about the first sequence that refuses it."""
    part, charged = next((name, each) for name, each in sequences.items() if not admits([*each, fit], ceiling))
    inside = "" if part is None else f" in the part {part!r}"
    if fit.approximate and charged and not charged[0].approximate:
        return (
            f"{estimator} was refused before it read a value: it has no proven mu, and this ledger, which began"
            f"{inside} with another kind of fit, adds up mu^2 or pure epsilons. A fit has no mu if it draws "
            "minibatches, perturbs minima (AMP, second_stage='amp') or searches (DPRandomizedSearch). Use full "
            "batches (batch_size of at least the number of records), or give the fit an accountant of its own, or "
            "one in which such a fit comes first: all is then added by basic composition. If it has records of "
            "its own, they can be a part of the ledger, with a rule of its own (BudgetAccountant.disjoint)."
        )
    spent = spent_by(charged, ceiling)
    left = remaining_after_all(sequences, ceiling)
    return (
        f"{estimator} was refused before it read a value: ({fit.epsilon:g}, {fit.delta:g}) on top"
        f" of ({spent[0]:.6g}, {spent[1]:g}) spent by {len(charged)} fits{inside} would pass the ceiling"
        f" ({ceiling.epsilon:g}, {ceiling.delta:g}). The largest fit that is still admitted costs"
        f" ({left[0]:.6g}, {left[1]:g}).{_of_mixed_kinds(fit, charged, ceiling)}"
    )


def _of_mixed_kinds(fit: Charge, charged: list[Charge], ceiling: Ceiling) -> str:
    """Why plain addition of the epsilons misleads where pure fits stand beside Gaussian ones."""
    fits = [*charged, fit]
    if any(each.approximate for each in fits) or len({each.pure for each in fits}) < 2:
        return ""
    pure = max(each.mu for each in fits if each.pure)
    return (
        " Epsilons add up only where all fits are pure (delta=0). Beside Gaussian ones a pure fit counts by its"
        f" mu, up to {pure:.4g} here: all fits together would have mu={_total_mu(fits):.4g}, and this ceiling"
        f" allows {max(0.0, _allowed_mu(fits, ceiling)):.4g} (user guide, 'Budgets across fits', rules A and B)."
        " Give pure fits an accountant of their own."
    )
