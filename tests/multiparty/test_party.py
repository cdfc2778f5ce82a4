"""Whole runs over loopback sockets and TLS: the fit, failures that name a party, and ledgers under kills."""

import asyncio
import copy
import json
import os
import pickle
import signal
import socket
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

import skdp.multiparty.engine.server
import skdp.multiparty.party.run as runs
from skdp import MPCGradientPerturbationClassifier, MPCOutputPerturbationRegressor
from skdp.cli import main
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.multiparty.party import load_model
from skdp.multiparty.party.engine import Bridge, NetworkEngine
from skdp.multiparty.party.example import CEILING
from skdp.multiparty.party.hints import hints
from skdp.multiparty.party.plan import read_plan
from skdp.multiparty.party.plan_ledger import LedgerFull, PlanLedger, open_ledger
from skdp.multiparty.party.table import DataError, public_rows
from skdp.multiparty.transport.errors import ABORT_TAG, PartyError, Reason, pack_abort
from skdp.multiparty.transport.frames import StreamLink
from skdp.multiparty.transport.network import READY_TAG, Network
from skdp.privacy import BudgetAccountant, PrivacyReport, accounting, read_ledger
from skdp.privacy.budget import Reservation
from tests.multiparty.study import SIZES, Impostor, Study, announce, be_ready, document, in_processes, write_plan

# The parties' threads warn of small data, and so may their fits.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module", autouse=True)
def compiled():
    """Kernels in the cache, so that no deadline is spent on compiling them."""
    for make in (MPCGradientPerturbationClassifier, MPCOutputPerturbationRegressor):
        make(epsilon=1.0, accountant=False).fit(np.eye(4), [0, 1, 0, 1])


def states(study, index):
    return [fit["state"] for fit in read_ledger(study.ledger(index))["fits"]]


def spent(study, index):
    return read_ledger(study.ledger(index))["spent"]


def check_named(error, name, *reasons):
    """The error names this party, and there is no output of whoever raised it."""
    assert isinstance(error, PartyError), repr(error)
    assert error.peer == name, error
    assert error.reason in reasons, error


def no_output(study):
    out = study.folder / "out"
    return not list(out.glob("*.json"))


# ---------------------------------------------------------------- the fit


def draw_nothing():
    """Servers whose part of the noise is zero, so that the opened sum is exact."""
    skdp.multiparty.engine.server.noise.rounded_gaussian = lambda std, size, stream: np.zeros(size, np.int64)


def test_without_noise_four_processes_get_the_model_of_all_records_in_one(tmp_path):
    """What is left is the rounding to the grid: below 2^-20 of the clip in each of three rounds."""
    study = Study(tmp_path, 4)
    codes, results = in_processes(study, dict.fromkeys(range(4), draw_nothing))
    assert codes == [0] * 4, results
    models = [json.loads(Path(results[i]).read_text()) for i in range(4)]
    assert all(model == models[0] for model in models)  # bit by bit
    X = np.vstack([public_rows(X, study.plan.features) for X, _ in study.tables])
    y = np.concatenate([y for _, y in study.tables])
    exact = MPCGradientPerturbationClassifier(
        **{**study.plan.parameters, "epsilon": np.inf}, classes=[0, 1], accountant=False
    ).fit(X, y, owners=np.repeat(np.arange(4), SIZES[:4]))
    np.testing.assert_allclose(models[0]["coef"], exact.coef_, atol=1e-6)
    np.testing.assert_allclose(models[0]["intercept"], exact.intercept_, atol=1e-6)
    assert np.abs(exact.coef_).max() > 0.05


def test_four_parties_with_noise_get_one_model_once(tmp_path):
    study = Study(tmp_path, 4)
    results = study.together()
    models = [json.loads(Path(results[i]).read_text()) for i in range(4)]
    assert all(model == models[0] for model in models)
    X, _ = study.tables[0]
    scores = load_model(results[3]).decision_function(X)  # raw rows
    by_hand = public_rows(X, study.plan.features) @ models[0]["coef"][0] + models[0]["intercept"]
    np.testing.assert_allclose(scores, by_hand, rtol=1e-12)
    report = json.loads(Path(str(results[0]).replace("model.json", "report.json")).read_text())
    assert report["epsilon"] == models[0]["epsilon"] == 10.0
    assert any("1 of the 3 servers" in line for line in report["assumptions"])
    # Of a person with records at two owners: what it costs, and that no ledger shows it.
    twice = accounting.gaussian_epsilon(2 * accounting.gaussian_mu(10.0, 1e-6), 1e-6)
    assert any(f"h = 2 has epsilon {twice:.4g}" in line for line in report["assumptions"])
    assert "ledger of each owner is charged for one record" in report["assumptions"][-1]
    assert PrivacyReport.from_dict(report).to_dict() == report
    for i in range(4):
        assert states(study, i) == ["spent"]
        (fit,) = read_ledger(study.ledger(i))["fits"]
        assert "(plan study-1)" in fit["estimator"]
        assert study.plan.hash[:12] in fit["estimator"]
        # A plan runs once: refused before anything is connected, so no other party is needed.
        with pytest.raises(PrivacyBudgetExceeded, match="study-1 is charged already"):
            runs.run(study.options(i))
        assert states(study, i) == ["spent"]


@pytest.mark.parametrize("mutant", [False, True])
def test_what_is_opened_has_the_noise_that_the_report_tells(tmp_path, monkeypatch, mutant):
    """All three servers' noise, of which two suffice; in the mutant each draws half of it.

    600 values: their deviation is within 5.2 standard errors but for a false alarm below 1e-6.
    """
    parameters = {**document([])["parameters"], "max_iter": 150}
    study, sent, opened = Study(tmp_path, parameters=parameters), {}, {}
    usual = NetworkEngine._open

    def watched(self, integers, noise, scale):
        key = self._number
        found = usual(self, integers, noise, scale)
        sent.setdefault(key, []).append(integers[self._own])
        opened[key] = (found, scale)
        return found

    monkeypatch.setattr(NetworkEngine, "_open", watched)
    if mutant:
        honest = skdp.multiparty.engine.server.share_std
        monkeypatch.setattr(skdp.multiparty.engine.server, "share_std", lambda *given: honest(*given) / 2)
    results = study.together()
    report = json.loads(Path(str(results[0]).replace("model.json", "report.json")).read_text())
    (row,) = report["mechanisms"]
    noise = np.concatenate([opened[key][0] - sum(sent[key]) for key in sorted(opened)])
    assert noise.size == 600
    assert all(len(parts) == 3 for parts in sent.values())
    sigma = row["noise_multiplier"] * row["sensitivity"] / row["grid"]
    assert row["noise_std"] == pytest.approx(1.5**0.5 * sigma * row["grid"], rel=1e-12)
    assert [scale for _, scale in opened.values()] == pytest.approx([sigma] * 150)
    # The claim: 150 releases of two servers' noise alone.
    spent_mu = 150**0.5 / row["noise_multiplier"]
    assert spent_mu <= accounting.gaussian_mu(10.0, 1e-6)
    smallest = min(party.n_units for party in study.plan.parties)
    radius = 2.0 * 2**0.5  # row_norm, and the intercept's feature as long
    assert row["sensitivity"] >= 2 * radius / (3 * smallest)
    within = abs(noise.std() * row["grid"] / row["noise_std"] - 1) < 5.2 / (2 * noise.size) ** 0.5
    assert bool(within) is not mutant


@pytest.mark.parametrize("mutant", [False, True])
def test_a_charge_is_on_disk_before_the_first_share_goes(tmp_path, monkeypatch, mutant):
    """The ledger is read by a connection of its own when a party is about to send. The mutant commits nothing."""
    study, seen = Study(tmp_path), []
    usual = NetworkEngine._open_as_owner

    async def watched(self, mine):
        seen.append((self._own, *states(study, self._own)))
        return await usual(self, mine)

    monkeypatch.setattr(NetworkEngine, "_open_as_owner", watched)
    if mutant:
        monkeypatch.setattr(Reservation, "commit", lambda self: None)
    found = study.together()
    assert all(not isinstance(result, BaseException) for result in found.values()), found
    state = "reserved" if mutant else "spent"
    assert sorted(seen) == [(index, state) for index in range(3) for _ in range(3)]


# ---------------------------------------------------------------- copies


def test_a_copy_of_the_engine_is_the_engine_and_a_pickle_is_refused(tmp_path):
    """Two engines on the same connections would number their rounds alike; a pickle has no connections."""
    with Bridge() as bridge:
        plan = Study(tmp_path).plan
        engine = NetworkEngine(bridge, Network(0), plan)
        assert copy.copy(engine) is copy.deepcopy(engine) is engine
        model = plan.make_estimator(engine=engine, accountant=False)
        assert clone(model).engine is engine
        assert copy.deepcopy(model).engine is engine
        assert clone(Pipeline([("scale", StandardScaler()), ("model", model)]))[1].engine is engine
        for thing in (engine, model):
            for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
                with pytest.raises(TypeError, match="NetworkEngine cannot be pickled: it holds"):
                    pickle.dumps(thing, protocol)


# ---------------------------------------------------------------- kills


def die(*args, **kwargs):
    os.kill(os.getpid(), signal.SIGKILL)


def die_before_the_commit():
    Reservation.commit = die


def die_with_the_first_share_out():
    usual = StreamLink._write

    async def write(self, tag, payload):
        await usual(self, tag, payload)
        if tag == 0:  # round 0, an input
            await asyncio.sleep(0.2)
            die()

    StreamLink._write = write


def die_in_the_opening():
    skdp.multiparty.engine.server._open = die


def die_after_the_opening():
    usual = runs._fit

    def fit(*args):
        usual(*args)
        die()

    runs._fit = fit


@pytest.mark.parametrize(
    ("how", "charged"),
    [
        (die_before_the_commit, False),
        (die_with_the_first_share_out, True),
        pytest.param(die_in_the_opening, True, marks=pytest.mark.thorough),
        pytest.param(die_after_the_opening, True, marks=pytest.mark.thorough),
    ],
)
def test_a_killed_party_is_named_and_its_ledger_tells_the_truth(tmp_path, how, charged):
    study = Study(tmp_path)
    codes, results = in_processes(study, {1: how})
    assert codes == [0, -signal.SIGKILL, 0]
    for index in (0, 2):
        assert results[index].startswith("PartyError: hospital_b: "), results[index]
    assert no_output(study)
    parameters = study.plan.parameters
    whole = (parameters["epsilon"], parameters["delta"])
    if charged:
        assert states(study, 1) == ["spent"]
        assert spent(study, 1) == pytest.approx(whole, rel=1e-4)
        with pytest.raises(PrivacyBudgetExceeded, match="charged already"):
            open_ledger(study.ledger(1), study.plan, None)
    else:
        assert states(study, 1) == ["reserved"]
        # The ledger's ceiling is one plan: so this succeeds only if the killed run is not charged.
        again = open_ledger(study.ledger(1), study.plan, None).reserve(
            estimator="again", epsilon=whole[0], delta=whole[1], adjacency="replace-one", unit="record"
        )
        assert states(study, 1) == ["returned", "reserved"]
        again.release()
        assert spent(study, 1) == (0.0, 0.0)


# ---------------------------------------------------------------- failures before anything is spent


def test_data_that_do_not_fit_stop_everybody_and_nothing_is_spent(tmp_path, monkeypatch):
    study, aborts, usual = Study(tmp_path, 4), [], StreamLink._write

    async def watched(self, tag, payload):
        if tag == ABORT_TAG:
            aborts.append(payload)
        await usual(self, tag, payload)

    monkeypatch.setattr(StreamLink, "_write", watched)
    X, y = study.tables[3]
    y = y.copy()
    y[5] = 77
    np.savez(tmp_path / "hospital_d.npz", sick=y, **{f"x{j}": X[:, j] for j in range(3)})
    found = study.together()
    assert isinstance(found[3], DataError)
    assert "'sick'" in str(found[3])
    assert "1 row of 35, first row 6" in str(found[3])
    assert "77" not in str(found[3])
    # Rows are private: what leaves the process is a code and the number of the party, always of the same length.
    assert {*aborts} == {pack_abort(Reason.DATA, 3)}
    for index in range(3):
        check_named(found[index], "hospital_d", Reason.DATA)
        assert "row" not in str(found[index])
        assert set(states(study, index)) <= {"returned"}
    assert states(study, 3) == []
    assert no_output(study)
    # So the same plan can run with the right table.
    y[5] = 1
    np.savez(tmp_path / "hospital_d.npz", sick=y, **{f"x{j}": X[:, j] for j in range(3)})
    found = study.together()
    assert all(not isinstance(result, BaseException) for result in found.values()), found


def test_the_ledger_stays_with_the_key_so_a_copied_plan_does_not_run_twice(tmp_path):
    study = Study(tmp_path)
    assert not any(isinstance(one, BaseException) for one in study.together().values())
    copied = tmp_path / "copy" / "plan.toml"
    copied.parent.mkdir()
    copied.write_bytes((tmp_path / "plan.toml").read_bytes())
    keys = [tmp_path / f"{party['name']}.key" for party in study.document["parties"]]
    found = study.together({i: {"config": copied, "key": key} for i, key in enumerate(keys)})
    assert all(isinstance(one, PrivacyBudgetExceeded) for one in found.values()), found
    assert spent(study, 0) == spent(study, 1) == spent(study, 2)


def other_study(study, **parameters):
    """A second plan of the same parties, and so on the same ledgers."""
    changed = {**study.document, "id": "study-2"}
    changed["parameters"] = {**study.document["parameters"], **parameters}
    study.plan = write_plan(study.folder / "plan.toml", changed)


def spend(study, index, epsilon, ceiling=None, unit="record"):
    """Charge something to a party's ledger; as large as the plan's budget, if no ceiling is given."""
    made = BudgetAccountant(*(ceiling or (10.0, 1e-6)), path=study.ledger(index))
    mu = accounting.gaussian_mu(epsilon, 1e-6)
    made.reserve(
        estimator="before", epsilon=epsilon, delta=1e-6, mu=mu, unit=unit, adjacency="replace-one"
    ).commit()


def test_a_ledger_that_is_full_is_found_before_anybody_is_connected(tmp_path, monkeypatch, capsys):
    study, called = Study(tmp_path), []
    monkeypatch.setattr(runs, "connect_all", lambda *args: called.append(args))
    spend(study, 0, 4.0)
    before = read_ledger(study.ledger(0))
    with pytest.raises(LedgerFull, match="does not hold the plan study-1") as caught:
        runs.run(study.options(0))
    assert called == []
    assert read_ledger(study.ledger(0)) == before  # not even a write
    left = before["remaining"][0]
    for said in (str(study.ledger(0)), f"left in this ledger: epsilon {left:.6g}, delta 1e-06",
                 "(4, 1e-06) spent by 1 fits", "--ledger FILE and --ceiling EPSILON DELTA"):  # fmt: skip
        assert said in str(caught.value)
    # What the message says is left is what a new plan may cost.
    other_study(study, epsilon=left * 0.999)
    open_ledger(study.ledger(0), study.plan, None)
    other_study(study, epsilon=left * 1.001)
    with pytest.raises(LedgerFull):
        open_ledger(study.ledger(0), study.plan, None)
    words = ["--config", tmp_path / "plan.toml", "--index", 0, "--data", study.options(0).data]
    assert main(["party", *map(str, words)]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"skdp party: failed: the ledger {study.ledger(0)} does not hold the plan")


def test_a_ledger_of_another_unit_is_found_before_anybody_is_connected(tmp_path):
    study = Study(tmp_path)
    spend(study, 0, 0.1, (100.0, 1e-4), unit="group")
    with pytest.raises(LedgerFull, match=r"holds fits with .* unit='group'; this one has .* unit='record'"):
        runs.run(study.options(0))


def test_a_new_ledger_whose_ceiling_is_below_the_plan_is_not_made(tmp_path):
    study = Study(tmp_path)
    with pytest.raises(
        LedgerFull, match=r"--ceiling 0\.5 1e-06 does not hold the plan study-1, which costs epsilon 10"
    ):
        runs.run(study.options(0, ceiling=(0.5, 1e-6)))
    assert not study.ledger(0).exists()


@pytest.mark.parametrize("estimator", ["MPCGradientPerturbationClassifier", "MPCOutputPerturbationClassifier"])
@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
def test_the_check_before_connecting_says_what_the_reservation_will(tmp_path, estimator, noise):
    """From the same ledger, filled more and more; the charge of the check is that of the fit."""
    parameters = {"epsilon": 2.0, "delta": 1e-6, "adjacency": "replace-one", "unit": "record", "noise": noise}
    study, answers = Study(tmp_path, estimator=estimator, parameters=parameters), []
    for spent_before in (0.0, 9.0, 9.6, 9.79, 9.81, 9.9):
        study.ledger(0).unlink(missing_ok=True)
        if spent_before:
            spend(study, 0, spent_before)
        try:
            book = open_ledger(study.ledger(0), study.plan, (10.0, 1e-6))
            checked = True
        except LedgerFull:
            book, checked = PlanLedger(10.0, 1e-6, path=study.ledger(0), plan=study.plan), False
        try:
            with study.plan.make_estimator(accountant=book)._open_session():
                reserved = True
        except LedgerFull:
            reserved = False
        assert checked is reserved, spent_before
        answers.append(checked)
    assert {*answers} == {True, False}


def test_a_ledger_that_is_filled_after_the_check_stops_everybody_before_anything_is_spent(tmp_path, monkeypatch):
    study, usual = Study(tmp_path), runs.read_own_records

    def read(path, plan, index):
        if index == 2:
            spend(study, 2, 9.0)
        return usual(path, plan, index)

    monkeypatch.setattr(runs, "read_own_records", read)
    found = study.together()
    assert isinstance(found[2], LedgerFull), found
    assert str(study.ledger(2)) in str(found[2])
    for index in (0, 1):
        check_named(found[index], "hospital_c", Reason.LEDGER)
        assert "hospital_c: its ledger does not hold the plan" in str(found[index])
        assert states(study, index) == ["returned"]
    assert states(study, 2) == ["spent"]  # the other study's


def test_another_plan_is_found_before_any_data_are_read(tmp_path, monkeypatch, capsys):
    study = Study(tmp_path, 4)
    other = {**study.document, "parameters": {**study.document["parameters"], "max_iter": 4}}
    write_plan(tmp_path / "other.toml", other)
    read = []
    monkeypatch.setattr(runs, "read_own_records", lambda *args: read.append(args))
    found = study.together({3: {"config": tmp_path / "other.toml"}})
    for index in range(3):
        check_named(found[index], "hospital_d", Reason.PLAN)
    assert isinstance(found[3], PartyError)
    assert found[3].reason is Reason.PLAN
    # Each is told its own hash, which is what the command prints, and how to compare.
    for index, name in enumerate(["plan.toml"] * 3 + ["other.toml"]):
        hint, cost = found[index].__notes__
        assert main(["party", "check", str(tmp_path / name)]) == 0
        assert f"hash  {read_plan(tmp_path / name).hash}\n" in capsys.readouterr().out
        assert f"{name}, has the hash {read_plan(tmp_path / name).hash}\n" in hint
        assert "`skdp party check PLAN`" in hint
        assert "nothing was spent, and the plan can run again: the ledger " in cost
    assert read == []
    assert all(states(study, index) == [] for index in range(3))


def test_a_port_in_use_is_said_with_its_address(tmp_path):
    study = Study(tmp_path)
    party = study.plan.parties[0]
    with socket.create_server((party.host, party.port)), pytest.raises(OSError, match=str(party.port)):
        runs.run(study.options(0))


# ---------------------------------------------------------------- a party that misbehaves


async def send_all(network, tag, payload):
    for link in network.links():
        await link.send(tag, payload)


async def stall(network):
    """Say nothing until the others hang up, as after every act."""


async def stall_before_the_charge(network):
    await announce(network)


async def stall_in_a_round(network):
    await be_ready(network)


async def replay(network):
    await be_ready(network)
    await send_all(network, READY_TAG, b"")


async def lie_about_the_shape(network):
    await be_ready(network)
    await send_all(network, 0, bytes(8))


async def leave_the_field(network):
    await be_ready(network)
    await send_all(network, 0, b"\xff" * 48)  # as long as four elements


async def send_too_much(network):
    await be_ready(network)
    for link in network.links():
        link._writer.write((2**32 - 1).to_bytes(4, "little") + bytes(8))
        await link._writer.drain()


async def send_noise(network):
    rng = np.random.default_rng(3)
    for link in network.links():
        link._writer.write(rng.bytes(1000))
        await link._writer.drain()


async def leave(network):
    await be_ready(network)


@pytest.mark.parametrize(
    ("act", "reasons", "charged"),
    [
        pytest.param(stall, {Reason.LATE}, False, marks=pytest.mark.thorough),
        pytest.param(stall_before_the_charge, {Reason.LATE}, False, marks=pytest.mark.thorough),
        (stall_in_a_round, {Reason.LATE}, True),
        (replay, {Reason.ORDER}, True),
        (lie_about_the_shape, {Reason.CONTENT}, True),
        (leave_the_field, {Reason.CONTENT}, True),
        (send_too_much, {Reason.SIZE}, True),
        (send_noise, {Reason.SIZE, Reason.ORDER, Reason.LATE}, False),
    ],
)
def test_a_party_that_misbehaves_is_named_to_every_other(tmp_path, act, reasons, charged):
    late = {stall: "data", stall_before_the_charge: "round", stall_in_a_round: "round"}.get(act)
    for seconds in (1.0, 6.0, 36.0) if late else (60.0,):  # a busy machine needs a longer deadline
        deadlines = {"connect": 60.0, "data": 60.0, "round": 60.0} | ({late: seconds} if late else {})
        folder = tmp_path / f"{seconds:g}"
        folder.mkdir()
        study = Study(folder, 4, deadlines=deadlines)
        found = study.together(only=range(3), beside=[Impostor(study, act)])
        if all(getattr(found[i], "peer", None) == "hospital_d" for i in range(3)):
            break
    for index in range(3):
        check_named(found[index], "hospital_d", *reasons)
        assert states(study, index) == (["spent"] if charged else ["returned"])
    assert no_output(study)


def test_a_party_that_hangs_up_is_named_to_every_other(tmp_path):
    study = Study(tmp_path, 4)

    class Leaves(Impostor):
        async def play(self):
            self.act = be_ready_and_go
            await super().play()

    async def be_ready_and_go(network):
        await be_ready(network)
        await network.end()

    found = study.together(only=range(3), beside=[Leaves(study, None)])
    for index in range(3):
        # Found by the lost connection: by a deadline the reason would be another.
        check_named(found[index], "hospital_d", Reason.LOST)


# ---------------------------------------------------------------- other methods and units


def test_a_regressor_by_output_perturbation_with_persons_as_units(tmp_path):
    """Each person has two rows, and only persons are counted."""
    parameters = {
        "epsilon": 10.0, "delta": 1e-6, "adjacency": "replace-one", "unit": "group", "alpha": 0.1,
        "row_norm": 2.0, "y_bounds": [-5.0, 5.0],
    }  # fmt: skip
    study = Study(tmp_path, 3)
    data = {"target": "cost", "group": "person", "features": study.document["data"]["features"]}
    changed = {
        **study.document, "estimator": "MPCOutputPerturbationRegressor", "parameters": parameters,
        "data": data,
    }  # fmt: skip
    study.plan = write_plan(tmp_path / "plan.toml", changed)
    for party, (X, _) in zip(study.plan.parties, study.tables):
        twice = np.repeat(np.arange(party.n_units), 2)
        columns = {f"x{j}": X[twice, j] for j in range(3)}
        np.savez(tmp_path / f"{party.name}.npz", cost=X[twice, 0], person=twice, **columns)
    found = study.together()
    models = [json.loads(Path(found[i]).read_text()) for i in range(3)]
    assert models[0] == models[1] == models[2]
    assert len(models[0]["coef"]) == 3
    assert states(study, 0) == ["spent"]


def test_five_servers_of_which_two_may_look(tmp_path):
    study = Study(tmp_path, 5, servers=5, threshold=2)
    found = study.together()
    models = [json.loads(Path(found[i]).read_text()) for i in range(5)]
    assert all(model == models[0] for model in models)
    report = json.loads(Path(str(found[0]).replace("model.json", "report.json")).read_text())
    assert any("at most 2 of the 5 servers" in line for line in report["assumptions"])


# ---------------------------------------------------------------- the command


def test_the_command_says_what_is_missing_or_wrong(tmp_path, capsys):
    study = Study(tmp_path)
    plan = str(tmp_path / "plan.toml")
    assert main(["party", "check", plan]) == 0
    said = capsys.readouterr().out
    assert study.plan.hash in said
    assert all(party.fingerprint in said for party in study.plan.parties)
    table = str(tmp_path / "hospital_a.npz")
    (tmp_path / "a.xlsx").touch()
    index = ["--config", plan, "--index", "0"]
    whole = [*index, "--data", table]
    without_data = [*whole, "--ledger", plan + "x"]
    new = ["--ceiling", "10", "1e-6"]
    for words, wanted in [
        ([], "--config"),
        (index, "--data"),
        (["--config", plan, "--index", "3", "--data", table], "parties 0..2"),
        (["--config", plan + "x", "--index", "0", "--data", table], "No such file"),
        ([*index, "--data", str(tmp_path / "a.xlsx")], ".csv, .npz or .parquet file, got 'a.xlsx'"),
        (whole, "there is none yet, and a new one needs --ceiling EPSILON DELTA"),
        ([*without_data, "--ceiling", "0", "1e-5"], "epsilon must be positive"),
        ([*without_data, "--ceiling", "20", "2"], "delta must be at least 0 and below 1"),
        ([*whole, "--ledger", plan], "is not a ledger"),
        ([*whole, "--key", str(tmp_path / "hospital_b.key")],
         "does not belong to the certificate of hospital_a"),
        ([*whole, "--certificate", str(tmp_path / "hospital_b.crt")], "not the one that the plan has"),
        ([*whole, "--certificate", plan], "is no certificate in PEM form"),
        ([*whole, "--certificate", table], "is no certificate in PEM form"),
    ]:  # fmt: skip
        assert main(["party", *words]) == 2
        said = capsys.readouterr().err
        assert wanted in said
        assert said.startswith("skdp party: error: ")
    assert not list(tmp_path.glob("*.ledger"))
    assert not (tmp_path / "plan.tomlx").exists()
    # Nobody else comes: a failure that is not this user's.
    assert main(["party", *whole, *new, "--timeout", "0.3"]) == 1
    assert "hospital_b: it was not connected within the deadline" in capsys.readouterr().err
    assert main(["party", *whole, "--ceiling", "50", "1e-5"]) == 2
    wanted = "has the ceiling 10.0 1e-06 since it was made. Leave out --ceiling, or give another --ledger"
    assert wanted in capsys.readouterr().err
    assert states(study, 0) == []


def test_a_run_says_the_hints_of_its_plan_first(tmp_path):
    data = {**document([])["data"], "features": [{"name": f"x{j}"} for j in range(3)]}
    parameters = {**document([])["parameters"], "row_norm": "auto"}
    study, said = Study(tmp_path, data=data, parameters=parameters), []
    with pytest.raises(FileNotFoundError):
        runs.run(study.options(0, data="nothing.csv"), said.append)
    assert said[1:] == [f"hint: {hint}" for hint in hints(study.plan)]
    assert len(said) == 2


@pytest.mark.thorough
def test_the_guide_the_script_and_the_command_say_the_same(tmp_path, capsys):
    """CI runs examples/three_hospitals.sh; the command prints the commands to type, which the guide has, too."""
    root = Path(__file__).parents[2]
    guide = (root / "docs" / "guide" / "owners.rst").read_text()
    script = (root / "examples" / "three_hospitals.sh").read_text()
    assert "skdp party example --out study" in guide
    epsilon, delta = CEILING
    made = f" --ceiling {epsilon:g} {delta:.0e}".replace("e-0", "e-")
    assert f'--out "$study"{made} &' in script
    assert main(["party", "example", "--out", str(tmp_path / "study")]) == 0
    said = capsys.readouterr().out
    for index, name in enumerate("abc"):
        data = f"study/hospital_{name}.csv"
        command = f"skdp party --config study/plan.toml --index {index} --data {data} --out study"
        assert f"{command}{made}\n" in guide
        printed = command.replace("study", str(tmp_path / "study"))
        assert f"{printed} --ceiling {epsilon:g} {delta:g}\n" in said


def test_the_guide_tells_the_simulation_from_the_deployment():
    page = (Path(__file__).parents[2] / "docs" / "guide" / "owners.rst").read_text()
    simulation, deployment = page.split("\nDeployment with ``skdp party``\n---")
    assert "\nSimulation in one process\n---" in simulation
    assert "in this process, which everybody must then trust" in " ".join(simulation.split())
    assert "skdp party --config" in deployment
    assert "skdp party --config" not in simulation
