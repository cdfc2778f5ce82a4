"""The picture of an additive model: a panel for each column, with the band of its noise."""

import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from skdp.linear_model.additive.shapes import Shape

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST_PANELS = 12  # so many panels are drawn at most where no columns are named; a choice
PER_ROW, PANEL = 4, (2.9, 2.5)  # panels side by side, and width and height of one in inches
NORMAL_95 = 1.96  # standard deviations to each side of the 95 % band
REACH = 3.0  # standard deviations about the centre that are drawn, within the window
MARGIN = 0.06  # free margin on each side, as a part of the drawn range
LONGEST_LINE = 26  # letters of a line of a name below a panel of PANEL's width
LINE = 0.16  # height of such a line in inches; the first is part of PANEL
MOST_TICKS = 4  # intervals of the axis of values: numbers of seven letters stay apart on a panel of PANEL's width


def draw_shapes(
    shapes: Sequence[Shape],
    axes: "Axes | NDArray[np.object_] | None",
    label: str,
    outputs: Sequence[tuple[int, str]] | None,
) -> "NDArray[np.object_]":
    """Draw shapes, each on Axes of its own.

    Parameters
    ----------
    shapes : sequence of Shape
    axes : Axes, array of Axes or None
        As many as shapes, or more; the others are left as they are. None makes a figure.
    label : str
        What the contributions are.
    outputs : sequence of tuple (int, str) or None
        Which classes are drawn, and their labels; None where there is one output.

    Returns
    -------
    ndarray of Axes of shape (n_shapes,)
    """
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plot_shapes needs matplotlib: pip install "skdp[plot]"') from error
    handles = [_handle(k, name) for k, name in outputs or ()]
    handles = handles if len(handles) > 1 else []  # the label of the axis names a class that is alone
    if axes is None:
        across = min(PER_ROW, len(shapes))
        down = -(-len(shapes) // across)
        names = [_wrapped(shape.name).count("\n") for shape in shapes]
        lines = sum(max(names[first : first + across]) for first in range(0, len(shapes), across))
        height = PANEL[1] * down + LINE * lines + (0.3 if handles else 0.0)
        size = PANEL[0] * across + 0.4, height
        figure, made = pyplot.subplots(
            down, across, figsize=size, sharey=True, squeeze=False, layout="constrained"
        )
        panels = made.ravel()
        for panel in panels[len(shapes) :]:
            panel.remove()
        for panel in panels[: len(shapes)]:
            panel.locator_params(axis="x", nbins=MOST_TICKS)
        for panel in panels[: len(shapes) : across]:
            panel.set_ylabel(_wrapped(label), parse_math=False)
        if handles:
            legend = figure.legend(handles=handles, loc="outside upper right", ncols=len(handles), frameon=False)
            _plain(legend)
    else:
        panels = np.ravel(np.asarray(axes, dtype=object))
        if panels.size < len(shapes):
            raise ValueError(
                f"axes has {panels.size} Axes for {len(shapes)} columns: give one for each, or name fewer columns"
            )
        for panel in panels[: len(shapes)]:
            panel.set_ylabel(_wrapped(label), parse_math=False)
        if handles:
            _plain(panels[0].legend(handles=handles, frameon=False))
    for panel, shape in zip(panels, shapes):
        _draw_panel(panel, shape, [None] if outputs is None else [k for k, _ in outputs])
    return panels[: len(shapes)]


def _handle(number: int, name: str) -> object:
    from matplotlib.lines import Line2D

    return Line2D([], [], color=f"C{number}", label=name)


def _plain(legend: Any) -> None:
    """Show labels as they are: a dollar sign in one is no formula."""
    for text in legend.get_texts():
        text.set_parse_math(False)


def _wrapped(name: str) -> str:
    """A name in lines that fit below a panel, broken at blanks and after underscores where it can be."""
    lines = [""]
    for word in re.findall(r"\s+|[^\s_]*_+|[^\s_]+", name):
        if len(lines[-1]) + len(word.rstrip()) > LONGEST_LINE and lines[-1]:
            lines[-1], word = lines[-1].rstrip(), word.lstrip()
            lines.append("")
        lines[-1] += word
    return "\n".join(textwrap.fill(line, LONGEST_LINE) for line in lines if line.strip())


def _draw_panel(ax: "Axes", shape: Shape, outputs: Sequence[int | None]) -> None:
    ends, at = _range_of(shape), shape.knots
    at = np.concatenate([ends[:1], at[(at > ends[0]) & (at < ends[1])], ends[1:]])
    # Beyond a window the shape is flat: the ends count for all values there.
    for beyond in ((ends[0], min(shape.low, ends[1])), (max(shape.high, ends[0]), ends[1])):
        if beyond[0] < beyond[1]:
            ax.axvspan(*beyond, color="0.9", linewidth=0, zorder=0)
    ax.axhline(0.0, color="0.6", linewidth=0.8, zorder=1)
    for output in outputs:
        color = f"C{output or 0}"
        of = slice(None) if output is None else (slice(None), output)
        # Between knots values are nearly straight, and so are standard deviations.
        values, std = (np.interp(at, shape.knots, y[of]) for y in (shape.values, shape.noise_std))
        half_width = NORMAL_95 * std
        ax.plot(at, values, color=color)
        ax.fill_between(at, values - half_width, values + half_width, color=color, alpha=0.2, linewidth=0)
        if shape.levels.size:
            bars = NORMAL_95 * shape.level_noise_std[of]
            ax.errorbar(
                shape.levels, shape.level_values[of], np.where(np.isnan(bars), 0.0, bars), fmt="o",
                color=color, markersize=4, capsize=2,
            )  # fmt: skip
    ax.set_xlim(*ends)
    ax.set_xlabel(_wrapped(shape.name), parse_math=False)


def _range_of(shape: Shape) -> NDArray[np.float64]:
    """Ends of a panel: where most values lie, within the window but for a margin, and all levels."""
    half_width = REACH * shape.scale
    first, last = max(shape.center - half_width, shape.low), min(shape.center + half_width, shape.high)
    if not first < last:  # a centre far outside of the window, by noise
        first, last = shape.knots[0], shape.knots[-1]
    first, last = min([first, *shape.levels]), max([last, *shape.levels])
    margin = MARGIN * (last - first)
    return np.array([first - margin, last + margin])
