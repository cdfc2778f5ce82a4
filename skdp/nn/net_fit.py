"""The fit of a net: parameters, the solver, and the texts of the report; `skdp.nn.decision` decides."""

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from os import PathLike
from typing import Any, Self, Unpack, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from skdp._docs import document
from skdp.base.declare import fitted
from skdp.base.fit import PrivateFit, SessionOptions
from skdp.base.plan import Advice, BudgetSplit
from skdp.base.problem import Solution
from skdp.base.user_tables import validate_table
from skdp.fitting.loop import descend
from skdp.fitting.minibatch_warnings import ImageFacts
from skdp.fitting.optimizers import SinglePrecision
from skdp.fitting.recalibrate import Recalibration
from skdp.fitting.scales import grown_share
from skdp.fitting.sizes import WALK
from skdp.fitting.targets import Problem, table_records
from skdp.fitting.task import Progress
from skdp.fitting.utility import utility_warnings
from skdp.kernels.protocols import Matrix
from skdp.nn.arrays import Array
from skdp.nn.decision import INPUT_QUESTIONS, NetDetails, decide, draws_batches
from skdp.nn.export import exported
from skdp.nn.facts import assumptions, public_facts, utility_facts
from skdp.nn.inputs import Inputs, as_rows, released_inputs
from skdp.nn.network import Network
from skdp.nn.parameters import NetParameters
from skdp.nn.storage import kept_arrays, load_kept
from skdp.nn.task import NetLoss, NetTask, Targets, outputs_of
from skdp.privacy import PrivacySession

INPUT_SHARE = 0.1  # least part of mu^2 for the windows of columns


class NetFit(NetParameters):
    """The fit of a private net; a subclass gives the net, its loss and its targets.

    `skdp.nn.decision.decide` makes every public decision once; the size and number of batches follow from
    `skdp.nn.decision.sized_batches`. The other methods read its result, `NetDetails`.
    """

    n_features_in_: int = fitted()
    feature_names_in_: np.ndarray = fitted()
    n_iter_: int = fitted()
    sparsity_: float = fitted(
        "float", "Part of the parameters that rests in the last epoch; 0 without `skdp.nn.RandomSparsification`."
    )
    network_: Network = fitted(
        "Network", "The net for records of this shape; ``print(network_.summary())`` shows it."
    )
    parameters_: NDArray[np.float32] = fitted(
        "ndarray of float32 of shape (n_parameters,)",
        "The released parameters; ``network_.views(parameters_)`` names them.",
    )
    inputs_: Inputs = fitted(
        "Inputs", "The public or released centre, scale and bounds by which a row becomes an input."
    )
    _records = table_records
    _start_from = "parameters_init"
    _walk = WALK
    fit_intercept = False  # of the reading of tables: a net has its own

    # ---------------------------------------------------------------- methods of subclasses

    @abstractmethod
    def _network(self, shape: tuple[int, ...], n_outputs: int) -> Network:
        """The net, built for inputs of this shape: (n_features,), or the shape of an image."""

    @abstractmethod
    def _loss(self, problem: Problem) -> NetLoss:
        """Of `skdp.nn.losses`."""

    def _targets(self, session: PrivacySession, problem: Problem) -> Targets:
        """The map from stored targets to targets of the loss; it may release their range."""
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

    def _after(self, session: PrivacySession, problem: Problem, task: NetTask, flat: Array) -> dict[str, object]:
        """Last releases, and the attributes that they give."""
        return {}

    def _table(self, X: object, seen: Mapping[str, object]) -> object:
        """X of this kind of model as a table, by the public attributes of a fit; a table stays as it is."""
        return as_rows(X, seen.get("image_shape_"))

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        options["minibatches"] = draws_batches(self, n_units)
        return super()._open_session(n_units, **options)

    _decide, _public_facts, _assumptions = decide, public_facts, assumptions

    def _advice(self, session: PrivacySession, problem: Problem) -> tuple[Advice, ...]:
        return utility_warnings(utility_facts(self, session, problem, self._image_facts(problem)))

    # ---------------------------------------------------------------- the fit

    @document(PrivateFit.fit)
    def fit(self, X: object, y: object = None, *, groups: object = None, **more: object) -> Self:
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
        name, n_iter = type(self).__name__, details.n_iter
        with Progress(name, n_iter, session, self.verbose, self.callback, score=score) as monitor:
            theta = descend(gradient, steps, steps.here, n_iter, monitor).theta
        parameters = task.whole(theta)
        attributes = {
            "parameters_": parameters, "network_": details.network, "inputs_": inputs,
            "clip_norm_": details.method.clipping.norm, "learning_rate_": details.rate,
            "batch_size_": details.batches[-1].batch_size,
            "sparsity_": details.method.sparsity(details.batches[-1], self.adjacency, theta.size),
            **self._after(session, problem, task, parameters),
        }  # fmt: skip
        return Solution(theta, n_iter, attributes)

    @abstractmethod
    def _score_of(self, task: NetTask, X: Matrix, y: np.ndarray, theta: NDArray[np.float64]) -> float:
        """Score of released parameters on the public validation data."""

    # ---------------------------------------------------------------- the fitted net

    def _outputs(self, X: object) -> NDArray[np.float64]:
        check_is_fitted(self)
        table = validate_table(self, cast("ArrayLike", X), reset=False)
        return outputs_of(self.network_, self.parameters_, self.inputs_, table)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the arrays that predictions need to an ``.npz`` file.

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

    def load(self, path: str | PathLike[str]) -> Self:
        """Predict as the model whose `save` wrote the file.

        The parameters, the scale of inputs, and the classes or the scale of targets are replaced. ``privacy_``
        stays the report of this model's own fit: the file does not hold the other model's report.

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
        load_kept(self, path)
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
