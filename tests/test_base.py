"""The base of a fit knows no model: what later subpackages need of it, each as a fit that works."""

import warnings
from dataclasses import dataclass

import numpy as np
import pytest

from skdp import BudgetAccountant, DPIGHTClassifier
from skdp.base import NonPrivateFit, PrivateFit, Problem, Solution, solve_inside, without_accountant
from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded
from skdp.privacy import BoundedStatistic, PrivacySession, PublicShape

WORDS = 6


@dataclass(frozen=True)
class Held:
    """Private data of any kind with the public facts about them."""

    data: list
    shape: PublicShape

    def total(self, vector_of):
        """Sum of one vector of norm at most 1 for each unit."""
        return BoundedStatistic(sum(vector_of(record) for record in self.data), l2=1.0)


class NoisyMean(PrivateFit):
    """The mean of one vector a record, without targets; a subclass says what a record is."""

    width = 3

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        adjacency="zero-out",
        unit="record",
        n_public=None,
        accountant=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state

    def fit(self, X, y=None, **more):
        return super().fit(X, y, **more)

    def releases(self, budget, shape):
        return budget.plan_gaussian(4 if shape.n_units > 50 else 2)

    def vector_of(self, record):
        record = np.asarray(record, dtype=float).ravel()
        return record / max(1.0, np.linalg.norm(record))

    def read(self, X, y=None, groups=None):
        data = [np.asarray(record) for record in X]
        if not all(np.isfinite(record).all() for record in data):
            raise ValueError("X must be finite")
        n_units = self.n_public or len(data)
        shape = PublicShape("record", n_units, self.width, n_public=self.n_public)
        return Problem(Held(data, shape), {}, ())

    def solve(self, session, problem):
        total = problem.records.total(self.vector_of)
        theta = session.gaussian(total, problem.releases) / problem.records.shape.n_units
        return Solution(theta, attributes={"mean_": theta})


class ImageMean(NoisyMean):
    width = 4 * 4 * 3


class TokenMean(NoisyMean):
    width = WORDS

    def vector_of(self, record):
        return super().vector_of(np.bincount(record, minlength=WORDS))


RNG = np.random.default_rng(0)
IMAGES = RNG.uniform(size=(40, 4, 4, 3))
TOKENS = [RNG.integers(0, WORDS, size=length) for length in RNG.integers(1, 9, size=40)]
OWNERS = [RNG.normal(size=3) for _ in range(40)]


@pytest.mark.parametrize(
    ("cls", "X"),
    [(ImageMean, IMAGES), (TokenMean, TOKENS), (NoisyMean, OWNERS)],
    ids=["images", "ragged tokens", "one vector an owner"],
)
def test_records_of_any_shape(cls, X):
    model = cls(random_state=0).fit(X)
    assert model.mean_.shape == (cls.width,)
    assert model.privacy_.public == {"n_features": cls.width, "n_records": 40}
    assert model.privacy_.epsilon == 1.0
    exact = cls(epsilon=np.inf).fit(X).mean_
    vectors = [cls().vector_of(record) for record in X]
    assert np.allclose(exact, np.mean(vectors, axis=0))
    assert not np.array_equal(exact, model.mean_)


def test_under_add_remove_the_number_of_records_is_not_told():
    with pytest.raises(ValueError, match="n_public"):
        NoisyMean(adjacency="add-remove").fit(OWNERS)
    model = NoisyMean(adjacency="add-remove", n_public=50, random_state=0).fit(OWNERS)
    assert model.privacy_.public == {"n_features": 3, "n_public": 50}


def test_records_of_another_unit_or_number_are_refused():
    """An author who forgets groups or n_public would claim what the statistic does not hold."""
    accountant = BudgetAccountant(1.0, 1e-4)
    model = NoisyMean(unit="group", accountant=accountant)
    with pytest.raises(ValueError, match="unit='record'"):
        model.fit(OWNERS, groups=[0] * 40)

    class Forgetful(NoisyMean):
        def read(self, X, y=None, groups=None):
            return NoisyMean().read(X)

    with pytest.raises(ValueError, match="n_public=None"):
        Forgetful(adjacency="add-remove", n_public=50, accountant=accountant).fit(OWNERS)
    assert accountant.spent() == (0.0, 0.0)


# ------------------------------------------------------------------ a plan without records


@pytest.mark.parametrize("n", [40, 60])
def test_a_plan_needs_no_records_and_is_that_of_the_fit(n, monkeypatch):
    made = []
    real = PrivacySession.plan_gaussian
    monkeypatch.setattr(
        PrivacySession, "plan_gaussian", lambda *args, **more: made.append(real(*args, **more)) or made[-1]
    )
    accountant = BudgetAccountant(1.0, 1e-4)
    with accountant:
        model = NoisyMean()
        before = model.plan(n, 3).decision.details
        assert accountant.ledger() == []
        model.fit([np.ones(3)] * n)
    first, second = made
    assert before is first
    assert (first.releases, first.noise_multiplier) == (second.releases, second.noise_multiplier)
    assert first.releases == (4 if n > 50 else 2)
    assert len(accountant.ledger()) == 1


def test_a_plan_checks_the_parameters():
    with pytest.raises(ValueError, match="epsilon"):
        NoisyMean(epsilon=-1.0).plan(10, 3)


# ------------------------------------------------------------------ fits inside a fit


class Nested(NoisyMean):
    """Pays once; how the inner fits are paid is what the two subclasses differ in."""


class InTheSameSession(Nested):
    releases = None  # the fit inside plans

    def read(self, X, y=None, groups=None):
        return NoisyMean(epsilon=self.epsilon, delta=self.delta).read(X)

    def solve(self, session, problem):
        return solve_inside(NoisyMean(), session, problem)


class TwiceInTheSameSession(InTheSameSession):
    def solve(self, session, problem):
        super().solve(session, problem)
        return super().solve(session, problem)


class Unpaid(Nested):
    def solve(self, session, problem):
        inner = without_accountant(NoisyMean(epsilon=0.1)).fit(problem.records.data)
        assert inner.privacy_.epsilon == 0.1
        return super().solve(session, problem)


@pytest.mark.parametrize("cls", [InTheSameSession, Unpaid])
def test_inner_fits_charge_nothing(cls):
    accountant = BudgetAccountant(10.0, 1e-3)
    with accountant:
        cls(epsilon=2.0).fit(OWNERS)
    (line,) = accountant.ledger()
    assert (line["estimator"], line["epsilon"], line["state"]) == (cls.__name__, 2.0, "spent")


def test_an_inner_fit_cannot_spend_what_the_session_does_not_hold():
    with pytest.raises(PrivacyBudgetExceeded):
        TwiceInTheSameSession(random_state=0).fit(OWNERS)


def test_unpaid_reaches_into_pipelines():
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import FunctionTransformer

    pipe = without_accountant(make_pipeline(FunctionTransformer(), DPIGHTClassifier(classes=(0, 1))))
    accountant = BudgetAccountant(10.0, 1e-3)
    with accountant, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe.fit(RNG.normal(size=(40, 3)), np.arange(40) % 2)
    assert accountant.ledger() == []


# ------------------------------------------------------------------ order and failures


class Told(NoisyMean):
    """Writes down what happens."""

    def __init__(self, **params):
        super().__init__(**params)
        self.told = []

    def get_params(self, deep=True):
        return {name: getattr(self, name) for name in NoisyMean._get_param_names()}

    def _check_parameters(self):
        self.told.append("parameters")
        super()._check_parameters()

    def _open_session(self, n_units=None):
        self.told.append(f"session {n_units}")
        return super()._open_session(n_units)

    def read(self, X, y=None, groups=None):
        self.told.append("read")
        return super().read(X, y, groups)

    def solve(self, session, problem):
        self.told.append("solve")
        solution = super().solve(session, problem)
        self.told.append("report" if not hasattr(self, "mean_") else "too early")
        return solution


def test_the_order_of_a_fit():
    model = Told(random_state=0).fit(OWNERS)
    assert model.told == ["parameters", "session 40", "read", "solve", "report"]


def test_a_failure_before_the_first_release_costs_nothing_and_changes_nothing():
    accountant = BudgetAccountant(1.0, 1e-4)
    model = NoisyMean(accountant=accountant)
    with pytest.raises(ValueError, match="finite"):
        model.fit([np.full(3, np.nan)] * 5)
    with pytest.raises(TypeError):
        model.fit(OWNERS, sample_weight=np.ones(40))  # refused before anything is reserved
    with pytest.raises(TypeError):
        model.fit(OWNERS, weight=np.ones(40))
    assert [line["state"] for line in accountant.ledger()] == ["returned", "returned"]
    assert not any(name.endswith("_") for name in vars(model))


def test_a_base_class_without_read_and_solve_cannot_be_made():
    class Half(PrivateFit):
        def read(self, X, y=None, groups=None):
            return None

    for cls in (Half, PrivateFit, NonPrivateFit):
        with pytest.raises(TypeError, match="abstract"):
            cls()


class ExactMean(NonPrivateFit):
    def fit(self, X, y=None, **more):
        return super().fit(X, y, **more)

    read = NoisyMean.read
    solve = NoisyMean.solve
    releases = NoisyMean.releases
    vector_of = NoisyMean.vector_of
    width, n_public = 3, None


def test_the_exact_mutant_shares_both_methods():
    model = ExactMean().fit(OWNERS)
    assert np.array_equal(model.mean_, NoisyMean(epsilon=np.inf).fit(OWNERS).mean_)
    assert not hasattr(model, "privacy_")
    with pytest.raises(TypeError, match="has no unit"):
        model.fit(OWNERS, groups=[0] * 40)


# ------------------------------------------------------------------ what an author may get wrong


class Forgets(NoisyMean):
    """Returns the exact mean: the noise was forgotten."""

    def solve(self, session, problem):
        return Solution(np.mean(problem.records.data, axis=0))


class ReturnsAnArray(NoisyMean):
    def solve(self, session, problem):
        return super().solve(session, problem).theta


class ReadsATuple(NoisyMean):
    def read(self, X, y=None, groups=None):
        return X, y


@pytest.mark.parametrize(
    ("cls", "error", "words"),
    [
        (Forgets, PrivacyAccountingError, "released nothing through the session"),
        (ReturnsAnArray, TypeError, r"solve must return a skdp\.base\.Solution, got ndarray"),
        (ReadsATuple, TypeError, r"read must return a skdp\.base\.Problem, got tuple"),
    ],
)
def test_an_authors_mistakes_are_named(cls, error, words):
    accountant = BudgetAccountant(1.0, 1e-5)
    model = cls(accountant=accountant)
    with pytest.raises(error, match=words):
        model.fit(np.zeros((9, 3)))
    assert not [name for name in vars(model) if name.endswith("_")]
    if cls is not ReturnsAnArray:  # its release is paid
        assert accountant.spent() == (0.0, 0.0)


def test_a_plan_needs_the_number_of_units():
    wanted = "a plan needs n_records=, the number of records, or the parameter n_public"
    with pytest.raises(ValueError, match=wanted):
        NoisyMean().plan(n_features=3)
    assert NoisyMean(n_public=40).plan(n_features=3).shape.n_units == 40
