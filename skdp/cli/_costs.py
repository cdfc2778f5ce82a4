"""``skdp epsilon`` and ``skdp calibrate``: exact for full batches, by PLD for Poisson samples."""

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

from skdp.cli._text import BadInput, dumps, rounded_up
from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting import gaussian_epsilon, noise_multiplier, rows_mu
from skdp.privacy.adjacency import factor

__all__ = ["calibrate", "epsilon"]

# Composing a PLD with itself more often takes minutes and gigabytes.
_MOST_SAMPLED_STEPS = 10**6


def _plan(arguments: argparse.Namespace) -> dict[str, Any]:
    sampled = arguments.sampling_rate is not None
    if sampled and arguments.steps > _MOST_SAMPLED_STEPS:
        raise BadInput(f"argument --steps: at most {_MOST_SAMPLED_STEPS} with --sampling-rate")
    return {
        "steps": arguments.steps,
        "delta": arguments.delta,
        "adjacency": arguments.adjacency,
        "sampling": "Poisson" if sampled else "full batch",
        "sampling_rate": arguments.sampling_rate if sampled else 1.0,
        "accountant": "PLD (dp-accounting)" if sampled else "exact Gaussian (mu-GDP)",
    }


@contextlib.contextmanager
def _within_reach() -> Iterator[None]:
    """Say it in one line when a plan has no proof, or losses too large or small for a PLD."""
    try:
        yield
    except UnsupportedAccounting as error:
        raise BadInput(str(error)) from error
    except ArithmeticError as error:
        raise BadInput(f"this plan is out of the range of a PLD ({error})") from error


def _sampled_epsilon(z: float, plan: dict[str, Any]) -> float:
    from skdp.privacy.accounting.adapter import poisson_epsilon

    rate, steps, delta = plan["sampling_rate"], plan["steps"], plan["delta"]
    with _within_reach():
        return poisson_epsilon(z, rate, steps, delta, adjacency=plan["adjacency"])


def _sampled_noise_multiplier(budget: float, plan: dict[str, Any]) -> float:
    from skdp.privacy.accounting.adapter import poisson_noise_multiplier

    rate, steps, delta = plan["sampling_rate"], plan["steps"], plan["delta"]
    with _within_reach():
        return poisson_noise_multiplier(budget, delta, rate, steps, plan["adjacency"])


def _explain(plan: dict[str, Any], chosen: str) -> str:
    """The plan in words, with the definition that makes the number mean something."""
    sampling = (
        "each on all records"
        if plan["sampling"] == "full batch"
        else f"each on a fresh Poisson sample of rate {plan['sampling_rate']:g}"
    )
    factor_text = "2 C" if factor(plan["adjacency"]) == 2.0 else "C"
    return (
        f"for {plan['steps']} Gaussian releases, {sampling}, {chosen}\n"
        f"by  {plan['accountant']}; adjacency {plan['adjacency']}\n"
        "\n"
        "Noise multiplier = noise std / L2 sensitivity of one release under the adjacency.\n"
        f"A sum to which one record adds at most C in L2 norm has sensitivity {factor_text} under "
        f"{plan['adjacency']};\na mean over a public n has that divided by n."
    )


def epsilon(arguments: argparse.Namespace) -> None:
    """Print what a plan costs."""
    plan, z = _plan(arguments), arguments.noise_multiplier
    if plan["sampling"] == "full batch":
        row = {"name": "gaussian", "noise_multiplier": z, "count": plan["steps"]}
        cost = gaussian_epsilon(rows_mu([row]), plan["delta"])
    else:
        cost = _sampled_epsilon(z, plan)
    if arguments.json:
        print(dumps({"epsilon": cost, "noise_multiplier": z, **plan}))
        return
    print(f"epsilon  {rounded_up(cost)}  at delta {plan['delta']:g}")
    print(_explain(plan, f"noise multiplier {z:g}"))


def calibrate(arguments: argparse.Namespace) -> None:
    """Print the smallest noise that a budget allows."""
    plan, clip_norm, n = _plan(arguments), arguments.clip_norm, arguments.n
    if n is not None and clip_norm is None:
        raise BadInput("argument --n: needs --clip-norm, the bound of one record's contribution")
    budget, delta, steps = arguments.epsilon, plan["delta"], plan["steps"]
    if plan["sampling"] == "full batch":
        z = noise_multiplier(budget, delta, releases=steps)
    else:
        z = _sampled_noise_multiplier(budget, plan)
    noise: dict[str, Any] = {"noise_multiplier": z}
    if clip_norm is not None:
        noise["noise_std_of_sum"] = z * factor(plan["adjacency"]) * clip_norm
    if n is not None:
        # A sampled mean divides by a constant too, the expected size of the sample.
        noise["divisor"] = n * plan["sampling_rate"]
        noise["noise_std_of_mean"] = noise["noise_std_of_sum"] / noise["divisor"]
    if arguments.json:
        print(dumps({**noise, "epsilon": budget, "clip_norm": clip_norm, "n": n, **plan}))
        return
    print(f"noise multiplier   {rounded_up(z)}")
    if clip_norm is not None:
        print(
            f"noise std of sum   {rounded_up(noise['noise_std_of_sum'])}  (clip norm {clip_norm:g})"
        )
    if n is not None:
        text = rounded_up(noise["noise_std_of_mean"])
        print(f"noise std of mean  {text}  (divided by {noise['divisor']:g}, which must be public)")
    print(_explain(plan, f"epsilon {budget:g} at delta {delta:g}"))
