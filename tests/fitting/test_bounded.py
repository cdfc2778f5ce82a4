"""Predictions of regressors are cut to bounds that follow from released and given numbers only."""

import inspect
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_regressor
from sklearn.compose import TransformedTargetRegressor
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

import skdp
from skdp.base import Solution
from skdp.fitting.linear import MARGIN, prediction_bounds
from skdp.linear_model.auto.fit import AutoFit
from skdp.multiparty.multiparty_fit import MultipartyRegressor
from skdp.nn.net_fit import NetFit
from tests.kinds import quick_alone

ALL = dict(skdp.all_estimators())
# Automatic estimators also cut their columns: tests/linear_model/auto/test_harm.py has `DPLinearRegression`, and
# tests/linear_model/additive/test_estimators.py the additive one.
BOUNDED = [
    name
    for name, cls in ALL.items()
    if "bounded" in inspect.signature(cls).parameters and not issubclass(cls, AutoFit)
]
OF_OWNERS = [name for name in BOUNDED if issubclass(ALL[name], MultipartyRegressor)]
# Those that are given a range, and release one where it is not given.
OF_RANGES = [
    name
    for name in BOUNDED
    if inspect.signature(ALL[name]).parameters.get("y_bounds", None) and ALL[name]().y_bounds == "auto"
]
FREE = (-np.inf, np.inf)
FAR = 1e6
QUICK = ["DPFrankWolfeRegressor", "DPMLPRegressor", "DPSGDRegressor", "MPCGradientPerturbationRegressor"]
each = pytest.mark.parametrize("name", quick_alone(QUICK, BOUNDED, pytest.mark.thorough))

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 3))
Y = X @ [1.0, -1.0, 0.5] + 0.3 * RNG.normal(size=400) + 2.0


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # few records, long rows
        yield


def fitted(name, y=Y, X=X, **params):
    known = inspect.signature(ALL[name]).parameters
    usual = {"epsilon": 4.0, "random_state": 0, "max_iter": 20}
    settings = {key: value for key, value in usual.items() if key in known}
    return ALL[name](**{**settings, **params}).fit(X, y)


def test_every_private_regressor_has_bounds():
    """All but the exact ones; of automatic estimators other files say what their bounds are."""
    models = {name for name, cls in ALL.items() if is_regressor(cls())}
    models -= {name for name in models if issubclass(ALL[name], NetFit)}
    exact = {name for name in models if "epsilon" not in inspect.signature(ALL[name]).parameters}
    front = {name for name in models if issubclass(ALL[name], AutoFit)}
    assert front == {"DPAdditiveRegressor", "DPLinearRegression"}
    assert all("bounded" in inspect.signature(ALL[name]).parameters for name in front)
    assert models - exact - front <= set(BOUNDED)
    assert not exact & set(BOUNDED)
    assert len(OF_OWNERS) >= 7
    assert len(OF_RANGES) >= 2


@each
def test_a_row_far_outside_is_predicted_within_the_bounds(name):
    model = fitted(name)
    low, high = model.prediction_bounds_
    assert -np.inf < low < high < np.inf
    assert model.coef_.any()
    far = FAR * np.vstack([np.sign(model.coef_), -np.sign(model.coef_)])
    assert model.predict(far).tolist() == [high, low]
    assert model.predict(sp.csr_matrix(far)).tolist() == [high, low]
    assert np.abs(far @ model.coef_ + model.intercept_).min() > 100 * max(abs(low), abs(high))
    # score follows predict
    assert model.score(far, [high, low]) == 1.0


@each
def test_without_bounds_predictions_are_linear(name):
    model = fitted(name, bounded=False)
    assert model.prediction_bounds_ == FREE
    assert np.array_equal(model.predict(FAR * X), FAR * X @ model.coef_ + model.intercept_)
    assert model.privacy_.post_processing == []


@each
def test_the_cut_changes_no_release(name):
    """The same seed gives the same releases and coefficients: the parameter has no part in the key."""
    cut, free = fitted(name), fitted(name, bounded=False)
    assert np.array_equal(cut.coef_, free.coef_)
    assert cut.intercept_ == free.intercept_
    with_cut, without = (model.privacy_.to_dict() for model in (cut, free))
    line = "predictions are cut to [{:.6g}, {:.6g}]".format(*cut.prediction_bounds_)
    assert with_cut.pop("post_processing") == [line]
    assert without.pop("post_processing") == []
    assert with_cut == without
    assert f"  afterwards  {line}" in str(cut.privacy_)


@each
def test_the_bounds_are_those_of_the_fit(name):
    """`set_params` acts in the next fit, as for every other parameter."""
    model = fitted(name)
    before = model.predict(FAR * X)
    assert np.array_equal(model.set_params(bounded=False).predict(FAR * X), before)
    assert np.abs(model.fit(X, Y).predict(FAR * X)).max() > np.abs(before).max()
    assert clone(model).bounded is False


@each
@pytest.mark.parametrize("value", [1, "yes", None])
def test_bounded_is_true_or_false(name, value):
    with pytest.raises(TypeError, match="bounded must be True or False"):
        fitted(name, bounded=value)


@pytest.mark.parametrize("name", [*OF_OWNERS, *OF_RANGES])
@pytest.mark.parametrize("bounds", [(-0.7, 4.9), (-1, 5)])
def test_given_bounds_are_taken_exactly(name, bounds):
    """Also where the middle and the half width do not add up to them in floating point, as those of (-.7, 4.9)."""
    for fit_intercept in (True, False):
        model = fitted(name, y_bounds=bounds, fit_intercept=fit_intercept)
        assert model.prediction_bounds_ == bounds
        assert all(type(end) is float for end in model.prediction_bounds_)
        found = model.predict(FAR * X)
        assert (found.min(), found.max()) == bounds


@pytest.mark.parametrize("name", OF_OWNERS)
def test_without_a_range_of_several_owners_targets_are_those_of_their_contract(name):
    assert fitted(name).prediction_bounds_ == (-1.0, 1.0)


RELEASED = [name for name in BOUNDED if name not in OF_OWNERS]


@pytest.mark.parametrize("name", RELEASED)
def test_released_bounds_lie_a_margin_of_reaches_about_the_centre(name):
    model = fitted(name)
    center, half_width = model.target_center_, model.target_scale_
    assert model.prediction_bounds_ == (center - MARGIN * half_width, center + MARGIN * half_width)


def beyond():
    """Targets of which the same three lie far beyond the range, here and there."""
    for ends in ([1e9, 1e10, 2e9], [1e12, 3e13, 1e11]):
        y = Y.copy()
        y[:3] = ends
        yield y


@pytest.mark.parametrize("name", RELEASED)
def test_bounds_follow_from_released_numbers_only(name):
    """Without noise the searches count what their points hold: three records are beyond these either way."""
    model, other = (fitted(name, y, epsilon=np.inf) for y in beyond())
    assert other.target_scale_ == model.target_scale_ < 100
    assert other.prediction_bounds_ == model.prediction_bounds_


class LargestTarget(skdp.DPIGHTRegressor):
    """A mutant, whose bounds reach to the largest target."""

    def read(self, X, y=None, groups=None, **more):
        self._largest = float(np.abs(y).max())
        return super().read(X, y, groups, **more)

    def _given_bounds(self):
        return -self._largest, self._largest


def test_records_beyond_the_range_catch_bounds_that_are_the_data_s():
    first, second = (LargestTarget(epsilon=np.inf, max_iter=5).fit(X, y) for y in beyond())
    assert first.target_scale_ == second.target_scale_
    assert first.prediction_bounds_ != second.prediction_bounds_


@pytest.mark.parametrize(
    ("name", "params"),
    [
        ("DPIGHTRegressor", {"clip_norm": 1.0, "learning_rate": 0.1}),
        ("DPSGDRegressor", {"clip_norm": 1.0, "learning_rate": 0.1}),
        ("DPAMPRegressor", {"huber_threshold": 1.0}),
        ("DPSparseERM", {"loss": "logistic"}),
        ("DPSparseERM", {"loss": skdp.losses.MultinomialLoss(2)}),
    ],
)
def test_where_nothing_is_released_of_the_targets_nothing_is_cut(name, params):
    model = fitted(name, (Y > 2) * 1.0, **params)
    assert model.prediction_bounds_ == FREE
    assert model.privacy_.post_processing == []
    assert model.predict(X).shape in ((400,), (400, 2))


def test_a_solution_may_hold_the_bounds():
    """As that of an automatic estimator does, whose targets have a range of its own."""
    model = skdp.DPAdaSSPRegressor(y_bounds=(0, 5))
    attributes = {"prediction_bounds_": (np.float64(-3), 7), "target_scale_": 1.0}
    solution = Solution(np.zeros(2), attributes=attributes)
    assert prediction_bounds(model, attributes) == (-3.0, 7.0)
    assert model._post_processing(solution) == ("predictions are cut to [-3, 7]",)
    assert prediction_bounds(model.set_params(bounded=False), attributes) == FREE


# ------------------------------------------------------------------ exports


@each
def test_an_export_cuts_alike_bit_by_bit(name):
    pd = pytest.importorskip("pandas")
    model = fitted(name, X=pd.DataFrame(X, columns=list("abc")))
    made = pickle.loads(pickle.dumps(model.to_sklearn()))
    assert type(made) is TransformedTargetRegressor
    assert type(made.regressor_) is LinearRegression
    assert made.feature_names_in_.tolist() == list("abc")
    assert made.n_features_in_ == 3
    for table in (X, FAR * X, X[:1], FAR * X[:1], X.astype(np.float32), sp.csr_matrix(FAR * X)):
        ours = model.predict(table)
        theirs = made.predict(table)
        assert np.array_equal(ours, theirs)
        assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    frame = pd.DataFrame(FAR * X, columns=list("abc"))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "X ")
        assert np.array_equal(made.predict(frame), model.predict(frame))
    # Public rows may fit it anew: it is scikit-learn's own, and still cuts.
    low, high = model.prediction_bounds_
    again = clone(made).fit(X, 1e3 * Y).predict(X)
    assert low <= again.min() <= again.max() <= high


@each
def test_without_a_cut_an_export_is_the_linear_model(name):
    model = fitted(name, bounded=False)
    assert type(model.to_sklearn()) is LinearRegression
    assert np.array_equal(model.to_sklearn().predict(FAR * X), model.predict(FAR * X))


def test_a_pipeline_is_exported_with_the_cut():
    model = make_pipeline(skdp.PublicScaler(scale=2.0), skdp.DPIGHTRegressor(epsilon=4.0))
    made = skdp.to_sklearn(model.fit(X, Y))
    assert type(made[-1]) is TransformedTargetRegressor
    assert np.array_equal(made.predict(FAR * X), model.predict(FAR * X))


# ------------------------------------------------------------------ nets


@pytest.mark.parametrize("bounds", ["auto", (-1, 6)])
def test_all_predictions_of_a_net_lie_between_its_bounds(bounds):
    net = skdp.DPMLPRegressor(
        hidden_layer_sizes=(4,),
        epsilon=40.0,
        y_bounds=bounds,
        input_range=(-1e7, 1e7),
        max_iter=30,
        random_state=0,
    )
    assert not hasattr(net, "prediction_bounds_")
    with pytest.raises(AttributeError):
        net.prediction_bounds_ = (0, 1)
    net.fit(X, Y)
    for line in (net.line_, (3.0, 0.5), (-2.0, 0.1), (0.0, -0.2), (0.7, 1.2)):
        net.line_ = line  # what a fit may release
        low, high = net.prediction_bounds_
        ends = net._predicted(np.array([[-9.0], [9.0], [0.3]]), _targets(net), line)
        assert low == min(ends)
        assert high == max(ends)
        found = net.predict(FAR * X)
        assert low <= found.min() <= found.max() <= high
    net.fit(X, Y)
    assert net.privacy_.post_processing == [
        "predictions are cut to [{:.6g}, {:.6g}]".format(*net.prediction_bounds_)
    ]


def _targets(net):
    from skdp.nn.task import Targets

    return Targets(net.target_center_, net.target_scale_)
