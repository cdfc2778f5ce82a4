"""The parts of a private fit: what is private, what is bounded, what the session adds, what is released."""

from matplotlib.figure import Figure

from tools.pictures.style import LARGE, SMALL, Canvas, Theme

NOTE = 8  # size of the sentences inside boxes


def draw(theme: Theme) -> Figure:
    canvas = Canvas(theme, 262)
    canvas.box(4, 4, 220, 254, fill=theme.blue_fill, round_=6)
    canvas.box(402, 4, 114, 254, fill=theme.green_fill, round_=6)
    for x, name, colour in (
        (114, "private", theme.blue),
        (313, "PrivacySession", theme.orange),
        (459, "released", theme.green),
    ):
        canvas.text(x, 26, name, va="baseline", weight="bold", size=LARGE, color=colour)
    _private(canvas)
    _session(canvas)
    _released(canvas)
    return canvas.figure


def _private(canvas: Canvas) -> None:
    theme = canvas.theme
    _box(canvas, 14, 152, 84, 54, "records", "X, y, groups", theme.blue)
    canvas.arrow((98, 179), (122, 179), colour=theme.blue)
    _box(canvas, 124, 140, 92, 78, "bounded\nstatistic", "a clipped sum with\nknown sensitivity", theme.blue)
    canvas.arrow((216, 179), (244, 179), colour=theme.orange)


def _session(canvas: Canvas) -> None:
    theme = canvas.theme
    canvas.box(236, 38, 154, 182, edge=theme.orange, line=1.4)
    _box(canvas, 246, 48, 134, 44, "plan", "noise of all releases for ε, δ", theme.orange)
    canvas.arrow((313, 92), (313, 101), colour=theme.orange)
    _box(canvas, 246, 103, 134, 44, "ledger", "charge first, then release", theme.orange)
    canvas.arrow((313, 147), (313, 156), colour=theme.orange)
    _box(canvas, 246, 158, 134, 52, "release", "round to a grid,\nadd integer noise", theme.orange)


def _released(canvas: Canvas) -> None:
    theme = canvas.theme
    canvas.arrow((380, 125), (410, 125), colour=theme.green)
    _box(canvas, 412, 98, 96, 54, "privacy_", "report; epsilon\ncomputed again", theme.green)
    canvas.arrow((380, 184), (410, 184), colour=theme.green)
    _box(canvas, 412, 160, 96, 48, "noisy array", "all that the model\nis computed from", theme.green)
    canvas.arrow((459, 208), (459, 240), (170, 240), (170, 219), colour=theme.green)
    canvas.text(313, 250, "parameters of the next step", size=NOTE, color=theme.muted)


def _box(
    canvas: Canvas, x: float, y: float, width: float, height: float, name: str, sentence: str, colour: str
) -> None:
    canvas.box(x, y, width, height, edge=colour)
    above, below = (12.0 * (text.count("\n") + 1) for text in (name, sentence))
    top = y + (height - above - below - 2) / 2
    family = "DejaVu Sans Mono" if name.endswith("_") else "DejaVu Sans"
    canvas.text(x + width / 2, top + above / 2, name, weight="bold", family=family, size=SMALL + 0.5)
    canvas.text(x + width / 2, top + above + 2 + below / 2, sentence, size=NOTE, color=canvas.theme.muted)
