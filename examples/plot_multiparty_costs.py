"""
Costs of a secure sum of several owners
=======================================

Table 6.2 of Wang (2021) has the seconds and megabytes of one secure sum with Laplace noise, by garbled circuits
between two servers. This page compares it with the sum of skdp: Shamir shares among three servers, with Laplace
noise from random bits that no party knows, or with Gaussian noise from shares. The figures are read from a file of
this documentation; ``examples/multiparty_costs.py`` makes it.
"""

# %%
# Differences between the two measurements:
#
# * *Trust.* The garbled circuits keep the inputs secret while their two servers do not collude. The shares need
#   that two of three servers do not. "Dual execution" holds against servers that cheat, up to one bit that they
#   may learn; the shares do not.
# * *Machines.* The published figures have two machines and a network, which the dissertation does not name. The
#   measurements of skdp have three server processes and all owners on the two cores of one virtual machine (AMD
#   EPYC), which other work shared: the load was between 1 and 2.5. Everything went over 127.0.0.1, without TLS. A
#   network adds its delay for every message that waits for another: these are the "rounds".
# * *Noise.* The published circuit computes logarithms with a library of big integers. The noise of skdp is
#   discrete Laplace noise of scale 2^14 grid units, made of binary digits with a bound on the error of each. Its
#   Gaussian noise is 22 % larger than the noise of a trusted party; its Laplace noise is not larger.
# * *When.* Noise does not depend on data. "Offline" is done before the data, "online" is the sum itself. The
#   published seconds have both; the sum alone took "less than 2 seconds".
#
# "MB" are the megabytes that all parties send; for skdp without the heads of frames, 12 bytes each.

import csv
from pathlib import Path

import matplotlib.pyplot as plt

TASKS = {95: "KDD Cup 98", 104: "Adult", 122: "KDD Cup 99"}
# Table 6.2: MB of garbled circuits, MB of oblivious transfer, seconds, seconds of dual execution.
PUBLISHED = {
    95: (709.72, 32.28, 20.31, 50.67),
    104: (776.93, 35.17, 22.28, 56.46),
    122: (911.35, 41.19, 26.45, 65.21),
}
FEW_OWNERS, ADULT = 3, 104


def find_table(name):
    """A file of this documentation: sphinx-gallery runs in ``examples`` or in the root."""
    positions = (Path.cwd(), *Path.cwd().parents)
    found = [place / "docs/tables/multiparty" / name for place in positions]
    return next((path for path in found if path.exists()), found[0])


def read(path):
    """The measured costs by noise, number of values and number of owners."""
    found = {}
    with Path(path).open() as file:
        for row in csv.DictReader(file):
            key = (row["noise"], int(row["features"]), int(row["owners"]))
            found[key] = {name: float(row[name]) for name in row if name not in ("noise", "owners")}
    return found


costs = read(find_table("costs.csv"))
HEAD = ("values", "", "seconds", "+ online", "MB", "+ online", "rounds", "+ online")
LAYOUT = "{:>6}  {:28}{:>9}{:>10}{:>9}{:>10}{:>8}{:>10}"
print(LAYOUT.format(*HEAD))
for values in sorted({key[1] for key in costs}):
    if values in PUBLISHED:
        circuits, transfer, seconds, dual = PUBLISHED[values]
        sent = circuits + transfer
        print(LAYOUT.format(values, "garbled circuits", seconds, "", f"{sent:.0f}", "", "", ""))
        print(LAYOUT.format(values, "dual execution", dual, "", f"{2 * sent:.0f}", "", "", ""))
    for noise in ("laplace", "gaussian"):
        cost, cells = costs[noise, values, FEW_OWNERS], []
        for measure in ("seconds", "mb", "rounds"):
            cells += [f"{cost[f'{phase}_{measure}']:.3g}" for phase in ("offline", "online")]
        print(LAYOUT.format(values, f"shares, {noise.capitalize()} noise", *cells))

# %%
# Dual execution sends twice as much, as the dissertation says. The published circuits have 391,600 gates a
# feature; shares have no gates.
#
# In the first row are costs by number of features, for three owners, offline and online together. The second row
# has 104 features and more owners. The owners send the same for both kinds of noise, so that two lines lie on each
# other. The number of records is in no figure: an owner adds up its own records before it sends.


def points(ax, measure, rivals):
    """Offline and online together, beside the published figures, by number of values."""
    series = dict(rivals)
    for noise in ("laplace", "gaussian"):
        cells = [costs[noise, values, FEW_OWNERS] for values in TASKS]
        series[f"shares, {noise.capitalize()} noise"] = [
            cell[f"offline_{measure}"] + cell[f"online_{measure}"] for cell in cells
        ]
    for (name, heights), marker in zip(series.items(), "s^oD"):
        ax.plot(range(len(TASKS)), heights, marker, markersize=8, label=name)
    ax.set_yscale("log")
    ax.set_xlim(-0.5, len(TASKS) - 0.5)
    ax.set_xticks(range(len(TASKS)), [f"{values}\n{task}" for values, task in TASKS.items()])
    ax.set_xlabel("features")
    ax.grid(axis="y", alpha=0.3)


def lines(ax, measure):
    """Online by number of owners, and offline, which does not depend on it."""
    for noise, colour in (("laplace", "C2"), ("gaussian", "C3")):
        owners = sorted(key[2] for key in costs if key[:2] == (noise, ADULT))
        for phase, style in (("offline", "--"), ("online", "-")):
            heights = [costs[noise, ADULT, m][f"{phase}_{measure}"] for m in owners]
            label = f"{noise.capitalize()}, {phase}"
            ax.plot(owners, heights, style, color=colour, marker="o", markersize=4, label=label)
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel("owners")
    ax.grid(axis="y", alpha=0.3)


circuits = [PUBLISHED[values] for values in TASKS]
fig, axes = plt.subplots(2, 2, figsize=(9.5, 7.5), layout="constrained")
points(
    axes[0, 0],
    "seconds",
    {"garbled circuits": [c[2] for c in circuits], "dual execution": [c[3] for c in circuits]},
)
points(
    axes[0, 1],
    "mb",
    {"garbled circuits": [c[0] + c[1] for c in circuits], "dual execution": [2 * (c[0] + c[1]) for c in circuits]},
)
lines(axes[1, 0], "seconds")
lines(axes[1, 1], "mb")
for row in axes:
    row[0].set_ylabel("seconds")
    row[1].set_ylabel("megabytes, all parties")
handles, labels = axes[0, 0].get_legend_handles_labels()
fig.legend(handles, labels, loc="outside upper center", ncols=4, frameon=False)
axes[1, 0].legend(frameon=False, fontsize=8)
plt.show()

# %%
# Laplace noise is slow because of its bits: a value takes 924 of them, and most rounds work on one bit of every
# digit. The noise of a plan of T rounds takes T times the bits, all of it before the first round. With Gaussian
# noise the owners' shares are most of the traffic.
