"""The numbers that fits of several methods choose: value, unit, what other values do, and which run chose them.

The code reads ``DEFAULTS.group.name``. Shares are parts of mu^2, the budget of a fit; n mu is units times mu.
Grids of searches and constants that a proof fixes stay with their code.
"""

from dataclasses import dataclass, field
from typing import TypeVar

_T = TypeVar("_T")

# Units.
SHARE, OF_SHARE = "mu^2 of the fit", "part of that share"
STD, EFFECTIVE_N, NOISE_RATIO = "noise standard deviations", "n mu", "(d + 1)^1.5 / (n mu)"

# Origins.
PROOF = "a bound by proof"
NUMERICAL = "a numerical resolution, not tuned"
NOT_TUNED = "not tuned"
NETS = "held-out parts of MNIST, digits, breast_cancer, diabetes and generated tables"
SUITE = "inner splits of the development suite, and generated tables"


def number(value: _T, unit: str, effect: str, origin: str) -> _T:
    """A field: its default, unit, what happens above and below, and its origin."""
    return field(default=value, metadata={"unit": unit, "effect": effect, "origin": origin})


# fmt: off
@dataclass(frozen=True)
class RecalibrationDefaults:
    """Recalibration of a classifier's scores; pairs are for two classes, and for more."""

    min_share: float = number(0.02, SHARE, "above: less for the method; below: noisy slopes", SUITE)
    max_share: tuple[float, float] = number((0.2, 0.3), SHARE,
        "above: less for the method; below: few units are not recalibrated", SUITE)
    scarce_effective_n: float = number(120.0, EFFECTIVE_N,
        "above: the largest share grows for more fits; below: for fewer", SUITE)
    max_scarce_share: float = number(0.3, SHARE,
        "where units are few; above: less for the method; below: noisy slopes", SUITE)
    half_believed_effective_n: tuple[float, float] = number((80.0, 220.0), EFFECTIVE_N,
        "above: scores are shrunk more before anything of them is released; below: noise in them is believed",
        SUITE)
    wanted_noise: tuple[float, float] = number((0.008, 0.005), "noise of a mean probability",
        "above: smaller shares; below: larger ones", SUITE)
    max_relative_noise: float = number(3.0, NOISE_RATIO,
        "above: moved intercepts cost several classes more labels than they mend probabilities (MNIST at epsilon "
        "0.1: .858 to .850); below: probabilities stay wrong", SUITE)
    max_noise: float = number(0.15, "noise of a mean probability",
        "above: noise is fitted; below: probabilities stay wrong", SUITE)
    parts: tuple[tuple[float, ...], ...] = number(
        ((0.07, 0.08, 0.1, 0.15, 0.2, 0.4), (0.06, 0.06, 0.09, 0.12, 0.16, 0.51)), OF_SHARE,
        "centre, scale, four rounds: more for one is less for the others", SUITE)
    scale_questions: int = number(6, "counts", "above: more noise in each; below: too few for the grid", PROOF)
    center_questions: int = number(5, "counts", "above: more noise in each; below: too few for the grid", PROOF)
    max_first_intercept: float = number(3.0, "logits", "above: the first round looks where p is flat", SUITE)
    scale_quantile: float = number(0.8, "quantile of the scores' distance from their centre",
        "above: few scores decide; below: many are clipped", SUITE)
    clip: float = number(1.0, "scales", "above: more noise; below: large scores count too little", SUITE)
    first_logit: tuple[float, float] = number((1.7, 2.5), "logit at the scale / sqrt(n_outputs)",
        "above: the first round looks where p is flat; below: more rounds are needed", SUITE)
    prior: tuple[float, float] = number((1.0, 1.0), "logits",
        "of intercepts, and of a score at the scale; above: noise is believed; below: scores stay as they are",
        SUITE)
    max_step: float = number(2.0, "logits", "above: rounds overshoot; below: they fall short", SUITE)
    slope_change: tuple[float, float] = number((0.25, 4.0), "slope / slope of the round before",
        "wider: rounds overshoot; narrower: they fall short", SUITE)
    doubt: float = number(0.5, "error of a round / length of its step",
        "above: later rounds count more; below: a bent loss is believed to be straight", SUITE)
    min_slope: float = number(1e-3, "slope / slope of the first round", "below: scores may turn around", SUITE)
    max_slope: float = number(4.0, "slope", "above: noisy slopes; below: pulled scores stay so", SUITE)
    max_classes: int = number(32, "classes", "above: releases of their squares, mostly noise", SUITE)
    min_curvature: float = number(1.0, "spectral norm of its noise",
        "above: steps are too short; below: too long", SUITE)
    curvature_weight: float = number(0.7, "weight in a release",
        "above: noisier gradients; below: noisier curvature", SUITE)
    last_slope_weight: float = number(0.3, "weight in the last release of several classes",
        "above: noisier intercepts; below: a noisier slope", SUITE)


@dataclass(frozen=True)
class CalibrationDefaults:
    """The last releases of a regression: a factor of its predictions, and a shift."""

    search_part: float = number(0.2, OF_SHARE,
        "of each search for a half-width; above: noisier moments; below: wrong half-widths", SUITE)
    questions: int = number(7, "counts", "above: more noise in each; below: too few for the grid", PROOF)
    max_half_width: float = number(4.0, "half-width of the predictions / half-width of the targets",
        "above: noise is calibrated; below: coefficients become 0", SUITE)
    tail: float = number(0.02, "part of the records", "above: tails are cut; below: more noise", SUITE)
    min_tail: float = number(2.2, STD, "above: tails are cut; below: a half-width of noise", SUITE)
    intercept: float = number(1.0, "feature / half-width of the predictions",
        "above: noisier factors; below: noisier shifts", SUITE)
    min_factor: float = number(0.02, "factor", "above: weak models become 0; below: noise stays", SUITE)
    min_deviation: float = number(1e-3, "factor", "below: posteriors between the grid's points", NUMERICAL)
    max_factor: float = number(1.5, "factor", "above: noisy factors; below: shrunk models stay so", SUITE)
    belief: tuple[float, float, float] = number((0.7, 0.18, 0.12), "prior probability",
        "factor 0, factors about 1, all factors: more for 0 shrinks noise and weak models", SUITE)
    about_one: float = number(0.15, "factor", "above: any factor is likely; below: only 1 is", SUITE)
    min_clip: float = number(1.0, "half-width of the targets", "above: more noise; below: tails are cut", SUITE)
    max_clip: float = number(4.0, "half-width of the targets",
        "above: outliers count; below: tails are cut", SUITE)
    clip_noise: float = number(0.03, "noise of the mean / half-width",
        "above: a wider clip; below: a narrower one", SUITE)
    min_kept: float = number(0.05, "part of a mean", "above: noise stays; below: nothing may", NOT_TUNED)
    min_clip_of_constant: float = number(0.6, "half-width of the targets",
        "above: more noise; below: tails are cut", SUITE)
    skew: float = number(0.1, "deviation of the mean about the median / half-width",
        "above: noise is believed; below: the centre stays a median", SUITE)


@dataclass(frozen=True)
class QuantileDefaults:
    """Quantiles by noisy counts: the range of targets."""

    max_above: float = number(0.05, "part of the targets",
        "above: their size is found too small; below: more noise", NOT_TUNED)
    min_tail: float = number(2.2, STD, "above: tails are cut; below: a half-width of noise", NOT_TUNED)
    repeated_part: float = number(0.4, OF_SHARE,
        "above: a noisy first search; below: a noisy second one", NOT_TUNED)
    near_zero: float = number(0.0625, "centre / size of the targets",
        "above: narrow ranges far from 0 are found coarsely; below: a second search of ranges about 0", NOT_TUNED)
    tail: float = number(0.02, "part of the targets", "above: tails are cut; below: more noise", NOT_TUNED)


@dataclass(frozen=True)
class RunDefaults:
    """Steps, batches and step sizes of nets and words."""

    steps_per_signal: float = number(4.0, "steps / signal",
        "above: more noise in each step; below: too few steps", NETS)
    min_steps: int = number(30, "steps", "above: more noise in each step; below: too few steps", NETS)
    max_steps: int = number(1000, "steps", "above: time; below: too few steps", NETS)
    noise: float = number(1.5, "noise multiplier",
        "above: larger batches take time; below: amplification by sampling is weak", NETS)
    exact_batch: int = number(2048, "units",
        "of fits without noise; above: time for each step; below: noisy gradients", NOT_TUNED)
    adam_step: float = number(0.03, "first step of Adam",
        "above: wild starts; below: slow ones (in 30 to 487 steps at epsilon 0.5 to 8 the published 1e-3 lost 2 "
        "to 59 points against the best of a grid)", NETS)
    adam_path: float = number(3.0, "first step x steps",
        "above: long runs end far away; below: they fall short", NETS)
    step: float = number(10.0, "clip norms / (1 - momentum)",
        "above: wild starts; below: slow ones (MNIST with 1,000 steps at epsilon 3, one seed: .978 held out with "
        "5, .974 with 10)", NETS)
    path: float = number(5000.0, "first step x steps, in clip norms",
        "above: long runs end far away; below: they fall short", NETS)
# fmt: on


@dataclass(frozen=True)
class Defaults:
    """All tables, by the module that reads them."""

    recalibration: RecalibrationDefaults = RecalibrationDefaults()
    calibration: CalibrationDefaults = CalibrationDefaults()
    quantiles: QuantileDefaults = QuantileDefaults()
    runs: RunDefaults = RunDefaults()


DEFAULTS = Defaults()
