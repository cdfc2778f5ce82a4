"""Blocks as an adversary sees them: neighbours, cut groups, blocks that lie or change, and the order of work."""

import itertools
import logging
import pickle
import warnings
from collections import Counter

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import chisquare

import skdp
from skdp import DPGDClassifier, DPIGHTClassifier, DPLogisticRegression, DPStandardScaler
from skdp.base.blocks import Blocks, group_bucket
from skdp.base.fit import PrivateFit
from skdp.base.partitions import problem_of_blocks
from skdp.fitting.linear import LinearFit
from skdp.losses import LogisticLoss
from skdp.privacy import BudgetAccountant, PrivacySession, noise, statistics
from skdp.privacy.partitions import rows as rows_module
from skdp.privacy.partitions.client import Partitions
from skdp.privacy.rows import Rows
from tests.blocks.test_fits import SAMPLERS, released
from tests.blocks.test_statistics import of_statistics
from tests.blocks.toys import Toy, blocks, cut, partitioned
from tests.kinds import quick_alone
from tests.privacy.attacks.test_attacks_fits import Claim, half_the_noise
from tests.privacy.conftest import one_calibration  # noqa: F401
from tests.privacy.exact.test_replay import Tape, fits_take_every_step, make, pairs  # noqa: F401
from tools.make_statistics_table import EXAMPLES

pytestmark = pytest.mark.filterwarnings("ignore")

N = 60  # rows of `pairs`, of which the first one changes
TAKE_BLOCKS = sorted(
    name for name, cls in skdp.all_estimators() if issubclass(cls, PrivateFit) and cls._no_blocks is None
)
QUICK = ("DPLogisticRegression", "DPLinearRegression", "DPAdaSSPRegressor", "DPSGDClassifier")
PLACES = {  # where the changed row lies: by how many rows it is moved, and cuts
    "first": (0, [0, 20, 40, N]),
    "only": (0, [0, 1, 1, 40, N]),
    "last": (-1, [0, 20, 20, 40, N]),
    "single": (0, [0, N]),
}


def data_of(name, X, y):
    return (X, None if "Scaler" in name else y)


# ---------------------------------------------------------------- neighbours


class View:
    """All of a fit that is not a released number."""

    def __init__(self, monkeypatch, caplog):
        self.patch, self.caplog = monkeypatch, caplog

    def of(self, name, place, table, y, adjacency, drop=False, **more):
        """Fit, and return the model and what else can be seen."""
        shift, cuts = PLACES[place]
        X, t = (np.roll(a, shift, axis=0) for a in (table, y))
        given = cut(cuts, *data_of(name, X, t))
        if drop:  # the row is missing, and with it perhaps its whole block
            given = [
                tuple(None if a is None else self.without(a, shift, i, cuts) for a in b)
                for i, b in enumerate(given)
            ]
        self.patch.setattr(rows_module, "_keys", itertools.count())
        self.caplog.clear()
        engine = Toy(given)
        with warnings.catch_warnings(record=True) as warned, self.caplog.at_level(logging.DEBUG):
            warnings.simplefilter("always")
            model = make(name, adjacency=adjacency, **more).fit(engine)
        requests = [(f.__qualname__, pickle.dumps(request), own) for f, request, own in engine.requests]
        said = (
            [str(w.message) for w in warned],
            [record.getMessage() for record in self.caplog.records if record.name.startswith("skdp")],
        )
        facts = [part.facts for part in engine.parts]
        return model, requests, said, facts

    @staticmethod
    def without(array, shift, index, cuts):
        holds = index == (0 if shift == 0 else len(cuts) - 2)
        return array[1:] if holds and shift == 0 else array[:-1] if holds else array


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", quick_alone(QUICK, TAKE_BLOCKS, pytest.mark.slow))
def test_neighbours_differ_in_released_numbers_alone(name, place, monkeypatch, caplog):
    tape, view, largest = Tape(monkeypatch), View(monkeypatch, caplog), 0.0
    for one, other in itertools.islice(pairs(name, seed=1), 4):
        seen = []

        def fit(X, y, seen=seen):
            model, *rest = view.of(name, place, X, y, "replace-one")
            seen.append((model.privacy_.to_json(), repr(model), *rest))
            return model

        largest = max(largest, tape.compare(fit, one, other))
        a, b = seen
        assert a[0] == b[0]
        assert a[1] == b[1]
        assert same_requests(a[2], b[2])
        assert a[3] == b[3]
        assert pickle.dumps(a[4]) == pickle.dumps(b[4])
    assert largest <= 1 + 1e-9
    assert tape.of_vectors >= 0.3  # the pairs hurt


def same_requests(one, other):
    """Whether requests are the same to the last byte, and ask for the same units."""
    return len(one) == len(other) and all(
        a[:2] == b[:2] and repr(a[2]) == repr(b[2]) for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("place", ["only", "last"])
@pytest.mark.parametrize("name", ["DPLogisticRegression", "DPIGHTClassifier"])
def test_a_record_that_is_missing_is_not_seen(name, place, monkeypatch, caplog):
    """Under add-remove: not in requests, warnings, logs or reports, and not where its block becomes empty."""
    tape, view = Tape(monkeypatch), View(monkeypatch, caplog)
    (X, y), _ = next(pairs(name, seed=1))
    seen = []

    def fit(drop):
        model, *rest = view.of(name, place, X, y, "add-remove", drop=drop, n_public=50)
        seen.append((model.privacy_.to_json(), *rest))
        return model

    assert tape.compare(fit, (False,), (True,)) <= 1 + 1e-9
    a, b = seen
    assert a[0] == b[0]
    assert same_requests(a[1], b[1])
    assert a[2] == b[2]


@pytest.mark.parametrize("name", quick_alone(QUICK, TAKE_BLOCKS, pytest.mark.slow))
def test_every_release_has_the_integers_of_the_fit_in_one_place(name, monkeypatch):
    """So the proofs for records in one place hold: no release of either neighbour moves at all."""
    tape = Tape(monkeypatch)
    for pair in itertools.islice(pairs(name, seed=1), 3):
        for X, y in pair:

            def fit(over, X=X, y=y):
                data = data_of(name, X, y)
                model = make(name)
                return model.fit(Toy(cut([0, 0, 1, 7, N], *data))) if over else model.fit(*data)

            assert tape.compare(fit, (False,), (True,)) == 0.0
            assert len(tape.events) > 3


# ---------------------------------------------------------------- an attack on groups

RATE = 1e-9  # the only step stays at 0, and shows its gradient
RUNS = 250  # break a mutant


def group_attack(which, run, *, cuts):
    """A group of two rows at +C against one at -C; its gradient is clipped once."""
    X = np.zeros((41, 1))
    X[19:21] = 1e3 if which else -1e3
    groups = np.r_[np.arange(20), np.arange(19, 40)]
    seen = []
    model = DPGDClassifier(
        epsilon=8.0, delta=1e-2, clip_norm=1.0, learning_rate=RATE, alpha=0.0, max_iter=1, fit_intercept=False,
        unit="group", classes=(0, 1), random_state=run, callback=lambda _, coef: seen.append(float(coef[0, 0])),
    ).fit(Toy(cut(cuts, X, np.zeros(41, dtype=int), groups), group_starts=groups[cuts[:-1]]))  # fmt: skip
    return -seen[-1] / RATE, model.privacy_


def measured(runs=RUNS, **options):
    low = [group_attack(0, 2 * run, **options) for run in range(runs)]
    high = [group_attack(1, 2 * run + 1, **options) for run in range(runs)]
    low_values, high_values = (np.array([value for value, _ in found]) for found in (low, high))
    if np.median(low_values) > np.median(high_values):
        low_values, high_values = -low_values, -high_values
    claim = Claim(high[-1][1])
    threshold = 0.5 * (np.median(low_values) + np.median(high_values))
    return claim.broken_by(low_values, high_values, threshold), claim.reached(low_values, high_values, threshold)


@pytest.fixture
def one_step(monkeypatch, one_calibration):  # noqa: F811
    monkeypatch.setattr(LinearFit, "_closing", lambda fit, problem: ())


@pytest.mark.thorough
@pytest.mark.usefixtures("one_step")
def test_a_group_in_a_block_spends_what_the_report_says():
    broken, reached = measured(1000, cuts=[0, 10, 21, 41])
    assert not broken
    assert 0.6 <= reached <= 1.0


@pytest.mark.thorough
@pytest.mark.usefixtures("one_step")
def test_a_group_that_is_cut_would_break_the_claim(monkeypatch):
    monkeypatch.setattr(Blocks, "check_groups", lambda *_: True)
    assert measured(cuts=[0, 10, 20, 41])[0]


@pytest.mark.thorough
@pytest.mark.usefixtures("one_step")
def test_half_the_noise_would_break_the_claim(monkeypatch):
    half_the_noise(monkeypatch)
    assert measured(cuts=[0, 10, 21, 41])[0]


# ---------------------------------------------------------------- groups


def checked(given, name="DPGDClassifier"):
    """The first pass alone."""
    return problem_of_blocks(make(name, unit="group"), given)


TEXT = np.array(list("aabbbcdde"))


@pytest.mark.parametrize("labels", [np.array([-5, -5, 0, 0, 0, 2, 9, 9, 40]), TEXT, TEXT.astype(object)])
@pytest.mark.parametrize("kind", [blocks, lambda cuts, *data, **form: Toy(cut(cuts, *data), **form)])
def test_a_group_that_is_cut_is_refused_in_every_way_of_cutting(labels, kind):
    n = len(labels)
    X, y = np.arange(2.0 * n).reshape(n, 2), np.arange(n) % 2
    outcomes = Counter()
    for at in itertools.combinations(range(1, n), 2):
        cuts = [0, *at, n]
        starts = labels[[0, *at]]
        between = all(labels[i] != labels[i - 1] for i in at)
        if len(set(starts.tolist())) < 3:
            with pytest.raises(ValueError, match="ascending"):
                kind(cuts, X, y, labels, group_starts=starts)
            continue
        outcomes[between] += 1
        given = kind(cuts, X, y, labels, group_starts=starts)
        if between:
            assert checked(given).records.n_units == len(set(labels.tolist()))
            continue
        with pytest.raises(ValueError, match="would be clipped twice"):
            checked(given)
    assert min(outcomes.values()) > 5
    bucket = group_bucket(labels, 2)
    right = [tuple(a[bucket == i] for a in (X, y, labels)) for i in range(2)]
    wrong = [tuple(np.r_[a, right[1 - i][j][:1]] for j, a in enumerate(right[i])) for i in range(2)]
    assert checked(Toy(right, n_buckets=2)).records.n_units == len(set(labels.tolist()))
    for given in ([wrong[0], right[1]], [right[0], wrong[1]], right[::-1]):
        with pytest.raises(ValueError, match="would be clipped twice"):
            checked(Toy(given, n_buckets=2))


def test_a_missing_or_foreign_label_is_refused():
    X, y = np.ones((4, 2)), np.array([0, 1, 0, 1])
    for labels, form in (
        (np.array([0.0, 1.0, np.nan, 2.0]), {"group_starts": [0.0]}),
        (np.array([-1, 0, 1, 2]), {"group_starts": [0]}),
        (np.array([0.0, 1.0, 1.0, 2.0]), {"n_buckets": 1}),
        (np.array([True, False, True, True]), {"n_buckets": 1}),
        (np.array([b"a", b"b", b"a", b"b"]), {"n_buckets": 1}),
        (np.array([1, "a", 2.5, None], dtype=object), {"n_buckets": 1}),
        (np.array(["a", "b", "c", "d"]), {"group_starts": [0]}),
    ):
        block = (X, y, labels)
        for given in (Blocks(lambda block=block: [block], **form), Toy([block], **form)):
            with pytest.raises((ValueError, TypeError)):
                checked(given)
    for more in ({"group_starts": [0]}, {"n_buckets": 1}):  # one block too many
        for extra in (X, X[:0]):
            both = [(X, y, np.arange(4)), (extra, y[: len(extra)], np.arange(len(extra)))]
            with pytest.raises(ValueError, match=r"clipped twice|is for 1 blocks and 2 came"):
                checked(Blocks(lambda both=both: both, **more))
    with pytest.raises(ValueError, match="group_starts= or n_buckets="):
        DPGDClassifier(unit="group", classes=(0, 1)).fit(Blocks(lambda: [(X, y, np.arange(4))]))


def test_buckets_are_uniform_and_the_same_for_equal_labels():
    numbers = np.arange(-3000, 3000)
    for n_buckets in (2, 7, 64):
        for labels in (numbers, numbers * 64, numbers * 2**40, [f"p{i}" for i in numbers]):
            counts = np.bincount(group_bucket(labels, n_buckets), minlength=n_buckets)
            assert chisquare(counts).pvalue > 1e-6
    expected = group_bucket(numbers, 64)
    for dtype in (np.int32, np.int16, object, ">i8"):
        assert np.array_equal(group_bucket(numbers.astype(dtype), 64), expected)
    for dtype in (np.uint8, np.uint32, np.uint64, np.int8):
        assert np.array_equal(group_bucket(np.arange(100).astype(dtype), 64), group_bucket(np.arange(100), 64))
    text = ["", "a", "é", "a b", "\udc80", "x" * 1000]
    assert np.array_equal(group_bucket(np.array(text), 64), group_bucket(np.array(text, dtype=object), 64))
    assert group_bucket([2**63 + 5], 64) == group_bucket(np.array([2**63 + 5], dtype=np.uint64), 64)
    assert group_bucket([], 3).shape == (0,) if np.asarray([]).dtype.kind in "iu" else True
    for wrong in ([1.0], [True], [b"a"], [None], [float("nan")], np.array([1, 2.0], dtype=object)):
        with pytest.raises(TypeError, match="integers or text"):
            group_bucket(wrong, 4)


# ---------------------------------------------------------------- blocks that lie, and blocks that change

TABLE = np.random.default_rng(2).normal(size=(90, 3))
LABELS = (TABLE[:, 0] > 0).astype(int)
GOOD = cut([0, 30, 60, 90], TABLE, LABELS)
FRAMES = [(pd.DataFrame(X, columns=list("abc")), y) for X, y in GOOD]


def lies():
    X, y = GOOD[2]
    yield "dtype", GOOD, (X.astype(np.float32), y)
    yield "container", GOOD, (sp.csr_matrix(X), y)
    yield "width", GOOD, (np.c_[X, np.zeros(30)], y)
    yield "narrow", GOOD, (X[:, :2], y)
    yield "labels", GOOD, (X, y + 5)
    yield "no labels", GOOD, (X, None)
    yield "lengths", GOOD, (X, y[:-1])
    yield "infinite", GOOD, (np.where(X == X[3, 1], np.inf, X), y)
    yield "missing", GOOD, (np.where(X == X[3, 1], np.nan, X), y)
    yield "groups", GOOD, (X, y, np.arange(30))
    yield "weights", GOOD, (X, y, None, np.ones(30))
    yield "tuple", GOOD, (X, y, None, None, None)
    yield "no names", FRAMES, (X, y)
    yield "other names", FRAMES, (pd.DataFrame(X, columns=list("abd")), y)
    yield "order of names", FRAMES, (pd.DataFrame(X, columns=list("acb")), y)
    yield "text", FRAMES, (pd.DataFrame(X, columns=list("abc")).astype(str) + "x", y)


LIES = {name: (good, lie) for name, good, lie in lies()}
KNOWN = {"epsilon": 1.0, "delta": 1e-5, "classes": (0, 1)}


def states(accountant):
    """What became of each fit: a reservation that was handed back costs nothing."""
    return [entry["state"] for entry in accountant.ledger()]


@pytest.mark.parametrize("at", [0, 1, 2])
@pytest.mark.parametrize("name", LIES)
def test_a_block_that_lies_about_its_form_is_refused_before_anything_is_released(name, at):
    good, lie = LIES[name]
    given = [good[0], good[1], good[2]]
    given[at] = lie
    for made in (Blocks(lambda: given), Toy(given), Toy(given, pickled=True)):
        accountant = BudgetAccountant(epsilon=2.0, delta=1e-4)
        with pytest.raises((ValueError, TypeError)) as caught, warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            DPGDClassifier(accountant=accountant, **KNOWN).fit(made)
        assert accountant.spent() == (0.0, 0.0)
        assert states(accountant) == ["returned"]
        if made.remote if isinstance(made, Toy) else False:
            assert not any(repr(v) in str(caught.value) for v in (TABLE[63, 1], float(TABLE[3, 1])))


class Changing:
    """The same blocks for some passes, and then others."""

    def __init__(self, good, changed, passes):
        self.good, self.changed, self.left = good, changed, passes

    def __call__(self):
        self.left -= 1
        return iter(self.good if self.left >= 0 else self.changed)


def changes():
    """Blocks after a change, by name."""
    (X, y), rest = GOOD[0], GOOD[1:]
    cells = X.copy()
    cells[4, 1] = np.nextafter(cells[4, 1], 9)
    other = y.copy()
    other[[np.flatnonzero(y == 0)[0], np.flatnonzero(y == 1)[0]]] = [1, 0]  # the sum of labels stays
    order = np.r_[1:30, 0]
    yield "a cell", [(cells, y), *rest]
    yield "two labels", [(X, other), *rest]
    yield "order of rows", [(X[order], y[order]), *rest]
    yield "rows apart from labels", [(X[order], y), *rest]
    yield "order of blocks", [*rest, (X, y)]
    yield "a row moved", cut([0, 29, 60, 90], TABLE, LABELS)
    yield "one block less", GOOD[:2]
    yield "one block more", [*GOOD, (X[:1], y[:1])]
    yield "an empty block more", [*GOOD, (X[:0], y[:0])]
    yield "an empty block first", [(X[:0], y[:0]), *GOOD]
    yield "dtype", [(X.astype(np.float32), y), *rest]
    yield "container", [(sp.csr_matrix(X), y), *rest]
    yield "width", [(np.c_[X, np.zeros(30)], y), *rest]
    yield "weights", [(X, y, None, np.ones(30)), *rest]


CHANGES = dict(changes())


@pytest.mark.parametrize("passes", [1, 4])
@pytest.mark.parametrize("name", CHANGES)
def test_blocks_that_change_between_passes_are_noticed(name, passes):
    accountant = BudgetAccountant(epsilon=2.0, delta=1e-4)
    model = DPGDClassifier(accountant=accountant, max_weight=2.0, **KNOWN)
    with pytest.raises(RuntimeError, match=r"not those of the first pass.*stays charged"):
        model.fit(Blocks(Changing(GOOD, CHANGES[name], passes)))
    assert accountant.spent()[0] <= 1.0 + 1e-9
    if passes > 1:
        assert accountant.spent()[0] > 0


def test_columns_that_change_places_are_noticed_by_their_names():
    swapped = [(X[["a", "c", "b"]], y) for X, y in FRAMES]
    for name in ("DPGDClassifier", "DPLogisticRegression"):
        with pytest.raises(RuntimeError, match="not those of the first pass"):
            getattr(skdp, name)(**KNOWN).fit(Blocks(Changing(FRAMES, swapped, 3)))


def test_a_later_pass_is_checked_as_the_first_one():
    for name in ("labels", "infinite", "no labels", "tuple"):
        accountant = BudgetAccountant(epsilon=2.0, delta=1e-4)
        with pytest.raises((ValueError, TypeError)):
            later = [*GOOD[:2], LIES[name][1]]
            DPGDClassifier(accountant=accountant, **KNOWN).fit(Blocks(Changing(GOOD, later, 5)))
        assert 0 < accountant.spent()[0] <= 1.0 + 1e-9


def test_a_factory_that_fails_in_a_later_pass_leaves_the_ledger_true():
    def failing():
        yield GOOD[0]
        raise OSError("the disk is gone")

    class Fails(Changing):
        def __call__(self):
            self.left -= 1
            return iter(self.good) if self.left >= 0 else failing()

    accountant = BudgetAccountant(epsilon=2.0, delta=1e-4)
    with pytest.raises(OSError, match="disk"):
        DPGDClassifier(accountant=accountant, **KNOWN).fit(Blocks(Fails(GOOD, None, 4)))
    assert 0 < accountant.spent()[0] <= 1.0 + 1e-9
    accountant = BudgetAccountant(epsilon=2.0, delta=1e-4)
    with pytest.raises(OSError, match="disk"):
        DPGDClassifier(accountant=accountant, **KNOWN).fit(Blocks(Fails(GOOD, None, 0)))
    assert accountant.spent()[0] == 0


# ---------------------------------------------------------------- the order of work


class Counted(Blocks):
    def __init__(self, given):
        self.passes = 0
        super().__init__(lambda: iter(given))

    def __iter__(self):
        self.passes += 1
        return super().__iter__()


REFUSING = sorted(
    name
    for name, cls in skdp.all_estimators()
    if issubclass(cls, PrivateFit) and cls._no_blocks is not None and "LSTM" not in name
)


def test_estimators_that_take_no_blocks_say_so_before_anything():
    for name in REFUSING:
        accountant, given = BudgetAccountant(epsilon=50.0, delta=0.1), Counted(GOOD)
        model = make(name).set_params(accountant=accountant, random_state=None)
        with pytest.raises(TypeError, match=rf"{name} takes no blocks: .* this fit spent nothing"):
            model.fit(given)
        assert given.passes == 0
        assert not accountant.ledger()


@pytest.mark.parametrize(
    "name", quick_alone(("DPAMPClassifier", "DPFrankWolfeClassifier"), REFUSING, pytest.mark.slow)
)
def test_none_trains_on_the_rows_that_stand_for_others(name, monkeypatch):
    """Without the flag: a fit raises, or it is the fit of the rows in one place."""
    cls = dict(skdp.all_estimators())[name]
    monkeypatch.setattr(cls, "_no_blocks", None)
    (X, y), _ = next(pairs(name, seed=1))
    engine = Toy(cut([0, 20, 20, 21, N], X, y))
    engine.remote = False  # exceptions come as they are
    try:
        found = released(make(name).fit(engine))
    except TypeError as error:
        assert "lie in partitions" in str(error) or "of another kind" in str(error)
        return
    assert found == released(make(name).fit(X, y))


def test_the_mutant_that_is_rows_trains_on_zeros(monkeypatch):
    """What the test above is for: with the rows that stand for others in the place of partitions a fit ends."""
    monkeypatch.setattr(skdp.DPFrankWolfeClassifier, "_no_blocks", None)
    honest = Partitions.records
    monkeypatch.setattr(Partitions, "records", lambda self, first: honest(self, first)._rows.like)
    (X, y), _ = next(pairs("DPFrankWolfeClassifier", seed=1))
    found = released(make("DPFrankWolfeClassifier").fit(Toy(cut([0, 20, N], X, y))))
    assert found != released(make("DPFrankWolfeClassifier").fit(X, y))


def test_statistics_that_are_no_sums_fail_before_they_release():
    """Each statistic over partitions is a sum, is made of one, or raises TypeError where it is made."""
    X, y = TABLE, LABELS.astype(float)
    records = partitioned([0, 30, 60, 90], X, y, fit_intercept=True)
    assert not isinstance(records._rows, Rows)
    sums = of_statistics() | {"gradient_scores", "step_scores"}
    raised = set()
    for name, (_, call) in EXAMPLES.items():
        function = name.rpartition(".")[2]
        if function in sums or function == "cbow_gradient":  # which makes its own records
            continue
        with pytest.raises(TypeError, match="lie in partitions"):
            call(records, "replace-one")
        raised.add(function)
    assert raised >= {"ridge_minimizer", "gradient_sum", "support_votes"}
    loss, theta = LogisticLoss(), np.zeros(4)
    for call in (
        lambda: statistics.mean_sup_gradient(records, loss, theta, 1.0, units=[0, 1]),
        lambda: records.clipped_sum(lambda X, y: X * 1.0, 1.0, size=3),
        lambda: records.clipped_sum(lambda X, y: X * 1.0, 1.0, size=3, rowwise=False),
    ):
        with pytest.raises(TypeError, match="is a sum over partitions with"):
            call()
    session = PrivacySession(epsilon=1.0, delta=1e-5, minibatches=True, random_state=0)
    grouped = partitioned([0, 30, 60, 90], X, y, groups=np.arange(90) // 2)
    with pytest.raises(TypeError, match="lie in partitions"):
        session.limit_rows(grouped, 1)
    for read in (pickle.dumps, list, len, np.asarray, iter, lambda rows: rows[0], lambda rows: rows.X):
        with pytest.raises(TypeError):
            read(records._rows)
    assert "0." not in repr(records._rows)


class Loses(Toy):
    """An engine whose later passes leave a part out, answer twice for one, or give it the units of another."""

    def __init__(self, given, wrong):
        super().__init__(given)
        self.wrong = wrong

    def map(self, function, request, own=None):
        if own is not None and self.wrong == "units":
            own = own[::-1]
        found = list(super().map(function, request, own))
        if request is not None and len(self.requests) > 4 and self.wrong != "units":
            found = {"lost": found[1:], "twice": [*found, found[0]], "other": [*found[1:], found[-1]]}[self.wrong]
        yield from found


@pytest.mark.parametrize("wrong", ["lost", "twice", "other"])
def test_an_engine_that_loses_or_repeats_a_part_is_noticed(wrong):
    """What is added twice would move a release by twice its sensitivity."""
    accountant = BudgetAccountant(epsilon=2.0, delta=1e-4)
    with pytest.raises(RuntimeError, match="lost the answer of a block, added one twice"):
        DPGDClassifier(accountant=accountant, **KNOWN).fit(Loses(GOOD, wrong))
    assert 0 < accountant.spent()[0] <= 1.0 + 1e-9


def test_units_of_another_part_are_refused():
    """Compiled loops have no bounds checks: they would read beyond the rows of a part."""
    few = [GOOD[0], cut([0, 2], *GOOD[1])[0], GOOD[2]]
    given = [few[0], few[1], *cut([0, 1], *few[2])]
    with pytest.raises(RuntimeError, match="could not be computed in a block"):
        skdp.DPSGDClassifier(batch_size=12, **KNOWN).fit(Loses(given, "units"))


def test_types_alone_refuse_mixed_data():
    accountant, given = BudgetAccountant(epsilon=2.0, delta=1e-4), Counted(GOOD)
    model = DPLogisticRegression(accountant=accountant, **KNOWN)
    for call in (
        lambda: model.fit(given, LABELS),
        lambda: model.fit(TABLE, given),
        lambda: model.fit(given, groups=LABELS),
        lambda: model.fit(given, sample_weight=np.ones(90)),
        lambda: DPLogisticRegression(accountant=accountant, epsilon=1.0, delta=1e-5).fit(given),
        lambda: DPIGHTClassifier(accountant=accountant, unit="group", **KNOWN).fit(given),
        lambda: DPStandardScaler(accountant=accountant, epsilon=1.0, delta=1e-5, unit="group").fit(given),
    ):
        with pytest.raises((TypeError, ValueError)):
            call()
    assert given.passes == 0
    assert not accountant.ledger()


@pytest.mark.parametrize("name", sorted(SAMPLERS))
def test_a_drawn_batch_of_a_stream_is_refused_before_the_first_release(name, monkeypatch):
    drawn = []
    honest = noise.rounded_gaussian
    monkeypatch.setattr(noise, "rounded_gaussian", lambda *args: drawn.append(1) or honest(*args))
    accountant, given = BudgetAccountant(epsilon=2.0, delta=1e-4), Counted(GOOD)
    known = KNOWN if "Classifier" in name else {"epsilon": 1.0, "delta": 1e-5}
    with pytest.raises(ValueError, match="each would read all blocks again"):
        getattr(skdp, name)(accountant=accountant, batch_size=10, **known).fit(given)
    assert given.passes <= 2  # the second one is only opened
    assert not drawn
    assert accountant.spent() == (0.0, 0.0)
