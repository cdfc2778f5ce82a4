"""
Word vectors of Brown
=====================

This script measures training and test loss without privacy, and by DP-SGD at epsilon 30 and 3. The published
settings are a vocabulary of 1,000 words, vectors of length 100, a window of 4, 8 negatives, and one table. The
words are the most frequent ones of Brown, without stop words: this choice is not private, as published. The unit
is one window. Brown has about 225,000 windows of these words, not the published 500,000. They are split by
sentences: 40 % to train, 20 % to choose step sizes, 40 % to test. Every loss of the test part is computed once.

Run ``SKDP_DATA=folder python examples/word2vec_brown.py`` for docs/tables/nets/word2vec.csv, a few minutes. With
``--curves`` it writes docs/tables/nets/word2vec-curves.csv instead: losses by step, beside four ways of sparse
selection at epsilon 30 (Figure 1 of the paper). With ``--selection`` it writes the last losses of these methods,
of five seeds, to docs/tables/nets/word2vec-selection.csv. Each takes some minutes.
"""

import argparse
import csv
import math
import warnings
from collections import Counter
from pathlib import Path

import numpy as np

from skdp import DPWord2Vec
from skdp.datasets import fetch_brown
from skdp.nn import AdaFEST, SparseSelection

N_WORDS, PARTS = 1000, (0.4, 0.2, 0.4)
TABLES = Path(__file__).parents[1] / "docs" / "tables" / "nets"
SEEDS = range(5)
# Step sizes of DP-SGD are the default ones. Their rule, and the settings without privacy, were chosen on the 20 %.
SETTINGS = {
    "no privacy": {
        "epsilon": math.inf, "optimizer": "adam", "batch_size": 2000, "max_iter": 300, "learning_rate": 3e-3,
    },
    "DP-SGD, epsilon 30": {"epsilon": 30.0, "batch_size": 4000, "max_iter": 300},
    "DP-SGD, epsilon 3": {"epsilon": 3.0, "batch_size": 4000, "max_iter": 300},
}  # fmt: skip

# What the curves have in place of 150 steps of 4,000 windows at epsilon 30, for two tables and for one. Step
# sizes, fractions and shares were chosen on the 20 %, one seed. Two tables: fits of 100 steps, step sizes 300 to
# 2,000, fractions .01, .1 and .5, shares .1 to .75. One table: fits of 150 steps, step sizes 20 to 2,000,
# fractions .02 to .7. The sparse vector technique cannot choose half of the numbers: its noise is then too large
# for its grid.
VECTOR = SparseSelection(0.1, "sparse vector", threshold=1e-5)
CURVES = {
    2: {
        "no privacy": SETTINGS["no privacy"],
        "DP-SGD, epsilon 30": {"learning_rate": 300.0},
        "DP-SGD, epsilon 3": {"epsilon": 3.0},
        "exponential, epsilon 30": {"gradient_estimator": SparseSelection(0.5), "learning_rate": 300.0},
        "sparse vector, epsilon 30": {"gradient_estimator": VECTOR, "learning_rate": 600.0},
        "uniform, epsilon 30": {"gradient_estimator": SparseSelection(0.5, "uniform"), "learning_rate": 300.0},
        "AdaFEST, epsilon 30": {"gradient_estimator": AdaFEST(), "learning_rate": 300.0},
    },
    1: {
        "no privacy": SETTINGS["no privacy"],
        "DP-SGD, epsilon 30": {"learning_rate": 50.0},
        "DP-SGD, epsilon 3": {"epsilon": 3.0},
        "exponential, epsilon 30": {"gradient_estimator": SparseSelection(0.5), "learning_rate": 80.0},
        "sparse vector, epsilon 30": {"gradient_estimator": VECTOR, "learning_rate": 300.0},
        "uniform, epsilon 30": {"gradient_estimator": SparseSelection(0.5, "uniform"), "learning_rate": 80.0},
        "AdaFEST, epsilon 30": {"gradient_estimator": AdaFEST(), "learning_rate": 100.0},
    },
}  # fmt: skip
# At epsilon 3 all step sizes are the default ones.
LOW = {
    "exponential, epsilon 3": {"epsilon": 3.0, "gradient_estimator": SparseSelection(0.5)},
    "uniform, epsilon 3": {"epsilon": 3.0, "gradient_estimator": SparseSelection(0.5, "uniform")},
    "AdaFEST, epsilon 3": {"epsilon": 3.0, "gradient_estimator": AdaFEST()},
}
EVERY = 10  # steps between two points of a curve
N_SENTENCES = 4000  # of each part, for the losses of a curve


def sentences():
    """The sentences of Brown, of their most frequent words; and these words."""
    brown = fetch_brown()
    stop_words = set(brown.stop_words)
    found = [[word.lower() for word in line.split()] for document in brown.data for line in document.split("\n")]
    counts = Counter(word for sentence in found for word in sentence if word.isalpha() and word not in stop_words)
    return found, [word for word, _ in counts.most_common(N_WORDS)]


def split(found):
    """Training, validation and test sentences."""
    part = np.random.default_rng(0).choice(3, len(found), p=PARTS)
    return [[s for s, p in zip(found, part) if p == k] for k in range(3)]


def write(name, rows):
    """Write a table."""
    with (TABLES / name).open("w", newline="") as file:
        writer = csv.DictWriter(file, rows[0], lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows)


def last_losses(words, train, test):
    """Losses after the last step, means of seeds."""
    rows = []
    for tied in (True, False):
        for name, settings in SETTINGS.items():
            losses = []
            for seed in SEEDS:
                model = DPWord2Vec(vocabulary=words, tied=tied, unit="record", random_state=seed, **settings)
                model.fit(train)
                losses.append([model.loss(train), model.loss(test)])
            mean, spread = np.mean(losses, axis=0), np.std(losses, axis=0)
            rows.append({
                "method": name, "tables": 1 if tied else 2, "steps": model.n_iter_, "batch": model.batch_size_,
                "training loss": f"{mean[0]:.3f}", "test loss": f"{mean[1]:.3f}", "std": f"{spread[1]:.3f}",
            })  # fmt: skip
            print(rows[-1], flush=True)
    write("word2vec.csv", rows)


def curve(model, train, test):
    """Steps, and losses of the model after them on the same windows and negatives each time."""
    kept = {}

    def keep(step, parameters):
        if step == 0 or (step + 1) % EVERY == 0:
            kept[step + 1] = parameters

    model.set_params(callback=keep).fit(train)
    for step, parameters in kept.items():
        table = parameters.reshape(-1, model.vector_size).astype(np.float32)
        model.vectors_, model.output_vectors_ = table[:N_WORDS], table[-N_WORDS:]
        yield step, model.loss(train[:N_SENTENCES]), model.loss(test[:N_SENTENCES])


def compared(more):
    """Names, tables and options of all methods."""
    for tables, methods in CURVES.items():
        for name, options in {**methods, **more}.items():
            options = {"epsilon": 30.0, "batch_size": 4000, "max_iter": 150, **options}
            yield name, tables, {"tied": tables == 1, "unit": "record", **options}


def all_curves(words, train, test):
    """Losses by step of one seed."""
    rows = []
    for name, tables, options in compared({}):
        model = DPWord2Vec(vocabulary=words, random_state=SEEDS[0], **options)
        for step, *losses in curve(model, train, test):
            found = dict(zip(("training loss", "test loss"), (f"{loss:.4f}" for loss in losses)))
            rows.append({"method": name, "tables": tables, "step": step, **found})
        print(rows[-1], flush=True)
        write("word2vec-curves.csv", rows)


def last_of_selection(words, train, test):
    """Losses after the last step: means and standard errors of seeds."""
    rows = []
    for name, tables, options in compared(LOW):
        models = [DPWord2Vec(vocabulary=words, random_state=s, **options).fit(train) for s in SEEDS]
        losses = np.array([[m.loss(train), m.loss(test)] for m in models])
        mean, error = losses.mean(axis=0), losses.std(axis=0, ddof=1) / math.sqrt(len(SEEDS))
        rows.append({
            "method": name, "tables": tables, "training loss": f"{mean[0]:.3f} ± {error[0]:.3f}",
            "test loss": f"{mean[1]:.3f} ± {error[1]:.3f}",
        })  # fmt: skip
        print(rows[-1], flush=True)
        write("word2vec-selection.csv", rows)


def main():
    """Fit and write a table."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--curves", action="store_true")
    parser.add_argument("--selection", action="store_true")
    warnings.simplefilter("ignore")  # seeds are for tests: these are measurements
    found, words = sentences()
    train, _, test = split(found)
    given = parser.parse_args()
    if given.selection:
        last_of_selection(words, train, test)
    else:
        (all_curves if given.curves else last_losses)(words, train, test)


if __name__ == "__main__":
    main()
