"""
Simulated owners: secure noise and local noise
==============================================

The experiments of Wang (2021, section 6.4) with valid noise: epsilon = 0.5, delta = 0.001, alpha = 0.001. Owners
have equal parts of 50,000 connections of KDD Cup 99 (a denial of service or not) or of 30,000 persons of Adult
(income above 50,000 dollars). Features were prepared by public constants only; a principal component analysis of
the private rows, or dividing by their largest value, would have released information on them.

"Optimality gap" is the training objective above its minimum. "Accuracy loss" is the test accuracy of the
non-private minimiser less the accuracy of the model. The figures are read from a file of this documentation;
``examples/multiparty_experiments.py`` makes it.
"""

# %%
# The first row is a gradient method's gap against its number of rounds. Every plan spends the whole budget.
# Methods with one release are horizontal lines. The second row is the accuracy loss.

import csv
from pathlib import Path

import matplotlib.pyplot as plt

COLOURS = {
    "MPC Grad P": "C0",
    "Rajkumar-Agarwal": "C7",
    "Local Grad P": "C1",
    "MPC Out P": "C2",
    "Local Out P": "C3",
    "Local Obj P": "C4",
    "Pathak, published": "C5",
}
PANELS = {
    "kddcup99": [(100, "random"), (1000, "random"), (1000, "sorted"), (50_000, "random")],
    "adult": [(100, "random"), (1000, "random"), (1000, "sorted"), (30_000, "random")],
}
NAMES = {"kddcup99": "KDD Cup 99", "adult": "Adult", "rand": "RAND HIE, six sites"}
ANY_OWNERS = ("MPC Grad P", "Rajkumar-Agarwal")  # depend on the sizes of the owners only
ROUNDS = (20, 100, 500, 1500)
LEAST = 1e-5  # smaller losses, and gains, are drawn here


def find_table(name):
    """A file of this documentation: sphinx-gallery runs in ``examples`` or in the root."""
    positions = (Path.cwd(), *Path.cwd().parents)
    found = [place / "docs/tables/multiparty" / name for place in positions]
    return next((path for path in found if path.exists()), found[0])


def read(path):
    """Mean and standard error of both measures by data, method, owners, layout and rounds."""
    found = {}
    with Path(path).open() as file:
        for row in csv.DictReader(file):
            key = (row["data"], row["method"], int(row["owners"]), row["layout"])
            values = {name: float(row[name]) for name in row if name.startswith(("gap", "loss"))}
            found.setdefault(key, {})[int(row["rounds"])] = values
    return found


def curve(table, data, method, owners, layout):
    """The cells of a method in a panel."""
    if method in ANY_OWNERS:
        owners = min(key[2] for key in table if key[0] == data)
    if method in (*ANY_OWNERS, "Local Grad P"):
        layout = "random"
    return table.get((data, method, owners, layout), {})


def draw(table, data):
    """Both measures in all panels of a data set."""
    fig, axes = plt.subplots(2, 4, figsize=(13, 6), layout="constrained", sharex=True, sharey="row")
    for column, (owners, layout) in zip(axes.T, PANELS[data]):
        order = ", sorted by label" if layout == "sorted" else ""
        column[0].set_title(f"{owners:,} owners{order}", fontsize=10)
        column[1].set_xlabel("rounds")
        for ax, measure in zip(column, ("gap", "loss")):
            for method, colour in COLOURS.items():
                cells = curve(table, data, method, owners, layout)
                values = {t: max(cells[t][measure], LEAST) for t in sorted(cells)}
                if list(values) == [1]:
                    ax.axhline(values[1], color=colour, linestyle="--", label=method)
                elif values:
                    ax.plot(*zip(*values.items()), color=colour, marker="o", label=method)
            ax.set_yscale("log")
            ax.set_xscale("log")
            ax.set_xticks(ROUNDS, ROUNDS)
            ax.minorticks_off()
    axes[0, 0].set_ylabel("optimality gap")
    axes[1, 0].set_ylabel("accuracy loss")
    fig.suptitle(NAMES[data])
    handles, labels = axes[0, 1].get_legend_handles_labels()
    fig.legend(handles, labels, loc="outside lower center", ncols=7, frameon=False)
    return fig


results = read(find_table("baselines.csv"))
for name in PANELS:
    draw(results, name)
plt.show()

# %%
# Rajkumar and Agarwal spend epsilon = 0.5 in every round: their epsilon is 26 at 500 rounds, and 60 at 1,500
# rounds. "MPC Grad P" is the same curve in every panel, because with owners of equal size the secure sum does not
# depend on who holds which record.
#
# All of that is one process that draws the noise itself, ``engine="plain"``. With ``engine="mpyc"`` three servers
# draw it, and none of them knows it. Their noise is 22 % larger, and a gap that is all noise 1.5 times as large.
# "plain, as three servers" is one process that draws the same noise as three servers. KDD Cup 99, ten owners:

with find_table("engines.csv").open() as file:
    for row in csv.DictReader(file):
        print(
            f"{row['rounds']:>4} rounds, {row['engine']:23} gap {row['gap']} +- {row['gap_error']}, "
            f"accuracy {row['accuracy']} +- {row['accuracy_error']}, {row['seconds']} s"
        )

# %%
# The law is the same, within the errors of five runs. Seconds are of two cores that other work shared, and have
# the start of the servers in them.
#
# Ridge regression of the log medical cost of the RAND health insurance experiment: six sites of unequal size.

for (data, method, *_), cells in sorted(results.items()):
    if data == "rand":
        for rounds, cell in sorted(cells.items()):
            print(
                f"{method:22}{rounds:6} rounds: gap {cell['gap']:.3g} +- {cell['gap_error']:.1g}, "
                f"mean squared error + {cell['loss']:.3g}"
            )
