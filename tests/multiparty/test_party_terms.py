"""What follows from a plan: the parties compare it before anything is charged, and `party check` prints it."""

import asyncio
import json
import struct
from dataclasses import replace

import numpy as np
import pytest

import skdp.multiparty.party.run as runs
from skdp import __version__, registry
from skdp.cli import main
from skdp.multiparty import OwnRecords
from skdp.multiparty.engine.laplace_bits import UNNOTICED
from skdp.multiparty.party.document import PlanError
from skdp.multiparty.party.engine import NetworkEngine
from skdp.multiparty.party.plan import parse_plan
from skdp.multiparty.party.planned import drawn_std, planned_opening, summary
from skdp.multiparty.party.table import read_own_records
from skdp.multiparty.party.terms import TOLERANCE, BadTerms, PlanTerms, software
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.network import Network
from skdp.privacy import Opening, read_ledger
from tests.multiparty.study import Impostor, Study, announce, document, write_plan

pytestmark = pytest.mark.filterwarnings("ignore")

GOOD = Opening(n_owners=3, n_values=4, noise="gaussian", scale=2.0**30, grid=1e-9, sensitivity=0.1, releases=3)


# ---------------------------------------------------------------- terms


def test_terms_travel_and_are_equal_but_for_the_last_digits():
    terms = PlanTerms(GOOD)
    assert PlanTerms.unpack(terms.pack()) == terms
    assert terms.agree(terms)
    for name in ("scale", "grid", "sensitivity"):
        value = getattr(GOOD, name)
        for near in (0.5, -0.5):
            other = replace(GOOD, **{name: value * (1 + near * TOLERANCE)})
            assert terms.agree(PlanTerms(other))
        for far in (1.5, -1.5, 0.22, -0.5):
            other = replace(GOOD, **{name: value * (1 + far * (TOLERANCE if far**2 > 1 else 1))})
            assert not terms.agree(PlanTerms(other))
    for name, value in (("n_owners", 4), ("n_values", 5), ("releases", 2), ("noise", "laplace")):
        assert not terms.agree(PlanTerms(replace(GOOD, **{name: value})))


def test_bytes_that_are_no_terms_are_refused():
    good = PlanTerms(GOOD).pack()
    odd = [b"", good[:-1], good + b"\0", b"\xff" + good[1:]]
    odd += [good[:-8] + struct.pack("<d", x) for x in (0.0, -1.0, np.nan, np.inf)]
    for payload in odd:
        with pytest.raises(BadTerms):
            PlanTerms.unpack(payload)


def test_the_software_is_the_version_and_its_sources(tmp_path, monkeypatch):
    """A changed file, a renamed one and a missing one count; line endings and caches do not."""
    import skdp.multiparty.party.terms as module

    assert software().startswith(f"{__version__}+")
    assert len(software()) <= 32  # what the hello holds
    found = []

    def of(files):
        root = tmp_path / str(len(found))
        for name, text in files.items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(text)
        monkeypatch.setattr(module, "_ROOT", root)
        found.append(module.software.__wrapped__())
        return found[-1]

    first = of({"__init__.py": b"a\n", "sub/b.py": b"b\n"})
    assert of({"__init__.py": b"a\r\n", "sub/b.py": b"b\r\n", "x.pyc": b"1"}) == first
    for other in (
        {"__init__.py": b"a\n", "sub/b.py": b"c\n"},
        {"__init__.py": b"a\n", "sub/c.py": b"b\n"},
        {"__init__.py": b"a\n"},
        {"__init__.py": b"a\nb", "sub/b.py": b"\n"},
    ):
        assert of(other) != first


# ---------------------------------------------------------------- the parties compare them


def states(study, index):
    return [fit["state"] for fit in read_ledger(study.ledger(index))["fits"]]


@pytest.mark.parametrize(
    "other", [{"row_norm": 1.0}, {"max_iter": 4}, {"epsilon": 9.0}, {"noise": "laplace"}, {"fit_intercept": False}]
)
def test_a_party_that_computes_other_noise_is_named_before_anything_is_charged(tmp_path, monkeypatch, other):
    """Its plan has the same hash, and it runs the same files: it makes something else of what it reads."""
    study, usual = Study(tmp_path), runs.read_plan
    odd = tmp_path / "odd.toml"
    odd.write_bytes((tmp_path / "plan.toml").read_bytes())

    def read(path):
        plan = usual(path)
        wrong = {**plan.parameters, **other}
        return replace(plan, parameters=wrong) if path == odd else plan

    monkeypatch.setattr(runs, "read_plan", read)
    found = study.together({1: {"config": odd}})
    for index in (0, 2):
        assert (found[index].peer, found[index].reason) == ("hospital_b", Reason.TERMS), found
        assert "it computes other noise or another grid from the same plan" in str(found[index])
    assert found[1].reason is Reason.TERMS
    assert all(states(study, index) == ["returned"] for index in range(3))
    assert not list((tmp_path / "out").glob("*.json"))


@pytest.mark.parametrize(
    "changes",
    [
        {"scale": 2.0**29},
        {"releases": 4},
        pytest.param({"grid": 1e-9}, marks=pytest.mark.thorough),
        pytest.param({"sensitivity": 1.0}, marks=pytest.mark.thorough),
        pytest.param({"n_values": 5}, marks=pytest.mark.thorough),
    ],
)
def test_every_term_is_compared(tmp_path, changes, monkeypatch):
    study, sent = Study(tmp_path, 4), []
    usual = NetworkEngine._open_as_owner
    monkeypatch.setattr(NetworkEngine, "_open_as_owner", lambda self, mine: (sent.append(1), usual(self, mine))[1])

    async def act(network):
        await announce(network, **changes)

    found = study.together(only=range(3), beside=[Impostor(study, act)])
    for index in range(3):
        assert isinstance(found[index], PartyError)
        assert (found[index].peer, found[index].reason) == ("hospital_d", Reason.TERMS)
        hint, cost = found[index].__notes__
        assert f"here runs skdp {software()}" in hint
        assert str(PlanTerms(planned_opening(study.plan))) in hint
        assert "nothing was spent, and the plan can run again" in cost
        assert states(study, index) == ["returned"]
    assert sent == []


def test_another_build_of_the_same_version_is_refused_before_data_are_read(tmp_path):
    study = Study(tmp_path, 4)

    async def act(network):
        pass

    other = software()[:-1] + ("0" if software()[-1] != "0" else "1")
    found = study.together(only=range(3), beside=[Impostor(study, act, version=other)])
    for index in range(3):
        assert (found[index].peer, found[index].reason) == ("hospital_d", Reason.VERSION)
        assert "other source files of the same version" in str(found[index])
        assert states(study, index) == []


def test_the_noise_is_that_of_the_largest_scale_and_openings_are_those_that_were_announced(tmp_path):
    """Last digits may differ between machines: then each party's claim, of its own scale, holds."""
    plan = Study(tmp_path).plan
    opening = planned_opening(plan)
    wider = replace(opening, scale=opening.scale * (1 + TOLERANCE / 2))

    class Known(Network):
        async def barrier(self, tag, word=b"", hear=None):
            for other in (opening, wider, opening):
                hear(None, PlanTerms(other).pack())

    class Direct:
        def call(self, coroutine):
            return asyncio.run(coroutine)

    engine = NetworkEngine(Direct(), Known(0), plan)
    zeros = [np.zeros(4, np.int64)] * 3
    with pytest.raises(ValueError, match="`ready` announced"):
        engine.open(zeros, opening.scale)
    engine._agree(opening)
    assert engine._scale == wider.scale > opening.scale
    assert engine.terms.opening == opening
    for wrong in ((zeros, opening.scale / 2), ([np.zeros(5, np.int64)] * 3, opening.scale)):
        with pytest.raises(ValueError, match="`ready` announced"):
            engine.open(*wrong)


# ---------------------------------------------------------------- what a plan makes every party do


class Stop(Exception):
    pass


def announced(plan, path, index):
    """What the fit of one party announces, with its own records."""
    kept = []

    class Engine(NetworkEngine):
        def ready(self, opening):
            kept.append(opening)
            raise Stop

    X, y, groups = read_own_records(path, plan, index)
    sizes = tuple(party.n_units for party in plan.parties)
    more = {} if groups is None else {"groups": groups}
    model = plan.make_estimator(engine=Engine(None, Network(index), plan), accountant=False)
    with pytest.raises(Stop):
        model.fit(X, y, owners=OwnRecords(sizes, index), **more)
    return kept[0]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", ["record", "group", "owner"])
@pytest.mark.parametrize("method", ["Gradient", "Output"])
def test_the_plan_alone_tells_what_the_parties_announce(tmp_path, method, unit, noise):
    """No record counts: the three parties' own fits announce the same, to the last bit."""
    parameters = {**document([])["parameters"], "unit": unit, "noise": noise}
    parameters["max_iter"] = "auto"
    if method == "Output":
        del parameters["max_iter"]
    data = document([])["data"]
    if unit == "group":
        data = {**data, "group": "person"}
    study = Study(
        tmp_path, parameters=parameters, estimator=f"MPC{method}PerturbationClassifier", data=data
    ) if unit != "owner" else _study_of_owners(
        tmp_path, parameters=parameters, estimator=f"MPC{method}PerturbationClassifier", data=data
    )  # fmt: skip
    opening = planned_opening(study.plan)
    for index, (party, (X, y)) in enumerate(zip(study.plan.parties, study.tables)):
        path = tmp_path / f"{party.name}.npz"
        columns = {f"x{j}": X[:, j] for j in range(3)}
        np.savez(path, sick=y, person=np.arange(len(y)), **columns)
        assert announced(study.plan, path, index) == opening
    assert summary(study.plan)["noise"]["noise_std"] == drawn_std(study.plan, opening)


def _study_of_owners(folder, **changes):
    """A study whose unit is the owner: the number of its records is private."""
    study = Study(folder, **{**changes, "parameters": {**changes["parameters"], "unit": "record"}})
    parties = [{**party, "n_units": 1} for party in study.document["parties"]]
    study.document = {**study.document, "parameters": changes["parameters"], "parties": parties}
    study.plan = write_plan(folder / "plan.toml", study.document)
    return study


def test_the_check_prints_what_people_must_read_and_the_report_has_the_same_noise(tmp_path, capsys):
    study = Study(tmp_path)
    plan = str(tmp_path / "plan.toml")
    assert main(["party", "check", plan]) == 0
    said = capsys.readouterr().out
    for wanted in (
        f"skdp  {software()}\n",
        "estimator  MPCGradientPerturbationClassifier\n",
        "epsilon  10, delta 1e-06, for one record (replace-one)\n",
        "servers  hospital_a, hospital_b, hospital_c; 1 of them may look",
        "trust  all servers follow the protocol\n",
        "noise  Gaussian, 3 openings of 4 values, standard deviation ",
    ):
        assert wanted in said
    assert main(["party", "check", "--json", plan]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["epsilon"], found["delta"], found["unit"]) == (10.0, 1e-6, "record")
    assert found["estimator"] == "MPCGradientPerturbationClassifier"
    assert found["servers"] == ["hospital_a", "hospital_b", "hospital_c"]
    study.together()
    (path, *_) = sorted((tmp_path / "out").glob("*.report.json"))
    report = json.loads(path.read_text())
    (row,) = report["mechanisms"]
    # Of three servers two are honest, and all three draw.
    counted = row["noise_multiplier"] * row["sensitivity"]
    assert row["noise_std"] == pytest.approx(1.5**0.5 * counted, rel=1e-12)
    assert found["noise"]["noise_std"] == pytest.approx(row["noise_std"], rel=1e-12)
    assert found["noise"]["grid"] == row["grid"]
    assert f"standard deviation {row['noise_std']:.6g}, grid {row['grid']:.6g}; {counted:.6g} of it" in said
    (line,) = [one for one in report["assumptions"] if "announced the same noise" in one]
    assert found["noise"]["text"] in line
    assert software() in line


@pytest.mark.parametrize("name", [n for n in registry.ESTIMATORS if n.startswith("MPC")])
def test_an_estimator_that_cannot_run_between_parties_is_refused(tmp_path, name, capsys):
    """Each of them either opens its sums by an engine, or is refused by name and with the reason."""
    study = Study(tmp_path)
    data, parameters = dict(study.document["data"]), dict(study.document["parameters"])
    if name.endswith("Regressor"):
        del data["classes"]
        parameters["y_bounds"] = [0.0, 1.0]
    if "Gradient" not in name:
        del parameters["max_iter"]
    changed = {**study.document, "estimator": name, "parameters": parameters, "data": data}
    (tmp_path / "plan.toml").unlink()
    if "Pathak" not in name:
        write_plan(tmp_path / "plan.toml", changed)
        assert main(["party", "check", str(tmp_path / "plan.toml")]) == 0
        return
    with pytest.raises(PlanError, match=f"{name} adds its noise in one process, so it cannot run"):
        write_plan(tmp_path / "plan.toml", changed)
    assert main(["party", "check", str(tmp_path / "plan.toml")]) == 2
    said = capsys.readouterr().err
    assert f"{name} adds its noise in one process" in said
    assert "MPCOutputPerturbationClassifier" in said


def test_a_plan_whose_noise_does_not_fit_cannot_run(tmp_path, capsys):
    """So many noisy values that the samplers' proven error is more than a tiny budget holds."""
    study = Study(tmp_path)
    parameters = {**study.document["parameters"], "epsilon": 1e-6, "max_iter": 100_000}
    changed = {**study.document, "parameters": parameters}
    write_plan(tmp_path / "plan.toml", changed)
    with pytest.raises(PlanError, match="the plan cannot run: "):
        planned_opening(parse_plan(changed))
    assert main(["party", "check", str(tmp_path / "plan.toml")]) == 2
    assert "the plan cannot run: " in capsys.readouterr().err
    words = ["--config", tmp_path / "plan.toml", "--index", 0, "--data", study.options(0).data]
    assert main(["party", *map(str, words), "--ceiling", "1", "1e-6"]) == 2
    assert "the plan cannot run: " in capsys.readouterr().err
    assert not study.ledger(0).exists()


# ---------------------------------------------------------------- Laplace noise rests on all servers


def test_the_check_the_report_and_the_page_say_what_laplace_noise_rests_on(tmp_path, capsys):
    from pathlib import Path

    parameters = {**document([])["parameters"], "noise": "laplace"}
    study = Study(tmp_path, parameters=parameters)
    assert main(["party", "check", str(tmp_path / "plan.toml")]) == 0
    assert f"trust  all servers follow the protocol: {UNNOTICED}\n" in capsys.readouterr().out
    engine = NetworkEngine(None, Network(0), study.plan)
    assert engine.name.endswith(f"all servers follow the protocol: {UNNOTICED}")
    plain = parse_plan({**study.document, "parameters": document([])["parameters"]})
    assert UNNOTICED not in NetworkEngine(None, Network(0), plain).name
    root = Path(__file__).parents[2]
    page = " ".join((root / "docs" / "theory" / "secure_aggregation.rst").read_text().split())
    assert "one altered message removes the noise, and nobody notices" in page
    assert "nothing is opened to those who notice" not in page
    assert "all k = 2t + 1 are needed, none is left to contradict" in page
    page = " ".join((root / "docs" / "guide" / "owners.rst").read_text().split())
    assert "It protects only where every server follows the protocol." in page
    security = " ".join((root / "SECURITY.md").read_text().split())
    assert "Several parties" in security
    model = " ".join((root / "docs" / "reviewers" / "threat_model.rst").read_text().split())
    for text in (security, model):
        assert "one server that alters one message removes the noise, and nobody notices" in text
