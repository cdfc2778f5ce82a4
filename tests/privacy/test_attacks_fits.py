"""Whole fits against the best attacker: likelihood ratios of everything that a fit releases.

Few records, extreme ones, and numbers for all parameters, so that the whole budget goes to the steps. The step size
is tiny: all iterates are at 0 as far as gradients go, but the attacker computes every released gradient from them
(`callback` shows them). With everything else known, the likelihood ratio of a release is explicit, and no
statistic separates two data sets better (Neyman and Pearson). What is measured is compared with the claim's own
curve: TPR <= e^epsilon FPR + delta(epsilon) for every epsilon. Each twin must break it.
"""

import functools
import math
import warnings

import numpy as np
import pytest
from scipy.special import log_expit

import skdp.privacy._session_batches as session_batches
import skdp.privacy._session_objective as session_objective
from skdp import DPAMPClassifier, DPRRPSGDClassifier, DPSRMClassifier
from skdp.privacy import PrivateRecords, accounting, mechanisms, noise
from tests.privacy.audit import mu_lower, rates

RUNS, TWIN_RUNS = 450, 300
RATE = 1e-9
FAR = 1e3  # a feature so large that the gradient is clipped wherever the iterates are


@pytest.fixture(autouse=True, scope="module")
def _quick():
    """Fits by the hundred with one calibration."""
    with pytest.MonkeyPatch.context() as patch, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        patch.setattr(accounting, "gaussian_mu", functools.lru_cache(accounting.gaussian_mu))
        yield


class Claim:
    """What a report says, as the largest true positive rate at a false positive rate."""

    def __init__(self, report):
        self.epsilon, self.delta = report.epsilon, report.delta
        self.points = [(report.epsilon, report.delta)]
        for epsilon in np.linspace(0.1, 1.5, 12) * report.epsilon:
            self.points.append((float(epsilon), float(report.delta_at(float(epsilon)))))

    def most(self, fpr):
        return min(math.exp(epsilon) * fpr + delta for epsilon, delta in self.points)

    def broken_by(self, low, high, threshold):
        """Whether the claim is false, but for 5e-7."""
        tpr, fpr = rates(low, high, threshold)
        return tpr > self.most(fpr) or 1 - fpr > self.most(1 - tpr)

    def reached(self, low, high, threshold):
        """Epsilon that was shown, read as the Gaussian mechanism's, over the claimed one."""
        found = mu_lower(low, high, threshold)
        return accounting.gaussian_epsilon(found, self.delta) / self.epsilon if found else 0.0


def measured(attack, runs, **options):
    """The attacker's statistic on both data sets; every fit has a seed of its own."""
    low = [attack(0, 2 * run, **options) for run in range(runs)]
    high = [attack(1, 2 * run + 1, **options) for run in range(runs)]
    return np.array([x for x, _ in low]), np.array([x for x, _ in high]), Claim(high[-1][1])


def half_the_noise(monkeypatch):
    honest = noise.rounded_gaussian
    for module in (mechanisms, session_objective):
        monkeypatch.setattr(module.noise, "rounded_gaussian", lambda *args: honest(*args) // 2)


def normal_mixture(x, parts, std):
    """Log density of a mixture of normals, up to what is the same for all; parts are (weight, mean)."""
    terms = [math.log(w) - 0.5 * ((x - m) / std) ** 2 for w, m in parts if w > 0]
    return float(np.logaddexp.reduce(terms))


# ------------------------------------------------------------------ random rounds


def random_round(which, run, *, sampling, epsilon=8.0, n=40, batch_size=38, steps=1):
    """Log likelihood ratio of the released gradients: a record at +C against one at -C."""
    others = -FAR if sampling == "without_replacement" else 0.0  # what hurts most beside the record
    X = np.full((n, 1), others)
    X[0] = FAR if which else -FAR
    seen = [0.0]
    model = DPRRPSGDClassifier(
        epsilon=epsilon, delta=1e-2, clip_norm=1.0, learning_rate=RATE, alpha=0.0, max_iter=steps,
        batch_size=batch_size, sampling=sampling, fit_intercept=False, classes=(0, 1), random_state=run,
        callback=lambda _, coef: seen.append(float(coef[0, 0])),
    ).fit(X, np.zeros(n, dtype=int))  # fmt: skip
    report = model.privacy_
    std = report.mechanisms[-1]["noise_std"]
    q, one = batch_size / n, 1.0 / batch_size
    total = 0.0
    for gradient in -np.diff(seen) / RATE:
        if others:
            parts = [(q, -1.0 + 2 * one), (1 - q, -1.0)], [(1.0, -1.0)]
        else:
            parts = [(q, one), (1 - q, 0.0)], [(q, -one), (1 - q, 0.0)]
        total += normal_mixture(gradient, parts[0], std) - normal_mixture(gradient, parts[1], std)
    return total, report


# ------------------------------------------------------------------ recursive momentum

G, C2 = 0.9, 0.01


def momentum(which, run, *, epsilon=8.0, n=40, batch_size=38, steps=6):
    """The same for the fresh parts of v, without replacement: all others at -C."""
    X = np.full((n, 1), -FAR)
    X[0] = FAR if which else -FAR
    seen = [0.0]
    model = DPSRMClassifier(
        epsilon=epsilon, delta=1e-2, clip_norm=1.0, clip_diff_norm=C2, momentum=G, learning_rate=RATE,
        max_step_norm=1e300, alpha=0.0, max_iter=steps, batch_size=batch_size,
        initial_batch_size=batch_size, sampling="without_replacement", fit_intercept=False,
        classes=(0, 1), random_state=run, callback=lambda _, coef: seen.append(float(coef[0, 0])),
    ).fit(X, np.zeros(n, dtype=int))  # fmt: skip
    report = model.privacy_
    stds = [row["noise_std"] for row in report.mechanisms for _ in range(row["count"])]
    v = -np.diff(seen) / RATE
    q, total = batch_size / n, 0.0
    for t, std in enumerate(stds):
        g, fresh = (1.0, v[0]) if t == 0 else (G, v[t] - (1 - G) * v[t - 1])
        parts = [(q, g * (2 / batch_size - 1)), (1 - q, -g)], [(1.0, -g)]
        total += normal_mixture(fresh, parts[0], std) - normal_mixture(fresh, parts[1], std)
    return total, report


# ------------------------------------------------------------------ minima perturbation


def minimum(which, run, *, epsilon=8.0, others=1500):
    """Log likelihood ratio of the released minimiser: a record of the largest norm, or none (zero-out).

    The others push theta to where the record's gradient is as long as it can be.
    """
    X, y = np.full((others + 1, 1), 0.3), np.zeros(others + 1, dtype=int)
    X[0], y[0] = float(which), 1
    model = DPAMPClassifier(
        epsilon=epsilon, delta=1e-2, row_norm=1.0, alpha=0.0, adjacency="zero-out", fit_intercept=False,
        classes=(0, 1), random_state=run,
    ).fit(X, y)  # fmt: skip
    report, theta = model.privacy_, float(model.coef_[0, 0])
    std, penalty = report.mechanisms[0]["noise_std"], model.alpha_ * len(y)
    theirs, share = math.exp(log_expit(0.3 * theta)), math.exp(log_expit(-theta))
    gradient = penalty * theta + 0.3 * others * theirs
    bend = penalty + 0.09 * others * theirs * (1 - theirs)
    with_it = -0.5 * ((gradient - share) / std) ** 2 + math.log(bend + share * (1 - share))
    without = -0.5 * (gradient / std) ** 2 + math.log(bend)
    return with_it - without, report


ATTACKS = {
    "random round, Poisson": (functools.partial(random_round, sampling="poisson"), 1.0),
    "random round, fixed size": (functools.partial(random_round, sampling="without_replacement"), 1.0),
    "recursive momentum, fixed size": (momentum, 0.0),
    "minima perturbation": (minimum, 1.0),
}
