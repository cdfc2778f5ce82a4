"""Two private estimators of your own: normalised gradient steps, and output perturbation.

The page docs/researchers/extending.rst shows this file. `tests/test_own_estimator.py` puts the classes through
scikit-learn's `check_estimator`, the contract of skdp's own estimators, and an audit.
"""

import numpy as np

from skdp.base import PrivateFit, Solution, document, integer, parameter, real
from skdp.fitting import LabelModel, LinearFit, NumberModel, parameter_shape
from skdp.privacy.statistics import ridge_minimizer


@document()
class DPNormalizedGradientClassifier(LinearFit, LabelModel, PrivateFit):
    """Logistic or softmax regression by noisy gradients of length 1, differentially private.

    Notes
    -----
    **Privacy.** `PrivateRecords.mean_gradient` clips each row's gradient to ``clip_norm`` and knows how far
    one record can move the mean. The rest is post-processing.
    """

    max_iter: int = parameter(integer(low=1), "Number of steps.", default=40)
    learning_rate: float = parameter(
        real(low=0, strict=True, finite=True), "Length of the first step.", default=0.5
    )
    clip_norm: float = parameter(
        real(low=1e-50, high=1e50), "Rows' gradients are clipped to this norm.", default=1.0
    )

    def releases(self, budget, shape):
        return budget.plan_gaussian(self.max_iter)

    def solve(self, session, problem):
        records, loss = problem.records, problem.loss
        theta = np.zeros(parameter_shape(records, loss))
        for t in range(self.max_iter):
            mean = records.mean_gradient(loss, theta, self.clip_norm)
            gradient = session.gaussian(mean, problem.releases)
            length = max(np.linalg.norm(gradient), 1e-12)
            theta = theta - self.learning_rate / np.sqrt(t + 1) * gradient / length
        return Solution(theta, self.max_iter)


@document()
class DPHuberRegressor(LinearFit, NumberModel, PrivateFit):
    """Huber regression by output perturbation: the minimiser with Gaussian noise.

    Notes
    -----
    **Privacy.** Let F be the mean over n units of convex losses l_i, plus
    lambda / 2 ||theta||^2. Let G bound the norm of every gradient of every l_i:
    here G = huber_threshold * sqrt(row_norm^2 + 1), because the slope of
    Huber's loss is at most its threshold, and a row has norm at most row_norm,
    with 1 for the intercept. F is lambda-strongly convex, so each theta is
    within ||grad F(theta)|| / lambda of the minimiser. Replace one unit, and
    put the old minimiser into the new F. The gradient there was 0; now 1/n of
    one unit's gradient has gone and 1/n of another's has come. Its norm is at
    most 2 G / n, so the minimisers differ by at most

        2 G / (n lambda),

    the l2 sensitivity of theta under replace-one.
    `ridge_minimizer` is this statistic. It clips the rows, and
    it adds to the sensitivity what the solver's stopping rule leaves of the
    gradient.
    """

    loss = "huber"
    alpha: float = parameter(real(low=1e-50, high=1e50), "Weight of ``||theta||^2 / 2``.", default=0.1)
    row_norm: float = parameter(real(low=1e-50, high=1e50), "Rows are clipped to this l2 norm.", default=1.0)
    huber_threshold: float = parameter(
        real(low=1e-50, high=1e50), "Residual at which the loss becomes linear, in units of y.", default=1.0
    )

    def releases(self, budget, shape):
        return budget.plan_gaussian(1, purpose="minimiser")

    def solve(self, session, problem):
        minimizer = ridge_minimizer(
            problem.records, problem.loss, alpha=self.alpha, row_norm=self.row_norm, adjacency=session.adjacency
        )
        return Solution(session.gaussian(minimizer, problem.releases))

    def _assumptions(self, problem):
        return ("row_norm and huber_threshold were not chosen by looking at these records",)
