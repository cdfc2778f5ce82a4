"""Plans and filters (REFEREE 4), adjacency (5, 14), selection (10), keys (17), numerical error (28)."""

import ast
import contextlib
import copy
import dataclasses
import math
import pickle
import threading
import time
from pathlib import Path

import joblib
import numpy as np
import pytest
from scipy.stats import norm

from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import (
    BoundedStatistic,
    BudgetAccountant,
    Prepared,
    PrivacySession,
    accounting,
    mechanisms,
    noise,
)
from skdp.privacy import session as session_package
from skdp.privacy.adjacency import factor
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.laplace.cost import Laplace
from skdp.privacy.mechanisms.top_k import release as top_k_release
from skdp.privacy.mechanisms.top_k.release import TopKMechanism
from skdp.privacy.noise import KeyStream
from skdp.privacy.session.base import Keys, SessionBase
from skdp.privacy.session.ledger import Ledger
from tests.privacy.releases import drawn


def session(**params):
    return PrivacySession(**{"epsilon": 1.0, "delta": 1e-5, "random_state": 0, **params})


def counts(d=4):
    return BoundedStatistic(np.arange(float(d)), l1=1.0, l2=1.0, linf=1.0)


# ------------------------------------------------------------------ the noise that is drawn


@pytest.mark.parametrize(("adjacency", "moves"), [("replace-one", 2), ("zero-out", 1), ("add-remove", 1)])
def test_gaussian_noise_is_the_exact_formula(adjacency, moves):
    s = session(adjacency=adjacency)
    plan = s.plan_gaussian(releases=50)
    assert abs(plan.noise_multiplier - 26.3796) < 1e-3
    released = np.concatenate([s.gaussian(BoundedStatistic(np.zeros(1000), l2=0.5), plan) for _ in range(50)])
    std = plan.noise_multiplier * moves * 0.5
    assert abs(released.std() / std - 1) < 5.2 / math.sqrt(2 * released.size)
    assert abs(released.mean()) < 5.2 * std / math.sqrt(released.size)
    (row,) = s.report().mechanisms
    assert row["count"] == 50
    assert row["noise_multiplier"] >= plan.noise_multiplier * (1 - 1e-12)
    assert math.isclose(row["sensitivity"], moves * 0.5, rel_tol=1e-4)


def test_shares_are_shares_of_mu_squared():
    s = session()
    a, b = s.plan_gaussian(1, 0.25), s.plan_gaussian(3, 0.75)
    mu2 = 1 / a.noise_multiplier**2 + 3 / b.noise_multiplier**2
    mu = accounting.gaussian_mu(1.0, 1e-5)
    assert mu2 <= mu**2
    assert mu2 >= mu**2 * (1 - 1e-4)


def test_laplace_noise():
    s = PrivacySession(epsilon=1.0, delta=0.0, random_state=0)
    released = s.laplace(BoundedStatistic(np.full(40000, 10.0), l1=1.0), 0.5)
    scale = 2 * 1.0 / 0.5
    assert abs(np.abs(released - 10).mean() / scale - 1) < 5.2 / math.sqrt(40000)
    report = s.report()
    assert report.epsilon == pytest.approx(0.5, rel=1e-6)
    assert report.epsilon >= 0.5


def test_selection_prefers_large_scores_and_costs_k_choices():
    s = session(epsilon=8.0)
    scores = BoundedStatistic([0.0, 50.0, 100.0, 0.0, 75.0], linf=0.25)
    assert s.gumbel_top_k(scores, 3, 1.0).tolist() == [2, 4, 1]
    (row,) = s.report().mechanisms
    assert (row["count"], row["epsilon"]) == (3, 1.0)
    assert s.report().epsilon <= 8.0


@pytest.mark.parametrize("mutant", [False, True])
def test_selection_log_ratio_on_a_moved_vote(mutant, monkeypatch):
    """(6, 5) -> (5, 6): the log-odds move by at most epsilon; with half the scale by twice that.

    False alarms are below 1e-6, and the mutant is more than 10 standard deviations beyond.
    """
    epsilon, runs = 1.0, 8000
    if mutant:
        draw = top_k_release.gumbel_top_k
        monkeypatch.setattr(top_k_release, "gumbel_top_k", lambda x, k, scale, st: draw(x, k, scale / 2, st))

    def wins(votes):
        bounded = BoundedStatistic.with_sensitivity(votes, adjacency="replace-one", linf=1.0)
        stream = noise.KeyStream(7)
        return np.mean(
            [drawn(TopKMechanism(1, epsilon), bounded, "replace-one", stream)[0][0] == 0
             for _ in range(runs)]
        )  # fmt: skip

    p, q = wins([6.0, 5.0]), wins([5.0, 6.0])
    moved = math.log(p / (1 - p)) - math.log(q / (1 - q))
    # Exactly epsilon for the worst pair (each vote moves by 1: scale 2/epsilon, odds e^(+-epsilon/2)).
    error = 5.2 * 2 * math.sqrt(1 / (runs * 0.23))
    assert (moved - epsilon > error) == mutant


# ------------------------------------------------------------------ plans and filters


def test_over_budget_release_draws_nothing_and_leaves_nothing():
    s = session()
    plan = s.plan_gaussian(releases=2)
    for _ in range(2):
        s.gaussian(counts(), plan)
    before, rows = s._keys.stream.counter, copy.deepcopy(s._ledger.rows)
    with pytest.raises(PrivacyBudgetExceeded, match="holds 2 releases"):
        s.gaussian(counts(), plan)
    with pytest.raises(PrivacyBudgetExceeded, match="another session"):
        s.gaussian(counts(), session().plan_gaussian(1))
    with pytest.raises(PrivacyBudgetExceeded, match="left"):
        s.plan_gaussian(1, share=0.01)
    with pytest.raises(PrivacyBudgetExceeded, match="left"):
        s.laplace(counts(), 0.1)
    with pytest.raises(PrivacyBudgetExceeded, match="left"):
        s.gumbel_top_k(counts(), 1, 0.1)
    assert s._keys.stream.counter == before
    assert s._ledger.rows == rows


def test_stopping_on_a_released_value_claims_the_plan():
    s = session()
    plan = s.plan_gaussian(releases=400)
    while s.gaussian(counts(1), plan)[0] < 0:
        pass
    assert s.report().mechanisms[0]["count"] < 400
    assert s.report().epsilon == 1.0


def test_a_smaller_plan_claims_less():
    s = session()
    s.gaussian(counts(), s.plan_gaussian(1, share=0.25))
    claim = s.report().epsilon
    expected = accounting.gaussian_epsilon(0.5 * accounting.gaussian_mu(1.0, 1e-5), 1e-5)
    assert expected <= claim <= expected * (1 + 1e-3)


def test_pure_session_sums_epsilon_and_refuses_gaussian():
    s = PrivacySession(epsilon=1.0, delta=0.0, random_state=0)
    s.laplace(counts(), 0.4)
    s.laplace(counts(), 0.5)
    with pytest.raises(PrivacyBudgetExceeded, match="does not fit"):
        s.laplace(counts(), 0.2)
    with pytest.raises(ValueError, match="delta > 0"):
        s.plan_gaussian(1)
    report = s.report()
    assert report.epsilon == 1.0  # the second was chosen after the first: only the budget is a claim
    assert report.delta < 1e-20


def test_mixed_session_costs_less_than_its_claim_by_pld():
    from tests.privacy.theirs import composed_epsilon

    s = session(epsilon=2.0)
    s.laplace(counts(), 0.2)
    s.gumbel_top_k(counts(), 2, 0.2)
    left = 1 - s._ledger.planned_mu2() / s._ledger.mu2
    plan = s.plan_gaussian(10, share=left)
    for _ in range(10):
        s.gaussian(counts(), plan)
    report = s.report()
    tight = composed_epsilon(report.mechanisms, 1e-5, accountant="pld", adjacency="replace-one")
    assert report.epsilon == 2.0
    assert tight <= 2.0
    assert tight >= 1.5


@pytest.mark.parametrize("excess", [1.01, 1.2])
def test_recheck_finds_a_wrong_calibration(monkeypatch, excess):
    honest = accounting.gaussian_mu
    monkeypatch.setattr(accounting, "gaussian_mu", lambda e, d: honest(e * excess, d))
    s = session()
    s.gaussian(counts(), s.plan_gaussian(1))
    with pytest.raises(PrivacyAccountingError, match="bug"):
        s.report()


def test_recheck_finds_a_row_with_less_noise_than_planned(monkeypatch):
    honest = grid.gaussian_grid
    monkeypatch.setattr(grid, "gaussian_grid", lambda b, z, adjacency: honest(b, z * 0.99, adjacency))
    s = session()
    s.gaussian(counts(), s.plan_gaussian(1))
    with pytest.raises(PrivacyAccountingError):
        s.report()


def test_numerical_error_of_the_sampler_is_paid_for():
    s = session()
    plan = s.plan_gaussian(1)
    s.gaussian(BoundedStatistic(np.zeros(1000), l2=1.0), plan)
    report = s.report()
    assert 0 < report.numerical_error[0] <= 1e-5
    assert 0 < report.numerical_error[1] < 1e-5 * 1e-5
    ideal = norm.cdf(1 / (2 * plan.noise_multiplier) - plan.noise_multiplier) - math.exp(1) * norm.cdf(
        -1 / (2 * plan.noise_multiplier) - plan.noise_multiplier
    )
    assert ideal * math.exp(report.numerical_error[0]) + report.numerical_error[1] <= 1e-5


def test_too_many_values_for_the_numerical_error_are_refused(monkeypatch):
    monkeypatch.setattr(noise, "gaussian_numerical_error", lambda n, z: (n * 1e-8, 0.0))
    s = session()
    plan = s.plan_gaussian(1)
    with pytest.raises(UnsupportedAccounting, match="sampler"):
        s.gaussian(BoundedStatistic(np.zeros(2000), l2=1.0), plan)
    with pytest.raises(UnsupportedAccounting, match="sampler"):
        s.require_feasible(2000, 1, 1.0)
    assert s._keys.stream is None


# ------------------------------------------------------------------ adjacency and unit


def test_factor_is_two_only_under_replace_one():
    assert [factor(a) for a in ("replace-one", "zero-out", "add-remove")] == [2.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="adjacency"):
        factor("replace_one")


def test_proven_sensitivity_takes_no_factor_and_one_adjacency():
    b = BoundedStatistic.with_sensitivity(np.zeros(2), adjacency="replace-one", l2=3.0)
    assert grid.sensitivity_factor(b, "replace-one") == 1.0
    other = session(adjacency="zero-out")
    plan = other.plan_gaussian(1)
    with pytest.raises(UnsupportedAccounting, match="replace-one"):
        other.gaussian(b, plan)
    assert other._keys.stream is None


def test_grid_is_public_and_the_canonical_table_serves():
    unit, sigma, total = grid.gaussian_grid(BoundedStatistic(np.zeros(9), l2=1.0), 10.0, "replace-one")
    assert sigma == 2.0**30
    assert total == pytest.approx(2 + 65 * 3 * unit)
    assert sigma * unit >= 10.0 * total
    assert sigma * unit <= 10.0 * total * (1 + 1e-9)
    wide = BoundedStatistic(np.zeros(10**6), l2=1.0)
    with pytest.raises(PrivacyBudgetExceeded, match="grid"):
        grid.gaussian_grid(wide, 1e5, "replace-one")


# ------------------------------------------------------------------ keys


def test_two_releases_never_share_noise():
    for seed in (0, np.random.RandomState(0), np.random.default_rng(0), None):
        s = session(random_state=seed)
        plan = s.plan_gaussian(2)
        a, b = (s.gaussian(BoundedStatistic(np.zeros(50), l2=1.0), plan) for _ in range(2))
        assert not np.any(a == b)


def test_session_cannot_be_copied():
    s = session()
    for attempt in (copy.copy, copy.deepcopy, pickle.dumps):
        with pytest.raises(TypeError, match="key"):
            attempt(s)
    assert "random" not in repr(s)


def test_exact_session_releases_exact_values_and_claims_nothing():
    s = session(epsilon=math.inf)
    plan = s.plan_gaussian(1)
    assert np.array_equal(s.gaussian(counts(), plan), np.arange(4.0))
    assert s.gumbel_top_k(counts(), 2, 1.0).tolist() == [3, 2]
    report = s.report()
    assert (report.epsilon, report.guarantee) == (math.inf, "none")


# ------------------------------------------------------------------ the accountant


def test_accountant_is_charged_once_and_before_anything():
    accountant = BudgetAccountant(1.0, 1e-5, allow_seeded=True)
    with session(accountant=accountant) as s:
        assert accountant.ledger()[0]["state"] == "reserved"
        s.gaussian(counts(), s.plan_gaussian(1))
        assert accountant.ledger()[0]["state"] == "spent"
    assert accountant.spent()[0] == pytest.approx(1.0, rel=1e-4)
    with pytest.raises(PrivacyBudgetExceeded):
        session(accountant=accountant, epsilon=0.5)


def test_session_without_a_release_hands_its_reservation_back():
    accountant = BudgetAccountant(1.0, 1e-5, allow_seeded=True)
    with pytest.raises(ValueError, match="bad data"), session(accountant=accountant) as s:
        s.plan_gaussian(1)
        raise ValueError("bad data")
    assert accountant.spent() == (0.0, 0.0)


def test_session_that_fails_after_a_release_stays_charged():
    accountant = BudgetAccountant(1.0, 1e-5, allow_seeded=True)
    with pytest.raises(KeyboardInterrupt), session(accountant=accountant) as s:
        s.gaussian(counts(), s.plan_gaussian(2))
        raise KeyboardInterrupt
    assert accountant.spent()[0] > 0.99


def test_a_closed_session_releases_nothing():
    accountant = BudgetAccountant(1.0, 1e-5, allow_seeded=True)
    s = session(accountant=accountant)
    plan = s.plan_gaussian(1)
    s.close()
    for attempt in (lambda: s.gaussian(counts(), plan), lambda: s.plan_gaussian(1)):
        with pytest.raises(RuntimeError, match="closed"):
            attempt()
    assert s._keys.stream is None


def test_a_copied_or_changed_plan_is_refused():
    s = session()
    plan = s.plan_gaussian(1)
    for other in (copy.copy(plan), dataclasses.replace(plan, noise_multiplier=1e-3)):
        with pytest.raises(PrivacyBudgetExceeded, match="copy"):
            s.gaussian(counts(), other)
    assert s._keys.stream is None


def test_a_session_is_refused_in_another_process(monkeypatch):
    s = session()
    plan = s.plan_gaussian(1)
    monkeypatch.setattr("os.getpid", lambda: -1)
    with pytest.raises(RuntimeError, match="process"):
        s.gaussian(counts(), plan)


def test_threads_cannot_share_one_release():
    for seed in range(20):
        s = session(random_state=seed)
        plan = s.plan_gaussian(1)
        done = []

        def attempt(s=s, plan=plan, done=done):
            with contextlib.suppress(PrivacyBudgetExceeded):
                done.append(s.gaussian(counts(), plan))

        threads = [threading.Thread(target=attempt) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(done) == 1


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_threads_cannot_plan_the_same_share(delta, monkeypatch):
    """A thread that waits between the check of the budget and the entry must not let others check."""
    for name in ("planned_mu2", "pure_epsilon"):
        spent = getattr(Ledger, name)

        def slowly(self, spent=spent):
            found = spent(self)
            time.sleep(0.01)
            return found

        monkeypatch.setattr(Ledger, name, slowly)
    s, done = session(delta=delta), []

    def attempt():
        with contextlib.suppress(PrivacyBudgetExceeded):
            if delta:
                done.append(s.plan_gaussian(1, 0.4))
            done.append(s.plan_numeric_sparse(1, 1, share=0.4))

    threads = [threading.Thread(target=attempt) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(done) == 2


def test_plans_made_after_a_release_claim_the_whole_budget():
    s = session()
    s.gaussian(counts(), s.plan_gaussian(1, 0.1))
    assert s.report().epsilon < 0.5
    s.gaussian(counts(), s.plan_gaussian(1, 0.1))
    assert s.report().epsilon == 1.0


def test_a_reservation_that_was_handed_back_cannot_be_spent():
    accountant = BudgetAccountant(1.0, 1e-5, allow_seeded=True)
    s = session(accountant=accountant)
    plan = s.plan_gaussian(1)
    accountant._mark(1, "returned")  # as another process that shares the session would
    for _ in range(2):
        with pytest.raises(PrivacyBudgetExceeded, match="handed back"):
            s.gaussian(counts(), plan) if not s._ledger._used else s._keys.commit()


def test_ambient_accountant_is_charged():
    with BudgetAccountant(1.0, 1e-5, allow_seeded=True) as accountant:
        with session() as s:
            s.gaussian(counts(), s.plan_gaussian(1))
        with pytest.raises(ValueError, match="epsilon=inf"):
            session(epsilon=math.inf)
        PrivacySession.without_privacy()
    assert len(accountant.ledger()) == 1


# ------------------------------------------------------------------ bad input


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"epsilon": 0}, ValueError, "epsilon must be > 0"),
        ({"epsilon": -1.0}, ValueError, "epsilon must be > 0"),
        ({"epsilon": math.nan}, ValueError, "epsilon must be > 0"),
        ({"epsilon": "1"}, TypeError, "epsilon must be a number"),
        ({"epsilon": True}, TypeError, "epsilon must be a number"),
        ({"delta": 1.0}, ValueError, r"delta must be in \[0, 1\)"),
        ({"delta": -0.1}, ValueError, r"delta must be in \[0, 1\)"),
        ({"delta": math.nan}, ValueError, r"delta must be in \[0, 1\)"),
        ({"adjacency": "replace"}, ValueError, "adjacency must be one of"),
        ({"unit": "user"}, ValueError, "unit must be one of"),
    ],
)
def test_bad_parameters(params, error, words):
    with pytest.raises(error, match=words):
        session(**params)


@pytest.mark.parametrize("releases", [0, -1, 1.5, True])
def test_bad_plans(releases):
    with pytest.raises(ValueError, match="releases"):
        session().plan_gaussian(releases)


def test_only_bounded_statistics_are_released():
    s = session()
    with pytest.raises(TypeError, match="BoundedStatistic"):
        s.gaussian(np.zeros(3), s.plan_gaussian(1))
    with pytest.raises(ValueError, match="finite number"):
        s.laplace(counts(), 0.0)
    with pytest.raises(ValueError, match="k must be"):
        s.gumbel_top_k(counts(), 5, 0.1)
    with pytest.raises(ValueError, match="finite l2"):
        s.gaussian(BoundedStatistic([1.0], l2=math.inf), s._ledger.plans[0])


@pytest.mark.parametrize("delta", [1e-5, 0.0])
def test_every_figure_of_a_report_covers_plans_made_after_a_release(delta):
    """Who plans because of what was released has the whole budget as the only claim (REFEREE 4)."""
    session = PrivacySession(epsilon=4.0, delta=delta, random_state=0)
    session.laplace(BoundedStatistic([1.0], l1=1.0), 0.1)
    session.laplace(BoundedStatistic([1.0], l1=1.0), 0.1)
    report = session.report()
    assert report.epsilon == 4.0
    assert report.epsilon_at(delta) >= 4.0 * (1 - 1e-4)  # but for the numerical error of the samplers
    assert report.delta_at(3.9) > delta


def test_what_was_set_aside_is_in_every_figure_also_when_it_was_not_released():
    session = PrivacySession(epsilon=4.0, delta=1e-5, set_aside=0.9, random_state=0)
    session.gaussian(BoundedStatistic([1.0], l2=1.0), session.plan_gaussian(1))
    report = session.report()
    assert report.epsilon == report.epsilon_at(1e-5) == 4.0
    assert report.epsilon_at(1e-9) == report.mu == math.inf
    assert report.delta_at(3.9) == 1.0


# ------------------------------------------------------------------ the order of a release


@dataclasses.dataclass(frozen=True)
class OwnLaplace:
    """A mechanism of a package of one's own."""

    epsilon: float
    kind: type[Laplace] = Laplace

    def exact(self, source):
        return source.plain()

    def prepare(self, bounded, adjacency):
        s = grid.sensitivity(bounded, "l1", adjacency, "this release")
        unit, moved = grid.integer_grid(bounded, s, s / (self.epsilon * grid.PURE_SCALE), additive=True)

        def draw(source, stream):
            ORDER.append("draw")
            return (
                source.on_grid(unit) + noise.discrete_laplace(moved / self.epsilon, bounded.size, stream)
            ) * unit

        made = self.kind(epsilon=self.epsilon, sensitivity=moved * unit, grid=unit)
        return Prepared(
            release=made, numerical_error=noise.laplace_numerical_error(bounded.size, self.epsilon), draw=draw
        )


ORDER = []


def test_a_mechanism_of_your_own_is_released_in_the_order_of_all(monkeypatch):
    s = PrivacySession(epsilon=1.0, delta=0.0, random_state=0)
    honest = session(epsilon=1.0, delta=0.0)
    for owner, name in (
        (Ledger, "charge_numerical_error"),
        (Ledger, "admit_pure"),
        (Keys, "commit"),
        (Ledger, "write"),
    ):
        monkeypatch.setattr(owner, name, noted(name, getattr(owner, name)))
    ORDER.clear()
    found = s.release(BoundedStatistic([3.0, 4.0], l1=1.0), OwnLaplace(0.5), purpose="mine")
    assert ORDER == ["charge_numerical_error", "admit_pure", "commit", "draw", "write"]
    assert np.array_equal(found, honest.laplace(BoundedStatistic([3.0, 4.0], l1=1.0), 0.5))
    ((row,), report) = s.report().mechanisms, s.report()
    assert (row["name"], row["purpose"], row["epsilon"]) == ("laplace", "mine", 0.5)
    assert 0.5 <= report.epsilon < 0.5 + 1e-5
    assert PrivacySession.without_privacy().release(BoundedStatistic([3.0], l1=1.0), OwnLaplace(0.5)).tolist() == [
        3.0
    ]


def noted(name, honest):
    def call(*args, **options):
        ORDER.append(name)
        return honest(*args, **options)

    return call


def test_a_mechanism_that_is_refused_draws_and_spends_nothing():
    class Unregistered(Laplace):
        name = "unregistered"

    for mechanism, bounded, error in (
        (OwnLaplace(0.5, Unregistered), BoundedStatistic([1.0], l1=1.0), ValueError),
        (OwnLaplace(1.5), BoundedStatistic([1.0], l1=1.0), PrivacyBudgetExceeded),
        (OwnLaplace(0.5), BoundedStatistic([1.0], l1=math.inf), ValueError),
        (OwnLaplace(0.5), [1.0], TypeError),
    ):
        s = PrivacySession(epsilon=1.0, delta=0.0)
        ORDER.clear()
        with pytest.raises(error):
            s.release(bounded, mechanism)
        assert ORDER == []
        assert s._keys.stream is None
        assert not s.released


def test_public_faults_of_pure_mechanisms_are_found_before_anything_is_spent():
    s = session()
    for release in (
        lambda: s.laplace(BoundedStatistic([1.0], l1=math.inf), 0.1),
        lambda: s.gumbel_top_k(BoundedStatistic([1.0], linf=math.inf), 1, 0.1),
    ):
        with pytest.raises(ValueError, match="finite"):
            release()
    assert s._keys.stream is None
    assert s._ledger.pure == []
    assert s._ledger.numerical_error == [0.0, 0.0]


def test_mechanisms_leave_the_order_to_the_session():
    """The row of a search comes before its trials; the sparse vector has an order without privacy, too."""
    folder = Path(mechanisms.__file__).parent
    found = {p.parent.name for p in folder.rglob("release.py") if ".commit()" in p.read_text()}
    written = {p.parent.name for p in folder.rglob("release.py") if "ledger.write(" in p.read_text()}
    assert (found, written) == ({"best_of", "sparse_vector"}, {"best_of"})


def test_an_interrupt_leaves_the_lock_free():
    """The lock stands in the `with` itself: Python code around it could be interrupted with the lock taken."""
    folders = Path(session_package.__file__).parent, Path(mechanisms.__file__).parent
    modules = [module for folder in folders for module in sorted(folder.rglob("*.py"))]
    assert len(modules) > 20
    for module in modules:
        for node in ast.walk(ast.parse(module.read_text())):
            if isinstance(node, ast.With) and "lock" in ast.unparse(node.items[0]):
                assert ast.unparse(node.items[0]) == "self._lock", module.name
    assert not hasattr(SessionBase, "__enter__")


@pytest.mark.parametrize("copier", [copy.deepcopy, pickle.dumps, joblib.hash])
def test_bound_methods_cannot_be_copied(copier):
    s = session()
    for thing in (s.gaussian, s.draw):
        with pytest.raises(TypeError, match="cannot be copied or pickled"):
            copier(thing)


def test_words_of_any_integer_type_are_never_repeated():
    stream = KeyStream(0)
    drawn = [stream.words(np.int8(100)) for _ in range(200)]
    assert {len(words) for words in drawn} == {100}
    assert len(np.unique(np.concatenate(drawn))) == 20000
