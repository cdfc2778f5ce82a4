"""DP-SGD: steps along released sums of clipped gradients of Poisson batches (Abadi et al. 2016).

A step draws a batch, sums the clipped gradients of its units, adds Gaussian noise and divides by the expected size
of a batch. The rest is post-processing. The same loop runs without noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from skdp.nn.optimizers import Average, Optimizer, Rule
from skdp.privacy import (
    Batch,
    BatchGroup,
    BatchPlan,
    Bounded,
    PrivacySession,
    PrivateRecords,
    factor,
)

if TYPE_CHECKING:
    from skdp.nn.network import Network
    from skdp.nn.task import NetTask

__all__ = ["ClippedMean", "Clipping", "FewEntries", "Gradient", "train"]

Vector = NDArray[np.float64]
# Of a step and released parameters, in float32: the released gradient.
Gradient = Callable[[int, NDArray[np.float32]], "Vector | FewEntries"]
# Of rows and targets: the pieces of their gradients.
Pieces = Callable[[Any, Any], Sequence[Any]]
Monitor = Callable[[int, Vector], None]


class FewEntries(NamedTuple):
    """A released gradient that is 0 but for some entries.

    Attributes
    ----------
    positions : ndarray of int64
        Different ones.
    values : ndarray of float64
    """

    positions: NDArray[np.int64]
    values: Vector

    def dense(self, size: int) -> Vector:
        """The gradient as a vector."""
        found = np.zeros(size)
        found[self.positions] = self.values
        return found


@dataclass(frozen=True)
class Clipping:
    """How gradients are clipped.

    Attributes
    ----------
    norm : float
        Largest l2 norm of what a unit adds.
    method : str
        "materialized", "ghost", "microbatch", "one-by-one" or "projections", as
        `PrivateRecords.gradient_sum` has them.
    microbatch_size : int
        Records whose mean gradient is clipped as one, by "microbatch" alone.
    layers : tuple of {"materialized", "ghost"}
        What each layer of a net gives.
    """

    norm: float
    method: str = "materialized"
    microbatch_size: int = 1
    layers: tuple[str, ...] = ()

    @property
    def together(self) -> int:
        """How many records are clipped as one: the sum is over so many times fewer gradients."""
        return self.microbatch_size if self.method == "microbatch" else 1

    def moves(self, adjacency: str) -> float:
        """Clip norms that separate the sums of neighbouring data sets, as the session counts them."""
        return (2.0 if self.method == "microbatch" else 1.0) * factor(adjacency)

    def options(self) -> dict[str, Any]:
        """Keyword arguments of `PrivateRecords.gradient_sum`."""
        found: dict[str, Any] = {"clipping": self.method}
        if self.method == "microbatch":
            found["microbatch_size"] = self.microbatch_size
        return found


@dataclass(frozen=True)
class ClippedMean:
    """A step's gradient is the noisy mean of clipped gradients: DP-SGD.

    Another way to release a gradient is a file with a class like this one, which `NetFit._method` chooses.

    Attributes
    ----------
    clipping : Clipping
    """

    clipping: Clipping

    @property
    def norm(self) -> float:
        """Largest l2 norm of what a unit adds to a released sum."""
        return self.clipping.norm

    @property
    def scans(self) -> bool:
        """Whether entries are chosen by the sparse vector technique."""
        return False

    def first(self, n_iter: int, batch_size: int) -> tuple[BatchGroup, ...]:
        """Releases before those of `group`, of the ``n_iter`` that there are together."""
        return ()

    def group(
        self, n_iter: int, batch_size: int, n_projections: int = 0, size: int = 0
    ) -> BatchGroup:
        """What `PrivacySession.plan_batches` plans, from public numbers; ``size`` is that of a gradient."""
        return BatchGroup(n_iter, batch_size, n_projections=n_projections)

    def noise(self, plans: Sequence[BatchPlan], moves: float) -> tuple[float, float]:
        """Standard deviation in an entry of a step's gradient, and what the first release adds to all steps.

        Parameters
        ----------
        plans : sequence of BatchPlan
        moves : float
            Clip norms that separate the sums of neighbouring data sets.
        """
        plan = plans[-1]
        scale = moves * self.clipping.together / plan.batch_size
        # The gradient is the last of a batch's statistics.
        return scale * plan.parts[-1].noise_multiplier * self.norm, 0.0

    @property
    def changed(self) -> float:
        """Part of the parameters that a step changes, if it is known before the fit."""
        return 1.0

    def facts(self) -> dict[str, object]:
        """Public numbers for the report."""
        return {}

    def sparsity(self, plan: BatchPlan, adjacency: str, size: int) -> float:
        """Part of the ``size`` trained parameters that rests in the last epoch."""
        return 0.0

    def warn_before(self, plans: Sequence[BatchPlan], network: "Network", adjacency: str) -> None:
        """Warn where public numbers say that the steps will be of little use; nothing is spent yet."""

    def begin(
        self,
        session: PrivacySession,
        records: PrivateRecords,
        task: "NetTask",
        *plans: BatchPlan,
    ) -> Gradient:
        """The function that releases the gradient of step t = 0, 1, ... at released parameters."""
        (plan,) = plans
        gradients_at = task.gradients_at(self.clipping.layers)

        def gradient(t: int, theta: NDArray[np.float32]) -> Vector:
            batch = session.draw(plan, records, places=True)
            mean = self.mean(records, gradients_at(theta), plan, batch, size=theta.size)
            return session.gaussian(mean, plan)

        return gradient

    def mean(
        self,
        records: PrivateRecords,
        function: Pieces,
        plan: BatchPlan,
        batch: Batch,
        *,
        norm: float | None = None,
        **options: Any,
    ) -> Bounded:
        """Mean of a batch's clipped gradients, before any noise.

        Parameters
        ----------
        function : callable
            Gives the pieces of gradients, as `PrivateRecords.gradient_sum` calls it.
        norm : float, default=None
            Largest norm of what a unit adds; None is the clip norm.
        **options : dict
            Of `PrivateRecords.gradient_sum`, with its ``size``.
        """
        norm = self.clipping.norm if norm is None else norm
        total = records.gradient_sum(
            function, norm, batch=batch, **self.clipping.options(), **options
        )
        return total * (self.clipping.together / plan.batch_size)


def train(
    gradient: Gradient,
    start: Vector,
    n_iter: int,
    rule: Rule,
    learning_rate: float,
    *,
    tensors: tuple[slice, ...] = (),
    monitor: Monitor | None = None,
) -> Vector:
    """Take steps along released gradients; return the parameters to keep.

    Parameters
    ----------
    gradient : callable
        ``gradient(t, theta)`` releases the gradient of step t at the parameters ``theta``, of float32 and
        read-only. Where it returns `FewEntries` and ``rule`` is local, a step costs as much as these entries.
    start : ndarray of shape (n_parameters,)
        Public: independent of the records, or released.
    n_iter : int
        Number of steps.
    rule : Rule
        What becomes of the released gradients.
    learning_rate : float
        Step size of the first step.
    tensors : tuple of slice, default=()
        Where each parameter tensor lies, for Laplacian smoothing.
    monitor : callable, default=None
        Called with the step and the released parameters, which the next step changes in place.

    Returns
    -------
    ndarray of shape (n_parameters,)
    """
    theta = np.array(start, dtype=np.float64)
    here = _read_only(theta.astype(np.float32))
    optimizer = Optimizer(rule, learning_rate, n_iter, tensors)
    kept = Average(rule.average)
    for t in range(n_iter):
        found = gradient(t, here)
        if isinstance(found, FewEntries) and rule.local:
            inside = optimizer.advance_entries(theta, *found, here)
        else:
            dense = found.dense(theta.size) if isinstance(found, FewEntries) else found
            here = np.empty(theta.size, dtype=np.float32)  # a method may keep the last one
            inside = optimizer.advance(theta, dense, here)
        if not inside:
            raise FloatingPointError(
                f"the parameters overflowed in step {t + 1}: use a smaller learning_rate. What was released "
                "before stays paid for"
            )
        _read_only(here)
        kept.add(theta)
        if monitor is not None:
            monitor(t, theta)
    return kept.output()


def _read_only(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """No layer keeps numbers in the parameters that it is given."""
    values.flags.writeable = False
    return values
