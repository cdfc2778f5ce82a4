"""The cost of objective perturbation: the release of argmin F + <b, theta> with Gaussian b.

F(theta) = sum_i l(<x_i, theta>, y_i) + (penalty / 2) ||theta||^2 with ||x_i|| <= R, every coordinate penalised,
and b ~ N(0, sigma^2 I).

Privacy
-------
The map from b to the minimiser is a bijection, so the density of the minimiser on two neighbouring data sets is
explicit, and with it the privacy loss Z. The theory page "Approximate minima perturbation" proves the statements
below.
With c = max |l'|, f = 2 for replace-one and 1 otherwise, s = f c R / sigma, and delta_G(epsilon, s) the exact
curve of s-GDP:

* plain. The determinants differ by at most D = log(1 + R^2 max l'' / penalty), so that
  delta(epsilon) <= m delta_G(epsilon - D, s), if (epsilon - D) / s - s / 2 >= t.
* joint, for a loss with l'' <= ratio (c - |l'|). Where the gradient is largest the curvature vanishes. With
  k = ratio c R^2 / penalty <= epsilon: delta(epsilon) <= m delta_G(epsilon, s) (zero-out, add-remove) and
  delta(epsilon) <= m (delta_G(epsilon, s) + delta_G(epsilon - k, s / 2)) (replace-one), if
  epsilon / s - s / 2 >= t.

m = 1 and t = 1 (replace-one) or 0 for a loss whose derivative keeps its sign, such as the logistic one; m = 2
and t = sqrt 3 or 0 otherwise. m and t come from the bounds P(a_+ + b_+ > 2 u) <= Q(u) for u >= 1 and
P(|a| + |b| > 2 u) <= 2 Q(u) for u >= sqrt 3, for standard normal a, b of any correlation.
"""

import math
from dataclasses import dataclass

from skdp.losses import Loss, is_shipped
from skdp.privacy.accounting.gaussian import gaussian_delta
from skdp.privacy.accounting.releases import Release
from skdp.privacy.adjacency import factor

# Calibration takes a little less than delta, so that the recheck, by other code, agrees.
_DELTA_DOWN = 1.0 - 1e-9


@dataclass(frozen=True)
class ObjectiveTerms:
    """The public constants of one objective.

    Attributes
    ----------
    sensitivity : float
        f c R: the largest change of F's gradient by a neighbour.
    curvature : float
        R^2 max l'' / penalty.
    trade : float
        k = ratio c R^2 / penalty, inf for a loss without a ratio.
    one_signed : bool
        Whether l' keeps its sign.
    replaced : bool
        Whether neighbours differ by a replaced record (two rank-one terms) or by one that is absent.
    """

    sensitivity: float
    curvature: float
    trade: float
    one_signed: bool
    replaced: bool


def objective_terms(loss: Loss, radius: float, penalty: float, adjacency: str) -> ObjectiveTerms:
    """Make the constants for a loss of `skdp.losses`.

    Parameters
    ----------
    loss : LogisticLoss or HuberLoss
    radius : float
        R, bound on the norm of a row, the intercept's feature included.
    penalty : float
        Weight of ||theta||^2 / 2 beside the **sum** of the losses.
    adjacency : {"replace-one", "zero-out", "add-remove"}

    Raises
    ------
    ValueError
        For a loss with unbounded gradients or with several outputs, whose Hessian has a higher rank.
    """
    proven = is_shipped(loss) and loss.n_outputs == 1 and math.isfinite(loss.lipschitz)
    if proven and loss.is_classification:  # |l'| = q, l'' = q (1 - q)
        steepness, ratio, one_signed = 1.0, 1.0, True
    elif proven:
        steepness, ratio, one_signed = float(loss.lipschitz), math.inf, False
    else:
        raise ValueError(
            f"objective perturbation is not proven for the {loss.name} loss: it needs bounded gradients "
            "and Hessians of rank one; use the logistic or the Huber loss"
        )
    return ObjectiveTerms(
        sensitivity=factor(adjacency) * steepness * radius,
        curvature=loss.smoothness * radius**2 / penalty,
        trade=ratio * steepness * radius**2 / penalty,
        one_signed=one_signed,
        replaced=adjacency == "replace-one",
    )


def objective_delta(epsilon: float, noise_std: float, terms: ObjectiveTerms) -> float:
    """Smallest proven delta at ``epsilon``; 1 where nothing is proven.

    Parameters
    ----------
    epsilon : float > 0
    noise_std : float > 0
        Standard deviation of an entry of b.
    terms : ObjectiveTerms

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.privacy.mechanisms.objective_perturbation.cost import objective_delta, objective_terms
    >>> terms = objective_terms(LogisticLoss(), radius=1.0, penalty=5.0, adjacency="replace-one")
    >>> objective_delta(1.0, 2 * 3.7307, terms) < 1.1e-5
    True
    """
    s = terms.sensitivity / noise_std
    many = 1.0 if terms.one_signed else 2.0
    start = (1.0 if terms.one_signed else math.sqrt(3.0)) if terms.replaced else 0.0

    def curve(left: float, size: float, start: float) -> float:
        if left <= 0 or left / size - size / 2 < start:
            return 1.0
        return many * gaussian_delta(size, left)

    plain = curve(epsilon - math.log1p(terms.curvature), s, start)
    joint = 1.0
    if epsilon >= terms.trade:
        joint = curve(epsilon, s, start)
        if terms.replaced:
            joint += curve(epsilon - terms.trade, s / 2, 0.0)
    return min(1.0, plain, joint)


def objective_noise(epsilon: float, delta: float, terms: ObjectiveTerms) -> float:
    """Smallest standard deviation of b for which (epsilon, delta) is proven; inf if none is.

    Examples
    --------
    >>> from skdp.losses import LogisticLoss
    >>> from skdp.privacy.mechanisms.objective_perturbation.cost import objective_noise, objective_terms
    >>> terms = objective_terms(LogisticLoss(), radius=1.0, penalty=5.0, adjacency="replace-one")
    >>> round(objective_noise(1.0, 1e-5, terms), 2)
    7.46
    """
    goal = delta * _DELTA_DOWN
    low, high = terms.sensitivity * 2.0**-20, terms.sensitivity * 2.0**40
    if not objective_delta(epsilon, high, terms) <= goal:
        return math.inf
    while high > low * (1 + 1e-12):
        middle = math.sqrt(low * high)
        if not low < middle < high:
            break
        if objective_delta(epsilon, middle, terms) <= goal:
            high = middle
        else:
            low = middle
    return high


@dataclass(frozen=True, kw_only=True)
class ObjectivePerturbation(Release):
    """The minimiser of an objective with a random linear term, (``epsilon``, ``delta``)-DP.

    Privacy
    -------
    The theorem and its constants stand at the top of this file. They give one point of a curve and no mu, so the
    release is added to the others by basic composition (Dwork et al. 2006).
    """

    name = "objective_perturbation"
    noise = "Gaussian linear term, grid"
    sensitivity_of = "the gradient of the loss (l2 norm)"

    epsilon: float
    delta: float | None = None
    noise_std: float | None = None
    penalty: float | None = None
    curvature: float | None = None
    trade: float | None = None
    one_signed: bool | None = None
    replaced: bool | None = None

    def mu(self) -> float:
        return 0.0 if self.count == 0 else super().mu()


RELEASE = ObjectivePerturbation
