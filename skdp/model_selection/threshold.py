"""A classifier of two classes whose threshold is chosen from a released table of the scores of other records."""

from collections.abc import Mapping
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, ClassifierMixin, MetaEstimatorMixin, is_classifier
from sklearn.utils import Tags, get_tags

from skdp._docs import document
from skdp.base.blocks import by_block
from skdp.base.declare import changed, fitted, parameter, positional
from skdp.base.kinds import described, share
from skdp.base.problem import Solution
from skdp.fitting.targets import LabelModel
from skdp.metrics.fits import TwoClassTable
from skdp.metrics.models import score_method
from skdp.metrics.two_classes import ClassificationEvaluation, check_costs
from skdp.model_selection.best import InnerScores
from skdp.model_selection.composed import ComposedFit, ComposedRows
from skdp.model_selection.inner import InnerEstimator
from skdp.privacy import InnerFits


@document()
class DPTunedThresholdClassifier(ClassifierMixin, MetaEstimatorMixin, InnerScores, ComposedFit):
    """Fit a private classifier of two classes, and choose from which score on it predicts the second one.

    The estimator is fitted to one part of the records, and its scores on the other part are released as one table
    (`skdp.metrics.evaluate`), each with the whole budget. The threshold with the least cost in the table is taken.
    The parameters are named as in `sklearn.model_selection.TunedThresholdClassifierCV`.

    {guarantee}

    See Also
    --------
    skdp.metrics.evaluate : Scores on other records.

    Notes
    -----
    **Privacy.** A record of the training part is in the fit, which is mu-GDP, and not in the table. A record of
    the test part is in the table alone, which is mu-GDP given the fitted model. Two neighbouring tables differ in
    one part only, so the whole is mu-GDP, and not sqrt(2) mu. The threshold is a function of the released table
    and of public costs.

    Why in one part. *Replace-one, zero-out:* the number of records (or groups) is public, and the test part is the
    end of a uniformly random order, of public size. Match the record that is replaced with its successor, and a
    group with the one in its stead, whatever its label and its number of rows: both are in the same part, all
    others where they were, and the other part releases with the same law on both tables. *Add-remove:* each record
    (or group) tosses a coin of its own, and who is in both tables has the same coin in both. Sizes of the parts
    are private, so fit and table get ``n_public`` times their share.

    If the fit has no mu (minibatches, perturbed minima), it is (epsilon, delta)-DP, so is the table, and the
    accountant is charged without a mu.

    {privacy.unprotected}

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPLogisticRegression
    >>> from skdp.model_selection import DPTunedThresholdClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(4000, 3))
    >>> y = (X[:, 0] + rng.normal(size=4000) > 1).astype(int)
    >>> model = DPTunedThresholdClassifier(
    ...     DPLogisticRegression(classes=(0, 1)), costs={"fp": 1, "fn": 5}, epsilon=2.0
    ... ).fit(X, y)
    >>> bool(0.05 < model.best_threshold_ < 0.5), model.predict(X[:3]).shape
    (True, (3,))
    """

    estimator: BaseEstimator = positional(
        described("private classifier, or a Pipeline that ends in one"),
        """Not changed. Its ``epsilon``, ``delta``, ``adjacency``, ``unit``, ``n_public`` and ``random_state``
        are replaced by those below. Give it ``classes``.""",
    )
    costs: Mapping[str, float] | None = parameter(
        described('dict with keys "fp" and "fn"', lambda _, given: check_costs(cast("Any", given))),
        """Cost of a false positive and of a false negative, at least 0. None gives both the cost 1: the
        best accuracy.""",
        default=None,
    )
    test_size: float = parameter(
        share(),
        "Share of the records (or groups), in (0, 1), whose scores are tabulated, drawn afresh.",
        default=0.2,
    )
    bins: ArrayLike = parameter(
        described('"auto", int or array-like of float'),
        "As for `skdp.metrics.evaluate`: an estimator without ``predict_proba`` needs public edges.",
        default="auto",
    )
    n_public = changed(
        text="""Public number of records (or groups) of the whole table; needed under add-remove. Fit and table
        get their shares of it."""
    )
    estimator_: Any = fitted(
        "estimator", "Fitted to the part of ``1 - test_size`` of the records. Its `privacy_` has its cost alone."
    )
    best_threshold_: float = fitted(
        "float", "A row with at least this score is predicted to be of the second class."
    )
    best_score_: float = fitted(
        "float",
        """Without ``costs`` the released accuracy at the threshold, else minus the released mean cost of a
        record. A threshold that looks best in a noisy table is one that the noise favoured: evaluate other
        records at it.""",
    )
    evaluation_: ClassificationEvaluation = fitted(
        "skdp.metrics.Evaluation", "The released table at the threshold, with curves and scores at all others."
    )
    classes_: np.ndarray = fitted("ndarray of shape (2,)", "The labels, the second one positive.")
    n_iter_: int = fitted("int", "1: one fit.")
    n_features_in_: int = fitted("int", "If the estimator has it.")

    _inner_name = "estimator_"

    @property
    def _first(self) -> BaseEstimator:  # type: ignore[override]
        return self.estimator

    # ---------------------------------------------------------------- the fit

    def _candidates(self) -> tuple[InnerEstimator, ...]:
        return (InnerEstimator("estimator", self.estimator),)

    def _inner(self) -> InnerFits:
        parts = len(self._candidates()[0].parts)
        return InnerFits(("fit", "evaluation"), (1.0, 1.0), ((0,), (1,)), (parts, 1))

    def _fitted_with(self, index: int) -> int:
        return 0

    def _part_of_fits(self) -> float:
        return 1.0 - self.test_size

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not is_classifier(self.estimator):
            raise TypeError(f"estimator must be a classifier, got {type(self.estimator).__name__}")
        for part in self._candidates()[0].parts.values():
            self._check_fitted({"classes_": getattr(part, "classes", None)})
        _Bins(model=self.estimator, bins=self.bins)._check_parameters()

    def _check_fitted(self, fitted: Mapping[str, object]) -> None:
        classes = fitted.get("classes_")
        if classes is not None and np.size(classes) != 2:  # type: ignore[arg-type]
            raise ValueError(f"estimator must have two classes, and it has {np.size(classes)}")  # type: ignore[arg-type]

    def _check_units(self, n_units: int) -> None:
        if n_units < 2:
            raise ValueError(f"a training and a test part need at least two {self.unit}s")

    def solve(self, session: Any, problem: ComposedRows) -> Solution:
        """Fit on one part, tabulate scores on the other, and choose."""
        table = problem.records
        place = session.positions(table.n_units, (1.0 - self.test_size, self.test_size))
        (candidate,) = self._candidates()
        train, test = table.rows(place == 0), table.rows(place == 1)
        model = self._fit_inside(session, 0, candidate, train, self._part_of_fits())
        self._check_fitted({"classes_": model.classes_})  # a pipeline's may be known only now
        found: Any = self._evaluate_inside(session, 1, model, test, self.test_size, bins=self.bins)
        best = found.best_threshold(costs=self.costs)
        found = found.at(threshold=best)
        fitted = {
            "estimator_": model,
            "best_threshold_": best,
            "best_score_": found["accuracy"].value if self.costs is None else self._mean_cost(found),
            "evaluation_": found,
            "classes_": model.classes_,
        }
        for name in ("n_features_in_", "feature_names_in_"):
            if hasattr(model, name):
                fitted[name] = getattr(model, name)
        return Solution(attributes=fitted)

    def _mean_cost(self, found: ClassificationEvaluation) -> float:
        """Minus the mean cost of a record in the released table."""
        costs = check_costs(self.costs)
        (tn, fp), (fn, tp) = found.confusion_matrix
        return -float(costs["fp"] * fp + costs["fn"] * fn) / float(tn + fp + fn + tp)

    # ---------------------------------------------------------------- the model

    @document(LabelModel.predict)
    @by_block
    def predict(self, X: object) -> np.ndarray:
        """Predict the second class where its score is at least `best_threshold_`."""
        model = self._fitted_inside()
        method = score_method(model)
        scores = np.asarray(getattr(model, method)(X))
        scores = scores[:, 1] if method == "predict_proba" else scores
        return np.asarray(self.classes_[(scores >= self.best_threshold_).astype(np.intp)])

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.input_tags.sparse = inner.input_tags.sparse
        tags.input_tags.allow_nan = inner.input_tags.allow_nan
        if tags.classifier_tags is not None:
            tags.classifier_tags.multi_class = False
        return tags


class _Bins(TwoClassTable):
    """A table of a model that is not fitted yet, whose public bins can be checked already."""

    def _check_model(self) -> str:
        return score_method(self.model)
