"""What a report says in words: numbers, the plan of a sampled fit, the table of releases."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from skdp.privacy.accounting import rows_mu
from skdp.privacy.accounting.ledger import FULL_BATCH, check_row, row_sampling
from skdp.privacy.accounting.sampled import WITHOUT_REPLACEMENT

__all__ = ["cost_text", "number_text", "plan_lines", "release_table"]

Row = Mapping[str, Any]


def number_text(value: Any) -> str:
    """Six digits of a float, anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def cost_text(value: float) -> str:
    """Six digits, rounded up: what is shown is never less than what is claimed."""
    text = f"{value:.6g}"
    if float(text) < value * (1.0 - 1e-9):
        text = f"{value + 10.0 ** (math.floor(math.log10(value)) - 5):.6g}"
    return text


def _sampling_text(row: Row) -> str:
    """The sampling of a row, with its rate."""
    sampling = str(row.get("sampling", FULL_BATCH))
    if row_sampling(row) == FULL_BATCH:
        return sampling
    if sampling == WITHOUT_REPLACEMENT and "n_records" in row:
        return f"{row['batch_size']} of {row['n_records']} {sampling}"
    return f"{sampling}, rate {row['sampling_rate']:.6g}" if "sampling_rate" in row else sampling


def _seen(row: Row, unit: str) -> str:
    """Which records (or groups) a release of this row sees, in words."""
    if row_sampling(row) == FULL_BATCH:
        return f"all {unit}s"
    if row.get("sampling") == WITHOUT_REPLACEMENT and "n_records" in row:
        return f"{row['batch_size']} of {row['n_records']} {unit}s"
    return f"every {unit} with probability {row.get('sampling_rate', 1.0):.6g}"


def _key(row: Row) -> tuple[Any, ...]:
    return (check_row(row)[1], _sampling_text(row))


def _made(plan: Sequence[Row], released: Sequence[Row], row: Row) -> str:
    """How many releases of a planned row were made, where that can be told and is less than planned."""
    planned = check_row(row)[2]
    made = sum(check_row(each)[2] for each in released if _key(each) == _key(row))
    if sum(_key(each) == _key(row) for each in plan) > 1 or made >= planned:
        return ""
    return f" ({made} were made, all {planned} are charged)"


def plan_lines(
    plan: Sequence[Row], released: Sequence[Row], mu: float, unit: str
) -> list[tuple[str, str]]:
    """Name and text of the lines that explain the plan of a sampled fit."""
    lines = []
    counts: dict[str, int] = {}
    for row in plan:
        _, parameter, count = check_row(row)
        purpose = f"{row['purpose']}: " if "purpose" in row else ""
        made = _made(plan, released, row)
        text = f"{purpose}{count} x multiplier {parameter:.6g}, {_sampling_text(row)}{made}"
        lines.append(("plan", text))
        seen = _seen(row, unit)
        counts[seen] = counts.get(seen, 0) + count
    if not lines:
        return []
    if mu > 0.0:
        lines.append(("plan", f"all other releases, on all {unit}s: mu {mu:.6g} together"))
    parts = [
        f"each of {count} releases sees {seen}" if count > 1 else f"one release sees {seen}"
        for seen, count in counts.items()
    ]
    lines.append(
        (
            "sampling",
            "; ".join(parts)
            + "; drawn afresh and kept secret, which is why so little noise is enough",
        )
    )
    lines.append(("multiplier", f"noise std over sensitivity: the most that one {unit} moves it"))
    return lines


def _span(values: Sequence[Any]) -> str:
    texts = [number_text(value) for value in (min(values), max(values))]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def release_table(rows: Sequence[Row], *, shares: bool) -> list[list[str]]:
    """Head and lines of the releases: those of one purpose, mechanism and sampling are one line.

    Parameters
    ----------
    rows : sequence of dict
    shares : bool
        Whether every row has a part of the mu^2 of all; else the column is left out.
    """
    total = rows_mu(rows) ** 2 if shares else 0.0
    shares = 0.0 < total < math.inf
    same: dict[tuple[str, str, str], list[Row]] = {}
    for row in rows:
        key = (str(row.get("purpose", "")), check_row(row)[0], _sampling_text(row))
        same.setdefault(key, []).append(row)
    table = [["purpose", "mechanism", "noise", "count", "sampling", "sensitivity"]]
    for (purpose, name, sampling), alike in same.items():
        noise = "multiplier" if name == "gaussian" else "epsilon"
        checked = [check_row(row) for row in alike]
        noise += f" {_span([parameter for _, parameter, _ in checked])}"
        count = str(sum(count for _, _, count in checked))
        known = [row["sensitivity"] for row in alike if "sensitivity" in row]
        table.append([purpose, name, noise, count, sampling, _span(known) if known else ""])
        if shares:
            table[-1].append(f"{rows_mu(alike) ** 2 / total:.1%}")
    if shares:
        table[0].append("share")
    return table if rows else []
