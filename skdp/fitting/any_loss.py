"""A generalised linear model of any loss of `skdp.losses`: numbers in, the mean of the target out."""

from typing import Any

import numpy as np
from scipy.special import expit

from skdp._compat import warn_user
from skdp.exceptions import PrivacyLeakWarning
from skdp.fitting.glm import GLMModel, NumberModel, like
from skdp.fitting.probabilities import softmax
from skdp.kernels import on_host
from skdp.losses import HuberLoss, LogisticLoss, MultinomialLoss, SquaredLoss, check_loss, is_shipped

__all__ = ["GLMAnyLoss"]

_NAMED = {"squared": SquaredLoss(), "huber": HuberLoss(1.0), "logistic": LogisticLoss()}


class GLMAnyLoss(NumberModel, GLMModel):
    """Targets and predictions of a model whose ``loss`` is a name or an object."""

    loss: Any

    def predict(self, X: Any) -> np.ndarray:
        """Mean of the target given X.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            The linear predictor (squared, Huber), the probability of 1 (logistic), or the probabilities of
            all classes (multinomial).
        """
        z = self._scores(X)
        if z.ndim == 2:
            return like(X, softmax(z))
        return like(X, expit(z) if self._loss_name() == "logistic" else z)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Share of the squared error that the predicted mean explains; on private data it is not private.

        R^2 of `predict`; with classes, of the classes' indicators, weighted by their variances.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

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

        mean, y, sample_weight = map(on_host, (self.predict(X), y, sample_weight))
        if mean.ndim == 1:
            return float(r2_score(y, mean, sample_weight=sample_weight))
        indicators = np.eye(mean.shape[1])[np.asarray(y).astype(np.intp)]
        found = r2_score(indicators, mean, sample_weight=sample_weight, multioutput="variance_weighted")
        return float(found)

    def _check_exportable(self) -> None:
        if self._loss_name() in ("squared", "huber"):
            return
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
            check_loss(self.loss)

    def _loss_of(self, y: np.ndarray) -> tuple[Any, tuple[str, ...]]:
        """Return the loss object, and what its choice leaks; check each target by itself."""
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
