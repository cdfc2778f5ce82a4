"""Every command, in words and in JSON; bad input ends with status 2, a message and no traceback."""

import io
import json
import math
import re
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest

import skdp
from skdp.cli import _demo, main
from skdp.cli._text import dumps, rounded_down, rounded_up, table
from skdp.exceptions import PrivacyLeakWarning
from skdp.privacy import BudgetAccountant
from skdp.privacy.accounting import gaussian_mu, noise_multiplier
from tests.privacy.theirs import poisson_epsilon

ROOT = Path(skdp.__file__).parents[1]
PLAN = ["--steps", "50", "--delta", "1e-5"]


@pytest.fixture
def text(capsys):
    def run(*argv):
        assert main(argv) == 0
        return capsys.readouterr().out

    return run


@pytest.fixture
def document(text):
    def strict(constant):
        raise AssertionError(f"{constant} is not JSON")

    return lambda *argv: json.loads(text(*argv, "--json"), parse_constant=strict)


# ---------------------------------------------------------------------- costs


def test_epsilon_full_batch_is_exact(text, document):
    found = document("epsilon", "--noise-multiplier", "10", "--steps", "100", "--delta", "1e-5")
    assert found["epsilon"] == pytest.approx(4.377172, abs=1e-5)
    assert found["accountant"] == "exact Gaussian (mu-GDP)"
    said = text("epsilon", "--noise-multiplier", "10", "--steps", "100", "--delta", "1e-5")
    shown = float(said.split()[1])
    assert found["epsilon"] <= shown <= found["epsilon"] * (1 + 1e-5)
    assert "Noise multiplier = noise std / L2 sensitivity" in said


def test_epsilon_of_poisson_samples(document):
    argv = ["epsilon", "--noise-multiplier", "1", "--steps", "100", "--delta", "1e-5"]
    argv += ["--sampling-rate", "0.01", "--adjacency"]
    for adjacency in ("add-remove", "replace-one"):
        expected = poisson_epsilon(1.0, 0.01, 100, 1e-5, adjacency=adjacency)
        assert document(*argv, adjacency)["epsilon"] == pytest.approx(expected, rel=1e-3)
    assert document(*argv, "add-remove")["sampling"] == "Poisson"


def test_calibrate_is_the_exact_formula_with_the_factor_of_the_adjacency(document):
    argv = ["calibrate", "--epsilon", "1", *PLAN, "--clip-norm", "3", "--n", "1000"]
    for adjacency, factor in (("replace-one", 2), ("zero-out", 1), ("add-remove", 1)):
        found = document(*argv, "--adjacency", adjacency)
        assert found["noise_multiplier"] == pytest.approx(26.3796, abs=1e-3)
        assert found["noise_multiplier"] == noise_multiplier(1.0, 1e-5, releases=50)
        expected = found["noise_multiplier"] * factor * 3 / 1000
        assert found["noise_std_of_mean"] == pytest.approx(expected, rel=1e-12)
        assert found["noise_std_of_sum"] == pytest.approx(expected * 1000, rel=1e-12)


def test_calibrate_words_round_the_noise_up(text, document):
    said = text("calibrate", "--epsilon", "1", *PLAN, "--clip-norm", "1", "--n", "1000")
    exact = document("calibrate", "--epsilon", "1", *PLAN, "--clip-norm", "1", "--n", "1000")
    lines = said.splitlines()
    for line, key in zip(lines, ("noise_multiplier", "noise_std_of_sum", "noise_std_of_mean")):
        shown = float(line[19:].split()[0])
        assert exact[key] <= shown <= exact[key] * (1 + 1e-5), line
    assert "has sensitivity 2 C under replace-one" in said


def test_calibrate_a_sampled_mean_divides_by_the_expected_size(document):
    argv = ["calibrate", "--epsilon", "1", *PLAN, "--clip-norm", "1", "--n", "1000"]
    found = document(*argv, "--sampling-rate", "0.1", "--adjacency", "add-remove")
    z = found["noise_multiplier"]
    assert poisson_epsilon(z, 0.1, 50, 1e-5, adjacency="add-remove") <= 1.0
    assert poisson_epsilon(0.99 * z, 0.1, 50, 1e-5, adjacency="add-remove") > 1.0
    assert found["divisor"] == 100.0
    assert found["noise_std_of_mean"] == pytest.approx(z / 100)


def test_fixed_size_batches_cost_more_than_poisson_ones(document):
    argv = ["epsilon", "--noise-multiplier", "0.65", "--steps", "3515", "--delta", "1e-5"]
    argv += ["--batch-size", "256", "--n-records", "60000"]
    assert document(*argv)["epsilon"] == pytest.approx(1.556, abs=2e-3)
    found = document(*argv, "--sampling", "without-replacement")
    assert found["epsilon"] == pytest.approx(7.178, abs=1e-3)
    assert (found["batch_size"], found["n_records"]) == (256, 60000)
    argv[:3] = ["calibrate", "--epsilon", "7.2"]
    found = document(*argv, "--sampling", "without-replacement")
    assert 0.648 < found["noise_multiplier"] < 0.655


def test_n_serves_the_samples_and_the_mean(document):
    argv = ["calibrate", "--epsilon", "1", *PLAN, "--batch-size", "100"]
    found = document(*argv, "--n", "1000", "--clip-norm", "1", "--sampling", "without_replacement")
    assert (found["divisor"], found["n_records"]) == (100.0, 1000)
    other = document(*argv, "--n-records", "1000", "--sampling", "without-replacement")
    assert other["noise_multiplier"] == found["noise_multiplier"]
    assert "noise_std_of_mean" not in other


def test_epsilon_undoes_calibrate(document):
    z = document("calibrate", "--epsilon", "0.7", *PLAN)["noise_multiplier"]
    found = document("epsilon", "--noise-multiplier", repr(z), *PLAN)["epsilon"]
    assert found == pytest.approx(0.7, rel=1e-8)
    assert found <= 0.7 * (1 + 1e-12)


def test_an_infinite_epsilon_is_a_string_in_json(document):
    argv = ["epsilon", "--noise-multiplier", "1e-300", "--steps", "1000000", "--delta", "1e-5"]
    assert document(*argv)["epsilon"] == "inf"


# ---------------------------------------------------------------------- data and ledger


def test_data_list(text, document):
    names = [entry["name"] for entry in document("data", "list")]
    assert names[0] == "rand_hie"
    assert {"a9a", "imdb", "adult", "mnist"} <= set(names)
    said = text("data", "list")
    assert [line.split()[0] for line in said.splitlines()[1 : len(names) + 1]] == names


def test_data_where_follows_the_environment(text, document, monkeypatch, tmp_path):
    monkeypatch.setenv("SKDP_DATA", str(tmp_path / "there"))
    assert text("data", "where").strip() == str(tmp_path / "there")
    assert document("data", "where") == {"data_home": str(tmp_path / "there")}


def test_data_fetch_the_bundled_set(text, document):
    found = document("data", "fetch", "rand_hie")
    assert found["function"] == "load_rand_hie"
    assert Path(found["files"][0]).is_file()
    assert "load_rand_hie()" in text("data", "fetch", "rand_hie")


def test_data_fetch_calls_the_fetcher_for_every_part(document, monkeypatch):
    import skdp.datasets

    calls = []
    monkeypatch.setattr(skdp.datasets, "fetch_a9a", lambda subset: calls.append(subset))
    assert document("data", "fetch", "a9a")["name"] == "a9a"
    assert calls == ["train", "test"]


@pytest.mark.parametrize("error", [OSError("no route; put it there"), ValueError("damaged")])
def test_data_fetch_that_fails_says_so(capsys, monkeypatch, error):
    import skdp.datasets

    def fail(subset):
        raise error

    monkeypatch.setattr(skdp.datasets, "fetch_a9a", fail)
    assert main(["data", "fetch", "a9a"]) == 1
    captured = capsys.readouterr()
    assert str(error) in captured.err
    assert captured.out == ""


@pytest.fixture
def ledger_file(tmp_path):
    path = tmp_path / "survey.ledger"
    accountant = BudgetAccountant(2.0, 1e-5, path=path)
    fit = {"epsilon": 1.0, "delta": 1e-5, "adjacency": "replace-one", "unit": "group"}
    mu = gaussian_mu(1.0, 1e-5)
    accountant.reserve(estimator="DPIGHTClassifier", mu=mu, **fit).commit()
    accountant.reserve(estimator="DPIGHTRegressor", mu=mu, **fit).release()
    return path


def test_ledger_says_what_was_spent_by_whom_when_and_what_is_left(text, ledger_file):
    said = text("ledger", str(ledger_file))
    assert "ceiling    epsilon 2, delta 1e-05" in said
    assert "spent      epsilon 1, delta 1e-05  (claim the ceiling, unless number and cost" in said
    left = float(said.split("left       epsilon ")[1].split(",")[0])
    exact = BudgetAccountant(2.0, 1e-5, path=ledger_file).remaining()[0]
    assert exact * (1 - 1e-5) <= left <= exact
    assert "protects   one group, adjacency replace-one" in said
    assert "writes     5  (only grows" in said  # made, and two fits of two writes each
    rows = [line.split() for line in said.splitlines() if "DPIGHT" in line]
    assert [row[-1] for row in rows] == ["spent", "returned"]
    assert all(row[0].startswith("20") and row[0].endswith("+00:00") for row in rows)


def test_ledger_as_json(document, ledger_file):
    found = document("ledger", str(ledger_file))
    assert found["spent"] == pytest.approx([1.0, 1e-5], rel=1e-9)
    assert found["writes"] == 5
    assert [fit["estimator"] for fit in found["fits"]] == ["DPIGHTClassifier", "DPIGHTRegressor"]
    assert set(found["fits"][0]) >= {"time", "user", "pid", "epsilon", "delta", "state"}


def test_ledger_without_fits(text, tmp_path):
    BudgetAccountant(1.0, 0.0, path=tmp_path / "new")
    assert "No fit was charged." in text("ledger", str(tmp_path / "new"))


# ---------------------------------------------------------------------- bad input

EPSILON = ["epsilon", "--noise-multiplier", "1", *PLAN]
CALIBRATE = ["calibrate", "--epsilon", "1", *PLAN]
BAD = {
    "no command": ([], "COMMAND"),
    "unknown command": (["train"], "invalid choice: 'train'"),
    "unknown option": (["demo", "--fast"], "--fast"),
    "missing plan": (["epsilon"], "--noise-multiplier, --steps, --delta"),
    "zero noise": (["epsilon", "--noise-multiplier", "0", *PLAN], "a finite number > 0, got '0'"),
    "infinite noise": (["epsilon", "--noise-multiplier", "inf", *PLAN], "a finite number > 0"),
    "nan": (["calibrate", "--epsilon", "nan", *PLAN], "a finite number > 0, got 'nan'"),
    "negative epsilon": (["calibrate", "--epsilon=-1", *PLAN], "a finite number > 0, got '-1'"),
    "text": (["calibrate", "--epsilon", "one", *PLAN], "a finite number > 0, got 'one'"),
    "no steps": ([*EPSILON, "--steps", "0"], "an integer from 1 to"),
    "half a step": ([*EPSILON, "--steps", "1.5"], "an integer from 1 to"),
    "delta zero": ([*EPSILON, "--delta", "0"], "a number in (0, 1), far below 1/n, got '0'"),
    "delta one": ([*CALIBRATE, "--delta", "1"], "a number in (0, 1), far below 1/n, got '1'"),
    "rate zero": ([*EPSILON, "--sampling-rate", "0"], "a number in (0, 1], got '0'"),
    "rate above one": ([*EPSILON, "--sampling-rate", "1.01"], "a number in (0, 1], got '1.01'"),
    "adjacency": ([*EPSILON, "--adjacency", "swap"], "invalid choice: 'swap'"),
    "n alone": ([*CALIBRATE, "--n", "10"], "argument --n: needs --clip-norm"),
    "n of no sample": ([*EPSILON, "--n", "10"], "argument --n: needs --batch-size"),
    "n beyond a sample": ([*EPSILON, "--batch-size", "5", "--n", "1000000001"], "at most 1000000000 that samples"),
    "n zero": ([*CALIBRATE, "--clip-norm", "1", "--n", "0"], "an integer from 1 to"),
    "clip norm": ([*CALIBRATE, "--clip-norm", "-2"], "a finite number > 0"),
    "beyond a PLD": (
        ["calibrate", "--epsilon", "1", "--steps", "9", "--sampling-rate", "0.5", "--delta", "1e-12"],
        "too small for Poisson samples",
    ),
    "sampled steps": ([*EPSILON, "--sampling-rate", "0.5", "--steps", "10000001"], "at most 10000000"),
    "sampling alone": ([*EPSILON, "--sampling", "poisson"], "argument --sampling: needs"),
    "batch alone": ([*EPSILON, "--batch-size", "5"], "argument --batch-size: needs --n"),
    "batch and rate": ([*EPSILON, "--batch-size", "5", "--n-records", "9", "--sampling-rate", "0.5"], "not both"),
    "batch too large": ([*EPSILON, "--batch-size", "5", "--n-records", "4"], "at most --n, got"),
    "fixed size without sizes": (
        [*EPSILON, "--sampling", "without-replacement", "--sampling-rate", "0.5"],
        "needs --batch-size and --n",
    ),
    "fixed size under zero-out": (
        [
            *[*EPSILON, "--sampling", "without-replacement", "--adjacency", "zero-out"],
            *["--batch-size", "5", "--n-records", "100"],
        ],
        "No proof supports",
    ),
    "data action": (["data", "drop"], "invalid choice: 'drop'"),
    "data unknown": (["data", "fetch", "iris"], "got 'iris'; known: rand_hie, a9a"),
    "data nothing": (["data", "fetch"], "needs the NAME of a data set, got nothing"),
    "data too much": (["data", "list", "a9a"], "data list takes no NAME, got 'a9a'"),
    "ledger nothing": (["ledger"], "FILE"),
    "ledger missing": (["ledger", "/nowhere/x.ledger"], "There is no ledger file /nowhere/x.ledger"),
    "ledger another file": (["ledger", __file__], "is not a ledger of skdp"),
    "seed": (["demo", "--seed", "-1"], "an integer from 0 to 4294967295, got '-1'"),
    "out is a file": (["demo", "--out", __file__], "argument --out: cannot write to"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input(name, capsys):
    argv, message = BAD[name]
    assert main(argv) == 2
    captured = capsys.readouterr()
    assert message in captured.err
    assert "Traceback" not in captured.err
    if "demo" not in argv:
        assert captured.out == ""


# ---------------------------------------------------------------------- demo


@pytest.fixture
def short_demo(monkeypatch):
    """Two fits a line at one epsilon; continuous integration runs the whole demo from the README.

    A demo warns of nothing: its pipeline learns nothing, and of a seed it has a line of its own.
    """
    monkeypatch.setattr(_demo, "EPSILONS", (1.0,))
    monkeypatch.setattr(_demo, "REPEATS", 2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", PrivacyLeakWarning)
        yield


@pytest.mark.slow
def test_demo_in_words_and_in_a_picture(short_demo, text, tmp_path):
    said = text("demo", "--out", str(tmp_path / "new"))
    lines = said.splitlines()
    assert lines[0].startswith("skdp ")
    rows = [line.split() for line in lines if line.startswith(("nobody", "person"))]
    assert [row[:2] for row in rows] == [["nobody", "inf"], ["person-year", "1"], ["person", "1"]]
    assert all(0.4 < float(row[2]) < 0.8 and 0.5 < float(row[3]) < 0.8 for row in rows)
    assert "Privacy of one fit of DPLogisticRegression" in said
    assert "one whole person" in said
    assert "one year of one person" in said
    assert "seeded" not in said
    picture = tmp_path / "new" / "skdp_demo.png"
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert str(picture) in said


@pytest.mark.slow
def test_demo_as_json_and_again_with_the_same_seed(short_demo, capsys, tmp_path, monkeypatch):
    # Without matplotlib there is no picture, and the words say how to get it.
    monkeypatch.setattr(_demo, "find_spec", lambda name: None)
    found = []
    for seed in ("7", "7", "8"):
        assert main(["demo", "--json", "--seed", seed, "--out", str(tmp_path)]) == 0
        captured = capsys.readouterr()
        found.append(json.loads(captured.out))
        assert "seeded: for testing only" in captured.err
        assert 'pip install ".[plot]"' in captured.err
    assert found[0]["picture"] is None
    assert list(tmp_path.iterdir()) == []
    assert found[0]["seed"] == 7
    assert [fit["unit"] for fit in found[0]["fits"]] == [None, "record", "group"]
    assert found[0]["fits"][0]["epsilon"] == "inf"
    assert found[0]["report"]["unit"] == "group"
    assert found[0]["report"]["epsilon"] == 1.0
    assert found[0]["report"]["delta"] == _demo.DELTA < 1 / found[0]["data"]["n_train_rows"]
    aucs = [[fit["auc"] for fit in run["fits"]] for run in found]
    assert aucs[0] == aucs[1]
    assert aucs[0] != aucs[2]


def test_demo_trains_and_tests_on_different_people_and_on_all_rows():
    data = _demo._load(None)
    X, y, person = data["train"]
    assert X.shape[0] + data["test"][0].shape[0] == 20190
    assert data["n_train_persons"] + data["n_test_persons"] == 5912
    assert len(np.unique(person)) == data["n_train_persons"]


def test_demo_gives_every_fit_its_own_seed():
    seeds = [seed for _, _, cell in _demo._plan(0)[1:] for seed in cell]
    assert len(set(seeds)) == len(seeds) == 8 * _demo.REPEATS
    assert all(seed is None for _, _, cell in _demo._plan(None) for seed in cell)


# ---------------------------------------------------------------------- the process


def command(*argv, **options):
    return subprocess.run(
        [sys.executable, "-m", "skdp", *argv], capture_output=True, text=True, cwd=ROOT, **options
    )


def test_module_and_version():
    done = command("--version")
    assert (done.returncode, done.stdout.strip()) == (0, f"skdp {skdp.__version__}")


def test_status_reaches_the_shell():
    done = command("calibrate", "--epsilon", "0", *PLAN)
    assert done.returncode == 2
    assert done.stderr.startswith("usage: skdp calibrate")
    assert done.stdout == ""


def test_first_line_of_the_demo_comes_before_the_heavy_imports():
    code = """
import sys
from skdp.cli import main

class First:
    def write(self, line):
        heavy = [name for name in ("numpy", "sklearn", "scipy", "numba") if name in sys.modules]
        sys.__stdout__.write(f"{line}|{heavy}")
        raise KeyboardInterrupt
    def flush(self):
        pass

sys.stdout = First()
sys.exit(main(["demo"]))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.stdout.startswith(f"skdp {skdp.__version__} demo: ")
    assert done.stdout.endswith("|[]")
    assert done.returncode == 130


@pytest.mark.thorough
def test_a_closed_pipe_is_no_traceback():
    process = subprocess.Popen(
        [sys.executable, "-m", "skdp", "data", "list"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
    )
    process.stdout.close()
    errors = process.stderr.read()
    process.stderr.close()
    process.wait()
    assert errors == ""


# ---------------------------------------------------------------------- text


def test_rounding_never_flatters():
    rng = np.random.default_rng(0)
    for value in np.exp(rng.uniform(-30, 30, size=500)):
        value = float(value)
        assert value * (1 - 1e-5) <= float(rounded_down(value)) <= value
        assert value <= float(rounded_up(value)) <= value * (1 + 1e-5)
    assert (rounded_up(1.0), rounded_up(0.0), rounded_up(math.inf)) == ("1", "0", "inf")


def test_table_and_json():
    assert table([["a", "b"], ["long", 1]]) == "a     b\nlong  1"
    assert json.load(io.StringIO(dumps({"x": [math.inf, 1.5], "y": None}))) == {"x": ["inf", 1.5], "y": None}


# ---------------------------------------------------------------------- plans of fits

OF_OWNERS = ["plan", "MPCGradientPerturbationRegressor", "--n-records", "400,300,80", "--n-features", "20"]
OF_OWNERS += ["--epsilon", "2", "--delta", "1e-6", "--param", "y_bounds=[-2,2]", "--param", "weighting=record"]


def test_a_plan_is_that_of_the_estimator(text, document):
    model = skdp.MPCGradientPerturbationRegressor(epsilon=2.0, delta=1e-6, y_bounds=(-2, 2), weighting="record")
    expected = model.plan([400, 300, 80], 20)
    assert document(*OF_OWNERS) == expected.to_dict()
    assert text(*OF_OWNERS) == f"{expected}\n"
    assert "times the noise" in str(expected)


@pytest.mark.parametrize(
    ("given", "parameters"),
    [
        (
            ['class_weight={"0": 1, "-1": 3}', "classes=[0, -1]"],
            {"class_weight": {0: 1, -1: 3}, "classes": (0, -1)},
        ),
        (['classes=["0", "1"]', 'class_weight={"1": 3}'], {"class_weight": {"1": 3}, "classes": ("0", "1")}),
        (
            ['classes=["a", "b"]', 'monotone={"1": 1}', 'categories={"0": [7, 8]}'],
            {"classes": ("a", "b"), "monotone": {1: 1}, "categories": {0: [7, 8]}},
        ),
    ],
)
def test_a_dict_by_column_or_label_has_numbers_for_keys(document, given, parameters):
    arguments = [word for text in given for word in ("--param", text)]
    found = document("plan", "DPAdditiveClassifier", "--n", "5000", "--n-features", "3", *arguments)
    assert found == skdp.DPAdditiveClassifier(**parameters).plan(5000, 3).to_dict()


def test_a_number_of_groups_makes_the_group_the_unit(document):
    of_groups = ["plan", "DPIGHTClassifier", "--n-groups", "90", "--n-features", "3"]
    expected = skdp.DPIGHTClassifier(unit="group").plan(n_groups=90, n_features=3).to_dict()
    assert document(*of_groups) == document(*of_groups, "--param", "unit=group") == expected


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["DPSGDClassifier", "--n-groups", "9", "--param", "unit=record"], "give unit='group' to the estimator"),
        (["DPSGDClasifier", "--n", "9"], "did you mean DPSGDClassifier"),
        (["PublicScaler", "--n", "9"], "spends no budget"),
        (["DPSGDClassifier"], "needs n_records="),
        (["DPSGDClassifier", "--n", "3,x"], "must be an integer from 1"),
        (["DPSGDClassifier", "--n", "9", "--delta", "1"], r"a number in \[0, 1\)"),
        (["DPSGDClassifier", "--n", "9", "--param", "alpha"], "must be NAME=VALUE"),
        (["DPSGDClassifier", "--n", "9", "--param", "alfa=1"], "did you mean alpha"),
        (["DPSGDClassifier", "--n", "9", "--param", "alpha=-1"], "alpha must be"),
        (["DPSGDClassifier", "--n", "9", "--epsilon", "1", "--param", "epsilon=2"], "given twice"),
    ],
)
def test_a_plan_that_cannot_be_made_is_bad_input(capsys, more, said):
    assert main(["plan", *more]) == 2
    assert re.search(said, capsys.readouterr().err)
