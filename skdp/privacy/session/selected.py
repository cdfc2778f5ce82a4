"""The choice of coordinates of a batch's statistic and the noise on these, as one release of a session."""

import numpy as np
from numpy.typing import NDArray

from skdp.privacy import noise, selection
from skdp.privacy.batches import BatchPlan, batch_slack
from skdp.privacy.bounded import Bounded
from skdp.privacy.session.base import SessionBase
from skdp.privacy.session.releases import check_plan

__all__ = ["SelectedReleases"]


class SelectedReleases(SessionBase):
    """Releases of a few coordinates that are chosen privately."""

    def selected_gaussian(
        self,
        bounded: Bounded,
        plan: BatchPlan,
        *,
        score_clip: float | None = None,
        value_clip: float | None = None,
        threshold: float | None = None,
    ) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Choose ``plan.choices`` coordinates privately and release these entries with Gaussian noise.

        Coordinates are chosen by their absolute values, by Gumbel noise. The choice and the noise are one release
        on one batch. All coordinates are candidates, also those that no record touched. With `Source.sparse` these
        are not visited.

        Parameters
        ----------
        bounded : Bounded
            A statistic of a batch of this plan, fresh and not used, with finite bounds.
        plan : BatchPlan
            Of this session, made of a `BatchGroup` with ``choices``, with a release left.
        score_clip : float, default=None
            Largest absolute value that counts in the choice; public, in units of the statistic. A smaller one
            needs less noise and tells large entries less well apart.
        value_clip : float, default=None
            Largest l2 norm of the chosen entries; public. None leaves them as they are.
        threshold : float, default=None
            Public, in units of the statistic. If given, coordinates whose absolute value is above it are found by
            the sparse vector technique instead, in a random order, and uniform others make up the number. It looks
            at every coordinate.

        Returns
        -------
        positions : ndarray of shape (plan.choices,), dtype int64
            Ascending positions in the flattened statistic.
        values : ndarray of shape (plan.choices,), dtype float64
            These entries with noise.

        Raises
        ------
        PrivacyBudgetExceeded
            If the plan holds no further release. Nothing was drawn or released.
        UnsupportedAccounting
            If the statistic or the plan is of another kind.

        Examples
        --------
        >>> import numpy as np
        >>> from skdp.privacy import BatchGroup, PrivateRecords, PrivacySession
        >>> records = PrivateRecords(np.random.default_rng(0).uniform(size=(200, 50)))
        >>> session = PrivacySession(epsilon=3.0, delta=1e-5, adjacency="zero-out", minibatches=True)
        >>> (plan,) = session.plan_batches([BatchGroup(1, 50, choices=5)], n_units=200)
        >>> batch = session.draw(plan, records)
        >>> total = records.clipped_sum(lambda X, y: X, 1.0, size=50, batch=batch)
        >>> positions, values = session.selected_gaussian(total * (1 / plan.batch_size), plan)
        >>> positions.size, values.size
        (5, 5)
        """
        with self._lock:
            self._check_open()
            ledger = self._ledger
            ledger.check_statistic(bounded, batches=True)
            batch = check_plan(ledger, bounded, plan, 0, chooses=True)
            if plan.choices > bounded.size:
                raise ValueError(f"{plan.choices} of {bounded.size} values cannot be chosen")
            choice = selection.Choice(plan.choices, plan.choice_epsilon, score_clip, value_clip, threshold)
            if not ledger.exact:
                drawn_with, sensitivity = selection.selection_grid(
                    bounded, choice, plan.noise_multiplier, ledger.adjacency
                )
                found = (0.0, 0.0)
                if threshold is not None:
                    found = noise.numeric_sparse_slack(bounded.size, plan.choices, 1, plan.choice_epsilon)
                slacks = (
                    found,
                    ledger.release_slack(plan, plan.choices, plan.noise_multiplier),
                    noise.selection_slack(plan.choices, bounded.size, plan.choice_epsilon),
                    batch_slack(plan),
                )
                ledger.charge_slack((sum(s[0] for s in slacks), sum(s[1] for s in slacks)))
            ledger.use(plan)
            if batch is not None:
                batch._spent.add(0)
            if ledger.exact:
                return selection.exact_choice(bounded._value, choice)
            positions, values, line = selection.selected_gaussian(
                bounded, choice, drawn_with, sensitivity, self._keys.commit()
            )
            # The planned multiplier: the real one is larger by a rounding, which differs between grids.
            short = min(1.0, float(line["noise_multiplier"]) / plan.noise_multiplier)
            line.update(plan.describe(), noise_multiplier=plan.noise_multiplier * short)
            ledger.write(line, plan.purpose)
            if batch is not None:
                batch._counted[0] = True
            return positions, values
