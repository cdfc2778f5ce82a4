"""Releases with discrete Laplace noise."""

from dataclasses import dataclass

from skdp.privacy.accounting.pure import PureRelease


@dataclass(frozen=True, kw_only=True)
class Laplace(PureRelease):
    """Discrete Laplace noise.

    Privacy
    -------
    On integers of l1 sensitivity L, noise of scale L/epsilon changes no probability by more than a factor
    exp(epsilon) (Ghosh, Roughgarden and Sundararajan 2009).
    """

    name = "laplace"
    noise = "discrete Laplace on the grid"
    sensitivity_of = "the released numbers (l1 norm)"


RELEASE = Laplace
