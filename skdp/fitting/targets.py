"""Labels and targets of a table in, predictions of scores out: what every model of X and y has, linear or not."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import Tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets

from skdp._compat import warn_user
from skdp._docs import document
from skdp.base import fit, problem
from skdp.base.blocks import blocks_of, by_block
from skdp.base.cells import as_cells, cell_numbers, is_untyped, kind, label_codes, refuse_dates
from skdp.base.declare import Declared, fitted, parameter
from skdp.base.each_block import score_of_blocks
from skdp.base.kinds import check_number, described, flag
from skdp.base.plan import BudgetSplit, NoRecords
from skdp.base.user_tables import clipped_weights, distinct, encode_groups, validate_table
from skdp.exceptions import PrivacyLeakWarning
from skdp.fitting.predictions import cut, like, of_signs, of_two_classes, softmax
from skdp.kernels import is_cupy, on_host
from skdp.kernels.protocols import Matrix
from skdp.losses import NAMED, LogisticLoss, Loss, MultinomialLoss
from skdp.privacy import PrivateRecords, PublicShape

SHOWN_LABELS = 10  # declared labels that a message lists: more would fill the screen


@dataclass(frozen=True)
class Problem(problem.Problem):
    """A validated fit: the records, what of them is public, and the loss.

    Attributes
    ----------
    target : TargetRange or None
        Of a private regression: the centre that was subtracted from the targets, and their half-width about it.
    batch_codes : ndarray of shape (n_samples,) or None
        The public groups of rows that a step takes together.
    budget : BudgetSplit, default=None
        The method's part of the budget; `LinearFit` puts it in before `solve`.
    """

    records: PrivateRecords
    loss: Loss
    target: Any = None
    batch_codes: np.ndarray | None = None
    budget: BudgetSplit = field(default=cast("BudgetSplit", None), kw_only=True)

    @property
    def decision(self) -> Any:
        """The decision of the family of models, before the first release."""
        assert self.plan is not None
        return self.plan.decision

    @property
    def center(self) -> float:
        """The released or public number that was subtracted from the targets."""
        return 0.0 if self.target is None else float(self.target.center)


def table_records(
    self: BaseEstimator,
    X: Matrix,
    y: np.ndarray,
    groups: object,
    weights: dict[str, object],
    n_classes: int | None = None,
    of_label: np.ndarray | None = None,
) -> PrivateRecords:
    """The records of a checked table; the method ``_records`` of fits of tables."""
    codes = None if groups is None else encode_groups(groups, X.shape[0])
    sample_weight = clipped_arguments(self, weights, X.shape[0])
    if of_label is not None:
        sample_weight = of_label if sample_weight is None else of_label * sample_weight
    return PrivateRecords(
        X,
        y=y,
        groups=codes,
        sample_weight=sample_weight,
        fit_intercept=self.fit_intercept,
        n_public=getattr(self, "n_public", None),
        n_classes=n_classes,
    )


def _no_records(estimator: BaseEstimator, shape: PublicShape) -> PrivateRecords:
    return cast("PrivateRecords", NoRecords(replace(shape, fit_intercept=estimator.fit_intercept)))


def clipped_arguments(estimator: BaseEstimator, weights: dict[str, object], n_samples: int) -> np.ndarray | None:
    """The weights among the further arguments of `fit`, clipped to their public bound; refuse other arguments."""
    known = {"sample_weight"} if hasattr(estimator, "max_weight") else set()
    unknown = set(weights) - known
    if unknown:
        name = sorted(unknown)[0]
        hint = ": this method has no weighted form" if name == "sample_weight" else ""
        raise TypeError(f"fit got an unexpected keyword argument {name!r}{hint}")
    sample_weight = weights.get("sample_weight")
    if sample_weight is None:
        return None
    return clipped_weights(sample_weight, estimator.max_weight, n_samples)


def unfitted_copy(estimator: BaseEstimator) -> BaseEstimator:
    """An unfitted copy for validation, so that a failed fit leaves the model as it was."""
    return type(estimator)(**estimator.get_params(deep=False))


def _table_tags(estimator: BaseEstimator, tags: Tags) -> Tags:
    tags.input_tags.sparse = True
    tags.input_tags.allow_nan = estimator._missing
    for of_task in (tags.classifier_tags, tags.regressor_tags):
        if of_task is not None:
            # scikit-learn's checks demand scores on a few hundred rows that epsilon = 1 cannot reach.
            of_task.poor_score = isinstance(estimator, fit.PrivateFit)
    return tags


def _inferred(estimator: object) -> tuple[str, ...]:
    """The warning of a private fit that reads its label set from y; an exact fit promises nothing."""
    if not isinstance(estimator, fit.PrivateFit):
        return ()
    warn_user(
        "the label set was inferred from y, which no epsilon covers; declare it with classes= in the constructor",
        PrivacyLeakWarning,
    )
    return ("the label set was inferred from y and is not covered by epsilon",)


def _require(estimator: object, y: object) -> None:
    if y is None:
        raise ValueError(f"{type(estimator).__name__} requires y to be passed, but the target y is None")


def is_classifier(estimator: object) -> bool:
    """Whether an estimator is a classifier, by its type: to ask its tags takes longer."""
    return isinstance(estimator, ClassifierMixin)


def require_probabilities(model: BaseEstimator) -> None:
    """Refuse a model whose scores are not log odds."""
    if not isinstance(model.loss, str):
        raise TypeError(
            "the scores of a loss of your own are no log odds, so there are no probabilities: use "
            "decision_function and predict, or fit with loss='logistic'"
        )


def _has_probabilities(model: BaseEstimator) -> bool:
    try:
        require_probabilities(model)
    except TypeError as error:
        raise AttributeError(f"{type(model).__name__} has no probabilities here: {error}") from None
    return True


class LabelModel(ClassifierMixin, Declared):
    """Labels and predictions of binary (logistic) and multiclass (softmax) models."""

    _record_checks = "finite, numeric, label among the classes"

    classes: Iterable[object] | None = parameter(
        described("sequence of labels"),
        "The public label set. None infers it from y, warns `PrivacyLeakWarning` and says so in the report.",
        default=None,
        place="targets",
    )
    class_weight: object = parameter(
        described("dict"),
        """Public weights of the labels in ``classes``; a label that is not named weighs 1. A record's gradient is
        multiplied by the weight of its label over the largest weight, and then clipped: no bound and no noise
        changes, and means still divide by the public number of records. "balanced" would read the private class
        counts and is refused.""",
        default=None,
        releases="unless default",
        place="targets",
    )
    classes_: np.ndarray = fitted()
    loss = cast("Loss | str", "logistic")  # a parameter of classifiers by gradient steps

    _missing = False  # whether X may hold NaN
    _records: ClassVar[Callable[..., PrivateRecords]]
    # Scores of shape (n,) or (n, n_classes), in the host's memory.
    _scores: ClassVar[Callable[..., np.ndarray]]

    def __sklearn_tags__(self) -> Tags:
        return _table_tags(self, super().__sklearn_tags__())

    def _check_targets(self) -> None:
        declared = self._declared_classes()
        check_class_weight(self.class_weight, declared)
        if declared is not None:
            self._loss_of_labels(declared.size)

    def _declared_classes(self) -> np.ndarray | None:
        if self.classes is None:
            return None
        if isinstance(self.classes, (str, bytes)) or not hasattr(self.classes, "__iter__"):
            raise TypeError(f"classes must list the labels, for example (0, 1), got {type(self.classes).__name__}")
        labels = list(self.classes)
        if len({isinstance(label, (str, np.str_)) for label in labels}) > 1:
            raise ValueError("classes must be all text or all numbers: 1 and '1' are different labels")
        classes = np.asarray(labels)
        if classes.ndim != 1 or classes.size < 2 or np.unique(classes).size != classes.size:
            raise ValueError("classes must list at least two different labels, without repetition")
        return np.sort(classes)

    def read(self, X: object, y: object = None, groups: object = None, **weights: object) -> Problem:
        """Check the table and the labels. Each label must be declared; without a declaration all are taken."""
        declared = self._declared_classes()
        _require(self, y)
        scratch = unfitted_copy(self)
        cells = as_cells(y)
        refuse_dates(cells)
        by_cell = declared is not None and is_untyped(cells)
        if declared is not None and by_cell:
            y = label_codes(cells, declared)
        elif is_untyped(cells):
            _refuse_mixed(cells)
        X, y = validate_table(scratch, X, y, missing=self._missing)
        leaks: tuple[str, ...] = ()
        if declared is None:
            check_classification_targets(y)
            declared = _distinct(y)
            if declared.size < 2:
                raise ValueError("y holds one class only; give the label set with classes= to fit such data")
            leaks = _inferred(self)
        codes = _known(y, declared) if by_cell else _encode(y, declared)
        loss = self._loss_of_labels(declared.size)
        target = codes.astype(np.float64) if declared.size == 2 else codes
        public = None if self.classes is None else declared.size  # inferred classes are not public
        of_class = relative_weights(self._weights_of_loss(), declared)
        of_label = None if of_class is None else of_class[codes]
        records = self._records(X, target, groups, weights, public, of_label)
        return Problem(records, {**_seen_in(scratch), "classes_": declared}, leaks, loss)

    def _imagined(self, shape: PublicShape) -> Problem:
        declared = self._declared_classes()
        if declared is None:
            declared = np.arange(shape.n_classes or 2)
        loss = self._loss_of_labels(declared.size)
        shape = replace(shape, n_classes=None if self.classes is None else declared.size)
        records = _no_records(self, shape)
        return Problem(records, {"classes_": declared}, (), loss)

    def _loss_of_labels(self, n_classes: int) -> Loss:
        """The loss for a number of classes."""
        if isinstance(self.loss, str):
            return LogisticLoss() if n_classes == 2 else MultinomialLoss(n_classes)
        if n_classes > 2:
            raise ValueError(
                f"a loss of your own has one linear predictor, for two classes, and here are {n_classes}: give "
                "loss='logistic', or fit scikit-learn's OneVsRestClassifier of this estimator"
            )
        return self.loss

    def _weights_of_loss(self) -> object:
        """The class weights that multiply gradients."""
        return self.class_weight

    @by_block
    def decision_function(self, X: object) -> np.ndarray:
        """Scores of the classes; their softmax is `predict_proba`, unless the loss is your own.

        Parameters
        ----------
        X : array-like, CSR matrix, Blocks or Dask collection of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Of `Blocks` these are `Blocks` of arrays, and of a Dask collection a Dask array: both are computed when
            they are read.
        """
        return like(X, self._scores(X))

    @document(decision_function)
    @by_block
    def predict(self, X: object) -> np.ndarray:
        """Most probable class; ties go to the first class.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self._scores(X)
        if scores.ndim == 1:
            return like(X, of_signs(scores, self.classes_))
        return like(X, self.classes_[scores.argmax(axis=1)])

    @available_if(_has_probabilities)
    @document(decision_function)
    @by_block
    def predict_proba(self, X: object) -> np.ndarray:
        """Class probabilities, for every declared class.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
        """
        scores = self._scores(X)
        if scores.ndim == 1:
            return like(X, of_two_classes(scores))
        return like(X, softmax(scores))

    @available_if(_has_probabilities)
    @document(predict_proba)
    @by_block
    def predict_log_proba(self, X: object) -> np.ndarray:
        """Logarithms of `predict_proba`, as scikit-learn defines them."""
        probabilities = self.predict_proba(X)
        if is_cupy(probabilities):
            import cupy

            return cupy.log(probabilities)
        with np.errstate(divide="ignore"):
            return np.log(probabilities)

    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """Accuracy of `predict`; on private rows it is not private.

        Parameters
        ----------
        X : array-like, CSR matrix, Blocks or Dask collection of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
            True labels or targets; not beside `Blocks`, which hold them.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        float
            In [0, 1].

        Notes
        -----
        **Not private.** Predictions are compared with the given targets without noise: on private rows the score
        is a release that no epsilon covers, and so are ``cross_val_score``, ``permutation_importance`` and
        ``partial_dependence``. Score on public rows, or release scores with noise by `skdp.metrics.evaluate`.
        """
        blocks = blocks_of(X, y, None, sample_weight)
        if blocks is not None:
            return score_of_blocks(self, blocks)
        _require(self, y)
        y, found, sample_weight = map(on_host, (y, self.predict(X), sample_weight))
        return float(accuracy_score(y, found, sample_weight=sample_weight))


class NumberModel(RegressorMixin, Declared):
    """Numeric targets and predictions, with squared or Huber loss."""

    bounded: bool = parameter(
        flag(),
        """Whether `predict` is cut to ``prediction_bounds_``. These are released or public numbers, so a cut
        costs nothing and changes no coefficient. False leaves ``X @ coef_ + intercept_``. Like every parameter it
        acts in `fit`: set after a fit, it changes the next one.""",
        default=True,
        releases=False,
        place="last",
    )
    prediction_bounds_: tuple[float, float] = fitted()
    target_center_: float = fitted()
    target_scale_: float = fitted()
    shrinkage_: float = fitted()
    loss = cast("Loss | str", "squared")  # a parameter of many regressors

    _missing = False  # whether X may hold NaN
    _records: ClassVar[Callable[..., PrivateRecords]]
    _scores: ClassVar[Callable[..., np.ndarray]]  # of shape (n,), in the host's memory

    def __sklearn_tags__(self) -> Tags:
        return _table_tags(self, super().__sklearn_tags__())

    def read(self, X: object, y: object = None, groups: object = None, **weights: object) -> Problem:
        """Check the table and the targets: finite numbers, each read by itself."""
        _require(self, y)
        scratch = unfitted_copy(self)
        X, target = numeric_targets(scratch, X, y)
        loss, leaks = self._loss_of(target)
        records = self._records(X, target, groups, weights)
        return Problem(records, _seen_in(scratch), leaks, loss)

    def _imagined(self, shape: PublicShape) -> Problem:
        records = _no_records(self, shape)
        return Problem(records, {}, (), self._loss_of(np.zeros(1))[0])

    def _loss_of(self, y: np.ndarray) -> tuple[Loss, tuple[str, ...]]:
        """Return the loss object, and the leaks of its choice."""
        if not isinstance(self.loss, str):
            return self.loss, ()
        return NAMED[self.loss](getattr(self, "huber_threshold", None)), ()

    def _given_bounds(self) -> tuple[float, float] | None:
        """The public range of the targets, if the user gave one."""
        bounds = getattr(self, "y_bounds", None)
        if bounds is None or isinstance(bounds, str):
            return None
        low, high = map(float, bounds)
        return low, high

    @document(LabelModel.predict)
    @by_block
    def predict(self, X: object) -> np.ndarray:
        """Predicted targets, cut to ``prediction_bounds_`` where the model has them."""
        found: np.ndarray = cut(self, like(X, self._scores(X)))
        return found

    @document(LabelModel.score)
    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """R^2 of `predict`; on private rows it is not private.

        Returns
        -------
        float
            At most 1; 0 is the mean of ``y``.
        """
        blocks = blocks_of(X, y, None, sample_weight)
        if blocks is not None:
            return score_of_blocks(self, blocks)
        _require(self, y)
        y, found, sample_weight = map(on_host, (y, self.predict(X), sample_weight))
        return float(r2_score(y, found, sample_weight=sample_weight))

    def _check_targets(self) -> None:
        """Check the parameters that describe the targets: ``loss`` checks itself."""


def check_class_weight(class_weight: object, declared: np.ndarray | None) -> None:
    """Refuse what is not a dict of public weights over the declared labels."""
    if class_weight is None:
        return
    if isinstance(class_weight, str):
        raise ValueError(
            f"class_weight={class_weight!r} would read the class counts, which are private: give public numbers, "
            "for example {0: 1, 1: 20}, or release the counts first and give weights made of them"
        )
    if not isinstance(class_weight, Mapping):
        raise TypeError(f"class_weight must be a dict from labels to weights, got {type(class_weight).__name__}")
    for label, weight in class_weight.items():
        check_number(f"class_weight[{label!r}]", weight, Real, low=1e-6, high=1e6)
    if declared is not None:
        known = declared.tolist()
        wrong = [label for label in class_weight if label not in known]
        if wrong:
            raise ValueError(
                f"class_weight has labels that are not in classes: {wrong} (1 and '1' are different labels)"
            )


def relative_weights(class_weight: Any, classes: np.ndarray) -> np.ndarray | None:
    """The weight of each class over the largest weight; a class that is not named weighs 1."""
    if class_weight is None:
        return None
    found = np.array([float(class_weight.get(label, 1.0)) for label in classes.tolist()])
    return found / found.max()


def expected_weight(estimator: object, problem: "Problem") -> float:
    """The average weight of a record, if the weights balance the classes; from public numbers."""
    found = relative_weights(getattr(estimator, "class_weight", None), np.asarray(problem.fitted["classes_"]))
    return 1.0 if found is None else min(1.0, found.size * float(found.min()))


def _seen_in(scratch: object) -> dict[str, object]:
    """The attributes that validation sets: ``n_features_in_`` and ``feature_names_in_``."""
    return {name: value for name, value in vars(scratch).items() if name.endswith("_in_")}


def numeric_targets(estimator: BaseEstimator, X: object, y: object) -> tuple[Matrix, np.ndarray]:
    """Return X and y as `validate_table` does, y as finite float64, each target read by itself."""
    cells = as_cells(y)
    refuse_dates(cells)
    if is_untyped(cells):
        y = _as_numbers(cells)
    missing = getattr(estimator, "_missing", False)
    X, y = validate_table(estimator, X, y, missing=missing)
    return X, finite_targets(y)


def finite_targets(y: object) -> np.ndarray:
    """Return y as finite float64, each target read by itself."""
    target = _as_numbers(y)
    if not np.isfinite(target).all():
        raise ValueError(
            "Input y contains NaN or infinity. Every record needs a finite target: leave out rows "
            "without one, or clip y to a public range"
        )
    return target


def _as_numbers(y: object) -> np.ndarray:
    try:
        return cell_numbers(y)
    except (TypeError, ValueError):
        pass
    raise ValueError("y must be numeric for a regression; it holds text or other objects")


def _refuse_mixed(labels: np.ndarray) -> None:
    """Raise ValueError for text and numbers in one y: NumPy would turn the numbers into text."""
    kinds = {kind(label) for label in labels.ravel()} - {"missing"}
    if "text" in kinds and len(kinds) > 1:
        raise ValueError(
            "y holds text and numbers, which are different labels: declare the label set with classes= "
            "and make all labels text or all numbers"
        )


def _undeclared(classes: np.ndarray) -> str:
    """The message for a label that is not declared: it holds declared labels only, which are public."""
    shown = [repr(label) for label in classes[:SHOWN_LABELS].tolist()]
    more = ["..."] if classes.size > SHOWN_LABELS else []
    words = classes.dtype.kind == "U" and not any(label.strip()[:1].isdigit() for label in classes.tolist())
    alike = "text: case and spaces count" if words else "1 and '1' are different labels"
    return (
        f"y contains labels that are not in classes=[{', '.join([*shown, *more])}] ({alike}); "
        "every record's label must be a declared one"
    )


def _known(codes: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the indices of labels that were looked up one by one; -1 is an undeclared label."""
    if np.any(codes < 0):
        raise ValueError(_undeclared(classes))
    return codes.astype(np.int64)


def _encode(y: np.ndarray, classes: np.ndarray) -> np.ndarray:
    """Return the index of each label in ``classes``, for a y whose container has a type."""
    if classes.size == 2 and y.dtype.kind in "biuf" and classes.dtype.kind in "biuf":
        second = y == classes[1]  # half as long as a search
        if not np.all(second | (y == classes[0])):
            raise ValueError(_undeclared(classes))
        return second.astype(np.int64)
    try:
        position = np.minimum(np.searchsorted(classes, y), classes.size - 1)
        known = classes[position] == y
    except TypeError:
        known = np.zeros(1, dtype=bool)
    if not np.all(known):
        raise ValueError(_undeclared(classes))
    return position.astype(np.int64, copy=False)


def _distinct(y: np.ndarray) -> np.ndarray:
    """Return the labels in y, sorted."""
    try:
        return distinct(y)
    except TypeError:
        pass
    raise ValueError(
        "y holds missing labels, or labels that have no order; declare the label set with classes= and leave "
        "out rows without a label"
    )
