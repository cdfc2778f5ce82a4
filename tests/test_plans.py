"""``plan`` of every private estimator: what a fit of data of this shape decides, without data and without a charge."""

import inspect
import json
import warnings

import numpy as np
import pytest

import skdp
from skdp.base import PrivateFit
from skdp.privacy import BudgetAccountant, PrivacySession

N, D = 300, 4


def private_names():
    """Estimators whose fit charges a budget."""
    return [name for name, found in skdp.all_estimators() if issubclass(found, PrivateFit)]


PRIVATE = private_names()


class Made(Exception):
    """The plan of a fit is made."""


def make(name, **parameters):
    """An estimator whose fit needs no more than X and y."""
    found = getattr(skdp, name)
    known = inspect.signature(found).parameters
    given = {"classes": (0, 1)} if "classes" in known else {}
    return found(**given, **parameters)


def data(estimator, n=N, d=D):
    """Rows and targets of its task."""
    rng = np.random.default_rng(0)
    X = rng.uniform(size=(n, d))
    return X, (X[:, 0] > 0.5).astype(int) if hasattr(estimator, "classes") else X[:, 0]


def plan_of_fit(estimator, monkeypatch, **more):
    """The plan that a fit makes, which ends there."""
    honest, found = type(estimator)._make_plan, []

    def made(self, session, problem):
        found.append(honest(self, session, problem))
        raise Made

    monkeypatch.setattr(type(estimator), "_make_plan", made)
    X, y = data(estimator)
    with warnings.catch_warnings(), pytest.raises(Made):
        warnings.simplefilter("ignore")
        estimator.fit(X, y, **more)
    monkeypatch.undo()
    return found[0]


@pytest.mark.parametrize("name", PRIVATE)
def test_it_is_the_plan_of_a_fit(name, monkeypatch):
    accountant = BudgetAccountant(2.0, 1e-5)
    monkeypatch.setattr(PrivacySession, "gaussian", None)
    with accountant:
        plan = make(name).plan(N, D)
    assert accountant.spent == (0.0, 0.0) or not accountant.ledger
    assert plan.to_dict() == plan_of_fit(make(name), monkeypatch).to_dict()
    assert json.loads(json.dumps(plan.to_dict())) == plan.to_dict()
    assert str(plan).startswith(f"{name} with {N} records and {D} features\n")
