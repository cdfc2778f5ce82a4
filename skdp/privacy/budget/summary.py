"""The contents of a ledger file, for people who do not know its ceiling."""

import os
import sqlite3
from typing import TypedDict

from skdp.privacy.budget.filters import remaining_after_all, spent_by_worst
from skdp.privacy.budget.ledger_file import FitRow, fit_rows, last_write, read_ceiling, visit
from skdp.privacy.budget.parts import sequences


class PartSummary(TypedDict):
    """What `read_ledger` finds of one part."""

    spent: tuple[float, float]
    remaining: tuple[float, float]


class LedgerSummary(TypedDict):
    """What `read_ledger` finds in a file."""

    path: str
    epsilon: float
    delta: float
    spent: tuple[float, float]
    remaining: tuple[float, float]
    parts: dict[str, PartSummary]
    kept: bool
    writes: int
    fits: list[FitRow]


def read_ledger(path: str | os.PathLike[str]) -> LedgerSummary:
    """Summary of a ledger file, without knowing its ceiling. The file is only read.

    Parameters
    ----------
    path : str or path-like

    Returns
    -------
    dict
        path, epsilon and delta (the ceiling), spent and remaining (pairs as in `BudgetAccountant`), parts (by
        name: spent and remaining of each), kept (False for a temporary ledger), writes (the number of transactions
        that wrote to it, which only grows: note it to recognise a restored copy) and fits (list of dict).

    Raises
    ------
    FileNotFoundError
        If there is no such file.
    ValueError
        If it is not a ledger of skdp.

    Examples
    --------
    >>> from skdp.privacy import BudgetAccountant
    >>> from skdp.privacy.budget import read_ledger
    >>> read_ledger(BudgetAccountant(1.0, 1e-5).path)["spent"]
    (0.0, 0.0)
    """
    where = os.path.abspath(os.fspath(path))
    if not os.path.isfile(where):
        raise FileNotFoundError(f"There is no ledger file {where}.")
    try:
        with visit(where) as connection:
            ceiling = read_ceiling(connection, where)
            if ceiling is None:
                raise ValueError(f"{where} is empty, not a ledger of skdp.")
            charged, rows = sequences(connection, None), fit_rows(connection)
            writes = last_write(connection)[0]
    except sqlite3.Error as error:
        raise ValueError(f"{where} is not a ledger of skdp: {error}.") from error
    return {
        "path": where,
        "epsilon": ceiling.epsilon,
        "delta": ceiling.delta,
        "spent": spent_by_worst(charged, ceiling),
        "remaining": remaining_after_all(charged, ceiling),
        "parts": {
            name: {
                "spent": spent_by_worst({name: fits}, ceiling),
                "remaining": remaining_after_all({name: fits}, ceiling),
            }
            for name, fits in charged.items()
            if name is not None
        },
        "kept": ceiling.kept,
        "writes": writes,
        "fits": rows,
    }
