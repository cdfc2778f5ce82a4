"""The known noise of coefficients after several steps, and after a common factor."""

import numpy as np
import pytest

from skdp.linear_model.auto.scatter import Move, along_direction, covariances, replaced


def made(p, q, rng):
    vectors = np.linalg.qr(rng.normal(size=(p, p)))[0]
    return Move(vectors, rng.uniform(0.2, 1.0, (p, q)), rng.uniform(0.1, 1.0, (p, q)))


def test_covariances_are_those_of_a_linear_recursion():
    """Matrices in the coordinates of the coefficients, of which two appear before the last one."""
    rng, agreement = np.random.default_rng(0), np.array([0.5, 0.9])
    first, grown = made(3, 2, rng), made(5, 2, rng)
    last = grown._replace(kept=rng.uniform(0.2, 1.0, (5, 2)), added=rng.uniform(0.1, 1.0, (5, 2)))
    found = covariances([first, grown, last], agreement)
    old = [0, 1, 4]
    for k in range(2):
        u = first.vectors
        expected = np.zeros((5, 5))
        expected[np.ix_(old, old)] = u * first.added[:, k] @ u.T
        u = grown.vectors
        for move in (grown, last):
            stays = u * (1.0 - move.kept[:, k] * agreement[k]) @ u.T
            expected = stays @ expected @ stays.T + u * move.added[:, k] @ u.T
        np.testing.assert_allclose(found[k], expected, rtol=1e-12, atol=1e-12)
        more = stays @ expected @ stays.T
        assert not np.allclose(found[k], more, rtol=0.1)


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_a_released_factor_takes_the_place_of_that_of_the_steps(noise):
    """The noise of both outputs together is projected, and a common one is added."""
    rng, p, q = np.random.default_rng(1), 4, 2
    root = rng.normal(size=(q, p, p))
    along, coef = root @ root.transpose(0, 2, 1), rng.normal(size=(p, q))
    metric = np.cov(rng.normal(size=(p, 9)))
    weights, row = np.array([0.7, 0.2]), np.array([0.6, -0.8])
    found = replaced(
        np.tensordot(row**2, along, 1), row, coef, along_direction(along, coef, metric, weights), noise
    )
    both, flat = np.zeros((p * q, p * q)), coef.T.ravel()
    for k in range(q):
        both[k * p : (k + 1) * p, k * p : (k + 1) * p] = along[k]
    curved = np.kron(np.diag(weights), metric)
    stays = np.eye(p * q) - np.outer(flat, flat @ curved) / (flat @ curved @ flat)
    full = stays @ both @ stays.T + noise**2 * np.outer(flat, flat)
    of_row = np.kron(row, np.eye(p))
    np.testing.assert_allclose(found, of_row @ full @ of_row.T, rtol=1e-10, atol=1e-12)
