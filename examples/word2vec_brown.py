"""Word vectors of Brown: training and test loss without privacy, and by DP-SGD at epsilon 30 and 3.

The published settings are a vocabulary of 1,000 words, vectors of length 100, a window of 4, 8 negatives, and one
table. The words are the most frequent ones of Brown, without stop words: this choice is not private, as
published. The unit is one window. Brown has about 225,000 windows of these words, not the published 500,000. They
are split by sentences: 40 % to train, 20 % to choose step sizes, 40 % to test. Every loss of the test part is
computed once.

Run ``SKDP_DATA=folder python examples/word2vec_brown.py`` for docs/tables/nets/word2vec.csv, a few minutes.
"""

import csv
import math
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from skdp import DPWord2Vec
from skdp.datasets import fetch_brown

N_WORDS, PARTS = 1000, (0.4, 0.2, 0.4)
TABLE = Path(__file__).parents[1] / "docs" / "tables" / "nets" / "word2vec.csv"
SEEDS = (0, 1)
# Step sizes of DP-SGD are the default ones. Their rule, and the settings without privacy, were chosen on the 20 %.
SETTINGS = {
    "no privacy": {
        "epsilon": math.inf, "solver": "adam", "batch_size": 2000, "max_iter": 300, "learning_rate": 3e-3,
    },
    "DP-SGD, epsilon 30": {"epsilon": 30.0, "batch_size": 4000, "max_iter": 300},
    "DP-SGD, epsilon 3": {"epsilon": 3.0, "batch_size": 4000, "max_iter": 300},
}  # fmt: skip


def sentences():
    """The sentences of Brown, of their most frequent words; and these words."""
    brown = fetch_brown()
    stop_words = set(brown.stop_words)
    found = [
        [word.lower() for word in line.split()]
        for document in brown.data
        for line in document.split("\n")
    ]
    counts = Counter(
        word for sentence in found for word in sentence if word.isalpha() and word not in stop_words
    )
    return found, [word for word, _ in counts.most_common(N_WORDS)]


def split(found):
    """Training, validation and test sentences."""
    part = np.random.default_rng(0).choice(3, len(found), p=PARTS)
    return [[s for s, p in zip(found, part) if p == k] for k in range(3)]


def main():
    """Fit and write the table."""
    warnings.simplefilter("ignore")  # seeds are for tests: these are measurements
    found, words = sentences()
    train, _, test = split(found)
    rows = []
    for tied in (True, False):
        for name, settings in SETTINGS.items():
            losses = []
            for seed in SEEDS:
                model = DPWord2Vec(
                    vocabulary=words, tied=tied, unit="record", random_state=seed, **settings
                )
                model.fit(train)
                losses.append([model.loss(train), model.loss(test)])
            mean, spread = np.mean(losses, axis=0), np.std(losses, axis=0)
            rows.append({
                "method": name, "tables": 1 if tied else 2, "steps": model.n_iter_, "batch": model.batch_size_,
                "training loss": f"{mean[0]:.3f}", "test loss": f"{mean[1]:.3f}", "std": f"{spread[1]:.3f}",
            })  # fmt: skip
            print(rows[-1], flush=True)
    with TABLE.open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


if __name__ == "__main__":
    main()
