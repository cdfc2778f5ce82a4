"""The rows that a step of sparse ERM uses, chosen without looking at them, and the cost of a unit.

Zhang, Mironov and Hejazinia (2021, Theorem 1, both versions) draw one of m *fixed* groups of rows a step and
claim that this amplifies: (log(1 + (e^eps - 1) / m), delta / m) a step for every record. **That is wrong.**
Their Lemma 1 compares the output on a sample with a record to the output on a sample without it. Here these
are the means of two different groups, which may be 2 c2 apart, not 2 c2 / |group|. A release that shows which
group was drawn loses the full eps with probability 1 / m, so only delta is smaller, not epsilon.

What holds, with c2 the sup-norm clip of a row's gradient, n rows, and replace-one (factor 2):

* `AllRows`. Sensitivity 2 c2 / n a step; T steps cost T runs. The default: the others never need less noise.
* `PublicParts`. Each row is in one public batch group, a step uses one of them: sensitivity 2 c2 / (rows of the
  group), noise in proportion. Given the earlier releases, a step on another group has the same distribution
  whatever the row is, and the row pays for the steps of its own group only, at full price: ceil(T / m) runs if the
  groups are visited in a random cyclic order, max_j (visits of group j) if they are drawn with replacement
  beforehand. At the same T the noise of a step is sqrt(m) times the noise of `AllRows` (equal sizes, delta > 0).
* `FreshSample`. A step draws b of the n units, uniformly without replacement, anew and in secret: sensitivity
  2 c2 / b, and a run of pure cost e costs log(1 + (b / n) (e^e - 1)). By Jensen's inequality this is at least
  (b / n) e, the price of a run with the same noise on all units: sampling saves time, never noise. With
  ``unit="group"`` the units are groups and b = 1 is the paper's drawing of one of m.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import BoundedStatistic, NumericSparsePlan, PrivacySession


@dataclass(frozen=True)
class Batch:
    """The records (or groups) of one step.

    Attributes
    ----------
    units : ndarray of int or None
        None: all of them.
    divisor : int or None
        The public count by which the sum is divided; None: the public number of units.
    part : int
        Which of the plan's disjoint parts they are.
    """

    units: np.ndarray | None = None
    divisor: int | None = None
    part: int = 0


class AllRows:
    """Every step uses every row; other schedules inherit from it.

    A schedule is fixed, or drawn secretly, before the data are touched.

    Attributes
    ----------
    runs : int
        Number of runs that one unit pays for.
    how : dict
        What else a session must know to fix the noise.
    """

    def __init__(self, steps: int) -> None:
        self.steps = self.runs = steps
        self.how: dict[str, Any] = {}

    def plan(self, budget: BudgetSplit, n_hits: int, split: str, size: int) -> NumericSparsePlan:
        """Fix the noise of all steps."""
        return budget.plan_numeric_sparse(self.runs, n_hits, split=split, size=size, **self.how)

    def draw(self, session: PrivacySession, step: int) -> Batch:
        """Return the rows of a step."""
        return Batch()

    def release(
        self, session: PrivacySession, mean: BoundedStatistic, plan: Any, threshold: float, batch: Batch
    ) -> tuple[np.ndarray, np.ndarray]:
        """Release the large entries of a step's mean gradient."""
        return session.numeric_sparse(mean, plan, threshold, part=batch.part)


class PublicParts(AllRows):
    """A step uses one of m public groups of rows, in an order that is fixed before the data are touched.

    Parameters
    ----------
    codes : ndarray of int of shape (n,)
        The group 0..m-1 of each row: public.
    order : ndarray of int of shape (n_steps,)
        The group of each step: public.
    """

    def __init__(self, codes: np.ndarray, order: np.ndarray) -> None:
        super().__init__(len(order))
        self._rows = [np.flatnonzero(codes == part) for part in range(int(codes.max()) + 1)]
        self._order = order
        self.runs = int(np.bincount(order).max())
        self.how = {"parts": len(self._rows)}

    def draw(self, session: PrivacySession, step: int) -> Batch:
        part = int(self._order[step])
        return Batch(self._rows[part], len(self._rows[part]), part)


class FreshSample(AllRows):
    """A step uses a uniformly random subset of the units, drawn anew from the session's key stream."""

    def __init__(self, steps: int, n_units: int, size: int) -> None:
        super().__init__(steps)
        self._n_units, self._size = n_units, size
        self.how = {"rate": size / n_units}

    def draw(self, session: PrivacySession, step: int) -> Batch:
        """Return the units of a step: never the same sample again, never shown."""
        return Batch(np.sort(session.permutation(self._n_units, self._size)), self._size)


def cyclic(session: PrivacySession, n_parts: int, steps: int) -> np.ndarray:
    """Visit every part once an epoch, in a fresh random order: one part is visited at most ceil(T / m) times."""
    epochs = -(-steps // n_parts)
    return np.concatenate([session.permutation(n_parts) for _ in range(epochs)])[:steps]


def published(session: PrivacySession, n_parts: int, steps: int) -> np.ndarray:
    """Draw a part with replacement for every step: the paper's order, drawn before the data are touched."""
    return session.integers(n_parts, steps)


SCHEDULES: dict[str, Callable[[PrivacySession, int, int], np.ndarray]] = {"cyclic": cyclic, "published": published}


def require_replace_one(adjacency: str) -> None:
    """Refuse secret samples where their amplification has no proof, before the data are read."""
    if adjacency != "replace-one":
        raise UnsupportedAccounting(
            "batch_size= draws secret samples, whose amplification is proven under "
            f"adjacency='replace-one' only, not under {adjacency!r}; leave batch_size=None"
        )
