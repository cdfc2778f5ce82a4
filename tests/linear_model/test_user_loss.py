"""A loss of the user's own works where gradients are clipped, and is refused where a constant is believed."""

import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

import skdp
from skdp import BudgetAccountant, DPAGDClassifier, DPSGDClassifier, DPSGDRegressor, DPSparseERM
from skdp.exceptions import PrivacyLeakWarning, UnsupportedAccounting
from skdp.fitting.parameters import WordOrLoss
from skdp.kernels import gradient_kernel, sup_gradient_kernel, vertex_kernel
from skdp.losses import HuberLoss, LogisticLoss, Loss, MultinomialLoss, SquaredLoss, check_loss, is_shipped
from skdp.privacy import PrivateRecords
from skdp.privacy.mechanisms.objective_perturbation.cost import objective_terms
from skdp.privacy.standardization import Standardization
from skdp.privacy.statistics import perturbed_minimizer, ridge_minimizer
from tests.kinds import of_each_kind, quick_alone


class Declared(Loss):
    """A Huber loss as a user would write it, under a name that is not his."""

    name, smoothness = "logistic", 1.0

    def value(self, z, y):
        return HuberLoss(0.7).value(z, y)

    def derivative(self, z, y):
        return np.clip(z - y, -0.7, 0.7)


class Wild(Declared):
    """Derivatives that no bound holds."""

    def derivative(self, z, y):
        return np.where(y > 0, np.array([np.inf, 1e300, -1e300, np.nan])[y.astype(int) % 4], z - y)


class Subclass(LogisticLoss):
    __slots__ = ()

    def derivative(self, z, y):
        return 1e6 * np.asarray(z)


def table(kind="dense", n=60, d=7, seed=0):
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(n, d)), rng.normal(size=n)
    if kind == "csr":
        X = sp.csr_matrix(np.where(abs(X) > 0.5, X, 0.0))
    return (X.astype(np.float32) if kind == "float32" else np.asfortranarray(X) if kind == "fortran" else X), y


@pytest.mark.parametrize("kind", ["dense", "csr", pytest.param("float32", marks=pytest.mark.thorough), "fortran"])
@pytest.mark.parametrize("grouped", [False, True])
def test_sums_are_those_of_the_same_loss_of_the_package(kind, grouped):
    X, y = table(kind)
    rng = np.random.default_rng(1)
    weight, theta, unit = rng.uniform(0, 2, size=60), rng.normal(size=8), 2.0**-30
    groups = np.arange(60) // 3 if grouped else None
    options = {"sample_weight": weight, "intercept_value": 0.3}
    mask, rows = np.arange(8) % 2 == 0, np.arange(0, 20, 2)
    mine, own = (gradient_kernel(X, y, loss, groups=groups, **options) for loss in (Declared(), HuberLoss(0.7)))
    for more in ((), (mask,), (None, rows)):
        a, b = (k.clipped_sum(theta, 0.5, unit, *more) for k in (mine, own))
        assert np.abs(a - b).max() <= 60  # last bits of the predictors
    assert np.allclose(mine.plain_sum(theta), own.plain_sum(theta), rtol=1e-12)
    assert np.allclose(mine.norms(theta), own.norms(theta), rtol=1e-12)
    sup = [sup_gradient_kernel(X, y, loss, **options) for loss in (Declared(), HuberLoss(0.7))]
    a, b = (k.clipped_sum(theta, 0.5, unit) for k in sup)
    assert np.abs(a - b).max() <= 60


@pytest.mark.parametrize("kind", ["dense", "csr"])
def test_a_wild_derivative_moves_the_sum_by_no_more_than_the_clip(kind):
    X, y = table(kind)
    theta, unit = np.ones(8), 2.0**-30
    for target in (0.0, 1.0, 2.0, 3.0, 4.0, -1e308):
        changed = y.copy()
        changed[5] = target
        sums = [
            gradient_kernel(X, t, Wild()).clipped_sum(theta, 0.5, unit).astype(float)
            for t in (np.minimum(y, 0.0), np.where(np.arange(60) == 5, changed, np.minimum(y, 0.0)))
        ]
        assert np.linalg.norm(sums[1] - sums[0]) <= 2 * 0.5 / unit
        sups = [
            sup_gradient_kernel(X, t, Wild()).clipped_sum(theta, 0.5, unit).astype(float)
            for t in (np.minimum(y, 0.0), np.where(np.arange(60) == 5, changed, np.minimum(y, 0.0)))
        ]
        assert np.abs(sups[1] - sups[0]).max() <= 2 * 0.5 / unit


def test_a_row_adds_the_same_whatever_rows_are_beside_it():
    for kind in ("dense", "csr"):
        X, y = table(kind, n=64)
        theta = np.random.default_rng(3).normal(size=8)
        alone = [
            gradient_kernel(X[i : i + 1], y[i : i + 1], Declared()).clipped_sum(theta, 0.5, 2.0**-30)
            for i in range(64)
        ]
        whole = gradient_kernel(X, y, Declared()).clipped_sum(theta, 0.5, 2.0**-30)
        assert np.array_equal(np.sum(alone, axis=0), whole)


def test_a_fit_is_near_that_of_the_package_and_says_what_it_rests_on():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(3000, 8))
    y = X[:, 0] - X[:, 1] + 0.1 * rng.normal(size=3000)
    mine, own = (
        DPSparseERM(loss=loss, epsilon=math.inf, max_iter=50).fit(X, y) for loss in (Declared(), HuberLoss(0.7))
    )
    assert np.allclose(mine.coef_, own.coef_, atol=1e-8)
    private = DPSparseERM(loss=Declared(), epsilon=8.0, random_state=0).fit(X, y)
    assert any("by the user's declaration" in line for line in private.privacy_.assumptions)
    own = DPSparseERM(loss=HuberLoss(0.7), epsilon=8.0, random_state=0).fit(X, y)
    assert not any("declaration" in line for line in own.privacy_.assumptions)
    assert np.allclose(private.predict(X), X @ private.coef_ + private.intercept_)


@pytest.mark.parametrize("loss", [Declared(), Subclass()])
def test_minimisers_refuse_all_but_the_losses_of_the_package(loss):
    """A wrong Lipschitz constant would void their sensitivity, whatever the loss calls itself."""
    X, y = table()
    records = PrivateRecords(X, (y > 0).astype(float))
    assert not is_shipped(loss)
    with pytest.raises(TypeError, match="a minimiser is released"):
        ridge_minimizer(records, loss, alpha=1.0, row_norm=1.0, adjacency="replace-one")
    with pytest.raises(TypeError, match="a minimiser is released"):
        perturbed_minimizer(records, loss, penalty=1.0, row_norm=1.0)
    with pytest.raises(ValueError, match="not proven"):
        objective_terms(loss, radius=1.0, penalty=1.0, adjacency="replace-one")


def test_passes_that_cannot_compute_the_loss_refuse_it():
    with pytest.raises(TypeError, match="compiled passes"):
        vertex_kernel(*table(), Declared())


# The loops are compiled again for a user's loss, for each storage, and for groups.
@pytest.mark.parametrize(
    ("kind", "grouped"),
    quick_alone(
        [("dense", False)],
        itertools.product(("dense", "csr", "fortran", "made"), (False, True)),
        pytest.mark.thorough,
    ),
)
def test_recursive_sums_and_losses_of_drawn_units_are_those_of_the_package(kind, grouped):
    X, y = table(kind)
    if kind == "made":
        X = Standardization.make(np.ones(7), np.full(7, 2.0)).of(X)
    rng = np.random.default_rng(1)
    weight, theta, unit = rng.uniform(0, 2, size=60), rng.normal(size=8), 2.0**-30
    options = {"sample_weight": weight, "intercept_value": 0.3, "groups": np.arange(60) // 3 if grouped else None}
    mine, own = (gradient_kernel(X, y, loss, **options) for loss in (Declared(), HuberLoss(0.7)))
    for rows in (None, np.arange(1, 20, 2)):
        for momentum in (0.0, 0.4, 1.0):
            found = [k.recursive_sum(theta, theta + 0.1, momentum, 0.5, 0.1, unit, rows=rows) for k in (mine, own)]
            assert np.abs(found[0] - found[1]).max() <= 60  # last bits of the predictors
            assert np.abs(found[0]).max() > 1e6
        found = [k.loss_sums([theta, -theta, theta / 2], 0.6, unit, rows=rows) for k in (mine, own)]
        assert np.abs(found[0] - found[1]).max() <= 60
        plain = [k.plain_sum(theta, rows=rows) for k in (mine, own)]
        assert np.allclose(*plain, rtol=1e-12)


def test_no_other_unit_than_the_drawn_ones_is_shown_to_the_loss():
    seen = []

    class Watched(Declared):
        def derivative(self, z, y):
            seen.append(np.array(y))
            return super().derivative(z, y)

    X, y = table()
    kernel = gradient_kernel(X, y, Watched(), groups=np.arange(60) // 3)
    seen.clear()
    kernel.clipped_sum(np.ones(8), 0.5, 2.0**-30, rows=np.array([2, 5]))
    assert np.array_equal(np.concatenate(seen), y[[6, 7, 8, 15, 16, 17]])


class Failing(Declared):
    """For a target of 7 it fails in a way of its own, and else it is what it says."""

    def __init__(self, how):
        self.how = how

    def derivative(self, z, y):
        found = super().derivative(z, y)
        bad = np.asarray(y) == 7.0
        if not bad.any():
            return found
        if self.how == "raises":
            raise RuntimeError("secret")
        if self.how == "warns":
            warnings.warn("secret", stacklevel=1)
        if self.how == "has another shape":
            return found[:-1]
        if self.how == "is complex":
            return found + 1j
        return np.where(bad, np.nan if self.how == "is no number" else np.inf, found)


@pytest.mark.parametrize(
    "how", ["raises", "warns", "has another shape", "is complex", "is no number", "is infinite"]
)
@pytest.mark.parametrize("grouped", [False, True])
def test_a_record_at_which_the_derivative_fails_adds_nothing_and_nobody_hears_of_it(how, grouped):
    """The attack: one record makes the loss fail. No sum raises or warns, and no other record's part changes."""
    X, y = table()
    changed = y.copy()
    changed[9:12] = 7.0
    theta, unit, other = np.ones(8), 2.0**-30, np.r_[:9, 12:60]
    groups = np.arange(60) // 3
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        kernel = gradient_kernel(X, changed, Failing(how), groups=groups if grouped else None)
        sums = [kernel.clipped_sum(theta, 0.5, unit), kernel.recursive_sum(theta, theta / 2, 0.5, 0.5, 0.5, unit)]
    of_others = np.r_[:9, 9:57] // 3
    rest = gradient_kernel(X[other], y[other], Declared(), groups=of_others if grouped else None)
    wanted = [rest.clipped_sum(theta, 0.5, unit), rest.recursive_sum(theta, theta / 2, 0.5, 0.5, 0.5, unit)]
    for found, want in zip(sums, wanted, strict=True):
        assert np.array_equal(found, want)


@pytest.mark.parametrize("how", ["raises", "warns", "is no number"])
def test_a_whole_fit_does_not_tell_that_a_record_made_the_loss_fail(how):
    X, y = table(n=2000)
    told = []
    for target in (7.0, 6.0):
        changed = np.where(np.arange(2000) == 5, target, y)
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            model = DPSGDRegressor(loss=Failing(how), epsilon=4.0, batch_size=500).fit(X, changed)
        assert np.isfinite(model.coef_).all()
        told.append((model.privacy_.assumptions, [row["purpose"] for row in model.privacy_.mechanisms]))
        assert not any("secret" in str(each.message) for each in caught)
    assert told[0] == told[1]


class Averaging(Declared):
    def derivative(self, z, y):
        return z - np.mean(z)


class Placed(Declared):
    def derivative(self, z, y):
        return z * (1 + np.arange(len(z)))


class Random(Declared):
    def derivative(self, z, y):
        return z + np.random.default_rng().normal(size=len(z))


class Raising(Declared):
    def value(self, z, y):
        if np.any(z > 100):
            raise OverflowError
        return z


@pytest.mark.parametrize("loss", [Averaging(), Placed(), Random(), Raising()], ids=lambda x: type(x).__name__)
def test_a_loss_whose_numbers_depend_on_other_records_is_refused_before_the_data(loss):
    accountant = BudgetAccountant(8.0, 1e-5)
    with pytest.raises(UnsupportedAccounting, match=r"one record|tell of a record"):
        DPSGDRegressor(loss=loss, accountant=accountant).fit(None, None)
    assert accountant.spent() == (0.0, 0.0)


class MySquared(Loss):
    name, smoothness = "mine", 1.0

    def value(self, z, y):
        return 0.5 * (z - y) ** 2

    def derivative(self, z, y):
        return z - y


class MyLogistic(Loss):
    name, smoothness, is_classification = "mine", 0.25, True
    start_norm = start_sup_norm = 0.5
    start_value = math.log(2.0)

    def value(self, z, y):
        return LogisticLoss().value(z, y)

    def derivative(self, z, y):
        return LogisticLoss().derivative(z, y)


NUMBERS = {"epsilon": math.inf, "learning_rate": 0.2, "clip_norm": 1.0, "max_iter": 20, "random_state": 0}
CLASSIFIERS = {
    "DPIGHTClassifier": {},
    "DPSGDClassifier": {"batch_size": 100},
    "DPLSSGDClassifier": {},
    "DPGDClassifier": {},
    "DPSRMClassifier": {"clip_diff_norm": 0.5},
    "DPRRPSGDClassifier": {"batch_size": 100},
    "DPAGDClassifier": {},
    "DPSparseERMClassifier": {},
    "IGHTClassifier": {"learning_rate": 0.2, "max_iter": 20},
    "STORMClassifier": {"learning_rate": 0.2, "max_iter": 20, "random_state": 0},
}
REGRESSORS = {
    "DPIGHTRegressor": {},
    "DPSGDRegressor": {"batch_size": 100},
    "DPLSSGDRegressor": {},
    "DPSparseERMRegressor": {},
}


def test_the_lists_below_name_every_estimator_with_a_loss():
    """The others with a parameter ``loss`` release minimisers or vertices, or are of several owners."""
    have = {name for name, cls in skdp.all_estimators() if "loss" in cls._parameters}
    named = {name for name in have if not isinstance(getattr(skdp, name)._parameters["loss"].kind, WordOrLoss)}
    assert have - named == {*CLASSIFIERS, *REGRESSORS, "IGHTRegressor"}
    assert {name for name in named if not name.startswith(("MPC", "DPLocal", "DPRajkumar"))} == {
        "DPSparseERM",
        "DPFrankWolfeRegressor",
        "DPTwoStageRegressor",
    }


def both(name, options, losses, X, y):
    """The estimator by the loss of the package, and by the same function of the user's own."""
    given = options if not name.startswith("DP") else {**NUMBERS, **options}
    return [getattr(skdp, name)(loss=loss, **given).fit(X, y) for loss in losses]


@pytest.mark.parametrize("kind", ["dense", "csr"])
@pytest.mark.parametrize("name", [*CLASSIFIERS, *REGRESSORS])
def test_each_estimator_gives_the_same_model_by_a_users_loss_that_is_the_packages(name, kind):
    X, y = table(kind, n=400)
    y = (X[:, 0].toarray().ravel() if kind == "csr" else X[:, 0]) + 0.1 * y
    if name in CLASSIFIERS:
        given = {"classes": (0, 1), **CLASSIFIERS[name]}
        built_in, mine = both(name, given, ("logistic", MyLogistic()), X, (y > 0).astype(int))
        assert np.array_equal(built_in.predict(X), mine.predict(X))
    else:
        built_in, mine = both(name, REGRESSORS[name], ("squared", MySquared()), X, y)
    assert np.allclose(mine.coef_, built_in.coef_, rtol=1e-6, atol=1e-8)
    assert np.allclose(mine.intercept_, built_in.intercept_, rtol=1e-6, atol=1e-8)
    assert np.any(mine.coef_)


@pytest.mark.parametrize(
    "name", of_each_kind([n for n in [*CLASSIFIERS, *REGRESSORS] if n.startswith("DP")], pytest.mark.thorough)
)
def test_a_private_fit_by_a_users_loss_with_defaults_says_what_it_rests_on(name):
    X, y = table(n=2000)
    y = X[:, 0] + 0.1 * y
    classes = {"classes": (0, 1)} if name in CLASSIFIERS else {}
    loss = MyLogistic() if classes else MySquared()
    model = getattr(skdp, name)(loss=loss, epsilon=8.0, random_state=0, **classes)
    model.fit(X, (y > 0).astype(int) if classes else y)
    assert sum("by the user's declaration" in line for line in model.privacy_.assumptions) == 1
    assert model.privacy_.guarantee == "proven"
    assert model.score(X, (y > 0).astype(int) if classes else y) > 0.7


def test_a_classifier_by_a_users_loss_predicts_by_sign_and_has_no_probabilities():
    X, y = table(n=500)
    labels = np.where(X[:, 0] > 0, "yes", "no")
    model = DPSGDClassifier(loss=MyLogistic(), classes=("no", "yes"), epsilon=8.0, random_state=0).fit(X, labels)
    scores = model.decision_function(X)
    assert np.array_equal(model.predict(X), np.where(scores > 0, "yes", "no"))
    assert not hasattr(model, "predict_proba")
    assert not hasattr(model, "predict_log_proba")
    with pytest.raises(TypeError, match="no log odds"):
        model.to_sklearn()
    assert hasattr(DPSGDClassifier(), "predict_proba")
    for name in ("recalibration",):
        assert all(row["purpose"] != name for row in model.privacy_.mechanisms)


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (DPSGDClassifier(loss=MyLogistic(), classes=(0, 1, 2)), ValueError, "for two classes, and here are 3"),
        (DPSGDClassifier(loss=MySquared(), classes=(0, 1)), TypeError, "must have is_classification = True"),
        (DPSGDRegressor(loss=MyLogistic()), TypeError, "must have is_classification = False"),
        (DPSGDClassifier(loss=MultinomialLoss(2)), TypeError, "give loss='logistic'"),
        (DPSGDClassifier(loss="hinge"), ValueError, "logistic"),
        (
            DPSGDRegressor(loss=3),
            TypeError,
            "must be 'squared', 'huber', an object .* inherit from skdp.losses.Loss",
        ),
        (DPAGDClassifier(loss=type("NoStart", (MyLogistic,), {"start_value": None})()), ValueError, "start_value"),
    ],
)
def test_a_loss_for_another_task_is_refused_before_the_data(model, error, message):
    with pytest.raises(error, match=message):
        model.fit(None, None)


@pytest.mark.parametrize("estimator", [skdp.DPFrankWolfeRegressor, skdp.DPTwoStageRegressor])
def test_methods_that_believe_facts_say_who_takes_a_users_loss(estimator):
    with pytest.raises(TypeError, match=r"'squared', 'huber'\] here, .* got Declared: .* such as DPSGDRegressor"):
        estimator(loss=Declared()).fit(np.eye(4), np.ones(4))


def test_more_classes_in_y_than_a_users_loss_has_are_refused():
    X, y = table()
    with pytest.warns(PrivacyLeakWarning), pytest.raises(ValueError, match="OneVsRestClassifier"):
        DPSGDClassifier(loss=MyLogistic()).fit(X, np.arange(60) % 3)


def test_the_word_of_the_default_leaves_the_key_of_a_seeded_fit_as_it_was():
    parameter = DPSGDClassifier._parameters["loss"]
    assert not parameter.changes_releases("logistic")
    assert parameter.changes_releases(MyLogistic())


def test_what_is_missing_is_named():
    class NoFacts:
        name = "mine"

        def derivative(self, z, y):
            return z - y

    class Unbounded(Loss):
        name = "mine"
        value = derivative = NoFacts.derivative

    class Unhashable(Declared):
        __hash__ = None

    for wrong, message in (
        (NoFacts(), "inherit from skdp.losses.Loss and give name, smoothness, value, derivative, got NoFacts"),
        (Unbounded(), "^Unbounded has no smoothness .*: smoothness is a bound .* public number that you prove$"),
        (Declared, r"must be an instance: pass Declared\(\)"),
        (Unhashable(), "hashable"),
        (3, "must be an object of skdp.losses, or inherit"),
    ):
        with pytest.raises(TypeError, match=message):
            check_loss(wrong)

    class Wide(Declared):
        n_outputs = 2

    with pytest.raises(TypeError, match="one linear predictor"):
        check_loss(Wide())
    assert check_loss(SquaredLoss()) is None

    class Wrong(Declared):
        def derivative(self, z, y):
            return 1.0

    with pytest.raises(ValueError, match="one real number"):
        gradient_kernel(*table(), Wrong()).norms(np.zeros(8))
