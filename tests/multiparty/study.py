"""A small study for tests: keys, a plan, one table a party; parties as threads or as processes of their own."""

import asyncio
import contextlib
import copy
import json
import socket
import threading
import warnings
from dataclasses import replace
from multiprocessing import get_context

import numpy as np

from skdp import __version__
from skdp.multiparty.party.keys import make_keys
from skdp.multiparty.party.plan import PROTOCOL, parse_plan, read_plan
from skdp.multiparty.party.planned import planned_opening
from skdp.multiparty.party.run import Options, run
from skdp.multiparty.party.terms import PlanTerms, software
from skdp.multiparty.transport.hello import Hello
from skdp.multiparty.transport.network import LAID_TAG, READY_TAG
from skdp.multiparty.transport.tls import Identity, connect_all

SIZES = (30, 50, 40, 35, 45)
TRUE = np.array([1.5, -1.0, 0.5])


def toml(document):
    """A document as TOML; JSON's texts, numbers and lists are TOML's too."""
    lines, tables = [], []
    for key, value in document.items():
        if isinstance(value, dict):
            tables.append(f"[{key}]\n" + toml(value))
        elif isinstance(value, list) and value and isinstance(value[0], dict):
            tables += [f"[[{key}]]\n" + toml(entry) for entry in value]
        else:
            lines.append(f"{key} = {json.dumps(value)}\n")
    # Features are tables of a table: they are written inline.
    return "".join(lines) + "\n".join(tables)


def inline(features):
    """Features as TOML that stands in one line."""
    made = [", ".join(f"{k} = {json.dumps(v)}" for k, v in one.items()) for one in features]
    return "[" + ", ".join("{" + one + "}" for one in made) + "]"


def free_ports(n):
    with contextlib.ExitStack() as stack:
        made = [stack.enter_context(socket.create_server(("127.0.0.1", 0))) for _ in range(n)]
        return [one.getsockname()[1] for one in made]


def document(certificates, **changes):
    """A plan as TOML reads it."""
    names = [f"hospital_{'abcdefgh'[i]}" for i in range(len(certificates))]
    parties = [
        {"name": name, "address": f"127.0.0.1:{port}", "n_units": size, "certificate": pem}
        for name, port, size, pem in zip(names, free_ports(len(names)), SIZES, certificates)
    ]
    made = {
        "id": "study-1",
        "skdp": __version__,
        "protocol": PROTOCOL,
        "estimator": "MPCGradientPerturbationClassifier",
        "servers": 3,
        "threshold": 1,
        "max_payload": 2**20,
        "parameters": {
            "epsilon": 10.0, "delta": 1e-6, "adjacency": "replace-one", "unit": "record",
            "alpha": 0.01, "row_norm": 2.0, "max_iter": 3,
        },
        "deadlines": {"connect": 120.0, "data": 120.0, "round": 120.0},
        "data": {
            "target": "sick",
            "classes": [0, 1],
            "features": [{"name": f"x{j}", "bounds": [-2.0, 2.0]} for j in range(3)],
        },
        "parties": parties,
    }  # fmt: skip
    return {**made, **changes}


def write_plan(path, plan):
    plain = copy.deepcopy(plan)
    features = plain["data"].pop("features")
    text = toml(plain).replace("[data]\n", f"[data]\nfeatures = {inline(features)}\n")
    path.write_text(text)
    return read_plan(path)


class Study:
    """Keys, plan and tables in a folder."""

    def __init__(self, folder, n_parties=3, **changes):
        self.folder = folder
        self.certificates = [
            make_keys(folder, f"hospital_{'abcdefgh'[i]}")[1].read_text() for i in range(n_parties)
        ]
        self.document = document(self.certificates, **changes)
        self.plan = write_plan(folder / "plan.toml", self.document)
        assert parse_plan(self.document).hash == self.plan.hash
        rng = np.random.default_rng(7)
        self.tables = []
        for party in self.plan.parties:
            X = rng.uniform(-2.5, 2.5, (party.n_units, 3))  # beyond the bounds, too
            y = (X @ TRUE + rng.normal(size=party.n_units) > 0).astype(int)
            self.tables.append((X, y))
            columns = {f"x{j}": X[:, j] for j in range(3)}
            np.savez(folder / f"{party.name}.npz", sick=y, **columns)

    def options(self, index, **changes):
        name = self.plan.parties[index].name
        made = {
            "config": self.folder / "plan.toml",
            "index": index,
            "data": self.folder / f"{name}.npz",
            "out": self.folder / "out",
            "ceiling": None if self.ledger(index).exists() else (10.0, 1e-6),
        }
        return Options(**{**made, **changes})

    def ledger(self, index):
        return self.folder / f"{self.plan.parties[index].name}.ledger"

    def together(self, changes=None, *, only=None, beside=()):
        """Run parties in threads, and functions beside them.

        Returns
        -------
        dict
            By number of the party: the path of its model, or what it raised. Functions have negative numbers.
        """
        changes = changes or {}
        parties = range(len(self.plan.parties)) if only is None else only
        found = {}

        def start(key, function):
            try:
                found[key] = function()
            except BaseException as error:
                found[key] = error

        work = {i: (lambda i=i: run(self.options(i, **changes.get(i, {})), quiet)) for i in parties}
        work |= {-1 - place: function for place, function in enumerate(beside)}
        threads = [threading.Thread(target=start, args=item, daemon=True) for item in work.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(300.0)
            assert not thread.is_alive(), "a party neither ended nor met its deadline"
        return found


# ---------------------------------------------------------------- a party with ideas of its own


class Impostor:
    """Party 3 of four, which is no server, with the right keys and the right plan, and its own ideas."""

    def __init__(self, study, act, version=None):
        self.study, self.act, self.version = study, act, version or software()

    def __call__(self):
        return asyncio.run(self.play())

    async def play(self):
        plan, folder = self.study.plan, self.study.folder
        identity = Identity(
            3,
            folder / "hospital_d.crt",
            folder / "hospital_d.key",
            Hello(self.study.document["protocol"], self.version, plan.hash),
            20.0,
            2**20,
        )
        network = await connect_all(plan.parties, plan.n_servers, identity, None)
        network.plan = plan
        try:
            await self.act(network)
            for link in network.links():
                await link.drain()
        finally:
            await network.end()


async def announce(network, **changes):
    """Announce the plan's terms, as all parties do; what the others announce is not looked at."""
    opening = replace(planned_opening(network.plan), **changes)
    network.set_deadline(60.0)
    await network.barrier(READY_TAG, PlanTerms(opening).pack(), lambda link, word: None)


async def be_ready(network):
    await announce(network)
    await network.barrier(LAID_TAG)


def quiet(line):
    pass


# ---------------------------------------------------------------- processes


def forkserver():
    """Processes that start with everything imported, and share no state with the tests."""
    context = get_context("forkserver")
    context.set_forkserver_preload(
        ["tests.multiparty.study", "skdp.multiparty.estimators", "skdp.kernels.gradient.cpu"]
    )
    return context


def run_in_process(options, prepare, queue):
    """A party in a process of its own; ``prepare`` may change what it does."""
    try:
        if prepare is not None:
            prepare()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the tables are small
            queue.put((options.index, str(run(options, quiet))))
    except BaseException as error:
        queue.put((options.index, f"{type(error).__name__}: {error}"))


def in_processes(study, prepare):
    """Run every party in a process; returns exit codes, and the results of those that gave one."""
    context = forkserver()
    queue = context.Queue()
    indices = range(len(study.plan.parties))
    processes = [
        context.Process(target=run_in_process, args=(study.options(i), prepare.get(i), queue)) for i in indices
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(300.0)
        assert not process.is_alive(), "a party neither ended nor met its deadline"
    results = {}
    codes = [process.exitcode for process in processes]
    while len(results) < codes.count(0):
        index, result = queue.get(timeout=10.0)
        results[index] = result
    return codes, results
