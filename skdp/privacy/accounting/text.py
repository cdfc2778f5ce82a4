"""Numbers of a report as text."""

import math

# What adds releases up: Gaussian ones alone, pure ones alone, mixed ones; then with parts that have one (epsilon,
# delta) and no mu; then on samples.
ACCOUNTANTS = {
    "gaussian": "exact Gaussian DP (Balle & Wang 2018)",
    "pure": "basic composition of pure mechanisms",
    "mixed": "Gaussian DP composition",
    "basic": "basic composition of (epsilon, delta)",
    "best": "pointwise bound for the best of a random number of trials",
    "fixed size": "Renyi DP of fixed-size batches (Wang, Balle & Kasiviswanathan 2019)",
    "Poisson": "privacy loss distributions of Poisson batches (Zhu, Dong & Wang 2022)",
    "selected": "privacy loss distributions of choices and noise on one batch, or Renyi DP if that is smaller",
    "projected": "privacy loss distributions of gradients clipped by random projections",
}
POINTWISE = (ACCOUNTANTS["basic"], ACCOUNTANTS["best"])


def number_text(value: object) -> str:
    """Six digits of a float, anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def cost_text(value: float) -> str:
    """Six digits, rounded up, so that the text shows no less than the claim."""
    text = f"{value:.6g}"
    if float(text) < value * (1.0 - 1e-9):
        text = f"{value + 10.0 ** (math.floor(math.log10(value)) - 5):.6g}"
    return text
