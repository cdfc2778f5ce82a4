"""`train_test_split`: neighbouring tables differ in one part, by position, label of a group or secret coin."""

import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse as sp
from sklearn.model_selection import train_test_split as theirs

from skdp import BudgetAccountant, DPIGHTClassifier
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.model_selection import split, train_test_split
from skdp.privacy.noise import KeyStream

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
GROUPS = np.repeat(np.arange(12), 5)


class Coins(KeyStream):
    """The stream of one seed, also where the split draws afresh: both tables get equal coins."""

    def __init__(self, random_state=None, *, info=b""):
        super().__init__(3, info=info)


@pytest.fixture
def equal_coins(monkeypatch):
    monkeypatch.setattr(split, "KeyStream", Coins)


# ------------------------------------------------------------------ neighbouring tables


@pytest.mark.parametrize("changed", [0, 17, 59])
@pytest.mark.parametrize("options", [{}, {"random_state": 5}, {"shuffle": False}, {"train_size": 0.4}])
def test_a_replaced_record_changes_one_row_of_one_part(changed, options, equal_coins):
    other, labels = X.copy(), Y.copy()
    other[changed], labels[changed] = [np.inf, -1e300, np.nan], 7
    one = train_test_split(X, Y, **options)
    two = train_test_split(other, labels, **options)
    assert [len(a) for a in one] == [len(b) for b in two]
    moved = [int((~((a == b).reshape(len(a), -1).all(axis=1))).sum()) for a, b in zip(one, two)]
    lost = len(one[0]) + len(one[1]) < 60 and sum(moved) == 0
    assert lost or sorted(moved) == [0, 0, 1, 1]
    assert lost or (moved[0] == 1) == (moved[2] == 1)


def other_groups_that_differ(rows, adjacency):
    """Replace group 5 by one with this number of rows, anywhere; which other groups then differ in some part.

    The label stays, so equal coins couple the two tables.
    """
    others = np.flatnonzero(GROUPS != 5)
    at = np.sort(np.random.default_rng(1).integers(0, 56, size=rows))
    table = np.insert(X[others], at, 9.0, axis=0)
    groups = np.insert(GROUPS[others], at, 5)
    one = train_test_split(X, GROUPS, groups=GROUPS, adjacency=adjacency)
    two = train_test_split(table, groups, groups=groups, adjacency=adjacency)
    assert (5 in one[3]) == (5 in two[3])
    found = set()
    for part in (0, 1):
        before, after = ((s[part][s[2 + part] != 5], s[2 + part][s[2 + part] != 5]) for s in (one, two))
        for label in set(before[1]) | set(after[1]):
            if not np.array_equal(before[0][before[1] == label], after[0][after[1] == label]):
                found.add(int(label))
        if not found:  # and their rows stand in the same order
            assert np.array_equal(before[0], after[0])
    return found


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("rows", [1, 40])
def test_a_group_of_another_size_changes_its_part_only(rows, adjacency, equal_coins):
    assert other_groups_that_differ(rows, adjacency) == set()


@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_a_split_of_groups_by_positions_is_caught(adjacency, equal_coins, monkeypatch):
    monkeypatch.setattr(split, "encode_groups", lambda groups, n: np.arange(n) // 5)
    with pytest.raises(AssertionError):
        assert other_groups_that_differ(1, adjacency) == set()


def chosen_by_label(labels, count, wanted, **options):
    """How often each set of labels is the test part."""
    groups = np.asarray(labels)
    found = {}
    for _ in range(count):
        test = frozenset(train_test_split(groups, groups=groups, **options)[1].tolist())
        found[test] = found.get(test, 0) + 1
    assert set(found) == set(wanted)
    return found


def test_the_test_part_of_groups_is_a_uniform_choice_whatever_their_labels():
    """Six sets of two of four labels, 600 draws: 5.5 standard deviations, 6 cells, false alarm below 3e-7."""
    for labels in ([1, 1, 2, 3, 4], [9, 2, 2, 2, 3, 4]):
        pairs = [frozenset(p) for p in itertools.combinations(sorted(set(labels)), 2)]
        found = chosen_by_label(labels, 600, pairs, test_size=2)
        assert all(abs(n - 100) < 5.5 * math.sqrt(600 * 5 / 36) for n in found.values())


def test_coins_of_units_are_independent_with_the_shares_asked_for():
    """4,000 coins of one draw, in 3 parts: 5.5 standard deviations, false alarm below 2e-7 of 3 cells."""
    n = 4000
    train, test = train_test_split(np.arange(n), adjacency="add-remove", test_size=0.2, train_size=0.5)
    assert not set(train) & set(test)
    for part, share in ((train, 0.5), (test, 0.2)):
        assert abs(len(part) - share * n) < 5.5 * math.sqrt(n * share * (1 - share))
    pairs = np.isin(np.arange(n), test).reshape(-1, 2).all(axis=1).sum()
    assert abs(pairs - 0.04 * n / 2) < 5.5 * math.sqrt(n / 2 * 0.04 * 0.96)
    # Shares are exact: every record is in a part where nothing is left out.
    train, test = train_test_split(np.arange(n), adjacency="add-remove", test_size=0.3)
    assert len(train) + len(test) == n


def test_a_removed_record_moves_nobody_where_coins_are_of_units(monkeypatch):
    """The coupling of the docstring: who is in both tables has one coin. A coin of a position moves others."""

    def parts_of(people, by_unit):
        class Given:
            def __init__(self, *_, **__): ...

            def integers(self, bound, size):
                all_coins = KeyStream(1).integers(bound, 60)
                return all_coins[people] if by_unit else all_coins[:size]

        monkeypatch.setattr(split, "KeyStream", Given)
        return [set(p) for p in train_test_split(np.asarray(people), adjacency="add-remove")]

    everybody, without = list(range(60)), [i for i in range(60) if i != 20]
    one, two = parts_of(everybody, True), parts_of(without, True)
    assert [a - {20} for a in one] == two
    one, two = parts_of(everybody, False), parts_of(without, False)
    assert [a - {20} for a in one] != two


# ------------------------------------------------------------------ sizes and containers


@pytest.mark.parametrize("n", [7, 60, 101])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"test_size": 0.2},
        {"test_size": 3},
        {"train_size": 0.3},
        {"train_size": 4},
        {"test_size": 0.33, "train_size": 0.5},
        {"test_size": 2, "train_size": 0.5},
    ],
)
def test_sizes_are_those_of_scikit_learn(n, options):
    table = np.arange(n)
    ours = train_test_split(table, **options)
    assert [len(part) for part in ours] == [len(p) for p in theirs(table, **options)]
    assert not set(ours[0]) & set(ours[1])
    assert all((np.diff(part) > 0).all() for part in ours)
    groups = np.repeat(np.arange(n), 2)
    by_group = train_test_split(groups, groups=groups, **options)
    assert [len(set(part)) for part in by_group] == [len(part) for part in ours]
    assert all(len(part) == 2 * len(set(part)) for part in by_group)
    first = train_test_split(table, shuffle=False, **options)
    assert all(np.array_equal(a, b) for a, b in zip(first, theirs(table, shuffle=False, **options)))


@pytest.mark.parametrize("options", [{"test_size": 1.5}, {"test_size": 60}, {"test_size": 0.9, "train_size": 0.2}])
def test_wrong_sizes_have_the_messages_of_scikit_learn(options):
    with pytest.raises(ValueError, match=r"test_size|sum") as wanted:
        theirs(X, **options)
    with pytest.raises(ValueError, match=r"test_size|sum") as found:
        train_test_split(X, **options)
    assert str(found.value) == str(wanted.value)


CONTAINERS = {
    "ndarray": (X, np.asarray),
    "csr": (sp.csr_matrix(X), lambda part: part.toarray()),
    "csr_array": (sp.csr_array(X), lambda part: part.toarray()),
    "DataFrame": (pd.DataFrame(X, index=np.arange(60) * 3), np.asarray),
    "polars": (pl.DataFrame(X), lambda part: part.to_numpy()),
    "list": (X.tolist(), np.asarray),
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_containers_are_kept_and_rows_stay_together(name):
    table, values = CONTAINERS[name]
    place = pd.Series(np.arange(60))
    a, b, p, q = train_test_split(table, place)
    for part, positions in ((a, p), (b, q)):
        assert type(part) is type(table)
        assert type(positions) is pd.Series
        assert np.array_equal(values(part), X[positions.to_numpy()])
    if name == "csr":
        assert a.nnz + b.nnz == table.nnz


def test_seeds_and_fresh_randomness():
    one, two = (train_test_split(np.arange(60), random_state=4)[1] for _ in range(2))
    assert np.array_equal(one, two)
    one, two = (train_test_split(np.arange(60))[1] for _ in range(2))
    assert not np.array_equal(one, two)  # equal with probability 1e-13


@pytest.mark.parametrize("labels", [list("abc") * 20, [("p", i % 3) for i in range(60)], GROUPS + 0.0])
def test_labels_of_groups_of_any_kind(labels):
    a, b = train_test_split(np.arange(60), groups=labels, test_size=1)
    assert len(a) + len(b) == 60
    assert not {labels[i] for i in a} & {labels[i] for i in b}


# ------------------------------------------------------------------ what is refused


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"stratify": Y}, ValueError, "stratify= reads labels"),
        ({"random_state": 0, "adjacency": "add-remove"}, ValueError, "a seed, random_state=, splits by"),
        ({"shuffle": False, "adjacency": "add-remove"}, ValueError, "shuffle=False splits by positions"),
        ({"random_state": 0, "groups": GROUPS}, ValueError, "moves other groups"),
        ({"shuffle": False, "groups": GROUPS}, ValueError, "moves other groups"),
        ({"test_size": 9, "adjacency": "add-remove"}, ValueError, "private: give test_size as a share"),
        ({"test_size": 60, "adjacency": "add-remove", "n_public": 60}, ValueError, "from 1 to n_public - 1"),
        ({"test_size": 1.0, "adjacency": "add-remove"}, ValueError, "share in"),
        ({"train_size": True, "adjacency": "add-remove"}, TypeError, "train_size must be a float"),
        ({"test_size": 0.7, "train_size": 0.4, "adjacency": "add-remove"}, ValueError, "1.1 of all together"),
        ({"n_public": 60}, ValueError, "n_public= is for adjacency='add-remove'"),
        ({"adjacency": "both"}, ValueError, "adjacency must be"),
        ({"shuffle": 1}, TypeError, "shuffle must be True or False"),
        ({"groups": GROUPS[:-1]}, ValueError, "groups must be of shape"),
        ({"accountant": 3}, TypeError, "accountant must be"),
        ({"random_state": -1}, ValueError, "random_state must be"),
    ],
)
def test_refusals_name_the_reason_and_the_repair(options, error, message):
    with pytest.raises(error, match=message):
        train_test_split(X, Y, **options)


def test_arrays_are_checked_and_no_message_says_their_length():
    with pytest.raises(ValueError, match="same number of rows") as found:
        train_test_split(X, Y[:-1])
    assert "60" not in str(found.value)
    with pytest.raises(ValueError, match="At least one array"):
        train_test_split()
    with pytest.raises(TypeError, match=r"arrays\[1\] is not in memory"):
        train_test_split(X, iter(Y))
    with pytest.raises(TypeError, match=r"arrays\[1\] must be a table or a column"):
        train_test_split(X, None)


@pytest.mark.parametrize("n", [1, 3])
def test_under_add_remove_no_table_is_refused(n):
    """How many records there are is private, so it decides about no exception."""
    parts = [train_test_split(np.arange(n), adjacency="add-remove") for _ in range(20)]
    assert all(len(a) + len(b) == n for a, b in parts)


# ------------------------------------------------------------------ with an accountant


def model(part, **options):
    settings = {"classes": (0, 1), "max_iter": 1, "clip_norm": 1.0, "learning_rate": 1.0}
    return DPIGHTClassifier(epsilon=1.0, delta=1e-5, accountant=part, **settings, **options)


def test_each_part_has_the_whole_budget():
    accountant = BudgetAccountant(1.0, 1e-5)
    a, b, c, d, train, test = train_test_split(X, Y, accountant=accountant)
    found = model(train).fit(a, c)
    assert any("the part 'train'" in line for line in found.privacy_.assumptions)
    model(test).fit(b, d)
    assert accountant.spent()[0] == pytest.approx(1.0, rel=1e-6)
    with pytest.raises(PrivacyBudgetExceeded, match="in the part 'train' would pass the ceiling"):
        model(train).fit(a, c)
    with pytest.raises(PrivacyBudgetExceeded, match="split already"):
        train_test_split(X, Y, accountant=accountant)
    assert accountant.disjoint("train", "test") == (train, test)
    with pytest.raises(ValueError, match="parts are not split again"):
        train_test_split(X, Y, accountant=train)


def test_a_split_of_records_refuses_fits_of_groups():
    accountant = BudgetAccountant(2.0, 1e-5)
    a, _, c, _, g, _, train, _ = train_test_split(X, Y, GROUPS, accountant=accountant)
    with pytest.raises(PrivacyBudgetExceeded, match="without groups=, where the unit is the record"):
        model(train, unit="group").fit(a, c, groups=g)
    with pytest.raises(PrivacyBudgetExceeded, match="split for adjacency='replace-one'"):
        model(train, adjacency="zero-out").fit(a, c)
    assert accountant.ledger() == []
    a, _, c, _, g, _, train, _ = train_test_split(X, Y, GROUPS, groups=GROUPS, accountant=accountant)
    model(train, unit="group").fit(a, c, groups=g)
    assert accountant.ledger()[0]["part"] == "train"


def test_what_is_refused_makes_no_parts():
    accountant = BudgetAccountant(1.0, 1e-5)
    with pytest.raises(ValueError, match="stratify"):
        train_test_split(X, stratify=Y, accountant=accountant)
    with pytest.raises(ValueError, match="same number"):
        train_test_split(X, Y[1:], accountant=accountant)
    assert "parts" not in repr(accountant)
    with accountant:
        assert len(train_test_split(X)) == 2
