"""Coverage and error of the scores of a two-class evaluation, by simulation.

    python tools/coverage_evaluation.py [--trials 10000] [--n 200 2000 20000] [--epsilon .1 1] [--positives .5 .1
    .02]

Scores are drawn from calibrated laws (normal logits in each class, AUC .80), which are not the laws of the bins. A
trial draws records, counts them on the public grid, adds the release's noise and computes every score. Coverage of
``noise_interval`` is that of the same score of the drawn table, that is of scores rounded to the grid; coverage of
``interval`` that of the score of the law on the grid.
"""

import argparse

import numpy as np

from skdp.metrics import workloads
from skdp.metrics.fits import FINER
from skdp.metrics.inversion import NoisyTable, least_squares
from skdp.metrics.strategies import GRID, strategy
from skdp.metrics.two_classes import ClassificationEvaluation, ScoreGrid
from skdp.privacy.accounting import gaussian_mu
from skdp.privacy.cell_matrices import columns_moved

SEPARATION = 1.19  # in standard deviations: an AUC of .80


class Cell:
    """One setting: a law, a number of records, a budget and an adjacency."""

    def __init__(
        self, n: int, epsilon: float, positives: float, adjacency: str = "replace-one", delta: float = 1e-6
    ) -> None:
        self.n, self.mu = n, gaussian_mu(epsilon, delta)
        self.n_bins = next(b for least, b in FINER if n * self.mu >= least)
        logits = workloads.logit_edges(self.n_bins)
        self.grid = ScoreGrid(1 / (1 + np.exp(-logits)), True, workloads.bin_centers(logits))
        integers = strategy("table", self.n_bins, adjacency)
        self.matrix = integers * GRID
        self.noise = columns_moved(integers, adjacency) * GRID / self.mu
        self.law = workloads.score_law(logits, positives, SEPARATION)
        self.total = None if adjacency == "add-remove" else float(n)
        solver, covariance = least_squares(self.matrix, known=self.total is not None)
        self.covariance = self.noise**2 * covariance
        self.solver, self.exact = solver, self.scores(self.table(self.law * n, None))

    def table(self, counts: np.ndarray, rng: np.random.Generator | None) -> NoisyTable:
        """The noisy table of these counts; without a generator the exact one."""
        answers = self.matrix @ counts
        if rng is None:
            return NoisyTable(counts, np.zeros_like(self.covariance), self.total, self.matrix, answers)
        answers = answers + self.noise * rng.normal(size=len(answers))
        start = np.full(len(counts), 0.0 if self.total is None else self.total / len(counts))
        found = start + self.solver @ (answers - self.matrix @ start)
        return NoisyTable(found, self.covariance, self.total, self.matrix, answers)

    def scores(self, table: NoisyTable, names: list[str] | None = None) -> dict[str, tuple]:
        """Value, noise interval and interval of each score, and whether both counts are clear."""
        ways = ClassificationEvaluation(
            table,
            self.grid,
            self.n_bins // 2,
            np.array([0, 1]),
            None,
            "law",
            "records",  # type: ignore[arg-type]
        )._ways()
        return {name: way() for name, way in ways.items() if names is None or name in names}


def run(cell: Cell, trials: int, seed: int, names: list[str] | None = None) -> dict[str, np.ndarray]:
    """Of each score and trial: error, both covered, the whole range given, counts clear."""
    rng = np.random.default_rng(seed)
    one = np.repeat((1.0, 0.0), cell.n_bins)
    rows: dict[str, list] = {}
    for _ in range(trials):
        counts = rng.multinomial(cell.n, cell.law).astype(float)
        noisy = cell.table(counts, rng)
        own, clear = cell.scores(cell.table(counts, None), names), noisy.clear(one, 1 - one)
        for name, found in cell.scores(noisy, names).items():
            true, law = own[name].value, cell.exact[name].value
            low, high = found.noise_interval
            rows.setdefault(name, []).append(
                (
                    found.value - true,
                    low - 1e-9 <= true <= high + 1e-9,
                    found.interval[0] - 1e-9 <= law <= found.interval[1] + 1e-9,
                    high - low >= 1.0,
                    clear,
                    high - low,
                )
            )
    return {name: np.array(found, dtype=float) for name, found in rows.items()}


def main() -> None:
    """Print a table for each cell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10000)
    parser.add_argument("--n", type=int, nargs="+", default=[200, 2000, 20000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--positives", type=float, nargs="+", default=[0.5, 0.1, 0.02])
    parser.add_argument("--adjacency", default="replace-one")
    given = parser.parse_args()
    for n in given.n:
        for epsilon in given.epsilon:
            for positives in given.positives:
                cell = Cell(n, epsilon, positives, given.adjacency)
                print(f"n={n} epsilon={epsilon} positives={positives} bins={cell.n_bins} {given.adjacency}")
                for name, rows in run(cell, given.trials, seed=n + int(1000 * positives)).items():
                    error, noise, both, whole, clear, length = rows.T
                    print(
                        f"  {name:18s} rmse {np.sqrt((error**2).mean()):.4f}  covered {noise.mean():6.2%} "
                        f"(if [0, 1] not given {noise[whole == 0].mean() if (whole == 0).any() else 1:6.2%})  "
                        f"population "
                        f"{both.mean():6.2%}  [0, 1] {whole.mean():6.2%}  clear {clear.mean():6.2%}  length "
                        f"{np.median(length):.3f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
