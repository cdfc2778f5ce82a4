"""Warnings of little use: two pure functions of public and released numbers, and one table of thresholds."""

import csv
import math
import re
import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import skdp
from skdp.exceptions import UtilityWarning
from skdp.fitting.minibatch_warnings import ImageFacts, NetFacts, StepFacts, WordFacts
from skdp.fitting.utility import (
    THRESHOLDS,
    Facts,
    OwnerFacts,
    Released,
    is_given,
    released_warnings,
    threshold,
    utility_warnings,
)
from skdp.privacy import PublicShape

KEYS = {(row.warning, row.method) for row in THRESHOLDS}
SHAPE = PublicShape("record", 1000, 4)
TABLE = Path(__file__).parents[2] / "docs" / "tables" / "utility_warnings.csv"
CLASSIFIER = Facts("Model", SHAPE, 1.0, task="classes", searched=("clip_norm",))
REGRESSOR = replace(CLASSIFIER, task="numbers", calibrated=True)
GRADIENT = replace(CLASSIFIER, searched=(), task="", release="gradient", n_coefs=25)  # noise of 2 * 5
OWNERS = OwnerFacts("record", 1.0, 90, True, 0.0, 2.0, 0.1)
OF_OWNERS = replace(CLASSIFIER, owners=OWNERS)
NET = NetFacts(500, math.inf)


def with_n(facts, effective_n):
    return replace(facts, effective_n=effective_n)


def with_owners(**changes):
    return replace(OF_OWNERS, owners=replace(OWNERS, **changes))


def with_net(**changes):
    return replace(CLASSIFIER, task="", method="nets", net=replace(NET, **changes))


def of(method, effective_n):
    return replace(CLASSIFIER, method=method, effective_n=effective_n)


def words(signal):
    return replace(CLASSIFIER, words=WordFacts(2, 400, signal, least=True))


def noisy(noise, task="classes", **changes):
    return replace(with_owners(noise=noise, **changes), task=task)


def steps(**changes):
    return replace(CLASSIFIER, steps=StepFacts(**{"size": 100, "n_tokens": 4, "batch_size": 100, **changes}))


def choice(largest=9.0, **changes):
    return steps(chosen=10, largest=largest, noise=1.0, **changes)


def vocabulary(threshold):
    return replace(CLASSIFIER, words=WordFacts(2, 400, 99.0, threshold=threshold, most=400))


def images(shape=(8, 8, 1), named=True, dtype=None, high=None):
    return replace(CLASSIFIER, images=ImageFacts(shape, named, dtype, high))


ZERO_OUT = replace(GRADIENT, adjacency="zero-out")  # half of the noise
MOMENTS = replace(GRADIENT, release="second moments")
HALF = replace(CLASSIFIER, weight=0.5)
BEFORE = [  # facts that warn, facts just at the threshold, and words of the warning
    (with_n(CLASSIFIER, 69.0), with_n(CLASSIFIER, 70.0), "mostly noise; give clip_norm= as a public"),
    (of("statistics", 59.0), of("statistics", 60.0), "few for 4 columns"),
    (of("evaluate", 59.0), of("evaluate", 60.0), "released windows of targets"),
    (replace(CLASSIFIER, constant=True), CLASSIFIER, "only a constant is released"),
    (with_n(OF_OWNERS, 69.0), with_n(OF_OWNERS, 70.0), "sums that are opened"),
    (with_n(GRADIENT, 9.9), with_n(GRADIENT, 10.0), "25 coefficients are too many for 1000 records"),
    (with_n(ZERO_OUT, 4.9), with_n(ZERO_OUT, 5.0), "longer than any mean gradient"),
    (with_n(MOMENTS, 11.1), with_n(MOMENTS, 5**1.5), "larger than most eigenvalues"),
    (with_n(CLASSIFIER, 182.0), with_n(CLASSIFIER, 200.0), "of the classes.* About 1100 records"),
    (of("DPIGHT", 349.0), of("DPIGHT", 350.0), "frequencies of the classes"),
    (with_n(HALF, 399.0), with_n(HALF, 400.0), "frequencies of the classes"),
    (with_n(REGRESSOR, 249.0), with_n(REGRESSOR, 250.0), "worse than the mean of y"),
    (with_owners(part=0.33), with_owners(part=0.34), "the smallest owner has 90 of 1000 records"),
    (noisy(0.51), noisy(0.5), "moves the scores by about 0.51.* Use more records"),
    (noisy(0.51, penalised=True), noisy(0.5, penalised=True), "Use a larger alpha, more"),
    (noisy(0.041, "numbers"), noisy(0.04, "numbers"), "narrower y_bounds"),
    (with_owners(penalty=2.1), with_owners(penalty=2.0), "penalty 2.1 times as large as alpha=0.1"),
    (with_owners(default_range=True), OF_OWNERS, "y_bounds was not given"),
    (with_owners(huber_threshold=0.1), with_owners(huber_threshold=0.2), "a larger huber_threshold"),
    (with_net(signal=5.9), with_net(signal=6.0), "a net of 500 parameters"),
    (with_net(other_inputs=True), with_net(), "give both fits one public input_range"),
    (with_net(second_momentum=0.9), with_net(), r"give optimizer=SGD\(momentum=0\)"),
    (with_net(bounded_by="ReLU()"), with_net(), r"ends with ReLU\(\)"),
    (words(19.9), words(20.0), "1000 windows .* even a table of 2 words and 400 numbers"),
    (steps(wanted=11), steps(wanted=10), "about 11 records of a batch"),
    (choice(largest=2.2), choice(largest=2.4), "changes 10 of 100 parameters .* nearly random"),
    (choice(looks=False), choice(), "does not look"),
    (choice(n_tokens=None), choice(), "nets without an Embedding"),
    (steps(is_one_epoch=True), steps(), "all steps are one epoch"),
    (vocabulary(50.1), vocabulary(50.0), "max_words_per_group = 400"),
    (images((3, 8, 8)), images((4, 8, 8)), "read as 3 x 8 pixels of 8 channels"),
    (images(dtype=np.dtype("uint8"), high=1.0), images(dtype=np.dtype("uint8"), high=255.0), "ends at 1"),
    (images(dtype=np.dtype("int16")), images(dtype=np.dtype("float32")), "whole numbers"),
    (images((1, 64, 1), named=False), images((1, 64, 1)), r"give image_shape=\(8, 8\)"),
]
STANDARD = Released(n_features=4, norms=(("clip_norm", 0.5),), slope_noise=9.0)
LONG = replace(STANDARD, norms=(("clip_norm", 6.1),))
HUBER = Released(method="DPSGD", huber_threshold=1.0, half_width=850.0)
HUBER_FW = replace(HUBER, method="DPFrankWolfe", half_width=16.0)
OWN_TINY = Released(task="numbers", norms=(("clip_norm", 9e-5),), own_loss=True)
CLIPPED = (("a", 0.2, 0.0),)
AFTER = [
    (Released(norms=(("row_norm", 9e-5),)), Released(norms=(("row_norm", 1e-4),)), "row_norm is tiny"),
    (Released(norms=(("clip_norm", 1e-30),)), Released(), "the smallest that can be released"),
    (OWN_TINY, replace(OWN_TINY, own_loss=False), "public number, and scale y by public numbers"),
    (Released(shrinkage=0.49), Released(shrinkage=0.5), "were shrunk to 49%"),
    (HUBER, replace(HUBER, half_width=800.0), "^huber_threshold=1 .* half-width is 850: .* such as 425"),
    (replace(HUBER, shrinkage=0.1), replace(HUBER, method="DPIGHT"), "^huber_threshold"),
    (replace(HUBER, method="DPFrankWolfe", half_width=17.0), HUBER_FW, "^huber_threshold"),
    (LONG, STANDARD, "clip_norm is 6.1; with 4 standardized columns it would be about 2 or less"),
    (replace(LONG, effective_n=200.0), replace(LONG, effective_n=199.0), "clip_norm is 6.1"),
    (LONG, replace(LONG, slope_noise=0.2), "hardly anything was learnt"),
    (LONG, replace(LONG, n_features=1), "PublicScaler"),
    (LONG, replace(LONG, half_width=2.0), "DPStandardScaler"),
    (replace(LONG, norms=(("row_norm", 6.1),), half_width=2.0), STANDARD, "released row_norm"),
    (Released(clipped=CLIPPED * 6), Released(clipped=(("a", 0.2, 0.1),)), "windows of 'a', .*, ... leave"),
    (Released(outside=0.31), Released(outside=0.3), "more than 30% of the scores"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("function", "facts", "at", "words"),
    [(utility_warnings, *row) for row in BEFORE] + [(released_warnings, *row) for row in AFTER],
)
def test_a_warning_begins_beyond_its_threshold(function, facts, at, words):
    """Beyond it there is a warning with these words, and at it there is none."""
    new = [advice for advice in function(facts) if re.search(words, advice.text)]
    assert [advice.category for advice in new] == [UtilityWarning]
    assert not any(re.search(words, advice.text) for advice in function(at))


def test_every_row_of_the_table_decides_a_warning(monkeypatch):
    asked = set()

    def passing(warning, value, method="", **unit):
        asked.add((warning, method if (warning, method) in KEYS else ""))
        return is_given(warning, value, method, **unit)

    monkeypatch.setattr("skdp.fitting.utility.is_given", passing)
    net = replace(with_net(), task="classes", effective_n=100.0)
    for facts in (*(row[0] for row in BEFORE), of("DPSRM", 100.0), net):
        utility_warnings(facts)
    for row in AFTER:
        released_warnings(row[0])
    assert asked == KEYS


def test_few_units_are_named_once():
    """Where released scales are noise, and where a fit tells at its end, nothing is said of probabilities."""
    (only,) = utility_warnings(with_n(CLASSIFIER, 60.0))
    assert "scales are mostly noise" in only.text
    assert len(utility_warnings(with_n(replace(CLASSIFIER, searched=()), 60.0))) == 1
    assert utility_warnings(with_n(replace(CLASSIFIER, searched=(), doubts=True), 60.0)) == ()
    assert utility_warnings(CLASSIFIER) == utility_warnings(REGRESSOR) == ()
    (small,) = utility_warnings(replace(with_net(signal=5.0), task="classes", effective_n=100.0))
    assert "a net of 500 parameters" in small.text


def test_the_documented_table_is_the_one_of_the_code():
    with TABLE.open(newline="") as file:
        found = list(csv.reader(file))
    wanted = [[r.warning, r.method, f"{r.side} {r.number:.3g}", r.unit, r.origin] for r in THRESHOLDS]
    assert found[1:] == wanted, "run: python tools/make_thresholds.py"
    assert len(KEYS) == len(THRESHOLDS)
    assert threshold("few units", "DPIGHT") == threshold("few units")


def told(model, X, y):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    return [str(w.message) for w in caught if w.category is UtilityWarning]


@pytest.mark.parametrize("name", ["DPSGDClassifier", "DPAdaSSPRegressor"])
def test_columns_of_different_scale_are_named_after_the_fit(name):
    """Two columns in their units hide the age; scaled ones do not, nor do columns that share one unit."""
    rng = np.random.default_rng(0)
    X = np.column_stack([rng.uniform(20, 90, 3000), rng.uniform(0, 200_000, 3000)])
    y = (X[:, 0] - 55) / 20 + 0.3 * rng.normal(size=3000)
    params = {"random_state": np.random.default_rng(1)}
    if name.endswith("Classifier"):
        y, params["classes"] = (y > 0).astype(int), (0, 1)
    model = getattr(skdp, name)(**params)
    scaled = (X - X.mean(axis=0)) / X.std(axis=0)
    assert sum("Columns in larger units" in text for text in told(model, X, y)) == 1
    assert told(model, scaled, y) == told(model, 1e4 * scaled, y) == []
