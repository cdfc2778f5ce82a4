"""PrivacyReport: what one fit cost, how that was proved, and what the proof takes for granted.

It holds built-in types only, never a value of the data, and cannot be changed. Other epsilons,
curves and dp-accounting events are computed from its rows on demand.
"""

import copy
import html
import math
from collections.abc import Mapping, Sequence
from typing import Any, Generic, Self, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_mu,
    pure_mu,
    rows_delta,
    rows_epsilon,
    rows_mu,
    tradeoff,
)
from skdp.privacy.accounting.ledger import FULL_BATCH, check_row, row_sampling
from skdp.privacy.accounting.minibatch import planned_epsilon
from skdp.privacy.report.text import cost_text, number_text, plan_lines, release_table

__all__ = ["PrivacyReport"]

T = TypeVar("T")
Array = NDArray[np.float64]

_GUARANTEES = {
    "proven": "holds for the plan of this fit",
    "none": "no noise was added: no privacy guarantee",
    "unproven": "no valid privacy proof exists for this method",
}
_ADJACENCIES = {
    "replace-one": "one {unit} takes other values; the number of {unit}s is public",
    "zero-out": "one {unit} is replaced by an empty one; the number of {unit}s is public",
    "add-remove": "one {unit} comes or goes; the number of {unit}s is private",
}


class _Field(Generic[T]):
    """A read-only attribute; what it hands out is a copy, so that the report cannot be changed."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, report: None, owner: type) -> Self: ...
    @overload
    def __get__(self, report: "PrivacyReport", owner: type) -> T: ...
    def __get__(self, report: "PrivacyReport | None", owner: type) -> Self | T:
        if report is None:
            return self
        value: T = copy.deepcopy(report._state[self._name])
        return value

    def __set__(self, report: "PrivacyReport", value: T) -> None:
        raise AttributeError(f"a PrivacyReport cannot be changed (tried to set {self._name!r})")


def _builtin(value: Any) -> Any:
    """`value` in built-in types: NumPy numbers and arrays, tuples and mappings are converted."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if isinstance(value, np.generic | np.ndarray):
        return _builtin(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _builtin(item) for key, item in value.items()}
    if isinstance(value, Sequence | set | frozenset) and not isinstance(value, str | bytes):
        return [_builtin(item) for item in value]
    for kind in (bool, int, float, str):
        if isinstance(value, kind):
            return kind(value)
    raise TypeError(f"a PrivacyReport holds built-in types only, got {type(value).__name__}")


class PrivacyReport:
    """What one fit cost in privacy.

    Parameters
    ----------
    epsilon, delta : float
        The claim: that of the plan, also when fewer releases were made. `epsilon` is inf when
        `guarantee` is not "proven".
    adjacency : {"replace-one", "zero-out", "add-remove"}
    unit : {"record", "group"}, default="record"
        Whose change the claim protects.
    guarantee : {"proven", "none", "unproven"}, default="proven"
    accountant, noise : str
        The method of the proof, and exactly which noise was drawn.
    public : dict, optional
        Quantities taken as public, such as n_records.
    assumptions : sequence of str, optional
        What the proof takes for granted.
    mechanisms : sequence of dict, optional
        One row per share of the budget: `name` ("gaussian", "laplace", "gumbel_top_k",
        "above_threshold", "sampled_pure"), `purpose`, `noise_multiplier` or `epsilon` (of one
        release), `count`, `sampling`, `sensitivity`, `grid`.
    slack : (float, float), default=(0.0, 0.0)
        The part of (epsilon, delta) that pays for the proven error of the samplers: if the ideal
        releases are (e, d)-DP, the drawn ones are (e + slack[0], d exp(slack[0]) + slack[1])-DP.
    plan_mu : float, optional
        The mu of the plan. Without it the mu is derived from the claim.
    sampled_plan : sequence of dict, optional
        The Gaussian rows of the plan that are on sampled batches, with the planned counts: the claim is theirs,
        together with full-batch releases of `plan_mu`.
    erratum : str, optional
        Where the published constant was wrong, and what is used instead.
    estimator : str, optional
        Name of the class that was fitted.

    Attributes
    ----------
    scope : str
        "one fit": other fits on overlapping data add to the cost.

    Examples
    --------
    >>> from skdp.privacy import PrivacyReport
    >>> from skdp.privacy.accounting import noise_multiplier
    >>> row = {"name": "gaussian", "purpose": "gradients", "count": 50, "sampling": "full batch",
    ...        "noise_multiplier": noise_multiplier(1.0, 1e-5, releases=50)}
    >>> report = PrivacyReport(epsilon=1.0, delta=1e-5, adjacency="replace-one", mechanisms=[row])
    >>> round(report.epsilon_at(1e-6), 4)
    1.1436
    """

    # Pickles and files of skops name the package, not this file.
    __module__ = "skdp.privacy.report"

    epsilon = _Field[float]()
    delta = _Field[float]()
    adjacency = _Field[str]()
    unit = _Field[str]()
    guarantee = _Field[str]()
    accountant = _Field[str]()
    noise = _Field[str]()
    public = _Field[dict[str, Any]]()
    assumptions = _Field[list[str]]()
    mechanisms = _Field[list[dict[str, Any]]]()
    slack = _Field[list[float]]()
    plan_mu = _Field[float | None]()
    sampled_plan = _Field[list[dict[str, Any]] | None]()
    erratum = _Field[str | None]()
    estimator = _Field[str | None]()
    scope = "one fit"

    def __init__(
        self,
        *,
        epsilon: float,
        delta: float,
        adjacency: str,
        unit: str = "record",
        guarantee: str = "proven",
        accountant: str = "",
        noise: str = "",
        public: Mapping[str, Any] | None = None,
        assumptions: Sequence[str] = (),
        mechanisms: Sequence[Mapping[str, Any]] = (),
        slack: Sequence[float] = (0.0, 0.0),
        plan_mu: float | None = None,
        sampled_plan: Sequence[Mapping[str, Any]] | None = None,
        erratum: str | None = None,
        estimator: str | None = None,
    ) -> None:
        state: dict[str, Any] = {
            "epsilon": float(epsilon),
            "delta": float(delta),
            "adjacency": str(adjacency),
            "unit": str(unit),
            "guarantee": str(guarantee),
            "accountant": str(accountant),
            "noise": str(noise),
            "public": _builtin(public or {}),
            "assumptions": [str(line) for line in assumptions],
            "mechanisms": [_builtin(row) for row in mechanisms],
            "slack": [float(part) for part in slack],
            "plan_mu": None if plan_mu is None else float(plan_mu),
            "sampled_plan": None
            if sampled_plan is None
            else [_builtin(row) for row in sampled_plan],
            "erratum": None if erratum is None else str(erratum),
            "estimator": None if estimator is None else str(estimator),
        }
        _check_state(state)
        object.__setattr__(self, "_state", state)

    _state: dict[str, Any]

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"a PrivacyReport cannot be changed (tried to set {name!r})")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a PrivacyReport cannot be changed (tried to delete {name!r})")

    def __getstate__(self) -> dict[str, Any]:
        return copy.deepcopy(self._state)

    def __setstate__(self, state: dict[str, Any]) -> None:
        object.__setattr__(self, "_state", state)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, PrivacyReport):
            return NotImplemented
        return self._state == other._state

    def __hash__(self) -> int:
        return hash(repr(sorted(self._state.items())))

    # ------------------------------------------------------------------ other figures

    @property
    def mu(self) -> float:
        """Gaussian-DP parameter of the whole plan.

        inf where none is proven, as for objective perturbation, or none says enough, as for sampled batches.
        """
        if self.guarantee != "proven" or self._sampled():
            return math.inf
        rows = rows_mu(self._state["mechanisms"])
        if self.plan_mu is not None:
            return max(rows, self.plan_mu)
        epsilon, delta = self.epsilon - self.slack[0], self._ideal_delta(self.delta)
        if epsilon <= 0.0 or (delta <= 0.0 and self._whole_plan_released()):
            return rows
        # 2e-10 undoes the rounding down of gaussian_mu.
        bound = gaussian_mu(epsilon, delta) * (1.0 + 2e-10) if delta > 0.0 else pure_mu(epsilon)
        return max(rows, bound)

    def _ideal_delta(self, delta: float) -> float:
        """What is left of `delta` for the ideal releases after the slack of the samplers."""
        return (delta - self.slack[1]) * math.exp(-self.slack[0])

    def _whole_plan_released(self) -> bool:
        """Whether the rows cost all of the plan, so that bounds on the rows hold for the claim."""
        rows = self._state["mechanisms"]
        if self._ideal_delta(self.delta) > 0.0:
            return rows_mu(rows) >= self.mu * (1.0 - 1e-8)
        return rows_epsilon(rows, 0.0) >= (self.epsilon - self.slack[0]) * (1.0 - 1e-8)

    def _sampled(self) -> bool:
        rows = self._state["sampled_plan"] or self._state["mechanisms"]
        return any(row_sampling(row) != FULL_BATCH for row in rows)

    def _planned(self) -> tuple[list[dict[str, Any]], float]:
        """The sampled rows of the plan, and the mu of its full-batch part. Without a plan the rows are it."""
        if self._state["sampled_plan"] is not None:
            return self._state["sampled_plan"], self.plan_mu or 0.0
        rows = self._state["mechanisms"]
        full = [row for row in rows if row_sampling(row) == FULL_BATCH]
        sampled = [row for row in rows if row_sampling(row) != FULL_BATCH]
        return sampled, max(rows_mu(full), self.plan_mu or 0.0)

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon proven for this fit at another delta, slack of the samplers included.

        It is the epsilon of the plan, not of the releases made: how many were made may depend on
        the data.

        Parameters
        ----------
        delta : float in [0, 1)

        Returns
        -------
        float
            inf where nothing is proven, as below the claim's delta for objective perturbation.
        """
        delta = float(delta)
        if not 0.0 <= delta < 1.0:
            raise ValueError(f"delta must be in [0, 1), got {delta!r}.")
        if self.guarantee != "proven":
            return math.inf
        proven = [self.epsilon] if delta >= self.delta else []
        ideal, rows = self._ideal_delta(delta), self._state["mechanisms"]
        if ideal < 0.0:
            return min(proven, default=math.inf)
        if self._sampled():
            if ideal > 0.0:
                plan, mu = self._planned()
                found = planned_epsilon(plan, ideal, mu=mu, adjacency=self.adjacency)
                # The claim leaves some room for the recheck: no figure at its delta is below it.
                least = self.epsilon if self.sampled_plan and delta <= self.delta else 0.0
                proven.append(max(least, found + self.slack[0]))
        else:
            proven.append(gaussian_epsilon(self.mu, ideal) + self.slack[0])
            if self._rows_are_the_plan():
                proven.append(rows_epsilon(rows, ideal) + self.slack[0])
        return min(proven, default=math.inf)

    def delta_at(self, epsilon: float) -> float:
        """Smallest delta proven for this fit at another epsilon, slack of the samplers included.

        Parameters
        ----------
        epsilon : float >= 0

        Returns
        -------
        float in [0, 1]
            1 where nothing is proven.
        """
        epsilon = float(epsilon)
        if not epsilon >= 0.0:
            raise ValueError(f"epsilon must be >= 0, got {epsilon!r}.")
        if self.guarantee != "proven":
            return 1.0
        if self._sampled():
            return self._sampled_delta(epsilon)
        proven = [1.0]
        if epsilon >= self.epsilon:
            proven.append(self.delta)
        ideal = epsilon - self.slack[0]
        if ideal >= 0.0:
            found = [gaussian_delta(self.mu, ideal)]
            if self._rows_are_the_plan():
                found.append(rows_delta(self._state["mechanisms"], ideal))
            grown = (1.0 + 1e-11) * math.exp(self.slack[0])
            proven.extend(part * grown + self.slack[1] for part in found)
        return min(proven)

    def _sampled_delta(self, epsilon: float) -> float:
        """Inverse of `epsilon_at`, rounded up by at most 0.1 %; no less than 1e-100."""
        low, high = math.log(1e-100), 0.0
        while high - low > 1e-3:
            middle = 0.5 * (low + high)
            enough = self.epsilon_at(math.exp(middle)) <= epsilon
            low, high = (low, middle) if enough else (middle, high)
        return math.exp(high)

    def event_for(self, accountant: str) -> Any:
        """The plan as a `dp_accounting.DpEvent` in that accountant's own convention.

        Where the rows are the plan it is their events. Elsewhere it is one Gaussian release of the plan's
        `mu`: how many releases were made, or of which kinds, may depend on the data, and then the
        events of those that were made prove nothing. The slack of the samplers is no event: add it.

        Parameters
        ----------
        accountant : {"pld", "rdp"}
            Under replace-one the PLD accountant wants std over clip norm, the RDP accountant std
            over sensitivity: half of it. Never give one event to both.

        Returns
        -------
        dp_accounting.DpEvent

        Raises
        ------
        UnsupportedAccounting
            If the plan has no event, as with a part that is (epsilon, delta)-DP at one point only.
        """
        from skdp.privacy.accounting.adapter import event_for

        if self.guarantee != "proven":
            return event_for(None, accountant, self.adjacency)
        rows = self._state["mechanisms"]
        if self._sampled():
            planned, mu = self._planned()
            rest = {"name": "gaussian", "noise_multiplier": (1.0 - 2.0**-51) / mu} if mu else None
            rows = [*planned, rest] if rest else planned
        elif not self._rows_are_the_plan():
            mu = self.mu
            if mu == math.inf:
                raise UnsupportedAccounting(
                    "a part of the plan is (epsilon, delta)-DP at one point: dp-accounting has no event "
                    "for it. Add the fit's epsilon and delta to those of the rest"
                )
            rows = [{"name": "gaussian", "noise_multiplier": (1.0 - 2.0**-51) / mu, "count": 1}]
        return event_for(rows, accountant, self.adjacency)

    def _rows_are_the_plan(self) -> bool:
        """Whether what is proven of the rows holds for the claim, also if plans were made after releases.

        All of the mu must have been released, and the kinds not have been chosen by what was released: Gaussian
        releases of a total mu are one of that mu, but the curves of other kinds differ at the same mu. Sessions
        without delta plan by epsilon; after a release they claim the mu of one release of all of it.
        """
        rows = self._state["mechanisms"]
        gaussian = all(row["name"] == "gaussian" for row in rows)
        if not gaussian and self._ideal_delta(self.delta) > 0.0:
            return False
        return rows_mu(rows) >= self.mu * (1.0 - 1e-8)

    # ------------------------------------------------------------------ other forms

    def to_dict(self) -> dict[str, Any]:
        """The report in built-in types, ready for JSON (inf stays a float)."""
        return {**copy.deepcopy(self._state), "scope": self.scope}

    @classmethod
    def from_dict(cls, state: Mapping[str, Any]) -> Self:
        """The inverse of `to_dict`."""
        return cls(**{key: value for key, value in state.items() if key != "scope"})

    def _lines(self) -> list[tuple[str, str]]:
        state = self._state
        adjacency = _ADJACENCIES[self.adjacency].format(unit=self.unit)
        lines = [
            ("epsilon", cost_text(self.epsilon)),
            ("delta", cost_text(self.delta)),
            ("guarantee", f"{self.guarantee} ({_GUARANTEES[self.guarantee]})"),
            ("protects", f"one {self.unit}"),
            ("adjacency", f"{self.adjacency} ({adjacency})"),
            ("accountant", self.accountant),
            ("noise", self.noise),
            *plan_lines(
                state["sampled_plan"] or (), state["mechanisms"], self.plan_mu or 0.0, self.unit
            ),
            ("public", ", ".join(f"{k}={number_text(v)}" for k, v in state["public"].items())),
        ]
        if any(self.slack):
            lines.append(("slack", f"epsilon {self.slack[0]:.2g}, delta {self.slack[1]:.2g}"))
        lines.append(("erratum", self.erratum or ""))
        lines.extend(("assumes", line) for line in state["assumptions"])
        return [(name, text) for name, text in lines if text]

    def _table(self) -> list[list[str]]:
        return release_table(self._state["mechanisms"], shares=not self._sampled())

    def _title(self) -> str:
        return f"Privacy of {self.scope}" + (f" of {self.estimator}" if self.estimator else "")

    def __repr__(self) -> str:
        lines = [self._title()]
        lines += [f"  {name:<10}  {text}" for name, text in self._lines()]
        table = self._table()
        if table:
            widths = [max(map(len, column)) for column in zip(*table)]
            lines.append("  releases")
            for cells in table:
                padded = "  ".join(cell.ljust(width) for cell, width in zip(cells, widths))
                lines.append(f"    {padded.rstrip()}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        body = "".join(
            f'<tr><th style="text-align:left">{html.escape(name)}</th>'
            f'<td style="text-align:left">{html.escape(text)}</td></tr>'
            for name, text in self._lines()
        )
        parts = [f"<table><caption>{html.escape(self._title())}</caption>{body}</table>"]
        table = self._table()
        if table:
            head = "".join(f"<th>{html.escape(cell)}</th>" for cell in table[0])
            rows = "".join(
                "<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in cells) + "</tr>"
                for cells in table[1:]
            )
            parts.append(f"<table><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table>")
        return "<div>" + "".join(parts) + "</div>"

    # ------------------------------------------------------------------ pictures

    def plot(self, ax: Any = None) -> Any:
        """Draw what an attacker can achieve, and epsilon as a function of delta.

        Parameters
        ----------
        ax : matplotlib Axes or a pair of them, optional
            One Axes gets the trade-off curve only. By default a figure with two is made.

        Returns
        -------
        Axes, or ndarray of two Axes

        Raises
        ------
        ImportError
            If matplotlib is missing.
        """
        try:
            from matplotlib import pyplot
        except ImportError as error:
            raise ImportError(
                'PrivacyReport.plot needs matplotlib: pip install "skdp[plot]"'
            ) from error
        if ax is None:
            _, ax = pyplot.subplots(1, 2, figsize=(9.0, 3.8), layout="constrained")
        pair = np.ravel(np.asarray(ax, dtype=object))
        if pair.size > 2:
            raise ValueError(f"ax must be one or two Axes, got {pair.size}.")
        # A sampled fit costs a numerical composition a point, so it gets fewer.
        delta = np.geomspace(*((1e-12, 0.3, 24) if self._sampled() else (1e-12, 0.1, 61)))
        epsilon = np.array([self.epsilon_at(float(point)) for point in delta])
        self._plot_tradeoff(pair[0], delta, epsilon)
        if pair.size == 2:
            self._plot_epsilon(pair[1], delta, epsilon)
        return ax

    def _plot_tradeoff(self, ax: Any, delta: Array, epsilon: Array) -> None:
        alpha = np.linspace(0.0, 1.0, 401)
        if self._sampled() or math.isinf(self.mu):
            known = np.isfinite(epsilon)
            delta, epsilon = np.append(delta[known], 1.0), np.append(epsilon[known], 0.0)
            left, likely = 1.0 - delta[:, None], np.exp(epsilon)[:, None]
            floors = np.maximum(left - likely * alpha, (left - alpha) / likely)
            beta = np.maximum(0.0, np.max(floors, axis=0))
        else:
            beta = tradeoff(self.mu, alpha)
        ax.plot(alpha, 1.0 - alpha, "--", color="0.6", label="guessing")
        ax.plot(alpha, beta, color="C0", label="best attacker at most this good")
        ax.fill_between(alpha, beta, 1.0 - alpha, color="C0", alpha=0.12)
        ax.set(xlabel="false alarms (type I error)", ylabel="misses (type II error)")
        ax.set(xlim=(0, 1), ylim=(0, 1), title=f"Attacker's errors about one {self.unit}")
        ax.legend(frameon=False)

    def _plot_epsilon(self, ax: Any, delta: Array, epsilon: Array) -> None:
        ax.set(xscale="log", xlabel="delta", ylabel="epsilon", title="Epsilon proven at each delta")
        finite = np.isfinite(epsilon)
        if not finite.any():
            ax.text(0.5, 0.5, "epsilon is inf", transform=ax.transAxes, ha="center")
            return
        ax.plot(delta[finite], epsilon[finite], color="C0")
        if self.delta > 0.0:
            ax.plot([self.delta], [self.epsilon], "o", color="C3", label="claim")
        else:
            ax.axhline(self.epsilon, color="C3", linestyle=":", label="claim at delta = 0")
        ax.set_ylim(bottom=0.0)
        ax.legend(frameon=False)


def _check_state(state: dict[str, Any]) -> None:
    if state["guarantee"] not in _GUARANTEES:
        raise ValueError(
            f"guarantee must be one of {list(_GUARANTEES)}, got {state['guarantee']!r}."
        )
    if state["adjacency"] not in _ADJACENCIES:
        raise ValueError(
            f"adjacency must be one of {list(_ADJACENCIES)}, got {state['adjacency']!r}."
        )
    if state["unit"] not in ("record", "group"):
        raise ValueError(f"unit must be 'record' or 'group', got {state['unit']!r}.")
    if not state["epsilon"] >= 0.0:
        raise ValueError(f"epsilon must be >= 0, got {state['epsilon']!r}.")
    if (state["guarantee"] == "proven") != (state["epsilon"] < math.inf):
        raise ValueError(
            "epsilon must be finite if guarantee is 'proven' and inf otherwise, "
            f"got {state['epsilon']!r} with {state['guarantee']!r}."
        )
    if not 0.0 <= state["delta"] < 1.0:
        raise ValueError(f"delta must be in [0, 1), got {state['delta']!r}.")
    if len(state["slack"]) != 2 or not all(0.0 <= part < 1.0 for part in state["slack"]):
        raise ValueError(f"slack must be a pair (epsilon, delta), got {state['slack']!r}.")
    for row in (*state["mechanisms"], *(state["sampled_plan"] or ())):
        check_row(row)
