"""A copy of a ledger file that is put back, or used beside the file: refused wherever it can be seen."""

import multiprocessing
import os
import pickle
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest

import skdp
from skdp import DPIGHTClassifier
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.budget import BudgetAccountant, read_ledger

HERE = str(Path(__file__).parent)
ROOT = str(Path(skdp.__file__).parents[1])  # the same skdp in subprocesses
if HERE not in sys.path:
    sys.path.insert(0, HERE)

import dummy_estimator as dummy  # noqa: E402


@pytest.fixture
def path(tmp_path):
    return tmp_path / "ledger"


def python(text, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=os.environ | {"PYTHONPATH": os.pathsep.join([ROOT, HERE])},
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


CHARGE = """
import sys, dummy_estimator as d
from skdp.privacy import BudgetAccountant
d.charge(BudgetAccountant(float(sys.argv[2]), 0.0, path=sys.argv[1]), 0.5)
"""


SPENT = """
import pickle, sys
for accountant in [pickle.loads(bytes.fromhex(text)) for text in sys.argv[1:]]:
    try:
        print(accountant.spent())
    except ValueError as error:
        print(error)
"""


def refused_for_everything(accountant, words):
    for action in [
        lambda: dummy.charge(accountant, 0.1),
        lambda: DPIGHTClassifier(accountant=accountant).fit(object(), None),
        accountant.spent,
        accountant.remaining,
        accountant.ledger,
        lambda: accountant.epsilon,
        lambda: BudgetAccountant(1.0, 0.0, path=accountant.path),
    ]:
        with pytest.raises(PrivacyBudgetExceeded, match=words):
            action()
    assert "without a ledger" in repr(accountant)


def test_a_restored_copy_is_refused(path):
    """Four fits of epsilon 1 went through a ceiling of 1: copy, fit, restore, fit again."""
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    shutil.copy(path, path.with_suffix(".bak"))
    granted = 0
    for _ in range(4):
        try:
            dummy.charge(accountant)
            granted += 1
        except PrivacyBudgetExceeded:
            pass
        shutil.copy(path.with_suffix(".bak"), path)
    assert granted == 1
    refused_for_everything(accountant, r"has gone back: write 3 was seen before, and .* ends at 1")


def test_a_release_under_a_restored_copy_is_refused(path):
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    shutil.copy(path, path.with_suffix(".bak"))
    reservation = accountant.reserve(
        estimator="fit", epsilon=1.0, delta=0.0, adjacency="replace-one", unit="record"
    )
    shutil.copy(path.with_suffix(".bak"), path)
    with pytest.raises(PrivacyBudgetExceeded, match="nothing may be released"):
        reservation.commit()


@pytest.mark.slow
def test_a_restored_copy_that_others_charged_further_is_refused(path):
    """Its counter is past what was seen, so only the token of the write that was seen tells."""
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    shutil.copy(path, path.with_suffix(".bak"))
    dummy.charge(accountant, 0.5)
    seen = read_ledger(path)["writes"]
    shutil.copy(path.with_suffix(".bak"), path)
    python(CHARGE, path, 1.0)
    assert read_ledger(path)["writes"] == seen
    refused_for_everything(accountant, "is another copy than the one seen before: its write 3")
    python(CHARGE, path, 1.0)
    assert read_ledger(path)["writes"] > seen
    refused_for_everything(accountant, "is another copy than the one seen before: its write 3")


def test_two_copies_that_are_both_used_are_noticed(path):
    second = path.with_suffix(".second")
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    shutil.copy(path, second)
    copy = BudgetAccountant(1.0, 0.0, path=second)
    assert copy != accountant
    dummy.charge(copy, 0.5)
    with pytest.raises(PrivacyBudgetExceeded, match="has gone back"):
        dummy.charge(accountant, 0.5)
    with pytest.raises(PrivacyBudgetExceeded, match="has gone back"):
        accountant.spent()
    dummy.charge(copy, 0.5)


def test_all_handles_of_a_process_know_what_one_saw(path):
    first, second = BudgetAccountant(1.0, 0.0, path=path), BudgetAccountant(1.0, 0.0, path=path)
    shutil.copy(path, path.with_suffix(".bak"))
    dummy.charge(first, 0.5)
    shutil.copy(path.with_suffix(".bak"), path)
    with pytest.raises(PrivacyBudgetExceeded, match="has gone back"):
        second.spent()


@pytest.mark.thorough
def test_reading_sees_as_well(path):
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    shutil.copy(path, path.with_suffix(".bak"))
    python(CHARGE, path, 1.0)
    assert accountant.spent() == (0.5, 0.0)
    shutil.copy(path.with_suffix(".bak"), path)
    with pytest.raises(PrivacyBudgetExceeded, match="has gone back"):
        accountant.spent()


@pytest.mark.slow
def test_what_was_seen_travels_in_pickles(path):
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    shutil.copy(path, path.with_suffix(".bak"))
    before = pickle.dumps(accountant)
    dummy.charge(accountant, 0.5)
    after = pickle.dumps(accountant)
    shutil.copy(path.with_suffix(".bak"), path)
    assert python(SPENT, before.hex()) == "(0.0, 0.0)"  # it saw no more than the copy holds
    assert "has gone back" in python(SPENT, after.hex())
    # A process adds up what its pickles saw, in any order, and an older one takes nothing back.
    assert "has gone back" in python(SPENT, after.hex(), before.hex())
    assert "has gone back" in python(SPENT, before.hex(), after.hex())
    pickle.loads(before)
    with pytest.raises(PrivacyBudgetExceeded, match="has gone back"):
        accountant.spent()


@pytest.mark.slow
def test_carried_handles_of_workers(path, monkeypatch):
    """A loky worker that never saw the file knows from the handle that it is a restored one."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([ROOT, HERE]))
    joblib.externals.loky.get_reusable_executor(max_workers=2).shutdown(wait=True)
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    shutil.copy(path, path.with_suffix(".bak"))
    dummy.charge(accountant, 0.25)
    where = joblib.Parallel(n_jobs=2)(joblib.delayed(dummy.charge)(accountant, 0.25) for _ in "ab")
    assert os.getpid() not in where
    assert accountant.spent() == (0.75, 0.0)
    shutil.copy(path.with_suffix(".bak"), path)
    joblib.externals.loky.get_reusable_executor(max_workers=2).shutdown(wait=True)
    with pytest.raises(PrivacyBudgetExceeded, match="has gone back"):
        joblib.Parallel(n_jobs=2)(joblib.delayed(dummy.charge)(accountant, 0.25) for _ in "ab")
    refused = pytest.raises(PrivacyBudgetExceeded, match="has gone back")
    with multiprocessing.get_context("spawn").Pool(1) as pool, refused:
        pool.apply(dummy.charge, (accountant, 0.25))


@pytest.mark.thorough
def test_what_no_process_can_see(path):
    """A new process has nothing to compare with but the number that somebody noted (user guide)."""
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    shutil.copy(path, path.with_suffix(".bak"))
    dummy.charge(accountant)
    noted = read_ledger(path)["writes"]
    shutil.copy(path.with_suffix(".bak"), path)
    python(CHARGE, path, 1.0)
    assert noted == 3
    assert read_ledger(path)["writes"] == 3  # and not even by this, once it was charged as often


# Writes


@pytest.mark.thorough
def test_writes_count_transactions_and_only_grow(path):
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    counts = [read_ledger(path)["writes"]]
    for action in [
        lambda: dummy.charge(accountant, 0.5),
        lambda: dummy.charge(BudgetAccountant(1.0, 0.0, path=path), 0.1),
        accountant.spent,
        lambda: python(CHARGE.replace("0.5)", "0.1)"), path, 1.0),
    ]:
        action()
        counts.append(read_ledger(path)["writes"])
    assert counts == [1, 3, 5, 5, 7]
    with pytest.raises(PrivacyBudgetExceeded):
        dummy.charge(accountant, 0.5)
    with pytest.raises(ValueError, match="A ceiling is fixed"):
        BudgetAccountant(2.0, 0.0, path=path)
    assert read_ledger(path)["writes"] == 7  # what was refused wrote nothing
    with sqlite3.connect(path) as connection:
        tokens = [row[0] for row in connection.execute("SELECT token FROM writes")]
    connection.close()
    assert len(set(tokens)) == 7
    assert {len(token) for token in tokens} == {16}


def older(path):
    """Make the file what version 1 had written."""
    connection = sqlite3.connect(path)
    connection.execute("DROP TABLE parts")
    connection.execute("ALTER TABLE fits DROP COLUMN part")
    connection.execute("DROP TABLE writes")
    connection.execute("ALTER TABLE ceiling DROP COLUMN allow_seeded")
    connection.execute("PRAGMA user_version = 1")
    connection.commit()
    connection.close()


@pytest.mark.thorough
def test_a_file_of_version_1_is_upgraded_when_it_is_opened(path):
    make = "from skdp.privacy import BudgetAccountant as B; import sys, dummy_estimator as d"
    python(f"{make}; d.charge(B(1.0, 0.0, path=sys.argv[1]), 0.5)", path)
    older(path)
    before = path.read_bytes()
    with pytest.raises(ValueError, match=r"version 1, .*BudgetAccountant\(epsilon, delta, path"):
        read_ledger(path)
    with pytest.raises(ValueError, match="A ceiling is fixed"):
        BudgetAccountant(2.0, 0.0, path=path)
    assert path.read_bytes() == before
    accountant = BudgetAccountant(1.0, 0.0, path=path)
    assert accountant.spent() == (0.5, 0.0)
    assert read_ledger(path)["writes"] == 1
    dummy.charge(accountant, 0.5)
    path.write_bytes(before)  # a copy from before the upgrade
    with pytest.raises(ValueError, match="version 1"):
        accountant.spent()
    with pytest.raises(PrivacyBudgetExceeded, match="has gone back"):
        BudgetAccountant(1.0, 0.0, path=path)
    assert path.read_bytes() == before


# Races


@pytest.mark.parametrize(
    ("start", "workers"),
    [
        pytest.param("fork", 2, marks=pytest.mark.thorough),
        ("fork", 4),
        pytest.param("spawn", 3, marks=pytest.mark.slow),
    ],
)
def test_processes_racing_for_a_ceiling(start, workers, path, monkeypatch):
    """However many: what is granted is exactly what the ceiling holds, and no copy is suspected."""
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([ROOT, HERE]))
    accountant = BudgetAccountant(60.0, 0.0, path=path)
    context = multiprocessing.get_context(start)
    barrier, queue = context.Barrier(workers), context.Queue()
    runners = [
        context.Process(target=dummy.charge_until_refused, args=(accountant, barrier, queue))
        for _ in range(workers)
    ]
    for runner in runners:
        runner.start()
    granted, messages = zip(*[queue.get(timeout=300) for _ in runners])
    for runner in runners:
        runner.join()
    assert all("would pass the ceiling" in message for message in messages)
    assert sum(granted) == 60
    assert accountant.spent() == (60.0, 0.0)
    assert read_ledger(path)["writes"] == 1 + 2 * 60
    assert len({row["pid"] for row in accountant.ledger()}) == sum(count > 0 for count in granted)


@pytest.mark.slow
def test_reports_of_fits_in_workers(path):
    """The report of a fit in a worker comes back whole, with the plan of its cost."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    accountant = BudgetAccountant(10.0, 1e-3, path=path)
    model = DPIGHTClassifier(epsilon=0.1, delta=1e-6, classes=(0, 1), max_iter=2, clip_norm=1.0, learning_rate=1.0)
    with accountant:
        fitted = joblib.Parallel(n_jobs=2)(joblib.delayed(model.fit)(X, (X[:, 0] > 0).astype(int)) for _ in "abc")
    assert len(accountant.ledger()) == 3
    for each in fitted:
        assert each.privacy_.epsilon == pytest.approx(0.1)
        assert each.privacy_.event_for("pld") is not None
        assert each.privacy_.event_for("rdp") is not None
    fitted[0].fit(X, (X[:, 0] > 0).astype(int))  # back here, and the block is over
    assert len(accountant.ledger()) == 3
