"""Measure how flat each choice of a default is: ``python -m tools.defaults.run [--constant NAME] [--quick]``.

Three stages, each a part of ``results.tsv``:

* baseline: the median skill over all tables, and the skill of each table.
* screen: each constant doubled and halved, on a few tables. The ten whose skills move most are drawn.
* curve: these ten at 1/4, 1/2, 2 and 4 times their default, on all tables.

A constant that is a part or a probability has its odds multiplied in place of itself. Skill is (score - constant)
/ (without privacy - constant), of R2 or minus the log loss. The noise of a seed is the same at each value, so that
differences are paired, as long as the releases keep their shapes. Standard errors are over seeds, which split a
table and draw the noise. ``moved`` is the root mean square over tables of the gain, less what noise adds to it.
"""

import argparse
import csv
import time
from pathlib import Path

import numpy as np

from tools.defaults.measure import EPSILONS, FACTORS, constants, median, reads, scale, scaled, skills, skills_at
from tools.defaults.tables import NAMES, QUICK

RESULTS = Path(__file__).with_name("results.tsv")
COLUMNS = (
    "stage", "constant", "factor", "value", "table", "epsilon", "tables", "seeds", "skill", "skill_se",
    "gain", "gain_se", "moved", "harmed", "worst_gain", "worst_table", "failed",
)  # fmt: skip
SEEDS, SCREEN_SEEDS, DRAWN = 6, 4, 10
SCREEN_EPSILONS = (0.5, 3.0)
# A table is harmed where it loses more than this and than three standard errors.
HARM = 0.01
QUICK_TABLES, QUICK_CONSTANT = ("quakes", "turnout"), "steps.row_norm"


def baseline(names, seeds, epsilons):
    """Rows of the baseline, the tables that are a scale, and their skills."""
    found = skills(names, seeds, epsilons)
    is_scale = scale(found)
    names, found = [name for name, good in zip(names, is_scale, strict=True) if good], found[is_scale]
    rows, (middle, error) = [], median(found)
    for k, epsilon in enumerate(epsilons):
        known = {"stage": "baseline", "epsilon": epsilon, "seeds": seeds, "factor": 1.0}
        rows.append({**known, "tables": len(names), "skill": middle[k], "skill_se": error[k]})
        for name, own in zip(names, found[:, k], strict=True):
            spread = own.std(ddof=1) / np.sqrt(seeds)
            rows.append({**known, "table": name, "skill": own.mean(), "skill_se": spread})
    return rows, names, found


def compared(stage, name, factor, names, at_default, epsilons):
    """Rows of one constant at one multiple of its default, against ``at_default``; one for each epsilon."""
    kept = [k for k, table in enumerate(names) if reads(name, table)]
    before, seeds = at_default[kept], at_default.shape[2]
    chosen = scaled(name, factor)
    found, failed = skills_at([names[k] for k in kept], seeds, epsilons, **chosen)
    moved = found - before
    of_tables, spread = moved.mean(axis=2), moved.std(axis=2, ddof=1) / np.sqrt(seeds)
    gains = np.median(found, axis=0) - np.median(before, axis=0)
    middle, error = median(found)
    harmed = of_tables < -np.maximum(HARM, 3.0 * spread)
    value = next(iter(chosen.values()))
    for k, epsilon in enumerate(epsilons):
        worst = int(of_tables[:, k].argmin())
        yield {
            "stage": stage, "constant": name, "factor": factor, "value": value, "epsilon": epsilon,
            "tables": len(kept), "seeds": seeds, "skill": middle[k], "skill_se": error[k],
            "gain": gains[k].mean(), "gain_se": gains[k].std(ddof=1) / np.sqrt(seeds),
            "moved": max(0.0, float(np.mean(of_tables[:, k] ** 2 - spread[:, k] ** 2))) ** 0.5,
            "harmed": int(harmed[:, k].sum()),
            "worst_gain": of_tables[worst, k], "worst_table": names[kept[worst]],
            "failed": int(failed[:, k].sum()),
        }  # fmt: skip


def most_moving(rows):
    """The constants whose doubling or halving moved the skills of tables most, the first one most."""
    moved = {}
    for row in rows:
        key = row["constant"], row["factor"]
        moved.setdefault(key, []).append(float(row["moved"]))
    largest = {}
    for (name, _), values in moved.items():
        largest[name] = max(largest.get(name, 0.0), float(np.mean(values)))
    return sorted(largest, key=largest.__getitem__, reverse=True)


class Writer:
    """Rows of a table of tab-separated values, written as they come."""

    def __init__(self, path):
        self.file = path.open("w", newline="") if path else None
        self.rows = csv.DictWriter(self.file, COLUMNS, delimiter="\t", lineterminator="\n") if path else None
        if self.rows:
            self.rows.writeheader()

    def write(self, row):
        row = {key: f"{v:.4g}" if isinstance(v, float) else str(v) for key, v in row.items()}
        print("\t".join(f"{key}={value}" for key, value in row.items()), flush=True)
        if self.rows:
            self.rows.writerow(row)
            self.file.flush()


def run(out, tables, seeds, epsilons, screen, drawn):
    """Run the stages; ``screen`` are names of constants, and ``drawn`` how many of them get a curve."""
    writer, rows = Writer(out), []
    found, names, at_default = baseline(tables, seeds, epsilons)
    for row in found:
        writer.write(row)
    if drawn < len(screen):
        quick = [name for name in QUICK if name in names]
        before = skills(quick, SCREEN_SEEDS, SCREEN_EPSILONS)
        for name in screen:
            for factor in (0.5, 2.0):
                for row in compared("screen", name, factor, quick, before, SCREEN_EPSILONS):
                    writer.write(row)
                    rows.append(row)
        screen = most_moving(rows)[:drawn]
    for name in screen:
        for factor in FACTORS:
            for row in compared("curve", name, factor, names, at_default, epsilons):
                writer.write(row)


def main(args=None):
    parser = argparse.ArgumentParser(description=__doc__.partition(":")[0])
    parser.add_argument("--constant", help="group.name: the curve of this constant only")
    parser.add_argument("--quick", action="store_true", help="two tables, two seeds, one epsilon, one constant")
    parser.add_argument("--out", type=Path, help="where the rows go; results.tsv for the whole run")
    given, known = parser.parse_args(args), constants()[0]
    if given.constant and given.constant not in known:
        parser.error(f"--constant must be one of {', '.join(known)}")
    screen = [given.constant] if given.constant else [QUICK_CONSTANT] if given.quick else list(known)
    whole = not (given.constant or given.quick)
    tables, seeds, epsilons = (QUICK_TABLES, 2, (1.0,)) if given.quick else (NAMES, SEEDS, EPSILONS)
    run(given.out or (RESULTS if whole else None), tables, seeds, epsilons, screen, DRAWN if whole else 1)
    print(f"{time.process_time():.0f} s of processor time")


if __name__ == "__main__":
    main()
