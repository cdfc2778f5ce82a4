"""Decisions of a fit of a net from public numbers before its first release.

`decide` makes the decision of a fit, `sized_batches` the number and the size of its batches.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, cast

import numpy as np
from numpy.typing import NDArray

from skdp.base.plan import BudgetSplit, Decision, Step, steps_of
from skdp.fitting.noisy_mean import NoisyMean, estimator_of, method_of
from skdp.fitting.optimizers import Rule
from skdp.fitting.quantiles import RANGE_QUESTIONS, RANGE_SEARCHES
from skdp.fitting.recalibrate import Recalibration
from skdp.fitting.sizes import CLIP_NORM, Run, chosen_rate, chosen_run, signal
from skdp.fitting.targets import Problem
from skdp.fitting.task import given
from skdp.kernels.protocols import Matrix
from skdp.nn.checks import check_table, public_data
from skdp.nn.clipping import clipping_of
from skdp.nn.inputs import Inputs, public_inputs
from skdp.nn.network import Network
from skdp.nn.task import NetLoss, has_other_layers, require_batch_independence, start_of
from skdp.privacy import PARTITION, BatchPlan, PrivacySession, PublicShape

if TYPE_CHECKING:
    from skdp.nn.net_fit import NetFit

SAMPLING = {"poisson": "Poisson", "partition": PARTITION}  # the ledger's words
BATCHES = {"Poisson": "Poisson batches", PARTITION: "a partition into batches", "full batch": "full batches"}
# Noisy answers that find the windows of columns, and the range of the targets.
INPUT_QUESTIONS, TARGET_QUESTIONS = 23, RANGE_SEARCHES * RANGE_QUESTIONS


@dataclass(frozen=True, eq=False)
class NetDetails:
    """Public numbers of a fit; steps, last releases, warnings and the report read them.

    Attributes
    ----------
    network : Network
    n_parameters : int
        Number of parameters that the steps change.
    loss : CrossEntropy or SquaredError
    method : NoisyMean
        How a step clips gradients and releases their mean.
    batches : tuple of BatchPlan
        Of all steps, in their order.
    rule : Rule
    rate : float
        Size of the first step.
    shares : dict of str to float
        Parts of the budget (of mu^2) that are not for the steps: "inputs", "targets", "calibration" and
        "recalibration".
    recalibration : Recalibration or None
        Of a classifier's scores.
    inputs : Inputs or None
        None where the fit releases windows of the columns.
    start : ndarray of shape (n_parameters,) or None
        Of all parameters, also frozen ones; None where the key of the fit draws them.
    validation : tuple of (table, targets) or None
        Public data for the progress bar.
    """

    network: Network
    n_parameters: int
    loss: NetLoss
    method: NoisyMean
    batches: tuple[BatchPlan, ...]
    rule: Rule
    rate: float
    shares: Mapping[str, float]
    recalibration: Recalibration | None
    inputs: Inputs | None
    start: NDArray[np.float32] | None
    validation: tuple[Matrix, np.ndarray] | None

    @property
    def n_iter(self) -> int:
        """Number of steps."""
        return sum(plan.releases for plan in self.batches)


def decide(model: "NetFit", session: PrivacySession, problem: Problem) -> Decision:
    """Decide everything that public numbers tell, and refuse impossible parameters; see `NetDetails`."""
    shape, loss = problem.records.shape, model._loss(problem)
    network = _built(model, problem, loss.n_outputs)
    check_table(estimator_of(model.gradient_estimator), network.sequential)
    _check_device(model, shape)
    seen = {"n_features_in_": shape.n_features, **problem.fitted}
    public = public_data(model, seen)
    start = None if model.parameters_init is None else start_of(model.parameters_init, network)
    size, method = network.n_trainable, _method(model, network)
    last, shares = model._recalibration(session, problem), model._shares(session, problem)
    if last is not None:
        shares["recalibration"] = last.share
    run = sized_batches(model, shape, size)
    *_, rest = BudgetSplit(session).split(**shares, steps=None)
    batches = _planned(model, session, shape, method, run, size, rest.share)
    # Ready layers treat each row by itself, but a BLAS may round it by its place. With "one-by-one", rows stay at
    # their positions in all other computations, if their number is public.
    positions_stay = method.clipping.method == "one-by-one" and shape.n_records is not None
    if has_other_layers(network.sequential) or not positions_stay:
        require_batch_independence(network, method.clipping.layers, shape.dtype, shape.device)
    inputs = None
    if "inputs" not in shares:
        inputs = public_inputs(model.input_range, network.shapes[0], shape.n_features)
    rule = model._rule()
    rate = _rate(model, method, batches, rule)
    details = NetDetails(network, size, loss, method, batches, rule, rate, shares, last, inputs, start, public)
    seen_signal = signal(model.epsilon, model.delta, shape.n_units, size)
    return Decision(
        method=BATCHES[batches[-1].sampling],
        reason=run.reason,
        sizes={
            "n_parameters": size,
            "n_iter": details.n_iter,
            "batch_size": batches[-1].batch_size,
            "clip_norm": method.clipping.norm,
            "learning_rate": rate,
        },
        steps=_steps(session, details),
        signal=None if math.isinf(seen_signal) else seen_signal,
        details=details,
    )


def draws_batches(model: "NetFit", n_units: int | None) -> bool:
    """Whether a session must allow secret batches, which then set its noise."""
    if model.sampling == "partition":
        return False
    estimator = estimator_of(model.gradient_estimator)
    # The number of parameters is not known here; with 1 the batches are as large as they can be.
    # Full batches of projections and of selection have no mu.
    if n_units is None or method_of(model.clipping) == "projections" or not estimator.full_batches:
        return True
    sizes = (model.batch_size, *estimator.batch_sizes)
    return any(isinstance(size, str) or size < n_units for size in sizes)


def _built(model: "NetFit", problem: Problem, n_outputs: int) -> Network:
    """The net for the shape of these records, with an output for each that the loss has."""
    shape = cast("tuple[int, ...] | None", problem.fitted.get("image_shape_")) or (problem.records.n_features,)
    network = model._network(shape, n_outputs)
    if network.shapes[-1] != (n_outputs,):
        raise ValueError(
            f"the net's last layer gives records of shape {network.shapes[-1]}, but this fit needs "
            f"({n_outputs},): end the net with Dense({n_outputs})"
        )
    if not network.n_trainable:
        raise ValueError("the net has no parameters that are not frozen, so nothing would be trained")
    return network


def _check_device(model: "NetFit", shape: PublicShape) -> None:
    if shape.device == "cpu":
        return
    if shape.container == "csr":
        raise ValueError(
            "nets take dense arrays of CuPy: use X.toarray(), or pass X as a NumPy array or a SciPy CSR matrix"
        )
    estimator = estimator_of(model.gradient_estimator)
    if not estimator.devices:
        raise ValueError(
            f"{type(estimator).__name__} takes records of the host: pass X as a NumPy array or a SciPy CSR matrix"
        )


def _method(model: "NetFit", network: Network) -> NoisyMean:
    """How the steps clip gradients and release their mean."""
    norm, estimator = given(model.clip_norm), estimator_of(model.gradient_estimator)
    norm = CLIP_NORM if norm is None else float(norm)
    return estimator.engine(clipping_of(model.clipping, norm, network, estimator.whole_norms))


def sized_batches(model: "NetFit", shape: PublicShape, n_parameters: int) -> Run:
    """The size of a batch and the number of steps: the user's, else the choice of `chosen_run`."""
    run = chosen_run(
        model.epsilon, model.delta, shape.n_units, n_parameters,
        batch_size=given(model.batch_size), max_iter=given(model.max_iter), n_epochs=model.n_epochs,
    )  # fmt: skip
    if model.sampling == "partition" and given(model.max_iter) is None:  # whole passes
        n_batches = math.ceil(shape.n_units / run.batch_size)
        return Run(run.batch_size, n_batches * math.ceil(run.n_iter / n_batches), run.reason)
    return run


def _planned(
    model: "NetFit", session: PrivacySession, shape: PublicShape, method: NoisyMean, run: Run, size: int,
    share: float,
) -> tuple[BatchPlan, ...]:  # fmt: skip
    """Plan the releases of all steps with a share of the budget."""
    groups = method.releases(run.n_iter, run.batch_size, size)
    plans = session.plan_batches(groups, sampling=SAMPLING[model.sampling], n_units=shape.n_units, share=share)
    session.require_feasible_batches(size, plans, scans=method.scans)
    return plans


def _rate(model: "NetFit", method: NoisyMean, batches: Sequence[BatchPlan], rule: Rule) -> float:
    """Size of the first step; the noise in an entry of a mean gradient is public."""
    rate = given(model.learning_rate)
    if rate is not None:
        return float(rate)
    n_iter = sum(plan.releases for plan in batches)
    noise = method.noise(batches, model.adjacency)
    rate = chosen_rate(noise.std, method.clipping.norm, n_iter, rule, model._walk, noise.first)
    # An entry gets the noise of so many steps only. Adam's steps have one size, whatever the noise.
    return rate / math.sqrt(noise.changed) if rule.solver == "sgd" else rate


def _steps(session: PrivacySession, details: NetDetails) -> tuple[Step, ...]:
    """How the budget is divided, in the order of the releases and in the words of the ledger."""
    shares, last = details.shares, details.recalibration
    searches = {"window": ("inputs", INPUT_QUESTIONS), "scale": ("targets", TARGET_QUESTIONS)}
    closing = BudgetSplit(session, shares.get("calibration", 0.0)).step("calibration")
    if last is not None:
        closing = (Step("recalibration", last.share, sum(each.releases for each in last.plans)),)
    return (
        *(Step(purpose, shares[name], count) for purpose, (name, count) in searches.items() if name in shares),
        *steps_of(details.batches),
        *closing,
    )
