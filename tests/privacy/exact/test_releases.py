"""The kinds of release as types: their rows, their costs against closed forms and dp-accounting, and new kinds."""

import dataclasses
import math
import sys
import types
import warnings
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import brentq
from scipy.stats import norm

import skdp
from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import PrivacyReport
from skdp.privacy.accounting import (
    amplified_epsilon,
    bounded_range_mu,
    gaussian_delta,
    gaussian_epsilon,
    pld,
    pure_mu,
    rdp,
    recheck_epsilon,
    rows_epsilon,
    rows_mu,
    sampled_epsilon,
)
from skdp.privacy.accounting.adapter import event_for
from skdp.privacy.accounting.pairs import Cells, DominatingPair, discretised
from skdp.privacy.accounting.releases import Release, release_of, release_type, releases_of
from skdp.privacy.accounting.sampled import require_supported
from skdp.privacy.mechanisms import registry
from skdp.privacy.mechanisms.best_of.cost import BestOf
from skdp.privacy.mechanisms.gaussian.cost import Gaussian, SampledGaussian
from skdp.privacy.mechanisms.laplace.cost import Laplace
from skdp.privacy.mechanisms.objective_perturbation.cost import ObjectivePerturbation
from skdp.privacy.mechanisms.projected_gaussian.cost import ProjectedGaussian
from skdp.privacy.mechanisms.sampled_pure.cost import SampledPure
from skdp.privacy.mechanisms.selected_gaussian.cost import SelectedGaussian
from skdp.privacy.mechanisms.sparse_vector.cost import AboveThreshold
from skdp.privacy.mechanisms.top_k.cost import TopK
from skdp.privacy.mechanisms.vocabulary.cost import VocabularyRelease
from tests.privacy import theirs

ADJACENCIES = ("replace-one", "zero-out", "add-remove")
KINDS = (
    Gaussian,
    SampledGaussian,
    ProjectedGaussian,
    SelectedGaussian,
    Laplace,
    AboveThreshold,
    SampledPure,
    TopK,
    ObjectivePerturbation,
    BestOf,
    VocabularyRelease,
)
ROWS = [
    {"name": "gaussian", "purpose": "steps", "count": 5, "noise_multiplier": 3.0, "noise_std": 6.0,
     "sensitivity": 2.0, "grid": 1e-9, "sampling": "full batch"},
    {"name": "gaussian", "purpose": "steps", "count": 5, "noise_multiplier": 3.0, "noise_std": 6.0,
     "sensitivity": 2.0, "grid": 1e-9, "sampling": "Poisson", "sampling_rate": 0.1, "batch_size": 10},
    {"name": "gaussian", "purpose": "steps", "count": 5, "noise_multiplier": 3.0, "noise_std": 6.0,
     "sensitivity": 2.0, "grid": 1e-9, "sampling": "without replacement", "sampling_rate": 0.1,
     "batch_size": 10, "n_records": 100},
    {"name": "laplace", "purpose": "count", "count": 2, "epsilon": 0.5, "sensitivity": 1.0, "grid": 1e-9,
     "sampling": "full batch"},
    {"name": "gumbel_top_k", "purpose": "support", "count": 3, "epsilon": 0.5, "sensitivity": 1.0,
     "grid": 1e-9, "sampling": "full batch"},
    {"name": "above_threshold", "purpose": "steps", "count": 4, "epsilon": 0.5, "threshold_scale": 4.0,
     "query_scale": 8.0, "sensitivity": 1.0, "grid": 1e-9, "sampling": "full batch"},
    {"name": "sampled_pure", "purpose": "steps", "count": 4, "epsilon": 0.1, "epsilon_unsampled": 0.7,
     "sensitivity": 1.0, "grid": 1e-9, "sampling": "fresh uniform", "sampling_rate": 0.1},
    {"name": "objective_perturbation", "purpose": "minimiser", "count": 1, "epsilon": 0.5, "delta": 1e-6,
     "noise_std": 9.0, "penalty": 3.0, "curvature": 0.1, "trade": math.inf, "one_signed": True,
     "replaced": True, "sensitivity": 2.0, "grid": 1e-9, "sampling": "full batch"},
    {"name": "projected_gaussian", "purpose": "steps", "count": 5, "noise_multiplier": 3.0,
     "n_projections": 20, "norm_ratio": 3.0, "noise_std": 6.0, "sensitivity": 2.0, "grid": 1e-9,
     "sampling": "Poisson", "sampling_rate": 0.1, "batch_size": 10},
    {"name": "selected_gaussian", "purpose": "steps", "count": 5, "noise_multiplier": 3.0, "choices": 7,
     "choice_epsilon": 0.2, "noise_std": 6.0, "sensitivity": 2.0, "grid": 1e-9, "sampling": "Poisson",
     "sampling_rate": 0.1, "batch_size": 10},
    {"name": "best_of", "purpose": "search", "count": 1, "epsilon": 1.0, "delta": 1e-5, "mean_trials": 10.0,
     "shape": 1, "base_epsilon": 0.64, "base_delta": 1e-5, "base_mu": 0.178, "log_error": 6.4e-6,
     "tail": 2e-9, "sampling": "full batch"},
    {"name": "gaussian", "purpose": "words", "count": 1, "noise_multiplier": 3.0, "noise_std": 3.0,
     "sensitivity": 1.0, "grid": 1e-9, "sampling": "full batch", "threshold": 20.0, "max_words": 50,
     "delta": 1e-7},
]  # fmt: skip


# ---------------------------------------------------------------------- rows


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row['name']} {row['sampling']}")
def test_a_row_is_read_and_written_again(row):
    release = release_of(row)
    assert release.describe() == row
    assert list(release.describe()) == list(row)
    assert release_of(release.describe()) == release
    assert release.name == row["name"]
    with pytest.raises(dataclasses.FrozenInstanceError):
        release.count = 7


def test_every_kind_is_registered_and_has_a_row_here():
    assert {type(release) for release in releases_of(ROWS)} == set(KINDS)
    assert {kind.name for kind in KINDS} == set(registry.mechanism_names())


def table(classifier):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 8))
    score = X[:, :3].sum(axis=1)
    return X, (score > 0).astype(int) if classifier else score


@pytest.mark.parametrize(
    ("name", "params", "kinds"),
    [
        ("DPIGHTClassifier", {}, {Gaussian}),
        ("DPFrankWolfeRegressor", {}, {Gaussian, TopK}),
        ("DPSGDClassifier", {"batch_size": 30}, {SampledGaussian}),
        ("DPSGDClassifier", {"batch_size": 30, "sampling": "without_replacement"}, {SampledGaussian}),
        ("DPSparseERMRegressor", {}, {AboveThreshold, Laplace}),
        ("DPSparseERMRegressor", {"batch_size": 30}, {SampledPure}),
        ("DPAMPClassifier", {}, {ObjectivePerturbation, Gaussian}),
    ],
)  # fmt: skip
def test_rows_of_fits_are_those_of_their_releases(name, params, kinds):
    cls = getattr(skdp, name)
    X, y = table(name.endswith("Classifier"))
    if name.endswith("Classifier"):
        params = {"classes": (0, 1), **params}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = cls(**{"epsilon": 4.0, "delta": 1e-4, "random_state": 0, **params}).fit(X, y)
    rows = model.privacy_.mechanisms
    assert [release_of(row).describe() for row in rows] == rows
    assert kinds <= {type(release_of(row)) for row in rows}


@pytest.mark.parametrize(
    ("row", "message"),
    [
        ({"name": "staircase"}, "name of a ledger row must be one of"),
        ({"name": ["gaussian"]}, "name of a ledger row must be one of"),
        ({}, "name of a ledger row must be one of"),
        ({"name": "laplace"}, "needs 'epsilon'"),
        ({"name": "gaussian", "epsilon": 1.0}, "needs 'noise_multiplier'"),
        ({"name": "laplace", "epsilon": -1.0}, "epsilon of a 'laplace' row"),
        ({"name": "laplace", "epsilon": math.nan}, "epsilon of a 'laplace' row"),
        ({"name": "gaussian", "noise_multiplier": 1.0, "count": 1.5}, "count of a 'gaussian' row"),
        ({"name": "gaussian", "noise_multiplier": 1.0, "count": -1}, "count of a 'gaussian' row"),
    ],
)
def test_unknown_names_and_wrong_values_are_refused(row, message):
    with pytest.raises(ValueError, match=message):
        release_of(row)
    with pytest.raises(ValueError, match=message):
        rows_mu([row])


# ---------------------------------------------------------------------- mu and pure epsilon


def test_mu_and_pure_epsilon_are_the_closed_forms():
    assert Gaussian(noise_multiplier=10.0, count=100).mu() == pytest.approx(1.0, rel=1e-12)
    assert Gaussian(noise_multiplier=10.0).pure_epsilon() is None
    assert Gaussian(noise_multiplier=0.0).mu() == math.inf
    for kind in (Laplace, AboveThreshold, SampledPure):
        release = kind(epsilon=0.3, count=7)
        assert release.mu() == pure_mu(0.3, 7)
        assert release.pure_epsilon() == 7 * Fraction(0.3)
        assert kind(epsilon=math.inf).pure_epsilon() is None
    assert TopK(epsilon=0.3, count=4).mu() == pytest.approx(2 * bounded_range_mu(0.3))
    assert TopK(epsilon=0.3, count=4).pure_epsilon() == 4 * Fraction(0.3)
    assert ObjectivePerturbation(epsilon=1.0, delta=1e-6).mu() == math.inf
    for kind in (Laplace, TopK, ObjectivePerturbation):
        assert kind(epsilon=math.inf, count=0).mu() == 0.0


def test_a_release_on_a_sample_has_no_mu_and_a_laplace_release_no_sampling():
    for row in (ROWS[1], ROWS[2], {**ROWS[3], "sampling": "Poisson"}, {**ROWS[3], "sampling": "fresh uniform"}):
        release = release_of(row)
        assert release.on_sample
        with pytest.raises(UnsupportedAccounting, match="has no mu"):
            release.mu()
    assert not release_of(ROWS[6]).on_sample


# ---------------------------------------------------------------------- Renyi DP

ORDERS = np.array([1.1, 1.5, 2.0, 3.0, 4.5, 8.0, 32.0, 64.0])


def renyi(p, r, order):
    """Of two lists of masses."""
    return math.log(math.fsum(a**order * b ** (1 - order) for a, b in zip(p, r))) / (order - 1)


def test_rdp_of_gaussian_and_pure_releases_are_the_closed_forms():
    found = Gaussian(noise_multiplier=3.0, count=5).rdp(ORDERS, "zero-out")
    np.testing.assert_allclose(found, 5 * ORDERS / 18, rtol=1e-14)
    for epsilon in (1e-4, 0.1, 1.0, 6.0):
        p = 1 / (1 + math.exp(-epsilon))
        exact = [renyi((p, 1 - p), (1 - p, p), order) for order in ORDERS]
        found = Laplace(epsilon=epsilon, count=3).rdp(ORDERS, "add-remove")
        np.testing.assert_allclose(found, 3 * np.array(exact), rtol=1e-9, atol=1e-14)
        assert np.all(found <= 3 * epsilon * (1 + 1e-9))
    assert np.isfinite(Laplace(epsilon=500.0).rdp(ORDERS, "replace-one")).all()


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 4.0])
def test_rdp_of_a_selection_covers_every_two_point_pair(epsilon):
    found = TopK(epsilon=epsilon).rdp(ORDERS, "replace-one")
    assert np.all(found <= ORDERS * epsilon**2 / 8 * (1 + 1e-12))
    for t in np.linspace(0, epsilon, 41)[1:-1]:
        q = math.expm1(t - epsilon) / (math.expm1(t - epsilon) - math.expm1(t))
        p = math.exp(t) * q
        exact = np.array([renyi((p, 1 - p), (q, 1 - q), order) for order in ORDERS])
        assert np.all(exact <= found * (1 + 1e-9))


@pytest.mark.parametrize(("z", "rate"), [(0.7, 0.01), (1.3, 256 / 60000), (3.0, 0.3), (2.0, 1.0)])
def test_rdp_of_poisson_samples_is_that_of_dp_accounting(z, rate):
    from dp_accounting.rdp import rdp_privacy_accountant as accountant

    orders = np.array([2.0, 3.0, 5.0, 16.0, 64.0])
    release = SampledGaussian(noise_multiplier=z, count=4, sampling="Poisson", sampling_rate=rate)
    exact = [accountant._compute_rdp_poisson_subsampled_gaussian(rate, z, [a])[0] for a in orders]
    np.testing.assert_allclose(release.rdp(orders, "add-remove"), 4 * np.array(exact), rtol=1e-7)


@pytest.mark.parametrize(("z", "rate"), [(0.7, 0.01), (3.0, 0.3)])
def test_rdp_of_poisson_samples_covers_both_directions_at_every_order(z, rate):
    """By quadrature; dp-accounting's own figures between integers are looser, and some do not converge."""
    found = rdp.poisson_curve(z, rate, ORDERS)

    def mixed(x):
        return (1 - rate) * norm.pdf(x, 0, z) + rate * norm.pdf(x, 1, z)

    def alone(x):
        return norm.pdf(x, 0, z)

    for order, bound in zip(ORDERS[:5], found):
        for p, r in ((mixed, alone), (alone, mixed)):
            moment = quad(
                lambda x, p=p, r=r, order=order: p(x) ** order * r(x) ** (1 - order),
                -20 * z, 20 * z, points=[0.0, 1.0, order], limit=400, epsabs=0.0,
            )[0]  # fmt: skip
            assert math.log(moment) / (order - 1) <= bound * (1 + 1e-8)
            if p is mixed and order == int(order):
                assert math.log(moment) / (order - 1) == pytest.approx(bound, rel=1e-6)


def test_rdp_of_fixed_samples_is_the_curve_of_plans():
    release = SampledGaussian(
        noise_multiplier=1.3, count=6, sampling="without replacement", sampling_rate=0.05, n_records=200,
        batch_size=10,
    )  # fmt: skip
    found = release.rdp(rdp.ORDERS, "replace-one")
    np.testing.assert_array_equal(found, 6 * rdp.curve(1.3, 0.05))
    np.testing.assert_allclose(release.rdp(ORDERS, "replace-one"), 6 * rdp.curve_at(1.3, 0.05, ORDERS))


# ---------------------------------------------------------------------- dominating pairs


def by_pld(releases, delta, adjacency="replace-one"):
    """The larger epsilon of the two directions."""
    both = zip(*(release.pld(adjacency) for release in releases))
    return max(pld.composed_epsilon(sum(pairs, ()), delta) for pairs in both)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_pld_of_gaussian_releases_is_exact(adjacency):
    found = by_pld([Gaussian(noise_multiplier=20.0, count=100)], 1e-5, adjacency)
    assert found == pytest.approx(gaussian_epsilon(0.5, 1e-5), rel=1e-3)
    assert found >= gaussian_epsilon(0.5, 1e-5) * (1 - 1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
@pytest.mark.parametrize(("z", "rate", "count"), [(0.7, 0.02, 100), (1.3, 256 / 60000, 1000)])
def test_pld_of_poisson_samples_is_the_epsilon_of_plans(adjacency, z, rate, count):
    release = SampledGaussian(noise_multiplier=z, count=count, sampling="Poisson", sampling_rate=rate)
    expected = sampled_epsilon([(z, rate, count)], 1e-5, adjacency=adjacency)
    assert by_pld([release], 1e-5, adjacency) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "count"), [(0.05, 200), (0.5, 20), (2.0, 3), (1.0, 1)])
def test_pld_of_pure_releases_is_their_exact_composition(epsilon, count):
    def delta(claim):
        """Exact hockey stick of randomised responses."""
        total = 0.0
        for k in range(count + 1):
            loss = (2 * k - count) * epsilon
            if loss > claim:
                total_weight = math.comb(count, k) * math.exp(k * epsilon - count * math.log1p(math.exp(epsilon)))
                total += total_weight * -math.expm1(claim - loss)
        return total

    exact = brentq(lambda claim: delta(claim) - 1e-5, 0, count * epsilon)
    found = by_pld([Laplace(epsilon=epsilon, count=count)], 1e-5)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 2e-3)
    assert found <= rows_epsilon([Laplace(epsilon=epsilon, count=count).describe()], 1e-5) * (1 + 2e-3)


@pytest.mark.parametrize("epsilon", [0.05, 1.0, 5.0])
def test_pld_of_one_selection_is_the_envelope(epsilon):
    exact = brentq(lambda x: math.expm1((x - epsilon) / 2) ** 2 / -math.expm1(-epsilon) - 1e-5, 0, epsilon)
    found = by_pld([TopK(epsilon=epsilon)], 1e-5)
    assert exact * (1 - 1e-12) <= found <= exact * (1 + 2e-3)


@pytest.mark.parametrize("grid", [0.01, 0.03, 0.9])
@pytest.mark.parametrize("release", [Laplace(epsilon=0.4), TopK(epsilon=0.4), TopK(epsilon=6.0)])
def test_masses_of_pure_pairs_dominate_on_every_grid(release, grid):
    """The mass and E e^-loss are kept, and the hockey stick is nowhere below the exact one."""
    (pair,), _ = release.pld("replace-one")
    found = discretised(pair, grid, -40.0)
    losses = (found.first + np.arange(found.masses.size)) * grid
    assert found.masses.sum() == pytest.approx(1.0, abs=1e-13)
    assert float(np.sum(found.masses * np.exp(-losses))) == pytest.approx(1.0, abs=1e-12)
    e = release.epsilon
    for x in np.linspace(0, e, 23):
        exact = -math.expm1(x - e) / (1 + math.exp(-e))
        if isinstance(release, TopK):
            exact = math.expm1((x - e) / 2) ** 2 / -math.expm1(-e)
        above = float(np.sum(found.masses * np.maximum(0.0, -np.expm1(x - losses))))
        assert above >= exact - 1e-14


def test_mixed_releases_by_our_pairs_and_by_dp_accounting():
    releases = [
        Gaussian(noise_multiplier=20.0, count=20),
        Laplace(epsilon=0.1, count=3),
        TopK(epsilon=0.05, count=20),
    ]
    rows = [release.describe() for release in releases]
    by_them = theirs.composed_epsilon(rows, 1e-5, accountant="pld", adjacency="replace-one")
    assert by_pld(releases, 1e-5) == pytest.approx(by_them, rel=2e-3)
    curve = sum(release.rdp(rdp.ORDERS, "replace-one") for release in releases)
    assert by_pld(releases, 1e-5) < rdp.epsilon_of(curve, 1e-5) < 1.2 * by_them


def test_nothing_released_costs_nothing():
    for kind in (Laplace, TopK):
        assert kind(epsilon=0.0, count=3).pld("replace-one") == ((), ())
        assert kind(epsilon=1.0, count=0).pld("replace-one") == ((), ())
    assert Gaussian(noise_multiplier=1.0, count=0).pld("zero-out") == ((), ())
    none = SampledGaussian(noise_multiplier=1.0, count=0, sampling="Poisson", sampling_rate=0.5)
    assert none.pld("zero-out") == ((), ())


# ---------------------------------------------------------------------- what no proof supports


def test_a_fresh_uniform_sample_amplifies_pure_releases():
    found = SampledPure(epsilon=amplified_epsilon(1.0, 0.01), epsilon_unsampled=1.0, sampling_rate=0.01, count=3)
    assert recheck_epsilon([found.describe()], 0.0) == pytest.approx(3 * found.epsilon, rel=1e-9)


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_what_no_proof_supports_is_refused(adjacency):
    shuffled = SampledGaussian(noise_multiplier=1.0, sampling="shuffled", sampling_rate=0.1)
    calls = [
        lambda: ObjectivePerturbation(epsilon=1.0).pld(adjacency),
        lambda: ObjectivePerturbation(epsilon=1.0).rdp(ORDERS, adjacency),
        lambda: ObjectivePerturbation(epsilon=1.0).rho(),
        lambda: Laplace(epsilon=math.inf).pld(adjacency),
        lambda: Gaussian(noise_multiplier=0.0).rdp(ORDERS, adjacency),
        lambda: shuffled.pld(adjacency),
        lambda: shuffled.rdp(ORDERS, adjacency),
        lambda: release_of(ROWS[2]).pld(adjacency),
    ]
    if adjacency == "replace-one":
        calls.append(lambda: release_of(ROWS[1]).rdp(ORDERS, adjacency))
    else:
        calls.append(lambda: release_of(ROWS[2]).rdp(ORDERS, adjacency))
    for call in calls:
        with pytest.raises(UnsupportedAccounting):
            call()
    with pytest.raises(ValueError, match="sampling_rate"):
        SampledGaussian(noise_multiplier=1.0, sampling="Poisson", sampling_rate=1.5).pld("zero-out")


# ---------------------------------------------------------------------- a kind of a later subpackage


@dataclass(frozen=True)
class ShiftedLaplace(DominatingPair):
    """Exact pair of Laplace noise on a number: Laplace laws of scale 1/epsilon around 0 and 1."""

    epsilon: float
    releases: int

    def loss_range(self, log_tail):
        return -self.epsilon * 1.0000001, self.epsilon * 1.0000001

    def cells(self, loss):
        x = np.clip(0.5 - loss / (2 * self.epsilon), 0.0, 1.0)  # where the loss is taken inside
        x[loss >= self.epsilon], x[loss < -self.epsilon] = -np.inf, np.inf

        def total_weight(centre):
            t = (x - centre) * self.epsilon
            cdf = np.where(t < 0, 0.5 * np.exp(np.minimum(t, 0)), 1 - 0.5 * np.exp(-np.maximum(t, 0)))
            return cdf[:-1] - cdf[1:]

        p, r = total_weight(0.0), total_weight(1.0)
        return Cells(p, 1e-15 + 0 * p, r, 1e-15 + 0 * r, 0.0, 0.0)


@pytest.fixture
def packaged(monkeypatch):
    """A function that makes a package of a kind of release, without a recheck, and registers it."""
    monkeypatch.setattr(registry, "_PACKAGES", dict(registry._PACKAGES))

    def make(kind):
        package, cost = types.ModuleType(f"{kind.name}_package"), types.ModuleType(f"{kind.name}_package.cost")
        package.__path__, cost.RELEASE = [], kind
        monkeypatch.setitem(sys.modules, package.__name__, package)
        monkeypatch.setitem(sys.modules, cost.__name__, cost)
        registry.register_mechanism(kind.name, package.__name__)
        return kind

    return make


@pytest.fixture
def scalar_laplace(packaged):
    @packaged
    @dataclass(frozen=True, kw_only=True)
    class ScalarLaplace(Laplace):
        name = "scalar_laplace"

        def pld(self, adjacency):
            pair = (ShiftedLaplace(self.epsilon, self.count),)
            return pair, pair

    return ScalarLaplace


def test_a_new_kind_needs_its_package_alone(scalar_laplace):
    release = scalar_laplace(epsilon=0.5, count=3, purpose="mean")
    assert release_of(release.describe()) == release
    assert release_type({"name": "scalar_laplace"}) is scalar_laplace
    row = release.describe()
    assert rows_epsilon([row], 0.0) == 1.5
    report = PrivacyReport(epsilon=1.5, delta=0.0, adjacency="zero-out", mechanisms=[row])
    assert "scalar_laplace" in repr(report)
    # Its own pair says more than randomised response: one release against the closed form.
    one = scalar_laplace(epsilon=2.0)
    exact = brentq(lambda x: -math.expm1((x - 2.0) / 2) - 0.1, 0, 2.0)
    assert by_pld([one], 0.1) == pytest.approx(exact, rel=2e-3)
    assert by_pld([one], 0.1) < by_pld([Laplace(epsilon=2.0)], 0.1)
    with pytest.raises(UnsupportedAccounting, match="have no recheck"):
        recheck_epsilon([row], 0.0)  # no claim without other code


def test_a_name_is_given_once(scalar_laplace):
    registry.register_mechanism("scalar_laplace", "scalar_laplace_package")
    for name in ("scalar_laplace", "gaussian"):
        with pytest.raises(ValueError, match="choose another name"):
            registry.register_mechanism(name, "another_package")


def test_what_a_kind_does_not_override_refuses():
    @dataclass(frozen=True, kw_only=True)
    class Nothing(Release):
        name = "nothing"
        epsilon: float

    assert Nothing(epsilon=1.0).mu() == math.inf
    assert Nothing(epsilon=1.0).pure_epsilon() is None
    with pytest.raises(UnsupportedAccounting):
        Nothing(epsilon=1.0).pld("replace-one")


def test_a_new_kind_is_not_taken_for_a_pure_one(packaged):
    @packaged
    @dataclass(frozen=True, kw_only=True)
    class Curved(Release):
        name = "curved"
        parameter_name = "scale"
        scale: float

    for accountant in ("pld", "rdp"):
        with pytest.raises(UnsupportedAccounting, match="No accountant knows 'curved'"):
            require_supported("full batch", "replace-one", ["curved"], accountant)
        with pytest.raises(UnsupportedAccounting, match="no event"):
            event_for([{"name": "curved", "scale": 2.0}], accountant, "replace-one")
    assert rows_epsilon([{"name": "curved", "scale": 2.0}], 1e-5) == math.inf
    Curved.accountants = ("rdp",)
    with pytest.raises(UnsupportedAccounting, match="no safe RDP event"):
        event_for([{"name": "curved", "scale": 2.0}], "rdp", "replace-one")


def test_gaussian_delta_of_the_pair_is_the_closed_form():
    (pair,), _ = Gaussian(noise_multiplier=0.8).pld("replace-one")
    found = discretised(pair, 1e-3, -60.0)
    losses = (found.first + np.arange(found.masses.size)) * 1e-3
    for x in (0.0, 0.5, 2.0):
        above = float(np.sum(found.masses * np.maximum(0.0, -np.expm1(x - losses))))
        assert above + found.infinite == pytest.approx(gaussian_delta(1.25, x), rel=1e-5)
