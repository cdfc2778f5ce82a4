"""The words of a report: its lines, the plan of a sampled fit, the table of releases; and the text."""

import math
import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from skdp.privacy.accounting.amplification import FULL_BATCH
from skdp.privacy.accounting.releases import Line, Release, Row, release_type, releases_of
from skdp.privacy.accounting.text import cost_text, number_text
from skdp.privacy.report.curves import Curves, ReportState
from skdp.privacy.report.purposes import meaning_of

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
# Assumptions that cannot be checked: whether two rows are equal is private.
UNIT_ASSUMPTIONS = {
    "record": "each record appears once: resampling, oversampling or augmentation before fit multiplies "
    "what one person adds",
    "group": "all rows of one person carry one group: resampling, oversampling or augmentation before fit "
    "must not give a person's rows to other groups",
    "owner": "all records of one owner carry one label: no owner's records are with another owner",
    "window": "each sentence appears once: one that is repeated adds its windows again",
}
SEEDED = "seeded, for testing only: no protection against anyone who knows or guesses the seed"
# Blanks that are no separators for Unicode, a joiner of graphemes, and variation selectors.
_BLANK = re.compile("[\u034f\u115f\u1160\u17b4\u17b5\u2800\u3164\uffa0\ufe00-\ufe0f\U000e0100-\U000e01ef]")
_MOST_MARKS = 4  # on one character; no script has more


def plain(text: str) -> str:
    """The text in one line, and with codes for characters that nobody sees or that move or cover others."""
    shown, marks = [], 0
    for each in text:
        kind = unicodedata.category(each)
        marks = marks + 1 if kind.startswith("M") else 0
        # Control, format, surrogate and private characters; separators, but for the space.
        hidden = kind.startswith(("C", "Z")) and each != " "
        shown.append(f"\\u{{{ord(each):x}}}" if hidden or marks > _MOST_MARKS or _BLANK.match(each) else each)
    return "".join(shown)


def noise_name(rows: Sequence[Row], seeded: bool) -> str:
    """Which noise the rows of a session have, and the source of its random numbers."""
    seen = {str(row["name"]): row.get("grid") for row in rows}
    source = "OpenSSL ChaCha20" + (", seeded: for testing only" if seeded else "")
    drawn = (
        release_type({"name": name}).noise + ("" if grid is None else f" {grid:.2g}")
        for name, grid in seen.items()
    )
    return "; ".join([*drawn, source])


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
    # A note below the releases explains multipliers.
    return lines + sorted({line for each in plan if (line := each.noise_line(unit))[0] != "multiplier"})


# ---------------------------------------------------------------------- lines


def title_of(state: ReportState, scope: str) -> str:
    """What was released, in a line."""
    estimator = state["estimator"]
    return plain(f"Privacy of {scope}" + (f" of {estimator}" if estimator else ""))


def _delta_text(state: ReportState) -> str:
    text, tail = cost_text(state["delta"]), state["numerical_error"][1]
    if 0.0 < state["delta"] <= tail:
        return f"{text} (0 but for the finite precision of the noise)"
    return text


def claim_lines(state: ReportState) -> list[Line]:
    """The claim, and who is protected."""
    unit, guarantee, adjacency = state["unit"], state["guarantee"], state["adjacency"]
    return [
        ("epsilon", cost_text(state["epsilon"])),
        ("delta", _delta_text(state)),
        ("guarantee", f"{guarantee} ({GUARANTEE_TEXTS[guarantee]})"),
        ("protects", f"one {unit}"),
        ("adjacency", f"{adjacency} ({ADJACENCY_TEXTS[adjacency].format(unit=unit)})"),
    ]


def leak_lines(state: ReportState) -> list[Line]:
    """What the claim does not cover of this fit."""
    return [("leaks", plain(line)) for line in state["leaks"]]


def public_lines(state: ReportState) -> list[Line]:
    """What was taken as public, one line a name."""
    return [(plain(name), plain(number_text(value))) for name, value in state["public"].items()]


def proof_lines(state: ReportState) -> list[Line]:
    """How the claim was computed."""
    unit, rechecked, numerical_error = state["unit"], state["rechecked"], state["numerical_error"]
    lines = [
        ("accountant", state["accountant"]),
        (
            "recheck",
            ""
            if rechecked is None
            else f"the releases cost at most epsilon {cost_text(rechecked)}, found by other code",
        ),
        ("noise", state["noise"]),
        *_plan_lines(state),
        *(line for each in releases_of(state["mechanisms"]) for line in each.lines(unit)),
        (
            "precision",
            f"of the noise: epsilon {numerical_error[0]:.2g} and delta {numerical_error[1]:.2g}, included above"
            if any(numerical_error)
            else "",
        ),
        ("erratum", state["erratum"] or ""),
    ]
    return [(plain(name), plain(text)) for name, text in lines if text]


def use_lines(state: ReportState) -> list[Line]:
    """What the claim rests on, and what is made of released numbers afterwards."""
    lines = [("assumes", line) for line in state["assumptions"]]
    lines += [("afterwards", line) for line in state["post_processing"]]
    return [(name, plain(text)) for name, text in lines]


def _lines(state: ReportState) -> list[Line]:
    lines, public = proof_lines(state), ", ".join(f"{name}={text}" for name, text in public_lines(state))
    at = next((i for i, (name, _) in enumerate(lines) if name in ("precision", "erratum")), len(lines))
    return [
        *claim_lines(state),
        *leak_lines(state),
        *lines[:at],
        *([("public", public)] if public else []),
        *lines[at:],
        *use_lines(state),
    ]


# ---------------------------------------------------------------------- table


def _span(values: Sequence[float]) -> str:
    texts = [number_text(value) for value in (min(values), max(values))]
    return texts[0] if texts[0] == texts[1] else " to ".join(texts)


def _costs(state: ReportState, releases: Sequence[Release]) -> tuple[list[float], str]:
    """What each release takes, and of what: of epsilon where delta is the samplers' error alone, else of mu^2."""
    if Curves(state).sampled:
        return [0.0] * len(releases), ""
    if state["delta"] <= state["numerical_error"][1]:
        pure = [each.pure_epsilon() for each in releases]
        if None not in pure:
            return [float(epsilon or 0) for epsilon in pure], "epsilon"
    return [each.mu() ** 2 for each in releases], "mu^2 (Gaussian DP), which adds up"


@dataclass(frozen=True)
class ReleaseTable:
    """The releases; all with one purpose, mechanism and sampling are one row.

    Attributes
    ----------
    head : tuple of str
    cells : list of list of str
    notes : list of str
        What the columns mean.
    meanings : list of (str, str)
        What the names in the first column stand for, where that is known.
    count : int
        Number of releases.
    """

    head: tuple[str, ...]
    cells: list[list[str]]
    notes: list[str]
    meanings: list[Line]
    count: int


def release_table(state: ReportState) -> ReleaseTable | None:
    """The releases of a report; None without any.

    Where every release has a part of the budget, a column says how much. Mechanism and sampling are a note where
    all rows agree.
    """
    releases = releases_of(state["mechanisms"])
    if not releases:
        return None
    costs, budget = _costs(state, releases)
    total = math.fsum(costs)
    shares = 0.0 < total < math.inf
    same: dict[tuple[str, str, str], list[tuple[Release, float]]] = {}
    for each, cost in zip(releases, costs):
        key = (each.purpose or "", each.name, each.sampling_text())
        same.setdefault(key, []).append((each, cost))
    kinds = {each.parameter_label for each in releases}
    noise = "noise " + kinds.pop() if len(kinds) == 1 else "noise"
    names = ("released", "mechanism", noise, "count", "sampling", "sensitivity", "share", "what for")
    columns: dict[str, list[str]] = {name: [] for name in names}
    for (purpose, name, sampling), group in same.items():
        alike = [each for each, _ in group]
        known = [each.sensitivity for each in alike if each.sensitivity is not None]
        row = (
            purpose,
            name,
            (f"{alike[0].parameter_label} " if kinds else "") + _span([each.parameter for each in alike]),
            str(sum(each.count for each in alike)),
            sampling,
            _span(known) if known else "",
            f"{math.fsum(cost for _, cost in group) / total:.1%}" if shares else "",
            meaning_of(purpose, state["estimator"]).why,
        )
        for cells, cell in zip(columns.values(), row):
            cells.append(plain(cell))
    notes = _notes(state["unit"], releases, columns, noise, budget if shares else "")
    kept = {name: cells for name, cells in columns.items() if any(cells)}
    purposes = dict.fromkeys(key[0] for key in same)
    words = [(plain(purpose), meaning_of(purpose, state["estimator"]).what) for purpose in purposes]
    return ReleaseTable(
        head=tuple(kept),
        cells=[list(cells) for cells in zip(*kept.values())],
        notes=notes,
        meanings=[(name, text) for name, text in words if text],
        count=sum(each.count for each in releases),
    )


def _notes(
    unit: str, releases: Sequence[Release], columns: dict[str, list[str]], noise: str, budget: str
) -> list[str]:
    """What the columns mean; mechanism and sampling are removed where all rows agree, and become a note."""
    every = []
    if len(set(columns["mechanism"])) == 1:
        every.append(f"is {columns.pop('mechanism')[0]}")
    if set(columns["sampling"]) == {FULL_BATCH}:
        del columns["sampling"]
        every.append(f"reads all {unit}s")
    notes = [f"every release {' and '.join(every)}"] if every else []
    labels = {each.parameter_label for each in releases}
    if "multiplier" in labels:
        notes.append("multiplier: standard deviation of the noise / sensitivity")
    if "epsilon" in labels:
        notes.append("epsilon: what one release costs by itself")
    lines, notes = ["; ".join(notes)] if notes else [], []
    of = dict.fromkeys(each.sensitivity_of for each in releases if each.sensitivity is not None)
    if of:
        notes.append(f"sensitivity: the most that one {unit} changes {' or '.join(of)}, in their units")
    if any(" to " in cell for name in (noise, "sensitivity") for cell in columns[name]):
        notes.append('"a to b": smallest and largest of a row')
    lines += ["; ".join(notes)] if notes else []
    return lines + ([f"share: of the budget that the releases took, in {budget}"] if budget else [])


# ---------------------------------------------------------------------- a terminal


def report_text(state: ReportState, scope: str) -> str:
    """The report for a terminal."""
    lines = [title_of(state, scope)]
    lines += [f"  {name:<10}  {text}" for name, text in _lines(state)]
    table = release_table(state)
    if table is not None:
        cells = [list(table.head), *table.cells]
        widths = [max(map(len, column)) for column in zip(*cells)]
        lines.append("  releases")
        for row in cells:
            padded = "  ".join(cell.ljust(width) for cell, width in zip(row, widths))
            lines.append(f"    {padded.rstrip()}")
        lines += [f"    ({note})" for note in table.notes]
    return "\n".join(lines)
