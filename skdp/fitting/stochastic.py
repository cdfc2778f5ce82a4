"""The frame of a stochastic fit: parameters of the minibatches, the session that samples, the penalty."""

from collections.abc import Callable
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Unpack

from skdp.base.declare import fitted
from skdp.base.fit import SessionOptions
from skdp.base.plan import BudgetSplit
from skdp.base.problem import Solution
from skdp.fitting import parameters
from skdp.fitting.closing import LinearDecision
from skdp.fitting.linear import LinearFit
from skdp.fitting.parameters import Auto, AutoInt, Sampling
from skdp.fitting.targets import Problem
from skdp.fitting.task import PENALTIES, Task, check_clip, given, linear_progress, parameter_shape, start_point
from skdp.privacy import PrivacySession, accounting

# The parameter's words for the kinds of sampling, and the ledger's.
SAMPLING = {"poisson": "Poisson", "without_replacement": "without replacement"}


class StochasticFit(LinearFit):
    """A fit by noisy gradients of minibatches; a subclass gives `_planned`, `_algorithm` and `_settings`.

    Its session may sample, so that an accountant is charged (epsilon, delta) by basic composition; fits on
    full batches keep their mu.
    """

    _no_blocks: ClassVar[str | None] = None

    batch_size: AutoInt = parameters.BATCH_SIZE
    sampling: Sampling = parameters.SAMPLING
    max_iter: AutoInt = parameters.MAX_ITER
    learning_rate: Auto = parameters.LEARNING_RATE
    penalty: Literal["l2", "nonconvex"] = parameters.PENALTY
    alpha: float = parameters.ALPHA
    coef_init: object = parameters.COEF_INIT
    verbose: bool = parameters.VERBOSE
    callback: Callable[..., object] | None = parameters.CALLBACK
    clip_norm: Auto = parameters.CLIP_NORM
    max_weight: float | None = parameters.MAX_WEIGHT
    learning_rate_: float = fitted()
    clip_norm_: float = fitted()
    # Whether batch_size="auto" takes batches that are smaller than the data.
    _auto_samples = False
    # Functions: of a task and the settings, the decision how to run; of a task and its details, the run.
    _planned: ClassVar[Callable[..., LinearDecision]]
    _algorithm: ClassVar[Callable[..., Solution]]
    _settings: ClassVar[Callable[..., object]]  # the parameters as the algorithm takes them

    def _numbers(self, *names: str) -> dict[str, Any]:
        """Parameters as the algorithm takes them: None for a word."""
        values = {name: given(getattr(self, name)) for name in names}
        return {k: int(v) if isinstance(v, Integral) else v for k, v in values.items()}

    def _start(self, problem: Problem) -> Any:
        return start_point(
            self.coef_init,
            parameter_shape(problem.records, problem.loss),
            problem.records.n_features,
            fit_intercept=self.fit_intercept,
            center=problem.center,
        )

    def _task(self, budget: BudgetSplit, problem: Problem) -> Task:
        penalty = PENALTIES[self.penalty](float(self.alpha), problem.records.n_features)
        theta = self._start(problem)
        return Task(budget, problem.records, problem.loss, theta, penalty=penalty)

    def _method(self, budget: BudgetSplit, problem: Problem) -> LinearDecision:
        return self._planned(self._task(budget, problem), self._settings())

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        with linear_progress(self, session, given(self.max_iter)) as monitor:
            task = replace(self._task(problem.budget, problem), monitor=monitor)
            return self._algorithm(task, problem.decision.details)

    def _check_parameters(self) -> None:
        super()._check_parameters()
        check_clip("clip_norm", self.clip_norm, self.epsilon)
        if self.sampling == "without_replacement" and self._samples(None):
            if self.n_public is not None:
                raise ValueError(
                    "batches without replacement are part of all records, and n_public may be another number: "
                    "leave out n_public, or use sampling='poisson'"
                )
            accounting.sampled.require_supported(SAMPLING[self.sampling], self.adjacency, ["gaussian"])

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        options["minibatches"] = self._samples(n_units)
        return super()._open_session(n_units, **options)

    def _samples(self, n_units: int | None) -> bool:
        """Whether a batch may be smaller than the data, given the public number of units.

        None is a number that is not known before the groups are read; a number of rows would not be public.
        """
        size = given(self.batch_size)
        if size is None:
            return self._auto_samples
        return n_units is None or size < n_units
