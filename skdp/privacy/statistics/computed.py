"""Statistics of `PrivateRecords` that take a computation of their own: minimisers, second moments, votes."""

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.bounded import Bounded, Source
from skdp.privacy.session.batches import Partition
from skdp.privacy.shape import PublicShape

__all__ = ["ComputedStatistics"]


class ComputedStatistics:
    """The part of `PrivateRecords` whose sensitivities are proven in modules of their own."""

    __slots__ = ()

    _X: Any
    _y: Any
    _groups: Any
    _weight: Any
    _kernels: dict[Any, Any]
    _family: object
    shape: PublicShape
    fit_intercept: bool
    intercept_value: float

    @property
    def n_parameters(self) -> int:
        """Features, and one more for the intercept."""
        raise NotImplementedError

    def ridge_minimizer(
        self,
        loss: Any,
        *,
        alpha: float,
        row_norm: float,
        adjacency: str,
        mask: Any = None,
        center: Any = None,
    ) -> Bounded:
        """Minimiser of the mean loss plus ``alpha / 2 * ||theta - center||^2``, the intercept penalised too.

        Rows are restricted to ``mask``, then clipped to ``row_norm``, then the intercept's feature is appended.
        A row weighs nothing if its target is not finite, or is no class index 0, 1, ... of a classification loss.
        A group's loss is the mean over its rows. With G the largest gradient norm of a unit (the loss's
        Lipschitz constant times ``hypot(row_norm, intercept_value)``) neighbours' minimisers differ by at most
        ``factor * G / (n_units * alpha)`` in l2 norm, factor 2 under replace-one and 1 otherwise (Chaudhuri,
        Monteleoni and Sarwate 2011); the solver's gap, which no data set can widen, is added. The proof
        is in `skdp.privacy.statistics.minimizer`.

        Parameters
        ----------
        loss : object from `skdp.losses`
            Logistic, multinomial or Huber. The squared loss has unbounded gradients and is refused.
        alpha : float
            Weight of the penalty, > 0.
        row_norm : float
            Largest l2 norm of a row, > 0.
        adjacency : {"replace-one", "zero-out", "add-remove"}
            The session's. Where ``n_public`` was given, at most 16 ``n_public`` units are assumed.
        mask : ndarray of bool of shape (n_parameters,), default=None
            Coordinates that may differ from 0. Public or released.
        center : ndarray of shape (n_parameters,) or (n_parameters, n_classes), default=None
            Where the penalty is 0; None is the origin. Public or released.

        Returns
        -------
        Bounded
            Of shape (n_parameters,) or (n_parameters, n_classes), the intercept last; computed at its release.

        Raises
        ------
        ValueError
            For the squared loss, sample weights, add-remove without ``n_public``, or numbers out of range.
        """
        from skdp.privacy.statistics.minimizer import ridge_minimizer

        return ridge_minimizer(
            self,
            loss,
            alpha=alpha,
            row_norm=row_norm,
            adjacency=adjacency,
            mask=mask,
            center=center,
        )

    def perturbed_minimizer(
        self, loss: Any, *, penalty: float, row_norm: float, target_center: float = 0.0
    ) -> Any:
        """Objective for `PrivacySession.objective_perturbation`: sum of losses plus an l2 penalty.

        Rows are clipped to ``row_norm`` and the intercept's feature is appended; every coordinate is penalised.
        One record changes the gradient by at most the loss's Lipschitz constant times
        ``hypot(row_norm, intercept_value)``, twice that under replace-one.

        Parameters
        ----------
        loss : LogisticLoss or HuberLoss
        penalty : float
            Weight of ``||theta||^2 / 2`` beside the **sum** of the losses, > 0.
        row_norm : float
            Largest l2 norm of a row, > 0.
        target_center : float, default=0.0
            Public or released number that is subtracted from the targets of a regression; then a target is
            scaled down with its row, and clipped to 1000 Huber thresholds.

        Returns
        -------
        PerturbedMinimizer
            Not an array: only a session can solve and release it.

        Raises
        ------
        ValueError
            For other losses, groups, sample weights, or numbers out of range.
        """
        from skdp.privacy.statistics.perturbed import perturbed_minimizer

        return perturbed_minimizer(
            self, loss, penalty=penalty, row_norm=row_norm, target_center=target_center
        )

    def second_moment(
        self,
        row_norm: float,
        target_bound: float,
        *,
        adjacency: str,
        target_center: float = 0.0,
        target_weight: float = 1.0,
        mask: Any = None,
    ) -> Bounded:
        """Sum of z z^T over the records, z = (row, intercept's feature, scaled target).

        A row that is longer than ``row_norm`` (with the intercept's feature: than R, the norm of
        ``row_norm`` and that feature) is scaled down together with its target; then the target, less
        ``target_center``, is clipped to ``target_bound`` and multiplied by ``w R / target_bound``. So
        ``||z||^2 <= B^2 = (1 + w^2) R^2``, and the matrix moves by at most ``sqrt(2) B^2`` in Frobenius norm when
        a unit is replaced, by ``B^2`` when it is absent. A group's rows are weighted by one over their number.
        Proofs: ``skdp.privacy.statistics.moments``.

        Parameters
        ----------
        row_norm, target_bound : float
            Finite and > 0; public or released.
        adjacency : {"replace-one", "zero-out", "add-remove"}
            The session's.
        target_center : float, default=0.0
        target_weight : float, default=1.0
            The weight w. Less of it moves noise from the rows' moments to the targets'.
        mask : ndarray of bool of shape (n_parameters,), default=None
            Coordinates to which rows are restricted, before their norm is taken.

        Returns
        -------
        Bounded
            Of shape (k + 1, k + 1) for k coordinates, symmetric before the noise.
        """
        from skdp.privacy.statistics.moments import RowMoments

        if self._weight is not None:
            raise ValueError("the second moment has no weighted form; fit without sample_weight")
        kept = np.ones(self.n_parameters, dtype=bool) if mask is None else np.array(mask, bool)
        intercept = self.intercept_value if self.fit_intercept and kept[-1] else None
        norm = math.hypot(row_norm, intercept or 0.0)
        moments = RowMoments(
            self._X,
            np.asarray(self._y, dtype=np.float64),
            self._groups,
            np.flatnonzero(kept[: self.shape.n_features]),
            intercept,
            norm,
            float(target_bound),
            float(target_center),
            float(target_weight),
        )
        contribution = moments.radius**2 * (1 + 2.0**-50)
        source = Source(
            moments.on_grid,
            moments.plain,
            roundings=1,
            magnitude=contribution * self.shape.most_units,
            usual=contribution * self.shape.usual_units,
            owner=self._kernels,
            unit=self.shape.unit,
            needs_public_n=self.shape.n_public is None,
        )
        moved = math.sqrt(2.0) * contribution if adjacency == "replace-one" else contribution
        return Bounded.from_source(
            source, (moments.width, moments.width), l2=moved, adjacency=adjacency
        )

    def support_votes(
        self, loss: Any, n_nonzero_coefs: int, blocks: Partition, *, adjacency: str
    ) -> Bounded:
        """Count for each feature the blocks of units whose own sparse model uses it.

        Each block fits a model that is not private and votes for ``n_nonzero_coefs`` features, or for none. A unit
        lies in one block, so it moves every count by at most 1, under every adjacency: linf = 1, proven.

        Parameters
        ----------
        loss : object from `skdp.losses`
        n_nonzero_coefs : int
        blocks : Partition
            Of `PrivacySession.partition` and these records.
        adjacency : {"replace-one", "zero-out", "add-remove"}
            The session's.

        Returns
        -------
        Bounded
            Of shape (n_features,), of whole numbers.
        """
        if self._weight is not None:
            raise ValueError("votes have no weighted form; fit without sample_weight")
        s, d = int(n_nonzero_coefs), self.shape.n_features
        if not isinstance(blocks, Partition):
            raise TypeError("blocks must come from session.partition(records, n_blocks)")
        if blocks._family is not self._family or not 1 <= s <= d:
            raise ValueError(
                f"blocks must be drawn for these records, and n_nonzero_coefs be between 1 and {d}"
            )
        block = blocks._blocks
        counted: list[NDArray[np.int64]] = []

        def votes() -> NDArray[np.int64]:
            from skdp.privacy.statistics.votes import count_votes

            if not counted:
                rows = block if self._groups is None else block[self._groups]
                counted.append(
                    count_votes(self._X, self._y, loss, s, rows, intercept=self.fit_intercept)
                )
            return counted[0]

        source = Source(
            lambda unit: votes() * np.int64(math.floor(1.0 / unit)),
            lambda: votes().astype(np.float64),
            roundings=0,
            magnitude=float(self.shape.most_units),  # there are at most as many blocks
            owner=self._kernels,
            unit=self.shape.unit,
            needs_public_n=self.shape.n_public is None,
        )
        return Bounded.from_source(
            source, (d,), l1=2.0 * s, l2=math.sqrt(2.0 * s), linf=1.0, adjacency=adjacency
        )
