"""Facts of nets and vectors of words before their fit, and the warnings of each; all are public numbers.

`skdp.fitting.utility` decides by its table of thresholds whether units are few, or tokens very common.
"""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from skdp.privacy import PublicShape

CHANNELS_FIRST = (1, 3)  # channels that other libraries write before height and width
SMALLEST_SIDE = 8  # from which so many columns are rather an image than a table


@dataclass(frozen=True)
class NetFacts:
    """Facts of a net.

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

    def told(self, unit: str, about: str, is_low_dimensional: bool) -> Iterator[str]:
        """Warnings of these facts; ``about`` states the number of units, which may be few for the net."""
        if self.other_inputs:
            yield (
                "parameters_init was trained on inputs of one scale, and this fit releases another: give both "
                "fits one public input_range="
            )
        if self.second_momentum > 0:
            yield (
                f"RecursiveMomentum has a momentum of its own, and momentum={self.second_momentum:g} on top of it "
                "lowers the accuracy: give optimizer=SGD(momentum=0)"
            )
        if self.bounded_by:
            yield (
                f"the net ends with {self.bounded_by}, which bounds its outputs or their signs: end it with the "
                "Dense layer before it"
            )
        if is_low_dimensional:
            yield (
                f"{about} for a net of {self.n_parameters} parameters: its weights may be mostly noise; use "
                f"a smaller net, more {unit}s, a larger epsilon or a linear model"
            )


@dataclass(frozen=True)
class WordFacts:
    """Facts of a table of words: its signal as in `NetFacts`, and whether it is the smallest table there can be.

    Of a private vocabulary also the groups that need a word which is their only one, and most words of a group.
    """

    n_words: int
    n_numbers: int
    signal: float
    least: bool = False
    threshold: float = 0.0
    most: int = 0

    def told_of_few(self, shape: PublicShape, epsilon: float) -> str:
        """The warning where units are few."""
        units = shape.counted().replace("record", "window")
        counted = f"{self.n_words} word" if self.n_words == 1 else f"{self.n_words} words"
        return (
            f"{units} at epsilon={epsilon:g} are few for {'even ' if self.least else ''}a table of "
            f"{counted} and {self.n_numbers} numbers: its vectors may be mostly noise; use fewer words, a "
            "smaller vector_size or a larger epsilon"
        )

    def told_of_release(self, n_units: int) -> Iterator[str]:
        """Warnings of the release of the words."""
        wanted = self.threshold * math.sqrt(self.most)
        if wanted > n_units:
            yield (
                f"a word is released if about {self.threshold:.0f} * sqrt(k) groups have it, where k is the "
                f"number of different words of a group. For k = max_words_per_group = {self.most} that is "
                f"{wanted:.0f} groups, more than there are. If groups have so many words, give a smaller "
                "max_words_per_group (their most frequent words count then), a larger epsilon or "
                "vocabulary_share, or a public vocabulary"
            )


@dataclass(frozen=True)
class ImageFacts:
    """Facts of images: their public shape and the type of their numbers, as they were given.

    Attributes
    ----------
    shape : tuple of int
        Height, width and channels of an image.
    named : bool
        Whether X holds images, or ``image_shape`` gives the image in a row.
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
        """Warnings of these facts."""
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
class StepFacts:
    """Facts of the releases of the steps.

    Attributes
    ----------
    size : int
        Number of parameters that the steps change.
    n_tokens : int or None
        Different tokens of a unit, at most, or a number below that, where the model begins with a table of them.
    parameters, token, unit : str
        What these are called.
    is_one_epoch : bool
        Whether random sparsification with cooling has one mask alone.
    chosen : int
        Entries that a step of sparse selection changes; 0 where there is no choice.
    looks : bool
        Whether this choice looks at the gradient.
    largest, noise : float
        The largest that all chosen entries can be at once, and the scale of the noise that they must exceed.
    wanted, batch_size : int
        Units of a batch that must have a token to change its vector by DP-AdaFEST.
    """

    size: int
    n_tokens: int | None = None
    parameters: str = "parameters"
    token: str = "token"
    unit: str = "record"
    is_one_epoch: bool = False
    chosen: int = 0
    looks: bool = True
    largest: float = math.inf
    noise: float = 0.0
    wanted: int = 0
    batch_size: int = 1

    def told(self, are_common: bool) -> Iterator[str]:
        """Warnings of these facts; a step may change the vectors of very common tokens only."""
        if self.is_one_epoch:
            yield (
                "all steps are one epoch, in which cooling leaves the rate of sparsification at 0: use more "
                "epochs, or RandomSparsification(cooling=False)"
            )
        reason = self._chance() if self.chosen else ""
        if reason:
            yield (
                f"gradient_estimator=SparseSelection changes {self.chosen} of {self.size} {self.parameters} in a "
                f"step, and {reason}: leave it out, or compare both on public data"
            )
        if are_common:
            token, unit = self.token, self.unit
            yield (
                f"gradient_estimator=AdaFEST changes the vector of a {token} only where about {self.wanted} "
                f"{unit}s of a batch have it (for {self.n_tokens} different {token}s in each), and a batch has "
                f"{self.batch_size}: give a smaller threshold, such as 0, or a larger batch_size, or leave it out"
            )

    def _chance(self) -> str:
        """Why the choice can hardly be better than chance, or that nets have lost by it."""
        if self.n_tokens is None:
            return "nets without an Embedding learnt less with it than without"
        if not self.looks:
            return 'method="uniform" does not look for the ones that matter'
        if self.largest < self.noise * math.log(self.size / self.chosen):
            return "the noise of the choice is so large that the choice is nearly random"
        return ""
