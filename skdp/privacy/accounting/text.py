"""Numbers of a report as text."""

import math


def number_text(value: object) -> str:
    """Six digits of a float, anything else as it is."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def cost_text(value: float) -> str:
    """Six digits, rounded up, so that the text shows no less than the claim."""
    text = f"{value:.6g}"
    if float(text) < value * (1.0 - 1e-9):
        text = f"{value + 10.0 ** (math.floor(math.log10(value)) - 5):.6g}"
    return text
