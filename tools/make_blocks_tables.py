"""Write the tables of fits of blocks for the documentation: python tools/make_blocks_tables.py."""

import csv
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np

import skdp
from skdp.base.blocks import Blocks

FOLDER = Path(__file__).parents[1] / "docs" / "tables" / "blocks"

TAKEN = "yes"  # in the column of reasons
N_ROWS, N_FEATURES, BLOCK_ROWS = 20_000, 20, 5_000  # of the fits whose passes are counted

# The plan on paper: 500 million rows of 100 float32 columns on 100 machines.
MACHINES, ROWS, FEATURES = 100, 500_000_000, (100, 1000)
TASK = 1e-3  # seconds of Dask's scheduler for a task, by Dask's documentation
SLOTS = 16  # threads of a machine
LINK = 1e9  # bytes a second of the client's network: 10 Gbit/s
CELL = 5e-10  # seconds a cell and thread: a fit of DPIGHTClassifier, 1,000,000 x 20 float32, by its releases
PRODUCT = 1e-10  # seconds a multiplication and thread of BLAS: 10 GFLOP/s; an assumption
ADDED = 2**20  # bytes of an answer above which the workers add (skdp.distributed)


def estimators() -> Iterator[tuple[str, str]]:
    """Yield names of estimators, and whether they take blocks or why not."""
    by_reason: dict[str, list[str]] = {}
    for name, kind in skdp.all_estimators():
        if hasattr(kind, "_no_blocks"):
            by_reason.setdefault(kind._no_blocks or TAKEN, []).append(name)
    for reason, names in sorted(by_reason.items(), key=lambda item: (item[0] != TAKEN, item[1])):
        yield ", ".join(f"`{name}`" for name in names), reason


def passes() -> Iterator[tuple[str, int]]:
    """Yield fits with default parameters and the number of passes over the data that each makes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N_ROWS, N_FEATURES))
    score = X @ rng.normal(size=N_FEATURES) / 4 + rng.normal(size=N_ROWS) / 2
    labels, settings = (score > 0).astype(int), {"random_state": 0, "accountant": False}
    classes = {"classes": (0, 1), **settings}
    fits = (
        (skdp.DPLogisticRegression(**classes), labels),
        (skdp.DPLinearRegression(**settings), score),
        (skdp.DPAdaSSPRegressor(**settings), score),
        (skdp.DPStandardScaler(**settings), None),
        (skdp.DPIGHTClassifier(**classes), labels),
        (skdp.DPSGDRegressor(**settings), score),
    )
    for model, target in fits:
        read = []

        def blocks(read: list[int] = read, target: np.ndarray | None = target) -> Iterator[object]:
            for start in range(0, N_ROWS, BLOCK_ROWS):
                rows = slice(start, start + BLOCK_ROWS)
                yield X[rows] if target is None else (X[rows], target[rows])
            read.append(1)  # to the end: a look at the first block is no pass

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(Blocks(blocks))
        yield f"`{type(model).__name__}`", len(read)


def machines() -> Iterator[tuple[str, ...]]:
    """Yield statistics: bytes of an answer and at the client, seconds of the client and of the machines."""
    for features in FEATURES:
        rows = ROWS / MACHINES
        for name, numbers, arithmetic in (
            ("count", 1, rows * features * CELL / SLOTS),
            ("gradient", features, rows * features * CELL / SLOTS),
            ("second moment", 3 * (features + 2) ** 2, rows * features**2 * PRODUCT / SLOTS),
        ):
            answer = 8 * numbers
            received = answer * (MACHINES if answer <= ADDED else 2)
            client = MACHINES * TASK + received / LINK
            slower = "client" if client > arithmetic else "machines"
            sizes = _bytes(answer), _bytes(received)
            yield name, str(features), *sizes, f"{client:.2g}", f"{arithmetic:.2g}", slower


def _bytes(number: float) -> str:
    for unit, size in (("MB", 1e6), ("kB", 1e3)):
        if number >= size:
            return f"{number / size:.3g} {unit}"
    return f"{number:.0f} B"


TABLES = {
    "estimators": (("estimators", "blocks, or why not"), estimators),
    "passes": (("fit with default parameters", "passes"), passes),
    "machines": (
        ("statistic", "columns", "answer of a machine", "client receives", "client, s", "machines, s", "slower"),
        machines,
    ),
}


def write(name: str, header: Iterable[str], rows: Iterable[Iterable[object]]) -> None:
    """Write a table."""
    FOLDER.mkdir(exist_ok=True)
    with (FOLDER / f"{name}.csv").open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)


if __name__ == "__main__":
    for name, (header, rows) in TABLES.items():
        write(name, header, rows())
