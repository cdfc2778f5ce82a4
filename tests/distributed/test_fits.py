"""Fits of Dask collections: the bits of a local fit, predictions, and refusals before anything is spent."""

import itertools
import os
import signal
import sys

import cloudpickle
import dask
import dask.array as da
import dask.dataframe as dd
import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from distributed import Client, LocalCluster
from sklearn.base import clone

from skdp import DPLogisticRegression
from skdp.base.blocks import Placed, blocks_of
from skdp.base.partitions import problem_of_blocks
from skdp.distributed import DaskBlocks, bucketed
from skdp.distributed.cluster import Cluster
from skdp.linear_model import DPSGDClassifier, DPSGDRegressor
from skdp.losses import LogisticLoss
from skdp.privacy import BudgetAccountant

cloudpickle.register_pickle_by_value(sys.modules[__name__])

CUTS = [0, 700, 701, 701, 1500, 2400]  # one row, and none
OPTIONS = dict(classes=(0, 1), epsilon=1.0, delta=1e-6, random_state=3)


def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(CUTS[-1], 4)).astype(np.float32)
    return X, (X[:, 0] + rng.normal(size=len(X)) > 0).astype(np.int64)


def load(start, stop):
    X, y = table()
    return X[start:stop], y[start:stop]


def sparse(X):
    return sp.csr_matrix(np.where(np.abs(X) < 0.5, 0, X))


def arrays(change=lambda X: X):
    parts = [dask.delayed(load, pure=False)(a, b) for a, b in itertools.pairwise(CUTS)]
    X = [da.from_delayed(dask.delayed(change)(p[0]), (np.nan, 4), np.float32) for p in parts]
    y = [da.from_delayed(p[1], (np.nan,), np.int64) for p in parts]
    return da.concatenate(X, allow_unknown_chunksizes=True), da.concatenate(y, allow_unknown_chunksizes=True)


def given(kind, client):
    if kind == "futures":
        return [client.submit(load, a, b, pure=False) for a, b in itertools.pairwise(CUTS)], None
    if kind == "frame":
        X, y = table()
        frame = dd.from_pandas(pd.DataFrame(X, columns=list("abcd")).assign(y=y), npartitions=3)
        return frame[list("abcd")], frame["y"]
    return arrays(sparse) if kind == "csr" else arrays()


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("kind", ["futures", "array", "frame", "csr", "local"])
def test_a_fit_has_the_bits_of_a_fit_in_memory(client, kind):
    X, y = table()
    X = sparse(X) if kind == "csr" else X
    expected = DPLogisticRegression(**OPTIONS).fit(X, y)
    if kind == "local":
        model = DPLogisticRegression(**OPTIONS).fit(*given(kind, None))
    else:
        with client.as_current():
            model = DPLogisticRegression(**OPTIONS).fit(*given(kind, client))
    assert np.array_equal(model.coef_, expected.coef_)
    assert np.array_equal(model.intercept_, expected.intercept_)
    assert str(model.privacy_) == str(expected.privacy_)
    if kind == "frame":
        assert list(model.feature_names_in_) == list("abcd")


def test_each_statistic_has_the_bits_of_records_in_memory(current):
    """Released numbers hide errors in the last bits, a grid of 2^-44 does not."""
    X, y = table()
    model = DPLogisticRegression(**OPTIONS)
    blocks = blocks_of(*arrays())
    assert isinstance(blocks, Placed)
    placed, local = problem_of_blocks(model, blocks).records, model.read(X, y).records
    theta = np.linspace(-1, 1, 5)
    for statistic in (
        lambda r: r.second_moment(4.0, 1.0, adjacency="replace-one", target_weight=1.0),
        lambda r: r.with_intercept(1.0).mean_gradient(LogisticLoss(), theta, 0.5),
        lambda r: r.column_sums(0.0, 3.0),
        lambda r: r.column_counts(0.5),
    ):
        one, other = (statistic(r)._value for r in (placed, local))
        for unit in (2.0**-44, 2.0**-30):
            assert np.array_equal(one.on_grid(unit), other.on_grid(unit))


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_narrow_columns_of_parquet_keep_their_partitions(current, tmp_path):
    """Dask merges partitions of columns that are a small share of a file, so y would have fewer of them than X."""
    X, y = table()
    wide = pd.DataFrame(np.repeat(X, 4, axis=1)).rename(columns=str)
    for i, cut in enumerate(np.array_split(np.arange(len(X)), 6)):
        wide.assign(y=y).iloc[cut].to_parquet(tmp_path / f"{i}.parquet")
    frame = dd.read_parquet(tmp_path)
    assert len(frame["y"].to_delayed()) < frame.npartitions
    model = DPLogisticRegression(**OPTIONS).fit(frame[list(wide)], frame["y"])
    assert np.array_equal(model.coef_, DPLogisticRegression(**OPTIONS).fit(wide, y).coef_)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_minibatches_and_groups(current):
    X, y = table()
    drawn = dict(OPTIONS, batch_size=256, max_iter=20)
    expected = DPSGDClassifier(**drawn).fit(X, y)
    assert np.array_equal(DPSGDClassifier(**drawn).fit(*arrays()).coef_, expected.coef_)
    who = np.random.default_rng(1).integers(0, 300, len(X))
    frame = dd.from_pandas(pd.DataFrame(X).rename(columns=str).assign(y=y, who=who), npartitions=4)
    grouped = dict(OPTIONS, unit="group")
    expected = DPLogisticRegression(**grouped).fit(X, y, groups=who)
    model = DPLogisticRegression(**grouped).fit(bucketed(frame, groups="who", target="y", n_buckets=5))
    assert np.array_equal(model.coef_, expected.coef_)
    with pytest.raises(ValueError, match="another block"):  # n_buckets is declared, and rows were not moved
        DPLogisticRegression(**grouped).fit(
            DaskBlocks(frame[list("0123")], frame["y"], frame["who"], n_buckets=frame.npartitions)
        )


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_workers_that_die_change_no_bit(current, monkeypatch):
    expected = DPLogisticRegression(**OPTIONS).fit(*table())
    blocks = DaskBlocks(*arrays())
    total, killed = Cluster.total, []

    def dying(*args):
        killed.append(None)
        if len(killed) in (3, 6):
            os.kill(next(iter(current.run(os.getpid).values())), signal.SIGKILL)
        return total(*args)

    monkeypatch.setattr(Cluster, "total", dying)
    model = DPLogisticRegression(**OPTIONS).fit(blocks)
    assert len(killed) > 6
    assert np.array_equal(model.coef_, expected.coef_)
    current.wait_for_workers(2)


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_a_fit_inside_a_fit_leaves_its_parts_alone(current):
    """The parts of another fit of the same blocks hold other targets, which no check of rows would tell apart."""
    blocks, inner = DaskBlocks(*arrays()), []

    def fit(*_, **__):
        if not inner:
            inner.append(DPLogisticRegression(**OPTIONS).fit(blocks))

    options = dict(epsilon=1.0, delta=1e-5, random_state=0, max_iter=4)
    made = DPSGDRegressor(**options, callback=fit).fit(blocks)
    X, y = table()
    assert inner
    assert np.array_equal(made.coef_, DPSGDRegressor(**options).fit(X, y).coef_)


def test_nothing_is_computed_or_spent_before_refusals(current):
    def touched(*args, **options):
        raise AssertionError("computed")

    X, y = arrays()
    in_memory = table()[1]
    frame = dd.from_pandas(pd.DataFrame({"a": [1.0, 2.0], "b": ["u", "v"]}), npartitions=2)
    category = frame.assign(b=frame["b"].astype("category"))
    accountant = BudgetAccountant(epsilon=2.0, delta=1e-5)
    model = DPLogisticRegression(**OPTIONS, accountant=accountant)
    wide = da.zeros((10, 4), chunks=(5, 2))
    with dask.config.set(scheduler=touched):
        for error, match, args in (
            (ValueError, r"X.rechunk\(\{1: -1\}\)", (wide, da.zeros(10, chunks=5))),
            (ValueError, "numbers of partitions", (X, da.zeros(10, chunks=5))),
            (ValueError, "2 dimensions", (y, y)),
            (TypeError, "y must be a Dask array or series", (X, in_memory)),
            (TypeError, "X does not", (table()[0], y)),
            (TypeError, r"column 'b' \((str|object|string)", (frame, y)),
            (TypeError, r"column 'b' \(category\)", (category, y)),
            (TypeError, "beside a list", ([dask.delayed(load)(0, 1)], y)),
        ):
            with pytest.raises(error, match=match):
                model.fit(*args) if not isinstance(args[0], list) else DaskBlocks(*args)
    assert accountant.ledger() == []


@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
def test_predictions_and_transformations_are_lazy(current):
    X, y = table()
    model = DPLogisticRegression(**OPTIONS).fit(X, y)

    def scores(X):
        return model.decision_function(X) if X.shape[0] else np.zeros(0)

    def doubled(X):
        return X * 2

    for kind in ("array", "frame", "csr", "futures"):
        collection, targets = given(kind, current)
        blocks = DaskBlocks(collection, targets)
        found = blocks.mapped(scores)
        expected = scores(sparse(X) if kind == "csr" else X)
        if kind == "futures":
            got = np.concatenate(dask.compute(*found))
        else:
            assert (found.dtype, found.ndim) == (np.float64, 1)
            got = found.compute()
        assert np.allclose(got, expected)
        twice = DPLogisticRegression(**OPTIONS).fit(blocks.mapped(doubled, keep=True))
        assert np.array_equal(
            twice.coef_, DPLogisticRegression(**OPTIONS).fit(doubled(sparse(X) if kind == "csr" else X), y).coef_
        )
    table_alone = DaskBlocks(da.from_array(X, chunks=(1000, 4))).mapped(doubled, keep=True)  # y goes beside it
    assert table_alone.chunks == ((1000, 1000, 400), (4,))
    assert table_alone.dtype == np.float32
    assert np.array_equal(table_alone.compute(), doubled(X))


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning")
@pytest.mark.parametrize("n_workers", [1, 4])
def test_the_number_of_workers_changes_no_bit(n_workers):
    X, y = table()
    estimators = [DPLogisticRegression(**OPTIONS), DPSGDClassifier(**OPTIONS, batch_size=64, max_iter=20)]
    options = dict(n_workers=n_workers, threads_per_worker=1, dashboard_address=None)
    with LocalCluster(**options) as cluster, Client(cluster) as client:
        for estimator in estimators:
            model = clone(estimator).fit(*given("futures", client))
            assert np.array_equal(model.coef_, clone(estimator).fit(X, y).coef_)
