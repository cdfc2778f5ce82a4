"""The accountant: its reservations, its file, and handles that are not copies."""

import copy
import json
import os
import pickle
import sqlite3
import stat
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import skdp
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.budget import BudgetAccountant, read_ledger

HERE = str(Path(__file__).parent)
ROOT = str(Path(skdp.__file__).parents[1])  # the same skdp in subprocesses
if HERE not in sys.path:
    sys.path.insert(0, HERE)

import dummy_estimator as dummy  # noqa: E402
from dummy_estimator import current_accountant  # noqa: E402


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, np.arange(60) % 3


def run_script(text, *arguments):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([ROOT, HERE])}
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# Reservations


def test_life_of_a_reservation(accountant):
    kept = dummy.gauss(accountant, 1.0, estimator="kept")
    assert accountant.ledger()[0]["state"] == kept.state == "reserved"
    assert accountant.spent()[0] == pytest.approx(1.0)
    kept.commit()
    kept.commit()
    with pytest.raises(RuntimeError, match="stays charged"):
        kept.release()
    back = dummy.gauss(accountant, 2.0, estimator="back")
    back.release()
    back.release()
    with pytest.raises(RuntimeError, match="handed back"):
        back.commit()
    assert [row["state"] for row in accountant.ledger()] == ["spent", "returned"]
    assert accountant.spent()[0] == pytest.approx(1.0)
    with pytest.raises(TypeError, match="does not pickle"):
        pickle.dumps(kept)


def test_reservation_as_a_context(accountant):
    with pytest.raises(KeyError), dummy.gauss(accountant, 1.0):
        raise KeyError("before the first release")
    with pytest.raises(KeyError), dummy.gauss(accountant, 1.0) as reservation:
        reservation.commit()
        raise KeyError("after it")
    with dummy.gauss(accountant, 1.0):
        pass
    assert [row["state"] for row in accountant.ledger()] == ["returned", "spent", "spent"]


def test_interrupted_commit_stays_charged(accountant, monkeypatch):
    reservation = dummy.gauss(accountant, 1.0)

    def interrupt(number, state):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(accountant, "_mark", interrupt)
        with pytest.raises(KeyboardInterrupt):
            reservation.commit()
    with pytest.raises(RuntimeError, match="stays charged"):
        reservation.release()
    assert accountant.spent()[0] == pytest.approx(1.0)


def test_rows_say_who_and_when(accountant, monkeypatch):
    def nobody():
        raise OSError("no entry")

    dummy.gauss(accountant, 1.0)
    monkeypatch.setattr("getpass.getuser", nobody)
    dummy.gauss(accountant, 1.0)
    first, second = accountant.ledger()
    assert set(first) == {
        *("estimator", "epsilon", "delta", "adjacency", "unit", "time", "pid", "user", "state"),
        "part",
    }
    assert first["pid"] == os.getpid()
    assert first["time"].endswith("+00:00")
    assert first["user"]
    assert second["user"] == f"uid {os.getuid()}"


# The file


def test_temporary_file_is_private_and_goes_with_its_owner():
    text = """
import os, sys
from skdp.privacy import BudgetAccountant
accountant = BudgetAccountant(1.0, 1e-5)
child = os.fork()
if child == 0:
    sys.exit(0)  # runs the exit functions of the fork
os.waitpid(child, 0)
assert os.path.exists(accountant.path)
print(oct(os.stat(accountant.path).st_mode), oct(os.stat(os.path.dirname(accountant.path)).st_mode))
print(accountant.path)
"""
    modes, path = run_script(text).splitlines()
    assert modes == "0o100600 0o40700"
    assert not os.path.exists(os.path.dirname(path))


def test_kept_file(tmp_path):
    path = tmp_path / "led?ger #1.sqlite3"
    accountant = BudgetAccountant(3.0, 1e-5, path=path)
    dummy.gauss(accountant, 1.0).commit()
    again = BudgetAccountant(3.0, 1e-5, path=str(path))
    assert again == accountant
    assert hash(again) == hash(accountant)
    assert again != BudgetAccountant(3.0, 1e-5)
    assert again.spent() == accountant.spent()
    assert len(again.ledger()) == 1
    for other in [(4.0, 1e-5), (3.0, 1e-6)]:
        with pytest.raises(ValueError, match=r"its ceiling is epsilon=3.0, delta=1e-05"):
            BudgetAccountant(*other, path=path)
    text = "import sys; from skdp.privacy import BudgetAccountant as B; import dummy_estimator as d"
    run_script(f"{text}; d.charge(B(3.0, 1e-5, path=sys.argv[1]), 0.1)", path)
    assert len(accountant.ledger()) == 2
    assert stat.S_ISREG(path.stat().st_mode)


def test_not_a_ledger(tmp_path):
    noise = tmp_path / "noise.csv"
    noise.write_text("a,b\n1,2\n" * 200)
    foreign = tmp_path / "foreign.sqlite3"
    connection = sqlite3.connect(foreign)
    connection.execute("CREATE TABLE patients (name TEXT)")
    connection.commit()
    connection.close()
    future = tmp_path / "future.sqlite3"
    BudgetAccountant(1.0, 1e-5, path=future)
    connection = sqlite3.connect(future)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    for path, message in [(noise, "not a ledger"), (foreign, "not a ledger"), (future, "version")]:
        before = path.read_bytes()
        with pytest.raises(ValueError, match=message):
            BudgetAccountant(1.0, 1e-5, path=path)
        with pytest.raises(ValueError, match=message):
            read_ledger(path)
        assert path.read_bytes() == before
    (tmp_path / "empty").touch()
    with pytest.raises(ValueError, match="empty"):
        read_ledger(tmp_path / "empty")
    with pytest.raises(FileNotFoundError, match="no ledger file"):
        read_ledger(tmp_path / "missing")
    with pytest.raises(FileNotFoundError, match=r"no folder .*no folder\. Create the folder first"):
        BudgetAccountant(1.0, 1e-5, path=tmp_path / "no folder" / "ledger")


def test_read_ledger(tmp_path):
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(3.0, 1e-5, path=path)
    dummy.gauss(accountant, 1.0, estimator="DPIGHTClassifier").commit()
    summary = read_ledger(path)
    assert summary == {
        "path": str(path),
        "epsilon": 3.0,
        "delta": 1e-5,
        "spent": accountant.spent(),
        "remaining": accountant.remaining(),
        "parts": {},
        "kept": True,
        "writes": 3,  # made, reserved, committed
        "fits": accountant.ledger(),
    }
    json.dumps(summary)
    assert read_ledger(BudgetAccountant(1.0, 0.0).path)["kept"] is False


def test_ledger_gone(tmp_path, data):
    X, y = data
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(10.0, 1e-5, path=path)
    model = dummy.DummyClassifier(accountant=accountant).fit(X, y > 0)
    reservation = dummy.gauss(accountant, 1.0)
    path.unlink()
    assert model.predict(X).shape == (60,)
    for action in [lambda: model.fit(X, y > 0), reservation.commit, accountant.spent]:
        with pytest.raises(PrivacyBudgetExceeded, match="ledger is gone"):
            action()
    assert "is gone" in repr(accountant)
    BudgetAccountant(10.0, 1e-5, path=path)  # another ledger at the same place
    with pytest.raises(PrivacyBudgetExceeded, match="another one"):
        model.fit(X, y > 0)


# A handle, not a copy


def test_handle_survives_copies(accountant, data):
    assert copy.copy(accountant) is copy.deepcopy(accountant) is accountant
    assert pickle.loads(pickle.dumps(accountant)) is accountant
    model = dummy.DummyClassifier(accountant=accountant)
    assert clone(model).accountant is accountant
    assert clone(make_pipeline(Normalizer(), model))[-1].accountant is accountant
    assert pickle.loads(pickle.dumps(model)).accountant is accountant
    assert "100" in repr(accountant)
    assert "DummyClassifier" in repr(model)
    assert accountant.path in repr(accountant)


def test_with_blocks():
    outer, inner = BudgetAccountant(1.0, 0.0), BudgetAccountant(1.0, 0.0)
    assert current_accountant() is None
    with outer as entered:
        assert entered is current_accountant() is outer
        with inner, outer, inner:
            assert current_accountant() is inner
        assert current_accountant() is outer
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(current_accountant).result() is None
            assert pool.submit(copy_context().run, current_accountant).result() is outer
    assert current_accountant() is None
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)  # two generators may end in any order
    assert current_accountant() is inner
    inner.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert current_accountant() is None


def test_pickles_of_handles_name_the_package(accountant):
    """Pickles and files of skops that were made when the class lay in the module ``skdp.privacy.budget``."""
    text = pickle.dumps(accountant, protocol=2)
    assert b"skdp.privacy.budget\n_handle" in text
    assert b"budget.accountant" not in text
    assert pickle.loads(text) is accountant
    assert BudgetAccountant.__module__ == "skdp.privacy.budget"


@pytest.mark.thorough
def test_ambient_accountant_in_pickles_and_clones(data):
    X, y = data
    accountant = BudgetAccountant(10.0, 1e-5)
    model = dummy.DummyClassifier()
    with accountant:
        inside = pickle.dumps(model)
        back = pickle.loads(inside)
        model.fit(X, y > 0)
        both = pickle.loads(pickle.dumps(dummy.DummyClassifier(accountant=accountant)))
    assert len(accountant.ledger()) == 1
    # In the process of the block, only the block counts: pickled there or not.
    assert both.accountant is accountant
    back.fit(X, y > 0)
    assert len(accountant.ledger()) == 1
    assert "_ambient_accountant" not in model.__getstate__()
    assert "_ambient_accountant" not in vars(clone(model))
    # Elsewhere, the handle is carried, also by clones and by pickles of the worker.
    text = """
import pickle, sys
from sklearn.base import clone
from skdp.privacy.budget import BudgetAccountant
import numpy as np
model = pickle.loads(bytes.fromhex(sys.argv[1]))
X, y = np.eye(4), np.arange(4) % 2
pickle.loads(pickle.dumps(clone(clone(model)))).fit(X, y)
with BudgetAccountant(1.0, 1e-5) as own:
    model.fit(X, y)
assert len(own.ledger()) == 1
"""
    run_script(text, inside.hex())
    assert len(accountant.ledger()) == 2


def test_parameter_goes_before_the_block(accountant, data):
    X, y = data
    other = BudgetAccountant(10.0, 1e-5)
    with other:
        dummy.DummyClassifier(accountant=accountant).fit(X, y > 0)
    assert len(accountant.ledger()) == 1
    assert other.ledger() == []


@pytest.mark.slow
@pytest.mark.parametrize("how", ["parameter", "with"])
def test_model_loaded_elsewhere_predicts_and_does_not_fit(how, tmp_path):
    make = """
import pickle, sys
import numpy as np
import dummy_estimator as d
from skdp.privacy import BudgetAccountant
X, y = np.eye(4), np.arange(4) % 2
accountant = BudgetAccountant(10.0, 1e-5)
model = d.DummyClassifier(accountant=accountant if sys.argv[2] == "parameter" else None)
with accountant:
    model.fit(X, y)
    first = pickle.dumps(model)
    d.DummyClassifier().fit(X, y)
    path, identity, seen = accountant.__reduce__()[1]
    assert [len(write) for write in seen] == [2]  # number and token of the last write, no cost
    assert len(pickle.dumps(model)) == len(first)
    open(sys.argv[1], "wb").write(first)
assert len(accountant.ledger()) == 2
"""
    load = """
import pickle, sys
import numpy as np
from sklearn.base import clone
from skdp.exceptions import PrivacyBudgetExceeded
X, y = np.eye(4), np.arange(4) % 2
model = pickle.load(open(sys.argv[1], "rb"))
assert model.predict(X).shape == (4,)
repr(model)
for estimator in (model, clone(model)):
    try:
        estimator.fit(X, y)
    except PrivacyBudgetExceeded as error:
        print(error)
assert model.predict(X).shape == (4,)
"""
    run_script(make, tmp_path / "model", how)
    lines = run_script(load, tmp_path / "model").splitlines()
    assert len(lines) == 2
    assert all("ledger is gone" in line and "fit is refused" in line for line in lines)
