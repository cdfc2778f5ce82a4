"""All noise of a whole fit of a net, from what was drawn: windows, ranges, steps, calibration, recalibration."""

import contextlib
import functools

import numpy as np
import pytest

from skdp import DPMLPClassifier, DPMLPRegressor, DPNetworkClassifier
from skdp.exceptions import PrivacyAccountingError
from skdp.nn import (
    AdaFEST,
    Dense,
    Embedding,
    MaskedMeanPool,
    RandomSparsification,
    RecursiveMomentum,
    Sequential,
    SparseSelection,
)
from skdp.privacy import accounting, factor, noise
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.gaussian import release as gaussian_release

pytestmark = pytest.mark.filterwarnings("ignore")

EPSILON, DELTA, N, D = 2.0, 1e-5, 1500, 3


@pytest.fixture
def drawn(monkeypatch):
    """Of each release: its size, and the deviation that was drawn over what neighbours can differ by."""
    found, last = [], []

    def noted(sigma, *rest, of):
        last.append(sigma)
        return of(sigma, *rest)

    for name in ("rounded_gaussian", "rounded_gaussian_above"):
        monkeypatch.setattr(noise, name, functools.partial(noted, of=getattr(noise, name)))

    def watched(bounded, drawn_with, *rest, usual):
        last.clear()
        released = usual(bounded, drawn_with, *rest)
        found.append((bounded.size, min(last) * drawn_with[0] / (bounded.l2 * ADJACENCY["factor"])))
        return released

    for name in ("gaussian", "gaussian_above"):
        usual = getattr(gaussian_release, name)
        monkeypatch.setattr(gaussian_release, name, functools.partial(watched, usual=usual))
    return found


ADJACENCY = {"factor": 1.0}


def cost(cls, adjacency, drawn, **more):
    """The squares of 1 / multiplier, added over all releases of a full-batch fit: mu^2 of what was drawn."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * 50
    y = (X[:, 0] > 0) * 1 if cls is DPMLPClassifier else 1e5 + X[:, 0]
    ADJACENCY["factor"] = factor(adjacency)
    options = {"classes": (0, 1), **more} if cls is DPMLPClassifier else more
    model = cls(
        epsilon=EPSILON, delta=DELTA, adjacency=adjacency, batch_size=N, max_iter=4, random_state=0, **options
    )  # fmt: skip
    with contextlib.suppress(PrivacyAccountingError):  # the recheck sees the mutant; what was released is out
        model.fit(X, y)
    assert len({size for size, _ in drawn}) >= 3  # columns, all parameters, and sums of scores or of moments
    return sum(z**-2.0 for _, z in drawn)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
@pytest.mark.parametrize("cls", [DPMLPClassifier, DPMLPRegressor])
def test_all_that_is_drawn_costs_no_more_than_the_claim(cls, adjacency, drawn):
    claim = accounting.gaussian_mu(EPSILON, DELTA) ** 2
    assert 0.9 * claim <= cost(cls, adjacency, drawn) <= claim


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_recursive_momentum_costs_no_more_than_the_claim(adjacency, drawn):
    claim = accounting.gaussian_mu(EPSILON, DELTA) ** 2
    recursive = RecursiveMomentum(clip_diff_norm=0.05, initial_batch_size=N)
    assert 0.9 * claim <= cost(DPMLPClassifier, adjacency, drawn, gradient_estimator=recursive) <= claim


@pytest.mark.parametrize(
    "way",
    [
        {"gradient_estimator": RandomSparsification(0.5, cooling=False)},
        {"sampling": "partition"},
        {"gradient_estimator": SparseSelection(0.5, "uniform")},
    ],
    ids=["sparsified", "partition", "uniform"],
)
def test_other_ways_cost_no_more_than_the_claim_and_half_their_noise_does(way, drawn, monkeypatch):
    claim = accounting.gaussian_mu(EPSILON, DELTA) ** 2
    assert 0.9 * claim <= cost(DPMLPClassifier, "replace-one", drawn, **way) <= claim
    drawn.clear()
    honest = grid.gaussian_grid
    monkeypatch.setattr(
        grid, "gaussian_grid",
        lambda bounded, z, *rest: honest(bounded, z / 2 if bounded.size >= 50 else z, *rest),
    )  # fmt: skip
    assert cost(DPMLPClassifier, "replace-one", drawn, **way) > claim


@pytest.mark.parametrize("halved", [(), (5,), (30,)], ids=["honest", "counts", "gradients"])
def test_adafest_costs_no_more_than_the_claim_and_half_its_noise_does(halved, drawn, monkeypatch):
    """Counts of 5 tokens, and 20 numbers of a table with 10 of a dense layer; all tokens pass."""
    honest = grid.gaussian_grid
    monkeypatch.setattr(
        grid, "gaussian_grid",
        lambda bounded, z, *rest: honest(bounded, z / 2 if bounded.size in halved else z, *rest),
    )  # fmt: skip
    ADJACENCY["factor"] = factor("replace-one")
    rng = np.random.default_rng(0)
    net = Sequential([Embedding(5, 4), MaskedMeanPool(), Dense(2)])
    model = DPNetworkClassifier(
        network=net, classes=(0, 1), gradient_estimator=AdaFEST(-1e6), epsilon=EPSILON, delta=DELTA, batch_size=N,
        max_iter=4,
        adjacency="replace-one", random_state=0,
    )  # fmt: skip
    with contextlib.suppress(PrivacyAccountingError):  # the recheck sees a mutant
        model.fit(rng.integers(1, 6, (N, 3)), rng.integers(0, 2, N))
    sizes = [size for size, _ in drawn]
    assert sizes[:8] == [5, 30] * 4
    claim, found = accounting.gaussian_mu(EPSILON, DELTA) ** 2, sum(z**-2.0 for _, z in drawn)
    assert found > claim if halved else 0.9 * claim <= found <= claim


@pytest.mark.parametrize("part", ["few entries", "all parameters"])
def test_half_the_noise_of_one_kind_of_release_is_caught(part, drawn, monkeypatch):
    honest, few = grid.gaussian_grid, part == "few entries"
    monkeypatch.setattr(
        grid, "gaussian_grid",
        lambda bounded, z, *rest: honest(bounded, z / 2 if (bounded.size < 50) == few else z, *rest),
    )  # fmt: skip
    assert cost(DPMLPClassifier, "zero-out", drawn) > accounting.gaussian_mu(EPSILON, DELTA) ** 2
