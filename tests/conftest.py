"""How the tests are divided among the workers of pytest-xdist."""

import pytest

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
