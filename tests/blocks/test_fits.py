"""Fits over blocks release the numbers, and report the ledger, of the fit of the same rows in one place."""

import functools
import importlib
import pkgutil

import numpy as np
import pytest
import scipy.sparse as sp

import skdp
from skdp.base.blocks import group_bucket
from skdp.base.fit import PrivateFit
from tests.blocks.toys import CUTS, Toy, blocks, cut
from tests.kinds import quick_alone

pytestmark = pytest.mark.filterwarnings("ignore")

N = 240
DRAW = np.random.default_rng(1)
X = DRAW.standard_t(4, size=(N, 5))
SCORE = X @ DRAW.normal(size=5)
CLASSES = (SCORE + DRAW.normal(size=N) > 0).astype(int)
NUMBERS = SCORE + 0.3 * DRAW.normal(size=N)
GROUPS = np.sort(DRAW.integers(0, 80, size=N)) * 3 - 7
WEIGHTS = DRAW.uniform(0.1, 1.0, size=N)
SPARSE = sp.csr_matrix(np.where(np.abs(X) > 0.8, X, 0.0))

CLASSIFIERS = {
    "DPAdditiveClassifier",
    "DPGDClassifier", "DPIGHTClassifier", "DPLSSGDClassifier", "DPLogisticRegression", "DPSGDClassifier",
    "DPSRMClassifier",
}  # fmt: skip
REGRESSORS = {
    "DPAdditiveRegressor",
    "DPAdaSSPRegressor", "DPIGHTRegressor", "DPLSSGDRegressor", "DPLinearRegression", "DPSGDRegressor"
}  # fmt: skip
ADDITIVE = {"DPAdditiveClassifier", "DPAdditiveRegressor"}
SCALERS = {"DPQuantileScaler", "DPStandardScaler"}
SAMPLERS = {"DPLSSGDClassifier", "DPLSSGDRegressor", "DPSGDClassifier", "DPSGDRegressor", "DPSRMClassifier"}
WEIGHTED = (
    (CLASSIFIERS | REGRESSORS) - {"DPLogisticRegression", "DPLinearRegression", "DPAdaSSPRegressor"} - ADDITIVE
)


def test_each_estimator_that_takes_blocks_is_here():
    for module in pkgutil.walk_packages(skdp.__path__, "skdp."):
        if "cuda" not in module.name and not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    kinds = [PrivateFit]
    for kind in kinds:
        kinds += [below for below in kind.__subclasses__() if below not in kinds]
    takes = {kind.__name__ for kind in kinds if kind._no_blocks is None and kind.__name__ in skdp.__all__}
    assert takes == CLASSIFIERS | REGRESSORS | SCALERS


def targets_of(name):
    return CLASSES if name in CLASSIFIERS else NUMBERS if name in REGRESSORS else None


def made(name, **more):
    given = {"classes": (0, 1)} if name in CLASSIFIERS else {}
    return getattr(skdp, name)(random_state=3, **given, **more)


def released(model):
    """All that a fit shows."""
    found = {name: value for name, value in vars(model).items() if name.endswith("_")}
    report = found.pop("privacy_")
    return repr({name: np.asarray(value).tolist() for name, value in sorted(found.items())}), report.to_json()


@functools.cache
def local(name, table="X", grouped=False, weighted=False, **more):
    more_data = {"groups": GROUPS} if grouped else {}
    more_data |= {"sample_weight": WEIGHTS} if weighted else {}
    return released(made(name, **more).fit(globals()[table], targets_of(name), **more_data))


def between_groups(cuts):
    starts = np.append(np.flatnonzero(np.diff(GROUPS, prepend=GROUPS[0] - 1)), N)
    return sorted(set(starts[np.searchsorted(starts, cuts)].tolist()))


def over(name, kind, cuts, table="X", grouped=False, weighted=False, **more):
    """The fit over blocks; ``kind`` is streamed, placed or pickled."""
    cuts, form = (between_groups(cuts) if grouped else cuts), {}
    if grouped:
        form["group_starts"] = GROUPS[cuts[:-1]]
    data = [globals()[table], targets_of(name), GROUPS if grouped else None, WEIGHTS if weighted else None]
    if kind == "streamed":
        given = blocks(cuts, *data, **form)
    else:
        given = Toy(cut(cuts, *data), pickled=kind == "pickled", **form)
    return released(made(name, **more).fit(given))


ALL = sorted(CLASSIFIERS | REGRESSORS | SCALERS)
QUICK = ("DPLogisticRegression", "DPLinearRegression", "DPIGHTClassifier", "DPSGDRegressor", "DPStandardScaler")
VARIANTS = {
    "plain": {},
    "large epsilon": {"epsilon": 30.0},
    "small epsilon": {"epsilon": 0.05},
    "add-remove": {"adjacency": "add-remove", "n_public": 200},
    "zero-out": {"adjacency": "zero-out"},
    "groups": {"unit": "group", "grouped": True},
    "csr": {"table": "SPARSE"},
    "no intercept": {"fit_intercept": False},
    "weights": {"max_weight": 1.0, "weighted": True},
    "batches": {"batch_size": 20},
    "batches of groups": {"batch_size": 20, "unit": "group", "grouped": True},
    "batches without replacement": {"batch_size": 20, "sampling": "without_replacement"},
}


def cases():
    for name in ALL:
        for variant in VARIANTS:
            refused = (
                (variant.startswith("batches") and name not in SAMPLERS)
                or (variant == "weights" and name not in WEIGHTED)
                or (variant == "no intercept" and name in SCALERS | ADDITIVE)
                or (variant == "csr" and name in ADDITIVE)
            )
            if not refused:
                yield name, variant


def of_few(pairs):
    quick = {(name, variant) for name, variant in pairs if name in QUICK}
    return quick_alone(quick, pairs, pytest.mark.slow)


@pytest.mark.parametrize(("name", "variant"), of_few(list(cases())))
def test_a_fit_over_parts_is_the_fit_in_one_place(name, variant):
    expected = local(name, **VARIANTS[variant])
    assert over(name, "placed", CUTS["ragged"](N), **VARIANTS[variant]) == expected


@pytest.mark.parametrize("name", quick_alone(QUICK, ALL, pytest.mark.slow))
def test_streams_and_parts_that_travel_give_the_same_fit(name):
    full = {"batch_size": N} if name in SAMPLERS else {}
    full |= {"initial_batch_size": N} if name == "DPSRMClassifier" else {}
    for cuts in CUTS.values():
        assert over(name, "streamed", cuts(N), **full) == local(name, **full)
    for variant in ({}, VARIANTS["groups"], {} if name in ADDITIVE else {"table": "SPARSE"}):
        assert over(name, "pickled", CUTS["ragged"](N), **variant) == local(name, **variant)


@pytest.mark.parametrize("name", ["DPLogisticRegression", "DPGDClassifier", "DPAdaSSPRegressor"])
def test_groups_may_lie_in_buckets(name):
    bucket = group_bucket(GROUPS, 3)
    parts = [tuple(None if a is None else a[bucket == i] for a in (X, targets_of(name), GROUPS)) for i in range(3)]
    parts = [part[::-1] and part for part in parts]
    assert released(made(name, unit="group").fit(Toy(parts, n_buckets=3))) == local(
        name, unit="group", grouped=True
    )


def test_blocks_are_brought_to_one_form():
    """Fortran order, rows of another dtype, CSR with duplicates, frames and read-only arrays."""
    import pandas as pd

    name, y = "DPGDClassifier", CLASSES
    cuts = CUTS["7"](N)
    twice = SPARSE.copy()
    twice.data /= 2
    twice = sp.csr_matrix(
        (np.repeat(twice.data, 2), np.repeat(twice.indices, 2), 2 * twice.indptr), shape=twice.shape
    )
    assert not twice.has_canonical_format
    frozen = X.copy()
    frozen.setflags(write=False)
    for table, expected in ((np.asfortranarray(X), "X"), (frozen, "X"), (twice, "SPARSE")):
        assert released(made(name).fit(blocks(cuts, table, y))) == local(name, expected)
    wide = X.astype(np.float32).astype(np.float64)  # numbers of float32
    mixed = [(x.astype(np.float32) if i % 2 else x, t) for i, (x, t) in enumerate(cut(cuts, wide, y))]
    assert released(made(name).fit(Toy(mixed, dtype="float64"))) == released(made(name).fit(wide, y))
    with pytest.raises(TypeError, match="different dtypes"):
        made(name).fit(Toy(mixed))
    names = [f"a{j}" for j in range(5)]
    frames = [(pd.DataFrame(x, columns=names), t) for x, t in cut(cuts, X, y)]
    expected = released(made(name).fit(pd.DataFrame(X, columns=names).astype(float), y))
    for pickled in (False, True):
        found = released(made(name).fit(Toy(frames, pickled=pickled)))
        assert found == expected


def test_numbers_that_float32_does_not_hold_are_refused():
    """They were infinite after the check: no proof speaks of such rows."""
    far = X.copy()
    far[7, 1] = 1e300
    for given in (
        blocks([0, 50, N], far, CLASSES, dtype="float32"),
        Toy(cut([0, 50, N], far, CLASSES), dtype="float32"),
    ):
        with pytest.raises(ValueError, match=r"too large|fails the checks"):
            made("DPGDClassifier").fit(given)
