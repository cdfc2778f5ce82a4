"""Sums modulo 2^64: what adds noise may wrap, what chooses never sees a wrapped integer.

Every call of a mechanism by every private estimator is watched, with public numbers at the ends of their ranges.
"""

import inspect
import math
import warnings

import numpy as np
import pytest

import skdp
from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.losses import MultinomialLoss, SquaredLoss
from skdp.privacy import PrivateRecords, VertexScores
from skdp.privacy.bounded import BoundedStatistic, Source
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.privacy.mechanisms.laplace.release import LaplaceMechanism
from skdp.privacy.mechanisms.sparse_vector import release as sparse_release
from skdp.privacy.mechanisms.sparse_vector.cost import NumericSparsePlan
from skdp.privacy.mechanisms.top_k.release import TopKMechanism
from skdp.privacy.noise import KeyStream
from skdp.privacy.statistics import gradient_scores, mean_losses, mean_sup_gradient, step_scores
from tests import texts
from tests.privacy.releases import drawn, wrap_release

PRIVATE = {
    name: texts.as_classifier(cls)
    for name, cls in skdp.all_estimators()
    if "epsilon" in inspect.signature(cls).parameters
}
LIMIT = 2.0**62


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


# ------------------------------------------------------------------ additive noise

EDGES = [
    0, 1, -1, 2**53 + 1, 2**62 - 1, 2**62, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64 - 1, 2**64 + 5,
    -(2**100) + 3, 3 * 2**65 - 7,
]  # fmt: skip


def wrapped(value):
    """An integer as an int64 holds it."""
    return (value + 2**63) % 2**64 - 2**63


@pytest.mark.parametrize("name", ["gaussian", "laplace"])
def test_additive_noise_is_a_function_of_the_exact_noisy_sum(name):
    def released(sums):
        held = np.array([wrapped(value) for value in sums], dtype=np.int64)
        source = Source(lambda unit: held.copy(), lambda: held * 1.0, 0, math.inf, usual=1.0)
        bounded = BoundedStatistic.from_source(source, (len(sums),), l2=1.0, l1=4.0)
        if name == "gaussian":
            drawn_with = grid.gaussian_grid(bounded, 2.0, "replace-one")
            return gaussian_release.gaussian(bounded, drawn_with, KeyStream(7))
        return drawn(LaplaceMechanism(2.0), bounded, "replace-one", KeyStream(7))

    noise, row = released([0] * len(EDGES))
    added = [round(value / row["grid"]) for value in noise]
    found, _ = released(EDGES)
    for value, exact, more in zip(found, EDGES, added):
        # float64 rounds the int64 once: it is what is released of the exact noisy sum modulo 2^64.
        assert value == float(wrapped(exact + more)) * row["grid"]


# ------------------------------------------------------------------ choices and thresholds

SELECTIONS = {"gumbel_top_k", "numeric_sparse"}


class Watch:
    """Takes note of how large the integers of every choice are, against the exact statistic."""

    def __init__(self, monkeypatch):
        self.seen = {"gumbel_top_k": 0, "numeric_sparse": 0, "gaussian": 0, "laplace": 0, "gaussian_above": 0}
        self.largest = 0.0
        for name in self.seen:
            wrap_release(monkeypatch, name, self.around)

    def around(self, name, honest):
        def call(bounded, *arguments):
            found = honest(bounded, *arguments)
            self.check(name, bounded._value, found[1]["grid"])
            self.seen[name] += 1
            return found

        return call

    def check(self, name, source, unit):
        most = source.magnitude
        if name not in SELECTIONS:
            most = source.usual if source.usual is not None else most
        if math.isfinite(most):
            assert most / unit <= 2.0**61 * (1 + 1e-12)
            self.largest = max(self.largest, most / unit)
        if name in SELECTIONS:
            integers = source.on_grid(unit)
            size = np.abs(integers.astype(object)).max()
            assert size <= LIMIT
            # The same statistic on a grid 8 times as wide: a wrapped integer would be off by 2^64.
            wide = source.on_grid(8 * unit).astype(object)
            assert np.abs(integers.astype(object) - 8 * wide).max() < 2**54


def made(name, **params):
    known = inspect.signature(PRIVATE[name]).parameters
    settings = {"classes": (0, 1), "max_iter": 3, "random_state": 0, **params}
    settings.update(texts.required(PRIVATE[name]))
    if name.startswith("DPIGHT"):
        settings["selection"] = "peeling"
    if name.startswith("DPTwoStage"):
        settings["n_nonzero_coefs"] = 2
    return PRIVATE[name](**{k: v for k, v in settings.items() if k in known})


SHAPES = [
    {"adjacency": "replace-one", "n_public": None},
    {"adjacency": "add-remove", "n_public": 1},
    {"adjacency": "add-remove", "n_public": 40},
    {"adjacency": "zero-out", "n_public": 2**20},
    {"adjacency": "add-remove", "n_public": 2**50},
]


@pytest.mark.parametrize("name", sorted(PRIVATE))
@pytest.mark.slow
def test_no_choice_of_any_estimator_sees_a_wrapped_integer(name, monkeypatch):
    watch = Watch(monkeypatch)
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    y = (X[:, 0] > 0).astype(int)
    fitted = 0
    for shape in SHAPES:
        for epsilon, scale in ((1.0, 1.0), (1e-6, 1.0), (1e3, 1.0), (1.0, 1e-40), (1.0, 1e40)):
            if (epsilon, scale) != (1.0, 1.0) and shape["n_public"] not in (None, 1, 2**50):
                continue
            clips = dict.fromkeys(
                ("clip_norm", "row_norm", "clip_diff_norm", "loss_bound", "gradient_bound"), scale
            )
            try:
                made(name, **shape, **clips, epsilon=epsilon).fit(X * scale, y)
                fitted += 1
            except (PrivacyBudgetExceeded, UnsupportedAccounting, ValueError, MemoryError):
                continue  # refused from public numbers, before anything was released
    # Estimators of several owners have no n_public, and refuse row norms beyond 1e20.
    assert fitted >= (4 if "n_public" in inspect.signature(PRIVATE[name]).parameters else 3)
    assert sum(watch.seen.values()) > 0
    choosing = {"DPFrankWolfe", "DPSparseERM", "DPAGD", "DPTwoStage", "DPIGHT"}
    if any(name.startswith(family) for family in choosing):
        assert watch.seen["gumbel_top_k"] + watch.seen["numeric_sparse"] > 0
    assert watch.largest > 0 or name.startswith(("DPAMP", "DPLocalObjective", "DPSLKT"))


CLIPS = [1e-100, 1e-30, 1.0, 1e30, 1e100]


@pytest.mark.parametrize("n_public", [1, 3, 2**20, 2**44, 2**50])
@pytest.mark.parametrize("clip", CLIPS)
def test_no_choosing_statistic_passes_the_headroom(n_public, clip):
    """All statistics that a choice, a threshold or a path can ask for, at every budget."""
    X = np.random.default_rng(1).normal(size=(30, 3))
    records = PrivateRecords(X, (X[:, 0] > 0) * 1.0, n_public=n_public)
    theta, loss = np.zeros(3), SquaredLoss()
    asked = [
        gradient_scores(records, loss, theta, clip),
        mean_sup_gradient(records, loss, theta, clip),
        mean_losses(records, loss, theta[None], clip),
        step_scores(records, loss, theta, clip, 0.5),
        records.norm_count(clip),
        VertexScores(records, loss, clip).scores(),
    ]
    tried = 0
    for bounded in asked:
        source = bounded._value
        for epsilon in (1e-6, 1e-3, 1.0, 1e3):
            grids = []
            try:
                _, row = drawn(TopKMechanism(1, epsilon), bounded, "add-remove", KeyStream(0))
                grids.append(row["grid"])
                plan = NumericSparsePlan(1, 1, epsilon, epsilon, 1 / 3, 2 * epsilon, 1.0)
                grids.append(sparse_release.numeric_sparse_grid(bounded, plan, "add-remove")[0])
            except (PrivacyBudgetExceeded, ValueError):
                pass  # refused from public numbers
            for unit in grids:
                tried += 1
                assert math.isinf(source.magnitude) or source.magnitude / unit <= 2.0**61 * (1 + 1e-12)
                assert math.isinf(source.magnitude) or source.magnitude >= bounded.linf * 2**44
                assert np.abs(source.on_grid(unit).astype(object)).max() <= 2**61
    assert tried > 0 or clip in (1e-100, 1e100)


def test_a_mutant_whose_choices_use_the_usual_bound_is_caught(monkeypatch):
    monkeypatch.setattr(
        grid, "_size", lambda bounded, *, additive: bounded._value.usual or bounded._value.magnitude
    )
    records = PrivateRecords(np.eye(3), np.zeros(3), n_public=2**30)
    bounded = mean_sup_gradient(records, SquaredLoss(), np.zeros(3), 1.0)
    _, row = drawn(TopKMechanism(1, 1e3), bounded, "add-remove", KeyStream(0))
    assert bounded._value.magnitude / row["grid"] > LIMIT


# ------------------------------------------------------------------ scores after a step


@pytest.mark.parametrize("loss", [SquaredLoss(), MultinomialLoss(4)], ids=lambda loss: loss.name)
def test_scores_that_cancel_move_by_no_more_than_declared(loss):
    """theta is what the step takes away: the difference of two large numbers once lost 31 units of the grid."""
    rng = np.random.default_rng(0)
    n, clip, reached = 2**12, 0.37, 0.0
    for _ in range(60):
        X = rng.uniform(0.5, 2, size=(n, 1))
        X[0] = 500.0
        other = X.copy()
        other[0] = -500.0
        y = np.full(n, -1e6) if loss.n_outputs == 1 else np.zeros(n)
        rate = float(rng.uniform(0.1, 3))
        first, second = (PrivateRecords(A, y) for A in (X, other))
        zero = np.zeros((1, loss.n_outputs)[: 1 + (loss.n_outputs > 1)])
        gradient = first.mean_gradient(loss, zero, clip)._value
        unit = gradient.magnitude * 2.0**-61
        theta = rate * gradient.on_grid(unit) * unit * (1 + 2.0**-52 * rng.integers(0, 8))
        if loss.n_outputs > 1:
            theta = zero  # the gradient does not depend on it for the squared loss only
        scores = [step_scores(r, loss, theta, clip, rate) for r in (first, second)]
        moved = 2 * scores[0].linf
        power = int(rng.choice([42, 46]))
        grid = moved / 2**power * float(rng.uniform(0.5, 1))
        a, b = (s._value.on_grid(grid)[0] for s in scores)
        limit = math.floor(moved / grid) + 1 + scores[0]._value.roundings
        assert abs(int(a) - int(b)) <= limit
        if power == 42:  # beyond, the clamp takes effect
            reached = max(reached, abs(int(a) - int(b)) / limit)
    assert reached > (0.99 if loss.n_outputs == 1 else 0.3)
