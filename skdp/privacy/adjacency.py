"""The change of the data by one record, and the factor of sensitivities that follows from it.

* ``"replace-one"``: one record (or group) takes another value; the number of records is public.
* ``"zero-out"``: one record is replaced by an absent one that contributes exactly 0 to every statistic;
  the number is public. A row of zeros is not absent: it has a norm and, with an intercept, a gradient.
* ``"add-remove"``: one record comes or goes; the number is private, every divisor is given by the user.

A sum to which one record adds at most C in some norm moves by at most 2C, C and C.
"""

from typing import Literal, get_args

Adjacency = Literal["replace-one", "zero-out", "add-remove"]
Unit = Literal["record", "group"]
ADJACENCIES: tuple[str, ...] = get_args(Adjacency)
UNITS: tuple[str, ...] = get_args(Unit)


def check_adjacency(adjacency: str) -> None:
    """Raise ValueError unless ``adjacency`` is one of the three."""
    if adjacency not in ADJACENCIES:
        raise ValueError(f"adjacency must be one of {list(ADJACENCIES)}, got {adjacency!r}")


def check_unit(unit: str) -> None:
    """Raise ValueError unless ``unit`` is "record" or "group"."""
    if unit not in UNITS:
        raise ValueError(f"unit must be one of {list(UNITS)}, got {unit!r}")


def factor(adjacency: str) -> float:
    """Return how many contributions separate the sums of two neighbouring data sets.

    Examples
    --------
    >>> factor("replace-one"), factor("zero-out")
    (2.0, 1.0)
    """
    check_adjacency(adjacency)
    return 2.0 if adjacency == "replace-one" else 1.0
