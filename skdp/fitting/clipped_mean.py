"""DP-SGD: steps along released sums of clipped gradients of Poisson batches (Abadi et al. 2016).

A step draws a batch, sums the clipped gradients of its units, adds Gaussian noise and divides by the expected size
of a batch. The rest is post-processing.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.base.plan import Advice
from skdp.fitting.loop import GradientAt
from skdp.fitting.optimizers import FewEntries
from skdp.privacy import Batch, BatchGroup, BatchPlan, Bounded, PrivacySession, PrivateRecords, factor

__all__ = ["ClippedMean", "Clipping", "Gradients", "TouchedRows"]

Vector = NDArray[np.float64]
# Of rows and targets: the pieces of their gradients.
Pieces = Callable[[Any, Any], Sequence[Any]]
# Of a mean and its batch: what is released of them.
Release = Callable[[Bounded, Batch], "Vector | FewEntries"]


@dataclass(frozen=True)
class TouchedRows:
    """The rows of an embedding table that records touch, for `AdaFEST`.

    Attributes
    ----------
    n_table : int
        Rows of the table.
    of : callable
        Of rows and targets: a `SparseRows` with 1 for each different row that a record touches.
    entries : callable
        Of row numbers: the places of the entries that a step changes where it changes these rows.
    """

    n_table: int
    of: Pieces
    entries: Callable[[NDArray[np.int64]], NDArray[np.int64]]


@dataclass(frozen=True)
class Gradients:
    """How a family computes the gradients of its records.

    Attributes
    ----------
    size : int
        Number of parameters that the steps change.
    at : callable
        Of parameters: the function that `PrivateRecords.gradient_sum` calls.
    touched : TouchedRows or None
        Where the first parameters are an embedding table.
    ready : bool
        Whether all code that computes gradients is skdp's, so that kinds of pieces do not change between steps.
        Else every function is called with zeros before its batch is drawn.
    """

    size: int
    at: Callable[[NDArray[np.float32]], Pieces]
    touched: TouchedRows | None = None
    ready: bool = False


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

    Another way to release a gradient is a file with a class like this one.

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

    def group(self, n_iter: int, batch_size: int, n_projections: int = 0, size: int = 0) -> BatchGroup:
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

    def advice(
        self, plans: Sequence[BatchPlan], adjacency: str, size: int, n_tokens: int | None
    ) -> Iterable[Advice]:
        """Return warnings where public numbers say that the steps will be of little use.

        Parameters
        ----------
        size : int
            Number of parameters that the steps change.
        n_tokens : int or None
            Tokens of a record, where the model begins with an Embedding.
        """
        return ()

    def begin(
        self, session: PrivacySession, records: PrivateRecords, gradients: Gradients, *plans: BatchPlan
    ) -> GradientAt:
        """The function that releases the gradient at released parameters, in step t = 0, 1, ..."""
        (plan,) = plans
        release = self.release(session, records, plan, gradients.touched)

        def gradient(theta: NDArray[np.float32], t: int) -> tuple[Vector | FewEntries, float]:
            batch = session.draw(plan, records, places=True)
            mean = self.mean(records, gradients.at(theta), plan, batch, size=theta.size)
            return release(mean, batch), 0.0

        return gradient

    def release(
        self, session: PrivacySession, records: PrivateRecords, plan: BatchPlan, touched: TouchedRows | None
    ) -> Release:
        """The function that releases the mean of a batch."""
        return lambda mean, batch: session.gaussian(mean, plan)

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
        total = records.gradient_sum(function, norm, batch=batch, **self.clipping.options(), **options)
        return total * (self.clipping.together / plan.batch_size)
