"""Laplace noise between the processes of a plan, laid by mpyc over their TLS links; and parties that are ended."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

import skdp.multiparty.party.engine as engines
from skdp import MPCGradientPerturbationClassifier, MPCOutputPerturbationClassifier
from skdp.cli import main
from skdp.multiparty.engine import mpyc_runtime
from skdp.multiparty.engine.laplace_bits import LAPLACE_SCALES, UNNOTICED, bits_of, most_bits
from skdp.multiparty.engine.mpyc_post import _Box
from skdp.multiparty.party.document import PlanError
from skdp.multiparty.party.plan import parse_plan
from skdp.multiparty.party.table import public_rows
from skdp.privacy import read_ledger
from tests.multiparty.study import SIZES, Study, in_processes

LAPLACE = {
    "epsilon": 10.0, "delta": 1e-6, "adjacency": "replace-one", "unit": "record", "alpha": 0.1,
    "row_norm": 2.0, "noise": "laplace",
}  # fmt: skip

# In every process: unpickling fails, except of numba's own files of compiled kernels.
NO_PICKLE = """
    import atexit, pickle, sys
    def refusing(usual):
        def refuse(*args, **kwargs):
            if sys._getframe(1).f_globals["__name__"].split(".")[0] == "numba":
                return usual(*args, **kwargs)
            open({marker!r}, "w").close()
            raise AssertionError("something was unpickled")
        return refuse
    pickle.loads, pickle.load = refusing(pickle.loads), refusing(pickle.load)
    def tell():
        with open({seen!r}, "a") as file:
            file.write(" ".join(sys.argv[1:] + ["mpyc" if "mpyc" in sys.modules else "plain"]) + "\\n")
    atexit.register(tell)
"""


def start(study, index, **environment):
    """One party as its user starts it."""
    options = study.options(index)
    words = [
        "--config",
        options.config,
        "--index",
        index,
        "--data",
        options.data,
        "--out",
        options.out,
        "--ceiling",
        10,
        1e-6,
    ]
    command = [sys.executable, "-W", "ignore", "-m", "skdp", "party", *map(str, words)]
    return subprocess.Popen(
        command,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heed_interrupts,
    )


def heed_interrupts():
    """What a shell starts in the background ignores SIGINT, and so do its children."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def finish(processes):
    """Exit codes and what was said on standard error."""
    found = [(process.communicate(timeout=300.0)[1], process.returncode) for process in processes]
    return [code for _, code in found], [said for said, _ in found]


def noiseless(study, make):
    """The model of all records in one process, without noise."""
    X = np.vstack([public_rows(X, study.plan.features) for X, _ in study.tables])
    y = np.concatenate([y for _, y in study.tables])
    model = make(**{**study.plan.parameters, "epsilon": np.inf}, classes=[0, 1], accountant=False)
    return model.fit(X, y, owners=np.repeat(np.arange(len(study.tables)), SIZES[: len(study.tables)]))


@pytest.mark.thorough
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    ("make", "parameters", "rounds"),
    [
        pytest.param(MPCOutputPerturbationClassifier, {}, 1, marks=pytest.mark.slow),
        (MPCGradientPerturbationClassifier, {"max_iter": 2, "learning_rate": 1.0}, 2),
    ],
)
def test_parties_lay_laplace_noise_with_mpyc_over_their_links(tmp_path, make, parameters, rounds):
    """Three servers, and in the second plan an owner who is none.

    A coordinate of the noise is beyond 40 scales with probability exp(-40).
    """
    n_parties = 2 + rounds
    # A frame that holds two values of the noise: several blocks.
    limit = 3 * 12 * bits_of(LAPLACE_SCALES[0])
    study = Study(
        tmp_path, n_parties, estimator=make.__name__, parameters={**LAPLACE, **parameters},
        max_payload=limit,
    )  # fmt: skip
    marker, seen = tmp_path / "unpickled", tmp_path / "seen"
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent(NO_PICKLE.format(marker=str(marker), seen=str(seen)))
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    codes, said = finish([start(study, i, PYTHONPATH=path) for i in range(n_parties)])
    assert codes == [0] * n_parties, said
    assert not marker.exists()
    mutant = [sys.executable, "-c", "import pickle; pickle.loads(pickle.dumps(1))"]
    assert subprocess.run(mutant, env={**os.environ, "PYTHONPATH": path}, capture_output=True).returncode
    assert marker.exists()
    # mpyc is in the servers only, whatever their command line says.
    loaded = [line.split()[-1] for line in sorted(seen.read_text().splitlines())]
    loaded.remove("plain")  # the mutant
    assert loaded == ["mpyc"] * 3 + ["plain"] * (n_parties - 3)

    names = [party.name for party in study.plan.parties]
    read = [json.loads((tmp_path / "out" / f"study-1.{n}.model.json").read_text()) for n in names]
    assert all(model == read[0] for model in read)  # bit by bit
    report = json.loads((tmp_path / "out" / "study-1.hospital_a.report.json").read_text())
    assert (report["epsilon"], report["delta"]) == (10.0, 1e-6)
    assert any("it is not pure" in line for line in report["assumptions"])
    assert any("secret random bits of mpyc" in line for line in report["assumptions"])
    assert any(UNNOTICED in line for line in report["assumptions"])
    (mechanism,) = report["mechanisms"]
    assert (mechanism["name"], mechanism["count"]) == ("laplace", rounds)
    for index in range(n_parties):
        (fit,) = read_ledger(study.ledger(index))["fits"]
        assert (fit["state"], fit["epsilon"]) == ("spent", 10.0)

    # There is noise, of the scale that the report tells. Round 2 goes on from the noisy model of round 1.
    exact = noiseless(study, make)
    scale = mechanism["sensitivity"] / mechanism["epsilon"]
    off = np.abs(np.append(read[0]["coef"], read[0]["intercept"]) - np.append(exact.coef_, exact.intercept_))
    assert off.max() < 40 * scale * rounds
    assert off.max() > 1e-3 * scale  # fails with probability 1e-12


def test_without_mpyc_a_server_says_so_before_anything_and_an_owner_needs_none(tmp_path, monkeypatch, capsys):
    study = Study(tmp_path, 4, parameters=LAPLACE)
    monkeypatch.setitem(sys.modules, "mpyc", None)  # importing it fails
    monkeypatch.setattr(mpyc_runtime.importlib.util, "find_spec", lambda name: None)
    table = str(tmp_path / "hospital_a.npz")
    words = ["--config", str(tmp_path / "plan.toml"), "--index", "0", "--data", table]
    assert main(["party", *words]) == 2
    assert "python -m pip install 'skdp[mpc]'" in capsys.readouterr().err
    assert not study.ledger(0).exists()
    engines.check_installed(study.plan, 3)
    gaussian = {**study.document, "parameters": {**LAPLACE, "noise": "gaussian"}}
    engines.check_installed(parse_plan(gaussian), 0)


def test_what_a_plan_with_laplace_noise_must_say(tmp_path):
    study = Study(tmp_path, 3, parameters=LAPLACE)
    needed = 8 + 12 * most_bits()
    assert parse_plan({**study.document, "max_payload": needed}).noise == "laplace"
    with pytest.raises(PlanError, match=f"'max_payload' must be at least {needed}"):
        parse_plan({**study.document, "max_payload": needed - 1})
    with pytest.raises(PlanError, match="'delta'"):
        parse_plan({**study.document, "parameters": {**LAPLACE, "delta": 0.0}})


def die_while_the_noise_is_laid():
    """After twenty messages of mpyc."""
    usual, seen = _Box.deliver, []

    def deliver(self, message):
        usual(self, message)
        seen.append(message)
        if len(seen) == 20:
            os.kill(os.getpid(), signal.SIGKILL)

    _Box.deliver = deliver


def test_a_server_that_dies_while_it_lays_noise_is_named(tmp_path):
    """The noise is laid before the charge is made, so nobody has spent anything."""
    study = Study(tmp_path, 4, parameters=LAPLACE, estimator="MPCOutputPerturbationClassifier")
    codes, results = in_processes(study, {1: die_while_the_noise_is_laid})
    assert codes == [0, -signal.SIGKILL, 0, 0]
    for index in (0, 2, 3):
        assert results[index].startswith("PartyError: hospital_b: "), results[index]
    states = [read_ledger(study.ledger(index))["fits"][0]["state"] for index in range(4)]
    assert [states[0], *states[2:]] == ["returned"] * 3
    assert states[1] != "spent"  # what a killed process had reserved is handed back later
    assert not list((tmp_path / "out").glob("*.json"))


# ---------------------------------------------------------------- ended by a person or the system


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("how", "index"), [(signal.SIGTERM, 1), pytest.param(signal.SIGINT, 3, marks=pytest.mark.slow)]
)
def test_a_party_that_is_ended_in_a_round_is_named_and_has_spent(tmp_path, how, index):
    """A server, and an owner who is none."""
    study = Study(tmp_path, 4, parameters={**LAPLACE, "noise": "gaussian", "max_iter": 100_000})
    processes = [start(study, i) for i in range(4)]
    while not all(is_spent(study, i) for i in range(4)):
        assert all(process.poll() is None for process in processes), finish(processes)
        time.sleep(0.05)
    processes[index].send_signal(how)
    codes, said = finish(processes)
    name = study.plan.parties[index].name
    assert codes == [130 if i == index else 1 for i in range(4)], said
    for other in {*range(4)} - {index}:
        assert f"failed: {name}: somebody ended it there" in said[other]
        assert is_spent(study, other)
    assert is_spent(study, index)
    assert not list((tmp_path / "out").glob("*.json"))


def is_spent(study, index):
    """A file is empty for a moment before it is a ledger."""
    try:
        return [f["state"] for f in read_ledger(study.ledger(index))["fits"]] == ["spent"]
    except (FileNotFoundError, ValueError):
        return False


@pytest.mark.thorough
def test_a_party_that_is_ended_before_the_rounds_has_spent_nothing(tmp_path):
    """It waits for hospital_c, which does not come."""
    study = Study(tmp_path, 3)
    process = start(study, 0)
    assert "hash" in process.stdout.readline()
    process.send_signal(signal.SIGTERM)
    codes, said = finish([process])
    assert codes == [130], said
    # The signal may come before or after it has opened its ledger, or while it makes the file.
    path = study.ledger(0)
    assert not path.exists() or not path.stat().st_size or read_ledger(path)["fits"] == []


@pytest.mark.thorough
def test_parties_that_are_ended_while_they_connect_say_so_in_one_line(tmp_path):
    """Two servers wait for the third. What asyncio says of tasks that nobody waits for would be further lines."""
    study = Study(tmp_path, 3)
    processes = [start(study, index) for index in range(2)]
    for process in processes:
        while "waiting for the other parties" not in process.stdout.readline():
            assert process.poll() is None
    time.sleep(0.5)  # connections between the two are made, and others are tried
    for process, how in zip(processes, (signal.SIGINT, signal.SIGTERM)):
        process.send_signal(how)
    codes, said = finish(processes)
    assert codes == [130, 130], said
    for index, name in enumerate(("hospital_a", "hospital_b")):
        unspent = "nothing was spent, and the plan can run again"
        cost = f"{name}: {unspent}: the ledger {study.ledger(index)} does not charge it"
        assert said[index] == f"skdp party: ended by Ctrl-C or a signal; {cost}\n"
        assert read_ledger(study.ledger(index))["fits"] == []
