"""The estimators of nets: contract, privacy, bad input."""

import copy
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

import skdp
from skdp import BudgetAccountant, DPMLPClassifier, DPNetworkRegressor
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning, UtilityWarning
from skdp.nn import SGD, Conv2D, Dense, Flatten, Microbatch, ReLU, Sequential
from skdp.nn.checks import LEAST_CLIP
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import gradient_sum
from skdp.registry import ESTIMATORS

NETS = {name: getattr(skdp, name) for name, module in sorted(ESTIMATORS.items()) if module.startswith("skdp.nn.")}
TEXT, VOCABULARY = ({"DPLSTMClassifier"}, 1000)  # sequences of ids from 1 to 1,000, of length 5 in these tests
each = pytest.mark.parametrize("name", NETS)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="random_state is a seed")
        warnings.filterwarnings("ignore", message="delta=.* is too large for")
        warnings.simplefilter("ignore", UtilityWarning)
        yield


@pytest.fixture
def wide_terminal(monkeypatch):
    """An older tqdm cuts a bar at the width that the environment names, and the score stands last in the bar."""
    monkeypatch.setenv("COLUMNS", "250")
    monkeypatch.setenv("LINES", "50")


def data(name, n=60, d=5, n_classes=2):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    if name in TEXT:
        X = 1 + np.abs(X) * 1000 // 1 % VOCABULARY  # token ids
        return X, (X[:, 0] % n_classes).astype(int)
    if not is_classifier(NETS[name]()):
        return X, X @ np.arange(1.0, d + 1) + rng.normal(size=n)
    return X, np.argmax(X[:, :n_classes] + 0.1 * rng.normal(size=(n, n_classes)), axis=1)


def make(name, **params):
    """An estimator of few steps, with declared classes and a seed."""
    given = {"random_state": 0, "max_iter": 4}
    if is_classifier(NETS[name]()):
        given["classes"] = (0, 1)
    if name in TEXT:
        given.update(vocabulary_size=VOCABULARY, max_length=5, n_features=4, n_units=3)
    return NETS[name](**{**given, **params})


def ranged(name):
    """A public range of the columns, where they have one."""
    return {} if name in TEXT else {"input_range": (-3, 3)}


def released(model):
    return {key: value for key, value in vars(model).items() if key.endswith("_")}


# ------------------------------------------------------------------ the contract


# tests/test_contract.py has what nets share with all other estimators; its CNN takes a row as an image (1, d).


@each
def test_fitted_attributes_and_predictions(name):
    X, y = data(name, n_classes=3)
    more = {"classes": (0, 1, 2)} if is_classifier(NETS[name]()) else {}
    model = make(name, **more).fit(X, y)
    assert model.parameters_.dtype == np.float32
    assert model.parameters_.shape == (model.network_.n_parameters,)
    assert (model.n_iter_, model.n_features_in_, model.clip_norm_) == (4, 5, 0.1)
    assert not hasattr(model, "loss_curve_")  # it would be an unpaid release
    if more:
        assert model.classes_.tolist() == [0, 1, 2]
        assert model.decision_function(X).shape == (60, 3)
        assert np.allclose(model.predict_proba(X).sum(axis=1), 1.0)
        assert np.array_equal(model.predict(X), model.predict_proba(X).argmax(axis=1))
    else:
        half_width = model.target_scale_
        assert np.all(np.abs(model.predict(X) - model.target_center_) <= half_width * (1 + 1e-12))


@each
def test_float32_csr_and_memory_orders_train_the_same_net(name):
    X, y = data(name)
    X = np.where(np.abs(X) > 0.8, X, 0.0).astype(np.float32)
    model = make(name, **ranged(name)).fit(X, y)
    sparse = [] if name in TEXT else [sp.csr_matrix(X)]  # a sparse table holds counts
    for table in (X.astype(np.float64), np.asfortranarray(X), *sparse):
        again = make(name, **ranged(name)).fit(table, y)
        assert np.allclose(again.parameters_, model.parameters_, atol=1e-5)
        assert np.allclose(model.predict(table), model.predict(X), atol=1e-5)


@each
def test_one_seed_and_other_parameters_share_no_noise(name):
    X, y = data(name)
    a, b = (make(name, clip_norm=c, learning_rate=1 / c).fit(0 * X, 0 * y).parameters_ for c in (1.0, 2.0))
    assert not np.allclose(a, b, rtol=1e-3)


@each
def test_a_loaded_model_predicts_as_the_saved_one(name, tmp_path):
    X, y = data(name)
    model = make(name).fit(X, y)
    model.save(tmp_path / "net")  # NumPy adds .npz
    regression = not is_classifier(model)
    other_y = 9.0 * y + 40.0 if regression else np.array(["no", "yes"])[y]
    other = make(name, random_state=7, **({} if regression else {"classes": ("no", "yes")}))
    other.fit(X[::-1] if name in TEXT else 5.0 * X + 2.0, other_y)  # other windows, other targets
    assert not np.array_equal(other.parameters_, model.parameters_)
    for file in ("net", "net.npz"):
        again = copy.deepcopy(other).load(tmp_path / file)
        assert np.array_equal(again.predict(X), model.predict(X))
        assert again.predict(X).dtype == model.predict(X).dtype
        assert again.privacy_ == other.privacy_
        if not regression:
            assert np.array_equal(again.predict_proba(X), model.predict_proba(X))


@each
def test_a_file_of_another_model_is_refused_and_changes_nothing(name, tmp_path):
    X, y = data(name)
    model = make(name).fit(X, y)
    before = pickle.dumps(released(model))
    model.network_.save(tmp_path / "parameters.npz", model.parameters_)
    with pytest.raises(ValueError, match="parameters alone"):
        model.load(tmp_path / "parameters.npz")
    narrow = {"max_length": 4} if name in TEXT else {}
    make(name, **narrow).fit(X[:, :4], y).save(tmp_path / "narrow.npz")
    with pytest.raises(ValueError, match="shape"):
        model.load(tmp_path / "narrow.npz")
    assert pickle.dumps(released(model)) == before


@each
def test_a_fit_starts_from_a_file(name, tmp_path):
    X, y = data(name)
    model = make(name).fit(X, y)
    model.save(tmp_path / "net.npz")
    tiny = make(name, parameters_init=tmp_path / "net", learning_rate=1e-12).fit(X, y)
    assert np.allclose(tiny.parameters_, model.parameters_, atol=1e-6)
    assert any("parameters_init" in line for line in tiny.privacy_.assumptions)


def test_parameters_trained_on_another_scale_are_warned_of():
    X, y = data("DPMLPClassifier")
    start = make("DPMLPClassifier").fit(X, y).parameters_
    with pytest.warns(UtilityWarning, match="give both fits one public"):
        make("DPMLPClassifier", parameters_init=start).fit(X, y)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="parameters_init")
        make("DPMLPClassifier", parameters_init=start, input_range=(-3, 3)).fit(X, y)


def test_few_records_for_so_many_parameters_are_named():
    X, y = data("DPMLPClassifier")
    with pytest.warns(UtilityWarning, match="60 records at epsilon=1 are few for a net of 514 parameters"):
        make("DPMLPClassifier").fit(X, y)
    X, y = data("DPMLPClassifier", n=4000)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        make("DPMLPClassifier", input_range=(-3, 3)).fit(X, y)


@pytest.mark.usefixtures("wide_terminal")
def test_progress_shows_the_plan_and_public_validation(capsys):
    X, y = data("DPMLPClassifier")
    seen = []
    shown = dict(verbose=True, validation=(X, y), callback=lambda t, theta: seen.append((t, theta)))
    model = make("DPMLPClassifier", **shown).fit(X, y)
    bar = capsys.readouterr().err
    assert "epsilon of the whole plan=1" in bar
    assert "validation=" in bar
    assert [t for t, _ in seen] == [0, 1, 2, 3]
    assert np.array_equal(seen[-1][1].astype(np.float32), model.parameters_)
    plain = make("DPMLPClassifier").fit(X, y)
    assert np.array_equal(plain.parameters_, model.parameters_)


@each
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (lambda X, y: True, "validation must be None or a pair .*got bool"),
        (lambda X, y: 0.1, "validation must be None or a pair .*got float"),
        (lambda X, y: (X, y, y), "got 3 parts"),
        (lambda X, y: (X[:, :3], y), "validation does not fit: its X has 3 features.*have 5"),
        (lambda X, y: (X, y[:9]), "validation does not fit: .*samples"),
        (lambda X, y: (np.full(X.shape, np.nan), y), "validation does not fit: .*NaN"),
        (lambda X, y: (X, np.full(60, np.nan)), "validation does not fit: "),
        (lambda X, y: (X, ["other"] * 60), "validation does not fit: .*(classes|numeric)"),
    ],
)
def test_wrong_validation_is_refused_and_nothing_spent(name, wrong, message):
    X, y = data(name)
    accountant = BudgetAccountant(2.0, 1e-4)
    settings = dict(validation=wrong(X, y), accountant=accountant, random_state=None)
    if name in TEXT and "features" in message:  # a shorter sequence is padded
        make(name, **settings).fit(X, y)
        assert accountant.spent()[0] > 0
        return
    with pytest.raises((TypeError, ValueError), match=message):
        make(name, **settings).fit(X, y)
    assert accountant.spent() == (0.0, 0.0)


@pytest.mark.usefixtures("wide_terminal")
@each
def test_validation_is_an_assumption_and_needs_no_declared_classes(name, capsys):
    X, y = data(name)
    text = is_classifier(NETS[name]())
    labels = np.array(["no", "yes"])[y] if text else y
    more = {"classes": None} if text else {}
    settings = dict(validation=(X[:20], labels[:20].tolist()), verbose=True, **more)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PrivacyLeakWarning)
        model = make(name, **settings).fit(X, labels)
    assert "validation=" in capsys.readouterr().err
    assert any("validation holds public data" in line for line in model.privacy_.assumptions)
    assert not any("validation" in line for line in make(name).fit(X, y).privacy_.assumptions)


def test_the_least_clip_norm_is_that_of_the_sum():
    assert LEAST_CLIP == gradient_sum.LEAST_CLIP


def test_microbatches_of_groups_are_refused_and_nothing_spent():
    X, y = data("DPMLPClassifier")
    accountant = BudgetAccountant(2.0, 1e-4)
    settings = dict(clipping=Microbatch(), unit="group", accountant=accountant, random_state=None)
    with pytest.raises(ValueError, match=r"Microbatch\(\) needs unit='record'"):
        make("DPMLPClassifier", **settings).fit(X, y, groups=np.arange(60) // 3)
    assert accountant.spent() == (0.0, 0.0)


# ------------------------------------------------------------------ images

IMAGES = [name for name in NETS if "image_shape" in NETS[name]().get_params()]
image_nets = pytest.mark.parametrize("name", IMAGES)


@image_nets
@pytest.mark.parametrize("shape", [(4, 3), (2, 3, 2)])
def test_images_are_taken_as_they_are(name, shape):
    X, y = data(name, d=12)
    images, settings = X.reshape(60, *shape), dict(input_range=(-3, 3))
    flat = make(name, image_shape=shape, **settings).fit(X, y)
    for given in (images, images.tolist()):
        model = make(name, image_shape=shape, validation=(given, y), **settings).fit(given, y)
        assert np.array_equal(model.parameters_, flat.parameters_)
        assert np.array_equal(model.predict(given), flat.predict(X))
    model = make(name, **settings).fit(images, y)
    assert model.image_shape_ == flat.image_shape_ == (*shape, 1)[:3]
    assert model.network_ == flat.network_
    assert model.n_features_in_ == 12
    assert np.array_equal(model.predict(images), model.predict(X))
    with pytest.raises(ValueError, match=r"images of shape \(12, 1, 1\), but fit saw images of"):
        model.predict(X.reshape(60, 12, 1))


@image_nets
def test_images_that_do_not_fit_are_refused_and_nothing_spent(name):
    X, y = data(name, d=12)
    accountant = BudgetAccountant(2.0, 1e-4)
    settings = dict(accountant=accountant, random_state=None, input_range=(-3, 3))
    with pytest.raises(ValueError, match=r"images of shape \(3, 4, 1\), but image_shape=\(4, 3\)"):
        make(name, image_shape=(4, 3), **settings).fit(X.reshape(60, 3, 4), y)
    with pytest.raises(ValueError, match="has 5 numbers, but X has 12 columns, and images of 2 ch"):
        make(name, **{**settings, "input_range": ([0] * 5, [1] * 5)}).fit(X.reshape(60, 3, 2, 2), y)
    with pytest.raises(ValueError, match="validation does not fit: X holds images of shape"):
        make(name, validation=(X.reshape(60, 4, 3), y), **settings).fit(X.reshape(60, 3, 4), y)
    assert accountant.spent() == (0.0, 0.0)


@image_nets
def test_a_range_for_each_channel(name):
    X, y = data(name, d=12)
    images = X.reshape(60, 3, 2, 2)
    each_channel = make(name, input_range=([-3, -2], [3, 2])).fit(images, y)
    each_column = make(name, input_range=([-3, -2] * 6, [3, 2] * 6)).fit(images, y)
    assert np.array_equal(each_channel.inputs_.scale, np.tile([3.0, 2.0], 6))  # to [-1, 1]
    assert np.array_equal(each_channel.inputs_.center, each_column.inputs_.center)


@image_nets
def test_whole_numbers_and_channels_that_come_first_are_warned_of(name):
    X, y = data(name, d=48)
    pixels = np.clip(128 + 40 * X, 0, 255).astype(np.uint8)
    with pytest.warns(UtilityWarning, match=r"whole numbers \(uint8\).*input_range=\(0, 255\)"):
        make(name).fit(pixels.reshape(60, 8, 6), y)
    with pytest.warns(UtilityWarning, match="read as 3 x 4 pixels of 4 channels"):
        make(name).fit(X.reshape(60, 3, 4, 4), y)
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message=".*(whole numbers|pixels of)")
        make(name, input_range=(0, 255)).fit(pixels.reshape(60, 8, 6), y)
        make(name).fit(X.reshape(60, 4, 4, 3), y)


# ------------------------------------------------------------------ learning


def test_a_few_steps_learn_what_no_line_can():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 2))
    y = X[:, 0] * X[:, 1] > 0
    steps = dict(max_iter=100, batch_size=400, input_range=(-1, 1))
    assert make("DPMLPClassifier", epsilon=8.0, **steps).fit(X, y).score(X, y) > 0.8


@pytest.mark.slow
def test_defaults_learn_what_no_line_can():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, size=(4000, 2))
    model = DPMLPClassifier(epsilon=4.0, classes=(0, 1), input_range=(-1, 1), random_state=0)
    assert model.fit(X, X[:, 0] * X[:, 1] > 0).score(X, X[:, 0] * X[:, 1] > 0) > 0.85
    net = DPNetworkRegressor(epsilon=4.0, input_range=(-1, 1), y_bounds=(0, 1), random_state=0)
    assert net.fit(X, X[:, 0] ** 2).score(X, X[:, 0] ** 2) > 0.5


def test_a_regression_of_noise_predicts_about_the_mean():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(400, 5)), rng.normal(5.0, 1.0, size=400)
    model = make("DPMLPRegressor", max_iter=30).fit(X, y)
    assert model.score(X, y) > -0.2


@each
def test_epsilon_inf_runs_the_same_loop(name):
    X, y = data(name)
    model = make(name, epsilon=np.inf, **ranged(name)).fit(X, y)
    nearly = make(name, epsilon=20.0, batch_size=60, **ranged(name)).fit(X, y)
    assert model.privacy_.guarantee == "none"
    assert model.batch_size_ == nearly.batch_size_ == 60
    assert model.n_iter_ == nearly.n_iter_


# ------------------------------------------------------------------ the private fit


@pytest.mark.parametrize(
    "adjacency",
    ["zero-out", *(pytest.param(a, marks=pytest.mark.thorough) for a in ("replace-one", "add-remove"))],
)
@each
def test_report_says_clipping_and_adjacency(name, adjacency):
    X, y = data(name)
    n_public = 60 if adjacency == "add-remove" else None
    report = make(name, adjacency=adjacency, n_public=n_public, batch_size=20).fit(X, y).privacy_
    assert (report.epsilon, report.adjacency, report.guarantee) == (1.0, adjacency, "proven")
    assert report.public["clipping"] == "materialized"
    assert report.public["clip_norm"] == 0.1
    (row,) = (row for row in report.mechanisms if row["purpose"] == "steps")
    assert (row["count"], row["sampling"], row["batch_size"]) == (4, "Poisson", 20)


def test_report_says_which_layers_have_ghost_norms(monkeypatch):
    X, y = data("DPNetworkClassifier", d=16)
    asked = []

    def spy(self, *args, clipping, **more):
        asked.append(clipping)
        return honest(self, *args, clipping=clipping, **more)

    honest = PrivateRecords.gradient_sum
    monkeypatch.setattr(PrivateRecords, "gradient_sum", spy)
    net = Sequential([Conv2D(32, 1), ReLU(), Conv2D(32, 4), Flatten(), Dense(2)])
    for clipping, layers in (("auto", [2]), ("ghost", None), ("materialized", None)):
        model = make("DPNetworkClassifier", network=net, image_shape=(4, 4), clipping=clipping)
        public = model.fit(X, y).privacy_.public
        way = "ghost" if clipping == "auto" else clipping
        assert (public["clipping"], public.get("ghost_layers")) == (way, layers)
        assert asked[-4:] == [way] * 4


def test_replace_one_costs_twice_the_sensitivity():
    X, y = data("DPMLPClassifier")
    fits = [
        make("DPMLPClassifier", adjacency=a, batch_size=60, input_range=(-3, 3)).fit(X, y)
        for a in ("zero-out", "replace-one")
    ]
    rows = [next(r for r in m.privacy_.mechanisms if r["purpose"] == "steps") for m in fits]
    assert np.isclose(rows[1]["sensitivity"], 2 * rows[0]["sensitivity"], rtol=1e-3)
    assert np.isclose(rows[1]["noise_std"], 2 * rows[0]["noise_std"], rtol=1e-3)


def test_all_ways_to_clip_take_the_same_steps_without_noise():
    X, y = data("DPCNNClassifier", d=16)
    settings = dict(epsilon=np.inf, image_shape=(4, 4), batch_size=60, max_iter=3, learning_rate=0.5)
    found = {
        way: make("DPCNNClassifier", clipping=way, **settings).fit(X, y).parameters_
        for way in ("auto", "materialized", "ghost", "one-by-one")
    }
    for way in ("ghost", "one-by-one", "auto"):
        assert np.allclose(found[way], found["materialized"], atol=1e-5), way
    several = make("DPCNNClassifier", clipping=Microbatch(size=1), **settings).fit(X, y)
    assert np.allclose(several.parameters_, found["materialized"], atol=1e-5)
    report = make("DPCNNClassifier", clipping=Microbatch(), **{**settings, "epsilon": 1.0}).fit(X, y).privacy_
    assert report.public["sensitivity"] == "2 clip_norm"


@pytest.mark.parametrize("adjacency", ["zero-out", "replace-one"])
def test_microbatches_report_the_sensitivity_of_the_ledger(adjacency):
    X, y = data("DPMLPClassifier")
    settings = dict(clipping=Microbatch(), adjacency=adjacency, input_range=(-3, 3), batch_size=60)
    model = make("DPMLPClassifier", **settings).fit(X, y)
    (row,) = model.privacy_.mechanisms
    moves = float(model.privacy_.public["sensitivity"].split()[0])
    # The mean is over as many microbatches as a batch of the expected size has.
    n_microbatches = model.batch_size_ / model.clipping.size
    assert np.isclose(row["sensitivity"] * n_microbatches, moves * model.clip_norm_, rtol=1e-3)


def test_groups_are_the_unit_and_long_ones_are_thinned():
    X, y = data("DPMLPClassifier", n=200)
    groups = np.minimum(np.arange(200) // 5, 19)  # the last has 105 rows
    model = make("DPMLPClassifier", unit="group").fit(X, y, groups=groups)
    assert (model.privacy_.unit, model.privacy_.public["n_groups"]) == ("group", 20)
    renamed = make("DPMLPClassifier", unit="group").fit(X, y, groups=[f"p{g:03d}" for g in groups])
    assert np.array_equal(renamed.parameters_, model.parameters_)
    few = make("DPMLPClassifier", unit="group", max_rows_per_group=3).fit(X, y, groups=groups)
    assert few.privacy_.public["max_rows_per_group"] == 3
    assert not np.array_equal(few.parameters_, model.parameters_)
    with pytest.raises(ValueError, match="max_rows_per_group needs unit='group'"):
        make("DPMLPClassifier", max_rows_per_group=3).fit(X, y)


def test_an_accountant_pays_and_refuses():
    X, y = data("DPMLPClassifier")
    accountant = BudgetAccountant(2.0, 1e-4)
    model = make("DPMLPClassifier", accountant=accountant, random_state=None, batch_size=20)
    model.fit(X, y)
    assert accountant.spent() == (1.0, 1e-5)
    with pytest.raises(PrivacyBudgetExceeded):
        clone(model).set_params(epsilon=1.5).fit(X, y)
    with pytest.raises(ValueError, match="adjacency"):  # one ledger holds one adjacency
        clone(model).set_params(epsilon=0.5, adjacency="replace-one").fit(X, y)


@pytest.mark.parametrize(
    ("name", "params", "message"),
    [
        ("DPCNNClassifier", {"image_shape": (2, 2)}, r"image_shape=\(2, 2\) has 4 pixels, but X has 5"),
        ("DPCNNClassifier", {"image_shape": (0, 5)}, "image_shape must be None"),
        ("DPCNNClassifier", {"architecture": "resnet"}, "architecture must be one of"),
        (
            "DPCNNClassifier",
            {"architecture": "cnn5"},
            r"made for images of shape \(32, 32, 3\).*'auto'.*layer 0, .*does not fit",
        ),
        (
            "DPNetworkClassifier",
            {"network": Sequential([Conv2D(2, 3), Flatten(), Dense(2)])},
            "layer 0, .*If a row of X holds an image, give image_shape=",
        ),
        ("DPNetworkClassifier", {"network": Sequential([Dense(3)])}, r"end the net with Dense\(2\)"),
        ("DPNetworkClassifier", {"network": Sequential([Dense(2)], frozen=[0])}, "not frozen"),
        ("DPMLPClassifier", {"hidden_layer_sizes": (0,)}, "hidden_layer_sizes must be >= 1"),
        ("DPMLPClassifier", {"max_iter": 3, "n_epochs": 2}, "max_iter .* or n_epochs, not both"),
        ("DPMLPClassifier", {"clipping": "flat"}, "clipping must be one of"),
        ("DPMLPClassifier", {"optimizer": SGD(momentum=1.0)}, r"momentum must be in \[0, 1\)"),
        ("DPMLPClassifier", {"parameters_init": np.zeros(3)}, "parameters_init must be 514 finite"),
        ("DPMLPClassifier", {"clip_norm": 1e-12}, r"clip_norm must be at least 2\*\*-29"),
        (
            "DPMLPClassifier",
            {"clipping": Microbatch(), "adjacency": "add-remove", "n_public": 60},
            r"Microbatch\(\) needs unit='record'",
        ),
        ("DPMLPClassifier", {"input_range": (1, 0)}, r"input_range must be .*\[low, \.\.\.\].*low < high"),
        ("DPMLPClassifier", {"input_range": (0, 1, 2)}, "input_range must be"),
        ("DPMLPClassifier", {"input_range": ([0, 0], [1, 1])}, "has 2 numbers, but X has 5 columns"),
        ("DPMLPClassifier", {"classes": (0, 7)}, "labels that are not in classes"),
        ("DPMLPRegressor", {"y_bounds": (1, 0)}, "y_bounds must be .* low < high"),
        ("DPMLPRegressor", {"y_bounds": ()}, "y_bounds must be .* two finite numbers"),
        ("DPMLPRegressor", {"y_bounds": "adaptive"}, "y_bounds must be 'auto'"),
    ],
)
def test_bad_input_is_refused_and_nothing_spent(name, params, message):
    X, y = data(name)
    accountant = BudgetAccountant(2.0, 1e-4)
    model = make(name, **{**params, "accountant": accountant, "random_state": None})
    with pytest.raises(ValueError, match=message):
        model.fit(X, y)
    assert accountant.spent() == (0.0, 0.0)
    assert not released(model)


def test_a_wrong_layer_is_named_by_position():
    X, y = data("DPNetworkClassifier", d=16)
    net = Sequential([Conv2D(2, 3), ReLU(), Conv2D(2, 9), Flatten(), Dense(2)])
    with pytest.raises(ValueError, match=r"layer 2, .*records of shape \(2, 2, 2\)"):
        make("DPNetworkClassifier", network=net, image_shape=(4, 4)).fit(X, y)


@pytest.mark.parametrize(
    ("network", "hint"),
    [
        ([Dense(2)], r"Sequential\(\[\.\.\.\]\)"),
        (Sequential([Dense(2)]).build((5,)), r"its \.sequential"),
        (Dense(2), "got Dense"),
    ],
)
def test_what_is_no_net_is_told_how_to_be_one(network, hint):
    X, y = data("DPNetworkClassifier")
    with pytest.raises(TypeError, match=f"network must be None or .*{hint}"):
        make("DPNetworkClassifier", network=network).fit(X, y)


@pytest.mark.parametrize("layers", [(Dense(3), Dense(4)), (Dense(3),)])
def test_layers_that_are_no_list_are_told_so(layers):
    with pytest.raises(TypeError, match="give the layers as one list"):
        Sequential(*layers)


def test_padding_of_other_libraries_is_told_its_number():
    with pytest.raises(ValueError, match="use padding=0"):
        Conv2D(2, 3, padding="valid")


def test_a_net_that_ends_with_an_activation_is_warned_of():
    X, y = data("DPNetworkClassifier")
    with pytest.warns(UtilityWarning, match=r"the net ends with ReLU\(\)"):
        make("DPNetworkClassifier", network=Sequential([Dense(2), ReLU()])).fit(X, y)


@each
def test_steps_that_are_too_long_are_one_error_without_warnings(name):
    X, y = data(name)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        model = make(name, learning_rate=1e30, **ranged(name)).fit(X, y)
        assert np.isfinite(model.parameters_).all()
        with pytest.raises(FloatingPointError, match="use a smaller learning_rate"):
            make(name, learning_rate=1e100, **ranged(name)).fit(X, y)


def test_a_named_net_knows_its_features():
    X, y = np.random.default_rng(0).random((30, 7 * 7 * 81)), np.arange(30) % 2
    model = make("DPCNNClassifier", architecture="h-cnn-s", max_iter=1, batch_size=30).fit(X, y)
    assert model.image_shape_ == (7, 7, 81)


def test_what_may_be_an_image_is_told():
    X, y = data("DPCNNClassifier", d=64)
    with pytest.warns(UtilityWarning, match=r"one row of pixels; .* give image_shape=\(8, 8\)"):
        make("DPCNNClassifier").fit(X, y)
    pixels = (255 * np.abs(X)).astype(np.uint8)
    with pytest.warns(UtilityWarning, match=r"input_range ends at 1, .* is \(0, 255\)"):
        make("DPCNNClassifier", image_shape=(8, 8), input_range=(0, 1)).fit(pixels, y)


def test_pairs_of_ends_are_refused():
    X, y = data("DPMLPClassifier", d=2)
    with pytest.raises(ValueError, match=r"give \[\(0, 5\), \(1, 6\)\]"):
        make("DPMLPClassifier", input_range=[(0, 1), (5, 6)]).fit(X, y)


def test_what_a_start_can_be_is_told():
    X, y = data("DPMLPClassifier")
    model = make("DPMLPClassifier").fit(X, y)
    with pytest.raises(TypeError, match="such as parameters_ of a fitted model"):
        make("DPMLPClassifier", parameters_init=model).fit(X, y)
    with pytest.raises(ValueError, match="not all are finite"):
        make("DPMLPClassifier", parameters_init=np.nan * model.parameters_).fit(X, y)
    with pytest.raises(NotFittedError, match="Keep whole models with pickle"):
        make("DPMLPClassifier").load("anything.npz")


def test_positions_are_looked_at_one_by_one_where_the_number_of_records_is_private(monkeypatch):
    """There a missing group moves the rows after it, also in the scores for the recalibration."""
    looked = []
    monkeypatch.setattr("skdp.nn.decision.require_batch_independence", lambda *args: looked.append(args))
    X, y = data("DPMLPClassifier")
    make("DPMLPClassifier", clipping="one-by-one").fit(X, y)
    assert not looked
    groups = np.arange(60) // 2
    make("DPMLPClassifier", clipping="one-by-one", unit="group").fit(X, y, groups=groups)
    assert len(looked) == 1
