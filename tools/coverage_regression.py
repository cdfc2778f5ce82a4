"""Coverage and error of the scores of a regression, by simulation.

    python tools/coverage_regression.py [--trials 10000] [--n 200 2000 20000] [--epsilon .1 1] [--tail normal t3]

A trial draws predictions and residuals, sums the moments of the clipped numbers, adds the noise of the releases
and computes every score by the library's inversion. Coverage of ``noise_interval`` is that of the same score of
the drawn clipped numbers; coverage of ``interval`` that of the clipped score of the law. Windows are fixed, as
wide as searches find them.
"""

import argparse
from collections.abc import Callable

import numpy as np

from skdp.metrics.regression_fits import BIN_SHARE, NAMES, SPREAD_SHARE, WEIGHTS, WINDOW_SHARE
from skdp.metrics.regression_moments import RegressionMoments, Sum
from skdp.privacy import PrivateRecords
from skdp.privacy.accounting import gaussian_mu
from skdp.privacy.statistics import residual_moments

SCORES = ("r2", "mean_squared_error", "root_mean_squared_error", "mean_absolute_error", "mean_error")
LARGE = 4_000_000  # records that stand for the law
R2 = 0.6
OFF_CENTER = 0.3  # of the targets' window, in standard deviations


class Cell:
    """One setting: a law of (target, residual) with R2 = .6, windows of some sd, and an adjacency."""

    def __init__(
        self, tail: str = "normal", wide: float = 3.5, adjacency: str = "replace-one", given: bool = False
    ) -> None:
        self.tail = tail
        self.half_width, self.residual_half_width = wide, wide * np.sqrt(1 - R2)
        left = 1 - (1 if given else 2) * WINDOW_SHARE - BIN_SHARE - SPREAD_SHARE
        two = PrivateRecords(np.zeros((1, 2)))
        weights = [WEIGHTS[name] for name in NAMES]
        self.moved = (
            residual_moments(two, 0.0, 1.0, 1.0, weights, adjacency=adjacency).l2 / np.sqrt(left),
            np.sqrt(2 / SPREAD_SHARE),
        )
        self.law = self.scores(*self.draw(LARGE, np.random.default_rng(0)), 0.0, None)

    def draw(self, n: int, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        """Clipped targets and residuals in units of their windows."""
        residual = rng.standard_normal(n) if self.tail == "normal" else rng.standard_t(3, n) / np.sqrt(3)
        residual *= np.sqrt(1 - R2)
        y = np.sqrt(R2) * rng.standard_normal(n) + residual
        return (
            np.clip((y - OFF_CENTER) / self.half_width, -1, 1), np.clip(residual / self.residual_half_width, -1, 1)
        )  # fmt: skip

    def scores(self, u: np.ndarray, v: np.ndarray, mu: float, rng: np.random.Generator | None) -> dict[str, tuple]:
        """All scores of one evaluation; without a generator there is no noise."""
        squares = u * u, v * v
        of = {"u": u.sum(), "u2": squares[0].sum(), "v": v.sum(), "v2": squares[1].sum(), "abs": np.abs(v).sum()}
        noise = 0.0 if rng is None else self.moved[0] / mu
        sums = {name: noisy(x, noise / WEIGHTS[name], rng) for name, x in of.items()}
        found = RegressionMoments(float(len(u)), self.half_width, self.residual_half_width, sums)
        influence = found.influence_on_r2()
        w = influence.residuals * squares[1] - influence.targets * (u - influence.mean) ** 2
        noise = 0.0 if rng is None else self.moved[1] / mu
        spreads = {"r2": (w * w).sum() / influence.largest, "v2": (squares[1] ** 2).sum()}
        found = found.with_spreads(influence, {name: noisy(x, noise, rng) for name, x in spreads.items()})
        ways: dict[str, Callable[[], tuple]] = {name: getattr(found, name) for name in SCORES}
        return {name: way() for name, way in ways.items()}


def noisy(value: float, noise: float, rng: np.random.Generator | None) -> Sum:
    """A sum with normal noise."""
    return Sum(float(value) + (0.0 if rng is None else noise * rng.standard_normal()), noise)


def run(cell: Cell, n: int, mus: list[float], trials: int, seed: int) -> list[dict[str, np.ndarray]]:
    """For each budget, of each score and trial: error, both covered, unbounded, both lengths."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, list]] = [{name: [] for name in SCORES} for _ in mus]
    for _ in range(trials):
        u, v = cell.draw(n, rng)
        own = cell.scores(u, v, 0.0, None)
        for mu, kept in zip(mus, rows):
            for name, found in cell.scores(u, v, mu, rng).items():
                (low, high), (least, most) = found.noise_interval, found.interval
                true, law = own[name].value, cell.law[name].value
                kept[name].append(
                    (
                        found.value - true,
                        low - 1e-9 <= true <= high + 1e-9,
                        least <= law <= most,
                        np.isinf(low),
                        high - low,
                        most - least,
                    )
                )
    return [{name: np.array(found, dtype=float) for name, found in kept.items()} for kept in rows]


def main() -> None:
    """Print a table for each cell."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=10000)
    parser.add_argument("--n", type=int, nargs="+", default=[200, 2000, 20000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.1, 1.0])
    parser.add_argument("--tail", nargs="+", default=["normal", "t3"])
    parser.add_argument("--wide", type=float, default=3.5, help="windows, in standard deviations")
    parser.add_argument("--given", action="store_true", help="the targets' window is public")
    parser.add_argument("--adjacency", default="replace-one")
    given = parser.parse_args()
    for tail in given.tail:
        cell = Cell(tail, given.wide, given.adjacency, given.given)
        for n in given.n:
            mus = [gaussian_mu(epsilon, 1e-6) for epsilon in given.epsilon]
            for epsilon, found in zip(given.epsilon, run(cell, n, mus, given.trials, seed=n)):
                print(f"n={n} epsilon={epsilon} residuals {tail} {given.adjacency}")
                for name, rows in found.items():
                    error, noise, both, unbounded, length, longer = rows.T
                    print(
                        f"  {name:24s} rmse {np.sqrt((error**2).mean()):.4f}  covered {noise.mean():6.2%} "
                        f"(bounded ones {noise[unbounded == 0].mean() if (unbounded == 0).any() else 1:6.2%})  "
                        f"population {both.mean():6.2%}  unbounded {unbounded.mean():6.2%}  lengths "
                        f"{np.median(length):.4f} {np.median(longer):.4f}",
                        flush=True,
                    )


if __name__ == "__main__":
    main()
