"""The estimators of several owners: parameters, refusals, reports, engines, and one owner's process."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp

from skdp import (
    BudgetAccountant,
    DPLocalObjectivePerturbationRegressor,
    MPCGradientPerturbationClassifier,
    MPCGradientPerturbationRegressor,
    MPCOutputPerturbationClassifier,
    MPCOutputPerturbationRegressor,
)
from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting, UtilityWarning
from skdp.multiparty import OwnRecords
from skdp.multiparty.engine.loopback import LoopbackEngine
from skdp.multiparty.release import surplus_of
from skdp.privacy import accounting, noise

CLASSIFIERS = (MPCGradientPerturbationClassifier, MPCOutputPerturbationClassifier)
REGRESSORS = (MPCGradientPerturbationRegressor, MPCOutputPerturbationRegressor)
each = pytest.mark.parametrize("cls", CLASSIFIERS + REGRESSORS)
each_classifier = pytest.mark.parametrize("cls", CLASSIFIERS)

N = 120
OWNERS = np.repeat(["a", "b", "c"], [30, 40, 50])
SIZES = (30, 40, 50)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 4))
Y = (X[:, 0] > 0) * 1
PEOPLE = np.arange(N) // 3


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        warnings.filterwarnings("ignore", message="the label set was inferred")
        yield


def make(cls, **options):
    known = {"classes": (0, 1)} if cls in CLASSIFIERS else {}
    return cls(**{"random_state": 0, "alpha": 0.1, **known, **options})


def lines(model):
    return " | ".join(model.privacy_.assumptions)


# ------------------------------------------------------------------ what a fit says


@each
def test_the_report_says_whom_one_trusts_and_what_several_owners_mean(cls):
    model = make(cls, epsilon=2.0, delta=1e-4).fit(X, Y, owners=OWNERS)
    assert "the owners' data and the noise are in one process" in lines(model)
    assert "every owner's number of records is public" in lines(model)
    twice = accounting.gaussian_epsilon(2 * accounting.gaussian_mu(2.0, 1e-4), 1e-4)
    assert f"protected as h records: h times mu, so h = 2 has epsilon {twice:.4g}" in lines(model)
    facts = model.privacy_.public
    assert (facts["n_owners"], facts["smallest_owner"], facts["largest_owner"]) == (3, 30, 50)
    assert facts["n_records"] == N
    assert model.privacy_.erratum.startswith("Theorem 6.3.")


@each
def test_units(cls):
    grouped = make(cls, unit="group").fit(X, Y, owners=OWNERS, groups=PEOPLE)
    assert grouped.privacy_.unit == "group"
    # 40 people; person 23 is at the second and the third owner: 10, 14 and 17 units
    assert grouped.privacy_.public["n_groups"] == 41
    assert grouped.privacy_.public["smallest_owner"] == 10
    assert "n_records" not in grouped.privacy_.public
    whole = make(cls, unit="owner").fit(X, Y, owners=OWNERS)
    assert whole.privacy_.unit == "owner"
    assert "one owner" in repr(whole.privacy_)
    assert whole.privacy_.public["n_groups"] == 3
    assert "the unit is the owner" in lines(whole)
    assert not {str(n) for n in (*SIZES, N)} & set(str(whole.privacy_.public).split())


def test_owners_and_persons_do_not_share_a_ledger():
    accountant = BudgetAccountant(10.0, 1e-3, allow_seeded=True)
    cls = MPCGradientPerturbationClassifier
    make(cls, unit="owner", accountant=accountant).fit(X, Y, owners=OWNERS)
    assert accountant.ledger()[0]["unit"] == "owner"
    spent = accountant.spent()
    with pytest.raises(PrivacyBudgetExceeded, match="unit='owner'"):
        make(cls, unit="group", accountant=accountant).fit(X, Y, owners=OWNERS, groups=PEOPLE)
    assert accountant.spent() == spent


def test_an_owner_of_another_size_changes_nothing_public():
    """Under unit='owner' the number of an owner's records is private."""
    few = np.r_[0:10, 30:N]
    models = [
        make(MPCGradientPerturbationClassifier, unit="owner").fit(X[r], Y[r], owners=OWNERS[r])
        for r in (slice(None), few)
    ]
    reports = [model.privacy_.__getstate__() for model in models]
    assert reports[0] == reports[1]
    assert models[0].n_iter_ == models[1].n_iter_


def test_one_owner_is_the_default():
    alone = make(MPCGradientPerturbationClassifier).fit(X, Y)
    named = make(MPCGradientPerturbationClassifier).fit(X, Y, owners=["me"] * N)
    assert np.array_equal(alone.coef_, named.coef_)
    assert alone.privacy_ == named.privacy_


@each
def test_formats_agree(cls):
    S = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    dense, sparse, fortran, single = (
        make(cls, epsilon=math.inf).fit(form, Y, owners=OWNERS)
        for form in (S.toarray(), S, np.asfortranarray(S.toarray()), S.toarray().astype(np.float32))
    )
    for other in (sparse, fortran):
        assert other.coef_ == pytest.approx(dense.coef_, abs=1e-5)
    assert single.coef_ == pytest.approx(dense.coef_, abs=1e-4)


@each
def test_it_learns(cls):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(4000, 4)) / 2
    y = Z @ [1.0, -1.0, 0.5, 0.0] / 2
    target = (y > 0) * 1 if cls in CLASSIFIERS else y
    model = make(cls, epsilon=8.0, alpha=0.05).fit(Z, target, owners=np.arange(4000) % 4)
    assert model.score(Z, target) > 0.6


@each
def test_rows_are_scaled_to_their_norm(cls):
    """A far row counts as its direction."""
    far = X.copy()
    far[3] *= 1e6
    near = X.copy()
    near[3] *= 2.0 / np.linalg.norm(near[3])  # sqrt(n_features)
    models = [make(cls, epsilon=math.inf).fit(Z, Y, owners=OWNERS).coef_ for Z in (far, near)]
    assert models[0] == pytest.approx(models[1], abs=1e-6)


# ------------------------------------------------------------------ refusals


@each
@pytest.mark.parametrize(
    ("options", "match"),
    [
        ({"unit": "person"}, "unit must be one of"),
        ({"weighting": "size"}, "weighting must be one of"),
        ({"noise": "uniform"}, "noise must be one of"),
        ({"alpha": 0.0}, "alpha must be > 0"),
        ({"row_norm": -1.0}, "row_norm must be >= 1e-20"),
        ({"engine": "yao"}, "engine must be"),
        ({"delta": 0.0}, "delta=0 needs pure mechanisms"),
        ({"delta": 0.0, "noise": "laplace", "engine": "mpyc"}, "delta=0 needs pure noise"),
        ({"unit": "owner", "weighting": "record"}, "sizes, which are private"),
    ],
)
def test_wrong_parameters_cost_nothing(cls, options, match):
    accountant = BudgetAccountant(10.0, 1e-3, allow_seeded=True)
    with pytest.raises(ValueError, match=match):
        make(cls, accountant=accountant, **options).fit(X, Y, owners=OWNERS)
    assert accountant.spent() == (0.0, 0.0)


@each
def test_add_remove_is_refused_with_the_cure(cls):
    with pytest.raises(UnsupportedAccounting, match="use adjacency='replace-one' or 'zero-out'"):
        make(cls, adjacency="add-remove").fit(X, Y, owners=OWNERS)


@each
@pytest.mark.parametrize("owners", [OWNERS[:-1], [None] * N])
def test_wrong_owners_cost_nothing(cls, owners):
    accountant = BudgetAccountant(10.0, 1e-3, allow_seeded=True)
    with pytest.raises(ValueError, match="owner"):
        make(cls, accountant=accountant).fit(X, Y, owners=owners)
    with pytest.raises(TypeError, match="sample_weight"):
        make(cls, accountant=accountant).fit(X, Y, owners=OWNERS, sample_weight=np.ones(N))
    with pytest.raises(ValueError, match="unit='owner' protects"):
        make(cls, accountant=accountant, unit="owner").fit(X, Y, owners=OWNERS, groups=PEOPLE)
    assert accountant.spent() == (0.0, 0.0)


@pytest.mark.parametrize("cls", REGRESSORS)
@pytest.mark.parametrize(
    "bounds", [(1.0, 1.0), (2.0, -2.0), (0.0, math.inf), (0.0,), "ab", 3.0, (1e308, 1.7e308), (1e9, 1e9 + 1e-6)]
)
def test_wrong_bounds(cls, bounds):
    with pytest.raises((ValueError, TypeError), match="y_bounds"):
        make(cls, y_bounds=bounds).fit(X, X[:, 0], owners=OWNERS)


def wide(n=600, seed=0, **options):
    """A fit to targets of 1e5 +- 2e4 with bounds that are five times as wide; its warnings."""
    rng = np.random.default_rng(seed)
    Z = rng.normal(size=(n, 5))
    options = {"y_bounds": (0.0, 2e5), "epsilon": 1.0, "alpha": 1e-3, **options}
    model = MPCGradientPerturbationRegressor(random_state=seed, **options)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(Z, 1e5 + 9e3 * Z.sum(axis=1), owners=np.arange(n) % 3)
    return model, [str(one.message) for one in caught]


def test_a_regression_with_wide_bounds_says_how_far_noise_moves_predictions():
    model, said = wide()
    assert any(f"by about {model.prediction_noise_:.2g}, in units of y" in one for one in said)
    model, said = wide(n=9000)
    assert model.prediction_noise_ < 2e3
    assert not any("in units of y" in one for one in said)


def warned(model, Z, y, **more):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(Z, y, **more)
    return " | ".join(str(one.message) for one in caught)


@pytest.mark.parametrize("cls", REGRESSORS)
def test_raw_columns_are_said_where_the_model_is_used(cls):
    rng = np.random.default_rng(0)
    Z = rng.normal(size=(900, 5))
    model = make(cls, epsilon=2.0).fit(Z, Z[:, 0] / 4, owners=np.arange(900) % 3)
    assert model.row_norm_ == math.sqrt(5)
    for usual in (Z, sp.csr_matrix(Z), Z[:0]):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            if usual.shape[0]:
                model.predict(usual)
    for raw in (100 * Z, sp.csr_matrix(100 * Z)):
        with pytest.warns(UtilityWarning, match="longer than row_norm"):
            model.predict(raw)


def test_a_small_owner_is_named_as_the_cause():
    Z = np.random.default_rng(0).normal(size=(900, 3))
    holders = np.repeat(["a", "b"], [10, 890])
    said = warned(make(MPCGradientPerturbationClassifier), Z, (Z[:, 0] > 0) * 1, owners=holders)
    assert "the smallest owner has 10 of 900 records" in said
    assert "45 times the noise of weighting='record'" in said
    model = make(MPCGradientPerturbationClassifier, weighting="record")
    assert "smallest owner" not in warned(model, Z, (Z[:, 0] > 0) * 1, owners=holders)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("alpha", [0.01, pytest.param(0.1, marks=pytest.mark.thorough), 1.0])
def test_output_perturbation_knows_the_noise_of_its_scores(noise, alpha):
    """The noise of one fit has 5 entries; over 60 fits its size is known up to 25 % (five deviations)."""
    Z = np.random.default_rng(0).normal(size=(900, 4))
    Z *= 2.0 / np.linalg.norm(Z, axis=1, keepdims=True)  # of the largest length
    y, holders = Z[:, 0] / 4, np.arange(900) % 3
    fits = [
        make(MPCOutputPerturbationRegressor, alpha=alpha, noise=noise, random_state=seed) for seed in range(60)
    ]
    said = {("predictions by about" in warned(model, Z, y, owners=holders)) for model in fits}
    spread = np.sqrt(np.mean(np.var([model.predict(Z) for model in fits], axis=0)))
    assert said == {spread > 0.02} or 0.016 < spread < 0.025


@pytest.mark.parametrize("cls", [*REGRESSORS, DPLocalObjectivePerturbationRegressor])
def test_a_threshold_that_the_penalty_outweighs_is_said(cls):
    """Targets around 1e5: with a threshold of 1 every fit predicts the middle of the bounds."""
    Z = np.random.default_rng(0).normal(size=(300, 4))
    options = {"y_bounds": (0, 2e5), "random_state": 0, "epsilon": 8.0, "alpha": 1e-3}
    options |= {} if cls is DPLocalObjectivePerturbationRegressor else {"loss": "huber"}
    y, holders = 5e4 + 2e4 * Z[:, 0], np.arange(300) % 3
    model = cls(huber_threshold=1.0, **options)
    assert "predictions stay within about 1e+03" in warned(model, Z, y, owners=holders)
    model = cls(huber_threshold=5e4, **options)
    assert "predictions stay within" not in warned(model, Z, y, owners=holders)


def test_an_enlarged_penalty_is_said():
    Z = np.random.default_rng(0).normal(size=(300, 4))
    model = DPLocalObjectivePerturbationRegressor(alpha=0.001, random_state=0, y_bounds=(-3, 3))
    said = warned(model, Z, Z[:, 0], owners=np.arange(300) % 3)
    times = model.alpha_ / 0.001
    assert f"needs a penalty {times:.2g} times as large as alpha=0.001" in said
    model.set_params(alpha=100.0)
    assert "needs a penalty" not in warned(model, Z, Z[:, 0], owners=np.arange(300) % 3)


@pytest.mark.parametrize(
    "options",
    [
        {"huber_threshold": 1e300, "loss": "huber"},
        {"clip_norm": 1e50, "learning_rate": 1e50, "y_bounds": (0.0, 1e-100)},
        {"epsilon": 1e-5, "clip_norm": 1e50, "y_bounds": (-1e-50, 1e-50)},
    ],
)
def test_extreme_public_numbers_do_not_overflow(options):
    try:
        model, _ = wide(100, max_iter=3, **options)
    except ValueError:  # refused with words: the grid, or the budget of the samplers' errors
        return
    assert model.n_iter_ == 3


@pytest.mark.parametrize("options", [{}, {"noise": "laplace"}, {"max_iter": 20}, {"loss": "huber"}])
def test_the_noise_of_predictions_is_as_large_as_said(options):
    """Over 12 fits; the law holds for standardized features only, these are nearly so.

    The variance of 12 predictions at 500 rows is the mean over 6 directions of chi-square variables with 11
    degrees of freedom: a factor of 1.5 is further than 6 standard deviations.
    """
    if "loss" in options:
        options = {**options, "huber_threshold": 5e5}
    fits = [wide(2000, seed, **options)[0] for seed in range(12)]
    T = np.random.default_rng(99).normal(size=(500, 5))
    flat = [model.predict(T) for model in fits]
    truth = 1e5 + 9e3 * T.sum(axis=1)
    moved = np.sqrt(np.mean((np.array(flat) - truth).var(axis=0, ddof=1)))
    assert 1 / 1.6 < moved / fits[0].prediction_noise_ < 1.6


# ------------------------------------------------------------------ engines


class Toy:
    """Adds in one process, with noise of its own seed."""

    name, surplus = "a toy that nobody should trust", 1.0

    def __init__(self):
        self.counts = []

    def ready(self, opening):
        pass

    def numerical_error(self, n_values, noise_multiplier):
        return 0.0, 0.0

    def open(self, integers, sigma):
        self.counts.append(len(integers))
        drawn = noise.rounded_gaussian(sigma, integers[0].shape, noise.KeyStream(len(self.counts)))
        with np.errstate(over="ignore"):
            return np.add.reduce(list(integers)) + drawn


def test_the_noise_of_predictions_is_that_which_an_engine_draws():
    """Servers draw more than counts, since they do not know who is honest: `prediction_noise_` has all of it."""
    found = []
    for surplus in (1.0, 2.0):
        engine = Toy()
        engine.surplus = surplus
        model = MPCGradientPerturbationRegressor(
            epsilon=10.0, max_iter=5, y_bounds=(-5, 5), engine=engine, accountant=False
        )
        found.append(model.fit(X, Y, owners=OWNERS).prediction_noise_)
    assert found[1] == pytest.approx(2 * found[0])
    assert surplus_of("plain", "gaussian") == surplus_of("mpyc", "laplace") == 1.0
    assert surplus_of("mpyc", "gaussian") == pytest.approx(1.5**0.5)  # three servers
    assert LoopbackEngine(2, n_servers=5).surplus == pytest.approx((5 / 3) ** 0.5)


class Rough(Toy):
    """With an error of which the budget of epsilon = 1 holds nine."""

    laplace_scales = (2.0**14, 2.0**40)

    def numerical_error(self, n_values, noise_multiplier):
        return 1.1e-6, 0.0

    def laplace_numerical_error(self, n_values, scale, epsilon):
        return 1.1e-6, 0.0

    def open_laplace(self, integers, scale):
        return self.open(integers, scale)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_errors_that_a_whole_fit_does_not_hold_are_found_before_its_first_round(noise):
    accountant = BudgetAccountant(10.0, 1e-3, allow_seeded=True)
    options = dict(accountant=accountant, noise=noise, max_iter=10)
    engine = Rough()
    with pytest.raises(UnsupportedAccounting, match="so many noisy values"):
        make(CLASSIFIERS[0], engine=engine, **options).fit(X, Y, owners=OWNERS)
    assert engine.counts == []
    assert accountant.spent() == (0.0, 0.0)
    make(CLASSIFIERS[0], engine=engine, **{**options, "max_iter": 9}).fit(X, Y, owners=OWNERS)
    assert engine.counts == [3] * 9


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_sessions_own_errors_are_found_before_the_first_round(noise):
    accountant = BudgetAccountant(10.0, 1e-3, allow_seeded=True)
    model = make(CLASSIFIERS[0], epsilon=1e-3, accountant=accountant, noise=noise, max_iter=500)
    with pytest.raises(UnsupportedAccounting, match="so many noisy values"):
        model.fit(np.zeros((N, 12_000)), Y, owners=OWNERS)
    assert accountant.spent() == (0.0, 0.0)


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("n_owners", [2, 3])
def test_an_engine_that_cannot_open_costs_nothing(noise, n_owners):
    """It is not running, or other owners are connected."""
    accountant = BudgetAccountant(10.0, 1e-3, allow_seeded=True)
    engine = LoopbackEngine(n_owners)
    model = make(CLASSIFIERS[0], engine=engine, accountant=accountant, noise=noise, max_iter=2)
    with pytest.raises((RuntimeError, ValueError), match=r"with statement|2 owners are connected"):
        model.fit(X, Y, owners=OWNERS)
    assert accountant.spent() == (0.0, 0.0)


class Shared(Toy):
    """The same for processes that run one after the other: the first ones leave their inputs, the last one opens.

    A real engine lets all of them wait for each other. Here each process is run again with what all have left.
    """

    def __init__(self, known=None):
        super().__init__()
        self.known, self.mine = known, []

    def open(self, integers, sigma):
        own = np.add.reduce(list(integers))
        turn = len(self.mine)
        self.mine.append(own)
        others = 0 if self.known is None else sum(inputs[turn] for inputs in self.known)
        with np.errstate(over="ignore"):
            return super().open([own + others], sigma)


@each
def test_an_engine_draws_the_noise(cls):
    engine = Toy()
    steps = {"max_iter": 7} if "max_iter" in cls().get_params() else {}
    model = make(cls, engine=engine, **steps).fit(X, Y, owners=OWNERS)
    assert engine.counts == [3] * model.n_iter_
    assert "noise was drawn by a toy that nobody should trust" in lines(model)
    assert "one process" not in lines(model)


@each_classifier
def test_processes_of_one_owner_hold_the_same_model(cls):
    """Output perturbation opens once, so each process can be run with the inputs of the others."""
    steps = {"max_iter": 1} if "max_iter" in cls().get_params() else {}

    def fit(index, known):
        mine = OWNERS == "abc"[index]
        engine = Shared(known)
        model = make(cls, engine=engine, **steps)
        return model.fit(X[mine], Y[mine], owners=OwnRecords(SIZES, index)), engine.mine

    inputs = [fit(index, None)[1] for index in range(3)]
    models = [fit(index, [x for j, x in enumerate(inputs) if j != index])[0] for index in range(3)]
    together = make(cls, engine=Toy(), **steps).fit(X, Y, owners=OWNERS)
    for model in models:
        assert np.array_equal(model.coef_, together.coef_)
        assert model.privacy_.mechanisms == together.privacy_.mechanisms
        assert model.privacy_.public == together.privacy_.public


@each
def test_one_owners_process_needs_an_engine_and_public_labels(cls):
    own = OwnRecords((N, 50), 0)
    with pytest.raises(ValueError, match="give an engine= that reaches them"):
        make(cls).fit(X, Y, owners=own)
    with pytest.raises(ValueError, match="epsilon=inf"):
        make(cls, engine=Toy(), epsilon=math.inf).fit(X, Y, owners=own)
    with pytest.raises(ValueError, match="its plan says 119"):
        make(cls, engine=Toy()).fit(X, Y, owners=OwnRecords((119, 50), 0))
    with pytest.raises(TypeError, match="lacks open_laplace"):
        make(cls, engine=Toy(), noise="laplace").fit(X, Y, owners=own)
    if cls in CLASSIFIERS:
        with pytest.raises(ValueError, match="declare classes="):
            make(cls, engine=Toy(), classes=None).fit(X, Y, owners=own)
