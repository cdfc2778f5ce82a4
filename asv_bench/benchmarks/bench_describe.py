"""`skdp.statistics.describe` beside `pandas.DataFrame.describe` of the same frame, in one process.

``track`` is the processor time of one over that of the other.
"""

import warnings
from functools import cache

import numpy as np
import pandas as pd

from benchmarks.common import ratio
from skdp.statistics import crosstab, describe

N, D = 1_000_000, 20
CATEGORIES = {"sex": ["f", "m"], "ward": list(range(8))}


@cache
def frame(kind):
    """A frame of one million rows and twenty columns."""
    rng = np.random.default_rng(0)
    numbers = pd.DataFrame(rng.normal(size=(N, D)) * 10.0 ** np.linspace(-3, 3, D))
    if kind == "numbers":
        return numbers
    numbers = numbers.mask(rng.random(numbers.shape) < 0.1)
    if kind == "missing values":
        return numbers
    few = numbers.iloc[:, :16].copy()
    few["visits"] = rng.integers(0, 30, N)
    few["ill"] = rng.random(N) < 0.2
    few["sex"] = rng.choice(["f", "m", "x"], N)
    few["ward"] = pd.Categorical(rng.integers(0, 9, N))
    return few


def described(kind):
    by = "sex" if kind == "by group" else None
    categories = CATEGORIES if kind in ("mixed", "by group") else None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return describe(frame(kind), categories=categories, by=by, delta=1e-7)


class Describe:
    params = ["numbers", "missing values", "mixed", "by group"]
    param_names = ("frame",)
    timeout = 600

    def setup(self, kind):
        frame(kind)
        described(kind)  # compiled

    def track_ratio_to_pandas(self, kind):
        return ratio(lambda: described(kind), frame(kind).describe, repeats=3)

    track_ratio_to_pandas.unit = "ratio"

    def time_describe(self, kind):
        described(kind)


class Crosstab:
    timeout = 600

    def setup(self):
        self.a, self.b = frame("mixed")["sex"], frame("mixed")["ward"]
        self.released()

    def released(self):
        return crosstab(self.a, self.b, categories=tuple(CATEGORIES.values()), delta=1e-7)

    def track_ratio_to_pandas(self):
        return ratio(self.released, lambda: pd.crosstab(self.a, self.b), repeats=3)

    track_ratio_to_pandas.unit = "ratio"
