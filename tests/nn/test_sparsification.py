"""Random sparsification: masks, sums of chosen entries, what one record changes, and an adversary who sees all."""

import functools
import math

import numpy as np
import pytest
from scipy.stats import chi2

from skdp import DPMLPClassifier, DPNetworkClassifier
from skdp.exceptions import UtilityWarning
from skdp.fitting import sparsification
from skdp.fitting.optimizers import Rule
from skdp.fitting.sizes import chosen_rate
from skdp.fitting.sparsification import Masks, chosen_sparsity
from skdp.nn import SGD, Dense, Projections, RandomSparsification, Sequential, net_fit
from skdp.privacy import BudgetAccountant, PrivacySession, PrivateRecords, accounting
from skdp.privacy.gradients import parts
from skdp.privacy.mechanisms import grid
from tests.nn.test_projections import SIZE, pieces
from tests.nn.test_replaced_records import LAYERS, largest_moves
from tests.privacy import audit

CLIP, GRID = 0.7, 2.0**-24
SOME = np.sort(np.random.default_rng(0).permutation(SIZE)[:11])

# ---------------------------------------------------------------------- the masks


def kept_in(masks, steps):
    for t in range(steps):
        masks.begin_step(t)
        yield masks.kept


def masks_of(size=1000, epoch=4, n_iter=20, rate=0.8, **options):
    made = RandomSparsification(rate, **options)
    return Masks(made, rate, size, epoch, n_iter, np.random.default_rng(0))


def test_one_mask_an_epoch_and_a_rate_that_grows():
    found = list(kept_in(masks_of(), 20))
    assert all(kept is None for kept in found[:4])  # nothing rests in the first epoch
    assert [kept.size for kept in found[4:]] == [800] * 4 + [600] * 4 + [400] * 4 + [200] * 4
    assert all(found[t] is found[t - t % 4] for t in range(20))
    constant = list(kept_in(masks_of(cooling=False), 20))
    assert {kept.size for kept in constant} == {200}
    assert not np.array_equal(constant[0], constant[4])
    # Each entry is kept in one of five epochs on average: 2 would need a chance below 1e-100 a mask.
    assert np.unique(np.concatenate(constant)).size > 500


def test_a_mask_is_uniform():
    """Each entry is kept with chance 1/2: of 400 masks, 20 entries lie within 5.5 standard errors of 200."""
    masks = masks_of(size=20, epoch=1, n_iter=400, rate=0.5, cooling=False)
    counts = np.zeros(20)
    for kept in kept_in(masks, 400):
        assert np.all(np.diff(kept) > 0)
        counts[kept] += 1
    assert np.abs(counts - 200).max() < 55


def test_ranked_masks_keep_the_largest_sums_and_bring_back_what_rested():
    masks = masks_of(size=10, epoch=2, n_iter=4, rate=0.4, cooling=False, ranked=True)
    for t in range(2):
        masks.begin_step(t)
        first = masks.kept
        found = np.zeros(10)
        found[first] = 10.0 + first
        masks.end_step(found, noise_std=1e6)  # entries at rest get noise alone
    masks.begin_step(2)
    rested = np.setdiff1d(np.arange(10), first)
    assert set(rested) <= set(masks.kept)
    assert set(masks.kept) - set(rested) == set(np.sort(first)[-2:])


def test_at_least_one_entry_is_kept():
    assert next(kept_in(masks_of(size=3, rate=0.99, cooling=False), 1)).size == 1


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"rate": 1.0}, ValueError),
        ({"rate": -0.1}, ValueError),
        ({"rate": "all"}, ValueError),
        ({"rate": None}, TypeError),
        ({"cooling": 1}, TypeError),
        ({"ranked": None}, TypeError),
    ],
)
def test_parameters_are_checked(options, error):
    with pytest.raises(error, match=next(iter(options))):
        RandomSparsification(**options)


def test_the_public_rate_is_that_of_the_bound_when_the_loss_stands_still():
    """U(r) = A / k + k N with k^2 = 1 - r, A = G C^2 / 2 and N = G C^2 z^2 d / (2 B^2), on a grid of rates."""
    clip, z, size, batch = 0.3, 2.0, 4000, 60
    rates = np.linspace(0, 0.999, 1000)
    k = np.sqrt(1 - rates)
    rest, noise = clip**2 / 2, (clip * z / batch) ** 2 * size / 2
    best = rates[np.argmin(rest / k + k * noise)]
    assert abs(chosen_sparsity(clip * z / batch, clip, size) - best) < 1e-3
    # With the best step size for each rate the bound is least without any: the theory page says so.
    assert np.argmin(np.sqrt(rest / k**2 + noise)) == 0
    assert chosen_sparsity(0.0, clip, size) == 0.0  # no noise


@pytest.mark.parametrize(("clip_norm", "momentum"), [(0.1, 0.9), (0.5, 0.5), (1.0, 0.0)])
def test_the_scaling_rule_holds_for_automatic_step_sizes(clip_norm, momentum):
    """Appendix H: with SGD, C / (1 - momentum) decides alone; with Adam neither changes the step."""
    noise = 0.02 * clip_norm
    rate = chosen_rate(noise, clip_norm, 100, Rule(momentum=momentum))
    one = chosen_rate(0.02, 1.0, 100, Rule(momentum=0.0))
    assert math.isclose(rate * clip_norm / (1 - momentum), one, rel_tol=1e-12)
    adam = [chosen_rate(n, c, 100, Rule("adam", momentum)) for n, c in ((noise, clip_norm), (0.02, 1))]
    assert adam[0] == adam[1]


# ---------------------------------------------------------------------- sums of chosen entries


def rows(n=100):
    return np.random.default_rng(1).normal(size=(n, 12))


@pytest.mark.parametrize("more", [{}, {"groups": np.arange(100)}], ids=["records", "groups"])
@pytest.mark.parametrize("clipping", ["materialized", "one-by-one"])
@pytest.mark.parametrize("entries", [SOME, np.arange(SIZE), np.array([30])], ids=len)
def test_chosen_entries_are_masked_before_they_are_clipped(entries, clipping, more):
    X = rows()
    g = np.concatenate([piece.dense() for piece in pieces(X, None)], axis=1)[:, entries]
    norms = np.maximum(np.linalg.norm(g, axis=1), CLIP)
    total = PrivateRecords(X, **more).gradient_sum(pieces, CLIP, size=SIZE, clipping=clipping, entries=entries)
    assert total.shape == (entries.size,)
    assert total.l2 == CLIP
    found = total._value.on_grid(GRID) * GRID
    # Clip norms are lowered a little for rounding: by 2.7e-4 of the sum of 100 unit vectors at most.
    assert np.allclose(found, CLIP * (g / norms[:, None]).sum(axis=0), rtol=0, atol=100 * 3e-4)
    assert not np.allclose(found, 0, atol=0.1)


def test_all_entries_are_the_sum_without_a_mask_bit_for_bit_but_for_norms():
    """The norm of an outer product is computed in another way: one rounding of float64 in a factor."""
    records = PrivateRecords(rows())
    whole, chosen = (
        records.gradient_sum(pieces, CLIP, size=SIZE, entries=entries)._value.on_grid(GRID)
        for entries in (None, np.arange(SIZE))
    )
    assert np.abs(whole - chosen).max() <= 2e-5 / GRID


@pytest.mark.parametrize(
    ("entries", "word"),
    [
        (np.array([1, 1]), "different"),
        (np.array([2, 1]), "ascending"),
        (np.array([-1, 1]), "below"),
        (np.array([SIZE]), "below"),
        (np.array([], dtype=np.int64), "at least one"),
        (np.array([1.0]), "int64"),
    ],
)
def test_wrong_positions_are_refused(entries, word):
    with pytest.raises(ValueError, match=word):
        PrivateRecords(rows()).gradient_sum(pieces, CLIP, size=SIZE, entries=entries)


@pytest.mark.parametrize("clipping", ["ghost", "projections"])
def test_norms_of_whole_gradients_are_refused(clipping):
    with pytest.raises(ValueError, match="whole gradients"):
        PrivateRecords(rows()).gradient_sum(pieces, CLIP, size=SIZE, clipping=clipping, entries=SOME)


MASKED = ["Dense", "Conv2D, padding", "GroupNorm", "Embedding", "LSTM"]  # all kinds of pieces


@pytest.mark.parametrize("method", ["materialized", "one-by-one", "microbatch"])
@pytest.mark.parametrize("layer", MASKED)
def test_a_record_moves_a_masked_sum_by_at_most_its_bound(layer, method):
    assert layer in LAYERS
    factor = 2.0 if method == "microbatch" else 1.0
    removed, replaced = largest_moves(layer, method, 1000, part=0.5)
    assert 0.6 * factor <= removed <= factor
    assert 0.6 * 2 <= replaced <= 2.0


def test_a_norm_of_other_entries_than_those_that_are_added_is_caught(monkeypatch):
    honest = parts.Entries.at

    def other(positions, n_entries):
        made = honest(positions, n_entries)
        return parts.Entries(made.positions, 1.0 - made.mask)

    monkeypatch.setattr(parts.Entries, "at", other)
    removed, replaced = largest_moves("Dense", "materialized", 1000, part=0.5)
    assert removed > 1.0
    assert replaced > 2.0


def test_gradients_that_are_multiplied_out_in_parts_are_the_same(monkeypatch):
    records = PrivateRecords(rows())
    found = []
    for few in (parts.DENSE_ENTRIES, 1):
        monkeypatch.setattr(parts, "DENSE_ENTRIES", few)
        total = records.gradient_sum(pieces, CLIP, size=SIZE, entries=SOME)
        found.append(total._value.on_grid(GRID))
    assert np.array_equal(*found)


def test_a_record_has_the_same_numbers_at_every_place():
    """Norms and entries of a record, to the last bit: alone, and among 63 others at any place."""
    X = rows(64)
    mask = np.zeros(SIZE, dtype=bool)
    mask[SOME] = True
    sizes = [piece.n_entries for piece in pieces(X, None)]

    def squares(rows):
        made = parts.parts_of(pieces(rows, None), ghost=False, entries=parts.entries_of(SOME, sizes))
        return np.array([part.squares for part in made])

    whole = squares(X)
    for order in (np.arange(64)[::-1], np.arange(7), np.array([40])):
        assert np.array_equal(squares(X[order]), whole[:, order])


# ---------------------------------------------------------------------- an adversary

STEPS, RUNS, N, EPSILON, DELTA = 5, 6, 8, 12.0, 1e-5
NET = Sequential([Dense(2)])
D = 24  # features, all 1 in the record: no entry of its gradient is 0
START = np.append(np.zeros(2 * D), (200.0, -200.0))  # saturated: only a record of class 1 has a gradient
NEUTRAL = np.zeros(START.size)  # the two classes have opposite gradients


@pytest.fixture(scope="module", autouse=True)
def one_calibration():
    """Fits by the hundred with one calibration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounting, "gaussian_mu", functools.lru_cache(accounting.gaussian_mu))
        yield


def table(*labels):
    """Rows of ones; labels of the first, and class 0 for the others up to N."""
    y = np.append(labels, np.zeros(N - len(labels), dtype=int)).astype(int)
    return np.ones((N, D)), y


class Rig:
    """What the loop receives in each step, with noise and without."""

    def __init__(self, monkeypatch):
        self.received, self.quiet = [], False
        usual, trained = PrivacySession.gaussian, net_fit.descend

        def gaussian(session, bounded, plan):
            found = usual(session, bounded, plan)
            return bounded._value.plain() if self.quiet and bounded.size > 2 else found

        def descend(gradient, *rest, **more):
            def watched(theta, t):
                found = gradient(theta, t)
                self.received.append(found[0])
                return found

            return trained(watched, *rest, **more)

        monkeypatch.setattr(PrivacySession, "gaussian", gaussian)
        monkeypatch.setattr(net_fit, "descend", descend)

    def fit(self, data, quiet, seed, start, **params):
        self.received.clear()
        self.quiet = quiet
        DPNetworkClassifier(
            epsilon=EPSILON, delta=DELTA, clip_norm=0.1, learning_rate=1e-30,
            optimizer=SGD(schedule="constant"), parameters_init=start, random_state=seed, network=NET,
            classes=(0, 1),
            input_range=(0, 1), **{"batch_size": N, "max_iter": STEPS, **params},
        ).fit(*data)  # fmt: skip
        return np.array(self.received)

    def bound(self, low, high, start=START, **params):
        """The lower bound of epsilon for a pair of data sets; false alarms below 1e-6."""
        squares, noise = [], []
        for seed in range(RUNS):
            means = [self.fit(data, True, seed, start, **params) for data in (low, high)]
            noisy = self.fit(low, False, seed, start, **params)
            noise.append((noisy - means[0])[noisy != 0])
            squares.append(((means[1] - means[0]) ** 2).sum())
        noise = np.concatenate(noise)
        if not noise.size or not noise.any():
            return math.inf
        variance = (noise**2).sum() / chi2.ppf(audit.ALARM, noise.size)
        return accounting.gaussian_epsilon(math.sqrt(min(squares) / variance), DELTA)


@pytest.fixture
def rig(monkeypatch):
    with np.errstate(all="ignore"):
        yield Rig(monkeypatch)


HIGH = {"gradient_estimator": RandomSparsification(0.8, cooling=False)}
KINDS = [RandomSparsification(0.8), HIGH["gradient_estimator"], RandomSparsification(0.8, ranked=True)]

quietly = pytest.mark.filterwarnings("ignore")


@quietly
@pytest.mark.parametrize("sparsification", KINDS, ids=["cooling", "constant", "ranked"])
def test_zero_out_comes_near_the_claim_and_stays_below(rig, sparsification):
    assert START.size <= 100
    assert 0.6 * EPSILON <= rig.bound(table(0), table(1), gradient_estimator=sparsification) <= EPSILON


@quietly
def test_replace_one_comes_near_the_claim_and_stays_below(rig):
    found = rig.bound(table(0), table(1), NEUTRAL, adjacency="replace-one", **HIGH)
    assert 0.6 * EPSILON <= found <= EPSILON


@quietly
def test_half_the_noise_is_caught(rig, monkeypatch):

    honest = grid.gaussian_grid
    monkeypatch.setattr(grid, "gaussian_grid", lambda bounded, z, *rest: honest(bounded, z / 2, *rest))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("skdp.privacy.session.claim.recheck", lambda *args: None)
        assert rig.bound(table(0), table(1), **HIGH) > EPSILON


@quietly
def test_a_mask_after_the_clip_is_caught(rig, monkeypatch):
    """It breaks no promise, but a record fills less than half of the clip norm: the noise is twice too large."""
    honest = parts.parts_of

    def whole_norms(pieces, *, ghost, entries=None):
        made = honest(pieces, ghost=ghost, entries=entries)
        for part, whole in zip(made, honest(pieces, ghost=ghost)):
            part.squares = whole.squares
        return made

    monkeypatch.setattr("skdp.privacy.gradients.blocks.parts_of", whole_norms)
    assert rig.bound(table(0), table(1), **HIGH) < 0.6 * EPSILON


def as_before(honest, change):
    """`SparsifiedMean.begin` whose gradients are changed before the loop receives them."""

    def begin(method, session, records, task, plan):
        gradient = honest(method, session, records, task, plan)
        factor = change(records, plan)

        def changed(theta, t):
            found, noise = gradient(theta, t)
            return factor * found, noise

        return changed

    return begin


REMOVED = tuple(part[1:] for part in table(1))
OPPOSITE = {"adjacency": "add-remove", "n_public": N, **HIGH}


@quietly
def test_add_remove_stays_below_the_claim(rig):
    """The mean of the others is the clip norm long; the record points the other way."""
    assert 0.6 * EPSILON <= rig.bound(REMOVED, table(1), NEUTRAL, **OPPOSITE) <= EPSILON


@quietly
def test_the_realised_batch_size_as_divisor_is_caught(rig, monkeypatch):
    honest = sparsification.SparsifiedMean.begin
    mutant = as_before(honest, lambda records, plan: plan.batch_size / records._rows.n_real_units)
    monkeypatch.setattr(sparsification.SparsifiedMean, "begin", mutant)
    assert rig.bound(REMOVED, table(1), NEUTRAL, **OPPOSITE) > EPSILON


@quietly
def test_the_raw_velocity_of_the_published_ranked_variant_is_caught(rig, monkeypatch):
    """Line 20 of Algorithm 4 adds the gradient without noise; the noise is in the ranking alone."""
    usual = PrivacySession.gaussian

    def raw(session, bounded, plan):
        usual(session, bounded, plan)
        return bounded._value.plain()

    monkeypatch.setattr(PrivacySession, "gaussian", raw)
    found = rig.bound(table(0), table(1), gradient_estimator=RandomSparsification(0.8, ranked=True))
    assert found > EPSILON


# ---------------------------------------------------------------------- estimators

XOR = {"classes": (0, 1), "input_range": (-1, 1), "hidden_layer_sizes": (8,), "random_state": 0}


def xor(n=400):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize(
    ("params", "error", "word"),
    [
        ({"gradient_estimator": 0.5}, TypeError, "RandomSparsification"),
        ({"gradient_estimator": RandomSparsification(), "clipping": "ghost"}, ValueError, "whole gradients"),
        ({"gradient_estimator": RandomSparsification(), "clipping": Projections()}, ValueError, "whole gradients"),
    ],
)
def test_estimators_refuse_and_spend_nothing(params, error, word):
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5)
    settings = XOR | {"accountant": accountant, "random_state": None}
    with pytest.raises(error, match=word):
        DPMLPClassifier(**settings, **params).fit(*xor())
    assert accountant.spent() == (0.0, 0.0)


@quietly
def test_the_loop_gets_zeros_where_parameters_rest(rig):
    found = rig.fit(table(1), False, 0, START, gradient_estimator=RandomSparsification(0.8))
    assert [np.count_nonzero(step) for step in found] == [50, 40, 30, 20, 10]


@quietly
def test_a_report_says_what_was_done():
    model = DPMLPClassifier(epsilon=4.0, max_iter=10, gradient_estimator=RandomSparsification(0.25), **XOR).fit(
        *xor()
    )
    assert model.sparsity_ == 0.25
    assert model.privacy_.public["gradient_estimator"] == repr(RandomSparsification(0.25))
    row = next(row for row in model.privacy_.mechanisms if row["purpose"] == "steps")
    assert row["count"] == 10
    plain = DPMLPClassifier(epsilon=4.0, max_iter=10, **XOR).fit(*xor())
    assert plain.sparsity_ == 0.0
    assert plain.privacy_.mechanisms[0]["noise_multiplier"] == row["noise_multiplier"]


@quietly
def test_automatic_rates_are_0_without_noise_and_grow_with_it():
    found = [
        DPMLPClassifier(
            epsilon=epsilon, max_iter=10, batch_size=10, gradient_estimator=RandomSparsification(),
            **XOR | {"hidden_layer_sizes": (64,)},
        ).fit(*xor()).sparsity_
        for epsilon in (math.inf, 4.0, 1.0)
    ]  # fmt: skip
    assert found[0] == 0.0 < found[1] < found[2] < 1.0


def test_a_run_of_one_epoch_warns_that_cooling_leaves_no_rate():
    model = DPMLPClassifier(
        epsilon=4.0, max_iter=2, batch_size=200, gradient_estimator=RandomSparsification(0.5), **XOR
    )
    with pytest.warns(UtilityWarning, match="one epoch"):
        model.fit(*xor())


@quietly
def test_without_noise_a_step_is_the_clipped_mean_of_kept_entries():
    """Against gradients that are masked and clipped here, of one step on all rows."""
    X, y = table(1, 1, 0)
    X = X * np.random.default_rng(0).uniform(0.2, 1, size=X.shape)
    received = []
    model = DPNetworkClassifier(
        epsilon=math.inf, max_iter=1, batch_size=N, clip_norm=0.1, learning_rate=1.0,
        optimizer=SGD(momentum=0.0, schedule="constant"),
        network=NET, classes=(0, 1), input_range=(0, 1), random_state=0,
        parameters_init=NEUTRAL, gradient_estimator=RandomSparsification(0.6, cooling=False),
        callback=lambda t, theta: received.append(theta.copy()),
    ).fit(X, y)  # fmt: skip
    kept = np.flatnonzero(received[0])
    assert kept.size == 20
    found = model.network_.record_gradients(
        NEUTRAL.astype(np.float32),
        model.inputs_.of(X),
        lambda out: 0.5 - np.eye(2, dtype=np.float32)[y],
        "materialized",
    )
    g = np.concatenate([piece.dense() for piece in found], axis=1)[:, kept]
    clipped = g * np.minimum(1, 0.1 / np.linalg.norm(g, axis=1))[:, None]
    assert np.allclose(-received[0][kept], clipped.mean(axis=0), atol=1e-5)
