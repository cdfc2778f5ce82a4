"""``skdp verify``: epsilon again from the ledger of a model card, and its words again from its data."""

import argparse
import math

from skdp.cli._text import BadInput, Failed, dumps


def verify(arguments: argparse.Namespace) -> None:
    """Check a card; a statement that does not hold is a failure."""
    from skdp.privacy import verify_card

    try:
        found = verify_card(arguments.card)
    except (OSError, ValueError) as error:
        raise BadInput(str(error)) from error
    if arguments.json:
        print(dumps(found))
    elif not math.isnan(found["epsilon"]):
        of = f" of {found['estimator']}" if found["estimator"] else ""
        print(f"card        {found['path']}: one fit{of}")
        print(
            f"states      epsilon {found['epsilon']:.9g}, delta {found['delta']:g}, for one {found['unit']}",
            end="",
        )
        print(f" ({found['adjacency']})")
        print(f"lists       {found['releases']} releases")
        if found["recomputed"] is not None:
            print(f"recomputed  epsilon {found['recomputed']:.9g}, of these releases, by other code than the fit")
        if found["text_checked"] and found["verified"]:
            print("words       every word and number on the card agrees with its ledger")
    if not found["verified"]:
        raise Failed("\n".join(["the card is not verified", *(f"- {line}" for line in found["problems"])]))
    if not arguments.json:
        if not found["text_checked"]:
            print("words       none: this is a report as JSON")
        print(
            "verified    A card cannot show that no release was left out, that the noise was drawn as listed, or\n"
            "            that its assumptions hold."
        )
