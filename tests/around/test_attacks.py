"""What wrappers and splitters show of one record: the reason why they are named (REFEREE F1 and F3)."""

import numpy as np
import pytest
from sklearn.ensemble import VotingClassifier
from sklearn.model_selection import GroupKFold, KFold, StratifiedKFold
from sklearn.multiclass import OneVsRestClassifier

from skdp import DPIGHTClassifier
from skdp.exceptions import PrivacyLeakWarning

RNG = np.random.default_rng(0)
N = 4000
X = RNG.normal(size=(N, 3))
Y = (X[:, 0] > 0).astype(int) + 1  # the labels 1 and 2, of the declared 0, 1 and 2
ONE = np.where(np.arange(N) == 0, 0, Y)  # the first record alone has the label 0
RUNS = 20


def fitted(wrap, y):
    model = DPIGHTClassifier(
        epsilon=0.5, delta=1e-6, classes=(0, 1, 2), clip_norm=1.0, learning_rate=1.0, max_iter=2
    )
    with pytest.warns(PrivacyLeakWarning, match="around this fit"):
        return wrap(model).fit(X, y)


def shows_by_numbers(voter):
    """Whether the member predicts the third label often: VotingClassifier calls the labels 1 and 2 by 0 and 1."""
    return np.mean(voter.estimators_[0].predict(X) == 2) > 0.25


@pytest.mark.parametrize(
    ("wrap", "shows"),
    [
        pytest.param(
            lambda model: VotingClassifier([("a", model)]), shows_by_numbers, marks=pytest.mark.thorough
        ),
        (lambda model: OneVsRestClassifier(model.set_params(classes=(0, 1))),
         lambda one_vs_rest: len(one_vs_rest.estimators_) == 3),
    ],
    ids=["VotingClassifier", "OneVsRestClassifier"],
)  # fmt: skip
def test_one_label_is_told_in_every_fit_at_a_claim_of_a_half(wrap, shows):
    """At epsilon .5 a guess would be wrong in at least a third of all fits: 40 right ones have chance below 1e-7.

    A test of two worlds that are alike within (.5, 1e-6) is right with at most e^.5 / (1 + e^.5) = .62 of fits.
    """
    assert [shows(fitted(wrap, Y)) for _ in range(RUNS)] == [False] * RUNS
    assert [shows(fitted(wrap, ONE)) for _ in range(RUNS)] == [True] * RUNS


def worst_cost(splitter, worlds):
    """The largest cost of all fits on the training parts, in multiples of the mu of one fit.

    A fit whose table has k changed rows counts as k mu, and the fits add up in squares. The ledger counts each fit
    as one mu.
    """
    rows = np.zeros((len(worlds[0][0]), 1))
    usual = [set(train) for train, _ in splitter.split(rows, *worlds[0])]
    costs = []
    for changed, world in worlds[1:]:
        parts = [set(train) for train, _ in splitter.split(rows, *world)]
        # A row that is in one of the two parts only is a changed row, and so is the record itself.
        squares = [
            max(len(a - b - {changed}), len(b - a - {changed})) + (changed in a or changed in b)
            for a, b in zip(usual, parts)
        ]
        costs.append(np.sqrt(np.sum(np.square(squares))))
    return max(costs)


@pytest.mark.parametrize("n_splits", [3, 5])
def test_folds_by_labels_cost_more_than_the_ledger_says(n_splits):
    n = 60
    labels = RNG.integers(2, size=n)
    flipped = [(i, (np.where(np.arange(n) == i, 1 - labels, labels), None)) for i in range(n)]
    worlds = [(labels, None), *flipped]
    ledger = np.sqrt(n_splits)
    assert worst_cost(KFold(n_splits), worlds) <= ledger
    assert worst_cost(StratifiedKFold(n_splits), worlds) > 1.8 * ledger
    shuffled = StratifiedKFold(n_splits, shuffle=True, random_state=0)
    assert worst_cost(shuffled, worlds) > 5 * ledger


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_folds_by_sizes_of_groups_move_many_rows():
    groups = np.repeat(np.arange(12), 5)
    labels = np.zeros(60, dtype=int)
    moved = [(i, (labels, np.where(np.arange(60) == i, 11, groups))) for i in range(60)]
    worlds = [(labels, groups), *moved]
    assert worst_cost(KFold(3), worlds) <= np.sqrt(3)
    assert worst_cost(GroupKFold(3), worlds) > 5 * np.sqrt(3)
