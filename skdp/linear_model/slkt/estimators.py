"""The estimators of sparse learning by knowledge transfer: parameters here, the algorithm in `solver`."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdp._compat import warn_user
from skdp._docs import document
from skdp.base import check_choice, check_number
from skdp.base.fit import Solution
from skdp.exceptions import UnprovenPrivacyWarning
from skdp.fitting.bounded import BoundedPredictions
from skdp.fitting.checks import check_features
from skdp.fitting.glm import GLMClassifier, GLMRegressor, Problem
from skdp.fitting.linear import LinearFit, count_assumption
from skdp.fitting.target_units import InTargetUnits
from skdp.fitting.task import Task, given
from skdp.linear_model.slkt.solver import (
    Settings,
    Transfer,
    divided,
    private_transfer,
    published_transfer,
)
from skdp.privacy import PrivacySession, canonical_csr

__all__ = ["DPSLKTClassifier", "DPSLKTRegressor"]

THRESHOLD = 0.25  # Huber's threshold over the reach of the targets
TEACHERS = ("private-support", "ridge", "published")
DISTRIBUTIONS = ("basis", "uniform", "gaussian")
ERRATUM = (
    "The proof of Theorem 3.3.3 of Wang (2021) uses a first-order condition on the l0 ball, which is not convex. "
    "The published teacher is not stable and no epsilon holds for it; the other teachers are convex."
)


class PrivateTransferFit(LinearFit):
    """The fit of both estimators."""

    n_transfer_: int
    row_norm_: float
    alpha_: float
    label_noise_: float
    teacher: str
    n_nonzero_coefs: int | None
    row_norm: float | str
    alpha: float | str
    public_X: Any
    transfer_distribution: Any
    n_transfer: int | None
    _erratum = ERRATUM

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_choice("teacher", self.teacher, TEACHERS)
        check_number("n_nonzero_coefs", self.n_nonzero_coefs, Integral, low=1, none=True)
        check_number("row_norm", self.row_norm, Real, low=1e-50, high=1e50, word="adaptive")
        check_number("alpha", self.alpha, Real, low=1e-50, high=1e50, word="auto")
        if self.n_transfer is not None:
            check_number("n_transfer", self.n_transfer, Integral, low=1)
        distribution = self.transfer_distribution
        if isinstance(distribution, str):
            check_choice("transfer_distribution", distribution, DISTRIBUTIONS)
        elif not callable(getattr(distribution, "rvs", None)):
            raise TypeError(
                f"transfer_distribution must be one of {list(DISTRIBUTIONS)} or a frozen scipy.stats "
                f"distribution, got {type(distribution).__name__}"
            )
        self._check_public_X()

    def _check_public_X(self) -> Any:
        if self.public_X is None:
            return None
        X = self.public_X
        X = canonical_csr(X) if sp.issparse(X) else np.asarray(X, dtype=np.float64)
        if X.ndim != 2 or min(X.shape) < 1:
            raise ValueError(f"public_X must have shape (m, n_features), got {X.shape}")
        if not np.isfinite(X.data if hasattr(X, "indptr") else X).all():
            raise ValueError("public_X contains NaN or infinity")
        return X

    @property
    def _unproven(self) -> bool:  # type: ignore[override]
        return self.teacher == "published" and not math.isinf(self.epsilon)

    def _open_session(self, n_units: int | None = None) -> PrivacySession:
        if not self._unproven:
            return super()._open_session(n_units)
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

    def _public_inputs(self, problem: Problem) -> Any:
        n_features = problem.records.n_features
        check_features(self.n_nonzero_coefs, n_features)
        public = self._check_public_X()
        if public is not None and public.shape[1] != n_features:
            raise ValueError(f"public_X has {public.shape[1]} features, X has {n_features}")
        return public

    def _settings(self, problem: Problem) -> Settings:
        return Settings(
            self.n_nonzero_coefs,
            given(self.row_norm),
            given(self.alpha),
            self._threshold(problem),
            with_support=self.teacher == "private-support",
        )

    def _plan_first(self, session: Any, problem: Problem) -> None:
        """Refuse what cannot be solved, before the first release."""
        self._public_inputs(problem)
        task = Task(session, problem.records, problem.loss, np.empty(0))
        divided(task, self._settings(problem))

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        public = self._public_inputs(problem)
        transfer = Transfer(public, self.transfer_distribution, self.n_transfer)
        settings = self._settings(problem)
        task = Task(session, problem.records, problem.loss, np.empty(0))
        if self.teacher == "published":
            return published_transfer(
                task, transfer, settings, epsilon=self.epsilon, delta=self.delta
            )
        return private_transfer(task, transfer, settings)

    def _threshold(self, problem: Problem) -> float | None:
        """Huber's threshold: given, or a part of the reach of the targets; a classifier has none."""
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


class _TransferRegressionFit(InTargetUnits, PrivateTransferFit):
    """The fit of a regression.

    The published teacher, and numbers for both bounds, release nothing of the targets.
    """

    huber_threshold_: float
    shrinkage_: float
    huber_threshold: float | str
    _needs_reach = True

    def _searches_targets(self, session: PrivacySession, problem: Problem) -> bool:
        literal = given(self.huber_threshold) is not None and given(self.row_norm) is not None
        return self.teacher != "published" and not literal


@document()
class DPSLKTClassifier(GLMClassifier, PrivateTransferFit):
    """Sparse logistic or softmax regression by private knowledge transfer.

    DPSL-KT of [Wang2021]_, with teachers that have a valid proof. A convex teacher is fitted to the private data.
    Its linear scores of public inputs are released with Gaussian noise, and a sparse student learns them.

    {guarantee}

    {recalibrated}

    Parameters
    ----------
    {epsilon} {delta} {n_nonzero_coefs}
        With several classes the features with the largest l2 norm over the classes are kept.
    teacher : {"private-support", "ridge", "published"}, default="private-support"
        "private-support" spends most of the budget on choosing the features, and on a first fit on them, as
        DP-IGHT does. The teacher is then convex on these features and penalised about that fit. It was the
        better teacher in every measurement (user guide). "ridge" is a convex teacher on all features,
        penalised about 0. "published" is the paper's teacher and **not private by any proof**. It warns
        `UnprovenPrivacyWarning`, reports epsilon = inf, and is refused if an accountant would pay.
    {row_norm}
        Only the chosen features count. The published teacher clips nothing.
    alpha : float or "auto", default="auto"
        Weight of the teacher's penalty, > 0. A larger weight makes the teacher more stable and the labels less
        noisy, but keeps the teacher nearer to where it started. "auto" balances the two by public numbers
        (user guide).
    public_X : array-like or CSR matrix of shape (m, n_features), default=None
        Public inputs at which the teacher predicts, for example records that need no protection.
    transfer_distribution : {"basis", "uniform", "gaussian"} or frozen distribution, default="basis"
        The inputs at which the teacher predicts if there are no public ones. "basis" takes each coefficient
        once. No other inputs do better, because the noise of all labels grows with the spectral norm of the
        inputs. Entries may also be drawn: uniform on (-1, 1), standard normal, or by ``rvs`` of a frozen
        ``scipy.stats`` distribution.
    n_transfer : int, default=None
        Number of drawn inputs. None takes ten a coefficient, at least 1000.
    {fit_intercept}
        The teacher penalises the intercept like a coefficient, because it would not be stable otherwise.
    {classes} {adjacency} {unit.mean} {n_public} {accountant} {random_state} {verbose.none}

    Attributes
    ----------
    {coef_.classifier} {intercept_.classifier} {support_} {classes_}
    n_iter_ : int
        Number of released vectors of coefficients or labels.
    n_transfer_ : int
        Number of labels.
    row_norm_ : float
        The bound on the rows, given or released. The published teacher has none.
    alpha_ : float
        The teacher's penalty.
    label_noise_ : float
        Standard deviation of the noise of a label.
    {privacy_} {n_features_in_} {feature_names_in_}

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
    Labels are the teacher's linear predictors of public inputs P. So they differ by at most ``||P||_2`` times
    that; the spectral norm is certified from above. The labels are released once with Gaussian noise. The sparse
    student sees released values and public inputs only. With ``teacher="private-support"`` the features and the
    first fit are released before, as in `DPIGHTClassifier`, from the same budget.

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

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        n_nonzero_coefs=None,
        teacher="private-support",
        row_norm="adaptive",
        alpha="auto",
        public_X=None,
        transfer_distribution="basis",
        n_transfer=None,
        fit_intercept=True,
        classes=None,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        accountant=None,
        random_state=None,
        verbose=False,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero_coefs = n_nonzero_coefs
        self.teacher = teacher
        self.row_norm = row_norm
        self.alpha = alpha
        self.public_X = public_X
        self.transfer_distribution = transfer_distribution
        self.n_transfer = n_transfer
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose


@document(DPSLKTClassifier)
class DPSLKTRegressor(BoundedPredictions, GLMRegressor, _TransferRegressionFit):
    """Sparse linear regression by private knowledge transfer.

    DPSL-KT of [Wang2021]_, with teachers that have a valid proof. A convex teacher with Huber's loss is
    fitted to the private data. Its predictions of public inputs are released with Gaussian noise, and a sparse
    student learns them.

    {guarantee}

    Parameters
    ----------
    {epsilon} {delta}
    n_nonzero_coefs : int, default=None
        Number of features to keep. None keeps all. The intercept is always kept.
    {teacher} {row_norm} {alpha} {public_X} {transfer_distribution} {n_transfer}
    huber_threshold : float or "adaptive", default="adaptive"
        Residual beyond which Huber's loss is linear, in units of y, > 0. "adaptive" releases the targets'
        median, which is subtracted, and their reach, of which the threshold is a part. The squared loss is not
        offered: its gradients have no bound, so its minimiser is not stable (the published teacher uses it).
        The mean of skewed targets, such as counts, is underestimated; `DPAdaSSPRegressor` fits it.
    {fit_intercept} {bounded} {adjacency} {unit} {n_public} {accountant} {random_state} {verbose}

    Attributes
    ----------
    {coef_.regressor} {intercept_.regressor} {support_} {n_iter_} {n_transfer_} {row_norm_} {alpha_}
    {label_noise_}
    huber_threshold_ : float
        The threshold, given or released. The published teacher has none.
    {target_center_} {target_reach_} {shrinkage_}
    {prediction_bounds_} {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPIGHTRegressor : Noisy gradient steps that keep a number of features.
    DPTwoStageRegressor : Chooses features first, then fits a convex model on them.

    Notes
    -----
    {Notes}

    {privacy.targets}

    References
    ----------
    {References}

    Examples
    --------
    >>> from skdp import DPSLKTRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 50, n_informative=3, random_state=0)
    >>> model = DPSLKTRegressor(epsilon=2.0, n_nonzero_coefs=5).fit(X, y)
    >>> len(model.support_), model.privacy_.epsilon
    (5, 2.0)
    """

    loss = "squared"

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        n_nonzero_coefs=None,
        teacher="private-support",
        row_norm="adaptive",
        alpha="auto",
        public_X=None,
        transfer_distribution="basis",
        n_transfer=None,
        huber_threshold="adaptive",
        fit_intercept=True,
        bounded=True,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        accountant=None,
        random_state=None,
        verbose=False,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero_coefs = n_nonzero_coefs
        self.teacher = teacher
        self.row_norm = row_norm
        self.alpha = alpha
        self.public_X = public_X
        self.transfer_distribution = transfer_distribution
        self.n_transfer = n_transfer
        self.huber_threshold = huber_threshold
        self.fit_intercept = fit_intercept
        self.bounded = bounded
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose

    def _check_targets(self) -> None:
        check_number(
            "huber_threshold", self.huber_threshold, Real, low=1e-50, high=1e50, word="adaptive"
        )
