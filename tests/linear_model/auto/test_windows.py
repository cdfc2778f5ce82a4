"""Windows of columns and targets: how released histograms and counts are read, with and without noise."""

import math
import warnings
from functools import partial

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import log_loss

import skdp
from skdp.base.plan import BudgetSplit
from skdp.linear_model.auto import columns
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.linear_model.auto.log2_bins import posterior_of_tops
from skdp.linear_model.auto.steps import towards_identity
from skdp.linear_model.auto.windows import _family, narrowed, released_spread
from skdp.privacy import PrivacySession, PrivateRecords

pytestmark = pytest.mark.thorough

N = 20_000
rng = np.random.default_rng(0)
LOW, HIGH = DEFAULTS.bins.lowest, DEFAULTS.bins.highest
BEYOND, BINS = DEFAULTS.histograms.beyond, DEFAULTS.histograms.n_bins
LAWS = {
    "normal": rng.normal(0.2, 0.15, N),
    "narrow": rng.normal(-0.4, 0.05, N),
    "uniform": rng.uniform(-0.5, 0.7, N),
    "exponential": rng.exponential(0.2, N) - 0.3,
    "falling": 0.5 - rng.exponential(0.2, N),
    "mostly zero": np.where(rng.random(N) < 0.6, 0.0, rng.exponential(0.25, N)),
    "two values": np.where(rng.random(N) < 0.3, 0.6, 0.0),
}


def spread(x, center=0.0, half_width=1.0, epsilon=math.inf, seed=0):
    records = PrivateRecords(np.asarray(x, dtype=float)[:, None], np.zeros(len(x)))
    shares = BudgetSplit(PrivacySession(epsilon=epsilon, delta=1e-6, random_state=seed))
    found = released_spread(shares, records, 0.5, np.array([center]), np.array([half_width]), "window")
    assert shares.left == pytest.approx(0.5)
    return found.center[0], found.deviation[0], found.spread[0], found.atom[0]


def windows(x, half_width, epsilon=4.0, seed=0, most=0.9):
    records = PrivateRecords(np.asarray(x, dtype=float)[:, None], np.zeros(len(x)))
    shares = BudgetSplit(PrivacySession(epsilon=epsilon, delta=1e-6, random_state=seed))
    found = narrowed(shares, records, np.array([half_width]), 0.05, most, "window")
    assert found.spent <= most + 1e-12
    assert found.spent == pytest.approx(1.0 - shares.left)
    return found.center[0], found.half_width[0], found.spent


@pytest.mark.parametrize("name", LAWS)
@pytest.mark.parametrize("epsilon", [math.inf, 1.0])
def test_centre_and_deviation_of_a_column(name, epsilon):
    """The deviation errs upward, and little: too small a window cuts, and too large a one costs noise."""
    x = LAWS[name]
    center, deviation, *_ = spread(x, epsilon=epsilon)
    assert center == pytest.approx(x.mean(), abs=max(0.03, 0.35 * x.std()))
    assert 0.75 * x.std() < deviation < 1.6 * x.std()


def test_an_affine_map_of_column_and_window_is_that_of_what_is_read():
    x = LAWS["normal"]
    center, deviation, *evidence = spread(x, epsilon=1.0)
    moved = spread(1024.0 * x + 3072.0, center=3072.0, half_width=1024.0, epsilon=1.0)
    assert moved == pytest.approx((1024.0 * center + 3072.0, 1024.0 * deviation, *evidence), rel=1e-9)


@pytest.mark.parametrize("q", [0.5, 0.65, 0.8, 0.9])
def test_a_dummy_is_told_from_a_column_that_is_narrow(q):
    """Around 1 both fill one bin; the other values of a dummy are beyond the window, however narrow it is."""
    dummy, narrow = (rng.random(N) < q).astype(float), rng.normal(1.0, 0.05, N)
    for epsilon in (math.inf, 1.0):
        *_, for_spread, for_atom = spread(dummy, center=1.0, half_width=0.2, epsilon=epsilon)
        assert for_atom > 4 > -4 > for_spread
        *_, for_spread, for_atom = spread(narrow, center=1.0, half_width=0.2, epsilon=epsilon)
        assert for_spread > 4 > -4 > for_atom
    # Of a column in one bin, or of few records, a single look cannot tell, and says so.
    for column in (np.full(N, 1.01), dummy[:100]):
        *_, for_spread, for_atom = spread(column, center=1.0, half_width=0.2, epsilon=0.5)
        assert max(for_spread, for_atom) < 4


def test_columns_with_an_atom_are_given_up():
    """Benefits of the suite: dummies that are mostly 1 got windows of .003 by luck, log loss 4.2."""
    X = np.column_stack([(rng.random(N) < q) for q in (0.65, 0.78)] + [rng.normal(40, 5, N)])
    records = PrivateRecords(X[:3000].astype(float), np.zeros(3000))
    for seed in range(10):
        shares = BudgetSplit(PrivacySession(epsilon=1.0, delta=1e-6, random_state=seed))
        found = narrowed(shares, records, np.array([1.2, 1.2, 64.0]), 0.02, 0.5, "shifted histograms", 4.0)
        assert found.columns.tolist() == [2]
        assert found.center[0] == pytest.approx(40, abs=5)
        assert found.half_width[0] < 40


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_dummies_that_are_mostly_1_do_no_harm():
    n, k = 2700, 12
    made = np.random.default_rng(3)
    dummies = made.random((n, k)) < np.linspace(0.6, 0.8, k)
    X = np.column_stack([dummies, made.normal(0.37, 0.12, (n, 3)), made.normal(size=(n, 14))])
    y = (X[:, :8].sum(axis=1) - 5.6 + X[:, 8] + made.logistic(size=n) > 0).astype(int)
    for seed in range(40):  # of which six were worse than the frequencies
        model = skdp.DPLogisticRegression(classes=(0, 1), random_state=seed).fit(X, y)
        assert log_loss(y, model.predict_proba(X)) < 0.6


def test_values_beyond_an_end_are_lost_and_said_to_be():
    for side in (-1.0, 1.0):
        center, deviation, *_ = spread(np.full(500, 50.0 * side))
        assert 1.0 < side * center <= BEYOND
        assert deviation > 1.0  # so the next window is larger


def test_noise_alone_is_read_as_a_wide_window():
    """With ten records at epsilon .1 nothing is known: no window may be narrow."""
    for seed in range(20):
        _, deviation, *_ = spread(np.zeros(10), epsilon=0.1, seed=seed)
        assert deviation > 0.3


@pytest.mark.parametrize("offset", [0.0, 3.0, 1e3, -1e5, 3e7])
def test_far_values_that_are_close_to_each_other_are_found(offset):
    """Bins say how far; each look makes the window about ten times narrower."""
    x = offset + rng.normal(size=3000)
    half_width = 2.0 ** (math.floor(math.log2(abs(offset) + 1.0)) + 1)
    for seed in range(3):
        center, window, _ = windows(x, half_width, seed=seed)
        assert abs(center - offset) < 1.0
        assert 2.5 < window < 8.0 or window == half_width


def test_values_that_a_wrong_look_has_lost_are_found_again():
    """The first window is too small for all of them."""
    x = 100.0 + rng.normal(size=3000)
    center, window, spent = windows(x, 30.0)
    assert spent > 0.05
    assert abs(center - 100.0) < 40.0 or window > 40.0


def test_narrowing_stops_at_its_share():
    x = 1e9 + rng.normal(size=3000)
    _, window, spent = windows(x, 2.0**30, most=0.1)
    assert spent == pytest.approx(0.1)
    assert 10.0 < window < 2.0**30


def test_a_column_of_one_value():
    center, window, _ = windows(np.full(3000, 7.0), 8.0)
    assert center == pytest.approx(7.0, abs=1e-3)
    assert 0.0 < window < 1e-3


def test_the_family_is_one_of_probabilities_by_rising_deviation():
    table, means, deviations, _ = _family(DEFAULTS.histograms)
    assert table.shape == (means.size, BINS + 2)
    assert table.min() >= -1e-12
    assert table.sum(axis=1) == pytest.approx(np.ones(means.size))
    assert (np.diff(deviations) >= 0).all()
    # The bins' middles have about the mean and deviation that a law is said to have, where it lies inside.
    middles = np.concatenate([[-1.1], np.linspace(-1, 1, BINS + 1)[:-1] + 1.0 / BINS, [1.1]])
    inside = (table[:, 0] + table[:, -1] < 1e-4) & (deviations > 0.1)
    assert inside.sum() > 50
    found = table[inside] @ middles
    assert found == pytest.approx(means[inside], abs=0.05)
    assert np.sqrt(table[inside] @ middles**2 - found**2) == pytest.approx(deviations[inside], abs=0.05)


# ------------------------------------------------------------------ power-of-two bins


def log2_bins(*columns):
    counts = np.zeros((len(columns), HIGH - LOW + 1))
    for row, column in zip(counts, columns):
        for log2_bin, count in column.items():
            row[log2_bin - LOW] = count
    return counts


@pytest.mark.parametrize("top", [-20, -6, 0, 8, 30])
def test_the_highest_log2_bin_of_a_column(top):
    counts = log2_bins({top: 400, top - 1: 350, top - 2: 250})
    known, own = posterior_of_tops(counts, 5.0, 1000)
    assert known.sum() == pytest.approx(1.0)
    assert LOW + known[0].argmax() == top
    assert LOW + own[0].argmax() == top


def test_noise_is_not_taken_for_a_tiny_reach():
    """A fit once took five standard deviations of noise in power-of-two bin -30 for the half-width of a column."""
    counts = log2_bins({3: 120, 2: 100, 1: 80, -30: 115})
    known, _ = posterior_of_tops(counts, 23.0, 300)
    assert known[0, : -10 - LOW].sum() < 1e-3
    assert LOW + known[0].argmax() in (2, 3)


def test_columns_share_a_prior_but_do_not_confirm_themselves():
    clear, weak = {5: 600, 4: 400}, {5: 90}
    alone, _ = posterior_of_tops(log2_bins(weak), 60.0, 1000)
    among, _ = posterior_of_tops(log2_bins(weak, *[clear] * 12), 60.0, 1000)
    assert among[0, 5 - LOW] > 1.5 * alone[0, 5 - LOW]


# ------------------------------------------------------------------ whole fits


@pytest.mark.parametrize("change", [(1.0, 0.0), (1.0, 10.0), (1.0, 1e5), (1e5, 0.0), (1e-4, 3.0)])
@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_targets_far_from_0_cost_nothing(change, epsilon):
    made = np.random.default_rng(4)
    X = made.normal(size=(2000, 5))
    y = X @ np.array([1.0, -1.0, 0.5, 0.0, 0.2]) + 0.5 * made.normal(size=2000)
    y = change[0] * y + change[1] * y.std()
    for seed in range(3):
        model = skdp.DPLinearRegression(epsilon=epsilon, random_state=seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error", skdp.exceptions.UtilityWarning)
            assert model.fit(X, y).score(X, y) > 0.78


def table(n, seed=1):
    made = np.random.default_rng(seed)
    X = made.normal(size=(n, 6))
    X[:, 5] = made.random(n) < 0.3
    return made, X


def skill(X, y, epsilon, seed=0):
    """R2 over that of least squares, on the records themselves: few coefficients, so hardly too good."""
    model = skdp.DPLinearRegression(epsilon=epsilon, random_state=seed).fit(X, y)
    return model.score(X, y) / LinearRegression().fit(X, y).score(X, y)


@pytest.mark.parametrize("zeros", [0.44, 0.6, 0.7, 0.8])
@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_targets_with_many_zeros_are_not_cut_down_to_zero(zeros, epsilon):
    """A fit once took the window of the zeros for that of all targets: worse than the mean at every epsilon."""
    made, X = table(20_000)
    hidden = X[:, 0] / 2 + 0.4 * X[:, 1] + made.normal(size=len(X))
    y = np.where(hidden > np.quantile(hidden, zeros), made.gamma(2.0, size=len(X)), 0.0)
    assert skill(X, y, epsilon) > (0.75 if epsilon == 1.0 else 0.99)


@pytest.mark.parametrize("part", [0.3, 0.5])
def test_targets_with_two_humps(part):
    made, X = table(20_000)
    X[:, 5] = made.random(len(X)) < part
    y = 1000.0 + 50_000.0 * X[:, 5] + 300.0 * made.normal(size=len(X))
    assert skill(X, y, 1.0) > 0.9
    assert skill(X, y, math.inf) > 0.99


@pytest.mark.parametrize("part", [0.1, 0.3, 0.5])
def test_targets_of_two_values(part):
    made, X = table(20_000)
    hidden = X[:, 0] + X[:, 1] + 0.5 * made.normal(size=len(X))
    assert skill(X, (hidden > np.quantile(hidden, 1 - part)).astype(float), 1.0) > 0.9


@pytest.mark.parametrize("epsilon", [1.0, 4.0])
def test_targets_a_million_from_0(epsilon):
    made, X = table(3000)
    y = 1e6 + X[:, 0] + X[:, 1] + 0.5 * made.normal(size=len(X))
    assert min(skill(X, y, epsilon, seed) for seed in range(25)) > 0.9


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("kind", ["classes", "numbers"])
def test_standardized_tables_with_rare_dummies(kind):
    """A rare dummy is then -.1 or 10, and counts see the first only: log loss 4, R2 -12,000 before."""
    made = np.random.default_rng(5)
    parts = (0.01, 0.02, 0.05, 0.1, 0.3)
    X = np.column_stack([made.normal(size=(3000, 6)), *(made.random(3000) < p for p in parts)])
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    signal = X @ made.normal(size=X.shape[1]) / 2
    for seed in range(15):
        if kind == "numbers":
            y = signal + made.normal(size=3000)
            model = skdp.DPLinearRegression(random_state=seed).fit(X, y)
            assert model.score(X, y) > 0.25  # least squares: .36 to .38
        else:
            y = (2 * signal + made.logistic(size=3000) > 0).astype(int)
            model = skdp.DPLogisticRegression(classes=(0, 1), random_state=seed).fit(X, y)
            assert log_loss(y, model.predict_proba(X)) < 0.6


def test_columns_of_a_mixed_table_keep_their_units():
    """Some columns look standardized; years, money and raw dummies beside them are still found."""
    made = np.random.default_rng(6)
    n = 6000
    dummy, year = made.random((n, 3)) < (0.6, 0.7, 0.8), made.normal(1960, 12, n)
    X = np.column_stack([made.normal(size=(n, 3)), dummy, year, 1e-4 * made.normal(size=n)])
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    y = Z @ np.ones(Z.shape[1]) + made.normal(size=n)
    assert skill(X, y, 4.0) > 0.9


MAKERS = [skdp.DPLinearRegression, partial(skdp.DPLogisticRegression, classes=(0, 1))]


@pytest.mark.parametrize(("n", "epsilon"), [(600, 110.0), (8, 72.0)])
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_an_enormous_epsilon_is_refused_before_the_first_release(n, epsilon):
    """Eight records leave a constant, whose mean takes most of the budget."""
    _, X = table(600)
    for make in MAKERS[: 1 + (n > 8)]:
        accountant = skdp.BudgetAccountant(epsilon=1000.0, delta=1e-3)
        model = make(epsilon=epsilon, delta=1e-9, accountant=accountant)
        with pytest.raises(skdp.exceptions.UnsupportedAccounting, match="a few dozen"):
            model.fit(X[:n, :5], X[:n, 5])
        assert accountant.remaining()[0] == pytest.approx(1000.0)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("make", MAKERS)
def test_a_vanishing_epsilon_is_refused_with_words(make):
    _, X = table(600)
    with pytest.raises(skdp.exceptions.UnsupportedAccounting, match="larger epsilon"):
        make(epsilon=1e-200, delta=1e-200).fit(X[:, :5], X[:, 5])


@pytest.mark.parametrize("scale", [1e-9, 2.0**-32, 1e-20, 1e200])
def test_tiny_and_huge_units(scale):
    """The shared prior of low power-of-two bins rounds to 0."""
    made = np.random.default_rng(7)
    X = made.normal(size=(3000, 1))
    y = X[:, 0] + 0.3 * made.normal(size=3000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        known, _ = posterior_of_tops(np.zeros((1, HIGH - LOW + 1)), 1e-3, 3000)
        assert np.isfinite(known).all()
        for table in ((scale * X, y), (X, scale * y)):
            model = skdp.DPLinearRegression(epsilon=8.0, random_state=0).fit(*table)
            assert np.isfinite(model.coef_).all()
        if 1e-10 < scale < 1:
            assert model.score(X, scale * y) > 0.85


@pytest.mark.parametrize("code", [999.0, 9999.0, -99999.0])
def test_codes_for_missing_answers_do_no_harm(code):
    # A code six power-of-two bins above the values and more: if the window left it out, these rows would lie
    # hundreds of deviations away.
    r = np.random.default_rng(5)
    X = np.column_stack([r.normal(13.0, 2.0, N), r.normal(140.0, 4.0, N), r.normal(size=N)])
    y = (r.logistic(size=N) < X[:, 2] + (X[:, 0] - 13.0)).astype(int)
    X[r.random(N) < 0.06, 0] = code
    for seed in range(4):
        model = skdp.DPLogisticRegression(classes=(0, 1), random_state=seed).fit(X, y)
        assert log_loss(y, model.predict_proba(X)) < math.log(2.0) - 0.03  # .653 without privacy


# ------------------------------------------------------------------ the Gram matrix


def symmetric_noise(p, std, seed):
    noise = np.random.default_rng(seed).normal(0.0, std, size=(p, p))
    return 0.5 * (noise + noise.T)


def test_a_direction_that_all_columns_share_stays_in_the_gram_matrix():
    p, noise = 150, 0.28
    shared = np.full(p, p**-0.5)
    gram = np.eye(p) + 9.0 * np.outer(shared, shared)
    for seed in range(5):
        found, left = towards_identity(gram + symmetric_noise(p, noise, seed), noise)
        assert 0.0 <= left < noise
        assert shared @ found @ shared == pytest.approx(10.0, rel=0.15)
        alone, _ = towards_identity(np.eye(p) + symmetric_noise(p, noise, seed), noise)
        assert np.linalg.eigvalsh(alone)[-1] < 1.0 + 0.5 * noise * math.sqrt(2 * p)


def test_a_gram_matrix_without_noise_is_kept():
    gram = np.cov(np.random.default_rng(0).normal(size=(5, 40)))
    np.testing.assert_allclose(towards_identity(gram, 0.0)[0], gram, atol=1e-12)


def test_columns_with_a_common_cause_do_not_make_steps_grow():
    r = np.random.default_rng(1)
    n, d = 14_000, 150
    X = r.normal(size=(n, d)) + 0.3 * r.normal(size=(n, 1))
    y = X @ r.normal(size=d) + r.normal(size=n)
    for seed in range(4):
        model = skdp.DPLinearRegression(epsilon=0.5, random_state=seed).fit(X, y)
        assert model.score(X, y) > 0.5


@pytest.mark.parametrize("d", [5, 15, 60])
def test_a_column_that_lies_beyond_its_window_moves_no_score(d, monkeypatch):
    # Noise may put an income of 20,000 into a window of 20. All of its cells are then cut at the end.
    r = np.random.default_rng(3)
    X = r.normal(size=(3000, d))
    X[:, 0] = r.uniform(10_000.0, 30_000.0, 3000)
    records = PrivateRecords(X, np.zeros(3000), fit_intercept=True)
    half_width = np.full(d, 5.0)
    half_width[0] = 20.0
    surely = np.full(d, math.inf)
    monkeypatch.setattr(columns, "_released_half_widths", lambda *args: (half_width.copy(), np.zeros(d), surely))
    for seed in range(5):
        shares = BudgetSplit(PrivacySession(epsilon=0.5, delta=1e-6, random_state=seed))
        found = columns.standardize(shares, records, 0.06, 0.08, own=3.5)
        center, scale = found.scaled()
        cells = (np.clip(X, found.low, found.high) - center) / scale
        assert np.ptp(cells[:, 0]) == 0.0
        assert np.abs(cells[:, 0]).max() < 3.0
        assert np.isfinite(found.half_width[1:]).all()
