"""Which estimator: from what a user has to the names of classes."""

from matplotlib.figure import Figure

from tools.pictures.style import SMALL, Canvas, Theme

ROUTES = (
    ("images, text, sequences,\nor a neural network", ("DPCNN*, DPMLP*, DPLSTM*,", "DPNetwork*, DPWord2Vec")),
    ("tables of several owners,\nwho cannot pool them", ("MPC* to try,", "skdp party between machines")),
    ("an algorithm of your own", ("PrivacySession,", "PrivateRecords")),
)
INSTEAD = (
    ("curves fit better than lines", "DPAdditive*"),
    ("few of many features matter", "DPIGHT*"),
    ("own loss or steps;\nvery many records", "DPSGD*"),
)
MONO = "DejaVu Sans Mono"


def draw(theme: Theme) -> Figure:
    canvas = Canvas(theme, 340)
    for x, title in ((75, "You have"), (262, "Use"), (443, "Use instead, if")):
        canvas.text(x, 18, title, va="baseline", weight="bold")
    _table(canvas)
    for place, (have, use) in enumerate(ROUTES):
        y = 196 + 47 * place
        canvas.box(8, y, 134, 38, have, fill=theme.panel, edge=theme.line, size=SMALL)
        canvas.arrow((142, y + 19), (172, y + 19))
        canvas.box(
            174, y, 176, 38, "\n".join(use), fill=theme.green_fill, edge=theme.green, size=SMALL, family=MONO
        )
    canvas.text(443, 262, "* stands for Classifier\nor Regressor", size=SMALL, color=theme.muted)
    return canvas.figure


def _table(canvas: Canvas) -> None:
    theme = canvas.theme
    canvas.box(8, 30, 134, 142, "a table with\na label or a number\nto predict", fill=theme.panel, edge=theme.line)
    for y, what, name in ((46, "a label", "DPLogisticRegression"), (110, "a number", "DPLinearRegression")):
        canvas.arrow((142, y + 23), (172, y + 23))
        canvas.box(174, y, 176, 46, fill=theme.blue_fill, edge=theme.blue, line=1.6)
        canvas.text(262, y + 14, what, size=SMALL, color=theme.muted)
        canvas.text(262, y + 31, name, weight="bold", family=MONO, color=theme.blue)
    for place, (why, name) in enumerate(INSTEAD):
        y = 30 + 50 * place
        canvas.arrow((350, 101), (360, 101), (360, y + 21), (374, y + 21))
        canvas.box(376, y, 136, 42, fill=theme.green_fill, edge=theme.green)
        lines = why.count("\n")
        canvas.text(444, y + 12 + 2 * lines, why, size=8)
        canvas.text(444, y + 29 + 5 * lines, name, size=SMALL, family=MONO)
