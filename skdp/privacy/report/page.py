"""HTML of reports, accountants and cards: tables and details with a style of their own, everything escaped."""

import html
from collections.abc import Iterable, Sequence

from skdp.privacy.accounting.releases import Line
from skdp.privacy.report.curves import ReportState
from skdp.privacy.report.text import (
    claim_lines,
    leak_lines,
    proof_lines,
    public_lines,
    release_table,
    title_of,
    use_lines,
)

# Colours of scikit-learn's diagrams. JupyterLab sets its theme as an attribute, others follow the system. The
# background is set too: the page around may be white where the system is dark.
_LIGHT = (
    "--skdp-text: #1c1e21; --skdp-back: #ffffff; --skdp-quiet: #5b6470; --skdp-line: #d5dbe3; "
    "--skdp-fill: #f0f8ff; --skdp-bad: #b3261e;"
)
_DARK = (
    "--skdp-text: #e8eaed; --skdp-back: #14181d; --skdp-quiet: #a3acb8; --skdp-line: #454c56; "
    "--skdp-fill: #1e2a36; --skdp-bad: #ff8a80;"
)
STYLE = f"""
.skdp {{{_LIGHT} color: var(--skdp-text); background: var(--skdp-back); font-family: sans-serif;
  font-size: 0.9rem; max-width: 70rem; padding: 0.4em; border-radius: 0.25em;}}
@media (prefers-color-scheme: dark) {{.skdp {{{_DARK}}}}}
[data-jp-theme-light="true"] .skdp, html[data-theme="light"] .skdp {{{_LIGHT}}}
[data-jp-theme-light="false"] .skdp, html[data-theme="dark"] .skdp, body.vscode-dark .skdp {{{_DARK}}}
.skdp details, .skdp .skdp-box {{border: 1px solid var(--skdp-line); border-radius: 0.25em; margin: 0 0 0.4em;}}
.skdp summary, .skdp .skdp-title {{background: var(--skdp-fill); cursor: pointer; padding: 0.35em 0.6em;}}
.skdp .skdp-title {{cursor: default; font-weight: bold;}}
.skdp .skdp-scroll {{overflow-x: auto; padding: 0.2em 0.6em;}}
.skdp table {{border-collapse: collapse; margin: 0; color: inherit; font-size: inherit;}}
.skdp tr, .skdp tbody tr:nth-child(odd), .skdp tbody tr:hover {{background: none;}}
.skdp th, .skdp td {{text-align: left; vertical-align: top; padding: 0.2em 1em 0.2em 0; border: none;}}
.skdp thead th {{border-bottom: 1px solid var(--skdp-line); white-space: nowrap;}}
.skdp tbody th {{font-weight: normal; color: var(--skdp-quiet); white-space: nowrap;}}
.skdp .skdp-note {{color: var(--skdp-quiet); font-size: 0.85em; margin: 0.2em 0;}}
.skdp .skdp-bad {{color: var(--skdp-bad); font-weight: bold;}}
"""


def container(parts: Iterable[str]) -> str:
    """The parts with their style, which no other output of a notebook sees."""
    return f'<div class="skdp"><style>{STYLE}</style>{"".join(parts)}</div>'


def box(title: str, body: str) -> str:
    """A titled part that is always open."""
    shown = html.escape(title)
    return (
        f'<div class="skdp-box"><div class="skdp-title">{shown}</div><div class="skdp-scroll">{body}</div></div>'
    )


def details(title: str, body: str, *, is_open: bool = False) -> str:
    """A part that a click opens."""
    start = "<details open>" if is_open else "<details>"
    return f'{start}<summary>{html.escape(title)}</summary><div class="skdp-scroll">{body}</div></details>'


def facts(lines: Iterable[Line]) -> str:
    """A table of names and texts."""
    rows = (f"<tr><th>{html.escape(name)}</th><td>{html.escape(text)}</td></tr>" for name, text in lines)
    return f"<table><tbody>{''.join(rows)}</tbody></table>"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table with a head."""
    top = "".join(f"<th>{html.escape(cell)}</th>" for cell in head)
    body = ("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table><thead><tr>{top}</tr></thead><tbody>{''.join(body)}</tbody></table>"


def notes(lines: Iterable[str]) -> str:
    """Small lines below a table."""
    return "".join(f'<p class="skdp-note">{html.escape(line)}</p>' for line in lines)


def report_html(state: ReportState, scope: str) -> str:
    """The report for a notebook."""
    claim = facts(claim_lines(state))
    if state["guarantee"] != "proven":
        claim = f'<p class="skdp-bad">Not private</p>{claim}'
    claim += "".join(f'<p class="skdp-bad">Leak: {html.escape(text)}</p>' for _, text in leak_lines(state))
    parts = [box(title_of(state, scope), claim)]
    releases = release_table(state)
    if releases is not None:
        body = table(releases.head, releases.cells) + notes(releases.notes)
        parts.append(details(f"Releases ({releases.count})", body, is_open=True))
        if releases.meanings:
            parts.append(details("What the releases are", facts(releases.meanings)))
    for title, some in (
        ("Assumptions", use_lines(state)),
        ("Public numbers", public_lines(state)),
        ("Accounting and noise", proof_lines(state)),
    ):
        if some:
            parts.append(details(title, facts(some)))
    return container(parts)
