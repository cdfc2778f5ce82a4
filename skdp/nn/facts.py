"""Public facts of a fit of a net: for its warnings, and for its report."""

import math
from dataclasses import replace

import numpy as np
from sklearn.base import is_classifier

from skdp.fitting.minibatch_warnings import ImageFacts, NetFacts, StepFacts
from skdp.fitting.noisy_mean import estimator_of
from skdp.fitting.targets import Problem
from skdp.fitting.utility import Facts
from skdp.nn.layers.relu import ReLU
from skdp.nn.layers.scaled_tanh import ScaledTanh
from skdp.nn.layers.tanh import Tanh
from skdp.nn.parameters import NetParameters
from skdp.nn.task import has_other_layers, tokens_of
from skdp.privacy import PrivacySession

ACTIVATIONS = (ReLU, ScaledTanh, Tanh)  # a net that ends with one of them cannot give every number


def utility_facts(
    model: NetParameters, session: PrivacySession, problem: Problem, images: ImageFacts | None
) -> Facts:
    """The public numbers that tell whether a fit may be of little use."""
    shape, details, seen = problem.records.shape, problem.decision.details, problem.decision.signal
    rule, last = details.rule, details.network.sequential.layers[-1]
    remembers = estimator_of(model.gradient_estimator).remembers
    steps = StepFacts(details.n_parameters, tokens_of(details.network))
    net = NetFacts(
        n_parameters=details.n_parameters,
        signal=math.inf if seen is None else seen,
        other_inputs=model.parameters_init is not None and "inputs" in details.shares,
        second_momentum=rule.momentum if remembers and rule.solver == "sgd" else 0.0,
        bounded_by=repr(last) if isinstance(last, ACTIVATIONS) else "",
    )
    facts = Facts(
        type(model).__name__, shape, model.epsilon, method="nets", net=net, images=images,
        steps=details.method.utility(details.batches, model.adjacency, steps),
    )  # fmt: skip
    if session.exact or not is_classifier(model):
        return facts
    return replace(facts, task="classes", effective_n=shape.n_units * session.mu)


def public_facts(model: NetParameters, problem: Problem) -> dict[str, object]:
    """Lines of the report on the plan of a net, beside its releases."""
    clipping = problem.decision.details.method.clipping
    facts: dict[str, object] = {"clipping": clipping.method, "clip_norm": clipping.norm}
    facts |= problem.decision.details.method.facts()
    if model.clipping == "auto" and clipping.method == "ghost":  # all other layers: materialized
        facts["ghost_layers"] = [i for i, way in enumerate(clipping.layers) if way == "ghost"]
    facts |= clipping.facts(model.adjacency)
    if not isinstance(model.gradient_estimator, str):
        facts["gradient_estimator"] = repr(model.gradient_estimator)
    if model.max_rows_per_group is not None:
        facts["max_rows_per_group"] = int(model.max_rows_per_group)
    if getattr(model, "classes", None) is not None:
        labels = np.asarray(problem.fitted["classes_"]).tolist()
        facts["classes"] = [x if isinstance(x, (str, int, float)) else str(x) for x in labels]
    return facts


def assumptions(model: NetParameters, problem: Problem) -> tuple[str, ...]:
    """Assumptions of a net's claim beside the adjacency."""
    found = []
    if has_other_layers(problem.decision.details.network.sequential):
        found.append("layers of your own keep their duties: see skdp.nn.Layer")
    if model.input_range is not None:
        found.append("input_range was not chosen by looking at these records")
    if model.validation is not None:
        found.append("validation holds public data; a pickle of the model holds them too, as a parameter")
    return tuple(found)
