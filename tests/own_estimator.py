"""A private estimator of your own: Huber regression by output perturbation.

The guide's page "Your own estimator" is this file. `tests/test_own_estimator.py` puts it through scikit-learn's
`check_estimator`, the contract of skdp's own estimators, and an audit.
"""

from numbers import Real

from skdp.base import PrivateFit, Solution, check_number
from skdp.fitting.linear import LinearFit
from skdp.fitting.targets import NumberModel


class DPHuberRegressor(LinearFit, NumberModel, PrivateFit):
    """Huber regression by output perturbation: the minimiser with Gaussian noise.

    Parameters
    ----------
    epsilon, delta : float, default=1.0, 1e-5
        The budget.
    alpha : float, default=0.1
        Weight lambda of the penalty ``alpha / 2 * ||theta||^2``, > 0.
    row_norm : float, default=1.0
        Rows are clipped to this l2 norm. Public.
    huber_threshold : float, default=1.0
        Residual at which the loss becomes linear, in units of y. Public.
    fit_intercept : bool, default=True
    adjacency, unit, n_public, accountant, random_state :
        As for every private estimator of skdp.

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
    `PrivateRecords.ridge_minimizer` is this statistic. It clips the rows, and
    it adds to the sensitivity what the solver's stopping rule leaves of the
    gradient.
    """

    loss = "huber"

    def __init__(
        self,
        *,
        epsilon=1.0,
        delta=1e-5,
        alpha=0.1,
        row_norm=1.0,
        huber_threshold=1.0,
        fit_intercept=True,
        adjacency="replace-one",
        unit="record",
        n_public=None,
        accountant=None,
        random_state=None,
    ):
        self.epsilon = epsilon
        self.delta = delta
        self.alpha = alpha
        self.row_norm = row_norm
        self.huber_threshold = huber_threshold
        self.fit_intercept = fit_intercept
        self.adjacency = adjacency
        self.unit = unit
        self.n_public = n_public
        self.accountant = accountant
        self.random_state = random_state

    def _check_parameters(self):
        super()._check_parameters()
        for name in ("alpha", "row_norm", "huber_threshold"):
            check_number(name, getattr(self, name), Real, low=1e-50, high=1e50)

    def solve(self, session, problem):
        plan = session.plan_gaussian(releases=1)
        minimizer = problem.records.ridge_minimizer(
            problem.loss, alpha=self.alpha, row_norm=self.row_norm, adjacency=session.adjacency
        )
        return Solution(session.gaussian(minimizer, plan))

    def _assumptions(self, problem):
        return ("row_norm and huber_threshold were not chosen by looking at these records",)
