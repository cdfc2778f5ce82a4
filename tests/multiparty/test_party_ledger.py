"""What a party says of its ledger: made with a ceiling only, and never called unspent where nobody can read it."""

import shutil
import sqlite3
from contextlib import suppress
from pathlib import Path

import pytest

import skdp.cli._party as commands
import skdp.multiparty.party.run as runs
from skdp.cli import main
from skdp.multiparty.party.engine import NetworkEngine
from skdp.multiparty.party.plan_ledger import LedgerError, open_ledger
from skdp.privacy import BudgetAccountant, read_ledger
from tests.kinds import quick_alone
from tests.multiparty.study import Study

pytestmark = pytest.mark.filterwarnings("ignore")

UNSPENT = "nothing was spent, and the plan can run again"


def gone(path):
    path.unlink()


def emptied(path):
    path.write_bytes(b"")


def damaged(path):
    path.write_bytes(b"SQLite format 3\0" + bytes(4000))


def of_somebody_else(path):
    path.unlink()
    BudgetAccountant(5.0, 1e-6, path=path)


DAMAGES = pytest.mark.parametrize(
    "damage", quick_alone([gone, damaged], [gone, emptied, damaged, of_somebody_else], pytest.mark.thorough)
)


def last_note(error):
    return error.__notes__[-1]


# ---------------------------------------------------------------- what was spent


@DAMAGES
def test_after_the_charge_a_ledger_that_cannot_be_read_is_never_called_unspent(tmp_path, monkeypatch, damage):
    """hospital_b loses its ledger when its first share is about to go, and fails."""
    study, usual = Study(tmp_path), NetworkEngine._open_as_owner

    async def losing(self, mine):
        if self._own == 1:
            damage(study.ledger(1))
            raise RuntimeError("the disk is broken")
        return await usual(self, mine)

    monkeypatch.setattr(NetworkEngine, "_open_as_owner", losing)
    found = study.together()
    said = last_note(found[1])
    assert UNSPENT not in said
    assert said.startswith(
        "hospital_b: this process charged the plan, and may have sent shares of its data, and the ledger "
        f"{study.ledger(1)} cannot be read: "
    )
    assert "look at the ledger before anything runs again (`skdp ledger FILE`)" in said
    for index in (0, 2):
        assert last_note(found[index]).endswith(f"the plan is charged to the ledger {study.ledger(index)}")


@DAMAGES
def test_before_the_charge_it_says_what_this_process_did(tmp_path, monkeypatch, damage):
    study, usual = Study(tmp_path), runs.read_own_records

    def losing(path, plan, index):
        if index == 1:
            damage(study.ledger(1))
        return usual(path, plan, index)

    monkeypatch.setattr(runs, "read_own_records", losing)
    found = study.together()
    said = last_note(found[1])
    assert UNSPENT not in said
    assert said.startswith("hospital_b: this process charged nothing, and the ledger ")
    assert "cannot be read: " in said
    for index in (0, 2):
        assert UNSPENT in last_note(found[index])
        assert [fit["state"] for fit in read_ledger(study.ledger(index))["fits"]] in (
            [], ["returned"],
        )  # fmt: skip


def made(study):
    return open_ledger(study.ledger(0), study.plan, (10.0, 1e-6))


def reserved(book, study):
    parameters = study.plan.parameters
    return book.reserve(
        estimator="fit", epsilon=parameters["epsilon"], delta=parameters["delta"],
        adjacency="replace-one", unit="record",
    )  # fmt: skip


def test_every_state_has_its_sentence(tmp_path):
    study = Study(tmp_path)
    book = made(study)
    assert book.what_was_spent().startswith(f"{UNSPENT}: the ledger {study.ledger(0)} does not")
    charge = reserved(book, study)
    assert "shows a reservation of the plan that nobody has handed back" in book.what_was_spent()
    assert UNSPENT not in book.what_was_spent()
    charge.release()
    assert UNSPENT in book.what_was_spent()
    charge = reserved(book, study)
    before = tmp_path / "before"
    shutil.copy(study.ledger(0), before)
    charge.commit()
    assert book.what_was_spent() == f"the plan is charged to the ledger {study.ledger(0)}"
    shutil.copy(before, study.ledger(0))  # a backup that was made before the charge
    assert UNSPENT not in book.what_was_spent()
    assert "this process charged the plan" in book.what_was_spent()
    assert "an older copy" in book.what_was_spent()


def test_a_row_that_somebody_took_out_is_not_called_unspent(tmp_path):
    study = Study(tmp_path)
    book = made(study)
    reserved(book, study).commit()
    with sqlite3.connect(study.ledger(0)) as connection:
        connection.execute("DELETE FROM fits")
    said = book.what_was_spent()
    assert UNSPENT not in said
    assert "does not show it: the write failed, or somebody restored or changed the file" in said


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM fits",
        "UPDATE fits SET state = 'gone'",
        "UPDATE fits SET state = NULL",
        "UPDATE fits SET estimator = NULL",
        "UPDATE fits SET estimator = x'00'",
    ],
)
def test_a_damaged_row_of_a_reservation_is_not_called_unspent(tmp_path, change):
    """Also where the file could be read: what a row says that no ledger writes is not believed."""
    study = Study(tmp_path)
    book = made(study)
    reserved(book, study)
    with sqlite3.connect(study.ledger(0)) as connection:
        connection.execute("PRAGMA ignore_check_constraints = 1")
        with suppress(sqlite3.IntegrityError):  # a table that refuses the change is not damaged
            connection.execute(change)
    said = book.what_was_spent()
    assert UNSPENT not in said


def test_a_charge_that_could_not_be_written_is_not_called_unspent(tmp_path, monkeypatch):
    """The row says "reserved", and this process does not know whether the write came through."""
    study = Study(tmp_path)
    book = made(study)
    charge = reserved(book, study)
    monkeypatch.setattr(BudgetAccountant, "_mark", lambda *given: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        charge.commit()
    assert UNSPENT not in book.what_was_spent()


def test_an_interrupt_without_a_note_sends_its_user_to_the_ledger(monkeypatch, capsys, tmp_path):
    """It came when the run was over, or while its error was explained: nothing is known here."""
    study = Study(tmp_path)
    words = ["--config", tmp_path / "plan.toml", "--index", 0, "--data", study.options(0).data]

    def interrupted(*given, **more):
        raise KeyboardInterrupt

    monkeypatch.setattr(commands, "_run", interrupted)
    assert main(["party", *map(str, words)]) == 130
    said = capsys.readouterr().err
    assert "nothing was spent" not in said
    assert "`skdp ledger FILE`" in said
    monkeypatch.undo()
    monkeypatch.setattr(runs, "read_plan", interrupted)
    assert main(["party", *map(str, words)]) == 130
    assert "this process charged nothing: it had not begun to connect" in capsys.readouterr().err


# ---------------------------------------------------------------- a new ledger


def test_a_new_ledger_needs_a_ceiling_and_an_old_one_keeps_its_own(tmp_path):
    study = Study(tmp_path)
    for empty in (False, True):  # a process that was killed while it made the file leaves it empty
        if empty:
            study.ledger(0).touch()
        with pytest.raises(LedgerError, match="a new one needs --ceiling EPSILON DELTA") as caught:
            runs.run(study.options(0, ceiling=None))
        assert "This plan costs epsilon 10, delta 1e-06" in str(caught.value)
        assert not study.ledger(0).exists() or study.ledger(0).stat().st_size == 0
    made(study)
    assert (open_ledger(study.ledger(0), study.plan, None).epsilon) == 10.0
    with pytest.raises(LedgerError, match="Leave out --ceiling"):
        open_ledger(study.ledger(0), study.plan, (11.0, 1e-6))


def test_a_wrong_key_makes_no_ledger(tmp_path):
    study = Study(tmp_path)
    with pytest.raises(ValueError, match="does not belong to the certificate"):
        runs.run(study.options(0, key=tmp_path / "hospital_b.key"))
    assert not list(tmp_path.glob("*.ledger"))


# ---------------------------------------------------------------- outputs


def test_a_failure_at_the_end_leaves_others_with_a_model(tmp_path, monkeypatch):
    """So no page says that nobody gets an output. The party that failed is told that it has spent."""
    study, usual = Study(tmp_path), runs._write

    def full(folder, plan, index, *more):
        if index == 1:
            raise OSError("No space left on device")
        return usual(folder, plan, index, *more)

    monkeypatch.setattr(runs, "_write", full)
    found = study.together()
    assert isinstance(found[1], OSError)
    assert last_note(found[1]).endswith(f"the plan is charged to the ledger {study.ledger(1)}")
    assert all(found[index].exists() for index in (0, 2))
    root = Path(__file__).parents[2]
    pages = [*(root / "docs").rglob("*.rst"), *(root / "skdp" / "multiparty").rglob("*.py")]
    text = " ".join(" ".join(path.read_text().split()) for path in pages)
    for false in ("nobody gets an output", "and get no output", "There is no output"):
        assert false not in text
