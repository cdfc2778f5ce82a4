"""Batches that are the parts of a partition: what is drawn, what a pass costs, and what is refused."""

import math

import numpy as np
import pytest

from skdp import DPMLPClassifier
from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.nn import Projections, RandomSparsification
from skdp.privacy import (
    PARTITION,
    BatchGroup,
    BudgetAccountant,
    PrivacySession,
    PrivateRecords,
    ProjectedNorms,
    accounting,
)
from skdp.privacy.session import minibatches
from tests.nn.test_sparsification import START, Rig, table

pytestmark = pytest.mark.filterwarnings("ignore")

N = 23


def session(steps=9, size=6, adjacency="zero-out", n=N, epsilon=2.0, **more):
    made = PrivacySession(epsilon=epsilon, delta=1e-5, adjacency=adjacency, random_state=0)
    (plan,) = made.plan_batches([BatchGroup(steps, size, **more)], sampling=PARTITION, n_units=n)
    return made, plan


def records(n=N, **more):
    return PrivateRecords(np.eye(n), **more)


def total(data, batch):
    return data.clipped_sum(lambda X, y: X, 1.0, size=data.n_features, batch=batch)


def batches(steps, size, n=N):
    made, plan = session(steps, size, n=n)
    data = records(n)
    return [made.draw(plan, data)._units for _ in range(steps)]


@pytest.mark.parametrize("size", [1, 5, 6, 12, 22])
def test_every_unit_is_in_one_batch_of_each_pass(size):
    _, plan = session(size=size)
    assert plan.n_batches == math.ceil(N / size)
    assert plan.batch_size == math.ceil(N / plan.n_batches) <= size
    found = batches(3 * plan.n_batches, size)
    for first in range(0, len(found), plan.n_batches):
        units = found[first : first + plan.n_batches]
        assert np.array_equal(np.sort(np.concatenate(units)), np.arange(N))
        assert {part.size for part in units} <= {plan.batch_size, plan.batch_size - 1}
        assert all(np.all(np.diff(part) > 0) for part in units)
    first, second = (
        found[at : at + plan.n_batches] for at in (0, plan.n_batches)
    )  # another order: the same one has a chance of at most 1 in 23
    assert any(not np.array_equal(*pair) for pair in zip(first, second))


def test_orders_are_uniform():
    """Of 400 passes in two batches, each pair of 4 units is together in a third: within 5.5 standard errors."""
    found = batches(800, 2, n=4)
    together = np.zeros((4, 4))
    for part in found:
        together[np.ix_(part, part)] += 1
    assert np.abs(together[np.triu_indices(4, 1)] - 400 / 3).max() < 5.5 * math.sqrt(400 * 2 / 9)


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
@pytest.mark.parametrize(("steps", "passes"), [(4, 1), (5, 2), (8, 2), (9, 3)])
def test_a_pass_costs_one_release_on_all_units(steps, passes, adjacency):
    made, plan = session(steps, adjacency=adjacency)
    mu = math.sqrt(passes) / plan.noise_multiplier
    assert math.isclose(mu, math.sqrt(made._ledger.mu2), rel_tol=1e-9)
    data = records()
    for _ in range(steps):
        made.gaussian(total(data, made.draw(plan, data)), plan)
    report = made.report()
    (row,) = report.mechanisms
    assert (row["count"], row["n_batches"], row["sampling"]) == (passes, 4, "full batch")
    assert report.epsilon == 2.0
    assert math.isclose(accounting.gaussian_epsilon(mu, 1e-5), 2.0, rel_tol=1e-3)
    assert "partition into 4 batches" in str(report)
    # The cost by other code: a quadrature of the privacy loss.
    found = accounting.recheck_epsilon(report.mechanisms, 1e-5, adjacency=adjacency)
    assert math.isclose(found, 2.0, rel_tol=1e-3)


def test_a_pass_is_charged_once_by_whatever_batch_is_released_first():
    made, plan = session(8)
    data = records()
    for step in range(8):
        batch = made.draw(plan, data)
        if step in (2, 3, 7):  # none of the first batches of a pass
            made.gaussian(total(data, batch), plan)
    assert [row["count"] for row in made.report().mechanisms] == [2]


def test_batches_that_are_dropped_make_no_more_passes():
    made, plan = session(5)
    data = records()
    for _ in range(5):
        made.draw(plan, data)
    with pytest.raises(PrivacyBudgetExceeded, match="all are drawn"):
        made.draw(plan, data)


def test_other_releases_and_groups_compose():
    """A quarter of mu^2 for other releases; two groups, one of them on all units."""
    made = PrivacySession(epsilon=2.0, delta=1e-5, adjacency="zero-out", random_state=0)
    plans = made.plan_batches(
        [BatchGroup(6, 8), BatchGroup(2, N, weight=2.0)], sampling=PARTITION, n_units=N, share=0.75
    )
    last = made.plan_gaussian(1, 0.25)
    z, full = (plan.noise_multiplier for plan in plans)
    assert math.isclose(full, 2 * z)
    mu2 = 2 / z**2 + 2 / full**2 + 1 / last.noise_multiplier**2
    assert math.isclose(mu2, made._ledger.mu2, rel_tol=1e-9)
    assert math.isclose(sum(plan.share for plan in plans), 0.75)
    data = records()
    for plan in plans:
        for _ in range(plan.releases):
            made.gaussian(total(data, made.draw(plan, data)), plan)
    made.gaussian(total(data, None), last)
    assert made.report().epsilon == 2.0


def test_passes_that_are_not_planned_are_found_by_the_recheck(monkeypatch):
    monkeypatch.setattr(minibatches, "_passes", lambda group, n_units: 1)
    made, plan = session(9)
    data = records()
    for _ in range(9):
        made.gaussian(total(data, made.draw(plan, data)), plan)
    with pytest.raises(PrivacyAccountingError):
        made.report()


def test_what_has_no_proof_is_refused():
    with pytest.raises(UnsupportedAccounting, match="public number"):
        session(adjacency="add-remove")
    with pytest.raises(UnsupportedAccounting, match="several statistics"):
        session(parts=(0.5, 0.5))
    with pytest.raises(UnsupportedAccounting, match="projections"):
        session(extra=ProjectedNorms(20))
    made, plan = session()
    with pytest.raises(ValueError, match="real number of units"):
        made.draw(plan, records(n_public=N))
    with pytest.raises(ValueError, match="real number of units"):
        made.draw(plan, records(N - 1))
    made.draw(plan, records())
    with pytest.raises(ValueError, match="same records"):
        made.draw(plan, records())


# ---------------------------------------------------------------------- nets


@pytest.fixture
def rig(monkeypatch):
    return Rig(monkeypatch)


PARTS = {"sampling": "partition", "batch_size": 4, "max_iter": 4}  # two passes of two batches
EPSILON = 12.0


HALF = {"gradient_estimator": RandomSparsification(0.5, cooling=False)}


@pytest.mark.parametrize("more", [{}, HALF], ids=["plain", "sparsified"])
def test_a_record_comes_near_the_claim_and_stays_below(rig, more):
    found = rig.bound(table(0), table(1), START, **PARTS, **more)
    assert 0.6 * EPSILON <= found <= EPSILON


def test_a_record_in_two_batches_of_a_pass_is_caught(rig, monkeypatch):
    from skdp.privacy.session.base import MinibatchSampler

    honest = MinibatchSampler._part
    monkeypatch.setattr(
        MinibatchSampler, "_part",
        lambda self, plan, count: np.union1d(honest(self, plan, count)[1:], [0]),
    )  # fmt: skip
    assert rig.bound(table(0), table(1), START, **PARTS) > EPSILON


XOR = {"classes": (0, 1), "input_range": (-1, 1), "hidden_layer_sizes": (8,)}


def xor(n=400):
    X = np.random.default_rng(0).uniform(-1, 1, size=(n, 2))
    return X, (X[:, 0] * X[:, 1] > 0).astype(int)


@pytest.mark.parametrize(
    ("params", "word"),
    [
        ({"n_public": 400}, "n_public"),
        ({"adjacency": "add-remove", "n_public": 400}, "n_public"),
        ({"clipping": Projections()}, "Projections"),
    ],
)
def test_estimators_refuse_and_spend_nothing(params, word):
    accountant = BudgetAccountant(epsilon=1.0, delta=1e-5)
    with pytest.raises(ValueError, match=word):
        DPMLPClassifier(sampling="partition", accountant=accountant, **XOR, **params).fit(*xor())
    assert accountant.spent() == (0.0, 0.0)


def test_automatic_steps_are_whole_passes_and_given_ones_are_kept():
    X, y = xor()
    model = DPMLPClassifier(sampling="partition", batch_size=90, random_state=0, **XOR).fit(X, y)
    assert model.batch_size_ == 80
    assert model.n_iter_ % 5 == 0
    model.set_params(max_iter=7).fit(X, y)
    assert model.n_iter_ == 7
    assert model.privacy_.mechanisms[0]["count"] == 2
    whole = DPMLPClassifier(sampling="partition", batch_size=400, max_iter=7, random_state=0, **XOR)
    assert whole.fit(X, y).privacy_.mechanisms[0]["count"] == 7  # a batch of all records


def test_an_accountant_holds_the_mu_of_partitions():
    """Poisson batches are a point (epsilon, delta) of an accountant; partitions have a mu."""
    accountant = BudgetAccountant(epsilon=2.0, delta=1e-5)
    model = DPMLPClassifier(
        sampling="partition", epsilon=1.0, delta=5e-6, max_iter=5, accountant=accountant, **XOR
    ).fit(*xor())
    assert accountant.spent()[0] <= 2.0
    assert model.privacy_.accountant.startswith("exact Gaussian DP")
