"""The certified spectral norm is never below the true one; images of statistics carry the right bound."""

import math

import mpmath
import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import skdp.privacy.statistics.linear_map as linear
from skdp.losses import LogisticLoss, MultinomialLoss
from skdp.privacy import BoundedStatistic, PrivateRecords
from skdp.privacy.statistics import ridge_minimizer
from skdp.privacy.statistics.linear_map import linear_map, spectral_norm_bound

pytestmark = pytest.mark.blas

RNG = np.random.default_rng(2)


def clustered(n, gap):
    """Singular values that power iteration cannot tell apart."""
    q, _ = np.linalg.qr(np.random.default_rng(n).normal(size=(n, n)))
    return (q * (1 - gap * np.arange(n))) @ np.linalg.qr(RNG.normal(size=(n, n)))[0]


def true_norm(A):
    with mpmath.workdps(40):
        values = mpmath.svd_r(mpmath.matrix(A.tolist()), compute_uv=False)
        return max(values)


MATRICES = {
    "hilbert": scipy.linalg.hilbert(9),
    "tall hilbert": 1.0 / (np.arange(14)[:, None] + np.arange(6) + 1),
    "clustered": clustered(10, 1e-3),
    "tightly clustered": clustered(8, 1e-9),
    "identity": np.eye(5),
    "rank one": np.outer(RNG.normal(size=6), RNG.normal(size=9)),
    "graded": np.diag(10.0 ** -np.arange(0, 16, 2)) + 1e-3,
    "huge": 1e300 * RNG.normal(size=(3, 4)),
    "tiny": 1e-300 * RNG.normal(size=(4, 3)),
    "start is orthogonal": np.outer(np.r_[1.0, -1.0, 0.0, 0.0], [1.0, -1.0, 0.0]) + 0.5,
}


@pytest.mark.parametrize("name", MATRICES)
def test_bound_against_mpmath(name):
    A = MATRICES[name]
    exact = true_norm(A)
    for form in (A, sp.csr_matrix(A), A.T):
        bound = mpmath.mpf(spectral_norm_bound(form))
        assert exact <= bound <= exact * mpmath.mpf("1.00001")


def unmerged(A, copies, *, dtype=np.float64, lie=False):
    """The matrix ``copies * A`` with every entry stored so many times; scipy may believe it is canonical."""
    rows, columns = A.shape
    made = sp.csr_matrix(
        (
            np.tile(A.astype(dtype)[:, None, :], (1, copies, 1)).ravel(),
            np.tile(np.arange(columns), rows * copies),
            np.arange(rows + 1) * columns * copies,
        ),
        shape=A.shape,
    )
    if lie:
        made.has_canonical_format = True
    return made


@pytest.mark.parametrize("most", [linear.LARGEST_GRAM, 1])
@pytest.mark.parametrize("lie", [False, True])
def test_duplicate_entries_count_as_their_sum(lie, most, monkeypatch):
    """A product adds them, so the norm must too: sqrt(100) in place of 100 would leak ten times as much."""
    monkeypatch.setattr(linear, "LARGEST_GRAM", most)
    one = np.ones((1, 3)) / math.sqrt(3)
    for A in (one, np.abs(RNG.normal(size=(5, 3))), np.eye(4)):
        form = unmerged(A, 100, lie=lie)
        exact = 100 * np.linalg.norm(A, 2)
        assert exact * (1 - 1e-13) <= spectral_norm_bound(form) <= 1.02 * exact
        assert form.nnz == 100 * A.size  # the caller's matrix is left as it is


@pytest.mark.parametrize("lie", [False, True])
def test_image_under_an_unmerged_or_integer_matrix(lie):
    A = np.array([[3, 0, 1, 0], [0, 2, 0, 5]])
    bounded = ridge_minimizer(
        PrivateRecords(np.eye(4), np.array([0.0, 1.0, 1.0, 1.0])),
        LogisticLoss(),
        alpha=0.5,
        row_norm=1.0,
        adjacency="replace-one",
    )
    wanted = linear_map(bounded, 90.0 * A)
    for form in (
        unmerged(A, 90, dtype=np.int8, lie=lie),
        unmerged(A, 90, lie=lie),
        sp.csc_matrix(90 * A).astype(np.int16),
    ):
        image = linear_map(bounded, form)
        assert image.l2 == pytest.approx(wanted.l2, rel=1e-6)
        assert np.allclose(image._value.plain(), wanted._value.plain(), rtol=1e-12)


@settings(deadline=None, derandomize=True, max_examples=60)
@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 2**32 - 1), st.sampled_from([0.0, 1.0, 30.0]))
def test_bound_on_random_matrices(m, p, seed, spread):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(m, p)) * np.exp(spread * rng.normal(size=(m, 1)) / 3)
    exact = np.linalg.svd(A, compute_uv=False)[0]
    assert exact * (1 - 1e-13) <= spectral_norm_bound(A) <= 1.01 * exact


def test_slow_start_still_ends_above(monkeypatch):
    """Were the proposal far too small, the certificate must reject it until it is large enough."""
    A = RNG.normal(size=(30, 8))
    exact = np.linalg.svd(A, compute_uv=False)[0]
    monkeypatch.setattr(linear, "largest_ritz_value", lambda gram: 0.01 * exact**2)
    assert exact <= spectral_norm_bound(A) <= 2 * exact


@pytest.mark.slow
def test_large_matrices_of_one_sign(monkeypatch):
    monkeypatch.setattr(linear, "LARGEST_GRAM", 10)
    A = sp.random(300, 500, density=0.05, format="csr", random_state=0)
    A.data[:] = np.round(10 * A.data)
    exact = np.linalg.svd(A.toarray(), compute_uv=False)[0]
    for form in (A, -A, A.T.tocsr(), A.toarray()):
        assert exact <= spectral_norm_bound(form) <= 1.01 * exact
    blocks = sp.block_diag([np.ones((4, 3)), np.ones((9, 8)), sp.csr_matrix((5, 7))]).tocsr()
    assert math.sqrt(72) <= spectral_norm_bound(blocks) <= 1.01 * math.sqrt(72)


def test_large_matrices_of_both_signs_get_a_bound(monkeypatch):
    monkeypatch.setattr(linear, "LARGEST_GRAM", 10)
    A = RNG.normal(size=(60, 40))
    exact = np.linalg.svd(A, compute_uv=False)[0]
    assert exact <= spectral_norm_bound(A) <= np.linalg.norm(A) * (1 + 1e-9)


def test_what_is_not_a_matrix_of_numbers():
    assert spectral_norm_bound(np.zeros((3, 2))) == 0.0
    with pytest.raises(ValueError, match="NaN"):
        spectral_norm_bound(np.array([[math.nan, 1.0]]))


@pytest.mark.parametrize("loss", [LogisticLoss(), MultinomialLoss(3)], ids=lambda loss: loss.name)
def test_images_of_neighbours_stay_within_the_bound(loss):
    A = RNG.normal(size=(9, 4))
    direction = np.linalg.svd(A)[2][0]  # the adversary moves theta where A stretches most
    reached = 0.0
    for trial in range(50):
        rng = np.random.default_rng(trial)
        X = rng.normal(size=(6, 4)) * 3
        y = rng.integers(0, max(2, loss.n_outputs), size=6).astype(float)
        other = X.copy()
        X[0], other[0] = 5 * direction, -5 * direction
        options = dict(alpha=0.5, row_norm=1.0, adjacency="replace-one")
        first, second = (
            ridge_minimizer(PrivateRecords(rows, target), loss, **options) for rows, target in ((X, y), (other, y))
        )
        image = linear_map(first, A)
        moved = np.linalg.norm(image._value.plain() - linear_map(second, A)._value.plain())
        assert moved <= image.l2
        assert image.l2 == pytest.approx(spectral_norm_bound(A) * first.l2, rel=1e-9)
        reached = max(reached, moved / image.l2)
    assert reached > 0.2
    assert image.shape == (9, *first.shape[1:])


def test_what_cannot_be_mapped():
    records = PrivateRecords(np.eye(3), np.array([0.0, 1.0, 1.0]))
    total = records.mean_gradient(LogisticLoss(), np.zeros(3), 1.0)
    with pytest.raises(TypeError, match="sum over records"):
        linear_map(total, np.eye(3))
    proven = BoundedStatistic.with_sensitivity(np.ones(3), adjacency="zero-out", l2=1.0)
    with pytest.raises(ValueError, match="public bound"):
        linear_map(proven, np.eye(3))
    good = ridge_minimizer(records, LogisticLoss(), alpha=1, row_norm=1, adjacency="zero-out")
    with pytest.raises(ValueError, match="columns"):
        linear_map(good, np.eye(4))
