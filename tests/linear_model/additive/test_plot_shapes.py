"""The picture of shapes: a panel a column, lines, bands, windows and levels."""

import itertools
import sys
import warnings
from dataclasses import replace

import numpy as np
import pytest

from tests.linear_model.additive.made import D, made_curves, made_model

NAMES = ["age of the person in years at the start", "half", "temp", "year", "unseen", "rooms"]


@pytest.fixture
def pyplot():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)  # such as of a layout without room
        yield pyplot
    pyplot.close("all")


def vertices(band):
    return band.get_paths()[0].vertices


def test_panels_are_sorted_by_importance(pyplot):
    model = made_model(names=NAMES)
    panels = model.plot_shapes()
    order = np.argsort(-model.feature_importances_)[:5]  # one column adds nothing
    assert [p.get_xlabel().replace("\n", " ") for p in panels] == [NAMES[j] for j in order]
    assert panels[0].get_ylabel().replace("\n", " ") == "part of the log odds of yes"
    assert len(panels[0].figure.axes) == 5
    panels[0].figure.canvas.draw()
    boxes = [p.get_tightbbox() for p in panels]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:i])
    assert not any(p.get_legend() for p in panels)


def test_a_panel_shows_values_band_and_window(pyplot):
    model = made_model()
    (panel,) = model.plot_shapes(3)
    shape = model.shapes_[3]
    (line,) = [found for found in panel.lines if len(found.get_xdata()) > 2]
    # One point more on each side: beyond the window the ends count.
    assert np.array_equal(line.get_xdata()[1:-1], shape.knots)
    assert np.array_equal(line.get_ydata()[1:-1], shape.values)
    assert np.array_equal(line.get_ydata()[[0, -1]], shape.values[[0, -1]])
    (band,) = panel.collections
    for sign in (-1, 1):
        edge = shape.values + sign * 1.96 * shape.noise_std
        assert np.isin(np.round(edge, 9), np.round(vertices(band)[:, 1], 9)).all()
    left, right = panel.get_xlim()
    beyond = [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in panel.patches]
    assert np.allclose(beyond, [(left, 1990.0), (2012.0, right)])
    (temp,) = model.plot_shapes(2)
    assert len(temp.patches) == 1  # the other end of its window is far off
    assert np.allclose(temp.get_xlim(), [-4.5 - 0.06 * 2.0, -2.5 + 0.06 * 2.0])


def test_a_wide_window_is_drawn_where_values_lie(pyplot):
    curves = made_curves()
    model = made_model(curves=replace(curves, scale=curves.scale / 10.0))
    (panel,) = model.plot_shapes(3)
    shape = model.shapes_[3]
    assert np.allclose(panel.get_xlim(), 2000.0 + np.array([-1, 1]) * 3.0 * 0.8 * 1.12)
    assert not panel.patches
    (line,) = [found for found in panel.lines if len(found.get_xdata()) > 2]
    assert np.allclose(line.get_ydata(), np.interp(line.get_xdata(), shape.knots, shape.values))
    assert line.get_ydata().size == 65 + 2


def test_levels_are_points_with_bars(pyplot):
    model = made_model()
    (panel,) = model.plot_shapes([5])
    (points,) = panel.containers
    assert points[0].get_xdata().tolist() == [0.1, 1.0, 3.0]
    assert np.array_equal(points[0].get_ydata(), model.shapes_[5].level_values)
    ends = np.array(points[2][0].get_segments())[:, :, 1]
    assert np.allclose(np.diff(ends)[:, 0], 2 * 1.96 * model.shapes_[5].level_noise_std)


def test_three_classes(pyplot):
    model = made_model("three classes", names=NAMES)
    panels = model.plot_shapes(["temp", 0])
    assert [len(panel.collections) for panel in panels] == [3, 3]
    (legend,) = panels[0].figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["a", "b", "c"]
    (one,) = model.plot_shapes("temp", class_="b")
    (line,) = [found for found in one.lines if len(found.get_xdata()) > 2]
    shape = model.shapes_[2]
    assert np.allclose(line.get_ydata(), np.interp(line.get_xdata(), shape.knots, shape.values[:, 1]))
    assert one.get_ylabel() == "part of the score of b"
    assert not one.figure.legends


def test_axes_that_are_given(pyplot):
    model = made_model("regression")
    _, row = pyplot.subplots(1, 3)
    panels = model.plot_shapes([0, 1], axes=row)
    assert list(panels) == list(row[:2])
    assert not row[2].lines
    assert row[0].get_ylabel() == "part of the prediction"
    _, ax = pyplot.subplots()
    assert model.plot_shapes([0], axes=ax)[0] is ax
    with pytest.raises(ValueError, match="1 Axes for 2 columns"):
        model.plot_shapes([0, 1], axes=ax)
    classes = made_model("three classes")
    _, ax = pyplot.subplots()
    classes.plot_shapes(0, axes=ax)
    assert len(ax.get_legend().get_texts()) == 3


def test_lines_and_models_of_nothing_are_drawn(pyplot):
    model = made_model(curves=None)
    assert len(model.plot_shapes()) == 5
    model.linear_ = np.zeros(D)
    assert len(model.plot_shapes()) == 1


def test_at_most_twelve_columns_are_drawn(pyplot):
    from skdp.linear_model.additive.curves import Curves

    d = 15
    model = made_model()
    made = made_curves(levels=False, pairs=()).expansion.make([1] * d)
    model.n_features_in_, model.fill_values_ = d, np.zeros(d)
    model.linear_ = np.arange(d) + 1.0
    model.feature_bounds_ = np.outer([-1.0, 1.0], np.ones(d))
    low, high = model.feature_bounds_
    model._curves = Curves(np.arange(d), np.zeros(d), np.ones(d), low, high, made, np.zeros(d))
    panels = model.plot_shapes()
    assert [p.get_xlabel() for p in panels] == [f"x{j}" for j in range(14, 2, -1)]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"columns": "weight"}, "columns names the column 'weight'"),
        ({"columns": [6]}, "columns names the column 6"),
        ({"columns": []}, "at least one"),
        ({"class_": "yes"}, "one score"),
    ],
)
def test_unknown_columns_and_classes_are_refused(given, words):
    with pytest.raises(ValueError, match=words):
        made_model().plot_shapes(**given)
    with pytest.raises(ValueError, match="not among classes_"):
        made_model("three classes").plot_shapes(class_="d")


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError, match=r'pip install "skdp\[plot\]"'):
        made_model().plot_shapes()


def test_names_and_large_numbers_do_not_overlap(pyplot):
    names = [f"{name}_$\\wrong$_of_the_record_after_the_transfer" for name in "abcdef"]
    curves = made_curves()
    wide = replace(curves, center=curves.center * 1e5, scale=curves.scale * 1e5)
    wide = replace(wide, low=wide.low * 1e5, high=wide.high * 1e5)
    panels = made_model(names=names, curves=wide).plot_shapes()
    figure = panels[0].figure
    figure.canvas.draw()  # a dollar sign is no formula
    whole = figure.bbox
    for panel in panels:
        assert all(line.endswith("_") for line in panel.get_xlabel().split("\n")[:-1])
        boxes = [text.get_window_extent() for text in panel.get_xticklabels() if text.get_text()]
        left, right = panel.bbox.x0, panel.bbox.x1
        boxes = [box for box in boxes if left <= (box.x0 + box.x1) / 2 <= right]
        assert all(a.x1 < b.x0 for a, b in itertools.pairwise(boxes))
        box = panel.yaxis.label.get_window_extent()
        assert whole.y0 <= box.y0
        assert box.y1 <= whole.y1
