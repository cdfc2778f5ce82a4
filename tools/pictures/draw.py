"""Draw a picture by its name, as text and into docs/_static/pictures."""

import io
import re
from importlib import import_module
from pathlib import Path

import matplotlib

from tools.pictures.style import THEMES, Theme, settings

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "_static" / "pictures"


def svg(name: str, theme: Theme) -> str:
    """Return the picture as SVG: without a date, with the same ids in every run."""
    picture = import_module(f"tools.pictures.{name}")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(settings(theme))
        out = io.StringIO()
        nothing = dict.fromkeys(("Date", "Creator", "Format", "Type"))
        picture.draw(theme).savefig(out, format="svg", transparent=True, metadata=nothing)
    return _short(out.getvalue())


def _short(text: str) -> str:
    """Return the same SVG in fewer characters: short names of glyphs, hundredths of a point, no indentation."""
    text = "\n".join(line.strip() for line in text.splitlines()) + "\n"
    glyphs = re.findall(r'<path id="(DejaVu[^"]*)"', text)
    short = {glyph: f"g{place}" for place, glyph in enumerate(dict.fromkeys(glyphs))}
    text = re.sub(r'(?<=id=")DejaVu[^"]*|(?<=href="#)DejaVu[^"]*', lambda name: short[name[0]], text)
    text = re.sub(r'(?<= )(?:d="[^"]*"|transform="translate\([^)]*|[xy]="[^"]*")', _rounded, text)
    text = re.sub(r'(<use xlink:href="#g\d+") transform="translate\((\S+) 0\)"', r'\1 x="\2"', text)
    for space in re.findall(r'<path id="(g\d+)" transform="[^"]*"/>', text):  # nothing is drawn for it
        text = re.sub(rf'<(?:use xlink:href="#|path id="){space}"[^>]*/>\n', "", text)
    return re.sub(r"\n(?=[QLMCz] ?[-\d]*)|(?<=[MLQC]) ", " ", text)


def _rounded(attribute: re.Match[str]) -> str:
    return re.sub(r"-?\d+\.\d{3,}", lambda number: f"{round(float(number[0]), 2):g}", attribute[0])


def save(name: str) -> list[Path]:
    """Write the picture in both themes; return the files."""
    FOLDER.mkdir(exist_ok=True)
    paths = []
    for theme in THEMES:
        path = FOLDER / f"{name}-{theme.name}.svg"
        path.write_text(svg(name, theme), encoding="utf-8")
        paths.append(path)
    return paths
