"""The sum of clipped gradients of a net, whose layers say what each record's gradient is made of."""

import math
from typing import Literal, get_args

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.batches import Batch
from skdp.privacy.bounded import Bounded
from skdp.privacy.rows import Rows
from skdp.privacy.statistics.clipped_sum import CHUNK, sum_of_units
from skdp.privacy.statistics.gradient_blocks import BlockSum, places_of
from skdp.privacy.statistics.gradient_function import GradientFunction, Pieces

__all__ = ["CLIPPINGS", "LEAST_CLIP", "gradient_sum"]

Clipping = Literal["materialized", "ghost", "microbatch", "one-by-one"]
CLIPPINGS: tuple[str, ...] = get_args(Clipping)
LEAST_CLIP = 2.0**-29


def gradient_sum(
    rows: Rows,
    function: Pieces,
    clip_norm: float,
    *,
    size: int,
    batch: Batch | None = None,
    clipping: str = "materialized",
    microbatch_size: int | None = None,
) -> Bounded:
    """Sum over the units of clipped gradients of a net."""
    clip_norm, size, run = float(clip_norm), int(size), _run(clipping, microbatch_size)
    if not clip_norm >= LEAST_CLIP or size < 1:
        raise ValueError(
            f"clip_norm must be at least 2**-29 and size at least 1, got {clip_norm:g} and {size}"
        )
    if rows.shape.device != "cpu":
        raise ValueError("gradients are summed in the host's memory only")
    made = GradientFunction.probed(function, size, rows)
    if run and rows.shape.n_records is None:
        raise UnsupportedAccounting(
            "microbatches need records as the unit and a public number of them: a unit that comes or goes would "
            "move others to other microbatches"
        )
    if rows.shape.n_records is None or clipping == "one-by-one":
        at_once = 1 if clipping == "one-by-one" else CHUNK
        return sum_of_units(rows, made.dense, clip_norm, size=size, batch=batch, at_once=at_once)
    blocks = BlockSum(rows, made, places_of(rows, batch, run or 1), clipping == "ghost", run)

    def plain() -> NDArray[np.float64]:
        if math.isinf(clip_norm):
            return blocks.plain()
        fine = rows.fine(clip_norm)
        return np.asarray(blocks.on_grid(clip_norm, fine) * fine)

    source = rows.source(
        lambda unit: blocks.on_grid(clip_norm, unit), plain, contribution=clip_norm, batch=batch
    )
    return Bounded.from_source(source, (size,), l2=2 * clip_norm if run else clip_norm)


def _run(clipping: str, microbatch_size: int | None) -> int:
    """Places of a microbatch, or 0."""
    if clipping not in CLIPPINGS:
        raise ValueError(f"clipping must be one of {list(CLIPPINGS)}, got {clipping!r}")
    if (clipping == "microbatch") != (microbatch_size is not None):
        raise ValueError(
            "microbatch_size goes with clipping='microbatch', and only with it; got "
            f"{microbatch_size!r} with clipping={clipping!r}"
        )
    if microbatch_size is None:
        return 0
    if (
        type(microbatch_size) is bool
        or int(microbatch_size) != microbatch_size
        or microbatch_size < 1
    ):
        raise ValueError(f"microbatch_size must be an int >= 1, got {microbatch_size!r}")
    return int(microbatch_size)
