"""DP-SGD: steps along released sums of clipped gradients of Poisson batches (Abadi et al. 2016).

A step draws a batch, sums the clipped gradients of its units, divides by the expected size of a batch and adds
Gaussian noise: `NoisyMean.begin`. The rest is post-processing.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdp.fitting.loop import GradientAt
from skdp.fitting.minibatch_warnings import StepFacts
from skdp.fitting.optimizers import FewEntries
from skdp.kernels.protocols import Matrix
from skdp.privacy import (
    Batch,
    BatchGroup,
    BatchPlan,
    BoundedStatistic,
    Piece,
    PrivacySession,
    PrivateRecords,
    ProjectedNorms,
    SparseRows,
    factor,
)

Vector = NDArray[np.float64]
# Called with rows and targets; returns the pieces of their gradients.
PiecesOf = Callable[[Matrix, Vector | None], Sequence[Piece]]
# Called with a mean and its batch; returns the released values.
Release = Callable[[BoundedStatistic, Batch], "Vector | FewEntries"]


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
        Of row numbers: the positions of the entries that a step changes where it changes these rows.
    """

    n_table: int
    of: PiecesOf
    entries: Callable[[NDArray[np.int64]], NDArray[np.int64]]


def each_once(rows: NDArray[np.int64], n_table: int) -> list[SparseRows]:
    """Return 1 for each different row of a table that a record touches; -1 is no row. What is given is sorted."""
    rows.sort(axis=1)
    rows[:, 1:][rows[:, 1:] == rows[:, :-1]] = -1
    return [SparseRows(rows, np.ones((*rows.shape, 1), dtype=np.float32), n_table)]


@dataclass(frozen=True)
class Gradients:
    """The gradients of the records of a family.

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
    at: Callable[[NDArray[np.float32]], PiecesOf]
    touched: TouchedRows | None = None
    ready: bool = False


@dataclass(frozen=True)
class Clipping:
    """The clipping of gradients.

    Attributes
    ----------
    norm : float
        Largest l2 norm of a unit's addend.
    method : str
        "materialized", "ghost", "microbatch", "one-by-one" or "projections", as
        `PrivateRecords.gradient_sum` has them.
    microbatch_size : int or None
        Records whose mean gradient is clipped as one, by "microbatch" alone.
    n_projections : int
        Random projections that estimate a norm, by "projections" alone.
    layers : tuple of {"materialized", "ghost"}
        What each layer of a net gives.
    """

    norm: float
    method: str = "materialized"
    microbatch_size: int | None = None
    n_projections: int = 0
    layers: tuple[str, ...] = ()

    @property
    def together(self) -> int:
        """Number of records that are clipped as one: the sum is over so many times fewer gradients."""
        return self.microbatch_size or 1

    def moves(self, adjacency: str) -> float:
        """Clip norms that separate the sums of neighbouring data sets, as the session counts them."""
        return (2.0 if self.microbatch_size else 1.0) * factor(adjacency)

    def facts(self, adjacency: str) -> dict[str, object]:
        """Public numbers of this way to clip, for the report."""
        if self.microbatch_size:
            moved = f"{self.moves(adjacency):g} clip_norm"
            return {"microbatch_size": self.microbatch_size, "sensitivity": moved}
        return {"n_projections": self.n_projections} if self.n_projections else {}


class StepNoise(NamedTuple):
    """The noise of the steps, by public numbers.

    Attributes
    ----------
    std : float
        Standard deviation in an entry of a step's gradient.
    first : float
        What the first release adds to the sum of all gradients.
    changed : float
        Part of the parameters that a step changes.
    """

    std: float
    first: float = 0.0
    changed: float = 1.0


@dataclass(frozen=True)
class NoisyMean:
    """The release of a step: the mean of a batch's clipped gradients, with Gaussian noise (DP-SGD).

    A plan asks for `releases`, `noise`, `utility` and `facts`, which follow from public numbers; the fit asks for
    the function of `begin` once, and calls it in each step. Another way is a class like this one, which inherits
    the common methods, and a `GradientEstimator` that makes it.
    """

    clipping: Clipping
    scans: ClassVar[bool] = False  # whether entries are chosen by the sparse vector technique

    def releases(self, n_iter: int, batch_size: int, size: int) -> tuple[BatchGroup, ...]:
        """The releases of all steps, for `PrivacySession.plan_batches`; ``size`` is the length of a gradient."""
        count = self.clipping.n_projections
        return (BatchGroup(n_iter, batch_size, extra=ProjectedNorms(count) if count else None),)

    def noise(self, plans: Sequence[BatchPlan], adjacency: str) -> StepNoise:
        """The noise that planned releases give the steps."""
        plan, clipping = plans[-1], self.clipping
        scale = clipping.moves(adjacency) * clipping.together / plan.batch_size
        # The gradient is the last of a batch's statistics.
        return StepNoise(scale * plan.parts[-1].noise_multiplier * clipping.norm)

    def utility(self, plans: Sequence[BatchPlan], adjacency: str, steps: StepFacts) -> StepFacts:
        """Add the public numbers that tell whether the steps may be of little use."""
        return steps

    def facts(self) -> dict[str, object]:
        """Public numbers for the report, besides the facts of the clipping."""
        return {}

    def sparsity(self, plan: BatchPlan, adjacency: str, size: int) -> float:
        """Part of the ``size`` trained parameters that rests in the last epoch."""
        return 0.0

    def begin(
        self, session: PrivacySession, records: PrivateRecords, gradients: Gradients, *plans: BatchPlan
    ) -> GradientAt:
        """The function that releases the gradient at released parameters, in step t = 0, 1, ..."""
        (plan,) = plans
        release = self.release(session, records, plan, gradients.touched)

        def gradient(theta: NDArray[np.float32], t: int) -> tuple[Vector | FewEntries, float]:
            batch = session.draw(plan, records, positions=True)
            mean = clipped_mean(records, gradients.at(theta), self.clipping, plan, batch, size=theta.size)
            return release(mean, batch), 0.0

        return gradient

    def release(
        self, session: PrivacySession, records: PrivateRecords, plan: BatchPlan, touched: TouchedRows | None
    ) -> Release:
        """The function that adds noise to the mean of a batch and releases it."""
        return lambda mean, batch: session.gaussian(mean, plan)


def clipped_mean(
    records: PrivateRecords, function: PiecesOf, clipping: Clipping, plan: BatchPlan, batch: Batch,
    *, size: int, entries: NDArray[np.int64] | None = None,
) -> BoundedStatistic:  # fmt: skip
    """Mean of a batch's clipped gradients, before any noise; see `PrivateRecords.gradient_sum`."""
    total = records.gradient_sum(
        function, clipping.norm, size=size, batch=batch, clipping=clipping.method,
        microbatch_size=clipping.microbatch_size, entries=entries,
    )  # fmt: skip
    return total * (clipping.together / plan.batch_size)


class GradientEstimator:
    """Makes a `NoisyMean`: the word "mean", and the base of other objects for ``gradient_estimator=``.

    Attributes
    ----------
    partitions : bool
        Whether a proof covers batches of a partition, beside Poisson batches.
    full_batches : bool
        Whether a release of all records has a mu.
    devices : bool
        Whether it takes records of a device.
    whole_norms : bool
        Whether whole gradients are clipped, so that ghost norms can serve.
    needs_table : bool
        Whether it reads which rows of an embedding table a record touches.
    remembers : bool
        Whether an estimate holds the gradients of earlier steps, as momentum does.
    """

    partitions: ClassVar[bool] = True
    full_batches: ClassVar[bool] = True
    devices: ClassVar[bool] = True
    whole_norms: ClassVar[bool] = True
    needs_table: ClassVar[bool] = False
    remembers: ClassVar[bool] = False

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        """Sizes of batches that the user gave, beside ``batch_size=``."""
        return ()

    def check(self, model: BaseEstimator) -> None:
        """Raise unless the other parameters of a net fit."""

    def engine(self, clipping: Clipping) -> NoisyMean:
        """Return the object that releases the gradients of the steps."""
        return NoisyMean(clipping)


def estimator_of(given: str | GradientEstimator) -> GradientEstimator:
    """The object that a value of ``gradient_estimator=`` stands for."""
    return GradientEstimator() if isinstance(given, str) else given


def method_of(clipping: object) -> object:
    """The method of a value of ``clipping=``: a word, or the one that an object stands for."""
    return getattr(clipping, "method", clipping)
