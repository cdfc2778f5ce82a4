"""The adversarial rig: many runs on a neighbouring pair, and a lower confidence bound on what leaked.

The attacker guesses "second data set" when a statistic of everything that was released is above a
threshold. With N runs on each side the true and false positive rates have exact (Clopper-Pearson)
bounds, each wrong with probability `ALARM`; so a bound below is wrong with probability at most 2 ALARM.

* `epsilon_lower`: (epsilon, delta)-DP implies TPR <= e^epsilon FPR + delta, and the same for the misses.
* `mu_lower`: the claim of a Gaussian plan is mu-GDP, so Phi^-1(TPR) - Phi^-1(FPR) <= mu.
"""

import math

import numpy as np
from scipy.stats import beta, norm

ALARM = 2.5e-7  # two bounds a test: false alarm below 1e-6


def rates(low, high, threshold):
    """Exact bounds (smallest TPR, largest FPR) of the guess "statistic > threshold"."""
    hits, false = int(np.sum(high > threshold)), int(np.sum(low > threshold))
    n, m = len(high), len(low)
    tpr = beta.ppf(ALARM, hits, n - hits + 1) if hits else 0.0
    fpr = beta.ppf(1 - ALARM, false + 1, m - false) if false < m else 1.0
    return float(tpr), float(fpr)


def epsilon_lower(low, high, delta, threshold):
    """Lower confidence bound on epsilon at ``delta``; 0 if nothing was shown."""
    tpr, fpr = rates(low, high, threshold)
    hits = math.log((tpr - delta) / fpr) if tpr > delta else 0.0
    misses = math.log((1 - fpr - delta) / (1 - tpr)) if 1 - fpr > delta and tpr < 1 else 0.0
    return max(hits, misses, 0.0)


def mu_lower(low, high, threshold):
    """Lower confidence bound on the mu of Gaussian DP; 0 if nothing was shown."""
    tpr, fpr = rates(low, high, threshold)
    return max(0.0, float(norm.ppf(tpr) - norm.ppf(fpr)))


def shown(low, high):
    """`mu_lower` at the threshold between the medians."""
    return mu_lower(low, high, 0.5 * (np.median(low) + np.median(high)))
