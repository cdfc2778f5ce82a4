"""The paid search: what it refuses, what leaves, what each trial may cost, and an attack on all of it."""

import contextlib
import logging
import math
import multiprocessing
import warnings
from concurrent.futures import ProcessPoolExecutor

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2, loguniform, randint
from sklearn.base import ClassifierMixin, clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from skdp import (
    BudgetAccountant,
    DPIGHTClassifier,
    DPLinearRegression,
    DPLogisticRegression,
    DPSGDClassifier,
    DPSLKTRegressor,
)
from skdp.base import PrivateFit, Problem, Solution
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning
from skdp.model_selection import DPRandomizedSearch
from skdp.model_selection.candidates import Candidates
from skdp.model_selection.scores import CLASSIFIER_SCORES, REGRESSOR_SCORES, ScoreTerms, released_score
from skdp.model_selection.unit_split import divided, part_sizes
from skdp.privacy import PrivacySession, PrivateRecords
from skdp.privacy.accounting import gaussian_mu
from skdp.privacy.log import LOGGER
from skdp.privacy.mechanisms.best_of.calibration import approximate_base, gaussian_base
from skdp.privacy.mechanisms.best_of.trials import TrialCount
from tests.privacy.audit import epsilon_lower

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 3))
Y = (X @ [2.0, -1.0, 0.0] + 0.3 * RNG.normal(size=N) > 0).astype(int)
TARGETS = X @ [2.0, -1.0, 0.0] + 0.3 * RNG.normal(size=N)
ATTRIBUTES = {
    "best_estimator_", "best_params_", "best_score_", "base_epsilon_", "privacy_",
    "classes_", "n_features_in_",
}  # fmt: skip


class Toy(ClassifierMixin, PrivateFit):
    """Releases the mean of the first column; ``then`` is called in fits and predictions."""

    def __init__(
        self, level=0.0, then=None, classes=(0, 1), epsilon=1.0, delta=1e-5, adjacency="replace-one",
        unit="record", n_public=None, accountant=None, random_state=None, verbose=False,
    ):  # fmt: skip
        self.level = level
        self.then = then
        self.classes = classes
        self.epsilon = epsilon
        self.delta = delta
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _check_parameters(self):
        super()._check_parameters()
        if not self.level >= 0:
            raise ValueError(f"level must be >= 0, got {self.level!r}")

    def read(self, X, y=None, groups=None):
        table = np.asarray(X, dtype=np.float64)
        codes = None if groups is None else np.unique(groups, return_inverse=True)[1]
        records = PrivateRecords(table[:, :1], groups=codes, n_public=self.n_public)
        fitted = {"classes_": np.asarray(self.classes), "n_features_in_": table.shape[1]}
        return Problem(records, fitted, ())

    def solve(self, session, problem):
        plan = session.plan_gaussian(1)
        sums = problem.records.column_sums(np.zeros(1), np.ones(1))
        found = session.gaussian(sums, plan)
        if self.then is not None:
            self.then("fit", self)
        return Solution(found, 1, {"sum_": float(found[0]), "std_": session.noise_std(sums, plan)})

    def predict(self, X):
        if self.then is not None:
            self.then("predict", X)
        return np.ones(len(X), dtype=int)


def search(estimator=None, params=None, **more):
    given = {"mean_trials": 3, "epsilon": 2.0, **more}
    return DPRandomizedSearch(
        Toy() if estimator is None else estimator, {"level": [0.0, 1.0]} if params is None else params, **given
    )  # fmt: skip


# ---------------------------------------------------------------------- what is refused before anything is spent


@pytest.mark.parametrize(
    ("more", "error", "message"),
    [
        ({"estimator": LogisticRegression(), "params": {"C": [1.0]}}, TypeError, "private estimator of skdp"),
        ({"estimator": [], "params": None}, ValueError, "at least one"),
        ({"params": {}}, ValueError, "at least one parameter"),
        ({"params": []}, ValueError, "at least one parameter"),
        ({"params": {"level": []}}, ValueError, "is empty"),
        ({"params": {"level": 1.0}}, TypeError, "a list or a distribution"),
        ({"params": [3]}, TypeError, "must be a dict"),
        ({"params": {"nowhere": [1]}}, ValueError, "Invalid parameter"),
        ({"params": {"level": [0.0, 1.0, -1.0]}}, ValueError, "level must be >= 0"),
        ({"params": {"level": [0.0] * 40 + [-1.0], "then": [None] * 40}}, ValueError, "level must be"),
        ({"params": {"epsilon": [1.0]}}, ValueError, "the search sets it"),
        ({"params": {"verbose": [False]}}, ValueError, "secret"),
        ({"estimator": Toy(verbose=True)}, ValueError, "secret"),
        ({"estimator": [Toy(), DPLinearRegression()], "params": [None, None]}, ValueError, "one kind"),
        ({"estimator": [Toy(), Toy()], "params": [None]}, ValueError, "one entry"),
        (
            {"estimator": DPSLKTRegressor(), "params": {"teacher": ["ridge", "published"]}}, ValueError,
            "no valid privacy proof",
        ),
        ({"scoring": "roc_auc"}, ValueError, "scoring must be one of"),
        ({"scoring": "neg_log_loss"}, ValueError, "needs predict_proba"),
        ({"mean_trials": 1}, ValueError, "mean_trials"),
        ({"mean_trials": "many"}, TypeError, "mean_trials"),
        ({"shape": 2}, ValueError, "shape"),
        ({"test_size": 1.0}, ValueError, "test_size"),
        ({"delta": 0.0}, ValueError, "delta=0"),
        ({"adjacency": "add-remove"}, ValueError, "n_public"),
        ({"unit": "group"}, ValueError, "groups"),
    ],
)  # fmt: skip
def test_public_faults_are_raised_before_anything_is_spent(more, error, message):
    accountant = BudgetAccountant(4.0, 1e-4)
    with pytest.raises(error, match=message):
        search(**more, accountant=accountant).fit(X, Y)
    assert accountant.ledger() == []


def test_data_that_cannot_be_fitted_are_refused_before_anything_is_spent():
    accountant = BudgetAccountant(4.0, 1e-4)
    made = search(DPLogisticRegression(classes=(0, 1)), {"C": [1.0, 0.1]}, accountant=accountant)
    bad = X.copy()
    bad[3, 1] = np.inf
    for table, labels in ((bad, Y), (X, Y + 1), (X[:1], Y[:1]), (iter(X), Y)):
        with pytest.raises((ValueError, TypeError)):
            made.fit(table, labels)
    with pytest.raises(TypeError, match="sample_weight"):
        made.fit(X, Y, sample_weight=np.ones(N))
    assert accountant.spent() == (0.0, 0.0)
    assert not hasattr(made, "best_estimator_")


# ---------------------------------------------------------------------- what leaves


def test_only_the_best_trial_leaves_and_the_claim_is_the_searchs():
    accountant = BudgetAccountant(4.0, 1e-4)
    made = search(DPLogisticRegression(classes=(0, 1), accountant=accountant), {"C": loguniform(1e-3, 1.0)})
    with accountant:
        made.fit(X, Y)
    assert {name for name in vars(made) if name.endswith("_")} == ATTRIBUTES
    for name in ("cv_results_", "best_index_", "n_trials_", "refit_time_", "n_iter_", "n_splits_"):
        assert not hasattr(made, name)
    (row,) = accountant.ledger()
    assert (row["estimator"], row["epsilon"], row["delta"]) == ("DPRandomizedSearch", 2.0, 1e-5)
    assert accountant.spent() == (2.0, 1e-5)
    with pytest.raises(PrivacyBudgetExceeded, match="would pass the ceiling"):
        search(accountant=accountant, epsilon=3.0).fit(X, Y)
    mu, base = gaussian_base(TrialCount(3), 2.0, 1e-5)
    assert made.base_epsilon_ == pytest.approx(base, rel=1e-9)
    best, report = made.best_estimator_, made.privacy_
    assert best.privacy_ == report
    assert (report.epsilon, report.delta, report.mu) == (2.0, 1e-5, math.inf)
    (line,) = report.mechanisms
    assert line["name"] == "best_of"
    assert line["base_mu"] == pytest.approx(mu)
    assert best.epsilon == made.base_epsilon_
    assert best.accountant is accountant  # a fit of a copy is charged
    assert best.C == made.best_params_["C"]
    # Noise of a count of one over the rows that are scored on.
    assert made.best_score_.noise_std == pytest.approx(1 / (0.2 * N * mu), rel=1e-3)
    np.testing.assert_array_equal(made.predict(X), best.predict(X))
    assert made.score(X, Y) == best.score(X, Y) > 0.7


def test_trials_cost_the_base_charge_nothing_and_keep_fit_and_score_apart():
    seen = {"fit": [], "predict": []}

    def then(what, value):
        seen[what].append(clone(value) if what == "fit" else set(np.asarray(value)[:, 1].tolist()))

    accountant = BudgetAccountant(40.0, 1e-3)
    everything = set(X[:, 1].tolist())
    with accountant:
        for _ in range(12):
            made = search(Toy(then=then), mean_trials=8).fit(X, Y)
            scored = seen["predict"][0]
            # One division for all trials of a search: a fifth of the rows.
            assert all(part == scored for part in seen["predict"])
            assert len(scored) == N // 5
            for fitted in seen["fit"]:
                assert fitted.epsilon == made.base_epsilon_
                assert (fitted.accountant, fitted.random_state, fitted.n_public) == (False, None, None)
            assert len(seen["fit"]) == len(seen["predict"])
            assert scored < everything
            seen["fit"].clear()
            seen["predict"].clear()
    assert [row["estimator"] for row in accountant.ledger()] == ["DPRandomizedSearch"] * 12


@pytest.mark.slow
def test_a_search_in_another_process_charges_once():
    accountant = BudgetAccountant(4.0, 1e-4)
    with accountant, ProcessPoolExecutor(1, multiprocessing.get_context("spawn")) as pool:
        made = search(DPLogisticRegression(classes=(0, 1)), {"C": [1.0, 0.1]}, mean_trials=10)
        found = pool.submit(made.fit, X, Y).result(300)
    assert found.best_score_.value > 0
    assert [row["estimator"] for row in accountant.ledger()] == ["DPRandomizedSearch"]
    assert accountant.spent() == (2.0, 1e-5)


def test_a_search_that_ends_with_no_result_says_so_in_one_way_and_stays_charged():
    def then(what, value):
        raise ValueError(f"of {what}")

    accountant = BudgetAccountant(4.0, 1e-4)
    made = search(Toy(then=then), accountant=accountant)
    with pytest.raises(RuntimeError, match="every trial of the search failed") as error:
        made.fit(X, Y)
    assert error.value.__cause__ is error.value.__context__ is None
    assert accountant.spent() == (2.0, 1e-5)
    assert not hasattr(made, "best_estimator_")


def test_failing_candidates_score_lowest():
    def fails(what, value):
        if what == "fit":
            raise ValueError("always")

    # All trials of a search fail with probability .01, and those of four searches with 1e-8.
    found = []
    for _ in range(4):
        with contextlib.suppress(RuntimeError):
            made = search(params={"then": [None, fails]}, mean_trials=100).fit(X, Y)
            found.append(made.best_params_)
    assert found
    assert all(params == {"then": None} for params in found)


def test_a_fit_that_claims_more_than_a_trial_may_cost_has_no_result():
    class Costly(Toy):
        factor = 1.0

        def _open_session(self, n_units=None):
            mutant = Toy(epsilon=self.factor * self.epsilon, delta=self.delta, accountant=False)
            return mutant._open_session(n_units)

    class Costlier(Costly):
        factor = 1.01

    assert search(Costly()).fit(X, Y).best_score_.value > 0
    with pytest.raises(RuntimeError, match="every trial"):
        search(Costlier()).fit(X, Y)


# ---------------------------------------------------------------------- neighbours


def traces(made, table, labels, groups, caplog, capsys):
    """Everything that a search leaves besides the winner."""
    accountant = BudgetAccountant(4.0, 1e-4, allow_seeded=True)
    made = clone(made).set_params(accountant=accountant)
    caplog.clear()
    more = {} if groups is None else {"groups": groups}
    with warnings.catch_warnings(record=True) as caught, caplog.at_level(logging.DEBUG, "skdp"):
        warnings.simplefilter("always")
        try:
            made.fit(table, labels, **more)
            error = None
        except RuntimeError as raised:
            error = str(raised)
    rows = [
        {key: value for key, value in row.items() if key not in ("time", "pid")} for row in accountant.ledger()
    ]
    report = made.privacy_.to_dict() if error is None else None
    names = sorted(vars(made)) if error is None else None
    text = [record.getMessage().replace(accountant.path, "") for record in caplog.records]
    out = capsys.readouterr()
    return (
        error, rows, report, names, text, [str(each.message) for each in caught], (out.out, out.err)
    )  # fmt: skip


def neighbours(adjacency, unit):
    """Two data sets that differ in a unit; groups of other sizes."""
    groups = np.arange(N) % 150 if unit == "group" else None
    moved, labels = X.copy(), Y.copy()
    if unit == "record":
        moved[7] = [1e9, -1e9, 0.0]
        labels[7] = 1 - labels[7]
        if adjacency == "add-remove":
            return (X, Y, None), (np.delete(X, 7, 0), np.delete(Y, 7), None)
        return (X, Y, None), (moved, labels, None)
    kept = groups != 7
    if adjacency == "add-remove":
        return (X, Y, groups), (X[kept], Y[kept], groups[kept])
    more = np.full((40, 3), 1e6)
    return (X, Y, groups), (
        np.vstack([X[kept], more]),
        np.append(Y[kept], np.ones(40, dtype=int)),
        np.append(groups[kept], np.full(40, 7)),
    )


@pytest.mark.filterwarnings("ignore:random_state is a seed")
@pytest.mark.parametrize("unit", ["record", "group"])
@pytest.mark.parametrize(
    "adjacency",
    ["replace-one", *(pytest.param(name, marks=pytest.mark.thorough) for name in ("zero-out", "add-remove"))],
)
def test_neighbours_leave_the_same_traces(adjacency, unit, caplog, capsys):
    """Also with other seeds, so another number of trials, and with candidates that fail or print warnings."""
    limits = {"add-remove": {"record": 600, "group": 150}}.get(adjacency, {}).get(unit)
    made = search(
        [DPLogisticRegression(classes=(0, 1)), Toy(then=speaks)],
        [{"C": [1.0, 0.01], "solver": ["auto", "ight"]}, None],
        adjacency=adjacency, unit=unit, n_public=limits, mean_trials=6, random_state=0,
    )  # fmt: skip
    one, other = neighbours(adjacency, unit)
    first = traces(made, *one, caplog, capsys)
    if adjacency == "add-remove":  # the rows are not public, and in no report
        assert "n_records" not in str(first)
    for seed, data in ((0, other), (1, one), (2, other)):
        found = traces(clone(made).set_params(random_state=seed), *data, caplog, capsys)
        assert found == first
    assert any("seed" in line for line in first[5])


def speaks(what, value):
    LOGGER.info("a trial")
    warnings.warn("a trial", UserWarning, stacklevel=1)
    if what == "predict" and len(value) > 1:
        raise ValueError(f"{len(value)} rows")


# ---------------------------------------------------------------------- parts and scores


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_units_are_in_one_part_with_all_of_their_rows(adjacency):
    groups = np.arange(1000) % 50
    for seed in range(20):
        session = PrivacySession.without_privacy(random_state=seed)
        session.adjacency = adjacency
        fit, score = divided(session, groups, 0.3)
        assert np.array_equal(np.sort(np.append(fit, score)), np.arange(1000))
        assert not set(groups[fit]) & set(groups[score])
        if adjacency == "replace-one":
            assert len(set(groups[score])) == 15


def test_sizes_of_parts_are_public():
    assert part_sizes(101, 0.2, None, "replace-one").n_units == 80
    assert part_sizes(2, 0.9, None, "replace-one").n_units == 1
    assert part_sizes(None, 0.2, None, "replace-one").n_units is None
    sizes = part_sizes(None, 0.2, 1000, "add-remove")
    assert (sizes.n_units, sizes.fit_public, sizes.score_public, sizes.score_least) == (762, 762, 200, 162)
    sizes = part_sizes(1000, 0.2, 1000, "zero-out")
    assert (sizes.fit_public, sizes.score_public, sizes.score_least) == (800, 200, 200)


class Model:
    """Predicts the first column as a label, or as a number; fails where the second is negative."""

    classes_ = np.array([0, 1])

    def predict(self, X):
        if (X[:, 1] < 0).any():
            raise ValueError("negative")
        return X[:, 0] if X.shape[1] > 2 else (X[:, 0] > 0).astype(int)

    def predict_proba(self, X):
        if (X[:, 1] < 0).any():
            raise ValueError("negative")
        return np.column_stack([1 - X[:, 0], X[:, 0]])


@pytest.mark.parametrize("name", [*CLASSIFIER_SCORES, *REGRESSOR_SCORES])
def test_a_row_changes_its_own_number_and_no_other_also_if_it_cannot_be_predicted(name):
    score = {**CLASSIFIER_SCORES, **REGRESSOR_SCORES}[name]
    table = np.random.default_rng(1).uniform(size=(50, 2 if name in CLASSIFIER_SCORES else 3))
    targets = np.arange(50) % 2 * 1.0
    before = score.values(Model(), table, targets)
    low, high = score.bounds or (0.0, 1e150)
    for worst in ([0.3, -1.0], [np.nan, 0.5], [np.inf, 0.5], [-np.inf, 0.5], [1e300, 0.5], [0.0, 0.5]):
        moved = table.copy()
        moved[7, :2] = worst
        after = score.values(Model(), moved, targets)
        assert np.isfinite(after).all()
        assert np.all((after >= low) & (after <= high))
        np.testing.assert_array_equal(np.delete(after, 7), np.delete(before, 7))
    for wrong in (5.0, "text"):
        strange = [*targets[:7].tolist(), wrong, *targets[8:].tolist()]
        if name in CLASSIFIER_SCORES:
            after = score.values(Model(), table, np.array(strange, dtype=object))
            assert after[7] == pytest.approx(high)
            np.testing.assert_array_equal(np.delete(after, 7), np.delete(before, 7))


@pytest.mark.filterwarnings("ignore:random_state is a seed")
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
def test_an_accuracy_has_the_noise_of_its_budget_and_a_mutant_with_half_of_it_is_caught(adjacency):
    """Of 50 groups, 400 releases: a chi-square test with a false-alarm rate of 1e-7."""
    table = np.column_stack([np.ones(200), np.ones(200)])
    groups, targets = np.arange(200) % 50, np.append(np.zeros(100), np.ones(100)).astype(int)
    n_public = 50 if adjacency == "add-remove" else None
    mu = gaussian_mu(1.0, 1e-5)
    # A unit moves the mean by the whole range of 1, or by the half of it that is its distance from the middle.
    expected = (1.0 if adjacency == "replace-one" else 0.5) / (50 * mu)
    scores = []
    for seed in range(400):
        terms = ScoreTerms(1.0, 1e-5, adjacency, "group", n_public, n_public, seed)
        score, std = released_score("accuracy", Model(), table, targets, groups, terms)
        assert std == pytest.approx(expected, rel=1e-3)
        scores.append(score - 0.5)
    spread = float(np.sum(np.square(scores))) / std**2
    low, high = chi2.ppf(5e-8, 400), chi2.isf(5e-8, 400)
    assert low < spread < high
    assert not low < 0.25 * spread < high


@pytest.mark.parametrize("scoring", ["neg_mean_squared_error", "neg_mean_absolute_error"])
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_a_regression_is_searched(scoring):
    made = search(
        DPLinearRegression(), {"fit_intercept": [True, False]}, scoring=scoring, epsilon=20.0, mean_trials=2
    ).fit(X, TARGETS)  # fmt: skip
    assert is_regressor(made)
    assert not hasattr(made, "predict_proba")
    assert made.score(X, TARGETS) > 0.8
    errors = np.abs(made.predict(X) - TARGETS) ** (2 if "squared" in scoring else 1)
    assert -made.best_score_.value == pytest.approx(errors.mean(), abs=0.1 + 5 * made.best_score_.noise_std)


# ---------------------------------------------------------------------- candidates


def test_draws_are_uniform_and_with_replacement():
    """Four candidates, 4000 draws: each count is within six standard deviations."""
    numbers = np.random.RandomState(1)
    drawn = Candidates(Toy(), [{"level": [0.0, 1.0]}, {"level": [2.0, 3.0]}])
    counts = np.bincount([int(drawn.draw(numbers).params["level"]) for _ in range(4000)])
    assert np.all(np.abs(counts - 1000) < 6 * math.sqrt(4000 * 3 / 16))
    several = Candidates([Toy(), Toy(level=5.0)], [{"level": randint(0, 3)}, None])
    seen = {str(sorted(several.draw(numbers).params.items())) for _ in range(200)}
    assert seen == {"[]", "[('level', 0)]", "[('level', 1)]", "[('level', 2)]"}


def test_of_a_large_grid_every_entry_is_checked():
    space = {"level": list(range(700)), "then": [None] * 30, "verbose": list(range(9))}
    checked = [candidate.params for candidate in Candidates(Toy(), space).to_check()]
    assert {params["level"] for params in checked} == set(range(700))
    assert {params["verbose"] for params in checked} == set(range(9))
    assert len(checked) == 700


# ---------------------------------------------------------------------- estimators, containers, scikit-learn


def test_fits_without_mu_are_paid_by_epsilon_and_delta_alone():
    made = search(
        [DPSGDClassifier(classes=(0, 1)), DPIGHTClassifier(classes=(0, 1))],
        [{"batch_size": [64, 128]}, None],
        scoring="neg_log_loss",
    ).fit(X, Y)
    base, part = approximate_base(TrialCount(3), 2.0, 1e-5)
    assert made.base_epsilon_ == pytest.approx(base, rel=1e-9)
    assert made.best_estimator_.delta == pytest.approx(part, rel=1e-9)
    assert "base_mu" not in made.privacy_.mechanisms[0]
    assert made.base_epsilon_ < gaussian_base(TrialCount(3), 2.0, 1e-5)[1]


def test_epsilon_inf_searches_without_noise():
    made = search(params={"level": [0.0]}, epsilon=math.inf).fit(X, Y)
    assert made.base_epsilon_ == math.inf
    assert made.best_score_.noise_std == 0
    assert made.privacy_.guarantee == "none"


@pytest.mark.parametrize("kind", ["frame", "polars", "csr", "list"])
def test_containers(kind):
    table, labels = X, Y
    if kind == "frame":
        pandas = pytest.importorskip("pandas")
        table, labels = pandas.DataFrame(X, columns=["a", "b", "c"]), pandas.Series(Y)
    elif kind == "polars":
        polars = pytest.importorskip("polars")
        table, labels = polars.DataFrame(X, schema=["a", "b", "c"]), polars.Series(Y)
    elif kind == "csr":
        table = sp.csr_array(X)
    else:
        table, labels = X.tolist(), ["yes" if label else "no" for label in Y]
    classes = ("no", "yes") if kind == "list" else (0, 1)
    made = search(DPLogisticRegression(classes=classes), {"C": [1.0, 0.1]}, mean_trials=1.5).fit(table, labels)
    assert made.score(table, labels) > 0.6
    assert made.classes_.tolist() == list(classes)
    if kind in ("frame", "polars"):
        assert made.feature_names_in_.tolist() == ["a", "b", "c"]


def test_labels_that_are_not_declared_are_a_leak_that_is_named():
    made = search(DPLogisticRegression(), {"C": [1.0, 0.1]}, mean_trials=1.5)
    with pytest.warns(PrivacyLeakWarning, match="label set was inferred"):
        made.fit(X, Y)
    assert any("label set was inferred" in line for line in made.privacy_.leaks)


def test_it_is_an_estimator_of_scikit_learn():
    made = search(DPLogisticRegression(classes=(0, 1)), {"C": [1.0, 0.1]})
    assert is_classifier(made)
    assert clone(made).get_params()["estimator__classes"] == (0, 1)
    with pytest.raises(NotFittedError):
        made.predict(X)
    assert hasattr(made, "predict_proba")
    assert not hasattr(search(), "predict_proba")
    made.set_params(estimator__fit_intercept=False).fit(X, Y)
    assert not made.best_estimator_.fit_intercept
    assert made.predict_proba(X).shape == (N, 2)
    assert made.decision_function(X).shape == (N,)
    assert made.predict_log_proba(X).shape == (N, 2)


# ---------------------------------------------------------------------- an attack on the whole search

# The best order of an adversary at these numbers, see test_best_of.
TOTAL, ATTACK_DELTA, Z1, Z0 = 4.0, 0.1, -0.22, 2.41


class Ordered(Toy):
    """Orders its own models as an adversary wants: all, half or none of its predictions are right."""

    def predict(self, X):
        z = (self.sum_ + 1.0) / self.std_
        right = 0.5 if z > Z0 else 0.0 if z > Z1 else 1.0
        return (np.asarray(X)[:, 1] < right).astype(int)


@pytest.mark.slow
def test_an_attack_on_the_search_stays_below_the_claim_and_catches_the_mutant():
    """One record is -1 or 1, all others 0; 7000 searches on either side; false alarm below 1e-6.

    The mutant charges the winner's fit and score alone, the base epsilon.
    """
    table = np.column_stack([np.zeros(1000), np.random.default_rng(0).uniform(size=1000)])
    labels = np.ones(1000, dtype=int)
    seen = []
    for value in (-1.0, 1.0):
        table[0, 0] = value
        made = search(
            Ordered(), {"level": [0.0]}, epsilon=TOTAL, delta=ATTACK_DELTA, test_size=0.01, accountant=False
        )  # fmt: skip
        found = []
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of seeds, and of a delta that is large
            for seed in range(7000):
                best = made.set_params(random_state=seed).fit(table, labels).best_estimator_
                found.append(float((best.sum_ + 1.0) / best.std_ > Z0))
        seen.append(np.array(found))
    shown = epsilon_lower(*seen, ATTACK_DELTA, 0.5)
    assert 0.6 * TOTAL < shown < TOTAL
    assert shown > 1.05 * gaussian_base(TrialCount(3), TOTAL, ATTACK_DELTA)[1]


def test_the_score_is_held_in_its_range():
    """Of six records the noise alone passes the range in nearly every search."""
    for seed in range(5):
        found = DPRandomizedSearch(
            DPLogisticRegression(classes=[0, 1]),
            {"C": [1.0, "auto"]},
            mean_trials=3,
            epsilon=0.1,
            random_state=seed,
        )
        made = found.fit(X[:30], Y[:30])
        assert 0.0 <= made.best_score_.value <= 1.0
        assert made.best_score_.noise_std > 1.0
