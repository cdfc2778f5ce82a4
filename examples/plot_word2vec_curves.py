"""
Word vectors by DP-SGD and by sparse selection
==============================================

Training and test loss of `DPWord2Vec` on the Brown corpus, by step: Figure 1 of Zhang, Mironov and Hejazinia
(2021). There are seven methods: no privacy, DP-SGD at epsilon 30 and 3, and four ways of choosing the numbers that
a step changes, at epsilon 30. The last one, AdaFEST, is not in the paper. The unit is one window, and the
vocabulary is taken as public.

``python examples/word2vec_brown.py --curves`` writes the table that is drawn here. It has all settings, reads the
folder that ``SKDP_DATA`` names, and takes some minutes.
"""

import csv
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

TABLE = "docs/tables/nets/word2vec-curves.csv"


def find_table():
    """A file of this documentation: sphinx-gallery runs in ``examples`` or in the root."""
    found = [place / TABLE for place in (Path.cwd(), *Path.cwd().parents)]
    return next((path for path in found if path.exists()), found[0])


with find_table().open() as file:
    rows = list(csv.DictReader(file))
methods = list(dict.fromkeys(row["method"] for row in rows))


def draw(tables):
    """A panel for each method; all have the same axes."""
    _, panels = plt.subplots(2, 4, figsize=(11, 5.5), sharex=True, sharey=True, layout="constrained")
    panels[1, 3].remove()
    for axes, method in zip(panels.flat, methods):
        for loss, line in (("training loss", "-"), ("test loss", "--")):
            points = [
                (int(row["step"]), float(row[loss]))
                for row in rows
                if row["method"] == method and row["tables"] == tables
            ]
            axes.plot(*np.transpose(points), line, label=loss)
        axes.set_title(method)
    for axes in (*panels[1, :3], panels[0, 3]):
        axes.set_xlabel("steps")
        axes.tick_params(labelbottom=True)
    for axes in panels[:, 0]:
        axes.set_ylabel("loss of a window")
    panels[0, 0].legend()
    plt.show()


# %%
# One table
# ---------
# This is the published model. An untrained table has a loss of 9 log 2 = 6.24, and every method stays near it.

draw("1")

# %%
# Two tables
# ----------
# Targets and negatives have a table of their own, as in word2vec.

draw("2")
