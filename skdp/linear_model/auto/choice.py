"""Which method a fit takes: a rule that reads public numbers only."""

import math
from dataclasses import dataclass

from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.privacy import PublicShape, accounting

CLOSE = (
    0.25  # relative noise below which a fit was close to the one without privacy, measured (docs/guide/linear.rst)
)


@dataclass(frozen=True)
class MethodChoice:
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


def outlook(shape: PublicShape, epsilon: float, delta: float) -> str:
    """What to expect of a fit of moments whose noise can be seen, for its printed plan; else nothing."""
    noise = relative_noise(shape, epsilon, delta) if math.isfinite(epsilon) else 0.0
    if noise < CLOSE:
        return ""
    return (
        f"ratio {noise:.2g}; below {CLOSE:g} a fit is close to the one without privacy, above 1 most of it is "
        "noise (guide page 'Linear and logistic regression')"
    )


def choose(
    solver: str, shape: PublicShape, epsilon: float, delta: float, n_nonzero_coefs: int | None
) -> MethodChoice:
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
        return MethodChoice(solver, "it was asked for")
    noise = relative_noise(shape, epsilon, delta) if math.isfinite(epsilon) else 0.0
    defaults = DEFAULTS.choice
    told = f"(d + 1)^1.5 / (n mu) = {noise:.2g}"
    if shape.device != "cpu":
        return MethodChoice("ight", "X lies on a device")
    if shape.container == "csr" and shape.n_features >= defaults.narrow_features:
        return MethodChoice("ight", f"X is sparse with {defaults.narrow_features} features or more")
    if noise <= defaults.max_relative_noise:
        return MethodChoice(
            "moments", f"{told} is at most {defaults.max_relative_noise:g}: moments are known well enough"
        )
    if shape.n_features < defaults.narrow_features:
        return MethodChoice("moments", f"X has fewer than {defaults.narrow_features} features")
    sparse = n_nonzero_coefs is not None and n_nonzero_coefs < shape.n_features
    if not sparse and shape.container == "dense" and shape.n_features >= defaults.wide_features:
        dense = f"X is dense with {defaults.wide_features} features or more"
        return MethodChoice("lssgd", f"{told} is above {defaults.max_relative_noise:g}, and {dense}")
    return MethodChoice("ight", f"{told} is above {defaults.max_relative_noise:g}: too many features for moments")


def only_a_constant(shape: PublicShape, epsilon: float, delta: float) -> bool:
    """Whether so few records leave a regression with an intercept a constant only; public numbers decide."""
    defaults = DEFAULTS.choice
    least = defaults.min_effective_n + defaults.min_effective_n_per_feature * shape.n_features
    return shape.n_units * accounting.gaussian_mu(epsilon, delta) < least


def only_frequencies(shape: PublicShape, epsilon: float, delta: float) -> bool:
    """Whether so few records leave a classification the frequencies only; public numbers decide."""
    mu = accounting.gaussian_mu(epsilon, delta)
    return math.sqrt(shape.n_features + 1) > DEFAULTS.choice.max_class_noise * shape.n_units * mu
