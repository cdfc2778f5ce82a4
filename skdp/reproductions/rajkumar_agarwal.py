"""The method of Rajkumar & Agarwal (2012): two noises in every round, drawn by or sent to a trusted third party.

In round t the third party adds up the owners' gradients and releases

    (1/m) sum_j (mean gradient of owner j) + eta_t + rho_t,

with Gaussian noise eta and Laplace noise rho. Wang (2021, section 6.4) compares with it at a budget of epsilon in
**every round**. The paper's own formulas were not at hand. Here eta is the Gaussian noise that makes one round
(epsilon, delta)-differentially private, and rho is Laplace noise of scale s / epsilon, where s is the change by a
record in l2 norm: the pattern of the other rows of Table 6.1.

Privacy
-------
eta alone carries the claim: rho is independent noise that is added to the released gradient. T rounds of a
multiplier z are exactly mu-GDP with mu = sqrt(T) / z. With epsilon in every round, z belongs to one round, and the
whole is sqrt(T)-fold in mu: 500 rounds at (0.5, 0.001) each are (26.0, 0.001)-differentially private together. rho
proves nothing better: its l1 sensitivity is sqrt(d) s, so T rounds of it cost up to T sqrt(d) epsilon.
"""

import math
from typing import Literal, Unpack

import numpy as np
from numpy.typing import NDArray

from skdp._docs import document
from skdp.base.declare import changed, fixed, parameter
from skdp.base.fit import SessionOptions
from skdp.base.kinds import choice
from skdp.fitting.targets import Problem
from skdp.multiparty.estimators import (
    CLIP_NORM_OF_TARGETS,
    PREDICTION_NOISE,
    GradientPerturbationFit,
    MPCGradientPerturbationClassifier,
)
from skdp.multiparty.gradient import DescentSettings
from skdp.multiparty.multiparty_fit import DELTA_OF_GAUSSIAN, MultipartyClassifier, MultipartyRegressor
from skdp.multiparty.release import Release, make_release
from skdp.privacy import BoundedStatistic, PrivacySession, accounting
from skdp.reproductions.own_noise import generator, moved

__all__ = ["DPRajkumarAgarwalClassifier", "DPRajkumarAgarwalRegressor", "total_epsilon"]

# A session keeps a part of its budget for errors of the sampler. With this much more epsilon, its noise is at
# least the noise of one round's budget.
SPARE = 1e-4


def total_epsilon(epsilon: float, delta: float, rounds: int) -> float:
    """Epsilon, at the same delta, of some rounds that are (epsilon, delta)-private each by Gaussian noise.

    Examples
    --------
    >>> from skdp.reproductions.rajkumar_agarwal import total_epsilon
    >>> round(total_epsilon(0.5, 1e-3, 1), 3), round(total_epsilon(0.5, 1e-3, 500), 1)
    (0.5, 26.0)
    """
    mu = accounting.gaussian_mu(epsilon, delta) * math.sqrt(rounds)
    return accounting.gaussian_epsilon(mu, delta)


class _RajkumarAgarwalFit(GradientPerturbationFit):
    """Gradient descent with two noises."""

    epsilon = changed(
        more="Of the fit, or of one round: see ``epsilon_of``. `privacy_` states the epsilon of the fit."
    )
    delta = DELTA_OF_GAUSSIAN
    epsilon_of: Literal["fit", "iteration"] = parameter(
        choice("fit", "iteration"),
        """What ``epsilon`` is the budget of. "iteration" is the published rule and needs a number for
        ``max_iter``; an accountant is charged with the total.""",
        default="fit",
    )
    noise: Literal["gaussian"] = fixed(default="gaussian")
    engine: object = fixed(default="plain")
    _erratum = (
        "the published budget is epsilon in every round; with epsilon_of='iteration' this report states the total"
    )

    def _check_parameters(self) -> None:
        if self.epsilon_of == "iteration" and isinstance(self.max_iter, str):
            raise ValueError(
                "with epsilon_of='iteration' the rounds fix the total epsilon: give max_iter as a number"
            )
        super()._check_parameters()

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        if self.epsilon_of == "iteration" and not math.isinf(self.epsilon):
            total = total_epsilon(self.epsilon, self.delta, int(self.max_iter))
            options["epsilon"] = total * (1 + SPARE)
        return super()._open_session(n_units, **options)

    def _release(self, session: PrivacySession, problem: Problem, settings: DescentSettings) -> Release:
        release = make_release(session, noise="gaussian", releases=settings.max_iter, engine=None)
        if session.exact:
            return release
        rng = generator(session)
        one = self.epsilon
        if self.epsilon_of == "fit":
            one /= math.sqrt(settings.max_iter)

        def noisier(statistics: list[BoundedStatistic]) -> NDArray[np.float64]:
            rho = rng.laplace(scale=moved(session, statistics, "l2") / one, size=statistics[0].shape)
            return release(statistics) + rho

        return noisier

    def _several_owners(self) -> str:
        unit = self.unit
        return f"a person with records at h owners is protected as h {unit}s: h times mu"

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        return {
            **super()._public_facts(problem),
            "epsilon_of": self.epsilon_of,
            "epsilon_given": float(self.epsilon),
        }

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        return (
            *super()._assumptions(problem),
            "a third party that everybody trusts sees every gradient and knows the noise",
        )


@document(MPCGradientPerturbationClassifier)
class DPRajkumarAgarwalClassifier(MultipartyClassifier, _RajkumarAgarwalFit):
    """Logistic or softmax regression of several owners by a trusted third party that adds two noises.

    The baseline of [Wang2021]_, section 6.4, after Rajkumar & Agarwal, "A differentially private stochastic
    gradient descent algorithm for multiparty classification" (AISTATS 2012). As published, it spends epsilon in
    **every round**; the report states the total.

    {guarantee}

    See Also
    --------
    MPCGradientPerturbationClassifier : One noise and no third party.

    Notes
    -----
    **Privacy.** A record changes the average gradient by at most ``s = 2 C / (m n_(1))`` in l2 norm, and half of
    that under zero-out. Gaussian noise of multiplier z in T rounds is exactly mu-GDP with ``mu = sqrt(T) / z``.
    With "iteration", z is the multiplier of one round at (epsilon, delta). The Laplace noise, of scale
    ``s / epsilon`` a round (``s sqrt(T) / epsilon`` with "fit"), is added to the released gradient, and no claim
    rests on it: as independent noise in d coordinates it would need the l1 norm, which may be sqrt(d) times
    larger. The paper of 2012 was not at hand; these scales follow [Wang2021]_.

    {privacy.unprotected}

    References
    ----------
    .. [Wang2021] Section 6.4.

    Examples
    --------
    >>> from skdp import DPRajkumarAgarwalClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> model = DPRajkumarAgarwalClassifier(epsilon=0.5, epsilon_of="iteration", max_iter=50, classes=(0, 1))
    >>> round(model.fit(X, y, owners=["east", "west"] * 1000).privacy_.epsilon, 1)
    4.4
    """


@document(DPRajkumarAgarwalClassifier)
class DPRajkumarAgarwalRegressor(MultipartyRegressor, _RajkumarAgarwalFit):
    """Linear regression of several owners by a trusted third party that adds two noises.

    `DPRajkumarAgarwalClassifier` for the squared or Huber's loss. Targets are clipped to ``y_bounds``, then moved
    and scaled to [-1, 1].

    {guarantee}

    See Also
    --------
    MPCGradientPerturbationRegressor : One noise and no third party.

    Examples
    --------
    >>> from skdp import DPRajkumarAgarwalRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> model = DPRajkumarAgarwalRegressor(epsilon=2.0, y_bounds=(-5, 5))
    >>> model.fit(X, y, owners=[0, 1] * 1000).privacy_.epsilon
    2.0
    """

    clip_norm = CLIP_NORM_OF_TARGETS
    prediction_noise_: float = PREDICTION_NOISE
