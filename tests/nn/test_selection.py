"""Sparse selection and DP-AdaFEST: what an adversary sees, what a whole fit draws, and what a net becomes.

The adversary knows everything but one unit, and sees positions and values. His statistic is the logarithm of the
likelihood ratio, which is the best there is. The mutants are the shipped code with one thing replaced.
"""

import contextlib
import functools
import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import beta, binom, chi2, norm
from sklearn.base import clone

from skdp import DPLSTMClassifier, DPMLPClassifier, DPNetworkClassifier, DPNetworkRegressor
from skdp.exceptions import PrivacyAccountingError, UnsupportedAccounting, UtilityWarning
from skdp.fitting.optimizers import Rule
from skdp.nn import SGD, AdaFEST, Dense, Embedding, MaskedMeanPool, Projections, ReLU, Sequential, SparseSelection
from skdp.privacy import BoundedStatistic, Choices, accounting, noise
from skdp.privacy.accounting import bounded_range_mu, sampled_epsilon
from skdp.privacy.bounded import Source
from skdp.privacy.gradients.blocks import BlockSum
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.selected_gaussian import release as selection
from skdp.privacy.mechanisms.selected_gaussian.cost import SelectedGaussian
from skdp.privacy.session import minibatches
from tests.privacy import audit

pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.usefixtures("one_calibration")]


@pytest.fixture(scope="module")
def one_calibration():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounting, "gaussian_mu", functools.lru_cache(accounting.gaussian_mu))
        yield


# ------------------------------------------------------------------ an adversary

STEPS, RUNS, Z, E = 8, 1200, 0.8, 2.0
HALF = math.sqrt(0.5)  # what the unit moves each of two coordinates by, in opposite directions
MU = math.sqrt(STEPS * (Z**-2 + bounded_range_mu(E) ** 2))  # of the claim, on all records


def statistic(x):
    """The sum over the batch, which a unit changes by a vector of norm at most 1."""
    source = Source(lambda unit: np.rint(np.array(x) / unit).astype(np.int64), lambda: np.array(x), 0, 8.0)
    return BoundedStatistic.from_source(source, (len(x),), l2=1.0)


def leaked():
    """Lower bound on the mu of eight releases, from the law of one: how sure its choice is, and its noise.

    Without the unit the sum is (0, HALF), with it (HALF, 0). So by symmetry all releases tell of one law.
    """
    choice = selection.Selection(1, E, 0.999 * HALF, None)
    stream, right, noises = noise.KeyStream(0), 0, []
    for x in ((0.0, HALF), (HALF, 0.0)):
        bounded = statistic(x)
        drawn_with, sensitivity = selection.selection_grid(bounded, choice, Z, "zero-out")
        for _ in range(RUNS):
            ((at,), (value,)), _ = selection.selected_gaussian(bounded, choice, drawn_with, sensitivity, stream)
            if value in x:  # a number without noise tells it all
                return math.inf
            right += x[at] > 0
            noises.append(value - x[at])
    n = 2 * RUNS
    sure = beta.ppf(audit.ALARM, right, n - right + 1)
    std = math.sqrt(np.square(noises).sum() / chi2.ppf(audit.ALARM, n))
    # The log-likelihood ratio of eight releases: of the choices, and of the values.
    odds, shift = math.log(sure / (1 - sure)), HALF / std
    hits = np.arange(STEPS + 1)
    of_choices, spread = odds * (2 * hits - STEPS), shift * math.sqrt(STEPS)
    tpr = binom.pmf(hits, STEPS, sure) @ norm.cdf((of_choices + spread**2 / 2) / spread)
    return 2 * norm.ppf(tpr)


def test_an_adversary_comes_near_the_claim_and_stays_below():
    """False alarm below 1e-6."""
    assert 0.6 * MU <= leaked() <= MU


@pytest.fixture(params=["half the noise", "touched only", "a choice that is not paid"])
def mutant(request, monkeypatch):
    if request.param == "half the noise":
        honest = grid.gaussian_grid
        monkeypatch.setattr(grid, "gaussian_grid", lambda kept, z, adjacency: honest(kept, z / 2, adjacency))
    elif request.param == "touched only":
        honest = noise.add_noise

        def only_touched(drawn, values, unit):
            return honest(np.where(values == 0, 0, drawn), values, unit)

        monkeypatch.setattr(noise, "add_noise", only_touched)
    else:
        honest = selection.sparse_top_k

        def cheap(at, scores, size, k, scale, stream):
            return honest(at, scores, size, k, scale / 4, stream)

        monkeypatch.setattr(selection, "sparse_top_k", cheap)


@pytest.mark.usefixtures("mutant")
def test_a_mutant_is_caught():
    assert leaked() > MU


# ------------------------------------------------------------------ what a whole fit draws

EPSILON, DELTA, N = 3.0, 1e-5, 300
NET = Sequential([Dense(6), ReLU(), Dense(2)])
CHOICE = SparseSelection(0.1, score_clip=0.05, value_clip=0.5, share=0.4)


@pytest.fixture
def drawn(monkeypatch):
    """Of each release of chosen coordinates: noise multiplier, number of choices, bounded range of one."""
    found, scales = [], []
    honest_choice, honest_noise = selection.sparse_top_k, noise.rounded_gaussian

    def choose(at, scores, size, k, scale, stream):
        chosen = honest_choice(at, scores, size, k, scale, stream)
        scales.append((chosen.size, scale, int(scores.max(initial=0))))
        return chosen

    def draw(sigma, size, stream):
        if scales:
            k, scale, largest = scales.pop()
            assert size == k
            found.append((sigma, k, scale, largest))
        return honest_noise(sigma, size, stream)

    monkeypatch.setattr(selection, "sparse_top_k", choose)
    monkeypatch.setattr(noise, "rounded_gaussian", draw)
    return found


def spent(drawn, select=CHOICE, batch_size=60):
    """Epsilon of all steps by the noise that was drawn, and what a unit can change by the shipped clips."""
    X = np.random.default_rng(0).uniform(-1, 1, size=(N, 4))
    model = DPNetworkClassifier(
        epsilon=EPSILON, delta=DELTA, network=NET, classes=(0, 1), input_range=(-1, 1), max_iter=6, clip_norm=0.5,
        batch_size=batch_size, gradient_estimator=select, random_state=0, learning_rate=0.1,
    )  # fmt: skip
    with contextlib.suppress(PrivacyAccountingError):  # the recheck sees some mutants; what was released is out
        model.fit(X, X[:, 0] > 0)
    assert len(drawn) == 6
    size = 44  # 4 * 6 + 6 + 6 * 2 + 2
    groups = []
    for sigma, k, scale, _ in drawn:
        assert k <= math.ceil(select.fraction * size)
        # The grid follows from the norm that a unit adds to the mean, min(clip / b, 2 value_clip).
        norm = min(0.5 / batch_size, 2 * select.value_clip)
        unit = norm * MULTIPLIER["planned"] / 2.0**30
        score = min(select.score_clip, norm) / unit
        z = sigma * unit / norm
        groups.append(
            SelectedGaussian(
                noise_multiplier=z, count=6, choices=k, choice_epsilon=2 * score / scale, sampling="Poisson",
                sampling_rate=batch_size / N,
            )
        )  # fmt: skip
    assert len(set(groups)) == 1  # all steps are alike
    return sampled_epsilon([(1.0, groups[0])], DELTA, adjacency="zero-out", mu=0.0)


MULTIPLIER = {"planned": 0.0}


@pytest.fixture(autouse=True)
def planned(monkeypatch):
    honest = minibatches._plans

    def plans(*args):
        made = honest(*args)
        MULTIPLIER["planned"] = made[0].noise_multiplier
        return made

    monkeypatch.setattr(minibatches, "_plans", plans)


def test_all_that_is_drawn_costs_no_more_than_the_claim(drawn):
    found = spent(drawn)
    assert 0.6 * EPSILON < found <= EPSILON  # a tenth of mu^2 is for the calibration of scores


@pytest.mark.parametrize("wrong", ["one choice too many", "not paid", "half the noise"])
def test_what_is_drawn_shows_a_mutant(drawn, monkeypatch, wrong):
    few = SparseSelection(1.5 / 44, score_clip=0.05, value_clip=0.5, share=0.9)  # one coordinate of 44
    if wrong == "one choice too many":  # as published
        honest = selection.Selection
        monkeypatch.setattr(selection, "Selection", lambda k, *rest: honest(k + 1, *rest))
        found = spent(drawn, few)
    elif wrong == "not paid":
        honest = Choices.planned

        def dear(self, multiplier):
            made = honest(self, multiplier)
            return replace(made, epsilon=5 * made.epsilon)

        monkeypatch.setattr(Choices, "planned", dear)
        found = spent(drawn)
    else:
        honest = grid.gaussian_grid

        def half(kept, z, adjacency):
            made = honest(kept, z, adjacency)
            return made._replace(sigma=float(math.ceil(made.sigma / 2)))

        monkeypatch.setattr(grid, "gaussian_grid", half)
        found = spent(drawn)
    assert found > EPSILON


# ------------------------------------------------------------------ nets


def data(n=600):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 3))
    return X, (X[:, 0] > 0).astype(int)


def steps_of(select, n=600, **more):
    """What each step of a short fit changes: a column a step."""
    seen = []
    X, y = data(n)
    options = {"classes": (0, 1), "input_range": (-1, 1), "network": NET} | more
    model = DPNetworkClassifier(
        epsilon=4.0, max_iter=5, batch_size=100, optimizer=SGD(momentum=0.0, schedule="constant"),
        learning_rate=1.0, gradient_estimator=select, callback=lambda step, theta: seen.append(theta),
        random_state=0, **options,
    ).fit(X, y)  # fmt: skip
    return model, np.diff(seen, axis=0)


@pytest.mark.parametrize("method", ["exponential", "sparse vector", "uniform"])
def test_a_step_changes_exactly_so_many_parameters(method):
    threshold = 0.05 if method == "sparse vector" else None
    _, moves = steps_of(SparseSelection(0.25, method, threshold=threshold))
    assert ((moves != 0).sum(axis=1) == math.floor(0.25 * 38)).all()


@pytest.mark.parametrize(
    ("select", "adjacency"),
    [(SparseSelection(0.3), "add-remove"), (SparseSelection(0.3, "uniform", value_clip=0.1), "replace-one")],
)
def test_a_fit_learns_and_its_report_holds(select, adjacency):
    X, y = data(2000)
    extra = {"n_public": 2000} if adjacency == "add-remove" else {}
    model = DPNetworkClassifier(
        epsilon=6.0, network=NET, classes=(0, 1), input_range=(-1, 1), gradient_estimator=select,
        adjacency=adjacency,
        max_iter=40, batch_size=200, random_state=0, **extra,
    ).fit(X, y)  # fmt: skip
    assert model.score(X, y) > 0.8
    assert model.privacy_.epsilon <= 6.0
    assert repr(select) in str(model.privacy_)
    assert clone(model).gradient_estimator == select


def test_full_batches_and_other_estimators_take_it():
    X, y = data()
    chosen = SparseSelection(0.5)
    full = DPMLPClassifier(epsilon=4.0, classes=(0, 1), input_range=(-1, 1), batch_size=600, max_iter=3,
                           gradient_estimator=chosen, random_state=0).fit(X, y)  # fmt: skip
    grouped = DPNetworkRegressor(
        epsilon=4.0, y_bounds=(0, 1), input_range=(-1, 1), max_iter=3, batch_size=60,
        gradient_estimator=chosen, unit="group", random_state=0,
    ).fit(X, y, groups=np.arange(600) // 2)  # fmt: skip
    for model in (full, grouped):
        rows = [row for row in model.privacy_.mechanisms if row["name"] == "selected_gaussian"]
        assert sum(row["count"] for row in rows) == 3
        assert model.privacy_.epsilon <= 4.0


@pytest.mark.parametrize(
    ("more", "error", "match"),
    [
        ({"gradient_estimator": 0.1}, TypeError, "SparseSelection"),
        ({"gradient_estimator": SparseSelection(0.1), "clipping": Projections()}, ValueError, "Projections"),
        (
            {"gradient_estimator": SparseSelection(0.1), "adjacency": "replace-one"},
            UnsupportedAccounting,
            "zero-out",
        ),
        ({"gradient_estimator": AdaFEST()}, ValueError, "Embedding"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_is_spent(more, error, match, accountant):
    X, y = data(60)
    with pytest.raises(error, match=match):
        DPNetworkClassifier(epsilon=4.0, classes=(0, 1), input_range=(-1, 1), accountant=accountant, **more).fit(
            X, y
        )
    assert accountant.spent() == (0, 0)


@pytest.fixture
def accountant():
    from skdp.privacy import BudgetAccountant

    return BudgetAccountant(10.0, 1e-3)


@pytest.mark.parametrize(
    "wrong",
    [
        {"fraction": 0.0}, {"fraction": 2.0}, {"method": "best"}, {"score_clip": 0.0}, {"value_clip": -1.0},
        {"share": 1.0}, {"threshold": 1.0}, {"threshold": math.nan, "method": "sparse vector"},
        {"score_clip": math.inf}, {"method": "sparse vector"},
    ],
)  # fmt: skip
def test_wrong_numbers_are_refused(wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        SparseSelection(**wrong)
    if "share" in wrong:
        with pytest.raises(ValueError, match="share"):
            AdaFEST(**wrong)


# ------------------------------------------------------------------ DP-AdaFEST

TEXT = Sequential([Embedding(200, 3), MaskedMeanPool(), Dense(2)])


def of_text(threshold, **more):
    """What the steps of a fit change in each row of the table, and in the other layers."""
    rng = np.random.default_rng(0)
    ids = rng.integers(1, 51, size=(400, 6))  # rows 50 to 199 are of no record
    seen = []
    DPNetworkClassifier(
        epsilon=8.0, network=TEXT, classes=(0, 1), gradient_estimator=AdaFEST(threshold), max_iter=12,
        batch_size=200, optimizer=SGD(momentum=0.0, schedule="constant"), learning_rate=1.0,
        callback=lambda step, theta: seen.append(theta), random_state=0, **more,
    ).fit(ids, ids[:, 0] > 25)  # fmt: skip
    moves = np.diff(seen, axis=0) != 0
    return moves[:, :600].reshape(-1, 200, 3), moves[:, 600:]


def test_rows_of_no_record_pass_with_the_probability_of_the_tail():
    """150 rows in 11 steps at one standard deviation; false alarm 1e-6."""
    table, others = of_text(1.0)
    assert others.all()
    assert (table.all(axis=2) == table.any(axis=2)).all()  # whole rows
    passed, trials = int(table[:, 50:].all(axis=2).sum()), 11 * 150
    p = norm.sf(1.0)
    assert binom.ppf(5e-7, trials, p) <= passed <= binom.ppf(1 - 5e-7, trials, p)
    assert table[:, :50].all(axis=2).mean() > 0.5  # rows of many records pass


def test_a_high_threshold_leaves_the_table_alone():
    table, others = of_text(60.0)
    assert not table.any()
    assert others.all()


def test_counts_are_of_different_tokens_and_have_norm_one(monkeypatch):
    """A record with one token six times counts with 1, and one with six tokens with 6^-1/2 each."""
    from skdp.privacy import PrivateRecords

    sums, honest = [], PrivateRecords.gradient_sum

    def watched(self, function, norm, **more):
        found = honest(self, function, norm, **more)
        if more["size"] == 200:
            sums.append(found._value.plain())
        return found

    monkeypatch.setattr(PrivateRecords, "gradient_sum", watched)
    ids = np.array([[7] * 6, [1, 2, 3, 4, 5, 6], [0] * 6, [9, 0, 9, 0, -3, 201]] * 5)
    DPNetworkClassifier(
        epsilon=8.0,
        network=TEXT,
        classes=(0, 1),
        gradient_estimator=AdaFEST(),
        max_iter=2,
        batch_size=20,
        random_state=0,
    ).fit(ids, np.arange(20) % 2)
    expected = np.zeros(200)
    expected[[6, 8]] = 5.0
    expected[:6] = 5 / math.sqrt(6)
    assert sums[0] == pytest.approx(expected, rel=1e-3)


def test_the_plan_pays_for_counts_and_gradients():
    ids = np.random.default_rng(0).integers(1, 20, size=(300, 5))
    model = DPLSTMClassifier(
        epsilon=4.0, vocabulary_size=20, max_length=5, n_features=3, n_units=3, classes=(0, 1),
        gradient_estimator=AdaFEST(),
        max_iter=4, batch_size=50, random_state=0,
    ).fit(list(ids), ids[:, 0] > 10)  # fmt: skip
    rows = [row for row in model.privacy_.mechanisms if row["purpose"] == "counts and steps"]
    assert sum(row["count"] for row in rows) == 4
    assert model.privacy_.epsilon <= 4.0


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("fraction", "a"), ("fraction", None), ("fraction", True), ("score_clip", "a"), ("share", "a"),
        ("threshold", "a"),
    ],
)  # fmt: skip
def test_a_wrong_type_is_named(name, value):
    with pytest.raises(TypeError, match=f"{name} must be a number"):
        SparseSelection(**{name: value})
    if name in ("share", "threshold"):
        with pytest.raises(TypeError, match=f"{name} must be a number"):
            AdaFEST(**{name: value})


def told(model, *data):
    """What a fit says of ``select``."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        model.fit(*data)
    return [str(w.message) for w in found if str(w.message).startswith("gradient_estimator=")]


@pytest.mark.parametrize(
    ("epsilon", "select", "parts"),
    [
        (4.0, SparseSelection(0.05), ["of 82 parameters", "without an Embedding"]),
        (4.0, SparseSelection(0.05, "uniform"), ["without an Embedding"]),
        (4.0, SparseSelection(1.0), None),
        (math.inf, SparseSelection(0.05), None),
    ],
)
def test_a_fit_that_selection_is_likely_to_harm_warns(epsilon, select, parts):
    X = np.random.default_rng(0).uniform(-1, 1, size=(200, 2))
    model = DPMLPClassifier(
        epsilon=epsilon, classes=(0, 1), input_range=(-1, 1), hidden_layer_sizes=(16,), max_iter=2,
        gradient_estimator=select
    )  # fmt: skip
    found = told(model, X, (X[:, 0] > 0).astype(int))
    assert len(found) == (parts is not None)
    assert all(part in found[0] for part in parts or ())


@pytest.mark.parametrize(
    ("select", "part"),
    [
        (SparseSelection(0.05), "nearly random"),
        (SparseSelection(0.05, "uniform"), "does not look"),
        (SparseSelection(0.0001), None),
        (AdaFEST(), "records of a batch have it"),
        (AdaFEST(0.0), None),
    ],
)
def test_text_nets_warn_by_public_numbers(select, part):
    rng = np.random.default_rng(0)
    X, y = rng.integers(1, 201, size=(300, 9)), rng.integers(0, 2, 300)
    model = DPLSTMClassifier(
        epsilon=4.0, vocabulary_size=200, max_length=9, n_features=4, n_units=2, classes=(0, 1), max_iter=2,
        batch_size=150, gradient_estimator=select,
    )  # fmt: skip
    found = told(model, X, y)
    assert [part in text for text in found] == ([] if part is None else [True])


def test_a_warning_that_is_an_error_spends_nothing(accountant):
    X, y = data(200)
    model = DPMLPClassifier(
        epsilon=4.0, classes=(0, 1), input_range=(-1, 1), max_iter=2, gradient_estimator=SparseSelection(0.1),
        accountant=accountant,
    )  # fmt: skip
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="gradient_estimator=")
        with pytest.raises(UtilityWarning, match="gradient_estimator="):
            model.fit(X, y)
    assert accountant.spent() == (0, 0)


# ------------------------------------------------------------------ steps that cost what they touch


@pytest.mark.parametrize(
    "select", [SparseSelection(0.05), SparseSelection(0.05, "uniform"), AdaFEST(-1.0)], ids=repr
)
def test_steps_of_few_entries_are_those_of_whole_vectors(select, monkeypatch):
    """Without momentum no step makes a vector of all parameters, and the model has the same bits."""
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 301, (400, 6)), rng.integers(0, 2, 400)
    X[:, 0] = 1 + y
    net = Sequential([Embedding(300, 4), MaskedMeanPool(), Dense(2)])

    def parameters():
        model = DPNetworkClassifier(
            network=net, classes=(0, 1), epsilon=4.0, batch_size=50, max_iter=6, optimizer=SGD(momentum=0.0),
            gradient_estimator=select,
            random_state=0,
        )  # fmt: skip
        return model.fit(X, y).parameters_

    with monkeypatch.context() as patch:
        patch.setattr(Rule, "local", False)
        patch.setattr(BlockSum, "sparse", lambda self, clip_norm, unit: listed(self, clip_norm, unit))
        dense = parameters()

    def refuse(self, clip_norm, unit):
        assert self.size == 300, "a vector of all parameters"  # counts of tokens have one each
        return honest(self, clip_norm, unit)

    honest = BlockSum.on_grid
    monkeypatch.setattr(BlockSum, "on_grid", refuse)
    np.testing.assert_array_equal(parameters(), dense)


def listed(blocks, clip_norm, unit):
    """The support of the whole sum."""
    whole = blocks.on_grid(clip_norm, unit)
    return np.flatnonzero(whole), whole[whole != 0]
