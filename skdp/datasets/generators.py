"""Synthetic settings of Wang and Gu (2019): sparse regression and classification.

X has independent entries, uniform on (-2, 2); rows longer than 2 s* are scaled back to 2 s*; the
true vector theta* has s* entries uniform on (-1, 1) at random positions.
"""

from numbers import Integral, Real

import numpy as np
from scipy.special import expit
from sklearn.utils import check_random_state, check_scalar

from skdp._docs import document


def _make_design(
    n_samples: int, n_features: int, n_informative: int, rng: np.random.RandomState
) -> tuple[np.ndarray, np.ndarray]:
    """X and theta* of the published setting."""
    check_scalar(n_samples, "n_samples", Integral, min_val=1)
    check_scalar(n_features, "n_features", Integral, min_val=1)
    check_scalar(n_informative, "n_informative", Integral, min_val=1, max_val=n_features)
    X = rng.uniform(-2.0, 2.0, size=(n_samples, n_features))
    longest = 2.0 * n_informative
    norms = np.sqrt(np.einsum("ij,ij->i", X, X))
    X *= np.minimum(1.0, longest / norms)[:, np.newaxis]
    theta = np.zeros(n_features)
    support = rng.choice(n_features, size=n_informative, replace=False)
    theta[support] = rng.uniform(-1.0, 1.0, size=n_informative)
    return X, theta


@document()
def make_sparse_regression(
    n_samples: int = 1000,
    n_features: int = 1000,
    *,
    n_informative: int = 10,
    noise_variance: float = 0.1,
    coef: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, ...]:
    """Generate the published sparse regression problem ``y = X theta* + N(0, noise_variance)``.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of rows. Published settings (n, d, s*): (1000, 1000, 10) and (5000, 5000, 30).
    n_features : int, default=1000
        Number of columns.
    n_informative : int, default=10
        s*, the number of non-zero entries of theta*; rows have Euclidean norm at most 2 s*.
    noise_variance : float, default=0.1
        Variance (not standard deviation) of the noise on the target, at least 0.
    coef : bool, default=False
        Also return theta*.
    random_state : int, RandomState instance or None, default=None
        Seed of the data.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,)
        The target.
    coef : ndarray of shape (n_features,)
        theta*, with ``coef=True``.

    Raises
    ------
    TypeError, ValueError
        A size that is no positive integer, more informative than all features, a negative variance.

    References
    ----------
    Wang, L. and Gu, Q. (2019), "Differentially private iterative gradient hard thresholding for
    sparse learning", IJCAI, synthetic data.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y, theta = make_sparse_regression(50, 200, n_informative=5, coef=True, random_state=0)
    >>> int(np.count_nonzero(theta)), bool(np.linalg.norm(X, axis=1).max() <= 10 + 1e-9)
    (5, True)
    """
    check_scalar(noise_variance, "noise_variance", Real, min_val=0)
    rng = check_random_state(random_state)
    X, theta = _make_design(n_samples, n_features, n_informative, rng)
    y = X @ theta + rng.normal(0.0, np.sqrt(noise_variance), size=n_samples)
    return (X, y, theta) if coef else (X, y)


@document(make_sparse_regression)
def make_sparse_classification(
    n_samples: int = 1000,
    n_features: int = 1000,
    *,
    n_informative: int = 10,
    coef: bool = False,
    random_state: int | np.random.RandomState | None = None,
) -> tuple[np.ndarray, ...]:
    """Generate the published sparse logistic problem ``P(y = 1) = 1 / (1 + exp(<x, theta*>))``.

    Note the sign, which is as printed: a large ``<x, theta*>`` makes label 1 *unlikely*, so a
    classifier finds coefficients of the direction ``-theta*``.

    Parameters
    ----------
    {n_samples} {n_features} {n_informative} {coef} {random_state}

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The rows.
    y : ndarray of shape (n_samples,), int64
        Labels 0 and 1.
    coef : ndarray of shape (n_features,)
        theta*, with ``coef=True``.

    Raises
    ------
    TypeError, ValueError
        A size that is no positive integer, more informative than all features.

    Examples
    --------
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(100, 50, n_informative=3, random_state=0)
    >>> X.shape, sorted(set(y.tolist()))
    ((100, 50), [0, 1])
    """
    rng = check_random_state(random_state)
    X, theta = _make_design(n_samples, n_features, n_informative, rng)
    y = (rng.uniform(size=n_samples) < expit(-(X @ theta))).astype(np.int64)
    return (X, y, theta) if coef else (X, y)
