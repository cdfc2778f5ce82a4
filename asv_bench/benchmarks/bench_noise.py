"""Noise: throughput beside NumPy's normal numbers, on one thread."""

import numpy as np

from benchmarks.common import best_of
from skdp.privacy.mechanisms.top_k.noise import gumbel_top_k
from skdp.privacy.noise import KeyStream, discrete_laplace, rounded_gaussian

SIZE = 1_000_000


class RoundedGaussian:
    params = [2**4, 2**9, 2**20, 2**30]
    param_names = ["sigma"]

    def setup(self, sigma):
        self.stream = KeyStream(0)
        rounded_gaussian(sigma, 10, self.stream)  # builds the table

    def time_draw(self, sigma):
        rounded_gaussian(sigma, SIZE, self.stream)

    def track_numpy_ratio(self, sigma):
        """Speed over that of standard_normal: more than 1 is faster."""
        rng = np.random.default_rng(0)
        ours = best_of(lambda: rounded_gaussian(sigma, SIZE, self.stream))
        return best_of(lambda: rng.standard_normal(SIZE)) / ours

    track_numpy_ratio.unit = "times NumPy"


class OtherNoise:
    def setup(self):
        self.stream = KeyStream(0)
        self.scores = np.arange(100_000)
        discrete_laplace(2.0**20, 10, self.stream)
        gumbel_top_k(self.scores, 10, 2.0**10, self.stream)

    def time_discrete_laplace(self):
        discrete_laplace(2.0**20, SIZE, self.stream)

    def time_gumbel_top_k(self):
        gumbel_top_k(self.scores, 1000, 2.0**10, self.stream)
