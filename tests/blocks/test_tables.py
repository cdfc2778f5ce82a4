"""The table of the guide that says which estimators take blocks."""

import csv
from pathlib import Path

import pytest

import skdp
from tools.make_blocks_tables import FOLDER, estimators

pytestmark = pytest.mark.skipif(
    not (Path(skdp.__file__).parents[1] / "docs").is_dir(), reason="the documentation is not here"
)


def test_the_table_says_what_the_classes_say():
    with (FOLDER / "estimators.csv").open(newline="") as file:
        rows = [tuple(row) for row in csv.reader(file)][1:]
    assert rows == list(estimators()), "run python tools/make_blocks_tables.py"
