"""Warnings that a fit may be of little use: public or released numbers, two functions.

An estimator states facts and decides nothing. `utility_warnings` reads `Facts`, public numbers before the first
release; `released_warnings` reads `Released`, numbers that the fit has released. Both return the warnings of the
fit, in their order. `THRESHOLDS` is the table of numbers at which a warning begins.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from skdp.base.plan import Advice
from skdp.exceptions import UtilityWarning
from skdp.fitting.minibatch_warnings import ImageFacts, NetFacts, StepFacts, WordFacts
from skdp.fitting.search import GRID
from skdp.privacy import PublicShape, factor


@dataclass(frozen=True)
class Threshold:
    """A number at which a warning begins.

    Attributes
    ----------
    warning : str
    method : str
        "" stands for all methods that have no row of their own.
    side : {"below", "above"}
        Where the warning is given.
    number : float
    unit : str
        The public or released number that is compared.
    origin : str
        Why it is this number.
    """

    warning: str
    method: str
    side: Literal["below", "above"]
    number: float
    unit: str
    origin: str


EFFECTIVE_N = "n mu: units times mu"
SIGNAL = "n mu / sqrt(parameters)"
SUITE = "at most one fit in twenty above it is worse, on the suite's training parts"

THRESHOLDS = (
    Threshold(
        "few units", "", "below", 70.0, EFFECTIVE_N,
        "20 % of the budget are too little for two searches to end near the median",
    ),
    Threshold(
        "few units", "statistics", "below", 30.0, f"{EFFECTIVE_N} / sqrt(columns)",
        "one search in ten ends far from the scale",
    ),
    Threshold(
        "few units", "evaluate", "below", 60.0, EFFECTIVE_N,
        "one window in ten is off by a factor above 2; measured",
    ),
    Threshold("few units", "nets", "below", 6.0, SIGNAL, "a choice, not tuned"),
    # 4 topics of 100 words, 2 tables of 4 or 16 columns: the share of a word's nearest neighbours of its topic.
    Threshold(
        "few units", "DPWord2Vec", "below", 20.0, SIGNAL,
        "made-up texts: .26 to .49 of the neighbours are right at 4 to 15 (chance .25), .89 to .94 at 44",
    ),
    Threshold(
        "very common tokens", "", "above", 0.1, "units that must have a token / size of a batch",
        "few tokens are in one record of ten; a choice, not tuned",
    ),
    Threshold(
        "too many coefficients", "", "below", 1.0, "n mu / length of one release's noise",
        "no mean gradient, and few eigenvalues, are as long as the noise",
    ),
    Threshold("worse than frequencies", "", "below", 200.0, EFFECTIVE_N, SUITE),
    Threshold(
        "worse than frequencies", "nets", "below", 200.0, EFFECTIVE_N, "the one of linear models, not measured"
    ),
    Threshold("worse than frequencies", "DPIGHT", "below", 350.0, EFFECTIVE_N, SUITE),
    Threshold(
        "worse than frequencies", "DPSRM", "below", 330.0, EFFECTIVE_N,
        f"{SUITE}; two classes are not recalibrated",
    ),
    Threshold(
        "worse than the mean", "", "below", 250.0, EFFECTIVE_N, "inner splits of the suite's training parts"
    ),
    Threshold(
        "small owner", "", "below", 1 / 3, "units of the smallest owner / mean of all owners",
        "the noise is 3 times as large; a choice",
    ),
    Threshold("noise of scores", "", "above", 0.5, "logits", "of 1, the odds are e to 1; a choice"),
    # Targets that fill their bounds evenly have a standard deviation of .58 of it.
    Threshold(
        "noise of predictions", "", "above", 0.02, "noise / half the width of y_bounds",
        "people often give bounds several times wider than the targets",
    ),
    Threshold("larger penalty", "", "above", 2.0, "penalty / alpha", "a choice"),
    Threshold(
        "small huber_threshold", "", "below", 0.0, "huber_threshold / ``target_scale_``",
        "IGHT and two stages lose nothing at 4e-5; measured",
    ),
    Threshold(
        "small huber_threshold", "DPSGD", "below", 0.0012, "huber_threshold / ``target_scale_``",
        "R^2 .86 at .002, .79 at .001 and .43 at .0004, from 8000 records; measured",
    ),
    Threshold(
        "small huber_threshold", "DPFrankWolfe", "below", 0.06, "huber_threshold / ``target_scale_``",
        "R^2 .86 at .08, .82 at .06 and .69 at .04, from 8000 records; measured",
    ),
    Threshold("tiny scale", "", "below", 1e-4, "released norm", "most rows are empty; a choice"),
    Threshold("shrunk", "", "below", 0.5, "``shrinkage_``", "half of the coefficients is noise; a choice"),
    Threshold(
        "no slope", "", "above", 0.2, "noise of the slope of the scores / slope", "examples/unscaled_columns.py"
    ),
    Threshold(
        "columns of different scale", "", "above", 3.0, "released norm / sqrt(columns)",
        "standardized rows have 1, and their clip norms .2 to 1.2; examples/unscaled_columns.py",
    ),
    # Of 40 fits of a regressor to scaled columns, up to 11 had long norms by chance at 100, and 1 of 600 at 150.
    Threshold(
        "norms are noise", "", "below", 200.0, EFFECTIVE_N,
        "with fewer units a norm may be long by chance; measured",
    ),
    Threshold("values outside", "", "above", 0.01, "part of a column, less 3 noise_std", "a choice"),
    Threshold(
        "scores outside", "", "above", 0.3, "part of the scores in the outermost bins",
        "probabilities are hardly there; a choice",
    ),
)  # fmt: skip
_ROWS = {(row.warning, row.method): row for row in THRESHOLDS}


def _row(warning: str, method: str) -> Threshold:
    return _ROWS.get((warning, method)) or _ROWS[warning, ""]


def threshold(warning: str, method: str = "") -> float:
    """The number for a method, or else for all methods."""
    return _row(warning, method).number


def is_given(warning: str, value: float, method: str = "", *, unit: float = 1.0) -> bool:
    """Whether a value, measured in ``unit``, is on the side of the threshold where the warning is given."""
    row = _row(warning, method)
    return value < row.number * unit if row.side == "below" else value > row.number * unit


Task = Literal["", "classes", "numbers"]
Release = Literal["", "gradient", "second moments"]


NOISES = 3.0  # standard deviations of noise that a released part of a column must exceed its threshold by
SMALLEST = 8.0 * float(GRID[0])  # largest scale that follows from the first point of a grid


@dataclass(frozen=True)
class OwnerFacts:
    """Facts of the records of several owners.

    Attributes
    ----------
    unit : str
    part : float
        The number of units that the noise is as small as for, over their number.
    smallest : int
        Units of the smallest owner.
    weights_owners : bool
        Whether that is so by a choice of the user.
    noise, half_width : float
        Standard deviation that the noise gives to predictions, and half the width of the targets' range.
    penalised : bool
        Whether a larger alpha makes the noise smaller.
    default_range : bool
        Whether targets are clipped to a range that nobody gave.
    huber_threshold : float or None
    alpha, penalty : float
        The penalty asked for, and how many times it the proof needs.
    """

    unit: str
    part: float
    smallest: int
    weights_owners: bool
    noise: float
    half_width: float
    alpha: float
    penalised: bool = False
    default_range: bool = False
    huber_threshold: float | None = None
    penalty: float = 1.0


@dataclass(frozen=True)
class Facts:
    """Public numbers of a fit, before its first release.

    Attributes
    ----------
    name : str
        Of the estimator.
    shape : PublicShape
    epsilon : float
    effective_n : float
        Units times mu; inf without noise, and without a mu.
    method : str
        Key of `THRESHOLDS`.
    task : {"classes", "numbers", ""}
    searched : tuple of str
        Parameters whose values the fit searches for, with a part of its budget.
    constant : bool
        Whether only a constant is released, because the units are few.
    doubts : bool
        Whether released numbers tell after the fit if it is worse than a constant.
    calibrated : bool
        Whether a regression's coefficients are calibrated at the end.
    weight : float
        What a record weighs on the average.
    release : {"gradient", "second moments", ""}
        What holds all coefficients in one release.
    n_coefs : int
    adjacency : str
    selects : bool
        Whether there is a parameter ``n_nonzero_coefs``.
    """

    name: str
    shape: PublicShape
    epsilon: float
    effective_n: float = math.inf
    method: str = ""
    task: Task = ""
    searched: tuple[str, ...] = ()
    constant: bool = False
    doubts: bool = False
    calibrated: bool = False
    weight: float = 1.0
    release: Release = ""
    n_coefs: int = 0
    adjacency: str = "replace-one"
    selects: bool = False
    images: ImageFacts | None = None
    net: NetFacts | None = None
    words: WordFacts | None = None
    steps: StepFacts | None = None
    owners: OwnerFacts | None = None


@dataclass(frozen=True)
class Released:
    """Released numbers of a fit.

    Attributes
    ----------
    task : {"classes", "numbers", ""}
    n_features : int
    effective_n : float
    method : str
        As in `Facts`.
    norms : tuple of (str, float)
        Parameters that the fit has searched for, and the released numbers.
    half_width : float
        Released unit of the targets, in which gradients are measured.
    huber_threshold : float
        inf for another loss, and where no unit of the targets is known.
    shrinkage : float
        Of a regression's coefficients.
    slope_noise : float
        Noise of the slope by which a classifier's scores were recalibrated, over the slope.
    clipped : tuple of (str, float, float)
        Columns, the part of each that lies outside of its window, and the noise in it.
    outside : float
        Least part of scores in the outermost bins.
    own_loss : bool
        Whether the loss is the user's own: targets stay in units of y.
    """

    task: Task = ""
    n_features: int = 1
    effective_n: float = math.inf
    method: str = ""
    norms: tuple[tuple[str, float], ...] = ()
    half_width: float = 1.0
    huber_threshold: float = math.inf
    shrinkage: float = 1.0
    slope_noise: float = 0.0
    clipped: tuple[tuple[str, float, float], ...] = ()
    outside: float = 0.0
    own_loss: bool = False


def utility_warnings(facts: Facts) -> tuple[Advice, ...]:
    """Warnings from public numbers, before anything is spent."""
    told: list[str] = []
    net, words, steps = facts.net, facts.words, facts.steps
    if facts.images is not None:
        told += facts.images.told()
    small = net is not None and is_given("few units", net.signal, "nets")
    if net is not None:
        told += net.told(facts.shape.unit, _told(facts), small)
    few = tuple(_few(facts))
    told += (*few, *_many(facts))
    if not few and not facts.doubts and not small:
        told += _worse_than_a_constant(facts)
    told += _of_owners(facts)
    if words is not None and is_given("few units", words.signal, "DPWord2Vec"):
        told.append(words.told_of_few(facts.shape, facts.epsilon))
    if steps is not None:
        told += steps.told(is_given("very common tokens", steps.wanted, unit=steps.batch_size))
    if words is not None:
        told += words.told_of_release(facts.shape.n_units)
    return tuple(Advice(text, UtilityWarning) for text in told)


def released_warnings(facts: Released) -> tuple[Advice, ...]:
    """Warnings from released numbers, after the fit."""
    told = (*_tiny(facts), *_shrunk(facts), *_unscaled(facts), *_clipped(facts), *_outside(facts))
    return tuple(Advice(text, UtilityWarning) for text in told)


# ---------------------------------------------------------------- before the first release


def _told(facts: Facts) -> str:
    verb = "is" if facts.shape.n_units == 1 else "are"
    return f"{facts.shape.counted()} at epsilon={facts.epsilon:g} {verb} few"


def _few(facts: Facts) -> Iterator[str]:
    unit, d = facts.shape.unit, facts.shape.n_features
    if facts.constant:
        yield (
            f"{_told(facts)} for {d} features: only a constant is released, and it may be far off; what helps is "
            f"more {unit}s, fewer features or a larger epsilon"
        )
        return
    wanted = " and ".join(f"{name}=" for name in facts.searched)
    if facts.owners is not None:
        if is_given("few units", facts.effective_n * facts.owners.part):
            n, kind = facts.shape.n_units, facts.owners.unit
            what = f"{n} {kind}s" if n > 1 else f"1 {kind}"
            yield (
                f"{what} at epsilon={facts.epsilon:g} are few: the sums that are opened are mostly noise; use "
                f"more {kind}s or a larger epsilon"
            )
    elif facts.method == "evaluate":
        if is_given("few units", facts.effective_n, "evaluate"):
            how = f"{wanted} as public numbers, " if wanted else ""
            yield (
                f"{_told(facts)}: the released windows of targets and residuals are mostly noise, and scores have "
                f"wide intervals; give {how}more {unit}s or a larger epsilon"
            )
    elif facts.method == "statistics":
        if wanted and is_given("few units", facts.effective_n, "statistics", unit=d**0.5):
            columns = "1 column" if d == 1 else f"{d} columns"
            yield (
                f"{_told(facts)} for {columns}: the released scales are mostly noise; give {wanted} as public "
                f"numbers, more {unit}s or a larger epsilon"
            )
    elif wanted and is_given("few units", facts.effective_n, facts.method):
        numbers = "public numbers" if len(facts.searched) > 1 else "a public number"
        yield (
            f"{_told(facts)}: the released scales are mostly noise; give {wanted} as {numbers}, more {unit}s or a "
            "larger epsilon"
        )


def noise_size(release: Release, shape: PublicShape, adjacency: str, n_coefs: int) -> float:
    """Noise of one release that takes the whole budget, over the largest signal, times n mu."""
    if release == "gradient":
        # No mean gradient is longer than the clip norm C, and one release has noise of this length times
        # C / (n mu).
        return factor(adjacency) * math.sqrt(n_coefs)
    # Rows have norm 1 at most, so d + 1 eigenvalues of the mean add up to 1 at most; the eigenvalues of the noise
    # are as large as sqrt(d + 1) of its entries.
    return float((shape.n_features + 1) ** 1.5)


def _many(facts: Facts) -> Iterator[str]:
    """One release of the whole budget could not hold so many coefficients."""
    effective_n = facts.effective_n if facts.owners is None else facts.effective_n * facts.owners.part
    size = noise_size(facts.release, facts.shape, facts.adjacency, facts.n_coefs)
    if facts.release and is_given("too many coefficients", effective_n, unit=size):
        hidden = {
            "gradient": "longer than any mean gradient can be",
            "second moments": "larger than most eigenvalues of the second moments",
        }[facts.release]
        fewer = "n_nonzero_coefs=, " if facts.selects else ""
        yield (
            f"{facts.n_coefs} coefficients are too many for {facts.shape.counted()} at epsilon={facts.epsilon:g}: "
            f"even if the whole budget went to one release, its noise would be {hidden}; use fewer features, "
            f"{fewer}more {facts.shape.unit}s or a larger epsilon"
        )


def _worse_than_a_constant(facts: Facts) -> Iterator[str]:
    """Probabilities may be worse than the frequencies of the classes, and predictions than the mean of y."""
    shape, effective_n = facts.shape, facts.effective_n
    about = f"with {shape.counted()} at epsilon={facts.epsilon:g} the"
    if facts.task == "classes":
        effective_n *= facts.weight
        if facts.owners is not None:
            effective_n *= facts.owners.part
        if is_given("worse than frequencies", effective_n, facts.method):
            sure = threshold("worse than frequencies", facts.method)
            yield (
                f"{about} probabilities of {facts.name} may be worse than the frequencies of the classes; labels "
                f"are less affected. About {_enough(shape, sure, effective_n)} would be enough, or a larger "
                "epsilon"
            )
    elif facts.calibrated and is_given("worse than the mean", effective_n):
        yield (
            f"{about} predictions of {facts.name} may be worse than the mean of y. About "
            f"{_enough(shape, threshold('worse than the mean'), effective_n)} would be enough for few features, "
            "or a larger epsilon"
        )


def _enough(shape: PublicShape, sure: float, effective_n: float) -> str:
    """Units that make the effective number of units sure, in two digits."""
    return f"{float(f'{math.ceil(shape.n_units * sure / effective_n):.2g}'):.0f} {shape.unit}s"


def _of_owners(facts: Facts) -> Iterator[str]:
    owners = facts.owners
    if owners is None:
        return
    if owners.weights_owners and is_given("small owner", owners.part):
        yield (
            f"the smallest owner has {owners.smallest} of {facts.shape.n_units} {owners.unit}s. With "
            "weighting='owner' all noise is as large as if every owner were so small: "
            f"{1 / owners.part:.3g} times the noise of weighting='record'"
        )
    yield from _noisy_predictions(facts, owners)
    if is_given("larger penalty", owners.penalty):
        yield (
            f"the proof needs a penalty {owners.penalty:.2g} times as large as alpha={owners.alpha:g} for the "
            f"smallest owner, of {owners.smallest} records: it shrinks the coefficients by about this factor. "
            "Merge small owners, or use a larger epsilon"
        )
    if owners.default_range:
        yield "y_bounds was not given: targets are clipped to [-1, 1]; give the public range of the targets"
    if owners.huber_threshold is not None and owners.huber_threshold < owners.alpha * owners.half_width:
        # The penalty holds ||theta|| to that, whatever the records are.
        yield (
            f"with huber_threshold={owners.huber_threshold:g} and alpha={owners.alpha:g} predictions stay within "
            f"about {owners.huber_threshold / owners.alpha:.2g} of the middle of y_bounds: give a larger "
            "huber_threshold, in units of y, or a smaller alpha"
        )


def _noisy_predictions(facts: Facts, owners: OwnerFacts) -> Iterator[str]:
    larger = "a larger alpha, " if owners.penalised else ""
    cures = f"{larger}more {owners.unit}s, fewer features or a larger epsilon"
    if facts.task == "classes":
        if is_given("noise of scores", owners.noise):
            yield (
                f"the noise moves the scores by about {owners.noise:.2g}: labels and probabilities may be mostly "
                f"noise. Use {cures}"
            )
    elif is_given("noise of predictions", owners.noise, unit=owners.half_width):
        yield (
            f"the noise moves the predictions by about {owners.noise:.2g}, in units of y. Unless the targets vary "
            f"by much more than that, the model is worse than their mean. Give narrower y_bounds, or use {cures}"
        )


# ---------------------------------------------------------------- after the fit


def _tiny(facts: Released) -> Iterator[str]:
    for name, released in facts.norms:
        if is_given("tiny scale", released):
            what = "the smallest that can be released" if released <= SMALLEST else "tiny"
            zeros = "" if facts.task == "classes" else ", or more than half of the targets 0"
            own = facts.own_loss and facts.task != "classes"
            scaled = ", and scale y by public numbers, because a loss of your own is in units of y" if own else ""
            yield (
                f"the released {name} is {what} ({released:.1g}): unless the data are on such a scale, more than "
                f"half of the rows may be empty{zeros}, and the coefficients mostly noise; give {name}= as a "
                f"public number{scaled}"
            )


def _shrunk(facts: Released) -> Iterator[str]:
    if is_given("small huber_threshold", facts.huber_threshold, facts.method, unit=facts.half_width):
        yield (
            f"huber_threshold={facts.huber_threshold:g} is in units of y, whose half-width is "
            f"{facts.half_width:.3g}: no step is longer than the threshold allows, so the predictions may stay "
            f"about the centre of y; give a larger huber_threshold=, such as {0.5 * facts.half_width:.3g}"
        )
    elif is_given("shrunk", facts.shrinkage):
        yield (
            "the predictions can hardly be told from noise, so the coefficients were shrunk to "
            f"{facts.shrinkage:.0%} of their size, and the model predicts about the released centre of y; use "
            "fewer features, more records or a larger epsilon"
        )


def _unscaled(facts: Released) -> Iterator[str]:
    """Rows are far longer than rows of standardized columns, and nothing was learnt from them."""
    nothing = is_given("shrunk", facts.shrinkage) or is_given("no slope", facts.slope_noise)
    if facts.n_features == 1 or not nothing or is_given("norms are noise", facts.effective_n):
        return
    for name, released in facts.norms:
        unit = math.sqrt(facts.n_features)
        if name == "clip_norm":  # of gradients, which have the unit of the targets
            unit *= facts.half_width
        if is_given("columns of different scale", released, unit=unit):
            front = "DPLogisticRegression" if facts.task == "classes" else "DPLinearRegression"
            yield (
                f"hardly anything was learnt, and the released {name} is {released:.2g}; with {facts.n_features} "
                f"standardized columns it would be about {unit:.2g} or less. Columns in larger units than the "
                "others hide them: scale the columns before the fit, by PublicScaler with public bounds or by "
                f"DPStandardScaler, or use {front}, which finds the scales itself"
            )


def _clipped(facts: Released) -> Iterator[str]:
    named, much = [], threshold("values outside")
    for name, part, noise in facts.clipped:
        if is_given("values outside", part - NOISES * noise):
            named.append(repr(name))
    if named:
        said = ", ".join(named[:5]) + (", ..." if named[5:] else "")
        yield (
            f"the released windows of {said} leave out more than {much:.0%} of the values (see the column "
            "'clipped'), so mean and std miss rare values: give their bounds= as public numbers, or list the "
            "values of columns that have few of them in categories="
        )


def _outside(facts: Released) -> Iterator[str]:
    if is_given("scores outside", facts.outside):
        yield (
            f"more than {threshold('scores outside'):.0%} of the scores are in the outermost bins, at "
            "probabilities of about 0 or 1: y_score must be probabilities, or bins= public edges of other scores, "
            "for example numpy.linspace(-4, 4, 63)"
        )
