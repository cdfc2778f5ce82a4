"""Recursive momentum (DP-SRM, STORM) against a slow reference, its schedule, its outputs and its parameters."""

import math
import tracemalloc

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from sklearn.pipeline import make_pipeline

from skdp import DPSRMClassifier, STORMClassifier
from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.linear_model.srm import solver as _srm
from skdp.privacy import PrivacySession, PrivateRecords, accounting

EXACT = {"epsilon": math.inf, "clip_norm": math.inf, "clip_diff_norm": math.inf, "classes": (0, 1)}
LITERAL = {"max_iter": 6, "momentum": 0.3, "learning_rate": 0.5, "random_state": 0}


def data(n=300, d=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    noise = 0.3 * rng.normal(size=(n, n_classes))
    return X, np.argmax(X[:, :n_classes] + noise, axis=1)


def record_gradients(X, y, theta):
    """Gradients of the records, one a row; theta has the intercept last, and a column a class beyond two."""
    Z = np.column_stack([X, np.ones(len(X))])
    scores = Z @ theta
    if theta.ndim == 1:
        return (1 / (1 + np.exp(-scores)) - y)[:, None] * Z
    p = np.exp(scores)
    residual = p / p.sum(axis=1, keepdims=True) - np.eye(theta.shape[1])[y]
    return (Z[:, :, None] * residual[:, None, :]).reshape(len(X), -1)


def clipped(rows, norm):
    return rows * np.minimum(1.0, norm / np.linalg.norm(rows, axis=1, keepdims=True))


def reference(X, y, batches, theta, *, g, C1, C2, rate, longest=math.inf, penalty=lambda w: 0 * w):
    """The mathematics of Algorithm 4, record by record; batches hold rows and the public size."""
    path, v, previous = [theta], None, None
    for rows, size in batches:
        now = record_gradients(X[rows], y[rows], theta)
        if previous is None:
            v = clipped(now, C1).sum(axis=0) / size
        else:
            change = now - record_gradients(X[rows], y[rows], previous)
            fresh = (1 - g) * clipped(change, C2) + g * clipped(now, C1)
            v = fresh.sum(axis=0) / size + (1 - g) * v
        direction = v.reshape(theta.shape) + penalty(theta)
        previous = theta
        theta = theta - min(rate, longest / np.linalg.norm(direction)) * direction
        path.append(theta)
    return path


def nonconvex(alpha):
    def gradient(theta):
        found = 2 * alpha * theta / (1 + theta**2) ** 2
        found[-1] = 0.0
        return found

    return gradient


def theta_of(model):
    theta = np.column_stack([model.coef_, model.intercept_])
    return theta[0] if len(theta) == 1 else theta.T


@pytest.fixture
def drawn(monkeypatch):
    """The batches of a fit, which are secret otherwise."""
    found = []
    honest = PrivacySession.draw

    def draw(session, plan, records):
        batch = honest(session, plan, records)
        rows = np.arange(records._rows.n_real_units) if batch._units is None else batch._units.copy()
        found.append((rows, plan.batch_size))
        return batch

    monkeypatch.setattr(PrivacySession, "draw", draw)
    return found


# ------------------------------------------------------------------ the steps


@pytest.mark.parametrize("sampling", ["poisson", "without_replacement"])
def test_steps_without_noise_are_the_reference(sampling, drawn):
    X, y = data()
    model = DPSRMClassifier(
        **EXACT, **LITERAL, batch_size=40, initial_batch_size=90, alpha=0.01, sampling=sampling
    ).fit(X, y)
    assert len(drawn) == 6
    assert {size for _, size in drawn} == {90, 40}
    assert (len({len(rows) for rows, _ in drawn[1:]}) > 1) == (sampling == "poisson")
    path = reference(X, y, drawn, np.zeros(5), g=0.3, C1=math.inf, C2=math.inf, rate=0.5, penalty=nonconvex(0.01))
    np.testing.assert_allclose(theta_of(model), path[-1], rtol=1e-9, atol=1e-12)


def test_both_clips_and_the_longest_step(drawn):
    X, y = data()
    model = DPSRMClassifier(
        epsilon=math.inf, classes=(0, 1), **LITERAL, clip_norm=0.4, clip_diff_norm=0.03,
        batch_size=50, max_step_norm=0.06, alpha=0.0,
    ).fit(X, y)  # fmt: skip
    settings = dict(g=0.3, C1=0.4, C2=0.03, rate=0.5, longest=0.06)
    path = reference(X, y, drawn, np.zeros(5), **settings)
    np.testing.assert_allclose(theta_of(model), path[-1], atol=1e-7)
    for change in ({"C1": 4.0}, {"C2": 0.3}, {"g": 0.5}, {"longest": 1.0}):  # each of them matters
        other = reference(X, y, drawn, np.zeros(5), **{**settings, **change})
        assert np.abs(theta_of(model) - other[-1]).max() > 1e-3


def test_softmax_and_csr(drawn):
    X, y = data(n_classes=3)
    settings = {**EXACT, **LITERAL, "classes": (0, 1, 2), "batch_size": 60, "alpha": 0.02}
    dense = DPSRMClassifier(**settings).fit(X, y)
    batches = drawn[:6]
    path = reference(
        X, y, batches, np.zeros((5, 3)),
        g=0.3, C1=math.inf, C2=math.inf, rate=0.5, penalty=nonconvex(0.02),
    )  # fmt: skip
    np.testing.assert_allclose(theta_of(dense), path[-1], rtol=1e-9, atol=1e-12)
    rare = DPSRMClassifier(**settings).fit(sp.csr_matrix(X), y)
    np.testing.assert_allclose(rare.coef_, dense.coef_, rtol=1e-9, atol=1e-12)


def test_momentum_one_is_plain_sgd(drawn):
    X, y = data()
    settings = {**LITERAL, "momentum": 1.0}
    model = STORMClassifier(**settings, batch_size=50, initial_batch_size=50, alpha=0.0).fit(X, y)
    theta = np.zeros(5)
    for rows, size in drawn:
        theta = theta - 0.5 * record_gradients(X[rows], y[rows], theta).sum(axis=0) / size
    np.testing.assert_allclose(theta_of(model), theta, rtol=1e-9, atol=1e-12)


def test_full_batches_without_clipping_are_gradient_descent_whatever_the_momentum():
    X, y = data()
    models = [
        STORMClassifier(max_iter=5, momentum=g, learning_rate=0.5, batch_size=300).fit(X, y) for g in (0.1, 1.0)
    ]
    np.testing.assert_allclose(models[0].coef_, models[1].coef_, rtol=1e-9)


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"batch_size": 30, "max_iter": 15, "output": "random"},
        {**LITERAL, "sampling": "without_replacement", "batch_size": 30},
    ],
)
def test_storm_is_the_private_fit_without_noise_and_clipping(params):
    X, y = data()
    params = {"random_state": 4, "max_iter": 50, **params}
    exact = STORMClassifier(**params, classes=(0, 1)).fit(X, y)
    private = DPSRMClassifier(**EXACT, **params).fit(X, y)
    assert np.array_equal(exact.coef_, private.coef_)
    assert np.array_equal(exact.intercept_, private.intercept_)
    assert exact.n_iter_ == private.n_iter_
    other = STORMClassifier(**{**params, "random_state": 5}, classes=(0, 1)).fit(X, y)
    assert not np.array_equal(exact.coef_, other.coef_)


def test_storm_reaches_a_stationary_point():
    X, y = data(n=2000)
    model = STORMClassifier(random_state=0).fit(X, y)
    theta = theta_of(model)
    gradient = record_gradients(X, y, theta).mean(axis=0) + nonconvex(1e-3)(theta)
    assert np.linalg.norm(gradient) < 0.01
    assert model.score(X, y) > 0.9


# ------------------------------------------------------------------ step length and outputs


def test_no_step_is_longer_than_the_longest():
    X, y = data()
    path = [np.zeros(4)]
    DPSRMClassifier(
        epsilon=0.5, classes=(0, 1), max_iter=30, clip_norm=1.0, learning_rate=5.0, max_step_norm=0.02,
        fit_intercept=False, random_state=0, callback=lambda i, coef: path.append(coef.ravel()),
    ).fit(X, y)  # fmt: skip
    lengths = np.linalg.norm(np.diff(path, axis=0), axis=1)
    assert len(lengths) == 30
    assert lengths.max() <= 0.02 * (1 + 1e-12)
    assert np.sum(lengths > 0.0199) >= 25


def test_the_random_output_is_an_earlier_iterate_of_the_same_plan():
    X, y = data()
    settings = {"epsilon": 1.0, "classes": (0, 1), "max_iter": 8, "batch_size": 60}
    taken = []
    for seed in range(60):
        path = []
        model = DPSRMClassifier(
            **settings, output="random", random_state=seed, callback=lambda i, c, path=path: path.append(c)
        ).fit(X, y)
        assert model.n_iter_ == len(path)
        assert np.array_equal(model.coef_, path[-1] if path else np.zeros((1, 4)))
        taken.append(model.n_iter_)
    # Uniform on 0 .. 7, the start included and the last iterate not: chi-square with 7 degrees, false alarm 1e-7.
    counts = np.bincount(taken, minlength=8)
    assert len(counts) == 8
    assert np.sum((counts - 7.5) ** 2 / 7.5) < 45.1
    last = DPSRMClassifier(**settings, random_state=0).fit(X, y)
    assert last.n_iter_ == 8
    assert last.privacy_.epsilon == model.privacy_.epsilon == 1.0


# ------------------------------------------------------------------ the schedule


def settings(**changes):
    auto = dict(
        max_iter=None, batch_size=None, initial_batch_size=None, sampling="Poisson",
        momentum=None, clip_norm=None, clip_diff_norm=None, learning_rate=None,
        max_step_norm=None, output="last",
    )  # fmt: skip
    return _srm.SRMSettings(**{**auto, **changes})


@pytest.mark.parametrize("seen", [0.01, 12.0, 300.0, 1e7, math.inf])
@pytest.mark.parametrize("n", [1, 7, 1000, 10**6])
def test_auto_makes_four_passes(n, seen):
    plan = _srm.Schedule.of(n, seen, settings())
    assert 20 <= plan.max_iter <= 2000
    assert 1 <= plan.batch_size <= plan.initial_batch_size <= n
    reads = plan.initial_batch_size + (plan.max_iter - 1) * plan.batch_size
    if n >= 10**6:
        assert abs(reads / n - (4 if math.isfinite(seen) else 20)) < 0.05
    assert plan.max_iter == sum(g.releases for g in plan.groups())
    momentum = np.array([plan.momentum.at(i) for i in range(plan.max_iter)])
    assert np.all((momentum > 0) & (momentum <= 1))
    assert np.all(np.diff(momentum) <= 0)


def test_given_numbers_are_used():
    plan = _srm.Schedule.of(1000, 50.0, settings(batch_size=100))
    assert (plan.batch_size, plan.initial_batch_size, plan.max_iter) == (100, 300, 38)
    plan = _srm.Schedule.of(1000, 50.0, settings(max_iter=10, batch_size=5000, momentum=0.25))
    assert (plan.batch_size, plan.initial_batch_size, plan.max_iter) == (1000, 1000, 10)
    assert {plan.momentum.at(i) for i in range(10)} == {0.25}
    plan = _srm.Schedule.of(1000, 50.0, settings(max_iter=1, initial_batch_size=20))
    assert [(g.releases, g.batch_size) for g in plan.groups()] == [(1, 20)]


@pytest.mark.parametrize("seen", [50.0, math.inf])
def test_large_batches_take_no_fewer_than_twenty_steps(seen):
    for size in (500, 1000, 10**6):
        plan = _srm.Schedule.of(1000, seen, settings(batch_size=size))
        assert plan.max_iter == 20 or (seen == math.inf and size == 500)
        assert plan.batch_size == min(size, 1000)
    assert _srm.Schedule.of(1000, seen, settings(batch_size=1000, max_iter=3)).max_iter == 3


def test_a_course_is_linear():
    course = _srm.Course(4.0, start=2.5, steps=10, most=9.0)
    values = [course.at(i) for i in range(11)]
    np.testing.assert_allclose(values, np.minimum(9.0, np.linspace(10.0, 4.0, 11)))
    assert _srm.Course(math.inf).at(10**9) == math.inf


class Enough(Exception):
    pass


def stop(iteration, coef):
    if iteration == 3:
        raise Enough


@pytest.mark.parametrize("cls", [DPSRMClassifier, STORMClassifier])
def test_memory_does_not_grow_with_the_number_of_steps(cls):
    X, y = data()
    cls(max_iter=4, classes=(0, 1)).fit(X, y)  # compiled and imported
    tracemalloc.start()
    try:
        with pytest.raises(Enough):
            cls(max_iter=10**8, classes=(0, 1), callback=stop).fit(X, y)
        assert tracemalloc.get_traced_memory()[1] < 1e8  # one array of all steps has 8e8 bytes
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("cls", [DPSRMClassifier, STORMClassifier])
def test_an_absurd_number_of_steps_is_refused(cls):
    X, y = data()
    for steps in (10**8 + 1, 10**18):
        with pytest.raises(ValueError, match="max_iter must be <= "):
            cls(max_iter=steps, classes=(0, 1)).fit(X, y)


def test_attributes_say_what_auto_became():
    X, y = data(n=500)
    model = DPSRMClassifier(epsilon=1.0, classes=(0, 1), random_state=0).fit(X, y)
    seen = 500 * accounting.gaussian_mu(1.0, 1e-5) / math.sqrt(5)
    plan = _srm.Schedule.of(500, seen, settings())
    assert (model.n_iter_, model.batch_size_) == (plan.max_iter, plan.batch_size)
    assert model.initial_batch_size_ == plan.initial_batch_size
    assert model.momentum_ == plan.momentum.at(plan.max_iter - 1)
    assert model.clip_diff_norm_ == pytest.approx(0.41 * model.clip_norm_ / plan.max_iter, rel=0.01)
    assert 0.1 < model.clip_norm_ < 4  # the rows have norm 2
    assert model.max_step_norm_ * plan.max_iter == pytest.approx(60 / 2, rel=0.3)


def test_with_clip_norm_and_learning_rate_given_nothing_is_asked():
    X, y = data()
    model = DPSRMClassifier(epsilon=1.0, classes=(0, 1), clip_norm=1.0, learning_rate=0.5).fit(X, y)
    purposes = {row["purpose"] for row in model.privacy_.mechanisms}
    assert purposes == {"first gradient", "early steps", "steps"}  # and no scale
    assert model.max_step_norm_ == math.inf
    assert (model.clip_norm_, model.learning_rate_) == (1.0, 0.5)


@pytest.mark.thorough
def test_more_budget_is_a_better_fit():
    X, y = data(n=3000)
    scores = [
        np.mean(
            [DPSRMClassifier(epsilon=e, classes=(0, 1), random_state=s).fit(X, y).score(X, y) for s in range(3)]
        )
        for e in (0.02, 1.0)
    ]
    assert scores[1] > 0.85
    assert scores[1] > scores[0]


def test_groups_and_weights():
    X, y = data()
    model = DPSRMClassifier(epsilon=2.0, classes=(0, 1), unit="group", random_state=0)
    assert model.fit(X, y, groups=np.arange(300) // 3).privacy_.unit == "group"
    weighted = DPSRMClassifier(**{**EXACT, **LITERAL}, max_weight=2.0, batch_size=60)
    plain = DPSRMClassifier(**EXACT, **LITERAL, batch_size=60).fit(X, y)
    ones = weighted.fit(X, y, sample_weight=np.ones(300))
    np.testing.assert_allclose(ones.coef_, plain.coef_, rtol=1e-9)


def test_storm_routes_weights_as_the_private_fits_do():
    X, y = data()
    weights = np.where(y == 1, 3.0, 0.1)
    with sklearn.config_context(enable_metadata_routing=True):
        for cls in (STORMClassifier, DPSRMClassifier):
            model = cls().set_fit_request(sample_weight=True)
            assert model.get_metadata_routing().fit.requests["sample_weight"] is True
        model = STORMClassifier(random_state=0).set_fit_request(sample_weight=True)
        piped = make_pipeline(model).fit(X, y, sample_weight=weights)
    alone = STORMClassifier(random_state=0).fit(X, y, sample_weight=weights)
    assert np.array_equal(piped[-1].coef_, alone.coef_)
    assert not np.array_equal(alone.coef_, STORMClassifier(random_state=0).fit(X, y).coef_)


def test_the_report_says_that_the_erratum_is_the_papers():
    X, y = data()
    report = DPSRMClassifier(classes=(0, 1), clip_norm=1.0, max_iter=20).fit(X, y).privacy_
    assert "this fit uses the correct order" in report.erratum
    assert DPSRMClassifier(**EXACT, max_iter=20).fit(X, y).privacy_.erratum is None


# ------------------------------------------------------------------ bad parameters


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"momentum": 1.5}, ValueError, "momentum"),
        ({"momentum": "fast"}, (TypeError, ValueError), "momentum"),
        ({"initial_batch_size": 0}, ValueError, "initial_batch_size"),
        ({"batch_size": 2.5}, TypeError, "batch_size"),
        ({"max_step_norm": 0.0}, ValueError, "max_step_norm"),
        ({"output": "best"}, ValueError, "output"),
        ({"penalty": "l1"}, ValueError, "penalty"),
        ({"sampling": "shuffled"}, ValueError, "sampling"),
    ],
)
def test_bad_parameters_of_both(params, error, message):
    X, y = data()
    for cls in (DPSRMClassifier, STORMClassifier):
        with pytest.raises(error, match=message):
            cls(classes=(0, 1), **params).fit(X, y)


@pytest.mark.parametrize(
    ("params", "error", "message"),
    [
        ({"clip_diff_norm": 0.0}, ValueError, "clip_diff_norm"),
        ({"clip_diff_norm": math.inf}, ValueError, "clip_diff_norm"),
        ({"clip_norm": math.inf}, ValueError, "clip_norm"),
        ({"epsilon": math.inf, "clip_diff_norm": math.inf}, ValueError, "clip_norm=inf"),
        ({"epsilon": math.inf, "clip_norm": math.inf, "clip_diff_norm": 1.0}, ValueError, "clip_diff_norm=inf"),
        ({"delta": 0.0}, ValueError, "delta"),
        (
            {"sampling": "without_replacement", "adjacency": "zero-out"},
            UnsupportedAccounting,
            "without replacement",
        ),
    ],
)
def test_bad_parameters_of_the_private_fit(params, error, message):
    X, y = data()
    with pytest.raises(error, match=message):
        DPSRMClassifier(classes=(0, 1), **params).fit(X, y)


def test_a_release_beyond_the_plan_is_refused():
    X, y = data()
    session = PrivacySession(epsilon=1.0, delta=1e-5, minibatches=True, random_state=0)
    records = PrivateRecords(X, y.astype(float), fit_intercept=True)
    plan = _srm.Schedule.of(300, 1.0, settings(max_iter=3))
    plans = session.plan_batches(plan.groups(), n_units=300)
    clips = _srm.Clips(_srm.Course(1.0), 0.1)
    from skdp.losses import LogisticLoss

    each = [*_srm.of_releases(plans), plans[-1]]
    estimates = _srm.estimates(session, records, LogisticLoss(), each, _srm.Course(1.0), clips)
    for iteration in range(3):
        estimates(np.zeros(5), iteration)
    with pytest.raises(PrivacyBudgetExceeded):
        estimates(np.zeros(5), 3)
