"""Plans of the numeric sparse vector technique: the cost of a run, and the split of its budget.

Privacy
-------
One round. Let D be the integer sup-norm sensitivity and t, q and v the scales of the noise of the threshold, of
the queries and of a released value. Fix the scan order. A round answers "below" until the first "above"; take its
outcome "the first k - 1 are below, the k-th is above". For a neighbour, move the threshold's noise up by D, which
costs exp(D/t): every "below" stays one. The k-th query may have dropped by D while the threshold rose by D; moving
its noise by 2 D costs exp(2 D/q). The queries before it cost nothing, however many there are, so the round is
eps0-DP with ``eps0 = D/t + 2 D/q``. A round that reaches the end costs D/t only and is charged the same. The
released value costs ``eps0' = D/v``. Since ``||u'_i| - |u_i|| <= D``, the same holds for absolute values.

A run is ``n_hits`` adaptive rounds of each, whether or not it halts; a plan is K = runs n_hits. With delta = 0 the
epsilons add up. With delta > 0 the plan takes ``pure_mu(eps0, K)^2 + pure_mu(eps0', K)^2`` of the session's mu^2.
This is valid also if other releases and plans come between. Every step is dominated by a fixed pair (randomised
response or Gaussian), and products of pairs do not depend on their order. A new plan replaces a part of the
remaining Gaussian pair by randomised responses that this part dominates. By induction over the steps nothing
exceeds the Gaussian pair of the whole budget. A round is charged as randomised response, the bound of pure
eps0-DP. No smaller bound is proven here for queries that do not all move in one direction.

A sampled run. Let a run be e-DP under replace-one, e = n_hits (eps0 + eps0'). On a fresh subset of b of n records,
uniform, secret and independent of the data, it is ``log(1 + q (e^e - 1))``-DP with q = b/n; on one uniformly drawn
group of m, with groups as the unit, the same with q = 1/m (Balle, Barthe and Gaboardi 2018). The proof replaces
one sampled record by another, so the e-DP must hold for replace-one: zero-out and add-remove are refused.

Notes
-----
Zhang, Mironov and Hejazinia (2021) propose the split ``"published"``. Half of eps0 goes to the threshold (q = 2
t), and eps0/eps0' = 76. Their ``t = D k/(.95 eps)`` and ``v = 2 D k/(.05 eps)`` come to this.

The split ``"optimal"`` gives a third of eps0 to the threshold, so that t = q = 3 D/eps0. The noise of a comparison
then has a smaller variance and a smaller tail than with a half. The ratio r = eps0/eps0' minimises the larger
risk of a coordinate at the edge. If the coordinate is not found it costs its square, about T^2. T = q log d is
the height below which d queries of value 0 stay. If it is found it costs the noise of its value, 2 v^2.
Together this is T^2 + 2 v^2 = D^2 ((3 log d)^2 / eps0^2 + 2 / eps0'^2). At a given eps0^2 + eps0'^2, which is
mu^2 for small epsilon, it is least at ``r = ((3 log d)^2 / 2)^(1/4)``. At a given eps0 + eps0' it is least at
``r = ((3 log d)^2 / 2)^(1/3)``. These are 5.4 and 9.4 for d = 1e6, and 4.4 and 7.2 for d = 1e4.

References
----------
C. Dwork and A. Roth (2014), Theorems 3.23-3.25; H. Zhang, I. Mironov and M. Hejazinia (2021), Algorithm 1;
B. Balle, G. Barthe and M. Gaboardi, "Privacy amplification by subsampling" (NeurIPS 2018), Theorem 9.
"""

import math
from dataclasses import dataclass

from skdp.privacy import accounting
from skdp.privacy.accounting.pure import PureRelease

PUBLISHED_RATIO = 2 * 0.95 / (0.05 / 2)  # eps0 / eps0' of Zhang, Mironov and Hejazinia (2021)
# Share of eps0 that goes to the noise of the threshold.
_THRESHOLD_PART = {"published": 1 / 2, "optimal": 1 / 3}
_TYPICAL_SIZE = 2**17  # entries that a run scans by default; a choice, not tuned


@dataclass(frozen=True)
class NumericSparsePlan:
    """A fixed number of numeric-sparse runs with one noise; made by a session only.

    Attributes
    ----------
    runs : int
    n_hits : int
        The scan of a run stops at this many released values.
    epsilon_query : float
        Cost of finding one of them (threshold and comparison together); inf without privacy.
    epsilon_value : float
        Cost of its released value.
    threshold_part : float
        Share of ``epsilon_query`` that is spent on the threshold's noise.
    epsilon_run : float
        Cost of a run as a pure mechanism, amplified by sampling if there is a ``rate``.
    share : float
        Share of the session's budget.
    rate : float or None
        Sampling rate of the fresh uniform batch of each run.
    purpose : str
    parts : int
        Number of disjoint parts of the records, each of which may take ``runs`` runs.
    """

    runs: int
    n_hits: int
    epsilon_query: float
    epsilon_value: float
    threshold_part: float
    epsilon_run: float
    share: float
    rate: float | None = None
    purpose: str = "steps"
    parts: int = 1


def ratio(split: str, linear: bool, size: int | None) -> float:
    """eps0 / eps0' of a split; ``linear`` if epsilons add up and not their squares."""
    if split == "published":
        return PUBLISHED_RATIO
    edge = math.log(max(_TYPICAL_SIZE if size is None else size, 2)) / _THRESHOLD_PART["optimal"]
    return (edge * edge / 2) ** (1 / 3 if linear else 1 / 4)


def run_epsilon(n_hits: int, query: float, value: float, rate: float | None) -> float:
    """Cost of one run as a pure mechanism, rounded up."""
    total = n_hits * (query + value) * (1 + 2.0**-50)
    return total if rate is None else accounting.amplified_epsilon(total, rate)


def calibrate(
    split: str, n_hits: int, size: int | None, rate: float | None,
    *, mu2: float | None, epsilon: float, runs: int,
) -> tuple[float, float, float]:  # fmt: skip
    """(eps0, eps0', part of the threshold) of runs that may cost ``mu2``, or ``epsilon`` each if that is None."""
    linear = mu2 is None or rate is not None
    r = ratio(split, linear, size)
    if mu2 is not None and rate is None:
        value = _smaller_epsilon(r, mu2, runs * n_hits)
    else:
        whole = epsilon if mu2 is None else accounting.pure_epsilon(math.sqrt(mu2), runs)
        if rate is not None:
            whole = accounting.unamplified_epsilon(whole, rate)
        value = whole / (n_hits * (1 + r)) * (1 - 2.0**-40)
    return r * value, value, _THRESHOLD_PART[split]


def _smaller_epsilon(r: float, mu2: float, count: int) -> float:
    """The largest e of which ``count``, with as many r e, cost at most mu2; by bisection, rounded down."""

    def cost(e: float) -> float:
        return accounting.pure_mu(r * e, count) ** 2 + accounting.pure_mu(e, count) ** 2

    low, high = 0.0, accounting.pure_epsilon(math.sqrt(mu2), count) / r * (1 + 1e-9)
    while high - low > 1e-12 * high:
        middle = 0.5 * (low + high)
        low, high = (middle, high) if cost(middle) <= mu2 else (low, middle)
    return low


@dataclass(frozen=True, kw_only=True)
class AboveThreshold(PureRelease):
    """One round of the sparse vector technique, up to its first answer "above".

    Privacy
    -------
    With sup-norm sensitivity D a round costs D / threshold scale + 2 D / query scale, whatever the number of
    queries (Dwork and Roth 2014, theorem 3.23; Lyu, Su and Li 2017). This module's docstring has the proof.
    """

    name = "above_threshold"
    noise = "discrete Laplace of a sparse vector, grid"
    sensitivity_of = "each answer"

    largest_keys = (*PureRelease.largest_keys, "threshold_scale", "query_scale")

    threshold_scale: float | None = None
    query_scale: float | None = None


RELEASE = AboveThreshold
