"""How three fits fill the ledger of a `BudgetAccountant` up to its ceiling, and how a fourth is refused."""

from itertools import pairwise

from matplotlib.figure import Figure

from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy import BudgetAccountant
from skdp.privacy.accounting import compose_mu, gaussian_epsilon, gaussian_mu
from tools.pictures.style import SMALL, Canvas, Theme

CEILING, DELTA = 2.0, 1e-6
FITS = (("first fit", 1.0), ("second fit", 1.0), ("third fit", 1.0), ("fourth fit", 1.0))
LEFT, FULL = 112.0, 300.0  # where the bars begin, and the length of the ceiling


def ledger() -> list[tuple[str, float, float | None]]:
    """Charge a ledger: what is asked for, its own epsilon, and the total after it, None if it is refused."""
    accountant = BudgetAccountant(CEILING, DELTA)
    found: list[tuple[str, float, float | None]] = []
    for name, epsilon in FITS:
        charge = {"estimator": name, "epsilon": epsilon, "delta": DELTA, "mu": gaussian_mu(epsilon, DELTA)}
        try:
            with accountant.reserve(unit="record", adjacency="replace-one", **charge):
                pass
        except PrivacyBudgetExceeded:
            found.append((name, epsilon, None))
        else:
            found.append((name, epsilon, accountant.spent()[0]))
    return found


def total_without_ceiling() -> float:
    """Return the epsilon of all fits together."""
    return gaussian_epsilon(compose_mu(gaussian_mu(epsilon, DELTA) for _, epsilon in FITS), DELTA)


def draw(theme: Theme) -> Figure:
    canvas = Canvas(theme, 226)
    colours = ((theme.blue, theme.blue_fill), (theme.green, theme.green_fill), (theme.pink, theme.pink_fill))
    ceiling = LEFT + FULL
    canvas.text(8, 18, "fit", ha="left", va="baseline", weight="bold")
    canvas.text(LEFT, 18, "total ε of all fits", ha="left", va="baseline", weight="bold")
    canvas.line((ceiling, 28), (ceiling, 196), colour=theme.orange, linewidth=1.6)
    canvas.text(ceiling, 18, f"ceiling {CEILING:g}", va="baseline", weight="bold", color=theme.orange)
    ends = [LEFT]
    for place, (name, epsilon, total) in enumerate(ledger()):
        y = 32 + 42 * place
        canvas.text(8, y + 9, name, ha="left")
        canvas.text(8, y + 23, f"ε = {epsilon:g} by itself", ha="left", size=SMALL, color=theme.muted)
        if total is not None:
            ends.append(LEFT + FULL * total / CEILING)
        for k, (start, end) in enumerate(pairwise(ends)):
            last = k == len(ends) - 2 and total is not None
            edge, fill = colours[k]
            canvas.box(start, y, end - start, 30, fill=fill, edge=edge, round_=0, line=1.6 if last else 0.8)
        if total is not None:
            text, colour = f"{total:.2f}", colours[len(ends) - 2][0]
            canvas.text(ends[-1] - 5, y + 15, text, ha="right", weight="bold", color=colour)
        else:
            end = LEFT + FULL * (total_without_ceiling() / CEILING)
            canvas.box(ends[-1], y, end - ends[-1], 30, edge=theme.orange, dashed=True, round_=0)
            text = "refused before\nit reads a value"
            canvas.text(end + 5, y + 15, text, ha="left", color=theme.orange, size=8)
    for tick in (0, 0.5, 1, 1.5, 2):
        x = LEFT + FULL * tick / CEILING
        canvas.line((x, 196), (x, 200))
        canvas.text(x, 209, f"{tick:g}", size=SMALL)
    canvas.line((LEFT, 196), (508, 196))
    return canvas.figure
