"""``skdp epsilon`` and ``skdp calibrate``: exact for full batches, by PLD or RDP for sampled ones."""

import argparse
import contextlib
from collections.abc import Iterator
from typing import Any

from skdp.cli._text import BadInput, dumps, rounded_up
from skdp.exceptions import UnsupportedAccounting
from skdp.privacy import WITHOUT_REPLACEMENT, factor
from skdp.privacy.accounting import calibrate_batches, gaussian_epsilon, noise_multiplier, rows_mu, sampled_epsilon

# Largest arguments whose cost is computed in seconds; a choice, not tuned.
_MOST_SAMPLED_STEPS = 10**7
_MOST_RECORDS = 10**9
_SAMPLINGS = {"poisson": "Poisson", "without-replacement": "without replacement"}


def _plan(arguments: argparse.Namespace) -> dict[str, Any]:
    plan = {
        "steps": arguments.steps,
        "delta": arguments.delta,
        "adjacency": arguments.adjacency,
        "sampling": "full batch",
        "sampling_rate": 1.0,
        "accountant": "exact Gaussian (mu-GDP)",
    }
    rate, size, n = arguments.sampling_rate, arguments.batch_size, arguments.n
    if size is None and rate is None:
        if arguments.sampling is not None:
            raise BadInput("argument --sampling: needs --batch-size and --n, or --sampling-rate")
        return plan
    if size is not None and n is None:
        raise BadInput("argument --batch-size: needs --n, the public number of records")
    if size is not None and rate is not None:
        raise BadInput("argument --sampling-rate: give it or --batch-size with --n, not both")
    if size is not None and size > n:
        raise BadInput(f"argument --batch-size: at most --n, got {size} and {n}")
    if size is not None and n > _MOST_RECORDS:
        raise BadInput(f"argument --n: at most {_MOST_RECORDS} that samples are drawn from")
    if arguments.steps > _MOST_SAMPLED_STEPS:
        raise BadInput(f"argument --steps: at most {_MOST_SAMPLED_STEPS} of sampled releases")
    sampling = _SAMPLINGS[arguments.sampling or "poisson"]
    fixed = sampling == WITHOUT_REPLACEMENT
    if fixed and size is None:
        raise BadInput("argument --sampling: without-replacement needs --batch-size and --n")
    plan |= {"sampling": sampling, "sampling_rate": size / n if rate is None else rate}
    plan["accountant"] = "RDP (Wang, Balle & Kasiviswanathan 2019)" if fixed else "PLD"
    if size is not None:
        plan |= {"batch_size": size, "n_records": n}
    return plan


@contextlib.contextmanager
def _within_reach() -> Iterator[None]:
    """Turn the error of a plan without a proof into one line."""
    try:
        yield
    except UnsupportedAccounting as error:
        raise BadInput(str(error)) from error


def _group(size: float, plan: dict[str, Any]) -> tuple[float, ...]:
    group = (size, plan["sampling_rate"], plan["steps"])
    fixed = plan["sampling"] == WITHOUT_REPLACEMENT
    return (*group, plan["n_records"], plan["batch_size"]) if fixed else group


def _sampled_epsilon(z: float, plan: dict[str, Any]) -> float:
    with _within_reach():
        return sampled_epsilon(
            [_group(z, plan)], plan["delta"], adjacency=plan["adjacency"], sampling=plan["sampling"]
        )


def _sampled_noise_multiplier(budget: float, plan: dict[str, Any]) -> float:
    with _within_reach():
        return calibrate_batches(
            budget, plan["delta"], [_group(1.0, plan)], adjacency=plan["adjacency"], sampling=plan["sampling"]
        )


def _explain(plan: dict[str, Any], chosen: str) -> str:
    """The plan in words, with the definition of the noise multiplier."""
    sampling = {
        "full batch": "each on all records",
        "Poisson": f"each on a fresh Poisson sample of rate {plan['sampling_rate']:g}",
        WITHOUT_REPLACEMENT: f"each on {plan.get('batch_size')} fresh records of {plan.get('n_records')}",
    }[plan["sampling"]]
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
    """Print the cost of a plan."""
    if arguments.n is not None and arguments.batch_size is None:
        raise BadInput("argument --n: needs --batch-size")
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
    if n is not None and clip_norm is None and arguments.batch_size is None:
        raise BadInput("argument --n: needs --clip-norm, the bound of one record's contribution, or --batch-size")
    budget, delta, steps = arguments.epsilon, plan["delta"], plan["steps"]
    if plan["sampling"] == "full batch":
        z = noise_multiplier(budget, delta, releases=steps)
    else:
        z = _sampled_noise_multiplier(budget, plan)
    noise: dict[str, float] = {"noise_multiplier": z}
    if clip_norm is not None:
        noise["noise_std_of_sum"] = z * factor(plan["adjacency"]) * clip_norm
    if n is not None and clip_norm is not None:
        # A sampled mean divides by a constant too, the expected size of the sample.
        noise["divisor"] = n * plan["sampling_rate"]
        noise["noise_std_of_mean"] = noise["noise_std_of_sum"] / noise["divisor"]
    if arguments.json:
        print(dumps({**noise, "epsilon": budget, "clip_norm": clip_norm, "n": n, **plan}))
        return
    print(f"noise multiplier   {rounded_up(z)}")
    if clip_norm is not None:
        print(f"noise std of sum   {rounded_up(noise['noise_std_of_sum'])}  (clip norm {clip_norm:g})")
    if n is not None and clip_norm is not None:
        text = rounded_up(noise["noise_std_of_mean"])
        print(f"noise std of mean  {text}  (divided by {noise['divisor']:g}, which must be public)")
    print(_explain(plan, f"epsilon {budget:g} at delta {delta:g}"))
