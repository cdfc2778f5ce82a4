"""The frame of fits whose steps follow noisy gradients of minibatches: nets, and vectors of words."""

from collections.abc import Callable
from dataclasses import replace
from typing import ClassVar, Generic, Literal

from skdp.base.declare import changed, fitted, parameter
from skdp.base.fit import PrivateFit, ProblemT
from skdp.base.kinds import callback, choice, integer, real
from skdp.fitting import parameters
from skdp.fitting.optimizers import SGD, Adam, Rule, rule_of
from skdp.fitting.parameters import Auto, AutoInt
from skdp.privacy import PublicShape


class MinibatchFit(PrivateFit[ProblemT], Generic[ProblemT]):
    """A private fit by gradients of minibatches, whose sizes follow from public numbers where none are given."""

    _no_blocks: ClassVar[str | None] = (
        "its steps add gradients of a batch by their positions. A batch has at most batch_size rows, so fit a "
        "numpy.memmap, of which each step reads these rows alone"
    )

    batch_size: AutoInt = parameter(
        integer(low=1, word="auto"),
        """Expected number of records (or groups) in a Poisson batch, by which means are divided. n or more takes
        all of them in every step. "auto" follows from n, the budget and the number of steps.""",
        default="auto",
    )
    max_iter: AutoInt = parameter(
        integer(low=1, word="auto"),
        """Number of steps. Every step is paid for, so there is no stopping rule. "auto" follows from n, the budget
        and the number of parameters.""",
        default="auto",
    )
    n_epochs: float | None = parameter(
        real(low=0, strict=True, high=1e6, none=True),
        """Number of steps in another unit: n / batch_size steps are an epoch. Only with ``max_iter="auto"``.""",
        default=None,
    )
    learning_rate: Auto = parameter(
        real(low=0, strict=True, high=1e100, word="auto"),
        """Size of the first step; the gradient that it multiplies is at most ``clip_norm`` long. "auto" is as
        long as the signal and the noise allow, by public numbers. For Adam it is at most 0.03, and 3 over the
        number of steps.""",
        default="auto",
    )
    optimizer: Literal["sgd", "adam"] | SGD | Adam = parameters.OPTIMIZER
    clip_norm: float | Literal["auto"] = parameter(
        real(low=0, strict=True, word="auto"),
        """Largest l2 norm of one record's (or group's) gradient. Longer gradients are scaled down to it.
        "auto" is the public constant 0.1, below the gradients of nearly all records, so that they count the
        same; the product of clip norm and step size decides. Nothing is released for it.""",
        default="auto",
    )
    adjacency: Literal["replace-one", "zero-out", "add-remove"] = changed(
        default="zero-out",
        kind=choice("zero-out", "replace-one", "add-remove"),
        text="""What one record (or group) may do between neighbouring data sets. With "zero-out" it is replaced by
        an absent one, which adds 0 to every sum; this is the usual claim of private deep learning. With
        "replace-one", the default of the linear models, it takes other values. With "add-remove" it comes or goes;
        this needs ``n_public``.""",
    )
    verbose: bool = parameters.VERBOSE
    callback: Callable[..., object] | None = parameter(
        callback(),
        "Called as ``callback(iteration, parameters)`` with the released parameters of each step.",
        default=None,
        releases=False,
        place="last",
    )
    batch_size_: int = fitted("int", "The expected size of a batch.")
    learning_rate_: float = fitted("float", "Size of the first step.")
    clip_norm_: float = fitted()
    n_iter_: int = fitted()
    _gone = parameters.GONE_OPTIMIZER

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if self.n_epochs is not None and not isinstance(self.max_iter, str):
            raise ValueError("give max_iter (steps) or n_epochs, not both")

    def _rule(self) -> Rule:
        return rule_of(self.optimizer, "linear", None)


def of_width(shape: PublicShape, width: int, name: str) -> PublicShape:
    """The shape of tables whose width a parameter tells; 1 is the default of ``plan``."""
    if shape.n_features not in (1, width):
        raise ValueError(
            f"n_features={shape.n_features} does not fit: {name} tells that it is {width}; leave it out"
        )
    return replace(shape, n_features=width, dtype="float32")
