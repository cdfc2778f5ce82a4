"""DP-AGD: the step, the choice of its distance, and how the budget is divided."""

import math

import numpy as np
import pytest

from skdp import DPAGDClassifier
from skdp.privacy import BoundedStatistic, PrivacySession, accounting
from skdp.privacy.mechanisms.top_k import release as top_k_release
from skdp.reproductions import adaptive_descent as _agd


def data(n=400, d=4, n_classes=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.argmax(X[:, :n_classes] + 0.3 * rng.normal(size=(n, n_classes)), axis=1)


def objective(X, y, w, b, alpha, bound):
    losses = np.logaddexp(0, -(2 * y - 1) * (X @ w + b))
    return np.clip(losses, 0, bound).mean() + alpha * np.sum(w * w / (1 + w * w))


def line_search_descent(X, y, steps, half_width, alpha, bound):
    """The mathematics without noise: normalised gradient, best of 0, 1/5 .. 5/5 of the half-width."""
    w, b, gone = np.zeros(X.shape[1]), 0.0, []
    for t in range(steps):
        r = 1 / (1 + np.exp(-(X @ w + b))) - y
        g = np.append(X.T @ r / len(y) + 2 * alpha * w / (1 + w * w) ** 2, r.mean())
        g /= np.linalg.norm(g)
        points = [(w - far * g[:-1], b - far * g[-1]) for far in half_width * np.arange(6) / 5]
        best = int(np.argmin([objective(X, y, *p, alpha, bound) for p in points]))
        assert best > 0
        (w, b), gone = points[best], [*gone, half_width * best / 5]
        if (t + 1) % 5 == 0:
            half_width = 1.1 * max(gone[-5:])
    return w, b, gone[-1]


def test_without_noise_it_is_the_best_distance_along_the_gradient():
    X, y = data()
    model = DPAGDClassifier(
        epsilon=math.inf, clip_norm=math.inf, learning_rate=0.5, loss_bound=1.0, max_iter=7,
        alpha=0.01, classes=(0, 1),
    ).fit(X, y)  # fmt: skip
    w, b, last = line_search_descent(X, y, 7, 0.5, 0.01, 1.0)
    assert np.allclose(model.coef_[0], w)
    assert np.allclose(model.intercept_, b)
    assert model.n_iter_ == 7
    assert model.learning_rate_ == 0.5
    assert model.last_distance_ == pytest.approx(last)


def test_a_lost_choice_measures_again_and_shortens_the_reach(monkeypatch):
    X, y = data()
    seen, honest = [], _agd._Line._choose

    def choose(self, point, gradient):
        seen.append((self.half_width, gradient.copy(), self._costs.gradient))
        if len(seen) < 4:
            # What the session would draw is spent all the same.
            honest(self, point, gradient)
            return 0.0, point
        return honest(self, point, gradient)

    monkeypatch.setattr(_agd._Line, "_choose", choose)
    model = DPAGDClassifier(epsilon=1.0, max_iter=30, classes=(0, 1), random_state=0).fit(X, y)
    reaches, gradients, paid = zip(*seen[:4])
    assert np.allclose(np.array(reaches[1:]) / reaches[:-1], 0.8)
    assert np.allclose(np.array(paid[1:]) / paid[:-1], 1.1)
    assert not np.allclose(gradients[0], gradients[1])
    rows = [row for row in model.privacy_.mechanisms if row["purpose"] == "gradient"]
    first, extra = rows[0]["noise_multiplier"], rows[1]["noise_multiplier"]
    assert (first / extra) ** 2 == pytest.approx(0.1, rel=1e-6)  # what a second look costs


def test_two_measurements_are_averaged_by_their_inverse_variances(monkeypatch):
    released, seen = [], []
    honest = _agd._Line._measure

    def measure(self, point, share):
        value = honest(self, point, share)
        released.append((share, value))
        return value

    def choose(self, point, gradient):
        seen.append(gradient)
        return (0.0, point) if len(seen) < 3 else (1.0, point)

    monkeypatch.setattr(_agd._Line, "_measure", measure)
    monkeypatch.setattr(_agd._Line, "_choose", choose)
    X, y = data()
    DPAGDClassifier(epsilon=1.0, max_iter=1, classes=(0, 1), random_state=0).fit(X, y)
    assert len(released) == 1  # one step: its gradient takes all that the choice leaves
    released.clear()
    seen.clear()
    DPAGDClassifier(epsilon=1.0, max_iter=20, classes=(0, 1), random_state=0).fit(X, y)
    shares = np.array([share for share, _ in released[:3]])
    weights = shares / shares.sum()
    assert np.allclose(seen[2], sum(w * g for w, (_, g) in zip(weights, released)))


def test_the_budget_is_used_up_and_never_passed():
    X, y = data(n=2000)
    total = accounting.gaussian_mu(1.0, 1e-5) ** 2
    for seed in range(5):
        for max_iter in ("auto", 3, 10):
            model = DPAGDClassifier(
                max_iter=max_iter, clip_norm=1.0, learning_rate=1.0, classes=(0, 1), random_state=seed
            ).fit(X, y)  # fmt: skip
            spent = accounting.rows_mu(model.privacy_.mechanisms) ** 2 / total
            assert 0.85 <= spent <= 1
            assert model.n_iter_ <= (30 if max_iter == "auto" else max_iter)


def test_choices_have_the_noise_of_the_loss_bound_under_every_adjacency(monkeypatch):
    X, y = data(n=100)
    scales, honest = [], top_k_release.gumbel_top_k

    def gumbel(scores, k, scale, stream):
        scales.append(scale)
        return honest(scores, k, scale, stream)

    monkeypatch.setattr(top_k_release, "gumbel_top_k", gumbel)
    for adjacency, delta in (("replace-one", 2.0 / 100), ("zero-out", 1.0 / 100)):
        model = DPAGDClassifier(
            loss_bound=2.0, clip_norm=1.0, learning_rate=1.0, adjacency=adjacency, classes=(0, 1)
        ).fit(X, y)
        (row,) = [line for line in model.privacy_.mechanisms if line["name"] == "gumbel_top_k"]
        assert row["sensitivity"] == pytest.approx(delta, rel=1e-6)
        assert scales[-1] * row["grid"] == pytest.approx(2 * delta / row["epsilon"], rel=1e-6)


def test_the_automatic_loss_bound_is_three_times_a_blind_models_loss():
    for n_classes in (2, 3, 4):
        X, y = data(n_classes=n_classes)
        model = DPAGDClassifier(classes=range(n_classes), max_iter=2, random_state=0).fit(X, y)
        assert model.loss_bound_ == pytest.approx(3 * math.log(n_classes))


@pytest.mark.parametrize("value", [0.0, -1.0, math.inf, "large", 1e200])
def test_a_bad_loss_bound_is_refused(value):
    with pytest.raises((TypeError, ValueError), match="loss_bound"):
        DPAGDClassifier(loss_bound=value).fit(None, None)


def test_an_absurd_reach_gives_a_finite_model():
    X, y = data(n=100)
    for penalty in ("l2", "nonconvex"):
        model = DPAGDClassifier(learning_rate=1e200, penalty=penalty, alpha=1.0, max_iter=3, classes=(0, 1)).fit(
            X, y
        )
        assert np.isfinite(model.coef_).all()


def test_a_public_shift_changes_no_bound_and_moves_the_release():
    session = PrivacySession(epsilon=math.inf, delta=0.0)
    bounded = BoundedStatistic([3.0, 1.0], l2=1.0, linf=1.0)
    moved = (-bounded).shifted([0.5, -4.0])
    assert (moved.l1, moved.l2, moved.linf) == (bounded.l1, bounded.l2, bounded.linf)
    plan = session.plan_gaussian(1)
    assert np.allclose(session.gaussian(moved, plan), [-2.5, -5.0])
    assert session.gumbel_top_k(moved, 1, 1.0).tolist() == [0]
    noisy = PrivacySession(epsilon=50.0, delta=1e-5, random_state=0)
    assert np.allclose(noisy.gaussian(moved, noisy.plan_gaussian(1)), [-2.5, -5.0], atol=2.0)
    for wrong in ([1.0], [math.nan, 0.0], [math.inf, 0.0]):
        with pytest.raises(ValueError, match="constant"):
            bounded.shifted(wrong)
