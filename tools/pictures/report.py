"""The printed report of a fit with numbered notes, drawn from a report that is made on the spot."""

import warnings

from matplotlib.figure import Figure

from skdp import DPLogisticRegression
from skdp.datasets import load_rand_hie
from tools.pictures.style import SMALL, Canvas, Theme

MONO, SIZE, LINE = "DejaVu Sans Mono", 8.4, 13.5  # font of the report, in points
LEFT, WIDE = 30.0, 95  # where its lines begin, and their most characters
LAST = "what for"  # head of the table's last column
# How a line begins, and its note.
NOTES = (
    ("epsilon", "P(output on D) ≤ $e^ε$ P(output on D') + δ"),
    ("delta", "the δ of this bound"),
    ("guarantee", "whether a proof covers this fit"),
    ("protects", "the unit: here all records of one person"),
    ("adjacency", "which data sets are neighbours"),
    ("accountant", "how the costs of the releases are added"),
    ("recheck", "ε, computed again from the releases"),
    ("noise", "distribution, grid and random numbers"),
    ("public", "facts that the guarantee does not hide"),
    ("precision", "what finite precision adds"),
    ("assumes", "conditions of the proof, to be checked"),
    ("afterwards", "steps that use released numbers only"),
    ("releases", "every noisy array, and its share of the budget"),
)


def report() -> list[str]:
    """Return the lines of the report of one fit that protects persons."""
    hie = load_rand_hie(target="any_visit")
    model = DPLogisticRegression(epsilon=1.0, delta=1e-6, classes=[0, 1], unit="group", random_state=0)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "random_state is a seed")
        model.fit(hie.data, hie.target, groups=hie.person)
    lines = str(model.privacy_).splitlines()
    # A fit of real records has no seed: here it makes the picture repeatable. Lines in brackets explain columns.
    kept = [line for line in lines if not line.startswith("  leaks") and not line.lstrip().startswith("(")]
    # The last column of the table would make the letters too small to read.
    last = next((line.index(LAST) for line in lines if line.endswith(LAST)), None)
    head = next(place for place, line in enumerate(kept) if line.strip() == "releases")
    kept[head:] = [line[:last].rstrip() for line in kept[head:]]
    return [line.removeprefix("  ").replace(", seeded: for testing only", "") for line in kept]


def draw(theme: Theme) -> Figure:
    lines = report()
    rows = (len(NOTES) + 1) // 2
    bottom = 14 + LINE * len(lines)
    canvas = Canvas(theme, bottom + 18 + 16 * rows)
    canvas.box(2, 2, 516, bottom, fill=theme.panel, edge=theme.line, line=0.8)
    unseen = {start: number for number, (start, _) in enumerate(NOTES, 1)}
    for place, line in enumerate(lines):
        y = 9 + LINE * (place + 0.5)
        start = line.split()[0]
        if start in unseen:
            _number(canvas, 15, y, unseen.pop(start))
        shown = line if len(line) <= WIDE else f"{line[: WIDE - 2].rstrip()} …"
        canvas.text(LEFT, y, shown.replace("$", r"\$"), ha="left", va="center_baseline", family=MONO, size=SIZE)
    for number, (_, note) in enumerate(NOTES, 1):
        column, row = divmod(number - 1, rows)
        x, y = 15 + 258 * column, bottom + 18 + 16 * row
        _number(canvas, x, y, number)
        canvas.text(x + 14, y, note, ha="left", size=SMALL)
    return canvas.figure


def _number(canvas: Canvas, x: float, y: float, number: int) -> None:
    theme = canvas.theme
    canvas.box(x - 8, y - 5.5, 16, 11, fill=theme.blue_fill, edge=theme.blue, line=0.8, round_=5.5)
    canvas.text(x, y, f"{number}", size=7, weight="bold", color=theme.blue, va="center_baseline")
