"""The engine of one machine: real processes and sockets, the law of the noise, and what ends it."""

import asyncio
import copy
import gc
import os
import pickle
import signal
import socket
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

from skdp import MPCGradientPerturbationClassifier
from skdp.multiparty.engine.control import read_greeting
from skdp.multiparty.engine.laplace_bits import UNNOTICED
from skdp.multiparty.engine.loopback import LoopbackEngine
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.privacy import BoundedStatistic, Opening, PrivacySession

SIGMA = 2.0**12
X = [np.arange(104) * (i + 1) for i in range(10)]


@pytest.fixture(scope="module")
def engine():
    with LoopbackEngine(10) as running:
        yield running


def alive(pids):
    """Those of these processes that still run."""
    found = []
    for pid in pids:
        try:
            with open(f"/proc/{pid}/stat") as file:
                if file.read().split(")")[1].split()[0] != "Z":
                    found.append(pid)
        except FileNotFoundError:
            pass
    return found


def servers_of(engine):
    return [process.pid for process in engine._parties.processes]


def test_the_sum_is_opened_with_the_noise_of_all_servers(engine):
    """Std within 5.2 of its own standard deviations, mean as well: false alarms below 1e-6."""
    engine.prepare(30, 104, SIGMA)
    errors = np.array([engine.open(X, SIGMA) - sum(X) for _ in range(30)])
    assert errors.dtype == np.int64
    std = SIGMA * np.sqrt(3 / 2)
    spread = 5.2 / np.sqrt(2 * errors.size)
    assert abs(errors.std() / std - 1) < spread
    assert abs(errors.std() / (SIGMA / np.sqrt(2)) - 1) > spread  # a mutant of which one server draws
    assert abs(errors.mean()) < 5.2 * std / np.sqrt(errors.size)
    assert np.unique(errors).size > errors.size / 2  # laid noise serves once


def test_another_scale_and_shape_lay_noise_of_their_own(engine):
    opened = engine.open([np.full((2, 3), 5)] * 10, 4 * SIGMA)
    assert opened.shape == (2, 3)
    assert 0 < abs(opened - 50).max() < 14 * 5 * SIGMA


def test_what_travels_depends_on_the_number_of_values_only(engine):
    sent = []
    for values in (X, [x * 2**40 for x in X]):
        before = engine.traffic()
        engine.open(values, 8 * SIGMA)
        after = engine.traffic()
        sent.append((after.sent_bytes - before.sent_bytes, after.sent_frames - before.sent_frames))
    assert sent[0] == sent[1]
    assert sent[0][0] < 150_000


def test_a_session_releases_through_it(engine):
    session = PrivacySession(epsilon=1.0, delta=1e-6, random_state=0)
    plan = session.plan_gaussian(2)
    made = [BoundedStatistic(np.full(20, float(i)), l2=1.0) for i in range(10)]
    released = session.gaussian_by_engine(made, plan, engine)
    assert abs(released - 45).max() < 2 * plan.noise_multiplier * 1.3 * 5.5
    report = session.report()
    assert any("1 of 3 semi-honest servers" in line for line in report.assumptions)
    assert any(UNNOTICED in line for line in report.assumptions)  # of Laplace noise
    (row,) = report.mechanisms
    counted = row["noise_multiplier"] * row["sensitivity"]
    assert row["noise_std"] == pytest.approx(1.5**0.5 * counted, rel=1e-12)
    alone = PrivacySession(epsilon=1.0, delta=1e-6, random_state=0)
    alone.gaussian(made[0], alone.plan_gaussian(2))
    assert report.numerical_error[0] > 2 * alone.report().numerical_error[0]


def test_bad_input_opens_nothing_and_harms_nothing(engine):
    for integers, error in (
        (X[:9], ValueError),
        ([x.astype(float) for x in X], TypeError),
        ([*X[:9], X[9][:5]], TypeError),
    ):
        with pytest.raises(error):
            engine.open(integers, SIGMA)
    for sigma in (100.0, 2.0**42):
        with pytest.raises(ValueError, match="share of the noise"):
            engine.open(X, sigma)
    assert engine.open(X, SIGMA).shape == (104,)


def test_strangers_are_not_let_in(engine):
    port = engine._parties.links[0][0]._writer.get_extra_info("peername")[1]
    for hello in (b"\0" * 36, b"x"):
        with socket.create_connection(("127.0.0.1", port), timeout=10) as stranger:
            stranger.sendall(hello)
            stranger.shutdown(socket.SHUT_WR)
            assert stranger.recv(100) == b""
    assert engine.open(X, SIGMA).shape == (104,)


def test_a_copy_is_the_engine_and_a_pickle_is_one_that_is_not_running(engine):
    assert copy.copy(engine) is copy.deepcopy(engine) is engine
    sent = pickle.loads(pickle.dumps(engine))
    assert (sent.n_owners, sent.n_servers, sent.rounds) == (10, 3, 1)
    assert sent.deadline == engine.deadline
    with pytest.raises(RuntimeError, match="with statement"):
        sent.open(X, SIGMA)
    with pytest.raises(RuntimeError, match="already"):
        engine.__enter__()


@pytest.mark.thorough
def test_an_estimator_with_an_engine_is_cloned_searched_and_pickled():
    rng = np.random.default_rng(0)
    A = rng.normal(size=(90, 3))
    y, owners = (A[:, 0] > 0) * 1, np.arange(90) % 2
    with LoopbackEngine(2) as running, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = MPCGradientPerturbationClassifier(classes=(0, 1), engine=running, max_iter=2, accountant=False)
        assert clone(model).engine is running
        search = GridSearchCV(model, {"alpha": [0.1, 1.0]}, cv=2).fit(A, y, owners=owners)
        assert not np.isnan(search.cv_results_["mean_test_score"]).any()
        model.fit(A, y, owners=owners)
        sent = pickle.loads(pickle.dumps(model))
    assert np.array_equal(sent.predict(A), model.predict(A))
    with pytest.raises(RuntimeError, match="with statement"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        sent.fit(A, y, owners=owners)


def opening(n_owners, n_values, noise, scale):
    return Opening(n_owners=n_owners, n_values=n_values, noise=noise, scale=scale, grid=1.0, sensitivity=1.0)


def test_it_gets_ready_once_for_an_opening(engine):
    """Noise that is laid serves the opening; nothing is laid for what cannot be opened."""
    engine.ready(opening(10, 7, "gaussian", SIGMA))
    before = engine.traffic()
    engine.ready(opening(10, 7, "gaussian", SIGMA))
    assert engine.traffic() == before
    opened = engine.open([np.arange(7)] * 10, SIGMA)
    assert abs(opened - 10 * np.arange(7)).max() < 14 * 5 * SIGMA
    for wrong, match in (
        ((9, 7, "gaussian", SIGMA), "10 owners"),
        ((10, 7, "gaussian", 1.0), "share of the noise"),
        ((10, 7, "laplace", 1.0), "the scale"),
    ):
        with pytest.raises(ValueError, match=match):
            engine.ready(opening(*wrong))


@pytest.mark.parametrize("how", ["silence", "a reset"])
def test_who_does_not_greet_is_nobody(how):
    async def greeting():
        reader = asyncio.StreamReader()
        reader.feed_data(b"half")
        if how == "a reset":
            reader.set_exception(ConnectionResetError())
        return await asyncio.wait_for(read_greeting(reader, b"x" * 32, deadline=0.05), 5.0)

    assert asyncio.run(greeting()) is None


def test_parameters():
    for wrong in ({"n_owners": 0}, {"n_owners": 2**21}, {"n_owners": 2, "n_servers": 4}):
        with pytest.raises(ValueError):
            LoopbackEngine(**wrong)
    with pytest.raises(ValueError, match="deadline"):
        LoopbackEngine(2, deadline=float("inf"))
    with pytest.raises(RuntimeError, match="with statement"):
        LoopbackEngine(2).open(X[:2], SIGMA)


@pytest.mark.thorough
def test_five_servers():
    with LoopbackEngine(1, n_servers=5, rounds=2) as engine:
        opened = [engine.open([np.arange(5)], SIGMA) for _ in range(2)]
    assert 0 < abs(np.array(opened)).max() < 14 * 5 * SIGMA
    assert (opened[0] != opened[1]).any()
    assert "2 of 5" in engine.name


@pytest.mark.thorough
def test_an_engine_starts_again():
    engine = LoopbackEngine(1)
    for _ in range(2):
        with engine:
            pids = servers_of(engine)
            assert len(alive(pids)) == 3
            engine.prepare(1, 5, SIGMA)
        assert alive(pids) == []


@pytest.mark.thorough
def test_a_dead_server_is_named_and_the_engine_ends_cleanly():
    with pytest.raises(PartyError) as caught, LoopbackEngine(2) as engine:
        pids = servers_of(engine)
        os.kill(pids[1], signal.SIGKILL)
        while alive([pids[1]]):
            time.sleep(0.01)
        try:
            engine.open(X[:2], SIGMA)
        finally:
            with pytest.raises(RuntimeError, match="failed before"):
                engine.open(X[:2], SIGMA)
    assert (caught.value.peer, caught.value.reason) == ("server 1", Reason.LOST)
    assert alive(pids) == []


@pytest.mark.thorough
def test_a_stalled_server_is_named():
    for deadline in (2.0, 8.0, 32.0):  # a busy machine needs a longer one
        with LoopbackEngine(2, deadline=deadline) as engine:
            engine.prepare(1, 104, SIGMA)
            pids = servers_of(engine)
            os.kill(pids[2], signal.SIGSTOP)
            try:
                with pytest.raises(PartyError) as caught:
                    engine.open(X[:2], SIGMA)
            finally:
                os.kill(pids[2], signal.SIGCONT)
        if caught.value.peer == "server 2":
            break
    assert (caught.value.peer, caught.value.reason) == ("server 2", Reason.LATE)
    assert alive(pids) == []


@pytest.mark.thorough
@pytest.mark.parametrize("end", ["sys.exit(3)", "os._exit(3)", "raise ValueError"])
def test_servers_end_with_the_calling_process(end):
    code = (
        "import os, sys\n"
        "from skdp.multiparty.engine.loopback import LoopbackEngine\n"
        "engine = LoopbackEngine(1).__enter__()\n"
        "print(*(p.pid for p in engine._parties.processes), flush=True)\n" + end
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    pids = [int(pid) for pid in ran.stdout.split()]
    assert (len(pids), ran.returncode) == (3, 1 if "raise" in end else 3)
    until = time.monotonic() + 120
    while alive(pids) and time.monotonic() < until:
        time.sleep(0.05)
    assert alive(pids) == []


@pytest.mark.slow
def test_a_thousand_owners():
    x = [np.full(104, i) for i in range(1000)]
    with LoopbackEngine(1000) as engine:
        opened = engine.open(x, SIGMA)
    assert abs(opened - 999 * 500).max() < 14 * 2 * SIGMA


@pytest.mark.slow
def test_a_hundred_thousand_features():
    with LoopbackEngine(3) as engine:
        opened = engine.open([np.arange(100_000)] * 3, 2.0**30)
    assert abs(opened - 3 * np.arange(100_000)).max() < 14 * 2 * 2.0**30


@pytest.mark.thorough
def test_a_module_in_the_working_folder_takes_no_ones_place(tmp_path, monkeypatch):
    (tmp_path / "hmac.py").write_text(f"open({str(tmp_path / 'seen')!r}, 'w').close()")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend("")
    with LoopbackEngine(1) as engine:
        engine.open([np.zeros(2, dtype=np.int64)], 2.0**20)
    assert not (tmp_path / "seen").exists()


@pytest.mark.thorough
@pytest.mark.parametrize("killed", [False, True])
def test_a_closed_engine_leaves_no_socket_open(killed):
    """Sockets of an event loop that is closed before them warn when they are collected."""
    gc.collect()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        with LoopbackEngine(2, deadline=5.0) as engine:
            engine.open(X[:2], SIGMA)
            if killed:
                os.kill(servers_of(engine)[1], signal.SIGKILL)
                with pytest.raises(PartyError):
                    engine.open(X[:2], SIGMA)
        del engine
        gc.collect()
    assert [str(one.message) for one in said if one.category is ResourceWarning] == []
