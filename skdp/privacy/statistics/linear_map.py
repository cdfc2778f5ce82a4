"""A public matrix times a statistic, and the certified spectral norm that its sensitivity needs.

Privacy
-------
If two neighbours' statistics differ by at most s in l2 norm, their images under a public matrix A differ by at
most ||A||_2 s (the columns of a matrix statistic: the same, in Frobenius norm). ||A||_2 must be bounded from
above: power iteration, Lanczos and svds approach it from below and would give too little noise.
"""

import contextlib
import math
from itertools import chain, count

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from skdp.kernels.protocols import Floats, Matrix, SparseMatrix, issparse
from skdp.privacy.bounded import BoundedStatistic, rounded_source

__all__ = ["canonical_csr", "linear_map", "spectral_norm_bound"]

UNIT = 2.0**-52  # twice the unit roundoff
LARGEST_GRAM = 6000  # rows of a Gram matrix, which then takes 300 MB
LARGEST_FULL = 500  # rows up to which all eigenvalues are computed; a choice, not tuned
NUMERICAL_ERRORS = (1e-9, 1e-6, 1e-4, 1e-3, 1e-2)  # relative margins above the estimated square of the norm


def linear_map(bounded: BoundedStatistic, matrix: Matrix, *, norm: float | None = None) -> BoundedStatistic:
    """Make the statistic ``matrix @ bounded``.

    Parameters
    ----------
    bounded : BoundedStatistic
        Of shape (p,) or (p, K), with a proven sensitivity (`BoundedStatistic.with_sensitivity`,
        `skdp.privacy.statistics.ridge_minimizer`). A sum over records is refused: release that first.
    matrix : ndarray or CSR matrix of shape (m, p)
        Public.
    norm : float, default=None
        `spectral_norm_bound` of the matrix, if it is known already.

    Returns
    -------
    BoundedStatistic
        Of shape (m,) or (m, K). Its l2 bound is ``norm * bounded.l2`` and the rounding of the product.

    Raises
    ------
    TypeError
        If the statistic is a sum over records.
    ValueError
        If shapes do not fit, or nothing bounds the size of the statistic.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.privacy import PrivateRecords
    >>> from skdp.privacy.statistics import ridge_minimizer
    >>> records = PrivateRecords(np.eye(4), np.array([0.0, 1.0, 1.0, 1.0]))
    >>> options = dict(alpha=0.5, row_norm=1.0, adjacency="replace-one")
    >>> labels = linear_map(ridge_minimizer(records, LogisticLoss(), **options), 2 * np.eye(4))
    >>> round(labels.l2, 4)
    2.0
    """
    if bounded.adjacency is None:
        raise TypeError("a sum over records has no proven sensitivity of its plain value")
    matrix = canonical_csr(matrix) if issparse(matrix) else np.asarray(matrix, dtype=np.float64)
    source, (m, p) = bounded._value, matrix.shape
    if bounded.shape[0] != p:
        raise ValueError(f"the matrix has {p} columns, the statistic {bounded.shape[0]} rows")
    if math.isinf(source.magnitude):
        raise ValueError("a public bound on the statistic's entries is needed")
    norm = spectral_norm_bound(matrix) if norm is None else float(norm)
    length = int(np.diff(matrix.indptr).max(initial=0)) if issparse(matrix) else p
    size = source.magnitude * math.sqrt(bounded.size) * (1 + (bounded.size + 8) * UNIT)
    # Inner products are off by length u times the norms; both neighbours' are.
    rounding = 2 * (length + 2) * UNIT * frobenius(matrix) * size
    image = rounded_source(
        lambda: np.asarray(matrix @ source.plain()),
        owner=source.owner,
        unit=source.unit,
        needs_public_n=source.needs_public_n,
    )
    return BoundedStatistic.from_source(
        image,
        (m, *bounded.shape[1:]),
        l2=(norm * bounded.l2 + rounding) * (1 + 2.0**-40),
        adjacency=bounded.adjacency,
    )


def spectral_norm_bound(matrix: Matrix) -> float:
    """Bound the largest singular value from above.

    Parameters
    ----------
    matrix : ndarray or CSR matrix of shape (m, p)
        Public.

    Returns
    -------
    float
        At least the norm, whatever the matrix (inf where that is beyond float64), and at most 1 % above it if one
        side is at most 6000 (usually by less than 1e-6). Beyond that the bound is within 1 % only for matrices
        whose entries have one sign, such as word counts.

    Raises
    ------
    ValueError
        If an entry is not finite.

    Notes
    -----
    With B the Gram matrix of the smaller side, ``s I - B`` is positive definite if the Cholesky factorisation
    of the computed matrix less a margin succeeds (Rump 2006): the margin is the rounding error of B, at
    most ``k u ||A||_F^2`` for inner products of length k, and the error of the factorisation, at most
    ``(r + 2) u`` times the trace. An eigenvalue routine only proposes s. Larger matrices:
    ``||A||_2 <= || |A| ||_2``, and for a nonnegative matrix ``||A||_2^2 <= max_i (A^T A x)_i / x_i`` for any x > 0
    (Collatz and Wielandt), sums without cancellation; the Frobenius norm if that is smaller.

    References
    ----------
    S. M. Rump, "Verification of positive definiteness", BIT Numerical Mathematics 46 (2006).

    Examples
    --------
    >>> import numpy as np
    >>> 5.0 <= spectral_norm_bound(np.array([[3.0, 0.0], [4.0, 0.0]])) <= 5.0 * (1 + 1e-8)
    True
    """
    A: Matrix
    if issparse(matrix):
        A = canonical_csr(matrix)
        top = float(abs(A.data).max(initial=0.0))
    else:
        A = np.asarray(matrix, dtype=np.float64)
        top = max(float(A.max(initial=0.0)), -float(A.min(initial=0.0)))
    if not math.isfinite(top):
        raise ValueError("the matrix contains NaN or infinity")
    if top == 0:
        return 0.0
    # By a power of two: exact, and no square over- or underflows. That power itself may be no float64.
    exponent = math.frexp(top)[1] - 1
    if issparse(A):
        A.data = np.ldexp(A.data, -exponent)
    else:
        A = np.ldexp(A, -exponent)
    square = by_cholesky(A) if min(A.shape) <= LARGEST_GRAM else by_nonnegative_bound(A)
    bound = math.sqrt(min(square, frobenius(A) ** 2)) * (1 + 8 * UNIT)
    with np.errstate(over="ignore"):
        return float(np.nextafter(np.ldexp(bound, exponent), np.inf))


def canonical_csr(matrix: SparseMatrix) -> SparseMatrix:
    """Copy a sparse matrix as CSR of float64 whose duplicate entries are added.

    A product adds duplicates, a sum of squares over the stored entries does not. scipy's cached facts about the
    matrix are not used, because the caller may have changed its arrays since.
    """
    A = matrix.tocsr()
    data = A.data.astype(np.float64)
    A = sp.csr_matrix((data, A.indices.copy(), A.indptr.copy()), shape=A.shape)
    A.sum_duplicates()
    return A


def frobenius(matrix: Matrix) -> float:
    """Frobenius norm, rounded upward; of a sparse matrix in canonical form."""
    values = matrix.data if issparse(matrix) else matrix
    flat = np.ravel(values, order="K")
    return math.sqrt(float(np.dot(flat, flat))) * (1 + (flat.size + 8) * UNIT)


def by_cholesky(A: Matrix) -> float:
    """Bound the largest eigenvalue of the smaller Gram matrix; entries of A are below 2."""
    if A.shape[0] < A.shape[1]:
        A = A.T
    gram = A.T @ A
    gram = gram.toarray() if issparse(gram) else np.asarray(gram)
    r, length = gram.shape[0], A.shape[0]
    total = frobenius(A) ** 2  # also bounds the trace
    estimate = largest_ritz_value(gram)
    for excess in chain(NUMERICAL_ERRORS, (2.0**k for k in count())):
        bound = estimate * (1 + excess)
        shifted = -gram
        # s I - B, less: error of the Gram matrix, of this difference, and of the factorisation.
        error = (length + 8) * UNIT * total + (r + 8) * UNIT * (r * bound + total)
        shifted[np.diag_indices(r)] += bound - error
        with contextlib.suppress(np.linalg.LinAlgError):
            scipy.linalg.cholesky(shifted, lower=True, overwrite_a=True, check_finite=False)
            break
    return bound


def largest_ritz_value(gram: Floats) -> float:
    """Propose the largest eigenvalue; of large matrices by subspace iteration, from below."""
    r = gram.shape[0]
    if r <= LARGEST_FULL:
        return float(np.linalg.eigvalsh(gram)[-1])
    block = np.random.default_rng(0).normal(size=(r, 8))
    values = np.ones(1)
    for _ in range(40):
        basis = np.linalg.qr(block)[0]
        block = gram @ basis
        before, values = values[-1], np.linalg.eigvalsh(basis.T @ block)
        if abs(values[-1] - before) <= 1e-10 * values[-1]:
            break
    return float(max(values[-1], gram.diagonal().max()))


def by_nonnegative_bound(A: Matrix) -> float:
    """Bound the squared norm of ``abs(A)`` by the quotients of a positive vector."""
    A = abs(A) if issparse(A) else np.abs(A)
    rounding = 1 + (sum(A.shape) + 16) * UNIT

    def times(x: Floats) -> Floats:
        return np.asarray(A.T @ (A @ x)).ravel()

    # Only proposes a good x; the bound holds for any. Entries that are 0 everywhere need no quotient.
    top = np.ones(A.shape[1])
    for _ in range(30):
        top = times(top)
        top /= np.linalg.norm(top)
    reached = float(top @ times(top))
    # x = (I - A^T A / s)^{-1} 1 has quotients s (1 - 1 / x_i) < s: the series, begun near its sum.
    s, best = 1.004 * reached, math.inf
    x = 1.0 + top * (float(top.sum()) / (1 - 1 / 1.004))
    for _ in range(100):
        image = times(x)
        best = min(best, float((image / x).max()) * rounding)
        if best <= 1.01 * reached:
            break
        x = 1.0 + image / s
    return best
