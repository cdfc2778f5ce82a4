"""The text of a report: its lines, the plan of a sampled fit, the table of releases."""

import html
import math
from collections.abc import Sequence

from skdp.privacy.accounting.amplification import FULL_BATCH
from skdp.privacy.accounting.releases import Line, Release, releases_of
from skdp.privacy.accounting.text import cost_text, number_text
from skdp.privacy.report.curves import Curves, ReportState

GUARANTEE_TEXTS = {
    "proven": "holds for the plan of this fit",
    "none": "no noise was added: no privacy guarantee",
    "unproven": "no valid privacy proof exists for this method",
}
ADJACENCY_TEXTS = {
    "replace-one": "one {unit} takes other values; the number of {unit}s is public",
    "zero-out": "one {unit} is replaced by an empty one; the number of {unit}s is public",
    "add-remove": "one {unit} comes or goes; the number of {unit}s is private",
}


# ---------------------------------------------------------------------- the plan of a sampled fit


def _key(release: Release) -> tuple[float, str]:
    return release.parameter, release.sampling_text()


def _made_text(plan: Sequence[Release], released: Sequence[Release], planned: Release) -> str:
    """How many of the planned releases were made, if that is known and less than planned."""
    made = sum(each.count for each in released if _key(each) == _key(planned))
    if sum(_key(each) == _key(planned) for each in plan) > 1 or made >= planned.count:
        return ""
    return f" ({made} were made, all {planned.count} are charged)"


def _plan_lines(state: ReportState) -> list[Line]:
    """The lines that explain the plan of a sampled fit; none for another."""
    plan = releases_of(state["sampled_plan"] or ())
    if not plan:
        return []
    released, unit, mu = releases_of(state["mechanisms"]), state["unit"], state["plan_mu"] or 0.0
    lines, counts = [], dict[str, int]()
    for each in plan:
        purpose = "" if each.purpose is None else f"{each.purpose}: "
        made = _made_text(plan, released, each)
        size = f"{each.count} x multiplier {each.parameter:.6g}"
        lines.append(("plan", f"{purpose}{size}, {each.sampling_text()}{made}"))
        seen = each.seen_text(unit)
        counts[seen] = counts.get(seen, 0) + each.count
    if mu > 0.0:
        lines.append(("plan", f"all other releases, on all {unit}s: mu {mu:.6g} together"))
    parts = [
        f"each of {count} releases sees {seen}" if count > 1 else f"one release sees {seen}"
        for seen, count in counts.items()
    ]
    secret = "drawn afresh and kept secret, which is why so little noise is enough"
    is_sampled = any(each.sampling != FULL_BATCH for each in plan)
    lines.append(("sampling", "; ".join([*parts, secret] if is_sampled else parts)))
    lines += sorted({each.noise_line(unit) for each in plan}, reverse=True)
    return lines


# ---------------------------------------------------------------------- lines and table


def _title(state: ReportState, scope: str) -> str:
    estimator = state["estimator"]
    return f"Privacy of {scope}" + (f" of {estimator}" if estimator else "")


def _lines(state: ReportState) -> list[Line]:
    unit, guarantee, adjacency = state["unit"], state["guarantee"], state["adjacency"]
    numerical_error = state["numerical_error"]
    lines = [
        ("epsilon", cost_text(state["epsilon"])),
        ("delta", cost_text(state["delta"])),
        ("guarantee", f"{guarantee} ({GUARANTEE_TEXTS[guarantee]})"),
        ("protects", f"one {unit}"),
        ("adjacency", f"{adjacency} ({ADJACENCY_TEXTS[adjacency].format(unit=unit)})"),
        ("accountant", state["accountant"]),
        ("noise", state["noise"]),
        *_plan_lines(state),
        *(line for each in releases_of(state["mechanisms"]) for line in each.lines(unit)),
        ("public", ", ".join(f"{k}={number_text(v)}" for k, v in state["public"].items())),
        (
            "numerical_error",
            f"epsilon {numerical_error[0]:.2g}, delta {numerical_error[1]:.2g}" if any(numerical_error) else "",
        ),
        ("erratum", state["erratum"] or ""),
        *(("assumes", line) for line in state["assumptions"]),
        *(("afterwards", line) for line in state["post_processing"]),
    ]
    return [(name, text) for name, text in lines if text]


def _span(values: Sequence[float]) -> str:
    texts = [number_text(value) for value in (min(values), max(values))]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def _costs(state: ReportState, releases: Sequence[Release]) -> list[float]:
    """What each release takes: of epsilon where the delta is that of the samplers' error alone, else of mu^2."""
    if Curves(state).sampled:
        return [0.0] * len(releases)
    if state["delta"] <= state["numerical_error"][1]:
        pure = [each.pure_epsilon() for each in releases]
        if None not in pure:
            return [float(epsilon or 0) for epsilon in pure]
    return [each.mu() ** 2 for each in releases]


def _table(state: ReportState) -> list[list[str]]:
    """Head and lines of the releases: those of one purpose, mechanism and sampling are one line.

    Where every release has a part of the budget, the last column says how much.
    """
    releases = releases_of(state["mechanisms"])
    costs = _costs(state, releases)
    total = math.fsum(costs)
    shares = 0.0 < total < math.inf
    same: dict[tuple[str, str, str], list[tuple[Release, float]]] = {}
    for each, cost in zip(releases, costs):
        key = (each.purpose or "", each.name, each.sampling_text())
        same.setdefault(key, []).append((each, cost))
    table = [["purpose", "mechanism", "noise", "count", "sampling", "sensitivity"]]
    for (purpose, name, sampling), group in same.items():
        alike = [each for each, _ in group]
        noise = f"{alike[0].parameter_label} {_span([each.parameter for each in alike])}"
        count = str(sum(each.count for each in alike))
        known = [each.sensitivity for each in alike if each.sensitivity is not None]
        table.append([purpose, name, noise, count, sampling, _span(known) if known else ""])
        if shares:
            table[-1].append(f"{math.fsum(cost for _, cost in group) / total:.1%}")
    if shares:
        table[0].append("share")
    return table if releases else []


def report_text(state: ReportState, scope: str) -> str:
    """The report for a terminal."""
    lines = [_title(state, scope)]
    lines += [f"  {name:<10}  {text}" for name, text in _lines(state)]
    table = _table(state)
    if table:
        widths = [max(map(len, column)) for column in zip(*table)]
        lines.append("  releases")
        for cells in table:
            padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths))
            lines.append(f"    {padded.rstrip()}")
    return "\n".join(lines)


def report_html(state: ReportState, scope: str) -> str:
    """The report for a notebook."""
    body = "".join(
        f'<tr><th style="text-align:left">{html.escape(name)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for name, text in _lines(state)
    )
    title = html.escape(_title(state, scope))
    parts = [f"<table><caption>{title}</caption>{body}</table>"]
    table = _table(state)
    if table:
        head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table[0])
        rows = "".join(
            "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>" for cells in table[1:]
        )
        parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
    return "<div>" + "".join(parts) + "</div>"
