"""Which estimators the quick tests go over, where a contract is the same for all and one fit looks like another."""

import pytest

# One for each way through a fit: an automatic linear model, curves, full batches, samples, choices, a minimiser, nets
# of tables and of texts, several owners, transformers that learn and that do not, and a method without privacy.
KINDS = {
    "DPLinearRegression",
    "DPAdditiveClassifier",
    "DPIGHTClassifier",
    "DPSGDRegressor",
    "DPFrankWolfeClassifier",
    "DPSparseERM",
    "DPMLPClassifier",
    "DPLSTMClassifier",
    "MPCGradientPerturbationRegressor",
    "DPStandardScaler",
    "PublicBinsEncoder",
    "STORMClassifier",
}


def of_each_kind(names, rest):
    """The names in order, all but one of each kind with the mark ``rest``.

    The mark stands in the file of the tests, where `.ci/run` looks for it.
    """
    return [name if name in KINDS else pytest.param(name, marks=rest) for name in sorted(names)]
