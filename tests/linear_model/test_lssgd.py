"""DP-LSSGD and DP-SGD: a slow reference loop, literal numbers, what smoothing is, messages."""

import math
import warnings

import numpy as np
import pytest
from scipy.special import softmax
from sklearn.base import is_classifier

from skdp import DPLSSGDClassifier, DPLSSGDRegressor, DPSGDClassifier, DPSGDRegressor
from skdp.exceptions import UtilityWarning
from skdp.linear_model import SGD, Adam
from skdp.linear_model.sgd.solver import noise_left
from skdp.privacy import PrivateRecords, accounting

pytestmark = pytest.mark.thorough

N, D, K = 40, 7, 3
EXACT = dict(epsilon=math.inf, clip_norm=math.inf, learning_rate=0.3, max_iter=12)
ALL = [DPLSSGDClassifier, DPLSSGDRegressor, DPSGDClassifier, DPSGDRegressor]


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="delta=.* is too large for")
        warnings.simplefilter("ignore", UtilityWarning)
        yield


def table(n_classes=K, seed=0, n=N):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D))
    if not n_classes:
        return X, X @ np.arange(1.0, D + 1) + 1 + 0.1 * rng.normal(size=n)
    return X, np.argmax(X[:, :n_classes] + 0.1 * rng.normal(size=(n, n_classes)), axis=1)


def make(cls, n_classes=2, **params):
    known = {"classes": range(n_classes)} if is_classifier(cls()) else {}
    return cls(random_state=0, **{**known, **params})


def mean_gradient(X, y, theta, n_classes):
    """Of the mean loss, row by row; the last row of theta is the intercept."""
    total = np.zeros_like(theta)
    for row, target in zip(np.c_[X, np.ones(len(X))], y):
        if n_classes:
            residual = softmax(row @ theta) - np.eye(n_classes)[target]
            total += np.outer(row, residual)
        else:
            total += (row @ theta - target) * row
    return total / len(X)


def smoothed(gradient, s):
    """Solve (I - s L) u = g densely for the features; the intercept stays."""
    d = len(gradient) - 1
    shift = np.roll(np.eye(d), 1, axis=0)
    matrix = (1 + 2 * s) * np.eye(d) - s * (shift + shift.T)
    return np.concatenate([np.linalg.solve(matrix, gradient[:d]), gradient[d:]])


def reference(
    X, y, n_classes, *, s=0.0, momentum=0.0, solver="sgd", schedule="constant", average=None,
    alpha=0.0, penalty="l2", start=None, steps=12, rate=0.3,
):  # fmt: skip
    """The algorithm as the user guide writes it."""
    theta = np.zeros((D + 1, n_classes) if n_classes else D + 1) if start is None else start
    velocity, second = np.zeros_like(theta), np.zeros_like(theta)
    iterates = []
    for t in range(1, steps + 1):
        pull = alpha * theta if penalty == "l2" else 2 * alpha * theta / (1 + theta**2) ** 2
        pull[-1] = 0
        u = smoothed(mean_gradient(X, y, theta, n_classes) + pull, s)
        if solver == "adam":
            velocity = momentum * velocity + (1 - momentum) * u
            second = 0.999 * second + 0.001 * u**2
            move = velocity / (1 - momentum**t) / (np.sqrt(second / (1 - 0.999**t)) + 1e-8)
        else:
            velocity = momentum * velocity + u
            move = velocity
        fall = 0.5 * (1 + math.cos(math.pi * (t - 1) / steps))
        factors = {"constant": 1, "cosine": fall, "inverse": 1 / t, "inverse-sqrt": t**-0.5}
        theta = theta - rate * factors[schedule] * move
        iterates.append(theta)
    if average is None:
        return theta
    weights = np.arange(1, steps + 1) ** float(average)
    return np.tensordot(weights / weights.sum(), np.array(iterates), axes=1)


def theta_of(model):
    coef = np.atleast_2d(model.coef_)
    found = np.hstack([coef, np.reshape(model.intercept_, (-1, 1))]).T
    return found if len(coef) > 1 else found[:, 0]


SETTINGS = [
    dict(),
    dict(optimizer=SGD(momentum=0.7)),
    dict(optimizer=Adam(beta_1=0.9)),
    dict(optimizer=SGD(momentum=0.0, schedule="inverse")),
    dict(optimizer=SGD(momentum=0.5, schedule="inverse-sqrt")),
    dict(optimizer=SGD(momentum=0.0, schedule="cosine", average=0)),
    dict(optimizer=SGD(momentum=0.9, average=6.0)),
    dict(alpha=0.3),
    dict(alpha=0.3, penalty="nonconvex"),
]


@pytest.mark.parametrize("s", [0.0, 1.0, 3.5])
@pytest.mark.parametrize("setting", SETTINGS, ids=str)
@pytest.mark.parametrize("n_classes", [K, 0])
def test_without_noise_it_is_the_slow_reference(n_classes, setting, s):
    X, y = table(n_classes)
    cls = DPLSSGDClassifier if n_classes else DPLSSGDRegressor
    rate = 0.3 if n_classes else 0.1
    model = make(cls, K, smoothing=s, **{"optimizer": SGD(momentum=0.0), **EXACT, **setting})
    model.set_params(learning_rate=rate).fit(X, y)
    penalty = {k: v for k, v in setting.items() if k != "optimizer"}
    rule = model.optimizer.rule("constant", None)
    expected = reference(
        X, y, n_classes, s=s, rate=rate, momentum=rule.momentum, solver=rule.solver,
        schedule=rule.schedule, average=rule.average, **penalty,
    )  # fmt: skip
    assert np.allclose(theta_of(model), expected, rtol=1e-9, atol=1e-11)
    assert (model.n_iter_, model.learning_rate_, model.clip_norm_) == (12, rate, math.inf)


def test_two_classes_are_the_logistic_loss():
    X, y = table(2)
    model = make(DPLSSGDClassifier, smoothing=2.0, optimizer=SGD(momentum=0.0), **EXACT).fit(X, y)
    theta = np.zeros(D + 1)
    for _ in range(12):
        rows = np.c_[X, np.ones(N)]
        residual = 1 / (1 + np.exp(-rows @ theta)) - y
        theta = theta - 0.3 * smoothed(rows.T @ residual / N, 2.0)
    assert np.allclose(theta_of(model), theta, rtol=1e-9)


@pytest.mark.parametrize("solver", ["sgd", "adam"])
@pytest.mark.parametrize("batch_size", ["auto", 10])
@pytest.mark.parametrize("kind", ["Classifier", "Regressor"])
def test_smoothing_0_is_plain_sgd_bit_by_bit(kind, batch_size, solver, monkeypatch):
    """With the same stream: a seeded key depends on the estimator's parameters, which differ by smoothing."""
    opened = DPSGDClassifier._open_session

    def same_context(self, n_units=1):
        plain = {k: v for k, v in self.get_params(deep=False).items() if k != "smoothing"}
        cls = DPSGDClassifier if kind == "Classifier" else DPSGDRegressor
        return opened(cls(**plain), n_units)

    X, y = table(2 if kind == "Classifier" else 0, n=1000)
    smooth, plain = ALL[:2][kind == "Regressor"], ALL[2:][kind == "Regressor"]
    settings = dict(batch_size=batch_size, optimizer=solver, max_iter=5)
    expected = make(plain, **settings).fit(X, y)
    monkeypatch.setattr(smooth, "_open_session", same_context)
    found = make(smooth, smoothing=0, **settings).fit(X, y)
    assert np.array_equal(found.coef_, expected.coef_)
    assert np.array_equal(found.intercept_, expected.intercept_)
    other = make(smooth, smoothing=1.0, **settings).fit(X, y)
    assert not np.array_equal(other.coef_, expected.coef_)


@pytest.mark.parametrize("s", [0.5, 3.0])
def test_noise_is_smoothed_by_beta_and_the_intercept_is_not(s):
    """Steps on empty rows are noise alone; its variance falls by beta in the features only."""
    n, runs = 50, 60
    X, y = np.zeros((n, 64)), np.zeros(n)
    settings = dict(clip_norm=1.0, max_iter=1, learning_rate=1.0, optimizer=SGD(momentum=0.0), huber_threshold=1.0)
    draws = []
    for seed in range(runs):
        model = DPLSSGDRegressor(smoothing=s, random_state=seed, **settings).fit(X, y)
        draws.append(np.r_[model.coef_, model.intercept_])
    draws = np.array(draws)
    std = accounting.noise_multiplier(1.0, 1e-5) * 2 / n
    spread = np.sqrt(np.mean(draws[:, :-1] ** 2)) / std
    # Correlated coordinates count less: the fourth moment of the spectrum bounds the error of the mean square.
    gains = 1 / (1 + 2 * s - 2 * s * np.cos(2 * np.pi * np.arange(64) / 64)) ** 2
    error = math.sqrt(2 * np.mean(gains**2) / np.mean(gains) ** 2 / (64 * runs))
    assert abs(spread**2 / noise_left(64, s) - 1) < 5.2 * error  # false alarm below 1e-6
    assert abs(np.mean(draws[:, -1] ** 2) / std**2 - 1) < 6.5 * math.sqrt(2 / runs)
    assert noise_left(64, s) < 0.6


@pytest.mark.parametrize(("s", "beta"), [(1, 0.268), (2, 0.185), (3, 0.149), (4, 0.128), (5, 0.114)])
def test_beta_is_the_published_one(s, beta):
    assert round(noise_left(1000, s), 3) == beta
    assert noise_left(1000, 0) == 1.0


@pytest.mark.parametrize("cls", ALL)
def test_literal_numbers_are_one_noisy_step(cls):
    X, y = np.zeros((50, 4)), np.zeros(50)
    settings = dict(clip_norm=1.0, max_iter=1, learning_rate=2.0, optimizer=SGD(momentum=0.5), fit_intercept=False)
    draws = [make(cls, **settings).set_params(random_state=seed).fit(X, y).coef_.ravel() for seed in range(60)]
    std = 2.0 * 3.730632 * 2 * 1.0 / 50
    left = noise_left(4, 1.0) if "LS" in cls.__name__ else 1.0
    mean = np.mean(np.square(draws)) / std**2
    assert abs(mean / left - 1) < 5.2 * math.sqrt(2 / 60)  # as if each run were one draw
    model = make(cls, **settings).fit(X, y)
    assert (model.n_iter_, model.learning_rate_, model.clip_norm_) == (1, 2.0, 1.0)
    assert [row["purpose"] for row in model.privacy_.mechanisms] == ["steps"]


@pytest.mark.parametrize("cls", ALL)
def test_a_batch_of_all_records_is_the_exact_full_batch(cls):
    X, y = table(2 if is_classifier(cls()) else 0, n=100)

    def steps(model):
        (row,) = (r for r in model.privacy_.mechanisms if r["purpose"] == "steps")
        return row

    whole = make(cls).fit(X, y)
    for size in (100, 10_000):
        row = steps(make(cls, batch_size=size).fit(X, y))
        assert row["sampling"] == "full batch"
        expected = steps(whole)["noise_multiplier"]
        assert math.isclose(row["noise_multiplier"], expected, rel_tol=1e-12)
    assert "Gaussian DP" in repr(whole.privacy_)
    sampled = steps(make(cls, batch_size=20).fit(X, y))
    assert (sampled["sampling"], sampled["count"]) == ("Poisson", 100)
    assert sampled["noise_multiplier"] < 0.6 * steps(whole)["noise_multiplier"]
    fixed = make(cls, batch_size=20, sampling="without_replacement").fit(X, y)
    assert steps(fixed)["sampling"] == "without replacement"


@pytest.mark.parametrize("batch_size", ["auto", 1000])
@pytest.mark.parametrize("solver", ["sgd", "adam"])
def test_accuracy_without_tuning(solver, batch_size):
    """Three classes at chance 1/3; the non-private accuracy is 0.94."""
    X, y = table(K, n=8000)
    model = make(DPSGDClassifier, K, epsilon=1.0, batch_size=batch_size, optimizer=solver)
    assert model.fit(X[:6000], y[:6000]).score(X[6000:], y[6000:]) > 0.85


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_regression_without_tuning_at_any_scale_of_y(loss, scale):
    X, y = table(0, n=8000)
    model = make(DPSGDRegressor, loss=loss, huber_threshold=scale, epsilon=2.0)
    assert model.fit(X[:6000], scale * y[:6000]).score(X[6000:], scale * y[6000:]) > 0.97


@pytest.mark.parametrize("momentum", [0.0, 0.9])
@pytest.mark.parametrize("n_classes", [0, 2, K])
@pytest.mark.parametrize("name", ["DPSGD", "DPLSSGD"])
def test_the_method_without_clipping_and_noise_learns(name, n_classes, momentum):
    """By default steps, which are in proportion to 1 / clip_norm while that is finite."""
    cls = {m.__name__: m for m in ALL}[name + ("Classifier" if n_classes else "Regressor")]
    X, y = table(n_classes, n=400)
    model = make(cls, n_classes, epsilon=math.inf, clip_norm=math.inf, optimizer=SGD(momentum=momentum))
    assert model.fit(X, y).score(X, y) > 0.9
    assert model.learning_rate_ > 0


@pytest.mark.parametrize(("momentum", "least"), [(0.0, 0.1), (0.9, 0.6)])
def test_steps_of_regression_do_not_diverge_without_noise(momentum, least):
    """Columns far from 0 have one direction of large curvature, which limits the step of all."""
    X, y = table(0, n=500)
    model = make(DPSGDRegressor, epsilon=math.inf, optimizer=SGD(momentum=momentum), max_iter=200)
    scores = []
    model.set_params(callback=lambda i, coef: scores.append(np.std(coef @ X.T)), optimizer=SGD(average=None)).fit(
        X + 3, y
    )
    assert model.score(X + 3, y) > least
    assert max(scores) < 2 * np.std(y)


@pytest.mark.parametrize("batch_size", ["auto", 400])
@pytest.mark.parametrize("cls", [DPLSSGDRegressor, DPSGDRegressor])
def test_an_offset_of_y_costs_nothing(cls, batch_size):
    X, y = table(0, n=4000)
    for offset in (0.0, -3000.0):
        model = make(cls, batch_size=batch_size).fit(X[:2000], y[:2000] + offset)
        assert model.score(X[2000:], y[2000:] + offset) > 0.97
        assert abs(model.target_center_ - offset) < np.std(y)
        assert abs(model.intercept_ - offset - 1) < 3


def test_the_centre_is_paid_for():
    """All releases of a fit on full batches together are its claim, in mu^2."""
    X, y = table(0, n=4000)
    model = make(DPSGDRegressor).fit(X, y)
    rows = model.privacy_.mechanisms
    spent = sum(row["count"] / row["noise_multiplier"] ** 2 for row in rows)
    claim = accounting.gaussian_mu(model.epsilon, model.delta) ** 2
    assert 0.9 * claim < spent <= claim
    steps = sum(r["count"] / r["noise_multiplier"] ** 2 for r in rows if r["purpose"] == "steps")
    # 5 % for the range of the targets, 10 % for the calibration, 5 % for the mean residual, and 2 % of the
    # rest for the scales
    assert math.isclose(steps / claim, 0.98 * 0.8, rel_tol=1e-3)


@pytest.mark.parametrize("params", [dict(fit_intercept=False), dict(clip_norm=1.0, learning_rate=0.1)], ids=str)
def test_no_centre_is_asked_for(params):
    X, y = table(0, n=200)
    model = make(DPSGDRegressor, **params).fit(X, y)
    assert model.target_center_ == 0.0
    literal = "learning_rate" in params
    few = make(DPSGDRegressor, epsilon=0.1).fit(X, y)  # the search would end anywhere
    assert few.target_center_ == 0.0
    assert ("scale" in [row["purpose"] for row in model.privacy_.mechanisms]) != literal


def test_coef_init_of_an_uncentred_regression_is_in_the_units_of_y():
    X, y = table(0, n=4000)
    seen = []
    start = np.r_[np.arange(1.0, D + 1), 51.0]
    make(
        DPSGDRegressor, coef_init=start, epsilon=math.inf, max_iter=1, callback=lambda i, coef: seen.append(coef)
    ).fit(X, y + 50)
    assert np.allclose(seen[0].ravel()[:D], start[:D], atol=0.05)
    model = make(DPSGDRegressor, coef_init=start, max_iter=3).fit(X, y + 50)
    assert model.score(X, y + 50) > 0.99


@pytest.mark.parametrize("cls", [DPLSSGDClassifier, DPSGDClassifier])
def test_steps_are_long_enough_for_a_rare_class(cls):
    """One record in ten is positive: with many records the noise allows to leave the constant far behind."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, D))
    score = X[:, :3].sum(axis=1) + 0.3 * rng.normal(size=len(X))
    y = (score > np.quantile(score, 0.9)).astype(int)
    model = make(cls, epsilon=0.5).fit(X[:20_000], y[:20_000])
    assert 1 - model.score(X[20_000:], y[20_000:]) < 0.045


def test_smoothing_helps_where_neighbours_are_alike():
    """A hump over 20 of 100 columns: fewer errors with smoothing, in the mean over seeds."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, size=8000)
    hump = 0.35 * np.exp(-0.5 * ((np.arange(100) - 30) / 5) ** 2)
    X = rng.normal(size=(8000, 100)) + np.outer(y, hump)

    def score(s):
        models = [
            DPLSSGDClassifier(epsilon=0.3, smoothing=s, classes=(0, 1), random_state=seed) for seed in range(4)
        ]
        return np.mean([m.fit(X[:4000], y[:4000]).score(X[4000:], y[4000:]) for m in models])

    assert score(3.0) > score(0.0) + 0.02


@pytest.mark.parametrize("cls", ALL)
def test_coef_init_is_where_it_starts_and_costs_nothing(cls):
    X, y = np.zeros((60, 5)), np.zeros(60)
    model = make(cls, coef_init=np.arange(5.0), max_iter=1, learning_rate=1e-12).fit(X, y)
    assert np.allclose(model.coef_.ravel(), np.arange(5.0), atol=1e-9)
    assert any("coef_init" in line for line in model.privacy_.assumptions)


@pytest.mark.parametrize("cls", ALL)
def test_callback_and_bar_see_released_iterates(cls, capsys):
    X, y = table(2 if is_classifier(cls()) else 0)
    seen = []
    model = make(
        cls, max_iter=3, learning_rate=0.1, verbose=True, callback=lambda i, coef: seen.append((i, coef.copy()))
    ).fit(X, y)
    assert [i for i, _ in seen] == [0, 1, 2]
    assert np.array_equal(seen[-1][1], model.coef_)
    assert "step/s" in capsys.readouterr().err


BAD = [
    (dict(smoothing=-1.0), ValueError, "smoothing must be >= 0"),
    (dict(smoothing=math.inf), ValueError, "smoothing must be finite"),
    (dict(smoothing="1"), TypeError, "smoothing must be a number"),
    (dict(optimizer=SGD(momentum=1.0)), ValueError, r"momentum must be in \[0, 1\)"),
    (dict(optimizer=SGD(momentum=-0.1)), ValueError, "momentum must be >= 0"),
    (dict(optimizer="lbfgs"), ValueError, "optimizer must be one of"),
    (dict(optimizer=SGD), TypeError, "optimizer must be one of"),
    (dict(optimizer=SGD(schedule="cyclic")), ValueError, "optimizer__schedule must be one of"),
    (dict(optimizer=SGD(smoothing=1.0)), ValueError, "optimizer__smoothing is for nets"),
    (dict(optimizer=SGD(average=-1)), ValueError, "average must be >= 0"),
    (dict(optimizer=SGD(average="last")), ValueError, "average must be a number or 'auto'"),
    (dict(optimizer=SGD(average=math.inf)), ValueError, "average must be <= 1000000"),
    (dict(batch_size=0), ValueError, "batch_size must be >= 1"),
    (dict(sampling="uniform"), ValueError, "sampling must be one of"),
    (dict(max_iter=0), ValueError, "max_iter must be >= 1"),
    (dict(learning_rate=0.0), ValueError, "learning_rate must be > 0"),
    (dict(clip_norm=math.inf), ValueError, "clip_norm must be finite"),
    (dict(penalty="l1"), ValueError, "penalty must be one of"),
    (dict(delta=0.0), ValueError, "delta=0 needs pure mechanisms"),
]


@pytest.mark.parametrize(("params", "error", "message"), BAD, ids=lambda value: str(value)[:40])
def test_bad_parameters_are_refused_before_anything_is_read(params, error, message, monkeypatch):
    X, y = table(2)
    monkeypatch.setattr(PrivateRecords, "__init__", None)
    with pytest.raises(error, match=message):
        make(DPLSSGDClassifier, **params).fit(X, y)


def test_weights_count_as_their_clipped_values():
    X, y = table(2)
    weight = np.r_[np.full(N // 2, 2.0), np.zeros(N - N // 2)]
    settings = dict(max_weight=2.0, **EXACT)
    weighted = make(DPSGDClassifier, **settings).fit(X, y, sample_weight=weight)
    half = make(DPSGDClassifier, **EXACT).fit(X[: N // 2], y[: N // 2])
    assert np.allclose(weighted.coef_, half.coef_, rtol=1e-9)
