"""
Memorisation of a text model
============================

Random phrases of three words are inserted into the training text, each of them 3, 9 or 15 times. A model that has
memorised such a phrase finds it more likely than nearly all other phrases with the same first word. This is the
secret sharer, `skdp.audit.secret_sharer`. It is a measurement: a flat histogram is no proof of privacy.

The models here are simple: how often each word follows each other word. One of them counts exactly, the others
release the counts with noise. A sentence is the unit of their claim. The last figure is of word vectors.

With ``--brown`` the script trains these vectors instead, on the Brown corpus, and writes the table of the last
figure. It reads the folder that ``SKDP_DATA`` names, and takes some minutes::

    python examples/plot_memorisation.py --brown

With ``--steps`` it audits them at two values of epsilon with equal batches and steps, and writes
docs/tables/nets/memorisation-steps.csv. With ``--units`` it audits claims for sentences and for documents, and
writes docs/tables/nets/memorisation-units.csv. Each takes some minutes, too. With ``--published`` it audits the
private settings of the paper, and writes docs/tables/nets/memorisation-published.csv, which takes half an hour.
"""

# %%
# Text and models
# ---------------
# The text comes from a made-up language of 120 words, in which each word has its favourite successors.

import argparse
import csv
import math
import warnings
from collections import Counter
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from skdp.audit import SecretSharerDisplay, secret_sharer
from skdp.datasets import fetch_brown
from skdp.statistics import histogram

# A seed makes these figures repeatable. Each seeded release warns.
warnings.filterwarnings("ignore", "random_state is a seed")

rng = np.random.default_rng(0)
N_WORDS, LENGTH = 120, 10
words = [f"word{k}" for k in range(N_WORDS)]
place = {word: k for k, word in enumerate(words)}
successors = np.cumsum(rng.dirichlet(np.full(N_WORDS, 0.05), size=N_WORDS), axis=1)


def make_text(n_sentences):
    """Sentences of the language."""
    text = rng.integers(N_WORDS, size=(n_sentences, LENGTH))
    for k in range(1, LENGTH):
        chance = rng.random((n_sentences, 1))
        text[:, k] = np.minimum((successors[text[:, k - 1]] < chance).sum(axis=1), N_WORDS - 1)
    return [[words[k] for k in sentence] for sentence in text]


def make_pairs(sentences):
    """Pairs of neighbours, each as one number, and the sentence of each."""
    ids = [np.array([place[word] for word in sentence]) for sentence in sentences]
    pairs = np.concatenate([N_WORDS * row[:-1] + row[1:] for row in ids])
    return pairs, np.repeat(np.arange(len(ids)), [len(row) - 1 for row in ids])


def log_probabilities(counts, noise_std=0.0):
    """Log-probability of each word after each word; the added constant damps counts that are noise."""
    shares = np.maximum(counts.reshape(N_WORDS, N_WORDS) - noise_std, 0.0) + 0.02 + noise_std / 4
    return np.log(shares / shares.sum(axis=1, keepdims=True))


def exact(sentences):
    """Count without privacy. A sentence of n pairs adds 1 / n for each."""
    pairs, sentence = make_pairs(sentences)
    shares = 1.0 / np.bincount(sentence)[sentence]
    return log_probabilities(np.bincount(pairs, weights=shares, minlength=N_WORDS**2))


def private(epsilon):
    """Count with noise, so that the claim holds for a sentence."""

    def fit(sentences):
        pairs, sentence = make_pairs(sentences)
        found = histogram(
            pairs, bins=N_WORDS**2, bounds=(0, N_WORDS**2), epsilon=epsilon, delta=1e-5,
            unit="group", groups=sentence, adjacency="zero-out", random_state=0,
        )  # fmt: skip
        return log_probabilities(found.value, found.noise_std)

    return fit


def score(model, phrases):
    """-log Pr(c1 | c0) - log Pr(c2 | c1)."""
    first, second, third = phrases.T
    return -model[first, second] - model[second, third]


# %%
# The audit
# ---------
# The quality of a model is its perplexity on other text. A model that has learnt nothing has 120.

MODELS = {"no privacy": exact, "epsilon = 30": private(30.0), "epsilon = 1": private(1.0)}


def audit():
    """A display for each model."""
    text, other = make_text(20_000), make_pairs(make_text(1000))[0]
    found = {}
    for name, fit in MODELS.items():
        perplexity = np.exp(-fit(text).ravel()[other].mean())
        print(f"{name}: perplexity {perplexity:.0f}")
        found[name] = secret_sharer(
            fit, text, vocabulary=words, score=score, n_canaries=500, n_references=1000, random_state=0
        )
        print(found[name], end="\n\n")
    return found


parser = argparse.ArgumentParser()
parser.add_argument("--brown", action="store_true")
parser.add_argument("--steps", action="store_true")
parser.add_argument("--units", action="store_true")
parser.add_argument("--published", action="store_true")
chosen = parser.parse_known_args()[0]
displays = {} if any(vars(chosen).values()) else audit()

# %%
# The ranks
# ---------
# Without privacy, canaries are found among the most likely phrases. The last column has phrases that are not
# in the text.

if displays:
    SecretSharerDisplay.plot_many(displays)
    plt.show()

# %%
# Epsilon from below
# ------------------
# Fifteen copies of a phrase are in up to fifteen sentences, so an exchange of a phrase may cost 15 times the
# epsilon of a sentence, and twice that under zero-out. The ranks give lower bounds of a pure epsilon, each with a
# confidence of 95 %. They are far below the claims: a stronger attack may find more.

for name, display in displays.items():
    found = [display.epsilon_lower_bound(n, adjacency="zero-out") for n in display.ranks]
    print(f"{name}: " + ", ".join(f"{value:.3f}" for value in found))

# %%
# Word vectors
# ------------
# CBOW vectors of 40 % of the sentences of the Brown corpus, with its 1000 most frequent words that are no
# stop words, and 1000 canaries. The vocabulary is taken as public, the claims are for a window, and the
# vectors have one table, as in the paper of Zhang, Mironov and Hejazinia (2021). One seed.

TABLE = "docs/tables/nets/memorisation.csv"
OUTSIDE = "outside the text"
WORD2VEC = {
    "no privacy": dict(
        epsilon=math.inf, n_epochs=20, batch_size=100, clip_norm=15.0, optimizer="adam", learning_rate=1e-3
    ),
    "epsilon = 30": dict(epsilon=30.0, n_epochs=20),
    "epsilon = 3": dict(epsilon=3.0, n_epochs=20),
}  # fmt: skip


def find_table(name=TABLE):
    """A file of this documentation: sphinx-gallery runs in ``examples`` or in the root."""
    found = [place / name for place in (Path.cwd(), *Path.cwd().parents)]
    return next((path for path in found if path.exists()), found[0])


def read_brown():
    """Sentences with the words of the vocabulary only, the document of each, and the vocabulary."""
    data = fetch_brown()
    stop_words = set(data.stop_words)
    lines = [line for document in data.data for line in document.split("\n")]
    documents = np.repeat(np.arange(len(data.data)), [document.count("\n") + 1 for document in data.data])
    sentences = [
        [word for word in line.lower().split() if word.isalpha() and word not in stop_words] for line in lines
    ]
    counts = Counter(word for sentence in sentences for word in sentence)
    kept = {word for word, _ in counts.most_common(1000)}
    sentences = [[word for word in sentence if word in kept] for sentence in sentences]
    long = [k for k, sentence in enumerate(sentences) if len(sentence) > 1]
    part = np.random.default_rng(0).permutation(len(long))[: int(0.4 * len(long))]
    rows = [long[k] for k in sorted(part)]
    return [sentences[k] for k in rows], documents[rows], sorted(kept)


def audit_brown():
    """Write the table: figures of each histogram, and its ten bins."""
    from skdp import DPWord2Vec

    text, _, vocabulary = read_brown()
    with find_table().open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "insertions", "distance", "p-value", "median exposure", *range(1, 11)])
        for name, options in WORD2VEC.items():

            def fit(sentences, options=options):
                common = dict(delta=1e-5, unit="record", tied=True, vocabulary=vocabulary, random_state=0)
                return DPWord2Vec(**common, **options).fit(sentences)

            display = secret_sharer(fit, text, vocabulary=vocabulary, random_state=0)
            for n in display.ranks:
                columns = {name: False, OUTSIDE: True} if name == "no privacy" else {name: False}
                for column, outside in columns.items():
                    ranks = display.outside_ranks[n] if outside else display.ranks[n]
                    distance, p_value = display.chi_squared(n, outside=outside)
                    exposure = np.median(display.exposures(n, outside=outside))
                    bins = np.histogram(ranks, bins=10, range=(0, display.n_references + 1))[0]
                    figures = [f"{distance:.3f}", f"{p_value:.2g}", f"{exposure:.1f}"]
                    writer.writerow([column, n, *figures, *bins])
            file.flush()


STEPS = "docs/tables/nets/memorisation-steps.csv"
UNITS = "docs/tables/nets/memorisation-units.csv"
MEASURED = ["batch", "steps", "training loss", *(f"distance, {n} times" for n in (3, 9, 15))]


def measure(text, vocabulary, groups=None, **options):
    """Train on the text with canaries; return the columns that ``MEASURED`` names."""
    from skdp import DPWord2Vec

    models = []

    def fit(sentences):
        model = DPWord2Vec(delta=1e-5, vocabulary=vocabulary, tied=True, random_state=0, **options).fit(
            sentences, groups=groups
        )
        models.append(model)
        return model

    display = secret_sharer(fit, text, vocabulary=vocabulary, random_state=0)
    loss = np.mean([model.loss(text) for model in models])
    distances = [display.chi_squared(n)[0] for n in display.ranks]
    return [models[0].batch_size_, models[0].n_iter_, *(f"{x:.3f}" for x in (loss, *distances))]


def audit_steps():
    """Write the table: both values of epsilon with the batches and steps that 20 epochs are at epsilon 3."""
    text, _, vocabulary = read_brown()
    with find_table(STEPS).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["unit", "epsilon", *MEASURED])
        for epsilon in (30.0, 3.0):
            found = measure(text, vocabulary, epsilon=epsilon, unit="record", batch_size=3386, max_iter=529)
            writer.writerow(["window", f"{epsilon:g}", *found])
            file.flush()


def audit_units():
    """Write the table: claims for a sentence and for a document, which are clipped as one."""
    text, documents, vocabulary = read_brown()
    with find_table(UNITS).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["unit", "units", "epsilon", *MEASURED])
        for unit, groups in (("sentence", np.arange(len(text))), ("document", documents)):
            count = len(np.unique(groups))
            for epsilon in (30.0, 3.0):
                found = measure(
                    text, vocabulary, groups, epsilon=epsilon, unit="group", n_epochs=20, n_public=count
                )
                writer.writerow([unit, count, f"{epsilon:g}", *found])
                file.flush()


PUBLISHED = "docs/tables/nets/memorisation-published.csv"


def audit_published():
    """Write the table: 20 epochs of batches of 20 by Adam, noise on a thousandth of the numbers."""
    from skdp.nn import SparseSelection

    text, _, vocabulary = read_brown()
    methods = {
        "exponential": SparseSelection(0.001, score_clip=0.1, value_clip=1.0),
        "uniform": SparseSelection(0.001, "uniform", value_clip=1.0),
    }
    with find_table(PUBLISHED).open("w", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["choice", "epsilon", *MEASURED])
        for name, select in methods.items():
            found = measure(
                text, vocabulary, epsilon=30.0, unit="record", batch_size=20, n_epochs=20, clip_norm=15.0,
                optimizer="adam", learning_rate=1e-3, gradient_estimator=select,
            )  # fmt: skip
            writer.writerow([name, 30, *found])
            file.flush()


def draw_brown():
    """The histograms of the table."""
    with find_table().open() as file:
        rows = list(csv.DictReader(file))
    names = sorted({row["model"] for row in rows}, key=[*WORD2VEC, OUTSIDE].index)
    insertions = sorted({int(row["insertions"]) for row in rows})
    _, axes = plt.subplots(
        len(insertions), len(names), figsize=(2.2 * len(names) + 1.2, 6.5), sharex=True, layout="constrained"
    )
    for row in rows:
        ax = axes[insertions.index(int(row["insertions"])), names.index(row["model"])]
        bins = [int(row[str(k)]) for k in range(1, 11)]
        ax.bar(np.arange(0.05, 1, 0.1), bins, width=0.1, color="C7" if row["model"] == OUTSIDE else "C0")
        ax.axhline(sum(bins) / 10, color="0.3", linestyle="--", linewidth=1.0)
        ax.set_title(
            f"{row['model']}, {row['insertions']} times\ndistance {row['distance']} (p = {row['p-value']})",
            fontsize="small",
        )
    for ax in axes[-1]:
        ax.set_xlabel("rank / number of phrases")
    plt.show()


if chosen.brown:
    audit_brown()
elif chosen.steps:
    audit_steps()
elif chosen.units:
    audit_units()
elif chosen.published:
    audit_published()
else:
    draw_brown()
