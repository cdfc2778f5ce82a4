"""Every release of a whole fit, replayed on a neighbouring data set.

A fit on D is recorded; then the fit on a neighbour D' is given the outputs of D, release by release, so that it
takes the same path. Everything that is not data must then be the same on both: which releases there are, in which
order, on which grid, with how much noise. And every statistic may differ by no more than the sensitivity that its
noise was made for. This checks sensitivities where they count, along the paths that the algorithms take, and shows
plans that depend on the data. The mutants are the shipped code with one thing replaced.
"""

import copy
import inspect
import itertools
import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import is_classifier

import skdp
from skdp.exceptions import PrivacyAccountingError, PrivacyLeakWarning
from skdp.fitting import closing
from skdp.fitting.closing import MIN_EFFECTIVE_N
from skdp.linear_model.additive.additive_fit import AdditiveFit
from skdp.linear_model.amp import PerturbedFit
from skdp.linear_model.auto.fit import AutoFit
from skdp.linear_model.ight.estimators import ThresholdingFit
from skdp.linear_model.slkt.estimators import PrivateTransferFit
from skdp.multiparty.multiparty_fit import MultipartyFit
from skdp.nn import (
    SGD,
    AdaFEST,
    Conv2D,
    Dense,
    Flatten,
    GroupNorm,
    Microbatch,
    RandomSparsification,
    RecursiveMomentum,
    Sequential,
    SparseSelection,
    Tanh,
)
from skdp.nn.inputs import Inputs
from skdp.nn.net_fit import NetFit
from skdp.privacy import PrivacySession, accounting
from skdp.privacy.mechanisms import grid
from skdp.privacy.session import claim
from skdp.privacy.session.base import MinibatchSampler
from skdp.privacy.session.ledger import Ledger
from skdp.privacy.statistics import minimizer as _minimizer
from tests import texts
from tests.kinds import of_each_kind
from tests.privacy.releases import wrap_release
from tools.defaults.override import set_defaults

N, D = 60, 40
RELEASES = ("gaussian", "gaussian_above", "laplace", "gumbel_top_k", "numeric_sparse", "selected_gaussian")
NORMS = {
    "gaussian": lambda change: np.linalg.norm(change.ravel()),
    "gaussian_above": lambda change: np.linalg.norm(change.ravel()),
    "laplace": lambda change: np.abs(change).sum(),
    "gumbel_top_k": lambda change: np.abs(change).max(),
    "numeric_sparse": lambda change: np.abs(change).max(),
    "selected_gaussian": lambda change: np.linalg.norm(change.ravel()),
}
# Objective perturbation is one release inside a solver: tests/privacy/exact/test_objective_perturbation.py.
NAMES = sorted(
    name
    for name, cls in skdp.all_estimators()
    if "epsilon" in inspect.signature(cls).parameters
    and not issubclass(cls, PerturbedFit)
    and not name.startswith("DPLocalObjective")
)
# Near 0 the gradients of a logistic record and of its opposite are half as far apart as gradients can be, and its
# minimiser is near 0. tests/multiparty/test_output.py has the worst pair of such releases, and their mutants.
MILD = {
    "DPLocalOutputPerturbationClassifier",
    "MPCOutputPerturbationClassifier",
    "MPCPathakClassifier",
    "MPCPathakRegressor",
}


def known_to(name):
    """Parameters of an estimator."""
    return inspect.signature(dict(skdp.all_estimators())[name]).parameters


def cost_of(name, moved, rows, k):
    """The mu^2 that a release really spent on this pair, its statistic having moved by ``moved`` sensitivities."""
    if name in ("gaussian", "gaussian_above"):
        return (moved * rows[0]["sensitivity"] / rows[0]["noise_std"]) ** 2
    if name == "gumbel_top_k":
        return k * accounting.bounded_range_mu(moved * rows[0]["epsilon"]) ** 2
    return 0.0


class Tape:
    """Records the releases of one fit and plays them back to another."""

    def __init__(self, monkeypatch):
        self.events, self.position, self.playing = [], 0, False
        self.largest, self.of_vectors, self.cost = 0.0, 0.0, 0.0
        for name in RELEASES:
            wrap_release(monkeypatch, name, self.wrapped)
        secret = ("units", MinibatchSampler), ("blocks", MinibatchSampler)
        for name, owner in (("permutation", PrivacySession), ("integers", PrivacySession), *secret):
            monkeypatch.setattr(owner, name, self.chance(name, getattr(owner, name)))

    def wrapped(self, name, honest):
        def release(bounded, *rest):
            if not self.playing:
                out, *rows = honest(bounded, *rest)
                unit = rows[0]["grid"]
                self.events.append((name, bounded._value.on_grid(unit), *copy.deepcopy((out, rows))))
                return (out, *rows)
            kind, integers, out, rows = self.next(name)
            assert kind == name
            chosen = rest[0].k if name == "gumbel_top_k" else 1
            unit = rows[0]["grid"]
            change = (bounded._value.on_grid(unit) - integers).astype(np.float64) * unit
            allowed = max(row["sensitivity"] for row in rows)
            self.largest = max(self.largest, NORMS[name](change) / allowed)
            self.cost += cost_of(name, NORMS[name](change) / allowed, rows, chosen)
            if change.size > 1:
                self.of_vectors = max(self.of_vectors, NORMS[name](change) / allowed)
            # What the neighbour would have drawn with: the same noise on the same grid.
            assert [*honest(bounded, *rest)[1:]] == rows
            return (out, *copy.deepcopy(rows))  # the session takes its rows apart

        return release

    def chance(self, name, honest):
        def draw(session, *rest, **options):
            if not self.playing:
                found = honest(session, *rest, **options)
                self.events.append((name, None, (found,), None))
                return found
            kind, _, (found,), _ = self.next(name)
            assert kind == name
            return self.for_fewer(name, found, rest)

        return draw

    @staticmethod
    def for_fewer(name, found, rest):
        """Random choices about every unit, where the neighbour has one unit less: the last one."""
        if name == "units" and found is not None:
            return found[found < rest[1]]
        if name in ("integers", "blocks") and len(found) > rest[1]:
            return found[: rest[1]]
        return found

    def next(self, name):
        assert self.position < len(self.events), f"the neighbour asks for one more {name}"
        self.position += 1
        return self.events[self.position - 1]

    def compare(self, fit, one, other):
        """Return the largest change over its sensitivity, of all releases."""
        self.events, self.largest, self.cost = [], 0.0, 0.0
        self.playing = False
        first = fit(*one)
        self.playing, self.position = True, 0
        second = fit(*other)
        assert self.position == len(self.events), "the neighbour made fewer releases"
        public = [
            {k: v for k, v in vars(model).items() if k.endswith("_") and k != "privacy_"}
            for model in (first, second)
        ]
        for key, value in public[0].items():  # one path, so one model: nothing else was looked at
            assert same(value, public[1][key]), key
        return self.largest


def same(one, other):
    """Whether two released values are equal, to the last bit."""
    if isinstance(one, Inputs):  # of a net: a class without a comparison
        one, other = vars(one), vars(other)
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    return np.array_equal(one, other)


@pytest.fixture(autouse=True)
def fits_take_every_step(monkeypatch):
    """Automatic estimators release a constant for so few records; here they release all they can."""
    set_defaults(
        monkeypatch,
        choice__max_class_noise=math.inf,
        choice__min_effective_n=0.0,
        choice__min_effective_n_per_feature=0.0,
        slopes__min_effective_n=0.0,
    )
    monkeypatch.setattr(closing, "MIN_EFFECTIVE_N", -math.inf)


def make(name, epsilon=4.0, **params):
    cls = texts.as_classifier(dict(skdp.all_estimators())[name])
    known = inspect.signature(cls).parameters
    settings = {"classes": (0, 1), "n_nonzero_coefs": 3, "random_state": 0, "max_iter": 12}
    settings.update(texts.required(cls))
    if issubclass(cls, NetFit):  # the default is zero-out; groups go through a net row by row
        settings.update(adjacency="replace-one", max_iter=2 if "CNN" in name else 4)
    if issubclass(cls, (ThresholdingFit, PrivateTransferFit)):
        del settings["max_iter"]  # its "auto" takes rounds
    if issubclass(cls, MultipartyFit):  # numbers with which the pairs come near to the worst ones
        settings.update(alpha=1.0, loss="huber", huber_threshold=0.1, clip_norm=0.1)
    if issubclass(cls, AutoFit):  # "auto" takes another method for so few records
        settings.update(solver="moments", n_nonzero_coefs=None)
    settings = {k: v for k, v in {**settings, **params}.items() if k in known}
    return cls(epsilon=epsilon, delta=1e-3, **settings)


def pairs(name, seed):
    """Neighbours: a record replaced by an ordinary one, an enormous one, an empty one, a mislabelled one."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.5)
    score = X[:, :3].sum(axis=1)
    y = (
        (score > 0).astype(float)
        if is_classifier(dict(skdp.all_estimators())[name]())
        else score + rng.normal(size=N)
    )
    regression = not is_classifier(dict(skdp.all_estimators())[name]())
    for row, label in (
        *([(-1e3 * X[0], -1e3 * y[0])] if regression else []),
        (rng.normal(size=D), 1 - y[0]),
        (1e200 * rng.normal(size=D), 1.0),
        (np.zeros(D), 0.0),
        (-X[0], 1 - y[0]),
        (np.where(np.arange(D) == 1, 1e3, 0.0), 1.0),
    ):
        X2, y2 = X.copy(), y.copy()
        X2[0], y2[0] = row, label
        yield (X, y), (X2, y2)


@pytest.fixture(autouse=True)
def _quiet():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", PrivacyLeakWarning)
        warnings.filterwarnings("ignore", "random_state is a seed")
        yield


def takes_sparse(name):
    """Additive models refuse CSR matrices; every other estimator takes them."""
    return not issubclass(dict(skdp.all_estimators())[name], AdditiveFit)


@pytest.mark.parametrize("sparse", [False, pytest.param(True, marks=pytest.mark.slow)], ids=["dense", "csr"])
@pytest.mark.parametrize("name", NAMES)
def test_a_neighbour_takes_the_same_path_within_the_sensitivities(name, sparse, monkeypatch):
    if sparse and not takes_sparse(name):
        X, y = next(pairs(name, seed=1))[0]
        with pytest.raises(TypeError, match="takes no sparse matrix"):
            make(name).fit(sp.csr_matrix(X), y)
        return
    tape, largest = Tape(monkeypatch), 0.0
    for one, other in pairs(name, seed=1):
        if sparse:
            one, other = ((sp.csr_matrix(X), y) for X, y in (one, other))
        largest = max(largest, tape.compare(lambda X, y: make(name).fit(X, y), one, other))
    assert largest <= 1 + 1e-9
    assert tape.of_vectors >= (0.2 if name in MILD else 0.5)  # counts apart, the pairs hurt


LAYERS = [Conv2D(4, 3, stride=2, padding=1), GroupNorm(2), Tanh(), Flatten()]
OWN_NET, OWN_NET_OF_TWO = (Sequential([*LAYERS, Dense(k)]) for k in (1, 2))
RECURSIVE = RecursiveMomentum(momentum=0.5, clip_diff_norm=0.05, initial_batch_size=30)
VARIANTS = [
    ("DPIGHTClassifier", {"n_nonzero_coefs": None, "max_iter": 8}, {}),
    ("DPIGHTRegressor", {"selection": "peeling", "max_iter": 8, "loss": "huber"}, {}),
    ("DPIGHTClassifier", {"classes": (0, 1, 2)}, {}),
    ("DPSLKTClassifier", {"teacher": "ridge", "classes": (0, 1, 2)}, {}),
    ("DPSLKTRegressor", {"transfer_distribution": "gaussian", "n_transfer": 80}, {}),
    ("DPTwoStageClassifier", {"selection": "votes", "classes": (0, 1, 2)}, {}),
    ("DPTwoStageRegressor", {"selection": "votes"}, {}),
    ("DPTwoStageRegressor", {"loss": "huber"}, {}),
    ("DPFrankWolfeClassifier", {"classes": (0, 1, 2), "max_iter": 30}, {}),
    ("DPSparseERMClassifier", {"batch_size": 20, "classes": (0, 1, 2)}, {}),
    ("DPSparseERMRegressor", {}, {"batch_groups": np.arange(N) % 4}),
    ("DPAdaSSPRegressor", {"n_rounds": 1}, {}),
    ("DPSRMClassifier", {"classes": (0, 1, 2), "momentum": 0.3, "clip_diff_norm": 0.2}, {}),
    ("DPSRMClassifier", {"sampling": "without_replacement", "batch_size": 20}, {}),
    ("DPAGDClassifier", {"classes": (0, 1, 2), "penalty": "l2"}, {}),
    ("DPGDClassifier", {"classes": (0, 1, 2)}, {}),
    ("DPRRPSGDClassifier", {"batch_size": 20, "random_state": 4}, {}),
    ("DPRRPSGDClassifier", {"batch_size": 20, "sampling": "without_replacement"}, {}),
    ("DPLinearRegression", {"solver": "auto"}, {}),
    ("DPLinearRegression", {"fit_intercept": False, "n_nonzero_coefs": 3}, {}),
    ("DPLogisticRegression", {"solver": "auto"}, {}),
    ("DPLogisticRegression", {"fit_intercept": False, "n_nonzero_coefs": 3}, {}),
    ("DPLogisticRegression", {"classes": (0, 1, 2), "class_weight": {1: 5.0}, "C": 1.0}, {}),
    ("DPMLPClassifier", {"batch_size": 20, "classes": (0, 1, 2), "optimizer": "adam"}, {}),
    ("DPMLPRegressor", {"batch_size": 20, "y_bounds": (-2, 2), "optimizer": SGD(average=2.0)}, {}),
    ("DPMLPClassifier", {"clipping": Microbatch(size=4), "input_range": (-2, 2)}, {}),
    ("DPMLPRegressor", {"clipping": Microbatch(), "batch_size": 20, "y_bounds": (-2, 2)}, {}),
    (
        "DPMLPClassifier",
        {"batch_size": 20, "gradient_estimator": RandomSparsification(0.5), "input_range": (-2, 2)},
        {},
    ),
    ("DPMLPRegressor", {"batch_size": 20, "y_bounds": (-2, 2), "sampling": "partition"}, {}),
    (
        "DPCNNClassifier",
        {"batch_size": 20, "gradient_estimator": RandomSparsification(0.8, ranked=True), "image_shape": (5, 8)},
        {},
    ),
    ("DPCNNClassifier", {"clipping": "ghost", "image_shape": (5, 8), "batch_size": 20}, {}),
    ("DPCNNClassifier", {"clipping": "one-by-one", "image_shape": (5, 8), "max_iter": 2}, {}),
    ("DPNetworkRegressor", {"network": OWN_NET, "image_shape": (5, 8)}, {}),
    ("DPNetworkClassifier", {"network": OWN_NET_OF_TWO, "image_shape": (5, 8), "clipping": "ghost"}, {}),
    ("DPMLPClassifier", {"gradient_estimator": RECURSIVE, "batch_size": 20, "hidden_layer_sizes": (8,)}, {}),
    (
        "DPNetworkRegressor",
        {"network": OWN_NET, "image_shape": (5, 8), "gradient_estimator": RECURSIVE, "clipping": "one-by-one"},
        {},
    ),
]


@pytest.mark.thorough
@pytest.mark.parametrize(("name", "params", "extra"), VARIANTS)
def test_other_settings_take_the_same_path_within_the_sensitivities(name, params, extra, monkeypatch):
    tape = Tape(monkeypatch)
    found = [
        tape.compare(lambda X, y: make(name, **params).fit(X, y, **extra), one, other)
        for one, other in pairs(name, seed=4)
    ]
    assert max(found) <= 1 + 1e-9
    assert tape.of_vectors >= 0.25


@pytest.mark.parametrize("name", of_each_kind(NAMES, pytest.mark.thorough))
def test_zero_out_replays_with_an_empty_record(name, monkeypatch):
    tape = Tape(monkeypatch)
    one, _ = next(pairs(name, seed=2))
    X2, y2 = one[0].copy(), one[1].copy()
    X2[0], y2[0] = 0.0, 0.0

    def fit(X, y):
        return make(name, adjacency="zero-out").fit(X, y)

    # An empty row is not an absent one for intercepts, counts and votes: two absences at most.
    assert tape.compare(fit, one, (X2, y2)) <= 2 + 1e-9


@pytest.mark.parametrize(
    ("name", "select"),
    [
        ("DPMLPClassifier", SparseSelection(0.2, score_clip=0.02)),
        ("DPMLPRegressor", SparseSelection(0.2, "uniform")),
        ("DPLSTMClassifier", AdaFEST(0.5)),
    ],
)
def test_nets_that_choose_coordinates_replay(name, select, monkeypatch):
    """Under zero-out a replaced record is two records that are absent."""
    tape = Tape(monkeypatch)
    params = {"adjacency": "zero-out", "gradient_estimator": select, "batch_size": 20}
    found = [
        tape.compare(lambda X, y: make(name, **params).fit(X, y), one, other)
        for one, other in itertools.islice(pairs(name, seed=5), 3)
    ]
    assert max(found) <= 2 + 1e-9
    assert tape.of_vectors >= 0.5


# Sizes of a replaced group, beside 4: across every count at which the package works in another way (blocks of
# 64 rows at least of the second moments, of 256 of the sup-norm kernel, 1024 of the solver, 4096 of the vertices,
# 8192 of the second moments), and a group that outweighs all others.
GROUP_SIZES = (1, 3, 70, 300, 1100, 4200, 9000)


def one_group_replaced(name, size, seed):
    """Groups of 4 rows, and the same with the first one replaced by ``size`` enormous rows."""
    one, _ = next(pairs(name, seed=seed))
    groups = np.repeat(np.arange(N // 4), 4)
    rows = 100 * np.resize(one[0][4:8], (size, D))
    X2, y2 = np.vstack([rows, one[0][4:]]), np.append(np.ones(size), one[1][4:])
    groups2 = np.append(np.zeros(size, dtype=int), groups[4:])
    return (*one, groups), (X2, y2, groups2)


REGRESSORS = [name for name, cls in skdp.all_estimators() if name in NAMES and "shrinkage_ : " in cls.__doc__]


@pytest.mark.parametrize("name", of_each_kind(REGRESSORS, pytest.mark.thorough))
def test_a_constant_for_few_records_takes_the_same_path_within_the_sensitivities(name, monkeypatch):
    """Records, groups of unequal size, and one record less; the mean of the residuals comes last."""
    monkeypatch.setattr(closing, "MIN_EFFECTIVE_N", MIN_EFFECTIVE_N)
    tape = Tape(monkeypatch)

    def fit(X, y, groups=None, **params):
        extra = {} if groups is None else {"unit": "group"}
        model = make(name, **extra, **params)
        model.fit(X, y) if groups is None else model.fit(X, y, groups=groups)
        assert model.shrinkage_ == 0
        assert not model.coef_.any()
        assert model.privacy_.mechanisms[-1]["purpose"] == "calibration"
        return model

    largest = max(tape.compare(fit, one, other) for one, other in pairs(name, seed=8))
    assert 0.25 < largest <= 1 + 1e-9
    for size in (1, 70):
        one, other = one_group_replaced(name, size, seed=8)
        assert tape.compare(fit, one, other) <= 1 + 1e-9
    (X, y), _ = next(pairs(name, seed=8))

    def fewer(X, y):
        return fit(X, y, adjacency="add-remove", n_public=50)

    assert tape.compare(fewer, (X, y), (X[:-1], y[:-1])) <= 1 + 1e-9


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
def test_one_group_is_one_unit_along_the_whole_path(name, monkeypatch):
    """The neighbour's group has another number of rows, which is private: nothing public may follow from it."""
    tape = Tape(monkeypatch)

    def fit(X, y, groups):
        return make(name, unit="group").fit(X, y, groups=groups)

    net = issubclass(dict(skdp.all_estimators())[name], NetFit)
    for size in (4, *GROUP_SIZES[: 5 if net else None]):  # nets have no larger blocks of rows
        one, other = one_group_replaced(name, size, seed=3)
        assert tape.compare(fit, one, other) <= 1 + 1e-9, size
    one, other = one_group_replaced(name, 1100, seed=5)
    if takes_sparse(name):
        sparse = [(sp.csr_matrix(X), y, groups) for X, y, groups in (other, one)]
        assert tape.compare(fit, *sparse) <= 1 + 1e-9


GROUP_VARIANTS = [
    ("DPSGDClassifier", {"batch_size": 7}),
    ("DPSGDClassifier", {"batch_size": 14, "n_public": 15}),
    ("DPSRMClassifier", {"batch_size": 5, "initial_batch_size": 14}),
    ("DPRRPSGDClassifier", {"batch_size": 60}),
    ("DPSparseERMClassifier", {"batch_size": 3}),
    ("DPTwoStageRegressor", {"selection": "votes"}),
    ("DPTwoStageRegressor", {"loss": "huber"}),
    ("DPAdaSSPRegressor", {"n_rounds": 1, "row_norm": 1.0, "y_bounds": (-1.0, 1.0)}),
    ("DPIGHTClassifier", {"selection": "peeling", "max_iter": 4}),
    ("DPCNNClassifier", {"clipping": "ghost", "batch_size": 7, "max_iter": 2}),
    ("DPMLPClassifier", {"gradient_estimator": RECURSIVE, "batch_size": 7, "hidden_layer_sizes": (3,)}),
]


@pytest.mark.parametrize(("name", "params"), GROUP_VARIANTS)
def test_other_settings_of_groups_take_the_same_path(name, params, monkeypatch):
    tape = Tape(monkeypatch)

    def fit(X, y, groups):
        return make(name, unit="group", **params).fit(X, y, groups=groups)

    for size in (1, 70, 1100, 9000):
        one, other = one_group_replaced(name, size, seed=6)
        assert tape.compare(fit, one, other) <= 1 + 1e-9, size


@pytest.mark.thorough
@pytest.mark.parametrize("name", [n for n in NAMES if "n_public" in known_to(n)])
def test_add_remove_replays_with_one_record_less(name, monkeypatch):
    """Number of records and groups are private here: the plan of both comes from n_public alone."""
    tape = Tape(monkeypatch)
    one, _ = next(pairs(name, seed=7))
    X, y = one[0].copy(), one[1].copy()
    X[-1], y[-1] = 1e3 * X[-1], 1.0

    def fit(X, y, **extra):
        return make(name, adjacency="add-remove", n_public=50, **extra).fit(X, y)

    assert tape.compare(fit, (X, y), (X[:-1], y[:-1])) <= 1 + 1e-9
    groups = np.repeat(np.arange(N // 4), 4)

    def fit_groups(X, y, groups):
        model = make(name, adjacency="add-remove", n_public=14, unit="group")
        return model.fit(X, y, groups=groups)

    for size in (4, 1100):
        last = np.repeat(X[-4:-3], size, axis=0)
        more = (
            np.vstack([X[:-4], last]),
            np.append(y[:-4], np.ones(size)),
            np.append(groups[:-4], np.full(size, N // 4 - 1)),
        )
        fewer = (X[:-4], y[:-4], groups[:-4])
        assert tape.compare(fit_groups, more, fewer) <= 1 + 1e-9


@pytest.mark.parametrize("name", of_each_kind([n for n in NAMES if n not in MILD], pytest.mark.thorough))
def test_mutant_with_add_remove_noise_under_replace_one_is_caught(name, monkeypatch):
    for module in (grid, _minimizer):
        monkeypatch.setattr(module, "factor", lambda adjacency: 1.0)
    tape = Tape(monkeypatch)
    assert any(  # the first pair that shows it is enough
        tape.compare(lambda X, y: make(name).fit(X, y), one, other) > 1 + 1e-9
        for one, other in pairs(name, seed=1)
    )


def far_target(name, seed):
    """A record that the fit cannot overlook, its target just below the centre or far on the other side of it.

    One column alone, and so large that the gradient is clipped with either target, and points the other way. The
    counts of targets differ at all points of the grids above the first target.
    """
    (X, y), _ = next(pairs(name, seed))
    for column, near in ((3, 0.3), (D - 1, -1.0)):
        X1, y1, y2 = X.copy(), y.copy(), y.copy()
        X1[0], y1[0], y2[0] = np.where(np.arange(D) == column, 1e3, 0.0), near, -1e9 * np.sign(near)
        yield (X1, y1), (X1, y2)


def spent_by_rounds(name, tape):
    """Largest mu^2 that a fit of DP-IGHT in rounds really spends on one of the pairs, over the claim's."""
    claim = accounting.gaussian_mu(4.0, 1e-3) ** 2
    costs = []
    more = far_target(name, seed=2) if name == "DPIGHTRegressor" else ()
    for one, other in (*pairs(name, seed=2), *more):
        tape.compare(lambda X, y: make(name).fit(X, y), one, other)
        costs.append(tape.cost / claim)
    return max(costs)


@pytest.mark.parametrize("name", ["DPIGHTClassifier", "DPIGHTRegressor"])
def test_rounds_spend_less_than_they_claim_and_a_mutant_with_half_the_noise_more(name, monkeypatch):
    """Everything that the fit releases, in mu^2 of what really changed: no statistics, so no false alarms."""
    tape = Tape(monkeypatch)
    honest = spent_by_rounds(name, tape)
    assert (0.3 if name == "DPIGHTClassifier" else 0.6) <= honest <= 1 + 1e-9
    calibrate = Ledger.calibrate
    monkeypatch.setattr(Ledger, "calibrate", lambda ledger: 4 * calibrate(ledger))
    tape.playing = False
    with pytest.raises(PrivacyAccountingError):  # the recheck sees it by itself
        make(name).fit(*next(pairs(name, seed=1))[0])
    monkeypatch.setattr(claim, "recheck", lambda ledger, claimed: None)
    assert spent_by_rounds(name, tape) > 1


def ordinary(name, seed=0, n=400):
    """A column far from 0, one with missing values, and targets far from 0; a record of each kind replaced."""
    rng = np.random.default_rng(seed)
    X = np.column_stack([rng.normal(size=(n, 2)), rng.normal(1960, 15, n)])
    X[rng.random(n) < 0.3, 1] = np.nan
    labels = is_classifier(dict(skdp.all_estimators())[name]())
    y = (X[:, 0] > 0).astype(float) if labels else X[:, 0] + 1e4
    far = 1.0 if labels else -1e9
    for row in ([1e9, np.nan, -1e9], [np.nan, 1e9, 0.0], [0.0, 0.0, 1960.0]):
        X2, y2 = X.copy(), y.copy()
        X2[0], y2[0] = row, far
        yield (X, y), (X2, y2)


@pytest.mark.parametrize("name", ["DPLinearRegression", "DPLogisticRegression"])
@pytest.mark.parametrize("adjacency", ["replace-one", "add-remove"])
def test_windows_missing_values_and_far_targets_stay_within_the_sensitivities(name, adjacency, monkeypatch):
    tape, purposes = Tape(monkeypatch), set()
    n_public = None if adjacency == "replace-one" else 410

    def fit(X, y):
        model = make(name, epsilon=8.0, adjacency=adjacency, n_public=n_public).fit(X, y)
        purposes.update(row["purpose"] for row in model.privacy_.mechanisms)
        return model

    for (X, y), (X2, y2) in ordinary(name):
        other = (X2, y2) if n_public is None else (X2[1:], y2[1:])
        assert tape.compare(fit, (X, y), other) <= 1 + 1e-9
    assert {"shifted histograms", "missing values"} <= purposes


@pytest.mark.parametrize("name", ["DPLinearRegression", "DPLogisticRegression"])
def test_a_constant_for_few_records_stays_within_the_sensitivities(name, monkeypatch):
    set_defaults(monkeypatch, choice__max_class_noise=0.0, choice__min_effective_n=math.inf)
    tape, largest = Tape(monkeypatch), 0.0
    for one, other in (*pairs(name, seed=1), *ordinary(name)):
        largest = max(largest, tape.compare(lambda X, y: make(name).fit(X, y), one, other))
        assert tape.cost <= accounting.gaussian_mu(4.0, 1e-3) ** 2
    assert 0.5 <= largest <= 1 + 1e-9
    one, other = one_group_replaced(name, 1100, seed=3)
    tape.compare(lambda X, y, g: make(name, unit="group").fit(X, y, groups=g), one, other)
    assert tape.largest <= 1 + 1e-9


RECALIBRATED = [
    ({"classes": (0, 1, 2), "C": 1.0}, {}),
    *(
        pytest.param(params, {}, marks=pytest.mark.thorough)
        for params in ({}, {"n_nonzero_coefs": 3}, {"fit_intercept": False})
    ),
    ({"adjacency": "add-remove", "n_public": 61}, {}),
    ({"unit": "group", "epsilon": 64.0}, {"groups": np.repeat(np.arange(N // 4), 4)}),
]


@pytest.mark.parametrize(("params", "extra"), RECALIBRATED)
def test_recalibrated_automatic_estimators_stay_within_the_sensitivities(params, extra, monkeypatch):
    """Where units are many the scores are recalibrated, in rounds that follow from what was released before."""
    numbers = {"classes__max_recalibrated_noise": math.inf, "classes__min_recalibrated_effective_n": 0.0}
    set_defaults(monkeypatch, **numbers)
    name, purposes, tape = "DPLogisticRegression", [], Tape(monkeypatch)

    def fit(X, y, **more):
        model = make(name, **{"epsilon": 16.0, **params}).fit(X, y, **{**extra, **more})
        purposes.append(model.privacy_.mechanisms[-1]["purpose"])
        return model

    for one, other in pairs(name, seed=6):
        other = (other[0][1:], other[1][1:]) if "n_public" in params else other
        assert tape.compare(fit, one, other) <= 1 + 1e-9
        assert tape.compare(fit, *((sp.csr_matrix(X), y) for X, y in (one, other))) <= 1 + 1e-9
        assert tape.cost <= accounting.gaussian_mu(params.get("epsilon", 16.0), 1e-3) ** 2
    if extra:
        for size in (1, 70, 1100):
            one, other = one_group_replaced(name, size, seed=6)
            pair = [(X, y, {"groups": groups}) for X, y, groups in (one, other)]
            found = tape.compare(lambda X, y, more: fit(X, y, **more), *pair)
            assert found <= 1 + 1e-9
    assert set(purposes) == {"recalibration"}
