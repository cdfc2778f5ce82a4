"""Each estimator fits blocks to the bits of the table, or refuses them before anything is read or spent."""

import inspect

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import skdp
from skdp import DPLinearRegression, DPLogisticRegression, DPSGDClassifier
from skdp.base.blocks import Blocks
from skdp.metrics import evaluate
from skdp.model_selection import (
    DPRandomizedSearch,
    DPTunedThresholdClassifier,
    compare,
    cross_validate,
    train_test_split,
)
from skdp.privacy import BudgetAccountant
from skdp.statistics import mean
from skdp.text import DPWord2Vec
from tests.blocks.cutting import cuts, in_blocks, pieces, same

pytestmark = [
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
    pytest.mark.filterwarnings("ignore:delta=.* is too large for"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UnprovenPrivacyWarning"),
]

rng = np.random.default_rng(3)
N = 120
X = rng.normal(size=(N, 4))
Y, T = (X[:, 0] > 0).astype(int), X @ np.arange(1.0, 5.0) + rng.normal(size=N)
GROUPS = np.arange(N) // 3
ALL = dict(skdp.all_estimators())
OWN = {"DPLSTMClassifier": {"vocabulary_size": 9, "max_length": 4}}


class Counted:
    """A source of blocks that counts how often it is called."""

    def __init__(self, *blocks):
        self.blocks, self.calls = blocks, 0

    def __call__(self):
        self.calls += 1
        return iter(self.blocks)


def made(name, **more):
    given = {"classes": (0, 1), "epsilon": 40.0, "batch_size": N, "random_state": 0, **OWN.get(name, {}), **more}
    known = inspect.signature(ALL[name]).parameters
    takes = {key: value for key, value in given.items() if key in known}
    return ALL[name](**takes)


def numbers(model):
    arrays = (np.ndarray, float, int, tuple)
    return {name: value for name, value in vars(model).items() if name.endswith("_") and isinstance(value, arrays)}


@pytest.mark.parametrize("name", sorted(ALL))
def test_each_estimator_takes_blocks_or_refuses_them_by_name(name):
    y = Y if hasattr(ALL[name], "classes") or "Classifier" in name else T
    accountant = BudgetAccountant(100.0, 1e-2)
    source = Counted(*pieces(cuts(N)[-1], X, y))
    if getattr(ALL[name], "_no_blocks", None) is None and not name.startswith(("IGHT", "STORM")):
        fitted, local = made(name).fit(Blocks(source)), made(name).fit(X, y)
        assert len(numbers(local)) > 1
        assert same(numbers(fitted), numbers(local))
        assert same(getattr(fitted, "privacy_", None), getattr(local, "privacy_", None))
        return
    with pytest.raises(TypeError, match=rf"^{name} takes no blocks: \w+"):
        made(name, accountant=accountant, random_state=None).fit(Blocks(source))
    assert source.calls == 0
    assert accountant.spent() == (0.0, 0.0)


MODEL = DPLogisticRegression(classes=(0, 1))
BOTH = Counted((X, Y))


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda how: DPTunedThresholdClassifier(MODEL, **how).fit(Blocks(BOTH)), "divides the rows"),
        (lambda how: DPRandomizedSearch(MODEL, {"C": [1, 2]}, **how).fit(Blocks(BOTH)), "divides the rows"),
        (lambda how: cross_validate(MODEL, Blocks(BOTH), None, **how), "^cross_validate takes no blocks"),
        (lambda how: compare({"a": MODEL}, Blocks(BOTH), None, **how), "^compare takes no blocks"),
        (lambda how: train_test_split(Blocks(BOTH), adjacency="replace-one"), "lies in blocks"),
        (lambda how: DPWord2Vec(unit="record", **how).fit(Blocks(BOTH)), "blocks|list of lists"),
    ],
    ids=["threshold", "search", "cross_validate", "compare", "split", "word2vec"],
)
def test_what_divides_rows_refuses_blocks(ask, told):
    accountant = BudgetAccountant(100.0, 1e-2)
    with pytest.raises((TypeError, ValueError), match=told):
        ask({"accountant": accountant})
    assert BOTH.calls == 0
    assert accountant.spent() == (0.0, 0.0)


FIRST, SECOND = (X[:60], Y[:60]), (X[60:], Y[60:])
NAMES = [pd.DataFrame(X, columns=list(names)) for names in ("abcd", "abdc")]
USED = iter([FIRST, SECOND])
GROUPED = {"unit": "group"}


@pytest.mark.parametrize(
    ("blocks", "how", "told"),
    [
        ([(X, Y)], {"classes": None}, "give the labels in classes="),
        ([(X, Y, GROUPS)], GROUPED, "give groups, and group_starts= or n_buckets="),
        ([(X, Y, GROUPS)], {}, "unit='group'"),
        ([FIRST, (X[60:, :2], Y[60:])], {}, "2 and 4: give the same columns"),
        ([FIRST, (X[60:].astype(np.float32), Y[60:])], {}, "give dtype='float64'"),
        ([FIRST, (sp.csr_matrix(X[60:]), Y[60:])], {}, "arrays, or all as CSR"),
        ([(NAMES[0], Y), (NAMES[1], Y)], {}, "different names of columns"),
        ([], {}, "no rows"),
        ([(X[:0], Y[:0])], {}, "no rows"),
        ([X], {}, "requires y"),
        ([FIRST, X[60:]], {}, "requires y"),
        ([(X, Y + 1)], {}, "labels that are not in classes"),
        ([(X, Y[:-1])], {}, "one entry a row"),
        ([(X[:, 0], Y)], {}, "reshape"),
        ([(pd.DataFrame({"s": ["a"] * N}), Y)], {}, "not numeric: column 's'"),
        ([(X, Y, None, None, None)], {}, "tuple of length 5"),
        ([None], {}, "X is None"),
        ([(X, Y, None, np.ones(N))], {}, "no weighted form"),
    ],
)
def test_faults_of_blocks_name_the_repair_and_spend_nothing(blocks, how, told):
    accountant = BudgetAccountant(100.0, 1e-2)
    model = DPLogisticRegression(**{"classes": (0, 1), "accountant": accountant, **how})
    with pytest.raises((TypeError, ValueError), match=told):
        model.fit(Blocks(lambda: iter(blocks)))
    assert accountant.spent() == (0.0, 0.0)
    assert not hasattr(model, "coef_")


def drawn(model):
    return DPSGDClassifier(classes=(0, 1), batch_size=20, accountant=False)


@pytest.mark.parametrize(
    ("ask", "told"),
    [
        (lambda model: model.fit(Blocks(lambda: [FIRST]), Y), "Leave y= out"),
        (lambda model: model.fit(Blocks(lambda: [FIRST]), sample_weight=Y), "Leave sample_weight= out"),
        (lambda model: model.fit(X, Blocks(lambda: [Y])), "give both in blocks, or both in memory"),
        (lambda model: model.fit(iter([FIRST])), "give blocks of rows as skdp.datasets.Blocks"),
        (lambda model: model.fit(Blocks(lambda: USED)), "make a new one at each call"),
        (lambda model: model.fit(Blocks(lambda: None)), "must return an iterable"),
        (lambda model: model.fit(Blocks([FIRST])), "must be callable"),
        (lambda model: mean(Blocks(lambda: [X]), groups=GROUPS, unit="group"), "Leave groups= out"),
        (lambda model: evaluate(DPLogisticRegression(classes=(0, 1)).fit(X, Y), Blocks(lambda: [X])), "needs y"),
        (lambda model: drawn(model).fit(Blocks(lambda: [FIRST])), "as large as the number of records"),
    ],
)
def test_faults_of_calls_name_the_repair_and_spend_nothing(ask, told):
    accountant = BudgetAccountant(100.0, 1e-2)
    with pytest.raises((TypeError, ValueError), match=told):
        ask(DPLogisticRegression(classes=(0, 1), accountant=accountant))
    assert accountant.spent() == (0.0, 0.0)


def test_a_note_says_which_block_was_refused():
    with pytest.raises(ValueError, match="NaN") as told:
        DPLinearRegression().fit(Blocks(lambda: [FIRST, (X, Y * np.nan)]))
    assert told.value.__notes__[0].startswith("In block 1.")


@pytest.mark.parametrize("make", [np.asarray, pd.DataFrame, sp.csr_matrix])
def test_numbers_beyond_the_dtype_of_blocks_are_refused(make):
    far = np.where(np.arange(N)[:, None] == 7, 1e300, X)
    with pytest.raises(ValueError, match="too large"):
        DPLogisticRegression(classes=(0, 1)).fit(in_blocks([0, 60, N], make(far), Y, dtype="float32"))


def test_one_class_and_a_far_target_are_no_faults():
    how = {"random_state": 0, "epsilon": 5.0}
    for model, y in ((DPLogisticRegression(classes=(0, 1), **how), 0 * Y), (DPLinearRegression(**how), T + 1e5)):
        made = model.fit(in_blocks(cuts(N)[-1], X, y)).coef_
        assert np.array_equal(made, model.fit(X, y).coef_)
