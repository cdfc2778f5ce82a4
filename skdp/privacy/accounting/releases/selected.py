"""Releases that choose coordinates of a sum privately and add Gaussian noise to these."""

import math
from dataclasses import dataclass

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting.amplification import FULL_BATCH, POISSON, check_rate
from skdp.privacy.accounting.pairs import OUT, TAKEN_IN
from skdp.privacy.accounting.releases.base import Array, Release, register
from skdp.privacy.accounting.selected import SelectedPair

__all__ = ["SelectedGaussian", "check_choices"]

Pairs = tuple[tuple[SelectedPair, ...], tuple[SelectedPair, ...]]


def check_choices(choices: object, choice_epsilon: float) -> tuple[int, float]:
    """The two numbers, or ValueError."""
    if isinstance(choices, bool) or not isinstance(choices, int) or choices < 1:
        raise ValueError(f"choices must be an int >= 1, got {choices!r}.")
    if not 0.0 < choice_epsilon < math.inf:
        raise ValueError(f"choice_epsilon must be finite and > 0, got {choice_epsilon!r}.")
    return choices, float(choice_epsilon)


@register
@dataclass(frozen=True, kw_only=True)
class SelectedGaussian(Release):
    """``choices`` private choices of coordinates, then Gaussian noise on the chosen ones, on one batch.

    Privacy
    -------
    `skdp.privacy.accounting.selected` has the dominating pair, under zero-out and add-remove. As k choices of
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
    parameter_name = "noise_multiplier"
    parameter_label = "multiplier"
    accountants = ("pld", "rdp")
    noise = "Gaussian rounded to the grid"

    noise_multiplier: float
    choices: int
    choice_epsilon: float
    noise_std: float | None = None
    sampling_rate: float | None = None
    batch_size: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choices(self.choices, self.choice_epsilon)

    @property
    def on_sample(self) -> bool:
        """True: a full batch is accounted for by its dominating pair, too."""
        return True

    @property
    def rate(self) -> float:
        """The sampling rate, checked; 1 for full batches."""
        if self.sampling == FULL_BATCH:
            return 1.0
        return check_rate(math.nan if self.sampling_rate is None else self.sampling_rate)

    def mu(self) -> float:
        return math.inf if self.count else 0.0

    def rho(self) -> float:
        """Of the releases if all records were in every batch."""
        self._refuse_no_noise()
        one = self.choices * self.choice_epsilon**2 / 8.0 + 0.5 / self.noise_multiplier**2
        return self.count * one

    def pld(self, adjacency: str) -> Pairs:
        self._refuse_no_noise()
        if adjacency == "replace-one" or self.sampling not in (FULL_BATCH, POISSON):
            raise self._unsupported(f"{self.sampling} batches under {adjacency}")
        if not self.count:
            return (), ()
        z, k, e = self.noise_multiplier, self.choices, self.choice_epsilon
        left, came = ((SelectedPair(kind, z, k, e, self.rate, self.count),) for kind in (OUT, TAKEN_IN))
        return left, came

    def rdp(self, orders: Array, adjacency: str) -> Array:
        if self.rate < 1.0:  # known at integer orders only: `sampled.amplified_epsilon`
            raise self._unsupported("Renyi-DP curve of Poisson samples at every order")
        return self.rho() * orders

    def _refuse_no_noise(self) -> None:
        if not self.noise_multiplier > 0.0:
            raise UnsupportedAccounting("A Gaussian release without noise has no finite curve.")
