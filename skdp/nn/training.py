"""DP-SGD: steps along released sums of clipped gradients of Poisson batches (Abadi et al. 2016).

A step draws a batch, sums the clipped gradients of its units, adds Gaussian noise and divides by the expected size
of a batch. The rest is post-processing. The same loop runs without noise.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.nn.optimizers import Average, Optimizer, Rule
from skdp.privacy import BatchPlan, PrivacySession, PrivateRecords

__all__ = ["Clipping", "Training", "train"]

Vector = NDArray[np.float64]
# Of parameters: a function of rows and targets that gives the pieces of their gradients.
GradientsAt = Callable[[Vector], Callable[[Any, Any], Sequence[Any]]]
Monitor = Callable[[int, Vector], None]
LARGEST = float(np.finfo(np.float32).max)  # the precision in which nets compute


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

    def options(self) -> dict[str, Any]:
        """Keyword arguments of `PrivateRecords.gradient_sum`."""
        found: dict[str, Any] = {"clipping": self.method}
        if self.method == "microbatch":
            found["microbatch_size"] = self.microbatch_size
        return found


@dataclass(frozen=True)
class Training:
    """Public numbers of a run.

    Attributes
    ----------
    learning_rate : float
        Step size of the first step.
    """

    clipping: Clipping
    learning_rate: float
    rule: Rule = field(default_factory=Rule)


def train(
    session: PrivacySession,
    records: PrivateRecords,
    gradients_at: GradientsAt,
    start: Vector,
    plan: BatchPlan,
    settings: Training,
    *,
    tensors: tuple[slice, ...] = (),
    monitor: Monitor | None = None,
) -> Vector:
    """Take the steps of a plan; return the released parameters.

    Parameters
    ----------
    session : PrivacySession
    records : PrivateRecords
    gradients_at : callable
        ``gradients_at(theta)`` gives the function that `PrivateRecords.gradient_sum` calls.
    start : ndarray of shape (n_parameters,)
        Public: independent of the records, or released.
    plan : BatchPlan
        Of all steps.
    settings : Training
    tensors : tuple of slice, default=()
        Where each parameter tensor lies, for Laplacian smoothing.
    monitor : callable, default=None
        Called with the step and the released parameters.

    Returns
    -------
    ndarray of shape (n_parameters,)
    """
    clipping, theta = settings.clipping, np.array(start, dtype=np.float64)
    optimizer = Optimizer(settings.rule, settings.learning_rate, plan.releases, tensors)
    kept = Average(settings.rule.average)
    for t in range(plan.releases):
        batch = session.draw(plan, records, places=True)
        total = records.gradient_sum(
            gradients_at(theta), clipping.norm, size=theta.size, batch=batch, **clipping.options()
        )
        gradient = session.gaussian(total * (clipping.together / plan.batch_size), plan)
        with np.errstate(over="ignore", invalid="ignore"):  # the next line says it
            step = optimizer.of(gradient)
            theta = np.subtract(theta, step, out=step)
        if not -LARGEST <= theta.min() <= theta.max() <= LARGEST:  # NaN, too
            raise FloatingPointError(
                f"the parameters overflowed in step {t + 1}: use a smaller learning_rate. What was released "
                "before stays paid for"
            )
        kept.add(theta)
        if monitor is not None:
            monitor(t, theta)
    return kept.output()
