"""Parts of a ledger: each has the rules and the ceiling to itself, and the dearest one counts."""

import copy
import itertools
import json
import math
import multiprocessing
import pickle
import sqlite3
import sys
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from pathlib import Path

import joblib
import numpy as np
import pytest
from sklearn.base import clone

from skdp import DPIGHTClassifier
from skdp.cli import main
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy import BoundedStatistic, PrivacySession
from skdp.privacy.accounting import gaussian_delta, gaussian_mu, pure_mu
from skdp.privacy.budget import BudgetAccountant, accountant, read_ledger
from skdp.privacy.budget.filters import Ceiling, admits, check_charge

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

import dummy_estimator as dummy  # noqa: E402
from dummy_estimator import current_accountant  # noqa: E402

KIND = {"adjacency": "replace-one", "unit": "record"}
E, D = 2.0, 1e-5
CEILING = Ceiling("", E, D, False)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger"


@pytest.fixture
def whole():
    return BudgetAccountant(E, D)


def reserve(accountant, kind, epsilon, delta=1e-6):
    """A fit: "gaussian" and "pure" have a mu, "approximate" has none."""
    cost = {"epsilon": epsilon, "delta": 0.0 if kind == "pure" else delta}
    if kind == "gaussian":
        cost["mu"] = gaussian_mu(epsilon, delta)
    return accountant.reserve(estimator=kind, **cost, **KIND)


def refused(accountant, kind, epsilon, delta=1e-6):
    try:
        reserve(accountant, kind, epsilon, delta)
    except PrivacyBudgetExceeded:
        return True
    return False


# ------------------------------------------------------------------ what is admitted


def entered_by(part):
    return ("none", "a", "b") if part == "none" else (part,)


def sequence(history, part):
    """The charges of rows that are charged and count for a part."""
    return [charge for charge, where, held in history if held and where in ("none", part)]


def is_held(history, row):
    """Whether handing a row back would change the rule of a sequence that holds other rows."""
    if not row[0].approximate:
        return False
    charged = [[r for r in history if r[2] and r[1] in ("none", p)] for p in entered_by(row[1])]
    return any(rows[0] is row and len(rows) > 1 for rows in charged)


def random_history(rng, accountants, *, check=True):
    """Charge and hand back at random; rows of (charge, part, whether it is charged).

    With `check` each answer is compared with `admits` on the sub-sequences, and with `is_held`.
    """
    history, running = [], []
    for _ in range(10):
        kind = rng.choice(["gaussian", "pure", "approximate"])
        epsilon, delta = rng.choice([0.2, 0.5, 0.9, 1.5]), rng.choice([1e-7, 4e-6])
        part = str(rng.choice(["none", "a", "b"]))
        mu = gaussian_mu(epsilon, delta) if kind == "gaussian" else None
        delta = 0.0 if kind == "pure" else delta
        charge = check_charge("fit", epsilon, delta, mu, kind == "pure", (0.0, 0.0))
        wanted = all(admits([*sequence(history, p), charge], CEILING) for p in entered_by(part))
        try:
            made = accountants[part].reserve(estimator="fit", epsilon=epsilon, delta=delta, mu=mu, **KIND)
        except PrivacyBudgetExceeded:
            made = None
        assert not check or wanted == (made is not None)
        history.append([charge, part, made is not None])
        if made is not None:
            running.append((made, history[-1]))
        if running and rng.random() < 0.4:
            made, row = running.pop(rng.integers(len(running)))
            held = is_held(history, row)
            made.release()
            assert made.state == ("spent" if held else "returned")
            row[2] = held
    return history


def is_private(charges):
    """Whether one rule of the proof holds for a sequence, by formulas that `admits` does not use."""
    if not charges:
        return True
    if any(charge.approximate for charge in charges):
        total = sum(c.epsilon for c in charges), sum(c.delta for c in charges)
        return charges[0].approximate and total[0] <= E * (1 + 1e-9) and total[1] <= D * (1 + 1e-9)
    pure = all(c.pure for c in charges) and sum(c.epsilon for c in charges) <= E * (1 + 1e-9)
    total = math.sqrt(sum(c.mu**2 for c in charges))
    alone = len(charges) == 1 and charges[0].epsilon <= E and charges[0].delta <= D
    return pure or alone or gaussian_delta(total, E) <= D * (1 + 1e-9)


def histories(count, **options):
    for seed in range(count):
        whole = BudgetAccountant(E, D)
        a, b = whole.disjoint("a", "b")
        rng = np.random.default_rng(seed)
        yield random_history(rng, {"none": whole, "a": a, "b": b}, **options)


def test_admission_is_that_of_each_sequence():
    found = list(histories(16))
    charged = [row[2] for history in found for row in history]
    assert 0.2 < np.mean(charged) < 0.8
    assert all(is_private(sequence(h, part)) for h in found for part in ("none", "a", "b"))


@pytest.mark.parametrize("broken", ["own rows only", "one rule for the ledger"])
def test_a_broken_rule_is_seen(broken, monkeypatch):
    def sequences(connection, part):
        true = right(connection, None)
        if broken == "own rows only" and part is not None:
            return {part.name: true[part.name][len(true[None]) :]}
        return {None: right(connection, None)[None]}

    right = accountant.sequences
    monkeypatch.setattr(accountant, "sequences", sequences)
    assert not all(
        is_private(sequence(history, each))
        for history in histories(10, check=False)
        for each in ("none", "a", "b")
    )


def test_each_part_has_the_whole_ceiling(whole):
    train, test = whole.disjoint("train", "test")
    reserve(train, "gaussian", E, D).commit()
    assert train.spent()[0] == pytest.approx(E)
    assert test.spent() == (0.0, 0.0)
    assert test.remaining() == (E, D)
    reserve(test, "gaussian", E, D).commit()
    assert whole.spent()[0] == pytest.approx(E, rel=1e-9)
    for each in (train, test, whole):
        assert refused(each, "gaussian", 0.1)


def test_a_fit_of_no_part_counts_for_all_of_them(whole):
    train, test = whole.disjoint("train", "test")
    reserve(whole, "gaussian", 1.0).commit()
    assert train.spent() == test.spent() == whole.spent()
    reserve(train, "gaussian", 1.0).commit()
    left = test.remaining()[0]
    assert whole.remaining() == train.remaining() < test.remaining()
    assert refused(whole, "gaussian", left)
    assert not refused(test, "gaussian", left, D)


def test_a_fit_without_mu_in_one_part_and_gaussian_fits_in_another(whole):
    train, test = whole.disjoint("train", "test")
    reserve(test, "gaussian", 0.5).commit()
    reserve(train, "approximate", 1.0).commit()
    assert refused(test, "approximate", 0.1)
    assert refused(whole, "approximate", 0.1)  # the part 'test' began with another kind
    # In the sequence of 'train' the fit without mu is first, also if a fit of no part follows it.
    reserve(whole, "gaussian", 0.5).commit()
    assert train.spent() == pytest.approx((1.5, 2e-6))
    reserve(train, "approximate", 0.5).commit()
    assert refused(train, "gaussian", 0.01, 1e-9)
    with pytest.raises(PrivacyBudgetExceeded, match="spent by 3 fits in the part 'train' would"):
        reserve(whole, "gaussian", 0.01, 1e-9)
    with pytest.raises(PrivacyBudgetExceeded, match="began in the part 'test' with another kind"):
        reserve(test, "approximate", 0.01)


def test_spent_is_the_largest_of_both_numbers(whole):
    """A pure fit of epsilon 1 in one part, and a cheaper one with a delta in the other: neither covers both."""
    train, test = whole.disjoint("train", "test")
    reserve(train, "pure", 1.0).commit()
    reserve(test, "approximate", 0.5, 1e-6).commit()
    assert train.spent() == (1.0, 0.0)
    assert test.spent() == (0.5, 1e-6)
    assert whole.spent() == (1.0, 1e-6)


@pytest.mark.parametrize("kinds", list(itertools.product(["gaussian", "pure", "approximate"], repeat=2)))
def test_what_remains_is_admitted_by_every_part(kinds):
    whole = BudgetAccountant(E, D)
    parts = whole.disjoint("train", "test")
    for part, kind, epsilon in zip(parts, kinds, (0.9, 1.4)):
        reserve(part, kind, epsilon, 2e-6)
    epsilon, delta = whole.remaining()
    assert epsilon > 0.1
    kind = "gaussian" if delta else "pure"
    assert refused(whole, kind, epsilon * 1.001, delta)
    assert not refused(whole, kind, epsilon, delta)


def test_pure_fits_beside_gaussian_ones_of_another_part(whole):
    """A pure fit that the sum of epsilons holds in one part has too large a mu for the other."""
    train, test = whole.disjoint("train", "test")
    reserve(train, "pure", 1.9)
    reserve(test, "gaussian", E * 0.9, D)
    epsilon, delta = whole.remaining()
    assert delta == 0.0
    assert 0.0 < epsilon < 0.1 + 1e-9
    assert pure_mu(epsilon) ** 2 + gaussian_mu(E * 0.9, D) ** 2 <= gaussian_mu(E, D) ** 2
    assert not refused(whole, "pure", epsilon)


# ------------------------------------------------------------------ what is handed back


def test_the_rule_of_a_part_does_not_change_after_a_release(whole):
    train, test = whole.disjoint("train", "test")
    first = reserve(train, "approximate", 0.5)
    reserve(test, "gaussian", 0.5).commit()
    first.release()  # the only fit of its part: the other part's fit does not hold it
    assert first.state == "returned"
    again = reserve(train, "approximate", 0.5)
    reserve(whole, "gaussian", 0.5).commit()  # enters the sequence of 'train' behind it
    again.release()
    assert again.state == "spent"
    assert train.spent() == pytest.approx((1.0, 2e-6))


def test_a_fit_of_no_part_is_held_by_any_part(whole):
    train, _ = whole.disjoint("train", "test")
    first = reserve(whole, "approximate", 0.5)
    reserve(train, "gaussian", 0.5).commit()
    first.release()
    assert first.state == "spent"


def test_a_later_fit_without_mu_is_handed_back(whole):
    train, _ = whole.disjoint("train", "test")
    reserve(train, "approximate", 0.5).commit()
    second = reserve(whole, "approximate", 0.5)
    reserve(train, "gaussian", 0.5).commit()
    second.release()  # first in the sequence of 'test', where nothing follows, and second in that of 'train'
    assert second.state == "returned"


# ------------------------------------------------------------------ the theorem


def released_delta(in_both, walks=40_000):
    """Delta at the ceiling's epsilon of two neighbouring tables, by exact losses of simulated histories.

    Two parts spend a ceiling each, in turns: three Gaussian fits of 'train' and three of 'test', where the share
    of the next fit of 'train' follows from what 'test' released last. The changed record is in 'train'.
    """
    epsilon, delta = 1.0, 1e-2
    whole = BudgetAccountant(epsilon, delta)
    train, test = whole.disjoint("train", "test")
    total = gaussian_mu(epsilon, delta)
    rng = np.random.default_rng(0)
    loss, left = np.zeros(walks), np.full(walks, total**2)
    for step in range(3):
        share = 1.0 if step == 2 else np.where(rng.standard_normal(walks) > 0, 0.3, 0.6)
        mu = np.sqrt(left * share)
        left = left - mu**2
        moves = [mu, np.full(walks, total / math.sqrt(3))] if in_both else [mu]
        for each in moves:
            loss += each**2 / 2 + each * rng.standard_normal(walks)
    for part in (train, test):
        part.reserve(estimator="all", epsilon=epsilon, delta=delta, mu=total, **KIND)
    excess = np.maximum(0.0, -np.expm1(whole.spent()[0] - loss))
    return excess.mean(), excess.std() / math.sqrt(walks), delta


def test_a_record_pays_in_its_own_part_only():
    """Five standard errors on one side: a false alarm has probability 3e-7. Adaptive choices change nothing."""
    found, error, delta = released_delta(in_both=False)
    assert found < delta + 5 * error
    assert found > delta - 5 * error


def test_a_record_in_both_parts_is_caught():
    found, error, delta = released_delta(in_both=True)
    assert found > delta + 5 * error


# ------------------------------------------------------------------ handles


def test_names_are_kept_and_handles_are_one(path):
    first = BudgetAccountant(E, D, path=path)
    train, test = first.disjoint("train", "test")
    writes = read_ledger(path)["writes"]
    assert first.disjoint("test", "train") == (test, train)
    assert first.disjoint("test")[0] is test
    assert BudgetAccountant(E, D, path=path).disjoint("train")[0] is train
    assert read_ledger(path)["writes"] == writes
    assert len({first, train, test}) == 3
    assert train != first
    assert (train.part, test.part, first.part) == ("train", "test", None)
    assert train.path == first.path
    for handle in (copy.copy(train), copy.deepcopy(train), pickle.loads(pickle.dumps(train))):
        assert handle is train
    assert len(first.__reduce__()[1]) == 3  # as in earlier versions


def test_new_names_must_name_the_old_parts_too(whole):
    train, _ = whole.disjoint("train", "test")
    with pytest.raises(ValueError, match=r"has the parts 'train', 'test'.*disjoint\('train', 'test'") as e:
        whole.disjoint("train", "validation")
    assert "'validation')" in str(e.value)
    with pytest.raises(ValueError, match="has the parts 'train', 'test'"):
        whole.disjoint("validation")
    found = whole.disjoint("validation", "train", "test")
    assert found[1] is train
    with pytest.raises(ValueError, match="the part 'train' of its ledger, and parts are not split again"):
        train.disjoint("a", "b")


@pytest.mark.parametrize(
    ("names", "error", "message"),
    [
        ((), ValueError, "needs the names"),
        ((1, "b"), TypeError, "must be str, got int"),
        (("", "b"), ValueError, "got ''"),
        (("a b", "b"), ValueError, "got 'a b'"),
        (("a" * 65,), ValueError, "at most 64"),
        (("a", "a"), ValueError, "different, got 'a', 'a'"),
    ],
)
def test_names_are_checked(whole, names, error, message):
    with pytest.raises(error, match=message):
        whole.disjoint(*names)


def test_blocks_estimators_and_clones_charge_their_part(whole):
    train, test = whole.disjoint("train", "test")
    X, y = np.eye(20, 3), np.arange(20) % 2
    with whole, train:
        assert current_accountant() is train
        model = dummy.DummyClassifier().fit(X, y)
        with test:
            dummy.DummyClassifier().fit(X, y)
    with whole:
        dummy.DummyClassifier().fit(X, y)
        with ThreadPoolExecutor(1) as pool:
            pool.submit(pickle.loads(pickle.dumps(model)).fit, X, y).result()
    clone(dummy.DummyClassifier(accountant=test)).fit(X, y)
    with ThreadPoolExecutor(1) as pool:
        pool.submit(clone(dummy.DummyClassifier(accountant=train)).fit, X, y).result()
    parts = [row["part"] for row in whole.ledger()]
    assert parts == ["train", "test", None, None, "test", "train"]
    assert [row["part"] for row in train.ledger()] == ["train", None, None, "train"]


def test_workers_charge_their_part(path):
    train, test = BudgetAccountant(E, D, path=path).disjoint("train", "test")
    with joblib.parallel_config("threading"):
        joblib.Parallel(n_jobs=2)(joblib.delayed(dummy.charge)(part, 0.1) for part in (train, test, train))
    with multiprocessing.get_context("fork").Pool(1) as pool:
        pool.apply(dummy.charge, (test, 0.2))
    parts = [(row["part"], row["epsilon"]) for row in read_ledger(path)["fits"]]
    assert sorted(parts) == [("test", 0.1), ("test", 0.2), ("train", 0.1), ("train", 0.1)]
    assert len({row["pid"] for row in read_ledger(path)["fits"]}) == 2


@pytest.mark.slow
def test_spawned_workers_charge_their_part(path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", ":".join([str(Path(dummy.__file__).parents[3]), HERE]))
    train, test = BudgetAccountant(E, D, path=path).disjoint("train", "test")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        pool.apply(dummy.charge, (test, 0.2))
    assert [row["part"] for row in read_ledger(path)["fits"]] == ["test"]
    assert train.spent() == (0.0, 0.0)


def test_questions_and_plans_of_a_part(whole):
    train, test = whole.disjoint("train", "test")
    with pytest.raises(PrivacyBudgetExceeded):
        train.check_reserve(estimator="it", epsilon=2 * E, delta=0.0, **KIND)
    train.check_reserve(estimator="it", epsilon=E, delta=0.0, **KIND)
    assert whole.ledger() == []
    cost = {"epsilon": 0.1, "delta": 0.0, "plan": "p", **KIND}
    train.reserve(estimator="it", **cost).commit()
    with pytest.raises(PrivacyBudgetExceeded, match="plan p is charged already"):
        test.reserve(estimator="it", **cost)


def test_one_adjacency_for_all_parts(whole):
    train, test = whole.disjoint("train", "test")
    dummy.gauss(train, 1.0, adjacency="zero-out")
    with pytest.raises(PrivacyBudgetExceeded, match="do not add up"):
        dummy.gauss(test, 1.0)


# ------------------------------------------------------------------ parts of a split


def test_parts_of_a_split_refuse_other_fits(whole):
    train, _ = whole.split_afresh("train", "test", adjacency="replace-one", unit="group")
    with pytest.raises(PrivacyBudgetExceeded, match="with groups=, where the unit is the group"):
        dummy.gauss(train, 0.1)
    with pytest.raises(PrivacyBudgetExceeded, match="adjacency='zero-out' and the unit 'group'"):
        dummy.gauss(train, 0.1, adjacency="zero-out", unit="group")
    dummy.gauss(train, 0.1, unit="group")
    other = BudgetAccountant(E, D)
    dummy.gauss(other.split_afresh("a", **KIND)[0], 0.1, unit="window")  # a kind of record


def test_a_second_split_is_refused_once_the_first_is_charged(whole):
    old, _ = whole.split_afresh("train", "test", **KIND)
    new, _ = whole.split_afresh("train", "test", **KIND)  # a notebook's cell that ran twice
    assert new != old
    for use in (lambda: dummy.charge(old, 0.1), old.spent):
        with pytest.raises(PrivacyBudgetExceeded, match="a later split has taken its place"):
            use()
    assert "later split" in repr(old)
    assert whole.disjoint("train")[0] is new
    made = reserve(new, "pure", 0.1)
    with pytest.raises(PrivacyBudgetExceeded, match=r"split already.*disjoint\('train', 'test'\)"):
        whole.split_afresh("train", "test", **KIND)
    made.release()
    whole.split_afresh("train", "test", **KIND)
    assert [row["part"] for row in whole.ledger()] == ["train"]
    with pytest.raises(PrivacyBudgetExceeded, match="split already"):
        whole.split_afresh("a", "b", **KIND)


# ------------------------------------------------------------------ what is shown


class Cells(HTMLParser):
    def __init__(self, page):
        super().__init__()
        self.texts = []
        self.feed(page)

    def handle_data(self, data):
        self.texts.append(data)


def test_parts_are_shown(path, capsys):
    whole = BudgetAccountant(E, D, path=path)
    train, _ = whole.disjoint("train", "test")
    reserve(train, "pure", 0.5).commit()
    reserve(whole, "pure", 0.25).commit()
    assert "2 fits charged, spent (0.75, 0;" in repr(train)
    assert f" part train, ledger {path}>" in repr(train)
    assert " parts train (0.75, 0), test (0.25, 0), ledger" in repr(whole)
    assert "part train: spent>" in repr(reserve(train, "pure", 0.25)).replace("reserved", "spent")
    shown = Cells(whole._repr_html_()).texts
    assert {"part", "train", "spent in train", "epsilon 1, delta 0"} <= set(shown)
    assert "None" not in shown
    assert Cells(train._repr_html_()).texts[-1] != "None"
    book = read_ledger(path)
    assert book["parts"]["test"] == {"spent": (0.25, 0.0), "remaining": (1.75, 0.0)}
    assert main(["ledger", str(path)]) == 0
    said = capsys.readouterr().out
    assert "part       test: spent epsilon 0.25, delta 0; left epsilon 1.75, delta 0" in said
    lines = [line.split() for line in said.splitlines() if " pure " in line]
    assert [line[4] for line in lines] == ["train", "all", "train"]
    assert main(["ledger", "--json", str(path)]) == 0
    assert json.loads(capsys.readouterr().out)["fits"][1]["part"] is None


def lines_of(adjacency, unit="record"):
    (part,) = BudgetAccountant(E, D).disjoint("train")
    kind = {"epsilon": 1.0, "delta": D, "adjacency": adjacency, "unit": unit}
    with PrivacySession(accountant=part, **kind) as session:
        session.gaussian(BoundedStatistic([1.0], l2=1.0), session.plan_gaussian(releases=1))
        return " | ".join(session.report().assumptions)


def test_the_report_names_the_part():
    said = lines_of("replace-one")
    assert "the records lie in the part 'train' of the accountant's ledger alone" in said
    assert "not chosen by values of the records" in said
    assert "no group has records in two parts" in lines_of("zero-out", "group")
    assert "not chosen by values" not in lines_of("add-remove")


@pytest.mark.parametrize("how", ["parameter", "block"])
def test_the_report_of_an_estimator_names_the_part(how, whole):
    (part,) = whole.disjoint("train")
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    settings = {"epsilon": 0.5, "delta": 1e-6, "classes": (0, 1), "max_iter": 1}
    settings |= {"clip_norm": 1.0, "learning_rate": 1.0}
    model = DPIGHTClassifier(**settings, accountant=part if how == "parameter" else None)
    with part:
        model.fit(X, (X[:, 0] > 0).astype(int))
    assert any("the part 'train'" in line for line in model.privacy_.assumptions)
    assert [row["part"] for row in whole.ledger()] == ["train"]
    plain = DPIGHTClassifier(**settings, accountant=whole).fit(X, (X[:, 0] > 0).astype(int))
    assert not any("part" in line for line in plain.privacy_.assumptions)


# ------------------------------------------------------------------ files of older versions

# As the versions wrote them.
VERSION_1 = """
PRAGMA application_id = 1936417904;
CREATE TABLE ceiling (id TEXT, epsilon REAL, delta REAL, kept INTEGER);
CREATE TABLE fits (number INTEGER PRIMARY KEY, estimator TEXT, epsilon REAL, delta REAL, mu REAL, pure INTEGER,
 log_error REAL, tail REAL, adjacency TEXT, unit TEXT, time TEXT, pid INTEGER, user TEXT, state TEXT);
INSERT INTO ceiling VALUES ('an identity', 2.0, 1e-05, 1);
INSERT INTO fits VALUES (NULL, 'old', 0.5, 0.0, 0.63, 1, 0.0, 0.0, 'replace-one', 'record', 't', 1, 'me', 'spent');
PRAGMA user_version = 1;
"""
VERSION_2 = f"""{VERSION_1}
CREATE TABLE writes (number INTEGER PRIMARY KEY, token TEXT);
ALTER TABLE ceiling ADD COLUMN allow_seeded INTEGER DEFAULT 0;
INSERT INTO writes VALUES (NULL, 'first'), (NULL, 'second');
PRAGMA user_version = 2;
"""


def write_file(path, text):
    connection = sqlite3.connect(path)
    connection.executescript(text)
    connection.close()


@pytest.mark.parametrize(("version", "text"), [(1, VERSION_1), (2, VERSION_2)])
def test_an_older_file_is_upgraded_when_it_is_opened(version, text, path):
    write_file(path, text.replace("an identity", f"an identity of version {version}"))
    before = path.read_bytes()
    with pytest.raises(ValueError, match=f"version {version}, which .*upgrades it"):
        read_ledger(path)
    with pytest.raises(ValueError, match="A ceiling is fixed"):
        BudgetAccountant(3.0, D, path=path)
    assert path.read_bytes() == before
    accountant = BudgetAccountant(E, D, path=path)
    with sqlite3.connect(path) as connection:  # what earlier versions of skdp read first, and refuse
        assert connection.execute("PRAGMA user_version").fetchone() == (3,)
    connection.close()
    assert accountant.spent() == (0.5, 0.0)
    assert read_ledger(path)["writes"] == (1 if version == 1 else 3)
    train, _ = accountant.disjoint("train", "test")
    assert train.spent() == (0.5, 0.0)  # what was charged before has no part: it counts for all
    reserve(train, "pure", 1.5).commit()
    assert [row["part"] for row in accountant.ledger()] == [None, "train"]
    assert BudgetAccountant(E, D, path=path).disjoint("train")[0] == train


def test_a_file_of_a_newer_version_is_refused(path):
    BudgetAccountant(E, D, path=path)
    write_file(path, "PRAGMA user_version = 4")
    for use in (lambda: read_ledger(path), lambda: BudgetAccountant(E, D, path=path)):
        with pytest.raises(ValueError, match=r"version 4; this skdp reads 3\. Use the skdp that wrote"):
            use()
