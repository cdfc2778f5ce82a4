"""One split of a table into a training and a test part, by public sizes or secret coins.

Which unit lies in which part is drawn afresh and reads no value, so neighbouring tables differ in one part only.
The docstring of `train_test_split` has the argument, `skdp.privacy.budget.filters` the proof for the ledger.
"""

from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import train_test_split as sizes_of_scikit_learn
from sklearn.utils import _safe_indexing, indexable  # both are in scikit-learn's API reference

from skdp.base.cells import check_collected
from skdp.base.kinds import check_flag, check_number
from skdp.base.user_tables import encode_groups
from skdp.privacy import BudgetAccountant, check_accountant, check_adjacency
from skdp.privacy.noise import KeyStream

_PARTS = ("train", "test")
_TEST_SHARE = 0.25  # where no size is given, as in scikit-learn
_COINS = 2**62  # a coin is uniform on 0 .. 2^62 - 1, so shares are rounded to multiples of 2^-62

Indices = NDArray[np.intp]


def train_test_split(
    *arrays: object,
    test_size: float | None = None,
    train_size: float | None = None,
    random_state: object = None,
    shuffle: bool = True,
    stratify: None = None,
    groups: object = None,
    adjacency: str = "replace-one",
    n_public: int | None = None,
    accountant: BudgetAccountant | None = None,
) -> list[Any]:
    """Split arrays into a training and a test part, of which only the dearer one counts.

    As `sklearn.model_selection.train_test_split`, with the same sizes: fit on one part and evaluate on the other,
    and the costs do not add up. Rows keep their order inside each part.

    Parameters
    ----------
    *arrays : arrays, CSR matrices, lists, DataFrames or Series with the same number of rows
        They are not changed, and sparse ones are never densified.
    test_size, train_size : float in (0, 1) or int, default=None
        Share or number of the records in the part; with ``groups``, of the groups. None is the complement of the
        other one, and 0.25 for the test part if both are None. Under add-remove see ``n_public``.
    random_state : None, int, RandomState or Generator, default=None
        None draws from the operating system. A seed is possible under replace-one and zero-out without ``groups``,
        where positions are public, so it reveals nothing.
    shuffle : bool, default=True
        False takes the first rows for training and the last ones for the test. This is right only if the order of
        the rows says nothing of their values: not for a table that is sorted by label or value. Not under
        add-remove, where a removed row shifts the others, and not with ``groups``, whose rows are many.
    stratify : None
        Strata would be made of labels, so one record could move others. It is refused.
    groups : array-like of shape (n_samples,), default=None
        Who each row belongs to: all rows of one group lie in one part. For fits with ``unit="group"``. Give the
        labels as one of ``arrays`` too, since the fits need them.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        That of the fits.
    n_public : int, default=None
        Under add-remove: the public number of records (or groups) in the whole table. It is needed if a size is an
        int, which then means a share of it.
    accountant : BudgetAccountant, default=None
        Its ledger gets the parts "train" and "test", whose handles are returned. Fits of another adjacency or unit
        are refused there. None makes no parts, also inside ``with accountant:``.
        For three parts split twice without it, and name all parts by ``accountant.disjoint``.

    Returns
    -------
    list
        ``[train, test]`` of each array in turn, in their own containers. With ``accountant``, two handles follow:
        of the training part and of the test part.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not as described, if arrays differ in their number of rows, or if ``accountant`` is a
        handle of a part.
    PrivacyBudgetExceeded
        If the accountant's ledger has parts of another split of which one is charged: a record of its training
        part may be in the test part now, and would pay in both.

    See Also
    --------
    skdp.privacy.BudgetAccountant.disjoint : Parts of a ledger in general.

    Notes
    -----
    **Privacy.** The split is no release, and costs nothing. The releases of the two parts together cost as much as
    the dearer part, and not the sum, because two neighbouring tables differ in one part only. The parts on which
    both tables agree release with the same law on both, so their releases are public randomness of the other
    part's process.

    *Records, replace-one and zero-out.* The number of rows is public. The positions of the test part are a uniform
    choice of a public number of them, by coins that read no record (or a public choice: a seed, or the last
    positions). Condition on the choice: the changed record has one position, in both tables. Hence its part goes
    to a neighbour, of the same size, and the other part is equal.

    *Groups, replace-one and zero-out.* The number of groups is public, their rows are not. The test part has a
    uniform choice of a public number of labels. If group a is replaced by group b, with any label and number of
    rows, exchange a and b in the choice: it is still uniform. With this coupling a and b lie in the same part, all
    other groups where they were, and rows keep their order. Hence one part goes to a neighbour with the same
    number of groups. A seed would fix the choice by the order of the labels, where a new label moves other groups;
    so it is refused.

    *Add-remove.* Each record (or group) has a secret coin of its own. Couple the tables such that who is in both
    has the same coin in both. Then nobody changes parts, and the one who comes or goes does so in one part. The
    sizes of the parts are random and private. They are near ``n_public`` times the shares: give that number as
    ``n_public`` to the estimator that is fitted on the part. A seed ties coins to positions, and a removed row
    shifts the coins of all behind it; so it is refused.

    Two splits of the same table have records in common: their costs add up, as under one accountant without parts.
    A part with no row at all cannot be fitted; under add-remove a very small table may have one.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import BudgetAccountant
    >>> from skdp.model_selection import train_test_split
    >>> X, y = np.arange(20.0).reshape(10, 2), np.arange(10)
    >>> accountant = BudgetAccountant(epsilon=1.0, delta=1e-5)
    >>> X_train, X_test, y_train, y_test, train, test = train_test_split(X, y, accountant=accountant)
    >>> X_train.shape, X_test.shape, train.part, test.part
    ((7, 2), (3, 2), 'train', 'test')
    >>> sorted([*y_train, *y_test]) == list(range(10))
    True
    """
    _check_parameters(random_state, shuffle, stratify, groups is not None, adjacency, n_public, accountant)
    n_rows = _count_rows(arrays)
    check_collected(groups=groups)
    codes = None if groups is None else encode_groups(groups, n_rows)
    n_units = n_rows if codes is None else int(codes.max(initial=-1)) + 1
    if adjacency == "add-remove":
        of_units = _by_coins(n_units, _shares(test_size, train_size, n_public))
    else:
        n_train, n_test = _sizes(n_units, test_size, train_size)
        of_units = _by_sizes(n_units, n_train, n_test, random_state, shuffle)
    of_rows = of_units if codes is None else of_units[codes]
    chosen = [np.flatnonzero(of_rows == part) for part in range(len(_PARTS))]
    found = [_safe_indexing(array, rows) for array in indexable(*arrays) for rows in chosen]
    if not accountant:
        return found
    unit = "record" if groups is None else "group"
    return [*found, *accountant.split_afresh(*_PARTS, adjacency=adjacency, unit=unit)]


def _check_parameters(
    random_state: object,
    shuffle: bool,
    stratify: object,
    grouped: bool,
    adjacency: str,
    n_public: int | None,
    accountant: object,
) -> None:
    """Refuse arguments that make the choice of parts depend on values or on private numbers."""
    check_adjacency(adjacency)
    check_accountant(accountant)
    check_flag("shuffle", shuffle)
    if stratify is not None:
        raise ValueError(
            "stratify= reads labels: one changed label moves other records to other parts, and no epsilon covers "
            "that. Split without stratify=: shares of labels then differ by chance only"
        )
    if n_public is not None:
        check_number("n_public", n_public, Integral, low=2)
        if adjacency != "add-remove":
            raise ValueError(
                f"n_public= is for adjacency='add-remove'; under {adjacency!r} the number of records (or groups) "
                "is public, and the sizes of the parts follow from it"
            )
    what = "a seed, random_state=," if random_state is not None and shuffle else "shuffle=False"
    if what == "shuffle=False" and shuffle:
        return
    if adjacency == "add-remove":
        raise ValueError(
            f"{what} splits by positions, and under adjacency='add-remove' a record less shifts the others from "
            "part to part. Use random_state=None and shuffle=True, where each record (or group) has a secret coin "
            "of its own"
        )
    if grouped:
        raise ValueError(
            f"{what} splits by the order of labels or rows, where a group with another label or number of rows "
            "moves other groups from part to part. Use random_state=None and shuffle=True with groups="
        )


def _count_rows(arrays: tuple[Any, ...]) -> int:
    """Number of rows, the same for all arrays; no message says it, as it may be private."""
    if not arrays:
        raise ValueError("At least one array required as input")
    for i, array in enumerate(arrays):
        check_collected(**{f"arrays[{i}]": array})
        if not (getattr(array, "shape", None) or isinstance(array, list | tuple)):
            raise TypeError(f"arrays[{i}] must be a table or a column in memory, got {type(array).__name__}")
    counts = [a.shape[0] if hasattr(a, "shape") else len(a) for a in arrays]
    if len(set(counts)) > 1:
        raise ValueError("arrays must have the same number of rows")
    return int(counts[0])


def _sizes(n_units: int, test_size: float | None, train_size: float | None) -> tuple[int, int]:
    """Public sizes of the parts, as in scikit-learn for this number of units, with its messages."""
    train, test = sizes_of_scikit_learn(
        np.arange(n_units), test_size=test_size, train_size=train_size, shuffle=False
    )
    return len(train), len(test)


def _by_sizes(n_units: int, n_train: int, n_test: int, random_state: Any, shuffle: bool) -> NDArray[np.int8]:
    """The part of each unit: 0 for training, 1 for the test, -1 for none."""
    if shuffle:
        stream = KeyStream(random_state, info=b"train_test_split")
        order = stream.permutation(n_units, n_test + n_train)
        train, test = order[n_test:], order[:n_test]
    else:
        train, test = np.arange(n_train), np.arange(n_train, n_train + n_test)
    parts = np.full(n_units, -1, dtype=np.int8)
    parts[train], parts[test] = 0, 1
    return parts


def _shares(test_size: float | None, train_size: float | None, n_public: int | None) -> tuple[float, float]:
    """Chances of the training and of the test part, from public numbers alone."""
    test = None if test_size is None else _share("test_size", test_size, n_public)
    train = None if train_size is None else _share("train_size", train_size, n_public)
    if test is None:
        test = _TEST_SHARE if train is None else 1.0 - train
    if train is None:
        train = 1.0 - test
    if train + test > 1.0 + 1e-12:  # the rounding of shares such as 0.7 and 0.3
        raise ValueError(f"train_size and test_size are {train + test:g} of all together; reduce one of them")
    return train, test


def _share(name: str, size: float, n_public: int | None) -> float:
    if isinstance(size, Integral) and not isinstance(size, bool):
        if n_public is None:
            raise ValueError(
                f"{name} is a number of records (or groups), and under adjacency='add-remove' their number in the "
                f"whole table is private: give {name} as a share in (0, 1), or a public n_public"
            )
        if not 1 <= size < n_public:
            raise ValueError(f"{name} must be a share in (0, 1), or an int from 1 to n_public - 1, got {size!r}")
        return int(size) / n_public
    if isinstance(size, bool) or not isinstance(size, float | np.floating):
        raise TypeError(f"{name} must be a float, an int or None, got {type(size).__name__}")
    if not 0.0 < size < 1.0:
        raise ValueError(f"{name} must be a share in (0, 1), or an int, got {size!r}")
    return float(size)


def _by_coins(n_units: int, shares: tuple[float, float]) -> NDArray[np.int8]:
    """The part of each unit, by a secret coin of its own."""
    coins = KeyStream().integers(_COINS, n_units)
    test = round(shares[1] * _COINS)
    rest = 1.0 - shares[0] - shares[1]
    beyond = _COINS if rest <= 1e-12 else test + round(shares[0] * _COINS)
    return np.where(coins < test, 1, np.where(coins < beyond, 0, -1)).astype(np.int8)
