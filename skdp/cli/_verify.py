"""``skdp verify``: epsilon again from the ledger of a model card, and its words again from its data."""

import argparse
import math
import textwrap

from skdp.cli._text import BadInput, Failed, dumps, printable, rounded_up


def verify(arguments: argparse.Namespace) -> None:
    """Check a card; a false statement is a failure. Text of the file is printed without control characters."""
    from skdp.privacy import verify_card

    try:
        found = verify_card(arguments.card)
    except (OSError, ValueError) as error:
        raise BadInput(printable(str(error))) from error
    if arguments.json:
        print(dumps(found))
    elif not math.isnan(found["epsilon"]):
        of = f" of {found['estimator']}" if found["estimator"] else ""
        epsilon, delta = rounded_up(found["epsilon"], 9), rounded_up(found["delta"])
        print(printable(f"card        {found['path']}: one fit{of}"))
        print(f"states      epsilon {epsilon}, delta {delta}, for one {found['unit']} ({found['adjacency']})")
        for line in found["leaks"]:
            print(printable(f"leaks       {line}"))
        print(f"lists       {found['releases']} releases")
        if found["recomputed"] is not None:
            recomputed = rounded_up(found["recomputed"], 9)
            if found["planned"] is None:
                print(f"recomputed  epsilon {recomputed}, of these releases, by other code than the fit")
            else:
                planned = rounded_up(found["planned"], 9)
                costs = f"the plan pays epsilon {planned}, the listed releases {recomputed}"
                print(f"recomputed  {costs}, by other code than the fit")
        if found["text_checked"] and found["verified"]:
            print("words       every word and number on the card agrees with its ledger")
    if not found["verified"]:
        problems = (f"- {printable(line)}" for line in found["problems"])
        raise Failed("\n".join(["the card is not verified", *problems]))
    if not arguments.json:
        if not found["text_checked"]:
            print("words       none: this is a report as JSON")
        limits = f"A card cannot show that the noise was drawn. Not checked, but {found['unchecked']}."
        print(textwrap.fill(limits, 100, initial_indent="verified    ", subsequent_indent=" " * 12))
