"""The text of an accountant, for a terminal and for a notebook."""

import html
from collections.abc import Mapping, Sequence

from skdp.privacy.budget.filters import Ceiling, Charge, remaining_after, spent_by

__all__ = ["CLAIM", "accountant_html", "accountant_text"]

CLAIM = "claim the ceiling, unless number and cost of the fits were fixed beforehand"
_COLUMNS = ("time", "user", "estimator", "epsilon", "delta", "unit", "adjacency", "state")


def accountant_text(ceiling: Ceiling, fits: list[Charge], path: str) -> str:
    """One line for a terminal."""
    cost = spent_by(fits, ceiling)
    return (
        f"<BudgetAccountant epsilon={ceiling.epsilon:g}, delta={ceiling.delta:g}:"
        f" {len(fits)} fits charged, spent ({cost[0]:.6g}, {cost[1]:g}; {CLAIM}), ledger {path}>"
    )


def accountant_html(
    ceiling: Ceiling, fits: list[Charge], rows: Sequence[Mapping[str, object]], path: str
) -> str:
    """Two tables for a notebook: the budget, and the fits where there are any."""
    spent, left = spent_by(fits, ceiling), remaining_after(fits, ceiling)
    lines = {
        "ceiling": f"epsilon {ceiling.epsilon:g}, delta {ceiling.delta:g}",
        "spent": f"epsilon {spent[0]:.6g}, delta {spent[1]:g} ({CLAIM})",
        "left": f"epsilon {left[0]:.6g}, delta {left[1]:g} (the largest single fit)",
        "ledger": path,
    }
    body = "".join(f"<tr>{_head(name)}{_cell(text)}</tr>" for name, text in lines.items())
    parts = [f"<table><caption>BudgetAccountant</caption>{body}</table>"]
    if rows:
        head = "".join(map(_head, _COLUMNS))
        cells = ("".join(_cell(row[name]) for name in _COLUMNS) for row in rows)
        fitted = "".join(f"<tr>{line}</tr>" for line in cells)
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{fitted}</tbody></table>")
    return "<div>" + "".join(parts) + "</div>"


def _head(text: str) -> str:
    return f'<th style="text-align:left">{html.escape(text)}</th>'


def _cell(value: object) -> str:
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    return f'<td style="text-align:left">{html.escape(text)}</td>'
