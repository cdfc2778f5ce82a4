"""Several statistics of one batch under one plan: they cost together what one release costs."""

import math

import numpy as np
import pytest

from skdp.exceptions import PrivacyAccountingError, PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.losses import LogisticLoss
from skdp.privacy import BatchGroup, PrivacySession, PrivateRecords
from skdp.privacy.batches import BatchPart
from skdp.privacy.mechanisms import grid

PARTS = (0.1, 0.9)


def opened(batch_size=20, parts=PARTS, releases=6, n=200, share=1.0, **options):
    rng = np.random.default_rng(0)
    records = PrivateRecords(rng.normal(size=(n, 3)), (rng.random(n) < 0.5) * 1.0)
    settings = {"epsilon": 2.0, "delta": 1e-5, "random_state": 0, "minibatches": True, **options}
    session = PrivacySession(records, **settings)
    group = BatchGroup(releases, batch_size, parts=parts)
    (plan,) = session.plan_batches([group], n_units=n, share=share)
    return session, plan, records


def below(records, bound, batch):
    """How many records of the batch have a short row, centred: what an adaptive clip norm asks for."""

    def signs(X, y):
        return np.where(np.linalg.norm(X, axis=1) <= bound, 0.5, -0.5)[:, None]

    return records.clipped_sum(signs, 0.5, size=1, batch=batch)


def step(session, plan, records, clip=0.5):
    """A count, and a gradient whose clip norm follows from it."""
    batch = session.draw(plan, records)
    counted = session.gaussian(below(records, clip, batch), plan.parts[0])
    clip *= math.exp(-0.1 * np.sign(counted[0]))
    gradient = records.mean_gradient(LogisticLoss(), np.zeros(3), clip, batch=batch)
    return session.gaussian(gradient, plan.parts[1])


def test_multipliers_add_up_to_that_of_the_plan():
    _, plan, _ = opened()
    costs = [1 / part.noise_multiplier**2 for part in plan.parts]
    assert sum(costs) <= 1 / plan.noise_multiplier**2
    assert sum(costs) == pytest.approx(1 / plan.noise_multiplier**2)
    assert costs[0] / costs[1] == pytest.approx(1 / 9)
    _, single, _ = opened(parts=(1.0,))
    assert single.noise_multiplier == plan.noise_multiplier == single.parts[0].noise_multiplier


@pytest.mark.parametrize("batch_size", [20, 200])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_a_batch_with_two_statistics_is_one_release_in_the_ledger(batch_size, adjacency):
    session, plan, records = opened(batch_size, adjacency=adjacency)
    for _ in range(6):
        step(session, plan, records)
    (row,) = session.report().mechanisms
    assert (row["count"], row["noise_multiplier"]) == (6, plan.noise_multiplier)


def test_each_part_is_released_once_and_no_batch_is_made_more():
    session, plan, records = opened(releases=1, share=0.5)
    batch, spare = session.draw(plan, records), session.draw(plan, records)
    counted = below(records, 1.0, batch)
    session.gaussian(counted, plan.parts[1])
    counter = session._keys.stream.counter
    with pytest.raises(PrivacyBudgetExceeded, match="used already"):
        session.gaussian(counted, plan.parts[1])
    with pytest.raises(PrivacyBudgetExceeded, match="holds 1 releases"):
        session.gaussian(below(records, 1.0, spare), plan.parts[0])
    with pytest.raises(ValueError, match="2 parts"):
        session.gaussian(counted, BatchPart(plan, 2))
    with pytest.raises(UnsupportedAccounting, match="plan of its batch only"):
        session.gaussian(counted, session.plan_gaussian(1, 1e-9))
    assert session._keys.stream.counter == counter
    session.gaussian(counted, plan.parts[0])


def test_a_statistic_with_all_the_noise_of_a_batch_is_refused():
    """With the multiplier of the plan itself it would cost as much as all parts together."""
    session, plan, records = opened()
    batch = session.draw(plan, records)
    counter = session._keys.stream.counter
    with pytest.raises(UnsupportedAccounting, match=r"plan\.parts"):
        session.gaussian(below(records, 1.0, batch), plan)
    assert (session._keys.stream.counter, session._ledger.rows) == (counter, [])


@pytest.mark.parametrize("between", ["batch", "count"])
def test_nothing_is_released_between_the_parts_of_a_batch(between):
    """The parts are proven as one release; a choice that depends on another batch's result is not."""
    session, plan, records = opened(share=0.5)
    small = session.plan_gaussian(3, 0.1)
    batch = session.draw(plan, records)
    session.gaussian(below(records, 1.0, batch), plan.parts[0])
    if between == "batch":
        session.gaussian(below(records, 1.0, session.draw(plan, records)), plan.parts[0])
    else:
        session.gaussian(records.norm_count(1.0), small)
    counter = session._keys.stream.counter
    with pytest.raises(UnsupportedAccounting, match="between them"):
        session.gaussian(below(records, 1.0, batch), plan.parts[1])
    assert session._keys.stream.counter == counter


def test_a_release_inside_the_function_of_a_part_is_one_between_the_parts():
    session, plan, records = opened(share=0.5)
    small = session.plan_gaussian(3, 0.1)
    batch = session.draw(plan, records)
    session.gaussian(below(records, 1.0, batch), plan.parts[0])

    def nested(X, y):
        if X.any() and not seen:
            seen.append(session.gaussian(records.norm_count(1.0), small))
        return np.zeros((len(X), 1))

    seen = []
    part = records.clipped_sum(nested, 0.5, size=1, batch=batch)
    with pytest.raises(UnsupportedAccounting, match="while this part of a batch was computed"):
        session.gaussian(part, plan.parts[1])
    assert seen
    session.report()


def test_a_part_cannot_be_subclassed():
    with pytest.raises(TypeError, match="cannot be subclassed"):
        type("Quiet", (BatchPart,), {"noise_multiplier": 1e-3})
    allows = type("Allows", (), {"__init_subclass__": classmethod(lambda cls: None)})
    quiet = type("Quiet", (allows, BatchPart), {"noise_multiplier": 1e-3})
    session, plan, records = opened()
    counted = below(records, 1.0, session.draw(plan, records))
    with pytest.raises(TypeError, match="not of a subclass"):
        session.gaussian(counted, quiet(plan, 0))
    with pytest.raises(ValueError, match="2 parts"):
        session.gaussian(counted, BatchPart(plan, type("Index", (int,), {"__hash__": id})(0)))
    assert session._ledger.rows == []


def test_a_batch_is_counted_by_its_first_row():
    session, plan, records = opened()
    batch = session.draw(plan, records)

    def fails(X, y):
        if X.any():
            raise KeyboardInterrupt
        return np.zeros((len(X), 1))

    with pytest.raises(KeyboardInterrupt):
        session.gaussian(records.clipped_sum(fails, 0.5, size=1, batch=batch), plan.parts[0])
    session.gaussian(below(records, 1.0, batch), plan.parts[1])
    (row,) = session.report().mechanisms
    assert row["count"] == 1


def test_parts_of_another_plan_are_refused():
    session, plan, records = opened()
    stranger, other, theirs = opened()
    batch = session.draw(plan, records)
    for part in other.parts:
        with pytest.raises(PrivacyBudgetExceeded, match="another session"):
            session.gaussian(below(records, 1.0, batch), part)


def test_noise_of_a_part_is_its_own():
    session, plan, records = opened(epsilon=8.0)
    batch = session.draw(plan, records)
    stds = [session.noise_std(below(records, 1.0, batch), part) for part in plan.parts]
    assert stds[0] / stds[1] == pytest.approx(3.0)
    assert stds[0] == pytest.approx(plan.parts[0].noise_multiplier * 2 * 0.5)


@pytest.mark.parametrize("part", [0, 1])
def test_a_mutant_with_half_the_noise_of_one_part_is_caught(part, monkeypatch):
    honest, wrong = grid.gaussian_grid, part
    session, plan, records = opened()

    def halved(bounded, multiplier, adjacency):
        half = multiplier == plan.parts[wrong].noise_multiplier
        return honest(bounded, multiplier / 2 if half else multiplier, adjacency)

    monkeypatch.setattr(grid, "gaussian_grid", halved)
    for _ in range(6):
        step(session, plan, records)
    with pytest.raises(PrivacyAccountingError, match="bug"):
        session.report()


def test_what_the_parts_release_on_two_neighbours_is_no_easier_to_tell_apart_than_the_pair():
    """The exact likelihood ratio of both results at once, on one drawn batch: its mean is the mu of the plan."""
    session, plan, _ = opened()
    moved = []
    for part in plan.parts:
        bounded = session_sums(plan)
        unit, sigma, _ = grid.gaussian_grid(bounded, part.noise_multiplier, "replace-one")
        moved.append(2 * bounded.l2 / (unit * sigma))
    assert math.hypot(*moved) <= 1 / plan.noise_multiplier
    assert math.hypot(*moved) == pytest.approx(1 / plan.noise_multiplier, rel=1e-6)


def session_sums(plan):
    records = PrivateRecords(np.eye(3), np.zeros(3))
    return records.mean_gradient(LogisticLoss(), np.zeros(3), 1.0) * (1 / plan.batch_size)


@pytest.mark.parametrize("parts", [(), (0.5,), (0.5, 0.6), (1.0, 0.0), (1.5, -0.5), (math.nan, 0.5)])
def test_shares_must_add_up_to_one(parts):
    with pytest.raises(ValueError, match="parts must be shares"):
        opened(parts=parts)


def test_batches_without_replacement_have_one_statistic():
    session, _, records = opened()
    with pytest.raises(UnsupportedAccounting, match="Poisson batches"):
        session.plan_batches([BatchGroup(1, 20, parts=PARTS)], sampling="without replacement", n_units=200)


def test_without_privacy_parts_are_exact():
    rng = np.random.default_rng(0)
    records = PrivateRecords(rng.normal(size=(50, 3)), np.zeros(50))
    session = PrivacySession.without_privacy()
    (plan,) = session.plan_batches([BatchGroup(1, 50, parts=PARTS)], n_units=50)
    batch = session.draw(plan, records)
    assert session.gaussian(below(records, np.inf, batch), plan.parts[0]) == pytest.approx([25.0])
    assert session.gaussian(below(records, 0.0, batch), plan.parts[1]) == pytest.approx([-25.0])
