"""Units and adjacency: which rows of a table may differ between neighbouring data sets."""

from collections.abc import Sequence

from matplotlib.figure import Figure

from tools.pictures.style import LARGE, SMALL, Canvas, Theme

Row = tuple[str, str]
ROWS: tuple[Row, ...] = (("Ann", "3"), ("Ann", "0"), ("Bob", "5"), ("Eve", "1"), ("Eve", "4"))
# unit -> its sentence, the rows of D that differ, and adjacency -> the rows in their place
UNITS: tuple[tuple[str, str, tuple[int, ...], dict[str, tuple[Row, ...]]], ...] = (
    (
        'unit="record"',
        "one row is protected",
        (1,),
        {"replace-one": (("Ann", "7"),), "zero-out": (("–", "–"),), "add-remove": ()},
    ),
    (
        'unit="group"',
        "all rows of one person are protected",
        (0, 1),
        {
            "replace-one": (("Ann", "7"), ("Ann", "2"), ("Ann", "9")),
            "zero-out": (("–", "–"), ("–", "–")),
            "add-remove": (),
        },
    ),
)
ADJACENCIES = (
    ("replace-one", "other values; number of\nrecords (persons) is public"),
    ("zero-out", "empty values; number of\nrecords (persons) is public"),
    ("add-remove", "present or absent; number\nof records is private"),
)
LINE, CELLS = 15.0, (27.0, 33.0)  # height of a row, widths of two cells
LEFT, STEP = 12.0, 172.0


def draw(theme: Theme) -> Figure:
    canvas = Canvas(theme, 372)
    for place, (name, sentence) in enumerate(ADJACENCIES):
        x = LEFT + STEP * place
        canvas.text(x, 18, name, ha="left", va="baseline", weight="bold", size=LARGE)
        canvas.text(x, 36, sentence, ha="left", size=SMALL, color=theme.muted)
    for row, (unit, sentence, differ, others) in enumerate(UNITS):
        top = 62 + 150 * row
        canvas.line((LEFT, top - 4), (508, top - 4), linewidth=0.7)
        canvas.text(LEFT, top + 10, unit, ha="left", weight="bold", family="DejaVu Sans Mono", size=SMALL + 0.5)
        canvas.text(LEFT + 92, top + 10, sentence, ha="left", color=theme.muted)
        for place, (name, _) in enumerate(ADJACENCIES):
            _pair(canvas, LEFT + STEP * place, top + 24, differ, others[name])
    return canvas.figure


def _pair(canvas: Canvas, x: float, y: float, differ: Sequence[int], instead: Sequence[Row]) -> None:
    """Draw D and its neighbour D'; the rows that differ are highlighted."""
    theme = canvas.theme
    first = differ[0]
    kept = [row for place, row in enumerate(ROWS) if place not in differ]
    other = [*kept[:first], *instead, *kept[first:]]
    _table(canvas, x, y, "D", ROWS, differ, theme.blue, theme.blue_fill)
    right = x + sum(CELLS) + 28
    _table(canvas, right, y, "D'", other, range(first, first + len(instead)), theme.orange, theme.orange_fill)
    at = y + LINE * (2 + first + len(differ) / 2)
    canvas.arrow((x + sum(CELLS) + 4, at), (right - 4, at))


def _table(
    canvas: Canvas, x: float, y: float, name: str, rows: Sequence[Row], marked: Sequence[int], edge: str, fill: str
) -> None:
    theme, width = canvas.theme, sum(CELLS)
    canvas.text(x + 4, y + LINE / 2, name, ha="left", weight="bold", color=edge)
    y += LINE
    canvas.box(x, y, width, LINE, fill=theme.panel, round_=0)
    for cell, text in enumerate(("who", "visits")):
        canvas.text(x + (4 if not cell else width - 4), y + LINE / 2, text, ha=("left", "right")[cell], size=8)
    for place, row in enumerate(rows):
        top = y + LINE * (place + 1)
        if place in marked:
            canvas.box(x, top, width, LINE, fill=fill, round_=0)
        weight, colour = ("bold", edge) if place in marked else ("normal", theme.text)
        canvas.text(x + 4, top + LINE / 2, row[0], ha="left", size=SMALL, weight=weight, color=colour)
        canvas.text(x + width - 4, top + LINE / 2, row[1], ha="right", size=SMALL, weight=weight, color=colour)
    canvas.box(x, y, width, LINE * (len(rows) + 1), edge=theme.line, round_=0, line=0.8)
