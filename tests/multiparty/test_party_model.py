"""The released model, read back: its predictions are those of the estimator that was fitted."""

import json

import numpy as np
import pandas as pd
import pytest
from sklearn.pipeline import Pipeline

from skdp import MPCGradientPerturbationClassifier, MPCOutputPerturbationClassifier, MPCOutputPerturbationRegressor
from skdp.multiparty.party import load_model
from skdp.multiparty.party.plan import parse_plan
from skdp.multiparty.party.run import _write
from skdp.multiparty.party.table import public_rows
from tests.multiparty.study import SIZES, Study, document

pytestmark = pytest.mark.filterwarnings("ignore")

FEATURES = [{"name": "age", "bounds": [0.0, 100.0]}, {"name": "dose"}, {"name": "pulse", "bounds": [40, 200]}]
OWNERS = np.repeat(np.arange(3), SIZES[:3])
COMMON = {
    "epsilon": 50.0,
    "delta": 1e-6,
    "adjacency": "replace-one",
    "unit": "record",
    "alpha": 0.01,
    "row_norm": 0.5,
}
NAMES = ["age", "dose", "pulse"]


def raw_rows(n, seed=3):
    """Beyond the bounds, too, and with empty cells where they may be."""
    rng = np.random.default_rng(seed)
    rows = np.column_stack([rng.uniform(-20, 120, n), rng.normal(size=n), rng.uniform(20, 250, n)])
    rows[::7, 0], rows[::5, 2] = np.nan, np.nan
    return rows


@pytest.fixture(scope="module")
def certificates(tmp_path_factory):
    return Study(tmp_path_factory.mktemp("keys")).certificates


def released(folder, certificates, make, classes, **parameters):
    """A fit of all owners in one process; its file is written as a party writes it."""
    data = {"target": "y", "features": FEATURES}
    if classes is not None:
        data["classes"] = classes
    plan = parse_plan(
        document(certificates, estimator=make.__name__, parameters={**COMMON, **parameters}, data=data)
    )
    X = public_rows(raw_rows(len(OWNERS), seed=1), plan.features)
    score = 2 * X[:, 0] - X[:, 2]
    y = score if classes is None else np.sort(classes)[np.digitize(score, np.arange(len(classes) - 1))]
    model = plan.make_estimator(accountant=False, random_state=0).fit(X, y, owners=OWNERS)
    return plan, model, _write(folder, plan, 0, model, "")


@pytest.mark.parametrize(
    ("make", "classes", "parameters"),
    [
        (MPCGradientPerturbationClassifier, [0, 1], {"max_iter": 3}),
        (MPCGradientPerturbationClassifier, ["no", "yes", "maybe"], {"max_iter": 3}),
        (MPCOutputPerturbationClassifier, [5, 3], {"fit_intercept": False}),
        (MPCOutputPerturbationRegressor, None, {"y_bounds": [-3.0, 5.0]}),
    ],
)
def test_predictions_are_those_of_the_estimator_that_was_fitted(tmp_path, certificates, make, classes, parameters):
    """To the last bit: JSON holds the shortest digits that give back a float. Rows are longer than row_norm."""
    plan, fitted, path = released(tmp_path, certificates, make, classes, **parameters)
    read, raw = load_model(path), raw_rows(40)
    rows = public_rows(raw, plan.features)
    assert np.linalg.norm(rows, axis=1).max() > 1.0 > COMMON["row_norm"]
    assert isinstance(read, Pipeline)
    wanted = fitted.predict(rows)
    assert len(np.unique(wanted)) > 1
    np.testing.assert_array_equal(read.predict(raw), wanted)
    assert read.predict(raw).dtype == wanted.dtype
    if classes is not None:
        assert read.classes_.tolist() == sorted(classes)
        for name in ("predict_proba", "decision_function", "predict_log_proba"):
            np.testing.assert_array_equal(getattr(read, name)(raw), getattr(fitted, name)(rows))
    assert read.score(raw, wanted) == 1.0
    assert read[-1].get_params()["alpha"] == COMMON["alpha"]
    assert read[-1].row_norm_ == fitted.row_norm_
    assert not hasattr(read[-1], "privacy_")  # the report is a file of its own
    # A mutant that does not map the rows predicts something else.
    filled = np.nan_to_num(raw)
    assert not np.array_equal(read[-1].predict(filled), read.predict(filled))


def test_columns_of_a_data_frame_are_found_by_name(tmp_path, certificates):
    _, _, path = released(tmp_path, certificates, MPCGradientPerturbationClassifier, [0, 1])
    model, raw = load_model(path), raw_rows(20)
    frame = pd.DataFrame(raw, columns=NAMES).assign(ward="x")[["pulse", "ward", "dose", "age"]]
    np.testing.assert_array_equal(model.predict_proba(frame), model.predict_proba(raw))
    assert model.feature_names_in_.tolist() == NAMES
    with pytest.raises(ValueError, match="no column 'dose'"):
        model.predict(frame.drop(columns="dose"))
    with pytest.raises(ValueError, match="2 columns, but the plan has 3"):
        model.predict(raw[:, :2])
    raw[3, 1] = np.nan
    with pytest.raises(ValueError, match="'dose' has a cell that is empty"):
        model.predict(raw)


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("estimator", "DPSGDClassifier"), ("coef", [[1.0, 2.0]]), ("coef", [[1.0, 2.0, "x"]]),
        ("coef", [[1.0, 2.0, float("nan")]]), ("intercept", 1.0), ("parameters", None), ("features", [{}]),
        ("classes", None), ("features", [{"name": "a", "bounds": [1]}]),
    ],
)  # fmt: skip
def test_a_file_that_is_no_model_is_refused(tmp_path, certificates, key, value):
    _, _, path = released(tmp_path, certificates, MPCGradientPerturbationClassifier, [0, 1])
    changed = json.loads(path.read_text())
    load_model(path)
    for broken in ({**changed, key: value}, {k: v for k, v in changed.items() if k != key}):
        path.write_text(json.dumps(broken))
        with pytest.raises(ValueError, match=r"is no model of `skdp party`"):
            load_model(path)
    path.write_text("{")
    with pytest.raises(ValueError, match="no model"):
        load_model(path)
