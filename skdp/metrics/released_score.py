"""A released score: a number, an interval for its noise, and an interval for the population."""

from dataclasses import dataclass

from skdp.metrics.inversion import CONFIDENCE, Estimate
from skdp.privacy import PrivacyReport
from skdp.statistics.released import Released


@dataclass(frozen=True, repr=False)
class ReleasedScore(Released):
    """A released score of a model.

    Attributes
    ----------
    value : float
        The score of the evaluated records, with noise. It is held in the score's range.
    noise_std : float
        Standard deviation of the noise in ``value``, a public number. Of a quotient of noisy numbers: the longer
        side of ``noise_interval``, over 1.96; where that is the whole range of the score, at least as much.
    privacy_ : PrivacyReport
        The report of the release: the same for all scores of one evaluation.
    noise_interval : (float, float) or None
        With probability ``confidence_level`` over the noise it covers the score of the evaluated records. None
        where the threshold was chosen by looking at the released table.
    interval : (float, float) or None
        With this probability over noise and records it covers the score of the population that the records (or
        groups) were drawn from, independently. None as above.
    confidence_level : float
        0.95.
    """

    value: float
    noise_std: float
    noise_interval: tuple[float, float] | None = None
    interval: tuple[float, float] | None = None
    confidence_level: float = CONFIDENCE

    def __repr__(self) -> str:
        ends = (
            "None" if pair is None else f"({pair[0]:.6g}, {pair[1]:.6g})"
            for pair in (self.noise_interval, self.interval)
        )
        return (
            f"ReleasedScore(value={self.value:.6g}, noise_std={self.noise_std:.3g}, "
            "noise_interval={}, interval={})".format(*ends)
        )


def released_score(
    found: Estimate, privacy: PrivacyReport, bounds: tuple[float, float] | None = None
) -> ReleasedScore:
    """A score with its intervals and its report."""
    return ReleasedScore(
        found.value, found.noise_std, privacy, bounds,
        noise_interval=found.noise_interval, interval=found.interval,
    )  # fmt: skip
