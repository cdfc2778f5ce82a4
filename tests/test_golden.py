"""Seeded runs of the whole library against their records, bit by bit.

The test guards a rebuild that changes no behaviour; it goes when the rebuild ends. The records are those of one
kind of machine (processor, NumPy, SciPy, numba). Elsewhere last bits differ, and the test skips. From the root::

    python tests/test_golden.py check [REGEX] [-j 2]      compare; says which keys differ, and in what
    python tests/test_golden.py record [REGEX] [-j 2]     record anew, of all keys or of those that match

A key is "Estimator | case". Its record has, each by itself: hashes of the fitted attributes; of predictions; of
the ledger (the numbers of ``privacy_.mechanisms``, claim and numerical error); of four parts of the whole report,
words included; of each warning; or the type and the message of a refusal. Of objects inside the library, such as
the layers of a net, it has the numbers alone, without names, order or nesting.

Where a parameter or a value gets another name, the cases stay as they are: add a line to ``SPELLED`` in
``tests/golden/seen.py``, which has examples. It turns the old words of a case into the new ones. Where words of
reports, warnings or refusals change on purpose, run ``check``, look at what differs, and ``record`` these keys.
"""

import os
import sys

if __name__ == "__main__":
    os.environ["OPENBLAS_NUM_THREADS"] = "1"  # LAPACK's solvers sum in another order with more threads
    sys.path[0] = os.path.dirname(sys.path[0])  # the root, so that `tests.golden` is found

import argparse
import collections
import functools
import hashlib
import json
import multiprocessing
import re
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.linalg
from threadpoolctl import threadpool_limits

from tests.golden import doors, linear, nets, releases, seen

FIXTURE = Path(__file__).parent / "data" / "golden.json"
PARTS = (linear, nets, doors, releases)


def machine():
    """What decides about last bits."""
    from llvmlite import binding
    from numba import __version__ as numba_version

    rng = np.random.default_rng(0)
    product = rng.normal(size=(97, 61)) @ rng.normal(size=(61, 83))
    bits = hashlib.sha256(product.tobytes()).hexdigest()[:12]
    return f"{binding.get_host_cpu_name()} {np.__version__} {scipy.__version__} {numba_version} {bits}"


@functools.cache
def all_cases():
    """Every case by its key."""
    found = {}
    for part in PARTS:
        more = part.cases()
        assert not found.keys() & more.keys()
        found.update(more)
    return found


RECORDED = json.loads(FIXTURE.read_text()) if FIXTURE.exists() else {"machine": "", "runs": {}}
RUNS = RECORDED["runs"]


def differing(old, new):
    """In what two records differ, in words."""
    found = []
    for kind in sorted(old.keys() | new.keys()):
        one, other = old.get(kind), new.get(kind)
        if one == other:
            continue
        if isinstance(one, dict) and isinstance(other, dict):
            names = [key for key in sorted(one.keys() | other.keys()) if one.get(key) != other.get(key)]
            found.append(f"{kind} ({', '.join(names)})")
        else:
            found.append(kind if one is not None and other is not None else f"{kind}: was {one}, is {other}")
    return "; ".join(found)


def timed(key):
    """A key, its record, its texts and the seconds that it took."""
    start = time.perf_counter()
    record, texts = seen.run(all_cases()[key])
    return key, record, texts, time.perf_counter() - start


def runs(keys, n_jobs):
    """Run cases, those of an estimator together."""
    if n_jobs == 1:
        yield from map(timed, keys)
        return
    with multiprocessing.get_context("spawn").Pool(n_jobs) as pool:
        yield from pool.imap_unordered(timed, keys, chunksize=12)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted({key.split(" | ")[0] for key in RUNS}))
def test_runs_are_those_recorded(name):
    if machine() != RECORDED["machine"]:
        pytest.skip("recorded on another kind of machine; last bits differ")
    wrong = []
    with threadpool_limits(1):  # as a program, this file sets OPENBLAS_NUM_THREADS
        for key in [key for key in RUNS if key.split(" | ")[0] == name]:
            _, record, texts, _ = timed(key)
            if record != RUNS[key]:
                wrong.append(f"{key}: {differing(RUNS[key], record)}; {texts}")
    assert not wrong, "\n".join(wrong)


def check(pattern, n_jobs):
    """Print what differs; the number of keys that do."""
    keys = [key for key in RUNS if pattern.search(key)]
    wrong = [key for key in RUNS.keys() - all_cases().keys() if pattern.search(key)]
    for key in wrong:
        print(f"{key}: there is no such case any more")
    for key, record, texts, _ in runs([key for key in keys if key not in wrong], n_jobs):
        if record != RUNS[key]:
            wrong.append(key)
            what = differing(RUNS[key], record)
            told = texts if "warnings" in what or "refusal" in what else []
            print(f"{key}: {what}", *told, sep="\n    ", flush=True)
    print(f"{len(keys)} runs, {len(wrong)} differ", file=sys.stderr)
    return len(wrong)


def record(pattern, n_jobs, verbose):
    """Record anew, and print how many runs there are of each kind."""
    found, seconds, refused = {}, collections.Counter(), 0
    for key, kept, texts, took in runs([key for key in all_cases() if pattern.search(key)], n_jobs):
        found[key] = kept
        seconds[key] = took
        if "refusal" in kept:
            refused += 1
            if verbose:
                print(f"refused {key}: {texts[0]}")
    kept = {key: old for key, old in RUNS.items() if not pattern.search(key)}
    lines = [f"{json.dumps(key)}: {json.dumps(run)}" for key, run in sorted((kept | found).items())]
    text = f'{{"machine": {json.dumps(machine())}, "runs": {{\n' + ",\n".join(lines) + "\n}}\n"
    FIXTURE.write_text(text)
    print(f"{len(found)} runs, {refused} refused", file=sys.stderr)
    if verbose:
        for key, took in seconds.most_common(40):
            print(f"{took:.2f} s {key}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("command", choices=("check", "record"))
    parser.add_argument("pattern", nargs="?", default="", type=re.compile)
    parser.add_argument("-j", type=int, default=1, dest="n_jobs")
    parser.add_argument("-v", action="store_true", dest="verbose")
    given = parser.parse_args()
    if given.command == "record":
        record(re.compile(given.pattern), given.n_jobs, given.verbose)
    elif RECORDED["machine"] != machine():
        sys.exit(f"recorded on another kind of machine: {RECORDED['machine']}")
    else:
        sys.exit(min(check(re.compile(given.pattern), given.n_jobs), 1))
