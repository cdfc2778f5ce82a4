"""A look at whether a net's numbers depend on a record's place, with the BLAS and the shapes at hand.

Under Poisson sampling a record that is drawn or not moves others. If their bits changed, the sum would change by
more than the clip norm. Slabs, and products of one record, avoid that with OpenBLAS. Another BLAS may differ.
"""

import numpy as np

from skdp.nn.arrays import Array
from skdp.nn.network import Network
from skdp.nn.products import SLAB

__all__ = ["check_places"]

BLOCK = 64  # records at once
SIZES = (1, SLAB - 1, SLAB + 1, BLOCK - 1)  # other numbers of records


def check_places(network: Network, method: str = "materialized") -> None:
    """Compute the same made-up records in other places and numbers, and compare every bit.

    Parameters
    ----------
    network : Network
    method : {"materialized", "ghost"}, default="materialized"

    Raises
    ------
    RuntimeError
        If a record's numbers depend on its place. Private training with this net would break its claim.
    """
    rng = np.random.default_rng(0)  # nothing here is private
    flat = rng.standard_normal(network.n_parameters).astype(network.dtype) / 8
    x = rng.standard_normal((BLOCK, *network.shapes[0])).astype(network.dtype)
    slope = rng.standard_normal((BLOCK, *network.shapes[-1])).astype(network.dtype)
    expected = _numbers(network, flat, x, slope, method)
    for move in range(1, SLAB + 1):
        order = np.roll(np.arange(BLOCK), move)
        _compare(expected, _numbers(network, flat, x[order], slope[order], method), order)
    for size in SIZES:
        some = np.arange(BLOCK - size, BLOCK)
        _compare(expected, _numbers(network, flat, x[some], slope[some], method), some)


def _numbers(network: Network, flat: Array, x: Array, slope: Array, method: str) -> list[Array]:
    """Return the outputs and everything that the pieces hold, a row for each record."""
    outputs: list[Array] = []

    def output_derivative(y: Array) -> Array:
        outputs.append(y)
        return y * slope

    pieces = network.record_gradients(flat, x, output_derivative, method)
    return outputs + [values for piece in pieces for values in vars(piece).values()]


def _compare(expected: list[Array], found: list[Array], order: Array) -> None:
    for one, other in zip(expected, found, strict=True):
        if not np.array_equal(one[order], other):
            raise RuntimeError(
                "a record's numbers depend on its place among others, with the BLAS library that this NumPy uses, "
                "so the privacy of the fit could not be claimed; install NumPy from PyPI, which brings OpenBLAS"
            )
