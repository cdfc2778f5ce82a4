"""Fits inside a fit: what they may cost, who pays and when, which unit lies where, what is refused."""

import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.feature_selection import RFE, SelectFromModel
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.preprocessing import Normalizer, StandardScaler

from skdp import BudgetAccountant, DPIGHTClassifier, DPSGDClassifier, DPStandardScaler
from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded, PrivacyLeakWarning
from skdp.model_selection import DPTunedThresholdClassifier, compare, cross_validate
from skdp.privacy import ComposedSession, InnerFits, PrivacySession, accounting

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] + RNG.normal(size=N) > 0).astype(int)
BASE = DPIGHTClassifier(classes=(0, 1), n_nonzero_coefs=2, clip_norm=1.0, max_iter=4)
STOCHASTIC = DPSGDClassifier(classes=(0, 1), batch_size=60, clip_norm=1.0, max_iter=5)
EPSILON, DELTA = 3.0, 1e-5


def tuned(estimator, X, y, *, groups=None, **terms):
    return DPTunedThresholdClassifier(estimator, **terms).fit(X, y, groups=groups)


def compared(estimator, X, y, **terms):
    return compare({"one": estimator, "two": estimator}, X, y, **terms)


WAYS = {"cross_validate": cross_validate, "compare": compared, "threshold": tuned}
# For so few records fits say that probabilities are poor.
pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
each = pytest.mark.parametrize("way", list(WAYS))


def report_of(found):
    return found["privacy"] if isinstance(found, dict) else found.privacy_


def session(inner, **more):
    terms = {
        "epsilon": EPSILON, "delta": DELTA, "adjacency": "replace-one", "unit": "record", "accountant": False,
        "random_state": None, "estimator": "test", "context": b"",
    }  # fmt: skip
    return ComposedSession(inner=inner, **{**terms, **more})


# ------------------------------------------------------------------ costs


def spent_square(report):
    """The mu^2 of ledger rows by their multipliers alone: all are Gaussian."""
    assert {row["name"] for row in report.mechanisms} == {"gaussian"}
    return math.fsum(row["count"] / row["noise_multiplier"] ** 2 for row in report.mechanisms)


@pytest.mark.parametrize(("k", "share"), [(2, 0.2), (5, 0.2), (3, 0.5)])
def test_a_record_of_each_fold_pays_for_its_fits_and_its_evaluation(k, share):
    accountant = BudgetAccountant(EPSILON, DELTA)
    found = cross_validate(
        BASE, X, Y, cv=k, evaluation_share=share, epsilon=EPSILON, delta=DELTA, accountant=accountant
    )
    fits = [spent_square(model.privacy_) for model in found["estimator"]]
    tables = [spent_square(evaluation.privacy_) for evaluation in found["evaluation"]]
    total = found["privacy"].plan_mu ** 2
    # What the ideal releases may cost, by the recheck's own conversion.
    ideal = (found["privacy"].delta) * (1 - 1e-4)
    row = {"name": "gaussian", "noise_multiplier": 1 / math.sqrt(total)}
    assert accounting.recheck_epsilon([row], ideal) == pytest.approx(EPSILON, rel=2e-4)
    for j in range(k):
        cost = sum(fits[i] for i in range(k) if i != j) + tables[j]
        assert 0.95 * total <= cost <= total
        assert tables[j] == pytest.approx(share * total, rel=1e-4)
    assert accounting.recheck_epsilon(found["privacy"].mechanisms, DELTA) <= EPSILON
    (line,) = accountant.ledger()
    assert (line["estimator"], line["epsilon"], line["state"]) == ("cross_validate", EPSILON, "spent")


def test_the_parts_of_a_hold_out_do_not_add_up():
    found = compared(BASE, X, Y, epsilon=EPSILON, delta=DELTA)
    total = found.privacy_.plan_mu**2
    for reports in (
        [model.privacy_ for model in found.estimators_.values()],
        [evaluation.privacy_ for evaluation in found.values()],
    ):
        assert 0.95 * total <= sum(map(spent_square, reports)) <= total
    model = tuned(BASE, X, Y, epsilon=EPSILON, delta=DELTA)
    total = model.privacy_.plan_mu**2
    for report in (model.estimator_.privacy_, model.evaluation_.privacy_):
        assert (report.epsilon, report.delta) == (EPSILON, DELTA)
        assert 0.95 * total <= spent_square(report) <= total


@each
def test_fits_without_a_mu_are_added_by_basic_composition(way):
    accountant = BudgetAccountant(EPSILON, DELTA)
    with accountant:
        found = WAYS[way](STOCHASTIC, X, Y, epsilon=EPSILON, delta=DELTA)
    report = report_of(found)
    assert report.accountant == "basic composition of (epsilon, delta)"
    assert (report.epsilon, report.delta, report.mu) == (EPSILON, DELTA, math.inf)
    assert report.epsilon_at(DELTA / 10) == math.inf
    assert len(accountant.ledger()) == 1
    assert accountant.spent() == (EPSILON, DELTA)
    if way == "cross_validate":
        costs = [r.privacy_ for r in (*found["estimator"][1:], found["evaluation"][0])]
        assert math.fsum(r.epsilon for r in costs) == pytest.approx(EPSILON)
        assert math.fsum(r.delta for r in costs) == pytest.approx(DELTA)
    with pytest.raises(PrivacyBudgetExceeded, match="no proven mu"):
        late = BudgetAccountant(9.0, 1e-4)
        BASE_PAID = clone(BASE).set_params(accountant=late)
        BASE_PAID.fit(X, Y)
        WAYS[way](STOCHASTIC, X, Y, epsilon=EPSILON, delta=DELTA, accountant=late)


def test_a_batch_size_between_the_sizes_of_the_folds_is_named():
    with pytest.raises(PrivacyBudgetExceeded, match="Give a batch_size below or above the sizes"):
        cross_validate(clone(STOCHASTIC).set_params(batch_size=100), X[:201], Y[:201], epsilon=EPSILON, cv=2)


def test_one_candidate_without_a_mu_takes_it_from_all():
    found = compare([BASE, STOCHASTIC], X, Y, epsilon=EPSILON, delta=DELTA)
    assert {model.privacy_.epsilon for model in found.estimators_.values()} == {EPSILON / 2}
    assert list(found) == ["dpightclassifier", "dpsgdclassifier"]


def test_private_steps_of_a_pipeline_share_the_part_of_their_fit():
    pipe = make_pipeline(DPStandardScaler(), clone(BASE))
    found = cross_validate(pipe, X, Y, cv=2, epsilon=EPSILON, delta=DELTA, scoring="accuracy")
    model = found["estimator"][0]
    mus = [step.privacy_.plan_mu for _, step in model.steps]
    total = found["privacy"].plan_mu ** 2
    assert sum(mu**2 for mu in mus) == pytest.approx(0.8 * total, rel=1e-4)
    assert "fit: steps" not in str(pipe)
    assert pipe.steps[-1][1].epsilon == BASE.epsilon  # the user's own is not changed


def test_shares_of_a_place_hold_the_whole_budget_at_most():
    with pytest.raises(ValueError, match="more than the whole budget"):
        InnerFits(("a", "b"), (0.6, 0.5), ((0, 1),), (1, 1))
    with pytest.raises(ValueError, match="delta > 0"):
        session(InnerFits(("a",), (1.0,), ((0,),), (1,)), delta=0.0)
    inner = InnerFits(("a", "b"), (0.6, 0.5), ((0,), (1,)), (1, 1))
    assert inner.most == 1
    # One fit with all of it has all of it; others have less in mu, whatever their delta.
    assert InnerFits(("a",), (1.0,), ((0,),), (1,)).budget(0, 1.0, 1e-5) == (1.0, 1e-5)
    for epsilon in (0.01, 1.0, 20.0):
        many = InnerFits(("a",) * 7, (1 / 7,) * 7, (tuple(range(7)),), (1,) * 7)
        own = many.budget(3, epsilon, 1e-6)
        one = PrivacySession(epsilon=own[0], delta=own[1], accountant=False)
        everything = session(many, epsilon=epsilon, delta=1e-6)
        assert one.mu**2 * 7 <= everything.mu**2
        assert one.mu**2 * 7 == pytest.approx(everything.mu**2, rel=1e-4)


# ------------------------------------------------------------------ what a session admits


INNER = InnerFits(("fit", "evaluation"), (0.5, 0.5), ((0, 1),), (1, 1))


def released(paid, epsilon, delta=DELTA / 2, **more):
    with PrivacySession(epsilon=epsilon, delta=delta, accountant=paid, **more) as inside:
        inside.permutation(3)  # commits, as a release does
        inside.plan_gaussian(1)
        return inside


def test_a_fit_inside_cannot_take_more_than_its_share():
    with session(INNER) as outer:
        epsilon, delta = outer.budget(0)
        with pytest.raises(PrivacyBudgetExceeded, match="more than its part"):
            released(outer.payer(0), 1.01 * epsilon, delta)
        assert not outer.committed
        released(outer.payer(0), epsilon, delta)
        assert outer.committed
        with pytest.raises(PrivacyBudgetExceeded, match="more than its part"):
            released(outer.payer(0), 0.01, delta)  # one fit was announced
        for wrong in ({"unit": "group"}, {"adjacency": "zero-out"}):
            with pytest.raises(PrivacyBudgetExceeded, match="protects one"):
                released(outer.payer(1), epsilon, delta, **wrong)
        with pytest.raises(PrivacyBudgetExceeded, match="more than its part"):
            released(outer.payer(1), epsilon, delta, minibatches=True)  # it has no mu
        with pytest.raises(PrivacyAccountingError, match="do not match its charges"):
            outer.add(1, [])
        payer = outer.payer(1)
    with pytest.raises(RuntimeError, match="closed"):
        released(payer, epsilon, delta)
    with pytest.raises(TypeError, match="belongs to this fit"):
        pickle.dumps(payer)


def test_too_little_noise_is_caught_at_the_door_and_by_the_recheck(monkeypatch):
    """Mutants: budgets of twice the epsilon, and then without the check of what fits ask for."""
    honest = InnerFits.budget

    def twice(inner, index, epsilon, delta):
        found = honest(inner, index, epsilon, delta)
        return 2 * found[0], found[1]

    monkeypatch.setattr(InnerFits, "budget", twice)
    accountant = BudgetAccountant(EPSILON, DELTA)
    monkeypatch.setattr(InnerFits, "holds_errors", lambda *given: True)
    for run in WAYS.values():
        with pytest.raises(PrivacyBudgetExceeded, match="more than its part"):
            run(BASE, X, Y, epsilon=EPSILON, delta=DELTA, accountant=accountant)
    assert accountant.spent() == (0.0, 0.0)
    monkeypatch.setattr(ComposedSession, "_check_charges", lambda self, index: None)
    for estimator in (BASE, STOCHASTIC):
        with pytest.raises(PrivacyAccountingError, match="bug in skdp"):
            compared(estimator, X, Y, epsilon=EPSILON, delta=DELTA)


def test_errors_of_noise_that_do_not_fit_are_refused_before_anything_is_spent():
    inside = DPTunedThresholdClassifier(make_pipeline(DPStandardScaler(), BASE))
    accountant = BudgetAccountant(EPSILON, DELTA)
    with pytest.raises(ValueError, match="errors of drawn noise"):
        compared(inside, X, Y, epsilon=EPSILON, delta=DELTA, accountant=accountant)
    assert accountant.ledger() == []
    one = DPTunedThresholdClassifier(BASE)
    compare([one, one], X, Y, epsilon=EPSILON, delta=DELTA, accountant=accountant)


@pytest.mark.parametrize(
    "step",
    [
        SelectFromModel(BASE),
        pytest.param(RFE(BASE), marks=pytest.mark.thorough),
        pytest.param(ColumnTransformer([("a", DPStandardScaler(), [0, 1])]), marks=pytest.mark.thorough),
    ],
)
def test_private_parts_whose_copies_are_fitted_are_refused_before_anything_is_spent(step):
    accountant = BudgetAccountant(EPSILON, DELTA)
    for run in WAYS.values():
        with pytest.raises(TypeError, match=f"inside {type(step).__name__}, which fits copies"):
            run(make_pipeline(step, BASE), X, Y, epsilon=EPSILON, delta=DELTA, accountant=accountant)
    assert accountant.ledger() == []
    union = FeatureUnion([("a", DPStandardScaler()), ("b", "passthrough")])
    for run in WAYS.values():
        run(make_pipeline(make_pipeline(union), BASE), X, Y, epsilon=EPSILON, delta=DELTA)


@pytest.mark.parametrize("estimator", [
    make_pipeline(Normalizer(), make_pipeline(StandardScaler(), BASE)),
    make_pipeline(make_pipeline(StandardScaler(), BASE)),
])  # fmt: skip
def test_steps_that_learn_are_warned_of_in_pipelines_inside_pipelines(estimator):
    with pytest.warns(PrivacyLeakWarning, match="StandardScaler learnt"):
        found = compare([estimator], X, Y, epsilon=EPSILON, delta=DELTA)
    assert any("StandardScaler learnt" in line for line in found.privacy_.leaks)
    assert not any("did not learn" in line for line in found.privacy_.assumptions)
    lines = compare([BASE], X, Y, epsilon=EPSILON, delta=DELTA).privacy_.assumptions
    assert sum("did not learn" in line for line in lines) == 1


def test_what_releases_nothing_is_handed_back():
    accountant = BudgetAccountant(EPSILON, DELTA)
    with session(INNER, accountant=accountant) as outer:
        with PrivacySession(epsilon=outer.budget(0)[0], delta=DELTA / 2, accountant=outer.payer(0)):
            assert accountant.ledger()[0]["state"] == "reserved"
        released(outer.payer(0), *outer.budget(0))  # the first one gave its part back
        assert accountant.ledger()[0]["state"] == "spent"
    with session(INNER, accountant=BudgetAccountant(EPSILON, DELTA)) as outer:
        pass
    assert accountant.spent() == pytest.approx((EPSILON, DELTA), rel=1e-4)


# ------------------------------------------------------------------ places


def test_sizes_of_places_are_public_or_coins():
    one = InnerFits(("a",), (1.0,), ((0,),), (1,))
    with session(one) as outer:
        for n, shares, sizes in (
            (10, (0.75, 0.25), [7, 3]), (13, (0.2,) * 5, [2, 3, 2, 3, 3]), (2, (0.999, 0.001), [1, 1]),
            (5, (0.2,) * 5, [1] * 5), (20, (0.7, 0.1, 0.2), [14, 2, 4]), (2, (0.001, 0.999), [1, 1]),
        ):  # fmt: skip
            assert np.bincount(outer.positions(n, shares), minlength=len(shares)).tolist() == sizes
        assert not outer.committed
        # 4000 draws of places for 4 units: each pair of units has each pair of places as often as it should;
        # false alarm below 1e-6 by 5.5 sd and 32 comparisons.
        drawn = np.array([outer.positions(4, (0.5, 0.5)) for _ in range(4000)])
        assert (drawn.sum(axis=1) == 2).all()
        assert np.all(np.abs(drawn.mean(axis=0) - 0.5) < 5.5 * 0.5 / math.sqrt(4000))
        pair = (drawn[:, :, None] * drawn[:, None, :]).mean(axis=0)[np.triu_indices(4, 1)]
        assert np.all(np.abs(pair - 1 / 6) < 5.5 * math.sqrt(5 / 36 / 4000))
    with session(one, adjacency="add-remove") as outer:
        drawn = outer.positions(40_000, (0.75, 0.25)).reshape(-1, 10)
        assert abs(drawn.mean() - 0.25) < 5.5 * math.sqrt(0.1875 / 40_000)
        assert drawn.sum(axis=1).std() > 1.0  # a public size would have none
    seeds = set()
    for _ in range(2):
        with pytest.warns(PrivacyLeakWarning), session(one, random_state=3) as outer:
            seeds.add((outer.seed(), *outer.positions(20, (0.5, 0.5))))
    assert len(seeds) == 1


# ------------------------------------------------------------------ refusals


def unspent(match, error=(ValueError, TypeError), way=None, **more):
    """Each way refuses before anything is spent."""
    for name, run in WAYS.items() if way is None else [(way, WAYS[way])]:
        accountant = BudgetAccountant(EPSILON, DELTA)
        given = {"estimator": BASE, "X": X, "y": Y, "epsilon": EPSILON, "accountant": accountant, **more}
        with pytest.raises(error, match=match):
            run(given.pop("estimator"), given.pop("X"), given.pop("y"), **given)
        assert accountant.spent() == (0.0, 0.0), name
        assert all(line["state"] == "returned" for line in accountant.ledger())


def test_public_faults_are_raised_before_anything_is_spent():
    unspent("must be a private estimator", estimator=LogisticRegression())
    unspent("must be a private estimator", estimator=make_pipeline(Normalizer(), LogisticRegression()))
    unspent("ends in one", estimator=make_pipeline(DPStandardScaler(), LogisticRegression()))
    unspent("ends in one", estimator=FrozenEstimator(clone(BASE).set_params(random_state=None)))
    unspent("got the class", estimator=DPIGHTClassifier)
    unspent("accountant of its own", estimator=clone(BASE).set_params(accountant=BudgetAccountant(1.0, 1e-5)))
    unspent("n_nonzero_coefs", estimator=clone(BASE).set_params(n_nonzero_coefs=-1))
    unspent("n_nonzero_coefs", estimator=make_pipeline(Normalizer(), clone(BASE).set_params(n_nonzero_coefs=-1)))
    unspent("n_public", adjacency="add-remove")
    unspent("needs groups", unit="group")
    unspent("different lengths", y=Y[:-1])
    unspent("delta=0", delta=0.0)
    unspent("passes|would pass", error=PrivacyBudgetExceeded, epsilon=2 * EPSILON)
    broken = X.copy()
    broken[3, 1] = np.inf
    unspent("NaN|inf", X=broken)
    unspent("NaN|inf", X=broken, estimator=make_pipeline(DPStandardScaler(), clone(BASE)))
    unspent("scoring", way="compare", scoring="r2")
    unspent("scoring", way="cross_validate", scoring=["accuracy", "speed"])
    unspent("cv must be", way="cross_validate", cv=1)
    unspent("evaluation_share", way="cross_validate", evaluation_share=1.0)
    unspent("at least as many", way="cross_validate", X=X[:4], y=Y[:4])
    unspent("test_size", way="compare", test_size=0)
    unspent("test_size", way="threshold", test_size=1.5)
    unspent("costs", way="threshold", costs={"fp": 1})
    unspent("bins", way="threshold", bins=7)
    three = clone(BASE).set_params(classes=(0, 1, 2))
    unspent("two classes", way="threshold", estimator=three)
    unspent("two classes", way="threshold", estimator=make_pipeline(DPStandardScaler(), three))
    unspent("columns of X", way="compare", X_test=X[:, :2], y_test=Y)
    unspent("NaN|inf", way="compare", X_test=broken, y_test=Y)


def test_steps_that_learn_are_named_before_and_in_the_report():
    pipe = make_pipeline(StandardScaler(), clone(BASE))
    with pytest.warns(PrivacyLeakWarning, match="StandardScaler learnt from these records") as caught:
        found = cross_validate(pipe, X, Y, cv=2, epsilon=EPSILON)
    assert len([w for w in caught if "StandardScaler" in str(w.message)]) == 1
    assert any("StandardScaler" in line for line in found["privacy"].leaks)


class LearnsFirst(DPIGHTClassifier):
    def fit(self, X, y):
        self.seen = len(X)
        return super().fit(X, y)


@each
def test_a_subclass_that_learns_before_its_fit_is_named(way):
    base = LearnsFirst(**BASE.get_params())
    for estimator in (base, make_pipeline(Normalizer(), base)):
        with pytest.warns(PrivacyLeakWarning, match="may have learnt from these records") as caught:
            found = WAYS[way](estimator, X, Y, epsilon=EPSILON)
        assert 1 <= [w.category for w in caught].count(PrivacyLeakWarning) <= 2
        assert any("may have learnt" in line for line in report_of(found).leaks)


class FailsLate(DPIGHTClassifier):
    """Its third fit fails after a release, with a message that quotes the data."""

    fits = 0

    def solve(self, session, problem):
        found = super().solve(session, problem)
        type(self).fits += 1
        if type(self).fits == 3:
            raise ValueError(f"cell {problem.records.n_features}")
        return found


class FailsEarly(DPIGHTClassifier):
    def solve(self, session, problem):
        raise ValueError("a public fault")


def test_a_failure_after_a_release_stays_charged_and_says_nothing():
    base = BASE.get_params()
    accountant = BudgetAccountant(EPSILON, DELTA)
    with pytest.raises(RuntimeError, match="message is withheld") as caught:
        cross_validate(FailsLate(**base), X, Y, epsilon=EPSILON, accountant=accountant)
    assert "cell" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None
    assert accountant.ledger()[0]["state"] == "spent"
    unspent("a public fault", estimator=FailsEarly(**base))


# ------------------------------------------------------------------ what comes back


@each
def test_seeds_containers_and_the_users_own_objects(way):
    pd = pytest.importorskip("pandas")
    base = clone(BASE)
    before = base.get_params()
    ids = [f"r{i}" for i in range(N)]
    tables = {
        "array": (X, Y), "frame": (pd.DataFrame(X, columns=list("abc"), index=ids), pd.Series(Y, index=ids)),
        "csr": (sp.csr_matrix(X), Y), "list": (X.tolist(), Y.tolist()),
    }  # fmt: skip
    coefs = {}
    for kind, (table, labels) in tables.items():
        with pytest.warns(PrivacyLeakWarning, match="random_state is a seed") as caught:
            found = WAYS[way](base, table, labels, epsilon=EPSILON, random_state=5)
        assert [w.category for w in caught].count(PrivacyLeakWarning) == 1
        if isinstance(found, dict):
            models = found["estimator"]
        else:
            models = list(getattr(found, "estimators_", {"": getattr(found, "estimator_", None)}).values())
        coefs[kind] = np.vstack([model.coef_ for model in models])
        assert all(model.accountant is None and model.random_state is None for model in models)
        assert hasattr(models[0], "feature_names_in_") == (kind == "frame")
    for kind in tables:
        assert np.allclose(coefs[kind], coefs["array"], rtol=1e-6), kind
    assert base.get_params() == before
    assert not hasattr(base, "coef_")


@each
def test_without_privacy_nothing_is_charged(way):
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        report = report_of(WAYS[way](BASE, X, Y, epsilon=math.inf))
    assert report.guarantee == "none"
