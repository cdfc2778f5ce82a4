"""
Costs of a secure sum: seconds, megabytes, messages in a row
============================================================

This script measures the loopback engine: three server processes on 127.0.0.1, and all owners in one process. It
measures one opening by number of values and by number of owners, with Gaussian noise from shares and with Laplace
noise from shared random bits, scale and standard deviation 2^14 units of the grid.

* "Offline" is laying the noise of one opening, before the data. "Online" is the opening itself.
* Seconds are medians, from all parties connected, after one small opening of each kind: the servers' kernels and
  mpyc are loaded. The machine's load is in the table; all parties share its cores.
* Megabytes are sent by all parties together, without the heads of frames (and without TLS, which loopback does not
  have).
* "Rounds" are messages that wait for one another. Offline these are the messages of one server to another.
  Online there are three: owners to servers, servers to servers, servers to owners. Laplace noise counts the
  message with keys, and the one that ends the phase.

``--fits`` fits gradient perturbation to KDD Cup 99 for ten owners with engine="plain" and engine="mpyc". The parts
of the noise of two honest servers are enough, so that all three draw 22 % more. "plain, as three servers" is one
process that draws as much: it must agree with "mpyc". Seeds reach the plain engines only.

The documentation does not run the script, it reads its tables::

    SKDP_DATA=/path/to/data python examples/multiparty_costs.py --openings --fits
"""

import argparse
import csv
import os
import time
from pathlib import Path

import multiparty_experiments as experiments
import numpy as np

import skdp
from skdp.multiparty.engine.loopback import LoopbackEngine

TABLES = Path(__file__).resolve().parent.parent / "docs" / "tables" / "multiparty"
SCALE = 2.0**14
FEATURES, OWNERS = (95, 104, 122, 1000), (3, 10, 100, 1000)
FEW_OWNERS, ADULT = 3, 104
REPEATS = 5
LONG = 500  # values from which Laplace noise is laid once only: it takes most of a minute
OPENINGS_HEAD = (
    "noise", "features", "owners", "repeats", "offline_seconds", "offline_mb", "offline_rounds",
    "online_seconds", "online_mb", "online_rounds", "load",
)  # fmt: skip

FITTED, FIT_OWNERS, FIT_ROUNDS = "kddcup99", 10, (20, 100, 500)
FITS_HEAD = (
    "data", "engine", "owners", "rounds", "seeds", "gap", "gap_error", "accuracy", "accuracy_error",
    "best_accuracy", "epsilon", "seconds", "load",
)  # fmt: skip


class AsThreeServers:
    """One process that draws the noise of three servers, of which one may be corrupted."""

    name, numerical_error = "one process, for a comparison", LoopbackEngine(1).numerical_error

    def __init__(self, seed):
        self.rng = np.random.default_rng(seed)

    def open(self, integers, sigma):
        """The sum and the noise; a rounded Gaussian of NumPy's, for a comparison of accuracy only."""
        total = sum(integers)
        noise = self.rng.normal(scale=np.sqrt(3 / 2) * sigma, size=total.shape)
        return total + np.rint(noise).astype(np.int64)


def measured(engine, act):
    """Seconds, bytes and frames of a call."""
    before, start = engine.traffic(), time.perf_counter()
    act()
    seconds, after = time.perf_counter() - start, engine.traffic()
    return (seconds, after.sent_bytes - before.sent_bytes, after.sent_frames - before.sent_frames)


def opening(engine, noise, features, repeats):
    """One row of the table."""
    prepare, open_sum = {
        "gaussian": (engine.prepare, engine.open),
        "laplace": (engine.prepare_laplace, engine.open_laplace),
    }[noise]
    integers = [np.arange(features) + i for i in range(engine.n_owners)]
    offline = [measured(engine, lambda: prepare(1, features, SCALE)) for _ in range(repeats)]
    online = [measured(engine, lambda: open_sum(integers, SCALE)) for _ in range(repeats)]
    k = engine.n_servers
    pairs, control = k * (k - 1), 2 * k  # a command is a frame to every server, and one back
    before_data = (offline[0][2] - control) / pairs
    of_owners = (online[0][2] - control - pairs) / (engine.n_owners * k)
    cells = []
    for found, rounds in ((offline, before_data), (online, of_owners + 1)):
        seconds, sent, _ = np.median(found, axis=0)
        cells += [f"{seconds:.3g}", f"{sent / 1e6:.4g}", f"{rounds:g}"]
    return (noise, features, engine.n_owners, repeats, *cells, f"{os.getloadavg()[0]:.1f}")


def openings():
    """All rows, by number of values and by number of owners."""
    for owners in OWNERS:
        with LoopbackEngine(owners) as engine:
            for noise in ("gaussian", "laplace"):
                opening(engine, noise, 1, 1)  # loads kernels and mpyc
                for features in FEATURES if owners == FEW_OWNERS else (ADULT,):
                    long = noise == "laplace" and features > LONG
                    yield opening(engine, noise, features, 1 if long else REPEATS)


def fits(seeds):
    """Gap, accuracy and seconds of the same fit on both engines; a fit starts its own servers."""
    load, kind = experiments.PROBLEMS[FITTED]
    problem = kind(load())
    data = problem.data
    owners = experiments.owners_of(FITTED, data, FIT_OWNERS, "random")
    for rounds in FIT_ROUNDS:
        for name in ("plain", "plain, as three servers", "mpyc"):
            found = []
            for seed in range(seeds):
                engine = AsThreeServers(seed) if "servers" in name else name
                model = skdp.MPCGradientPerturbationClassifier(
                    epsilon=experiments.EPSILON, delta=experiments.DELTA, alpha=experiments.ALPHA, row_norm=1.0,
                    max_iter=rounds, engine=engine, random_state=seed, **problem.more,
                )  # fmt: skip
                start = time.perf_counter()
                model.fit(data.X, data.y, owners=owners)
                seconds = time.perf_counter() - start
                gap, loss = problem.measured(model)
                found.append((gap, problem.test - loss, seconds))
            gaps, accuracies, seconds = np.array(found).T
            yield (
                FITTED, name, FIT_OWNERS, rounds, seeds, f"{gaps.mean():.3g}", error(gaps),
                f"{accuracies.mean():.5f}", error(accuracies), f"{problem.test:.5f}",
                f"{model.privacy_.epsilon:.3g}", f"{np.median(seconds):.3g}",
                f"{os.getloadavg()[0]:.1f}",
            )  # fmt: skip


def error(values):
    """Standard error of a mean."""
    return f"{values.std(ddof=1) / np.sqrt(len(values)):.2g}"


def write(name, head, rows):
    """A table, row by row as it is measured."""
    TABLES.mkdir(parents=True, exist_ok=True)
    with (TABLES / name).open("w", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(head)
        for row in rows:
            table.writerow(row)
            file.flush()
            print(*row, flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[1])
    parser.add_argument("--openings", action="store_true")
    parser.add_argument("--fits", action="store_true")
    parser.add_argument("--seeds", type=int, default=5, help="of the fits; at least 2")
    args = parser.parse_args()
    if args.openings:
        write("costs.csv", OPENINGS_HEAD, openings())
    if args.fits:
        write("engines.csv", FITS_HEAD, fits(args.seeds))


if __name__ == "__main__":
    main()
