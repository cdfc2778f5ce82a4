"""Linear regression by a released Gram matrix and a few noisy gradients of standardized rows.

The method is ours (`DPLinearRegression` has its description). Stages: half-widths and moments of the columns, the
range of the targets, the Gram matrix, gradients, and the mean residual. The first gradients are clipped near their
typical norm: they have little noise, and lead to a robust regression. The last one is clipped farther out, because
the mean of a skewed target lies in its tail.
"""

import math

import numpy as np
from scipy.special import erf

from skdp.base.plan import BudgetSplit, Step
from skdp.base.problem import Solution
from skdp.kernels import one_blas_thread
from skdp.linear_model.auto.columns import Columns, standardize
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.linear_model.auto.doubts import doubt_of_numbers, no_targets
from skdp.linear_model.auto.moments_method import MomentsMethod, rest_step
from skdp.linear_model.auto.penalty import matching_C
from skdp.linear_model.auto.scatter import along_direction, covariances, replaced
from skdp.linear_model.auto.slopes import released_slope, slope_share
from skdp.linear_model.auto.steps import Gram, Growth, Steps, largest_rows, released_gram
from skdp.linear_model.auto.targets import PURPOSE, TargetWindow, range_share, released_target_range
from skdp.linear_model.auto.windows import released_spread
from skdp.losses import SquaredLoss
from skdp.privacy import PrivacySession, PrivateRecords, accounting
from skdp.privacy.statistics import magnitude_counts


@one_blas_thread()  # decompositions would wait for each other beside busy processes
def moment_regression(
    session: PrivacySession, records: PrivateRecords, plan: MomentsMethod, growth: Growth | None = None
) -> Solution:
    """Fit a linear regression.

    Parameters
    ----------
    growth : Growth, default=None
        Looks for more features than the columns; it needs ``n_nonzero_coefs=None`` and an intercept.

    Returns
    -------
    Solution
        Its theta is in the user's units.
    """
    defaults = DEFAULTS.numbers
    budget = BudgetSplit(session)
    effective_n = records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    if plan.constant:
        return _constant(budget, records, plan.y_bounds)
    shares, own = (defaults.bins_share, defaults.moments_share), defaults.column_evidence
    columns = standardize(budget, records, *shares, own=own, given=plan.feature_bounds)
    window = released_target_range(budget, records, given=plan.y_bounds)
    if not window.half_width:
        return _nothing(budget, records, window)
    center, half_width, highest = window.center, window.half_width, window.highest
    rows = columns.rows(records).centered(center)
    last = mean_share(session, records)
    of_slope = slope_share(budget, records)
    left = budget.left - last - of_slope
    gram = released_gram(budget, rows, left * defaults.gram_part)
    left *= 1.0 - defaults.gram_part
    clean = effective_n / rows.n_parameters**1.5
    deviation = half_width / DEFAULTS.targets.half_width_deviations
    model = _Steps(budget, rows, gram, deviation, _clips(clean), plan.alpha, plan.automatic)
    kept = np.arange(rows.n_features)
    if growth is not None and growth.begins(columns):
        growth.run(model, left)
    else:
        model.round(left * defaults.gradient_parts[0], first=True)
        kept = largest_rows(model.theta[: rows.n_features], plan.n_nonzero_coefs)
        model.restrict(kept)
        for part in defaults.gradient_parts[1:]:
            model.round(left * part)
        model.round(left * defaults.last_gradient_part, last=True)
    if of_slope:
        model.calibrate(of_slope)
    theta, doubt_of_mean = model.theta, 0.0
    if records.shape.fit_intercept:
        cut = min(defaults.max_mean_clip, 0.5 * defaults.mean_noise * effective_n * math.sqrt(last))
        cut = max(DEFAULTS.targets.half_width_deviations, model.far, cut) * model.deviation
        residuals = model.rows.residual(theta)
        bound = max(cut, _tail(budget, residuals, defaults.tail_part * last, highest))
        share, bias = (1.0 - defaults.tail_part) * last, defaults.mean_bias * model.deviation
        mean, doubt_of_mean = _mean(budget, residuals, bound, share, bias)
        theta[-1] += mean + center
    doubt = (
        ()
        if session.exact
        else doubt_of_numbers(records.shape, columns.n_seen, *model.signal(), doubt_of_mean**2, model.deviation**2)
    )
    attributes = _found(window, columns, model.C)
    if growth is not None:
        theta, more = growth.finish(columns, model, theta)
        attributes.update(more)
    in_user_scale = columns.to_user_scale(theta, kept)
    return Solution(in_user_scale, model.n_steps, attributes, warnings=doubt)


def mean_share(session: PrivacySession, records: PrivateRecords) -> float:
    """Share of mu^2 for the mean residual; public."""
    effective_n = records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    defaults = DEFAULTS.numbers
    share = max(defaults.mean_share, (defaults.mean_effective_n / effective_n) ** 2)
    return min(defaults.max_mean_share, share) * records.shape.fit_intercept


def range_of_few(session: PrivacySession, records: PrivateRecords) -> float:
    """Share of mu^2 for the range of the targets, where only their mean is released; public."""
    effective_n = records.n_units * accounting.gaussian_mu(session.epsilon, session.delta)
    defaults = DEFAULTS.numbers
    share = max(defaults.min_constant_range_share, (defaults.constant_effective_n / effective_n) ** 2)
    return min(defaults.max_constant_range_share, share)


def regression_steps(budget: BudgetSplit, records: PrivateRecords, plan: MomentsMethod) -> tuple[Step, ...]:
    """The parts of the budget, as a plan shows them."""
    if plan.constant:
        window = budget.step(PURPOSE, None, range_of_few(budget.session, records))
        return rest_step(budget, "mean residual", *window)
    return rest_step(
        budget,
        "Gram matrix, gradients and slope",
        *budget.step("column ranges", None, DEFAULTS.numbers.bins_share),
        *budget.step("column moments", None, DEFAULTS.numbers.moments_share),
        *budget.step(PURPOSE, None, range_share(budget.session, records)),
        *budget.step("mean residual", None, mean_share(budget.session, records)),
    )


def _nothing(budget: BudgetSplit, records: PrivateRecords, window: TargetWindow) -> Solution:
    """The model of targets of which nothing was found: 0 for every row.

    The rest of the budget goes to looks that nobody needs: the claim is the whole, whatever was found.
    """
    session, targets = budget.session, records.select_targets()
    counted = magnitude_counts(targets, DEFAULTS.bins.lowest, DEFAULTS.bins.highest, adjacency=session.adjacency)
    plan = budget.take(budget.left, "range of the targets", DEFAULTS.numbers.n_unused_releases)
    for _ in range(DEFAULTS.numbers.n_unused_releases):
        session.gaussian(counted, plan)
    theta, attributes = np.zeros(records.n_parameters), _found(window, Columns.none(records))
    doubt = () if session.exact else no_targets(records.shape)
    return Solution(theta, 0, attributes, warnings=doubt)


def _found(window: TargetWindow, columns: Columns, C: float = 0.0) -> dict[str, object]:
    """Fitted attributes."""
    return {
        "C_": C,
        "target_center_": window.center,
        "target_scale_": window.half_width,
        "prediction_bounds_": (window.low, window.high),
        **columns.attributes(),
    }


def _clips(clean: float) -> tuple[float, float]:
    """Clip norms of the robust gradients and of the last one, which grow with ``clean``, n mu / (d + 1)^1.5.

    With less noise, clip less.
    """
    defaults = DEFAULTS.numbers
    near = defaults.clip * (defaults.clip_noise * clean) ** defaults.clip_power
    far = defaults.last_clip * (defaults.last_clip_noise * clean) ** defaults.last_clip_power
    near = min(defaults.max_clip, max(defaults.min_clip, near))
    return float(near), float(min(defaults.max_last_clip, max(defaults.min_last_clip, far)))


class _Steps(Steps):
    """Steps of a linear regression.

    Attributes
    ----------
    deviation : float
        Of the residuals; released.
    near, far : float
        Largest residual that is not cut in a typical row, over ``deviation``: in all rounds but the last, and in
        the last.
    """

    _squared = True
    # Factor of all coefficients after the last round, its known noise, and the coefficients before.
    _slope: tuple[float, float, np.ndarray] | None = None

    def __init__(
        self,
        budget: BudgetSplit,
        rows: PrivateRecords,
        gram: Gram,
        deviation: float,
        clips: tuple[float, float],
        alpha: float,
        automatic: bool,
    ) -> None:
        super().__init__(budget, rows, gram, alpha, automatic)
        self._loss, self.theta = SquaredLoss(), np.zeros(rows.n_parameters)
        self.deviation, (self.near, self.far) = deviation, clips
        self._bend = DEFAULTS.numbers.bend
        self._restart(grown=True)

    def _restart(self, *, grown: bool) -> None:
        p = self.rows.n_parameters
        self._turn()
        self._scales = np.array(DEFAULTS.steps.first_variances)
        self._variance = np.full((p, 1), self.deviation**2 / p)

    def rescaled(self, share: float) -> float:
        """Release the deviation of the residuals with a part of a share; return what is left of it."""
        residuals = self.rows.residual(self.theta).select_targets()
        window = np.zeros(1), np.array([DEFAULTS.targets.half_width_deviations * self.deviation])
        part = DEFAULTS.numbers.scale_part
        found = released_spread(self.budget, residuals, part * share, *window, "scale of the residuals")
        now = math.hypot(float(found.deviation[0]), float(found.center[0]))
        self.deviation = min(self.deviation, now)
        return (1.0 - part) * share

    def signal(self) -> tuple[float, float]:
        """Variance of the predictions, and the part of it that may be noise."""
        d = self.rows.n_features
        return float(self.theta[:d] @ self.gram[:d, :d] @ self.theta[:d]), self._unknown

    def calibrate(self, share: float) -> None:
        """Release the slope of the targets on the predictions, and shrink the coefficients that are too steep."""
        d, spread = self.rows.n_features, math.sqrt(max(self.signal()[0], 0.0))
        if spread:
            factor, noise = released_slope(self.budget, self.rows, self.theta, share, spread, self.deviation)
            self._slope = factor, noise, self.theta
            self.theta = np.append(factor * self.theta[:d], self.theta[d:])

    def round(self, share: float, *, first: bool = False, last: bool = False) -> None:
        """Spend a share on the scale of the residuals, but for the first round, and on a gradient."""
        share = share if first else self.rescaled(share)
        if last:  # this step may be as long as the robust ones before it are wrong
            self._variance = self._variance + (DEFAULTS.numbers.bias * self.deviation) ** 2 / self.theta.size
            self._scales = np.array(DEFAULTS.steps.first_variances)
        self.take(share, self.far if last else self.near)

    def before_a_look(self, share: float) -> tuple[float, float]:
        """Release the scale of the residuals."""
        return self.rescaled(share), self.near

    def clip_norm(self, clip: float, square: float) -> float:
        """The clip norm, in units of the deviation of the residuals."""
        return clip * math.sqrt(square) * self.deviation

    def outputs(self, gradient: np.ndarray) -> np.ndarray:
        """The entries, as a column."""
        return gradient[:, None]

    def wanted(self, gradient: np.ndarray) -> np.ndarray:
        """The entries themselves."""
        return gradient

    @property
    def spread(self) -> np.ndarray:
        """Variance of the residuals, by their released deviation."""
        return np.array([self.deviation**2])

    def _turned(self, gradient: np.ndarray) -> np.ndarray:
        return np.asarray(self._vectors.T @ gradient)[:, None]

    def _curvature(self, clip: float) -> np.ndarray:
        return np.asarray(_inside(clip) * self._values + self._alpha)[:, None]

    def _move(self, step: np.ndarray) -> None:
        self.theta = self.theta - self._vectors @ step[:, 0]

    def _loss_of(self, unknown: np.ndarray, clip: float) -> float:
        return float(_inside(clip) * self._values @ unknown[:, 0])

    def _matching_C(self, scale: float, curvature: float, noise: float) -> float:
        """The C that matches a variance and a noise, both in units of the residuals."""
        variance = float(self._variance.mean()) / self.deviation**2
        return matching_C(scale * variance, curvature, noise / self.deviation, self.rows.n_units)

    def variance(self, theta: np.ndarray) -> np.ndarray:
        """Covariance over the known noise, in squared units of the targets."""
        along, one = covariances(self._moves, np.ones(1)), np.ones(1)
        if self._slope is None:
            return np.asarray(along[0])
        factor, noise, before = self._slope
        coef, metric = before[:, None].copy(), self.gram.copy()
        coef[-1], metric[-1], metric[:, -1] = 0.0, 0.0, 0.0
        # A factor below 1 is the released slope; else the coefficients keep the one of the steps.
        is_released = factor < 1.0
        cross, own = along_direction(along, coef, metric, one)
        parts = is_released * factor**2 * cross, is_released * factor**2 * own
        return replaced(factor**2 * along[0], one, coef, parts, noise)


def _inside(clip: float) -> float:
    """Part of the curvature that a clip leaves: it flattens the loss, of normal residuals by this."""
    return max(DEFAULTS.numbers.min_inside, float(erf(clip / math.sqrt(2.0))))


def _tail(budget: BudgetSplit, rows: PrivateRecords, share: float, highest: int) -> float:
    """Release the end of the highest bin that surely holds residuals, up to twice the one of y; 0 for none."""
    bins = DEFAULTS.bins
    session = budget.session
    counted = magnitude_counts(rows.select_targets(), bins.lowest, bins.highest, adjacency=session.adjacency)
    plan = budget.take(share, "range of the residuals")
    counts = session.gaussian(counted, plan)[0]
    noise = max(session.noise_std(counted, plan), bins.exact_noise)
    sure = np.flatnonzero(counts > DEFAULTS.numbers.tail_evidence * noise)
    sure = sure[sure <= highest + 1]
    return float(2.0 ** (bins.lowest + int(sure[-1]))) if sure.size else 0.0


def _constant(budget: BudgetSplit, records: PrivateRecords, y_bounds: tuple[float, float] | None) -> Solution:
    """A constant model: the released mean of the targets."""
    window = released_target_range(budget, records, range_of_few(budget.session, records), y_bounds)
    if not window.half_width:
        return _nothing(budget, records, window)
    theta, bound = np.zeros(records.n_parameters), DEFAULTS.numbers.constant_clip * window.half_width
    mean, _ = _mean(budget, records.centered(window.center), bound, budget.left)
    theta[-1] = window.center + mean
    return Solution(theta, 0, _found(window, Columns.none(records)))


def _mean(
    budget: BudgetSplit, rows: PrivateRecords, bound: float, share: float, expected: float = math.inf
) -> tuple[float, float]:
    """Release the mean of the targets, clipped to ``bound`` and shrunk by its known noise; return this noise too.

    ``expected`` is the size that the mean may be expected to have.
    """
    session, n = budget.session, rows.n_units
    total = rows.select_targets().column_sums(0.0, bound)
    plan = budget.take(share, "mean residual")
    mean = float(session.gaussian(total, plan)[0]) / n
    noise = session.noise_std(total, plan) / n
    kept = max(0.0, 1.0 - (noise / mean) ** 2) if mean else 0.0
    kept = min(kept, 1.0 / (1.0 + (bound * noise / expected) ** 2))
    return bound * mean * kept, bound * noise
