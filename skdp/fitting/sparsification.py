"""Random sparsification: in each epoch the steps train a random part of the parameters (Zhu & Blaschko 2023).

A mask keeps some entries of each record's gradient **before** it is clipped. Only the kept entries get noise: an
entry that is kept has a larger part of the clip norm, and the noise of a step is shorter.

Privacy: the mask is drawn without looking at the records, or it follows from released gradients (``ranked``). For
each mask `PrivateRecords.gradient_sum` clips and adds the kept entries, and a step is a release of the plan with
fewer entries. The noise multiplier does not change, and masks need not be secret: one entry of a released vector
less tells an adversary nothing more.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from numbers import Real

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdp.base import check_number
from skdp.fitting.loop import GradientAt
from skdp.fitting.minibatch_warnings import StepFacts
from skdp.fitting.noisy_mean import Clipping, GradientEstimator, Gradients, NoisyMean, clipped_mean, method_of
from skdp.privacy import BatchPlan, PrivacySession, PrivateRecords

__all__ = ["Masks", "RandomSparsification", "SparsifiedMean", "chosen_sparsity"]

Vector = NDArray[np.float64]


@dataclass(frozen=True)
class RandomSparsification(GradientEstimator):
    """In each epoch a random part of the parameters rests: give it to a net as ``gradient_estimator=``.

    An epoch is so many steps as take n records: n / batch_size, rounded up. It has one mask. A gradient is masked
    before it is clipped, so the kept entries fill the clip norm alone. They alone get noise. Momentum and Adam go
    on for all entries.

    Parameters
    ----------
    rate : float or "auto", default="auto"
        Part of the parameters that rests in the last epoch, in [0, 1). "auto" is 1 - (s / l)^2, or 0 if that is
        negative, where s is the clip norm and l the length of the noise of a mean gradient: see Notes.
    cooling : bool, default=True
        Whether the part grows linearly from 0 in the first epoch. Else it is ``rate`` in all of them.
    ranked : bool, default=False
        Whether the entries rest whose sums of released gradients were the smallest in the last epoch. Resting
        entries count with noise alone, so that they come back. In the paper this did as well as chance, since the
        noise decides which sums are small.

    Raises
    ------
    TypeError, ValueError
        If a parameter is not as described.

    Notes
    -----
    **Rate.** The paper bounds the mean gradient of T steps of size g by A / k + k N for the rate r, and
    supposes that k^2 = 1 - r. The noise has the part N = g G C^2 z^2 d / (2 B^2), with the smoothness G, clip
    norm C, noise multiplier z, d parameters and batches of B. All else is A, at least g G C^2 / 2, and the best
    rate is 1 - A / N, if that is positive. (The paper's appendix G leaves out the g in N.) The decrease of the
    loss is not public. "auto" is the best rate when it does not fall any more: 1 - B^2 / (z^2 d), which is
    1 - (s / l)^2. This is no promise. If the step size is the best one for each rate, no rate above 0 makes the
    bound smaller. The benchmarks have measured rates.

    References
    ----------
    Zhu & Blaschko (2023), "Improving Differentially Private SGD via Randomly Sparsified Gradients".

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPMLPClassifier
    >>> from skdp.nn import RandomSparsification
    >>> X = np.random.default_rng(0).uniform(-1, 1, size=(3000, 2))
    >>> model = DPMLPClassifier(
    ...     epsilon=4.0, classes=(0, 1), input_range=(-1, 1), gradient_estimator=RandomSparsification(0.5)
    ... ).fit(X, X[:, 0] > 0)
    >>> model.sparsity_
    0.5
    """

    rate: float | str = "auto"
    cooling: bool = True
    ranked: bool = False
    whole_norms = False

    def __post_init__(self) -> None:
        check_number("rate", self.rate, Real, low=0, word="auto")
        if not isinstance(self.rate, str) and self.rate >= 1:
            raise ValueError(f"rate must be in [0, 1), got {self.rate!r}")
        for name in ("cooling", "ranked"):
            if not isinstance(getattr(self, name), bool):
                raise TypeError(f"{name} must be True or False, got {getattr(self, name)!r}")

    def check(self, model: BaseEstimator) -> None:
        if method_of(model.clipping) in ("ghost", "projections"):
            raise ValueError(
                f"clipping={model.clipping!r} takes the norms of whole gradients, and RandomSparsification clips "
                "some of their entries: use clipping='auto', 'materialized', 'one-by-one' or Microbatch()"
            )

    def engine(self, clipping: Clipping) -> "SparsifiedMean":
        return SparsifiedMean(clipping, self)


def chosen_sparsity(noise_std: float, clip_norm: float, size: int) -> float:
    """Return the rate of ``rate="auto"``.

    Parameters
    ----------
    noise_std : float
        Of an entry of a released mean gradient.
    clip_norm : float
    size : int
        Number of trained parameters.

    Examples
    --------
    >>> from skdp.fitting.sparsification import chosen_sparsity
    >>> chosen_sparsity(0.02, 0.1, 100)
    0.75
    """
    noise = noise_std * math.sqrt(size)
    return max(0.0, 1.0 - (clip_norm / noise) ** 2) if noise > 0 else 0.0


class Masks:
    """Which entries are kept in each step, from public and released numbers.

    Parameters
    ----------
    sparsification : RandomSparsification
    rate : float
        Part of the entries that rests in the last epoch.
    size : int
        Number of entries.
    epoch : int
        Number of steps with one mask.
    n_iter : int
        Number of all steps.
    rng : numpy.random.Generator
        Public randomness.

    Attributes
    ----------
    kept : ndarray of int64, or None
        Positions of the kept entries, ascending; None if all are.
    """

    def __init__(
        self, sparsification: RandomSparsification, rate: float, size: int, epoch: int, n_iter: int,
        rng: np.random.Generator,
    ) -> None:  # fmt: skip
        self._cooling, self._rate, self._size = sparsification.cooling, rate, size
        self._epoch, self._epochs = epoch, math.ceil(n_iter / epoch)
        self._rng = rng
        self._seen = np.zeros(size) if sparsification.ranked else None
        self.kept: NDArray[np.int64] | None = None

    def rate_of(self, epoch: int) -> float:
        """Part of the entries that rests in an epoch, counted from 0."""
        if not self._cooling:
            return self._rate
        return self._rate * epoch / (self._epochs - 1) if self._epochs > 1 else 0.0

    def begin_step(self, t: int) -> None:
        """Draw or rank a new mask where an epoch begins."""
        if t % self._epoch:
            return
        number = max(1, self._size - round(self.rate_of(t // self._epoch) * self._size))
        if number == self._size:
            self.kept = None
        elif self._seen is None or t == 0:
            self.kept = np.sort(self._rng.permutation(self._size)[:number])
        else:
            self.kept = np.sort(np.argsort(-np.abs(self._seen), kind="stable")[:number])
        if self._seen is not None:
            self._seen = np.zeros(self._size)

    def end_step(self, gradient: Vector, noise_std: float) -> None:
        """Add a released gradient to the sum for the next ranking; resting entries count with noise alone."""
        if self._seen is None:
            return
        self._seen += gradient
        if self.kept is not None:
            noise = self._rng.normal(scale=noise_std, size=self._size)
            noise[self.kept] = 0.0
            self._seen += noise


@dataclass(frozen=True)
class SparsifiedMean(NoisyMean):
    """A step's gradient is the noisy mean of clipped gradients of the kept entries; the others are 0."""

    sparsification: RandomSparsification

    def sparsity(self, plan: BatchPlan, adjacency: str, size: int) -> float:
        if not isinstance(self.sparsification.rate, str):
            return float(self.sparsification.rate)
        return chosen_sparsity(self.noise((plan,), adjacency).std, self.clipping.norm, size)

    def utility(self, plans: Sequence[BatchPlan], adjacency: str, steps: StepFacts) -> StepFacts:
        (plan,) = plans
        cools = self.sparsification.cooling and self.sparsity(plan, adjacency, steps.size) > 0
        return replace(steps, is_one_epoch=cools and plan.releases <= math.ceil(plan.n_units / plan.batch_size))

    def begin(
        self, session: PrivacySession, records: PrivateRecords, gradients: Gradients, *plans: BatchPlan
    ) -> GradientAt:
        (plan,) = plans
        size = gradients.size
        rate = self.sparsity(plan, session.adjacency, size)
        epoch = math.ceil(plan.n_units / plan.batch_size)
        rng = np.random.default_rng(session.integers(2**62, 4).tolist())
        masks = Masks(self.sparsification, rate, size, epoch, plan.releases, rng)

        def gradient(theta: NDArray[np.float32], t: int) -> tuple[Vector, float]:
            masks.begin_step(t)
            batch = session.draw(plan, records, positions=True)
            function = gradients.at(theta)
            mean = clipped_mean(records, function, self.clipping, plan, batch, size=size, entries=masks.kept)
            noise_std = session.noise_std(mean, plan) if self.sparsification.ranked else 0.0
            released = session.gaussian(mean, plan)
            if masks.kept is not None:
                found = np.zeros(size)
                found[masks.kept] = released
                released = found
            masks.end_step(released, noise_std)
            return released, 0.0

        return gradient
