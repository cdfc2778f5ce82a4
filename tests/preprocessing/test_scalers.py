"""The scalers: what they release, what they do to tables, and what a pipeline with a model costs."""

import math
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import BudgetAccountant, DPIGHTClassifier, DPQuantileScaler, DPStandardScaler, PublicScaler
from skdp.exceptions import PrivacyBudgetExceeded, PrivacyLeakWarning, UnsupportedAccounting, UtilityWarning
from skdp.privacy import PrivacySession, PrivateRecords, accounting

PRIVATE = [DPStandardScaler, DPQuantileScaler]
each_private = pytest.mark.parametrize("cls", PRIVATE)
each = pytest.mark.parametrize("cls", [*PRIVATE, PublicScaler])
RNG = np.random.default_rng(0)
N = 4000
COLUMNS = {
    "normal, far from 0": RNG.normal(1990, 5, N),
    "long tail": RNG.lognormal(3, 1, N),
    "rare": (RNG.random(N) < 0.02) * 1.0,
    "zero or one": (RNG.random(N) < 0.4) * 1.0,
    "large": RNG.exponential(1e5, N),
    "empty": np.zeros(N),
    "small": RNG.normal(0, 1e-3, N),
    "digits": RNG.integers(0, 10, N) * 1.0,
}
X = np.column_stack(list(COLUMNS.values()))
SMALL = RNG.normal(size=(300, 3))


def fitted(cls, table=SMALL, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        return cls(**params).fit(table)


# ------------------------------------------------------------------ public constants


def test_public_constants_scale_and_centre():
    scaler = PublicScaler(center=[1.0, 2.0, 3.0], scale=2.0).fit(SMALL)
    assert np.array_equal(scaler.transform(SMALL), (SMALL - [1, 2, 3]) / 2.0)
    assert np.allclose(scaler.inverse_transform(scaler.transform(SMALL)), SMALL)
    assert np.array_equal(PublicScaler().fit_transform(SMALL), SMALL)
    scaler = PublicScaler(bounds=(0, [1.0, 2.0, 4.0])).fit(SMALL)
    assert scaler.center_.tolist() == [0.5, 1.0, 2.0] == scaler.scale_.tolist()
    assert scaler.transform([[0.0, 0.0, 0.0], [1.0, 2.0, 8.0]]).tolist() == [[-1] * 3, [1, 1, 3]]


@pytest.mark.parametrize(
    ("params", "error", "words"),
    [
        ({"center": math.nan}, ValueError, "center must be finite"),
        ({"center": 1e200}, ValueError, "center must be finite"),
        ({"scale": 0.0}, ValueError, "scale must be > 0"),
        ({"scale": [1.0, -1.0, 1.0]}, ValueError, "scale must be > 0"),
        ({"scale": math.inf}, ValueError, "scale must be > 0"),
        ({"scale": "1"}, TypeError, "scale must be a number"),
        ({"scale": [[1.0, 1.0, 1.0]]}, TypeError, "scale must be a number"),
        ({"scale": [1.0, 1.0]}, ValueError, "scale has 2 numbers, but X has 3 columns"),
        ({"bounds": (0, 1), "scale": 1.0}, ValueError, "but not both"),
        ({"bounds": (1, 0)}, ValueError, "bounds must be"),
        ({"bounds": (0, math.inf)}, ValueError, "bounds must be"),
        ({"bounds": (0, 1, 2)}, ValueError, "bounds must be"),
        ({"bounds": 3}, TypeError, "bounds must be"),
        ({"bounds": ([0, 0], [1, 1])}, ValueError, "bounds has 2 numbers, but X has 3 columns"),
    ],
)
def test_wrong_constants_are_refused(params, error, words):
    scaler = PublicScaler(**params)
    with pytest.raises(error, match=words):
        scaler.fit(SMALL)
    assert not [name for name in vars(scaler) if name.endswith("_")]


@each
def test_float32_is_computed_in_float64(cls):
    table = (1e6 + SMALL).astype(np.float32)
    scaler = fitted(cls, table, **({"center": 1e6, "scale": 1e-60} if cls is PublicScaler else {}))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made = scaler.transform(table)
    assert made.dtype == np.float32
    most = np.finfo(np.float32).max
    wanted = np.clip(scaler.transform(table.astype(np.float64)), -most, most).astype(np.float32)
    assert np.array_equal(made, wanted)
    assert np.isfinite(made).all()
    assert np.abs(made).max() == most or cls is not PublicScaler


@each
def test_no_finite_number_becomes_infinite(cls):
    """The next step would refuse the table, and so tell of one record."""
    scaler = fitted(cls, SMALL)
    scaler.scale_ = np.full_like(scaler.scale_, 1e-3)
    rows = SMALL.copy()
    rows[0] = 1e308
    assert np.isfinite(scaler.transform(rows)).all()


def test_a_refused_fit_leaves_the_scaler_as_it_was():
    pd = pytest.importorskip("pandas")
    scaler = PublicScaler(scale=2.0).fit(pd.DataFrame(SMALL, columns=list("abc")))
    before = {k: v for k, v in vars(scaler).items() if k.endswith("_")}
    with pytest.raises(ValueError, match="NaN"):
        scaler.fit(np.full((4, 2), np.nan))
    assert {k: v for k, v in vars(scaler).items() if k.endswith("_")} == before
    assert not hasattr(scaler.fit(SMALL[:, :2]), "feature_names_in_")


# ------------------------------------------------------------------ tables


@each
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csr_array])
def test_csr_is_scaled_and_neither_centred_nor_densified(cls, kind, monkeypatch):
    table = np.where(np.abs(SMALL) > 0.8, SMALL, 0.0)
    params = {"scale": [1.0, 2.0, 4.0]} if cls is PublicScaler else {"random_state": 0}
    sparse = kind(table)
    copies = [part.copy() for part in (sparse.data, sparse.indices, sparse.indptr)]
    with monkeypatch.context() as patch:
        for method in ("toarray", "todense"):
            for other in (sp.csr_matrix, sp.csr_array):
                patch.setattr(other, method, None)
        scaler = fitted(cls, sparse, **params)
        made = scaler.transform(sparse)
        back = scaler.inverse_transform(made)
    assert type(made) is kind
    assert made.nnz == sparse.nnz
    center, scale, bounds = scaler._numbers()
    assert not np.any(center)
    clipped = table if bounds is None else np.clip(table, *bounds)
    assert np.allclose(made.toarray(), clipped / scale)
    assert np.allclose(back.toarray(), clipped)
    for part, copy in zip((sparse.data, sparse.indices, sparse.indptr), copies, strict=True):
        assert np.array_equal(part, copy)


@each
def test_a_csr_matrix_that_would_have_to_be_centred_is_refused(cls):
    params = {"center": 1.0} if cls is PublicScaler else {}
    scaler = fitted(cls, SMALL + 5.0, **params)
    with pytest.raises(ValueError, match="CSR matrices are scaled and never centred"):
        scaler.transform(sp.csr_matrix(SMALL))
    if cls is PublicScaler:
        with pytest.raises(ValueError, match="CSR matrices are scaled and never centred"):
            PublicScaler(center=1.0).fit(sp.csr_matrix(SMALL))
    if cls is DPStandardScaler:
        with pytest.raises(ValueError, match="leaves nothing to do"):
            DPStandardScaler(with_std=False).fit(sp.csr_matrix(SMALL))


@each_private
def test_a_csr_fit_is_that_of_a_dense_table_without_centring(cls):
    name = "with_mean" if cls is DPStandardScaler else "with_centering"
    table = np.where(np.abs(SMALL) > 0.5, SMALL, 0.0)
    dense = fitted(cls, table, random_state=0, **{name: False})
    sparse = fitted(cls, sp.csr_matrix(table), random_state=0, **{name: False})
    assert np.array_equal(dense.scale_, sparse.scale_)
    assert np.array_equal(dense.transform(table), sparse.transform(sp.csr_matrix(table)).toarray())


@each
def test_types_names_frames_and_pickles(cls):
    pd = pytest.importorskip("pandas")
    params = {} if cls is PublicScaler else {"random_state": 0}
    scaler = fitted(cls, SMALL, **params)
    for dtype in (np.float32, np.float64):
        assert scaler.transform(SMALL.astype(dtype)).dtype == dtype
        assert (
            scaler.transform(sp.csr_matrix((4, 3), dtype=dtype)).dtype == dtype
            if not np.any(scaler._numbers()[0])
            else True
        )
    assert scaler.transform(np.ones((2, 3), dtype=int)).dtype == np.float64
    frame = pd.DataFrame(SMALL, columns=list("abc"), index=np.arange(300) + 7)
    scaler = fitted(cls, frame, **params).set_output(transform="pandas")
    assert scaler.get_feature_names_out().tolist() == list("abc")
    out = scaler.transform(frame)
    assert out.columns.tolist() == list("abc")
    assert out.index.equals(frame.index)
    again = pickle.loads(pickle.dumps(scaler))
    assert again.transform(frame).equals(out)
    assert clone(scaler).get_params() == scaler.get_params()
    with pytest.raises(NotFittedError):
        cls().transform(SMALL)
    with pytest.raises(ValueError, match="features"):
        fitted(cls, SMALL, **params).transform(SMALL[:, :2])


@each
def test_a_transform_changes_no_input_and_takes_each_row_by_itself(cls):
    scaler = fitted(cls, SMALL)
    table = SMALL.copy()
    table.setflags(write=False)
    whole = scaler.transform(table)
    assert np.array_equal(whole[17:18], scaler.transform(table[17:18]))


# ------------------------------------------------------------------ released centres and scales


def test_without_noise_a_standard_scaler_has_the_moments_of_the_clipped_columns():
    scaler = DPStandardScaler(epsilon=math.inf, bounds=(-1, [1, 2, 3])).fit(SMALL)
    clipped = np.clip(SMALL, -1, [1, 2, 3])
    assert np.allclose(scaler.mean_, clipped.mean(axis=0), atol=1e-6)
    # A distance from the mean beyond the half width of the window counts as that.
    half = np.array([1.0, 1.5, 2.0])
    squares = np.minimum((clipped - scaler.mean_) ** 2, half**2)
    assert np.allclose(scaler.scale_, np.sqrt(squares.mean(axis=0)), atol=1e-5)
    assert np.allclose(scaler.scale_, clipped.std(axis=0), rtol=0.05)
    assert np.allclose(scaler.transform(SMALL), (clipped - scaler.mean_) / scaler.scale_)
    plain = DPStandardScaler(epsilon=math.inf, bounds=(-9, 9), with_mean=False).fit(SMALL)
    assert np.allclose(plain.scale_, np.sqrt(np.mean(SMALL**2, axis=0)), atol=1e-5)
    assert not plain.mean_.any()
    only = DPStandardScaler(epsilon=math.inf, bounds=(-9, 9), with_std=False).fit(SMALL)
    assert np.allclose(only.mean_, SMALL.mean(axis=0), atol=1e-6)
    assert np.array_equal(only.scale_, np.ones(3))


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_standard_scaler_finds_columns_of_any_size(epsilon):
    scaler = DPStandardScaler(epsilon=epsilon, random_state=1).fit(X)
    names = list(COLUMNS)
    for name in ("normal, far from 0", "zero or one", "large", "small", "digits"):
        j = names.index(name)
        assert abs(scaler.mean_[j] - X[:, j].mean()) < 0.5 * X[:, j].std(), name
        assert 0.6 < scaler.scale_[j] / X[:, j].std() < 1.6, name
    assert np.abs(scaler.transform(X)).max() < 30  # also the rare and the empty columns


@pytest.mark.parametrize("epsilon", [1.0, math.inf])
def test_a_quantile_scaler_finds_columns_of_any_size(epsilon):
    scaler = DPQuantileScaler(epsilon=epsilon, random_state=1).fit(X)
    names = list(COLUMNS)
    for name in ("normal, far from 0", "long tail", "large", "small", "digits"):
        j = names.index(name)
        median = np.median(X[:, j])
        deviation = np.median(np.abs(X[:, j] - median))
        assert abs(scaler.center_[j] - median) < deviation, name
        assert 0.4 < scaler.scale_[j] / deviation < 2.5, name
    inside = np.mean(np.abs(scaler.transform(X)) <= 1, axis=0)
    assert inside[[0, 1, 4, 6]] == pytest.approx(0.5, abs=0.2)
    assert scaler.scale_[[2, 5]].tolist() == [1.0, 1.0]  # nothing was seen of them
    wide = DPQuantileScaler(epsilon=epsilon, quantile=0.9, random_state=1).fit(X)
    assert np.mean(np.abs(wide.transform(X)) <= 1, axis=0)[0] > 0.75


@each_private
def test_given_bounds_are_used_and_leave_the_budget_to_the_rest(cls):
    searched, given = (fitted(cls, X, random_state=0, bounds=bounds) for bounds in (None, (-2000.0, 2000.0)))
    count = [sum(row["count"] for row in s.privacy_.mechanisms) for s in (searched, given)]
    assert count[1] < count[0]
    shares = [accounting.rows_mu(s.privacy_.mechanisms) for s in (searched, given)]
    assert shares == pytest.approx([accounting.gaussian_mu(1.0, 1e-5)] * 2, rel=1e-3)
    assert any("bounds were not chosen" in line for line in given.privacy_.assumptions)


@each_private
def test_a_group_counts_as_one(cls):
    groups = np.repeat(np.arange(200), np.r_[np.ones(199, int), 4000])
    table = np.r_[RNG.normal(3, 1, (199, 2)), np.full((4000, 2), 50.0)]
    scaler = cls(epsilon=math.inf, unit="group", bounds=(-100, 100)).fit(table, groups=groups)
    center = scaler._numbers()[0]
    assert np.all(np.abs(center - 3) < 1)
    if cls is DPStandardScaler:
        means = [table[groups == g].mean(axis=0) for g in range(200)]
        assert np.allclose(center, np.mean(means, axis=0), atol=1e-4)


@each_private
@pytest.mark.parametrize("adjacency", ["zero-out", "add-remove"])
def test_other_adjacencies_halve_the_sensitivities(cls, adjacency):
    fits = [
        cls(adjacency=a, n_public=N if a == "add-remove" else None, bounds=(0, 1)).fit(X)
        for a in ("replace-one", adjacency)
    ]
    one, half = ([row["sensitivity"] for row in fit.privacy_.mechanisms] for fit in fits)
    assert np.allclose(2 * np.array(half), one, rtol=1e-6)


# ------------------------------------------------------------------ budgets


def pipeline(accountant=None, epsilon=0.5, cls=DPStandardScaler):
    paid = {} if accountant is None else {"accountant": accountant}
    return make_pipeline(
        cls(epsilon=epsilon, delta=1e-6, **paid), DPIGHTClassifier(epsilon=1.0, delta=1e-5, classes=(0, 1), **paid)
    )


@each_private
def test_an_accountant_charges_a_pipeline_of_scaler_and_model_as_their_sum(cls):
    y = (SMALL[:, 0] > 0).astype(int)
    spent = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        for scaler, model in ((True, False), (False, True), (True, True)):
            pipe = pipeline(cls=cls)
            with BudgetAccountant(10.0, 1e-3) as accountant:
                if scaler and model:
                    pipe.fit(SMALL, y)
                else:
                    pipe[0 if scaler else 1].fit(SMALL, y)
            spent.append((accountant.spent(), [row["estimator"] for row in accountant.ledger()]))
    (a, _), (b, _), (both, names) = spent
    assert names == [cls.__name__, "DPIGHTClassifier"]
    assert both[1] <= a[1] + b[1]
    # The two compose as Gaussian mechanisms do: mu^2 add up, which is less than epsilons adding up.
    mu = math.hypot(accounting.gaussian_mu(0.5, 1e-6), accounting.gaussian_mu(1.0, 1e-5))
    epsilon = accounting.gaussian_epsilon(mu, both[1])
    assert max(a[0], b[0]) < both[0] <= a[0] + b[0]
    assert both[0] == pytest.approx(epsilon, rel=0.2)


def test_a_pipeline_that_the_accountant_cannot_pay_stops_before_the_model():
    accountant = BudgetAccountant(0.7, 1e-5)
    with pytest.raises(PrivacyBudgetExceeded), warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        pipeline(accountant).fit(SMALL, (SMALL[:, 0] > 0).astype(int))
    assert [row["estimator"] for row in accountant.ledger()] == ["DPStandardScaler"]


@each
def test_the_models_report_names_a_private_step_and_no_leak(cls):
    y = (SMALL[:, 0] > 0).astype(int)
    params = {} if cls is PublicScaler else {"epsilon": 5.0}
    pipe = make_pipeline(cls(**params), DPIGHTClassifier(classes=(0, 1)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        warnings.simplefilter("error", PrivacyLeakWarning)
        lines = pipe.fit(SMALL, y)[-1].privacy_.assumptions
    (line,) = [line for line in lines if "earlier pipeline steps" in line]
    assert (f"but for {cls.__name__}, whose own report has the cost" in line) == (cls is not PublicScaler)
    alone = DPIGHTClassifier(classes=(0, 1)).fit(SMALL, y).privacy_.assumptions
    assert "earlier pipeline steps did not learn from these records" in alone


@each_private
def test_a_scaler_without_privacy_before_a_model_is_a_leak(cls):
    y = (SMALL[:, 0] > 0).astype(int)
    pipe = make_pipeline(cls(epsilon=math.inf), DPIGHTClassifier(classes=(0, 1)))
    with pytest.warns(PrivacyLeakWarning, match=f"{cls.__name__} learnt from these records"):
        pipe.fit(SMALL, y)
    both = make_pipeline(cls(), StandardScaler(), DPIGHTClassifier(classes=(0, 1)))
    with pytest.warns(PrivacyLeakWarning, match="^StandardScaler learnt"):
        both.fit(SMALL, y)


@each_private
@pytest.mark.parametrize(
    ("params", "table", "words"),
    [
        ({"bounds": (1, 0)}, SMALL, "bounds must be"),
        ({"bounds": "all"}, SMALL, "bounds must be"),
        ({"bounds": ("0", "1")}, SMALL, "bounds must be a number"),
        ({"bounds": (0, [1.0, 2.0])}, SMALL, "bounds has 2 numbers, but X has 3 columns"),
        ({"delta": 0.0}, SMALL, "delta=0 needs pure mechanisms"),
        ({"adjacency": "add-remove"}, SMALL, "n_public"),
        ({"unit": "group"}, SMALL, "needs groups="),
        ({}, np.where(SMALL > 2, np.nan, SMALL), "contains NaN"),
        ({}, np.where(SMALL > 2, np.inf, SMALL), "contains infinity"),
        ({}, [["a"], ["b"]], "X must be numeric"),
    ],
)
def test_bad_input_spends_nothing(cls, params, table, words):
    refused_unspent(cls, params, table, words)


def test_bounds_that_leave_no_room_for_sums_are_refused():
    refused_unspent(DPStandardScaler, {"bounds": (0.0, 5e-324)}, SMALL, "half_widths")


def refused_unspent(cls, params, table, words):
    accountant = BudgetAccountant(10.0, 1e-3)
    scaler = cls(accountant=accountant, **params)
    with pytest.raises((TypeError, ValueError), match=words), warnings.catch_warnings():
        warnings.simplefilter("ignore", UtilityWarning)
        scaler.fit(table)
    assert accountant.spent() == (0.0, 0.0)
    assert not [name for name in vars(scaler) if name.endswith("_")]


@each_private
def test_a_hopeless_budget_is_refused_before_anything_is_spent(cls):
    accountant = BudgetAccountant(1.0, 1e-3)
    with pytest.raises(UnsupportedAccounting, match="too small for so many noisy values"):
        cls(epsilon=1e-6, delta=1e-6, accountant=accountant).fit(RNG.normal(size=(40, 500)))
    assert accountant.spent() == (0.0, 0.0)


@pytest.mark.parametrize(
    ("cls", "params", "error"),
    [
        (DPStandardScaler, {"with_mean": 1}, TypeError),
        (DPStandardScaler, {"clip": None}, TypeError),
        (DPStandardScaler, {"with_mean": False, "with_std": False}, ValueError),
        (DPQuantileScaler, {"quantile": 0.0}, ValueError),
        (DPQuantileScaler, {"quantile": 1.0}, ValueError),
        (DPQuantileScaler, {"quantile": "half"}, TypeError),
        (DPQuantileScaler, {"with_centering": "no"}, TypeError),
    ],
)
def test_wrong_parameters_of_one_scaler(cls, params, error):
    with pytest.raises(error):
        cls(**params).fit(SMALL)


@each_private
def test_few_records_for_many_columns_are_named_unless_bounds_are_given(cls):
    table = RNG.normal(size=(400, 30))
    with pytest.warns(UtilityWarning, match="400 records at epsilon=1 are few for 30 columns"):
        cls().fit(table)
    with warnings.catch_warnings():
        warnings.simplefilter("error", UtilityWarning)
        cls(bounds=(-3, 3)).fit(table)
        cls(epsilon=20.0).fit(table)


def test_the_search_asks_for_as_many_answers_whatever_the_records_are():
    fits = [DPQuantileScaler().fit(table) for table in (X, 1e9 * X[::-1] ** 2)]
    rows = [[(r["purpose"], r["count"], r["noise_std"]) for r in f.privacy_.mechanisms] for f in fits]
    assert rows[0] == rows[1]


def test_a_device_is_refused_before_anything_is_spent(monkeypatch):
    records = PrivateRecords(SMALL)
    shape = type(records.shape)(**{**vars(records.shape), "device": "cuda"})
    moved = PrivateRecords._of(records._rows.derived(shape=shape))
    with PrivacySession(epsilon=1.0, delta=1e-5) as session:
        for ask in (
            lambda: moved.column_counts(0.0),
            lambda: moved.column_sums(0.0, 1.0),
            lambda: moved.histogram([0, 1], adjacency="replace-one"),
        ):
            with pytest.raises(ValueError, match="host's memory"):
                ask()
        assert not session.released
