"""Statistics of private records: each a function of `PrivateRecords` that returns a `BoundedStatistic`.

One file has one statistic, or closely related ones. Its docstring proves the bound on a change by one unit of
privacy. A statistic is computed when a session releases it, because the grid is known only then. Those that most
methods use are methods of `PrivateRecords`, too; the others are offered here.
"""

from skdp.privacy.statistics.cbow_gradient import cbow_gradient
from skdp.privacy.statistics.cell_sums import cell_sums
from skdp.privacy.statistics.class_counts import class_counts
from skdp.privacy.statistics.column_moments import column_moments
from skdp.privacy.statistics.magnitude_counts import magnitude_counts
from skdp.privacy.statistics.mean_losses import mean_losses
from skdp.privacy.statistics.minimizer import ridge_minimizer
from skdp.privacy.statistics.norm_counts import target_count
from skdp.privacy.statistics.perturbed import perturbed_minimizer
from skdp.privacy.statistics.recursive_gradient import recursive_gradient
from skdp.privacy.statistics.residual_moments import binned_residuals, residual_moments, residual_squares
from skdp.privacy.statistics.step_scores import step_scores
from skdp.privacy.statistics.sup_gradient import gradient_scores, mean_sup_gradient
from skdp.privacy.statistics.votes import support_votes

__all__ = [
    "binned_residuals",
    "cbow_gradient",
    "cell_sums",
    "class_counts",
    "column_moments",
    "gradient_scores",
    "magnitude_counts",
    "mean_losses",
    "mean_sup_gradient",
    "perturbed_minimizer",
    "recursive_gradient",
    "residual_moments",
    "residual_squares",
    "ridge_minimizer",
    "step_scores",
    "support_votes",
    "target_count",
]
