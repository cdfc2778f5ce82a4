"""The sizes that "auto" chooses: number of steps, batch size and step size, from public numbers alone."""

import math
from dataclasses import dataclass

from skdp.fitting.defaults import DEFAULTS
from skdp.fitting.optimizers import Rule, sum_of_squares
from skdp.privacy import accounting

# All were chosen on held-out parts of the training data of MNIST, and of digits, breast_cancer, diabetes and two
# generated tables.
CLIP_NORM = 0.1  # below the gradients of nearly all records, which then count the same
# Largest standard deviation that the noise of all steps gives an entry, for classes and for numbers.
WALK, REGRESSION_WALK = 0.6, 0.3


@dataclass(frozen=True)
class Run:
    """Sizes of a run.

    Attributes
    ----------
    batch_size : int
        Expected; at most the number of units.
    n_iter : int
    reason : str
        Why batches have this size.
    """

    batch_size: int
    n_iter: int
    reason: str


def effective_n(epsilon: float, delta: float, n_units: int) -> float:
    """Units times mu of the budget."""
    return math.inf if math.isinf(epsilon) else n_units * accounting.gaussian_mu(epsilon, delta)


def signal(epsilon: float, delta: float, n_units: int, n_parameters: int) -> float:
    """Longest mean gradient over the length of its noise, if one release took the whole budget."""
    return effective_n(epsilon, delta, n_units) / math.sqrt(n_parameters)


def chosen_run(
    epsilon: float,
    delta: float,
    n_units: int,
    n_parameters: int,
    *,
    batch_size: int | None,
    max_iter: int | None,
    n_epochs: float | None,
) -> Run:
    """Sizes of a run; what is not given is chosen.

    Where the noise is small, more steps are worth their price. A batch is as large as the noise multiplier
    of the defaults asks, about sqrt(steps) batch_size / (n mu): larger ones cost time, smaller ones accuracy.
    """
    defaults = DEFAULTS.runs
    n_iter = max_iter
    if n_iter is None:
        seen = signal(epsilon, delta, n_units, n_parameters)
        n_iter = int(min(defaults.max_steps, max(defaults.min_steps, defaults.steps_per_signal * seen)))
    size, reason = batch_size, "batch_size is given"
    if size is None:
        whole = effective_n(epsilon, delta, n_units)
        wanted = defaults.exact_batch if math.isinf(whole) else defaults.noise * whole / math.sqrt(n_iter)
        size, reason = (max(1, math.ceil(wanted)), "their size follows from n, epsilon and the number of steps")
        if math.isinf(whole):
            reason = "without noise a batch has a fixed size"
        # More than half of the units are no sample worth its accounting.
        if wanted > 0.5 * n_units:
            size, reason = n_units, "smaller batches would have more than half of the data"
    size = min(size, n_units)
    if n_epochs is not None:
        n_iter = max(1, math.ceil(n_epochs * n_units / size))
    return Run(size, n_iter, reason)


def chosen_rate(
    noise_std: float, clip_norm: float, n_iter: int, rule: Rule, walk: float = WALK, first: float = 0.0
) -> float:
    """Step size of the first step: as long as the signal asks, and no longer than the noise allows.

    Parameters
    ----------
    noise_std : float
        Of an entry of a released mean gradient.
    rule : Rule
        Of the steps.
    walk : float, default=WALK
        Largest standard deviation that the noise of all steps gives an entry.
    first : float, default=0.0
        Standard deviation that the first release gives the sum of all gradients, beside ``noise_std``.
    """
    defaults = DEFAULTS.runs
    squares = sum_of_squares(rule.schedule, n_iter)
    if rule.solver == "adam":  # its steps have size 1 in every entry
        return min(defaults.adam_step, defaults.adam_path / n_iter, walk / math.sqrt(squares))
    rate = min(defaults.step, defaults.path / n_iter) / clip_norm
    length = math.hypot(noise_std * math.sqrt(squares), first)
    if length > 0:
        rate = min(rate, walk / length)
    return (1 - rule.momentum) * rate
