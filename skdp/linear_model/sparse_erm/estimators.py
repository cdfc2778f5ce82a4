"""The estimators of sparse-gradient ERM; the fit is in `fit`, the algorithm in `solver`."""

from typing import Any

import numpy as np
from scipy.special import expit

from skdp._compat import warn_user
from skdp._docs import document
from skdp.base.blocks import by_block
from skdp.base.cells import check_collected
from skdp.base.declare import fitted, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import described
from skdp.exceptions import PrivacyLeakWarning
from skdp.fitting import parameters
from skdp.fitting.parameters import ClassLoss, NumberLoss
from skdp.fitting.predictions import cut, like, softmax
from skdp.fitting.targets import LabelModel, NumberModel, Problem
from skdp.kernels import on_host
from skdp.linear_model.sparse_erm.fit import SparseGradientFit
from skdp.losses import NAMED, LogisticLoss, Loss, MultinomialLoss, check_loss, is_shipped

_NAMED = {**{name: make(1.0) for name, make in NAMED.items()}, "logistic": LogisticLoss()}


@document()
class DPSparseERM(SparseGradientFit, NumberModel, PrivateFit[Problem]):
    """Generalised linear model of any loss by sparse private gradients (numeric sparse vector).

    Algorithm 2 of [ZhangH2021]_ with its privacy corrected. A step is
    ``theta <- theta - learning_rate * NumericSparse(mean clipped gradient)``. `predict` gives the mean of the
    model: the linear predictor for the squared and Huber's loss, the probability of 1 for the logistic loss,
    the probabilities of all classes for the multinomial loss. `DPSparseERMRegressor` and
    `DPSparseERMClassifier` are the same fit with the usual targets and predictions.

    {guarantee}

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

    loss: Loss | str = parameter(
        described('{"squared", "huber", "logistic", "multinomial"} or object of `skdp.losses`'),
        """The loss of a record as a function of its linear predictor. Targets are numbers: 0 or 1 for the
        logistic loss, 0..K-1 for the multinomial. "huber" is ``HuberLoss(1.0)``. "multinomial" infers K
        from y, warns `PrivacyLeakWarning` and says so in the report; ``MultinomialLoss(K)`` declares it. A
        loss of your own inherits from `skdp.losses.Loss`. No unit of y is released: scale y by public numbers
        to about 1 where its unit is tiny or huge.""",
        default="squared",
    )
    coef_: Any = fitted(
        "ndarray of shape (n_features,) or (n_classes, n_features)",
        """Coefficients of the features. With the squared and Huber's loss `predict` is cut to
        ``prediction_bounds_``, so for rows far outside it differs from ``X @ coef_ + intercept_``.""",
    )
    intercept_: Any = fitted("float or ndarray of shape (n_classes,)", "Intercept, 0 without ``fit_intercept``.")

    @document(LabelModel.predict)
    @by_block
    def predict(self, X: object) -> np.ndarray:
        """Mean of the target given X.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The linear predictor (squared, Huber), the probability of 1 (logistic), or the probabilities of
            all classes (multinomial).
        """
        z = self._scores(X)
        if z.ndim == 2:
            return like(X, softmax(z))
        return cut(self, like(X, expit(z) if self._loss_name() == "logistic" else z))

    @document(LabelModel.score)
    def score(self, X: object, y: object = None, sample_weight: object = None) -> float:
        """Share of the squared error that the predicted mean explains; on private data it is not private.

        R^2 of `predict`; with classes, of the classes' indicators, weighted by their variances.

        Returns
        -------
        float

        Notes
        -----
        **Not private.** Predictions are compared with the given labels without noise: on private rows the score
        is a release that no epsilon covers, and so are ``cross_val_score``, ``permutation_importance`` and
        ``partial_dependence``. Score on public rows, or release the share of right predictions with noise by
        `skdp.statistics.mean`.
        """
        from sklearn.metrics import r2_score

        check_collected(X=X, y=y)
        mean, y, sample_weight = map(on_host, (self.predict(X), y, sample_weight))
        if mean.ndim == 1:
            return float(r2_score(y, mean, sample_weight=sample_weight))
        indicators = np.eye(mean.shape[1])[np.asarray(y).astype(np.intp)]
        found = r2_score(indicators, mean, sample_weight=sample_weight, multioutput="variance_weighted")
        return float(found)

    def to_sklearn(self) -> Any:
        """Return the model as a fitted ``LinearRegression`` of scikit-learn; see `DPSparseERMRegressor`.

        Returns
        -------
        LinearRegression or TransformedTargetRegressor

        Raises
        ------
        TypeError
            With a loss of your own, or a classification loss, whose `predict` returns probabilities.
        """
        if self._loss_name() in ("squared", "huber"):
            return super().to_sklearn()
        if self._loss_name():
            raise TypeError(
                f"with loss={self._loss_name()!r} predict returns probabilities, as no estimator of scikit-learn "
                "does; fit DPSparseERMClassifier to export a LogisticRegression"
            )
        raise TypeError(
            "scikit-learn has no estimator for a loss of your own: keep coef_ and intercept_, whose linear "
            "predictor is X @ coef_ + intercept_"
        )

    def _loss_name(self) -> str:
        """Name of a loss of `skdp.losses`; "" for a loss of the user's own, whatever it calls itself."""
        if isinstance(self.loss, str):
            return self.loss
        return str(self.loss.name) if is_shipped(self.loss) else ""

    def _check_targets(self) -> None:
        names = [*_NAMED, "multinomial"]
        if isinstance(self.loss, str):
            if self.loss not in names:
                raise ValueError(f"loss must be one of {names}, got {self.loss!r}")
        else:
            check_loss(self.loss, tuple(names))

    def _loss_of(self, y: np.ndarray) -> tuple[Loss, tuple[str, ...]]:
        """Return the loss object, and the leaks of its choice; check each target by itself."""
        if self._loss_name() != "multinomial":
            loss: Any = _NAMED[self.loss] if isinstance(self.loss, str) else self.loss
            if self._loss_name() == "logistic" and not np.all((y == 0) | (y == 1)):
                raise ValueError("with the logistic loss every y must be 0 or 1")
            return loss, ()
        leaks: tuple[str, ...] = ()
        loss = self.loss
        indices = bool(np.all((y == np.floor(y)) & (y >= 0)))
        if indices and isinstance(loss, str):
            loss = MultinomialLoss(max(2, int(y.max()) + 1))
            leaks = ("the number of classes was inferred from y and is not covered by epsilon",)
            warn_user(
                "the number of classes was inferred from y, which no epsilon covers; declare it with "
                "loss=MultinomialLoss(n_classes)",
                PrivacyLeakWarning,
            )
        if not indices or not np.all(y < loss.n_classes):
            raise ValueError("with the multinomial loss every y must be a class index 0..K-1")
        return loss, leaks


@document(DPSparseERM)
class DPSparseERMClassifier(SparseGradientFit, LabelModel, PrivateFit[Problem]):
    """Logistic or softmax regression by sparse private gradients (numeric sparse vector).

    A step finds a few large entries of the mean gradient and releases only these, as in [ZhangH2021]_: the noise
    grows with the logarithm of the number of features, and not with its root. The model has no more coefficients
    than were released.

    {guarantee}

    {recalibrated}

    See Also
    --------
    DPSparseERM : The same fit for any loss.
    DPFrankWolfeClassifier : Chooses one coefficient in each step.

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

    loss: ClassLoss = parameters.CLASS_LOSS


@document(DPSparseERM)
class DPSparseERMRegressor(SparseGradientFit, NumberModel, PrivateFit[Problem]):
    """Linear regression by sparse private gradients (numeric sparse vector).

    A step finds a few large entries of the mean gradient and releases only these, as in [ZhangH2021]_: the noise
    grows with the logarithm of the number of features, and not with its root. The model has no more coefficients
    than were released.

    {guarantee}

    See Also
    --------
    DPSparseERM : The same fit for any loss.
    DPFrankWolfeRegressor : Chooses one coefficient in each step.

    Notes
    -----
    {Notes}

    {privacy.targets}

    Examples
    --------
    >>> from skdp import DPSparseERMRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(5000, 500, n_informative=3, random_state=0)
    >>> model = DPSparseERMRegressor(epsilon=4.0, random_state=0).fit(X, y)
    >>> bool(model.score(X, y) > 0.5), len(model.support_) <= model.n_released_
    (True, True)
    """

    loss: NumberLoss = parameters.LOSS
    huber_threshold: float = parameters.HUBER_THRESHOLD
