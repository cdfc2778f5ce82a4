"""A BLAS whose products kill a process is told from one that runs, in a child."""

import signal
import sys

import numpy as np
import pytest
from threadpoolctl import threadpool_info

from skdp.exceptions import UnsupportedAccounting
from skdp.kernels import blas, blas_that_dies
from skdp.privacy import Vectors, check_batch_independence

NAMED = "print('openblas 0.3.34 with kernels for Haswell', flush=True)\n"
CRASH = f"{NAMED}import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"


@pytest.fixture
def child(monkeypatch):
    """Let the child run another program, as if the user had chosen the kernels for Haswell."""

    def runs(program):
        blas_that_dies.cache_clear()
        monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
        monkeypatch.setattr(blas, "PLAIN_PRODUCTS", program)

    yield runs
    blas_that_dies.cache_clear()


def refuse_to_be_called(X, y):
    raise AssertionError("the function was called")


@pytest.mark.skipif(sys.platform == "win32", reason="processes end there without a signal")
def test_a_library_that_dies_is_named_and_no_product_is_started_here(child):
    child(CRASH)
    assert blas_that_dies() == "openblas 0.3.34 with kernels for Haswell (OPENBLAS_CORETYPE=Haswell)"
    with pytest.raises(UnsupportedAccounting, match=r"0\.3\.34 .*Unset OPENBLAS_CORETYPE"):
        check_batch_independence(refuse_to_be_called, 3)


@pytest.mark.parametrize("program", [NAMED, "raise ImportError('no NumPy')"])
def test_a_child_that_was_not_killed_refuses_nothing(child, program):
    child(program)
    assert blas_that_dies() is None
    check_batch_independence(lambda X, y: [Vectors(np.tanh(X))], 3)


def test_no_child_is_started_where_the_library_chose_its_kernels(child, monkeypatch):
    child(CRASH)
    monkeypatch.delenv("OPENBLAS_CORETYPE")
    monkeypatch.setattr(blas.subprocess, "run", refuse_to_be_called)
    assert blas_that_dies() is None


@pytest.mark.parametrize("executable", ["", None, "/no/such/python"])
def test_without_an_interpreter_there_is_no_answer(child, monkeypatch, executable):
    child(CRASH)
    monkeypatch.setattr(sys, "executable", executable)
    assert blas_that_dies() is None


def test_the_kernels_of_this_process_run_in_a_child():
    """They run here: other tests multiply with them."""
    kernels = {info.get("architecture") for info in threadpool_info() if info["user_api"] == "blas"}
    for name in kernels - {None}:
        assert blas_that_dies(name) is None


def test_what_counts_as_killed():
    assert blas.died(-signal.SIGSEGV)
    assert blas.died(0xC0000005)  # an access violation on Windows
    assert not any(map(blas.died, (0, 1, 3, 127)))
