"""The fit of a net: parameters, the solver, and what the report says; `skdp.nn.decision` decides."""

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, ClassVar, Literal, Self, Unpack

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from skdp.base.declare import fitted, parameter, word_or_object
from skdp.base.fit import SessionOptions
from skdp.base.kinds import choice, described, integer
from skdp.base.plan import Advice, BudgetSplit, Decision
from skdp.base.problem import Solution
from skdp.base.tables import validate_table
from skdp.fitting.columns import check_bounds
from skdp.fitting.loop import descend
from skdp.fitting.minibatch_warnings import ImageFacts, NetFacts, StepFacts
from skdp.fitting.minibatches import MinibatchFit
from skdp.fitting.noisy_mean import estimator_of, method_of
from skdp.fitting.optimizers import SinglePrecision
from skdp.fitting.recalibrate import Recalibration
from skdp.fitting.recursive import RecursiveMomentum
from skdp.fitting.scales import grown_share
from skdp.fitting.selection import AdaFEST, SparseSelection
from skdp.fitting.sizes import WALK
from skdp.fitting.sparsification import RandomSparsification
from skdp.fitting.targets import Problem, table_records
from skdp.fitting.task import Progress
from skdp.fitting.utility import Facts, utility_warnings
from skdp.nn.checks import check_clipping, check_validation
from skdp.nn.clipping import Microbatch, Projections
from skdp.nn.decision import INPUT_QUESTIONS, SAMPLING, NetDetails, decide
from skdp.nn.export import exported
from skdp.nn.inputs import Inputs, as_rows, released_inputs
from skdp.nn.layers.relu import ReLU
from skdp.nn.layers.scaled_tanh import ScaledTanh
from skdp.nn.layers.tanh import Tanh
from skdp.nn.network import Network
from skdp.nn.storage import kept_arrays, read_kept
from skdp.nn.task import NetTask, Targets, has_other_layers, outputs_of, tokens_of
from skdp.privacy import PrivacySession

__all__ = ["CLIPPING", "NetFit"]

CLIPPING = ("auto", "materialized", "ghost", "one-by-one")
Clip = Literal["auto", "materialized", "ghost", "one-by-one"] | Microbatch | Projections
MeanOrEstimator = Literal["mean"] | RecursiveMomentum | RandomSparsification | SparseSelection | AdaFEST
GRADIENT_ESTIMATORS = (RecursiveMomentum, RandomSparsification, SparseSelection, AdaFEST)
INPUT_SHARE = 0.1  # least part of mu^2 for the windows of columns
ACTIVATIONS = (ReLU, ScaledTanh, Tanh)  # of hidden layers


class NetFit(MinibatchFit[Problem]):
    """The fit of a private net; a subclass gives the net, its loss and its targets.

    `skdp.nn.decision.decide` makes every public decision once; the size and number of batches follow from
    `skdp.nn.decision.sized_batches`. The other methods read what it found, `NetDetails`.
    """

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
    gradient_estimator: MeanOrEstimator = parameter(
        word_or_object("mean", types=GRADIENT_ESTIMATORS),
        """What a step releases. "mean" is the noisy mean of clipped gradients (DP-SGD).
        `skdp.nn.RecursiveMomentum` also takes from each batch how its gradients changed in the last step (DP-SRM),
        for two gradients of a record in a step. With `skdp.nn.RandomSparsification` a random part of the
        parameters rests in each epoch. With `skdp.nn.SparseSelection` and `skdp.nn.AdaFEST` a step changes chosen
        parameters only, and adds noise to no others.""",
        default="mean",
    )
    input_range: Any = parameter(
        described("tuple of (low, high)", lambda name, given: check_bounds(given, name=name)),
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
    n_features_in_: int = fitted()
    feature_names_in_: NDArray[Any] = fitted()
    n_iter_: int = fitted()
    sparsity_: float = fitted()
    network_: Network = fitted()
    parameters_: NDArray[np.float32] = fitted()
    inputs_: Inputs = fitted()
    _records = table_records
    _start_from = "parameters_init"
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

    def _targets(self, session: PrivacySession, problem: Problem) -> Targets:
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

    def _recalibration(self, session: PrivacySession, problem: Problem) -> Recalibration | None:
        """The plan of the last releases of a classifier, where the budget allows them."""
        return None

    def _standardizes(self, problem: Problem) -> bool:
        """Whether columns without a public range are brought to one scale; the pixels of an image have one."""
        return problem.fitted.get("image_shape_") is None

    def _image_facts(self, problem: Problem) -> ImageFacts | None:
        """Where records are images: their public shape and type."""
        return None

    def _after(self, session: PrivacySession, problem: Problem, task: NetTask, parameters: Any) -> dict[str, Any]:
        """Last releases, and what is kept of them."""
        return {}

    def _table(self, X: Any, seen: Mapping[str, Any]) -> Any:
        """X of this kind of model as a table, by the public attributes of a fit; a table stays as it is."""
        return as_rows(X, seen.get("image_shape_"))

    # ---------------------------------------------------------------- parameters

    def _check_parameters(self) -> None:
        self._check_targets()  # type: ignore[attr-defined]
        super()._check_parameters()
        check_clipping(self)
        if self.max_rows_per_group is not None and self.unit != "group":
            raise ValueError("max_rows_per_group needs unit='group'")

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        options["minibatches"] = self._samples(n_units)
        return super()._open_session(n_units, **options)

    def _samples(self, n_units: int | None) -> bool:
        if self.sampling == "partition":
            return False
        estimator = estimator_of(self.gradient_estimator)
        # The number of parameters is not known here; with 1 the batches are as large as they can be.
        # Full batches of projections and of selection have no mu.
        if n_units is None or method_of(self.clipping) == "projections" or not estimator.full_batches:
            return True
        sizes = (self.batch_size, *estimator.batch_sizes)
        return any(isinstance(size, str) or size < n_units for size in sizes)

    # ---------------------------------------------------------------- the plan

    def _decide(self, session: PrivacySession, problem: Problem) -> Decision:
        return decide(self, session, problem)

    def _advice(self, session: PrivacySession, problem: Problem) -> tuple[Advice, ...]:
        return utility_warnings(self._utility(session, problem))

    def _utility(self, session: PrivacySession, problem: Problem) -> Facts:
        """The public numbers that tell whether the fit may be of little use."""
        shape, details, seen = problem.records.shape, problem.decision.details, problem.decision.signal
        rule, last = details.rule, details.network.sequential.layers[-1]
        remembers = estimator_of(self.gradient_estimator).remembers
        steps = StepFacts(details.n_parameters, tokens_of(details.network))
        net = NetFacts(
            n_parameters=details.n_parameters,
            signal=math.inf if seen is None else seen,
            other_inputs=self.parameters_init is not None and "inputs" in details.shares,
            second_momentum=rule.momentum if remembers and rule.solver == "sgd" else 0.0,
            bounded_by=repr(last) if isinstance(last, ACTIVATIONS) else "",
        )
        facts = Facts(
            type(self).__name__, shape, self.epsilon, method="nets", net=net, images=self._image_facts(problem),
            steps=details.method.utility(details.batches, self.adjacency, steps),
        )  # fmt: skip
        if session.exact or not is_classifier(self):
            return facts
        return replace(facts, task="classes", mass=shape.n_units * session.mu)

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
        """Release the scales, take the steps, and make the last releases."""
        details: NetDetails = problem.decision.details
        if self.max_rows_per_group is not None:  # here the key is drawn, and the budget spent
            few = session.limit_rows(problem.records, int(self.max_rows_per_group))
            problem = replace(problem, records=few)
        inputs, start = details.inputs, details.start
        if inputs is None:
            inputs = released_inputs(session, problem.records, details.shares["inputs"])
        targets = self._targets(session, problem)
        if start is None:
            keys = session.integers(2**62, 4).tolist()
            start = details.network.initialize(np.random.default_rng(keys))
        task = NetTask(details.network, details.loss, inputs, targets, start)
        gradients = task.gradients(details.method.clipping)
        gradient = details.method.begin(session, problem.records, gradients, *details.batches)
        steps = SinglePrecision(task.trained(start), details.rule, details.rate, details.n_iter, task.tensors)
        score = None if details.validation is None else partial(self._score_of, task, *details.validation)
        with Progress(
            type(self).__name__, details.n_iter, session, self.verbose, self.callback, score=score
        ) as monitor:
            theta = descend(gradient, steps, steps.here, details.n_iter, monitor).theta
        parameters = task.whole(theta)
        attributes = {
            "parameters_": parameters,
            "network_": details.network,
            "inputs_": inputs,
            "clip_norm_": details.method.clipping.norm,
            "learning_rate_": details.rate,
            "batch_size_": details.batches[-1].batch_size,
            "sparsity_": details.method.sparsity(details.batches[-1], self.adjacency, theta.size),
            **self._after(session, problem, task, parameters),
        }
        return Solution(theta, details.n_iter, attributes)

    # ---------------------------------------------------------------- the report

    def _public_facts(self, problem: Problem) -> dict[str, object]:
        details: NetDetails = problem.decision.details
        clipping = details.method.clipping
        facts: dict[str, object] = {"clipping": clipping.method, "clip_norm": clipping.norm}
        facts |= details.method.facts()
        if self.clipping == "auto" and clipping.method == "ghost":  # all other layers: materialized
            facts["ghost_layers"] = [i for i, way in enumerate(clipping.layers) if way == "ghost"]
        facts |= clipping.facts(self.adjacency)
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
        if has_other_layers(problem.decision.details.network.sequential):
            found.append("layers of your own keep their duties: see skdp.nn.Layer")
        if self.input_range is not None:
            found.append("input_range was not chosen by looking at these records")
        if self.validation is not None:
            found.append("validation holds public data; a pickle of the model holds them too, as a parameter")
        return tuple(found)

    @abstractmethod
    def _score_of(self, task: NetTask, X: Any, y: NDArray[Any], theta: NDArray[np.float64]) -> float:
        """Score of released parameters on the public validation data."""

    # ---------------------------------------------------------------- the fitted net

    def _outputs(self, X: Any) -> NDArray[np.float64]:
        check_is_fitted(self)
        X = validate_table(self, X, reset=False)
        return outputs_of(self.network_, self.parameters_, self.inputs_, X)

    def save(self, path: str | PathLike[str]) -> None:
        """Write what predictions need to an ``.npz`` file.

        It holds an array for each parameter, named such as ``0.weight``, and the scale of inputs, the classes or
        the scale of targets, under names that begin with ``model.``. All of them are released or public numbers.
        `load` reads the file, and ``parameters_init=path`` starts another fit of the same net from its
        parameters. To keep a whole model with its report, pickle it.

        Parameters
        ----------
        path : str or path
            ``.npz`` is added where it is missing.
        """
        check_is_fitted(self)
        self.network_.save(path, self.parameters_, kept_arrays(self))

    def load(self, path: str | PathLike[str]) -> Any:
        """Predict as the model whose `save` wrote the file.

        The parameters, the scale of inputs, and the classes or the scale of targets are replaced. ``privacy_``
        stays the report of this model's own fit: that of the other model is not in the file.

        Parameters
        ----------
        path : str or path
            ``.npz`` is added where there is no file of this name.

        Returns
        -------
        self : estimator

        Raises
        ------
        ValueError
            If the file is of another net or another kind of model. This model then stays as it was.
        """
        check_is_fitted(
            self,
            msg="load() replaces the parameters of a model that was fitted, and this %(name)s was not. Keep whole "
            "models with pickle or skops; to train on from a file, give the constructor parameters_init=path",
        )
        parameters, kept = self.network_.load(path), read_kept(self, path)
        self.parameters_ = parameters
        for name, value in kept.items():
            setattr(self, name, value)
        return self

    def to_sklearn(self) -> Any:
        """Return the net as a fitted estimator of scikit-learn, with the same predictions.

        It computes in float64, so probabilities and predictions are equal up to the rounding of float32. It holds
        released and public numbers only, no data and nothing of skdp: pickle it and use it where skdp is not
        installed. Do not fit it again on private records; that fit would not be private.

        Returns
        -------
        Pipeline, MLPClassifier or TransformedTargetRegressor
            An ``MLPClassifier`` or ``MLPRegressor``. Where inputs are scaled, it is a ``Pipeline`` that scales and
            clips them first, and takes dense tables only. Predicted numbers are clipped to the range of the
            targets by a ``TransformedTargetRegressor`` around it.

        Raises
        ------
        TypeError
            If the net has other layers than dense ones with one kind of activation between them, ReLU or tanh.
        """
        return exported(self)
