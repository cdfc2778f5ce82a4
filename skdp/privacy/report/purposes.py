"""What releases are and what they are for, in words, by the purpose that their ledger rows name."""

from typing import NamedTuple

from skdp.registry import ESTIMATORS, OTHERS


class Meaning(NamedTuple):
    """What is released, and what it is for."""

    what: str
    why: str


_ALL_ELSE = "products of columns, gradients, and what else the released numbers ask for"
MEANINGS = {
    "Gram matrix": Meaning("products of columns with each other and with the targets", "the coefficients"),
    "Gram matrix, gradients and intercepts": Meaning(_ALL_ELSE, "coefficients and intercepts"),
    "Gram matrix, gradients and slope": Meaning(_ALL_ELSE, "coefficients and the size of predictions"),
    "calibration": Meaning("searches and sums of predictions and targets", "scale and centre of predictions"),
    "class counts": Meaning("units of each class", "intercepts and weights of classes"),
    "class frequencies": Meaning("the mean distance of the labels from equal frequencies", "the first intercept"),
    "class tables": Meaning("units by label and by interval of the score", "scores and curves"),
    "column moments": Meaning(
        "sums of the values of each column and of their products", "means and variances of columns"
    ),
    "column ranges": Meaning(
        "counts of absolute values of each column between powers of two", "the range of each column"
    ),
    "computed point": Meaning("the minimum with noise", "hiding where the solver stopped"),
    "confusion matrix": Meaning("units by label and by predicted label", "scores"),
    "counts": Meaning("units with a value in each interval", "the released statistic"),
    "counts and steps": Meaning(
        "counts of the tokens in a batch, and gradients of the chosen ones", "steps of the solver"
    ),
    "counts of categories": Meaning("units of each category", "the released table"),
    "curvature": Meaning("gradients of the squared loss in the power method", "the step size"),
    "distance": Meaning("the choice of how far to follow a gradient", "the step size"),
    "early steps": Meaning("gradients of batches, with more noise than in later steps", "steps of the solver"),
    "first gradient": Meaning("one gradient of a larger batch, which later steps correct", "the first step"),
    "gamma": Meaning("units whose gradients are below a bound", "the bound of gradients"),
    "gap": Meaning("the minimum with noise", "hiding where the solver stopped"),
    "gradient": Meaning("the gradient of the loss", "steps of the solver"),
    "gradient and distance": Meaning("gradients, and the choice of how far to follow each", "steps of the solver"),
    "histogram": Meaning("units with a value in each bin", "the released histogram"),
    "labels": Meaning("the teacher's answers to public rows", "training the student"),
    "losses": Meaning("the sum of the losses", "scores"),
    "mean probabilities": Meaning("the mean predicted probability of each class", "intercepts"),
    "mean residual": Meaning("the mean distance of the targets from the predictions", "the intercept"),
    "means": Meaning("sums of the values of each column in its window", "means of columns"),
    "minimiser": Meaning("the coefficients with the smallest penalised loss", "the model"),
    "missing values": Meaning("units with a value in each column", "means of columns with missing values"),
    "moments": Meaning("sums of values and of their squares", "the released statistic"),
    "products": Meaning("products of basis functions", "coefficients"),
    "quantiles": Meaning("counts of values below a number, which halve an interval", "quantiles"),
    "range of the residuals": Meaning("counts of residuals between powers of two", "clipping residuals"),
    "range of the targets": Meaning(
        "counts of targets between powers of two, then in narrower and narrower windows", "clipping targets"
    ),
    "recalibration": Meaning("sums of scores by class", "turning scores into probabilities"),
    "refit": Meaning("gradients of the chosen coefficients alone", "values of the chosen coefficients"),
    "right predictions": Meaning("the number of right predictions", "scores"),
    "right predictions by label": Meaning("right predictions of each label", "scores"),
    "rounds": Meaning(
        "choices of coefficients that are not 0, each with gradients on them", "the chosen coefficients"
    ),
    "scale": Meaning("searches for the usual length of rows, gradients or targets", "clip norms and units"),
    "scale of the residuals": Meaning("counts of residuals in windows", "clipping residuals"),
    "score table": Meaning("units by label and by interval of the score", "scores and curves"),
    "search": Meaning("the best of a random number of trials", "the parameters that are searched"),
    "second moment": Meaning("products of columns with each other and with the targets", "the coefficients"),
    "selection": Meaning("the choice of coefficients that are not 0", "which columns the model uses"),
    "shifted histograms": Meaning(
        "counts of values of a column in bins around its released centre", "the range of columns far from 0"
    ),
    "slope": Meaning("products of predictions and targets", "the size of predictions"),
    "sparse steps": Meaning("gradients of the coordinates that stand out", "steps of the solver"),
    "statistic": Meaning("a statistic with bounded sensitivity", "the calling algorithm"),
    "steps": Meaning("sums that make one step each, such as gradients", "steps of the solver"),
    "units": Meaning("the number of units", "the denominator of scores"),
    "values in windows": Meaning("units with a value in the window of each column", "means and variances"),
    "variances": Meaning("sums of squared distances from the mean, by column", "variances of columns"),
    "vocabulary": Meaning("the words that enough units have", "the vocabulary"),
    "wide gradient": Meaning("the gradient of all candidate functions", "the choice of functions"),
    "window": Meaning("searches for the interval that holds most values of each column", "clipping values"),
}


# Names that reports of skdp give for fits that are no public estimators: functions, and the classes behind them.
_FUNCTIONS = (
    "BalancedAccuracy ConfusionCounts Count Crosstab DPRandomizedSearch DPTunedThresholdClassifier Describe "
    "GivenScores Histogram LossMean ManyClassTables Mean NumberScore Quantile ResidualMoments RightShare Std "
    "TwoClassTable Var _Bins compare cross_validate"
)
_OWN = frozenset({*ESTIMATORS, *OTHERS, *_FUNCTIONS.split()})


def meaning_of(purpose: str | None, estimator: str | None) -> Meaning:
    """Return the words for a purpose; a fit inside a fit has a prefix in its rows, which is left out.

    Estimators of users and bare sessions have purposes of their own, which may mean something else: no words.
    """
    known = "" if purpose is None or estimator not in _OWN else purpose.rpartition(": ")[2]
    return MEANINGS.get(known, Meaning("", ""))
