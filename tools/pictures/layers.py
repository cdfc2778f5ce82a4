"""The layers of the package, from the list that ``tests/test_architecture.py`` compares with all imports."""

from matplotlib.figure import Figure

from tools.make_map import LAYERS
from tools.pictures.style import SMALL, Canvas, Theme

# What is drawn in one row, with what it holds; a row imports from itself and from the rows below it.
ROWS: tuple[tuple[tuple[str, ...], str], ...] = (
    (("cli",), "the command skdp"),
    (("reproductions",), "published methods, for comparison"),
    (("multiparty",), "models of several owners"),
    (("audit", "model_selection", "metrics"), "attacks, splits, searches, scores"),
    (("text", "nn", "linear_model"), "estimators; these three do not import each other"),
    (("statistics", "preprocessing", "datasets"), "released statistics, transformers, data"),
    (("distributed", "fitting", "base"), "Dask, steps that estimators share, the order of a fit"),
    (("privacy",), "records, sessions, mechanisms, accounting, report"),
    (("kernels", "losses"), "compiled loops over rows, loss functions"),
    (("around", "_export", "_docs", "registry", "exceptions", "_compat", "_version"), "lists, names, errors"),
)
MONO = "DejaVu Sans Mono"
LEFT, WIDTH, HEIGHT, GAP = 30.0, 236.0, 26.0, 6.0


def draw(theme: Theme) -> Figure:
    if tuple(name for names, _ in ROWS for name in names) != LAYERS:
        raise ValueError("the rows of this picture are not the layers of tools/make_map.py")
    canvas = Canvas(theme, len(ROWS) * (HEIGHT + GAP) + 24)
    for place, (names, holds) in enumerate(ROWS):
        y = 6 + place * (HEIGHT + GAP)
        edge, fill = _colours(theme, names[0])
        if len(names) <= 3:
            width = (WIDTH - 4 * (len(names) - 1)) / len(names)
            for k, name in enumerate(names):
                x = LEFT + k * (width + 4)
                canvas.box(x, y, width, HEIGHT, name, edge=edge, fill=fill, family=MONO, size=7.8)
        else:
            lines = f"{', '.join(names[:4])},\n{', '.join(names[4:])}"
            canvas.box(LEFT, y, WIDTH, HEIGHT + 8, lines, edge=edge, fill=fill, family=MONO, size=7.8)
        canvas.text(LEFT + WIDTH + 12, y + HEIGHT / 2, holds, ha="left", size=SMALL, color=theme.muted)
    canvas.arrow((14, 12), (14, len(ROWS) * (HEIGHT + GAP) + 4), width=1.4)
    canvas.text(7, len(ROWS) * (HEIGHT + GAP) / 2, "imports", rotation=90, size=SMALL, color=theme.muted)
    return canvas.figure


def _colours(theme: Theme, first: str) -> tuple[str, str]:
    place = LAYERS.index(first)
    if place < LAYERS.index("text"):
        return theme.pink, theme.pink_fill
    if place < LAYERS.index("fitting"):
        return theme.blue, theme.blue_fill
    if place < LAYERS.index("privacy"):
        return theme.green, theme.green_fill
    return (theme.orange, theme.orange_fill) if first == "privacy" else (theme.line, theme.panel)
