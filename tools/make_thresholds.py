"""Write the thresholds of `skdp.fitting.utility` for the documentation: python tools/make_thresholds.py."""

import csv
from pathlib import Path

from skdp.fitting.utility import THRESHOLDS

TABLE = Path(__file__).parents[1] / "docs" / "tables" / "utility_warnings.csv"
HEADER = ("warning", "method", "given", "of", "why this number")


if __name__ == "__main__":
    with TABLE.open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(HEADER)
        for row in THRESHOLDS:
            side = f"{row.side} {row.number:.3g}"
            writer.writerow((row.warning, row.method, side, row.unit, row.origin))
