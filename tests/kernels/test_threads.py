"""The pool: every block once, errors come through, forks and nesting do not hang."""

import os
import subprocess
import sys
import threading
import time

import pytest

from skdp.kernels import is_cupy, n_threads, run_blocks


@pytest.fixture(params=[1, 2, 8])
def threads(request, monkeypatch):
    monkeypatch.setenv("SKDP_NUM_THREADS", str(request.param))
    return request.param


def test_every_block_runs_once_and_slots_do_not_overlap(threads):
    counts = [0] * 100
    busy = [threading.Lock() for _ in range(threads)]

    def work(slot, block):
        assert busy[slot].acquire(blocking=False)
        counts[block] += 1
        time.sleep(0.0002)
        busy[slot].release()

    assert run_blocks(work, 100) == threads
    assert counts == [1] * 100


def test_an_error_in_a_block_is_raised_and_stops_the_rest(threads):
    done = []

    def work(slot, block):
        done.append(block)
        time.sleep(0.001)
        if block == 3:
            raise KeyError("block 3")

    with pytest.raises(KeyError, match="block 3"):
        run_blocks(work, 10_000)
    assert len(done) < 1000


def test_nested_calls_do_not_wait_for_each_other(threads):
    inner = []

    def work(slot, block):
        run_blocks(lambda s, b: inner.append((block, b)), 4)

    run_blocks(work, 4)
    assert sorted(inner) == [(i, j) for i in range(4) for j in range(4)]


def test_small_work_stays_in_the_calling_thread(monkeypatch):
    monkeypatch.setenv("SKDP_NUM_THREADS", "4")
    seen = set()
    assert run_blocks(lambda s, b: seen.add(threading.get_ident()), 8, work=1000) == 1
    assert seen == {threading.get_ident()}
    assert run_blocks(lambda s, b: None, 0) == 1


def test_number_of_threads(monkeypatch):
    monkeypatch.setenv("NUMBA_NUM_THREADS", "3")
    monkeypatch.delenv("SKDP_NUM_THREADS", raising=False)
    assert n_threads() == 3
    monkeypatch.setenv("SKDP_NUM_THREADS", "5")
    assert n_threads() == 5
    for bad in ("0", "-1", "two"):
        monkeypatch.setenv("SKDP_NUM_THREADS", bad)
        with pytest.raises(ValueError, match="SKDP_NUM_THREADS must be a positive integer"):
            n_threads()
    monkeypatch.delenv("SKDP_NUM_THREADS")
    monkeypatch.delenv("NUMBA_NUM_THREADS")
    assert 1 <= n_threads() <= (os.cpu_count() or 1)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_makes_its_own_pool():
    code = """
import os, sys
os.environ["SKDP_NUM_THREADS"] = "3"
from skdp.kernels import run_blocks
done = []
run_blocks(lambda s, b: done.append(b), 50)
child = os.fork()
if child == 0:
    done.clear()
    run_blocks(lambda s, b: done.append(b), 50)
    os._exit(0 if sorted(done) == list(range(50)) else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", code], timeout=300, check=False)
    assert done.returncode == 0


def test_is_cupy_goes_by_the_module_name():
    class Fake:
        __module__ = "cupyx.scipy.sparse._csr"

    class Child(Fake):
        __module__ = "elsewhere"

    class Lookalike:
        __module__ = "cupyish"

    assert is_cupy(Fake())
    assert is_cupy(Child())
    assert not is_cupy(Lookalike())
    assert not is_cupy(None)
