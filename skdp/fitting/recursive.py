"""Recursive momentum: gradients, and their change in the last step (DP-SRM).

With B_0, B_1, ... fresh batches of expected sizes b0, b, b, ..., g the weight of new gradients, and every v_t
released::

    v_0 = (1/b0) sum over B_0 of clip(grad_i(theta_0), C1)  +  noise
    v_t = (1/b) sum over B_t of [ (1-g) clip(grad_i(theta_t) - grad_i(theta_{t-1}), C2)
                                  + g clip(grad_i(theta_t), C1) ]  +  noise  +  (1-g) v_{t-1}

This is Algorithm 4 of Wang (2021), chapter 4. Both gradients of a record are computed on the same batch.

Privacy: when batch t is drawn, v_{t-1}, theta_{t-1} and theta_t were released, so they are constants. Record i
enters by the vector in brackets. It is a function of this record and of released numbers, at most (1-g) C2 + g C1
long. That length is not taken on trust: `PrivateRecords.gradient_sum` clips the vector to it once more, so that
nothing is assumed of the loss, and the two inner clips matter for utility alone.

A row's numbers are computed from this row alone: products and sums of entries, and norms that are added along the
row, which have the same bits at every place.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdp.base import check_number
from skdp.fitting.loop import GradientAt
from skdp.fitting.noisy_mean import Clipping, GradientEstimator, Gradients, NoisyMean, StepNoise, clipped_mean
from skdp.fitting.sizes import CLIP_NORM
from skdp.fitting.task import check_clip, given
from skdp.kernels.protocols import Matrix
from skdp.privacy import (
    LEAST_CLIP,
    BatchGroup,
    BatchPlan,
    Piece,
    PieceKinds,
    PrivacySession,
    PrivateRecords,
    SparseRows,
    Vectors,
)

Vector = NDArray[np.float64]
Single = NDArray[np.float32]
Floats = np.ndarray  # of float32 or float64
Function = Callable[[Matrix, Vector | None], Sequence[Piece]]

# Chosen on a held-out part of the training images of MNIST (docs/benchmarks/dense.rst).
FIRST_BATCH_RATIO = 3.0  # size of the first batch over the size of the others
DIFFERENCES = 0.1  # clip norm of differences over clip norm times momentum

# Ways to clip in which a record's whole gradient is there.
WHOLE_BATCH_MODES = ("auto", "materialized", "one-by-one")


@dataclass(frozen=True, kw_only=True)
class RecursiveMomentum(GradientEstimator):
    """Momentum that each batch corrects by the change of its gradients in the last step (DP-SRM).

    It is a value for ``gradient_estimator=`` of nets. Their ``clip_norm`` is the C1 of the notes, their
    ``batch_size`` is b, and their optimizer acts on the released ``v_t``. Give ``optimizer=SGD(momentum=0)``:
    that is the published algorithm, and the default of nets, 0.9, was worse in most trials.

    Parameters
    ----------
    momentum : float, default=0.5
        The weight g in (0, 1] of the new gradients; 1 is plain SGD.
    clip_diff_norm : float or "auto", default="auto"
        Largest l2 norm C2 of the change of one record's gradient in one step. "auto" is
        ``0.1 * momentum * clip_norm``.
    initial_batch_size : int or "auto", default="auto"
        Expected number b0 of records (or groups) in the first batch. "auto" is 3 times ``batch_size``.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not as described.

    See Also
    --------
    skdp.DPSRMClassifier : The same for logistic regression.

    Notes
    -----
    **Privacy.** The first release is a mean over the first batch of gradients clipped to C1. Then ``v_t`` is
    ``(1 - g) v_{t-1}``, which is released already, plus a noisy mean over batch t of
    ``(1 - g) clip(grad_i(theta_t) - grad_i(theta_{t-1}), C2) + g clip(grad_i(theta_t), C1)``. This vector is
    clipped once more, to ``(1 - g) C2 + g C1``, and a record (or group) adds at most that to a sum, whatever the
    loss is. Of a group, the vectors of its rows are added before the last clip.

    A step computes two gradients of every record of its batch, and each is built: ``clipping`` must be
    "materialized" (which "auto" is here) or "one-by-one". "materialized" keeps about four times 64 gradients in
    memory at once: take "one-by-one" for nets of millions of parameters.

    Examples
    --------
    >>> from skdp.nn import RecursiveMomentum
    >>> RecursiveMomentum(momentum=0.2, clip_diff_norm=0.01)
    RecursiveMomentum(momentum=0.2, clip_diff_norm=0.01, initial_batch_size='auto')
    """

    momentum: float = 0.5
    clip_diff_norm: float | str = "auto"
    initial_batch_size: int | str = "auto"
    partitions = False
    devices = False
    whole_norms = False
    remembers = True

    def __post_init__(self) -> None:
        check_number("momentum", self.momentum, Real, low=0, high=1, strict=True)
        check_clip("clip_diff_norm", self.clip_diff_norm, math.inf, word="auto")
        check_number("initial_batch_size", self.initial_batch_size, Integral, low=1, word="auto")

    @property
    def batch_sizes(self) -> tuple[int, ...]:
        size = given(self.initial_batch_size)
        return () if size is None else (int(size),)

    def check(self, model: BaseEstimator) -> None:
        if model.clipping not in WHOLE_BATCH_MODES:
            raise ValueError(
                "RecursiveMomentum needs each record's gradient: clipping must be one of "
                f"{list(WHOLE_BATCH_MODES)}, got {model.clipping!r}"
            )
        clip_norm, clip_diff_norm = given(model.clip_norm), given(self.clip_diff_norm)
        if clip_diff_norm is not None and (clip_norm == math.inf) != (clip_diff_norm == math.inf):
            raise ValueError(
                "clip_norm and the clip_diff_norm of RecursiveMomentum must both be finite, or both inf"
            )
        norm = self.engine(Clipping(CLIP_NORM if clip_norm is None else clip_norm)).norm
        if norm < LEAST_CLIP:
            raise ValueError(
                "the bound of a record's addend, by momentum and the clip norms, must be at least 2**-29, got "
                f"{norm:g}: give a larger clip_norm or clip_diff_norm"
            )

    def engine(self, clipping: Clipping) -> "RecursiveMean":
        return RecursiveMean(clipping, self)


class RecursiveEstimate:
    """The released v_t = fresh_t + (1 - g_t) v_{t-1}, at one released iterate after the other.

    Parameters
    ----------
    fresh : callable
        Called with an iterate, the one before (None in the first step) and the step; releases the new part,
        fresh_t. It is computed from these two iterates, so both must have been released.
    momentum : callable
        Of the step: g.
    """

    def __init__(self, fresh: Callable[..., Vector], momentum: Callable[[int], float]) -> None:
        self._fresh, self._momentum = fresh, momentum
        self._previous: np.ndarray | None = None
        self._released: Vector | None = None

    def __call__(self, theta: np.ndarray, iteration: int) -> tuple[Vector, float]:
        found = self._fresh(theta, self._previous, iteration)
        if self._released is not None:
            found = found + (1.0 - self._momentum(iteration)) * self._released
        self._previous, self._released = theta, found
        return found, 0.0


@dataclass(frozen=True)
class RecursiveMean(NoisyMean):
    """A step's gradient is the released estimate of recursive momentum."""

    recursive: RecursiveMomentum

    @property
    def norm(self) -> float:
        """Largest l2 norm of a unit's addend in a released sum after the first."""
        g, norm = float(self.recursive.momentum), self.clipping.norm
        return norm if g == 1 else (1.0 - g) * self.clip_diff_norm + g * norm

    @property
    def clip_diff_norm(self) -> float:
        """C2."""
        norm = given(self.recursive.clip_diff_norm)
        return DIFFERENCES * float(self.recursive.momentum) * self.clipping.norm if norm is None else float(norm)

    def releases(self, n_iter: int, batch_size: int, size: int) -> tuple[BatchGroup, ...]:
        if n_iter < 2:
            raise ValueError(f"recursive needs at least 2 steps, and this fit would take {n_iter}: give max_iter")
        (first,) = self.recursive.batch_sizes or (round(FIRST_BATCH_RATIO * batch_size),)
        return BatchGroup(1, first, purpose="first gradient"), BatchGroup(n_iter - 1, batch_size)

    def noise(self, plans: Sequence[BatchPlan], adjacency: str) -> StepNoise:
        """Estimates keep a release with weights that fall by 1 - g in each step: 1 / g together."""
        first, others = plans
        moves = self.clipping.moves(adjacency) / float(self.recursive.momentum)
        return StepNoise(
            moves * others.noise_multiplier * self.norm / others.batch_size,
            moves * first.noise_multiplier * self.clipping.norm / first.batch_size,
        )

    def facts(self) -> dict[str, object]:
        """The two numbers of the recursion."""
        return {"recursive_momentum": float(self.recursive.momentum), "clip_diff_norm": self.clip_diff_norm}

    def begin(
        self, session: PrivacySession, records: PrivateRecords, gradients: Gradients, *plans: BatchPlan
    ) -> GradientAt:
        clipping, g = self.clipping, float(self.recursive.momentum)
        (first, others), changes = plans, PieceKinds()
        whole = replace(clipping, norm=self.norm)

        def fresh(theta: Single, previous: Single | None, t: int) -> Vector:
            plan, held = (first, clipping) if previous is None else (others, whole)
            function = gradients.at(theta)
            if previous is not None and g < 1:
                before = gradients.at(previous)
                change = corrected(function, before, g, clipping.norm, self.clip_diff_norm)
                function = changes.of(change) if gradients.ready else change
            batch = session.draw(plan, records, positions=True)
            mean = clipped_mean(records, function, held, plan, batch, size=theta.size)
            return session.gaussian(mean, plan)

        return RecursiveEstimate(fresh, lambda t: g)


def corrected(
    now: Function, before: Function, momentum: float, clip_norm: float, clip_diff_norm: float
) -> Function:
    """The vectors (1 - g) clip(change of the gradient, C2) + g clip(gradient, C1) of some rows, as pieces.

    Parameters
    ----------
    now, before : callable
        Gradients at the parameters of this and the last step, as `PrivateRecords.gradient_sum` takes them.
    momentum : float
        g, below 1.
    clip_norm, clip_diff_norm : float
        C1 and C2.
    """

    def pieces(X: Matrix, y: Vector | None) -> Sequence[Piece]:
        # A warning would tell of a record's numbers.
        with np.errstate(all="ignore"):
            pairs = [pair_of(*both) for both in zip(now(X, y), before(X, y), strict=True)]
            own = momentum * factors([pair.gradient for pair in pairs], clip_norm)
            change = (1.0 - momentum) * factors([pair.change for pair in pairs], clip_diff_norm)
            return [pair.sum(own, change) for pair in pairs]

    return pieces


def factors(parts: Sequence[Floats], clip_norm: float) -> NDArray[np.float64]:
    """Return the factors that shorten each record's vector to the clip norm; NaN where a norm is not a number.

    Parameters
    ----------
    parts : sequence of ndarray of shape (n_rows, n_entries)
        A record's vector is its rows in all of them.
    clip_norm : float
    """
    from skdp.kernels import row_squares

    squares = sum((row_squares(part) for part in parts), np.zeros(len(parts[0])))
    return np.minimum(1.0, clip_norm / np.sqrt(squares))


@dataclass(frozen=True, eq=False)
class Pair:
    """The gradients of a tensor, and how they changed.

    Attributes
    ----------
    gradient, change : ndarray of shape (n_rows, n_entries)
    """

    gradient: Floats
    change: Floats

    def sum(self, own: NDArray[np.float64], change: NDArray[np.float64]) -> Piece:
        """Gradient times ``own`` plus change times ``change``, which have a number for each record."""
        return Vectors(scaled(self.gradient, own) + scaled(self.change, change))


@dataclass(frozen=True, eq=False)
class TablePair:
    """A `Pair` of a table of which a record touches few rows: the entries of these rows alone.

    Attributes
    ----------
    gradient, change : ndarray of shape (n_rows, n_entries)
    positions : tuple of ndarray of int64 of shape (n_rows, T)
        Which rows of the table the two touch; in each of them a row occurs once.
    n_table : int
    """

    gradient: Floats
    change: Floats
    positions: tuple[NDArray[np.int64], NDArray[np.int64]]
    n_table: int

    def sum(self, own: NDArray[np.float64], change: NDArray[np.float64]) -> Piece:
        """Gradient times ``own`` plus change times ``change``, which have a number for each record."""
        parts = scaled(self.gradient, own), scaled(self.change, change)
        shaped = [
            part.reshape(*rows.shape, part.shape[1] // rows.shape[1]) for part, rows in zip(parts, self.positions)
        ]
        return SparseRows(np.concatenate(self.positions, axis=1), np.concatenate(shaped, axis=1), self.n_table)


def pair_of(now: Piece, before: Piece) -> Pair | TablePair:
    """Return the gradients of one tensor, and their change, from its pieces at two points."""
    if not isinstance(now, SparseRows) or not isinstance(before, SparseRows):
        gradient = now.dense()
        return Pair(gradient, gradient - before.dense())
    from skdp.kernels import merge_table_rows

    n_rows, n_table = now.n_rows, now.n_table
    rows, own = merge_table_rows(now.rows, now.values, n_table)
    both, moved = merge_table_rows(
        np.concatenate([now.rows, before.rows], axis=1),
        np.concatenate([now.values, -before.values], axis=1),
        n_table,
    )
    return TablePair(own.reshape(n_rows, -1), moved.reshape(n_rows, -1), (rows, both), n_table)


def scaled(values: Floats, by: NDArray[np.float64]) -> Floats:
    """Rows times numbers, in the precision of the rows."""
    return values * by.astype(values.dtype)[:, None]
