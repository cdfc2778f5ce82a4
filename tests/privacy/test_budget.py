"""The accountant: its rules, its file, and that no way of running a fit escapes it."""

import copy
import json
import math
import multiprocessing
import os
import pickle
import sqlite3
import stat
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import joblib
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.multiclass import OneVsRestClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer

import skdp
from skdp.exceptions import PrivacyBudgetExceeded, UnsupportedAccounting
from skdp.privacy.accounting import gaussian_delta, gaussian_epsilon, gaussian_mu, pure_mu
from skdp.privacy.budget import BudgetAccountant, current_accountant, read_ledger
from skdp.privacy.filters import Ceiling, admits, check_charge, remaining_after, spent_by

HERE = str(Path(__file__).parent)
ROOT = str(Path(skdp.__file__).parents[1])  # the same skdp in subprocesses
if HERE not in sys.path:
    sys.path.insert(0, HERE)

import dummy_estimator as dummy  # noqa: E402

KIND = {"adjacency": "replace-one", "unit": "record"}


@pytest.fixture(scope="module", autouse=True)
def fresh_workers():
    """Workers that other tests left behind do not know the folder of the dummy."""
    joblib.externals.loky.get_reusable_executor(max_workers=2).shutdown(wait=True)


@pytest.fixture
def accountant():
    return BudgetAccountant(100.0, 1e-5)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    return X, np.arange(60) % 3


def gauss(accountant, epsilon, delta=1e-5, estimator="fit", **more):
    mu = gaussian_mu(epsilon, delta)
    cost = {"epsilon": epsilon, "delta": delta, "mu": mu} | KIND | more
    return accountant.reserve(estimator=estimator, **cost)


def run_script(text, *arguments):
    environment = os.environ | {"PYTHONPATH": os.pathsep.join([ROOT, HERE])}
    done = subprocess.run(
        [sys.executable, "-c", text, *map(str, arguments)],
        capture_output=True,
        text=True,
        env=environment,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


# What is admitted


def make_fit(epsilon, delta):
    if delta == 0.0:
        return check_charge("fit", epsilon, 0.0, None, True, (0.0, 0.0))
    return check_charge("fit", epsilon, delta, gaussian_mu(epsilon, delta), False, (0.0, 0.0))


@settings(deadline=None, derandomize=True, max_examples=150)
@given(
    st.floats(0.05, 20.0),
    st.sampled_from([0.0, 1e-9, 1e-5, 1e-2]),
    st.lists(
        st.tuples(st.floats(0.01, 5.0), st.sampled_from([0.0, 1e-8, 1e-5])), min_size=1, max_size=12
    ),
)
def test_whatever_is_admitted_is_within_the_ceiling(epsilon, delta, wanted):
    ceiling = Ceiling("", epsilon, delta, False)
    charged = []
    for cost in wanted:
        fit = make_fit(*cost)
        if admits([*charged, fit], ceiling):
            charged.append(fit)
        if not charged:
            continue
        pure_sum = sum(f.epsilon for f in charged) if all(f.pure for f in charged) else math.inf
        total = math.sqrt(sum(f.mu**2 for f in charged))
        alone = len(charged) == 1 and charged[0].epsilon <= epsilon and charged[0].delta <= delta
        exact = gaussian_delta(total, epsilon) <= delta * (1 + 1e-12)
        assert pure_sum <= epsilon * (1 + 1e-11) or exact or alone
        spent = spent_by(charged, ceiling)
        assert spent[0] <= epsilon
        assert spent[1] <= delta
        left = remaining_after(charged, ceiling)
        if left[0] > 1e-3:
            assert admits([*charged, make_fit(*left)], ceiling)
            assert not admits([*charged, make_fit(left[0] * 1.001, left[1])], ceiling)


@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-5), (10.0, 1e-6), (0.1, 1e-9), (2.0, 0.0)])
def test_one_fit_of_the_whole_ceiling_fits_and_nothing_after_it(epsilon, delta):
    accountant = BudgetAccountant(epsilon, delta)
    assert accountant.spent() == (0.0, 0.0)
    assert accountant.remaining() == (epsilon, delta)
    if delta:
        gauss(accountant, epsilon, delta)
    else:
        dummy.charge(accountant, epsilon)
    assert accountant.spent()[0] == pytest.approx(epsilon, rel=1e-8)
    assert accountant.spent()[0] <= epsilon
    assert accountant.remaining()[0] < 1e-3 * epsilon
    with pytest.raises(PrivacyBudgetExceeded, match="refused before it read a value"):
        gauss(accountant, 0.01, 1e-5)
    assert len(accountant.ledger()) == 1


def test_gaussian_fits_add_up_in_mu_squared():
    mu = gaussian_mu(1.0, 1e-5)
    granted = 0
    accountant = BudgetAccountant(6.0, 1e-5)
    with pytest.raises(PrivacyBudgetExceeded):
        while True:
            gauss(accountant, 1.0)
            granted += 1
    assert granted == math.floor((gaussian_mu(6.0, 1e-5) / mu) ** 2) > 6
    # Exactly ten fits are granted under the exact cost of ten, whatever the rounding.
    ten = BudgetAccountant(gaussian_epsilon(math.sqrt(10) * mu, 1e-5), 1e-5)
    for _ in range(10):
        gauss(ten, 1.0)
    with pytest.raises(PrivacyBudgetExceeded):
        gauss(ten, 0.05)
    # A zCDP filter would have granted fewer: rho + 2 sqrt(rho log(1/delta)) with rho = mu^2 / 2.
    rho = 10 * mu**2 / 2
    assert rho + 2 * math.sqrt(rho * math.log(1e5)) > ten.epsilon


def test_pure_fits_use_the_better_rule():
    few = BudgetAccountant(0.3, 0.0)
    for _ in range(3):
        dummy.charge(few, 0.1)  # 0.1 + 0.1 + 0.1 > 0.3 in floating point
    assert few.spent() == (pytest.approx(0.3), 0.0)
    with pytest.raises(PrivacyBudgetExceeded):
        dummy.charge(few, 1e-6)
    many = BudgetAccountant(3.0, 1e-5)
    for _ in range(60):
        dummy.charge(many, 0.06)  # the sum, 3.6, passes the ceiling; the Gaussian filter does not
    assert many.spent()[0] < 3.0
    assert many.spent()[1] == 1e-5
    assert many.spent()[0] >= gaussian_epsilon(math.sqrt(60) * pure_mu(0.06), 1e-5)


def test_pure_beyond_the_filter_refuses_gaussian_fits():
    accountant = BudgetAccountant(2.0, 1e-5)
    dummy.charge(accountant, 1.9)  # pure_mu(1.9) alone is past the Gaussian bound
    assert pure_mu(1.9) > gaussian_mu(2.0, 1e-5)
    epsilon, delta = accountant.remaining()
    assert (epsilon, delta) == (pytest.approx(0.1), 0.0)
    with pytest.raises(PrivacyBudgetExceeded):
        gauss(accountant, 0.01)
    dummy.charge(accountant, 0.1)


def test_noise_error_is_charged():
    ceiling = Ceiling("", 4.0, 1e-5, False)
    mu = gaussian_mu(4.0, 1e-5) / 2
    exact = check_charge("fit", 2.5, 1e-5, mu, False, (0.0, 0.0))
    assert admits([exact] * 4, ceiling)
    for error in [(1e-7, 0.0), (0.0, 1e-11)]:
        rough = check_charge("fit", 2.5, 1e-5, mu, False, error)
        assert admits([rough] * 3, ceiling)
        assert not admits([rough] * 4, ceiling)
    huge = Ceiling("", 1e4, 1e-5, False)
    assert not admits([check_charge("fit", 1e4, 1e-3, 1.0, False, (0.0, 1e-320))], huge)
    rough = check_charge("fit", 0.5, 1e-5, mu / 10, False, (0.2, 0.0))
    cost = spent_by([rough] * 4, ceiling)[0]
    assert cost > 2 * 4 * 0.2 + gaussian_epsilon(mu / 5, 1e-5)
    left = remaining_after([rough] * 4, ceiling)
    assert admits([*[rough] * 4, make_fit(*left)], ceiling)


@pytest.mark.parametrize(
    ("cost", "kind", "message"),
    [
        ({"epsilon": math.inf, "delta": 0.0}, PrivacyBudgetExceeded, "epsilon=inf"),
        ({"epsilon": 1.0, "delta": 1e-5}, UnsupportedAccounting, "neither pure nor Gaussian"),
        ({"epsilon": 1.0, "delta": 1e-5, "mu": 3.0}, ValueError, "costs more than"),
        ({"epsilon": 1.0, "delta": 0.0, "mu": 0.1}, ValueError, "costs more than"),
        ({"epsilon": 1.0, "delta": 1e-5, "pure": True}, ValueError, "pure fit has delta=0"),
        ({"epsilon": math.nan, "delta": 0.0, "pure": True}, ValueError, "epsilon must be"),
        ({"epsilon": -1.0, "delta": 0.0, "pure": True}, ValueError, "epsilon must be"),
        ({"epsilon": 1.0, "delta": 1.0, "mu": 0.1}, ValueError, "delta must be"),
        ({"epsilon": "1e", "delta": 0.0, "pure": True}, TypeError, "epsilon must be a number"),
    ],
)
def test_what_can_not_be_charged_is_refused(accountant, cost, kind, message):
    with pytest.raises(kind, match=message):
        accountant.reserve(estimator="fit", **cost, **KIND)
    assert accountant.ledger() == []


def test_one_adjacency_and_one_unit(accountant):
    first = gauss(accountant, 1.0, adjacency="zero-out")
    for other in [{"adjacency": "replace-one"}, {"adjacency": "zero-out", "unit": "group"}]:
        with pytest.raises(PrivacyBudgetExceeded, match=r"zero-out.*do not add up"):
            gauss(accountant, 1.0, **other)
    first.release()
    gauss(accountant, 1.0, unit="group")


@pytest.mark.parametrize("ceiling", [(0.0, 1e-5), (math.inf, 1e-5), (1.0, -0.1), (1.0, 1.0)])
def test_ceiling_out_of_range(ceiling):
    with pytest.raises(ValueError, match="must be"):
        BudgetAccountant(*ceiling)


# Reservations


def test_life_of_a_reservation(accountant):
    kept = gauss(accountant, 1.0, estimator="kept")
    assert accountant.ledger()[0]["state"] == kept.state == "reserved"
    assert accountant.spent()[0] == pytest.approx(1.0)
    kept.commit()
    kept.commit()
    with pytest.raises(RuntimeError, match="stays charged"):
        kept.release()
    back = gauss(accountant, 2.0, estimator="back")
    back.release()
    back.release()
    with pytest.raises(RuntimeError, match="handed back"):
        back.commit()
    assert [row["state"] for row in accountant.ledger()] == ["spent", "returned"]
    assert accountant.spent()[0] == pytest.approx(1.0)
    with pytest.raises(TypeError, match="does not pickle"):
        pickle.dumps(kept)


def test_reservation_as_a_context(accountant):
    with pytest.raises(KeyError), gauss(accountant, 1.0):
        raise KeyError("before the first release")
    with pytest.raises(KeyError), gauss(accountant, 1.0) as reservation:
        reservation.commit()
        raise KeyError("after it")
    with gauss(accountant, 1.0):
        pass
    assert [row["state"] for row in accountant.ledger()] == ["returned", "spent", "spent"]


def test_interrupted_commit_stays_charged(accountant, monkeypatch):
    reservation = gauss(accountant, 1.0)

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

    gauss(accountant, 1.0)
    monkeypatch.setattr("getpass.getuser", nobody)
    gauss(accountant, 1.0)
    first, second = accountant.ledger()
    assert set(first) == {
        *("estimator", "epsilon", "delta", "adjacency", "unit", "time", "pid", "user", "state")
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
    gauss(accountant, 1.0).commit()
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
    connection.execute("PRAGMA user_version = 2")
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
    with pytest.raises(OSError, match="cannot be opened"):
        BudgetAccountant(1.0, 1e-5, path=tmp_path / "no folder" / "ledger")


def test_read_ledger(tmp_path):
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(3.0, 1e-5, path=path)
    gauss(accountant, 1.0, estimator="DPIGHTClassifier").commit()
    summary = read_ledger(path)
    assert summary == {
        "path": str(path),
        "epsilon": 3.0,
        "delta": 1e-5,
        "spent": accountant.spent(),
        "remaining": accountant.remaining(),
        "kept": True,
        "fits": accountant.ledger(),
    }
    json.dumps(summary)
    assert read_ledger(BudgetAccountant(1.0, 0.0).path)["kept"] is False


def test_ledger_gone(tmp_path, data):
    X, y = data
    path = tmp_path / "ledger"
    accountant = BudgetAccountant(10.0, 1e-5, path=path)
    model = dummy.DummyClassifier(accountant=accountant).fit(X, y > 0)
    reservation = gauss(accountant, 1.0)
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
            assert pool.submit(current_accountant).result() is outer
    assert current_accountant() is None
    outer.__enter__()
    inner.__enter__()
    outer.__exit__(None, None, None)  # two threads may end in any order
    assert current_accountant() is inner
    inner.__exit__(None, None, None)
    inner.__exit__(None, None, None)
    assert current_accountant() is None


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
    assert "_ambient_accountant" not in vars(back)
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


# Workers

BACKENDS = [("loky", 1), *((name, 2) for name in ("loky", "threading", "multiprocessing"))]
GRID = [0.0, 0.1, 0.2]


def search(estimator, name, n_jobs):
    return GridSearchCV(estimator, {name: GRID}, cv=5, n_jobs=n_jobs, error_score="raise")


@pytest.mark.parametrize(("backend", "n_jobs"), BACKENDS)
@pytest.mark.parametrize("how", ["parameter", "pipeline", "ovr", "with", "with-pipeline-ovr"])
def test_a_search_charges_every_fit(backend, n_jobs, how, accountant, data):
    X, y = data
    payer = None if how.startswith("with") else accountant
    model = dummy.DummyClassifier(accountant=payer)
    per_fit = 1
    if how == "pipeline":
        wrapped, name = make_pipeline(Normalizer(), model), "dummyclassifier__shift"
    elif how == "ovr":
        wrapped, name, per_fit = OneVsRestClassifier(model), "estimator__shift", 3
    elif how == "with-pipeline-ovr":
        wrapped = make_pipeline(Normalizer(), OneVsRestClassifier(model))
        name, per_fit = "onevsrestclassifier__estimator__shift", 3
    else:
        wrapped, name = model, "shift"
    target = y if per_fit == 3 else y > 0
    with joblib.parallel_config(backend):
        if payer is None:
            with accountant:
                found = search(wrapped, name, n_jobs).fit(X, target)
        else:
            found = search(wrapped, name, n_jobs).fit(X, target)
    rows = accountant.ledger()
    assert len(rows) == 16 * per_fit
    assert {row["state"] for row in rows} == {"spent"}
    processes = {row["pid"] for row in rows}
    elsewhere = n_jobs == 2 and backend != "threading"
    assert (len(processes) > 1) == elsewhere
    total = math.sqrt(16 * per_fit) * gaussian_mu(0.1, 1e-5)
    assert accountant.spent()[0] == pytest.approx(gaussian_epsilon(total, 1e-5), rel=1e-9)
    found.best_estimator_.predict(X)


@pytest.mark.parametrize("backend", ["loky", "threading", "multiprocessing"])
def test_one_vs_rest_in_workers(backend, accountant, data):
    """OneVsRestClassifier clones in the worker."""
    with joblib.parallel_config(backend), accountant:
        OneVsRestClassifier(dummy.DummyClassifier(), n_jobs=2).fit(*data)
    assert len(accountant.ledger()) == 3


@pytest.mark.parametrize("start", ["fork", "spawn", "forkserver"])
def test_multiprocessing_workers_charge_the_same_ledger(start, accountant, data, monkeypatch):
    X, y = data
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([ROOT, HERE]))
    context = multiprocessing.get_context(start)
    with accountant, context.Pool(1) as pool:
        model = dummy.DummyClassifier()
        where = {
            pool.apply(dummy.charge, (accountant,)),
            pool.apply(dummy.fit_in_this_process, (model, X, y > 0)),
            dummy.charge(accountant),
        }
    assert {row["pid"] for row in accountant.ledger()} == where
    assert len(where) == 2
    assert len(accountant.ledger()) == 3


def test_fork_inherits_the_block(accountant, data):
    X, y = data
    model = dummy.DummyClassifier()
    with accountant:
        child = os.fork()
        if child == 0:
            code = 1
            try:
                model.fit(X, y > 0)
                code = 0
            finally:
                os._exit(code)
        assert os.waitpid(child, 0)[1] == 0
    assert [row["pid"] for row in accountant.ledger()] == [child]


def test_fork_while_a_thread_visits_the_file():
    """Without the hooks the child would inherit a lock that nobody ever frees."""
    accountant = BudgetAccountant(1e6, 0.0)
    stop = threading.Event()

    def visits():
        while not stop.is_set():
            dummy.charge(accountant)

    busy = threading.Thread(target=visits)
    busy.start()
    children = []
    for _ in range(12):
        child = os.fork()
        if child == 0:
            code = 1
            try:
                dummy.charge(accountant)
                code = 0
            finally:
                os._exit(code)
        children.append(child)
    codes = [os.waitpid(child, 0)[1] for child in children]
    stop.set()
    busy.join()
    assert codes == [0] * 12
    charged = {row["pid"] for row in accountant.ledger()}
    assert charged >= set(children)


def test_race_for_the_ceiling():
    accountant = BudgetAccountant(100.0, 0.0)
    context = multiprocessing.get_context("fork")
    barrier, queue = context.Barrier(2), context.Queue()
    runners = [
        context.Process(target=dummy.charge_until_refused, args=(accountant, barrier, queue))
        for _ in range(2)
    ]
    for runner in runners:
        runner.start()
    granted = [queue.get(timeout=60) for _ in runners]
    for runner in runners:
        runner.join()
    assert sum(granted) == 100
    assert min(granted) > 0
    assert accountant.spent() == (100.0, 0.0)
    assert len(accountant.ledger()) == 100


@pytest.mark.parametrize("start", ["fork", "spawn"])
def test_killed_worker_stays_charged(start, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([ROOT, HERE]))
    accountant = BudgetAccountant(1.0, 0.0)
    worker = multiprocessing.get_context(start).Process(
        target=dummy.reserve_and_die, args=(accountant,)
    )
    worker.start()
    worker.join(60)
    assert worker.exitcode == -9
    assert accountant.spent() == (1.0, 0.0)
    assert [row["state"] for row in accountant.ledger()] == ["reserved"]
    with pytest.raises(PrivacyBudgetExceeded):
        dummy.charge(accountant, 0.5)


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
    assert pickle.dumps(model) == first  # nothing of what the ledger holds
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


@pytest.mark.parametrize("backend", ["loky", "multiprocessing"])
def test_exceptions_survive_workers(backend):
    for kind in dummy.EXCEPTIONS:
        with joblib.parallel_config(backend), pytest.raises(kind, match="one message"):
            joblib.Parallel(n_jobs=2)(joblib.delayed(dummy.raise_exception)(kind) for _ in "ab")


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_refusal_inside_a_search(n_jobs, data):
    X, y = data
    accountant = BudgetAccountant(2.0, 0.0)
    model = dummy.DummyClassifier(epsilon=1.0, delta=0.0, accountant=accountant)
    with pytest.warns(FitFailedWarning, match="3 fits failed"):
        scores = cross_val_score(model, X, y > 0, cv=5, n_jobs=n_jobs)
    assert np.isnan(scores).sum() == 3
    assert len(accountant.ledger()) == 2
    assert accountant.spent() == (2.0, 0.0)
    with pytest.raises(PrivacyBudgetExceeded, match="refused before it read a value"):
        cross_val_score(model, X, y > 0, cv=5, n_jobs=n_jobs, error_score="raise")
    assert len(accountant.ledger()) == 2


@pytest.mark.parametrize("n_jobs", [1, 2])
@pytest.mark.parametrize("delta", [0.0, 1e-5])
def test_search_never_passes_its_ceiling(n_jobs, delta, data):
    """REFEREE 16: 5 folds x 3 candidates of epsilon=1 under a ceiling."""
    X, y = data
    accountant = BudgetAccountant(10.0 if delta == 0.0 else 3.0, delta or 1e-5)
    model = dummy.DummyClassifier(epsilon=1.0, delta=delta, accountant=accountant)
    with pytest.raises(PrivacyBudgetExceeded, match="would pass the ceiling"):
        search(model, "shift", n_jobs).fit(X, y > 0)
    charged = len(accountant.ledger())
    epsilon, spent_delta = accountant.spent()
    assert epsilon <= accountant.epsilon
    assert spent_delta <= accountant.delta
    if n_jobs == 1:
        assert epsilon > accountant.remaining()[0]
    assert 0 < charged < 16
    # The fit that was refused read nothing: it fails before it looks at X.
    with pytest.raises(PrivacyBudgetExceeded):
        while True:
            dummy.DummyClassifier(epsilon=1.0, delta=delta, accountant=accountant).fit(X, y > 0)
    full = len(accountant.ledger())
    with pytest.raises(PrivacyBudgetExceeded):
        model.fit("not even an array", None)
    assert len(accountant.ledger()) == full
