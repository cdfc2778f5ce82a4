"""One private step of word vectors, in batches of 10,000 windows and more."""

import warnings

import numpy as np

from skdp import DPWord2Vec

N_WORDS, STEPS = 10000, 5


class WordVectors:
    """Vectors of length 100, a window of 4 and 8 negatives; words have Zipf's frequencies."""

    params = ((10000, 50000), (False, True))
    param_names = ("batch_size", "tied")

    def setup(self, batch_size, tied):
        rng = np.random.default_rng(0)
        self.words = [f"w{k}" for k in range(N_WORDS)]
        ids = np.minimum((N_WORDS ** rng.random(200000)).astype(int), N_WORDS - 1)
        self.sentences = [[self.words[k] for k in row] for row in ids.reshape(-1, 20).tolist()]
        self.time_steps(batch_size, tied)  # compiles

    def time_steps(self, batch_size, tied):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            DPWord2Vec(
                epsilon=4.0, unit="record", vocabulary=self.words, batch_size=batch_size, tied=tied,
                max_iter=STEPS,
            ).fit(self.sentences)  # fmt: skip

    def peakmem_steps(self, batch_size, tied):
        self.time_steps(batch_size, tied)
