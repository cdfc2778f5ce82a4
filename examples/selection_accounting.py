"""
Epsilon of a private choice of coordinates
==========================================

The epsilon of sparse selection by four accounts, at the published setting for word2vec and at others: a table
of the benchmarks. ``python selection_accounting.py`` takes some seconds.

* "strong" is the paper's way without its errors: strong composition of the choices of a step, the exact Gaussian
  curve, amplification by log(1 + q (e^epsilon - 1)), strong composition of the steps.
* "theorem 3" is the paper's printed theorem. Its lemma on sampling multiplies epsilon by q, which is false.
* "Renyi" is the bound of Zhu and Wang on the joint zCDP of a step.
* "pairs" composes the joint dominating pair.
"""

import csv
import math
from pathlib import Path

import numpy as np

from skdp.privacy.accounting import gaussian_epsilon
from skdp.privacy.accounting.pld import composed_epsilon
from skdp.privacy.accounting.sampled import amplified_epsilon
from skdp.privacy.mechanisms.selected_gaussian.cost import SelectedPair

N, BATCH, EPOCHS, CHOICES, DELTA = 200_000, 20, 20, 100, 1e-5
RATE, STEPS = BATCH / N, EPOCHS * N // BATCH
# Bounded range of one choice, and noise multiplier under zero-out. The first is published: epsilon = 10
# and delta = 5e-6 for the choices by theorem 3, sigma = 0.5.
SETTINGS = ((0.27, 0.5), (0.2, 1.0), (0.1, 1.0), (0.1, 2.0), (0.05, 2.0), (0.02, 4.0))
TABLE = Path(__file__).parents[1] / "docs" / "tables" / "nets" / "selection.csv"


def strongly(epsilon, count, delta):
    """Strong composition (Dwork, Rothblum and Vadhan 2010), or basic composition if that is less."""
    grown = epsilon * math.expm1(min(epsilon, 700.0)) * count
    return min(count * epsilon, epsilon * math.sqrt(2 * count * math.log(1 / delta)) + grown)


def strong(choice, z):
    """The best of some splits of delta."""
    best = math.inf
    for part in np.linspace(0.05, 0.95, 19):
        delta = part * DELTA / (STEPS * RATE)  # of a step, before sampling
        if delta >= 1:
            continue
        step = strongly(choice, CHOICES, delta / 2) + gaussian_epsilon(1 / z, delta / 2)
        sampled = math.log1p(RATE * math.expm1(min(step, 700.0)))
        best = min(best, strongly(sampled, STEPS, (1 - part) * DELTA))
    return best


def theorem_3(choice, z):
    """As printed, with a multiplier of 2 z in its convention; None if its condition does not hold."""
    delta = DELTA * N / (4 * BATCH * STEPS)
    choices = choice * math.sqrt(2 * CHOICES * math.log(1 / delta))
    step = choices + 2 * math.sqrt(2 * math.log(1.25 / delta)) / (2 * z)
    if RATE * step > 1 / math.sqrt(STEPS):
        return None
    return 4 * RATE * math.sqrt(STEPS * math.log(N / (2 * BATCH * STEPS * delta))) * step


def accounts(choice, z):
    """Epsilon by the four accounts."""
    rho = CHOICES * choice**2 / 8 + 0.5 / z**2
    pairs = (
        composed_epsilon((SelectedPair(kind, z, CHOICES, choice, RATE, STEPS),), DELTA) for kind in ("out", "in")
    )
    renyi = amplified_epsilon([(rho, RATE, STEPS)], 0.0, DELTA)
    return strong(choice, z), theorem_3(choice, z), renyi, max(pairs)


if __name__ == "__main__":
    TABLE.parent.mkdir(parents=True, exist_ok=True)
    with TABLE.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["choice", "noise", "strong", "theorem 3", "Renyi", "pairs"])
        for choice, z in SETTINGS:
            found = ["--" if each is None else f"{each:.3g}" for each in accounts(choice, z)]
            writer.writerow([choice, z, *found])
            print(choice, z, *found)
