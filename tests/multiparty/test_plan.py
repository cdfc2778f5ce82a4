"""The plan: strict, public, complete, and with one hash everywhere."""

import copy
import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from skdp.cli import main
from skdp.multiparty.party.document import TomlTable
from skdp.multiparty.party.hints import hints
from skdp.multiparty.party.keys import make_keys
from skdp.multiparty.party.plan import (
    _NOT_IN_A_PLAN,
    Feature,
    PlanError,
    _estimator_class,
    canonical_hash,
    parse_plan,
    read_plan,
)
from skdp.multiparty.party.table import DataError, public_rows, read_own_records
from tests.multiparty.study import document, write_plan


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return [make_keys(folder, f"party_{i}")[1].read_text() for i in range(4)]


@pytest.fixture
def good(certificates):
    return document(certificates)


def paths(entry, prefix=()):
    """Every key of a document, as the way to it."""
    items = entry.items() if isinstance(entry, dict) else enumerate(entry)
    for key, value in items:
        yield (*prefix, key)
        if isinstance(value, (dict, list)):
            yield from paths(value, (*prefix, key))


def at(entry, path):
    for key in path:
        entry = entry[key]
    return entry


def test_the_plan_is_read_from_toml_and_knows_its_parties(good, tmp_path):
    plan = write_plan(tmp_path / "plan.toml", good)
    assert plan == parse_plan(good)
    assert [party.n_units for party in plan.parties] == [30, 50, 40, 35]
    assert (plan.n_servers, plan.threshold, plan.features[0]) == (3, 1, Feature("x0", -2.0, 2.0))
    made = plan.make_estimator(accountant=False)
    assert (made.epsilon, made.max_iter, list(made.classes)) == (10.0, 3, [0, 1])


def test_every_key_may_be_missing_only_where_that_is_said_and_never_misspelt(good):
    optional = {"group", "classes", "bounds", "address", "alpha", "row_norm", "max_iter"}
    tried = 0
    for path in paths(good):
        if not isinstance(path[-1], str):
            continue
        for renamed in (False, True):
            changed = copy.deepcopy(good)
            value = at(changed, path[:-1]).pop(path[-1])
            if renamed:
                at(changed, path[:-1])[f"{path[-1]}_"] = value
            elif path[-1] in optional:
                continue
            with pytest.raises(PlanError, match=path[-1]):
                parse_plan(changed)
            tried += 1
    assert tried > 60


def test_every_value_of_another_type_is_refused(good):
    for path in paths(good):
        for wrong in (None, True, b"x", {"a": 1} if not isinstance(at(good, path), dict) else 5):
            changed = copy.deepcopy(good)
            at(changed, path[:-1])[path[-1]] = wrong
            with pytest.raises(PlanError):
                parse_plan(changed)


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (("skdp",), "0.0.1", "the plan is for skdp '0.0.1'"),
        (("protocol",), 99, "protocol 99"),
        (("id",), "a b", "letters"),
        (("servers",), 4, "3 or 5"),
        (("servers",), 5, "larger than the number of parties"),
        (("threshold",), 2, "threshold"),
        (("estimator",), "DPLogisticRegression", "MPCGradientPerturbationClassifier"),
        (("parameters", "engine"), "plain", "engine"),
        (("parameters", "accountant"), False, "accountant"),
        (("parameters", "random_state"), 1, "random_state"),
        (("parameters", "epsilon"), float("inf"), "finite"),
        (("parameters", "noise"), "uniform", "gaussian, laplace"),
        (("parameters", "delta"), 0.0, "delta"),
        (("parameters", "weighting"), "records", "weighting must be one of"),
        (("parameters", "adjacency"), "add-remove", "adjacency='add-remove' makes"),
        (("parameters", "adjacency"), "replace_one", "adjacency"),
        (("parameters", "unit"), "person", "unit must be one of"),
        (("parameters", "alpha"), -1.0, "alpha must be > 0"),
        (("parameters", "row_norm"), "long", "row_norm must be a number or 'auto'"),
        (("parameters", "max_iter"), 0, "max_iter must be >= 1"),
        (("parameters", "learning_rate"), "fast", "learning_rate"),
        (("parameters", "clip_norm"), [1.0, 2.0], "clip_norm"),
        (("parameters", "fit_intercept"), 1, "fit_intercept"),
        (("parameters", "unit"), "group", "group"),
        (("parameters", "unit"), "owner", "'n_units' must be 1"),
        (("data", "group"), "person", "group"),
        (("data", "target"), "x0", "twice"),
        (("data", "classes"), [0, "1"], "all integers"),
        (("data", "classes"), [1, 1], "different"),
        (("data", "features", 0, "bounds"), [2.0, 2.0], "increasing"),
        (("data", "features", 0, "bounds"), [0.0, float("nan")], "increasing"),
        (("data", "features", 0, "name"), "x1", "twice"),
        (("parties", 0, "address"), "nowhere", "host:port"),
        (("parties", 0, "address"), "host:70000", "host:port"),
        (("parties", 1, "name"), "hospital_a", "same name"),
        (("parties", 1, "n_units"), 0, "n_units"),
        (("parties", 0, "certificate"), "no certificate", "PEM"),
        (("deadlines", "round"), 0.0, "round"),
        (("deadlines", "round"), float("inf"), "round"),
        (("max_payload",), 2**40, "max_payload"),
    ],
)
def test_what_a_plan_cannot_say(good, path, value, said):
    changed = copy.deepcopy(good)
    at(changed, path[:-1])[path[-1]] = value
    with pytest.raises(PlanError, match=said):
        parse_plan(changed)


def test_a_frame_must_hold_a_round(good):
    good["max_payload"] = 1024
    parse_plan(good)
    good["data"]["features"] = [{"name": f"x{j}"} for j in range(60)]
    with pytest.raises(PlanError, match="'max_payload' must be at least 1464"):
        parse_plan(good)


def test_two_parties_cannot_share_a_certificate_and_a_server_needs_an_address(good):
    twice = copy.deepcopy(good)
    twice["parties"][3]["certificate"] = twice["parties"][0]["certificate"]
    with pytest.raises(PlanError, match="same certificate"):
        parse_plan(twice)
    hidden = copy.deepcopy(good)
    del hidden["parties"][0]["address"]
    with pytest.raises(PlanError, match="hospital_a is a server"):
        parse_plan(hidden)
    del hidden["parties"][3]["address"]
    hidden["parties"][0]["address"] = "[::1]:7000"
    plan = parse_plan(hidden)  # an owner that is no server needs none
    assert (plan.parties[0].host, plan.parties[3].host) == ("::1", None)


def test_servers_listen_at_addresses_of_their_own(good):
    good["parties"][3]["address"] = good["parties"][0]["address"]  # no server: nobody connects to it
    parse_plan(good)
    host, port = good["parties"][0]["address"].split(":")
    good["parties"][0]["address"] = f"Host:{port}"
    good["parties"][2]["address"] = f"host:{port}"
    with pytest.raises(PlanError, match="hospital_a and hospital_c have the same 'address'"):
        parse_plan(good)


def test_a_regression_has_no_classes_and_a_range(good):
    regression = {**good, "estimator": "MPCGradientPerturbationRegressor"}
    with pytest.raises(PlanError, match=r"Regressor takes no 'classes' in \[data\]"):
        parse_plan(regression)
    del good["data"]["classes"]
    with pytest.raises(PlanError, match=r"Classifier needs 'classes' in \[data\]"):
        parse_plan(good)
    assert parse_plan(regression).classes is None
    for wrong in ([1.0, 0.0], [1.0], "wide"):
        with pytest.raises(PlanError, match="y_bounds"):
            parse_plan({**regression, "parameters": {**good["parameters"], "y_bounds": wrong}})


# ---------------------------------------------------------------- the deadline of Laplace noise, and hints


def with_laplace(good, seconds, **parameters):
    return {
        **good,
        "parameters": {**good["parameters"], "noise": "laplace", **parameters},
        "deadlines": {**good["deadlines"], "round": seconds},
    }


def test_a_deadline_in_which_no_machine_makes_the_noise_is_refused(good):
    good["data"]["features"] = [{"name": f"x{j}", "bounds": [0, 1]} for j in range(199)]
    good["max_payload"] = 2**24
    assert parse_plan(with_laplace(good, 1.0)).n_values == 200
    with pytest.raises(PlanError, match=r"'round' .* has 200 values\. Give at least 60 "):
        parse_plan(with_laplace(good, 0.99))
    assert parse_plan(with_laplace(good, 0.996, fit_intercept=False)).n_values == 199
    good["deadlines"]["round"] = 0.1
    parse_plan(good)  # Gaussian noise takes no time
    good["data"]["classes"] = [0, 1, 2]
    assert parse_plan(with_laplace(good, 3.0)).n_values == 600
    with pytest.raises(PlanError, match=r"'round' .* Give at least 72 "):
        parse_plan(with_laplace(good, 2.99))


def test_hints_are_of_short_deadlines_and_of_rows_whose_length_nobody_gave(good, tmp_path, capsys):
    assert hints(parse_plan(good)) == []
    assert hints(parse_plan(with_laplace(good, 60.0))) == []
    (said,) = hints(parse_plan(with_laplace(good, 59.5)))
    assert "'round' is 59.5 seconds: Laplace noise of 4 values" in said
    assert "60 seconds are safe" in said
    del good["data"]["features"][1]["bounds"]
    assert hints(parse_plan(good)) == []  # row_norm is given
    del good["parameters"]["row_norm"]
    (said,) = hints(parse_plan(good))
    assert said.startswith("no bounds for 'x1', and no row_norm: such columns must be standardized by public")
    assert "sqrt(n_features) = 1.73" in said
    assert hints(parse_plan({**good, "parameters": {**good["parameters"], "row_norm": "auto"}})) == [said]
    write_plan(tmp_path / "plan.toml", good)
    assert main(["party", "check", str(tmp_path / "plan.toml")]) == 0
    assert f"hint: {said}\n" in capsys.readouterr().out
    assert main(["party", "check", "--json", str(tmp_path / "plan.toml")]) == 0
    assert json.loads(capsys.readouterr().out)["hints"] == [said]


def test_the_hash_is_that_of_the_content(good):
    shuffled = dict(reversed(good.items()))
    assert parse_plan(shuffled).hash == parse_plan(good).hash
    changed_all = {parse_plan(good).hash}
    for path in (("id",), ("parameters", "alpha"), ("parties", 3, "n_units"), ("deadlines", "data")):
        changed = copy.deepcopy(good)
        value = at(changed, path)
        at(changed, path[:-1])[path[-1]] = value + ("x" if isinstance(value, str) else 1)
        changed_all.add(parse_plan(changed).hash)
    assert len(changed_all) == 5
    # Fixed once and for all: another machine or version must find the same.
    assert canonical_hash({"b": [1, 0.1], "a": "\u00e9"}) == (
        "74d14117f8efe7d5e0eabfa9d3c1cb25a29aad43a0843b555bbe4cca238521ce"
    )


def test_a_file_that_is_no_toml(tmp_path):
    (tmp_path / "plan.toml").write_text("id = ")
    with pytest.raises(PlanError, match="not TOML"):
        read_plan(tmp_path / "plan.toml")


# ---------------------------------------------------------------- the plan of the guide

GUIDE = Path(__file__).parents[2] / "docs" / "guide"


def test_the_guides_plan_is_one_and_has_every_key_with_its_meaning(monkeypatch):
    """What the reader asks for is watched, so a new key must come into the guide, too."""
    tables, usual = [], TomlTable.finish
    monkeypatch.setattr(TomlTable, "finish", lambda self: (tables.append(self), usual(self)))
    plan = read_plan(GUIDE / "plan.toml")
    asked = {(kind(table), key) for table in tables for key in table.read}
    written = {(kind(table), key) for table in tables for key in table.entries}
    assert asked == written
    assert len(asked) > 20
    assert {*plan.parameters} == {*_estimator_class(plan.estimator)().get_params()} - _NOT_IN_A_PLAN

    lines = (GUIDE / "plan.toml").read_text().splitlines()
    for key in [key for _, key in asked] + [*plan.parameters]:
        first = next(i for i, line in enumerate(lines) if re.search(rf"(^|[ [{{]){key}( = |\])", line))
        assert "#" in lines[first] or lines[first - 1].startswith("#"), key
    assert ".. literalinclude:: plan.toml" in (GUIDE / "owners.rst").read_text()


def kind(table):
    return re.sub("[0-9]+", "", table.where)


def test_the_guides_plan_fits():
    plan, rng = read_plan(GUIDE / "plan.toml"), np.random.default_rng(0)
    X = public_rows(rng.uniform(0, 1, (400, 3)), plan.features)
    model = plan.make_estimator(accountant=False)
    model.fit(X, X[:, 1] > 0, owners=np.arange(400) % 4, groups=np.arange(400) // 4)
    assert (model.privacy_.epsilon, model.n_iter_) == (1.0, 40)


# ---------------------------------------------------------------- the party's own table


def test_public_bounds_clip_map_and_fill():
    X = np.array([[-5.0, 3.0], [np.nan, 4.0], [np.inf, 5.0], [1.0, 6.0]])
    made = public_rows(X, [Feature("a", -2.0, 2.0), Feature("b")])
    np.testing.assert_array_equal(made, [[-1.0, 3.0], [0.0, 4.0], [1.0, 5.0], [0.5, 6.0]])
    empty = np.array([[0.0, 1.0], [0.0, np.nan], [0.0, np.inf]])
    with pytest.raises(DataError, match="2 rows of 3, first row 2"):
        public_rows(empty, [Feature("a", -2.0, 2.0), Feature("b")])


def write_csv(path, rows, header="x2,sick,x0,x1,other"):
    path.write_text("\n".join([header, *rows]) + "\n", "utf-8", "surrogateescape")
    return path


def test_columns_are_found_by_name_in_csv_npz_and_parquet(good, tmp_path):
    polars = pytest.importorskip("polars")
    good["parties"][0]["n_units"] = 2
    plan = parse_plan(good)
    made = [write_csv(tmp_path / "a.csv", ["2,1,0,1,secret", ",0,1,-2,secret"])]
    columns = {
        "x2": [2.0, np.nan], "sick": [1, 0], "x0": [0.0, 1.0], "x1": [1.0, -2.0], "other": [0, 0],
    }  # fmt: skip
    np.savez(tmp_path / "a.npz", **columns)
    polars.DataFrame(columns).write_parquet(tmp_path / "a.parquet")
    for path in (*made, tmp_path / "a.npz", tmp_path / "a.parquet"):
        X, y, groups = read_own_records(path, plan, 0)
        np.testing.assert_array_equal(X, [[0.0, 0.5, 1.0], [0.5, -1.0, 0.0]])
        np.testing.assert_array_equal(y, [1, 0])
        assert groups is None


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (["2,1,0,1,s", "2,1,0,1"], "another number of cells than its header: 1 row of 2, first row 2"),
        (["2,1,0,1,s"], "hospital_a has 2 records, and the table has 1$"),
        (["2,1,0,1,s", "2,3142,0,1,s"], "'sick' has a label .*: 1 row of 2, first row 2"),
        (["2,3142,0,1,s", "2,,0,1,s"], "'sick' has a label .*: 2 rows of 2, first row 1"),
        (
            ["2,1,0,1,s", "2,1,Smith,1,s", "2,1,,1,s", "2,1,Smith,1,s"],
            "'x0' has a cell that is not a number: 2 rows of 4, first row 2",
        ),
        (["2,1,0,1,s", "2,Smith,0,1,s"], "'sick' has a cell that is not a number: 1 row of 2, first row 2"),
        (["2,1,0,1,s", '2,1,0,"Smith'], "a.csv is not a table in CSV: .* at line 3"),
        (["2,1,0,1,\udcff"], "a.csv is not a table in UTF-8"),
    ],
)  # fmt: skip
def test_a_table_that_does_not_fit_is_named_by_column_and_row_never_by_cell(good, tmp_path, rows, said):
    good["parties"][0]["n_units"] = 2
    with pytest.raises(DataError, match=said) as caught:
        read_own_records(write_csv(tmp_path / "a.csv", rows), parse_plan(good), 0)
    error = caught.value
    while error is not None:  # also what a traceback would show
        if not error.__suppress_context__ or error is caught.value:
            assert "Smith" not in str(error)
            assert "3142" not in str(error)
        error = None if error.__suppress_context__ else error.__context__


def test_a_missing_column_and_a_file_that_would_be_unpickled(good, tmp_path):
    plan = parse_plan(good)
    with pytest.raises(DataError, match="no column 'x1'"):
        read_own_records(write_csv(tmp_path / "a.csv", ["1,1,1"], "x2,sick,x0"), plan, 0)
    columns = {name: np.array([1.0, None]) for name in ("x0", "x1", "x2", "sick")}
    np.savez(tmp_path / "a.npz", **columns)
    with pytest.raises(DataError, match="plain arrays"):
        read_own_records(tmp_path / "a.npz", plan, 0)
    good_file = (tmp_path / "a.npz").read_bytes()
    (tmp_path / "a.npz").write_bytes(good_file[: len(good_file) // 2])
    with pytest.raises(DataError, match="plain arrays"):
        read_own_records(tmp_path / "a.npz", plan, 0)
    columns = {"x0": np.ones(3), "x1": np.ones(2), "x2": np.ones(3), "sick": np.ones(3)}
    np.savez(tmp_path / "a.npz", **columns)
    with pytest.raises(DataError, match="'x0' has 3 rows, and column 'x1' has 2"):
        read_own_records(tmp_path / "a.npz", plan, 0)
    columns |= {"x1": np.ones((3, 2))}
    np.savez(tmp_path / "a.npz", **columns)
    with pytest.raises(DataError, match="'x1' is not a column of numbers"):
        read_own_records(tmp_path / "a.npz", plan, 0)
    with pytest.raises(DataError, match=r"\.csv, \.npz or \.parquet"):
        read_own_records(tmp_path / "a.txt", plan, 0)


def test_a_group_counts_persons_and_texts_are_labels_too(good, tmp_path):
    good["data"] = {**good["data"], "group": "who", "classes": ["no", "yes"]}
    good["parameters"]["unit"] = "group"
    good["parties"][0]["n_units"] = 2
    header = "x2,sick,x0,x1,who"
    rows = ["2,yes,0,1,anna", "2,no,0,1,otto", "2,no,0,1,anna"]
    X, y, groups = read_own_records(write_csv(tmp_path / "a.csv", rows, header), parse_plan(good), 0)
    assert y.tolist() == ["yes", "no", "no"]
    assert groups.tolist() == ["anna", "otto", "anna"]
    with pytest.raises(DataError, match="has 2 groups, and the table has 1, in rows: 1"):
        read_own_records(write_csv(tmp_path / "a.csv", rows[:1], header), parse_plan(good), 0)


@pytest.mark.parametrize("nobody", ["", "  "])
def test_a_row_of_nobody_is_refused_because_all_of_them_would_be_one_person(good, tmp_path, nobody):
    good["data"] = {**good["data"], "group": "who"}
    good["parameters"]["unit"] = "group"
    good["parties"][0]["n_units"] = 2
    rows = ["2,1,0,1,anna", f"2,0,0,1,{nobody}", "2,0,0,1,otto", f"2,0,0,1,{nobody}"]
    path = write_csv(tmp_path / "a.csv", rows, "x2,sick,x0,x1,who")
    with pytest.raises(DataError, match=r"'who' has an empty cell.*2 rows of 4, first row 2"):
        read_own_records(path, parse_plan(good), 0)
    columns = {name: np.zeros(3) for name in ("x0", "x1", "x2", "sick")}
    np.savez(tmp_path / "a.npz", who=np.array([1.0, np.nan, 2.0]), **columns)
    with pytest.raises(DataError, match="'who' has an empty cell"):
        read_own_records(tmp_path / "a.npz", parse_plan(good), 0)


def test_a_target_that_is_empty_is_refused_with_its_row(good, tmp_path):
    del good["data"]["classes"]
    good["parameters"]["y_bounds"] = [0.0, 9.0]
    plan = parse_plan({**good, "estimator": "MPCGradientPerturbationRegressor"})
    rows = ["2,1,0,1,s", "2,,0,1,s", "2,inf,0,1,s"]
    with pytest.raises(DataError, match="2 rows of 3, first row 2") as caught:
        read_own_records(write_csv(tmp_path / "a.csv", rows), plan, 0)
    assert str(caught.value).startswith("column 'sick' has a cell that is empty or not finite")


def test_importing_the_library_loads_none_of_this():
    code = "import sys, skdp.cli; print([m for m in sys.modules if 'multiparty' in m or m == 'ssl'])"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
