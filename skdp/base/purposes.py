"""What the releases of a plan are for, in a clause each: the words are the purposes in plans and ledgers."""

__all__ = ["MEANINGS", "SEARCHES"]

SEARCHES = ("recalibration", "scale")  # hold a search that ends where its answer is sure, maybe before its plan

REST = "products of columns, steps along gradients, and what else the released numbers ask for"
MEANINGS = {
    "Gram matrix, gradients and intercepts": REST,
    "Gram matrix, gradients and slope": REST,
    "calibration": "searches and sums by which predictions are scaled and centred on the targets",
    "class counts": "units of each class",
    "column moments": "sums of the values of each column and of their products, for means and variances",
    "computed point": "noise that hides how far the solver stopped from the minimum",
    "counts and steps": "counts of the tokens in a batch, and gradients of the chosen ones",
    "early steps": "gradients of batches, with more noise than in later steps",
    "first gradient": "one gradient of a larger batch, which later steps correct",
    "gap": "noise that hides how far the solver stopped from the minimum",
    "gradient and distance": "gradients, and the choice of how far to follow each",
    "labels": "the teacher's answers to public rows, which the student learns",
    "mean residual": "mean distance of the targets from the predictions, which moves the intercept",
    "means": "sums of the values of each column in its window",
    "minimiser": "the coefficients with the smallest penalised loss",
    "octaves": "counts of absolute values of each column between powers of two, which tell its range",
    "quantiles": "counts of values below a number, which halve an interval around the quantile",
    "range of the targets": "counts of targets between powers of two, then in narrower and narrower windows",
    "recalibration": "sums of scores by class, which turn scores into probabilities",
    "refit": "gradients of the chosen coefficients alone",
    "rounds": "choices of coefficients that are not 0, each with steps on them",
    "scale": "searches for the usual length of rows, gradients or targets, which sets clip norms and units",
    "second moment": "products of columns with each other and with the targets",
    "selection": "the choice of coefficients that are not 0",
    "steps": "sums that make one step each, such as gradients",
    "variances": "sums of squared distances from the mean, by column",
    "vocabulary": "the words that enough units have",
    "window": "searches for the interval that holds most values of each column",
}
