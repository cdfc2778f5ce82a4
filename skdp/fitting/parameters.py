"""Declarations of parameters that several families of estimators share.

A frame lists those that it has: ``verbose: bool = VERBOSE``. An estimator changes or adds to a text with
`skdp.base.declare.changed`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from inspect import cleandoc
from numbers import Real
from typing import Any, Literal, TypeVar, cast

import numpy as np

from skdp.base.declare import Parameter, parameter, word_or_object
from skdp.base.kinds import callback, check_choice, choice, described, integer, real
from skdp.fitting.optimizers import SGD, Adam
from skdp.losses import NAMED, Loss, check_loss

T = TypeVar("T")


def more(shared: T, text: str) -> T:
    """A shared declaration with more lines of text."""
    declared = cast("Parameter", shared)
    return cast("T", replace(declared, text=f"{cleandoc(declared.text)}\n{cleandoc(text)}"))


def check_y_bounds(name: str, value: object) -> None:
    """Raise ValueError unless a range of targets is the word, or two finite numbers in order."""
    if (isinstance(value, str) and value == "auto") or is_range(value):
        return
    raise ValueError(
        f"{name} must be 'auto' or two finite numbers (low, high), low < high, between -1e100 and "
        f"1e100, got {value!r}"
    )


def is_range(bounds: Any) -> bool:
    """Whether ``bounds`` is a tuple, list, array or Series of two numbers in order."""
    if isinstance(bounds, str) or not hasattr(bounds, "__len__") or len(bounds) != 2:
        return False
    pair = tuple(bounds)
    if any(isinstance(b, (bool, np.bool_)) or not isinstance(b, Real) for b in pair):
        return False
    return all(-1e100 <= b <= 1e100 for b in pair) and float(pair[1]) - float(pair[0]) >= 1e-100


@dataclass(frozen=True)
class WordOrLoss:
    """The kind of a loss: a word, or an object for the same task; ``classes`` tells which."""

    choices: tuple[str, ...]
    classes: bool

    @property
    def words(self) -> str:
        return "{{{}}} or object of `skdp.losses.Loss`".format(", ".join(f'"{word}"' for word in self.choices))

    def check(self, name: str, value: Any) -> None:
        if isinstance(value, str):
            check_choice(name, value, self.choices)
            return
        check_loss(value, self.choices)
        if value.n_outputs != 1:
            raise TypeError(f"{name} must have one linear predictor: give {name}={self.choices[0]!r}")
        if bool(value.is_classification) != self.classes:
            raise TypeError(
                f"{name}={type(value).__name__}(...) must have is_classification = {self.classes}: here y is "
                + ("0 or 1, the index of the class" if self.classes else "a number")
            )


def _check_named_loss(name: str, value: object) -> None:
    if not isinstance(value, str):
        raise TypeError(
            f"{name} must be one of {list(NAMED)} here, whose facts are proven, got {type(value).__name__}: use "
            "an estimator by clipped gradient steps for a loss of your own, such as DPSGDRegressor"
        )
    check_choice(name, value, tuple(NAMED))


NAMED_ONLY = described('{"squared", "huber"}', _check_named_loss)
Auto = float | Literal["auto"]
AutoInt = int | Literal["auto"]
ClassLoss = Loss | Literal["logistic"]
NumberLoss = Loss | Literal["squared", "huber"]
Sampling = Literal["poisson", "without_replacement"]

# Text of ``n_nonzero_coefs`` in classifiers.
CLASS_NORMS = "With several classes the features with the largest l2 norm over the classes are kept."
N_NONZERO_COEFS: int | None = parameter(
    integer(low=1, none=True),
    "Number of features to keep. None keeps all. The intercept is always kept.",
    default=None,
)
# The kind of parts of the budget.
SHARE = real(low=0, below=1, word="auto", hint=" (a share of the budget)")
_CLIP = real(low=0, strict=True, word="auto")
CLIP_NORM: Auto = parameter(
    _CLIP,
    """Largest l2 norm of one record's (or group's) gradient. Longer gradients are scaled down to it. "auto"
    computes it from released medians: the median row norm and, for regression and groups, the median gradient norm
    at the start. They take 2 % of the budget (of mu^2), up to 20 % if the records are few.
    ``learning_rate="auto"`` needs the same medians. No budget is spent on them if both parameters are numbers.""",
    default="auto",
)
HALF_CLIP_NORM: Auto = parameter(
    _CLIP,
    """Largest l2 norm of one record's (or group's) gradient. Longer gradients are scaled down to it.
    "auto" is half the median gradient norm at the start, computed from released medians: the median
    row norm and, for regression and groups, the median gradient norm itself. They take 2 % of the budget
    (of mu^2), up to 20 % if the records are few. ``learning_rate="auto"`` needs the same medians. No
    budget is spent on them if both parameters are numbers.""",
    default="auto",
)
DESCENT_CLIP_NORM: Auto = parameter(
    _CLIP,
    """Largest l2 norm of one record's (or group's) gradient. Longer gradients are scaled down to it. "auto" is 0.5
    to 1.4 times the median gradient norm at the start: the less noise there is, the larger it is (theory). It
    is computed from released medians: the median row norm and, for groups, the median gradient norm itself. They
    take 2 % of the budget (of mu^2), up to 20 % if the records are few. ``learning_rate="auto"`` needs the same
    medians. No budget is spent on them if both parameters are numbers.""",
    default="auto",
)
MAX_ITER: AutoInt = parameter(
    integer(low=1, word="auto"),
    "Number of steps. Every step is paid for, so there is no stopping rule.",
    default="auto",
)
LEARNING_RATE: Auto = parameter(
    real(low=0, strict=True, word="auto", finite=True),
    'Step size. A number is used as it is. "auto" computes it from public and released numbers.',
    default="auto",
)
BATCH_SIZE: AutoInt = parameter(
    integer(low=1, word="auto", hint=" (the number of records, or more, takes all of them in every step)"),
    """Expected number of records (or groups) in a batch, by which means are divided. n or more takes all of
    them in every step.""",
    default="auto",
)
SAMPLING: Sampling = parameter(
    choice("poisson", "without_replacement"),
    """How batches are drawn. "without_replacement" is accounted by Renyi DP: it needs replace-one adjacency
    and much more noise.""",
    default="poisson",
)
CLIP_SUP_NORM: Auto = parameter(
    _CLIP,
    """Largest absolute entry (sup norm) of one row's gradient. Larger gradients are clipped. "auto"
    computes it from released medians: the median sup norm of the rows and, for regression, of their
    gradients at the start. They take 2 % of the budget (of mu^2), up to 20 % if the records are few.""",
    default="auto",
)
ROW_NORM: Auto = parameter(
    real(low=1e-100, high=1e100, word="auto"),
    """Largest l2 norm of a record's features. Longer rows are scaled down. "auto" releases a number near
    the median norm.""",
    default="auto",
)
Y_BOUNDS: object = parameter(
    described('tuple of (float, float) or "auto"', check_y_bounds),
    """Public range (low, high) to which targets are clipped. "auto" releases a median and a quantile of
    the distances from it. All such numbers take 5 % of the budget (of mu^2) together, up to 20 % if
    the records are few.""",
    default="auto",
)
L2_PENALTY: Auto = parameter(
    real(low=0, high=1e100, word="auto"),
    "Weight of the l2 penalty ``alpha / 2 * ||theta||^2``, which is added to the mean loss.",
    default="auto",
)
PENALTY: Literal["l2", "nonconvex"] = parameter(
    choice("nonconvex", "l2"),
    """"nonconvex" is ``alpha * sum_j w_j^2 / (1 + w_j^2)``. "l2" is ``alpha / 2 * ||w||^2``. The intercept is
    not penalised.""",
    default="nonconvex",
)
ALPHA: float = parameter(
    real(low=0, finite=True), "Weight of the penalty, >= 0. The penalty is added to the mean loss.", default=1e-3
)
NAMED_LOSS: Literal["squared", "huber"] = parameter(
    NAMED_ONLY,
    "Huber's loss is linear beyond ``huber_threshold``. Gradients of both losses are clipped.",
    default="squared",
)
LOSS: NumberLoss = parameter(
    WordOrLoss(tuple(NAMED), classes=False),
    """Huber's loss is linear beyond ``huber_threshold``. A loss of your own inherits from `skdp.losses.Loss`; then
    targets stay in units of y, without a released centre: scale y by public numbers to about 1 where its unit is
    tiny or huge. `predict` gives the linear predictor. Gradients of all losses are clipped.""",
    default="squared",
)
CLASS_LOSS: ClassLoss = parameter(
    WordOrLoss(("logistic",), classes=True),
    """"logistic" is the logistic loss of two classes, and the multinomial loss of more. A loss of your own for two
    classes inherits from `skdp.losses.Loss`, with ``is_classification = True``: its y is 0 for the first class and
    1 for the second, which `predict` takes where the score is positive. Such scores are no log odds, so they are
    not recalibrated, and there are no probabilities.""",
    default="logistic",
    releases="unless default",
    place="targets",
)
HUBER_THRESHOLD: float = parameter(
    real(low=0, strict=True), "Residual beyond which Huber's loss is linear, in units of y, > 0.", default=1.0
)
# Text of methods whose steps are no longer than the threshold allows.
STEP_HUBER_THRESHOLD: float = parameter(
    real(low=0, strict=True),
    """Residual beyond which Huber's loss is linear, in units of y, > 0. No step is longer than it allows, so give
    a number of the order of the spread of y.""",
    default=1.0,
)
PURE_DELTA = """Additive term of the guarantee, in [0, 1). Choose it far below 1/n. 0 is pure
    differential privacy. `privacy_` then reports the sampler's error as a delta below 1e-20."""
# Text of ``unit`` in methods that take means over groups.
SHARED_WEIGHT = "A group's rows share the weight of one record."
COEF_INIT: object = parameter(
    described("array-like"),
    """Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column. It
    costs no budget.""",
    default=None,
    releases="unless default",
)
EXACT_COEF_INIT: object = parameter(
    described("array-like"),
    "Where to start: ``coef_`` of a model, or ``coef_`` with the intercept as a last column.",
    default=None,
)
EXACT_CLASSES: Iterable[object] | None = parameter(
    described("sequence of labels"), "The label set. None takes it from y.", default=None, place="targets"
)
EXACT_CLASS_WEIGHT: object = parameter(
    described("dict"),
    "Weights of the labels; a label that is not named weighs 1. They are taken over the largest of them.",
    default=None,
    place="targets",
)
MAX_WEIGHT: float | None = parameter(
    real(low=0, strict=True, high=1e100, none=True),
    "Public upper bound of ``sample_weight`` in `fit`, which needs it. Weights are clipped to it.",
    default=None,
    place="last",
)
VERBOSE_UNUSED: bool = parameter(
    described("bool"),
    "Has no effect, because so few releases show no progress. All private estimators have this parameter.",
    default=False,
    releases=False,
    place="last",
)
VERBOSE: bool = parameter(
    described("bool"), "Whether to show a progress bar.", default=False, releases=False, place="last"
)
CALLBACK: Callable[..., object] | None = parameter(
    callback(),
    "Called as ``callback(iteration, coef)`` with each released iterate.",
    default=None,
    releases=False,
    place="last",
)
OPTIMIZER: Literal["sgd", "adam"] | SGD | Adam = parameter(
    word_or_object("sgd", "adam", types=(SGD, Adam)),
    """What becomes of the released gradients: momentum, Adam's scaling, the course of the step sizes, averages. It
    costs no budget. "sgd" is `skdp.nn.SGD` with its defaults, and "adam" is `skdp.nn.Adam`. Give such an object
    to change its numbers; a grid then names them ``optimizer__momentum``.""",
    default="sgd",
)
# Parameters that `OPTIMIZER` replaces.
GONE_OPTIMIZER = {
    "momentum": "optimizer=SGD(momentum=...) or optimizer=Adam(beta_1=...)",
    "solver": 'optimizer="adam"',
    "schedule": "optimizer=SGD(schedule=...)",
    "average": "optimizer=SGD(average=...)",
}
