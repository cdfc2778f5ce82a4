"""
A fit of Parquet files in constant memory
=========================================

Generated rows are written to Parquet files and fitted twice: read in blocks of 20,000 rows, and loaded whole. The
coefficients are equal to the last bit. Memory grows with the rows of the table in one case only. The guide
:doc:`/guide/out_of_core` says which engine suits which data.
"""

# %%
# A table is written a piece at a time.

import tempfile
import threading
import warnings
from contextlib import contextmanager
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

from skdp import DPLogisticRegression
from skdp.datasets import parquet_blocks

warnings.simplefilter("ignore")  # the fits have a seed, to be compared

SIZES, PIECE, COLUMNS = (50_000, 100_000, 200_000), 25_000, [f"x{i}" for i in range(20)]
ROLLUP = Path("/proc/self/smaps_rollup")  # Linux alone counts the memory of a process so


def write(folder, n):
    """Write n rows of 20 float32 columns and a label, in files of `PIECE` rows."""
    rng = np.random.default_rng(0)
    slopes = rng.normal(size=len(COLUMNS)) / 4
    for start in range(0, n, PIECE):
        frame = pd.DataFrame(rng.normal(size=(PIECE, len(COLUMNS))).astype(np.float32), columns=COLUMNS)
        frame["label"] = (frame[COLUMNS] @ slopes + rng.logistic(size=PIECE) > 0).astype(np.int8)
        frame.to_parquet(folder / f"part-{start:09}.parquet")


# %%
# Anonymous memory is what a process has allocated; pages of files that the kernel keeps are not part of it.


def anonymous():
    """Megabytes of anonymous memory; nan where the system does not tell."""
    if not ROLLUP.exists():
        return np.nan
    return next(int(line.split()[1]) / 1024 for line in ROLLUP.read_text().splitlines() if "Anonymous" in line)


@contextmanager
def peak(above):
    """A list that gets the most megabytes in use during a block of statements, above a number."""
    found, done, most = [], threading.Event(), [anonymous()]

    def watch():
        while not done.wait(0.01):
            most[0] = max(most[0], anonymous())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield found
    finally:
        done.set()
        watcher.join()
        found.append(most[0] - above)


def fit(*data):
    """Coefficients of a fit."""
    return DPLogisticRegression(classes=[0, 1], random_state=0, accountant=False).fit(*data).coef_


def loaded(folder):
    """The whole table, in C order as blocks are."""
    table = pd.read_parquet(folder)
    return np.ascontiguousarray(table[COLUMNS]), table["label"].to_numpy()


# %%
# The first fits compile and load libraries, which counts for no table. Fits of blocks come before tables are
# loaded, because an allocator keeps memory for later use.

memory = {"in blocks": [], "loaded whole": []}
with tempfile.TemporaryDirectory() as name:
    folders = {n: Path(name) / str(n) for n in (PIECE, *SIZES)}
    for n, folder in folders.items():
        folder.mkdir()
        write(folder, n)
    fit(parquet_blocks(folders[PIECE], target="label", block_rows=20_000))
    fit(*loaded(folders[PIECE]))
    start, found = anonymous(), {}
    for n in SIZES:
        with peak(above=start) as used:
            found[n] = fit(parquet_blocks(folders[n], target="label", block_rows=20_000))
        memory["in blocks"] += used
    for n in SIZES:
        with peak(above=start) as used:
            whole = fit(*loaded(folders[n]))
        memory["loaded whole"] += used
        assert np.array_equal(found[n], whole)

# %%
# Peaks above the memory before all fits. Where the system is not Linux, the figure is empty.

figure, axes = plt.subplots(figsize=(6, 3.2), layout="constrained")
for label, megabytes in memory.items():
    axes.plot(SIZES, megabytes, "o-", label=label)
axes.set(xlabel="rows of 20 columns", ylabel="peak memory of the fit (MB)", xticks=SIZES, ylim=(0, None))
_ = axes.legend(frameon=False)
