"""Forged ledger rows against the readers of rows, the recheck, reports and the register of mechanisms."""

import json
import math
import re
import subprocess
import sys
from pathlib import Path

import pytest

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import PrivacyReport
from skdp.privacy.accounting import recheck_epsilon, recheck_tail
from skdp.privacy.accounting.releases import release_of
from skdp.privacy.mechanisms import registry
from tests.privacy.exact.test_releases import ROWS

REFUSALS = (ValueError, UnsupportedAccounting)
IMPOSSIBLE = (-1.0, math.nan, "3.0", None, True, [1.0], -math.inf)
WORDS = {"name", "purpose", "sampling", "one_signed", "replaced"}
# The recheck does not read these: they are for people.
SHOWN = {"penalty", "n_batches", "sampling_rate", "batch_size"}
ids = [f"{row['name']} {row['sampling']} {'threshold' in row}" for row in ROWS]


def rechecked(row):
    """Epsilon by the recheck, at the delta of a point."""
    delta = row.get("delta", 0.0)
    return recheck_epsilon(
        [row], delta + 1e-6 if isinstance(delta, float) and 0.0 <= delta <= 0.5 else 0.5, "zero-out"
    )


def report_of(row):
    return PrivacyReport(epsilon=1.0, delta=0.1, adjacency="zero-out", mechanisms=[row])


def raised(call, row):
    """The refusal of a row; empty if there is none."""
    try:
        call(row)
    except REFUSALS as error:
        return str(error)
    return ""


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_values_that_cannot_be_are_refused(row):
    """By the types of releases for each number of a row; by the recheck for each number that it reads."""
    for key in row.keys() - WORDS:
        for value in IMPOSSIBLE:
            forged = {**row, key: value}
            if value is not None:  # which some keys may be
                for call in (release_of, report_of):
                    assert key in raised(call, forged), (key, value)
            if key not in SHOWN:
                assert key in raised(rechecked, forged), (key, value)


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_a_row_of_another_version_is_refused(row):
    """With a key more, with a necessary key less, or with another sampling."""
    for call in (release_of, rechecked):
        for more in ({"decay": 0.9}, {"version": 2}):
            assert re.search(f"{next(iter(more))}.* version", raised(call, {**row, **more}))
    needed = {"noise_multiplier", "epsilon", "choices", "choice_epsilon", "n_projections", "mean_trials", "shape"}
    for key in (needed | {"max_words"}) & row.keys():
        for call in (release_of, rechecked):
            assert key in raised(call, {k: value for k, value in row.items() if k != key})
    assert raised(rechecked, {**row, "sampling": "shuffled"})
    assert raised(rechecked, {**row, "sampling": "Poisson"}) or "sampling_rate" in row
    assert raised(release_of, {**row, "sampling": 3.0})


@pytest.mark.parametrize("row", [row for row in ROWS if "grid" in row], ids=[i for i in ids if "best" not in i])
def test_public_numbers_that_disagree_are_refused(row):
    """Less noise than multiplier times sensitivity, and a grid wider than the noise or the sensitivity."""
    scale = "noise_std" if "noise_std" in row else "sensitivity"
    assert "grid" in raised(rechecked, {**row, "grid": row[scale] * 1.01})
    assert "grid" not in raised(rechecked, {**row, "grid": row[scale]})
    if "noise_multiplier" in row:
        for forged in ({"noise_std": 0.999}, {"sensitivity": 1.001}, {"noise_multiplier": 1.001}):
            ((key, by),) = forged.items()
            assert "noise_multiplier x sensitivity" in raised(rechecked, {**row, key: row[key] * by})
        assert "noise_std" not in raised(rechecked, {**row, "noise_std": 2.0 * row["noise_std"]})  # of an engine


@pytest.mark.parametrize("row", ROWS, ids=ids)
def test_numbers_at_the_ends_of_floats_cost_no_less(row):
    """The recheck refuses, or says inf, or at least what it says of a row with all of the noise."""
    for key in row.keys() - WORDS - SHOWN:
        for value in (0.0, 5e-324, 1e-300, 1e300, math.inf):
            found = None
            try:
                found = rechecked({**row, key: value})
            except REFUSALS:
                continue
            assert found >= 0.0, (key, value)


@pytest.mark.parametrize("name", ["staircase", "", None, 3, ["gaussian"], b"gaussian", "Gaussian", "skdp.privacy"])
def test_an_unknown_name_is_refused_also_if_nothing_was_released(name):
    for row in ({"name": name, "count": 0}, {"name": name, "epsilon": 1.0}):
        for call in (release_of, rechecked, lambda row: recheck_tail([row])):
            with pytest.raises(ValueError, match=r"must be one of .*registry\.register_mechanism"):
                call(row)
    with pytest.raises(ValueError, match="must be one of"):
        release_of({})


def test_a_threshold_does_not_hide_a_cost():
    """A key of a vocabulary on another row, and a vocabulary without its own keys."""
    laplace = {"name": "laplace", "epsilon": 1.0, "count": 1}
    gaussian = {"name": "gaussian", "noise_multiplier": 1.0, "count": 1}
    for call in (release_of, rechecked):
        assert "threshold" in raised(call, {**laplace, "threshold": 1.0})
        assert raised(call, {**gaussian, "threshold": 1.0})
    words = ROWS[-1]
    bare = {**gaussian, "noise_multiplier": words["noise_multiplier"]}
    assert recheck_epsilon([words], 1e-6) == recheck_epsilon([bare], 1e-6)
    assert recheck_tail([words]) < recheck_tail([{**words, "threshold": 3.0}]) <= 1.0
    assert "max_words" in raised(rechecked, {**words, "max_words": 10**7})


def test_a_missing_folder_and_a_missing_recheck_are_refused(monkeypatch):
    monkeypatch.setattr(registry, "_PACKAGES", dict(registry._PACKAGES))
    registry.register_mechanism("staircase", "skdp.privacy.mechanisms.staircase")
    row = {"name": "staircase", "epsilon": 1.0}
    for call in (release_of, rechecked):
        with pytest.raises(UnsupportedAccounting, match=r"install the package .*staircase"):
            call(row)
    for wrong in ((3, "package"), ("name", None)):
        with pytest.raises(TypeError, match="must be str"):
            registry.register_mechanism(*wrong)


AUTHOR = {
    "__init__": "from skdp.privacy.mechanisms.registry import register_mechanism\n\n"
    'register_mechanism("staircase", __name__)\n',
    "cost": """
from dataclasses import dataclass
from skdp.privacy.accounting.pure import PureRelease

@dataclass(frozen=True, kw_only=True)
class Staircase(PureRelease):
    name = "staircase"
    noise = "staircase"

RELEASE = Staircase
""",
    "recheck": """
from skdp.privacy.accounting.recheck.gaussian import pure_terms
from skdp.privacy.accounting.recheck.row_terms import check_row, count_of, number

def terms(row):
    check_row(row, "epsilon")
    return pure_terms(number(row, "epsilon"), count_of(row))
""",
}
SCRIPT = """
import json, sys
import staircase_package
from skdp.privacy import PrivacyReport
from skdp.privacy.accounting import recheck_epsilon, rows_epsilon
row = {"name": "staircase", "epsilon": 0.5, "count": 2, "purpose": "sums"}
report = PrivacyReport(epsilon=1.0, delta=0.0, adjacency="zero-out", mechanisms=[row])
print(json.dumps([rows_epsilon([row], 0.0), recheck_epsilon([row], 0.0), "staircase" in repr(report)]))
"""


def test_an_authors_mechanism_is_a_package_and_one_call(tmp_path):
    package = tmp_path / "staircase_package"
    package.mkdir()
    for name, text in AUTHOR.items():
        (package / f"{name}.py").write_text(text)
    command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{SCRIPT}"]
    root = Path(registry.__file__).parents[3]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert json.loads(done.stdout or "[]") == [1.0, 1.0, True], done.stderr
    (package / "recheck.py").unlink()
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=root)
    assert "'staircase' rows have no recheck" in done.stderr
