"""``skdp party``: one owner of a joint fit; its keys, a plan's check, and an example to try."""

import argparse
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from skdp.cli._text import BadInput, Failed, dumps
from skdp.exceptions import PrivacyBudgetExceeded


def party(arguments: argparse.Namespace) -> None:
    """Run a party, or prepare a run."""
    from skdp.multiparty.party.document import PlanError
    from skdp.multiparty.party.keys import CertificateError
    from skdp.multiparty.party.plan_ledger import LedgerError
    from skdp.multiparty.party.table import DataError
    from skdp.multiparty.transport.errors import PartyError

    commands = {None: _run, "check": _check, "keys": _keys, "example": _example}
    try:
        with _ended_like_ctrl_c():
            commands[arguments.action](arguments)
    except BrokenPipeError:
        raise
    except KeyboardInterrupt as error:
        _say_the_end(arguments, error)
        raise
    except (PartyError, PrivacyBudgetExceeded) as error:
        raise Failed(_with_notes(error)) from error
    except (PlanError, CertificateError, DataError, LedgerError, OSError, ImportError) as error:
        raise BadInput(_with_notes(error)) from error


def _with_notes(error: BaseException) -> str:
    """The error, and below it its cost and the repair."""
    return "\n".join([str(error), *getattr(error, "__notes__", [])])


def _say_the_end(arguments: argparse.Namespace, error: KeyboardInterrupt) -> None:
    """One line for a command that somebody ended."""
    # The signal may have come when the run was over or its error was being explained: then there is no note.
    unknown = ["whether the plan was charged stands in this party's ledger: `skdp ledger FILE`"]
    cost = getattr(error, "__notes__", unknown) if arguments.action is None else []
    print("; ".join(["skdp party: ended by Ctrl-C or a signal", *cost]), file=sys.stderr)


@contextmanager
def _ended_like_ctrl_c() -> Iterator[None]:
    """Let SIGTERM do what Ctrl-C does: the other parties are told, and a reserved budget is handed back."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread may have handlers
        return
    before = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def _run(arguments: argparse.Namespace) -> None:
    for name in ("config", "index", "data"):
        if getattr(arguments, name) is None:
            raise BadInput(f"argument --{name}: a party needs it")
    from skdp.multiparty.party.run import Options, run

    path = run(
        Options(
            config=arguments.config,
            index=arguments.index,
            data=arguments.data,
            key=arguments.key,
            certificate=arguments.certificate,
            ledger=arguments.ledger,
            ceiling=None if arguments.ceiling is None else tuple(arguments.ceiling),
            out=arguments.out,
            listen=arguments.listen,
            timeout=arguments.timeout,
        ),
        say=(lambda line: None) if arguments.json else (lambda line: print(line, flush=True)),
    )
    if arguments.json:
        print(dumps({"model": str(path)}))


def _check(arguments: argparse.Namespace) -> None:
    from skdp.multiparty.party.hints import hints
    from skdp.multiparty.party.plan import read_plan
    from skdp.multiparty.party.planned import summary
    from skdp.multiparty.party.terms import software

    plan = read_plan(arguments.config)
    found = {"id": plan.id, "hash": plan.hash, "skdp": software(), **summary(plan)}
    if arguments.json:
        parties = [{"name": p.name, "fingerprint": p.fingerprint} for p in plan.parties]
        print(dumps({**found, "parties": parties, "hints": hints(plan)}))
        return
    print(f"plan  {plan.id}\nhash  {plan.hash}")
    print(
        f"skdp  {found['skdp']}\nestimator  {found['estimator']}\n"
        f"epsilon  {found['epsilon']:g}, delta {found['delta']:g}, for one {found['unit']} "
        f"({found['adjacency']})\n"
        f"noise  {found['noise']['text']}\n"
        f"servers  {', '.join(found['servers'])}; {found['threshold']} of them may look beyond what they "
        "should see\n"
        f"trust  {found['trust']}"
    )
    for index, one in enumerate(plan.parties):
        print(f"{index:4d}  {one.name}  {one.n_units} units  {one.fingerprint}")
    print("\nEvery party must see this hash and this skdp, and its own fingerprint behind its name.")
    for hint in hints(plan):
        print(f"hint: {hint}")


def _keys(arguments: argparse.Namespace) -> None:
    from skdp.multiparty.party.keys import fingerprint_of, make_keys

    made = []
    for name in arguments.names:
        key, certificate = make_keys(arguments.out, name)
        shown = fingerprint_of(certificate.read_text())
        made.append({"name": name, "key": str(key), "certificate": str(certificate), "fingerprint": shown})
    if arguments.json:
        print(dumps(made))
        return
    for one in made:
        print(f"{one['key']}  secret: it stays with {one['name']}")
        print(f"{one['certificate']}  for the plan; fingerprint {one['fingerprint']}")


def _example(arguments: argparse.Namespace) -> None:
    from skdp.multiparty.party.example import CEILING, make_example

    path, plan = make_example(arguments.out)
    commands = [
        f"skdp party --config {path} --index {index} --data {Path(arguments.out, one.name)}.csv"
        f" --out {arguments.out} --ceiling {CEILING[0]:g} {CEILING[1]:g}"
        for index, one in enumerate(plan.parties)
    ]
    if arguments.json:
        print(dumps({"plan": str(path), "hash": plan.hash, "commands": commands}))
        return
    print(f"plan {plan.id}, hash {plan.hash[:12]}. Now, each in a terminal of its own:")
    print("\n".join(commands))
    print("--ceiling is the budget of all plans of a hospital together; each keeps one ledger for all of them.")
