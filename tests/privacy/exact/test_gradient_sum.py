"""Sums of clipped gradients in blocks of positions: what one record or group changes.

The function of most tests gives back what stands in the rows. So a test chooses every number of a record's
gradient, also numbers that no net would compute.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import chi2

from skdp.exceptions import UnsupportedAccounting
from skdp.kernels import record_squares
from skdp.privacy import BatchGroup, Outer, OuterSum, PieceKinds, PrivacySession, PrivateRecords, Vectors
from skdp.privacy.batches import Batch, BatchPlan, number_of_positions
from skdp.privacy.gradients import blocks, parts
from skdp.privacy.gradients.microbatches import run_means
from tests.privacy.exact.test_clipped_sum import unit_norm

pytestmark = pytest.mark.blas

T, P, Q = 9, 3, 2
ENTRIES, LEFT, RIGHT = 5, 4, 3
FEATURES = ENTRIES + LEFT + RIGHT + T * P + T * Q
SIZE = ENTRIES + LEFT * RIGHT + P * Q
CLIP, GRID = 0.7, 2.0**-24
METHODS = ("materialized", "ghost", "one-by-one", "microbatch")
PLAN = BatchPlan(1, "Poisson", 0.3, 60, 200, 1.0, 1.0)


def pieces(X, y, dtype=np.float32):
    """The numbers of a row, cut into the three kinds of pieces."""
    dense = X.toarray() if sp.issparse(X) else X
    ends = np.cumsum([ENTRIES, LEFT, RIGHT, T * P])
    entries, left, right, many, other = np.split(dense.astype(dtype), ends, axis=1)
    sums = OuterSum(many.reshape(-1, T, P), other.reshape(-1, T, Q))
    return [Vectors(entries), Outer(left, right), sums]


def sum_of(records, clip=CLIP, function=pieces, size=SIZE, clipping="materialized", **options):
    if clipping == "microbatch":
        options = {"microbatch_size": 4, **options}
    return records.gradient_sum(function, clip, size=size, clipping=clipping, **options)


def integers(X, y=None, *, unit=GRID, batch=None, options=None, **settings):
    records = PrivateRecords(X, y, **(options or {}))
    if batch is not None:
        batch = Batch._make(PLAN, *batch[:1], records._rows.family, *batch[1:])
    return sum_of(records, batch=batch, **settings)._value.on_grid(unit)


def rows(n=200, seed=0, scale=1.0):
    return scale * np.random.default_rng(seed).normal(size=(n, FEATURES))


def exact_gradient(row, dtype=np.float32):
    """The gradient of a row as fractions: what the pieces hold, without any rounding."""
    entries, product, many = pieces(row[None], None, dtype)
    found = [Fraction(float(v)) for v in entries.values[0]]
    for left, right in ((product.left, product.right), (many.left[0], many.right[0])):
        a = [[Fraction(float(v)) for v in line] for line in left]
        b = [[Fraction(float(v)) for v in line] for line in right]
        for p in range(len(a[0])):
            found += [sum(x[p] * z[q] for x, z in zip(a, b)) for q in range(len(b[0]))]
    return found


def exact_sum(vectors, clip=CLIP):
    total = np.zeros(SIZE)
    for v in vectors:
        norm = math.sqrt(sum(x * x for x in v))
        total += np.array([float(x) for x in v]) * min(1.0, clip / norm)
    return total


# ---------------------------------------------------------------- the right numbers


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("clipping", METHODS)
def test_it_is_the_sum_of_clipped_gradients(clipping, dtype):
    X = rows(150) * np.exp(np.random.default_rng(1).normal(-1.0, 1.0, size=(150, 1)))
    vectors = [exact_gradient(row, dtype) for row in X]
    if clipping == "microbatch":
        runs = [vectors[i : i + 4] for i in range(0, 150, 4)]
        vectors = [[sum(column) / 4 for column in zip(*run)] for run in runs]
    found = integers(X, clipping=clipping, function=lambda X, y: pieces(X, y, dtype), unit=2.0**-30)
    wanted = exact_sum(vectors)
    assert np.linalg.norm(wanted) > 5 * CLIP
    # The margin makes clipped gradients shorter by at most 1.5e-3; rounding is smaller.
    assert np.abs(found * 2.0**-30 - wanted).max() <= 2e-3 * CLIP * len(vectors)
    assert np.linalg.norm(found * 2.0**-30 / wanted - 1, np.inf) <= 0.05


def test_sums_too_large_for_float64_are_added_as_integers(monkeypatch):
    """A fine grid, where integers pass 2^53: the numbers are those of a coarser grid, and more of them."""
    X, added = rows(150), []
    add = record_squares.add_rounded

    def spy(total, block, scale):
        added.append(total.dtype.name)
        add(total, block, scale)

    monkeypatch.setattr("skdp.kernels.add_rounded", spy)
    fine, coarse = (integers(X, unit=unit) for unit in (2.0**-50, 2.0**-30))
    assert set(added[: len(added) // 2]) == {"int64"}
    assert set(added[len(added) // 2 :]) == {"float64"}
    assert np.abs(fine).max() > 2**51
    # Each of three blocks is rounded once; a clip norm of 2^29 loses at most 8 units by the root of the size.
    assert np.abs(fine * 2.0**-20 - coarse).max() <= 3 + 2.0**-26 * np.abs(coarse).max()


def test_without_a_clip_it_is_the_plain_sum():
    X, weights = rows(150), np.linspace(0, 2, 150)
    wanted = sum(w * np.array([float(x) for x in exact_gradient(row)]) for row, w in zip(X, weights))
    for clipping in METHODS:
        made = sum_of(PrivateRecords(X, sample_weight=weights), math.inf, clipping=clipping)
        plain = made._value.plain() * (4 if clipping == "microbatch" else 1)
        assert plain == pytest.approx(wanted, rel=1e-4, abs=1e-4)
        clipped = sum_of(PrivateRecords(X, sample_weight=weights), 1e6, clipping=clipping)
        assert clipped._value.plain() == pytest.approx(made._value.plain(), rel=1e-4, abs=1e-3)


def test_weights_multiply_before_the_clip():
    X = rows(3)
    one = integers(X[:1])
    for weight, wanted in ((1.0, one), (5.0, one), (0.0, 0 * one), (1e-200, 0 * one)):
        found = integers(X[:1], options={"sample_weight": [weight]})
        assert np.abs(found - wanted).max() <= 2  # clipped, or nothing
    short = X[:1] * 1e-3
    assert integers(short, options={"sample_weight": [2.0]}) == pytest.approx(2 * integers(short), abs=3)


@pytest.mark.parametrize("layout", [np.asfortranarray, sp.csr_matrix, np.float32])
def test_storage_does_not_matter(layout):
    X = rows(130).astype(np.float32).astype(np.float64)
    assert np.array_equal(integers(layout(X)), integers(X))


# ---------------------------------------------------------------- what one record changes


def hurtful(rng):
    """A row that is built to break a clip: any scale, nearly cancelling, or not finite."""
    row = rng.normal(size=FEATURES) * 10.0 ** rng.choice([-44, -20, -3, 0, 0, 1, 6, 12, 30])
    many = row[ENTRIES + LEFT + RIGHT :]
    kind = rng.integers(5)
    if kind == 0:  # the record of R2: large, and its positions cancel
        many[: T * P] = np.tile(rng.normal(size=P) * 1e6, T)
        signs = np.resize([1.0, -1.0], T)[:, None]
        many[T * P :] = (signs * rng.normal(size=Q) + 1e-5 * rng.normal(size=(T, Q))).ravel()
    elif kind == 1:
        row[rng.integers(FEATURES)] = rng.choice([np.nan, np.inf, -np.inf, 3e38])
    elif kind == 2:  # the same direction as many others
        row[:] = 1.0
    return row


def largest_moves(clipping, trials, seed=0):
    """The farthest that a record moved the integers, in clips: as it was removed, and as it was replaced."""
    rng, removed, replaced = np.random.default_rng(seed), 0.0, 0.0
    for _ in range(trials):
        X = rows(200, seed=rng.integers(2**32)) + rng.choice([0.0, 1.0])
        X[rng.random(200) < 0.2] = hurtful(rng)
        units = np.sort(rng.permutation(199)[: rng.integers(1, 100)]) + 1
        positions = rng.permutation(number_of_positions(PLAN, 200))
        for i in range(2):
            X[0] = hurtful(rng) if i else (rng.choice([-1.0, 1.0]) * np.ones(FEATURES))
            sums = integers(X, batch=(np.append(0, units), positions[: units.size + 1]), clipping=clipping)
            if i == 0:
                before = sums
                without = integers(X, batch=(units, positions[1 : units.size + 1]), clipping=clipping)
        removed = max(removed, unit_norm(before - without))
        replaced = max(replaced, unit_norm(before - sums), unit_norm(sums - without))
    return removed * GRID / CLIP, replaced * GRID / CLIP


@pytest.mark.parametrize("clipping", METHODS)
def test_a_record_moves_the_sum_by_at_most_its_bound(clipping):
    factor = 2.0 if clipping == "microbatch" else 1.0
    assert sum_of(PrivateRecords(rows(10)), clipping=clipping).l2 == factor * CLIP
    # Nets have at least 500 trials for each layer and method: tests/nn/test_replaced_records.py.
    removed, replaced = largest_moves(clipping, 60 if clipping == "one-by-one" else 120)
    assert 0.6 * factor <= removed <= factor
    assert 0.6 * 2 <= replaced <= 2.0  # for microbatches, too: a mean is a point of the ball


@pytest.mark.slow
@pytest.mark.parametrize("clipping", METHODS)
def test_a_record_moves_the_sum_by_at_most_its_bound_in_many_trials(clipping):
    removed, replaced = largest_moves(clipping, 25_000, seed=1)
    assert removed <= (2.0 if clipping == "microbatch" else 1.0)
    assert replaced <= 2.0


def test_a_mutant_with_half_the_clip_factor_missing_is_caught(monkeypatch):
    honest = blocks.clip_factors
    monkeypatch.setattr(blocks, "clip_factors", lambda *args: 1.5 * honest(*args))
    removed, replaced = largest_moves("materialized", 10)
    assert removed > 1.0
    assert replaced > 2.0


def moved_by_rounding():
    """Entries just below half a unit, and a record that lifts each over the next half: in units of the clip."""
    d, clip = 10_000, 254.0
    others = np.full((1, d), 0.49)
    both = np.vstack([others, np.full((1, d), 2.02)])  # of norm 202, which half the margin would let in

    def total(X):
        return integers(X, clip=clip, unit=1.0, function=entries, size=d)

    return unit_norm(total(both) - total(others)) / clip


def entries(X, y):
    return [Vectors(X.astype(np.float32))]


def test_a_mutant_with_half_the_margin_of_the_grid_is_caught(monkeypatch):
    assert moved_by_rounding() <= 1.0
    honest = math.sqrt
    monkeypatch.setattr(blocks.math, "sqrt", lambda v: honest(v) / (2 if v == 10_000 else 1))
    assert moved_by_rounding() > 1.0


def moved_by_float32():
    """A block of 64 numbers near 1: their float32 sum is off by more than one of them is rounded."""
    rng, worst = np.random.default_rng(0), 0
    for _ in range(300):
        X = 1 - rng.random((64, 1)) * 2.0**-18
        X[0] = 2.0
        both, without = (integers(x, clip=1.0, unit=2.0**-30, function=entries, size=1) for x in (X, X[1:]))
        worst = max(worst, unit_norm(both - without))
    return worst * 2.0**-30


def test_a_mutant_without_the_margin_of_blas_is_caught(monkeypatch):
    assert moved_by_float32() <= 1.0
    monkeypatch.setattr(blocks, "HALF_ULP", {"float32": 0.0})
    assert moved_by_float32() > 1.0


# ---------------------------------------------------------------- R2's record, and what is not finite


def nearly_cancelling(seed, t=64, p=32, q=32):
    """A record of true norm about 461 whose float32 Gram norm is 0 or negative (finding R2)."""
    rng = np.random.default_rng(seed)
    left = np.tile(rng.normal(size=p) * 1e6, (t, 1))
    right = np.resize([1.0, -1.0], t)[:, None] * rng.normal(size=q) + 1e-5 * rng.normal(size=(t, q))
    return left, right


def of_positions(X, y, t=64, p=32, q=32):
    X = X.astype(np.float32)
    return [OuterSum(X[:, : t * p].reshape(-1, t, p), X[:, t * p :].reshape(-1, t, q))]


@pytest.mark.parametrize("clipping", METHODS)
@pytest.mark.parametrize("copies", [1, 64])
def test_a_record_that_nearly_cancels_adds_at_most_the_clip_norm(clipping, copies):
    for seed in range(7):
        X = np.tile(np.concatenate(nearly_cancelling(seed), axis=None), (copies, 1))
        sums = integers(X, function=of_positions, size=32 * 32, clipping=clipping)
        added = max(1, copies // 4) if clipping == "microbatch" else copies
        per_vector = unit_norm(sums) / added * GRID
        assert per_vector <= CLIP
        if clipping != "ghost":  # there the guard may make it shorter
            assert per_vector >= 0.99 * CLIP


@pytest.mark.parametrize("clipping", ["materialized", "ghost", "one-by-one"])
def test_a_group_that_nearly_cancels_adds_at_most_the_clip_norm(clipping):
    """Groups of R2's record, alone and with 63 ordinary rows; and of two rows that nearly cancel each other."""
    r2 = np.concatenate(nearly_cancelling(0), axis=None)
    ordinary = np.random.default_rng(1).normal(size=(63, r2.size))
    opposite = np.vstack([r2, r2 * np.where(np.arange(r2.size) < 64 * 32, 1.0, -1.0 - 1e-6)])
    for X in (r2[None], np.vstack([r2, ordinary]), opposite):
        options = {"groups": np.zeros(len(X), dtype=int)}
        settings = {"function": of_positions, "size": 32 * 32, "clipping": clipping}
        sums = integers(X, options=options, **settings)
        assert 0.99 * CLIP <= unit_norm(sums) * GRID <= CLIP


def gram_norm_in_float32(left, right):
    """Its terms are added one after the other: kernels of BLAS add them in orders of their own."""
    grams = [sum(np.multiply.outer(column, column) for column in f.T) for f in (left, right)]
    return math.sqrt(max(0.0, (grams[0] * grams[1]).cumsum(dtype=np.float32)[-1]))


def test_a_mutant_whose_gram_norm_has_no_error_term_is_caught():
    """In float32, as it was before R2: the record enters unclipped."""
    too_small = 0
    for seed in range(7):
        left, right = (factor.astype(np.float32) for factor in nearly_cancelling(seed))
        (part,) = parts.parts_of([OuterSum(left[None], right[None])], ghost=True)
        true = np.linalg.norm(left.T.astype(float) @ right.astype(float))
        assert part.squares[0] >= true**2
        too_small += gram_norm_in_float32(left, right) < 0.5 * true
    assert too_small > 0


@pytest.mark.parametrize("ghost", [False, True])
def test_norms_have_the_same_bits_at_every_place(ghost):
    """Else one record would change the factors of others."""
    left, right = np.random.default_rng(0).normal(size=(2, 64, 33, 21)).astype(np.float32)
    whole = parts.parts_of([OuterSum(left, right)], ghost=ghost)[0]
    for order in ([7], [7, 8], range(63, -1, -1), range(1, 64), range(40)):
        rows = list(order)
        (part,) = parts.parts_of([OuterSum(left[rows], right[rows])], ghost=ghost)
        for name in ("squares", "largest", "guard"):
            assert np.array_equal(getattr(part, name), getattr(whole, name)[rows])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize(("p", "q"), [(1, 1), (1, 33), (33, 1), (3, 7), (64, 64), (130, 3)])
def test_means_of_microbatches_have_the_same_bits_at_every_place(p, q, dtype):
    """Rows before a microbatch move it to other addresses; one record may not change the mean of others."""
    rng = np.random.default_rng(0)
    for T, length in ((1, 2), (1, 30), (9, 3), (17, 5)):
        left, right = (rng.normal(size=(12 + length, T, k)).astype(dtype) for k in (p, q))
        weights, whole = rng.random(12 + length), None
        for before in range(12):
            at = slice(12 - before, None)
            pieces = [OuterSum(left[at], right[at]), Vectors(np.ascontiguousarray(left[at, 0]))]
            pieces += [Outer(left[at, 0].copy(), right[at, 0].copy())] * (T == 1)
            run = np.repeat([0, 1], [before, length])
            found = run_means(pieces, weights[at], run, length)
            found = [mean.values[-1].tobytes() for mean in found]
            whole = found if whole is None else whole
            assert found == whole


@pytest.mark.parametrize("clipping", METHODS)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 1e300])
@pytest.mark.parametrize("at", [0, ENTRIES, ENTRIES + LEFT, -1])
def test_what_is_not_finite_or_too_large_adds_nothing(clipping, bad, at):
    X = rows(70)
    X[13, at] = bad
    settings = {"clipping": clipping, "batch": (np.arange(70), np.arange(70))}
    found = integers(X, **settings)
    if clipping == "microbatch":  # its microbatch is lost
        left = np.r_[:12, 16:70]
    else:
        left = np.r_[:13, 14:70]
    without = integers(X, **{**settings, "batch": (left, left)})
    assert unit_norm(found - without) <= 1e-3 * CLIP / GRID


@pytest.mark.parametrize("clipping", ["materialized", "ghost", "one-by-one"])
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("at", [0, ENTRIES, ENTRIES + LEFT, -1])
def test_a_group_with_a_row_that_is_not_finite_adds_nothing(clipping, bad, at):
    X, groups = rows(70), np.arange(70) // 7
    X[15, at] = bad
    left = groups != 2
    found = integers(X, options={"groups": groups}, clipping=clipping)
    without = integers(X[left], options={"groups": groups[left]}, clipping=clipping)
    assert np.array_equal(found, without)


# ---------------------------------------------------------------- groups and private numbers


@pytest.mark.parametrize("count", [1, 10, 3000])
def test_a_replaced_group_of_any_size_moves_the_sum_by_at_most_two_clip_norms(count):
    others, sums = rows(30), []
    for sign, size in ((-1.0, count), (1.0, 2)):
        own = np.ones((size, FEATURES))
        own[:, : ENTRIES + LEFT] *= sign
        own[:, -T * Q :] *= sign
        groups = np.r_[np.zeros(size, int), 1 + np.arange(30) // 3]
        sums.append(integers(np.vstack([own, others]), options={"groups": groups}))
    assert 1.9 < unit_norm(sums[0] - sums[1]) * GRID / CLIP <= 2.0


def test_with_a_private_number_of_units_each_is_rounded_by_itself():
    X = rows(150)
    options = {"options": {"n_public": 100}}
    whole = integers(X, **options)
    assert np.array_equal(whole, sum(integers(x, **options) for x in (X[:1], X[1:70], X[70:])))
    order = np.random.default_rng(0).permutation(150)
    assert np.array_equal(whole, integers(X[order], **options))
    assert np.array_equal(whole, integers(X, clipping="one-by-one"))


def test_microbatches_need_a_public_number_of_records():
    for options in ({"n_public": 10}, {"groups": np.arange(10)}):
        with pytest.raises(UnsupportedAccounting, match="public number"):
            sum_of(PrivateRecords(rows(10), **options), clipping="microbatch")


# ---------------------------------------------------------------- positions


def test_positions_are_uniform_injections():
    """Chi-square of the place of one unit, and of the block that two share; false alarms below 1e-6."""
    n, draws = 40, 4000
    records = PrivateRecords(rows(n))
    with PrivacySession(records, epsilon=1.0, delta=1e-5, minibatches=True) as session:
        (plan,) = session.plan_batches([BatchGroup(draws, 10)], n_units=n)
        spread = number_of_positions(plan, n)
        found = [session.draw(plan, records, positions=True) for _ in range(draws)]
    for batch in found:
        assert np.unique(batch._positions).size == batch._units.size <= spread - 1
        assert 0 <= batch._positions.min(initial=0) <= batch._positions.max(initial=0) < spread
    for pick in (0, -1):
        positions = [batch._positions[pick] for batch in found if batch._units.size]
        counts = np.bincount(positions, minlength=spread)
        statistic = ((counts - len(positions) / spread) ** 2).sum() / (len(positions) / spread)
        assert statistic < chi2.isf(2e-7, spread - 1)
    gaps = [(b._positions[0] - b._positions[-1]) % spread for b in found if b._units.size > 1]
    counts = np.bincount(gaps, minlength=spread)[1:]
    statistic = ((counts - len(gaps) / (spread - 1)) ** 2).sum() / (len(gaps) / (spread - 1))
    assert statistic < chi2.isf(2e-7, spread - 2)


def test_there_is_a_place_for_one_unit_more_than_can_be_drawn():
    rare = BatchPlan(1, "Poisson", 1e-3, 100, 100_000, 1.0, 1.0)
    assert 200 < number_of_positions(rare, 100_000) < 300
    assert number_of_positions(PLAN, 200) <= 201
    fixed = BatchPlan(1, "without replacement", 0.3, 60, 200, 1.0, 1.0)
    assert number_of_positions(fixed, 200) == 60


def test_a_batch_gets_positions_where_they_are_needed():
    X = rows(50)
    for options, placed in (({}, True), ({"n_public": 50}, False), ({"groups": np.arange(50)}, False)):
        records = PrivateRecords(X, **options)
        unit = records.shape.unit
        with PrivacySession(records, epsilon=1.0, delta=1e-5, minibatches=True, unit=unit) as session:
            (plan,) = session.plan_batches([BatchGroup(2, 20)], n_units=50)
            batch = session.draw(plan, records, positions=True)
            assert (batch._positions is not None) == placed
            assert session.gaussian(sum_of(records, batch=batch), plan).shape == (SIZE,)
            if placed:
                with pytest.raises(ValueError, match="positions=True"):
                    sum_of(records, batch=session.draw(plan, records))
                with pytest.raises(TypeError):
                    batch.__reduce__()


def test_the_margin_of_ghost_sums_is_for_ghost_sums_alone():
    """Without a sum of outer products the pieces are added in the same way."""
    X, plain = rows(150), lambda X, y: pieces(X, y)[:2]
    settings = {"function": plain, "size": SIZE - P * Q}
    found = {way: integers(X, clipping=way, **settings) for way in ("materialized", "ghost")}
    assert np.array_equal(*found.values())
    assert not np.array_equal(integers(X), integers(X, clipping="ghost"))


def test_two_threads_add_the_same_integers(monkeypatch):
    X, found = rows(1000), []
    large = lambda X, y: [Vectors(np.tile(X.astype(np.float32), 4))]  # noqa: E731
    for threads in ("1", "2"):
        monkeypatch.setenv("SKDP_NUM_THREADS", threads)
        found.append(integers(X, function=large, size=4 * FEATURES))
    assert np.array_equal(*found)


@pytest.mark.parametrize("clipping", METHODS)
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_marked_functions_are_probed_once_and_give_the_same_integers(clipping, make):
    kinds, X, y = PieceKinds(), rows(130), np.zeros(130)
    probes = []

    def scaled(by):
        def function(Z, _):
            probes.append(Z.shape[0] == 3 and (Z != 0).sum() == 0)
            return pieces(by * Z, None)

        return function

    for by in (1.0, 0.3, 2.0):
        marked = integers(make(X), y, function=kinds.of(scaled(by)), clipping=clipping)
        assert sum(probes) == 1  # of the first function
        assert np.array_equal(
            marked, integers(make(X), y, function=lambda Z, _, by=by: pieces(by * Z, _), clipping=clipping)
        )
    integers(X.astype(np.float32), y, function=kinds.of(scaled(1.0)), clipping=clipping)
    assert sum(probes) == 2  # rows of another form


def test_a_marked_function_of_other_pieces_is_refused_at_its_first_rows():
    """Else float64 would be added within the margin of float32, or an entry at another place."""
    kinds, X = PieceKinds(), rows(20)
    integers(X, function=kinds.of(pieces))
    others = [
        lambda Z, y: pieces(Z, y, np.float64),
        lambda Z, y: [Vectors(np.ones((len(Z), SIZE), dtype=np.float32))],
        lambda Z, y: pieces(Z, y)[::-1],
        lambda Z, y: pieces(Z, y)[:2],
    ]
    for other in others:
        total = sum_of(PrivateRecords(X), function=kinds.of(other))
        with pytest.raises(ValueError, match="function must return"):
            total._value.on_grid(GRID)


def test_one_by_one_the_function_sees_single_rows_and_otherwise_at_most_64():
    seen = []

    def spy(X, y):
        seen.append(len(X))
        return pieces(X, y)

    integers(rows(150), function=spy, clipping="one-by-one")
    assert set(seen[2:]) == {1}
    assert len(seen) == 152
    for settings, wanted in (
        ({}, [64, 64, 22]),
        ({"clipping": "microbatch", "microbatch_size": 30}, [60, 60, 30]),
        ({"clipping": "microbatch", "microbatch_size": 100}, [64, 36, 50]),
        ({"options": {"groups": np.repeat([0, 1], [140, 10])}}, [64, 64, 22]),
        ({"options": {"n_public": 150}}, [64, 64, 22]),
    ):
        seen.clear()
        integers(rows(150), function=spy, **settings)
        assert seen[2:] == wanted


# ---------------------------------------------------------------- what is refused


def test_a_wrong_function_is_refused_before_anything_is_read():
    records, seen = PrivateRecords(rows(77), np.ones(77)), []

    def spy(result):
        def function(X, y):
            seen.append((np.abs(X).max(), np.abs(y).max()))
            return result(X)

        return function

    for result, error, words in (
        (lambda X: [], ValueError, "pieces of"),
        (lambda X: [X], TypeError, "list of pieces"),
        (lambda X: [Vectors(X[:1])], ValueError, "row for each row"),
        (lambda X: [Vectors(X[:, :3])], ValueError, "pieces of"),
        (lambda X: [Vectors(X), Vectors(X[:, :0])], ValueError, "without entries"),
        (lambda X: [Vectors(X.astype([np.float32, np.float64][len(X) > 1]))], ValueError, "same kinds"),
        (lambda X: [Vectors(X.astype(int))], TypeError, "values must be"),
        (lambda X: [Outer(X, X[:, 0])], ValueError, "right must have 2"),
        (lambda X: [Outer(X, X.astype(np.float32))], TypeError, "one dtype"),
        (lambda X: [OuterSum(X[:, None], X[:, :, None])], ValueError, "agree"),
    ):
        with pytest.raises(error, match=words) as refused:
            sum_of(records, function=spy(result), size=FEATURES)
        assert "77" not in str(refused.value)
    assert max(max(pair) for pair in seen) == 0.0


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"clip": 0.0}, "clip_norm"),
        ({"clip": math.nan}, "clip_norm"),
        ({"clip": 1e-9}, "clip_norm"),
        ({"size": 0}, "size"),
        ({"clipping": "vanilla"}, "clipping"),
        ({"microbatch_size": 4}, "goes with"),
        ({"clipping": "microbatch", "microbatch_size": None}, "goes with"),
        ({"clipping": "microbatch", "microbatch_size": 0}, "microbatch_size"),
        ({"clipping": "microbatch", "microbatch_size": 2.5}, "microbatch_size"),
        ({"clipping": "microbatch", "microbatch_size": True}, "microbatch_size"),
    ],
)
def test_bad_settings_are_refused(settings, words):
    with pytest.raises(ValueError, match=words):
        sum_of(PrivateRecords(rows(10)), **settings)


def test_a_grid_that_does_not_fit_is_refused():
    for unit in (CLIP / 5, CLIP * 2.0**-52):
        with pytest.raises(ValueError, match="another unit"):
            integers(rows(10), unit=unit)
