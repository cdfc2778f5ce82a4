"""The look that all pictures share: two themes, and boxes, arrows and text on a canvas measured in points."""

from dataclasses import dataclass
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch

WIDTH = 520  # points; 693 pixels, the width of a page's text
TEXT, SMALL, LARGE = 9.5, 8.5, 11.0  # sizes of text in points


@dataclass(frozen=True)
class Theme:
    """Colours of one theme; the four hues are those of Okabe and Ito, brighter on a dark page."""

    name: str
    text: str
    muted: str
    line: str
    panel: str
    blue: str
    orange: str
    green: str
    pink: str
    blue_fill: str
    orange_fill: str
    green_fill: str
    pink_fill: str


LIGHT = Theme(
    name="light",
    text="#1b1f24",
    muted="#57606a",
    line="#8c959f",
    panel="#f1f3f5",
    blue="#0068a6",
    orange="#b84a00",
    green="#00785a",
    pink="#a3477d",
    blue_fill="#dcecf7",
    orange_fill="#fbe5d6",
    green_fill="#d9f0e8",
    pink_fill="#f6e3ee",
)
DARK = Theme(
    name="dark",
    text="#e6e6e6",
    muted="#a9b1ba",
    line="#7d8690",
    panel="#23282e",
    blue="#5bb8f0",
    orange="#f0a04b",
    green="#3fc79f",
    pink="#e29cc5",
    blue_fill="#16344a",
    orange_fill="#4a2f14",
    green_fill="#143f34",
    pink_fill="#45263a",
)
THEMES = (LIGHT, DARK)


def settings(theme: Theme) -> dict[str, Any]:
    """Matplotlib's settings while a picture is drawn and saved; text becomes paths, ids do not change."""
    return {
        "font.family": "DejaVu Sans",
        "font.size": TEXT,
        "svg.fonttype": "path",
        "svg.hashsalt": "skdp",
        "path.simplify": True,
        "text.color": theme.text,
        "axes.edgecolor": theme.line,
        "axes.labelcolor": theme.text,
        "axes.titlesize": TEXT,
        "axes.titleweight": "bold",
        "axes.titlecolor": theme.text,
        "axes.labelsize": TEXT,
        "axes.facecolor": "none",
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.linewidth": 0.8,
        "xtick.color": theme.line,
        "ytick.color": theme.line,
        "xtick.labelcolor": theme.text,
        "ytick.labelcolor": theme.text,
        "xtick.labelsize": SMALL,
        "ytick.labelsize": SMALL,
        "lines.linewidth": 1.8,
        "figure.facecolor": "none",
        "savefig.facecolor": "none",
        "mathtext.fontset": "dejavusans",
    }


def plots(theme: Theme, height: float, columns: int = 1, **options: Any) -> tuple[Figure, list[Axes]]:
    """Return a figure of the page's width, with axes beside each other and a light grid."""
    figure = Figure(figsize=(WIDTH / 72, height / 72), layout="constrained")
    axes = figure.subplots(1, columns, squeeze=False, **options)[0]
    for ax in axes:
        ax.grid(color=theme.line, alpha=0.25, linewidth=0.6)
        ax.set_axisbelow(True)
    return figure, list(axes)


class Canvas:
    """A figure whose coordinates are points: x to the right, y down from the upper edge."""

    def __init__(self, theme: Theme, height: float) -> None:
        self.theme = theme
        self.figure = Figure(figsize=(WIDTH / 72, height / 72))
        self.ax = self.figure.add_axes((0.0, 0.0, 1.0, 1.0))
        self.ax.set(xlim=(0, WIDTH), ylim=(height, 0))
        self.ax.set_axis_off()

    def text(self, x: float, y: float, text: str, **options: Any) -> None:
        """Write text, centred on the point unless `ha` or `va` say otherwise."""
        given = {"ha": "center", "va": "center", "linespacing": 1.3, "size": TEXT, **options}
        self.ax.text(x, y, text, **given)

    def box(
        self,
        x: float,
        y: float,
        width: float,
        height: float,
        text: str = "",
        *,
        edge: str | None = None,
        fill: str | None = None,
        round_: float = 4.0,
        dashed: bool = False,
        line: float = 1.0,
        **options: Any,
    ) -> None:
        """Draw a box from its upper left corner, with text in its middle."""
        self.ax.add_patch(
            FancyBboxPatch(
                (x, y),
                width,
                height,
                boxstyle=f"round,pad=0,rounding_size={round_}" if round_ else "square,pad=0",
                facecolor=fill or "none",
                edgecolor=edge or "none",
                linewidth=line,
                linestyle="--" if dashed else "-",
                clip_on=False,
            )
        )
        if text:
            self.text(x + width / 2, y + height / 2, text, **options)

    def line(self, *points: tuple[float, float], colour: str | None = None, **options: Any) -> None:
        """Draw a line through points."""
        xs, ys = zip(*points)
        given = {"color": colour or self.theme.line, "linewidth": 1.0, "clip_on": False, **options}
        self.ax.plot(xs, ys, **given)

    def arrow(self, *points: tuple[float, float], colour: str | None = None, width: float = 1.1) -> None:
        """Draw an arrow through points; its head is at the last one."""
        colour = colour or self.theme.muted
        if len(points) > 2:
            self.line(*points[:-1], colour=colour, linewidth=width)
        self.ax.add_patch(
            FancyArrowPatch(
                points[-2],
                points[-1],
                arrowstyle="-|>,head_length=4.5,head_width=2.4",
                mutation_scale=1.0,
                shrinkA=0,
                shrinkB=0,
                color=colour,
                linewidth=width,
                clip_on=False,
            )
        )
