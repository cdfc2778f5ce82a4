"""One cluster of two processes with one thread each, for all tests of this folder."""

from importlib.util import find_spec

import pytest

WITHOUT = [name for name in ("dask", "distributed", "pandas", "pyarrow") if find_spec(name) is None]
collect_ignore_glob = ["test_*.py"] if WITHOUT else []


@pytest.fixture(scope="session")
def client(tmp_path_factory):
    import dask
    import distributed

    with (
        dask.config.set({"temporary-directory": str(tmp_path_factory.mktemp("dask"))}),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, host="127.0.0.1", dashboard_address=":0", memory_limit="2GB"
        ) as cluster,
        distributed.Client(cluster, set_as_default=False) as made,
    ):
        yield made


@pytest.fixture
def current(client):
    """The cluster as the current one."""
    with client.as_current():
        yield client
