"""The certified spectral norm against adversarial spectra, by lower bounds in exact rational numbers.

For any vector v, ||A||_2^2 >= ||A v||^2 / ||v||^2. Both sides are computed as fractions, v being a floating-point
proposal of the top right singular vector: a certified lower bound that is nearly the norm. The shipped bound must
be above it, on every matrix, however the matrix is stored and whichever branch bounds it.
"""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.linalg
import scipy.sparse as sp

import skdp.privacy.statistics.linear_map as linear
from skdp.losses import LogisticLoss, MultinomialLoss
from skdp.privacy import PrivateRecords
from skdp.privacy.statistics import ridge_minimizer
from skdp.privacy.statistics.linear_map import linear_map, spectral_norm_bound


def top_vector(A):
    """A proposal of the top right singular vector; of a matrix of any scale."""
    largest = np.abs(A).max()
    scaled = A / 2.0 ** min(1000, math.floor(math.log2(largest))) if largest else A
    return np.linalg.svd(scaled)[2][0]


def squared_norm_at_least(A):
    """A fraction below the squared norm."""
    v = [Fraction(float(x)) for x in top_vector(A)]
    exact = [[Fraction(float(x)) for x in row] for row in A]
    image = [sum(a * x for a, x in zip(row, v) if a) for row in exact]
    return sum(y * y for y in image) / sum(x * x for x in v)


def graded(rng, m, p):
    """Entries over the whole range of float64, denormals included."""
    with np.errstate(under="ignore"):
        return rng.normal(size=(m, p)) * 2.0 ** rng.integers(-1070, 1000, size=(m, p))


def orthogonal(rng, n):
    return np.linalg.qr(rng.normal(size=(n, n)))[0]


KINDS = {
    "normal": lambda rng, m, p: rng.normal(size=(m, p)),
    "clustered": lambda rng, m, p: orthogonal(rng, max(m, p))[:m, :p] + 1e-15 * rng.normal(size=(m, p)),
    "hilbert-like": lambda rng, m, p: 1.0 / (np.arange(m)[:, None] + np.arange(p) + 1 + rng.random()),
    "rank one and noise": lambda rng, m, p: (
        np.outer(rng.normal(size=m), rng.normal(size=p)) + 1e-16 * rng.normal(size=(m, p))
    ),
    "graded": graded,
    "denormal": lambda rng, m, p: rng.integers(-9, 9, size=(m, p)) * 5e-324,
    "one huge column": lambda rng, m, p: rng.normal(size=(m, p)) * np.r_[1e150, np.full(p - 1, 1.0)],
    "one huge entry": lambda rng, m, p: (
        rng.normal(size=(m, p)) + 1e300 * (np.arange(m * p).reshape(m, p) == rng.integers(m * p))
    ),
    "nearly parallel rows": lambda rng, m, p: rng.normal(size=(1, p)) + 1e-9 * rng.normal(size=(m, p)),
    "permutation": lambda rng, m, p: np.eye(max(m, p))[rng.permutation(max(m, p))][:m, :p],
    "signs": lambda rng, m, p: rng.choice([-1.0, 1.0], size=(m, p)),
    "float32": lambda rng, m, p: rng.normal(size=(m, p)).astype(np.float32).astype(np.float64),
    "powers of two": lambda rng, m, p: np.ldexp(1.0, rng.integers(-60, 1, size=(m, p))),
    "the largest numbers": lambda rng, m, p: rng.choice([0.0, 1.0, -1.0], size=(m, p)) * np.finfo(float).max,
}


def forms(rng, A):
    """The same matrix as others may hand it over."""
    m, p = A.shape
    yield A
    yield np.asfortranarray(A)
    yield A.T
    yield A[rng.permutation(m)][:, rng.permutation(p)]
    yield sp.csr_matrix(A)
    yield sp.csc_matrix(A)
    if np.abs(A).max() > 1e307:
        return
    # Every entry three times, x + x - x, in the wrong order; zeros are stored.
    columns = np.concatenate([rng.permutation(np.tile(np.arange(p), 3)) for _ in range(m)])
    data = np.repeat(A, 3, axis=0).reshape(m, 3 * p)
    for i in range(m):
        row = columns[i * 3 * p : (i + 1) * 3 * p]
        for j in range(p):
            data[i, np.flatnonzero(row == j)] = A[i, j] * np.array([1.0, -1.0, 1.0])
    yield sp.csr_matrix((data.ravel(), columns, np.arange(m + 1) * 3 * p), shape=(m, p))


@pytest.mark.parametrize("largest", [linear.LARGEST_GRAM, 0], ids=["cholesky", "large"])
@pytest.mark.parametrize("kind", KINDS)
def test_no_spectrum_passes_the_bound(kind, largest, monkeypatch):
    """``LARGEST_GRAM = 0`` sends every matrix to the branch for those of more than 6000 rows and columns."""
    monkeypatch.setattr(linear, "LARGEST_GRAM", largest)
    rng = np.random.default_rng(len(kind) + largest)
    for _ in range(12):
        A = KINDS[kind](rng, *(int(k) for k in rng.integers(1, 9, size=2)))
        if not A.any():
            assert spectral_norm_bound(A) == 0
            continue
        least = squared_norm_at_least(A)
        for form in forms(rng, A):
            bound = spectral_norm_bound(form)
            if bound == math.inf:  # the norm itself is beyond float64
                assert kind == "the largest numbers"
                continue
            assert Fraction(bound) ** 2 >= least
            if largest and kind != "denormal":  # no number is within 1 % of the norm there
                assert Fraction(bound) ** 2 <= least * Fraction(102, 100)


@pytest.mark.parametrize(
    "shape",
    [
        (400, 12),
        (12, 400),
        pytest.param((150, 150), marks=pytest.mark.slow),
        pytest.param((700, 520), marks=pytest.mark.slow),
    ],
)
def test_no_larger_matrix_passes_the_bound(shape):
    """Also beyond 500 columns, where only subspace iteration proposes the norm."""
    rng = np.random.default_rng(shape[0])
    p = min(shape)
    decay = [np.ones(p), 1 - 1e-9 * np.arange(p), 2.0 ** -np.arange(p), 1.0 / (1 + np.arange(p))]
    for values in decay:
        left = np.linalg.qr(rng.normal(size=(shape[0], p)))[0]
        A = (left * values) @ np.linalg.qr(rng.normal(size=(shape[1], p)))[0].T
        # One power of two less than float64 would leave rounding errors of the proposal; longdouble leaves none.
        v = scipy.linalg.svd(A, full_matrices=False)[2][0].astype(np.longdouble)
        wide = A.astype(np.longdouble)
        least = float(np.sqrt(((wide @ v) ** 2).sum() / (v @ v)) * (1 - np.longdouble(1e-16)))
        assert least <= spectral_norm_bound(A) <= 1.01 * least


def test_mutants_are_caught(monkeypatch):
    """Without its margins, or with an eigenvalue routine's word for it, the bound falls below the norm."""

    def below(bound, count=200):
        rng = np.random.default_rng(5)
        kinds = ["normal", "clustered", "nearly parallel rows", "signs"]
        for k in range(count):
            A = KINDS[kinds[k % 4]](rng, *(int(n) for n in rng.integers(2, 9, size=2)))
            if Fraction(bound(A)) ** 2 < squared_norm_at_least(A):
                return True
        return False

    assert below(lambda A: float(np.linalg.svd(A, compute_uv=False)[0]))
    assert below(lambda A: math.sqrt(np.linalg.eigvalsh(A.T @ A)[-1]))
    monkeypatch.setattr(linear, "by_cholesky", lambda A: float(np.linalg.norm(A, 2) ** 2) * (1 - 1e-9))
    assert below(spectral_norm_bound)


@pytest.mark.parametrize("loss", [LogisticLoss(), MultinomialLoss(3)], ids=lambda loss: loss.name)
def test_rounding_of_an_image_is_within_its_share(loss):
    """The computed product against the exact one, for matrices that cancel; both neighbours' are off."""
    rng = np.random.default_rng(7)
    worst = 0.0
    for trial in range(25):
        d, m = int(rng.integers(1, 7)), int(rng.integers(1, 20))
        X, y = rng.normal(size=(9, d)), rng.integers(0, max(2, loss.n_outputs), 9).astype(float)
        bounded = ridge_minimizer(
            PrivateRecords(X, y), loss, alpha=10.0 ** rng.uniform(-6, 0), row_norm=1.0, adjacency="replace-one"
        )
        theta = bounded._value.plain().reshape(d, -1)
        # Rows nearly orthogonal to theta: the inner products cancel.
        A = rng.normal(size=(m, d)) * 10.0 ** rng.uniform(-3, 3, size=(m, 1))
        if trial % 2:
            A = A - np.outer(A @ theta[:, 0], theta[:, 0]) / max(float(theta[:, 0] @ theta[:, 0]), 1e-300)
        for form in (A, sp.csr_matrix(A)):
            image = linear_map(bounded, form, norm=0.0)  # of its bound, the rounding is left
            exact = [
                [sum(Fraction(float(a)) * Fraction(float(t)) for a, t in zip(row, c)) for c in theta.T]
                for row in A
            ]
            computed = image._value.plain().reshape(m, -1)
            error = math.sqrt(
                sum((Fraction(float(z)) - e) ** 2 for r, x in zip(computed, exact) for z, e in zip(r, x))
            )
            assert 2 * error <= image.l2
            worst = max(worst, 2 * error / max(image.l2, 1e-300))
    assert worst > 1e-3  # the errors are there
