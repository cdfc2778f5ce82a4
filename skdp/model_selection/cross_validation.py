"""Private cross-validation: k fits and k evaluations, charged once as the releases of one record."""

from typing import Any, Unpack

import numpy as np

from skdp._docs import document
from skdp.base.declare import parameter, positional
from skdp.base.kinds import described, flag, integer, share
from skdp.base.problem import Solution
from skdp.metrics.evaluation import Evaluation
from skdp.metrics.released_score import ReleasedScore
from skdp.model_selection.comparison import compare
from skdp.model_selection.composed import SCORING, ComposedFit, ComposedRows, check_scoring
from skdp.model_selection.inner import InnerEstimator
from skdp.privacy import InnerFits
from skdp.statistics.calls import Budget, takes_budget

MOST_FOLDS = 100


class CrossValidation(ComposedFit):
    """k fits, each on all folds but one, and k evaluations, each on the fold that was left out."""

    estimator: Any = positional(described("estimator"), "What is fitted in each fold.")
    cv: int = parameter(integer(low=2, high=MOST_FOLDS), "Number of folds.", default=5)
    scoring: object = SCORING
    evaluation_share: float = parameter(share(), "Share of the budget for each evaluation.", default=0.2)
    return_estimator: bool = parameter(flag(), "Whether to return the models.", default=True)

    _called = "cross_validate"

    def _candidates(self) -> tuple[InnerEstimator, ...]:
        return (InnerEstimator("estimator", self.estimator),)

    def _inner(self) -> InnerFits:
        """Fits 0 .. k - 1 are on all folds but this one; number k + j evaluates on fold j."""
        k, parts = self.cv, len(self._candidates()[0].parts)
        fit = (1.0 - self.evaluation_share) / (k - 1)
        return InnerFits(
            purposes=("fit",) * k + ("evaluation",) * k,
            shares=(fit,) * k + (self.evaluation_share,) * k,
            positions=tuple((*(i for i in range(k) if i != j), k + j) for j in range(k)),
            charges=(parts,) * k + (1,) * k,
        )

    def _fitted_with(self, index: int) -> int:
        return 0

    def _part_of_fits(self) -> float:
        return 1.0 - 1.0 / self.cv

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self._names = check_scoring(self.scoring, [self.estimator])
        if self.n_public is not None and self.n_public < self.cv:
            raise ValueError(f"n_public={self.n_public} is less than the number of folds, cv={self.cv}")

    def _check_units(self, n_units: int) -> None:
        if n_units < self.cv:
            raise ValueError(f"cv={self.cv} folds need at least as many {self.unit}s")

    def solve(self, session: Any, problem: ComposedRows) -> Solution:
        """Fit and evaluate, fold by fold."""
        table, k = problem.records, self.cv
        fold = session.positions(table.n_units, [1.0 / k] * k)
        (candidate,) = self._candidates()
        models, evaluations = [], []
        for j in range(k):
            train, test = table.rows(fold != j), table.rows(fold == j)
            models.append(self._fit_inside(session, j, candidate, train, self._part_of_fits()))
            evaluations.append(self._evaluate_inside(session, k + j, models[-1], test, 1.0 / k))
        return Solution(n_iter=k, attributes={"models_": models, "evaluations_": evaluations})

    def result(self) -> dict[str, object]:
        """The result of `cross_validate`."""
        evaluations: list[Evaluation] = self.evaluations_
        names = tuple(evaluations[0]) if self._names is None else self._names
        found: dict[str, object] = {}
        means = {}
        for name in names:
            scores = [evaluation.get(name) for evaluation in evaluations]
            values = np.array([np.nan if s is None else s.value for s in scores])
            noises = np.array([np.nan if s is None else s.noise_std for s in scores])
            found[f"test_{name}"], found[f"test_{name}_noise_std"] = values, noises
            mean_noise = float(np.sqrt(np.square(noises).sum()) / len(noises))
            means[name] = ReleasedScore(float(values.mean()), mean_noise, self.privacy_)
        if self.return_estimator:
            found["estimator"] = self.models_
        return {**found, "evaluation": evaluations, "mean": means, "privacy": self.privacy_}


@document(compare)
@takes_budget()
def cross_validate(
    estimator: object,
    X: object,
    y: object,
    *,
    groups: object = None,
    cv: int = 5,
    scoring: object = None,
    evaluation_share: float = 0.2,
    return_estimator: bool = True,
    **budget: Unpack[Budget],
) -> dict[str, Any]:
    """Fit and evaluate a private estimator on the folds of a table, for one charge.

    A hold-out is nearly always better: of five folds each fit gets .447 mu of the budget, since a record takes
    part in four of them, and a fit on the training part of `train_test_split` gets all of it.

    Parameters
    ----------
    estimator : private classifier or regressor, or a Pipeline that ends in one
        Not changed. Its ``epsilon``, ``delta``, ``adjacency``, ``unit``, ``n_public`` and ``random_state`` are
        replaced by the folds' values.
    groups : array-like of shape (n_samples,), default=None
        Who each row belongs to; needed by, and allowed with, ``unit="group"`` only. All rows of a group are
        in one fold.
    cv : int, default=5
        Number of folds, from 2 to 100. Folds are drawn afresh and read no value; a splitter of scikit-learn
        is not taken.
    scoring : str or sequence of str, default=None
        Which scores of `skdp.metrics.evaluate` are listed. None lists all. It changes no release.
    evaluation_share : float in (0, 1), default=0.2
        Share of mu^2 for the evaluations; the fits divide the rest.
    return_estimator : bool, default=True
        Whether the models are returned.

    Returns
    -------
    dict
        * ``test_<score>`` and ``test_<score>_noise_std``: ndarray of shape (cv,), released scores of the folds and
          the standard deviations of their noise. NaN where an evaluation does not have the score.
        * ``mean``: dict from names to `ReleasedScore`, the means over the folds. They have no intervals: models
          that share training rows depend on each other in an unknown way.
        * ``evaluation``: list of `skdp.metrics.Evaluation`, one a fold, with intervals and curves.
        * ``estimator``: list of fitted models.
        * ``privacy``: `PrivacyReport` of it all. The report of a single model or evaluation has its cost alone.

    See Also
    --------
    train_test_split : A hold-out.
    skdp.metrics.evaluate : Scores of one model.
    compare : Several models on one hold-out.

    Notes
    -----
    **Privacy.** A record of fold j is in the k - 1 fits of the other folds and in the evaluation of fold j. Fits
    are mu_f-GDP and evaluations mu_e-GDP, each given the earlier releases, so the whole is mu-GDP with
    ``mu^2 = (k - 1) mu_f^2 + mu_e^2`` ([Dong2022]_). With ``evaluation_share`` s, ``mu_e^2 = s mu^2`` and
    ``mu_f^2 = (1 - s) mu^2 / (k - 1)``. It is charged at once, before a value is read.

    Why a record counts in one fold. *Replace-one, zero-out:* the number of records (or groups) is public, and
    folds are pieces of a uniformly random order, of public sizes. Match the record that is replaced with its
    successor, and a group with the one in its stead, whatever its label and its number of rows: the image of a
    uniform order is uniform, so both have the same fold, and all others theirs. Fit j is then on equal rows, and
    releases with the same law on both tables: it is public randomness of the rest. *Add-remove:* each record (or
    group) draws its fold for itself, and who is in both tables has the same fold in both. Sizes of folds are
    private, so fits and evaluations get ``n_public`` times their share. Rows keep their order in the parts.

    If a fit has no mu (minibatches, perturbed minima), (epsilon, delta) are divided in the same shares and add up
    (basic composition), and the accountant is charged without a mu.

    {privacy.unprotected}

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import cross_validate
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 3))
    >>> y = (X[:, 0] + rng.normal(size=4000) > 0).astype(int)
    >>> found = cross_validate(DPLogisticRegression(classes=(0, 1)), X, y, epsilon=2.0, scoring="accuracy")
    >>> found["test_accuracy"].shape, bool(0.6 < found["mean"]["accuracy"].value < 0.9)
    ((5,), True)
    >>> found["privacy"].epsilon
    2.0
    """
    fit = CrossValidation(
        estimator=estimator,
        cv=cv,
        scoring=scoring,
        evaluation_share=evaluation_share,
        return_estimator=return_estimator,
        **budget,
    )
    return fit.fit(X, y, groups=groups).result()
