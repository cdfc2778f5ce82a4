"""Closing steps: they enclose the method in their order, and each leaves it a part of the budget."""

import inspect
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
import pytest

import skdp
from skdp.base import PrivateFit, Solution
from skdp.base.plan import BudgetSplit
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.fitting.closing import LinearDecision, closed, decide, opened
from skdp.fitting.linear import LinearFit
from skdp.fitting.targets import LabelModel
from skdp.privacy import PrivacySession
from skdp.privacy.accounting import gaussian_mu

pytestmark = [
    pytest.mark.filterwarnings("ignore:random_state is a seed"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
]


@dataclass(frozen=True)
class Half:
    """Leaves half of the budget to what it encloses."""

    name: str
    told: list

    def decided(self, budget, problem, method):
        made = method(budget.method(0.5), problem)
        return replace(made, steps=(*made.steps, *budget.step(self.name, 1, 0.5)))

    def opened(self, budget, problem):
        return budget.method(0.5), problem

    def closed(self, budget, problem, found):
        self.told.append(self.name)
        return replace(found, theta=found.theta + 1)


@dataclass
class Asked:
    budget: object = None


def test_the_first_step_is_the_outermost_and_shares_multiply():
    told, session = [], PrivacySession(epsilon=1.0, delta=1e-5, random_state=0)
    steps = (Half("outer", told), Half("inner", told))

    def method(budget, problem):
        return LinearDecision(steps=budget.step("method"))

    made = decide(steps, method, BudgetSplit(session), SimpleNamespace())
    assert {step.purpose: step.share for step in made.steps} == {"method": 0.25, "inner": 0.25, "outer": 0.5}
    inner, around = opened(steps, BudgetSplit(session), Asked())
    assert inner.budget.of_session() == 0.25
    assert closed(around, Solution(np.zeros(2))).theta.tolist() == [2.0, 2.0]
    assert told == ["inner", "outer"]


class OwnSteps(LinearFit, LabelModel, PrivateFit):
    """A classifier of a user: its method alone, which closes as the shipped ones do."""

    def solve(self, session, problem):
        plan = problem.budget.plan_gaussian(1)
        total = session.gaussian(problem.records.column_sums(0.0, 1.0), plan)
        return Solution(np.resize(total, problem.records.n_parameters))


class NothingCloses(OwnSteps):
    """The same with the whole budget."""

    def _closing(self, problem):
        return ()


def test_a_classifier_is_recalibrated_unless_it_closes_with_nothing():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    y = (X[:, 0] > 0).astype(int)
    purposes = [
        {row["purpose"] for row in cls(classes=(0, 1), random_state=0).fit(X, y).privacy_.mechanisms}
        for cls in (OwnSteps, NothingCloses)
    ]
    assert "recalibration" in purposes[0]
    assert "recalibration" not in purposes[1]


def test_an_exact_fit_spends_nothing_and_is_no_private_one():
    X, y = np.eye(6), np.arange(6) % 2
    with skdp.BudgetAccountant(1.0, 1e-5) as accountant:
        model = skdp.IGHTClassifier(max_iter=2).fit(X, y)
    assert accountant.ledger() == []
    assert not isinstance(model, PrivateFit)
    assert not hasattr(model, "privacy_")
    assert "epsilon" not in model.get_params()
    with pytest.raises(TypeError, match="unexpected keyword argument 'epsilon'"):
        skdp.IGHTClassifier(epsilon=1.0)


def test_whoever_looks_at_a_private_fit_is_noted_also_where_a_mixin_defines_it():
    private = [cls for _, cls in skdp.all_estimators() if issubclass(cls, PrivateFit)]
    assert [cls.__name__ for cls in private if inspect.isfunction(inspect.getattr_static(cls, "fit"))] == []


@pytest.mark.parametrize(
    "shares", [{"a": None, "b": None}, {"a": 0.7, "b": 0.7, "c": None}, {"a": float("nan")}, {"a": -0.1}]
)
def test_shares_that_are_no_division_are_refused(shares):
    with pytest.raises(ValueError, match="share"):
        BudgetSplit(PrivacySession(epsilon=1.0, delta=1e-6)).split(**shares)


def test_the_frame_of_a_fit_is_the_last_base():
    with pytest.raises(TypeError, match="PrivateFit last"):
        type("Early", (PrivateFit, LinearFit, LabelModel), {})


class WholeSession(OwnSteps):
    """The mutant: a method that plans the session's whole budget, of which the recalibration has its part."""

    def solve(self, session, problem):
        plan = session.plan_gaussian(1)
        total = session.gaussian(problem.records.column_sums(0.0, 1.0), plan)
        return Solution(np.resize(total, problem.records.n_parameters))


def test_a_method_and_its_closing_steps_never_spend_more_than_the_claim():
    X = np.random.default_rng(0).normal(size=(2000, 3))
    y = (X[:, 0] > 0).astype(int)
    with pytest.raises(PrivacyBudgetExceeded):
        WholeSession(classes=(0, 1)).fit(X, y)
    made = OwnSteps(epsilon=1.0, delta=1e-5, classes=(0, 1)).fit(X, y).privacy_
    rows = [row for row in made.mechanisms if row["count"]]
    spent = sum(row["count"] / row["noise_multiplier"] ** 2 for row in rows if row["purpose"] != "recalibration")
    assert 0.3 < spent / gaussian_mu(1.0, 1e-5) ** 2 < 0.99
