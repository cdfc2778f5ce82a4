"""The estimators of sparse learning by knowledge transfer: parameters here, the algorithm in `solver`."""

import math
from numbers import Integral, Real
from typing import Any

import numpy as np
import scipy.sparse as sp

from skdp._warn import warn_user
from skdp.base import check_choice, check_number
from skdp.exceptions import UnprovenPrivacyWarning
from skdp.linear_model.frame import PrivateFit, Solution, count_assumption
from skdp.linear_model.glm import GLMClassifier, GLMRegressor, Problem
from skdp.linear_model.parts.checks import check_features
from skdp.linear_model.parts.task import Task, given
from skdp.linear_model.slkt.solver import (
    Settings,
    Transfer,
    private_transfer,
    published_transfer,
)
from skdp.privacy.session import PrivacySession
from skdp.privacy.statistics.linear_map import canonical_csr

__all__ = ["DPSLKTClassifier", "DPSLKTRegressor"]

TEACHERS = ("private-support", "ridge", "published")
DISTRIBUTIONS = ("basis", "uniform", "gaussian")
ERRATUM = (
    "The proof of Theorem 3.3.3 of Wang (2021) uses a first-order condition on the l0 ball, which is not convex. "
    "The published teacher is not stable and no epsilon holds for it; the other teachers are convex."
)


class PrivateTransferFit(PrivateFit):
    """The fit of both estimators."""

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
        if not np.isfinite(X.data if sp.issparse(X) else X).all():
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

    def _solve(self, session: PrivacySession, problem: Problem) -> Solution:
        records = problem.records
        check_features(self.n_nonzero_coefs, records.n_features)
        public = self._check_public_X()
        if public is not None and public.shape[1] != records.n_features:
            raise ValueError(f"public_X has {public.shape[1]} features, X has {records.n_features}")
        transfer = Transfer(public, self.transfer_distribution, self.n_transfer)
        settings = Settings(
            self.n_nonzero_coefs,
            given(self.row_norm),
            given(self.alpha),
            given(getattr(self, "huber_threshold", None)),
            with_support=self.teacher == "private-support",
        )
        task = Task(session, records, problem.loss, np.empty(0))
        if self.teacher == "published":
            return published_transfer(
                task, transfer, settings, epsilon=self.epsilon, delta=self.delta
            )
        return private_transfer(task, transfer, settings)

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        found = count_assumption(problem)
        if self.public_X is not None:
            found += ("public_X is public and was not made from these records",)
        if given(self.row_norm) is not None:
            found += ("row_norm was not chosen by looking at these records",)
        return found


class DPSLKTClassifier(GLMClassifier, PrivateTransferFit):
    """Sparse logistic or softmax regression by private knowledge transfer.

    A convex teacher is fitted to the private data; its linear scores of public inputs are released with Gaussian
    noise, and a sparse student learns them (DPSL-KT [1]_, with teachers that have a valid proof). The guarantee
    is (epsilon, delta)-differential privacy for one fit, under the given ``adjacency`` and ``unit``; `privacy_`
    says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    n_nonzero_coefs : int, default=None
        Number of features to keep; None keeps all. With several classes the features of
        largest l2 norm over the classes are kept. The intercept is always kept.
    teacher : {"private-support", "ridge", "published"}, default="private-support"
        ``"private-support"`` spends most of the budget on choosing the features, and a first fit on them, as
        DP-IGHT does; the teacher then is convex on these features and penalised about that fit. It was the
        better one in every measurement (user guide), hence the default. ``"ridge"`` is a convex teacher on
        all features, penalised about 0. ``"published"`` is the paper's and **not private by any proof**: it
        warns `UnprovenPrivacyWarning`, reports epsilon = inf and is refused where an accountant would pay.
    row_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of a row (restricted to the chosen features); longer rows are scaled down. "adaptive"
        releases a number near the median norm. The published teacher clips nothing.
    alpha : float or "auto", default="auto"
        Weight of the teacher's penalty, > 0: larger is more stable and less noisy, and leaves the teacher
        nearer to where it started. "auto" balances the two by public numbers (user guide).
    public_X : array-like or CSR matrix of shape (m, n_features), default=None
        Public inputs, for example records that need no protection, at which the teacher is asked.
    transfer_distribution : {"basis", "uniform", "gaussian"} or frozen distribution, default="basis"
        What inputs to ask at where there are no public ones. "basis" asks for each coefficient once, which no
        other inputs beat, since the noise of all labels grows with the inputs' spectral norm. Entries may
        also be drawn: uniform on (-1, 1), standard normal, or by ``rvs`` of a frozen ``scipy.stats`` distribution.
    n_transfer : int, default=None
        Number of drawn inputs; None takes ten a coefficient, at least 1000.
    fit_intercept : bool, default=True
        Whether to fit an intercept. The teacher penalises it like a coefficient: else it would not be stable.
    classes : sequence of labels, default=None
        The public label set. None infers it from y, warns `PrivacyLeakWarning` and says so in the report.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`. In the teacher a
        group's rows are weighted by one over their number.
    n_public : int, default=None
        Public number that means divide by; None takes the number of records (or groups), which is public
        except under "add-remove".
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
        False charges none, also inside such a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
        the seed can subtract the noise.
    verbose : bool, default=False
        Has no effect: a few releases show no progress. It is there as in the other private estimators.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int64
        Indices of the features that are kept, sorted.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted, also those absent from y.
    n_iter_ : int
        Number of released vectors of coefficients or labels.
    alpha_ : float
        The teacher's penalty.
    row_norm_ : float
        The bound on the rows, given or released; not of the published teacher.
    n_transfer_ : int
        Number of labels.
    label_noise_ : float
        Standard deviation of the noise of a label.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    Notes
    -----
    With rows x~ = (x, v) of norm at most R~, v the intercept's feature, and a loss whose derivative is at most L
    (1 logistic, sqrt(2) softmax), the minimisers of two neighbours differ in l2 norm by at most
    ``2 L R~ / (n alpha)`` when a record (or group) is replaced, by half of that under the other adjacencies; the
    gap of the solver, which is the same on all data, is added. Labels are the teacher's *linear predictors* of
    public inputs X~, so they differ by at most ``||X~||_2`` times that, a norm that is certified from above. They
    are released once with Gaussian noise, and the sparse student sees nothing else.

    The published proof (Theorem 3.3.3 of [1]_) charges for a teacher under a sparsity constraint what holds for
    convex ones: replacing one of 1001 records can move it by 83 times the bound.

    References
    ----------
    .. [1] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation,
       UCLA, 2021, ch. 3, Algorithm 2, Theorem 3.3.3 (with erratum).
    .. [2] K. Chaudhuri, C. Monteleoni and A. Sarwate, "Differentially private empirical risk minimization",
       Journal of Machine Learning Research 12, 2011.

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


class DPSLKTRegressor(GLMRegressor, PrivateTransferFit):
    """Sparse linear regression by private knowledge transfer.

    A convex teacher with Huber's loss is fitted to the private data; its predictions of public inputs are released
    with Gaussian noise, and a sparse student learns them (DPSL-KT [1]_, with teachers that have a valid proof).
    The guarantee is (epsilon, delta)-differential privacy for one fit, under the given ``adjacency`` and
    ``unit``; `privacy_` says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    n_nonzero_coefs : int, default=None
        Number of features to keep; None keeps all. The intercept is always kept.
    teacher : {"private-support", "ridge", "published"}, default="private-support"
        ``"private-support"`` spends most of the budget on choosing the features, and a first fit on them, as
        DP-IGHT does; the teacher then is convex on these features and penalised about that fit. It was the
        better one in every measurement (user guide), hence the default. ``"ridge"`` is a convex teacher on
        all features, penalised about 0. ``"published"`` is the paper's and **not private by any proof**: it
        warns `UnprovenPrivacyWarning`, reports epsilon = inf and is refused where an accountant would pay.
    row_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of a row (restricted to the chosen features); longer rows are scaled down. "adaptive"
        releases a number near the median norm. The published teacher clips nothing.
    alpha : float or "auto", default="auto"
        Weight of the teacher's penalty, > 0: larger is more stable and less noisy, and leaves the teacher
        nearer to where it started. "auto" balances the two by public numbers (user guide).
    public_X : array-like or CSR matrix of shape (m, n_features), default=None
        Public inputs, for example records that need no protection, at which the teacher is asked.
    transfer_distribution : {"basis", "uniform", "gaussian"} or frozen distribution, default="basis"
        What inputs to ask at where there are no public ones. "basis" asks for each coefficient once, which no
        other inputs beat, since the noise of all labels grows with the inputs' spectral norm. Entries may
        also be drawn: uniform on (-1, 1), standard normal, or by ``rvs`` of a frozen ``scipy.stats`` distribution.
    n_transfer : int, default=None
        Number of drawn inputs; None takes ten a coefficient, at least 1000.
    huber_threshold : float or "adaptive", default="adaptive"
        Residual at which Huber's loss becomes linear, in units of y, > 0. "adaptive" releases the targets' median,
        which is subtracted, and their reach, of which the threshold is a part. (Squared loss has no bounded
        gradients, hence no stable minimiser; the published teacher uses it.) The mean of skewed targets, such as
        counts, is underestimated (`DPAdaSSPRegressor` fits it).
    fit_intercept : bool, default=True
        Whether to fit an intercept. The teacher penalises it like a coefficient: else it would not be stable.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`. In the teacher a
        group's rows are weighted by one over their number.
    n_public : int, default=None
        Public number that means divide by; None takes the number of records (or groups), which is public
        except under "add-remove".
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
        False charges none, also inside such a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
        the seed can subtract the noise.
    verbose : bool, default=False
        Has no effect: a few releases show no progress. It is there as in the other private estimators.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    support_ : ndarray of int64
        Indices of the features that are kept, sorted.
    huber_threshold_ : float
        The threshold, given or released; not of the published teacher.
    n_iter_ : int
        Number of released vectors of coefficients or labels.
    alpha_ : float
        The teacher's penalty.
    row_norm_ : float
        The bound on the rows, given or released; not of the published teacher.
    n_transfer_ : int
        Number of labels.
    label_noise_ : float
        Standard deviation of the noise of a label.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    Notes
    -----
    With rows x~ = (x, v) of norm at most R~, v the intercept's feature, and a loss whose derivative is at most L
    (the Huber threshold), the minimisers of two neighbours differ in l2 norm by at most
    ``2 L R~ / (n alpha)`` when a record (or group) is replaced, by half of that under the other adjacencies; the
    gap of the solver, which is the same on all data, is added. Labels are the teacher's *linear predictors* of
    public inputs X~, so they differ by at most ``||X~||_2`` times that, a norm that is certified from above. They
    are released once with Gaussian noise, and the sparse student sees nothing else.

    The published proof (Theorem 3.3.3 of [1]_) charges for a teacher under a sparsity constraint what holds for
    convex ones: replacing one of 1001 records can move it by 83 times the bound.

    References
    ----------
    .. [1] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation,
       UCLA, 2021, ch. 3, Algorithm 2, Theorem 3.3.3 (with erratum).
    .. [2] K. Chaudhuri, C. Monteleoni and A. Sarwate, "Differentially private empirical risk minimization",
       Journal of Machine Learning Research 12, 2011.

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
