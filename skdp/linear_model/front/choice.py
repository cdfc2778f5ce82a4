"""Which method a fit takes: a rule that reads public numbers only."""

import math
from dataclasses import dataclass

from skdp.linear_model.front.shares import gaussian_mu
from skdp.privacy import PublicShape

__all__ = ["Choice", "choose", "is_doubtful", "relative_noise"]

# Largest `relative_noise` for which moments are released; see "Which method" in the user guide.
MOST = 3.0
# Features below which moments are released in any case: where they are hopeless, a constant does no harm.
NARROW = 100
# Features from which a dense table is taken for a signal, whose neighbours belong together.
WIDE = 256
# Where models of moments are often not much better than a constant, or worse:
NOISY = 2.0  # `relative_noise` of a classification
UNITS_PER_CLASS = 25.0  # units times mu, for each class
FEW = 0.0035  # (d + 1) / (n mu)^1.5 of a regression


@dataclass(frozen=True)
class Choice:
    """The method of a fit.

    Attributes
    ----------
    solver : {"moments", "ight", "lssgd"}
    reason : str
        For the report.
    """

    solver: str
    reason: str


def relative_noise(shape: PublicShape, epsilon: float, delta: float) -> float:
    """Size of the noise of a released Gram matrix against its eigenvalues: ``(d + 1)^1.5 / (n mu)``."""
    mu = gaussian_mu(epsilon, delta)
    return float((shape.n_features + 1) ** 1.5 / (shape.n_units * mu))


def choose(
    solver: str, shape: PublicShape, epsilon: float, delta: float, n_nonzero_coefs: int | None
) -> Choice:
    """Choose the method of a fit.

    Parameters
    ----------
    solver : {"auto", "moments", "ight", "lssgd"}
        Anything but "auto" is taken as it is.
    shape : PublicShape
    epsilon, delta : float
    n_nonzero_coefs : int or None

    Returns
    -------
    Choice
    """
    if solver != "auto":
        return Choice(solver, "it was asked for")
    noise = relative_noise(shape, epsilon, delta) if math.isfinite(epsilon) else 0.0
    told = f"(d + 1)^1.5 / (n mu) = {noise:.2g}"
    if shape.device != "cpu":
        return Choice("ight", "X lies on a device")
    if shape.container == "csr" and shape.n_features >= NARROW:
        return Choice("ight", f"X is sparse with {NARROW} features or more")
    if noise <= MOST:
        return Choice("moments", f"{told} is at most {MOST:g}: moments are known well enough")
    if shape.n_features < NARROW:
        return Choice("moments", f"X has fewer than {NARROW} features")
    sparse = n_nonzero_coefs is not None and n_nonzero_coefs < shape.n_features
    if not sparse and shape.container == "dense" and shape.n_features >= WIDE:
        return Choice(
            "lssgd", f"{told} is above {MOST:g}, and X is dense with {WIDE} features or more"
        )
    return Choice("ight", f"{told} is above {MOST:g}: too many features for moments")


def is_doubtful(shape: PublicShape, epsilon: float, delta: float, n_classes: int) -> bool:
    """Whether a model of moments may be no better than a constant; ``n_classes`` is 0 for a regression."""
    mass = shape.n_units * gaussian_mu(epsilon, delta)
    if n_classes:
        return relative_noise(shape, epsilon, delta) > NOISY or mass < UNITS_PER_CLASS * n_classes
    return shape.n_features + 1 > FEW * mass**1.5
