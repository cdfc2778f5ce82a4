"""The sum of clipped gradients of a net, whose layers give the pieces of each record's gradient."""

import math
from typing import Literal, get_args

import numpy as np

from skdp.exceptions import UnsupportedAccounting
from skdp.kernels.protocols import Integers
from skdp.privacy.batches import Batch
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.gradients.blocks import BlockSum, positions_of
from skdp.privacy.gradients.device import AT_ONCE
from skdp.privacy.gradients.function import GradientFunction, PieceFunction
from skdp.privacy.gradients.parts import entries_of
from skdp.privacy.pieces import OuterSum, SparseRows
from skdp.privacy.rows import HoldsRows
from skdp.privacy.statistics.clipped_sum import sum_of_units
from skdp.privacy.statistics.projected_sum import projected_sum

__all__ = ["gradient_sum"]

ClippingMethod = Literal["materialized", "ghost", "microbatch", "one-by-one", "projections"]
CLIPPINGS: tuple[str, ...] = get_args(ClippingMethod)
LEAST_CLIP = 2.0**-29


def gradient_sum(
    records: HoldsRows,
    function: PieceFunction,
    clip_norm: float,
    *,
    size: int,
    batch: Batch | None = None,
    clipping: str = "materialized",
    microbatch_size: int | None = None,
    entries: Integers | None = None,
) -> BoundedStatistic:
    """Sum over the units of clipped gradients, which a net's layers give in pieces.

    A record's gradient is all that its pieces hold, times its sample weight; a group's is the sum of its rows'.
    The vector that is clipped is the vector that is added: its norm follows from the numbers in the pieces,
    whatever they should have been. For a mean multiply by one over `n_units`, or over the batch's expected size.

    Parameters
    ----------
    function : callable
        ``function(X, y)`` takes some rows, an array in C order or a CSR matrix as the records are stored, and
        their targets (None without targets). It returns a list of pieces (`Vectors`, `Outer`, `OuterSum`,
        `SparseRows`) with a row for each row. It gets at most 64 rows at once. **A row's numbers must be a
        function of this row and of public or released values alone, to the last bit**: whatever its place,
        its neighbours and the number of rows; see `check_batch_independence`. It is called from several
        threads at once, so every call makes new arrays. It must not keep its arguments, and must not raise, warn
        or print for any values. Functions of one fit may be marked by `PieceKinds`: only the first is then called
        with zeros.
    clip_norm : float
        Largest l2 norm of a unit's gradient, at least 2**-29. inf (no clipping) can only be
        released without noise.
    size : int
        Number of entries of all pieces together; public.
    batch : Batch, default=None
        Of ``session.draw(plan, records, positions=True)``. None takes all units.
    clipping : {"materialized", "ghost", "microbatch", "one-by-one", "projections"}, default="materialized"
        "materialized" multiplies each `OuterSum` out, by one product a record. "ghost" does not: norms come from
        Gram matrices in float64, and the sum is one product in float64 (less memory for large layers, and slower
        for small ones). "microbatch" clips the mean gradient of ``microbatch_size`` positions. "one-by-one" gives
        the function a single row at a time: slow, and without any assumption on positions. "projections" estimates
        norms from random projections. It needs a batch of a plan with ``n_projections``, and its result has
        infinite bounds; `skdp.privacy.statistics.projected_sum` has the proof.
    microbatch_size : int, default=None
        Number of positions L of a microbatch. The sum is then over the microbatches: a mean divides it by one L-th
        of the number of units.
    entries : ndarray of int64, default=None
        Positions of the entries that are clipped and added, ascending; public or released. All others count as 0
        and are left out of the sum. None takes all. Not with "ghost" and "projections" (norms of whole gradients).

    Returns
    -------
    BoundedStatistic
        Of shape (size,), or (entries.size,), with l2 bound ``clip_norm``, or twice that for microbatches, or inf
        for projections.

    Raises
    ------
    TypeError, ValueError
        If the pieces that the function computes from rows of zeros do not fit. Nothing was read.
    UnsupportedAccounting
        If microbatches are asked for where the number of units is private, or units are groups.

    Notes
    -----
    **Privacy.** Let g_i be the gradient of record i, w_i its weight, D = ``size``, C = ``clip_norm`` in
    units of the grid, and u half an ulp of the narrowest dtype that BLAS adds (2**-24 for float32). Let

        C' = (C - sqrt(D) - 2) / (1 + 2 e + 2**-22 [+ 2**-10 if ghost]),    e = 66 * 64 u (1 + 2**-10).

    Records stand at positions; 64 positions are a block. A block's sum is the sum of s_i g_i, rounded to the
    nearest integers after multiplication by C', with s_i = 1 / max(N_i, C' unit / w_i), and blocks are added as
    integers: in float64 where public numbers bound all of them by 2**53, which is exact. "If ghost" is where ghost
    norms are asked for and a piece is an `OuterSum`. For a `SparseRows` they are the numbers of the table after a
    record's equal rows were added: this comes first, from the record alone, in the order of positions.

    1. *Norms.* N_i is computed in float64 from the numbers of the pieces; an outer product's norm is the product
       of the norms. Squares added in any order, products and the sum over pieces lose at most a factor (1 -
       2**-53)**(D + 2) of the square, and N_i has the factor 1 + (D + 16) 2**-52, so N_i >= ||g_i||. (Zeros add
       nothing: rows of a table that a record does not touch are not read.) What underflows in a square matters
       below 2**-400 only, and ``C' unit`` is at least 2**-30.
    2. *Factors.* s_i is rounded to the dtype. Hence the vector that enters has norm ||s_i g_i|| <= 1 + 2**-23: a
       clipped unit has norm 1.
    3. *Products.* A coordinate is a sum of at most 64 products, in any order, with or without fused operations. An
       outer product rounds once more. With gamma_k = k u / (1 - k u) it is off by at most gamma_66 sum_i abs(s_i
       g_i), and the sum is off by at most 66 * 64 u (1 + 2**-16) in l2 norm: 2.52e-4 for float32.
    4. *Underflow.* A record enters only if the norms of its arrays are at most 2**40 and s_i at most 2**30. An
       operation that underflows, or reads a subnormal number as 0, is then off by at most 2**-56 a term, and all
       of them together by at most 2**-48 sqrt(D) <= 2**-28.
    5. *Ghost.* Let S_i = sum_t ||a_t|| ||b_t|| for T outer products of p and q entries, and k = 2 T + p + q + 8.
       The computed square of the norm is off by at most k 2**-53 S_i**2, which is added. The terms of a block are
       off by at most 66 * 2**-53 T S_i s_i each. s_i is at most 2**-11 / (66 * 64 * 2**-53 T S_i), so a block is
       off by at most 2**-11. (T S_i is summed over such pieces. All this is in float64.)
    6. *One block changes.* On a neighbouring data set one record is replaced, or is absent. All others have the
       same numbers, factors and positions, so the block sums differ by at most ||s_i g_i|| + ||s_j g_j'||, and by
       twice what steps 3 to 5 give; the product with C' rounds by 2**-46 C' more. Rounding to integers moves each
       entry by at most 1/2 on either side. Together the integers move by at most C' (1 + 2 e + 2**-22 ...) +
       sqrt(D) <= C if a record is absent, and by at most 2 C if it is replaced.
    7. A record whose norms are not finite or too large leaves the block: its rows are removed, and not only
       multiplied by 0, which would turn inf to NaN.

    **Positions.** Without a batch a record's position is its index. In a drawn batch the positions are a
    uniformly random injection, from the fit's key, into more positions than units can be drawn. With and without
    a unit the positions of the others have the same law (`number_of_positions`). The sum is therefore a mixture
    over the others' numbers and positions, and in every term the unit changes one block. The bounds for sampled
    releases need no more.

    **Microbatches.** The mean gradient of L positions (positions without a record count as 0) is computed by
    products of its own, and clipped as if it was one record's. A record that is absent or replaced changes one
    of them by anything, so the sum moves by at most 2 ``clip_norm``. The bound on a unit's contribution is
    therefore twice the clip norm: the noise multiplier is the standard deviation over 2 ``clip_norm``. Under
    replace-one the session doubles it once more. In a sampled batch that is needed: its bound is about laws with
    and without a unit.

    **On a device.** The function gets CuPy arrays of 64 rows, the last of them zeros where there are fewer, and
    its pieces come to the host. Norms, factors and sums are computed there, as above.

    **Entries.** Let ``entries`` be given. Then g_i above is the vector of these entries: they alone are in
    N_i, and they alone are added. Nothing is chosen by looking at a record, so a record's numbers are its own
    as before. Of an outer product, N_i has squares of ``right`` times sums of squares of ``left``, one record
    at a time: at most p + q + 1 roundings, and p + q <= D + 1, so step 1 holds. The sum over a block is
    computed whole and its entries are taken: each is a sum of step 3. Step 4 looks at the whole of ``left``
    and ``right``. An `OuterSum` is multiplied out, and its entries are taken. D stays ``size``, which is no
    less than the number of entries.

    **Each unit by itself.** Where the unit is the group, or the number of units is private, each unit's vector is
    multiplied out, clipped and rounded by itself; so it is one-by-one. `clipped_sum` has the proof.
    """
    rows = records._rows
    clip_norm, size, run = float(clip_norm), int(size), _run(clipping, microbatch_size)
    if not clip_norm >= LEAST_CLIP or size < 1:
        raise ValueError(f"clip_norm must be at least 2**-29 and size at least 1, got {clip_norm:g} and {size}")
    if rows.shape.device != "cpu" and rows.shape.container == "csr":
        raise ValueError(
            "gradients are computed on a device for dense rows only: otherwise pass X as a NumPy array or a SciPy "
            "CSR matrix"
        )
    made = GradientFunction.probed(function, size, rows)
    chosen = None if entries is None else _checked(entries, size, clipping)
    if run and rows.shape.n_records is None:
        raise UnsupportedAccounting(
            "microbatches need records as the unit and a public number of them: a unit that comes or goes would "
            "move others to other microbatches"
        )
    if clipping == "projections":
        return projected_sum(rows, made, clip_norm, size=size, batch=batch)
    if rows.shape.n_records is None or clipping == "one-by-one":
        at_once = 1 if clipping == "one-by-one" else AT_ONCE
        dense, size = (made.dense, size) if chosen is None else (made.dense_at(chosen), chosen.size)
        return sum_of_units(rows, dense, clip_norm, size=size, batch=batch, at_once=at_once)
    ghost = clipping == "ghost" and OuterSum in made.types
    own = None if chosen is None else entries_of(chosen, made.sizes)
    blocks = BlockSum(rows, made, positions_of(rows, batch, run or 1), ghost, run, own)

    source = rows.source(
        lambda unit: blocks.on_grid(clip_norm, unit), blocks.plain if math.isinf(clip_norm) else None,
        contribution=clip_norm, batch=batch,
        sparse=(lambda unit: blocks.sparse(clip_norm, unit)) if SparseRows in made.types else None,
    )  # fmt: skip
    return BoundedStatistic.from_source(source, (blocks.size,), l2=2 * clip_norm if run else clip_norm)


def _checked(entries: Integers, size: int, clipping: str) -> Integers:
    """The positions of entries, copied: nobody changes them after they were checked."""
    if clipping in ("ghost", "projections"):
        raise ValueError(
            f"clipping={clipping!r} takes the norms of whole gradients: with entries= use 'materialized', "
            "'microbatch' or 'one-by-one'"
        )
    found = np.array(entries)
    if found.ndim != 1 or found.dtype != np.int64 or not found.size:
        raise ValueError("entries must be a vector of int64 with at least one position")
    if found[0] < 0 or found[-1] >= size or np.any(np.diff(found) <= 0):
        raise ValueError(f"entries must be different positions below {size} in ascending order")
    return found


def _run(clipping: str, microbatch_size: int | None) -> int:
    """Positions of a microbatch, or 0."""
    if clipping not in CLIPPINGS:
        raise ValueError(f"clipping must be one of {list(CLIPPINGS)}, got {clipping!r}")
    if (clipping == "microbatch") != (microbatch_size is not None):
        raise ValueError(
            "microbatch_size goes with clipping='microbatch', and only with it; got "
            f"{microbatch_size!r} with clipping={clipping!r}"
        )
    if microbatch_size is None:
        return 0
    if type(microbatch_size) is bool or int(microbatch_size) != microbatch_size or microbatch_size < 1:
        raise ValueError(f"microbatch_size must be an int >= 1, got {microbatch_size!r}")
    return int(microbatch_size)
