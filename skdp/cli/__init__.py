"""The command ``skdp``: a demonstration, plans, their costs, noise for a budget, data sets, ledgers, joint fits.

Only argparse is imported here; a command imports its own modules when it runs. Exit status: 0 done, 1 something
failed that the user did not type (no connection, no space), 2 bad input. With ``--json`` standard output holds one
JSON document and nothing else.
"""

import argparse
import math
import os
import sys
from collections.abc import Callable, Sequence
from functools import partial
from importlib import import_module
from typing import Any

from skdp._version import __version__

__all__ = ["build_parser", "main"]

# The same as skdp.privacy.adjacency.ADJACENCIES, whose import would delay the first line.
_ADJACENCIES = ("replace-one", "zero-out", "add-remove")
Add = partial[argparse.ArgumentParser]  # adds a command that takes --json
_MOST_STEPS = 10**9  # releases that an argument may ask for; a choice, not tuned


def _number(low: float, high: float, wanted: str) -> Callable[[str], float]:
    """An argparse type: a number strictly between ``low`` and ``high``."""

    def parse(text: str) -> float:
        try:
            value = float(text)
        except ValueError:
            value = math.nan
        if not low < value < high:
            raise argparse.ArgumentTypeError(f"must be {wanted}, got {text!r}")
        return value

    return parse


def _integer(low: int, high: int) -> Callable[[str], int]:
    """An argparse type: an integer from ``low`` to ``high``."""

    def parse(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = low - 1
        if not low <= value <= high:
            raise argparse.ArgumentTypeError(f"must be an integer from {low} to {high}, got {text!r}")
        return value

    return parse


def _counts(text: str) -> int | list[int]:
    """An argparse type: a positive integer, or several with commas between them."""
    found = [_count(part) for part in text.split(",")]
    return found[0] if len(found) == 1 else found


_count = _integer(1, 2**53)
_positive = _number(0.0, math.inf, "a finite number > 0")
_delta = _number(0.0, 1.0, "a number in (0, 1), far below 1/n")
_delta_of_a_fit = _number(math.nextafter(0.0, -1.0), 1.0, "a number in [0, 1), far below 1/n")
_rate = _number(0.0, math.nextafter(1.0, 2.0), "a number in (0, 1]")


def _add_plan(parser: argparse.ArgumentParser, of_n: str) -> None:
    """The arguments that `epsilon` and `calibrate` share; ``of_n`` is the help of --n."""
    parser.add_argument(
        "--steps", type=_integer(1, _MOST_STEPS), required=True, metavar="T", help="number of Gaussian releases"
    )
    parser.add_argument(
        "--delta", type=_delta, required=True, metavar="D", help="in (0, 1); choose it far below 1/n"
    )
    parser.add_argument(
        "--adjacency",
        choices=_ADJACENCIES,
        default="replace-one",
        metavar="A",
        help="change of one record: replace-one (default), zero-out or add-remove",
    )
    _add_sampling(parser, of_n)


def _add_sampling(parser: argparse.ArgumentParser, of_n: str) -> None:
    parser.add_argument(
        "--sampling-rate",
        type=_rate,
        metavar="Q",
        help="each release sees a fresh Poisson sample in which every record is with "
        "probability Q; default: all records, each time",
    )
    parser.add_argument(
        "--batch-size",
        type=_integer(1, _MOST_STEPS),
        metavar="B",
        help="with --n, instead of --sampling-rate: the (expected) size of a sample",
    )
    parser.add_argument("--n", "--n-records", type=_integer(1, 2**53), metavar="N", help=of_n)
    parser.add_argument(
        "--sampling",
        type=lambda text: text.replace("_", "-"),
        choices=("poisson", "without-replacement"),
        help="poisson (default) or samples of exactly B records, which cost several times more",
    )


def _add_demo(add: Add) -> None:
    demo = add(
        "demo",
        help="train private sparse models on real health-insurance records",
        description="Train a sparse model on the bundled RAND Health Insurance Experiment without "
        "privacy, then at epsilon = 0.5, 1, 2 and 4 for a person-year and for a person; print "
        "accuracy, AUC and one privacy report; draw AUC against epsilon. Under 90 seconds.",
    )
    demo.add_argument(
        "--out", default=".", metavar="DIR", help="folder of skdp_demo.png; made if missing (default: here)"
    )
    demo.add_argument(
        "--seed",
        type=_integer(0, 2**32 - 1),
        metavar="N",
        help="repeat a run exactly; for testing only, the noise is then known",
    )


def _add_plan_of_a_fit(add: Add) -> None:
    plan = add(
        "plan",
        help="preview of a fit from the shape of the data",
        description="Preview of a fit from the shape of the data: sizes, parts of the budget, expected signal "
        "and warnings. No data are read, and nothing is charged.",
    )
    plan.add_argument("estimator", metavar="ESTIMATOR", help="such as DPLogisticRegression")
    plan.add_argument(
        "--n-records",
        "--n",
        type=_counts,
        metavar="N",
        help="number of records; for several owners one number each, as 400,300,80",
    )
    plan.add_argument("--n-groups", type=_counts, metavar="N", help="number of groups, for --param unit=group")
    plan.add_argument("--n-features", type=_count, default=1, metavar="D", help="number of columns (default: 1)")
    plan.add_argument("--n-classes", type=_integer(2, 2**53), metavar="K", help="of a classifier (default: 2)")
    plan.add_argument("--sparse", action="store_true", help="X is a CSR matrix")
    plan.add_argument("--epsilon", type=_positive, metavar="E", help="default: the estimator's")
    plan.add_argument("--delta", type=_delta_of_a_fit, metavar="D", help="default: the estimator's")
    plan.add_argument(
        "--param",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a parameter of the estimator, as often as needed; VALUE is JSON, or else text; a dict by column "
        'or label is a JSON object, such as monotone={"1": 1}',
    )


def _add_costs(add: Add) -> None:
    epsilon = add("epsilon", help="epsilon of a number of releases", description="Epsilon of T Gaussian releases.")
    epsilon.add_argument(
        "--noise-multiplier",
        type=_positive,
        required=True,
        metavar="Z",
        help="noise std / L2 sensitivity under the adjacency",
    )
    _add_plan(epsilon, "public number of records that samples are drawn from; needs --batch-size")
    calibrate = add("calibrate", help="noise for a budget", description="Noise for T Gaussian releases.")
    calibrate.add_argument("--epsilon", type=_positive, required=True, metavar="E", help="the budget")
    _add_plan(
        calibrate,
        "public number of records: samples are drawn from them (--batch-size), and a mean divides by "
        "it, or by the size of a sample (--clip-norm)",
    )
    calibrate.add_argument(
        "--clip-norm",
        type=_positive,
        metavar="C",
        help="L2 bound of one record's contribution: also print noise stds",
    )


def _add_files(add: Add) -> None:
    data = add("data", help="list, fetch or locate data sets", description="Data sets of skdp.datasets.")
    data.add_argument("action", choices=("list", "fetch", "where"))
    data.add_argument("name", nargs="?", metavar="NAME", help="name of a data set; see `skdp data list`")
    ledger = add(
        "ledger",
        help="spent and remaining budget of a ledger file",
        description="The fits charged to a ledger file.",
    )
    ledger.add_argument("file", metavar="FILE", help="the path= of a BudgetAccountant")
    verify = add(
        "verify",
        help="check of a model card against its ledger",
        description="Recompute epsilon from the ledger in a model card of privacy_.card, by other code than the "
        "fit, and compare all words of the card with the ledger. Exit status 0: verified; 1: not verified; 2: no "
        "card.",
    )
    verify.add_argument("card", metavar="CARD", help="a card in .html or .md, or a report as JSON")


def _address(text: str) -> tuple[str, int]:
    """An argparse type: ``host:port``."""
    host, _, port = text.rpartition(":")
    if not host or not port.isdecimal() or not 1 <= int(port) <= 65535:
        raise argparse.ArgumentTypeError(f"must be HOST:PORT, got {text!r}")
    return host.removeprefix("[").removesuffix("]"), int(port)


def _add_party(add: Add) -> None:
    party = add(
        "party",
        help="train one model with others who do not pool their data",
        description="Run one data owner of a joint fit over mutual TLS 1.3. It needs --config, --index and "
        "--data; the actions prepare it.",
    )
    _add_party_actions(party, add.keywords)
    party.add_argument("--config", metavar="PLAN", help="the public plan, a TOML file")
    party.add_argument("--index", type=_integer(0, 2**31), metavar="I", help="this party's number in the plan")
    party.add_argument("--data", metavar="FILE", help="its table: .csv, .npz or .parquet")
    party.add_argument("--key", metavar="FILE", help="default: NAME.key beside the plan")
    party.add_argument("--certificate", metavar="FILE", help="default: the one in the plan")
    party.add_argument("--ledger", metavar="FILE", help="one for all plans of this party; default: beside the key")
    party.add_argument(
        "--ceiling",
        nargs=2,
        type=float,
        metavar=("EPSILON", "DELTA"),
        help="limit of a new ledger, which needs it: budget of all plans of this party together",
    )
    party.add_argument("--out", default=".", metavar="DIR", help="folder of the output files (default: here)")
    party.add_argument(
        "--listen",
        type=_address,
        metavar="HOST:PORT",
        help="where a server listens, if not at its address in the plan",
    )
    party.add_argument(
        "--timeout",
        type=_positive,
        metavar="SECONDS",
        help="until all parties must be connected; default: the plan's",
    )


def _add_party_actions(party: argparse.ArgumentParser, shared: dict[str, Any]) -> None:
    actions = party.add_subparsers(dest="action", metavar="ACTION")
    keys = actions.add_parser("keys", **shared, help="make keys and certificates")
    keys.add_argument("names", nargs="+", metavar="NAME", help="of each party")
    check = actions.add_parser("check", **shared, help="check a plan, print its hash")
    check.add_argument("config", metavar="PLAN", help="the public plan, a TOML file")
    example = actions.add_parser("example", **shared, help="write keys, a plan and tables of three hospitals")
    for action in (keys, example):
        action.add_argument("--out", default=".", metavar="DIR", help="folder (default: here)")


def build_parser() -> argparse.ArgumentParser:
    """The parser of ``skdp``.

    Examples
    --------
    >>> from skdp.cli import build_parser
    >>> build_parser().parse_args(["data", "where"]).action
    'where'
    """
    parser = argparse.ArgumentParser(
        prog="skdp", description="Differentially private scikit-learn estimators.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"skdp {__version__}")
    json_option = argparse.ArgumentParser(add_help=False)
    json_option.add_argument(
        "--json",
        action="store_true",
        help='one JSON document on standard output; an infinite number is the string "inf"',
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    add = partial(commands.add_parser, parents=[json_option])
    for add_some in (_add_demo, _add_plan_of_a_fit, _add_costs, _add_files, _add_party):
        add_some(add)
    return parser


# The module of each command, which has a function of the command's name and is imported when it runs.
_MODULES = {
    "demo": "_demo", "plan": "_plan", "epsilon": "_costs", "calibrate": "_costs", "data": "_files",
    "ledger": "_files", "party": "_party", "verify": "_verify",
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command ``skdp``.

    Parameters
    ----------
    argv : sequence of str, default=None
        Arguments; None takes ``sys.argv[1:]``.

    Returns
    -------
    int
        Exit status: 0, 1 (failed) or 2 (bad input).

    Examples
    --------
    >>> from skdp.cli import main
    >>> status = main(["calibrate", "--epsilon", "1", "--delta", "1e-5", "--steps", "50"])
    ... # doctest: +ELLIPSIS
    noise multiplier   26.3796
    for 50 Gaussian releases, ...
    >>> status
    0
    """
    parser = build_parser()
    try:
        arguments = parser.parse_args(argv)
    except SystemExit as stop:  # argparse has printed its message
        return stop.code if isinstance(stop.code, int) else 2
    from skdp.cli._text import BadInput, Failed

    try:
        module = import_module(f"skdp.cli.{_MODULES[arguments.command]}")
        getattr(module, arguments.command)(arguments)
        sys.stdout.flush()
    except BadInput as error:
        print(f"skdp {arguments.command}: error: {error}", file=sys.stderr)
        return 2
    except Failed as error:
        print(f"skdp {arguments.command}: failed: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:  # `| head` has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except KeyboardInterrupt:
        return 130
    return 0
