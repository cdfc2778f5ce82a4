"""Which of many alike cases the quick tests take; the mark of the others stands in their file."""

import itertools

import pytest

# One estimator for each way through a fit: an automatic linear model, curves, full batches, samples, choices, a
# minimiser, nets of tables and of texts, owners, transformers that learn and that do not, and one without privacy.
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


def quick_alone(quick, values, rest):
    """The values as they come, with the mark ``rest`` where they are not in ``quick``; a tuple is a case."""
    return [
        value if value in quick else pytest.param(*(value if isinstance(value, tuple) else (value,)), marks=rest)
        for value in values
    ]


def of_each_kind(names, rest):
    """The names of estimators in order, with the mark ``rest`` on all but one of each kind."""
    return quick_alone(KINDS, sorted(names), rest)


def each_adjacency_and_unit(rest):
    """Parametrise over adjacencies and units; all pairs but two, which differ in both, have the mark ``rest``."""
    every = itertools.product(("replace-one", "zero-out", "add-remove"), ("record", "group"))
    quick = [("replace-one", "record"), ("add-remove", "group")]
    return pytest.mark.parametrize(("adjacency", "unit"), quick_alone(quick, every, rest))


def each_storage(rest):
    """Parametrise over groups and storages; groups that are not stored by rows have the mark ``rest``."""
    every = itertools.product((False, True), ("C", "F", "CSR"))
    quick = [(False, "C"), (False, "F"), (False, "CSR"), (True, "C")]
    return pytest.mark.parametrize(("grouped", "storage"), quick_alone(quick, every, rest))
