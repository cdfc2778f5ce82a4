"""Output perturbation: owners minimise their own objectives, and only the noisy average of minimisers is opened.

Theorem 6.3.1 of Wang (2021), with the solver's gap in the sensitivity and the noise of the right norm.

Ridge regression
----------------
The squared loss has no bounded gradient. But a ridge objective has the same minimiser as a Huber objective, and
this has a bounded sensitivity. Let targets lie in [-Y, Y] and rows, with the intercept's constant, have norm at
most R~. Let theta* minimise F(theta) = mean_i (z_i - y_i)^2 / 2 + alpha/2 ||theta||^2, z_i = <x~_i, theta>.

1. The gradient at theta* is 0, so its product with theta* is: mean_i z_i^2 + alpha ||theta*||^2 = mean_i y_i z_i.
   With s^2 = mean_i z_i^2 the right-hand side is at most Y s (Cauchy and Schwarz). Hence alpha ||theta*||^2 <= Y
   s - s^2 <= Y^2 / 4, that is ||theta*|| <= Y / (2 sqrt(alpha)).
2. By step 1, |z_i - y_i| <= c at theta*, with c = Y + R~ Y / (2 sqrt(alpha)).
3. The Huber loss with threshold c has the derivative z - y wherever |z - y| <= c. At theta* the Huber objective
   and F therefore have the same gradient, which is 0. Both are strongly convex: theta* is the only minimiser of
   both.

The Huber loss has Lipschitz constant c, so G = c R~.
"""

import math

import numpy as np
from numpy.typing import NDArray

from skdp.losses import HuberLoss, Loss
from skdp.multiparty.owners import Owners
from skdp.multiparty.release import make_release
from skdp.privacy import PrivacySession


def average_of_minimizers(
    session: PrivacySession, owners: Owners, loss: Loss, *, alpha: float, noise: str, engine: object = None
) -> NDArray[np.float64]:
    """Release the weighted average of the owners' own minimisers.

    Parameters
    ----------
    session : PrivacySession
    owners : Owners
    loss : object from `skdp.losses`
        Logistic, multinomial or Huber; for the squared loss give `ridge_loss`.
    alpha : float
        Weight of the penalty ``alpha / 2 * ||theta||^2`` of every owner's objective, > 0.
    noise : {"gaussian", "laplace"}
    engine : engine, default=None
        None: the session draws the noise in this process.

    Returns
    -------
    ndarray of shape (n_parameters,) or (n_parameters, n_classes)

    Notes
    -----
    **Privacy.** Replacing a unit of owner j moves its minimiser by at most ``2 G / (n_j alpha) + 2 tau_j /
    alpha`` in l2 norm, tau_j the gap of the solver (proof: `skdp.privacy.statistics.minimizer`). The average
    moves by 1/m, or n_j / n, of that, and one owner changes at a time: the largest over the owners counts.
    Minimisers are rounded to the grid as a whole, which is added. Laplace noise needs the l1 norm,
    sqrt(n_parameters) times larger; Theorem 6.3.1 as published takes the l2 norm for it.
    """
    release = make_release(session, noise=noise, releases=1, engine=engine)
    return release(owners.minimizer(loss, alpha=alpha, adjacency=session.adjacency))


def ridge_loss(alpha: float, radius: float) -> HuberLoss:
    """The Huber loss with the minimiser of ridge regression, for targets in [-1, 1]: see the module's text.

    Parameters
    ----------
    alpha : float
        Weight of the penalty, > 0.
    radius : float
        R~, the largest norm of a row with the intercept's constant.
    """
    return HuberLoss((1.0 + 0.5 * radius / math.sqrt(alpha)) * (1.0 + 2.0**-40))
