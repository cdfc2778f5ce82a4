"""Gradient inversion: the input of a net's first dense layer, from the gradient of one record."""

from numbers import Integral

import numpy as np

from skdp.base import check_number


def invert_dense_gradient(
    weight: np.ndarray,
    bias: np.ndarray,
    *,
    kept: tuple[np.ndarray, np.ndarray] | None = None,
    signal: np.ndarray | None = None,
    input_range: tuple[float, float] | None = None,
    max_iter: int = 100,
) -> np.ndarray:
    """Reconstruct the input of a dense layer from the gradient of one record.

    The gradient of a weight of one record is the outer product of its input x and a signal that comes back from
    the layers above, and the gradient of the bias is the signal itself. The quotient shows the input, also where
    the gradient was clipped. Noise, and a mask that hides coordinates, make it an estimate by least squares.

    It measures the leakage of one gradient, and a large error is no proof: another attack may do better. No
    estimator of skdp releases the gradient of a single record. Batches of one record, or an owner who has only
    one, would.

    Parameters
    ----------
    weight : ndarray of shape (n_inputs, n_units)
        Gradient of the weight, possibly with noise.
    bias : ndarray of shape (n_units,)
        Gradient of the bias, likewise.
    kept : pair of bool ndarrays, default=None
        Which entries of ``weight`` and ``bias`` the attacker sees. None means all. The others are ignored.
    signal : ndarray of shape (n_units,), default=None
        The signal, if the attacker knows it. This is the setting of the theorem in Notes. By default it is
        estimated, by turns with the input.
    input_range : pair of float, default=None
        Range of the inputs, if the attacker knows it.
    max_iter : int, default=100
        Largest number of turns.

    Returns
    -------
    ndarray of shape (n_inputs,)
        The estimated input. It is NaN where the attacker sees nothing that depends on it. It is NaN everywhere if
        the signal is to be estimated and nothing of the bias is seen: the scale is then unknown.

    Raises
    ------
    TypeError, ValueError
        If shapes do not fit, or an array has entries that are not finite.

    Notes
    -----
    With a known signal k, and noise of standard deviation s on every entry, the squared error of an input is on
    average s^2 E[1 / ||m k||^2], where m is the mask of its entries. If a share r of its entries is hidden in each
    mask, so that exactly (1 - r) d of d are left, this is at least s^2 / ((1 - r) ||k||^2) by Jensen's inequality:
    theorem 5.1 of Zhu and Blaschko. If each entry is hidden with probability r, all may be hidden. The theorem
    then holds only if this counts as an infinite error. The inputs that can be estimated have at least 1 - r^d
    times this error (for d = 1 it is s^2 / k^2, whatever r is).

    References
    ----------
    Zhu, J. and Blaschko, M. B. (2023), "Improving differentially private SGD via randomly sparsified gradients",
    Transactions on Machine Learning Research, section 5.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.audit import invert_dense_gradient
    >>> x, signal = np.array([0.0, 1.0, 0.5]), np.array([0.2, -0.1])
    >>> invert_dense_gradient(np.outer(x, signal), signal).round(6).tolist()
    [0.0, 1.0, 0.5]
    """
    rows, seen = _observed(weight, bias, kept)
    check_number("max_iter", max_iter, Integral, low=1)
    low, high = (-np.inf, np.inf) if input_range is None else input_range
    if not low < high:
        raise ValueError(f"input_range must be a pair (low, high) with low < high, got {input_range!r}")
    if signal is not None:
        given = np.asarray(signal, dtype=np.float64)
        if given.shape != rows.shape[1:] or not np.isfinite(given).all():
            raise ValueError(f"signal must be finite and of shape {rows.shape[1:]}")
        return np.clip(_inputs(rows, seen, given), low, high)
    found = np.full(len(rows) - 1, np.nan)
    if not seen[-1].any():
        return found
    back = _first_signal(rows, seen)
    for _ in range(max_iter):
        before, found = found, np.clip(_inputs(rows, seen, back), low, high)
        # The bias is the weight of an input that is always 1.
        known = np.append(np.nan_to_num(found), 1.0)
        if np.abs(known[:-1] - np.nan_to_num(before)).max() <= 1e-9 * np.abs(known).max():
            break
        back = _ratio(known @ rows, (known**2) @ seen, 0.0)
    return found


def _observed(
    weight: np.ndarray, bias: np.ndarray, kept: tuple[np.ndarray, np.ndarray] | None
) -> tuple[np.ndarray, np.ndarray]:
    """The gradient, 0 where hidden, with the bias as its last row; and a mask of visible entries, as 0 and 1."""
    weight, bias = np.asarray(weight, dtype=np.float64), np.asarray(bias, dtype=np.float64)
    if weight.ndim != 2 or bias.shape != weight.shape[1:]:
        raise ValueError(
            "weight and bias must have shapes (n_inputs, n_units) and (n_units,), got "
            f"{weight.shape} and {bias.shape}"
        )
    given = (np.ones(weight.shape, bool), np.ones(bias.shape, bool)) if kept is None else kept
    masks = [np.asarray(mask) for mask in given]
    if [mask.shape for mask in masks] != [weight.shape, bias.shape] or any(
        mask.dtype != np.bool_ for mask in masks
    ):
        raise ValueError("kept must be a pair of bool arrays with the shapes of weight and bias")
    seen = np.vstack([masks[0], masks[1][None]])
    rows = np.where(seen, np.vstack([weight, bias[None]]), 0.0)
    if not np.isfinite(rows).all():
        raise ValueError("weight and bias must be finite")
    return rows, seen.astype(np.float64)


def _inputs(rows: np.ndarray, seen: np.ndarray, signal: np.ndarray) -> np.ndarray:
    """Least squares for each input, given the signal."""
    return _ratio(rows[:-1] @ signal, seen[:-1] @ signal**2, np.nan)


def _first_signal(rows: np.ndarray, seen: np.ndarray) -> np.ndarray:
    """The best approximation of rank one, scaled so that the input of the bias is 1."""
    left, sizes, right = np.linalg.svd(rows, full_matrices=False)
    found = sizes[0] * left[-1, 0] * right[0]
    return found / max(seen.mean(), 1.0 / seen.size)


def _ratio(above: np.ndarray, below: np.ndarray, otherwise: float) -> np.ndarray:
    """The quotient, with a value for 0 / 0."""
    return np.divide(above, below, out=np.full(above.shape, otherwise), where=below > 0.0)
