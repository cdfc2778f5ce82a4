"""The plan of a fit to the records of several owners, made without data."""

import math

import numpy as np
import pytest

import skdp
from skdp.base.fit import PrivateFit
from skdp.multiparty.multiparty_fit import MultipartyFit
from skdp.privacy import BudgetAccountant

SIZES = [40, 30, 8]
N = sum(SIZES)
OWNERS = np.repeat(["a", "b", "c"], SIZES)
X = np.random.default_rng(0).normal(size=(N, 3))
Y = np.arange(N) % 2
CLASSES = [cls for _, cls in skdp.all_estimators() if issubclass(cls, MultipartyFit)]
QUICK = (skdp.MPCGradientPerturbationRegressor, skdp.MPCOutputPerturbationClassifier)
OPTIONS = [
    {},
    {"noise": "laplace"},
    {"noise": "laplace", "delta": 0.0},
    {"unit": "group"},
    {"unit": "owner"},
    {"weighting": "record", "fit_intercept": False, "adjacency": "zero-out"},
    {"epsilon": math.inf},
    {"epsilon_of": "iteration", "max_iter": 5},
    {"version": "published"},
]
CASES = [
    pytest.param(cls, options, id=f"{cls.__name__}-{options}", marks=() if cls in QUICK else pytest.mark.thorough)
    for cls in CLASSES
    for options in OPTIONS
    if options.keys() <= cls().get_params().keys()
    and not ("unit" in options and "Objective" in cls.__name__)  # it protects records alone
]


def of_ledger(row):
    multiplier = row.get("noise_multiplier")
    return row["purpose"], row["count"], multiplier and pytest.approx(multiplier, rel=1e-9)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")  # few records
@pytest.mark.parametrize(("cls", "options"), CASES)
def test_it_is_the_plan_of_the_fit_and_of_its_ledger(cls, options, monkeypatch):
    classes = {"classes": (0, 1)} if cls.__name__.endswith("Classifier") else {"y_bounds": (0, 1)}
    model, made = cls(**classes, **options), []

    def keep(self, session, problem, make=PrivateFit._make_plan):
        made.append(make(self, session, problem))
        return made[-1]

    monkeypatch.setattr(PrivateFit, "_make_plan", keep)
    grouped = options.get("unit") == "group"
    model.fit(X, Y, owners=OWNERS, **({"groups": np.arange(N)} if grouped else {}))
    accountant = BudgetAccountant(10.0, 1e-3)
    with accountant:
        plan = model.plan(**{"n_groups" if grouped else "n_records": SIZES}, n_features=3)
    assert accountant.spent() == (0.0, 0.0)
    assert plan.to_dict() == made[0].to_dict()
    assert (plan.shape, plan.decision.details) == (made[0].shape, made[0].decision.details)
    rows = [] if math.isinf(model.epsilon) else model.privacy_.mechanisms
    for step, row in zip(plan.decision.steps, rows):
        found = of_ledger(row)
        assert (step.purpose, step.releases) == found[:2]
        assert step.noise_multiplier is None or step.noise_multiplier == found[2]


@pytest.mark.parametrize(
    ("sizes", "error", "said"),
    [
        ([], ValueError, "at least one owner"),
        ([3, 0], ValueError, "n_records must be >= 1"),
        ([3, 2.5], TypeError, "n_records must be an int"),
        (None, ValueError, "needs n_records="),
    ],
)
def test_wrong_sizes_are_refused(sizes, error, said):
    with pytest.raises(error, match=said):
        skdp.MPCGradientPerturbationClassifier().plan(sizes, 3)


def test_one_number_is_one_owner_and_others_take_no_list():
    one = skdp.MPCGradientPerturbationClassifier().plan(500, 3)
    assert one.facts["n_owners"] == 1
    with pytest.raises(TypeError, match="n_records must be an int"):
        skdp.DPSGDClassifier().plan([3, 2], 3)
