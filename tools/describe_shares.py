"""Errors of `skdp.statistics.describe` for several divisions of its budget: what its constants were chosen by.

    python tools/describe_shares.py --runs 20

A line is a division: the shares of counts, windows, means and quartiles of mu^2. It prints the 80 % quantiles,
over the columns of generated tables of five laws and over runs, of four errors: of a mean and of a standard
deviation, in standard deviations of the column; of a quartile, as a share of the rows; of the share of missing
values.
"""

import argparse
import warnings

import numpy as np

from skdp.statistics import describe, describe_fit

DIVISIONS = (
    (0.05, 0.35, 0.30, 0.30), (0.02, 0.38, 0.30, 0.30), (0.10, 0.30, 0.30, 0.30), (0.05, 0.25, 0.35, 0.35),
    (0.05, 0.45, 0.25, 0.25), (0.05, 0.35, 0.40, 0.20), (0.05, 0.35, 0.20, 0.40), (0.05, 0.20, 0.45, 0.30),
)  # fmt: skip
SIZES = (1000, 5000, 50_000)


def table(seed: int, n: int) -> np.ndarray:
    """Five columns: normal, lognormal, uniform, few whole numbers, and heavy tails; NaN in two of them."""
    rng = np.random.default_rng(1000 + seed)
    X = np.column_stack(
        [
            rng.normal(26, 4, n), rng.lognormal(3, 1, n), rng.uniform(18, 90, n),
            rng.poisson(2, n) * 1.0, 1e4 + 50 * rng.standard_t(3, n),
        ]
    )  # fmt: skip
    X[rng.random((n, 5)) < [0.1, 0.0, 0.0, 0.4, 0.0]] = np.nan
    return X


def errors(X: np.ndarray, epsilon: float) -> np.ndarray:
    """Of one description: the four errors of each column."""
    found = describe(X, epsilon=epsilon).table
    name = {name: j for j, name in enumerate(found.columns)}
    value, sd = found.value, np.nanstd(X, axis=0)
    made = []
    for j, x in enumerate(X.T):
        x = x[~np.isnan(x)]
        levels = []
        for level, at in ((0.25, "25%"), (0.5, "50%"), (0.75, "75%")):
            q = value[j, name[at]]
            # A quantile of tied values is right from the share below it to the share at most it.
            low, high = np.mean(x < q - 0.01 * sd[j]), np.mean(x <= q + 0.01 * sd[j])
            levels.append(max(low - level, level - high, 0.0))
        made.append(
            [
                abs(value[j, name["mean"]] - x.mean()) / sd[j],
                abs(value[j, name["std"]] - sd[j]) / sd[j],
                np.mean(levels),
                abs(value[j, name["missing"]] - (1 - x.size / len(X))),
            ]
        )
    return np.array(made)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--epsilon", type=float, default=1.0)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    for n in SIZES:
        print(f"n = {n}: mean, std, level, missing")
        for division in DIVISIONS:
            names = ("COUNTS", "WINDOWS", "MEANS", "QUARTILES")
            for name, share in zip(names, division):
                setattr(describe_fit, name, share)
            found = np.array([errors(table(run % 3, n), given.epsilon) for run in range(given.runs)])
            print(division, np.nanquantile(found, 0.8, axis=(0, 1)).round(4).tolist())


if __name__ == "__main__":
    main()
