"""The numbers at which a fit warns that it may be of little use, for `skdp.fitting.utility`."""

from dataclasses import dataclass
from typing import Literal

__all__ = ["THRESHOLDS", "Threshold", "is_given", "threshold"]


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


MASS = "n mu: units times mu"
SIGNAL = "n mu / sqrt(parameters)"
SUITE = "at most one fit in twenty above it is worse, on the suite's training parts"

THRESHOLDS = (
    Threshold(
        "few units", "", "below", 70.0, MASS,
        "20 % of the budget are too little for two searches to end near the median",
    ),
    Threshold(
        "few units", "statistics", "below", 30.0, f"{MASS} / sqrt(columns)",
        "one search in ten ends far from the scale",
    ),
    Threshold(
        "few units", "evaluate", "below", 60.0, MASS,
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
    Threshold("worse than frequencies", "", "below", 200.0, MASS, SUITE),
    Threshold("worse than frequencies", "nets", "below", 200.0, MASS, "the one of linear models, not measured"),
    Threshold("worse than frequencies", "DPIGHT", "below", 350.0, MASS, SUITE),
    Threshold(
        "worse than frequencies", "DPSRM", "below", 330.0, MASS, f"{SUITE}; two classes are not recalibrated"
    ),
    Threshold(
        "worse than the mean", "", "below", 250.0, MASS, "inner splits of the suite's training parts"
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
        "norms are noise", "", "below", 200.0, MASS, "with fewer units a norm may be long by chance; measured"
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
