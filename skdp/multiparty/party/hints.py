"""Hints on a plan that is allowed: it can run, and may be a mistake."""

from skdp.multiparty.party.plan import Plan, recommended_round


def hints(plan: Plan) -> list[str]:
    """Hints on a plan, from the plan alone.

    Parameters
    ----------
    plan : Plan

    Returns
    -------
    list of str
        One sentence or two each; empty if there is nothing to say.
    """
    return [*_of_rows(plan), *_of_time(plan)]


def _of_rows(plan: Plan) -> list[str]:
    free = [feature.name for feature in plan.features if feature.low is None]
    if not free or not isinstance(plan.parameters.get("row_norm", "auto"), str):
        return []
    length = len(plan.features) ** 0.5
    return [
        f"no bounds for {', '.join(map(repr, free))}, and no row_norm: such columns must be standardized by "
        f"public numbers; rows longer than sqrt(n_features) = {length:.3g} are cut in the fit"
    ]


def _of_time(plan: Plan) -> list[str]:
    enough = recommended_round(plan)
    if plan.noise != "laplace" or plan.round >= enough:
        return []
    return [
        f"the deadline 'round' is {plan.round:g} seconds: Laplace noise of {plan.n_values} values may take longer "
        f"on busy machines, and what was charged by then is lost; {enough:g} seconds are safe"
    ]
