"""Facts of nets and vectors of words before their fit, and what each tells; for `skdp.fitting.utility`.

All facts are public numbers. The numbers at which a fit warns are in `skdp.fitting.thresholds`.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from skdp.fitting.thresholds import is_given
from skdp.privacy import PublicShape

__all__ = [
    "ChoiceFacts",
    "CoolingFacts",
    "CountFacts",
    "ImageFacts",
    "MethodFacts",
    "NetFacts",
    "StepFacts",
    "ThresholdFacts",
    "WordFacts",
]

CHANNELS_FIRST = (1, 3)  # channels that other libraries write before height and width
SMALLEST_SIDE = 8  # from which so many columns are rather an image than a table


class MethodFacts(Protocol):
    """Facts that tell something by themselves."""

    def told(self) -> Iterator[str]:
        """What they tell."""


@dataclass(frozen=True)
class StepFacts:
    """What the steps of a fit change, in its own words.

    Attributes
    ----------
    size : int
        Number of parameters that the steps change.
    n_tokens : int or None
        Different tokens of a unit, at most, or a number below that, where the model begins with a table of them.
    parameters, token, unit : str
        What these are called.
    """

    size: int
    n_tokens: int | None = None
    parameters: str = "parameters"
    token: str = "token"
    unit: str = "record"


@dataclass(frozen=True)
class NetFacts:
    """Of a net.

    Attributes
    ----------
    n_parameters : int
    signal : float
        Longest mean gradient over the length of its noise, if one release took the whole budget.
    other_inputs : bool
        Whether it starts from parameters that were trained on inputs of another scale.
    second_momentum : float
        Momentum on top of recursive momentum.
    bounded_by : str
        The activation at its end, if that bounds its outputs.
    """

    n_parameters: int
    signal: float
    other_inputs: bool = False
    second_momentum: float = 0.0
    bounded_by: str = ""

    @property
    def is_small(self) -> bool:
        """Whether the units are few for a net of this size."""
        return is_given("few units", self.signal, "nets")

    def told(self, unit: str, about: str) -> Iterator[str]:
        """What they tell; ``about`` says how many units there are."""
        if self.other_inputs:
            yield (
                "parameters_init was trained on inputs of one scale, and this fit releases another: give both "
                "fits one public input_range="
            )
        if self.second_momentum > 0:
            yield (
                f"RecursiveMomentum has a momentum of its own, and momentum={self.second_momentum:g} on top of it "
                "does harm: give optimizer=SGD(momentum=0)"
            )
        if self.bounded_by:
            yield (
                f"the net ends with {self.bounded_by}, which bounds its outputs or their signs: end it with the "
                "Dense layer before it"
            )
        if self.is_small:
            yield (
                f"{about} for a net of {self.n_parameters} parameters: most of what it learns may be noise; use "
                f"a smaller net, more {unit}s, a larger epsilon or a linear model"
            )


@dataclass(frozen=True)
class WordFacts:
    """Of a table of words: its signal as in `NetFacts`, and whether it is the smallest table there can be."""

    n_words: int
    n_numbers: int
    signal: float
    least: bool = False

    def told(self, shape: PublicShape, epsilon: float) -> Iterator[str]:
        """What they tell."""
        if is_given("few units", self.signal, "DPWord2Vec"):
            units = shape.counted().replace("record", "window")
            counted = f"{self.n_words} word" if self.n_words == 1 else f"{self.n_words} words"
            yield (
                f"{units} at epsilon={epsilon:g} are few for {'even ' if self.least else ''}a table of "
                f"{counted} and {self.n_numbers} numbers: most of what it learns may be noise; use fewer words, a "
                "smaller vector_size or a larger epsilon"
            )


@dataclass(frozen=True)
class ImageFacts:
    """Of images: their public shape and the type of their numbers, as they were given.

    Attributes
    ----------
    shape : tuple of int
        Height, width and channels of an image.
    named : bool
        Whether X holds images, or ``image_shape`` says what a row holds.
    dtype : dtype or None
        None where it is not known.
    high : float or None
        Largest end of ``input_range``.
    """

    shape: tuple[int, int, int]
    named: bool
    dtype: object
    high: float | None

    def told(self) -> Iterator[str]:
        """What they tell."""
        (height, width, channels), dtype = self.shape, self.dtype
        if height in CHANNELS_FIRST and height < min(width, channels):
            yield (
                f"images of shape {self.shape} are read as {height} x {width} pixels of {channels} channels; if "
                "the first number counts channels, move them to the end: X.transpose(0, 2, 3, 1)"
            )
        if dtype == np.uint8 and self.high is not None and self.high <= 1:
            yield (
                f"X holds whole numbers ({dtype}), but input_range ends at {self.high:g}, to which larger ones "
                "are clipped; the range of pixels of 8 bits is (0, 255)"
            )
        if self.high is None and isinstance(dtype, np.dtype) and dtype.kind in "iu":
            yield (
                f"X holds whole numbers ({dtype}), which the net takes as they are; declare their public range, "
                "for pixels of 8 bits input_range=(0, 255)"
            )
        side = math.isqrt(width)
        if not self.named and height == channels == 1 and side**2 == width and side >= SMALLEST_SIDE:
            yield (
                f"X has {width} columns, which are read as one row of pixels; if a row holds an image of {side} "
                f"by {side} pixels, give image_shape=({side}, {side})"
            )


@dataclass(frozen=True)
class CoolingFacts:
    """Of random sparsification with cooling: the number of steps, and those with the first mask."""

    n_iter: int
    epoch: int

    def told(self) -> Iterator[str]:
        """What they tell."""
        if self.n_iter <= self.epoch:
            yield (
                "all steps are one epoch, in which cooling leaves the rate of sparsification at 0: use more "
                "epochs, or RandomSparsification(cooling=False)"
            )


@dataclass(frozen=True)
class ChoiceFacts:
    """Of sparse selection, whose choice can hardly be better than chance, or by which nets have lost.

    Attributes
    ----------
    count : int
        Entries that a step changes.
    steps : StepFacts
    looks : bool
        Whether the choice looks at the gradient.
    largest : float
        The largest that all chosen entries can be at once.
    noise : float
        Scale of the noise that they must exceed.
    """

    count: int
    steps: StepFacts
    looks: bool
    largest: float
    noise: float

    def told(self) -> Iterator[str]:
        """What they tell."""
        size, reason = self.steps.size, ""
        if self.steps.n_tokens is None:
            reason = "nets without an Embedding learnt less with it than without"
        elif not self.looks:
            reason = 'method="uniform" does not look for the ones that matter'
        elif self.largest < self.noise * math.log(size / self.count):
            reason = "the noise of the choice is so large that the choice is nearly random"
        if reason:
            yield (
                f"gradient_estimator=SparseSelection changes {self.count} of {size} {self.steps.parameters} in a "
                f"step, and {reason}: leave it out, or compare both on public data"
            )


@dataclass(frozen=True)
class CountFacts:
    """Of DP-AdaFEST: how many units of a batch must have a token to change its vector.

    Attributes
    ----------
    wanted : int
    batch_size : int
    steps : StepFacts
    """

    wanted: int
    batch_size: int
    steps: StepFacts

    def told(self) -> Iterator[str]:
        """What they tell."""
        token, unit = self.steps.token, self.steps.unit
        if is_given("very common tokens", self.wanted, unit=self.batch_size):
            yield (
                f"gradient_estimator=AdaFEST changes the vector of a {token} only where about {self.wanted} "
                f"{unit}s of a batch have it (for {self.steps.n_tokens} different {token}s in each), and a batch "
                f"has {self.batch_size}: give a smaller threshold, such as 0, or a larger batch_size, or leave it "
                "out"
            )


@dataclass(frozen=True)
class ThresholdFacts:
    """Of a private vocabulary: groups that need a word which is their only one, and the most words of a group."""

    threshold: float
    most: int
    n_units: int

    def told(self) -> Iterator[str]:
        """What they tell."""
        wanted = self.threshold * math.sqrt(self.most)
        if wanted > self.n_units:
            yield (
                f"a word is released if about {self.threshold:.0f} * sqrt(k) groups have it, where k is the "
                f"number of different words of a group. For k = max_words_per_group = {self.most} that is "
                f"{wanted:.0f} groups, more than there are. If groups have so many words, give a smaller "
                "max_words_per_group (their most frequent words count then), a larger epsilon or "
                "vocabulary_share, or a public vocabulary"
            )
