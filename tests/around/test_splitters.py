"""Splitters: the safe ones move nobody else, and all others are named in searches and in cross-validation."""

import warnings

import numpy as np
import pytest
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    LeaveOneOut,
    LeavePOut,
    PredefinedSplit,
    RepeatedKFold,
    RepeatedStratifiedKFold,
    ShuffleSplit,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
    cross_val_predict,
    cross_val_score,
    cross_validate,
    learning_curve,
    permutation_test_score,
    validation_curve,
)

from skdp import DPIGHTClassifier, DPIGHTRegressor
from skdp.around.splitters import about_splitter
from tests.around.leaks import leaks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] > 0).astype(int)
GROUPS = np.repeat(np.arange(12), 5)
SETTINGS = {"epsilon": 5.0, "delta": 1e-6, "clip_norm": 1.0, "learning_rate": 0.5, "max_iter": 1}


def classifier(**params):
    return DPIGHTClassifier(**{**SETTINGS, "classes": (0, 1), **params})


def members(splitter, groups_too, *worlds):
    """For each world the identities of who is in each training part: positions, or the names of groups."""
    found = []
    for labels, groups in worlds:
        rows = np.zeros((len(labels), 1))
        state = np.random.get_state()
        np.random.seed(7)  # the same global stream for both: `random_state=None` is not what differs
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "The groups parameter is ignored")
            folds = [train for train, _ in splitter.split(rows, labels, groups)]
        np.random.set_state(state)
        found.append([sorted(set(groups[f]) if groups_too else set(f)) for f in folds])
    return found


CHANGED = Y.copy()
CHANGED[0] = 1 - Y[0]
RECORDS = {
    "KFold": KFold(4),
    "KFold, shuffled": KFold(4, shuffle=True, random_state=0),
    "RepeatedKFold": RepeatedKFold(n_splits=3, n_repeats=2, random_state=0),
    "ShuffleSplit": ShuffleSplit(3, random_state=0),
    "LeaveOneOut": LeaveOneOut(),
    "LeavePOut": LeavePOut(1),
    "TimeSeriesSplit": TimeSeriesSplit(3),
}
LABELS = {
    "StratifiedKFold": StratifiedKFold(4),
    "RepeatedStratifiedKFold": RepeatedStratifiedKFold(n_splits=4, n_repeats=1, random_state=0),
    "StratifiedShuffleSplit": StratifiedShuffleSplit(2, random_state=0),
    "StratifiedGroupKFold": StratifiedGroupKFold(3),
    "GroupKFold": GroupKFold(3),
}
# One group has one row less: what a changed group may do.
SMALLER = np.delete(np.arange(60), 0)


def named(cv, unit="record", adjacency="replace-one", classifies=True):
    return list(about_splitter(cv, classifies=classifies, unit=unit, adjacency=adjacency))


@pytest.mark.parametrize("name", RECORDS)
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_positions_move_nobody_else(name, adjacency):
    one, two = members(RECORDS[name], False, (Y, GROUPS), (CHANGED, GROUPS[::-1]))
    assert one == two
    assert named(RECORDS[name], adjacency=adjacency) == []


@pytest.mark.parametrize("name", [name for name in LABELS if name != "GroupKFold"])
def test_labels_move_others(name):
    """Where some record has another label, others leave or enter a training part."""
    worlds = [(np.where(np.arange(60) == i, 1 - Y, Y), GROUPS) for i in range(60)]
    usual, *found = members(LABELS[name], False, (Y, GROUPS), *worlds)
    without = [[set(fold) - {i} for fold in usual] for i in range(60)]
    moved = [[set(fold) - {i} for fold in world] for i, world in enumerate(found)]
    assert without != moved
    (line,) = named(LABELS[name])
    assert line.startswith(name)
    assert "reads labels" in line
    assert "use KFold or ShuffleSplit, or skdp.model_selection.cross_validate, which pays" in line


def test_sizes_of_groups_move_others():
    bigger = np.concatenate([GROUPS, np.zeros(30, dtype=int)])
    labels = np.concatenate([Y, np.zeros(30, dtype=int)])
    one, two = members(GroupKFold(3), True, (Y, GROUPS), (labels, bigger))
    assert one != two
    (line,) = named(GroupKFold(3), unit="group")
    assert line.startswith("GroupKFold reads sizes of groups")
    assert "use GroupShuffleSplit(random_state=None), or skdp.model_selection.cross_validate" in line


def test_groups_whose_labels_stay():
    splitter = GroupShuffleSplit(2, test_size=0.25)
    one, two = members(splitter, True, (Y, GROUPS), (Y[SMALLER], GROUPS[SMALLER]))
    assert one == two
    assert named(splitter, unit="group") == []


def test_a_seed_numbers_the_sorted_labels_of_groups():
    splitter = GroupShuffleSplit(3, test_size=0.25, random_state=0)
    renamed = np.where(GROUPS == 0, 99, GROUPS)
    one, two = members(splitter, True, (Y, GROUPS), (Y, renamed))
    others = [[sorted(set(fold) - {0, 99}) for fold in world] for world in (one, two)]
    assert others[0] != others[1]
    assert (
        "use random_state=None, or skdp.model_selection.train_test_split(groups=)"
        in (named(splitter, unit="group")[0])
    )


@pytest.mark.parametrize("name", RECORDS)
def test_positions_shift_where_a_group_has_fewer_rows(name):
    (line,) = named(RECORDS[name], unit="group")
    assert "which the size of a group shifts" in line


@pytest.mark.parametrize("cv", [*RECORDS.values(), *LABELS.values(), GroupShuffleSplit(2), 5, None])
@pytest.mark.parametrize("unit", ["record", "group"])
def test_under_add_remove_none_is_safe(cv, unit):
    (line,) = named(cv, unit=unit, adjacency="add-remove")
    assert "adjacency='replace-one' or 'zero-out'" in line
    assert "skdp.model_selection.train_test_split(adjacency='add-remove')" in line


def test_numbers_lists_and_splitters_of_ones_own():
    assert named(5, classifies=False) == named(None, classifies=False) == []
    assert "StratifiedKFold, the default for classifiers, reads labels" in named(5)[0]
    assert "StratifiedKFold, the default for classifiers, reads labels" in named(None)[0]
    for unknown in ([(np.arange(30), np.arange(30, 60))], PredefinedSplit(GROUPS % 2), GroupShuffleSplit(2)):
        assert "is not known to split by positions" in named(unknown)[0]

    class Mine(KFold):
        pass

    assert "is not known" in named(Mine(3))[0]


FUNCTIONS = {
    "cross_val_score": lambda model, cv: cross_val_score(model, X, Y, cv=cv),
    "cross_validate": lambda model, cv: cross_validate(model, X, Y, cv=cv),
    "cross_val_predict": lambda model, cv: cross_val_predict(model, X, Y, cv=cv),
    "learning_curve": lambda model, cv: learning_curve(model, X, Y, cv=cv, train_sizes=[1.0]),
    "validation_curve": lambda model, cv: validation_curve(
        model, X, Y, cv=cv, param_name="alpha", param_range=[0.0, 0.1]
    ),
    "permutation_test_score": lambda model, cv: permutation_test_score(model, X, Y, cv=cv, n_permutations=1),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_cross_validation_name_their_splitter_once(name):
    moved = ["permutation_test_score"] if name == "permutation_test_score" else []
    assert [text.split()[0] for text in leaks(lambda: FUNCTIONS[name](classifier(), KFold(2)))] == moved
    *rest, text = leaks(lambda: FUNCTIONS[name](classifier(), 2))
    assert len(rest) == len(moved)
    assert text.startswith("StratifiedKFold, the default for classifiers, reads labels")


def test_the_models_of_a_cross_validation_have_the_line():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = cross_validate(classifier(), X, Y, cv=2, return_estimator=True)["estimator"]
        safe = cross_validate(classifier(), X, Y, cv=KFold(2), return_estimator=True)["estimator"]
        numbers = cross_validate(DPIGHTRegressor(**SETTINGS), X, X[:, 0], cv=2, return_estimator=True)["estimator"]
    for model in found:
        assert any("StratifiedKFold" in line for line in model.privacy_.leaks)
    for model in safe + numbers:
        assert any("did not learn" in line for line in model.privacy_.assumptions)


def test_a_search_names_itself_and_its_splitter():
    search = GridSearchCV(classifier(), {"alpha": [0.0, 0.1]}, cv=2)
    texts = leaks(lambda: search.fit(X, Y))
    assert [text.split()[0] for text in texts] == ["GridSearchCV,", "StratifiedKFold,"]
    assert len(leaks(lambda: search.set_params(cv=KFold(2)).fit(X, Y))) == 1


@pytest.mark.parametrize("method", ["predict_proba", "predict_log_proba", "decision_function"])
def test_other_predictions_than_labels_renumber_them_first(method):
    """With the labels 1, 2 and one 0 of the declared 0, 1 and 2 each row of a fit would have another label."""
    model = classifier()
    (text,) = leaks(lambda: cross_val_predict(model, X, Y, cv=KFold(2), method=method))
    assert text.startswith(f"cross_val_predict(method='{method}') around this fit renumbers")
    assert "use method='predict'" in text


def test_lists_of_splits_are_named_once():
    splits = [(np.arange(30), np.arange(30, 60))]
    for cv in (splits, iter(splits)):
        (text,) = leaks(lambda cv=cv: cross_val_score(classifier(), X, Y, cv=cv))
        assert text.startswith("a list of splits, cv=, is not known to split by positions, so one record may move")


def test_whole_numbers_of_other_types():
    assert leaks(lambda: cross_val_score(DPIGHTRegressor(**SETTINGS), X, X[:, 0], cv=np.int64(2))) == []


def test_subclasses_and_instances_may_split_otherwise():
    class ByLabels(GroupShuffleSplit):
        pass

    assert len(named(ByLabels(2), unit="group")) == 1
    patched = KFold(2)
    patched.split = lambda X, y=None, groups=None: StratifiedKFold(2).split(X, y)
    assert len(named(patched)) == 1

    class Declared(KFold):
        learns_from_data = False

    assert named(Declared(2)) == []
