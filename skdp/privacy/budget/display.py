"""The text of an accountant, for a terminal and for a notebook."""

from collections.abc import Mapping, Sequence

from skdp.privacy.budget.filters import Ceiling, Sequences, remaining_after_all, spent_by_worst
from skdp.privacy.report import page
from skdp.privacy.report.text import plain

CLAIM = "claim the ceiling, unless number and cost of the fits were fixed beforehand"
_COLUMNS = ("time", "user", "estimator", "epsilon", "delta", "unit", "adjacency", "state")


def accountant_text(
    ceiling: Ceiling, charged: Sequences, rows: Sequence[Mapping[str, object]], path: str, part: str | None
) -> str:
    """One line for a terminal."""
    cost = spent_by_worst(charged, ceiling)
    count = sum(row["state"] != "returned" for row in rows)
    return (
        f"<BudgetAccountant epsilon={ceiling.epsilon:g}, delta={ceiling.delta:g}:"
        f" {count} fits charged, spent ({cost[0]:.6g}, {cost[1]:g}; {CLAIM}),"
        f"{_parts_text(charged, ceiling, part)} ledger {path}>"
    )


def _parts_text(charged: Sequences, ceiling: Ceiling, part: str | None) -> str:
    """The part of a handle, or the cost of each part so far; nothing where there is none."""
    if part is not None:
        return f" part {part},"
    names = [name for name in charged if name is not None]
    costs = (spent_by_worst({name: charged[name]}, ceiling) for name in names)
    texts = [f"{name} ({cost[0]:.6g}, {cost[1]:g})" for name, cost in zip(names, costs)]
    return f" parts {', '.join(texts)}," if texts else ""


def accountant_html(
    ceiling: Ceiling, charged: Sequences, rows: Sequence[Mapping[str, object]], path: str, part: str | None
) -> str:
    """Two tables for a notebook: the budget, and the fits where there are any."""
    spent, left = spent_by_worst(charged, ceiling), remaining_after_all(charged, ceiling)
    lines = {
        "ceiling": f"epsilon {ceiling.epsilon:g}, delta {ceiling.delta:g}",
        "spent": f"epsilon {spent[0]:.6g}, delta {spent[1]:g} ({CLAIM})",
        "left": f"epsilon {left[0]:.6g}, delta {left[1]:g} (the largest single fit)",
        "ledger": path,
    }
    if part is not None:
        lines["part"] = part
    else:
        for name in charged:
            if name is not None:
                cost = spent_by_worst({name: charged[name]}, ceiling)
                lines[f"spent in {name}"] = f"epsilon {cost[0]:.6g}, delta {cost[1]:g}"
    parts = [page.box("BudgetAccountant", page.facts(lines.items()))]
    if rows:
        columns = _COLUMNS if list(charged) == [None] else (*_COLUMNS, "part")
        cells = [[_text(row[name]) for name in columns] for row in rows]
        parts.append(page.details(f"Fits ({len(cells)})", page.table(columns, cells), is_open=True))
    return page.container(parts)


def _text(value: object) -> str:
    if value is None:
        return ""
    return plain(f"{value:.6g}" if isinstance(value, float) else str(value))
