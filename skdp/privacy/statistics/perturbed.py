"""The minimiser of an l2-regularised sum of losses with a random linear term, and the error of the computed one.

F(theta) = sum_i l_i(theta) + (penalty / 2) ||theta||^2 + <b, theta>, solved as the mean over the public count n by
the solver of `skdp.kernels.minimizer`. Its proof needs only bounds on the gradient and on rounding errors. Here
both include b / n. No entry of b is drawn beyond `REACH` standard deviations, so the bounds are public.

The computed point satisfies ||grad F|| <= n tau with b the drawn grid values. These are a continuous Gaussian
vector rounded to the grid, so for that vector ||grad F|| <= n tau + sqrt(p) grid / 2, and the computed point is
within eta = (n tau + sqrt(p) grid / 2) / penalty of the exact minimiser theta*, on any data set. Given theta*, the
computed points of neighbours are therefore at most 2 eta apart (theory page "Approximate minima perturbation").

Gradients are summed in blocks of rows and these as a binary tree: the rounding error of a sum then does not grow
with the number of rows, and eta is small enough for a second noise that does not matter.
"""

import math
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from skdp.kernels.minimizer import UNIT, Domain, lipschitz, solve, threshold
from skdp.kernels.protocols import Floats
from skdp.losses import Loss
from skdp.privacy.rows import HoldsRows, Rows
from skdp.privacy.statistics.minimizer import objective_of

__all__ = ["PerturbedMinimizer", "perturbed_minimizer"]


LIMIT = 1000.0  # bound of centred targets in Huber thresholds, which bounds the minimiser; a choice, not tuned
REACH = 14.0  # bound of an entry of b, in standard deviations; the sampler stops at 13.25
GAP = 1e-9  # tau over the largest gradient of one record, where rounding allows it


@dataclass(frozen=True, repr=False)
class PerturbedMinimizer:
    """An objective whose minimiser a session can release; made by `skdp.privacy.statistics.perturbed_minimizer`.

    Attributes
    ----------
    loss : object from `skdp.losses`
    penalty : float
    radius : float
        Bound on the norm of a clipped row with the intercept's feature.
    row_norm : float
    target_center : float
    n_parameters : int
    """

    loss: Loss
    penalty: float
    radius: float
    row_norm: float
    target_center: float
    n_parameters: int
    _rows: Rows

    def _domain(self, noise_std: float) -> "PerturbedDomain":
        return PerturbedDomain(self, noise_std)

    def __repr__(self) -> str:
        return (
            f"PerturbedMinimizer(loss={self.loss}, penalty={self.penalty:.6g}, "
            f"row_norm={self.row_norm:.6g}, n_parameters={self.n_parameters})"
        )

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("a PerturbedMinimizer holds private records and cannot be copied")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = _refuse  # type: ignore[assignment]


def perturbed_minimizer(
    records: HoldsRows, loss: Loss, *, penalty: float, row_norm: float, target_center: float = 0.0
) -> PerturbedMinimizer:
    """Objective for `PrivacySession.objective_perturbation`: sum of losses plus an l2 penalty.

    Rows are clipped to ``row_norm`` and the intercept's feature is appended; every coordinate is penalised.

    Parameters
    ----------
    records : PrivateRecords
    loss : LogisticLoss or HuberLoss
    penalty : float
        Weight of ``||theta||^2 / 2`` beside the **sum** of the losses, > 0.
    row_norm : float
        Largest l2 norm of a row, > 0.
    target_center : float, default=0.0
        Public or released number that is subtracted from the targets of a regression; then a target is
        scaled down with its row, and clipped to 1000 Huber thresholds.

    Returns
    -------
    PerturbedMinimizer
        Not an array: only a session can solve and release it.

    Raises
    ------
    ValueError
        For other losses, groups, sample weights, or numbers out of range.

    Notes
    -----
    **Privacy.** One record changes the gradient by at most the loss's Lipschitz constant times ``hypot(row_norm,
    intercept_value)``, twice that under replace-one. The theory page "Approximate minima perturbation" has the
    theorem.
    """
    rows = records._rows
    for name, value in (("penalty", penalty), ("row_norm", row_norm)):
        if not 1e-50 <= value <= 1e50:
            raise ValueError(f"{name} must be a number between 1e-50 and 1e50, got {value!r}")
    if loss.n_outputs != 1:
        raise ValueError("objective perturbation is proven for one linear predictor, not for softmax")
    if rows.shape.unit != "record":
        raise ValueError("objective perturbation protects records: a group's gradient has no one direction")
    if rows.weight is not None:
        raise ValueError("sample_weight is not supported: the objective weighs every record alike")
    lipschitz(loss)
    radius = math.hypot(row_norm, rows.shape.intercept or 0.0) * (1 + 2.0**-50)
    if not math.isfinite(target_center):
        raise ValueError(f"target_center must be finite, got {target_center!r}")
    return PerturbedMinimizer(
        loss, float(penalty), radius, float(row_norm), float(target_center), rows.shape.n_parameters, rows
    )


class PerturbedDomain(Domain):
    """The public constants of the mean objective with the linear term b / n.

    Attributes
    ----------
    push : float
        Largest norm of b / n.
    reach : float
        Largest norm of the minimiser.
    """

    gap = GAP

    def __init__(self, made: PerturbedMinimizer, noise_std: float) -> None:
        shape, p = made._rows.shape, made.n_parameters
        n = shape.n_units
        self.push = REACH * noise_std * math.sqrt(p) / n * (1 + 2.0**-40)
        mask = np.ones(p, dtype=bool)
        super().__init__(shape, made.loss, made.penalty / n, made.row_norm, mask)
        self.penalty, self.target_center = made.penalty, made.target_center

    def farthest(self, total_weight: float) -> float:
        """Largest norm of a point where F is at most F(0)."""
        start = self.loss.start_value  # the same for every record of a classification
        if start is None:
            start = LIMIT * threshold(self.loss) ** 2
        # alpha / 2 ||theta||^2 - push ||theta|| <= F(theta) <= F(0) <= total_weight start.
        root = math.sqrt(self.push**2 + 2 * self.alpha * total_weight * start)
        self.reach = (self.push + root) / self.alpha * (1 + 2.0**-40)
        self.reach = min(self.reach, super().farthest(total_weight))
        return self.reach

    def rounding(self, total_weight: float, size: float) -> float:
        """As for `Domain`, with the addition of b / n."""
        return super().rounding(total_weight, size) + 4 * UNIT * self.push

    def targets(self, y: Floats, kept: Floats) -> Floats:
        """Centred and clipped; a row that was scaled down takes its target along."""
        if self.loss.is_classification:
            return y
        limit = LIMIT * threshold(self.loss)
        with np.errstate(all="ignore"):  # an infinite difference times 0 is no number
            return np.clip(np.nan_to_num((y - self.target_center) * kept), -limit, limit)

    def minimizer(self, rows: Rows, b: Floats) -> Floats:
        """Read the records and return the computed minimiser."""
        return solve(objective_of(self, rows, b / self.n_units), self.tau)

    def distance(self, grid: float) -> float:
        """Eta: the largest distance of the computed point from the exact minimiser."""
        shift = 0.501 * math.sqrt(self.width) * grid  # a thousandth for the product in float64
        return (self.n_units * self.tau + shift) / self.penalty * (1 + 2.0**-40)
