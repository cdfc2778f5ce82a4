"""Epsilon: the outputs of a fit on two neighbouring data sets, and an attacker's best true positive rate."""

import math

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from scipy.stats import norm

from skdp.privacy.accounting import gaussian_mu
from tools.pictures.style import SMALL, Theme, plots

EPSILON, MU = 1.0, 1.0  # of the left panel: delta is large enough to be seen
DELTA = 1e-6  # of the right panel


def draw(theme: Theme) -> Figure:
    figure, (left, right) = plots(theme, 235, 2, width_ratios=(1.15, 1.0))
    _outputs(left, theme)
    _attacker(right, theme)
    return figure


def _outputs(ax: Axes, theme: Theme) -> None:
    x = np.linspace(-4, 4, 161)
    with_record, without = norm.pdf(x, MU / 2), norm.pdf(x, -MU / 2)
    bound = math.exp(EPSILON) * without
    ax.grid(visible=False)
    ax.fill_between(x, without, color=theme.blue, alpha=0.12, linewidth=0)
    ax.plot(x, without, color=theme.blue)
    ax.plot(x, with_record, color=theme.orange)
    ax.plot(x, bound, color=theme.blue, linestyle=(0, (4, 2)), linewidth=1.2)
    ax.fill_between(x, bound, with_record, where=with_record > bound, color=theme.orange, alpha=0.55, linewidth=0)
    at = 0.45
    low, high = norm.pdf(at, -MU / 2), norm.pdf(at, MU / 2)
    ax.annotate("", (at, high), (at, low), arrowprops={"arrowstyle": "<->", "color": theme.text, "lw": 1.1})
    for text, point, place, colour in (
        ("ratio of densities:\nat most $e^ε$", (at, 0.33), (1.75, 0.485), theme.text),
        ("δ: area above\n$e^ε$ × density", (1.55, 0.16), (2.2, 0.26), theme.text),
        ("fit on D", (1.02, 0.35), (2.6, 0.40), theme.orange),
        ("fit on D'", (-1.4, 0.265), (-4.6, 0.30), theme.blue),
        ("$e^ε$ × density\nof fit on D'", (-1.85, 0.435), (-4.6, 0.48), theme.blue),
    ):
        line = {"arrowstyle": "-", "color": theme.muted, "lw": 0.8, "shrinkA": 2, "shrinkB": 1}
        ax.annotate(text, point, place, size=SMALL, color=colour, va="center", arrowprops=line)
    ax.set(xlim=(-4.8, 5.2), ylim=(0, 0.58), xticks=[], yticks=[], xlabel="released number", ylabel="density")
    ax.set_title("Outputs: D and D' differ in one record", loc="left")


def _attacker(ax: Axes, theme: Theme) -> None:
    false = np.concatenate([[0.0], norm.cdf(np.linspace(-3.5, 3.5, 101)), [1.0]])
    ax.plot((0, 1), (0, 1), color=theme.line, linestyle=(0, (3, 3)), linewidth=1.2)
    ax.text(0.75, 0.70, "guessing", color=theme.muted, size=SMALL, rotation=38, ha="center", va="top")
    ax.axvline(0.05, color=theme.muted, linewidth=0.8, linestyle=(0, (1, 2)))
    ax.text(0.56, 0.34, "at 5 % false positives:", size=SMALL)
    for line, (epsilon, colour) in enumerate(((4.0, theme.orange), (1.0, theme.blue), (0.5, theme.green))):
        mu = gaussian_mu(epsilon, DELTA)
        rate = norm.cdf(norm.ppf(0.05) + mu)
        ax.plot(false, norm.cdf(norm.ppf(false) + mu), color=colour)
        ax.plot(0.05, rate, "o", color=colour, markersize=4)
        ax.text(0.56, 0.245 - 0.09 * line, f"ε = {epsilon:g}: {100 * rate:.0f} %", color=colour)
    ticks = (0, 0.25, 0.5, 0.75, 1)
    names = [f"{tick:.0%}".replace("%", " %") for tick in ticks]
    ax.set(xlim=(0, 1), ylim=(0, 1), xlabel="false positive rate", ylabel="highest true positive rate")
    ax.set_xticks(ticks, names)
    ax.set_yticks(ticks, names)
    ax.set_title("Attack: was it D or D'? (δ = $10^{-6}$)", loc="left")
