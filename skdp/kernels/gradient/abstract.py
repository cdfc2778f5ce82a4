"""The contract of a kernel of gradient sums, whatever the storage and the device."""

from skdp.kernels.gradient.loss_sums import LossSums
from skdp.kernels.gradient.recursive_sums import RecursiveSums

__all__ = ["GradientKernel"]


class GradientKernel(RecursiveSums, LossSums):
    """Sums over fixed rows in fixed point; made by :func:`gradient_kernel`, once per fit.

    A kernel knows the rows, their targets, weights and groups, and the loss. It adds up clipped gradients
    (:meth:`clipped_sum`), combinations of a gradient and its change since the last step
    (:meth:`recursive_sum`) and clipped losses (:meth:`loss_sums`). :meth:`plain_sum` and :meth:`norms` are
    not private by themselves.

    Attributes
    ----------
    n_units : int
        Number of units whose gradients are clipped: rows, or groups.
    n_rows : int
        Number of rows.
    shape : tuple of int
        Shape of theta and of every sum: (p,), or (p, K) for K outputs. The intercept is the last row.

    Notes
    -----
    **Privacy.** Each method proves, in its own docstring or in that of its class, by how much one unit can
    change its result. The proofs assume nothing about the loss or the data. What a unit adds is a function
    of that unit and of public numbers alone: not of the other units, their number or their order.
    """
