"""Gaussian releases, on all records and on fresh samples."""

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar, Never, Self, cast

import numpy as np

from skdp.exceptions import UnsupportedAccounting
from skdp.kernels.protocols import Floats
from skdp.privacy.accounting import rdp
from skdp.privacy.accounting.amplification import FULL_BATCH, POISSON, WITHOUT_REPLACEMENT, check_rate
from skdp.privacy.accounting.pairs import GAUSSIAN, OUT, TAKEN_IN, TWO_SIDED, DominatingPair, NormalPair
from skdp.privacy.accounting.releases import Pairs, Release, Row

if TYPE_CHECKING:
    from dp_accounting import DpEvent


class GaussianNoise(Release):
    """What all releases with Gaussian noise have; each declares its fields, in the order of its rows."""

    parameter_name = "noise_multiplier"
    parameter_label = "multiplier"
    noise = "Gaussian rounded to the grid"
    sensitivity_of = "the released numbers (l2 norm)"

    noise_multiplier: float

    @property
    def rate(self) -> float:
        """The sampling rate, checked; 1 for full batches."""
        return 1.0

    def joint_multiplier(self, scale: float) -> float:
        """Noise multiplier of the Gaussian release with the zCDP of one of `scaled`, on all records."""
        return scale * self.noise_multiplier

    def full_mu(self) -> float:
        """Gaussian-DP parameter, rounded up, if all records were in every batch; inf where none is proven."""
        return math.sqrt(self.count) / self.noise_multiplier

    def scaled(self, scale: float) -> Self:
        """The same releases with ``scale`` times the noise."""
        return self.changed(noise_multiplier=scale * self.noise_multiplier)

    def changed(self, **values: object) -> Self:
        """The same releases with other values of their fields."""
        return replace(self, **cast("dict[str, Never]", values))  # each kind has fields of its own

    def _refuse_no_noise(self) -> None:
        if not self.noise_multiplier > 0.0:
            raise UnsupportedAccounting("A Gaussian release without noise has no finite curve.")


class GaussianOnBatches(GaussianNoise):
    """Releases that have a dominating pair and no mu, on Poisson batches and on full ones.

    One batch holds the releases of one such kind, and Gaussian ones beside them.
    """

    sampling_rate: float | None
    remedy: ClassVar[str]  # words for an error message: the cause that no noise mends, and the remedy

    @property
    def on_sample(self) -> bool:
        """True: a full batch is accounted for by its dominating pair, too."""
        return True

    @property
    def rate(self) -> float:
        if self.sampling == FULL_BATCH:
            return 1.0
        return check_rate(math.nan if self.sampling_rate is None else self.sampling_rate)

    def mu(self) -> float:
        return math.inf if self.count else 0.0

    @classmethod
    def proven(cls, sampling: str, adjacency: str, beside: set[type[Release]]) -> tuple[str, ...]:
        alone = all(kind is cls or kind.is_gaussian_dp for kind in beside)
        return cls.accountants if alone and cls._covers(sampling, adjacency) else ()

    @staticmethod
    def _covers(sampling: str, adjacency: str) -> bool:
        return adjacency != "replace-one" and sampling in (FULL_BATCH, POISSON)

    def sampling_text(self) -> str:
        return self.sampling + ("" if self.sampling_rate is None else f", rate {self.sampling_rate:.6g}")

    def seen_text(self, unit: str) -> str:
        return f"every {unit} with probability {self.rate:.6g}" if self.rate < 1.0 else super().seen_text(unit)

    def _pair(self, kind: str) -> DominatingPair:
        """The pair in one direction, "out" or "in"."""
        raise NotImplementedError

    def pld(self, adjacency: str) -> Pairs:
        self._refuse_no_noise()
        if not self._covers(self.sampling, adjacency):
            raise self._unsupported(f"{self.sampling} batches under {adjacency}")
        if not self.count:
            return (), ()
        return (self._pair(OUT),), (self._pair(TAKEN_IN),)


@dataclass(frozen=True, kw_only=True)
class Gaussian(GaussianNoise):
    """Gaussian noise of ``noise_multiplier`` times the l2 sensitivity under the adjacency that is claimed.

    Privacy
    -------
    With noise multiplier z a release is (1/z)-GDP, and ``count`` adaptive ones are (sqrt(count)/z)-GDP (Dong, Roth
    and Su 2022). This is exact, and so are the pair N(1/z, 1), N(0, 1), the curve a / (2 z^2) of Renyi DP
    (Mironov 2017) and rho = 1 / (2 z^2) (Bun and Steinke 2016).
    """

    name = "gaussian"
    accountants = ("pld", "rdp")
    is_gaussian_dp = True

    noise_multiplier: float
    noise_std: float | None = None
    n_batches: int | None = None  # batches of the partition that one release takes; each unit is in one of them

    @classmethod
    def variant(cls, row: Row) -> type[Release]:
        return cls if row.get("sampling", FULL_BATCH) == FULL_BATCH else SampledGaussian

    @classmethod
    def proven(cls, sampling: str, adjacency: str, beside: set[type[Release]]) -> tuple[str, ...]:
        replaced = adjacency == "replace-one"
        if sampling == WITHOUT_REPLACEMENT:
            return ("rdp",) if replaced else ()
        if sampling == POISSON and replaced:
            return ("pld",)
        return cls.accountants if sampling in (FULL_BATCH, POISSON) else ()

    def sampling_text(self) -> str:
        return self.sampling if self.n_batches is None else f"partition into {self.n_batches} batches"

    def event(self, accountant: str, adjacency: str) -> "DpEvent":
        import dp_accounting

        doubled = accountant == "pld" and adjacency == "replace-one"  # std over clip norm is expected
        return dp_accounting.GaussianDpEvent(self.noise_multiplier * (2.0 if doubled else 1.0))

    def mu(self) -> float:
        self._refuse_sampling()
        if self.count == 0:
            return 0.0
        mu = 1.0 / self.noise_multiplier if self.noise_multiplier > 0.0 else math.inf
        return math.sqrt(self.count) * mu

    def rho(self) -> float:
        self._refuse_sampling()
        self._refuse_no_noise()
        return self.count * (0.5 / self.noise_multiplier**2)

    def pld(self, adjacency: str) -> Pairs:
        self._refuse_no_noise()
        one = (NormalPair(GAUSSIAN, self.noise_multiplier, 1.0, self.count),) if self.count else ()
        return one, one

    def rdp(self, orders: Floats, adjacency: str) -> Floats:
        self._refuse_no_noise()
        return self.count * orders / (2.0 * self.noise_multiplier**2)


@dataclass(frozen=True, kw_only=True)
class SampledGaussian(Gaussian):
    """Gaussian releases, each on a fresh and secret sample of its own; its row says ``sampling``.

    Every record's contribution lies in a ball of radius C, the divisor is a constant, and the sensitivity behind
    the noise multiplier z is 2 C under replace-one and C otherwise.

    Privacy
    -------
    Poisson sampling with rate q. Under replace-one the pair ((1-q) N(0) + q N(C), (1-q) N(0) + q N(-C)), of
    standard deviation 2 z C, dominates. Under zero-out and add-remove it is ((1-q) N(0) + q N(C), N(0)), of
    standard deviation z C, in either direction (Zhu, Dong and Wang 2022). The second pair has the Renyi-DP curve
    of Mironov, Talwar and Zhang (2019), which covers both directions; under replace-one none is proven.

    Samples of a fixed size, under replace-one only: the Renyi-DP bound of Wang, Balle and Kasiviswanathan (2019),
    see `skdp.privacy.accounting.rdp`. It is no dominating pair.
    """

    sampling_rate: float | None = None
    batch_size: int | None = None
    n_records: int | None = None

    @property
    def rate(self) -> float:
        return check_rate(math.nan if self.sampling_rate is None else self.sampling_rate)

    def sampling_text(self) -> str:
        if self.sampling == WITHOUT_REPLACEMENT and self.n_records is not None:
            return f"{self.batch_size} of {self.n_records} {self.sampling}"
        return self.sampling + ("" if self.sampling_rate is None else f", rate {self.sampling_rate:.6g}")

    def seen_text(self, unit: str) -> str:
        if self.sampling == WITHOUT_REPLACEMENT and self.n_records is not None:
            return f"{self.batch_size} of {self.n_records} {unit}s"
        return f"every {unit} with probability {1.0 if self.sampling_rate is None else self.sampling_rate:.6g}"

    def event(self, accountant: str, adjacency: str) -> "DpEvent":
        import dp_accounting

        event = super().event(accountant, adjacency)
        if self.sampling == POISSON:
            return dp_accounting.PoissonSampledDpEvent(self.rate, event)
        n, b = self.n_records, self.batch_size
        if n is None or b is None:
            raise ValueError("a row of batches without replacement needs n_records and batch_size")
        return dp_accounting.SampledWithoutReplacementDpEvent(int(n), int(b), event)

    def pld(self, adjacency: str) -> Pairs:
        self._refuse_no_noise()
        if self.sampling != POISSON:
            raise self._unsupported(f"dominating pair of {self.sampling} samples")
        z, rate, count = self.noise_multiplier, self.rate, self.count
        if not count:
            return (), ()
        if adjacency == "replace-one":
            both = (NormalPair(TWO_SIDED, 2.0 * z, rate, count),)
            return both, both
        return (NormalPair(OUT, z, rate, count),), (NormalPair(TAKEN_IN, z, rate, count),)

    def rdp(self, orders: Floats, adjacency: str) -> Floats:
        self._refuse_no_noise()
        replaced = adjacency == "replace-one"
        if self.sampling == WITHOUT_REPLACEMENT and replaced:
            return self.count * rdp.curve_at(self.noise_multiplier, self.rate, orders)
        if self.sampling != POISSON or replaced:
            raise self._unsupported(f"Renyi-DP curve of {self.sampling} samples under {adjacency}")
        return self.count * rdp.poisson_curve(self.noise_multiplier, self.rate, np.asarray(orders))


RELEASE = Gaussian
