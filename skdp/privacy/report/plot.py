"""The pictures of a report: what an attacker can achieve, and epsilon as a function of delta."""

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.accounting import tradeoff
from skdp.privacy.report.curves import Curves, ReportState

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Array = NDArray[np.float64]


def draw_report(state: ReportState, ax: "Axes | NDArray[np.object_] | None") -> "Axes | NDArray[np.object_]":
    """Draw the report on one or two Axes; see `PrivacyReport.plot`."""
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('PrivacyReport.plot needs matplotlib: pip install "skdp[plot]"') from error
    if ax is None:
        _, ax = pyplot.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
    pair = np.ravel(np.asarray(ax, dtype=object))
    if pair.size > 2:
        raise ValueError(f"ax must be one or two Axes, got {pair.size}.")
    curves = Curves(state)
    # A sampled fit costs a numerical composition a point, so it gets fewer.
    delta = np.geomspace(*((1e-12, 0.3, 24) if curves.sampled else (1e-12, 0.1, 61)))
    epsilon = np.array([curves.epsilon_at(float(point)) for point in delta])
    alpha = np.linspace(0.0, 1.0, 401)
    _draw_tradeoff(pair[0], alpha, _type_two(curves, alpha, delta, epsilon), state["unit"])
    if pair.size == 2:
        _draw_epsilon(pair[1], delta, epsilon, state)
    return ax


def _type_two(curves: Curves, alpha: Array, delta: Array, epsilon: Array) -> Array:
    """Smallest type II errors: by mu, or where no mu says enough by the (epsilon, delta) of the curve."""
    if not curves.sampled and not math.isinf(curves.mu):
        return tradeoff(curves.mu, alpha)
    known = np.isfinite(epsilon)
    delta, epsilon = np.append(delta[known], 1.0), np.append(epsilon[known], 0.0)
    left, likely = 1.0 - delta[:, None], np.exp(epsilon)[:, None]
    floors = np.maximum(left - likely * alpha, (left - alpha) / likely)
    return np.maximum(0.0, np.max(floors, axis=0))


def _draw_tradeoff(ax: "Axes", alpha: Array, beta: Array, unit: str) -> None:
    ax.plot(alpha, 1.0 - alpha, "--", color="0.6", label="guessing")
    ax.plot(alpha, beta, color="C0", label="best attacker at most this good")
    ax.fill_between(alpha, beta, 1.0 - alpha, color="C0", alpha=0.12)
    ax.set(xlabel="false alarms (type I error)", ylabel="misses (type II error)")
    ax.set(xlim=(0, 1), ylim=(0, 1), title=f"Attacker's errors about one {unit}")
    ax.legend(frameon=False)


def _draw_epsilon(ax: "Axes", delta: Array, epsilon: Array, state: ReportState) -> None:
    ax.set(xscale="log", xlabel="delta", ylabel="epsilon", title="Epsilon proven at each delta")
    finite = np.isfinite(epsilon)
    if not finite.any():
        ax.text(0.5, 0.5, "epsilon is inf", transform=ax.transAxes, ha="center")
        return
    ax.plot(delta[finite], epsilon[finite], color="C0")
    if state["delta"] > 0.0:
        ax.plot([state["delta"]], [state["epsilon"]], "o", color="C3", label="claim")
    else:
        ax.axhline(state["epsilon"], color="C3", linestyle=":", label="claim at delta = 0")
    ax.set_ylim(bottom=0.0)
    ax.legend(frameon=False)
