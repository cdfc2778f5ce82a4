"""Explanations add up to the scores, print as tables and become frames."""

import sys

import numpy as np
import pytest

from tests.linear_model.additive.made import D, made_model, made_rows

NAMES = ["age", "half", "temp", "year", "unseen", "rooms"]
each_kind = pytest.mark.parametrize("kind", ["two classes", "three classes", "regression"])


@each_kind
@pytest.mark.parametrize("line", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_contributions_add_up(kind, line, dtype):
    model = made_model(kind, **({"curves": None} if line else {}), cut=(-1.0, 1.0))
    X = made_rows().astype(dtype)
    found = model.explain(X)
    total = found.contributions.sum(axis=1) + found.intercept
    np.testing.assert_allclose(found.score, total, rtol=0, atol=1e-12)
    # Where float32 does not hold a fill value, the line's score has a rounded one.
    np.testing.assert_allclose(found.score, model._scores(X), rtol=0, atol=1e-11 if dtype == np.float64 else 1e-6)
    assert np.array_equal(found.prediction, model.predict(X))
    assert found.names[:D] == tuple(f"x{j}" for j in range(D))
    assert found.names[D:] == (() if line else ("x0 x x3", "x1 x x0", "x2 x x3"))
    centre = model.fill_values_[None]
    empty = made_model(kind, curves=None)
    assert np.allclose(empty.decision_function(centre) if kind != "regression" else empty._scores(centre),
                       empty.explain(centre).intercept)  # fmt: skip
    if kind == "regression":
        assert np.array_equal(found.prediction, found.score.clip(-1.0, 1.0)) or np.allclose(
            found.prediction, found.score.clip(-1.0, 1.0)
        )
        assert (found.score > 1.0).any()


@each_kind
def test_a_missing_cell_of_a_line_adds_nothing(kind):
    model, X = made_model(kind, curves=None), made_rows(20, missing=False)
    X[:, 3] = np.nan
    assert not model.explain(X).contributions[:, 3].any()


def test_one_row_of_many_kinds():
    pd = pytest.importorskip("pandas")
    model, X = made_model(names=NAMES), made_rows(30, missing=False)
    frame = pd.DataFrame(X, columns=NAMES)
    whole = model.explain(frame)
    assert len(whole) == 30
    for one in (model.explain(frame.iloc[4]), whole[4], whole[-26], list(whole)[4]):
        assert len(one) == 1
        assert np.array_equal(one.contributions[0], whole.contributions[4])
        assert np.array_equal(one.data[0], X[4])
    nameless = made_model()
    for row in (X[4], X[4].tolist(), X[4:5]):
        assert np.array_equal(nameless.explain(row).contributions[0], whole.contributions[4])
    mixed = frame.assign(unseen=frame["unseen"] > 0.0)
    assert mixed.iloc[4].dtype == object
    found = model.explain(mixed.iloc[4])
    assert np.allclose(found.contributions[0], whole.contributions[4])
    with pytest.raises(IndexError, match="30 rows"):
        whole[30]
    with pytest.raises(ValueError, match="6 features"):
        nameless.explain(X[4, :3])


def test_the_table_is_sorted_by_size():
    model, X = made_model(names=NAMES), made_rows(30, missing=False)
    X[4, 3] = np.nan
    frame = pytest.importorskip("pandas").DataFrame(X, columns=NAMES)
    one = model.explain(frame)[4]
    head, *terms, intercept, total, predicted = repr(one).split("\n")
    assert head.split() == ["contribution", "term"]
    shown = [abs(float(line.split()[0])) for line in terms]
    assert shown == sorted(shown, reverse=True)
    assert len(terms) == np.count_nonzero(one.contributions)  # none of the column that is not seen
    assert any(line.endswith("year = missing") for line in terms)
    assert any(line.endswith(f"age = {X[4, 0]:.6g}") for line in terms)
    assert intercept.endswith("intercept")
    assert total.endswith("sum: log odds of yes")
    assert float(total.split()[0]) == pytest.approx(float(one.score[0]), rel=1e-3)
    assert predicted.split() == ["prediction:", one.prediction[0]]
    assert repr(model.explain(frame)).endswith("... and 27 more rows")


def test_small_terms_of_wide_tables_are_summed():
    from skdp.linear_model.additive.explanation import explanation_of
    from skdp.linear_model.additive.function import AdditiveFunction

    d = 50
    bounds = np.outer([-np.inf, np.inf], np.ones(d))
    function = AdditiveFunction.make(np.arange(1.0, d + 1), 0.5, np.zeros(d), bounds, None)
    found = explanation_of(function, np.ones((1, d)), np.array([3.0]), None)
    *_, rest, intercept, total, predicted = repr(found).split("\n")
    assert rest.split() == ["+465", "all", "30", "smaller", "terms", "together"]  # 1 + 2 + ... + 30
    assert total.split()[0] == "+1276"
    assert predicted.endswith("prediction: 3")


def test_three_classes_have_a_column_each():
    one = made_model("three classes").explain(made_rows(5))[0]
    lines = repr(one).split("\n")
    assert lines[0].split() == ["a", "b", "c", "term"]
    assert lines[-2].endswith("sum: the scores of the classes")
    assert np.allclose([float(x) for x in lines[-2].split()[:3]], one.score[0], rtol=1e-3)


@each_kind
def test_frames(kind):
    pytest.importorskip("pandas")
    model, X = made_model(kind), made_rows(10)
    found = model.explain(X)
    frame = found.to_frame()
    q = 3 if kind == "three classes" else 1
    assert frame.shape == (10 * q, D + 3 + 3)
    assert list(frame.columns) == ["intercept", *found.names, "score", "prediction"]
    numbers = frame.drop(columns=["score", "prediction"]).sum(axis=1)
    assert np.allclose(numbers, frame["score"])
    assert np.array_equal(frame["score"], found.score.ravel())
    if q == 3:
        assert frame.index.names == ["row", "class"]
        assert frame.loc[(4, "b"), "x0"] == found.contributions[4, 0, 1]
    assert frame["prediction"].iloc[-1] == found.prediction[-1]


def test_a_frame_without_pandas_says_what_to_install(monkeypatch):
    found = made_model().explain(made_rows(2))
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ImportError, match="pip install pandas"):
        found.to_frame()
