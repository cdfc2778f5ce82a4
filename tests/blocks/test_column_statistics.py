"""Functions of `skdp.statistics` over blocks are the same functions of the table, to the last bit."""

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from skdp import statistics
from skdp.base.blocks import Blocks
from skdp.statistics import count, crosstab, describe, histogram, mean, quantile, std, var
from tests.blocks.cutting import OPTIONS, Kept, by_group, cuts, in_blocks, pieces, same

pytestmark = pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")

rng = np.random.default_rng(1)
N = 1200
X = 3 * rng.normal(size=(N, 3)) + 1
GAPS = np.where(rng.random(X.shape) < 0.1, np.nan, X)
GROUPS = np.sort(rng.integers(0, 300, N))
STARTS = [0, 80, 81, 250]
RAGGED = cuts(N)[-1]

CASES = [
    (mean, X, {}),
    (mean, GAPS, {"skipna": True, "bounds": (-5, 5)}),
    (var, X, {"bounds": (-5, 5)}),
    (std, GAPS, {"skipna": True}),
    (quantile, X, {}),
    (quantile, X, {"q": [0.1, 0.5], "bounds": (-9, 9)}),
    (count, GAPS, {"skipna": True, "bounds": (0, np.inf)}),
    (histogram, X, {"bins": 5}),
    (histogram, X, {"bins": [-1, 0, 1]}),
]


def test_each_function_has_a_case():
    asked = {case[0].__name__ for case in CASES} | {"describe", "crosstab"}
    assert asked == {name for name in statistics.__all__ if name[0].islower()}


@pytest.mark.parametrize(("function", "table", "how"), CASES)
def test_a_statistic_of_blocks_is_that_of_the_table(function, table, how):
    local, column = (function(values, **how, **OPTIONS) for values in (table, table[:, 0]))
    assert np.ndim(local.value) == np.ndim(column.value) + 1
    for ends in cuts(N):
        assert same(function(in_blocks(ends, table), **how, **OPTIONS), local)
        assert same(function(in_blocks(ends, table[:, 0]), **how, **OPTIONS), column)
    assert same(function(Kept(pieces(RAGGED, table)), **how, **OPTIONS), local)
    assert not same(function(in_blocks(RAGGED, table[::-1] + 1), **how, **OPTIONS), local)
    grouped = function(table, groups=GROUPS, unit="group", **how, **OPTIONS)
    blocks = in_blocks(by_group(GROUPS, STARTS), table, None, GROUPS, group_starts=STARTS)
    assert same(function(blocks, unit="group", **how, **OPTIONS), grouped)


@pytest.mark.parametrize("table", [X.astype(np.float32), sp.csr_matrix(X * (X > 0)), pd.DataFrame(X)])
def test_storages(table):
    assert same(mean(in_blocks(RAGGED, table), **OPTIONS), mean(table, **OPTIONS))


FRAME = pd.DataFrame(X, columns=list("abc")).assign(
    whole=rng.integers(0, 5, N), text=rng.choice(["u", "v"], N), flag=rng.random(N) < 0.3
)
TEXT = {"categories": {"text": ["u", "v"]}}


def shown(found):
    return found.table, found.by_table, found.bounds, found.level_noise_std, found.privacy_


@pytest.mark.parametrize(
    ("frame", "how"),
    [
        (FRAME, TEXT),
        (FRAME, {**TEXT, "by": "text", "bounds": {"a": (-5, 5)}}),
        (FRAME[["text", "flag"]], TEXT),
        (FRAME[["a", "whole"]], {}),
        (X.astype(np.float32), {}),
        (np.column_stack([X, FRAME["whole"]]), {"categories": {3: [0, 1, 2]}, "by": 3}),
    ],
    ids=["mixed", "by", "categories", "numbers", "array", "array by"],
)
def test_a_description_of_blocks_is_that_of_the_frame(frame, how):
    local = shown(describe(frame, **how, **OPTIONS))
    for ends in cuts(N):
        assert same(shown(describe(in_blocks(ends, frame), **how, **OPTIONS)), local)
    assert same(shown(describe(Kept(pieces(RAGGED, frame)), **how, **OPTIONS)), local)
    grouped = shown(describe(frame, groups=GROUPS, unit="group", **how, **OPTIONS))
    blocks = in_blocks(by_group(GROUPS, STARTS), frame, None, GROUPS, group_starts=STARTS)
    assert same(shown(describe(blocks, unit="group", **how, **OPTIONS)), grouped)


def test_names_of_blocks_are_names_of_columns():
    blocks = in_blocks(RAGGED, X, feature_names=list("abc"))
    assert same(shown(describe(blocks, bounds={"c": (0, 1)}, **OPTIONS)),
                shown(describe(FRAME[list("abc")], bounds={"c": (0, 1)}, **OPTIONS)))  # fmt: skip
    with pytest.raises(ValueError, match="2 names for 3 columns"):
        describe(in_blocks(RAGGED, X, feature_names=["a", "b"]), **OPTIONS)
    rare = np.column_stack([X[:, :2], X[:, 2] > 0])
    named = describe(in_blocks(RAGGED, rare, feature_names=list("abc")), categories={"c": [0, 1]}, **OPTIONS)
    frame = describe(pd.DataFrame(rare, columns=list("abc")), categories={"c": [0, 1]}, **OPTIONS)
    assert named.privacy_.to_json() == frame.privacy_.to_json()


def test_pairs_of_columns():
    text, whole = FRAME["text"].to_numpy(), FRAME["whole"].to_numpy()
    how = {"categories": (["u", "v"], [0, 1, 2]), **OPTIONS}
    for ends in cuts(N):
        assert same(crosstab(in_blocks(ends, text), in_blocks(ends, whole), **how), crosstab(text, whole, **how))
    with pytest.raises(TypeError, match="give both in blocks"):
        crosstab(in_blocks(RAGGED, text), whole, **how)
    with pytest.raises(ValueError, match="different numbers of blocks"):
        crosstab(in_blocks(RAGGED, text), in_blocks(RAGGED[:-1], whole), **how)


def test_columns_and_types_must_be_those_of_the_first_block():
    for first, second in ((X, X[:, 0]), (FRAME, FRAME.astype({"whole": float})), (X, X[:, :2])):
        function, how = (mean, {}) if first is X else (describe, TEXT)
        with pytest.raises((ValueError, TypeError), match="block 1 and block 0"):
            function(Blocks(lambda a=first, b=second: [a[:50], b[50:]]), **how, **OPTIONS)
