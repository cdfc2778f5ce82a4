"""The number of steps and the batch size of "auto", from public numbers.

Full batches have the least noise for a budget, and their fit has a mu. For most tables their time does not matter.
A wide and long table needs more steps than there is time for on full batches. Poisson batches then serve: with w
the noise of a batch's sum over the clip norm, all noise together grows by about sqrt(w^2 (exp(w^-2) - 1)) under
zero-out and add-remove, and hardly at all under replace-one.
"""

import math

from skdp.fitting.task import Task, parameter_shape
from skdp.privacy import factor

# Chosen on hold-outs of the training data of MNIST, Fashion-MNIST, a9a, ijcnn1, housing and abalone.
MAX_ITER = 100  # steps
# Chosen on hold-outs of the training data of MNIST and Fashion-MNIST: scattering features and pixels.
BATCH_STEPS = 600  # steps on batches
LEAST_WORK = 2 * 10**8  # units times parameters from which batches are taken
LEAST_PART = 1 / 16  # least part of all units in a batch
MOST_PART = 1 / 2  # largest part of all units in a batch
LEAST_NOISE = 2.0  # least noise of a batch's sum over the clip norm: w of the module's docstring


def is_long(task: Task) -> bool:
    """Whether a table of a classifier has so many rows and columns that steps on all records take long; public."""
    work = task.records.n_units * math.prod(parameter_shape(task.records, task.loss))
    dense = task.records.shape.container == "dense"
    return dense and task.loss.is_classification and work >= LEAST_WORK


def steps_and_batch(task: Task, max_iter: int | None, batch_size: int | None) -> tuple[int, int]:
    """Number of steps and expected number of units of a batch.

    Parameters
    ----------
    task : Task
        Only its session's budget and the public numbers of its records are read.
    max_iter, batch_size : int or None
        None where the fit finds the number.
    """
    budget, n_units = task.budget, task.records.n_units
    if batch_size is not None:
        return max_iter or MAX_ITER, batch_size
    steps = max_iter or BATCH_STEPS
    # The noise of a batch's sum over the clip norm is about factor * part * sqrt(steps) / mu.
    least = LEAST_NOISE * budget.session.mu / (factor(budget.session.adjacency) * math.sqrt(steps))
    part = max(LEAST_PART, least)
    if not (is_long(task) and budget.session.minibatches) or part > MOST_PART:
        return max_iter or MAX_ITER, n_units
    return steps, math.ceil(part * n_units)
