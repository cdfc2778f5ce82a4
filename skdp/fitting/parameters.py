"""Declarations of parameters that several families of estimators share.

A frame lists those that it has: ``verbose: bool = VERBOSE``. An estimator changes or adds to a text with
`skdp.base.declare.changed`.
"""

from collections.abc import Callable
from typing import Any, Literal

from skdp.base.declare import parameter
from skdp.base.kinds import callback, choice, described, integer, real

__all__ = [
    "ALPHA",
    "BATCH_SIZE",
    "CALLBACK",
    "CLIP_NORM",
    "COEF_INIT",
    "HUBER_THRESHOLD",
    "LEARNING_RATE",
    "LOSS",
    "MAX_ITER",
    "MAX_WEIGHT",
    "N_NONZERO_COEFS",
    "PENALTY",
    "SAMPLING",
    "VERBOSE",
    "Auto",
    "AutoInt",
    "Sampling",
]

Auto = float | Literal["auto"]
AutoInt = int | Literal["auto"]
Sampling = Literal["poisson", "without_replacement"]

N_NONZERO_COEFS: int | None = parameter(
    integer(low=1, none=True),
    "Number of features to keep. None keeps all. The intercept is always kept.",
    default=None,
)
CLIP_NORM: Any = parameter(
    real(low=0, strict=True, word="adaptive"),
    """Largest l2 norm of one record's (or group's) gradient. Longer gradients are scaled down to it.
    "adaptive" computes it from released medians: the median row norm and, for regression and groups, the
    median gradient norm at the start. They take 2 % of the budget (of mu^2), up to 20 % if the records are
    few. ``learning_rate="auto"`` needs the same medians. No budget is spent on them if both parameters are
    numbers.""",
    default="adaptive",
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
    integer(
        low=1,
        word="auto",
        hint=" (the number of records, or more, takes all of them in every step)",
    ),
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
PENALTY: Literal["l2", "nonconvex"] = parameter(
    choice("nonconvex", "l2"),
    """"nonconvex" is ``alpha * sum_j w_j^2 / (1 + w_j^2)``. "l2" is ``alpha / 2 * ||w||^2``. The intercept is
    not penalised.""",
    default="nonconvex",
)
ALPHA: float = parameter(
    real(low=0, finite=True),
    "Weight of the penalty, >= 0. The penalty is added to the mean loss.",
    default=1e-3,
)
LOSS: Literal["squared", "huber"] = parameter(
    choice("squared", "huber"),
    "Huber's loss is linear beyond ``huber_threshold``. Gradients of both losses are clipped.",
    default="squared",
)
HUBER_THRESHOLD: float = parameter(
    real(low=0, strict=True),
    "Residual beyond which Huber's loss is linear, in units of y, > 0.",
    default=1.0,
)
COEF_INIT: Any = parameter(
    described("array-like"),
    """Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column. It
    costs no budget.""",
    default=None,
    releases="unless None",
)
MAX_WEIGHT: float | None = parameter(
    real(low=0, strict=True, high=1e100, none=True),
    "Public upper bound of ``sample_weight`` in `fit`, which needs it. Weights are clipped to it.",
    default=None,
    place="last",
)
VERBOSE: bool = parameter(
    described("bool"),
    "Whether to show a progress bar.",
    default=False,
    releases=False,
    place="last",
)
CALLBACK: Callable[[int, Any], object] | None = parameter(
    callback(),
    "Called as ``callback(iteration, coef)`` with each released iterate.",
    default=None,
    releases=False,
    place="last",
)
