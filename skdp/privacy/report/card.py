"""A model card: one file, for people and for `skdp verify`, with the claim in words and the ledger as JSON.

`document_of` makes the data of a card, and `render` makes the file from these data alone. A card is checked by
rendering its data again. It holds the fields of the report, parameters of the constructor, versions and the given
notes; nothing is read from the records.
"""

import html
import inspect
import json
import math
import os
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias, cast

import numpy as np

from skdp._version import __version__
from skdp.privacy.accounting.releases import Line
from skdp.privacy.report import page
from skdp.privacy.report.curves import Curves
from skdp.privacy.report.text import (
    ADJACENCY_TEXTS,
    SEEDED,
    ReleaseTable,
    claim_lines,
    plain,
    proof_lines,
    public_lines,
    release_table,
)

if TYPE_CHECKING:
    from skdp.privacy.report.report import PrivacyReport

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

FORMAT = "skdp model card"
FORMAT_VERSION = 1  # grows when the data or the rendering change, so that an old skdp refuses a new card
CARD_FIELDS = ("format", "version", "report", "releases", "attack", "model", "notes", "versions")
FALSE_POSITIVE_RATE = 0.05  # of the attacker in the claim's words; a convention
HTML_SUFFIXES, MARKDOWN_SUFFIXES = (".html", ".htm"), (".md", ".markdown")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "numba", "cryptography")
# Parameters of an estimator that are no part of the model, or a secret: a seed lets anyone subtract the noise.
_HIDDEN = frozenset({"accountant", "random_state", "verbose", "callback", "n_jobs", "memory"})
_MOST_TEXT = 300  # characters of a parameter that are shown
_MOST_VALUES = 20  # of a list that are shown


# ---------------------------------------------------------------------- data


def document_of(report: "PrivacyReport", model: object = None, notes: str = "") -> dict[str, Json]:
    """The data of a card, ready for JSON."""
    return {
        "format": FORMAT,
        "version": FORMAT_VERSION,
        "report": report_json(report),
        "releases": sum(int(row.get("count", 1)) for row in report.mechanisms),
        "attack": dict(attack_of(report)),
        "model": None if model is None else _model_of(report, model),
        "notes": str(notes),
        "versions": _versions(),
    }


def attack_of(report: "PrivacyReport") -> dict[str, float]:
    """What an attacker achieves at most between neighbours, and between two values of a unit."""
    curves = Curves(report.__getstate__())
    found = {"false_positive_rate": FALSE_POSITIVE_RATE, "true_positive_rate": curves.power(FALSE_POSITIVE_RATE)}
    if report.adjacency != "replace-one":
        found["two_values_true_positive_rate"] = curves.power_two_values(FALSE_POSITIVE_RATE)
    return found


def report_json(report: "PrivacyReport") -> dict[str, Json]:
    """The report for JSON, which has no infinity: it becomes the text "inf"."""
    found = _finite(report.to_dict())
    assert isinstance(found, dict)
    return found


def _finite(value: object) -> Json:
    if isinstance(value, Mapping):
        return {str(key): _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    assert value is None or isinstance(value, bool | int | float | str)
    return value


def _versions() -> dict[str, Json]:
    found: dict[str, Json] = {"skdp": __version__, "python": sys.version.split()[0]}
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def _model_of(report: "PrivacyReport", model: object) -> dict[str, Json]:
    if getattr(model, "privacy_", None) != report:
        raise ValueError(
            f"model must be the fitted object with this report as privacy_, got {type(model).__name__}: a card "
            "describes one fit. Call model.privacy_.card(path, model=model)."
        )
    _check_terms(report, model)
    return {"class": type(model).__name__, "parameters": dict(_parameters(model))}


def _check_terms(report: "PrivacyReport", model: object) -> None:
    """Refuse parameters that were set after the fit and say another claim than the report."""
    given: Mapping[str, object] = getattr(model, "get_params", dict)()
    state = report.__getstate__()
    wanted: dict[str, object] = {"epsilon": state["epsilon"], "adjacency": state["adjacency"]}
    # A method of pure releases claims the precision of its noise for delta=0. Owners and windows are no parameter.
    wanted["delta"] = 0.0 if given.get("delta") == 0.0 and state["delta"] < 1e-20 else state["delta"]
    if state["unit"] in ("record", "group"):
        wanted["unit"] = state["unit"]
    if state["adjacency"] == "add-remove" and "n_public" in state["public"]:
        wanted["n_public"] = state["public"]["n_public"]
    for name, stated in wanted.items():
        if name not in given:
            continue
        value, numbers = given[name], (int, float, np.integer, np.floating)
        same = value == stated
        if isinstance(value, numbers) and isinstance(stated, numbers):
            same = bool(value == stated or math.isclose(float(value), float(stated), rel_tol=1e-6))
        if not same:
            raise ValueError(
                f"the parameter {name}={value!r} of model differs from its report ({stated!r}): it was set "
                f"after the fit. Call model.set_params({name}={stated!r}) or fit again, then write the card."
            )


def _parameters(model: object) -> list[tuple[str, str]]:
    get_params = getattr(model, "get_params", None)
    if get_params is None:
        return []
    given: Mapping[str, object] = get_params(deep=False)
    return [(name, _cut(_shown(value))) for name, value in given.items() if not _is_hidden(name)]


def _is_hidden(name: object) -> bool:
    """Whether a parameter, of this object or of one inside, is not for a card."""
    return isinstance(name, str) and (name.rpartition("__")[2] in _HIDDEN or "seed" in name.lower())


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_TEXT else f"{text[:_MOST_TEXT]} ... ({len(text)} characters)"


def _shown(value: object) -> str:
    """A parameter as text: plain values and short lists of them as they are, of anything else its kind."""
    if isinstance(value, os.PathLike) or (isinstance(value, str) and re.search(r"[/\\]|^~", value)):
        return "a path"
    if value is None or isinstance(value, bool | int | float | str | np.generic):
        return repr(value.item() if isinstance(value, np.generic) else value)
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape} and type {value.dtype}"
    if isinstance(value, Mapping):
        items = [(key, item) for key, item in value.items() if not _is_hidden(key)]
        return "{" + ", ".join(f"{_shown(key)}: {_shown(item)}" for key, item in items) + "}"
    if isinstance(value, list | tuple | set | frozenset | range):
        if len(value) > _MOST_VALUES:
            return f"{type(value).__name__} of {len(value)}"
        return "[" + ", ".join(map(_inside, value)) + "]"
    name = getattr(value, "__qualname__", type(value).__qualname__)
    if inspect.isroutine(value) or isinstance(value, type):
        return str(name)
    given = ", ".join(f"{key}={text}" for key, text in _parameters(value))
    return f"{name}({given})" if given else str(name)


def _inside(value: object) -> str:
    """An item of a list: of lists of values, which may be cells of a table, only the kind."""
    if isinstance(value, list | tuple) and not any(hasattr(item, "get_params") for item in value):
        return f"{type(value).__name__} of {len(value)}"
    return _shown(value)


# ---------------------------------------------------------------------- words


@dataclass(frozen=True)
class Section:
    """A part of a card: warnings, sentences, then facts, a table and its notes, a list."""

    title: str
    _: KW_ONLY
    warnings: Sequence[str] = ()
    sentences: Sequence[str] = ()
    facts: Sequence[Line] = ()
    table: ReleaseTable | None = None
    items: Sequence[str] = ()


def _percent(value: float) -> str:
    """With three digits, rounded up."""
    text = f"{100.0 * value:.3g}"
    digits = 10.0 ** (math.floor(math.log10(100.0 * value)) - 2) if value > 0.0 else 0.0
    return (text if float(text) >= 100.0 * value * (1.0 - 1e-9) else f"{100.0 * value + digits:.3g}") + " %"


# What the claim compares with, and what an attacker tells apart, by adjacency.
_AS_IF = {
    "replace-one": "as if the data of one {unit} had been different",
    "zero-out": "as if one {unit} had been empty",
    "add-remove": "as if one {unit} had been absent, or one more had been in the data",
}
_TELLS = {
    "replace-one": "tells apart two values of one {unit}",
    "zero-out": "tells whether one {unit} is there or empty",
    "add-remove": "tells whether one {unit} is in the data",
}


def _claim(document: Mapping[str, Json], report: "PrivacyReport", unit: str) -> Section:
    state = report.__getstate__()
    lines = claim_lines(state)
    testing = "FOR TESTING ONLY: there is no protection against anyone who knows or guesses the seed of this fit."
    warnings = [testing] if SEEDED in state["leaks"] else []
    if state["leaks"]:
        warnings.append(f'This fit has leaks, which the claim does not cover: see "{_LEAKS}".')
    if report.guarantee != "proven":
        text = f"NOT PRIVATE: no guarantee holds for these results ({report.guarantee}). Nothing below is a claim."
        return Section("Claim", warnings=[text, *warnings], facts=lines)
    attack, adjacency = document["attack"], report.adjacency
    assert isinstance(attack, Mapping)
    false, true = (_percent(cast("float", attack[f"{name}_positive_rate"])) for name in ("false", "true"))
    attacker = (
        "Against: anyone who sees the released results and this card, whatever else they know, as long as the "
        "key stream (ChaCha20) cannot be told from random bits. An attacker who "
        f"{_TELLS[adjacency].format(unit=unit)} with a false positive rate of {false} has a true "
        f"positive rate of at most {true}."
    )
    if adjacency != "replace-one":
        both = _percent(cast("float", attack["two_values_true_positive_rate"]))
        attacker += (
            f" Values are protected less: one who {_TELLS['replace-one'].format(unit=unit)}, at most {both}."
        )
    protected = f"Protected: one {unit}. Neighbouring data sets: {ADJACENCY_TEXTS[adjacency].format(unit=unit)}."
    if unit == "record":
        protected += " If a person has several records, this protects one of them, not the person."
    return Section(
        "Claim",
        warnings=warnings,
        sentences=[
            "The released results are differentially private. Whatever anyone finds in them is, up to a factor of "
            f"e^epsilon, plus delta, as likely {_AS_IF[adjacency].format(unit=unit)}.",
            protected,
            attacker,
            f"The claim is about one fit with {document['releases']} releases of noisy numbers, which its author "
            "lists below.",
        ],
        facts=lines,
    )


_LEAKS = "Not covered by the claim: leaks of this fit"


def _not_covered(unit: str) -> list[str]:
    return [
        f"other fits, statistics and scores on the same {unit}s: their costs add to this one",
        "choices that a person made after a look at the data, such as of parameters",
        "facts about a population, which a model may teach without any one of its members",
        "someone who sees the data, the seed, or the time and memory of the fit",
        f"dependence between {unit}s: what one {unit}'s data tell about another",
    ]


# What no reader of a card can check; the command says it too.
UNCHECKED = (
    "as their author states them: unit, adjacency, sensitivities, assumptions, leaks and seed, plan, sampling "
    "rates, merged or missing releases, public numbers, parameters and all free text"
)


def _verification() -> list[str]:
    return [
        "Run: skdp verify FILE, with this file as FILE and the skdp of the section Versions.",
        "It computes epsilon again from the ledger at the end of this card, by other code than the fit, and "
        "checks that all words and tables of this card say what the ledger says.",
        "It cannot check that the noise was drawn, or whether somebody wrote another ledger. Not checked, but "
        f"{UNCHECKED}. A signature on this file tells who wrote it.",
    ]


def sections_of(document: Mapping[str, Json], report: "PrivacyReport") -> list[Section]:
    """The parts of a card, in their order; the ledger follows."""
    state, model, versions = report.__getstate__(), document["model"], document["versions"]
    releases = release_table(state)
    parts = [_claim(document, report, state["unit"])]
    if state["leaks"]:
        parts.append(Section(_LEAKS, items=state["leaks"]))
    no_value = "No value of the data is on this card. Public numbers of the fit:"
    parts.append(Section("Data", sentences=[no_value], facts=public_lines(state)))
    if isinstance(model, Mapping):
        given = model["parameters"]
        assert isinstance(given, Mapping)
        shown = [("class", str(model["class"])), *((str(name), str(text)) for name, text in given.items())]
        set_by = "Parameters as set by its user; a seed is never shown."
        parts.append(Section("Model", sentences=[set_by], facts=shown))
    if releases is not None:
        parts.append(Section("Releases", table=releases))
        if releases.meanings:
            parts.append(Section("What the releases are", facts=releases.meanings))
    parts.append(Section("Accounting and noise", facts=proof_lines(state)))
    if report.guarantee == "proven":
        parts.append(Section("Assumptions", sentences=["The claim holds if:"], items=state["assumptions"]))
        if state["post_processing"]:
            after = state["post_processing"]
            parts.append(Section("After the releases", sentences=["At no further cost:"], items=after))
        parts.append(Section("Not covered by any claim", items=_not_covered(state["unit"])))
    if document["notes"]:
        lines = [line for line in str(document["notes"]).splitlines() if line.strip()]
        parts.append(Section("Notes", sentences=["By the author of this card; nothing checks them."], items=lines))
    assert isinstance(versions, Mapping)
    parts.append(Section("Versions", facts=[(str(name), str(text)) for name, text in versions.items()]))
    parts.append(Section("How to verify", items=_verification()))
    return [
        replace(
            each,
            warnings=[plain(text) for text in each.warnings],
            sentences=[plain(text) for text in each.sentences],
            facts=[(plain(name), plain(text)) for name, text in each.facts],
            items=[plain(text) for text in each.items],
        )
        for each in parts
    ]


def _title(report: "PrivacyReport") -> str:
    return plain(f"Model card of {report.estimator or 'a private computation'}")


def json_text(document: Mapping[str, Json]) -> str:
    """The data as JSON in ASCII, without a character that HTML or Markdown could read as its own."""
    text = json.dumps(document, indent=1, allow_nan=False)
    for each in "<>&`":
        text = text.replace(each, f"\\u{ord(each):04x}")
    return text


# ---------------------------------------------------------------------- Markdown


def _markdown(text: str) -> str:
    """Text without markup: entities for what starts a tag, backslashes for all else that means something."""
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    text = re.sub(r"([\\`*\[\]|#~!$@])", r"\\\1", text.strip())
    text = re.sub(r"^([-+=])|^(\d+)([.)])(?=\s|$)", r"\2\\\1\3", text)  # a list, a rule or a title
    text = re.sub(r"(?i)(www)\.", r"\1\\.", text)
    return re.sub(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])", r"\\_", text).replace("://", ":\\//")


def _markdown_table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    cells = [head, ["---"] * len(head), *rows]
    body = [row if i == 1 else [_markdown(cell) for cell in row] for i, row in enumerate(cells)]
    return ["| " + " | ".join(row) + " |" for row in body]


def render_markdown(document: Mapping[str, Json], report: "PrivacyReport") -> str:
    """The card in Markdown."""
    blocks = [[f"# {_markdown(_title(report))}"]]
    for each in sections_of(document, report):
        blocks.append([f"## {each.title}"])
        blocks += [[f"**{_markdown(text)}**"] for text in each.warnings]
        blocks += [[_markdown(text)] for text in each.sentences]
        if each.facts:
            blocks.append(_markdown_table(("", ""), each.facts))
        if each.table is not None:
            blocks.append(_markdown_table(each.table.head, each.table.cells))
            blocks.append([f"- {_markdown(plain(note))}" for note in each.table.notes])
        if each.items:
            blocks.append([f"- {_markdown(text)}" for text in each.items])
    blocks.append(["## Ledger"])
    blocks.append(["```json", json_text(document), "```"])
    return "\n\n".join("\n".join(block) for block in blocks) + "\n"


# ---------------------------------------------------------------------- HTML

_PAGE_STYLE = (
    "body {margin: 2rem auto; max-width: 72rem; padding: 0 1rem;}\n"
    "@media (prefers-color-scheme: dark) {body {background: #14181d;}}\n"
)


def render_html(document: Mapping[str, Json], report: "PrivacyReport") -> str:
    """The card in HTML, with no script and no other file."""
    title = html.escape(_title(report))
    parts = [f"<h1>{title}</h1>"]
    for each in sections_of(document, report):
        body = "".join(f'<p class="skdp-bad">{html.escape(text)}</p>' for text in each.warnings)
        body += "".join(f"<p>{html.escape(text)}</p>" for text in each.sentences)
        if each.facts:
            body += page.facts(each.facts)
        if each.table is not None:
            body += page.table(each.table.head, each.table.cells)
            body += page.notes([plain(note) for note in each.table.notes])
        if each.items:
            body += "<ul>" + "".join(f"<li>{html.escape(text)}</li>" for text in each.items) + "</ul>"
        parts.append(f"<section><h2>{each.title}</h2><div>{body}</div></section>")
    ledger = f'<script type="application/json" id="skdp-card">\n{json_text(document)}\n</script>'
    body = page.container(parts).replace("<section>", "\n<section>")
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head><meta charset="utf-8"><title>{title}</title>\n'
        f'<meta name="color-scheme" content="light dark"><style>{_PAGE_STYLE}</style></head>\n'
        f"<body>\n{body}\n{ledger}\n</body>\n</html>\n"
    )


# ---------------------------------------------------------------------- files


def renderer(path: Path) -> "Callable[[Mapping[str, Json], PrivacyReport], str]":
    """The rendering that the suffix of a file asks for."""
    suffix = path.suffix.lower()
    if suffix in HTML_SUFFIXES:
        return render_html
    if suffix in MARKDOWN_SUFFIXES:
        return render_markdown
    raise ValueError(f"path must end in one of {[*HTML_SUFFIXES, *MARKDOWN_SUFFIXES]}, got {str(path)!r}.")


def write_card(report: "PrivacyReport", path: "str | os.PathLike[str]", model: object, notes: str) -> Path:
    """Write a card; a reader never sees half of one."""
    where = Path(path)
    text = renderer(where)(document_of(report, model, notes), report)
    if where.is_dir():
        raise IsADirectoryError(f"path must be a file, got the folder {str(where)!r}.")
    if not where.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {str(where.parent)!r} for the card: make it first.")
    half = where.with_name(f".{where.name}.{os.getpid()}-{os.urandom(4).hex()}.part")
    try:
        half.write_text(text, encoding="utf-8", newline="\n")
        os.replace(half, where)
    except BaseException:
        half.unlink(missing_ok=True)
        raise
    return where
