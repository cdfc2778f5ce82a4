"""Releases that choose coordinates of a sum privately and add Gaussian noise to these."""

import math
from dataclasses import dataclass

from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.releases.base import register
from skdp.privacy.accounting.releases.gaussian import GaussianOnBatches
from skdp.privacy.accounting.selected import SelectedPair

__all__ = ["SelectedGaussian", "check_choices"]


def check_choices(choices: object, choice_epsilon: float) -> tuple[int, float]:
    """The two numbers, or ValueError."""
    if isinstance(choices, bool) or not isinstance(choices, int) or choices < 1:
        raise ValueError(f"choices must be an int >= 1, got {choices!r}.")
    if not 0.0 < choice_epsilon < math.inf:
        raise ValueError(f"choice_epsilon must be finite and > 0, got {choice_epsilon!r}.")
    return choices, float(choice_epsilon)


@register
@dataclass(frozen=True, kw_only=True)
class SelectedGaussian(GaussianOnBatches):
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
    accountants = ("pld", "rdp")

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

    def _pair(self, kind: str) -> SelectedPair:
        z, k, e = self.noise_multiplier, self.choices, self.choice_epsilon
        return SelectedPair(kind, z, k, e, self.rate, self.count)

    def rdp(self, orders: Floats, adjacency: str) -> Floats:
        if self.rate < 1.0:  # known at integer orders only: `sampled.amplified_epsilon`
            raise self._unsupported("Renyi-DP curve of Poisson samples at every order")
        return self.rho() * orders
