"""Single scores of labels and probabilities: each releases its own cheapest statistic.

Names and order of arguments follow `sklearn.metrics`. For more than one score use `skdp.metrics.evaluate`, which
gives all of them for the price of one table.
"""

from typing import Unpack

import numpy as np

from skdp._docs import document
from skdp.base.each_block import paired
from skdp.metrics.label_fits import (
    BalancedAccuracy,
    ConfusionCounts,
    GivenAnswers,
    GivenScores,
    LossMean,
    RightShare,
    check_labels,
)
from skdp.metrics.released_score import ReleasedScore, released_score
from skdp.statistics.calls import Budget, takes_budget
from skdp.statistics.released_tables import ReleasedTable


def _score(fit: GivenAnswers, y_true: object, given: object, groups: object) -> ReleasedScore:
    """Run a fit that releases one score."""
    done = fit.fit(*paired(given, y_true), groups=groups)
    return released_score(done.score(), done.privacy_)


@document()
@takes_budget()
def accuracy_score(
    y_true: object, y_pred: object, *, groups: object = None, **budget: Unpack[Budget]
) -> ReleasedScore:
    """Release the share of predictions that are right.

    Parameters
    ----------
    y_true : array-like or Blocks of shape (n_samples,)
        True labels. A missing one is never right. Blocks may be the same (X, y) that the model predicted.
    y_pred : array-like or Blocks of shape (n_samples,)
        Predicted labels: each made from its row alone, by a model that was not fitted to these rows.
    {unit}
        A group counts as one: the mean of its rows.

    Returns
    -------
    ReleasedScore

    Raises
    ------
    ValueError, TypeError
        If a parameter or the data are not as described, or if a scorer of scikit-learn calls it. No
        budget is spent.
    PrivacyBudgetExceeded
        If the accountant does not hold (epsilon, delta). Nothing was read.

    Notes
    -----
    **Privacy.** A unit adds 0 to 1 to the number of right predictions, so its sensitivity is 1 under all
    adjacencies, and the noise of the share is 1 / (n mu). Where the number of units is private, right and wrong
    predictions are counted: two numbers of sensitivity 1 together. The interval for the population is Wilson's,
    with the noise.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import accuracy_score
    >>> y = np.random.default_rng(0).integers(0, 2, size=20_000)
    >>> found = accuracy_score(y, np.where(np.arange(y.size) % 10, y, 1 - y))
    >>> bool(abs(found.value - 0.9) < 5 * found.noise_std)
    True
    """
    return _score(RightShare(**budget), y_true, y_pred, groups)


@document(accuracy_score)
@takes_budget()
def balanced_accuracy_score(
    y_true: object, y_pred: object, *, labels: object, groups: object = None, **budget: Unpack[Budget]
) -> ReleasedScore:
    """Release the mean over the labels of the share of right predictions.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels. One that is missing or unknown counts as the first of ``labels``.
    labels : array-like of shape (n_classes,)
        All labels, public: ``model.classes_`` for example. They are never taken from the data.

    Notes
    -----
    **Privacy.** Released are linear answers about the table (true label x right or wrong), by a strategy with
    the least noise for such means; `skdp.privacy.statistics.cell_sums` has the sensitivity. For two labels
    the intervals invert the quotient; for more they follow from its gradient, and are [0, 1] unless all labels
    have clear counts.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import balanced_accuracy_score
    >>> y = np.random.default_rng(0).integers(0, 2, size=20_000)
    >>> found = balanced_accuracy_score(y, np.where(np.arange(y.size) % 10, y, 1 - y), labels=[0, 1])
    >>> 0.88 < found.value < 0.92
    True
    """
    return _score(BalancedAccuracy(labels=labels, **budget), y_true, y_pred, groups)


@document(balanced_accuracy_score)
@takes_budget()
def roc_auc_score(
    y_true: object,
    y_score: object,
    *,
    labels: object = (0, 1),
    bins: object = "auto",
    groups: object = None,
    **budget: Unpack[Budget],
) -> ReleasedScore:
    """Release the area under the ROC curve of two classes.

    Parameters
    ----------
    y_score : array-like of shape (n_samples,)
        Probabilities of the second label. Other scores, such as values of ``decision_function``, need ``bins``
        with public edges: without them a score above 1 is in the highest bin and one below 0 in the lowest, which
        makes the area too small, and no value raises. A score that is no number is in the lowest bin.
    labels : array-like of shape (2,), default=(0, 1)
        The two labels, public; the second is the positive one.
    bins : "auto", int or array-like of float, default="auto"
        The public bins, as for `evaluate`. The area is the area for scores rounded to them.

    Notes
    -----
    **Privacy.** It is the area of the table that `evaluate` releases, and costs the same: a release for the area
    alone would be at most 12 % less noisy. `evaluate` gives all other scores with it.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import roc_auc_score
    >>> rng = np.random.default_rng(0)
    >>> y = rng.integers(0, 2, size=20_000)
    >>> found = roc_auc_score(y, 1 / (1 + np.exp(-rng.normal(2.0 * y - 1.0))))
    >>> 0.90 < found.value < 0.94
    True
    """
    fit = GivenScores(labels=labels, bins=bins, **budget)
    return fit.fit(*paired(y_score, y_true), groups=groups).evaluation()["roc_auc"]


@document(balanced_accuracy_score)
@takes_budget()
def log_loss(
    y_true: object, y_prob: object, *, labels: object = (0, 1), groups: object = None, **budget: Unpack[Budget]
) -> ReleasedScore:
    """Release the mean log loss, with probabilities clipped to [.001, .999].

    Parameters
    ----------
    y_prob : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the second label, or of each label in the order of ``labels``. They are clipped to [0, 1];
        one that is no number counts as 0.
    labels : array-like of shape (n_classes,), default=(0, 1)
        All labels, public.

    Notes
    -----
    **Privacy.** A loss lies in [.001, 6.91], because probabilities are clipped. A unit adds a number in [-1, 1]
    to the sum of losses on that range, whose sensitivity is 2 under replace-one and 1 else. Under a private
    number of units a fifth of mu^2 releases that number. The interval for the population uses the largest
    variance that a loss of this mean can have, so it is long; `evaluate` gives a shorter one.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import log_loss
    >>> y = np.random.default_rng(0).integers(0, 2, size=20_000)
    >>> found = log_loss(y, np.where(y == 1, 0.8, 0.2))
    >>> bool(abs(found.value + np.log(0.8)) < 5 * found.noise_std)
    True
    """
    return _score(LossMean(loss="log_loss", labels=labels, **budget), y_true, y_prob, groups)


@document(log_loss)
@takes_budget()
def brier_score_loss(
    y_true: object, y_prob: object, *, labels: object = (0, 1), groups: object = None, **budget: Unpack[Budget]
) -> ReleasedScore:
    """Release the mean squared difference of probabilities and labels.

    Notes
    -----
    **Privacy.** As for `log_loss`, with a loss in [0, 1]. For three or more labels it is the sum over the
    labels, in [0, 2].

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import brier_score_loss
    >>> y = np.random.default_rng(0).integers(0, 2, size=20_000)
    >>> found = brier_score_loss(y, np.where(y == 1, 0.8, 0.2))
    >>> bool(abs(found.value - 0.04) < 5 * found.noise_std)
    True
    """
    return _score(LossMean(loss="brier", labels=labels, **budget), y_true, y_prob, groups)


@document(balanced_accuracy_score)
@takes_budget()
def confusion_matrix(
    y_true: object, y_pred: object, *, labels: object, groups: object = None, **budget: Unpack[Budget]
) -> ReleasedTable:
    """Release the number of rows of each pair of a true and a predicted label.

    Returns
    -------
    ReleasedTable
        Rows are true labels, columns predicted ones. Counts may be negative, because of the noise.

    Notes
    -----
    **Privacy.** A unit adds numbers that are not negative and add up to at most 1. Hence the l2 sensitivity is
    sqrt(2) under replace-one and 1 else; see `skdp.privacy.statistics.cell_sums`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.metrics import confusion_matrix
    >>> y = np.random.default_rng(0).integers(0, 2, size=20_000)
    >>> found = confusion_matrix(y, y, labels=[0, 1])
    >>> bool(abs(found.value[0, 1]) < 5 * found.noise_std[0, 1])
    True
    """
    fit = ConfusionCounts(labels=labels, **budget)
    done = fit.fit(*paired(y_pred, y_true), groups=groups)
    names = tuple(check_labels(labels).tolist())
    noise = np.full(done.answers_.shape, done.noise_std_)
    return ReleasedTable(np.array(done.answers_), noise, names, names, ("true",), done.privacy_)
