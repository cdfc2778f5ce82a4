"""The estimators of sparse-gradient ERM: parameters here, the algorithm in `solver`."""

from skdp._docs import document
from skdp.fitting.any_loss import GLMAnyLoss
from skdp.fitting.bounded import BoundedPredictions
from skdp.fitting.glm import GLMClassifier, GLMRegressor
from skdp.fitting.linear import LinearFit
from skdp.linear_model.sparse_erm.fit import SparseGradientFit, SparseRegressionFit

__all__ = ["DPSparseERM", "DPSparseERMClassifier", "DPSparseERMRegressor"]


@document()
class DPSparseERM(BoundedPredictions, SparseRegressionFit, GLMAnyLoss, LinearFit):
    """Generalised linear model of any loss by sparse private gradients (numeric sparse vector).

    Algorithm 2 of [ZhangH2021]_ with its privacy corrected. A step is
    ``theta <- theta - learning_rate * NumericSparse(mean clipped gradient)``. `predict` gives the mean of the
    model: the linear predictor for the squared and Huber's loss, the probability of 1 for the logistic loss,
    the probabilities of all classes for the multinomial loss. `DPSparseERMRegressor` and
    `DPSparseERMClassifier` are the same fit with the usual targets and predictions.

    {guarantee}

    Parameters
    ----------
    {epsilon} {delta.pure}
        ``delta=0`` needs numbers for ``clip_norm`` and ``learning_rate``.
    loss : {"squared", "huber", "logistic", "multinomial"} or object of `skdp.losses`, default="squared"
        The loss of a record as a function of its linear predictor. Targets are numbers: 0 or 1 for the
        logistic loss, 0..K-1 for the multinomial. "huber" is ``HuberLoss(1.0)``. "multinomial" infers K from
        y, warns `PrivacyLeakWarning` and says so in the report; ``MultinomialLoss(K)`` declares it.
        A loss of your own inherits from `skdp.losses.Loss`.
    n_hits : int or "auto", default="auto"
        Largest number of gradient entries that a step releases (c1 in the paper). A step pays for all of them,
        found or not. "auto" is 1, and all entries without privacy.
    {max_iter}
        "auto" is the number for which the threshold stays below about a tenth of the clip norm, at least 20
        and at most 100 (user guide).
    {learning_rate}
        With a number a step is ``theta <- theta - learning_rate * released``, and the last iterate is the result.
        "auto" averages the iterates, and drops values below half of the threshold as false alarms (user guide).
    {clip_norm.sup}
        It is the c2 of the paper, and "adaptive" is the median of the gradients' sup norms.
        ``learning_rate="auto"`` needs the same medians.
    threshold : float or "auto", default="auto"
        Level above which a noisy entry of the mean gradient is released (alpha in the paper). "auto" is
        ``0.9 log(n_entries / n_hits)`` scales of the noise, which is public.
    split : {"optimal", "published"}, default="optimal"
        How a step's budget is divided between finding an entry and releasing its value. "published" is the
        paper's .95 and .05.
    refit : float or "auto", default="auto"
        Share in [0, 1) of the budget that is kept for 40 noisy gradient steps after the ``max_iter`` steps.
        They use all rows, and only the features that were found. "auto" is 0.2, but 0 with a number for
        ``learning_rate``, with ``delta=0`` and without privacy.
    schedule : {"cyclic", "published"}, default="cyclic"
        Used with ``batch_groups`` in `fit` only. "cyclic" visits the groups in a new random order each epoch.
        "published" draws a group with replacement for each step, beforehand, and charges the one drawn most often.
    batch_size : int, default=None
        If given, each step uses a fresh, secret, uniformly drawn sample of this many records (with
        ``unit="group"``: of groups). Steps are faster and have more noise. It needs "replace-one" adjacency.
    {fit_intercept} {coef_init} {bounded} {adjacency} {unit.mean} {n_public} {max_weight} {accountant}
    {random_state} {verbose}
    {callback}
        Batches are not shown.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_classes, n_features)
        {coef_.classifier}
        With the squared and Huber's loss `predict` is cut to ``prediction_bounds_``, so for rows far outside it
        differs from ``X @ coef_ + intercept_``.
    intercept_ : float or ndarray of shape (n_classes,)
        {intercept_.classifier}
    {support_}
    n_iter_ : int
        Number of steps, without those of a refit.
    n_hits_ : int
        The number given, or the one that "auto" became.
    n_released_ : int
        Number of gradient entries that all steps released.
    threshold_ : float
        The threshold of the last step.
    {target_center_} {target_reach_} {shrinkage_}
    {learning_rate_} {clip_norm_} {prediction_bounds_} {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPSparseERMClassifier : The same fit for labels.
    DPSparseERMRegressor : The same fit for the squared and Huber's loss.

    Notes
    -----
    **Privacy.** Each row's gradient is clipped in the sup norm. Replacing one record (or group) moves an entry of
    their mean by at most ``2 clip_norm / n``, whatever the number of features. Under zero-out and add-remove it is
    half of that. A step is ``n_hits`` rounds of the sparse vector technique of [Lyu2017]_, and each round is a
    pure release. The rounds compose in Gaussian DP, and their epsilons add up with ``delta=0``.

    Erratum of [ZhangH2021]_, both versions: Theorem 1 takes the drawing of one of m
    fixed groups of rows for a sample that amplifies the privacy of a record. It does not amplify it. For
    example, take groups that can be told apart, eps' = 1 a step, T = 1000, m = 100 and delta = 1e-5: the claim
    is 2.16, and the truth is 18.96. Here a record pays the full price of each step that looks at it. Smaller
    errata: version 1 releases one value more than it pays for; its conditions ``m >= 10 sqrt(T)`` and
    ``T = min(...)`` are reversed; the loop "0 to T" makes T + 1 steps.

    {privacy.unprotected}

    References
    ----------
    .. [ZhangH2021] Algorithms 1 and 2, Theorems 1 and 2.
    .. [Lyu2017]

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSparseERM
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 300))
    >>> y = (X[:, 3] > 0).astype(float)
    >>> model = DPSparseERM(loss="logistic", epsilon=4.0, random_state=0).fit(X, y)
    >>> bool(model.predict(X)[X[:, 3] > 1].mean() > 0.6)
    True
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        loss="squared",
        n_hits="auto",
        max_iter="auto",
        learning_rate="auto",
        clip_norm="adaptive",
        threshold="auto",
        split="optimal",
        refit="auto",
        schedule="cyclic",
        batch_size=None,
        fit_intercept=True,
        coef_init=None,
        bounded=True,
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
        self.loss = loss
        self.n_hits = n_hits
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.threshold = threshold
        self.split = split
        self.refit = refit
        self.schedule = schedule
        self.batch_size = batch_size
        self.fit_intercept = fit_intercept
        self.coef_init = coef_init
        self.bounded = bounded
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback


@document(DPSparseERM)
class DPSparseERMClassifier(SparseGradientFit, GLMClassifier, LinearFit):
    """Logistic or softmax regression by sparse private gradients (numeric sparse vector).

    A step finds a few large entries of the mean gradient and releases only these, as in
    [ZhangH2021]_. So the noise grows with the logarithm of the number of features,
    and not with its root. The model has no more coefficients than were released.

    {guarantee}

    {recalibrated}

    Parameters
    ----------
    {epsilon} {delta} {n_hits} {max_iter} {learning_rate} {clip_norm} {threshold} {split} {refit} {schedule}
    {batch_size}
    {fit_intercept} {classes} {class_weight} {coef_init}
    {adjacency} {unit} {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_.classifier} {intercept_.classifier} {classes_} {support_} {n_iter_} {n_hits_} {n_released_}
    {threshold_}
    {learning_rate_} {clip_norm_} {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPSparseERM : The same fit for any loss.
    DPFrankWolfeClassifier : Chooses one coefficient in each step.

    Notes
    -----
    {Notes}

    References
    ----------
    {References}

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPSparseERMClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(5000, 500))
    >>> y = X[:, 3] - X[:, 7] > 0
    >>> model = DPSparseERMClassifier(epsilon=4.0, classes=(False, True), random_state=0).fit(X, y)
    >>> model.coef_[0, 3] > 0, model.coef_[0, 7] < 0
    (np.True_, np.True_)
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        n_hits="auto",
        max_iter="auto",
        learning_rate="auto",
        clip_norm="adaptive",
        threshold="auto",
        split="optimal",
        refit="auto",
        schedule="cyclic",
        batch_size=None,
        fit_intercept=True,
        classes=None,
        class_weight=None,
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
        self.n_hits = n_hits
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.threshold = threshold
        self.split = split
        self.refit = refit
        self.schedule = schedule
        self.batch_size = batch_size
        self.fit_intercept = fit_intercept
        self.classes = classes
        self.class_weight = class_weight
        self.coef_init = coef_init
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback


@document(DPSparseERM)
class DPSparseERMRegressor(BoundedPredictions, SparseRegressionFit, GLMRegressor, LinearFit):
    """Linear regression by sparse private gradients (numeric sparse vector).

    A step finds a few large entries of the mean gradient and releases only these, as in
    [ZhangH2021]_. So the noise grows with the logarithm of the number of features,
    and not with its root. The model has no more coefficients than were released.

    {guarantee}

    Parameters
    ----------
    {epsilon} {delta}
    loss : {"squared", "huber"}, default="squared"
        Huber's loss is linear beyond ``huber_threshold``. Gradients of both losses are clipped.
    {huber_threshold} {n_hits} {max_iter} {learning_rate} {clip_norm} {threshold} {split} {refit} {schedule}
    {batch_size}
    {fit_intercept} {coef_init}
    {bounded} {adjacency} {unit} {n_public} {max_weight} {accountant} {random_state} {verbose} {callback}

    Attributes
    ----------
    {coef_.regressor} {intercept_.regressor} {support_} {n_iter_} {n_hits_} {n_released_} {threshold_}
    {target_center_} {target_reach_} {shrinkage_}
    {learning_rate_} {clip_norm_} {prediction_bounds_} {privacy_} {n_features_in_} {feature_names_in_}

    See Also
    --------
    DPSparseERM : The same fit for any loss.
    DPFrankWolfeRegressor : Chooses one coefficient in each step.

    Notes
    -----
    {Notes}

    {privacy.targets}

    References
    ----------
    {References}

    Examples
    --------
    >>> from skdp import DPSparseERMRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(5000, 500, n_informative=3, random_state=0)
    >>> model = DPSparseERMRegressor(epsilon=4.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.5), len(model.support_) <= model.n_released_
    (True, True)
    """

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        loss="squared",
        huber_threshold=1.0,
        n_hits="auto",
        max_iter="auto",
        learning_rate="auto",
        clip_norm="adaptive",
        threshold="auto",
        split="optimal",
        refit="auto",
        schedule="cyclic",
        batch_size=None,
        fit_intercept=True,
        coef_init=None,
        bounded=True,
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
        self.loss = loss
        self.huber_threshold = huber_threshold
        self.n_hits = n_hits
        self.max_iter = max_iter
        self.learning_rate = learning_rate
        self.clip_norm = clip_norm
        self.threshold = threshold
        self.split = split
        self.refit = refit
        self.schedule = schedule
        self.batch_size = batch_size
        self.fit_intercept = fit_intercept
        self.coef_init = coef_init
        self.bounded = bounded
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.max_weight = max_weight
        self.accountant = accountant
        self.random_state = random_state
        self.verbose = verbose
        self.callback = callback
