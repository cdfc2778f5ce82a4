"""What "auto" means: the number of steps, the batch size and the step size, from public numbers alone."""

import math
from dataclasses import dataclass

from skdp.fitting.optimizers import Rule, sum_of_squares
from skdp.privacy import accounting

__all__ = ["CLIP_NORM", "REGRESSION_WALK", "WALK", "Run", "chosen_rate", "chosen_run", "signal"]

# Chosen on held-out parts of the training data of MNIST, and of digits, breast_cancer, diabetes and two made-up
# tables.
CLIP_NORM = 0.1  # below the gradients of nearly all records, which then count the same
STEPS_PER_SIGNAL = 4.0  # steps over the signal
FEWEST, MOST = 30, 1000  # steps
NOISE = 1.5  # wanted noise multiplier; smaller batches would make amplification by sampling weak
EXACT_BATCH = 2048  # without noise
# First step of Adam, and the most that it may be times the number of steps. Chosen on held-out parts of digits,
# breast_cancer, a made-up table of texts and MNIST at epsilon 0.5 to 8, with 30 to 487 steps. The published 1e-3
# is for many thousands of steps: there it lost 2 to 59 points against the best of a grid.
ADAM_STEP, ADAM_PATH = 0.03, 3.0
# First step over (1 - momentum), in clip norms, if the noise allows it; and the most that it may be times the
# number of steps. MNIST with 1,000 steps at epsilon 3, "dp-cnn-s", one seed: .978 held out with 5, .974 with 10.
STEP, PATH = 10.0, 5000.0
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


def mass(epsilon: float, delta: float, n_units: int) -> float:
    """Units times mu of the budget."""
    return math.inf if math.isinf(epsilon) else n_units * accounting.gaussian_mu(epsilon, delta)


def signal(epsilon: float, delta: float, n_units: int, n_parameters: int) -> float:
    """Longest mean gradient over the length of its noise, if one release took the whole budget."""
    return mass(epsilon, delta, n_units) / math.sqrt(n_parameters)


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
    ``NOISE`` asks, about sqrt(steps) batch_size / (n mu): larger ones cost time, smaller ones accuracy.
    """
    n_iter = max_iter
    if n_iter is None:
        seen = signal(epsilon, delta, n_units, n_parameters)
        n_iter = int(min(MOST, max(FEWEST, STEPS_PER_SIGNAL * seen)))
    size, reason = batch_size, "batch_size is given"
    if size is None:
        whole = mass(epsilon, delta, n_units)
        wanted = EXACT_BATCH if math.isinf(whole) else NOISE * whole / math.sqrt(n_iter)
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
    squares = sum_of_squares(rule.schedule, n_iter)
    if rule.solver == "adam":  # its steps have size 1 in every entry
        return min(ADAM_STEP, ADAM_PATH / n_iter, walk / math.sqrt(squares))
    rate = min(STEP, PATH / n_iter) / clip_norm
    length = math.hypot(noise_std * math.sqrt(squares), first)
    if length > 0:
        rate = min(rate, walk / length)
    return (1 - rule.momentum) * rate
