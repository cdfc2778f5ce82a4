"""Which method a fit takes: a rule that reads public numbers only."""

import math
from dataclasses import dataclass

from skdp.privacy import PublicShape, accounting

__all__ = ["Choice", "choose", "only_a_constant", "only_frequencies", "relative_noise"]

# Largest `relative_noise` for which moments are released; see "Which method" in the user guide.
MOST = 3.0
# Features below which moments are released in any case: where they are hopeless, a constant does no harm.
NARROW = 100
# Features from which a dense table is taken for a signal, whose neighbours belong together.
WIDE = 256
# Units times mu, and more for each feature, below which a regression releases a constant. (It was chosen on inner
# splits of the training parts of the suite.)
FEW, EACH = 75.0, 1.0
HOPELESS = 0.1  # sqrt(d + 1) / (n mu) above which a classification releases only the frequencies of the classes


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
    mu = accounting.gaussian_mu(epsilon, delta)
    return float((shape.n_features + 1) ** 1.5 / (shape.n_units * mu))


def choose(solver: str, shape: PublicShape, epsilon: float, delta: float, n_nonzero_coefs: int | None) -> Choice:
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
        return Choice("lssgd", f"{told} is above {MOST:g}, and X is dense with {WIDE} features or more")
    return Choice("ight", f"{told} is above {MOST:g}: too many features for moments")


def only_a_constant(shape: PublicShape, epsilon: float, delta: float) -> bool:
    """Whether so few records leave a regression with an intercept a constant only; public numbers decide."""
    return shape.n_units * accounting.gaussian_mu(epsilon, delta) < FEW + EACH * shape.n_features


def only_frequencies(shape: PublicShape, epsilon: float, delta: float) -> bool:
    """Whether so few records leave a classification the frequencies only; public numbers decide."""
    return math.sqrt(shape.n_features + 1) > HOPELESS * shape.n_units * accounting.gaussian_mu(epsilon, delta)
