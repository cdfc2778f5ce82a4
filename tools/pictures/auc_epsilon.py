"""AUC against epsilon on the bundled RAND data, for one record and for one person as the unit."""

from matplotlib.figure import Figure

from tools.pictures.measure import DELTA
from tools.pictures.style import SMALL, Theme, plots
from tools.pictures.tables import rows


def draw(theme: Theme) -> Figure:
    found = [
        (unit, float(epsilon), float(auc), float(error)) for unit, epsilon, auc, error, _ in rows("auc_epsilon")
    ]
    figure, (ax,) = plots(theme, 262)
    exact = next(auc for unit, _, auc, _ in found if unit == "none")
    ax.axhline(exact, color=theme.muted, linestyle=(0, (5, 3)), linewidth=1.3)
    ax.annotate(
        f"without privacy (scikit-learn): {exact:.3f}",
        (0.25, exact),
        (0, 4),
        textcoords="offset points",
        color=theme.muted,
    )
    for unit, name, colour, marker, place in (
        ("record", "one record is protected", theme.blue, "o", (0.25, 0.7272)),
        ("group", "one person is protected\n(all records of that person)", theme.orange, "s", (0.62, 0.692)),
    ):
        _, epsilons, aucs, errors = zip(*(row for row in found if row[0] == unit))
        ax.errorbar(epsilons, aucs, errors, color=colour, marker=marker, markersize=5, capsize=3)
        ax.text(*place, name, color=colour, va="top")
        at_one = aucs[epsilons.index(1.0)]
        ax.annotate(f"{at_one:.3f}", (1.0, at_one), (4, -12), textcoords="offset points", color=colour, size=SMALL)
    ax.set_xscale("log", base=2)
    epsilons = sorted({epsilon for unit, epsilon, *_ in found if unit != "none"})
    ax.set_xticks(epsilons, [f"{epsilon:g}" for epsilon in epsilons])
    ax.minorticks_off()
    ax.set_yticks([0.64, 0.66, 0.68, 0.7, 0.72], ["0.64", "0.66", "0.68", "0.70", "0.72"])
    ax.set(ylim=(0.64, 0.737), ylabel="AUC on other people")
    power = f"{DELTA:.0e}".split("e-0")[1]
    ax.set_xlabel(f"ε of one model (δ = $10^{{-{power}}}$); smaller is more private")
    return figure
