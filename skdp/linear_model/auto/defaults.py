"""The numbers that the automatic solvers choose: value, unit, what other values do, and which run chose them.

The code reads ``DEFAULTS.group.name``. Shares are parts of mu^2, the budget of a fit; n mu is units times mu.
``python -m tools.defaults.run`` of the repository measures what other values gain and lose, and
``docs/contributing/defaults.rst`` shows the results. Constants that a proof or an integral fixes are not here.
"""

from dataclasses import dataclass

from skdp.fitting.defaults import (
    EFFECTIVE_N,
    NOISE_RATIO,
    NOT_TUNED,
    NUMERICAL,
    OF_SHARE,
    PROOF,
    SHARE,
    STD,
    number,
)

__all__ = ["DEFAULTS", "BinDefaults", "Defaults", "HistogramDefaults"]

# Origins.
SUITE = "inner splits of the development suite"
TAILS = "inner splits of the development suite and examples/heavy_tails.py"
UNRECORDED = "the run that chose it is not recorded"
PERTURBED = "the run that chose it is not recorded; doubled and halved by tools/defaults"

# Units.
OF_REST, BINS = "part of the mu^2 that is left", "bins (factors of 2)"


# fmt: off
@dataclass(frozen=True)
class ChoiceDefaults:
    """Which method a fit takes, and when it releases a constant only."""

    max_relative_noise: float = number(3.0, NOISE_RATIO,
        "above: moments are released that noise hides; below: other solvers fit tables that moments fit better",
        SUITE)
    narrow_features: int = number(100, "features",
        "above: more small tables take moments whatever the noise; below: sparse or noisy ones take `DPIGHT`",
        PERTURBED)
    wide_features: int = number(256, "features",
        "above: dense signals take `DPIGHT`; below: tables of unrelated columns are smoothed", PERTURBED)
    min_effective_n: float = number(75.0, EFFECTIVE_N,
        "above: a regression releases a constant where slopes would help; below: slopes that are noise", SUITE)
    min_effective_n_per_feature: float = number(1.0, "n mu / features",
        "above: wide tables get a constant where slopes would help; below: slopes that are noise", SUITE)
    max_class_noise: float = number(0.1, "sqrt(d + 1) / (n mu)",
        "above: a classification releases coefficients that are noise; below: frequencies only", PERTURBED)
    max_release_share: float = number(0.35, SHARE,
        "above: enormous epsilons are refused that would fit; below: they fail after releases", PROOF)
    max_constant_share: float = number(0.75, SHARE,
        "of a regression that releases a constant; above: enormous epsilons are refused that would fit; below: "
        "they fail after releases", PROOF)


@dataclass(frozen=True)
class BinDefaults:
    """Power-of-two bins of magnitudes ("power-of-two bins" in the ledger): which one is a column's highest."""

    lowest: int = number(-34, "exponent of 2",
        "above: tiny columns are not found; below: more bins that noise may fill", NOT_TUNED)
    highest: int = number(48, "exponent of 2",
        "above: more bins that noise may fill; below: enormous columns are cut", NOT_TUNED)
    prior_scale: float = number(2.0, BINS,
        "above: the prior is flatter; below: columns far from 1 need more evidence", PERTURBED)
    usual: tuple[int, int] = number((-6, 8), "exponents of 2",
        "wider: noise in rare bins counts more; narrower: unusual units need more evidence", UNRECORDED)
    below_usual_factor: float = number(1e-4, "prior probability, relative",
        "above: too small windows, which cost most accuracy; below: tiny columns need more evidence", PERTURBED)
    above_usual_factor: float = number(1e-2, "prior probability, relative",
        "above: windows that are too large; below: enormous columns need more evidence", PERTURBED)
    below_usual_decay: float = number(1.0, "log prior probability per bin",
        "above: tinier columns need more evidence; below: less", PERTURBED)
    prior_columns: float = number(3.0, "columns",
        "above: other columns tell less about a column; below: few noisy columns confirm each other", PERTURBED)
    prior_rounds: int = number(5, "rounds",
        "above: the shared prior converges; below: it stays near the public one", NUMERICAL)
    shapes: tuple[tuple[float, ...], ...] = number(
        ((1.0,), (0.6, 0.4), (0.4, 0.35, 0.25), (0.3, 0.25, 0.2, 0.15, 0.1)),
        "parts of the cells, from the top bin",
        "more shapes: long tails are recognised, and noise fits more; fewer: less of both", UNRECORDED)
    parts: tuple[float, ...] = number((1.0, 0.6, 0.3, 0.12, 0.05, 0.02), "part of the records that is not 0",
        "smaller ones: rarer columns are found, and noise is taken for them", UNRECORDED)
    upper_quantile: float = number(0.95, "posterior probability",
        "above: windows are too wide; below: the largest cells are cut", PERTURBED)
    neighbours: int = number(2, BINS,
        "above: a window counts as found though its end is unsure; below: columns are given up", PERTURBED)
    min_probability: float = number(0.8, "posterior probability",
        "above: columns are given up; below: windows made of noise", PERTURBED)
    higher_evidence: float = number(2.5, STD,
        "above: codes such as 999 are cut; below: noise widens windows", PERTURBED)
    evidence_per_bin: float = number(0.5, "noise standard deviations per bin",
        "above: codes far from the other cells are cut; below: noise widens windows far", PERTURBED)
    distant: int = number(4, BINS,
        "from here on a bin above must show `sure_evidence`; above: noise widens windows more", PERTURBED)
    sure_evidence: float = number(5.6, STD,
        "above: rare bins are missed; below: more than 4e-6 of the windows are made of noise (normal tail x 83 "
        "bins x 4 shapes)", PROOF)
    exact_noise: float = number(0.25, "records",
        "the noise with which exact counts are read; above 0.5 whole numbers could be confused; below: nothing",
        PROOF)


@dataclass(frozen=True)
class HistogramDefaults:
    """Histograms of columns in a window, and the family of laws by which they are read."""

    n_bins: int = number(16, "bins", "above: more noise in the sums; below: centres are coarse", PERTURBED)
    n_centers: int = number(33, "laws",
        "above: a finer grid, which costs time; below: centres are coarse", NUMERICAL)
    smallest_scale: float = number(-5.0, "log2 of the half-width",
        "above: narrow laws are taken for wider ones; below: laws that fill a part of one bin", UNRECORDED)
    scale_step: float = number(0.5, "log2 of the half-width",
        "above: scales are coarse; below: a finer grid, which costs time", NUMERICAL)
    atoms: tuple[float, ...] = number((0.3, 0.6, 0.85), "part of the values that is 0",
        "laws with zeros and an exponential tail; others are taken for their neighbour", UNRECORDED)
    heavy_atoms: tuple[float, ...] = number((0.35, 0.5, 0.65, 0.8, 0.9, 0.97), "part of the values in one bin",
        "smaller ones: more columns keep their first window", UNRECORDED)
    misfit: float = number(0.02, "part of the units in a bin",
        "above: histograms say less; below: a law is believed that the family only resembles", PERTURBED)
    deviation_quantile: float = number(0.6, "posterior probability",
        "above: windows are too wide; below: values are cut", PERTURBED)
    seen_evidence: float = number(3.5, STD,
        "above: a second hump is missed; below: noise widens windows", PERTURBED)
    seen_part: float = number(0.001, "part of the units",
        "above: a rare second hump is missed; below: few records widen windows", PERTURBED)
    min_deviation: float = number(0.09, "deviation / half-width",
        "above: more histograms are released; below: the last one is coarse", PERTURBED)
    next_window: float = number(6.0, "deviations",
        "above: windows narrow slowly; below: values are lost on the way", PERTURBED)
    last_window: float = number(4.0, "deviations",
        "above: the last histogram is coarse; below: tails are cut", PERTURBED)
    beyond: float = number(5.0, "half-widths",
        "centre and deviation of values beyond one end; above: the next window overshoots; below: it falls short",
        PERTURBED)
    min_half_width: float = number(2.0**-40, "half-width / size of the centre",
        "below: edges of bins might be equal in float64", PROOF)
    max_windows: int = number(12, "histograms",
        "above: nothing; below: values close together are not found", NUMERICAL)


@dataclass(frozen=True)
class ColumnDefaults:
    """Windows, means and deviations of the columns."""

    far_share: float = number(0.06, SHARE,
        "for windows of columns far from 0; above: less for the gradients; below: years keep their noise",
        PERTURBED)
    far_parts: tuple[float, float] = number((0.7, 0.3), OF_SHARE,
        "histograms, moments: more for one is less for the other", UNRECORDED)
    presence_share: float = number(0.01, SHARE,
        "for counts of missing values; above: less for the gradients; below: they are not seen", PERTURBED)
    missing_evidence: float = number(4.0, STD,
        "above: missing values count as 0; below: noise is taken for them", PERTURBED)
    min_present: float = number(0.05, "part of the records",
        "above: mostly empty columns are scaled wrongly; below: noise is divided by a tiny part", PERTURBED)
    margin: float = number(1.25, "half-width / end of the highest bin",
        "above: windows are wider than the cells; below: cells of the next bin are cut", PERTURBED)
    min_filled: float = number(0.02, "mean square / squared window",
        "above: tails are cut; below: a slope follows from few cells (.01 to .25 were compared on normal, "
        "exponential, Laplace and Student columns)", SUITE)
    filled_evidence: float = number(1.5, STD,
        "above: thin bins are left out of the mean square; below: noise is added to it", SUITE)
    bulk_evidence: float = number(3.0, STD,
        "above: the bulk of a column is not found; below: a window ends at noise", SUITE)
    usual_bins: tuple[int, int] = number((-2, 4), "exponents of 2",
        "wider: noise makes more windows; narrower: 0/1 columns need more evidence (a wrong window among them is "
        "at most 16 times too large)", NOT_TUNED)
    max_low_evidence: float = number(2.0, STD,
        "above: more than 1e-5 of the windows are false (of 2, 2.5 and 3, in simulations of 1e6); below: tiny "
        "columns need more evidence", "tests/linear_model/auto/test_false_windows.py")
    typical_mean_square: float = number(0.1, "mean square / squared half-width",
        "above: more noise in the moments; below: rows are scaled down", PERTURBED)
    min_weight: float = number(0.2, "part of the records",
        "above: rows that were scaled down count too little; below: noise is divided by a tiny weight", PERTURBED)
    variance_floor: float = number(0.5, "variance / typical variance",
        "above: noisy columns are scaled too small; below: too large", PERTURBED)
    min_variance: float = number(1e-6, "variance / squared half-width",
        "above: narrow columns are scaled too small; below: constant ones are divided by nothing", PERTURBED)
    standardized_deviations: tuple[float, float] = number((0.6, 1.6), "deviation",
        "wider: more tables are taken as standardized; narrower: rare dummies of such tables are cut", UNRECORDED)
    standardized_mean: float = number(0.4, "deviations",
        "above: more columns count as standardized; below: fewer", PERTURBED)
    standardized_part: float = number(0.22, "part of the columns",
        "above: standardized tables are scaled again; below: others are taken as they are", PERTURBED)
    standardized_min_deviation: float = number(1 / 256, "deviation",
        "above: rare dummies of standardized tables are cut; below: tiny columns stay tiny", PERTURBED)
    far_part: float = number(0.6, "part of the records in the two highest bins",
        "above: columns far from 0 are not looked at; below: others are", PERTURBED)
    far_evidence: float = number(4.0, "noise standard deviations of the variance",
        "above: columns are looked at whose variance is known; below: ones whose variance is noise are not",
        PERTURBED)
    histogram_noise: float = number(14.0, "noise of a histogram x n mu",
        "above: a histogram takes more of the share; below: it finds no window", PERTURBED)
    min_histogram_share: float = number(1e-4, SHARE,
        "below: plans with shares that cannot be told from 0", NOT_TUNED)
    max_histogram_part: float = number(0.5, OF_SHARE,
        "above: a single histogram; below: more noise in it", NOT_TUNED)
    max_histogram_noise: float = number(0.2, "part of the units",
        "above: histograms that find no window; below: columns far from 0 keep their noise", PERTURBED)
    max_atom_evidence: float = number(8.0, "log likelihood ratio",
        "above: windows close around the frequent value; below: columns are given up", PERTURBED)
    min_spread_evidence: float = number(2.0, "log likelihood ratio",
        "above: columns keep the wide window; below: dummies lose their rare values", PERTURBED)
    window_deviations: float = number(3.0, "deviations",
        "above: windows are wide; below: tails are cut", PERTURBED)
    max_window: float = number(0.5, "new half-width / old half-width",
        "above: windows that hardly help; below: columns keep the wide window", NOT_TUNED)


@dataclass(frozen=True)
class TargetDefaults:
    """The range of the targets of a regression."""

    share: float = number(0.06, SHARE, "above: less for the gradients; below: windows miss the targets", SUITE)
    max_share: float = number(0.5, SHARE,
        "where units are few; above: less for the gradients; below: windows miss the targets", SUITE)
    effective_n: float = number(30.0, EFFECTIVE_N,
        "above: the share, (this / n mu)^2 between its limits, grows for more fits; below: for fewer", SUITE)
    parts: tuple[float, float] = number((0.4, 0.6), OF_SHARE,
        "counts by bins, histograms: more for one is less for the other", UNRECORDED)
    histogram_noise: float = number(28.0, "noise of a histogram x n mu",
        "above: histograms on the way take more; below: they miss the targets", PERTURBED)
    max_histogram_part: float = number(0.3, OF_SHARE,
        "above: the last histogram gets less; below: the ones before find no window", PERTURBED)
    min_histogram_share: float = number(1e-4, SHARE,
        "below: plans with shares that cannot be told from 0", NOT_TUNED)
    max_left_part: float = number(0.5, OF_REST, "above: histograms may leave too little for the model", NOT_TUNED)
    min_last_part: float = number(0.5, "part of the share for the last histogram",
        "above: the histograms before it cost more in sum; below: the last one is noisy", NOT_TUNED)
    upper_quantile: float = number(0.9, "posterior probability",
        "above: windows are too wide; below: the largest targets are missed", PERTURBED)
    half_width_deviations: float = number(2.5, "deviations",
        "above: more noise in sums; below: tails are cut", SUITE)
    max_atom_evidence: float = number(4.0, "log likelihood ratio",
        "above: windows close around a frequent value such as 0; below: years keep the wide window", PERTURBED)
    repeated_part: float = number(0.1, OF_SHARE,
        "above: dear histograms are repeated; below: one that noise widened is believed", PERTURBED)
    max_repeats: int = number(2, "histograms",
        "above: more of the budget may go here; below: windows stay wide", PERTURBED)
    min_left_for_repeat: float = number(0.5, SHARE,
        "above: no repeats; below: too little for the model", NOT_TUNED)
    found_evidence: float = number(5.0, STD,
        "above: fits predict 0 though targets are there; below: the range is noise", PERTURBED)
    above_evidence: float = number(4.0, STD,
        "above: a far hump is lost; below: noise widens the window", PERTURBED)
    lost_part: float = number(0.2, "part of the units beyond an end",
        "above: a far hump is lost; below: tails widen the window", PERTURBED)
    min_left_for_wider: float = number(0.2, SHARE,
        "above: a far hump is lost; below: too little for the model", NOT_TUNED)
    second_counts: float = number(3.0, "share / share of the first counts",
        "above: less for the model; below: the targets are not found the second time either", PERTURBED)
    min_left_for_counts: float = number(0.5, SHARE,
        "above: no second counts; below: too little for the model", NOT_TUNED)
    prediction_half_widths: float = number(3.0, "half-widths",
        "above: wild predictions are not cut; below: right ones are (the smallest of 1, 1.5, 2, 3 and inf that "
        "loses nothing)", TAILS)


@dataclass(frozen=True)
class StepDefaults:
    """The Gram matrix, and steps along released gradients."""

    row_norm: float = number(0.9, "norm / root mean square norm",
        "above: more noise; below: long rows count too little", SUITE)
    gram_floor: float = number(0.5, "spectral norm of the noise",
        "above: steps are too short; below: too long along noise", SUITE)
    min_eigenvalue: float = number(0.05, "mean square of a standardized column",
        "above: steps are too short along rare directions; below: too long", SUITE)
    eigenvalue_evidence: float = number(1.2, "largest eigenvalue of the noise alone",
        "above: shared directions are shrunk away; below: noise is kept", SUITE)
    first_variances: tuple[float, ...] = number(tuple(2.0**k for k in range(-4, 4)), "expected variance of a step",
        "wider: weak and strong signals are told apart, and noise is believed more", SUITE)
    later_variances: tuple[float, ...] = number((0.5, 1.0, 2.0), "expected variance of a step",
        "wider: later steps depend less on the error after the first one", SUITE)


@dataclass(frozen=True)
class ClassDefaults:
    """The method of moments for classes."""

    bins_share: float = number(0.1, SHARE, "above: less for the gradients; below: columns are not found", SUITE)
    moments_share: float = number(0.14, SHARE,
        "above: less for the gradients; below: columns are scaled wrongly", SUITE)
    column_evidence: float = number(2.5, STD, "above: columns are given up; below: windows made of noise", SUITE)
    counts_share: float = number(0.03, SHARE, "above: less for the gradients; below: noisy frequencies", SUITE)
    max_counts_share: float = number(0.3, SHARE,
        "where units are few; above: less for the gradients; below: noisy frequencies", SUITE)
    counts_noise: float = number(0.05, "noise of a frequency",
        "above: noisy frequencies; below: the counts take their largest share sooner", SUITE)
    min_counts: float = number(2.0, STD,
        "above: rare classes count too much; below: log frequencies of noise", NOT_TUNED)
    gram_part: float = number(0.1, OF_REST, "above: less for the gradients; below: steps along noise", SUITE)
    gradient_parts: tuple[float, ...] = number((0.3, 0.3, 0.4), OF_REST,
        "more steps: each has more noise; fewer: the bend of the loss stays", SUITE)
    damping: float = number(0.1, "part of Boehning's bound in the classes' covariance",
        "above: steps are too short; below: too long for rare classes", SUITE)
    clip: float = number(0.9, "typical norm of a gradient at the frequencies",
        "above: more noise; below: long gradients are cut, and probabilities biased", SUITE)
    bend: float = number(0.3, "part of a squared step",
        "above: later steps are shrunk less; below: they correct too little", SUITE)
    max_alpha: float = number(1e100, "weight of the penalty",
        "above: squares overflow, and coefficients are 0", PROOF)
    max_recalibrated_noise: float = number(0.2, NOISE_RATIO,
        "above: the gradients lose more than recalibration mends; below: slopes stay wrong", SUITE)
    min_recalibrated_effective_n: float = number(700.0, EFFECTIVE_N,
        "above: slopes stay wrong; below: the gradients lose more than recalibration mends", SUITE)
    n_scores: int = number(512, "simulated scores",
        "above: time; below: the curvature is off by more than some 3 %", NUMERICAL)
    slope_doubt: float = number(0.5, "part of the slope",
        "above: noisy slopes are believed where rows have grown; below: slopes stay wrong", PERTURBED)


@dataclass(frozen=True)
class InterceptDefaults:
    """The correction of a classifier's intercepts."""

    share: float = number(0.03, SHARE, "above: less for the gradients; below: noisy intercepts", PERTURBED)
    max_noise: float = number(0.02, "noise of a mean probability",
        "above: noise is corrected; below: a bias stays", PERTURBED)
    n_draws: int = number(2048, "simulated scores", "above: time; below: noisy curvatures", NUMERICAL)
    max_shift: float = number(2.0, "logits",
        "above: a noisy mean moves predictions far; below: a bias stays", PERTURBED)
    min_probability: float = number(1e-4, "mean probability", "below: log odds of noise", NUMERICAL)
    max_iter: int = number(50, "rounds of matching odds",
        "above: time; below: the odds do not match yet", NUMERICAL)


@dataclass(frozen=True)
class NumberDefaults:
    """The method of moments for numbers."""

    bins_share: float = number(0.06, SHARE, "above: less for the gradients; below: columns are not found", SUITE)
    moments_share: float = number(0.08, SHARE,
        "above: less for the gradients; below: columns are scaled wrongly", SUITE)
    column_evidence: float = number(3.5, STD, "above: columns are given up; below: windows made of noise", SUITE)
    gram_part: float = number(0.2, OF_REST, "above: less for the gradients; below: steps along noise", SUITE)
    gradient_parts: tuple[float, ...] = number((0.14, 0.14, 0.175, 0.245), OF_REST,
        "more steps: each has more noise; fewer: outliers move the model", SUITE)
    last_gradient_part: float = number(0.3, OF_REST,
        "above: less for the robust steps; below: the mean of skewed targets is missed", SUITE)
    scale_part: float = number(0.06, "part of a step's share",
        "above: less for the gradient; below: clip norms follow noise", SUITE)
    min_clip: float = number(0.6, "typical norm of a gradient", "above: more noise; below: a bias", SUITE)
    max_clip: float = number(30.0, "typical norm of a gradient", "above: outliers count; below: a bias", SUITE)
    clip: float = number(1.1, "typical norm of a gradient, at a noise of `clip_noise`",
        "above: more noise; below: a bias", SUITE)
    clip_noise: float = number(0.1, NOISE_RATIO,
        "above: all clip norms grow, with noise; below: they shrink, and biases grow", SUITE)
    clip_power: float = number(0.4, "power of `clip_noise` / noise",
        "above: clip norms grow faster as noise falls; below: slower", SUITE)
    min_last_clip: float = number(1.6, "typical norm of a gradient", "above: more noise; below: a bias", SUITE)
    max_last_clip: float = number(30.0, "typical norm of a gradient",
        "above: outliers count; below: a bias", SUITE)
    last_clip: float = number(2.0, "typical norm of a gradient, at a noise of `last_clip_noise`",
        "above: more noise; below: a bias for skewed targets", SUITE)
    last_clip_noise: float = number(0.06, NOISE_RATIO,
        "above: the last clip norm grows, with noise; below: it shrinks, and biases grow", SUITE)
    last_clip_power: float = number(0.25, "power of `last_clip_noise` / noise",
        "above: clip norms grow faster as noise falls; below: slower", SUITE)
    min_inside: float = number(0.75, "part of the residuals that a clip leaves",
        "above: steps are too short; below: too long", SUITE)
    bend: float = number(0.1, "part of a squared step",
        "above: later steps are shrunk less; below: they correct too little", SUITE)
    bias: float = number(0.1, "deviation of the residuals",
        "of the robust steps; above: the last step is noisy; below: a bias stays", SUITE)
    mean_share: float = number(0.04, SHARE, "above: less for the gradients; below: a noisy mean", SUITE)
    max_mean_share: float = number(0.17, SHARE,
        "where units are few; above: less for the gradients; below: a noisy mean", SUITE)
    mean_effective_n: float = number(20.0, EFFECTIVE_N,
        "above: the share, (this / n mu)^2 between its limits, grows for more fits; below: for fewer", SUITE)
    mean_bias: float = number(0.2, "deviation of the residuals",
        "what the clips may have left; above: the mean is shrunk less; below: more", SUITE)
    mean_noise: float = number(0.06, "deviation of the residuals",
        "above: the mean is clipped farther out, with more noise; below: tails are cut", SUITE)
    max_mean_clip: float = number(100.0, "deviation of the residuals",
        "above: more noise where units are many; below: tails are cut", SUITE)
    tail_part: float = number(0.3, "part of the share for the mean",
        "above: a noisy mean; below: far residuals are left out", SUITE)
    tail_evidence: float = number(5.0, STD,
        "above: far residuals are left out; below: noise widens the clip", SUITE)
    min_constant_range_share: float = number(0.3, SHARE,
        "where a constant is released; above: a noisy mean; below: windows miss the targets", SUITE)
    max_constant_range_share: float = number(0.6, SHARE,
        "where a constant is released and units are fewest; above: a noisy mean; below: windows miss the targets",
        SUITE)
    constant_effective_n: float = number(25.0, EFFECTIVE_N,
        "above: the share, (this / n mu)^2 between its limits, grows for more fits; below: for fewer", SUITE)
    constant_clip: float = number(0.8, "half-widths of the targets",
        "above: more noise; below: tails are cut", SUITE)
    n_unused_releases: int = number(3, "releases",
        "where no targets were found; below: a release takes more than `max_release_share`", PROOF)


@dataclass(frozen=True)
class SlopeDefaults:
    """The slope of the targets on the predictions of a regression."""

    min_effective_n: float = number(300.0, EFFECTIVE_N,
        "above: steep predictions stay; below: the slope costs more than it mends", TAILS)
    effective_n: float = number(300.0, EFFECTIVE_N,
        "above: the share, (this / n mu)^2 between its limits, grows for more fits; below: for fewer", TAILS)
    min_share: float = number(0.015, SHARE, "above: less for the gradients; below: a noisy slope", TAILS)
    max_share: float = number(0.03, SHARE,
        "where units are few; above: less for the gradients; below: a noisy slope", TAILS)
    noise: float = number(0.15, "noise of the slope",
        "above: rows weigh less farther out, with more noise; below: tails are cut", TAILS)
    min_deviations: float = number(2.5, "deviations", "above: more noise; below: tails are cut", TAILS)
    max_deviations: float = number(12.0, "deviations", "above: outliers count; below: tails are cut", TAILS)
    evidence: float = number(1.5, STD, "above: steep predictions stay; below: good ones are shrunk", TAILS)
    max_factor: float = number(0.9, "slope", "above: good predictions are shrunk; below: steep ones stay", TAILS)


@dataclass(frozen=True)
class PenaltyDefaults:
    """How ``C="auto"`` weighs strengths of the shrinkage: by evidence and Stein's risk."""

    temperature: float = number(4.0, "risk of a direction that is not shrunk",
        "above: the risk tells less; below: its noise is believed (Leung and Barron 2006 prove 4 for least "
        "squares)", "examples/penalty_choice.py")
    evidence_power: float = number(0.5, "power of the evidence",
        "above: the risk tells less; below: more tables lose", "examples/penalty_choice.py")


@dataclass(frozen=True)
class DoubtDefaults:
    """When a fitted model may be no better than a constant: expected loss against a power of the gain."""

    record_loss: float = number(10.0, "records' worth of variance",
        "above: more warnings for few records; below: chance is believed", TAILS)
    numbers_unknown: float = number(0.125, "weight of the variance that is noise",
        "above: more warnings; below: fits that are noise go without one", TAILS)
    numbers_power: float = number(0.3, "power of the part explained",
        "above: weak models warn more; below: less", TAILS)
    numbers_limit: float = number(0.045, "loss / part explained to that power",
        "above: fewer warnings; below: more (at most 1 fit in 400 may be worse by .02 without one)", TAILS)
    classes_unknown: float = number(0.2, "weight of the variance that is noise",
        "above: more warnings; below: fits that are noise go without one", TAILS)
    classes_power: float = number(0.6, "power of the signal", "above: weak models warn more; below: less", TAILS)
    classes_limit: float = number(0.09, "loss / signal to that power",
        "above: fewer warnings; below: more (at most 1 fit in 400 may be worse by .02 without one)", TAILS)
# fmt: on


@dataclass(frozen=True)
class Defaults:
    """All tables, by the step of a fit that reads them."""

    choice: ChoiceDefaults = ChoiceDefaults()
    bins: BinDefaults = BinDefaults()
    histograms: HistogramDefaults = HistogramDefaults()
    columns: ColumnDefaults = ColumnDefaults()
    targets: TargetDefaults = TargetDefaults()
    steps: StepDefaults = StepDefaults()
    classes: ClassDefaults = ClassDefaults()
    intercepts: InterceptDefaults = InterceptDefaults()
    numbers: NumberDefaults = NumberDefaults()
    slopes: SlopeDefaults = SlopeDefaults()
    penalty: PenaltyDefaults = PenaltyDefaults()
    doubts: DoubtDefaults = DoubtDefaults()


DEFAULTS = Defaults()
