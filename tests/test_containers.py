"""What is not in memory, and dates as targets, are refused with the repair, and no budget moves."""

import datetime
import re
import warnings
from pathlib import Path

import numpy as np
import pytest
from sklearn.base import clone

import skdp
from skdp import BudgetAccountant, DPLinearRegression, DPLogisticRegression
from skdp.base.cells import check_collected

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

N = 60
X = np.random.default_rng(0).normal(size=(N, 2))
TARGET = X[:, 0]
DAYS = np.datetime64("2020-01-01") + np.arange(N).astype("timedelta64[D]")
DAY = datetime.date(2020, 1, 1)


class Touched(AssertionError):
    """A lazy container was computed."""


def untouchable(*args):
    raise Touched


def stand_in(module, name):
    """An object of a type of that module and name, which fails when it is asked for values or lengths."""
    members = dict.fromkeys(("__array__", "__iter__", "__len__", "compute", "collect"), untouchable)
    return type(name, (), {"__module__": module, "shape": property(untouchable), **members})()


def moving():
    yield from X.tolist()


LAZY = {
    "polars": (lambda: pl.LazyFrame(X), "{}.collect()"),
    "spark": (lambda: stand_in("pyspark.sql.classic.dataframe", "DataFrame"), "{}.toPandas()"),
    "generator": (moving, "list({})"),
    "iterator": (lambda: iter(X), "list({})"),
    "map": (lambda: map(list, X), "list({})"),
    "file name": (lambda: "people.csv", "{} = pandas.read_csv(...)"),
    "path": (lambda: Path("people.csv"), "{} = pandas.read_csv(...)"),
    "bytes": (lambda: b"people.csv", "{} = pandas.read_csv(...)"),
}  # fmt: skip
DASK = {
    "frame": lambda: stand_in("dask.dataframe.dask_expr._collection", "DataFrame"),
    "array": lambda: stand_in("dask.array.core", "Array"),
}
each_lazy = pytest.mark.parametrize("kind", sorted(LAZY))
DATES = {
    "datetime64": DAYS,
    "timedelta64": DAYS - DAYS[0],
    "pandas dates": pd.Series(DAYS),
    "pandas durations": pd.Series(DAYS - DAYS[0]),
    "pandas with a zone": pd.Series(pd.date_range("2020-01-01", periods=N, tz="UTC")),
    "pandas periods": pd.Series(pd.period_range("2020-01-01", periods=N)),
    "pandas frame": pd.DataFrame({"seen": DAYS}),
    "polars dates": pl.Series(DAYS),
    "polars datetimes": pl.Series([datetime.datetime(2020, 1, 1)] * N),
    "polars durations": pl.Series([datetime.timedelta(1)] * N),
    "polars times": pl.Series([datetime.time(1)] * N),
    "objects": np.array([DAY] * N, dtype=object),
    "list": [DAY] * N,
    "list of datetime64": list(DAYS),
    "list of timestamps": [pd.Timestamp(2020, 1, 1)] * N,
    "list of timedelta": [datetime.timedelta(1)] * N,
    "one of a list": [*TARGET[1:].tolist(), DAY],
}
MODELS = {
    "regressor": DPLinearRegression(),
    "classifier": DPLogisticRegression(classes=(0, 1)),
    "classifier, no classes": DPLogisticRegression(),
    "exact": skdp.IGHTRegressor(n_nonzero_coefs=2),
}


@pytest.fixture
def accountant():
    return BudgetAccountant(10.0, 1e-3)


@each_lazy
@pytest.mark.parametrize("name", ["X", "y", "groups", "sample_weight"])
def test_what_is_not_in_memory_is_refused_before_the_ledger_is_opened(kind, name, accountant):
    make, repair = LAZY[kind]
    given = {"X": X, "y": TARGET, name: make()}
    model = DPLinearRegression(accountant=accountant)
    with pytest.raises(TypeError, match=f"{name} is not in memory .*{re.escape(repair.format(name))}"):
        model.fit(given.pop("X"), given.pop("y"), **given)
    assert accountant.ledger() == []


@pytest.mark.parametrize("kind", sorted(DASK))
@pytest.mark.parametrize("name", ["X", "y", "groups", "sample_weight"])
def test_what_only_looks_like_dask_is_refused_by_its_type(kind, name, accountant):
    pytest.importorskip("dask")
    given = {"X": X, "y": TARGET, name: DASK[kind]()}
    with pytest.raises(TypeError, match=f"{name} must be a Dask array|{name} lies in blocks and X does not"):
        DPLinearRegression(accountant=accountant).fit(given.pop("X"), given.pop("y"), **given)
    assert accountant.ledger() == []


def test_an_iterator_is_not_moved():
    rows = moving()
    with pytest.raises(TypeError, match=r"list\(X\)"):
        DPLinearRegression().fit(rows, TARGET)
    assert next(rows) == X[0].tolist()


@pytest.mark.parametrize("name", [name for name, _ in skdp.all_estimators()])
def test_every_estimator_says_collect_first(name):
    model = getattr(skdp, name)()
    if name == "PublicScaler":
        model.set_params(center=0.0, scale=1.0)
    for make, _ in LAZY.values():
        with pytest.raises(TypeError, match="collect it first"):
            model.fit(make(), TARGET)


def test_predictions_statistics_and_words_say_so_too():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPLinearRegression().fit(X, TARGET)
    for make, _ in LAZY.values():
        for use in (model.predict, skdp.statistics.mean, skdp.statistics.count):
            with pytest.raises(TypeError, match="collect it first"):
                use(make())
    for kind in ("polars", "path"):
        with pytest.raises(TypeError, match="collect it first"):
            skdp.DPWord2Vec(unit="record").fit(LAZY[kind][0]())
    with pytest.raises(TypeError, match=r"use list\(sentences\)"):
        skdp.DPWord2Vec(unit="record").fit(moving())


def test_what_is_in_memory_passes():
    check_collected(
        X=X, y=None, a=pd.Series(TARGET), b=pl.DataFrame(X), c=X.tolist(), d=range(3), e={1, 2}, f=3.0,
        g=np.float64(1.0), h=np.array(1.0),
    )  # fmt: skip


@pytest.mark.parametrize("kind", sorted(DATES))
@pytest.mark.parametrize("model", sorted(MODELS))
def test_dates_and_durations_are_no_targets(kind, model, accountant):
    """A classifier used to take dates as labels, a regressor as days or nanoseconds, and budgets were spent."""
    model = MODELS[model]
    if "accountant" in model.get_params():
        model = clone(model).set_params(accountant=accountant)
    with pytest.raises(TypeError, match=r"y holds dates or durations.*pandas.Timedelta"):
        model.fit(X, DATES[kind])
    assert accountant.spent() == (0.0, 0.0)


def test_the_repair_works(accountant):
    days = (pd.Series(DAYS) - pd.Timestamp("2000-01-01")) / pd.Timedelta(days=1)
    zoned = pd.Series(DAYS).dt.tz_localize("UTC") - pd.Timestamp("2000-01-01", tz="UTC")
    assert np.array_equal(zoned / pd.Timedelta(days=1), days)
    listed = pd.Series(list(pd.Series(DAYS).dt.to_pydatetime())) - pd.Timestamp("2000-01-01")
    assert np.array_equal(listed / pd.Timedelta(days=1), days)
    durations = pd.Series(DAYS - DAYS[0]) / pd.Timedelta(days=1)
    assert np.array_equal(durations, days - days[0])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        DPLinearRegression(accountant=accountant).fit(X, days)
        labels = pd.Series(DAYS).dt.year.astype(str).to_numpy()
        labels[:30] = "2019"
        DPLogisticRegression(classes=("2019", "2020")).fit(X, labels)
    assert accountant.spent()[0] > 0


@pytest.mark.parametrize("dates", [DAYS, DAYS - DAYS[0]])
def test_a_table_or_weights_of_dates_are_refused(dates, accountant):
    table = np.column_stack([dates, dates])
    for fit in (DPLinearRegression(accountant=accountant).fit, skdp.PublicScaler(center=0.0).fit):
        with pytest.raises(TypeError, match="X holds dates or durations"):
            fit(table, TARGET)
    with pytest.raises(TypeError, match="sample_weight holds dates or durations"):
        skdp.DPIGHTRegressor(max_weight=1.0, accountant=accountant).fit(X, TARGET, sample_weight=dates)
    with pytest.raises(TypeError, match="X holds dates or durations"):
        skdp.statistics.mean(dates, bounds=(0, 1), accountant=accountant)
    assert accountant.spent() == (0.0, 0.0)


def test_labels_that_look_like_dates_are_text():
    labels = np.array(["2020-01-01", "2020-01-02"] * (N // 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = DPLogisticRegression().fit(X, labels)
    assert model.classes_.tolist() == ["2020-01-01", "2020-01-02"]
