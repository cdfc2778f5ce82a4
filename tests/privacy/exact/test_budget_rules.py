"""What a ceiling admits, against the exact Gaussian formula and the sum of pure fits."""

import math
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.special import ndtr

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.accounting import gaussian_delta, gaussian_epsilon, gaussian_mu, pure_mu
from skdp.privacy.budget import BudgetAccountant
from skdp.privacy.budget.filters import Ceiling, admits, check_charge, remaining_after_all, spent_by

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

import dummy_estimator as dummy  # noqa: E402

KIND = {"adjacency": "replace-one", "unit": "record"}


def make_fit(epsilon, delta):
    if delta == 0.0:
        return check_charge("fit", epsilon, 0.0, None, True, (0.0, 0.0))
    return check_charge("fit", epsilon, delta, gaussian_mu(epsilon, delta), False, (0.0, 0.0))


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.floats(0.05, 20.0),
    st.sampled_from([0.0, 1e-9, 1e-5, 1e-2]),
    st.lists(st.tuples(st.floats(0.01, 5.0), st.sampled_from([0.0, 1e-8, 1e-5])), min_size=1, max_size=12),
)
def test_whatever_is_admitted_is_within_the_ceiling(epsilon, delta, wanted):
    ceiling = Ceiling("", epsilon, delta, False)
    charged = []
    for cost in wanted:
        fit = make_fit(*cost)
        if admits([*charged, fit], ceiling):
            charged.append(fit)
        if not charged:
            continue
        pure_sum = sum(f.epsilon for f in charged) if all(f.pure for f in charged) else math.inf
        total = math.sqrt(sum(f.mu**2 for f in charged))
        alone = len(charged) == 1 and charged[0].epsilon <= epsilon and charged[0].delta <= delta
        exact = gaussian_delta(total, epsilon) <= delta * (1 + 1e-12)
        assert pure_sum <= epsilon * (1 + 1e-11) or exact or alone
        spent = spent_by(charged, ceiling)
        assert spent[0] <= epsilon
        assert spent[1] <= delta
        left = remaining_after_all({None: charged}, ceiling)
        if left[0] > 1e-3:
            assert admits([*charged, make_fit(*left)], ceiling)
            assert not admits([*charged, make_fit(left[0] * 1.001, left[1])], ceiling)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (10.0, 1e-6), (0.1, 1e-9), (2.0, 0.0)])
def test_one_fit_of_the_whole_ceiling_fits_and_nothing_after_it(epsilon, delta):
    accountant = BudgetAccountant(epsilon, delta)
    assert accountant.spent() == (0.0, 0.0)
    assert accountant.remaining() == (epsilon, delta)
    if delta:
        dummy.gauss(accountant, epsilon, delta)
    else:
        dummy.charge(accountant, epsilon)
    assert accountant.spent()[0] == pytest.approx(epsilon, rel=1e-8)
    assert accountant.spent()[0] <= epsilon
    assert accountant.remaining()[0] < 1e-3 * epsilon
    with pytest.raises(PrivacyBudgetExceeded, match="refused before it read a value"):
        dummy.gauss(accountant, 0.01, 1e-5)
    assert len(accountant.ledger()) == 1


def test_gaussian_fits_add_up_in_mu_squared():
    mu = gaussian_mu(1.0, 1e-5)
    granted = 0
    accountant = BudgetAccountant(6.0, 1e-5)
    with pytest.raises(PrivacyBudgetExceeded):
        while True:
            dummy.gauss(accountant, 1.0)
            granted += 1
    assert granted == math.floor((gaussian_mu(6.0, 1e-5) / mu) ** 2) > 6
    # Exactly ten fits are granted under the exact cost of ten, whatever the rounding.
    ten = BudgetAccountant(gaussian_epsilon(math.sqrt(10) * mu, 1e-5), 1e-5)
    for _ in range(10):
        dummy.gauss(ten, 1.0)
    with pytest.raises(PrivacyBudgetExceeded):
        dummy.gauss(ten, 0.05)
    # A zCDP filter would have granted fewer: rho + 2 sqrt(rho log(1/delta)) with rho = mu^2 / 2.
    rho = 10 * mu**2 / 2
    assert rho + 2 * math.sqrt(rho * math.log(1e5)) > ten.epsilon


def test_pure_fits_use_the_better_rule():
    few = BudgetAccountant(0.3, 0.0)
    for _ in range(3):
        dummy.charge(few, 0.1)  # 0.1 + 0.1 + 0.1 > 0.3 in floating point
    assert few.spent() == (pytest.approx(0.3), 0.0)
    with pytest.raises(PrivacyBudgetExceeded):
        dummy.charge(few, 1e-6)
    many = BudgetAccountant(3.0, 1e-5)
    for _ in range(60):
        dummy.charge(many, 0.06)  # the sum, 3.6, passes the ceiling; the Gaussian filter does not
    assert many.spent()[0] < 3.0
    assert many.spent()[1] == 1e-5
    assert many.spent()[0] >= gaussian_epsilon(math.sqrt(60) * pure_mu(0.06), 1e-5)


def test_pure_beyond_the_filter_refuses_gaussian_fits():
    accountant = BudgetAccountant(2.0, 1e-5)
    dummy.charge(accountant, 1.9)  # pure_mu(1.9) alone is past the Gaussian bound
    assert pure_mu(1.9) > gaussian_mu(2.0, 1e-5)
    epsilon, delta = accountant.remaining()
    assert (epsilon, delta) == (pytest.approx(0.1), 0.0)
    with pytest.raises(PrivacyBudgetExceeded, match="a pure fit counts by its mu") as caught:
        dummy.gauss(accountant, 0.01)
    assert f"all fits together would have mu={math.hypot(pure_mu(1.9), 0.01):.4g}" in str(caught.value)
    with pytest.raises(PrivacyBudgetExceeded) as caught:  # of one kind: plain addition, nothing to explain
        dummy.charge(accountant, 0.2)
    assert "counts by its mu" not in str(caught.value)
    dummy.charge(accountant, 0.1)


def test_noise_error_is_charged():
    ceiling = Ceiling("", 4.0, 1e-5, False)
    mu = gaussian_mu(4.0, 1e-5) / 2
    exact = check_charge("fit", 2.5, 1e-5, mu, False, (0.0, 0.0))
    assert admits([exact] * 4, ceiling)
    for error in [(1e-7, 0.0), (0.0, 1e-9)]:
        rough = check_charge("fit", 2.5, 1e-5, mu, False, error)
        assert admits([rough] * 3, ceiling)
        assert not admits([rough] * 4, ceiling)
    tail = check_charge("fit", 0.5, 1e-4, mu / 10, False, (0.0, 1e-5))
    assert not admits([tail] * 2, ceiling)  # the tails alone are more than delta
    rough = check_charge("fit", 0.5, 1e-5, mu / 10, False, (0.2, 0.0))
    cost = spent_by([rough] * 4, ceiling)[0]
    assert cost > 2 * 4 * 0.2 + gaussian_epsilon(mu / 5, 1e-5)
    left = remaining_after_all({None: [rough] * 4}, ceiling)
    assert admits([*[rough] * 4, make_fit(*left)], ceiling)


@pytest.mark.parametrize(
    ("cost", "kind", "message"),
    [
        ({"epsilon": math.inf, "delta": 0.0}, PrivacyBudgetExceeded, "epsilon=inf"),
        ({"epsilon": 101.0, "delta": 1e-6}, PrivacyBudgetExceeded, "would pass the ceiling"),
        ({"epsilon": 1.0, "delta": 1e-6, "noise_error": (0.1, 0.0)}, ValueError, "noise error in"),
        ({"epsilon": 1.0, "delta": 1e-5, "mu": 3.0}, ValueError, "costs more than"),
        ({"epsilon": 1.0, "delta": 0.0, "mu": 0.1}, ValueError, "pure fit has delta=0"),
        ({"epsilon": math.nan, "delta": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": -1.0, "delta": 0.0}, ValueError, "epsilon must be"),
        ({"epsilon": 1.0, "delta": 1.0, "mu": 0.1}, ValueError, "delta must be"),
        ({"epsilon": "1e", "delta": 0.0}, TypeError, "epsilon must be a number"),
    ],
)
def test_what_can_not_be_charged_is_refused(accountant, cost, kind, message):
    with pytest.raises(kind, match=message):
        accountant.reserve(estimator="fit", **cost, **KIND)
    assert accountant.ledger() == []


def test_one_adjacency_and_one_unit(accountant):
    first = dummy.gauss(accountant, 1.0, adjacency="zero-out")
    for other in [{"adjacency": "replace-one"}, {"adjacency": "zero-out", "unit": "group"}]:
        with pytest.raises(PrivacyBudgetExceeded, match=r"zero-out.*do not add up"):
            dummy.gauss(accountant, 1.0, **other)
    first.release()
    dummy.gauss(accountant, 1.0, unit="group")


@pytest.mark.parametrize("ceiling", [(0.0, 1e-5), (math.inf, 1e-5), (1.0, -0.1), (1.0, 1.0)])
def test_ceiling_out_of_range(ceiling):
    with pytest.raises(ValueError, match="must be"):
        BudgetAccountant(*ceiling)


# ------------------------------------------------------------------ fits without a mu


def approximate(accountant, epsilon=1.0, delta=1e-6):
    return accountant.reserve(estimator="approximate", epsilon=epsilon, delta=delta, **KIND)


def gaussian(accountant, epsilon=1.0, delta=1e-6):
    mu = gaussian_mu(epsilon, delta)
    return accountant.reserve(estimator="gauss", epsilon=epsilon, delta=delta, mu=mu, **KIND)


def test_a_ledger_that_begins_without_mu_adds_up_epsilon_and_delta():
    accountant = BudgetAccountant(3.0, 3e-6)
    approximate(accountant).commit()
    gaussian(accountant).commit()
    assert accountant.spent() == pytest.approx((2.0, 2e-6))
    assert accountant.remaining() == pytest.approx((1.0, 1e-6))
    with pytest.raises(PrivacyBudgetExceeded, match="pass the ceiling"):  # by epsilon
        gaussian(accountant, 1.001)
    with pytest.raises(PrivacyBudgetExceeded, match="pass the ceiling"):  # by delta
        gaussian(accountant, 0.5, 1.01e-6)
    accountant.reserve(estimator="pure", epsilon=0.5, delta=0.0, **KIND).commit()
    left = accountant.remaining()
    approximate(accountant, *left).commit()
    with pytest.raises(PrivacyBudgetExceeded):
        approximate(accountant, 1e-3, 0.0)


@settings(deadline=None, derandomize=True, max_examples=100)
@given(
    st.lists(
        st.tuples(st.floats(0.01, 2.0), st.sampled_from([0.0, 1e-8, 1e-6]), st.booleans()), min_size=1, max_size=9
    )
)
def test_rules_are_never_mixed_in_one_ledger(wanted):
    """Whatever is admitted is all under the filter of mu and pure fits, or all under basic composition."""
    ceiling, charged = Ceiling("", 3.0, 3e-6, False), []
    for epsilon, delta, without in wanted:
        if without:
            fit = check_charge("fit", epsilon, delta, None, False, (0.0, 0.0))
        else:
            fit = make_fit(epsilon, delta)
        if admits([*charged, fit], ceiling):
            charged.append(fit)
    if charged and any(fit.approximate for fit in charged):
        assert charged[0].approximate
        assert sum(fit.epsilon for fit in charged) <= 3.0 * (1 + 1e-11)
        assert sum(fit.delta for fit in charged) <= 3e-6 * (1 + 1e-11)


def test_a_fit_without_mu_is_refused_after_gaussian_fits():
    accountant = BudgetAccountant(10.0, 1e-4)
    gaussian(accountant).commit()
    with pytest.raises(PrivacyBudgetExceeded, match="comes first"):
        approximate(accountant, 0.1, 1e-9)
    gaussian(accountant).commit()


def test_refusal_names_why_there_is_no_mu():
    accountant = BudgetAccountant(5.0, 1e-4)
    accountant.reserve(estimator="pure", epsilon=0.1, delta=0.0, **KIND).commit()
    with pytest.raises(PrivacyBudgetExceeded, match="draws minibatches, perturbs minima") as refused:
        accountant.reserve(estimator="it", epsilon=0.1, delta=1e-9, **KIND)
    assert "batch_size" in str(refused.value)


def test_the_rule_does_not_change_after_a_release():
    accountant = BudgetAccountant(1.5, 1.5e-6)
    first = approximate(accountant, 1.0, 1e-6)
    gaussian(accountant, 0.5, 5e-7).commit()
    first.release()  # as a fit does that fails before its first release
    assert first.state == "spent"
    with pytest.raises(PrivacyBudgetExceeded):
        gaussian(accountant, 0.1, 1e-8)
    alone = BudgetAccountant(1.5, 1.5e-6)
    approximate(alone).release()
    assert alone.spent() == (0.0, 0.0)
    gaussian(alone).commit()


def test_mixing_the_rules_would_fail_twice_as_often():
    """The counterexample of `skdp.privacy.budget.filters`: choose B or D by an early Gaussian result.

    The likelihood ratio of what was released first decides: where it is small a fit that fails with
    probability d follows (randomised response with that chance to publish the record), else Gaussian fits up to
    the ceiling. Exact by quadrature; either branch alone stays at the ceiling's delta.
    """
    epsilon, delta = 1.0, 1e-5
    largest = gaussian_mu(epsilon, delta)
    mu = 0.7 * largest
    rest = math.sqrt(largest**2 - mu**2)
    other = delta - gaussian_delta(mu, epsilon)
    nodes, weights = np.polynomial.hermite_e.hermegauss(150)
    weights = weights / weights.sum()
    loss = mu * mu / 2 + mu * nodes

    def after(left):
        return gaussian_delta(rest, left) if left >= 0 else _delta_below(rest, left)

    under_b = np.array([after(epsilon - each) for each in loss])
    under_d = other + (1 - other) * np.maximum(-np.expm1(epsilon - loss), 0.0)
    assert weights @ under_b == pytest.approx(delta, rel=1e-3)
    assert weights @ under_d <= delta * (1 + 1e-3)
    assert weights @ np.maximum(under_b, under_d) > 1.3 * delta


def _delta_below(mu, epsilon):
    return ndtr(mu / 2 - epsilon / mu) - math.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)
