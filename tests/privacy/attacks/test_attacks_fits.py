"""Whole fits against the best attacker: likelihood ratios of everything that a fit releases.

Few records, extreme ones, and numbers for all parameters, so that the whole budget goes to the steps. Steps are
tiny: all iterates are at 0 as far as gradients go, but the attacker computes every released gradient from them
(`callback` shows them). With everything else known, the likelihood ratio of a release is explicit, and no
statistic separates two data sets better (Neyman and Pearson). What is measured is compared with the claim's own
curve: TPR <= e^epsilon FPR + delta(epsilon) for every epsilon. Each mutant must break it.
"""

import dataclasses
import functools
import math

import numpy as np
import pytest
from scipy.special import log_expit

from skdp import DPAMPClassifier, DPRRPSGDClassifier, DPSRMClassifier
from skdp.fitting.linear import LinearFit
from skdp.linear_model.srm import solver as srm
from skdp.privacy import PrivateRecords, accounting, noise
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.objective_perturbation.cost import ObjectiveTerms, objective_delta
from skdp.privacy.session import base as session_base
from tests.privacy.audit import mu_lower, rates

pytestmark = [pytest.mark.filterwarnings("ignore::UserWarning"), pytest.mark.usefixtures("one_calibration")]

TWIN_RUNS = 250
RATE = 1e-9
FAR = 1e3  # a feature so large that the gradient is clipped wherever the iterates are


@pytest.fixture(autouse=True)
def steps_alone(monkeypatch):
    """No recalibration: it takes part of the budget after the steps, and the attacker here listens to these.

    With it, random rounds and recursive momentum, which has one for three classes, are attacked in
    test_auto_attacks (`test_what_follows_the_steps_is_in_the_claim`). Minima perturbation has none.
    """
    monkeypatch.setattr(LinearFit, "_closing", lambda fit, problem: ())


class Claim:
    """What a report says, as the largest true positive rate at a false positive rate."""

    def __init__(self, report):
        self.epsilon, self.delta = report.epsilon, report.delta
        self.points = [(report.epsilon, report.delta)]
        for epsilon in np.linspace(0.1, 1.5, 12) * report.epsilon:
            self.points.append((float(epsilon), float(report.delta_at(float(epsilon)))))
        first = report.mechanisms[0]
        if first["name"] == "objective_perturbation":
            # The report claims one point; the theorem at this noise holds at all, and the rest is composed.
            fields = {field.name: first[field.name] for field in dataclasses.fields(ObjectiveTerms)}
            rest = report.epsilon - first["epsilon"], report.delta - first["delta"]
            for epsilon in np.linspace(0.1, 1.5, 12) * first["epsilon"]:
                delta = objective_delta(float(epsilon), first["noise_std"], ObjectiveTerms(**fields))
                self.points.append((float(epsilon) + rest[0], delta + rest[1]))

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
    monkeypatch.setattr(noise, "rounded_gaussian", lambda *args: honest(*args) // 2)


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


def momentum(which, run, *, epsilon=8.0, n=40, batch_size=38, steps=4, others=-FAR):
    """The same for the fresh parts of v, without replacement: all others at -C, or absent."""
    X = np.full((n, 1), others)
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
        one = g / batch_size
        if others:
            parts = [(q, 2 * one - g), (1 - q, -g)], [(1.0, -g)]
        else:
            parts = [(q, one), (1 - q, 0.0)], [(q, -one), (1 - q, 0.0)]
        total += normal_mixture(fresh, parts[0], std) - normal_mixture(fresh, parts[1], std)
    return total, report


# ------------------------------------------------------------------ minima perturbation


def minimum(which, run, *, epsilon=8.0, others=10_000):
    """Log likelihood ratio of the released minimiser: a record of the largest norm, or none (zero-out).

    The others push theta to where the record's gradient is as long as it can be. The penalty is so large that the
    theorem covers small epsilons too.
    """
    X, y = np.full((others + 1, 1), 0.3), np.zeros(others + 1, dtype=int)
    X[0], y[0] = float(which), 1
    model = DPAMPClassifier(
        epsilon=epsilon, delta=1e-2, row_norm=1.0, alpha=10.0 / len(y), adjacency="zero-out", fit_intercept=False,
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


poisson = functools.partial(random_round, sampling="poisson")
fixed = functools.partial(random_round, sampling="without_replacement", epsilon=12.0, n=100, batch_size=99)
recursive = functools.partial(momentum, epsilon=12.0, n=100, batch_size=99)
perturbed = functools.partial(minimum, epsilon=10.0)

# Nearly full batches: the noise of small fixed-size ones is by a Renyi bound that no pair attains (REFEREE 9), and
# few runs cannot show what only one of many batches holds. One step, where a round is drawn: later ones are
# paid for, and often not taken.
ATTACKS = {
    "Poisson": (poisson, 300),
    "fixed": (fixed, 700),
    "recursive": (recursive, 450),
    "perturbed": (perturbed, 500),
}
# Small batches, where a sampler matters.
SMALL = {
    "Poisson": functools.partial(poisson, epsilon=4.0, n=40, batch_size=4),
    "fixed": functools.partial(fixed, epsilon=2.0, n=100, batch_size=1, steps=6),
    "recursive": functools.partial(momentum, epsilon=2.0, n=100, batch_size=1, steps=6),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ATTACKS)
def test_no_fit_leaks_more_than_its_report_says(name):
    attack, runs = ATTACKS[name]
    low, high, claim = measured(attack, runs)
    assert not claim.broken_by(low, high, 0.0)
    assert claim.reached(low, high, 0.0) >= 0.6


def quick(*chosen, among=ATTACKS):
    """Parametrise over attacks, of which the other ones are slow: each kind has one quick mutant at least."""
    slow = [pytest.param(name, marks=pytest.mark.slow) for name in among if name not in chosen]
    return pytest.mark.parametrize("name", [*chosen, *slow])


@quick("Poisson")
def test_half_the_noise_is_caught(name, monkeypatch):
    half_the_noise(monkeypatch)
    # The theorem on minima says less about small epsilons, so it takes more runs.
    runs = 400 if name == "perturbed" else TWIN_RUNS
    low, high, claim = measured(ATTACKS[name][0], runs, epsilon=4.0)
    assert claim.broken_by(low, high, 0.0)


@quick("fixed", among=["Poisson", "fixed", "recursive"])
def test_the_factor_of_another_adjacency_is_caught(name, monkeypatch):
    """The noise for a record that is absent, where one is replaced."""
    monkeypatch.setattr(grid, "factor", lambda adjacency: 1.0)
    low, high, claim = measured(ATTACKS[name][0], TWIN_RUNS, epsilon=4.0)
    assert claim.broken_by(low, high, 0.0)


@pytest.mark.thorough
@quick("recursive", among=["Poisson", "recursive"])
def test_a_clip_that_is_too_wide_is_caught(name, monkeypatch):
    """Gradients of four times the norm that the statistic declares."""
    for owner, statistic in ((PrivateRecords, "mean_gradient"), (srm, "recursive_gradient")):
        honest = getattr(owner, statistic)

        def wide(records, *args, honest=honest, **options):
            declared = honest(records, *args, **options)
            if "clip_norm" in options:
                options["clip_norm"] *= 4
            else:
                args = (*args[:2], args[2] * 4)
            object.__setattr__(declared, "_value", honest(records, *args, **options)._value)
            return declared

        monkeypatch.setattr(owner, statistic, wide)
    options = {"others": 0.0} if name == "recursive" else {}
    low, high, claim = measured(ATTACKS[name][0], TWIN_RUNS, epsilon=4.0, **options)
    assert claim.broken_by(low, high, 0.0)


def always_the_first(plan, count, stream, bits=None, *, honest=session_base.draw_units):
    """The shipped sampler, but unit 0 is in every batch."""
    units = honest(plan, count, stream, bits)
    if units.size and units[0] == 0:
        return units
    return np.r_[0, units if plan.sampling == "Poisson" else units[1:]]


@pytest.mark.thorough
@quick("Poisson", among=SMALL)
def test_a_sampler_that_always_takes_one_record_is_caught(name, monkeypatch):
    attack = SMALL[name]
    low, high, claim = measured(attack, 60)
    assert not claim.broken_by(low, high, 0.0)
    monkeypatch.setattr(session_base, "draw_units", always_the_first)
    low, high, claim = measured(attack, 120)
    assert claim.broken_by(low, high, 0.0)


@pytest.mark.parametrize(
    ("epsilon", "delta", "n", "batch_size"),
    [(8.0, 1e-2, 40, 38), (8.0, 1e-2, 4, 3), (8.0, 1e-5, 4, 3), (12.0, 1e-2, 40, 38), (12.0, 1e-5, 40, 38),
     (40.0, 1e-3, 2, 1)],
)  # fmt: skip
def test_no_fit_is_refused_after_the_data_were_read(epsilon, delta, n, batch_size):
    """The recheck of one step by dp-accounting was off by up to half an epsilon where the noise is small."""
    model = DPRRPSGDClassifier(
        epsilon=epsilon, delta=delta, clip_norm=1.0, learning_rate=RATE, max_iter=1, batch_size=batch_size,
        fit_intercept=False, classes=(0, 1), random_state=0,
    ).fit(np.ones((n, 1)), np.zeros(n, dtype=int))  # fmt: skip
    assert model.privacy_.epsilon == epsilon
