"""What fits of linear models decide before their first release: the method's decision, and how a fit closes."""

from collections.abc import Callable
from dataclasses import dataclass

from skdp.base.budget import BudgetSplit
from skdp.base.plan import Decision
from skdp.fitting.quantiles import TargetRange
from skdp.fitting.recalibrate import Recalibration
from skdp.fitting.targets import Problem
from skdp.fitting.utility import Release

__all__ = ["LinearDecision", "Method", "TargetShares", "sizes_of"]

RELEASED = "released"  # stands for a number that follows from releases


@dataclass(frozen=True)
class TargetShares:
    """Shares of mu^2 for the range of the targets, the calibration and the mean residual; see `TargetUnits`.

    Attributes
    ----------
    given : TargetRange or None
        The public range of the targets, which takes no share.
    constant : bool
        Whether all coefficients become 0.
    """

    range: float
    calibration: float
    mean: float
    constant: bool = False
    given: TargetRange | None = None

    @property
    def rest(self) -> float:
        """The method's own share."""
        return 1.0 - self.range - self.calibration - self.mean


@dataclass(frozen=True)
class LinearDecision(Decision):
    """The decision of a linear model.

    Attributes
    ----------
    release : {"gradient", "second moments", ""}
        What holds all coefficients in one release, for the warnings.
    thresholds : str
        Row of the table of thresholds.
    constant : bool
        Whether only a constant is released, because the units are few.
    calibrated : bool
        Whether the coefficients of a regression are calibrated, where there are more units than for a constant.
    recalibration : Recalibration or None
        Of a classifier's scores, with a part of the budget.
    targets : TargetShares or None
        Of a regression in units of its targets.
    """

    release: Release = ""
    thresholds: str = ""
    constant: bool = False
    calibrated: bool = False
    recalibration: Recalibration | None = None
    targets: TargetShares | None = None


Method = Callable[[BudgetSplit, Problem], LinearDecision]


def sizes_of(**numbers: object) -> dict[str, object]:
    """Sizes of a decision; None stands for a number that the fit releases on the way."""
    return {name: RELEASED if value is None else value for name, value in numbers.items()}
