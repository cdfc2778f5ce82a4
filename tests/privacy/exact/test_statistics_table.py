"""The catalogue of statistics in the documentation: complete, fresh, and with the sensitivities of the code."""

import inspect
from pathlib import Path

import numpy as np
import pytest

from skdp.privacy import BoundedStatistic, PrivateRecords, statistics

ROOT = Path(__file__).parents[3]
if not (ROOT / "tools").is_dir():
    pytest.skip("the tools are not here", allow_module_level=True)

from tools import make_statistics_table as table  # noqa: E402


def test_the_table_is_what_the_code_says():
    assert table.PAGE.read_text(encoding="utf-8") == table.text(), "run: python tools/make_statistics_table.py"


def test_every_statistic_is_in_the_table():
    owners = {
        "PrivateRecords": vars(PrivateRecords),
        "statistics": {n: getattr(statistics, n) for n in statistics.__all__},
    }
    wanted = {
        f"{owner}.{name}"
        for owner, members in owners.items()
        for name, made in members.items()
        if not name.startswith("_")
        and callable(made)
        and inspect.signature(made).return_annotation in (BoundedStatistic, "BoundedStatistic")
    }
    assert wanted == set(table.EXAMPLES)
    assert len(wanted) > 20


def test_sensitivities_of_the_table_are_stated_for_neighbours():
    """A count of 1/2 or -1/2 moves by 1 where one record is replaced, and by 1/2 where one goes."""
    _, call = table.EXAMPLES["PrivateRecords.norm_count"]
    assert table.sensitivities(call(table.records("replace-one"), "replace-one"), "replace-one") == "1; 1; 1"
    assert table.sensitivities(call(table.records("add-remove"), "add-remove"), "add-remove") == "0.5; 0.5; 0.5"
    proven = BoundedStatistic.with_sensitivity(np.zeros(2), adjacency="replace-one", l2=3.0)
    assert table.sensitivities(proven, "replace-one").split("; ")[1] == "3"
