"""Parts in the workers of a Dask cluster: order, sums, faults, and what others can read."""

import logging
import os
import re
import stat
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import SimpleNamespace

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import numpy as np
import pandas as pd
import pytest

from skdp.base.blocks import Placed, as_block, group_bucket
from skdp.distributed import DaskBlocks, bucketed, cluster, trusted, worker_parts
from skdp.exceptions import ClusterError
from skdp.kernels import n_threads
from skdp.privacy import no_log_lines

cloudpickle.register_pickle_by_value(sys.modules[__name__])
CELL = 7654321.25  # of a record, searched for where it must not be


@pytest.fixture(autouse=True)
def _current(current):
    """Blocks of collections are placed in the cluster."""


def load(i, n=50):
    """A block, made by a task."""
    X = np.random.default_rng(i).normal(size=(n + i, 3))
    X[0, 0] = CELL
    return X, (X[:, 1] > 0).astype(float)


def loaded(client, n=7):
    return [client.submit(load, i, pure=False) for i in range(n)]


def make(block, index):
    X, y, *_ = as_block(block)
    return {"X": np.asarray(X), "index": index}


def index_of(part, request, own):
    return part["index"], request, own


def sum_of(part, request, own):
    return (part["X"].sum(axis=0).view(np.int64),)


def added(a, b):
    return tuple(x + y for x, y in zip(a, b))


def placed(blocks):
    blocks.place(make)
    return blocks


def test_answers_come_in_the_order_of_the_blocks_by_one_task_for_each_worker(client):
    blocks = placed(DaskBlocks(loaded(client)))
    assert isinstance(blocks, Placed)
    assert list(blocks.map(index_of, "r", list("abcdefg"))) == [(i, "r", own) for i, own in enumerate("abcdefg")]
    assert len(blocks._cluster._held) == 2
    assert sorted(i for cut in blocks._cluster._cuts for i in cut) == list(range(7))
    expected = np.sum([load(i)[0].sum(axis=0).view(np.int64) for i in range(7)], axis=0)
    assert np.array_equal(blocks.total(sum_of, None, None, added)[0], expected)


def test_blocks_go_to_the_worker_that_has_them(client):
    a, b = client.nthreads()
    futures = [client.submit(load, i, workers=[b if i < 3 else a], pure=False) for i in range(6)]
    distributed.wait(futures)
    blocks = placed(DaskBlocks(futures))
    assert sorted(blocks._cluster._cuts) == [[0, 1, 2], [3, 4, 5]]
    crowded = [client.submit(load, i, workers=[a], pure=False) for i in range(6)]
    distributed.wait(crowded)
    assert {len(cut) for cut in cluster.cut_by_owner(client, crowded).values()} == {3}


def test_large_answers_are_added_by_the_workers(client, monkeypatch):
    for name, value in (("LARGE_ANSWER", 1), ("FAN", 2), ("LARGE_REQUEST", 1)):
        monkeypatch.setattr(cluster, name, value)
    blocks = placed(DaskBlocks(loaded(client, 9)))
    engine = blocks._cluster
    pickled, futures = cloudpickle.dumps(make), engine._pieces.of_blocks
    engine._cuts = [[i] for i in range(9)]  # nine objects with parts, as in nine workers
    engine._held = [engine._submit(worker_parts.make_parts, pickled, [i], (), *futures[i]) for i in range(9)]
    tasks, submit = [], engine._submit
    monkeypatch.setattr(
        engine, "_submit", lambda function, *a: tasks.append(function.__name__) or submit(function, *a)
    )
    expected = np.sum([load(i)[0].sum(axis=0).view(np.int64) for i in range(9)], axis=0)
    assert np.array_equal(blocks.total(sum_of, None, None, added)[0], expected)
    assert (tasks.count("add_up"), tasks.count("same")) == (4 + 2 + 1, 1)


def bytes_of_tasks(client):
    """All that the scheduler keeps of its tasks, and their names."""

    def found(dask_scheduler):
        import cloudpickle

        return [(str(key), cloudpickle.dumps(task.run_spec)) for key, task in dask_scheduler.tasks.items()]

    return client.run_on_scheduler(found)


@pytest.mark.parametrize("kind", ["futures", "array", "frame"])
def test_the_scheduler_holds_no_cell_and_names_are_random(client, kind, monkeypatch):
    unit, names = 9_999_999_937, []
    gather = client.gather
    for _ in range(2):
        blocks = (
            placed(DaskBlocks(loaded(client))) if kind == "futures" else placed(DaskBlocks(*collections(kind)))
        )
        seen = []

        def looked(futures, seen=seen, blocks=blocks):
            distributed.wait(futures)
            seen.extend(bytes_of_tasks(client))
            names.append({future.key for future in [*futures, *blocks._cluster._held]})
            return gather(futures)

        monkeypatch.setattr(client, "gather", looked)
        list(blocks.map(index_of, "r", [np.array([unit])] * 7))
        own = [(name, spec) for name, spec in seen if "skdp-" in name]
        assert len(own) >= 4  # two objects of parts, and a task of each
        assert any(np.int64(unit).tobytes() in spec for _, spec in own)  # the search finds what is there
        for name, spec in seen:
            assert np.float64(CELL).tobytes() not in spec
            assert str(CELL) not in name
    assert not names[0] & names[1]


def collections(kind):
    """X and y in seven partitions, made by tasks."""
    parts = [dask.delayed(load, pure=False)(i) for i in range(7)]
    if kind == "array":
        X = da.concatenate(
            [da.from_delayed(p[0], (np.nan, 3), float) for p in parts], allow_unknown_chunksizes=True
        )
        y = da.concatenate([da.from_delayed(p[1], (np.nan,), float) for p in parts], allow_unknown_chunksizes=True)
        return X, y
    meta = pd.DataFrame({"a": [0.0], "b": [0.0], "c": [0.0], "y": [0.0]})
    as_frame = dask.delayed(
        lambda block: pd.DataFrame(block[0], columns=list("abc")).assign(y=block[1]), pure=False
    )
    frame = dd.from_delayed([as_frame(p) for p in parts], meta=meta)
    return frame[["a", "b", "c"]], frame["y"]


def test_scattered_blocks_are_refused_as_they_die_with_a_worker(client):
    ready = client.scatter([load(i) for i in range(2)])
    with pytest.raises(ClusterError, match="scatter"):
        placed(DaskBlocks(ready))
    with pytest.raises(ClusterError, match="scatter"):  # what is made of them
        placed(DaskBlocks([client.submit(lambda block: block, one, pure=False) for one in ready]))


def test_rows_are_not_sent_in_clear(client, monkeypatch):
    for address in (
        "tls://10.0.0.1:8786",
        "inproc://10.0.0.1/7/1",
        "tcp://127.0.0.1:1",
        "tcp://[::1]:1",
        "tcp://localhost:1",
    ):
        trusted.check_addresses([address])
    for address in ("tcp://10.0.0.1:8786", "tcp://scheduler:8786", "ucx://10.0.0.1:1", "ws://10.0.0.1:1"):
        with pytest.raises(ClusterError, match=r"TLS.*Security\.temporary"):
            trusted.check_addresses([address])
    blocks = DaskBlocks(loaded(client))
    monkeypatch.setattr(client, "nthreads", lambda: {"tcp://10.0.0.1:1": 1})
    with pytest.raises(ClusterError, match="in clear"):
        blocks.place(make)


def test_files_of_workers_are_private(client, monkeypatch):
    folders = client.run(lambda dask_worker: dask_worker.local_directory).values()
    for folder in folders:
        os.chmod(folder, 0o755)
    placed(DaskBlocks(loaded(client)))
    assert [stat.S_IMODE(os.stat(folder).st_mode) for folder in folders] == [0o700] * 2
    blocks = DaskBlocks(loaded(client))
    versions = worker_parts.versions()
    monkeypatch.setattr(client, "run", lambda *a, **k: {"a": (versions, True, ()), "b": (versions, False, ())})
    with pytest.raises(ClusterError, match=r"spill: False.*target: False"):
        blocks.place(make)


def test_skdp_is_installed_everywhere(client, monkeypatch):
    blocks = DaskBlocks(loaded(client))
    run, on_scheduler = client.run, client.run_on_scheduler
    monkeypatch.setattr(client, "run", lambda *a, **k: {"a": Exception("ModuleNotFoundError()")})
    with pytest.raises(ClusterError, match="cannot import skdp"):
        blocks.place(make)
    monkeypatch.setattr(client, "run", lambda *a, **k: {**run(*a, **k), "died": OSError()})
    placed(blocks)

    def missing(function, *args):
        if function is worker_parts.scheduler_listening:
            raise ModuleNotFoundError
        return on_scheduler(function, *args)

    monkeypatch.setattr(client, "run_on_scheduler", missing)
    with pytest.raises(ClusterError, match="cannot import skdp"):
        blocks.place(make)


def test_servers_that_listen_to_the_network_are_refused(client, monkeypatch):
    blocks, run = DaskBlocks(loaded(client)), client.run
    of_all = worker_parts.listening(Listens())
    assert of_all == ("tcp://0.0.0.0:9",)
    monkeypatch.setattr(
        client, "run", lambda *a, **k: {w: (v, p, of_all) for w, (v, p, _) in run(*a, **k).items()}
    )
    with pytest.raises(ClusterError, match=r"listens at tcp://0.0.0.0:9 .*--host 127.0.0.1"):
        blocks.place(make)
    monkeypatch.setattr(client, "run", run)
    monkeypatch.setattr(client, "run_on_scheduler", lambda *a: of_all)
    with pytest.raises(ClusterError, match=r"listens at tcp://0.0.0.0:9"):
        blocks.place(make)


class Listens:
    """A server on all networks, reached by this machine's loopback."""

    listeners = (SimpleNamespace(listen_address="tcp://0.0.0.0:9", contact_address="tcp://127.0.0.1:9"),)


class Elsewhere:
    """A worker whose directory is another user's."""

    local_directory = "/"

    def __init__(self, data):
        self.data = data


@pytest.mark.skipif(os.name == "nt", reason="modes are those of POSIX")
def test_a_directory_of_another_user_is_refused_if_anything_is_written(monkeypatch, tmp_path):
    def denied(*args):
        raise PermissionError

    monkeypatch.setattr(os, "chmod", denied)
    assert worker_parts.private_directory(Elsewhere({}))
    assert not worker_parts.private_directory(Elsewhere({}), writes=True)
    assert not worker_parts.private_directory(Elsewhere(distributed.spill.SpillBuffer(str(tmp_path), target=1)))


def test_a_worker_of_another_version_is_refused(client, monkeypatch):
    blocks = placed(DaskBlocks(loaded(client)))
    here = tuple((name, "9.9" if name == "numpy" else value) for name, value in worker_parts.versions())
    monkeypatch.setattr(trusted, "versions", lambda: here)
    with pytest.raises(ClusterError, match=rf"numpy {re.escape(np.__version__)} \(here 9\.9\)"):
        list(blocks.map(index_of, None))
    with pytest.raises(ClusterError, match="numpy"):
        blocks.place(make)


def fails(part, request, own):
    raise ValueError(f"a cell is {part['X'][0, 0]}")


def fails_to_make(block, index):
    raise ValueError(f"a cell is {block[0][0, 0]}")


class FailsToLoad:
    def __reduce__(self):
        return int, (f"a cell is {CELL}",)


def logs(client, caplog):
    return caplog.text + str(client.get_worker_logs()) + str(client.get_scheduler_logs())


def test_no_exception_of_a_part_leaves_its_worker(client, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    blocks = placed(DaskBlocks(loaded(client)))
    for stage, call in (
        ("computing a sum", lambda: list(blocks.map(fails, None))),
        ("computing a sum", lambda: blocks.total(fails, None, None, added)),
        ("computing a sum", lambda: list(blocks.map(index_of, FailsToLoad()))),
        ("making the parts", lambda: [blocks.place(fails_to_make), *blocks.map(index_of, None)]),
    ):
        with pytest.raises(ClusterError, match=stage) as caught:
            call()
        error = caught.value
        while error is not None:
            assert str(CELL) not in str(error)
            error = error.__cause__ or error.__context__
    assert str(CELL) not in logs(client, caplog)
    assert str(CELL) not in "".join(capfd.readouterr())


def test_a_load_task_that_fails_is_not_quoted(client):
    def broken():
        raise OSError(f"a cell is {CELL}")

    with pytest.raises(ClusterError, match="loads a block failed") as caught:
        placed(DaskBlocks([client.submit(broken, pure=False)]))
    assert caught.value.__context__ is None
    assert str(CELL) not in str(caught.value)


def test_cancelled_parts_are_made_again(client, caplog):
    caplog.set_level(logging.INFO, "skdp.distributed")
    blocks = placed(DaskBlocks(loaded(client)))
    list(blocks.map(index_of, None))
    client.cancel(blocks._cluster._held, force=True)
    assert [i for i, *_ in blocks.map(index_of, None)] == list(range(7))
    assert "attempt 1 of 3" in caplog.text
    caplog.clear()
    with no_log_lines():  # of a search, whose number of trials is private
        placed(blocks)
    assert not [record for record in caplog.records if record.name.startswith("skdp")]


class Rows(dict):
    """A part with the sum of its rows."""

    @property
    def checksum(self):
        return (int(self["X"].view(np.int64).sum()),)


@pytest.mark.parametrize("changes", [False, True])
def test_a_block_that_is_loaded_again_must_be_the_same(client, tmp_path, changes):
    file = tmp_path / "seed"
    file.write_text("1")
    from_file = dask.delayed(lambda i, path=str(file): load(i + int(Path(path).read_text())), pure=False)
    blocks = DaskBlocks([from_file(i) for i in range(3)])
    blocks.place(lambda block, i: Rows(make(block, i)))
    before = blocks.total(sum_of, None, None, added)
    file.write_text("2" if changes else "1")
    client.cancel(blocks._cluster._held, force=True)
    if changes:
        with pytest.raises(ClusterError, match="other rows than before"):
            blocks.total(sum_of, None, None, added)
    else:
        assert np.array_equal(blocks.total(sum_of, None, None, added), before)


def test_parts_that_are_lost_each_time_end_the_fit(client, monkeypatch):
    blocks = placed(DaskBlocks(loaded(client)))
    asked = []

    def lost(futures):
        asked.append(futures)
        raise distributed.KilledWorker("skdp-task", None, 3)

    monkeypatch.setattr(client, "gather", lost)
    with pytest.raises(ClusterError, match="stays charged"):
        list(blocks.map(index_of, None))
    assert len(asked) == 1 + cluster.AGAIN


def threads_of(part, request, own):
    from distributed import get_worker

    from skdp.kernels import n_threads

    return n_threads(), get_worker().state.nthreads


def busy(part, request, own):
    """Whether another task uses the part at the same time."""
    found = part.get("busy", False)
    part["busy"] = True
    time.sleep(0.02)
    part["busy"] = False
    return found


def test_a_worker_of_two_threads_uses_both_and_one_task_at_a_time():
    before = n_threads()
    with distributed.LocalCluster(
        n_workers=1, threads_per_worker=2, processes=False, dashboard_address=":0"
    ) as made:
        other = distributed.Client(made, set_as_default=False)
        blocks = placed(DaskBlocks([other.submit(load, i) for i in range(2)]))
        assert list(blocks.map(threads_of, None)) == [(2, 2)] * 2
        assert other.submit(n_threads, pure=False).result() == before  # tasks of others
        with ThreadPoolExecutor(2) as pool:
            found = list(pool.map(lambda _: list(blocks.map(busy, None)), range(2)))
        assert found == [[False] * 2] * 2
        other.close()
        with pytest.raises(ClusterError, match="closed"):
            list(blocks.map(index_of, None))


def visits(n=400):
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(n, 2)), columns=["a", "b"]).astype(np.float32)
    return frame.assign(who=[f"patient {i}" for i in rng.integers(0, 40, n)], y=rng.integers(0, 2, n))


def as_table(block):
    X, y, groups, _ = as_block(block)
    return X.assign(y=y, who=groups)


def watch_p2p(dask_worker):
    """Note the folders of a shuffle that is to come."""
    from distributed.shuffle._disk import DiskShardsBuffer

    first = DiskShardsBuffer.__init__
    dask_worker.noted = []

    def init(self, directory, *args, **options):
        dask_worker.noted.append(str(directory))
        first(self, directory, *args, **options)

    DiskShardsBuffer.__init__ = init


@pytest.mark.parametrize("method", ["tasks", "p2p"])
def test_groups_are_moved_into_buckets_in_the_order_of_their_rows(client, method):
    table = visits()
    frame = dd.from_pandas(table.set_index(np.arange(len(table))[::-1]), npartitions=5, sort=False)
    blocks = bucketed(frame, groups="who", target="y", n_buckets=6, method=method)
    assert (blocks.n_buckets, blocks.dtype) == (6, "float32")
    client.run(watch_p2p)
    blocks.place(lambda block, i: as_table(block))
    parts = list(blocks.map(lambda part, request, own: part, None))
    for folder, noted in client.run(lambda dask_worker: (dask_worker.local_directory, dask_worker.noted)).values():
        assert bool(noted) is (method == "p2p")
        assert all(name.startswith(folder) for name in noted)
        assert stat.S_IMODE(os.stat(folder).st_mode) == 0o700
    for i, part in enumerate(parts):
        inside = table[group_bucket(table["who"].to_numpy(), 6) == i]
        expected = inside.sort_values("who", kind="stable")
        assert part["who"].tolist() == expected["who"].tolist()
        assert np.array_equal(part[["a", "b", "y"]], expected[["a", "b", "y"]])
        assert blocks.check_groups(part["who"].to_numpy(), i)
