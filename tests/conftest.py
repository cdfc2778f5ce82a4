"""How tests share the cores and the workers of pytest-xdist, and that no warning of a leak is left over."""

import gc
import os

import pytest

if "PYTEST_XDIST_WORKER" in os.environ:
    # A thread of BLAS or OpenMP spins while it waits for another one, and the other workers need the cores:
    # with two threads in each of two workers a simulation of small products took 33 s of processor time
    # instead of 1.2. Tests of threads ask for two.
    for variable in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(variable, "1")

COMPILED = ("tests/kernels/", "tests/test_contract.py")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config, log):
    """Give a file to one worker, and those that call all kernels to the same one, first.

    In a fresh copy the kernels are compiled when they are first called. Where their tests are spread over workers,
    each of them compiles nearly all, and that is most of what these tests take.
    """
    if config.getoption("dist") != "load":  # asked for by name
        return None
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid):
            path = nodeid.split("::")[0]
            return "kernels" if path.startswith(COMPILED) else path

    return ByFile(config, log)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Let the garbage collector look at no item: a million objects that live until the end of the run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


left_over = []


def pytest_warning_recorded(warning_message, when, nodeid, location):
    """Note a leak that no test expected; pytest-xdist tells the first process of those in its workers.

    What is named a leak follows from classes and parameters alone, so no run can differ in it from another. Other
    warnings stand in the summary: some follow from noise, and some from the versions of other libraries.
    """
    from skdp.exceptions import PrivacyLeakWarning, UnprovenPrivacyWarning

    if issubclass(warning_message.category, (PrivacyLeakWarning, UnprovenPrivacyWarning)):
        left_over.append(nodeid)


def pytest_sessionfinish(session):
    """Fail a run that leaves such warnings over."""
    if left_over and session.exitstatus == pytest.ExitCode.OK:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter):
    """Say why."""
    if left_over:
        terminalreporter.section("leaks that no test expects: the run failed", red=True)
        terminalreporter.line("Assert each by pytest.warns, or ignore it by a mark on the test, with the reason.")
