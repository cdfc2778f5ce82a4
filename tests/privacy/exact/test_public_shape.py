"""What is public about the data is one object, and nothing else of the number of rows is looked at.

With groups the number of rows is private, under add-remove the number of units too. The neighbours here have
other numbers of them, across every size at which the package changes how it works.
"""

import ast
import dataclasses
import inspect
import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

import skdp
from skdp.exceptions import PrivacyLeakWarning, UnsupportedAccounting, UtilityWarning
from skdp.linear_model.additive.additive_fit import AdditiveFit
from skdp.losses import LogisticLoss, MultinomialLoss, SquaredLoss
from skdp.privacy import BudgetAccountant, PrivacySession, PrivateRecords, PublicShape
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.privacy.shape import MOST_PER_PUBLIC, MOST_UNITS
from skdp.privacy.statistics import (
    gradient_scores,
    mean_losses,
    mean_sup_gradient,
    recursive_gradient,
    target_count,
)
from tests import texts
from tests.kinds import of_each_kind

PACKAGE = Path(skdp.__file__).parent
PRIVATE = {
    name: texts.as_classifier(cls)
    for name, cls in skdp.all_estimators()
    if "epsilon" in inspect.signature(cls).parameters
    and not name.startswith("DPLocalObjective")  # protects records only
}
each_private = pytest.mark.parametrize("name", sorted(PRIVATE))


def made(name, **params):
    known = inspect.signature(PRIVATE[name]).parameters
    settings = {"classes": (0, 1), "max_iter": 6, "n_public": None, **params}
    settings.update(texts.required(PRIVATE[name]))
    if "selection" in known and "refit" in known:
        settings.pop("max_iter")
    return PRIVATE[name](**{k: v for k, v in settings.items() if k in known})


def table(name, n=40, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, (X[:, 0] > 0).astype(float if not is_classifier(PRIVATE[name]()) else int)


def grouped(sizes, seed=0):
    """Rows of as many groups as there are sizes."""
    rng = np.random.default_rng(seed)
    groups = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.normal(size=(len(groups), 3))
    return X, (X[:, 0] > 0).astype(int), groups


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        yield


# ------------------------------------------------------------------ the object


def test_a_shape_holds_rows_only_where_they_are_public():
    X, y, groups = grouped([3, 1, 4])
    plain = PrivateRecords(X, y).shape
    assert (plain.n_rows, plain.n_records, plain.n_groups, plain.n_units) == (8, 8, None, 8)
    of_groups = PrivateRecords(X, y, groups=groups).shape
    assert (of_groups.n_rows, of_groups.n_groups, of_groups.n_units) == (None, 3, 3)
    for groups_ in (None, groups):
        public = PrivateRecords(X, y, groups=groups_, n_public=7).shape
        assert (public.n_rows, public.n_groups, public.n_units) == (None, None, 7)
        assert public.most_units == MOST_UNITS
        assert public.usual_units == 7 * MOST_PER_PUBLIC
    assert (plain.most_units, plain.usual_units, plain.total_weight) == (8, 8, 1.0)
    sparse = PrivateRecords(sp.csr_matrix(X.astype(np.float32)), y).shape
    assert (sparse.container, sparse.dtype, sparse.device) == ("csr", "float32", "cpu")


def test_neighbours_have_one_shape():
    """Groups of another size; another density; another number of records where n_public is given."""
    X, y, groups = grouped([3, 1, 4])
    first = PrivateRecords(X, y, groups=groups)
    X2, y2, groups2 = grouped([5000, 1, 4])
    second = PrivateRecords(X2, y2, groups=groups2)
    assert first.shape == second.shape
    assert repr(first) == repr(second)
    one, two = (PrivateRecords(A, np.zeros(len(A)), n_public=9) for A in (X, X[1:]))
    assert one.shape == two.shape
    assert repr(one) == repr(two)
    full, empty = (PrivateRecords(sp.csr_matrix(A), y) for A in (X, 0 * X))
    assert full.shape == empty.shape


def test_derived_records_keep_what_is_public():
    X, y, groups = grouped([3, 1, 4])
    r = PrivateRecords(X, y, groups=groups, n_public=5, n_classes=2, fit_intercept=True)
    for other in (r.centered(1.0), r.residual(np.zeros(4))):
        assert other.shape == r.shape
    assert r.restricted([0, 2]).shape == r.shape.with_features(2)
    assert r.with_intercept(0.1).shape == dataclasses.replace(r.shape, intercept_value=0.1)


# ------------------------------------------------------------------ the readers

# Every place outside the kernels that touches the real number of rows or units, and why it may.
READERS = {
    # what is public is made here
    ("privacy/shape.py", "of"),
    ("base/fit.py", "_count_records"),
    # the checks of tables: one entry a row, checked and coded
    ("fitting/targets.py", "table_records"),
    ("base/cells.py", "as_table"),
    ("base/user_tables.py", "_validate_on_device"),
    ("base/user_tables.py", "encode_groups"),
    ("linear_model/sparse_erm/fit.py", "_batch_codes"),
    # the samplers draw for every real unit; what they draw is secret
    ("privacy/records.py", "__init__"),
    ("privacy/session/base.py", "draw"),
    ("privacy/session/base.py", "partition"),
    ("privacy/session/group_rows.py", "limit_rows"),
    # rows on a device, in calls of 64
    ("privacy/gradients/function.py", "_in_calls"),
    ("privacy/gradients/device.py", "__call__"),
    # predictions: rows of whoever asks, after the fit
    ("fitting/any_cells.py", "csr_scores"),
    ("linear_model/additive/curves.py", "contributions"),
    ("linear_model/additive/function.py", "contributions"),
    # inputs and labels of a transfer, which are public and released
    ("linear_model/slkt/solver.py", "inputs"),
    ("linear_model/slkt/solver.py", "teach"),
    # sums over all rows, row by row: the value of a statistic, never a decision
    ("privacy/records.py", "averaged"),
    ("privacy/rows.py", "kernel_norms"),
    ("privacy/rows.py", "largest"),
    ("privacy/rows.py", "rows_of"),
    ("privacy/statistics/cbow_gradient.py", "_units"),
    ("privacy/statistics/clipped_sum.py", "_blocks"),
    ("privacy/statistics/column_counts.py", "words"),
    ("privacy/statistics/norm_counts.py", "_count"),
    ("privacy/statistics/norm_counts.py", "_largest_entries"),
    ("privacy/statistics/row_moments.py", "_blocks"),
    ("privacy/statistics/row_moments.py", "fill_block"),
    ("privacy/statistics/row_moments.py", "words"),  # for the number of threads, which moves no bit
    ("privacy/partitions/part.py", "answer"),  # no unit of a batch lies beyond the part's rows
    ("privacy/partitions/part.py", "shape"),  # of one part: only the sum over all parts goes on
    ("base/blocks.py", "check_groups"),  # the last block has no upper end: as many True as it has rows
    ("privacy/statistics/minimizer.py", "objective_of"),
    ("privacy/statistics/votes.py", "block_vote"),
    # gradients of one block of positions: how many of its positions have a record is in their sum alone
    ("fitting/recursive.py", "pair_of"),
    ("privacy/pieces.py", "dense"),
    ("privacy/pieces.py", "n_rows"),
    ("privacy/gradients/parts.py", "_listed"),
    ("privacy/gradients/parts.py", "_taken"),
    ("privacy/gradients/blocks.py", "_weighted"),
    ("privacy/gradients/projections.py", "_largest_square"),
    ("privacy/gradients/projections.py", "bound_of"),
    ("privacy/gradients/projections.py", "estimated_norms"),
    ("privacy/gradients/microbatches.py", "_means"),
}
PRIVATE_NAMES = {"_count", "n_real_units", "n_rows", "nnz"}
DATA_NAMES = {"X", "_X", "y", "_y", "rows", "block", "data", "_groups", "groups", "labels"}


def _name(node):
    return getattr(node, "attr", None) or getattr(node, "id", None)


def _reads(node):
    """Whether an expression asks how many rows, units or entries the data have."""
    if isinstance(node, ast.Attribute) and node.attr in PRIVATE_NAMES:
        return isinstance(node.ctx, ast.Load)
    if isinstance(node, ast.Subscript) and _name(node.value) == "shape":
        inner = node.value.value if isinstance(node.value, ast.Attribute) else None
        first = isinstance(node.slice, ast.Constant) and node.slice.value == 0
        return first and _name(inner) in DATA_NAMES
    if isinstance(node, ast.Call) and _name(node.func) == "len" and len(node.args) == 1:
        return _name(node.args[0]) in DATA_NAMES
    return False


def _readers(path):
    tree = ast.parse(path.read_text())
    parents = {child: node for node in ast.walk(tree) for child in ast.iter_child_nodes(node)}
    for node in ast.walk(tree):
        if _reads(node):
            while node is not None and not isinstance(node, ast.FunctionDef):
                node = parents.get(node)
            yield (path.relative_to(PACKAGE).as_posix(), node.name if node else "module")


def test_only_these_places_read_the_number_of_rows():
    """A reader that is not on the list may leak: put what it needs into `PublicShape`, or argue for it there."""
    files = []
    for room in ("base", "fitting", "linear_model", "privacy", "reproductions", "text"):
        files += sorted((PACKAGE / room).rglob("*.py"))
    found = {reader for path in files for reader in _readers(path)}
    assert found - READERS == set()
    assert READERS - found == set()


def test_the_enumeration_sees_a_reader():
    """The mutant: the code as it was, which this test must refuse."""
    old = """
def on_grid(self, unit):
    bits = 20 if len(self.y) <= 2**21 else 16
    return self.records._rows.n_real_units
"""
    assert sum(_reads(node) for node in ast.walk(ast.parse(old))) == 2


# ------------------------------------------------------------------ the holes that were


def test_second_moments_are_rounded_alike_whatever_the_number_of_rows():
    """The rounding once followed from the number of rows: one group changed every record's integers."""
    options = {"adjacency": "replace-one"}
    unit = 2.0**-24
    X, y, groups = grouped([1] * 8)
    first = PrivateRecords(X, y, groups=groups).second_moment(1.0, 1.0, **options)
    for size in (2, 100, 9000):
        X2 = np.vstack([X, np.repeat(X[:1], size - 1, axis=0)])
        y2 = np.append(y, np.repeat(y[:1], size - 1))
        groups2 = np.append(groups, np.zeros(size - 1, dtype=int))
        second = PrivateRecords(X2, y2, groups=groups2).second_moment(1.0, 1.0, **options)
        change = (first._value.on_grid(unit) - second._value.on_grid(unit)).astype(float)
        # The same rows more often, each weighing less: all that is left is rounding of one group.
        assert np.linalg.norm(change) <= first.l2 / unit * 2.0**-10
        assert grid.gaussian_grid(first, 5.0, "replace-one") == grid.gaussian_grid(second, 5.0, "replace-one")


@pytest.mark.parametrize("rows", [2, 2**14 + 1, pytest.param(2**23, marks=pytest.mark.slow)])
def test_no_number_of_rows_makes_a_second_moment_fail(rows):
    """Once an exception after the budget was charged, which one group could cause."""
    from skdp.privacy.statistics.row_moments import RowMoments

    y = np.broadcast_to(1.0, rows)
    X = np.broadcast_to(np.ones((1, 1)), (rows, 1))
    groups = np.zeros(rows, dtype=np.int64)
    moments = RowMoments(X, y, (groups, np.array([rows])), np.arange(1), None, 1.0, 1.0, 0.0, 1.0)
    (xx, xy), (_, yy) = moments.on_grid(2.0**-20) * 2.0**-20
    # Rows that weigh less than a unit of the grid add nothing: a function of their group alone.
    assert 0 <= xx <= 1
    assert abs(xy - xx) <= 2.0**-10
    assert abs(yy - xx) <= 2.0**-10


def test_sums_of_second_moments_are_exact_in_two_words(monkeypatch):
    """Against Python's integers, with sums far beyond 64 bits below the grid and blocks of a few rows."""
    from skdp.privacy.statistics.row_moments import RowMoments

    monkeypatch.setattr("skdp.privacy.statistics.row_moments._BLOCK_CELLS", 64 * 3)
    rng = np.random.default_rng(3)
    X, y = rng.uniform(-1, 1, size=(500, 2)), rng.uniform(-1, 1, size=500)
    moments = RowMoments(X, y, None, np.arange(2), None, 1.0, 1.0, 0.0, 1.0)
    for unit in (2.0**-30, 2.0**-20, 1e-3, 0.7):
        shift = 20 - int(np.ceil(np.log2(moments.radius / np.sqrt(unit))))
        step = np.sqrt(unit) * 2.0**-shift
        radius = int(moments.radius / step * (1 - 2.0**-40))
        z = moments._integers(slice(0, 500), step, radius, np.empty((500, moments.width)))
        exact = [[sum(int(a) * int(b) for a, b in zip(p, q)) for q in z.T] for p in z.T]
        half = (1 << 2 * shift) >> 1 if shift > 0 else 0
        wanted = [[((v + half) >> 2 * shift) if shift > 0 else v << -2 * shift for v in row] for row in exact]
        assert moments.on_grid(unit).tolist() == wanted


def _charged(rows, **params):
    """What the accountant's file says of a fit on so many rows of 40 groups."""
    accountant = BudgetAccountant(2.0, 1e-4)
    sizes = np.full(40, 1)
    sizes[0] += rows - 40
    X, y, groups = grouped(sizes)
    model = skdp.DPSGDClassifier(
        classes=(0, 1), unit="group", accountant=accountant, epsilon=1.0, delta=1e-5, **params
    )
    model.fit(X, y, groups=groups)
    (charge,) = accountant._read()[1][None]
    return charge, accountant.spent(), accountant.remaining()


@pytest.mark.parametrize("batch_size", [30, 41, 100])
def test_the_accountant_does_not_tell_how_many_rows_the_groups_have(batch_size):
    """Once the mu of the charge (.2367 or none) told whether there are more than batch_size rows."""
    found = [_charged(rows, batch_size=batch_size, max_iter=2) for rows in (40, 99, 101, 500)]
    assert all(charge == found[0] for charge in found)


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_n_public_decides_whether_a_fit_samples(adjacency):
    for n in (30, 50, 90):
        for n_public, samples in ((40, True), (39, False)):
            accountant = BudgetAccountant(2.0, 1e-4)
            model = skdp.DPSGDClassifier(
                classes=(0, 1), adjacency=adjacency, n_public=n_public, batch_size=39, max_iter=2,
                accountant=accountant,
            )  # fmt: skip
            model.fit(*table("DPSGDClassifier", n))
            (charge,) = accountant._read()[1][None]
            assert (charge.mu == np.inf) is samples


def test_fixed_size_batches_need_the_real_number():
    X, y = table("DPSGDClassifier")
    accountant = BudgetAccountant(1.0, 1e-4)
    for name in ("DPSGDClassifier", "DPSparseERMClassifier"):
        extra = {"sampling": "without_replacement"} if name == "DPSGDClassifier" else {}
        model = made(name, n_public=40, batch_size=5, accountant=accountant, **extra)
        with pytest.raises(ValueError, match="n_public"):
            model.fit(X, y)
    assert accountant.ledger() == []  # nothing was read, or charged


@pytest.mark.parametrize("n", [1, 50, 3000])
def test_grids_do_not_follow_from_a_private_number(n):
    """Of every statistic, under add-remove: grid, noise and sensitivity of all mechanisms."""
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(n, 3)), rng.integers(0, 2, n).astype(float)
    huge = 2**50  # so that a grid that followed from n would be coarse
    for n_public in (20, huge):
        r = PrivateRecords(X, y, n_public=n_public)
        theta, loss = np.zeros(3), LogisticLoss()
        found = [
            grid.gaussian_grid(bounded, 64.0, "add-remove")
            for bounded in (
                r.mean_gradient(loss, theta, 1.0),
                recursive_gradient(r, loss, theta, theta, momentum=0.5, clip_norm=1.0, clip_diff_norm=1.0),
                r.norm_count(1.0),
                target_count(r, 1.0),
            )
        ]
        found += [
            grid.grid_of(bounded, 2.0**-60 / n_public, additive=additive)
            for bounded in (mean_losses(r, loss, theta[None], 1.0), mean_sup_gradient(r, loss, theta, 1.0))
            for additive in (True, False)
        ]
        key = (n_public, "grids")
        assert GRIDS.setdefault(key, found) == found


GRIDS: dict = {}


FACTS = ("minibatches", "set_aside", "mu2")


def test_what_a_session_draws_and_charges_is_the_same_for_every_size_of_a_group(monkeypatch):
    """Words of the key stream that are asked for before the first release, and the reserved row."""
    asked = []
    honest = PrivacySession._reserve
    monkeypatch.setattr(
        PrivacySession,
        "_reserve",
        lambda session, accountant, **seeded: (
            asked.append(
                (
                    session._ledger.minibatches,
                    session._ledger.set_aside,
                    session._ledger.mu2,
                    session._keys.context,
                )
            ),
            honest(session, accountant, **seeded),
        )[1],
    )
    for name in sorted(PRIVATE):
        if not _takes_groups(name):
            continue
        seen = []
        for sizes in ([4] * 10, [40] + [4] * 9, [1] + [4] * 9):
            X, y, groups = grouped(sizes)
            asked.clear()
            made(name, unit="group").fit(X, y if is_classifier(PRIVATE[name]()) else y + 0.5, groups=groups)
            seen.append(list(asked))
        assert seen[0] == seen[1] == seen[2], name


def _takes_groups(name):
    try:
        made(name, unit="group")._check_parameters()
    except ValueError:
        return False
    return True


# ------------------------------------------------------------------ sums that are too large


def test_a_sum_that_wraps_is_released_modulo_two_to_the_64():
    """Noise is added modulo 2^64, so a wrapped sum is a function of the exact noisy one."""
    from skdp.privacy.bounded import BoundedStatistic, Source
    from skdp.privacy.noise import KeyStream

    exact = 2**63 + 12345  # what an int64 cannot hold
    wrapped = np.array([exact - 2**64], dtype=np.int64)
    source = Source(lambda unit: wrapped, lambda: wrapped.astype(float), 0, np.inf, usual=1.0)
    bounded = BoundedStatistic.from_source(source, (1,), l2=1.0)
    drawn_with = grid.gaussian_grid(bounded, 8.0, "zero-out")
    released, row = gaussian_release.gaussian(bounded, drawn_with, KeyStream(1))
    zero = Source(lambda unit: 0 * wrapped, lambda: wrapped.astype(float), 0, np.inf, usual=1.0)
    noise, _ = gaussian_release.gaussian(
        BoundedStatistic.from_source(zero, (1,), l2=1.0), drawn_with, KeyStream(1)
    )
    noisy = (exact + round(noise[0] / row["grid"])) % 2**64
    assert round(released[0] / row["grid"]) % 2**64 == pytest.approx(noisy, abs=2**11)


def test_choices_never_see_a_wrapped_sum():
    """Selections and sparse vectors use the bound that no data set can pass."""
    r = PrivateRecords(np.ones((5, 3)), np.zeros(5), n_public=5)
    for bounded in (
        gradient_scores(r, SquaredLoss(), np.zeros(3), 1.0),
        mean_sup_gradient(r, SquaredLoss(), np.zeros(3), 1.0),
        mean_losses(r, SquaredLoss(), np.zeros((1, 3)), 1.0),
    ):
        unit = grid.grid_of(bounded, 1e-30)
        assert bounded._value.magnitude >= bounded.linf * MOST_UNITS
        assert bounded._value.magnitude / unit <= 2.0**61
        assert bounded._value.on_grid(unit).dtype == np.int64


# ------------------------------------------------------------------ extreme values

HUGE, TINY = 1.7e308, 5e-324
EDGE = 2.0**512 * (1 - 2.0**-53)  # squared, and times another, the largest that float64 holds
EXTREMES = {
    "norms at the end of float64": [EDGE, -EDGE, 2.0**511.5],
    "one huge record": [HUGE],
    "huge of both signs": [HUGE, -HUGE, HUGE],
    "denormals": [TINY, -TINY, 2.2e-308],
    "zeros": [0.0, -0.0],
    "all of them": [HUGE, -HUGE, TINY, -0.0, 1e200, -1e-200],
}


def extreme(name, kind, n=40, where=0):
    X, y = table(name, n, seed=1)
    for i, value in enumerate(EXTREMES[kind]):
        X[(where + 5 * i) % n] = value
        X[(where + 5 * i + 1) % n, i % 3] = -value
        if not is_classifier(PRIVATE[name]()):
            y[(where + 5 * i) % n] = value
    return X, y


def quietly(fit):
    """Any warning is an error but those that follow from public numbers."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UtilityWarning)
        warnings.filterwarnings("ignore", message="delta=.* is too large for")
        warnings.filterwarnings("ignore", message="random_state=", category=PrivacyLeakWarning)
        return fit()


@pytest.mark.parametrize(
    "kind", [pytest.param(k, marks=pytest.mark.slow) if i else k for i, k in enumerate(sorted(EXTREMES))]
)
@pytest.mark.parametrize(
    "adjacency", ["add-remove", *(pytest.param(a, marks=pytest.mark.slow) for a in ("replace-one", "zero-out"))]
)
@pytest.mark.parametrize("where", [0, pytest.param(3, marks=pytest.mark.thorough)])
@each_private
def test_extreme_records_print_nothing(name, where, adjacency, kind):
    """A warning that only some data cause is an output that no epsilon covers."""
    public = {"adjacency": adjacency, "n_public": 40 if adjacency == "add-remove" else None}
    if "n_public" not in inspect.signature(PRIVATE[name]).parameters:  # its counts are public: no add-remove
        public = {"adjacency": "replace-one" if adjacency == "add-remove" else adjacency}
    X, y = extreme(name, kind, where=where)
    forms = (X, sp.csr_matrix(X), np.asfortranarray(X))
    takes_sparse = not issubclass(PRIVATE[name], AdditiveFit)
    for A in (form for form in forms if takes_sparse or not sp.issparse(form)):
        model = quietly(lambda A=A, y=y: made(name, **public).fit(A, y))
        released = next(
            getattr(model, kept) for kept in ("scale_", "parameters_", "coef_", "linear_") if hasattr(model, kept)
        )
        assert np.isfinite(released).all()
    if "max_weight" in model.get_params():
        weights = np.resize([1.0, TINY, HUGE, 0.0, -0.0], 40)
        quietly(lambda X=X, y=y, w=weights: made(name, max_weight=2.0, **public).fit(X, y, sample_weight=w))
    if _takes_groups(name):
        groups = np.resize(np.arange(8), 40)
        quietly(lambda X=X, y=y, g=groups: made(name, unit="group", **public).fit(X, y, groups=g))


@pytest.mark.parametrize("kind", ["huge of both signs", pytest.param("denormals", marks=pytest.mark.thorough)])
@pytest.mark.parametrize("name", of_each_kind(PRIVATE, pytest.mark.thorough))
def test_extreme_float32_records_print_nothing(name, kind):
    X, y = extreme(name, kind)
    X = np.clip(X, -3.4e38, 3.4e38).astype(np.float32)
    quietly(lambda: made(name).fit(X, y))


def test_the_largest_norm_of_groups_warns_of_nothing():
    """`np.maximum.at` once printed "invalid value encountered" for one finite record, in 11 of 20 fits."""
    rng = np.random.default_rng(0)
    for trial in range(40):
        X = rng.normal(size=(200, 4))
        X[trial] = HUGE
        r = PrivateRecords(X, np.zeros(200), groups=np.resize(np.arange(7), 200))
        with warnings.catch_warnings(), np.errstate(all="warn"):
            warnings.simplefilter("error")
            for bounded in (
                r.norm_count(1.0),
                r.norm_count(1.0, norm="max"),
                target_count(r, 1.0, absolute=True),
                r.norm_count(1.0, loss=MultinomialLoss(2), theta=np.zeros((4, 2)), each_row=True),
            ):
                assert np.isfinite(bounded._value.plain()).all()


def test_unsupported_accounting_is_still_the_error_of_add_remove_without_replacement():
    with pytest.raises((UnsupportedAccounting, ValueError)):
        skdp.DPSGDClassifier(adjacency="add-remove", n_public=5, sampling="without_replacement", batch_size=2).fit(
            np.eye(4), [0, 1, 0, 1]
        )


def test_a_shape_is_what_it_says():
    assert PublicShape("record", 1, 1).counted() == "1 record"


@pytest.mark.parametrize("name", ["DPIGHTClassifier", "DPSGDRegressor", "DPSparseERM"])
def test_errors_about_lengths_do_not_say_how_many_rows_there_are(name):
    X, y, groups = grouped([7, 20, 10])
    wrong = [
        (X, y, {"groups": groups[:-2]}),
        (X, y[:-2], {"groups": groups}),
        (X, np.column_stack([y, y]), {"groups": groups}),
        (X, y, {"groups": groups, "sample_weight": np.ones(5)}),
    ]
    for A, b, extra in wrong:
        with pytest.raises((ValueError, TypeError)) as refused:
            made(name, unit="group", max_weight=1.0).fit(A, b, **extra)
        assert not any(str(n) in str(refused.value) for n in (37, 35)), str(refused.value)


def test_labels_of_groups_may_be_tuples_of_any_length():
    X, y, groups = grouped([3, 4, 2])
    same = [("home", int(g)) for g in groups]
    other = [("home", int(g)) if g else ("home", 0, "b") for g in groups]
    for labels in (same, other):
        model = made("DPIGHTClassifier", unit="group").fit(X, y, groups=labels)
        assert model.privacy_.public["n_groups"] == 3


def test_add_remove_assumes_that_somebody_remains():
    """The empty table is refused by every estimator, so it cannot be a neighbour."""
    model = made("DPIGHTClassifier", adjacency="add-remove", n_public=40)
    report = model.fit(*table("DPIGHTClassifier")).privacy_
    assert any("at least one record or group remains" in line for line in report.assumptions)


def test_declared_classes_are_part_of_the_shape_and_inferred_ones_are_not(monkeypatch):
    shapes = []
    honest = skdp.DPIGHTClassifier.solve
    monkeypatch.setattr(
        skdp.DPIGHTClassifier,
        "solve",
        lambda self, session, problem: (shapes.append(problem.records.shape), honest(self, session, problem))[1],
    )
    for classes in ((0, 1, 2), None):
        made("DPIGHTClassifier", classes=classes).fit(*table("DPIGHTClassifier"))
    assert [shape.n_classes for shape in shapes] == [3, None]
