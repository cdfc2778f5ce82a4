"""A mechanism of another package, or a signal in the middle of a release, gets nothing that is not charged."""

import math
import re
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy import BudgetAccountant, PrivacySession, PrivateRecords
from skdp.privacy.accounting import recheck_epsilon
from skdp.privacy.mechanisms import registry
from skdp.privacy.mechanisms.laplace.cost import Laplace
from skdp.privacy.mechanisms.laplace.release import LaplaceMechanism
from skdp.privacy.mechanisms.sampled_pure.cost import SampledPure
from skdp.privacy.mechanisms.top_k.release import TopKMechanism


def statistic():
    return PrivateRecords(np.ones((5, 2)), np.zeros(5)).column_counts(0.5)


class Changed:
    """Laplace noise whose preparation is changed by a function."""

    def __init__(self, change):
        self.change, self.honest = change, LaplaceMechanism(0.1)

    def prepare(self, bounded, adjacency):
        return self.change(self.honest.prepare(bounded, adjacency))

    def exact(self, source):
        return self.honest.exact(source)


class Free(Laplace):
    """Costs nothing, by its own account."""

    def mu(self):
        return 0.0

    def pure_epsilon(self):
        return 0


CHANGES = {
    "no cost": lambda made: replace(made, release=Free(epsilon=50.0, sensitivity=1.0, grid=1.0)),
    "no release": lambda made: replace(made, release=replace(made.release, count=0)),
    "sampled": lambda made: replace(
        made, release=SampledPure(epsilon=0.2, epsilon_unsampled=3.0, sampling_rate=0.01)
    ),
    "nan error": lambda made: replace(made, numerical_error=(math.nan, 0.0)),
    "negative error": lambda made: replace(made, numerical_error=(-0.1, 0.0)),
    "release of another type": lambda made: replace(made, release=None),
    "one error": lambda made: replace(made, numerical_error=0.0),
    "another type": lambda made: SimpleNamespace(**vars(made)),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_release_that_says_another_cost_is_refused_before_the_draw(change):
    session = PrivacySession(epsilon=1.0, delta=1e-6)
    with pytest.raises((UnsupportedAccounting, PrivacyBudgetExceeded, TypeError)):
        session.release(statistic(), Changed(change))
    assert session._keys.stream is None
    assert session.report().epsilon == 0.0


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("mechanism", [LaplaceMechanism(5.0), TopKMechanism(2, 5.0)])
def test_a_refusal_says_what_would_fit(delta, mechanism):
    session = PrivacySession(epsilon=1.0, delta=delta)
    session.release(statistic(), replace(mechanism, epsilon=0.07))
    with pytest.raises(PrivacyBudgetExceeded, match=r"nothing was released.*would fit") as refused:
        session.release(statistic(), mechanism)
    found = float(re.search(r"epsilon <= (\S+) would", str(refused.value)).group(1))
    with pytest.raises(PrivacyBudgetExceeded):
        session.release(statistic(), replace(mechanism, epsilon=1.01 * found))
    session.release(statistic(), replace(mechanism, epsilon=found))


def test_a_pure_release_that_costs_too_much_by_its_mu_names_delta_0():
    session = PrivacySession(epsilon=1.0, delta=1e-6)
    with pytest.raises(
        PrivacyBudgetExceeded, match=r"open the session with delta=0.*epsilon <= 0\.18\d+ would fit"
    ):
        session.laplace(statistic(), 0.5)
    session.laplace(statistic(), 0.1)
    with pytest.raises(PrivacyBudgetExceeded, match=r"Give the plans smaller shares$"):
        session.plan_gaussian(1, share=1.0)


def test_what_is_no_mechanism_is_refused_before_anything_is_spent():
    for session in (PrivacySession(epsilon=1.0, delta=1e-6), PrivacySession.without_privacy()):
        with pytest.raises(TypeError, match=r"methods prepare and exact, .* got int"):
            session.release(statistic(), 3)
        assert session._keys.stream is None
        assert not session._ledger.pure


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.nan, "1"])
def test_an_exact_session_refuses_the_same_parameters(epsilon):
    session = PrivacySession.without_privacy()
    for mechanism in (LaplaceMechanism(epsilon), TopKMechanism(1, epsilon)):
        with pytest.raises(ValueError, match="epsilon of a release must be"):
            session.release(statistic(), mechanism)


def test_the_row_is_the_one_that_was_charged():
    def change(made):
        def draw(source, stream):
            object.__setattr__(made.release, "epsilon", 0.001)
            return made.draw(source, stream)

        return replace(made, draw=draw)

    session = PrivacySession(epsilon=1.0, delta=1e-6)
    session.release(statistic(), Changed(change))
    assert session.report().mechanisms[0]["epsilon"] == 0.1


def test_a_session_that_is_closed_within_a_release_makes_none():
    accountant = BudgetAccountant(1.0, 1e-6)
    session = PrivacySession(epsilon=0.9, delta=1e-7, accountant=accountant)

    def change(made):
        session.close()
        return made

    with pytest.raises(RuntimeError, match="closed during a release"):
        session.release(statistic(), Changed(change))
    assert session._keys.stream is None


def test_a_plan_after_a_draw_that_raised_claims_the_whole_budget():
    def change(made):
        def draw(source, stream):
            made.draw(source, stream)
            raise OSError

        return replace(made, draw=draw)

    session = PrivacySession(epsilon=1.0, delta=1e-6)
    with pytest.raises(OSError):
        session.release(statistic(), Changed(change))
    session.laplace(statistic(), 0.01)
    assert session.report().epsilon == 1.0


def test_a_recheck_that_says_a_negative_cost_is_refused(monkeypatch):
    row = {"name": "laplace", "epsilon": 10.0, "count": 1}
    terms = registry.module_of(row, "recheck").terms
    assert recheck_epsilon([row], 0.0) == 10.0
    for wrong in ({"pure": -10.0}, {"mu2": -1.0}, {"mu2": math.nan}, {"tail": -0.5}):
        monkeypatch.setattr(
            registry.module_of(row, "recheck"), "terms", lambda row, w=wrong: replace(terms(row), **w)
        )
        with pytest.raises(ValueError, match="costs >= 0"):
            recheck_epsilon([row], 0.0)
