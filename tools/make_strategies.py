"""Compute the strategies that skdp ships, and print the error of each score in units of 1 / (n mu).

python tools/make_strategies.py [--write]
"""

import argparse
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from skdp.metrics import strategies, workloads
from skdp.privacy.cell_matrices import columns_moved

ADJACENCIES = {"pairs": "replace-one", "columns": "zero-out"}


def errors(found: NDArray[np.int64], n_bins: int, adjacency: str, known: bool) -> str:
    """Standard deviations of scores of the two-class table, under calibrated laws of AUC .80."""
    integers = found / columns_moved(found, adjacency)
    k = 2 * n_bins
    basis = np.eye(k)
    if known:
        basis = np.linalg.qr(np.column_stack((np.ones(k), np.eye(k)[:, 1:])))[0][:, 1:]
    inverse = basis @ np.linalg.inv(basis.T @ integers.T @ integers @ basis) @ basis.T
    edges = workloads.logit_edges(n_bins)
    right = (np.arange(n_bins) >= n_bins // 2).astype(float)
    log_loss, brier = workloads.losses_of_bins(workloads.bin_centers(edges))
    asked = {f"AUC {share:g}": workloads._area_gradient(edges, share, 1.19) for share in (0.5, 0.1, 0.02)}
    asked |= {"accuracy": np.concatenate((right, 1 - right)), "log loss": log_loss, "Brier": brier}
    law = workloads.score_law(edges, 0.5, 1.19)
    asked = {name: q - q @ law for name, q in asked.items()}
    return ", ".join(f"{name} {np.sqrt(q @ inverse @ q):.2f}" for name, q in asked.items())


def main() -> None:
    """Compute, print, and write if asked to."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--write", action="store_true")
    arrays = {}
    for kind, sizes in strategies.SHIPPED.items():
        for n_bins in sizes:
            for name, adjacency in ADJACENCIES.items():
                best, gap = strategies.optimal(strategies.KINDS[kind](n_bins), replaced=name == "pairs")
                found = strategies.rounded(best)
                assert (np.abs(found) < 2**15).all()
                arrays[f"{kind}_{n_bins}_{name}"] = found[np.tril_indices(len(best))].astype(np.int16)
                print(f"{kind} {n_bins} {name}: gap {gap:.2%}", flush=True)
                for known in (True, False) if kind == "table" else ():
                    if known or name == "columns":
                        print(f"  total known: {known}; {errors(found, n_bins, adjacency, known)}", flush=True)
    if parser.parse_args().write:
        path = Path(strategies.__file__).with_name(strategies.FILE)
        np.savez_compressed(path, **arrays)
        print(path.stat().st_size, "bytes")


if __name__ == "__main__":
    main()
