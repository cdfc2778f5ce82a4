"""The estimators of iterative gradient hard thresholding: parameters here, the algorithm in `solver`."""

from skdp.linear_model.glm import GLMClassifier, GLMRegressor
from skdp.linear_model.ight.fit import ExactThresholdingFit, PrivateThresholdingFit

__all__ = ["DPIGHTClassifier", "DPIGHTRegressor", "IGHTClassifier", "IGHTRegressor"]


class DPIGHTClassifier(GLMClassifier, PrivateThresholdingFit):
    """Sparse logistic or softmax regression that is differentially private.

    Noisy clipped gradient steps, each followed by keeping the ``n_nonzero_coefs`` features of largest
    coefficient (DP-IGHT [1]_ [2]_). The guarantee is (epsilon, delta)-differential privacy for one fit, under
    the given ``adjacency`` and ``unit``; `privacy_` says what it rests on.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    n_nonzero_coefs : int, default=None
        Number of features to keep; None keeps all (no thresholding). With several classes the features of largest
        l2 norm over the classes are kept. The intercept is always kept.
    selection : {"gaussian", "peeling"}, default="gaussian"
        ``"gaussian"`` is the paper's: noise on every coordinate, then thresholding. ``"peeling"`` spends
        half of each step on choosing the support by Gumbel noise and adds Gaussian noise to it alone.
    refit : float or "auto", default="auto"
        Share in [0, 1) of the budget that is kept for gradient steps on the surviving features only.
        "auto" is 0.3 for regression that keeps at most a tenth of the features, else 0; in rounds (see
        ``max_iter``) about a quarter. It has no effect without thresholding.
    clip_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of one record's (or group's) gradient. "adaptive" spends 2 % of the budget (of mu^2;
        up to 20 % where records are few)
        on the median row norm and, for regression and groups, on the median gradient norm at the start; the
        clip norm is half the latter. With a number and ``learning_rate="auto"`` they still go to the scale
        of the step; only where both are numbers nothing is asked.
    max_iter : int or "auto", default="auto"
        Number of noisy gradient steps, the refit's included. "auto" is 100; but where the other three parameters
        of this kind are "auto" as well, ``coef_init`` is None, ``selection="gaussian"`` and few of many features
        are kept (at most a tenth, and at most ``2 sqrt(n mu)`` coefficients) the fit is made in two to five rounds
        that find features and take 20 or 40 steps on these alone (user guide). Every step is paid for, so there
        is no stopping rule.
    learning_rate : float or "auto", default="auto"
        A number is used literally: ``theta <- H_s(theta - learning_rate * gradient)``, and the last iterate
        is the result. "auto" takes dual averaging with a step size computed from released gradients (user
        guide), which costs nothing and needs no tuning. With ``clip_norm=inf``, which ``epsilon=inf`` alone
        allows, "auto" takes the steps of the class without privacy.
    alpha : float, default=0.0
        Weight of the l2 penalty ``alpha / 2 * ||coef||^2``, added to the mean loss; the intercept is free.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    classes : sequence of labels, default=None
        The public label set. None infers it from y, warns `PrivacyLeakWarning` and says so in the report.
    coef_init : array-like, default=None
        Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column.
        Costs nothing.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`.
    n_public : int, default=None
        Public number that means divide by; None takes the number of records (or groups), which is public
        except under "add-remove".
    max_weight : float, default=None
        Public upper bound of ``sample_weight`` in `fit`, which needs it; weights are clipped to it.
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
        False charges none, also inside such a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
        the seed can subtract the noise.
    verbose : bool, default=False
        Whether to show a progress bar.
    callback : callable, default=None
        Called as ``callback(iteration, coef)`` with each released iterate.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int64
        Indices of the features that are kept, sorted.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted, also those absent from y.
    n_iter_ : int
        Number of gradient steps, refit included.
    learning_rate_ : float
        The step size given, or the last one that "auto" took.
    clip_norm_ : float
        The clip norm given, or the one that was released.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    Notes
    -----
    The mean of clipped gradients moves by at most ``2 clip_norm / n`` in l2 norm when a record (or group)
    is replaced, by half of that under the other adjacencies. All releases of a fit are Gaussian, so T of
    them with noise multiplier z are exactly mu-GDP with ``mu = sqrt(T) / z``, and shares of the budget are
    shares of mu^2. The proof of Theorem 2.5.2 of [1]_ charges a step half of what its sensitivity 2G/n
    costs, so its claim needs twice its variance; that is used here. Sums are taken in fixed point and the
    noise is rounded to the same grid, which is post-processing of the continuous Gaussian mechanism.

    Time and memory depend on the data and are not protected. `n_nonzero_coefs`, `clip_norm` and the other
    parameters are public: do not choose them by looking at private scores.

    References
    ----------
    .. [1] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation,
       UCLA, 2021, ch. 2, Algorithms 1 and 3, Theorem 2.5.2 (with erratum).
    .. [2] L. Wang and Q. Gu, "Differentially private iterative gradient hard thresholding for sparse
       learning", IJCAI 2019.
    .. [3] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.

    Examples
    --------
    >>> from skdp import DPIGHTClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 50, n_informative=3, random_state=0)
    >>> model = DPIGHTClassifier(epsilon=2.0, n_nonzero_coefs=5, classes=(0, 1)).fit(X, y)
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
        selection="gaussian",
        refit="auto",
        clip_norm="adaptive",
        max_iter="auto",
        learning_rate="auto",
        alpha=0.0,
        fit_intercept=True,
        classes=None,
        coef_init=None,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        max_weight=None,
        accountant=None,
        random_state=None,
        verbose=False,
        callback=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero_coefs = n_nonzero_coefs
        self.selection = selection
        self.refit = refit
        self.clip_norm = clip_norm
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback


class DPIGHTRegressor(GLMRegressor, PrivateThresholdingFit):
    """Sparse linear regression that is differentially private.

    Noisy clipped gradient steps on the squared or Huber loss, each followed by keeping the
    ``n_nonzero_coefs`` features of largest coefficient (DP-IGHT [1]_ [2]_). The guarantee is (epsilon,
    delta)-differential privacy for one fit, under the given ``adjacency`` and ``unit``. Targets need no bound:
    gradients are clipped.

    Parameters
    ----------
    epsilon : float, default=1.0
        Privacy budget, > 0. ``inf`` runs the same algorithm without noise and claims nothing.
    delta : float, default=1e-5
        Probability with which the epsilon may fail, in (0, 1). Choose it far below 1/n.
    n_nonzero_coefs : int, default=None
        Number of features to keep; None keeps all (no thresholding). The intercept is always kept.
    loss : {"squared", "huber"}, default="squared"
        Huber's loss is linear beyond ``huber_threshold``; squared gradients are clipped all the same.
    huber_threshold : float, default=1.0
        Residual at which Huber's loss becomes linear, in units of y, > 0.
    selection : {"gaussian", "peeling"}, default="gaussian"
        ``"gaussian"`` is the paper's: noise on every coordinate, then thresholding. ``"peeling"`` spends
        half of each step on choosing the support by Gumbel noise and adds Gaussian noise to it alone.
    refit : float or "auto", default="auto"
        Share in [0, 1) of the budget that is kept for gradient steps on the surviving features only.
        "auto" is 0.3 for regression that keeps at most a tenth of the features, else 0; in rounds (see
        ``max_iter``) about a quarter. It has no effect without thresholding.
    clip_norm : float or "adaptive", default="adaptive"
        Largest l2 norm of one record's (or group's) gradient. "adaptive" spends 2 % of the budget (of mu^2;
        up to 20 % where records are few)
        on the median row norm and, for regression and groups, on the median gradient norm at the start; the
        clip norm is half the latter. With a number and ``learning_rate="auto"`` they still go to the scale
        of the step; only where both are numbers nothing is asked.
    max_iter : int or "auto", default="auto"
        Number of noisy gradient steps, the refit's included. "auto" is 100; but where the other three parameters
        of this kind are "auto" as well, ``coef_init`` is None, ``selection="gaussian"`` and few of many features
        are kept (at most a tenth, and at most ``2 sqrt(n mu)`` coefficients) the fit is made in two to five rounds
        that find features and take 20 or 40 steps on these alone (user guide). Every step is paid for, so there
        is no stopping rule.
    learning_rate : float or "auto", default="auto"
        A number is used literally: ``theta <- H_s(theta - learning_rate * gradient)``, and the last iterate
        is the result. "auto" takes dual averaging with a step size computed from released gradients (user
        guide), which costs nothing and needs no tuning. With ``clip_norm=inf``, which ``epsilon=inf`` alone
        allows, "auto" takes the steps of the class without privacy.
    alpha : float, default=0.0
        Weight of the l2 penalty ``alpha / 2 * ||coef||^2``, added to the mean loss; the intercept is free.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    coef_init : array-like, default=None
        Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column.
        Costs nothing.
    adjacency : {"replace-one", "zero-out", "add-remove"}, default="replace-one"
        What a neighbouring data set is. "add-remove" needs ``n_public``.
    unit : {"record", "group"}, default="record"
        Whose change the claim protects: one row, or all rows of one of ``groups`` in `fit`.
    n_public : int, default=None
        Public number that means divide by; None takes the number of records (or groups), which is public
        except under "add-remove".
    max_weight : float, default=None
        Public upper bound of ``sample_weight`` in `fit`, which needs it; weights are clipped to it.
    accountant : BudgetAccountant or False, default=None
        Charged with (epsilon, delta) by each fit. None takes that of the innermost ``with accountant:``;
        False charges none, also inside such a block.
    random_state : None, int, RandomState or Generator, default=None
        None draws a fresh key from the operating system. Anything else is for tests only: whoever knows
        the seed can subtract the noise.
    verbose : bool, default=False
        Whether to show a progress bar.
    callback : callable, default=None
        Called as ``callback(iteration, coef)`` with each released iterate.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    support_ : ndarray of int64
        Indices of the features that are kept, sorted.
    n_iter_ : int
        Number of gradient steps, refit included.
    learning_rate_ : float
        The step size given, or the last one that "auto" took.
    clip_norm_ : float
        The clip norm given, or the one that was released.
    privacy_ : PrivacyReport
        What this fit cost.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    Notes
    -----
    The mean of clipped gradients moves by at most ``2 clip_norm / n`` in l2 norm when a record (or group)
    is replaced, by half of that under the other adjacencies. All releases of a fit are Gaussian, so T of
    them with noise multiplier z are exactly mu-GDP with ``mu = sqrt(T) / z``, and shares of the budget are
    shares of mu^2. The proof of Theorem 2.5.2 of [1]_ charges a step half of what its sensitivity 2G/n
    costs, so its claim needs twice its variance; that is used here. Sums are taken in fixed point and the
    noise is rounded to the same grid, which is post-processing of the continuous Gaussian mechanism.

    Time and memory depend on the data and are not protected. `n_nonzero_coefs`, `clip_norm` and the other
    parameters are public: do not choose them by looking at private scores.

    References
    ----------
    .. [1] L. Wang, "Towards efficient and effective privacy-preserving machine learning", dissertation,
       UCLA, 2021, ch. 2, Algorithms 1 and 3, Theorem 2.5.2 (with erratum).
    .. [2] L. Wang and Q. Gu, "Differentially private iterative gradient hard thresholding for sparse
       learning", IJCAI 2019.
    .. [3] B. Balle and Y.-X. Wang, "Improving the Gaussian mechanism for differential privacy", ICML 2018.

    Examples
    --------
    >>> from skdp import DPIGHTRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 50, n_informative=3, random_state=0)
    >>> model = DPIGHTRegressor(epsilon=2.0, n_nonzero_coefs=5).fit(X, y)
    >>> model.coef_.shape, len(model.support_)
    ((50,), 5)
    >>> model.privacy_.guarantee
    'proven'
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        n_nonzero_coefs=None,
        loss="squared",
        huber_threshold=1.0,
        selection="gaussian",
        refit="auto",
        clip_norm="adaptive",
        max_iter="auto",
        learning_rate="auto",
        alpha=0.0,
        fit_intercept=True,
        coef_init=None,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        max_weight=None,
        accountant=None,
        random_state=None,
        verbose=False,
        callback=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.n_nonzero_coefs = n_nonzero_coefs
        self.loss = loss
        self.huber_threshold = huber_threshold
        self.selection = selection
        self.refit = refit
        self.clip_norm = clip_norm
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback


class IGHTClassifier(GLMClassifier, ExactThresholdingFit):
    """Sparse logistic or softmax regression by iterative gradient hard thresholding, not private.

    Gradient steps, each followed by keeping the ``n_nonzero_coefs`` features of largest coefficient [1]_ [2]_.

    Parameters
    ----------
    n_nonzero_coefs : int, default=None
        Number of features to keep; None keeps all (no thresholding). With several classes the features of largest
        l2 norm over the classes are kept. The intercept is always kept.
    max_iter : int or "auto", default="auto"
        Largest number of gradient steps; "auto" is 1000.
    learning_rate : float or "auto", default="auto"
        A number is used literally: ``theta <- H_s(theta - learning_rate * gradient)``, and the last iterate
        is the result. "auto" is one over the largest curvature of the mean loss and the penalty, estimated by
        30 steps of power iteration and raised by 5 %. The steps have Nesterov's momentum, which starts anew
        where it points uphill [3]_. The last iterate is the result.
    alpha : float, default=0.0
        Weight of the l2 penalty ``alpha / 2 * ||coef||^2``, added to the mean loss; the intercept is free.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    classes : sequence of labels, default=None
        The label set; None takes it from y.
    coef_init : array-like, default=None
        Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column.
        Costs nothing.
    tol : float, default=1e-4
        Stop when a step moves the parameters by at most ``tol`` times their norm; 0 takes all ``max_iter`` steps.
    verbose : bool, default=False
        Whether to show a progress bar.
    callback : callable, default=None
        Called as ``callback(iteration, coef)`` with each released iterate.

    Attributes
    ----------
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
    intercept_ : ndarray of shape (1,) or (n_classes,)
    support_ : ndarray of int64
        Indices of the features that are kept, sorted.
    classes_ : ndarray of shape (n_classes,)
        The declared labels, sorted, also those absent from y.
    n_iter_ : int
        Number of gradient steps.
    learning_rate_ : float
        The step size given, or that of "auto", the same in every step.
    clip_norm_ : float
        inf: nothing is clipped.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    Notes
    -----
    This is the algorithm of `DPIGHTClassifier` through a session that releases exact values: the two are equal at
    ``epsilon=inf, clip_norm=inf, refit=0``, ``tol=0`` here and the same other parameters, ``max_iter`` a number.

    References
    ----------
    .. [1] P. Jain, A. Tewari and P. Kar, "On iterative hard thresholding methods for high-dimensional
       M-estimation", NeurIPS 2014.
    .. [2] X. Yuan, P. Li and T. Zhang, "Gradient hard thresholding pursuit", ICML 2014.
    .. [3] B. O'Donoghue and E. Candes, "Adaptive restart for accelerated gradient schemes", Foundations of
       Computational Mathematics 15 (2015).

    Examples
    --------
    >>> from skdp import IGHTClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 50, n_informative=3, random_state=0)
    >>> len(IGHTClassifier(n_nonzero_coefs=3).fit(X, y).support_)
    3
    """

    def __init__(
        self,
        *,
        n_nonzero_coefs=None,
        max_iter="auto",
        learning_rate="auto",
        alpha=0.0,
        fit_intercept=True,
        classes=None,
        coef_init=None,
        tol=1e-4,
        verbose=False,
        callback=None,
    ):
        self.n_nonzero_coefs = n_nonzero_coefs
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.coef_init = coef_init
        self.tol = tol
        self.verbose = verbose
        self.callback = callback


class IGHTRegressor(GLMRegressor, ExactThresholdingFit):
    """Sparse linear regression by iterative gradient hard thresholding, not private.

    Gradient steps on the squared or Huber loss, each followed by keeping the ``n_nonzero_coefs`` features
    of largest coefficient [1]_ [2]_.

    Parameters
    ----------
    n_nonzero_coefs : int, default=None
        Number of features to keep; None keeps all (no thresholding). The intercept is always kept.
    loss : {"squared", "huber"}, default="squared"
        Huber's loss is linear beyond ``huber_threshold``; squared gradients are clipped all the same.
    huber_threshold : float, default=1.0
        Residual at which Huber's loss becomes linear, in units of y, > 0.
    max_iter : int or "auto", default="auto"
        Largest number of gradient steps; "auto" is 1000.
    learning_rate : float or "auto", default="auto"
        A number is used literally: ``theta <- H_s(theta - learning_rate * gradient)``, and the last iterate
        is the result. "auto" is one over the largest curvature of the mean loss and the penalty, estimated by
        30 steps of power iteration and raised by 5 %. The steps have Nesterov's momentum, which starts anew
        where it points uphill [3]_. The last iterate is the result.
    alpha : float, default=0.0
        Weight of the l2 penalty ``alpha / 2 * ||coef||^2``, added to the mean loss; the intercept is free.
    fit_intercept : bool, default=True
        Whether to fit an intercept, as the coefficient of a constant feature.
    coef_init : array-like, default=None
        Where to start: a released model's ``coef_``, or ``coef_`` with the intercept as a last column.
        Costs nothing.
    tol : float, default=1e-4
        Stop when a step moves the parameters by at most ``tol`` times their norm; 0 takes all ``max_iter`` steps.
    verbose : bool, default=False
        Whether to show a progress bar.
    callback : callable, default=None
        Called as ``callback(iteration, coef)`` with each released iterate.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
    intercept_ : float
    support_ : ndarray of int64
        Indices of the features that are kept, sorted.
    n_iter_ : int
        Number of gradient steps.
    learning_rate_ : float
        The step size given, or that of "auto", the same in every step.
    clip_norm_ : float
        inf: nothing is clipped.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only if X had string column names.

    Notes
    -----
    This is the algorithm of `DPIGHTRegressor` through a session that releases exact values: the two are equal at
    ``epsilon=inf, clip_norm=inf, refit=0``, ``tol=0`` here and the same other parameters, ``max_iter`` a number.

    References
    ----------
    .. [1] P. Jain, A. Tewari and P. Kar, "On iterative hard thresholding methods for high-dimensional
       M-estimation", NeurIPS 2014.
    .. [2] X. Yuan, P. Li and T. Zhang, "Gradient hard thresholding pursuit", ICML 2014.
    .. [3] B. O'Donoghue and E. Candes, "Adaptive restart for accelerated gradient schemes", Foundations of
       Computational Mathematics 15 (2015).

    Examples
    --------
    >>> from skdp import IGHTRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 50, n_informative=3, random_state=0)
    >>> bool(IGHTRegressor(n_nonzero_coefs=3).fit(X, y).score(X, y) > 0.8)
    True
    """

    def __init__(
        self,
        *,
        n_nonzero_coefs=None,
        loss="squared",
        huber_threshold=1.0,
        max_iter="auto",
        learning_rate="auto",
        alpha=0.0,
        fit_intercept=True,
        coef_init=None,
        tol=1e-4,
        verbose=False,
        callback=None,
    ):
        self.n_nonzero_coefs = n_nonzero_coefs
        self.loss = loss
        self.huber_threshold = huber_threshold
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.alpha = alpha
        self.fit_intercept = fit_intercept
        self.coef_init = coef_init
        self.tol = tol
        self.verbose = verbose
        self.callback = callback
