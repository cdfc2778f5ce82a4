"""Numeric sparse vector: beside the plain loop, and beside drawing the noise that it is made of."""

import math
import random

import numpy as np

from benchmarks.common import best_of
from skdp.privacy.mechanisms.sparse_vector.noise import numeric_sparse
from skdp.privacy.noise import KeyStream, discrete_laplace

SCALE = 3 * 2.0**28
SCALES = (SCALE, SCALE, 2.0 * SCALE)
THRESHOLD = int(20 * SCALE)


def plain_loop(values, threshold, n_hits, scales, rng):
    """The algorithm as it is written in the paper, in Python, in a random order."""

    def laplace(scale):
        sign = 1 if rng.random() < 0.5 else -1
        return sign * math.floor(rng.expovariate(1.0 / scale))

    order = list(range(len(values)))
    rng.shuffle(order)
    found, limit = {}, threshold + laplace(scales[0])
    for index in order:
        if abs(values[index]) + laplace(scales[1]) >= limit:
            found[index] = values[index] + laplace(scales[2])
            limit = threshold + laplace(scales[0])
            if len(found) == n_hits:
                break
    return found


class NumericSparse:
    """``large`` of d entries are far above the threshold; the run may release 100."""

    params = [[10**4, 10**6], [0, 20]]
    param_names = ["d", "large"]

    def setup(self, d, large):
        self.stream = KeyStream(0)
        self.values = np.zeros(d, dtype=np.int64)
        self.values[:large] = 3 * THRESHOLD
        self.run()

    def run(self):
        return numeric_sparse(self.values, THRESHOLD, 100, SCALES, self.stream)

    def time_run(self, d, large):
        self.run()

    def track_plain_loop_ratio(self, d, large):
        """Speed over that of a plain Python loop: more than 1 is faster."""
        values, rng = self.values.tolist(), random.Random(0)
        slow = best_of(lambda: plain_loop(values, THRESHOLD, 100, SCALES, rng), repeats=1)
        return slow / best_of(self.run)

    def track_noise_ratio(self, d, large):
        """Seconds over those of drawing 2 d discrete Laplace values: the target is below 3."""
        noise = best_of(lambda: discrete_laplace(SCALE, 2 * d, self.stream))
        return best_of(self.run) / noise

    track_plain_loop_ratio.unit = "times the plain loop"
    track_noise_ratio.unit = "times the noise"


class Permutation:
    params = [10**4, 10**6]
    param_names = ["n"]

    def setup(self, n):
        self.stream = KeyStream(0)
        self.stream.permutation(10)

    def time_permutation(self, n):
        self.stream.permutation(n)
