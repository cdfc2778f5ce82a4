"""Audits: ranks of canaries under word vectors."""

import numpy as np

from skdp.audit import secret_sharer


class Vectors:
    """Random word vectors, as a fitted model has them."""

    def __init__(self, n_words):
        self.vocabulary_ = [f"word{k}" for k in range(n_words)]
        self.vectors_ = np.random.default_rng(0).normal(0.0, 0.3, (n_words, 100))


class SecretSharer:
    """100 canaries and 100 phrases outside the text, each among 10,000 random phrases; without training."""

    params = [1000, 5000]
    param_names = ["n_words"]

    def setup(self, n_words):
        self.model = Vectors(n_words)
        words = np.array(self.model.vocabulary_)
        self.text = words[np.random.default_rng(1).integers(n_words, size=(5000, 10))].tolist()

    def time_ranks(self, n_words):
        secret_sharer(
            lambda sentences: self.model, self.text, vocabulary=self.model.vocabulary_, n_insertions=15,
            n_canaries=100, random_state=0,
        )  # fmt: skip
