"""The numbers of an algorithm by gradient steps, as its estimator gives them."""

from dataclasses import dataclass

RELEASED = "released"  # stands in a plan for a number that follows from releases

__all__ = ["RELEASED", "BatchSettings", "StepSettings", "number_or_released"]


@dataclass(frozen=True)
class StepSettings:
    """Parameters of the estimator; None where the fit finds the number."""

    max_iter: int | None
    learning_rate: float | None
    clip_norm: float | None


@dataclass(frozen=True)
class BatchSettings(StepSettings):
    """The same, and the expected number of units of a batch and how it is drawn, in the ledger's words."""

    batch_size: int | None
    sampling: str


def number_or_released(value: float | None) -> float | str:
    """A public number as a plan shows it; None is found by the fit."""
    return RELEASED if value is None else value
