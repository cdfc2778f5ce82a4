"""The fit of the sparse-gradient estimators: parameter checks, the schedule of batches, the report."""

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar, Literal, Self

import numpy as np

from skdp.base import encode_groups
from skdp.base.declare import changed, fitted, parameter
from skdp.base.kinds import choice, integer, real
from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.base.user_tables import names_weights
from skdp.exceptions import UnsupportedAccounting
from skdp.fitting import parameters
from skdp.fitting.closing import Closing, LinearDecision, TargetUnits
from skdp.fitting.linear import LinearFit
from skdp.fitting.parameters import Auto, AutoInt
from skdp.fitting.targets import Problem, is_classifier
from skdp.fitting.task import Task, check_clip, given, linear_progress, parameter_shape, start_point
from skdp.linear_model.sparse_erm.batches import SCHEDULES, AllRows, FreshSample, PublicParts, require_replace_one
from skdp.linear_model.sparse_erm.solver import (
    MAX_STEPS,
    MIN_STEPS,
    SparseERMSettings,
    SparseSteps,
    automatic_steps,
    planned_sparse,
    solve,
)
from skdp.losses import HuberLoss, SquaredLoss
from skdp.privacy import PrivacySession

ERRATUM = (
    "Theorem 1 of Zhang, Mironov and Hejazinia (2021, both versions) claims that drawing one of m fixed groups of "
    "rows amplifies the epsilon of a record. It does not, as its lemma needs a fresh sample of records; no such "
    "claim is made here. Their loop from 0 to T makes T + 1 steps; version 1 releases one value too many."
)


class SparseGradientFit(LinearFit):
    """The fit of all three estimators."""

    _no_blocks: ClassVar[str | None] = "its batches list the rows by number"

    delta = changed(
        text=parameters.PURE_DELTA, more="``delta=0`` needs numbers for ``clip_norm`` and ``learning_rate``."
    )
    unit = changed(more=parameters.SHARED_WEIGHT)
    n_hits: AutoInt = parameter(
        integer(low=1, word="auto"),
        """Largest number of gradient entries that a step releases (c1 in the paper). A step pays for all of them,
        found or not. "auto" is 1, and all entries without privacy.""",
        default="auto",
    )
    max_iter: AutoInt = parameters.more(
        parameters.MAX_ITER,
        """"auto" is the number for which the threshold stays below about a tenth of the clip norm, at least 20
        and at most 100 (user guide).""",
    )
    learning_rate: Auto = parameters.more(
        parameters.LEARNING_RATE,
        """With a number a step is ``theta <- theta - learning_rate * released``, and the last iterate is the
        result. "auto" averages the iterates, and drops values below half of the threshold as false alarms
        (user guide).""",
    )
    clip_norm: Auto = parameters.more(
        parameters.CLIP_SUP_NORM,
        """It is the c2 of the paper, and "auto" is the median of the gradients' sup norms.
        ``learning_rate="auto"`` needs the same medians.""",
    )
    threshold: Auto = parameter(
        real(low=0, word="auto", finite=True),
        """Level above which a noisy entry of the mean gradient is released (alpha in the paper). "auto" is
        ``0.9 log(n_entries / n_hits)`` scales of the noise, which is public.""",
        default="auto",
    )
    split: Literal["optimal", "published"] = parameter(
        choice("optimal", "published"),
        """How a step's budget is divided between finding an entry and releasing its value. "published" is the
        paper's .95 and .05.""",
        default="optimal",
    )
    refit: Auto = parameter(
        parameters.SHARE,
        """Share in [0, 1) of the budget that is kept for 40 noisy gradient steps after the ``max_iter`` steps.
        They use all rows, and only the features that were found. "auto" is 0.2, but 0 with a number for
        ``learning_rate``, with ``delta=0`` and without privacy.""",
        default="auto",
    )
    schedule: Literal["cyclic", "published"] = parameter(
        choice(*SCHEDULES),
        """Used with ``batch_groups`` in `fit` only. "cyclic" visits the groups in a new random order each
        epoch. "published" draws a group with replacement for each step, beforehand, and charges the one
        drawn most often.""",
        default="cyclic",
    )
    batch_size: int | None = parameter(
        integer(low=1, none=True),
        """If given, each step uses a fresh, secret, uniformly drawn sample of this many records (with
        ``unit="group"``: of groups). Steps are faster and have more noise. It needs "replace-one" adjacency.""",
        default=None,
    )
    coef_init: object = parameters.COEF_INIT
    max_weight: float | None = parameters.MAX_WEIGHT
    verbose: bool = parameters.VERBOSE
    callback: Callable[..., object] | None = parameters.more(parameters.CALLBACK, "Batches are not shown.")
    n_iter_: int = fitted("int", "Number of steps, without the steps of a refit.")
    n_hits_: int = fitted("int", 'The number given, or the one that "auto" became.')
    n_released_: int = fitted("int", "Number of gradient entries that all steps released.")
    threshold_: float = fitted("float", "The threshold of the last step.")
    learning_rate_: float = fitted()
    clip_norm_: float = fitted()

    _pure_possible = True
    _erratum: ClassVar[str | None] = ERRATUM

    @names_weights
    def fit(
        self, X: object, y: object = None, *, groups: object = None, batch_groups: object = None,
        sample_weight: object = None, **more: object,
    ) -> Self:  # fmt: skip
        """Fit the model privately.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            Neither copied (if it is float32 or float64) nor changed.
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), default=None
            Who each row belongs to: the unit of privacy. Needed by, and allowed with, ``unit="group"`` only.
        batch_groups : array-like of shape (n_samples,), default=None
            Which rows a step takes together, with ``unit="record"``. It shapes batches and protects nobody:
            membership and sizes are **public**. For rows of one person use ``groups``.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights, which are private and are clipped to [0, ``max_weight``]. They need this public bound in the
            constructor. The signature of an instance names them where it is declared.
        **more : dict
            Must be empty.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If a parameter or the data are not as described. No budget is spent.
        UnsupportedAccounting
            If no proof covers the batches under this adjacency. Nothing was read.
        PrivacyBudgetExceeded
            If the accountant does not hold (epsilon, delta). Nothing was read.
        PrivacyAccountingError
            If the ledger costs more than the claim: a bug in skdp. The result is discarded.
        """
        more["sample_weight"] = sample_weight
        if batch_groups is not None:
            self._check_batch_groups()
            more["batch_groups"] = batch_groups
        elif self.schedule == "published":
            raise ValueError(
                "schedule='published' orders the batches of batch_groups=, and fit was given none; give "
                "batch_groups= or use schedule='cyclic'"
            )
        return super().fit(X, y, groups=groups, **more)

    def _check_batch_groups(self) -> None:
        if self.unit == "group":
            raise ValueError(
                "batch_groups= shapes the batches of single records; with unit='group' give groups= alone, "
                "and batch_size= for samples of groups"
            )
        if self.batch_size is not None:
            raise ValueError("give batch_groups= in fit or batch_size=, not both")
        if self.adjacency == "add-remove":
            raise UnsupportedAccounting(
                "under adjacency='add-remove' the sizes of batch_groups are private; use adjacency='zero-out'"
            )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_clip("clip_norm", self.clip_norm, self.epsilon)
        if self.batch_size is not None:
            require_replace_one(self.adjacency)
            if self.n_public is not None:
                raise ValueError(
                    "batch_size= draws part of all records, and n_public may be another number: leave out one "
                    "of the two"
                )
        if self.delta == 0 and math.isfinite(self.epsilon):
            self._check_pure()

    def _check_pure(self) -> None:
        if given(self.clip_norm) is None or given(self.learning_rate) is None:
            raise ValueError(
                "delta=0 needs pure mechanisms, but 'auto' releases medians with Gaussian "
                "noise; give clip_norm and learning_rate as numbers, or delta > 0"
            )
        if given(self.refit):
            raise ValueError("delta=0 needs pure mechanisms, but a refit adds Gaussian noise; use refit=0")

    def read(
        self, X: object, y: object = None, groups: object = None, batch_groups: object = None, **weights: object
    ) -> Problem:
        problem: Problem = super().read(X, y, groups, **weights)  # type: ignore[safe-super]
        codes = None if batch_groups is None else _batch_codes(batch_groups, y)
        return replace(problem, batch_codes=codes)

    def _closing(self, problem: Problem) -> Sequence[Closing]:
        if is_classifier(self):
            return super()._closing(problem)
        # Numbers for all scales make it the published algorithm.
        adaptive = given(self.clip_norm) is None or given(self.learning_rate) is None
        searched = adaptive and isinstance(problem.loss, (SquaredLoss, HuberLoss))
        return (TargetUnits.of(self, searched=None if searched else False),)

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        task, codes, shape = (self._task(budget, problem), problem.batch_codes, problem.records.shape)
        if self.batch_size is not None and self.batch_size > shape.n_units:
            raise ValueError(f"batch_size={self.batch_size} is more than the {shape.counted()}")
        sizes = np.array([shape.n_units]) if codes is None else np.bincount(codes)
        steps = self._steps(int(sizes.min()), len(sizes), task.theta.size)
        return planned_sparse(task, steps, self._settings())

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        details: SparseSteps = problem.decision.details
        with linear_progress(self, session) as monitor:
            task = replace(self._task(problem.budget, problem), monitor=monitor)
            return solve(task, self._batches(problem.budget, problem, details.n_iter), details)

    def _task(self, budget: BudgetSplit, problem: Problem) -> Task:
        records, loss = problem.records, problem.loss
        theta = start_point(
            self.coef_init,
            parameter_shape(records, loss),
            records.n_features,
            fit_intercept=self.fit_intercept,
            center=problem.center,
        )
        return Task(budget, records, loss, theta)

    def _settings(self) -> SparseERMSettings:
        names = ("n_hits", "learning_rate", "clip_norm", "threshold", "refit")
        return SparseERMSettings(**{name: given(getattr(self, name)) for name in names}, split=self.split)

    def _batches(self, budget: BudgetSplit, problem: Problem, steps: int) -> AllRows:
        """Return the schedule: public, or drawn from the key stream, before the data are touched."""
        records, codes = problem.records, problem.batch_codes
        if codes is not None:
            n_parts = int(codes.max()) + 1
            return PublicParts(codes, SCHEDULES[self.schedule](budget.session, n_parts, steps))
        if self.batch_size is None:
            return AllRows(steps)
        return FreshSample(steps, records.n_units, int(self.batch_size))

    def _steps(self, n: int, n_parts: int, size: int) -> int:
        steps = given(self.max_iter)
        if steps is not None:
            return int(steps)
        runs = automatic_steps(n, size, epsilon=self.epsilon, delta=self.delta, adjacency=self.adjacency)
        return MAX_STEPS * n_parts if runs is None else max(MIN_STEPS, runs * n_parts)

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        known = super()._public_facts(problem)
        if problem.batch_codes is not None:
            sizes = np.bincount(problem.batch_codes)
            return {
                **known,
                "n_batch_groups": len(sizes),
                "smallest_batch_group": int(sizes.min()),
                "schedule": self.schedule,
            }
        return known if self.batch_size is None else {**known, "batch_size": int(self.batch_size)}

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        found = super()._assumptions(problem)
        if problem.batch_codes is not None:
            found += ("which row is in which of batch_groups is public, and no record could change it",)
        elif self.batch_size is not None:
            found += ("the samples of the steps stay secret: time and memory do not show them",)
        return found


def _batch_codes(batch_groups: object, y: Any) -> np.ndarray:
    """Codes 0..m-1, with the parameter's own name in an error."""
    try:
        return encode_groups(batch_groups, len(y))
    except ValueError as error:
        message = str(error).replace("groups", "batch_groups", 1)
    raise ValueError(message)
