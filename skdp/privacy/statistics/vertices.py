"""VertexScores: the scores of the vertices of the l1 ball along a Frank-Wolfe path.

Dense path and sparse path are one algorithm: integer scores (`skdp.kernels.vertex_kernel`) and a tree of weights
(`skdp.privacy.noise.weight_tree`), kept up to date or computed anew in every step, with the same bits and so the
same draws from the same key stream.
"""

import math
from typing import TYPE_CHECKING, NoReturn

import numpy as np

from skdp.kernels.protocols import Integers
from skdp.losses import Loss
from skdp.privacy.bounded import BoundedStatistic
from skdp.privacy.mechanisms.top_k.noise import KeptScores
from skdp.privacy.noise import KeyStream
from skdp.privacy.rows import quiet

if TYPE_CHECKING:
    from skdp.privacy.records import PrivateRecords

__all__ = ["VertexScores"]

# All rows are looked at after the steps 1, 2, 3, ..., whose distance grows like a quarter of the step's number.
REFRESH_RATIO = 1.25


class VertexScores:
    """Scores -+ (mean sup-norm clipped gradient) of the vertices +-r e_jk, at a point on the way.

    Parameters
    ----------
    records : PrivateRecords
    loss : object from `skdp.losses`
    clip_norm : float
        Largest absolute entry of a row's gradient, finite and positive. For groups a row counts
        1 / (rows of its group).
    lazy : bool, default=True
        False computes scores and weights anew in every step; the draws are the same.
    tolerance : float, default=0.0
        A row that is looked at is refreshed if an entry of its gradient would move by more than this share of
        ``clip_norm``.
    refresh_ratio : float, default=1.25
        A step looks at the rows with a non-zero entry in its column; all rows are looked at after the first step
        and then whenever the number of steps has grown by this factor.

    Notes
    -----
    **Change by one record.** A record's contribution to the scores is a function of this record, of the vertices
    that were drawn before (released) and of public numbers: its linear predictor follows from the path; when it is
    refreshed follows from the path, the public schedule and its own gradient. Whatever is stale, every entry is at
    most ``clip_norm / n_units``, an integer on the grid. A replaced record changes no score by more than
    ``2 clip_norm / n_units`` (absent: half of it); the scores of +e_j and -e_j move in opposite directions. A draw
    with weights exp(score eps0 / (2 Delta)) is eps0-bounded-range.

    See Also
    --------
    skdp.privacy.PrivacySession.gumbel_top_k : draws and pays.
    """

    def __init__(
        self,
        records: "PrivateRecords",
        loss: Loss,
        clip_norm: float,
        *,
        lazy: bool = True,
        tolerance: float = 0.0,
        refresh_ratio: float = REFRESH_RATIO,
    ) -> None:
        if not (math.isfinite(clip_norm) and clip_norm > 0):
            raise ValueError(f"clip_norm must be finite and positive, got {clip_norm!r}")
        from skdp.kernels import vertex_kernel
        from skdp.privacy.noise.weight_tree import WeightTree

        rows = records._rows
        self._kernel = vertex_kernel(
            rows.matrix,
            rows.y,
            loss,
            fit_intercept=rows.shape.fit_intercept,
            intercept_value=rows.shape.intercept_value,
            row_weight=rows.balance(),
            sample_weight=rows.weight,
            tolerance=tolerance,
        )
        self._clip = float(clip_norm)
        self._shape = rows.shape
        self._divisor = float(self._shape.n_units)
        self._lazy, self._ratio = bool(lazy), float(refresh_ratio)
        self._steps, self._next = 0, 1.0
        self._unit = 0.0  # unit of the sums' grid; 0: nothing has been computed
        self._tree = WeightTree(self._kernel.shape[1])
        source = rows.source(
            self._on_grid,
            lambda: self._on_grid(self._fine()) * np.float64(self._fine()),
            magnitude=self._clip * self._shape.most_units / self._divisor,
            extra=KeptScores(quiet(self._choose)),
        )
        self._scores = BoundedStatistic.from_source(
            source, (2 * self._kernel.sums.size,), linf=self._clip / self._divisor
        )

    def scores(self) -> BoundedStatistic:
        """Return the scores at the present point: 2q is +e_q, 2q + 1 is -e_q, q = feature * K + output.

        Returns
        -------
        BoundedStatistic
            Of shape (2 n_parameters K,), with linf = ``clip_norm / n_units``.
        """
        return self._scores

    def move(self, vertex: int, radius: float, gamma: float) -> None:
        """Move to (1 - gamma) theta + gamma * radius * (vertex).

        Parameters
        ----------
        vertex : int
            A released index of `scores`.
        radius, gamma : float
            Public; gamma in (0, 1].
        """
        self._steps += 1
        everything = self._steps >= self._next
        if everything:
            self._next = max(self._steps + 1.0, self._steps * self._ratio)
        j, k = divmod(int(vertex) // 2, self._kernel.shape[1])
        sign = -1.0 if vertex % 2 else 1.0
        if self._unit == 0.0:
            self._start(self._fine())
        self._tree.note(self._kernel.move(j, k, sign * radius * gamma, gamma, refresh=everything, lazy=self._lazy))

    def _fine(self) -> float:
        """The grid where no release has fixed one."""
        return self._clip / self._divisor * max(2.0**-36, self._shape.most_units * 2.0**-60)

    def _start(self, unit: float) -> None:
        self._kernel.start(self._clip, unit * self._divisor)
        self._unit = unit
        self._tree.forget()

    def _on_grid(self, unit: float) -> Integers:
        if unit != self._unit:
            self._start(unit)
        flat = self._kernel.sums.ravel()
        return np.stack([-flat, flat], axis=1).ravel()

    def _choose(self, unit: float, scale: float, stream: KeyStream) -> int:
        if unit != self._unit:
            self._start(unit)
        return self._tree.draw(self._kernel.sums.ravel(), scale, stream)

    def __repr__(self) -> str:
        return f"VertexScores(shape={self._kernel.shape}, clip_norm={self._clip:g})"

    def _refuse(self, *args: object, **kwargs: object) -> NoReturn:
        raise TypeError("VertexScores hold private values; draw from them through a session")

    __reduce__ = __reduce_ex__ = __copy__ = __deepcopy__ = __array__ = _refuse  # type: ignore[assignment]
