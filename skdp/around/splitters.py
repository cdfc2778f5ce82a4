"""Which splitters keep a ledger's theorem.

The costs of several fits add up because each fit sees at most one changed record, or one changed group. For this a
splitter may read positions, the identities of groups and public numbers only. Where it reads labels or sizes of
groups, one changed record moves others from fold to fold, and a fold's fit sees many changed records.

* Records under replace-one or zero-out: a splitter of positions is safe. Nobody's position changes.
* Groups under replace-one or zero-out: `GroupShuffleSplit` without a seed is safe if labels of groups stay as they
  are. It numbers the sorted labels, so with a seed a changed label would move others. Splitters of positions are
  not safe: a group may have another number of rows, which shifts the rows behind it.
* Add-remove: none is safe. A removed record shifts the positions of all behind it.

Scores of the held-out rows are unpaid whatever the splitter. `skdp.model_selection` and `skdp.metrics`
pay for them.
"""

import numbers
from collections.abc import Iterator
from typing import Any

from skdp.around.kinds import Kinds
from skdp.around.steps import declared

# Each reads the number of rows and its own parameters.
_BY_NAME: Kinds[bool] = Kinds({("sklearn.model_selection", "GroupShuffleSplit"): True})
_POSITIONS: Kinds[bool] = Kinds(
    {
        ("sklearn.model_selection", name): True
        for name in ("KFold", "RepeatedKFold", "ShuffleSplit", "LeaveOneOut", "LeavePOut", "TimeSeriesSplit")
    }
)
_READS: Kinds[str] = Kinds(
    {
        ("sklearn.model_selection", "StratifiedGroupKFold"): "labels and sizes of groups",
        ("sklearn.model_selection", "StratifiedKFold"): "labels",
        ("sklearn.model_selection", "RepeatedStratifiedKFold"): "labels",
        ("sklearn.model_selection", "StratifiedShuffleSplit"): "labels",
        ("sklearn.model_selection", "GroupKFold"): "sizes of groups",
    }
)


def _name_and_reads(cv: object, classifies: bool) -> tuple[str, str | None]:
    """The name of a splitter, or of the one that a number stands for, and the part of the records it reads."""
    if cv is None or isinstance(cv, numbers.Integral):
        return ("StratifiedKFold", "labels") if classifies else ("KFold", "")
    if _POSITIONS.exact(cv) and "split" not in vars(cv):
        return type(cv).__name__, ""
    if declared(cv):
        return type(cv).__name__, ""
    if not hasattr(cv, "split") or type(cv).__name__ == "_CVIterableWrapper":
        return "a list of splits, cv=,", None
    return type(cv).__name__, _READS.exact(cv)


def about_splitter(cv: Any, *, classifies: bool, unit: str, adjacency: str) -> Iterator[str]:
    """Lines for the report on the splitter of a search or of a cross-validation.

    Parameters
    ----------
    cv : splitter, int, iterable or None
        As scikit-learn takes it.
    classifies : bool
        Whether the estimator is a classifier, whose labels scikit-learn stratifies by default.
    unit : {"record", "group", "owner"}
    adjacency : {"replace-one", "zero-out", "add-remove"}
    """
    name, reads = _name_and_reads(cv, classifies)
    if name == "StratifiedKFold":
        name += ", the default for classifiers,"
    if adjacency == "add-remove":
        yield (
            f"{name} splits by positions, and under add-remove a record less shifts the others, so one record "
            "moves others from fold to fold: no epsilon covers that; use adjacency='replace-one' or 'zero-out', "
            "or one split by skdp.model_selection.train_test_split(adjacency='add-remove')"
        )
    elif unit == "record" and reads == "":
        return
    elif unit != "record" and _BY_NAME.exact(cv) and "split" not in vars(cv):
        if cv.random_state is not None:
            yield (
                f"{name} with a seed numbers the sorted labels of groups, so a changed label moves other groups: "
                "no epsilon covers that; use random_state=None, or skdp.model_selection.train_test_split(groups=)"
            )
    else:
        known = "is not known to split by positions" if reads is None else f"reads {reads}"
        known = known if reads != "" else "splits by positions, which the size of a group shifts"
        moves = "may move" if reads is None else "moves"
        repair = "KFold or ShuffleSplit" if unit == "record" else "GroupShuffleSplit(random_state=None)"
        yield (
            f"{name} {known}, so one {unit} {moves} others from fold to fold: no epsilon covers that; use "
            f"{repair}, or skdp.model_selection.cross_validate, which pays for the scores too"
        )
