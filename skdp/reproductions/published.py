"""The noise of Table 6.1 of Wang (2021), as published, and the noise that has a proof.

The table compares six methods by the noise of the averaged model or gradient. Every one of its six scales is
reproduced by `published_scale`. Three of its constants do not have the privacy that the table gives them:

* **Laplace in d coordinates.** The three scales of output perturbation are 2G/(n_(1) alpha) over m, sqrt(m) or 1,
  and over epsilon. That numerator is the change by a record in l2 norm. Independent Laplace noise needs the l1
  norm, which can be sqrt(d) times larger (Theorem 6.3.1 holds for noise of a uniform direction instead).
* **Pathak et al.** divide nothing by m, although one record moves one owner's share of the average only, and their
  noise costs sqrt(d)/m times epsilon: less than published from m = sqrt(d) owners on, more below.
* **Gaussian rows.** The table's sqrt(2 T) G/(m n_(1) epsilon) is sqrt(4 log(1/delta)) times below the theorem of
  the same paper (6.3.1). It is calibrated to rho-zCDP with rho = epsilon^2: `true_epsilon` computes its epsilon.

`valid_std` has the standard deviation of the same rule with a proof.
"""

import math
from dataclasses import dataclass

from skdp.losses import LogisticLoss
from skdp.privacy import PrivacySession, accounting

__all__ = ["METHODS", "Setting", "published_scale", "published_std", "true_epsilon", "valid_std"]

OBJECTIVE_SHARE = 1 - 2.0**-20  # share of a session's budget that pays for the objective's noise

# Law of the noise, and its name in the table, in the table's order.
METHODS = {
    "Pathak": "laplace",
    "Local Out P": "laplace",
    "Local Obj P": "laplace",
    "Local Grad P": "gaussian",
    "MPC Out P": "laplace",
    "MPC Grad P": "gaussian",
}


@dataclass(frozen=True)
class Setting:
    """The public numbers that the noise depends on; the defaults are from Table 6.1.

    Attributes
    ----------
    n_owners, smallest : int
        Number m of owners, and n_(1), the number of records of the smallest one.
    alpha : float
        Strong convexity of the objective.
    epsilon, delta : float
        The budget. The table has no delta; the experiments of the paper have 0.001.
    max_iter : int
        Number T of rounds of the gradient methods.
    lipschitz : float
        Largest l2 norm G of the gradient of one record's loss.
    """

    n_owners: int = 100
    smallest: int = 500
    alpha: float = 0.01
    epsilon: float = 0.5
    delta: float = 1e-3
    max_iter: int = 100
    lipschitz: float = 1.0

    @property
    def of_owner(self) -> float:
        """Largest change of an owner's mean gradient by a replaced record: 2G / n_(1)."""
        return 2.0 * self.lipschitz / self.smallest


def published_scale(method: str, setting: Setting) -> float:
    """The input of the noise generator in Table 6.1: scale of Laplace, standard deviation of Gaussian noise.

    Parameters
    ----------
    method : one of `METHODS`
    setting : Setting

    Examples
    --------
    >>> from skdp.reproductions.published import METHODS, Setting, published_scale
    >>> [f"{1000 * published_scale(method, Setting()):.3g}" for method in METHODS]
    ['800', '80', '8', '5.66', '8', '0.566']
    """
    m, moved, epsilon = setting.n_owners, setting.of_owner, setting.epsilon
    rounds = moved * math.sqrt(setting.max_iter / 2)
    return {
        "Pathak": moved / setting.alpha,
        "Local Out P": moved / setting.alpha / math.sqrt(m),
        "Local Obj P": moved,
        "Local Grad P": rounds / math.sqrt(m),
        "MPC Out P": moved / setting.alpha / m,
        "MPC Grad P": rounds / m,
    }[method] / epsilon


def published_std(method: str, setting: Setting) -> float:
    """Standard deviation of one entry of the published noise: sqrt(2) times the scale for Laplace."""
    widening = math.sqrt(2.0) if METHODS[method] == "laplace" else 1.0
    return widening * published_scale(method, setting)


def true_epsilon(method: str, setting: Setting, n_features: int) -> float:
    """The epsilon that the published noise has by a valid proof.

    Parameters
    ----------
    method : one of `METHODS`
    setting : Setting
    n_features : int
        Number d of coordinates that are released.

    Returns
    -------
    float
        Pure for Laplace noise, at the setting's delta for Gaussian noise.

    Notes
    -----
    **Privacy.** A record is with one owner. Replacing it moves that owner's minimiser by at most s = 2G/(n_(1)
    alpha) in l2 norm, so by sqrt(d) s in l1 norm. The published scales of an owner alone, of the average and
    of Pathak et al. are s/epsilon, s/(m epsilon) and s/epsilon for a movement of s, s/m and s/m. In the
    objective a record moves the linear term by 2G/n_(1), and the determinant of the Hessian by the factor 1 +
    1/(4 n_(1) alpha) at most for the logistic loss with rows in the unit ball. T Gaussian releases whose
    sensitivity is sqrt(2) epsilon / sqrt(T) of their standard deviation are mu-GDP with mu = sqrt(2) epsilon
    (Dong, Roth & Su 2022).
    """
    wide = math.sqrt(n_features) * setting.epsilon
    if METHODS[method] == "gaussian":
        return accounting.gaussian_epsilon(math.sqrt(2.0) * setting.epsilon, setting.delta)
    if method == "Pathak":
        return wide / setting.n_owners
    if method == "Local Obj P":
        curvature = LogisticLoss().smoothness * setting.lipschitz**2
        return wide + math.log1p(curvature / (setting.smallest * setting.alpha))
    return wide


def valid_std(method: str, setting: Setting, *, n_features: int, noise: str = "gaussian") -> float:
    """Standard deviation of one entry by the same rule with a proof, for the average in the table.

    Parameters
    ----------
    method : one of `METHODS`
    setting : Setting
    n_features : int
        Enters Laplace noise only.
    noise : {"gaussian", "laplace"}, default="gaussian"
        Laplace noise is pure: its delta is 0. It is not offered for the gradients and the objective here. Pathak
        et al. have Laplace noise alone: the corrected version, without a division by m.

    Notes
    -----
    **Privacy.** As in `true_epsilon`; Gaussian noise has the exact multiplier of Balle & Wang (2018) for 1
    release, or for T. An average of m owners' own noise has 1/sqrt(m) of its standard deviation. The gap of the
    solver and the rounding to a grid, which the estimators add, are below 1e-5 of it.
    """
    m, moved = setting.n_owners, setting.of_owner
    if method == "Local Obj P":
        with PrivacySession(
            epsilon=setting.epsilon, delta=setting.delta, accountant=False, set_aside=OBJECTIVE_SHARE
        ) as session:
            linear = session.objective_noise_std(
                LogisticLoss(), radius=setting.lipschitz, penalty=setting.smallest * setting.alpha
            )
        return linear / setting.smallest
    owners = {"Pathak": 1.0, "Local Out P": math.sqrt(m), "Local Grad P": math.sqrt(m)}
    moved /= owners.get(method, float(m))
    if METHODS[method] == "gaussian":
        return moved * accounting.noise_multiplier(setting.epsilon, setting.delta, releases=setting.max_iter)
    moved /= setting.alpha
    if noise == "laplace" or method == "Pathak":
        return moved * math.sqrt(2.0 * n_features) / setting.epsilon
    return moved * accounting.noise_multiplier(setting.epsilon, setting.delta)
