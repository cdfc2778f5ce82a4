"""The numbers of an algorithm by gradient steps, as its estimator gives them."""

from dataclasses import dataclass

__all__ = ["BatchSettings", "StepSettings"]


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
