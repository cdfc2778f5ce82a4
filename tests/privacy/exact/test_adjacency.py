"""How a promise under one adjacency reads under another: two steps over an absent record reach another one."""

import itertools
import math

import numpy as np
import pytest
from scipy.stats import norm

import skdp
from skdp.privacy.accounting import gaussian_delta, gaussian_epsilon, gaussian_mu, tradeoff
from skdp.privacy.adjacency import ADJACENCIES, check_adjacency, factor

DELTA = 1e-5


def profile(distance, epsilon):
    """The delta of N(0, 1) beside N(distance, 1), as an integral: nothing of skdp is used."""
    z = np.linspace(-14.0, 14.0 + distance, 10_001)
    excess = norm.pdf(z, distance) - math.exp(epsilon) * norm.pdf(z)
    return float(np.sum(np.maximum(excess, 0.0)) * (z[1] - z[0]))


@pytest.mark.parametrize("mu", [0.05, 0.27, 0.93, 2.0])
def test_two_steps_of_mu_are_a_step_of_two_mu(mu):
    """The most powerful test of N(mu, 1) cannot have more power on the next step than N(2 mu, 1) gives it."""
    alpha = np.linspace(1e-6, 1 - 1e-6, 1001)
    np.testing.assert_allclose(tradeoff(2 * mu, alpha), tradeoff(mu, 1 - tradeoff(mu, alpha)), rtol=0, atol=1e-12)
    for epsilon in (0.0, 0.5, 1.0, 4.0):
        assert gaussian_delta(2 * mu, epsilon) == pytest.approx(profile(2 * mu, epsilon), rel=1e-5, abs=1e-12)
        if profile(2 * mu, epsilon) > 1e-12:
            assert profile(mu, epsilon) < gaussian_delta(2 * mu, epsilon)  # one step is less


@pytest.mark.parametrize("mu", [0.05, 0.27, 0.93, 2.0, 5.0])
def test_twice_epsilon_needs_more_delta(mu):
    """(epsilon, delta) over an absent record is (2 epsilon, (1 + e^epsilon) delta): delta alone is too little."""
    for epsilon in (0.1, 0.5, 1.0, 4.0):
        one, two = gaussian_delta(mu, epsilon), gaussian_delta(2 * mu, 2 * epsilon)
        if one > 1e-200:
            assert one < two < (1 + math.exp(epsilon)) * one


def hockey_stick(p, q, epsilon):
    """The least delta of two finite laws, in both directions."""
    p, q, grow = np.asarray(p), np.asarray(q), math.exp(epsilon)
    return max(np.maximum(p - grow * q, 0).sum(), np.maximum(q - grow * p, 0).sum())


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 3.0])
def test_the_factor_of_delta_cannot_be_smaller(epsilon):
    """Three coins, each (epsilon, delta) from the next: the outer two reach the bound."""
    delta, grow = 1e-4, math.exp(epsilon)
    other = 1e-5
    absent = grow * other + delta
    record = grow * absent + delta
    coins = [(record, 1 - record), (absent, 1 - absent), (other, 1 - other)]
    for near, far in itertools.pairwise(coins):
        assert hockey_stick(near, far, epsilon) == pytest.approx(delta)
    assert hockey_stick(coins[0], coins[2], 2 * epsilon) == pytest.approx((1 + grow) * delta)


def test_figures_of_the_documentation():
    """Epsilons under replace-one of the fits in docs/benchmarks/linear.rst."""
    found = [gaussian_epsilon(2 * gaussian_mu(e, DELTA), DELTA) for e in (0.5, 1.0, 4.0)]
    assert np.round(found, 2).tolist() == [1.07, 2.15, 9.08]


def released(adjacency, epsilon, n_public=None):
    """A mean of 200 numbers between -1 and 1."""
    return skdp.statistics.mean(
        np.linspace(-1, 1, 200), bounds=(-1, 1), epsilon=epsilon, delta=DELTA,
        adjacency=adjacency, n_public=n_public, random_state=0,
    )  # fmt: skip


@pytest.mark.filterwarnings("ignore:random_state is a seed")  # what is looked at is the plan
@pytest.mark.parametrize(("adjacency", "n_public"), [("zero-out", None), ("add-remove", 200)])
def test_noise_is_that_of_replace_one_at_twice_mu(adjacency, n_public):
    half = released(adjacency, 1.0, n_public)  # a plan keeps some 1e-5 for what rounding costs
    implied = gaussian_epsilon(2 * half.privacy_.mu, DELTA)
    same, double = released("replace-one", implied), released("replace-one", 1.0)
    assert same.privacy_.mu == pytest.approx(2 * half.privacy_.mu, rel=1e-4)
    assert same.noise_std == pytest.approx(half.noise_std, rel=1e-4)
    assert double.noise_std == pytest.approx(2 * half.noise_std, rel=1e-4)


def test_factors():
    assert [factor(adjacency) for adjacency in ADJACENCIES] == [2.0, 1.0, 1.0]
    with pytest.raises(ValueError, match="adjacency must be one of"):
        check_adjacency("swap")
