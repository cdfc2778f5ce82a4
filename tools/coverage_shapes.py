"""Coverage of the bands of additive models' shapes, by simulation.

    python tools/coverage_shapes.py [--draws 40] [--n 3000 8000 50000] [--epsilon .5 1 4] [--interactions 0]
        [--kind two three numbers tails] [--table normal mixed shared] [--unit record group]

For each setting one table is drawn, and fitted with many draws of the privacy noise. Draws with the same choice
of functions and products are compared with their mean shape: how often a shape lies within 1.96 ``noise_std`` of
it, at 21 values of each column within two standard deviations, and the ratio of the root mean square distance
from the mean to the one of ``noise_std``. Distances are divided by sqrt(1 - 1 / m), as the mean is one of m draws.
Choices of fewer than `LEAST_DRAWS` draws are left out, and so are fits without known noise. Lines are compared as
curves are.
"""

import argparse
import warnings
from itertools import product

import numpy as np

from skdp import DPAdditiveClassifier, DPAdditiveRegressor
from skdp.exceptions import PrivacyLeakWarning, UtilityWarning

LEAST_DRAWS = 8
KINDS = ("two", "three", "numbers", "tails")
TABLES = ("normal", "mixed", "shared")
BAND = 1.96
DELTA = 1e-6


def columns(table: str, n: int, rng: np.random.Generator) -> np.ndarray:
    """The columns of a table: independent normal ones, several laws, or some that share a factor."""
    if table == "normal":
        return rng.normal(size=(n, 4))
    if table == "mixed":
        uniform, skewed = rng.uniform(-1.7, 1.7, (n, 2)), rng.gamma(2.0, 0.7, (n, 2)) - 1.4
        two_valued = (rng.random((n, 1)) < 0.4) * 2.0 - 1.0
        return np.hstack([uniform, skewed, rng.normal(size=(n, 2)), two_valued])
    factor = rng.normal(size=(n, 1))
    return np.sqrt(0.4) * factor + np.sqrt(0.6) * rng.normal(size=(n, 8))


def truth(X: np.ndarray) -> np.ndarray:
    """A sum of bent and straight shapes of the first six columns."""
    shapes = (np.abs, lambda x: x, lambda x: np.sin(2.0 * x), lambda x: 0.3 * x)
    weights = (1.2, 0.7, 1.0, 0.7, 0.5, 0.4)
    score = sum(w * shapes[j % 4](X[:, j]) for j, w in enumerate(weights[: X.shape[1]]))
    return np.asarray(score - score.mean())


def targets(kind: str, X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Labels or numbers."""
    score = truth(X)
    if kind == "two":
        return (score + rng.logistic(size=len(X)) > 0).astype(int)
    if kind == "three":
        scores = np.column_stack([score, truth(X[:, ::-1]), np.zeros(len(X))])
        return np.asarray((scores + rng.gumbel(size=scores.shape)).argmax(axis=1))
    noise = rng.normal(size=len(X)) if kind == "numbers" else rng.standard_t(3, len(X))
    return score + noise


def shapes(table: str, kind: str, n: int, epsilon: float, unit: str, interactions: int, draws: int):
    """Of each draw: the choice, and the values and their noise at 21 values, of shape (columns, 21, outputs)."""
    rng = np.random.default_rng([n, TABLES.index(table), KINDS.index(kind)])
    X = columns(table, n, rng)
    y, options, given = targets(kind, X, rng), {}, {}
    if kind in ("two", "three"):
        options["classes"] = range(2 if kind == "two" else 3)
    if unit == "group":
        sizes = np.append(rng.integers(1, 5, n), 1)
        given["groups"] = np.repeat(np.arange(n + 1), sizes)[:n]
    cls = DPAdditiveClassifier if "classes" in options else DPAdditiveRegressor
    points = X.mean(axis=0) + np.outer(np.linspace(-2, 2, 21), X.std(axis=0))
    points = np.clip(points, X.min(axis=0), X.max(axis=0)).T
    for draw in range(draws):
        model = cls(
            epsilon=epsilon, delta=DELTA, interactions=interactions, unit=unit, random_state=draw, **options
        ).fit(X, y, **given)
        values, noise = [], []
        for at, shape in zip(points, model.shapes_, strict=True):
            if np.isnan(shape.noise_std).any():
                shape = None
                break
            for found, kept in ((shape.values, values), (shape.noise_std, noise)):
                found = found.reshape(len(shape.knots), -1)
                kept.append([np.interp(at, shape.knots, column) for column in found.T])
        if shape is None:
            continue
        pairs = tuple(sorted(pair.columns for pair in model.interactions_))
        choice = tuple(s.n_functions for s in model.shapes_), pairs
        yield choice, np.array(values), np.array(noise)


def measure(found: list) -> tuple[int, np.ndarray, np.ndarray] | None:
    """Draws that are compared, coverage and ratio of each column; None if no choice was frequent."""
    by_choice: dict = {}
    for choice, values, noise in found:
        by_choice.setdefault(choice, []).append((values, noise))
    distances, noises = [], []
    for same in by_choice.values():
        if len(same) >= LEAST_DRAWS:
            values, noise = map(np.array, zip(*same, strict=True))
            distances.append((values - values.mean(axis=0)) / np.sqrt(1 - 1 / len(same)))
            noises.append(noise)
    if not distances:
        return None
    away, noise = np.concatenate(distances), np.concatenate(noises)
    covered = (np.abs(away) <= BAND * noise).mean(axis=(0, 2, 3))
    ratio = np.sqrt((away**2).mean(axis=(0, 2, 3)) / (noise**2).mean(axis=(0, 2, 3)))
    return len(away), covered, ratio


def main() -> None:
    """Print a line for each setting."""
    for told in (UtilityWarning, PrivacyLeakWarning):  # noise is repeatable here, and nothing is private
        warnings.simplefilter("ignore", told)
    parser = argparse.ArgumentParser()
    parser.add_argument("--draws", type=int, default=40)
    parser.add_argument("--n", type=int, nargs="+", default=[3000, 8000, 50000])
    parser.add_argument("--epsilon", type=float, nargs="+", default=[0.5, 1.0, 4.0])
    parser.add_argument("--kind", nargs="+", default=["two", "three", "numbers", "tails"])
    parser.add_argument("--table", nargs="+", default=list(TABLES))
    parser.add_argument("--unit", nargs="+", default=["record", "group"])
    parser.add_argument("--interactions", type=int, default=0)
    given = parser.parse_args()
    means = []
    for setting in product(given.kind, given.table, given.n, given.epsilon, given.unit):
        kind, table, n, epsilon, unit = setting
        found = list(shapes(table, kind, n, epsilon, unit, given.interactions, given.draws))
        measured = measure(found)
        if measured is None:
            continue
        count, covered, ratio = measured
        means.append(covered.mean())
        print(
            f"{kind:8s}{table:8s}n={n:<7d}epsilon={epsilon:<5g}{unit:7s}{count:3d} draws  "
            f"covered {covered.mean():4.0%} (columns {covered.min():4.0%} to {covered.max():4.0%})  "
            f"ratios {ratio.min():.2f} to {ratio.max():.2f}",
            flush=True,
        )
    low, middle, high = np.quantile(means, (0.05, 0.5, 0.95))
    print(f"{len(means)} settings: covered {middle:.1%} (median), {low:.1%} to {high:.1%} (nine of ten)")


if __name__ == "__main__":
    main()
