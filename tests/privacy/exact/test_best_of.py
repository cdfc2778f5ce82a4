"""The best of a random number of trials: formulas, finite mechanisms, an adversary, other code, the session."""

import copy
import itertools
import logging
import math
import pickle
import warnings

import numpy as np
import pytest
from scipy.special import ndtr
from scipy.stats import chi2, norm

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import BoundedStatistic, BudgetAccountant, PrivacyReport, PrivacySession
from skdp.privacy.accounting import gaussian_epsilon, gaussian_mu, recheck_epsilon
from skdp.privacy.accounting.pairs import GAUSSIAN, NormalPair, discretised
from skdp.privacy.accounting.rdp import ORDERS, epsilon_of
from skdp.privacy.accounting.roots import last_safe
from skdp.privacy.log import LOGGER
from skdp.privacy.mechanisms.best_of.bound import best_of_gaussian, gaussian_hinges
from skdp.privacy.mechanisms.best_of.calibration import approximate_base, gaussian_base, trial_error
from skdp.privacy.mechanisms.best_of.noise import draw_trial_count
from skdp.privacy.mechanisms.best_of.pairs import best_of_approximate, best_of_pair
from skdp.privacy.mechanisms.best_of.recheck import recheck_best_of
from skdp.privacy.mechanisms.best_of.trials import TrialCount
from skdp.privacy.noise.keystream import KeyStream
from skdp.privacy.session.ledger import Ledger
from tests.privacy.audit import epsilon_lower

DELTA = 1e-5
# Of the prototype: what one trial may cost at totals 1, 2, 4 for 10 expected trials, by the bound and by Renyi DP.
BASES = {0: (0.681, 1.388, 2.834), 1: (0.642, 1.309, 2.674)}
RENYI = {0: (0.501, 1.046, 2.210), 1: (0.406, 0.855, 1.830)}
each_shape = pytest.mark.parametrize("shape", [0, 1])


def phi(trials, rest):
    """The generating function at 1 - rest."""
    weight = trials.rate + (1 - trials.rate) * rest
    if trials.shape == 0:
        return np.log(weight) / math.log(trials.rate)
    return (1 / weight - 1) * trials.rate / (1 - trials.rate)


def best_of_rdp(trials, curve, delta):
    """Epsilon of the best of K trials whose Renyi-DP curve at `ORDERS` is ``curve``, in both directions.

    Papernot and Steinke (2022, theorem 2). With C = sup phi'(s) / phi'(s') over what Q and Q' allow,

        integral of (q phi'(s))^a (q' phi'(s'))^(1-a) <= E K C^(a-1) integral of q^a q'^(1-a),

    because phi'(s)^a phi'(s')^(1-a) = phi'(s) (phi'(s) / phi'(s'))^(a-1) and phi'(s) <= E K. With u = 1 - s,
    v = 1 - s' and W(u) = g + (1 - g) u, C = sup (W(v) / W(u))^(shape+1). W(u) is the probability of an event of
    the output and a coin: the coin shows heads, with probability g, or the score is above y. So RDP of order c and
    value r(c) from Q' to Q gives W(v)^c W(u)^(1-c) <= e^((c-1) r(c)), hence
    W(v) <= (e^r W(u))^(1-1/c) <= e^(r (1-1/c)) g^(-1/c) W(u), as W(u) >= g. Together, for every order c > 1, the
    released trial has RDP of order a of at most

        r(a) + (shape + 1) ((1 - 1/c) r(c) + log(1/g) / c) + log(E K) / (a - 1).
    """
    both = float(np.min((1 - 1 / ORDERS) * curve + math.log(1 / trials.rate) / ORDERS))
    return epsilon_of(curve + (trials.shape + 1) * both + math.log(trials.exact_mean) / (ORDERS - 1), delta)


def best_of_epsilon(trials, mu):
    """Epsilon of the best of K exact mu-GDP trials, by the pointwise bound; Renyi DP is never smaller."""
    high = 8.0
    found = last_safe(lambda e: best_of_gaussian(trials, mu, e) - DELTA, high, 0.0, 1e-7 * high)
    assert found < best_of_rdp(trials, ORDERS * (0.5 * mu * mu), DELTA)
    return found


# ---------------------------------------------------------------------- the law of the number of trials


@each_shape
@pytest.mark.parametrize("mean", [1.25, 10, 300])
def test_the_law_has_its_mean_and_its_derivative(shape, mean):
    trials = TrialCount(mean, shape)
    g, k = trials.rate, np.arange(1, 100_000)
    masses = g * (1 - g) ** (k - 1) if shape else (1 - g) ** k / (k * math.log(1 / g))
    assert masses.sum() == pytest.approx(1, rel=1e-9)
    assert masses @ k == pytest.approx(mean, rel=1e-7)
    assert trials.exact_mean == pytest.approx(mean, rel=1e-12)
    for s in (0.0, 0.3, 0.9, 0.999):
        slope = float(trials.slope(np.array([1 - s]))[0])
        assert slope == pytest.approx(float(masses @ (k * s ** (k - 1.0))), rel=1e-6)
        assert phi(trials, 1 - s) == pytest.approx(float(masses @ s**k), rel=1e-6, abs=1e-12)


@each_shape
def test_drawn_numbers_have_the_law(shape):
    """A chi-square test with a false-alarm rate of 1e-7; the law of another mean is caught."""
    trials, stream, runs = TrialCount(5, shape), KeyStream(11), 4000
    drawn = np.array([draw_trial_count(stream, trials) for _ in range(runs)])

    def statistic(law):
        g, k = law.rate, np.arange(1, 13)
        masses = g * (1 - g) ** (k - 1) if shape else (1 - g) ** k / (k * math.log(1 / g))
        expected = runs * np.append(masses, 1 - masses.sum())
        seen = np.append([np.sum(drawn == i) for i in k], np.sum(drawn > 12))
        return float(np.sum((seen - expected) ** 2 / expected))

    limit = chi2.isf(1e-7, 12)
    assert statistic(trials) < limit < statistic(TrialCount(6.5, shape))


def test_means_and_shapes_out_of_range_are_refused():
    for mean in (1, 0, -3, 1001, math.nan, math.inf):
        with pytest.raises(ValueError, match="mean_trials"):
            TrialCount(mean)
    with pytest.raises(ValueError, match="shape"):
        TrialCount(10, 2)


# ---------------------------------------------------------------------- the bound


@each_shape
def test_bases_are_those_of_the_prototype_and_of_renyi_dp(shape):
    trials = TrialCount(10, shape)
    for total, expected, weaker in zip((1.0, 2.0, 4.0), BASES[shape], RENYI[shape]):
        mu, base = gaussian_base(trials, total, DELTA)
        assert base == pytest.approx(expected, abs=1.5e-3)
        assert base == gaussian_epsilon(mu, DELTA)
        assert best_of_epsilon(trials, mu) == pytest.approx(total, rel=1e-3)
        curve = ORDERS * (0.5 * gaussian_mu(weaker, DELTA) ** 2)
        assert best_of_rdp(trials, curve, DELTA) == pytest.approx(total, rel=5e-3)
        assert base > 1.2 * weaker


@pytest.mark.parametrize(("shape", "total"), [(0, 1.0), (1, 0.1), (1, 1.0), (1, 4.0)])
def test_the_formula_and_a_discretised_pair_agree(shape, total):
    """Both bound the same from above, by other sums: within 1 % (and 0.1 %)."""
    trials = TrialCount(10, shape)
    mu, _ = gaussian_base(trials, total, DELTA)
    grid = mu / 200
    first, masses, infinite = discretised(NormalPair(GAUSSIAN, 1 / mu, 1.0, 1), grid, -32.0)
    loss = (first + np.arange(masses.size)) * grid
    for epsilon in (0.5 * total, total):
        pair = best_of_pair(trials, loss, masses, infinite, epsilon)
        assert pair == pytest.approx(best_of_gaussian(trials, mu, epsilon), rel=1e-2)
    low, high = 0.9 * total, 1.1 * total
    for _ in range(30):
        middle = 0.5 * (low + high)
        if best_of_pair(trials, loss, masses, infinite, middle) > DELTA:
            low = middle
        else:
            high = middle
    assert high == pytest.approx(best_of_epsilon(trials, mu), rel=1e-3)


@pytest.mark.parametrize(
    ("z", "expected", "renyi"), [(1.5, (1.94, 2.05), (2.59, 3.08)), (4.0, (0.593, 0.628), (0.809, 0.985))]
)
def test_a_sampled_fit_is_bounded_by_its_two_pairs(z, expected, renyi):
    """500 Poisson batches of rate 0.02, composed by dp-accounting; a record that leaves, and one that comes."""
    from dp_accounting.pld import privacy_loss_distribution

    one = privacy_loss_distribution.from_gaussian_mechanism(
        z, value_discretization_interval=1e-3, log_mass_truncation_bound=-45, sampling_prob=0.02
    )
    whole = one.self_compose(500)
    for shape, least, weaker in zip((0, 1), expected, renyi):
        totals = []
        for pmf in (whole._pmf_remove, whole._pmf_add):
            dense = pmf.to_dense_pmf()
            masses = np.maximum(dense._probs, 0.0)
            loss = (dense._lower_loss + np.arange(masses.size)) * dense._discretization
            low, high = 0.1, 6.0
            for _ in range(20):
                middle = 0.5 * (low + high)
                delta = best_of_pair(TrialCount(10, shape), loss, masses, dense._infinity_mass, middle)
                low, high = (middle, high) if delta > DELTA else (low, middle)
            totals.append(high)
        # More than one fit, less than Renyi DP of dp-accounting (RepeatAndSelect, computed once).
        assert max(totals) == pytest.approx(least, rel=5e-3)
        assert whole.get_epsilon_for_delta(DELTA) < min(totals)
        assert max(totals) < 0.8 * weaker


def finite_cases(mechanisms, seed):
    """Bound and truth of finite trials, for the worst order of their outputs."""
    rng = np.random.default_rng(seed)
    for _ in range(mechanisms):
        size = rng.integers(2, 6)
        q = rng.dirichlet(np.ones(size) * rng.choice([0.3, 1, 5]))
        r = q * np.exp(rng.normal(0, rng.choice([0.1, 0.5, 1.5]), size))
        q, r = np.maximum(q, 1e-9), np.maximum(r, 1e-9)
        q, r = q / q.sum(), r / r.sum()
        order = np.argsort(np.log(q / r))
        loss, masses = np.log(q / r)[order], q[order]
        for shape, mean in itertools.product((0, 1), (1.5, 3, 10, 50)):
            trials = TrialCount(mean, shape)
            for epsilon in (0.0, 0.3, 1.0, 2.0, 4.0):
                bound = best_of_pair(trials, loss, masses, 0.0, epsilon)
                yield bound, worst_order(trials, q, r, epsilon)


def worst_order(trials, q, r, epsilon):
    found = 0.0
    for order in itertools.permutations(range(q.size)):
        # 1 - s from the top, so that small rests are exact.
        of_q, of_r = (np.append(np.cumsum(p[list(order)][::-1])[::-1], 0.0) for p in (q, r))
        a, b = (-np.diff(1 - phi(trials, np.minimum(p, 1.0))) for p in (of_q, of_r))
        found = max(found, float(np.maximum(a - math.exp(epsilon) * b, 0.0).sum()))
    return found


def check_finite(mechanisms, seed, attained):
    cases = np.array(list(finite_cases(mechanisms, seed)))
    bound, truth = cases.T
    assert np.all(truth <= bound * (1 + 1e-7) + 1e-11)
    clear = bound > 1e-6
    assert np.max(truth[clear] / bound[clear]) > attained
    return len(cases)


def test_no_finite_mechanism_and_no_order_of_its_outputs_exceeds_the_bound():
    assert check_finite(8, 0, 0.98) == 320


@pytest.mark.slow
def test_18000_finite_cases():
    """The bound is attained by some of them, so that nothing smaller holds for all."""
    assert check_finite(450, 1, 0.999) == 18_000


def test_the_bound_of_approximate_trials_holds_for_their_dominating_pair():
    """The four answers of the pair, in every order; the bound for one with a smaller epsilon does not."""
    e, d = 0.4, 1e-3
    p = (1 - d) / (1 + math.exp(-e))
    q, r = np.array([d, p, 1 - d - p, 1e-300]), np.array([1e-300, 1 - d - p, p, d])
    for shape, epsilon in itertools.product((0, 1), (0.0, 0.5, 1.0)):
        trials = TrialCount(4, shape)
        truth = worst_order(trials, q, r, epsilon)
        assert truth <= best_of_approximate(trials, e, d, epsilon) * (1 + 1e-9)
    assert truth > 0.5 * best_of_approximate(trials, e, d, epsilon)
    half = best_of_approximate(TrialCount(4), 0.5 * e, d, e)
    assert worst_order(TrialCount(4), q, r, e) > 1.5 * half


@each_shape
def test_hinges_are_above_the_function_that_they_bound(shape):
    """Against the maximum over a fine grid of s, of many bases, with and without errors of drawn noise."""
    rng = np.random.default_rng(2)
    for case in range(30):
        trials, mu = TrialCount(1 + 10 ** rng.uniform(-1, 2.9), shape), 10 ** rng.uniform(-2, 1)
        a, b = (0.0, 0.0) if case % 2 else (1e-4, 10 ** rng.uniform(-10, -4))
        found = gaussian_hinges(trials, mu, (a, b))
        x = np.linspace(-37, 8.5, 3000)
        u = ndtr(x) - a - b
        v = np.minimum(ndtr(x + mu) + a, 1.0)[u >= 0]
        top, low = trials.slope(u[u >= 0]), trials.slope(v)
        w = np.exp(np.linspace(-0.5, found.logs.max(), 40))
        most = np.maximum(top[:, None] - low[:, None] * w, 0.0).max(axis=0)
        hinged = found.rises @ np.maximum(1 - w * np.exp(-found.logs)[:, None], 0.0)
        assert np.all(most <= hinged + 1e-11 * trials.mean)
        # With errors the first point of the curve is no point of this grid.
        assert a or np.all(hinged <= most + 1e-3 * trials.mean)


# ---------------------------------------------------------------------- an adversary


def adversary(trials, mu, epsilon):
    """The delta of the order "z1 < z < z0 lowest, then z > z0, then the rest", and the best z1 and z0."""
    found = (0.0, 0.0, 0.0)
    for z0 in np.linspace(epsilon / mu - 6, epsilon / mu + mu / 2 + 4, 80):
        z1 = np.linspace(-8, z0, 400)
        gains = []
        for center in (mu, 0.0):
            low = norm.cdf(z0 - center) - norm.cdf(z1 - center)
            gains.append(phi(trials, 1 - low - norm.sf(z0 - center)) - phi(trials, 1 - low))
        delta = gains[0] - math.exp(epsilon) * gains[1]
        best = int(np.argmax(delta))
        found = max(found, (float(delta[best]), float(z1[best]), float(z0)))
    return found


@pytest.mark.parametrize(("shape", "total"), [(0, 1.0), (1, 1.0), (1, 4.0)])
def test_an_adversary_reaches_the_claim_but_for_3_percent_and_no_more_than_it(shape, total):
    """So does the mutant that charges the winner's fit alone: it claims less than the adversary reaches."""
    trials = TrialCount(10, shape)
    mu, base = gaussian_base(trials, total, DELTA)
    low, high = 0.0, 2 * total
    for _ in range(14):
        middle = 0.5 * (low + high)
        low, high = (middle, high) if adversary(trials, mu, middle)[0] > DELTA else (low, middle)
    assert 0.97 * total < low < total
    assert low > 1.1 * base


def sampled_attack(trials, runs, mu, z1, z0, rng):
    """Whether the best of K trials, ordered by the adversary, is above z0, on both data sets."""
    found = []
    for center in (0.0, mu):
        k = rng.geometric(trials.rate, runs)
        z = rng.normal(center, 1.0, k.sum())
        rank = np.where(z > z0, 1, np.where(z > z1, 0, 2))
        best = np.maximum.reduceat(rank, np.append(0, np.cumsum(k)[:-1]))
        found.append((best == 1).astype(float))
    return found


def test_an_attack_by_simulation_stays_below_the_claim_and_catches_the_mutant():
    """At (2, 0.05) and 10 trials the attack shows 60 % of the claim, and more than the mutant claims.

    The mutant charges the winner's fit and score alone, the base epsilon. The false-alarm rate is below 1e-6.
    """
    trials, total, delta = TrialCount(10), 2.0, 0.05
    mu, base = gaussian_base(trials, total, delta)
    low, high = sampled_attack(trials, 40_000, mu, -1.11, 2.25, np.random.default_rng(3))
    shown = epsilon_lower(low, high, delta, 0.5)
    assert 0.6 * total < shown < total
    assert shown > 1.5 * base


# ---------------------------------------------------------------------- other code


def test_dp_accountings_repeat_and_select_is_reproduced():
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    for shape, mean, mu in ((0, 10, 0.2), (1, 10, 0.2), (1, 50, 0.5)):
        event = dp_accounting.dp_event.RepeatAndSelectDpEvent(
            dp_accounting.GaussianDpEvent(1 / mu), mean=mean, shape=shape
        )
        theirs = RdpAccountant(ORDERS).compose(event).get_epsilon(DELTA)
        ours = best_of_rdp(TrialCount(mean, shape), ORDERS * (0.5 * mu * mu), DELTA)
        assert ours == pytest.approx(theirs, rel=1e-3)


def row_of(trials, total, delta=DELTA, gaussian=True):
    row = {
        "name": "best_of", "count": 1, "epsilon": total, "delta": delta, "mean_trials": trials.mean,
        "shape": trials.shape,
    }  # fmt: skip
    if gaussian:
        mu, base = gaussian_base(trials, total, delta)
        log_error, tail = trial_error(base, delta)
        return {
            **row, "base_epsilon": base, "base_delta": delta, "base_mu": mu, "log_error": log_error, "tail": tail
        }  # fmt: skip
    base, part = approximate_base(trials, total, delta)
    return {**row, "base_epsilon": base, "base_delta": part, "log_error": 0.0, "tail": 0.0}


@each_shape
@pytest.mark.parametrize("gaussian", [True, False])
@pytest.mark.parametrize(("mean", "total", "delta"), [(1.5, 0.05, 1e-10), (10, 1.0, 1e-5), (1000, 4.0, 1e-6)])
def test_the_recheck_takes_what_was_calibrated_and_notices_more(shape, gaussian, mean, total, delta):
    row = row_of(TrialCount(mean, shape), total, delta, gaussian)
    assert 0.93 * delta < recheck_best_of(row) <= delta
    assert recheck_epsilon([row], delta) == total
    key = "base_mu" if gaussian else "base_epsilon"
    assert recheck_epsilon([{**row, key: 1.1 * row[key]}], delta) == math.inf
    assert recheck_epsilon([{**row, "mean_trials": 1.2 * mean}], delta) == math.inf
    assert recheck_epsilon([row], 0.9 * delta) == math.inf
    # Beside others it is added by basic composition.
    pure = {"name": "laplace", "epsilon": 0.5, "count": 1}
    assert recheck_epsilon([row, pure], delta) == total + 0.5


def test_the_errors_of_trials_cover_two_sessions():
    for epsilon, delta in ((0.3, 1e-6), (30.0, 1e-9)):
        ledger = Ledger(epsilon, delta, "replace-one", "record")
        log_error, tail = trial_error(epsilon, delta)
        assert log_error >= 2 * (ledger.epsilon_numerical_error / 2)
        assert tail >= 2 * ledger.delta_numerical_error * (1 - 1e-12)
    # An error costs something.
    trials = TrialCount(10)
    exact = best_of_gaussian(trials, 0.2, 1.0)
    assert best_of_gaussian(trials, 0.2, 1.0, (1e-3, 1e-6)) > exact + 9e-6


# ---------------------------------------------------------------------- the session


def opened(**more):
    return PrivacySession(**{"epsilon": 1.0, "delta": DELTA, "best_of": True, **more})


def test_the_best_trial_is_released_with_one_row_and_nothing_else():
    accountant = BudgetAccountant(3.0, 1e-4)
    runs = []

    def trial():
        runs.append(len(runs))
        return float(runs[-1] % 3), runs[-1]

    with opened(accountant=accountant) as session:
        plan = session.plan_best_of(20)
        found = session.best_of(plan, trial)
        report = session.report()
        with pytest.raises(PrivacyBudgetExceeded, match="were made"):
            session.best_of(plan, trial)
    assert found % 3 == min(2, len(runs) - 1)
    (row,) = report.mechanisms
    assert row["count"] == 1
    for _ in range(3):  # of other numbers of trials, most likely
        with opened(accountant=False) as other:
            other.best_of(other.plan_best_of(20), lambda: (0.0, "found"))
            assert other.report().mechanisms == [row]
    assert (report.epsilon, report.delta, report.mu) == (1.0, DELTA, math.inf)
    assert report.epsilon_at(DELTA) == 1.0
    assert 0.5 < report.epsilon_at(1e-4) < 0.95 < 1.05 < report.epsilon_at(1e-6) < 1.5
    assert report.epsilon_at(1e-9) == math.inf  # below what the tails of the trials' noise miss
    assert report.delta_at(1.0) == pytest.approx(DELTA, rel=1e-3)
    assert report.delta_at(report.epsilon_at(1e-4)) == pytest.approx(1e-4, rel=1e-3)
    assert "best of a random number of trials (geometric, mean 20)" in repr(report)
    assert PrivacyReport.from_dict(report.to_dict()) == report
    assert pickle.loads(pickle.dumps(report)) == report
    with pytest.raises(UnsupportedAccounting):
        report.event_for("pld")
    # Rule D: it is a fit without mu, the first of the ledger.
    assert accountant.spent() == (1.0, DELTA)


def test_two_runs_that_differ_in_their_trials_leave_the_same_traces(caplog):
    """Warnings, lines, exceptions and rows are the same whatever trials do, and however many there are."""

    def traces(trial, seed):
        caplog.clear()
        with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG, "skdp"):
            warnings.simplefilter("always")
            session = opened(random_state=seed, accountant=False)
            result = session.best_of(session.plan_best_of(10), trial)
            report = session.report()
        lines = [record.getMessage() for record in caplog.records]
        return result, report, [str(each.message) for each in caught], lines

    def noisy():
        LOGGER.info("a trial")
        warnings.warn("a trial", UserWarning, stacklevel=1)
        np.log(np.zeros(3))
        return 1.0, "model"

    def failing():
        if np.random.default_rng().random() < 0.3:
            raise ValueError("a record")
        return 0.5, "model"

    first = traces(noisy, 1)
    for trial, seed in ((noisy, 2), (failing, 3), (lambda: (math.inf, "model"), 4)):
        assert traces(trial, seed) == first
    # The counter-check: without silence a line would be seen.
    with caplog.at_level(logging.DEBUG, "skdp"):
        LOGGER.info("after")
    assert "after" in caplog.text


def test_trials_that_all_fail_are_one_result():
    def failing():
        raise ValueError("a record")

    accountant = BudgetAccountant(3.0, 1e-4)
    messages = set()
    for trial in (failing, lambda: (math.nan, "model"), lambda: (None, "model")):
        with opened(accountant=accountant) as session, pytest.raises(RuntimeError) as error:
            session.best_of(session.plan_best_of(3), trial)
        assert error.value.__cause__ is error.value.__context__ is None
        messages.add(str(error.value))
    assert len(messages) == 1
    assert accountant.spent()[0] == pytest.approx(3.0)

    # An interrupt is the user's own, and stays charged.
    def interrupted():
        raise KeyboardInterrupt

    accountant = BudgetAccountant(3.0, 1e-4)
    with opened(accountant=accountant) as session, pytest.raises(KeyboardInterrupt):
        session.best_of(session.plan_best_of(3), interrupted)
    assert [row["state"] for row in accountant.ledger()] == ["spent"]


@pytest.mark.filterwarnings("ignore:random_state is a seed")
def test_ties_are_broken_at_random():
    """Of trials with one score each is kept equally often; the first one is not. False alarm below 1e-9."""
    first = 0
    for seed in range(300):
        numbers = itertools.count(1)
        session = opened(accountant=False, random_state=seed)
        plan = session.plan_best_of(50)
        first += session.best_of(plan, lambda numbers=numbers: (0.0, next(numbers))) == 1
    assert first < 80  # with P(K = 1) = 1/50 and E 1/K = 0.08; 300 if the first were kept


def test_sessions_and_plans_for_trials_refuse_everything_else():
    session = opened(accountant=False)
    with pytest.raises(UnsupportedAccounting, match="for trials"):
        session.plan_gaussian(1)
    with pytest.raises(UnsupportedAccounting, match="for trials"):
        session.laplace(BoundedStatistic([0.0], l1=1.0), 0.1)
    with pytest.raises(UnsupportedAccounting, match="best_of=True"):
        PrivacySession(epsilon=1.0, delta=DELTA, accountant=False).plan_best_of(10)
    for more in ({"delta": 0.0}, {"minibatches": True}, {"set_aside": 0.5}):
        with pytest.raises(ValueError, match="best_of=True needs"):
            opened(**more)
    with pytest.raises(ValueError, match="shape"):
        session.plan_best_of(10, shape=2)
    plan = session.plan_best_of(10)
    for other in (copy.copy(plan), opened(accountant=False).plan_best_of(10)):
        with pytest.raises(PrivacyBudgetExceeded, match="another session"):
            session.best_of(other, lambda: (0.0, 1))
    with pytest.raises(UnsupportedAccounting, match="sampler"):
        opened(epsilon=60.0, delta=1e-9, accountant=False).plan_best_of(10)


def test_without_privacy_trials_are_exact():
    session = opened(epsilon=math.inf, accountant=False)
    plan = session.plan_best_of(10)
    assert plan.base_epsilon == plan.base_mu == math.inf
    assert session.best_of(plan, lambda: (0.0, "model")) == "model"
    assert session.report().guarantee == "none"


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:random_state is a seed")
def test_an_attack_on_the_session_stays_below_the_claim_and_catches_the_mutant():
    """The session itself at (4, 0.1) and 3 trials, 12,000 runs on either side; false alarm below 1e-6."""
    total, delta, z1, z0 = 4.0, 0.1, -0.22, 2.41
    rng = np.random.default_rng(5)
    seen = []
    for present in (False, True):
        found = []
        for seed in range(12_000):
            session = opened(epsilon=total, delta=delta, accountant=False, random_state=seed)
            plan = session.plan_best_of(3)

            def trial(center=plan.base_mu * present):
                z = rng.normal(center)
                return (1.0 if z > z0 else 0.0 if z > z1 else 2.0), z > z0

            found.append(float(session.best_of(plan, trial)))
        seen.append(np.array(found))
    shown = epsilon_lower(*seen, delta, 0.5)
    assert 0.6 * total < shown < total
    assert shown > 1.05 * gaussian_base(TrialCount(3), total, delta)[1]
