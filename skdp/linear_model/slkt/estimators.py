"""The estimators of sparse learning by knowledge transfer: parameters here, the algorithm in `solver`."""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar, Literal, Unpack

import numpy as np

from skdp._compat import warn_user
from skdp._docs import document
from skdp.base import check_choice
from skdp.base.declare import changed, fitted, fixed, parameter
from skdp.base.fit import PrivateFit, SessionOptions
from skdp.base.kinds import choice, described, integer, real
from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.exceptions import UnprovenPrivacyWarning
from skdp.fitting import parameters
from skdp.fitting.closing import Closing, LinearDecision, TargetUnits
from skdp.fitting.linear import LinearFit, count_assumption
from skdp.fitting.parameters import Auto
from skdp.fitting.targets import LabelModel, NumberModel, Problem
from skdp.fitting.task import Task, check_features, given
from skdp.kernels.protocols import Matrix, issparse
from skdp.linear_model.slkt.solver import (
    SLKTSettings,
    Transfer,
    planned_transfer,
    private_transfer,
    published_transfer,
)
from skdp.privacy import PrivacySession, canonical_csr

THRESHOLD = 0.25  # Huber's threshold over the half-width of the targets
DISTRIBUTIONS = ("basis", "uniform", "gaussian")
ERRATUM = (
    "The proof of Theorem 3.3.3 of Wang (2021) uses a first-order condition on the l0 ball, which is not convex. "
    "The published teacher is not stable and no epsilon holds for it; the other teachers are convex."
)


def public_table(name: str, value: object) -> Matrix | None:
    """Return public inputs as CSR or as an array of float64; None stays."""
    if value is None:
        return None
    X = canonical_csr(value) if issparse(value) else np.asarray(value, dtype=np.float64)
    if X.ndim != 2 or min(X.shape) < 1:
        raise ValueError(f"{name} must have shape (m, n_features), got {X.shape}")
    if not np.isfinite(X.data if hasattr(X, "indptr") else X).all():
        raise ValueError(f"{name} contains NaN or infinity")
    return X


def check_distribution(name: str, value: object) -> None:
    """Raise TypeError or ValueError unless a distribution is one of the words, or frozen."""
    if isinstance(value, str):
        check_choice(name, value, DISTRIBUTIONS)
    elif not callable(getattr(value, "rvs", None)):
        raise TypeError(
            f"{name} must be one of {list(DISTRIBUTIONS)} or a frozen scipy.stats distribution, got "
            f"{type(value).__name__}"
        )


class PrivateTransferFit(LinearFit):
    """The fit of both estimators."""

    _no_blocks: ClassVar[str | None] = "its minimiser reads all rows together, in a fixed order"

    n_nonzero_coefs: int | None = parameters.N_NONZERO_COEFS
    teacher: Literal["private-support", "ridge", "published"] = parameter(
        choice("private-support", "ridge", "published"),
        """"private-support" spends most of the budget on choosing the features, and on a first fit on them, as
        DP-IGHT does. The teacher is then convex on these features and penalised about that fit. It was the
        better teacher in every measurement (user guide). "ridge" is a convex teacher on all features,
        penalised about 0. "published" is the paper's teacher and **not private by any proof**. It warns
        `UnprovenPrivacyWarning`, reports epsilon = inf, and is refused if an accountant would pay.""",
        default="private-support",
    )
    row_norm: Auto = parameter(
        real(low=1e-50, high=1e50, word="auto"),
        """Largest l2 norm of a record's features. Longer rows are scaled down. "auto" releases a number near
        the median norm. Only the chosen features count. The published teacher clips nothing.""",
        default="auto",
    )
    alpha: Auto = parameter(
        real(low=1e-50, high=1e50, word="auto"),
        """Weight of the teacher's penalty, > 0. A larger weight makes the teacher more stable and the labels less
        noisy, but keeps the teacher nearer to where it started. "auto" balances the two by public numbers
        (user guide).""",
        default="auto",
    )
    public_X: object = parameter(
        described("array-like or CSR matrix of shape (m, n_features)", public_table),
        "Public inputs at which the teacher predicts, for example records that need no protection.",
        default=None,
    )
    transfer_distribution: object = parameter(
        described('{"basis", "uniform", "gaussian"} or frozen distribution', check_distribution),
        """The inputs at which the teacher predicts if there are no public ones. "basis" takes each coefficient
        once. No other inputs do better, because the noise of all labels grows with the spectral norm of the
        inputs. Entries may also be drawn: uniform on (-1, 1), standard normal, or by ``rvs`` of a frozen
        ``scipy.stats`` distribution.""",
        default="basis",
    )
    n_transfer: int | None = parameter(
        integer(low=1, none=True),
        "Number of drawn inputs. None takes ten a coefficient, at least 1000.",
        default=None,
    )
    fit_intercept = changed(
        more="""
        The teacher penalises the intercept like a coefficient, because it would not be stable otherwise."""
    )
    unit = changed(more=parameters.SHARED_WEIGHT)
    verbose: bool = parameters.VERBOSE_UNUSED
    n_iter_: int = fitted("int", "Number of released vectors of coefficients or labels.")
    n_transfer_: int = fitted("int", "Number of labels.")
    row_norm_: float = fitted("float", "The bound on the rows, given or released. The published teacher has none.")
    alpha_: float = fitted("float", "The teacher's penalty.")
    label_noise_: float = fitted("float", "Standard deviation of the noise of a label.")

    _erratum = ERRATUM

    @property
    def _unproven(self) -> bool:  # type: ignore[override]
        return self.teacher == "published" and not math.isinf(self.epsilon)

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        if not self._unproven:
            return super()._open_session(n_units, **options)
        if self._payer() is not False:
            raise ValueError(
                "teacher='published' has no valid privacy proof, so no accountant can pay for it; "
                "use teacher='private-support' or 'ridge'"
            )
        warn_user(
            "the published teacher is not stable and no valid proof supports its noise: the report says "
            "epsilon = inf. Use teacher='private-support' or 'ridge' for private data",
            UnprovenPrivacyWarning,
        )
        return PrivacySession(
            epsilon=math.inf,
            delta=self.delta,
            adjacency=self.adjacency,
            unit=self.unit,
            accountant=False,
            random_state=self.random_state,
            estimator=type(self).__name__,
        )

    def _public_inputs(self, problem: Problem) -> Matrix | None:
        n_features = problem.records.n_features
        check_features(self.n_nonzero_coefs, n_features)
        public = public_table("public_X", self.public_X)
        if public is not None and public.shape[1] != n_features:
            raise ValueError(f"public_X has {public.shape[1]} features, X has {n_features}")
        return public

    def _settings(self, problem: Problem) -> SLKTSettings:
        return SLKTSettings(
            self.n_nonzero_coefs,
            given(self.row_norm),
            given(self.alpha),
            self._threshold(problem),
            with_support=self.teacher == "private-support",
        )

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        self._public_inputs(problem)
        task = Task(budget, problem.records, problem.loss, np.empty(0))
        if self.teacher == "published":
            return LinearDecision(method=self.teacher)
        return replace(planned_transfer(task, self._settings(problem)), method=self.teacher)

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        public = self._public_inputs(problem)
        transfer = Transfer(public, self.transfer_distribution, self.n_transfer)
        settings = self._settings(problem)
        task = Task(problem.budget, problem.records, problem.loss, np.empty(0))
        if self.teacher == "published":
            return published_transfer(task, transfer, settings, epsilon=self.epsilon, delta=self.delta)
        return private_transfer(task, transfer, settings, problem.decision.details)

    def _threshold(self, problem: Problem) -> float | None:
        """Huber's threshold: given, or a part of the half-width of the targets; a classifier has none."""
        threshold = given(getattr(self, "huber_threshold", None))
        if threshold is None and problem.target is not None:
            return THRESHOLD * float(problem.target.bound)
        return threshold

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        found = count_assumption(problem)
        if self.public_X is not None:
            found += ("public_X is public and was not made from these records",)
        if given(self.row_norm) is not None:
            found += ("row_norm was not chosen by looking at these records",)
        return found


@document()
class DPSLKTClassifier(PrivateTransferFit, LabelModel, PrivateFit[Problem]):
    """Sparse logistic or softmax regression by private knowledge transfer.

    DPSL-KT of [Wang2021]_, with teachers that have a valid proof. A convex teacher is fitted to the private data.
    Its linear scores of public inputs are released with Gaussian noise, and a sparse student learns them.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPIGHTClassifier : Noisy gradient steps that keep a number of features.
    DPTwoStageClassifier : Chooses features first, then fits a convex model on them.

    Notes
    -----
    **Privacy.** A row with the intercept's feature has norm at most R. The derivative of the loss is at most L: 1
    for the logistic loss, sqrt(2) for softmax, the threshold for Huber's. Then the minimisers of the penalised
    mean loss on two neighbours differ by at most ``2 L R / (n alpha)`` in l2 norm, as [Chaudhuri2011]_ show. Under
    zero-out and add-remove it is half of that. The gap of the solver, which is the same on all data, is added.
    Labels are the teacher's linear predictors of public inputs P, and differ by at most ``||P||_2`` times this
    distance; the spectral norm is certified from above. The labels are released once with Gaussian noise. The
    sparse student sees released values and public inputs only. With ``teacher="private-support"`` the features and
    the first fit are released before, as in `DPIGHTClassifier`, from the same budget.

    Erratum of [Wang2021]_: the proof of Theorem 3.3.3 uses a first-order condition that holds for convex
    sets only. A teacher under a sparsity constraint is not stable: replacing one of 1001 records can move it
    by 83 times the claimed bound.

    {privacy.unprotected}

    References
    ----------
    .. [Wang2021] Chapter 3, Algorithm 2, Theorem 3.3.3.
    .. [Chaudhuri2011]

    Examples
    --------
    >>> from skdp import DPSLKTClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 50, n_informative=3, random_state=0)
    >>> model = DPSLKTClassifier(epsilon=2.0, n_nonzero_coefs=5, classes=(0, 1)).fit(X, y)
    >>> model.coef_.shape, len(model.support_)
    ((1, 50), 5)
    >>> model.privacy_.epsilon, model.privacy_.delta
    (2.0, 1e-05)
    """

    n_nonzero_coefs = changed(more=parameters.CLASS_NORMS)
    class_weight: object = fixed(default=None)


@document(DPSLKTClassifier)
class DPSLKTRegressor(PrivateTransferFit, NumberModel, PrivateFit[Problem]):
    """Sparse linear regression by private knowledge transfer.

    DPSL-KT of [Wang2021]_, with teachers that have a valid proof. A convex teacher with Huber's loss is
    fitted to the private data. Its predictions of public inputs are released with Gaussian noise, and a sparse
    student learns them.

    {guarantee}

    See Also
    --------
    DPIGHTRegressor : Noisy gradient steps that keep a number of features.
    DPTwoStageRegressor : Chooses features first, then fits a convex model on them.

    Notes
    -----
    {Notes}

    {privacy.targets}

    Examples
    --------
    >>> from skdp import DPSLKTRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 50, n_informative=3, random_state=0)
    >>> model = DPSLKTRegressor(epsilon=2.0, n_nonzero_coefs=5).fit(X, y)
    >>> len(model.support_), model.privacy_.epsilon
    (5, 2.0)
    """

    huber_threshold: Auto = parameter(
        real(low=1e-50, high=1e50, word="auto"),
        """Residual beyond which Huber's loss is linear, in units of y, > 0. "auto" releases the targets'
        median, which is subtracted, and their half-width, of which the threshold is a part. The squared loss is
        not offered: its gradients have no bound, so its minimiser is not stable (the published teacher uses it).
        The mean of skewed targets, such as counts, is underestimated; `DPAdaSSPRegressor` fits it.""",
        default="auto",
    )
    huber_threshold_: float = fitted("float", "The threshold, given or released. The published teacher has none.")

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        literal = given(self.huber_threshold) is not None and given(self.row_norm) is not None
        searched = self.teacher != "published" and not literal
        return (TargetUnits.of(self, searched=searched, needs_half_width=True),)
