"""The sum of gradients whose norms are estimated from random projections (DP-SGD-JL)."""

import math
from dataclasses import dataclass, replace

import numpy as np

from skdp.kernels.protocols import Integers
from skdp.privacy.batches import Batch
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.gradients.blocks import positions_of
from skdp.privacy.gradients.device import AT_ONCE
from skdp.privacy.gradients.function import GradientFunction
from skdp.privacy.gradients.projections import (
    LARGEST_RATIO,
    ProjectedSum,
    Projections,
    bound_of,
    estimated_norms,
    largest_ratio,
)
from skdp.privacy.mechanisms.projected_gaussian.release import ProjectedClip, ProjectedNorms
from skdp.privacy.pieces import Vectors
from skdp.privacy.rows import Rows
from skdp.privacy.statistics.clipped_sum import LARGEST_CLIP, UnitVectors

__all__ = ["projected_sum"]


def projected_sum(
    rows: Rows, function: GradientFunction, clip_norm: float, *, size: int, batch: Batch | None
) -> BoundedStatistic:
    """`gradient_sum` of a batch whose plan has projections.

    Returns
    -------
    BoundedStatistic
        Of shape (size,), with infinite bounds. Only `PrivacySession.gaussian` takes it, with the plan
        of its batch.

    Notes
    -----
    **Privacy.** Let g_i be the gradient of record i, given by the numbers in its pieces, times its weight, and C =
    ``clip_norm``. Let r be the plan's ``n_projections`` and v_1, ..., v_r fresh standard normal vectors, which the
    release may show. The record adds s_i g_i with s_i <= min(1, C / M_i), M_i**2 >= mean_j <g_i, v_j>**2. Hence
    ||s_i g_i|| <= C Z_i, where Z_i = ||g_i|| / M_i <= (chi2_r / r)**(-1/2) in law: g_i was fixed before the v_j
    were drawn. If M_i = 0 the factor is 1, and the bound is the same. `projected_gaussian.cost` accounts for a
    shift of W C, W = max(Z_i, 1/2), capped by the plan's ``norm_ratio``. It remains to show that the computed
    integers of neighbouring data sets, of which one lacks a record, differ by at most W C. From here on C is in
    units of the grid, and u = 2**-53.

        C' = (C - 2 sqrt(D) - 4) / (1 + 2 (2**-10 + 2**-22)),    D = ``size``.

    1. *Vectors.* An entry is round(2**30 x) / 2**30 for a standard normal x, by the proven sampler of the noise,
       from a key of 256 bits that the batch has from the session's stream. It is off by at most 2**-31, and <g_i,
       v_j> by at most 2**-31 times the sum of absolute entries of g_i, for each piece at most 2**-31 sqrt(entries)
       S_i. S_i is the sum over the outer products of the piece of the products of their norms, or the norm of
       `Vectors`. The session charges the log-errors of the sampler.
    2. *Projections.* They are inner products with the numbers of the pieces, not derivatives in the direction of
       v_j. They estimate the norm of the added vector, whatever its layers computed, and their error follows from
       stored numbers alone. Of T outer products of p and q entries a term passes at most k = 2 T + p + q
       roundings, and some for the sum over the pieces: the projection is off by at most (k + ...) u S_i ||v_j||.
    3. *Norms.* The root mean square of r numbers has the triangle inequality. M_i, the computed one plus the
       errors of 1 and 2, is therefore at least the root mean square of the exact projections on exact normals.
    4. *Factors.* s_i is also at most B / S_i and 2**-11 / (66 * 64 u T S_i), S_i and T S_i added up over the
       pieces. B is the least of ``norm_ratio``, 2**20 and 2**55 / C'. Smaller factors only shorten the added
       vector. Hence ||s_i g_i|| <= min(Z_i, B), a cap that no projection must enforce.
    5. *Products.* Sums over a block of 64 positions are made in float64. Their terms are off by at most 66 u T S_i
       s_i each, so a block is off by at most 2**-11, and by 2**-27 more by the product with C', as entries are at
       most 64 * 2**20. Nothing in this depends on how long other records are.
    6. *Integers.* They stay below 64 * 2**55 before the blocks are added, modulo 2**64. One block changes, by at
       most C' (min(Z_i, B) + 2**-10 + 2**-22) + sqrt(D) + 2 <= W C. (What does not shrink with Z_i is at most
       twice that times W.)
    7. A record whose numbers are not finite or too large leaves the block, as in `gradient_sum`.

    **Each unit by itself.** Where the unit is the group, or the number of units is private, each unit's vector is
    multiplied out; a projection is the inner product with the sum of its rows' vectors. The vector is rounded by
    itself to integers, and room for sqrt(D) units is left in C'.
    """
    extra = None if batch is None else batch._plan.extra
    if batch is None or batch._key is None or not isinstance(extra, ProjectedNorms):
        raise ValueError(
            "clipping='projections' needs a batch of a plan with projections: give extra=ProjectedNorms() to the "
            "BatchGroup of session.plan_batches, then session.draw(plan, records, positions=True)"
        )
    projections, ratio = Projections(batch._key, extra.n_projections), extra.norm_ratio
    blocks: ProjectedSum | ProjectedUnits
    if rows.shape.n_records is None:
        blocks = ProjectedUnits(rows, function.dense, size, rows.units_of(batch), AT_ONCE, projections, ratio)
    else:
        positions = positions_of(rows, batch, 1)
        blocks = ProjectedSum(rows, function, positions, projections=projections, norm_ratio=ratio)

    source = rows.source(
        lambda unit: blocks.on_grid(clip_norm, unit), blocks.plain if math.isinf(clip_norm) else None,
        contribution=clip_norm, batch=batch,
    )  # fmt: skip
    largest = source.magnitude * min(ratio, LARGEST_RATIO)
    source = replace(source, magnitude=largest, extra=ProjectedClip(clip_norm))
    return BoundedStatistic.from_source(source, (size,), l2=math.inf)


@dataclass(frozen=True, repr=False)
class ProjectedUnits(UnitVectors):
    """The vectors of some units, each by itself, whose norms are estimated from projections."""

    projections: Projections
    norm_ratio: float

    def on_grid(self, clip_norm: float, unit: float) -> Integers:
        """Sum of the clipped vectors in multiples of ``unit``, modulo 2^64."""
        limit = clip_norm / unit - math.sqrt(self.size) - 2.0
        if not 0 < limit <= LARGEST_CLIP:
            raise ValueError(
                f"clip_norm / unit must exceed {math.sqrt(self.size) + 2:g} and stay below 2**50; use another unit"
            )
        ratio, vectors = (largest_ratio(self.norm_ratio, limit), self.projections.of([self.size]))
        total = np.zeros(self.size, dtype=np.int64)
        for v in self._blocks():
            with np.errstate(all="ignore"):
                piece = Vectors(v)
                bound = bound_of(piece)
                norm = estimated_norms([piece], [bound], self.projections.count, vectors)
                factor = np.minimum(1.0 / unit, limit / norm)
                factor = np.minimum(factor, ratio * limit / bound) * (1.0 - 2.0**-48)
                kept = np.isfinite(norm) & np.isfinite(bound) & (factor >= 2.0**-960)
                v *= np.where(kept, factor, 0.0)[:, None]
            v[~kept] = 0.0
            total += np.rint(v, out=v).astype(np.int64).sum(axis=0)
        return total
