"""Accuracy and R2 against the number of records, at three epsilons and without privacy."""

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from tools.pictures.style import SMALL, Theme, plots
from tools.pictures.tables import rows

TICKS = (100, 400, 1600, 6400, 25600)


def draw(theme: Theme) -> Figure:
    found = [tuple(map(float, row)) for row in rows("accuracy_n")]
    figure, (left, right) = plots(theme, 250, 2)
    _panel(left, theme, [(e, n, mean, error) for e, n, mean, error, *_ in found])
    _panel(right, theme, [(e, n, mean, error) for e, n, _, _, mean, error, _ in found])
    left.set(ylabel="accuracy on other records", ylim=(0.48, 0.68))
    left.set_yticks([0.5, 0.55, 0.6, 0.65], ["0.50", "0.55", "0.60", "0.65"])
    left.axhline(0.5, color=theme.line, linewidth=0.8, linestyle=(0, (1, 2)))
    left.set_title("DPLogisticRegression", loc="left")
    right.set(ylabel="R² on other records", ylim=(-0.06, 0.54))
    right.set_yticks([0, 0.1, 0.2, 0.3, 0.4, 0.5], ["0", "0.1", "0.2", "0.3", "0.4", "0.5"])
    right.axhline(0.0, color=theme.line, linewidth=0.8, linestyle=(0, (1, 2)))
    right.set_title("DPLinearRegression", loc="left")
    for ax, places in ((left, LEFT), (right, RIGHT)):
        for (text, x, y), colour in zip(places, (theme.muted, theme.orange, theme.blue, theme.green)):
            ax.text(x, y, text, color=colour, size=SMALL, ha="right" if text in ("ε = 4", "ε = 1") else "left")
    return figure


LEFT = (("without privacy", 95, 0.655), ("ε = 4", 138, 0.585), ("ε = 1", 470, 0.592), ("ε = 0.5", 950, 0.575))
RIGHT = (("without privacy", 95, 0.505), ("ε = 4", 155, 0.2), ("ε = 1", 600, 0.2), ("ε = 0.5", 1180, 0.12))


def _panel(ax: Axes, theme: Theme, found: list[tuple[float, float, float, float]]) -> None:
    for epsilon, colour, marker in (
        (float("inf"), theme.muted, ""),
        (4.0, theme.orange, "^"),
        (1.0, theme.blue, "o"),
        (0.5, theme.green, "s"),
    ):
        _, numbers, means, errors = zip(*(row for row in found if row[0] == epsilon))
        ends = [[mean + sign * error for mean, error in zip(means, errors)] for sign in (-1, 1)]
        ax.fill_between(numbers, *ends, color=colour, alpha=0.25, linewidth=0)
        dashes = "-" if marker else (0, (5, 3))
        ax.plot(numbers, means, color=colour, marker=marker, markersize=4, linewidth=1.5, linestyle=dashes)
    ax.set_xscale("log", base=2)
    ax.set_xticks(TICKS, [f"{n:,}" for n in TICKS])
    ax.minorticks_off()
    ax.set_xlim(62, 33_000)
    ax.set_xlabel("records (10 columns, δ = $10^{-6}$)")
