"""The fit of a linear model: its coefficients and scores, its closing steps, its warnings, and its export."""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
import scipy.sparse as sp
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from skdp._export import clipped_regressor, linear_regression, logistic_regression, with_columns
from skdp.base.declare import Declared, declares, fitted, parameter
from skdp.base.exact import NonPrivateFit
from skdp.base.fit import PrivateFit, decision_of
from skdp.base.kinds import flag
from skdp.base.plan import Advice, BudgetSplit, Decision, Step
from skdp.base.problem import Solution
from skdp.base.user_tables import validate_table
from skdp.fitting.closing import Closing, LinearDecision, Recalibrated, closed, decide, opened
from skdp.fitting.predictions import NOWHERE, cut_text
from skdp.fitting.targets import Problem, expected_weight, is_classifier, require_probabilities, table_records
from skdp.fitting.task import from_theta, parameter_shape
from skdp.fitting.utility import Facts, Release, Released, noise_size, released_warnings, utility_warnings
from skdp.kernels import are_rows_alone, is_cupy, on_host
from skdp.losses import HuberLoss, is_shipped
from skdp.privacy import MOST_PER_PUBLIC, PrivacySession, PublicShape, accounting

# Parameters for which a word means that a number is released.
ADAPTIVE = ("clip_norm", "learning_rate", "radius", "row_norm", "y_bounds", "huber_threshold")
NORMS = ("clip_norm", "row_norm")
# Half-widths by which a prediction may lie from the centre where the range of the targets was released. The
# half-width leaves out 2 % of the targets, or more of skewed ones where noise hides the tail: a cut there costs
# accuracy. Of 1, 1.5, 2, 3 and 5 this is the smallest that took less than .002 of R^2 on every table of inner
# splits of the training parts of the suite, and from all but one in a thousand fits to the usual tables of
# `examples/prediction_bounds.py`, where 1.5 took up to .08 from skewed targets.
MARGIN = 2.0

if TYPE_CHECKING:  # the frame comes later among the bases of an estimator
    _Frame = PrivateFit[Problem]
else:
    _Frame = Declared


def count_assumption(problem: Problem) -> tuple[str, ...]:
    """The assumption of the bound of a minimiser's rounding errors if ``n_public`` is given."""
    if problem.records.shape.n_public is None:
        return ()
    kind = problem.records.shape.unit
    return (f"there are at most {MOST_PER_PUBLIC} times n_public {kind}s",)


def _has_coef(model: "LinearFit") -> bool:
    return "coef_" in model._released_names


class LinearFit(_Frame):
    """The fit of a linear model.

    An estimator has three bases, in this order: its method, a subclass of this class; its targets, `LabelModel` or
    `NumberModel`; the frame of its fit, `PrivateFit` or `NonPrivateFit`.

    A method gives ``solve(session, problem)``, and plans in ``releases(budget, shape)``, or in `_method` where it
    decides more. It closes with the steps of `_closing`: a classifier's scores are recalibrated, a regressor names
    its own steps. They take their part of the budget first; ``problem.budget`` is the rest, for `solve`.
    """

    fit_intercept: bool = parameter(
        flag(), "Whether to fit an intercept, as the coefficient of a constant feature.", default=True
    )
    n_features_in_: int = fitted()
    feature_names_in_: np.ndarray = fitted()
    n_iter_: int = fitted()
    coef_: Any = fitted()
    intercept_: Any = fitted()
    support_: np.ndarray = fitted()

    _check_targets: ClassVar[Callable[..., None]]  # of the model of the targets
    _missing: ClassVar[bool]  # whether X may hold NaN
    _records = table_records
    _released_names = ("coef_", "intercept_")  # attributes that hold the coefficients and the intercepts

    # A model whose signature does not name weights, for lack of a declared bound, still says how to route them.
    __metadata_request__fit = {"sample_weight": None}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        order = cls.__mro__
        early = [x.__name__ for x in (PrivateFit, NonPrivateFit) if x in order[: order.index(LinearFit)]]
        if early:
            raise TypeError(
                f"{cls.__name__} has {early[0]} before its method among its bases, which would hide parts of the "
                f"method: name the method first, then LabelModel or NumberModel, and {early[0]} last"
            )

    def _check_parameters(self) -> None:
        self._check_targets()
        super()._check_parameters()

    # ---------------------------------------------------------------- the decision and the run

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        """Decide what the method does with its part of the budget."""
        made = decision_of(self, budget, problem.records.shape)
        return LinearDecision(steps=made.steps, details=made.details, release="gradient")

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        """The closing steps, the outermost first."""
        probabilities = is_classifier(self) and is_shipped(problem.loss)
        return (Recalibrated.of(self, problem),) if probabilities else ()

    def _run(self, session: PrivacySession, problem: Problem) -> Solution:
        """Run the method and its closing steps."""
        inner, steps = opened(self._closing(problem), BudgetSplit(session), problem)
        found = closed(steps, self.solve(session, inner))
        return replace(found, warnings=(*self._released_advice(problem, found), *found.warnings))

    def _decide(self, session: PrivacySession, problem: Problem) -> Decision:
        made = decide(self._closing(problem), self._method, BudgetSplit(session), problem)
        aside = 0.0 if session.exact else session.set_aside
        if aside and all(step.purpose != "minimiser" for step in made.steps):  # a method may plan it by itself
            left = tuple(step._replace(share=(1.0 - aside) * step.share) for step in made.steps)
            made = replace(made, steps=(*left, Step("minimiser", aside)))
        if made.signal is not None:
            return made
        return replace(made, signal=self._signal(session, problem, made.release))

    def _signal(self, session: PrivacySession, problem: Problem, release: Release) -> float | None:
        """Largest signal over the noise, if one release took the whole budget; None where it is not known."""
        shape = problem.records.shape
        effective_n = math.inf if session.exact else self._effective_n(shape)
        if not release or math.isinf(effective_n):
            return None
        n_coefs = math.prod(parameter_shape(problem.records, problem.loss))
        return effective_n / noise_size(release, shape, self.adjacency, n_coefs)

    def _fitted(self, problem: Problem, solution: Solution) -> dict[str, object]:
        coef, intercept = from_theta(solution.theta, self.fit_intercept, hasattr(self, "classes"))
        made = {
            **problem.fitted,
            "coef_": coef,
            "intercept_": intercept,
            "support_": np.flatnonzero(np.any(np.atleast_2d(coef) != 0, axis=0)),
            "n_iter_": solution.n_iter,
            **solution.attributes,
        }
        if declares(self, "bounded"):
            made["prediction_bounds_"] = prediction_bounds(self, solution.attributes)
        return made

    # ---------------------------------------------------------------- warnings and report

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        facts: dict[str, object] = {}
        if getattr(self, "max_weight", None) is not None:
            facts["max_weight"] = float(self.max_weight)
        if getattr(self, "classes", None) is not None:
            labels = np.asarray(problem.fitted["classes_"]).tolist()
            facts["classes"] = [x if isinstance(x, (str, int, float)) else str(x) for x in labels]
        return facts

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        found = super()._assumptions(problem)
        if is_shipped(problem.loss):
            return found
        return (
            *found,
            f"the derivative of the loss {problem.loss.name!r} is record-wise by the user's declaration",
        )

    def _post_processing(self, solution: Solution) -> tuple[str, ...]:
        bounds = prediction_bounds(self, solution.attributes) if declares(self, "bounded") else NOWHERE
        return () if bounds == NOWHERE else (cut_text(bounds),)

    def _advice(self, session: PrivacySession, problem: Problem) -> tuple[Advice, ...]:
        return utility_warnings(self._facts(session, problem))

    def _facts(self, session: PrivacySession, problem: Problem) -> Facts:
        """The public numbers that tell whether the fit may be of little use."""
        made, shape = cast("LinearDecision", problem.decision), problem.records.shape
        given = self.get_params(deep=False)  # a class may fix one of these words by itself
        classes = is_classifier(self)
        return Facts(
            name=type(self).__name__,
            shape=shape,
            epsilon=self.epsilon,
            effective_n=math.inf if session.exact else self._effective_n(shape),
            method=made.thresholds,
            task="classes" if classes else "numbers",
            searched=tuple(name for name in ADAPTIVE if isinstance(given.get(name), str)),
            constant=made.constant,
            calibrated=made.calibrated,
            release=made.release,
            weight=expected_weight(self, problem) if classes else 1.0,
            n_coefs=math.prod(parameter_shape(problem.records, problem.loss)),
            adjacency=self.adjacency,
            selects=hasattr(self, "n_nonzero_coefs"),
        )

    def _effective_n(self, shape: PublicShape) -> float:
        """Units times mu; inf without noise, and without a mu."""
        if self.delta == 0 or math.isinf(self.epsilon):
            return math.inf
        return shape.n_units * accounting.gaussian_mu(self.epsilon, self.delta)

    def _released_advice(self, problem: Problem, solution: Solution) -> tuple[Advice, ...]:
        """Warnings from released numbers."""
        found, shape = cast("Mapping[str, float]", solution.attributes), problem.records.shape
        searched = [x for x in NORMS if isinstance(getattr(self, x, None), str) and f"{x}_" in found]
        huber = isinstance(problem.loss, HuberLoss) and getattr(self, "loss", None) == "huber"
        facts = Released(
            task="classes" if is_classifier(self) else "numbers",
            n_features=shape.n_features,
            effective_n=self._effective_n(shape),
            method=problem.decision.thresholds,
            norms=tuple((name, found[f"{name}_"]) for name in searched),
            half_width=found.get("target_scale_", 1.0),
            huber_threshold=problem.loss.lipschitz if huber and "target_scale_" in found else math.inf,
            shrinkage=found.get("shrinkage_", 1.0),
            slope_noise=solution.slope_noise,
            own_loss=not is_shipped(problem.loss),
        )
        return released_warnings(facts)

    # ---------------------------------------------------------------- the scores

    def _scores(self, X: object) -> np.ndarray:
        """Return the scores of the rows, of shape (n,) or (n, n_classes)."""
        check_is_fitted(self)
        X = validate_table(self, X, reset=False, missing=self._missing)
        scores = self._scores_of(X if is_cupy(X) and not are_rows_alone() else on_host(X))
        return scores.reshape(-1) if scores.ndim == 2 and scores.shape[1] == 1 else scores

    def _scores_of(self, X: Any) -> np.ndarray:
        """Scores of a checked table, in a new array of shape (n,) or (n, n_outputs) in the host's memory."""
        if is_cupy(X):  # multiply on the device, then bring the scores back
            import cupy

            coef, intercept = self._line()
            scores = cupy.asnumpy(X @ cupy.asarray(coef.T, dtype=X.dtype)).astype(np.float64)
            return np.asarray(scores + intercept)
        if are_rows_alone():
            from skdp.kernels import linear_scores  # it loads numba

            coef, intercept = self._line()
            return linear_scores(X, coef.T, intercept)
        product = X @ self.coef_.T
        scores = product.toarray() if sp.issparse(product) else product
        scores = np.asarray(scores, dtype=np.float64)
        scores += self.intercept_
        return scores

    def _line(self) -> tuple[np.ndarray, np.ndarray]:
        """Coefficients of shape (n_outputs, n_features), and intercepts of shape (n_outputs,)."""
        coef, intercept = (getattr(self, name) for name in self._released_names)
        return coef.toarray() if sp.issparse(coef) else np.atleast_2d(coef), np.reshape(intercept, -1)

    @available_if(_has_coef)
    def sparsify(self) -> Self:
        """Store ``coef_`` as a CSR matrix, which is smaller and predicts faster when most are zero.

        Returns
        -------
        self : estimator
        """
        check_is_fitted(self)
        self.coef_ = sp.csr_matrix(np.atleast_2d(self.coef_) if not sp.issparse(self.coef_) else self.coef_)
        return self

    @available_if(_has_coef)
    def densify(self) -> Self:
        """Store ``coef_`` as an array again.

        Returns
        -------
        self : estimator
        """
        check_is_fitted(self)
        if sp.issparse(self.coef_):
            dense = self.coef_.toarray()
            self.coef_ = dense.ravel() if not is_classifier(self) and len(dense) == 1 else dense
        return self

    # ---------------------------------------------------------------- the export

    def to_sklearn(self) -> Any:
        """Return the model as a fitted estimator of scikit-learn, with the same predictions.

        Labels and scores are equal, probabilities up to rounding. It holds released numbers only, no data and
        nothing of skdp: pickle it and use it where skdp is not installed. Do not fit it again on private
        records; that fit would not be private.

        Returns
        -------
        LogisticRegression, LinearRegression, TransformedTargetRegressor or Pipeline
            A classifier becomes a ``LogisticRegression``, binary or multinomial; a regressor becomes a
            ``LinearRegression``. A sparse ``coef_`` stays sparse in a classifier. `DPLogisticRegression` and
            `DPLinearRegression` take missing values, so they become a ``Pipeline`` of a ``SimpleImputer`` with
            their ``fill_values_`` and the model, whether or not the records had any. Where `predict` is cut to
            ``prediction_bounds_``, a ``TransformedTargetRegressor`` around all of this cuts alike; its
            ``regressor_`` is the model without the cut.

        Raises
        ------
        TypeError
            If no model of scikit-learn has these predictions: a classifier or `DPSparseERM` with a loss of your
            own, and `DPSparseERM` with a classification loss, whose `predict` returns probabilities.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp import DPIGHTClassifier
        >>> X = np.random.default_rng(0).normal(size=(500, 3))
        >>> model = DPIGHTClassifier(classes=(0, 1)).fit(X, (X[:, 0] > 0).astype(int))
        >>> type(model.to_sklearn()).__name__
        'LogisticRegression'
        >>> np.array_equal(model.to_sklearn().predict(X), model.predict(X))
        True
        """
        check_is_fitted(self)
        if is_classifier(self):
            require_probabilities(self)
            made = logistic_regression(self, self.coef_.copy(), self.intercept_)
        else:
            # scikit-learn would take a sparse coefficient for the coefficients of several targets.
            coef = self.coef_.toarray() if sp.issparse(self.coef_) else self.coef_
            made = linear_regression(self, coef, self.intercept_)
        return cut_export(self, with_columns(made, self))


# ---------------------------------------------------------------- bounds of predictions


def prediction_bounds(model: LinearFit, found: Mapping[str, Any]) -> tuple[float, float]:
    """The bounds that follow from the attributes of a solution.

    They are, in this order: those among the attributes; the public range of the targets that the user gave;
    `MARGIN` released half-widths about the released centre. They are infinite where nothing of the targets is
    given or released, and with ``bounded=False``. All are released or public numbers, so a cut is post-processing
    and costs nothing; ``bounded`` changes no release, and the noise of a seeded fit does not depend on it.
    """
    if not model.bounded:
        return NOWHERE
    if "prediction_bounds_" in found:
        low, high = map(float, found["prediction_bounds_"])
        return low, high
    given: tuple[float, float] | None = model._given_bounds()
    if given is not None:
        return given
    center, half_width = (float(found.get("target_center_", 0.0)), float(found.get("target_scale_", 0.0)))
    if not half_width:  # none was released
        return NOWHERE
    return center - MARGIN * half_width, center + MARGIN * half_width


def cut_export(model: object, made: object) -> Any:
    """The exported model, in a ``TransformedTargetRegressor`` that cuts its predictions alike."""
    bounds = vars(model).get("prediction_bounds_", NOWHERE)
    return made if bounds == NOWHERE else clipped_regressor(made, *bounds)
