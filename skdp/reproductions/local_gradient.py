"""Local gradient perturbation: every owner adds the whole noise to its gradient, round by round.

The baseline "Local Grad P" of Wang (2021), Table 6.1, after Shokri & Shmatikov (2015), with valid noise.
"""

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Literal

from skdp._docs import document
from skdp.base.declare import fixed
from skdp.fitting.targets import Problem
from skdp.multiparty.estimators import (
    CLIP_NORM_OF_TARGETS,
    PREDICTION_NOISE,
    GradientPerturbationFit,
    MPCGradientPerturbationClassifier,
)
from skdp.multiparty.gradient import DescentSettings
from skdp.multiparty.multiparty_fit import DELTA_OF_GAUSSIAN, MultipartyClassifier, MultipartyRegressor
from skdp.multiparty.release import Release
from skdp.privacy import PrivacySession
from skdp.reproductions.own_noise import release_with_own_noise

OWN_NOISE = (
    "every owner makes its own messages noisy before they leave it: the claim covers whoever sees all of them"
)


def _length(ratios: Sequence[float]) -> float:
    return math.sqrt(math.fsum(ratio**2 for ratio in ratios))


class _LocalGradientFit(GradientPerturbationFit):
    """Gradient perturbation without a secure sum."""

    delta = DELTA_OF_GAUSSIAN
    noise: Literal["gaussian"] = fixed(default="gaussian")
    engine: object = fixed(default="plain")
    _erratum = (
        "Table 6.1 of Wang (2021) gives an owner's gradient noise of standard deviation sqrt(2 T) G / (n eps). "
        "That is zCDP with rho = eps^2; its epsilon at delta is several times eps. The noise here is calibrated "
        "to the exact Gaussian formula"
    )

    def _release(self, session: PrivacySession, problem: Problem, settings: DescentSettings) -> Release:
        ratios = self._ratios(problem, settings.clip_norm)
        return release_with_own_noise(session, ratios, noise=self.noise, releases=settings.max_iter)

    def _ratios(self, problem: Problem, clip_norm: float | None = None) -> Sequence[float]:
        """Sensitivity of each owner's message over the largest one: public.

        Gradients are at most G long, so a gradient of weight w_j changes by at most min(C, w_j G) over C.
        """
        owners: Any = problem.records
        longest = problem.loss.lipschitz * owners.radius
        over = longest / clip_norm if clip_norm is not None else 1.0
        return [min(1.0, owners.weight(j) * over) for j in range(owners.n_owners)]

    def _widening(self, problem: Problem) -> float:
        clip = None if isinstance(self.clip_norm, str) else self.clip_norm / self._half_width
        return _length(self._ratios(problem, clip))

    def _settings(self, session: PrivacySession, problem: Problem) -> DescentSettings:
        made = super()._settings(session, problem)
        # With clip_norm="auto" the number of rounds supposes that C is G. Gradients of the squared loss may be
        # longer, so that messages of owners with small weights are clipped too and have more noise.
        more = _length(self._ratios(problem, made.clip_norm)) / self._widening(problem)
        return replace(made, noise_std=made.noise_std * more)

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        return (*super()._assumptions(problem), OWN_NOISE)


@document(MPCGradientPerturbationClassifier)
class DPLocalGradientPerturbationClassifier(MultipartyClassifier, _LocalGradientFit):
    """Logistic or softmax regression of several owners, each of which adds its own noise to its gradients.

    A baseline of [Wang2021]_: nobody needs to be trusted, and no secure computation is needed. The noise of the
    average is sqrt(m) times the noise of `MPCGradientPerturbationClassifier` with m owners of equal size.

    {guarantee}

    See Also
    --------
    MPCGradientPerturbationClassifier : One noise for the sum of all owners.

    Notes
    -----
    **Privacy.** Replacing a record of owner j moves its message in a round, the mean gradient of its n_j records
    over m, by at most ``2 C / (m n_j)``, and half of that under zero-out. T such messages with noise multiplier z
    are exactly mu-GDP with ``mu = sqrt(T) / z``. The messages of the other owners do not depend on the record,
    given all earlier messages, and the claim covers whoever sees every message (parallel composition). In this
    process, the session draws the noise of the owner with the largest sensitivity, and the noise of all others is
    added to the released sum.

    {privacy.unprotected}

    References
    ----------
    .. [Wang2021] Section 6.4, Table 6.1.

    Examples
    --------
    >>> from skdp import DPLocalGradientPerturbationClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLocalGradientPerturbationClassifier(epsilon=2.0, classes=(0, 1))
    >>> model.fit(X, y, owners=["east", "west"] * 1000).privacy_.epsilon
    2.0
    """


@document(DPLocalGradientPerturbationClassifier)
class DPLocalGradientPerturbationRegressor(MultipartyRegressor, _LocalGradientFit):
    """Linear regression of several owners, each of which adds its own noise to its gradients.

    A baseline of [Wang2021]_: the noise of the average is sqrt(m) times the noise of
    `MPCGradientPerturbationRegressor` with m owners of equal size. Targets are clipped to ``y_bounds``, then moved
    and scaled to [-1, 1].

    {guarantee}

    See Also
    --------
    MPCGradientPerturbationRegressor : One noise for the sum of all owners.

    Examples
    --------
    >>> from skdp import DPLocalGradientPerturbationRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = DPLocalGradientPerturbationRegressor(epsilon=2.0, y_bounds=(-5, 5))
    >>> model.fit(X, y, owners=[0, 1] * 1000).coef_.shape
    (20,)
    """

    clip_norm = CLIP_NORM_OF_TARGETS
    prediction_noise_: float = PREDICTION_NOISE
