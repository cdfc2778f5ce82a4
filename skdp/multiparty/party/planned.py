"""The terms of a run, computed from the plan alone: the noise, the grid, the number of rounds.

The fit itself is asked: it gets nobody's records, and an engine that stops it where it would wait for the other
parties. Its own plan (`skdp.base.plan.FitPlan`) is made by then, from the parties' numbers of units alone. The
terms that are printed before a run are therefore the terms that the run announces and reports.
"""

import warnings
from contextlib import suppress
from typing import Any, NoReturn, cast

import numpy as np

from skdp.multiparty.engine.laplace_bits import UNNOTICED
from skdp.multiparty.engine.noise_shares import share_std, share_surplus
from skdp.multiparty.party.document import PlanError
from skdp.multiparty.party.engine import Bridge, NetworkEngine
from skdp.multiparty.party.plan import Plan
from skdp.multiparty.transport.network import Network
from skdp.privacy import Opening


class _Known(Exception):
    """The opening is known: ends the fit."""


class _Asked(NetworkEngine):
    """An engine without connections that keeps the opening it is asked for."""

    opening: Opening | None = None

    def ready(self, opening: Opening) -> NoReturn:
        self.opening = opening
        raise _Known


def planned_opening(plan: Plan) -> Opening:
    """The first opening of a plan; the others are equal.

    Raises
    ------
    PlanError
        If a fit would refuse the plan before its first opening, or if no server can draw its noise.
    """
    engine = _Asked(cast(Bridge, None), Network(-1), plan)  # it is stopped before it calls anybody
    row, label = np.zeros((1, len(plan.features))), (plan.classes or (0.0,))[0]
    try:
        with warnings.catch_warnings(), suppress(_Known):
            warnings.simplefilter("ignore")  # every party's own fit warns
            model = plan.make_estimator(engine=engine, accountant=False)
            model.fit(row, [label], owners=plan.own_records(None), groups=None if plan.group is None else [0])
        if engine.opening is None:
            raise ValueError(f"{plan.estimator} opens no sums by an engine")
        if plan.noise == "gaussian":
            share_std(engine.opening.scale, plan.n_servers - plan.threshold)
    except (TypeError, ValueError, ArithmeticError) as error:
        raise PlanError(f"the plan cannot run: {error}") from error
    return engine.opening


def drawn_std(plan: Plan, opening: Opening) -> float:
    """Standard deviation of the noise that is drawn, in each entry of an opened sum."""
    if plan.noise == "laplace":
        return float(2**0.5 * opening.scale * opening.grid)
    surplus = share_surplus(plan.n_servers, plan.n_servers - plan.threshold)
    return surplus * opening.scale * opening.grid


def noise_text(plan: Plan, opening: Opening) -> str:
    """The noise of a plan in words."""
    rounds = f"{opening.releases} openings of {opening.n_values} values"
    drawn = f"standard deviation {drawn_std(plan, opening):.6g}, grid {opening.grid:.6g}"
    if plan.noise == "laplace":
        return f"Laplace, {rounds}, {drawn}"
    counted = opening.scale * opening.grid
    return (
        f"Gaussian, {rounds}, {drawn}; {counted:.6g} of it counts, since {plan.threshold} of the {plan.n_servers} "
        "servers may know their shares"
    )


def summary(plan: Plan) -> dict[str, Any]:
    """The summary of a plan that people should read before they run it.

    Returns
    -------
    dict
        Built-in types only.

    Raises
    ------
    PlanError
        If the plan cannot run.
    """
    opening, names = planned_opening(plan), [party.name for party in plan.parties]
    trust = "all servers follow the protocol"
    if plan.noise == "laplace":
        trust += f": {UNNOTICED}"
    return {
        "estimator": plan.estimator,
        "epsilon": float(plan.parameters["epsilon"]),
        "delta": float(plan.parameters["delta"]),
        "unit": plan.parameters["unit"],
        "adjacency": plan.parameters["adjacency"],
        "servers": names[: plan.n_servers],
        "threshold": plan.threshold,
        "trust": trust,
        "noise": {
            "name": plan.noise,
            "noise_std": drawn_std(plan, opening),
            "grid": opening.grid,
            "releases": opening.releases,
            "n_values": opening.n_values,
            "text": noise_text(plan, opening),
        },
    }
