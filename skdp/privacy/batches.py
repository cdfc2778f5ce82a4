"""Minibatches and their plans.

The session that holds a plan draws its batches from the key stream of the fit. They stay secret, because
amplification by sampling is false for a batch that can be predicted. A batch is for one release (or for one with
each part of the plan), with the noise of its own plan. Means divide by the expected size, a public constant, and
not by the number of drawn records, which may differ on a neighbouring data set.

A partition is the exception: its batches are drawn together, each unit is in one of them, and nothing is
amplified, so they need not be secret. `skdp.privacy.session.minibatches` has the proof.

A Poisson sample includes every unit independently with probability w / 2^64, w an integer. It is drawn as its
size, which is Binomial, and a uniformly random subset of that size: the same law. The size is taken from
cumulative probabilities, computed with integers of more than 256 bits. The probability of every size that can be
drawn is right up to a factor within 1 +- 2^-80. Sizes that can never be drawn have probability below n 2^-128
together. The subset is exactly uniform: integers are drawn until enough different ones were found.
"""

import functools
import math
from bisect import bisect_right
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar, NoReturn, Protocol

import numpy as np
from numpy.typing import NDArray

from skdp.privacy import noise
from skdp.privacy.accounting.amplification import FULL_BATCH, PARTITION, POISSON
from skdp.privacy.accounting.releases import LedgerRow
from skdp.privacy.bounded import BoundedStatistic, SourceExtra
from skdp.privacy.mechanisms import grid
from skdp.privacy.mechanisms.gaussian.cost import Gaussian
from skdp.privacy.shape import MOST_UNITS

if TYPE_CHECKING:
    from skdp.privacy.mechanisms.gaussian.cost import GaussianNoise

_WORDS = 5  # words of 64 bits that draw a size
_PRECISION = 256  # bits of a probability
_CUT = 1 << (_PRECISION - 128)  # smaller weights, relative to the mode's, are cut off
_LARGEST = 2**32 - 1  # largest number of units of the compiled sampler


class BatchExtra(Protocol):
    """What a mechanism for batches adds to their plan, where it is more than Gaussian noise on a bounded sum.

    Attributes
    ----------
    name : str
        Of the mechanism in a ledger row.
    accountant : str
        What the report calls the accounting.
    method : str
        The method of a session that releases its statistics.
    has_key : bool
        Whether each batch has a key of its own, for random numbers of its statistic.
    remedy : str
        What else makes the error of the samplers smaller, with a comma and a space behind it.
    """

    name: ClassVar[str]
    accountant: ClassVar[str]
    method: ClassVar[str] = "gaussian"
    has_key: ClassVar[bool] = False
    remedy: ClassVar[str] = ""

    def unit_release(self, releases: int, sampling: str, rate: float) -> "GaussianNoise":
        """``releases`` releases with noise multiplier 1, for `skdp.privacy.accounting.calibrate_batches`."""

    def checked(self, adjacency: str, n_statistics: int, *, exact: bool) -> "BatchExtra":
        """The same with checked values; raises where no proof covers it, or so many statistics of a batch."""

    def describe(self) -> LedgerRow:
        """What a ledger row says of it, without the name."""

    def numerical_error(self, plan: "BatchPlan", size: int, delta: float, *, scans: bool) -> tuple[float, float]:
        """What the samplers' errors add to (epsilon, delta) of one release, without the draw of the batch."""

    def planned(self, noise_multiplier: float) -> "BatchExtra":
        """The same in a plan with this noise multiplier; 0 is a session without privacy."""
        return self

    def grid(self, bounded: BoundedStatistic, multiplier: float, adjacency: str) -> grid.Noise:
        """The grid and the noise of a release of all values."""
        return grid.gaussian_grid(bounded, multiplier, adjacency)

    def check_source(self, extra: SourceExtra | None) -> None:
        """Refuse a statistic that was not made for it."""
        return

    def check_size(self, size: int) -> None:
        """Refuse statistics of ``size`` values."""
        return


@dataclass(frozen=True)
class BatchGroup:
    """A number of releases to be planned, each on a fresh batch.

    Attributes
    ----------
    releases : int
        At least 1.
    batch_size : int
        Expected number of units in a batch, the public divisor of its means. The number of units, or more, is
        the full batch.
    weight : float
        Noise multipliers of the groups of one plan are in proportion to their weights.
    purpose : str
        Written to the report.
    parts : tuple of float
        Several statistics of each batch, under one plan: their shares of the cost of a batch, which add up to 1.
        The one with share s has the noise multiplier of the plan over the root of s.
    extra : BatchExtra, default=None
        `ProjectedNorms` for gradients whose norms are estimated, `Choices` for releases of a few coordinates.
    """

    releases: int
    batch_size: int
    weight: float = 1.0
    purpose: str = "steps"
    parts: tuple[float, ...] = (1.0,)
    extra: BatchExtra | None = None


@dataclass(frozen=True)
class BatchPlan:
    """A fixed number of Gaussian releases, each on a fresh batch; made by a session only.

    Attributes
    ----------
    releases : int
    sampling : {"Poisson", "without replacement", "partition", "full batch"}
    rate : float
        Accounted sampling rate: the real one, rounded up. For a partition, the part of the units
        that is in its largest batch.
    batch_size : int
        Expected size of a batch, what its means divide by.
    n_units : int
        Public number of units.
    noise_multiplier : float
        Standard deviation over l2 sensitivity; 0 without privacy.
    share : float
        Share of the session's budget.
    purpose : str
    shares : tuple of float
        Of the statistics of one batch.
    extra : BatchExtra or None
        Of the group that was planned, with the numbers that follow from the noise.
    """

    releases: int
    sampling: str
    rate: float
    batch_size: int
    n_units: int
    noise_multiplier: float
    share: float
    purpose: str = "steps"
    shares: tuple[float, ...] = (1.0,)
    extra: BatchExtra | None = None

    @property
    def parts(self) -> "tuple[BatchPart, ...]":
        """One part of the plan for each statistic of a batch, to give to `gaussian` in place of the plan."""
        return tuple(BatchPart(self, index) for index in range(len(self.shares)))

    @property
    def n_batches(self) -> int:
        """Number of batches that hold as many units as there are."""
        return math.ceil(Fraction(self.n_units, self.batch_size))

    def describe(self) -> LedgerRow:
        """What a ledger row says about the sampling, and about the mechanism's own numbers."""
        if self.sampling == PARTITION:  # a pass costs as much as a release on all units
            return {"sampling": FULL_BATCH, "n_batches": self.n_batches}
        line: LedgerRow = {"sampling": self.sampling}
        if self.extra is not None:
            line |= {"name": self.extra.name, **self.extra.describe()}
        if self.sampling == FULL_BATCH:
            return line
        line["sampling_rate"] = self.rate
        line["batch_size"] = self.batch_size
        return line if self.sampling == POISSON else {**line, "n_records": self.n_units}

    def planned_row(self) -> LedgerRow:
        """The ledger row of all its releases, made or not."""
        return {
            "name": Gaussian.name,
            "noise_multiplier": self.noise_multiplier,
            "count": self.releases,
            **self.describe(),
        }


@dataclass(frozen=True)
class BatchPart:
    """One of the statistics that a plan releases of each of its batches; see `BatchPlan.parts`.

    Attributes
    ----------
    plan : BatchPlan
    index : int
        Its place in the plan's shares.
    """

    plan: BatchPlan
    index: int

    def __init_subclass__(cls) -> None:
        raise TypeError("BatchPart cannot be subclassed: its noise follows from its plan")

    @property
    def noise_multiplier(self) -> float:
        """Standard deviation over l2 sensitivity of this statistic alone; 0 without privacy."""
        share = self.plan.shares[self.index]
        if share == 1.0:
            return self.plan.noise_multiplier
        return self.plan.noise_multiplier / math.sqrt(share) * (1 + 2.0**-40)

    @property
    def purpose(self) -> str:
        """Of the plan."""
        return self.plan.purpose


class _Secret:
    """What a session draws and nobody reads: it cannot be indexed, copied or pickled."""

    __slots__ = ()
    _why: ClassVar[str]

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError(f"{self._why}; it cannot be read or copied")

    __array__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __getstate__ = _refuse


class Batch(_Secret):
    """A secret choice of units for one release; made by `PrivacySession.draw` only.

    Attributes
    ----------
    sampling : str
    rate : float
    batch_size : int
        The expected size. The number of drawn units stays secret.
    """

    _why = "a batch is secret and for one release"
    __slots__ = ("_counted", "_family", "_key", "_plan", "_positions", "_spent", "_units")

    _family: object
    _plan: BatchPlan
    _spent: set[int]  # parts of the plan that it was released with
    # Whether a row of the ledger counts it; the batches of a partition share one list.
    _counted: list[bool]
    _units: NDArray[np.int64] | None
    _positions: NDArray[np.int64] | None  # positions of the units; see `number_of_positions`
    _key: int | None  # seed of the statistic's random numbers, where the plan's extra needs some

    def __init__(self) -> None:
        raise TypeError("a batch is made by a session only: session.draw(plan, records)")

    @classmethod
    def _make(
        cls,
        plan: BatchPlan,
        units: NDArray[np.int64] | None,
        family: object,
        positions: NDArray[np.int64] | None = None,
        key: int | None = None,
        counted: list[bool] | None = None,
    ) -> "Batch":
        made = cls.__new__(cls)
        made._plan, made._units, made._family, made._spent = plan, units, family, set()
        made._counted = [False] if counted is None else counted
        made._positions, made._key = positions, key
        return made

    @property
    def sampling(self) -> str:
        """How it was drawn."""
        return self._plan.sampling

    @property
    def rate(self) -> float:
        """Accounted sampling rate."""
        return self._plan.rate

    @property
    def batch_size(self) -> int:
        """Expected size, the public divisor."""
        return self._plan.batch_size

    def __repr__(self) -> str:
        return f"Batch(sampling={self.sampling!r}, rate={self.rate:.6g})"


class Partition(_Secret):
    """A secret block for every unit; made by `PrivacySession.partition` only."""

    _why = "a partition has an entry for every unit"
    __slots__ = ("_blocks", "_family")

    _blocks: NDArray[np.int64]
    _family: object

    def __init__(self) -> None:
        raise TypeError("a partition is made by a session only: session.partition(records, n_blocks)")

    @classmethod
    def _make(cls, blocks: NDArray[np.int64], family: object) -> "Partition":
        made = cls.__new__(cls)
        made._blocks, made._family = blocks, family
        return made

    def __repr__(self) -> str:
        return "Partition()"


def batch_numerical_error(plan: BatchPlan) -> tuple[float, float]:
    """What the sampler's error adds to (epsilon, delta) of one release."""
    if plan.sampling != POISSON:
        return 0.0, 0.0
    # The real number of units may be larger than the public one.
    return 2.0**-78, max(plan.n_units, MOST_UNITS) * 2.0**-124


def draw_units(
    plan: BatchPlan, count: int, stream: noise.KeyStream, bits: NDArray[np.uint64] | None = None
) -> NDArray[np.int64] | None:
    """Draw the units of one batch: sorted and different numbers below ``count``, or None for all of them.

    Parameters
    ----------
    plan : BatchPlan
    count : int
        Real number of units.
    stream : KeyStream
    bits : ndarray of uint64, default=None
        From `empty_bits`, to work in; empty again at the end.
    """
    if plan.sampling == FULL_BATCH:
        return None
    if bits is None:
        bits = empty_bits(count)
    likely = min(plan.batch_size, max(1, plan.n_units - plan.batch_size))
    words = stream.words(_WORDS + likely + (likely >> 4) + 8)
    size = plan.batch_size
    if plan.sampling == POISSON:
        first, thresholds = _binomial(count, plan.batch_size, plan.n_units)
        size = first + bisect_right(thresholds, int.from_bytes(words[:_WORDS].tobytes(), "little"))
    return _subset(count, size, words[_WORDS:], stream, bits)


def number_of_positions(plan: BatchPlan, count: int) -> int:
    """Number of positions that the units of a batch are spread over: one more than the most that can be drawn.

    A drawn unit gets a position of its own, by an injection that is uniform on all injections. The positions of
    the others have the same law whether or not a unit was drawn: the restriction of a uniform injection is
    uniform. The others alone are at most as many as can be drawn, and one more unit finds a free position. The
    sizes above, which the sampler cuts off, are charged by `batch_numerical_error` already.

    Parameters
    ----------
    plan : BatchPlan
    count : int
        Number of units, public.

    Examples
    --------
    >>> from skdp.privacy.batches import BatchPlan, number_of_positions
    >>> number_of_positions(BatchPlan(1, "Poisson", 256 / 60000, 256, 60000, 1.0, 1.0), 60000)
    496
    """
    if plan.sampling != POISSON:
        return plan.batch_size
    first, thresholds = _binomial(count, plan.batch_size, plan.n_units)
    return first + len(thresholds) + 1


def empty_bits(count: int) -> NDArray[np.uint64]:
    """A bit for every unit, none set, and a bit for every word of these."""
    words = (count + 63) // 64
    return np.zeros(words + (words + 63) // 64, dtype=np.uint64)


def _subset(
    n: int, size: int, words: NDArray[np.uint64], stream: noise.KeyStream, bits: NDArray[np.uint64]
) -> NDArray[np.int64]:
    """A uniformly random subset of 0 .. n-1; of the smaller of it and its complement, numbers are drawn."""
    if n > _LARGEST:
        return uniform_subset(n, size, stream)
    from skdp.privacy.noise.subset import mark, marked, unmarked

    chosen = min(size, n - size)
    left = chosen - mark(words, bits, n, chosen)
    while left:
        left -= mark(stream.words(left + (left >> 4) + 2), bits, n, left)
    return marked(bits, n, size) if chosen == size else unmarked(bits, n, size)


def uniform_subset(n: int, size: int, stream: noise.KeyStream) -> NDArray[np.int64]:
    """A uniformly random subset of 0 .. n-1, ascending, also for numbers of more than 32 bits; slower."""
    chosen = min(size, n - size)
    numbers = np.empty(0, dtype=np.int64)
    while numbers.size < chosen:  # one at a time would do; the last of too many new ones are dropped
        drawn = np.append(numbers, stream.integers(n, chosen - numbers.size))
        numbers = drawn[np.sort(np.unique(drawn, return_index=True)[1])]
    numbers = np.sort(numbers)
    return numbers if chosen == size else np.delete(np.arange(n), numbers)


@functools.lru_cache(maxsize=16)
def _binomial(count: int, batch_size: int, n_units: int) -> tuple[int, list[int]]:
    """Smallest size that can be drawn, and 320-bit thresholds: size first + i for words from threshold i - 1 on.

    ``count`` units, each with probability floor(2^64 batch_size / n_units) / 2^64.
    """
    yes = (batch_size << 64) // n_units
    no = (1 << 64) - yes
    mode = min(count, ((count + 1) * yes) >> 64)
    above = _weights(mode, count, yes, no)
    # The sizes below the mode, counted as units that are left out, are the sizes above the mode of their number.
    below = _weights(count - mode, count, no, yes)
    weights = [*reversed(below), 1 << _PRECISION, *above]
    total, sums = sum(weights), []
    reached = 0
    for weight in weights[:-1]:
        reached += weight
        sums.append((reached << (64 * _WORDS)) // total)
    return mode - len(below), sums


def _weights(mode: int, count: int, yes: int, no: int) -> list[int]:
    """Binomial weights of mode + 1, mode + 2, ..., in units of 2^-256 of the mode's, down to 2^-128 of it."""
    weights, weight, size = [], 1 << _PRECISION, mode
    while size < count:
        weight = weight * ((count - size) * yes) // ((size + 1) * no)
        if weight < _CUT:
            break
        weights.append(weight)
        size += 1
    return weights
