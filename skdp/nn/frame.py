"""The fit of a net: parameters, inputs, plan, training, and what is kept."""

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, ClassVar, Literal, Self

import numpy as np
from numpy.typing import NDArray

from skdp._compat import warn_user
from skdp.base.declare import fitted, parameter, word_or_object
from skdp.base.fit import Solution
from skdp.base.kinds import choice, described, integer
from skdp.base.plan import Advice
from skdp.exceptions import PrivacyLeakWarning
from skdp.fitting.budget import BudgetSplit
from skdp.fitting.clipped_mean import ClippedMean, Clipping
from skdp.fitting.columns import check_bounds
from skdp.fitting.loop import descend
from skdp.fitting.minibatches import MinibatchFit
from skdp.fitting.optimizers import SinglePrecision
from skdp.fitting.progress import Progress
from skdp.fitting.recursive import RecursiveMean, RecursiveMomentum
from skdp.fitting.scales import grown_share
from skdp.fitting.selection import AdaFEST, SelectedMean, SparseSelection
from skdp.fitting.sizes import CLIP_NORM, WALK, chosen_rate, chosen_run, signal
from skdp.fitting.sparsification import RandomSparsification, SparsifiedMean
from skdp.fitting.targets import Problem
from skdp.fitting.task import given
from skdp.fitting.utility import Facts, NetFacts, utility_warnings
from skdp.nn.checks import (
    check_clipping,
    check_gradient_estimator,
    check_table,
    check_validation,
    public_data,
)
from skdp.nn.clipping import Microbatch, Projections
from skdp.nn.inputs import as_rows, public_inputs, released_inputs
from skdp.nn.layers.relu import ReLU
from skdp.nn.layers.scaled_tanh import ScaledTanh
from skdp.nn.layers.tanh import Tanh
from skdp.nn.network import Network
from skdp.nn.task import (
    NetTask,
    Targets,
    has_other_layers,
    require_places,
    start_of,
    tokens_of,
    usual_clipping,
)
from skdp.privacy import PARTITION, BatchPlan, PrivacySession, PublicShape

__all__ = ["CLIPPING", "NetFit"]

SAMPLING = {"poisson": "Poisson", "partition": PARTITION}  # the ledger's words
CLIPPING = ("auto", "materialized", "ghost", "one-by-one")
Clip = Literal["auto", "materialized", "ghost", "one-by-one"] | Microbatch | Projections
GradientEstimator = (
    Literal["mean"] | RecursiveMomentum | RandomSparsification | SparseSelection | AdaFEST
)
GRADIENT_ESTIMATORS = (RecursiveMomentum, RandomSparsification, SparseSelection, AdaFEST)
INPUT_SHARE, INPUT_QUESTIONS = 0.1, 23  # least part of mu^2 for the windows of columns, and answers
ACTIVATIONS = (ReLU, ScaledTanh, Tanh)  # of hidden layers


def _check_input_range(name: str, bounds: object) -> None:
    check_bounds(bounds, name=name)


class NetFit(MinibatchFit[Problem]):
    """The fit of a private net; a subclass gives the net, its loss and its targets."""

    sampling: Literal["poisson", "partition"] = parameter(
        choice(*SAMPLING),
        """How batches are drawn. "partition" divides the records at random into batches, anew in each epoch, so
        that each is in one of them. Nothing is amplified then: the noise is larger, and epsilon does not rest on
        secret batches. Steps are whole epochs unless ``max_iter`` is given.""",
        default="poisson",
    )
    clipping: Clip = parameter(
        word_or_object(*CLIPPING, types=(Microbatch, Projections)),
        """How gradients are clipped (user guide). The words give the same up to rounding. "auto" is "ghost" for
        each convolution with at least 8 times as many weights as one record has numbers in its windows and its
        outputs, and "materialized" for all others. "one-by-one" is the slow reference. `skdp.nn.Microbatch` and
        `skdp.nn.Projections` clip other vectors, and need more noise.""",
        default="auto",
    )
    gradient_estimator: GradientEstimator = parameter(
        word_or_object("mean", types=GRADIENT_ESTIMATORS),
        """What a step releases. "mean" is the noisy mean of clipped gradients (DP-SGD).
        `skdp.nn.RecursiveMomentum` also takes from each batch how its gradients changed in the last step (DP-SRM),
        for two gradients of a record in a step. With `skdp.nn.RandomSparsification` a random part of the
        parameters rests in each epoch. With `skdp.nn.SparseSelection` and `skdp.nn.AdaFEST` a step changes chosen
        parameters only, and adds noise to no others.""",
        default="mean",
    )
    input_range: Any = parameter(
        described("tuple of (low, high)", _check_input_range),
        """Public numbers, or ``([low, ...], [high, ...])`` for each column: values are clipped to them and scaled
        to [0, 1], those of images to [-1, 1]. None releases a window for each column, for at least 10 % of the
        budget (of mu^2), and scales it to [-1, 1].""",
        default=None,
    )
    parameters_init: Any = parameter(
        described("str, path or array-like of shape (n_parameters,)"),
        """Where to start: parameters of a released model of the same net, or the file that ``save`` wrote. It
        costs no budget. Give both fits one ``input_range``, so that they scale inputs alike. None draws them from
        the key of the fit.""",
        default=None,
    )
    max_rows_per_group: int | None = parameter(
        integer(low=1, none=True),
        """Public. Of a group with more rows, so many are drawn at random and the others are left out. None takes
        all.""",
        default=None,
        place="last",
    )
    validation: tuple[Any, Any] | None = parameter(
        described("tuple of (X, y)", check_validation),
        """Public data, or a public data set like the private one: the progress bar shows the score on it. Their
        score on private data would be an unpaid release.""",
        default=None,
        releases=False,
        place="last",
    )
    sparsity_: float = fitted()
    _gone: ClassVar[dict[str, str]] = {
        **MinibatchFit._gone,
        "smoothing": "optimizer=SGD(smoothing=...)",
        "microbatch_size": "clipping=Microbatch(size=...)",
        "n_projections": "clipping=Projections(n_projections=...)",
        "recursive": "gradient_estimator=RecursiveMomentum(...)",
        "sparsification": "gradient_estimator=RandomSparsification(...)",
        "select": "gradient_estimator=SparseSelection(...) or AdaFEST(...)",
    }

    _walk = WALK
    fit_intercept = False  # of the reading of tables: a net has its own

    # ---------------------------------------------------------------- what a subclass gives

    @abstractmethod
    def _network(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        """The net, built for inputs of this shape: (n_features,), or that of an image."""

    @abstractmethod
    def _loss(self, problem: Problem) -> Any:
        """Of `skdp.nn.losses`."""

    def _targets(
        self, session: PrivacySession, problem: Problem, shares: Mapping[str, float]
    ) -> Targets:
        """How stored targets become those of the loss; it may release their range."""
        return Targets()

    def _shares(self, session: PrivacySession, problem: Problem) -> dict[str, float]:
        """Parts of the budget (of mu^2) that are not for the steps, by name."""
        if self.input_range is not None or not self._standardizes(problem):
            return {}
        if problem.records.shape.device != "cpu":
            raise ValueError(
                "the ranges of columns are released on the host only: give their public input_range=, or pass X "
                "as a NumPy array or a SciPy CSR matrix"
            )
        n_units = problem.records.n_units
        return {"inputs": grown_share(BudgetSplit(session), n_units, INPUT_QUESTIONS, INPUT_SHARE)}

    def _plan_last(self, session: PrivacySession, problem: Problem) -> Any:
        """A plan of releases after the steps, with its ``share`` of mu^2; or None."""
        return None

    def _standardizes(self, problem: Problem) -> bool:
        """Whether columns without a public range are brought to one scale; the pixels of an image have one."""
        return problem.fitted.get("image_shape_") is None

    def _after(
        self,
        session: PrivacySession,
        problem: Problem,
        task: NetTask,
        parameters: Any,
        shares: Mapping[str, float],
        last: Any,
    ) -> dict[str, Any]:
        """Last releases, and what is kept of them; ``last`` is of `_plan_last`."""
        return {}

    def _table(self, X: Any, seen: Mapping[str, Any]) -> Any:
        """X of this kind of model as a table, by the public attributes of a fit; a table stays as it is."""
        return as_rows(X, seen.get("image_shape_"))

    # ---------------------------------------------------------------- parameters

    def _check_parameters(self) -> None:
        self._check_targets()  # type: ignore[attr-defined]
        super()._check_parameters()
        check_clipping(self)
        check_gradient_estimator(self)
        if self.max_rows_per_group is not None and self.unit != "group":
            raise ValueError("max_rows_per_group needs unit='group'")

    def _inferred(self) -> tuple[str, ...]:
        warn_user(
            "the label set was inferred from y, which no epsilon covers; "
            "declare it with classes= in the constructor",
            PrivacyLeakWarning,
        )
        return ("the label set was inferred from y and is not covered by epsilon",)

    def _samples(self, n_units: int | None) -> bool:
        if self.sampling == "partition":
            return False
        # The number of parameters is not known here; with 1 the batches are as large as they can be.
        # Full batches of projections and of selection have no mu.
        estimator = self.gradient_estimator
        selects = isinstance(estimator, (SparseSelection, AdaFEST))
        if n_units is None or selects or isinstance(self.clipping, Projections):
            return True
        sizes = [self.batch_size]
        if isinstance(estimator, RecursiveMomentum):
            first = given(estimator.initial_batch_size)
            sizes += [] if first is None else [first]
        return any(isinstance(size, str) or size < n_units for size in sizes)

    def _advice(self, session: PrivacySession, problem: Problem) -> tuple[Advice, ...]:
        return utility_warnings(self._utility(session, problem))

    def _utility(self, session: PrivacySession, problem: Problem) -> Facts:
        """The public numbers that tell whether the fit may be of little use."""
        shape, network = problem.records.shape, self._built(problem)
        check_table(self.gradient_estimator, network.sequential)
        size, last = network.n_trainable, network.sequential.layers[-1]
        released = self.input_range is None and self._standardizes(problem)
        rule, recursive = self._rule(), isinstance(self.gradient_estimator, RecursiveMomentum)
        net = NetFacts(
            n_parameters=size,
            signal=signal(self.epsilon, self.delta, shape.n_units, size),
            other_inputs=self.parameters_init is not None and released,
            second_momentum=rule.momentum if recursive and rule.solver == "sgd" else 0.0,
            bounded_by=repr(last) if isinstance(last, ACTIVATIONS) else "",
        )
        return Facts(type(self).__name__, shape, self.epsilon, method="nets", net=net)

    # ---------------------------------------------------------------- the fit

    def fit(self, X: object, y: object, *, groups: object = None, **more: object) -> Self:
        """Fit the net privately.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The records lie along the first axis. Estimators with ``image_shape`` also take images of shape
            (n_samples, height, width) or (n_samples, height, width, channels).
        y : array-like of shape (n_samples,)
            Targets.
        groups : array-like of shape (n_samples,), default=None
            Who each record belongs to; needed by, and allowed with, ``unit="group"`` only.
        **more : dict
            ``sample_weight=None`` or nothing: nets have no weighted form.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If a parameter or the data are not as described. No budget is spent.
        PrivacyBudgetExceeded
            If the accountant does not hold (epsilon, delta). Nothing was read.
        PrivacyAccountingError
            If the ledger costs more than the claim, which is a bug in skdp. The result is discarded.
        """
        return super().fit(X, y, groups=groups, **more)

    def solve(self, session: PrivacySession, problem: Problem) -> Solution:
        """Plan everything from public numbers, release the scales, then train."""
        shape, loss = problem.records.shape, self._loss(problem)
        if shape.device != "cpu" and shape.container == "csr":
            raise ValueError(
                "nets take dense arrays of CuPy: use X.toarray(), or pass X as a NumPy array or a SciPy CSR matrix"
            )
        if shape.device != "cpu" and isinstance(self.gradient_estimator, RecursiveMomentum):
            raise ValueError(
                "RecursiveMomentum takes records of the host: pass X as a NumPy array or a SciPy CSR matrix"
            )
        network = self._built(problem)
        clipping = self._clipping(network)
        public = public_data(
            self._scratch(),  # type: ignore[attr-defined]
            self.validation,
            problem.fitted,
            self._table,
        )
        start = None if self.parameters_init is None else start_of(self.parameters_init, network)
        last = self._plan_last(session, problem)
        shares = self._shares(session, problem)
        if last is not None:
            shares["recalibration"] = last.share
        size, share = network.n_trainable, 1.0 - math.fsum(shares.values())
        plans = self._plan(session, shape, clipping, size, share)
        self._method(clipping).warn_before(plans, self.adjacency, size, tokens_of(network))
        # Ready layers treat each row by itself, but a BLAS may round it by its place. One by one, rows stay at
        # their places in what else is computed of them, if their number is public.
        places_stay = clipping.method == "one-by-one" and shape.n_records is not None
        if has_other_layers(network.sequential) or not places_stay:
            require_places(
                network.sequential, network.shapes[0], clipping.layers, shape.dtype, shape.device
            )
        inputs = None
        if "inputs" not in shares:
            inputs = public_inputs(self.input_range, network.shapes[0], shape.n_features)
        if self.max_rows_per_group is not None:  # here the key is drawn, and the budget spent
            few = session.limit_rows(problem.records, int(self.max_rows_per_group))
            problem = replace(problem, records=few)
        if inputs is None:
            inputs = released_inputs(session, problem.records, shares["inputs"])
        targets = self._targets(session, problem, shares)
        if start is None:
            start = network.initialize(np.random.default_rng(session.integers(2**62, 4).tolist()))
        task = NetTask(network, loss, inputs, targets, start)
        score = None if public is None else partial(self._score_of, task, *public)
        with self._progress(session, plans, score) as monitor:
            return self._trained(session, problem, task, plans, clipping, shares, last, monitor)

    def _trained(
        self, session: PrivacySession, problem: Problem, task: NetTask, plans: Sequence[BatchPlan],
        clipping: Clipping, shares: Mapping[str, float], last: Any, monitor: Progress | None,
    ) -> Solution:  # fmt: skip
        """Take the steps, and the last releases."""
        method, rate, n_iter = self._method(clipping), self._rate(plans, clipping), releases(plans)
        gradient = method.begin(session, problem.records, task.gradients(clipping), *plans)
        start = task.trained(task.start)
        steps = SinglePrecision(start, self._rule(), rate, n_iter, task.tensors)
        theta = descend(gradient, steps, steps.here, n_iter, monitor).theta
        parameters = task.whole(theta)
        attributes = {
            "parameters_": parameters,
            "network_": task.network,
            "inputs_": task.inputs,
            "clip_norm_": clipping.norm,
            "learning_rate_": rate,
            "batch_size_": plans[-1].batch_size,
            "sparsity_": method.sparsity(plans[-1], self.adjacency, theta.size),
            **self._after(session, problem, task, parameters, shares, last),
        }
        return Solution(theta, n_iter, attributes)

    def _built(self, problem: Problem) -> Network:
        """The net for the shape of these records, with an output for each that the loss has."""
        n_outputs: int = self._loss(problem).n_outputs
        shape: Any = problem.fitted.get("image_shape_") or (problem.records.n_features,)
        network = self._network(shape, n_outputs)
        if network.shapes[-1] != (n_outputs,):
            raise ValueError(
                f"the net's last layer gives records of shape {network.shapes[-1]}, but this fit needs "
                f"({n_outputs},): end the net with Dense({n_outputs})"
            )
        if not network.n_trainable:
            raise ValueError(
                "the net has no parameters that are not frozen, so nothing would be trained"
            )
        return network

    def _method(self, clipping: Clipping) -> ClippedMean:
        """How the steps release their gradients."""
        estimator = self.gradient_estimator
        if isinstance(estimator, RecursiveMomentum):
            return RecursiveMean(clipping, estimator)
        if isinstance(estimator, RandomSparsification):
            return SparsifiedMean(clipping, estimator)
        if isinstance(estimator, (SparseSelection, AdaFEST)):
            return SelectedMean(clipping, estimator)
        return ClippedMean(clipping)

    def _plan(
        self,
        session: PrivacySession,
        shape: PublicShape,
        clipping: Clipping,
        size: int,
        share: float,
    ) -> tuple[BatchPlan, ...]:
        """Plan all steps, before anything is released."""
        run = chosen_run(
            self.epsilon, self.delta, shape.n_units, size,
            batch_size=given(self.batch_size), max_iter=given(self.max_iter), n_epochs=self.n_epochs,
        )  # fmt: skip
        method, n_iter = self._method(clipping), run.n_iter
        if self.sampling == "partition" and given(self.max_iter) is None:  # whole passes
            n_batches = math.ceil(shape.n_units / run.batch_size)
            n_iter = n_batches * math.ceil(n_iter / n_batches)
        first = method.first(n_iter, run.batch_size)
        left = n_iter - sum(group.releases for group in first)
        group = method.group(left, run.batch_size, self._projections(), size)
        plans = session.plan_batches(
            [*first, group], sampling=SAMPLING[self.sampling], n_units=shape.n_units, share=share
        )
        session.require_feasible_batches(size, plans, scans=method.scans)
        return plans

    def _clipping(self, network: Network) -> Clipping:
        given_norm = given(self.clip_norm)
        norm = CLIP_NORM if given_norm is None else float(given_norm)
        way, depth = self.clipping, len(network.sequential.layers)
        if isinstance(way, Microbatch):
            return Clipping(norm, "microbatch", int(way.size), ("materialized",) * depth)
        if isinstance(way, Projections):
            # Inner products with outer products, which ghost norms leave as they are, too.
            return Clipping(norm, "projections", layers=("ghost",) * depth)
        layers = ("ghost" if way == "ghost" else "materialized",) * depth
        if way != "auto":
            return Clipping(norm, way, layers=layers)
        # Ghost norms are those of whole gradients.
        if not isinstance(self.gradient_estimator, (RecursiveMomentum, RandomSparsification)):
            layers = usual_clipping(network)
        return Clipping(norm, "ghost" if "ghost" in layers else "materialized", layers=layers)

    def _projections(self) -> int:
        """Number of projections that estimate norms, or 0."""
        return int(self.clipping.n_projections) if isinstance(self.clipping, Projections) else 0

    def _rate(self, plans: Sequence[BatchPlan], clipping: Clipping) -> float:
        """Step size of the first step; the noise in an entry of a mean gradient is public."""
        rate = given(self.learning_rate)
        if rate is not None:
            return float(rate)
        method, rule, n_iter = self._method(clipping), self._rule(), releases(plans)
        noise, first = method.noise(plans, clipping.moves(self.adjacency))
        rate = chosen_rate(noise, clipping.norm, n_iter, rule, self._walk, first)
        # An entry gets the noise of so many steps only. Adam's steps have one size, whatever the noise.
        return rate / math.sqrt(method.changed) if rule.solver == "sgd" else rate

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        clipping = self._clipping(self._built(problem))
        facts: dict[str, object] = {"clipping": clipping.method, "clip_norm": clipping.norm}
        facts |= self._method(clipping).facts()
        if self.clipping == "auto" and clipping.method == "ghost":  # all other layers: materialized
            facts["ghost_layers"] = [i for i, way in enumerate(clipping.layers) if way == "ghost"]
        if clipping.method == "microbatch":
            facts["microbatch_size"] = clipping.microbatch_size
            facts["sensitivity"] = f"{clipping.moves(self.adjacency):g} clip_norm"
        if clipping.method == "projections":
            facts["n_projections"] = self._projections()
        if not isinstance(self.gradient_estimator, str):
            facts["gradient_estimator"] = repr(self.gradient_estimator)
        if self.max_rows_per_group is not None:
            facts["max_rows_per_group"] = int(self.max_rows_per_group)
        if getattr(self, "classes", None) is not None:
            labels = np.asarray(problem.fitted["classes_"]).tolist()
            facts["classes"] = [x if isinstance(x, (str, int, float)) else str(x) for x in labels]
        return facts

    def _assumptions(self, problem: Problem) -> tuple[str, ...]:
        found = []
        if has_other_layers(self._built(problem).sequential):
            found.append("layers of your own keep their duties: see skdp.nn.Layer")
        if self.input_range is not None:
            found.append("input_range was not chosen by looking at these records")
        if self.validation is not None:
            found.append(
                "validation holds public data; a pickle of the model holds them too, as a parameter"
            )
        return tuple(found)

    def _starts_from(self) -> tuple[str, ...]:
        if self.parameters_init is None:
            return ()
        return ("parameters_init is a released model; its own cost is not counted here",)

    @abstractmethod
    def _score_of(
        self, task: NetTask, X: Any, y: NDArray[Any], theta: NDArray[np.float64]
    ) -> float:
        """Score of released parameters on the public validation data."""

    def _progress(
        self,
        session: PrivacySession,
        plans: Sequence[BatchPlan],
        score: Callable[[NDArray[np.float64]], float] | None,
    ) -> Progress:
        name = type(self).__name__
        return Progress(name, releases(plans), session, self.verbose, self.callback, score=score)


def releases(plans: Sequence[BatchPlan]) -> int:
    """How many steps the plans are for."""
    return sum(plan.releases for plan in plans)
