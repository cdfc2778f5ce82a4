"""The dominating pair of a step that chooses coordinates and adds noise to them, on one Poisson batch.

Notes
-----
**Privacy.** A step makes k private choices, each of bounded range e, and then one Gaussian release of noise
multiplier z. All of them read the same batch, and each may depend on the results before it. On all records the
pair of k envelopes (`pairs.BoundedRangePair`) and one N(1/z, 1), N(0, 1) dominates the step, because dominating
pairs compose adaptively (Zhu, Dong and Wang 2022). Call it (P, R). Bounded range and Gaussian noise are
symmetric, so it dominates for a unit that leaves and for one that comes.

A Poisson sample has the unit with probability q. Given the other sampled units, the laws with and without it in
the data are (1 - q) R0 + q P0 and R0, with R0 and P0 the step on a batch without and with the unit. The pair ((1 -
q) R + q P, R) dominates for a unit that leaves, and (R, (1 - q) R + q P) for one that comes: their hockey-stick
divergences grow with the divergences of (P, R). This is proven under zero-out and add-remove. Under replace-one
the sampled unit has other values, and no pair for the choices is proven.

**Numbers.** The loss of the envelope and of the normal pair moves to a grid of ``h``, in the way of
`pairs.discretised`, which dominates. The k envelopes are composed by direct convolution of positive masses: a sum
of n such products has a relative error of at most n 2^-52. Where the masses need too many cells the grid is
doubled. A point that falls out goes to both neighbours so that its mass and E e^-loss stay, which dominates again.
The masses beyond 1e-40 are cut: above they have infinite loss, below they move up to the first cell. What R has
beside the cells has loss -inf.
"""

import functools
import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.gaussian import bounded_range_mu, compose_mu
from skdp.privacy.accounting.pairs import (
    GAUSSIAN,
    OUT,
    BoundedRangePair,
    Cells,
    DominatingPair,
    NormalPair,
    discretised,
)
from skdp.privacy.mechanisms.gaussian.cost import GaussianOnBatches

# Choices, not tuned.
_CELLS = 3000  # cells of the loss of one step on all records
_FINE = 24.0  # cells of half the range of one choice
_PER_SPREAD = 100.0  # cells of a standard deviation of the loss
_LOG_CUT = math.log(1e-40)
_ROUNDING = 1e-11  # relative error of the masses, more than the convolutions have
_ONE_ROUNDING = 2.0**-50  # relative error of the masses of one choice


@dataclass(frozen=True)
class SelectedPair(DominatingPair):
    """``choices`` envelopes of bounded range and one normal pair together, Poisson sampled.

    Parameters
    ----------
    kind : {"out", "in"}
        Whether the unit leaves or comes.
    spread : float
        Noise multiplier.
    choices : int
    epsilon : float
        Bounded range of one choice.
    rate : float
        Sampling rate; 1 for all records.
    releases : int
    """

    kind: str
    spread: float
    choices: int
    epsilon: float
    rate: float
    releases: int

    def loss_range(self, log_tail: float) -> tuple[float, float]:
        loss, p, _, _ = self._atoms()
        order = np.argsort(loss)
        loss, p = loss[order], p[order]
        tail = math.exp(max(log_tail, -600.0))
        low = int(np.searchsorted(np.cumsum(p), tail, side="right"))
        high = int(np.searchsorted(np.cumsum(p[::-1]), tail, side="right"))
        last = loss.size - 1
        return float(loss[min(low, last)]), float(loss[max(last - high, 0)])

    def cells(self, loss: Floats) -> Cells:
        at_loss, of_p, of_r, infinite = self._atoms()
        at = np.searchsorted(loss, at_loss, side="left") - 1
        # An atom on the first point belongs to the first cell.
        at[(at < 0) & (at_loss >= loss[0])] = 0
        n = loss.size - 1
        inside = (at >= 0) & (at_loss <= loss[-1])
        p = np.bincount(at[inside], of_p[inside], minlength=n)[:n].astype(np.float64)
        r = np.bincount(at[inside], of_r[inside], minlength=n)[:n].astype(np.float64)
        below = float(of_p[at_loss < loss[0]].sum())
        above = float(of_p[at_loss > loss[-1]].sum()) + infinite
        error = _ROUNDING + self.choices * _ONE_ROUNDING
        return Cells(p, error * p, r, error * r, below, above)

    def _atoms(self) -> tuple[Floats, Floats, Floats, float]:
        """Losses, their masses under both laws, and the mass of the first law with infinite loss."""
        whole, p, infinite = _on_all_records(self.spread, self.choices, self.epsilon)
        q = self.rate
        with np.errstate(over="ignore"):
            r = p * np.exp(-whole)
        left = max(0.0, 1.0 - float(r.sum()))
        with np.errstate(over="ignore"):
            mixed = (
                whole
                if q == 1.0
                else np.where(
                    whole < 30.0,
                    np.log1p(q * np.expm1(np.minimum(whole, 30.0))),
                    whole + np.log(q + (1.0 - q) * np.exp(-np.maximum(whole, 30.0))),
                )
            )
        if self.kind == OUT:
            of_p, of_r, far = (1.0 - q) * r + q * p, r, q * infinite
            stays, of_left = (1.0 - q) * left, left
        else:
            mixed, of_p, of_r, far = -mixed, r, (1.0 - q) * r + q * p, 0.0
            stays, of_left = left, (1.0 - q) * left
        if q == 1.0:  # then the unit shows where only one of the laws has mass
            return mixed, of_p, of_r, far + (0.0 if self.kind == OUT else left)
        none = math.log1p(-q) if self.kind == OUT else -math.log1p(-q)
        return (
            np.append(mixed, none), np.append(of_p, stays), np.append(of_r, of_left), far
        )  # fmt: skip


@functools.lru_cache(maxsize=32)
def _on_all_records(spread: float, choices: int, epsilon: float) -> tuple[Floats, Floats, float]:
    """Losses of one step on all records, their masses under the first law, and its mass of infinite loss."""
    width = math.sqrt(choices * epsilon**2 / 3.0 + 1.0 / spread**2)
    grid = min(width / _PER_SPREAD, epsilon / _FINE)
    one = _Line.of(BoundedRangePair(epsilon, 1), grid)
    line = one
    for bit in bin(choices)[3:]:
        line = line.times(line)
        if bit == "1":
            line = line.times(one)
        while line.masses.size > _CELLS:
            line, one = line.coarser(), one.coarser()
    while 2.0 * line.grid * _PER_SPREAD < width:
        line = line.coarser()
    line = line.times(_Line.of(NormalPair(GAUSSIAN, spread, 1.0, 1), line.grid))
    loss: Floats = np.arange(line.first, line.first + line.masses.size) * np.float64(line.grid)
    masses = line.masses
    loss.setflags(write=False)
    masses.setflags(write=False)
    return loss, masses, line.infinite


@dataclass(frozen=True, eq=False)
class _Line:
    """Masses at multiples of ``grid`` from ``first`` on, and a mass of infinite loss."""

    grid: float
    first: int
    masses: Floats
    infinite: float

    @classmethod
    def of(cls, pair: DominatingPair, grid: float) -> "_Line":
        first, masses, infinite = discretised(pair, grid, _LOG_CUT)
        return cls(grid, first, masses, infinite)

    def times(self, other: "_Line") -> "_Line":
        """Both together."""
        masses = np.convolve(self.masses, other.masses)
        infinite = self.infinite + other.infinite
        return _Line(self.grid, self.first + other.first, masses, infinite)._cut()

    def _cut(self) -> "_Line":
        tiny = math.exp(_LOG_CUT)
        low = int(np.searchsorted(np.cumsum(self.masses), tiny, side="right"))
        high = int(np.searchsorted(np.cumsum(self.masses[::-1]), tiny, side="right"))
        stop = max(self.masses.size - high, low + 1)
        kept = self.masses[low:stop].copy()
        kept[0] += float(self.masses[:low].sum())
        infinite = self.infinite + float(self.masses[stop:].sum())
        return _Line(self.grid, self.first + low, kept, infinite)

    def coarser(self) -> "_Line":
        """On the grid of twice the width."""
        masses, first = self.masses, self.first
        if first % 2:
            masses, first = np.concatenate([[0.0], masses]), first - 1
        if masses.size % 2 == 0:
            masses = np.append(masses, 0.0)
        up = 1.0 / (1.0 + math.exp(-self.grid)) * (1.0 + 2.0**-50)
        found = masses[::2].copy()
        found[1:] += up * masses[1::2]
        found[:-1] += (1.0 - up) * masses[1::2]
        return _Line(2.0 * self.grid, first // 2, found, self.infinite)


def check_choices(choices: object, choice_epsilon: float) -> tuple[int, float]:
    """The two numbers, or ValueError."""
    if isinstance(choices, bool) or not isinstance(choices, int) or choices < 1:
        raise ValueError(f"choices must be an int >= 1, got {choices!r}.")
    if not 0.0 < choice_epsilon < math.inf:
        raise ValueError(f"choice_epsilon must be finite and > 0, got {choice_epsilon!r}.")
    return choices, float(choice_epsilon)


@dataclass(frozen=True, kw_only=True)
class SelectedGaussian(GaussianOnBatches):
    """``choices`` private choices of coordinates, then Gaussian noise on the chosen ones, on one batch.

    Privacy
    -------
    The top of this file has the dominating pair, under zero-out and add-remove. As k choices of
    bounded range e are k e^2 / 8 of zero-concentrated DP, one release is rho-zCDP on all records, with rho = k e^2
    / 8 + 1 / (2 z^2); its Poisson samples follow from the bound of Zhu and Wang (2019).

    Parameters
    ----------
    noise_multiplier : float
        Of the Gaussian noise on the chosen coordinates.
    choices : int
    choice_epsilon : float
        Bounded range of one choice.
    sampling_rate : float, optional
        Of Poisson batches.
    """

    name = "selected_gaussian"
    accountants = ("pld", "rdp")
    remedy = "so many choices: use fewer"

    noise_multiplier: float
    choices: int
    choice_epsilon: float
    noise_std: float | None = None
    sampling_rate: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices(self.choices, self.choice_epsilon)

    def rho(self) -> float:
        """Of the releases if all records were in every batch."""
        self._refuse_no_noise()
        one = self.choices * self.choice_epsilon**2 / 8.0 + 0.5 / self.noise_multiplier**2
        return self.count * one

    def joint_multiplier(self, scale: float) -> float:
        odds = self.choice_epsilon * self.noise_multiplier
        return scale * self.noise_multiplier / math.sqrt(1.0 + 0.25 * self.choices * odds**2)

    def full_mu(self) -> float:
        one = bounded_range_mu(self.choice_epsilon)
        return compose_mu([super().full_mu(), math.sqrt(self.count * self.choices) * one])

    def scaled(self, scale: float) -> Self:
        return replace(super().scaled(scale), choice_epsilon=self.choice_epsilon / scale)

    def sampling_text(self) -> str:
        one = f"each of bounded range {self.choice_epsilon:.6g}"
        return f"{super().sampling_text()}, on {self.choices} chosen coordinates, {one}"

    def _pair(self, kind: str) -> SelectedPair:
        z, k, e = self.noise_multiplier, self.choices, self.choice_epsilon
        return SelectedPair(kind, z, k, e, self.rate, self.count)

    def rdp(self, orders: Floats, adjacency: str) -> Floats:
        if self.rate < 1.0:  # known at integer orders only: `sampled.amplified_epsilon`
            raise self._unsupported("Renyi-DP curve of Poisson samples at every order")
        return self.rho() * orders


RELEASE = SelectedGaussian
