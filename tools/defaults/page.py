"""Write the table and the picture of ``docs/contributing/defaults.rst``: ``python -m tools.defaults.page``."""

import csv
import io
from dataclasses import fields
from pathlib import Path

from tools.defaults.override import groups
from tools.defaults.run import RESULTS

DOCS = Path(__file__).parents[2] / "docs"
TABLE, PICTURE = DOCS / "tables" / "defaults.csv", DOCS / "_static" / "defaults.svg"
HEADER = ("name", "default", "unit", "what other values do", "chosen by", "moves skills by")
# Legible on white and on dark grey.
GREY, COLOURS = "#808080", {"0.5": "#d9822b", "1": "#2a8fbd", "3": "#8a63d2"}


def results(stage):
    """The rows of a stage of the committed run."""
    with RESULTS.open(newline="") as file:
        return [row for row in csv.DictReader(file, delimiter="\t") if row["stage"] == stage]


def table():
    """The text of the table: all numbers, and how far doubling or halving moves skills, at most."""
    moved = {}
    for row in results("screen"):
        moved[row["constant"]] = max(moved.get(row["constant"], 0.0), float(row["moved"]))
    file = io.StringIO()
    writer = csv.writer(file, lineterminator="\n")
    writer.writerow(HEADER)
    for group, values in groups().items():
        for field in fields(values):
            name, known = f"{group}.{field.name}", field.metadata
            measured = f"{moved[name]:.2f}" if name in moved else ""
            default = getattr(values, field.name)
            default = f"{default:.4g}" if isinstance(default, float) else str(default)
            texts = (known[key].replace("`", "``") for key in ("unit", "effect", "origin"))
            writer.writerow((name, default, *texts, measured))
    return file.getvalue()


def curves():
    """For each constant of a curve, in order, and each epsilon: (factor, skill, standard error)."""
    found = {}
    at_default = {row["epsilon"]: row for row in results("baseline") if not row["table"]}
    for row in results("curve"):
        points = found.setdefault(row["constant"], {e: [] for e in at_default})[row["epsilon"]]
        points.append((float(row["factor"]), float(row["gain"]), float(row["gain_se"])))
    for points in (points for of_epsilons in found.values() for points in of_epsilons.values()):
        points.append((1.0, 0.0, 0.0))
        points.sort()
    return found


def draw(found):
    """Ten panels: the median skill less the one at the default, against the multiple of the default."""
    import matplotlib

    matplotlib.use("agg")
    matplotlib.rcParams.update(
        {"svg.fonttype": "none", "svg.hashsalt": "skdp", "font.size": 9, "text.color": GREY}
    )
    from matplotlib import pyplot as plt

    figure, axes = plt.subplots(2, 5, figsize=(11, 4.6), sharex=True, sharey=True, layout="constrained")
    for ax, (name, of_epsilons) in zip(axes.flat, found.items(), strict=True):
        for epsilon, points in of_epsilons.items():
            x, y, error = zip(*points, strict=True)
            ax.errorbar(x, y, error, color=COLOURS[epsilon], lw=1.2, label=f"epsilon {epsilon}")
        ax.axhline(0.0, color=GREY, lw=0.5)
        ax.set_xscale("log", base=2)
        ax.set_xticks([0.25, 1.0, 4.0], ["1/4", "1", "4"])
        ax.set_ylim(-0.5, 0.1)
        ax.set_title(name, fontsize=8, color=GREY)
        ax.tick_params(colors=GREY)
        ax.patch.set_alpha(0.0)
        for spine in ax.spines.values():
            spine.set_color(GREY)
    figure.supxlabel("multiple of the default (of the odds, where it is a part of 1)", fontsize=9, color=GREY)
    figure.supylabel("median skill, less that at the default", fontsize=9, color=GREY)
    axes[0, 0].legend(frameon=False, fontsize=7, labelcolor=GREY, loc="lower center")
    figure.savefig(PICTURE, transparent=True, metadata={"Date": None})


if __name__ == "__main__":
    TABLE.write_text(table())
    draw(curves())
