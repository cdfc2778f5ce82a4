"""Two stages: choose the support privately, then fit a convex model on it (Kifer, Smith & Thakurta 2012).

The support is released, so the second stage may restrict the records to it: rows become short, and the noise has
as many coordinates as the support.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.fitting.closing import LinearDecision, sizes_of
from skdp.fitting.quantiles import QUESTIONS, released_row_norm, scale_share
from skdp.fitting.scales import released_prior
from skdp.fitting.search import AVERAGED, noisy_search
from skdp.linear_model.adassp import INTERCEPT, RoundPlan, adassp
from skdp.linear_model.amp import perturbed_minimum
from skdp.losses import Loss
from skdp.privacy import Partition, PrivacySession, PrivateRecords, accounting
from skdp.privacy.statistics import gradient_scores, ridge_minimizer, support_votes

# All chosen on synthetic data of other seeds and on parts held out of training data, also of IMDb.
SELECTION_SHARE = 0.5  # share of the choice of the support in the mu^2 that the scales leave
AMP_SHARE = 0.4  # share of a second stage by minima perturbation in (epsilon, delta)
AMP_SELECTION_SHARE = 0.9  # share of the choice in the rest's mu^2; the other part covers the computed point
PRIOR_SHARE = 0.01  # share of mu^2 for the class frequencies, at which the scores are taken
CLIP_FACTOR = 0.5  # sup-norm clip of the scores over the median sup norm of a row's gradient
UNITS_PER_FEATURE = 150.0  # units times mu for each feature that is kept by default
NORM_LEVEL = 0.65  # quantile of the row norms on the support at which rows are clipped
NEGLIGIBLE = 2.0**-40  # intercept's feature while features are chosen: it clips no row
PENALTY = 2.0  # factor of the penalty that balances bias and noise, see `penalty`
SMALLEST_PENALTY = 1e-8  # least penalty over the squared row norm
LOGIT_SPREAD = 3.0  # expected size of logits


@dataclass(frozen=True)
class TwoStagePlan:
    """Parameters of the estimator, None where the fit finds the number, and how the budget is divided.

    Attributes
    ----------
    shares : dict of str to float
        Of one search for a scale, the choice of the support, and the fit on it.
    """

    n_nonzero_coefs: int
    selection: str
    n_blocks: int | None
    row_norm: float | None
    alpha: float | None
    second_stage: str = "output"
    shares: Mapping[str, float] = field(default_factory=dict)


def two_stage(
    budget: BudgetSplit, records: PrivateRecords, loss: Loss, plan: TwoStagePlan, half_width: float | None = None
) -> tuple[np.ndarray, dict[str, object]]:
    """Choose the support, then fit on it.

    Parameters
    ----------
    budget : BudgetSplit
        All of it is used.
    half_width : float, default=None
        Of centred targets; None for classes.

    Returns
    -------
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
    attributes : dict
    """
    d, s = records.n_features, plan.n_nonzero_coefs
    scale, selection, of_fit = budget.split(**plan.shares)
    if half_width is None:
        half_width = 2 * LOGIT_SPREAD
    support, largest = np.arange(d), 0.0
    if s < d:
        support, largest = select_support((scale, selection), records, loss, s, plan)
    few = records.restricted(support)
    norm = plan.row_norm
    if norm is None:
        least = largest / typical_slope(loss, half_width)  # most rows may be 0 on the support
        norm = max(least, released_row_norm(scale, few, NORM_LEVEL))
    theta, attributes = fit_on_support(of_fit, few, loss, plan, norm, half_width)
    return spread_out(theta, support, records), attributes


def planned_stages(budget: BudgetSplit, records: PrivateRecords, loss: Loss, plan: TwoStagePlan) -> LinearDecision:
    """Divide the budget, and refuse what it cannot hold."""
    s = plan.n_nonzero_coefs
    chosen = s < records.n_features
    searches = int(plan.row_norm is None)
    searches += chosen and plan.selection == "gumbel"
    part = scale_share(budget, records.n_units, searches) / max(searches, 1)
    rest = 1.0 - part * searches
    ratio = AMP_SELECTION_SHARE if plan.second_stage == "amp" else SELECTION_SHARE
    selection = ratio * rest if chosen else 0.0
    entries = (s + 2) ** 2 if loss.is_quadratic else (s + 1) * loss.n_outputs
    shares = {"scale": part, "selection": selection, "fit": rest - selection}
    scale, of_selection, of_fit = budget.split(**shares)
    of_fit.require_feasible(entries, 1)
    second = "computed point" if plan.second_stage == "amp" else "minimiser"
    if loss.is_quadratic:
        second = "second moment"
    return LinearDecision(
        method=f"{plan.selection}, then {second}" if chosen else second,
        sizes=sizes_of(
            n_iter=1 + chosen,
            n_nonzero_coefs=s,
            n_parameters=records.n_parameters * loss.n_outputs,
            row_norm=plan.row_norm,
        ),
        steps=(
            *scale.step("scale", QUESTIONS * searches, searches),
            *of_selection.step("selection", None),
            *of_fit.step(second, None if loss.is_quadratic else 1),
        ),
        details=replace(plan, shares=shares),
    )


def fit_on_support(
    budget: BudgetSplit,
    records: PrivateRecords,
    loss: Loss,
    plan: TwoStagePlan,
    row_norm: float,
    half_width: float,
) -> tuple[np.ndarray, dict[str, object]]:
    """Run the second stage on restricted records with centred targets."""
    if loss.is_quadratic:
        rounds = RoundPlan.of(budget, records, row_norm=row_norm, alpha=plan.alpha)
        return adassp(budget, records, half_width, rounds)
    if plan.second_stage == "amp":
        theta, alpha = perturbed_minimum(budget, records, loss, row_norm=row_norm, alpha=plan.alpha)
        return theta, {"row_norm_": float(row_norm), "alpha_": float(alpha)}
    return output_perturbation(budget, records, loss, row_norm=row_norm, alpha=plan.alpha, spread=0.5 * half_width)


def spread_out(theta: np.ndarray, support: np.ndarray, records: PrivateRecords) -> np.ndarray:
    """Return all coefficients: the support's, and 0 for the others."""
    full = np.zeros((records.n_parameters, *theta.shape[1:]))
    full[support] = theta[: len(support)]
    full[records.n_features :] = theta[len(support) :]
    return full


def default_support(session: PrivacySession, records: PrivateRecords) -> int:
    """Default number of features, from public numbers: about as many as the budget can tell from noise."""
    d = records.n_features
    if session.exact:
        return d
    mu = accounting.gaussian_mu(session.epsilon, session.delta)
    return min(d, max(5, int(records.n_units * mu / UNITS_PER_FEATURE)))


def select_support(
    budgets: tuple[BudgetSplit, BudgetSplit], records: PrivateRecords, loss: Loss, s: int, plan: TwoStagePlan
) -> tuple[np.ndarray, float]:
    """Release s features by Gumbel noise on their votes or on their gradient scores.

    Parameters
    ----------
    budgets : tuple of BudgetSplit
        For the scale of the scores and for the choice.
    records : PrivateRecords
        With centred targets.

    Returns
    -------
    support : ndarray of int64, sorted
    largest : float
        A released number near the median sup norm of a row's gradient; 0 if it was not released.
    """
    scale, budget = budgets
    if plan.selection == "votes":
        scores = support_votes(
            records,
            loss,
            s,
            random_blocks(budget.session, records, plan.n_blocks),
            adjacency=budget.session.adjacency,
        )
        return np.sort(budget.session.gumbel_top_k(scores, s, budget.selection_epsilon(s))), 0.0
    start = np.zeros(records.n_parameters if loss.n_outputs == 1 else (records.n_parameters, loss.n_outputs))
    if records.shape.fit_intercept and loss.is_classification:
        prior, budget = budget.split(prior=PRIOR_SHARE, choice=1 - PRIOR_SHARE)
        start[-1] = released_prior(prior, records, loss, start)
    # The intercept's feature is made so small that no row is clipped for it.
    start[-1:] *= records.shape.intercept_value / NEGLIGIBLE if records.shape.fit_intercept else 1.0
    records = records.with_intercept(NEGLIGIBLE)
    count = partial(records.norm_count, loss=loss, theta=start, norm="max")
    largest = noisy_search(scale, count, doubt=AVERAGED)
    scores = gradient_scores(records, loss, start, CLIP_FACTOR * largest)
    return np.sort(budget.session.gumbel_top_k(scores, s, budget.selection_epsilon(s))), largest


def typical_slope(loss: Loss, half_width: float) -> float:
    """Typical size of a row's loss derivative at the start: the norm of its gradient over its own."""
    if loss.start_norm is not None:
        return float(loss.start_norm)
    # The median distance of normal targets whose 98 % quantile is the bound.
    size = 0.3 * half_width
    return min(size, float(loss.lipschitz))


def random_blocks(session: PrivacySession, records: PrivateRecords, n_blocks: int | None) -> Partition:
    """Draw the block of each unit."""
    if n_blocks is None:
        n_blocks = max(1, round(0.5 * math.sqrt(records.n_units)))
    return session.partition(records, int(n_blocks))


def output_perturbation(
    budget: BudgetSplit,
    records: PrivateRecords,
    loss: Loss,
    *,
    row_norm: float,
    alpha: float | None,
    spread: float,
) -> tuple[np.ndarray, dict[str, object]]:
    """Release the minimiser of the penalised convex loss with Gaussian noise.

    Parameters
    ----------
    loss : LogisticLoss, MultinomialLoss or HuberLoss
    alpha : float or None
        None finds it.
    spread : float
        Size that predictors are expected to have; public or released.

    Returns
    -------
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
    attributes : dict
        ``row_norm_`` and ``alpha_``.
    """
    records = records.with_intercept(INTERCEPT * row_norm)
    plan = budget.plan_gaussian(1, purpose="minimiser")
    if alpha is None:
        noise = plan.noise_multiplier / records.n_units
        alpha = penalty(loss, records.n_parameters, row_norm, spread, noise)
    minimizer = ridge_minimizer(records, loss, alpha=alpha, row_norm=row_norm, adjacency=budget.session.adjacency)
    theta = budget.session.gaussian(minimizer, plan)
    if records.shape.fit_intercept:
        theta[-1] *= records.shape.intercept_value
    return theta, {"row_norm_": float(row_norm), "alpha_": float(alpha)}


def penalty(loss: Loss, p: int, row_norm: float, spread: float, noise: float) -> float:
    """Weight of the penalty that balances bias and noise, from public numbers.

    Let h = smoothness R^2 / p be the curvature of a coordinate for rows of norm R. Noise of standard deviation
    sigma = 2 z L R / (n alpha) in p coordinates costs h p sigma^2 / 2; shrinking a theta whose predictors
    have size D costs alpha |theta|^2 / 2 with |theta|^2 = p (D / R)^2. The sum is least at
    alpha = R^2 (2 smoothness / p)^(1/3) (2 z L / (n D))^(2/3); `PENALTY` times that is measured.
    """
    size = (2 * loss.smoothness / p) ** (1 / 3) * (2 * noise * loss.lipschitz / spread) ** (2 / 3)
    return min(1e50, max(1e-50, row_norm**2 * max(SMALLEST_PENALTY, PENALTY * size)))
