"""The messages of three hospitals that fit one model with `skdp party`."""

from itertools import pairwise

from matplotlib.figure import Figure

from tools.pictures.style import SMALL, Canvas, Theme

NAMES = ("hospital A", "hospital B", "hospital C")
LANES = (226.0, 336.0, 446.0)
MESSAGES, INSIDE = (70, 186, 306, 362), (126, 242, 418)  # heights of their words
HALF = 49.0  # half of a box around a lane


def draw(theme: Theme) -> Figure:
    canvas = Canvas(theme, 452)
    for lane, name in zip(LANES, NAMES):
        canvas.box(lane - HALF, 6, 2 * HALF, 32, edge=theme.blue, fill=theme.blue_fill)
        canvas.text(lane, 16, name, weight="bold", size=SMALL + 0.5)
        canvas.text(lane, 29, "owner and server", size=8, color=theme.muted)
        gaps = sorted((*INSIDE, *(MESSAGES if lane == LANES[1] else ())))
        for start, end in pairwise((24, *gaps, 460)):
            canvas.line((lane, start + 14), (lane, end - 14), linewidth=0.8, linestyle=(0, (3, 3)))
    _step(canvas, 66, "1  connect", "mutual TLS 1.3;\nhashes of plan and software")
    _exchange(canvas, 66, "hash of the plan", theme.muted)
    _step(canvas, 126, "2  read the table", "reserve the budget;\ncompare noise and rounds")
    _inside(canvas, 126, "table", theme.blue)
    _step(canvas, 182, "3  prepare the noise", "random shares of\neach server's noise")
    _exchange(canvas, 182, "shares of noise", theme.orange)
    _step(canvas, 242, "4  charge", "each owner's own ledger,\nwritten to disk")
    _inside(canvas, 242, "ledger", theme.orange)
    canvas.line((8, 270), (512, 270), linewidth=0.8)
    canvas.line((508, 280), (512, 280), (512, 376), (508, 376), linewidth=0.8)
    canvas.text(482, 328, "in each\nround", size=8, color=theme.muted)
    _step(canvas, 302, "5  share the sum", "random shares of\nthe clipped sum")
    _exchange(canvas, 302, "shares of sums", theme.blue)
    _step(canvas, 358, "6  open the noisy sum", "shares of sum plus noise;\nnothing else is opened")
    _exchange(canvas, 358, "sum + noise", theme.green)
    canvas.line((8, 386), (512, 386), linewidth=0.8)
    _step(canvas, 418, "7  write", "the same model for all,\na report for each")
    _inside(canvas, 418, "model, report", theme.green)
    return canvas.figure


def _step(canvas: Canvas, y: float, name: str, sentence: str) -> None:
    canvas.text(8, y - 15, name, ha="left", weight="bold", size=SMALL + 0.5)
    canvas.text(20, y + 5, sentence, ha="left", size=8, color=canvas.theme.muted)


def _exchange(canvas: Canvas, y: float, what: str, colour: str) -> None:
    """Draw the arrows of a message that each party sends to each other party."""
    for k, (start, end) in enumerate(((0, 1), (1, 2), (0, 2))):
        height = y - 10 if k < 2 else y + 14
        a, b = LANES[start], LANES[end]
        canvas.arrow(((a + b) / 2, height), (a + 2, height), colour=colour)
        canvas.arrow(((a + b) / 2, height), (b - 2, height), colour=colour)
    canvas.text((LANES[0] + LANES[2]) / 2, y + 4, what, size=8.5, color=colour)


def _inside(canvas: Canvas, y: float, what: str, colour: str) -> None:
    """Draw what each party does by itself."""
    for lane in LANES:
        canvas.box(lane - 38, y - 13, 76, 26, what, edge=colour, fill=canvas.theme.panel, size=SMALL)
