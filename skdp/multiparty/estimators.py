"""Estimators of gradient perturbation; the algorithm is in `gradient`."""

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp._docs import document
from skdp.base import Solution
from skdp.base.declare import changed, fitted, parameter
from skdp.base.kinds import integer, real
from skdp.base.plan import BudgetSplit
from skdp.fitting import parameters
from skdp.fitting.parameters import Auto, AutoInt
from skdp.fitting.targets import Problem
from skdp.fitting.task import from_theta
from skdp.multiparty.gradient import DescentSettings, averaged_noise, descent_settings, gradient_descent
from skdp.multiparty.intermediate import report_at
from skdp.multiparty.multiparty_fit import MultipartyClassifier, MultipartyFit, MultipartyRegressor, OwnersDecision
from skdp.multiparty.owners import Owners, owners_of
from skdp.multiparty.release import Release, is_plain, laplace_epsilon, opened_engine
from skdp.privacy import PrivacyReport, PrivacySession


@dataclass(frozen=True, kw_only=True)
class DescentDecision(OwnersDecision):
    """The rounds of a descent."""

    settings: DescentSettings


class GradientPerturbationFit(MultipartyFit):
    """Gradient perturbation."""

    max_iter: AutoInt = parameter(
        integer(low=1, high=1e6, word="auto"),
        """Number of rounds. "auto" minimises a proven bound on the excess, from public numbers, and is
        at most 500.""",
        default="auto",
    )
    learning_rate: Auto = parameter(
        real(low=1e-50, high=1e50, word="auto"),
        'Step size. "auto" is 1 / L for the smoothness L of the objective.',
        default="auto",
    )
    clip_norm: Auto = parameter(
        real(low=1e-50, high=1e50, word="auto"),
        """Largest l2 norm of one record's (or group's) weighted gradient. "auto" is the loss's Lipschitz
        constant times the largest row norm, which cuts nothing.""",
        default="auto",
    )
    callback: Callable[[int, np.ndarray], object] | None = parameters.CALLBACK
    learning_rate_: float = fitted("float", 'The step size given, or the one that "auto" took.')
    clip_norm_: float = fitted()

    _pooled = True
    _held = "gradient"
    _erratum = (
        "Theorem 6.3.4 of Wang (2021): rho = eps^2 / (4 T log(1/delta)) is larger than the exact root, and at "
        "eps = 8, delta = 1e-5 its own conversion gives 9.39. The noise here is calibrated to the exact "
        "Gaussian formula"
    )

    def _method(self, budget: BudgetSplit, problem: Problem) -> DescentDecision:
        session, owners = budget.session, owners_of(problem)
        settings = self._settings(session, problem)
        rounds = settings.max_iter
        if is_plain(self.engine):
            epsilon = None if self.noise == "gaussian" else laplace_epsilon(session, rounds)
            session.require_feasible(self._n_values(problem), rounds, 1.0, epsilon=epsilon)
        return DescentDecision(
            sizes={
                **self._sizes(problem),
                "n_iter": rounds,
                "learning_rate": settings.learning_rate,
                "clip_norm": settings.clip_norm * self._half_width,
            },
            steps=self._steps(session, rounds),
            signal=_signal(settings, self._n_values(problem)),
            settings=settings,
            prediction_noise=self._prediction_noise(settings, owners),
        )

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        owners = owners_of(problem)
        made: DescentDecision = problem.decision
        settings = made.settings
        with opened_engine(self.engine, owners.n_owners, settings.max_iter) as engine:
            theta = gradient_descent(
                session, owners, problem.loss, settings, engine=engine,
                release=self._release(session, problem, settings), callback=self._told(owners),
            )  # fmt: skip
        attributes = {
            "learning_rate_": settings.learning_rate,
            "clip_norm_": settings.clip_norm * self._half_width,
        }
        if not is_classifier(self):
            attributes["prediction_noise_"] = made.prediction_noise
        return Solution(self._rescaled(theta, owners), settings.max_iter, attributes)

    def _release(self, session: PrivacySession, problem: Problem, settings: DescentSettings) -> Release | None:
        """Another way to release the owners' statistics, of a baseline."""
        return None

    def _settings(self, session: PrivacySession, problem: Problem) -> DescentSettings:
        clip = self.clip_norm
        owners = owners_of(problem)
        return descent_settings(
            session,
            owners,
            problem.loss,
            alpha=self._penalty(owners),
            radius=owners.radius,
            noise=self.noise,
            clip_norm=None if isinstance(clip, str) else float(clip) / self._half_width,
            max_iter=None if isinstance(self.max_iter, str) else int(self.max_iter),
            learning_rate=None if isinstance(self.learning_rate, str) else float(self.learning_rate),
            widening=self._widening(problem),
        )  # fmt: skip

    def _prediction_noise(self, settings: DescentSettings, owners: Owners) -> float:
        """For standardized features that are not correlated; other warnings are about classifiers."""
        if is_classifier(self):
            return 0.0
        length = owners.row_norm
        curvature = length**2 / owners.shape.n_features
        noise = length * averaged_noise(settings, curvature)
        if self.fit_intercept:
            noise = math.hypot(noise, length * averaged_noise(settings, length**2))
        return noise * self._half_width

    def _told(self, owners: Owners) -> Callable[[int, np.ndarray], None] | None:
        """The user's callback, which gets coefficients in units of y."""
        callback = self.callback
        if callback is None:
            return None
        classifier = hasattr(self, "classes")

        def tell(iteration: int, theta: np.ndarray) -> None:
            coef, _ = from_theta(self._rescaled(theta, owners), self.fit_intercept, classifier)
            callback(iteration, coef)

        return tell

    def privacy_at(self, iteration: int) -> PrivacyReport:
        """Report the claim against an observer who sees the iterate of one round, and no other.

        Parameters
        ----------
        iteration : int
            Between 1 and ``n_iter_``.

        Returns
        -------
        PrivacyReport
            Of the first ``iteration`` of the planned releases, at the same delta.

        Notes
        -----
        Corollary 6.3.5 of Wang (2021). The iterate of round t is a function of the first t releases. With T
        planned Gaussian releases of the whole budget mu these are ``mu sqrt(t / T)``-GDP; pure epsilons add up.
        Owners and servers see every round: for them the report of the fit holds.
        """
        check_is_fitted(self)
        return report_at(self.privacy_, iteration, self.n_iter_)


def _signal(settings: DescentSettings, size: int) -> float | None:
    """Longest mean gradient over the length of its noise, if one release took the whole budget."""
    length = settings.noise_std * math.sqrt(size / settings.max_iter)
    known = settings.noise == "gaussian" and 0.0 < length < math.inf
    return settings.clip_norm / length if known else None


# The clip norm of a regression, whose squared loss has no bounded gradients.
CLIP_NORM_OF_TARGETS = changed(
    text="""Largest l2 norm of one record's (or group's) weighted gradient, in the unit of y times the unit of X.
    "auto" is the largest row norm times ``huber_threshold``, which cuts nothing. For the squared loss it is the
    largest row norm times half the width of ``y_bounds``: it cuts gradients of records whose prediction is further
    off than that."""
)
PREDICTION_NOISE: float = fitted(
    "float",
    """Standard deviation that the noise gives to predictions for standardized features that are not
    correlated, in units of y. It follows from public numbers. The fit warns where it is above a hundredth
    of the width of ``y_bounds``.""",
)


@document()
class MPCGradientPerturbationClassifier(MultipartyClassifier, GradientPerturbationFit):
    """Logistic or softmax regression of several owners by secure noisy gradient descent.

    In each round every owner computes the sum of its records' gradients. Only the noisy sum of all owners is
    opened, and everybody takes the same step, as in section 6.3.2 of [Wang2021]_. The objective is the mean
    over the owners of each owner's mean loss, plus ``alpha / 2 * ||theta||^2``, the intercept penalised too.
    The result is the mean of the last quarter of the iterates.

    {guarantee}

    See Also
    --------
    MPCGradientPerturbationRegressor : The same for regression.

    Notes
    -----
    **Privacy.** Let n_(1) be the units of the smallest of m owners. A unit's weighted gradient is clipped to C, so
    replacing one moves the sum that is opened by at most ``2 C / (m n_(1))`` in l2 norm with weighting="owner",
    and by ``2 C / n`` with weighting="record"; under zero-out it is half of that. T releases with noise multiplier
    z are exactly mu-GDP with ``mu = sqrt(T) / z``. A person with records at several owners is protected as several
    units: the report explains the effect on epsilon.

    {privacy.unprotected}

    References
    ----------
    .. [Wang2021] Section 6.3.2.

    Examples
    --------
    >>> from skdp import MPCGradientPerturbationClassifier
    >>> from skdp.datasets import make_sparse_classification
    >>> X, y = make_sparse_classification(2000, 20, n_informative=3, random_state=0)
    >>> hospital = ["east", "west", "south", "north"] * 500
    >>> model = MPCGradientPerturbationClassifier(epsilon=2.0, classes=(0, 1)).fit(X, y, owners=hospital)
    >>> model.coef_.shape, model.privacy_.public["n_owners"], model.privacy_.epsilon
    ((1, 20), 4, 2.0)
    """


@document(MPCGradientPerturbationClassifier)
class MPCGradientPerturbationRegressor(MultipartyRegressor, GradientPerturbationFit):
    """Linear regression of several owners by secure noisy gradient descent.

    In each round every owner computes the sum of its records' gradients. Only the noisy sum of all owners is
    opened, and everybody takes the same step, as in section 6.3.2 of [Wang2021]_. Targets are clipped to
    ``y_bounds``, then moved and scaled to [-1, 1], and the objective of `MPCGradientPerturbationClassifier` is
    minimised there.

    {guarantee}

    See Also
    --------
    MPCGradientPerturbationClassifier : The same for classification.

    Examples
    --------
    >>> from skdp import MPCGradientPerturbationRegressor
    >>> from skdp.datasets import make_sparse_regression
    >>> X, y = make_sparse_regression(2000, 20, n_informative=3, random_state=0)
    >>> site = [0, 1, 2, 3] * 500
    >>> model = MPCGradientPerturbationRegressor(epsilon=2.0, y_bounds=(-5, 5)).fit(X, y, owners=site)
    >>> model.coef_.shape, model.privacy_.public["n_owners"]
    ((20,), 4)
    """

    clip_norm = CLIP_NORM_OF_TARGETS
    prediction_noise_: float = PREDICTION_NOISE
