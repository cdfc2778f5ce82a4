"""PrivacyReport: the cost of one fit, its proof and its assumptions.

It holds built-in types only, no value of the data, and cannot be changed. Other epsilons, curves and dp-accounting
events are computed from its rows on demand.
"""

import copy
import math
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Generic, Self, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from skdp.privacy.accounting.releases import LedgerRow, Row, release_of
from skdp.privacy.report.card import json_text, report_json, write_card
from skdp.privacy.report.curves import Builtin, Curves, ReportState
from skdp.privacy.report.decode import parsed, state_of
from skdp.privacy.report.page import report_html
from skdp.privacy.report.plot import draw_report
from skdp.privacy.report.text import ADJACENCY_TEXTS, GUARANTEE_TEXTS, UNIT_ASSUMPTIONS, report_text

if TYPE_CHECKING:
    from dp_accounting import DpEvent
    from matplotlib.axes import Axes

T = TypeVar("T")


class _Field(Generic[T]):
    """A read-only attribute. It hands out a copy, so that the report cannot be changed."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    @overload
    def __get__(self, report: None, owner: type) -> Self: ...
    @overload
    def __get__(self, report: "PrivacyReport", owner: type) -> T: ...
    def __get__(self, report: "PrivacyReport | None", owner: type) -> Self | T:
        if report is None:
            return self
        state = cast("Mapping[str, T]", report._state)
        return copy.deepcopy(state[self._name])

    def __set__(self, report: "PrivacyReport", value: T) -> None:
        raise AttributeError(f"a PrivacyReport cannot be changed (tried to set {self._name!r})")


def _builtin(value: object) -> Builtin:
    """`value` in built-in types: NumPy numbers and arrays, tuples and mappings are converted."""
    if value is None or type(value) in (bool, int, float, str):
        return cast("Builtin", value)
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


def _builtin_row(row: Row) -> LedgerRow:
    # The values of a row are numbers and words; other entries are for people.
    return cast("LedgerRow", {str(key): _builtin(value) for key, value in row.items()})


class PrivacyReport:
    """What one fit cost in privacy.

    Parameters
    ----------
    epsilon, delta : float
        The claim, which is the claim of the plan, also if fewer releases were made. `epsilon` is inf if
        `guarantee` is not "proven".
    adjacency : {"replace-one", "zero-out", "add-remove"}
    unit : {"record", "group", "owner", "window"}, default="record"
        Whose change the claim protects.
    guarantee : {"proven", "none", "unproven"}, default="proven"
    accountant, noise : str
        The method of the proof, and which noise was drawn.
    public : dict, optional
        Quantities taken as public, such as n_records.
    assumptions : sequence of str, optional
        What the proof takes for granted.
    leaks : sequence of str, optional
        What the claim does not cover because of how this fit was made, such as a seed or labels that were read.
    mechanisms : sequence of dict, optional
        One row per share of the budget: `name` ("gaussian", "laplace", "gumbel_top_k",
        "above_threshold", "sampled_pure"), `purpose`, `noise_multiplier` or `epsilon` (of one
        release), `count`, `sampling`, `sensitivity`, `grid`.
    numerical_error : (float, float), default=(0.0, 0.0)
        The part of (epsilon, delta) that pays for the proven error of the samplers. If the ideal releases are
        (e, d)-DP, the drawn ones are (e + numerical_error[0], d exp(numerical_error[0]) + numerical_error[1])-DP.
    plan_mu : float, optional
        The mu of the plan. Without it the mu is derived from the claim.
    sampled_plan : sequence of dict, optional
        The Gaussian rows of the plan that are on sampled batches, with the planned counts. The claim is that of
        these rows together with full-batch releases of `plan_mu`.
    erratum : str, optional
        What is wrong in the published theorem or constant, and what this fit uses instead.
    estimator : str, optional
        Name of the class that was fitted.
    post_processing : sequence of str, optional
        What is made of released numbers afterwards without a further cost, such as a cut of predictions.
    rechecked : float, optional
        Epsilon of the releases that were made, at the delta of the claim and with the numerical error, computed by
        other code than the calibration. Sessions recheck every claim before they make a report.

    Attributes
    ----------
    scope : str
        "one fit". Other fits on overlapping data add to the cost.

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
    public = _Field[dict[str, Builtin]]()
    assumptions = _Field[list[str]]()
    leaks = _Field[list[str]]()
    mechanisms = _Field[list[LedgerRow]]()
    numerical_error = _Field[list[float]]()
    plan_mu = _Field[float | None]()
    sampled_plan = _Field[list[LedgerRow] | None]()
    erratum = _Field[str | None]()
    estimator = _Field[str | None]()
    post_processing = _Field[list[str]]()
    rechecked = _Field[float | None]()
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
        public: Mapping[str, object] | None = None,
        assumptions: Sequence[str] = (),
        leaks: Sequence[str] = (),
        mechanisms: Sequence[Row] = (),
        numerical_error: Sequence[float] = (0.0, 0.0),
        plan_mu: float | None = None,
        sampled_plan: Sequence[Row] | None = None,
        erratum: str | None = None,
        estimator: str | None = None,
        post_processing: Sequence[str] = (),
        rechecked: float | None = None,
    ) -> None:
        state: ReportState = {
            "epsilon": float(epsilon),
            "delta": float(delta),
            "adjacency": str(adjacency),
            "unit": str(unit),
            "guarantee": str(guarantee),
            "accountant": str(accountant),
            "noise": str(noise),
            "public": {str(key): _builtin(value) for key, value in (public or {}).items()},
            "assumptions": [str(line) for line in assumptions],
            "leaks": [str(line) for line in leaks],
            "mechanisms": [_builtin_row(row) for row in mechanisms],
            "numerical_error": [float(part) for part in numerical_error],
            "plan_mu": None if plan_mu is None else float(plan_mu),
            "sampled_plan": None if sampled_plan is None else [_builtin_row(row) for row in sampled_plan],
            "erratum": None if erratum is None else str(erratum),
            "estimator": None if estimator is None else str(estimator),
            "post_processing": [str(line) for line in post_processing],
            "rechecked": None if rechecked is None else float(rechecked),
        }
        _check_state(state)
        object.__setattr__(self, "_state", state)

    _state: ReportState

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a PrivacyReport cannot be changed (tried to set {name!r})")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"a PrivacyReport cannot be changed (tried to delete {name!r})")

    def __getstate__(self) -> ReportState:
        return copy.deepcopy(self._state)

    def __setstate__(self, state: ReportState) -> None:
        # Reports that older versions pickled have no such lines.
        object.__setattr__(self, "_state", {"post_processing": [], "rechecked": None, "leaks": [], **state})

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

        It is inf if none is proven, as for objective perturbation, or if none is tight, as for sampled batches.
        """
        return Curves(self._state).mu

    def epsilon_at(self, delta: float) -> float:
        """Smallest epsilon proven for this fit at another delta, numerical error of the samplers included.

        It is the epsilon of the plan and not of the releases made, because how many were made may depend
        on the data.

        Parameters
        ----------
        delta : float in [0, 1)

        Returns
        -------
        float
            inf if nothing is proven, as below the claim's delta for objective perturbation.
        """
        return Curves(self._state).epsilon_at(delta)

    def delta_at(self, epsilon: float) -> float:
        """Smallest delta proven for this fit at another epsilon, numerical error of the samplers included.

        Parameters
        ----------
        epsilon : float >= 0

        Returns
        -------
        float in [0, 1]
            1 if nothing is proven.
        """
        return Curves(self._state).delta_at(epsilon)

    def event_for(self, accountant: str) -> "DpEvent":
        """The plan as a `dp_accounting.DpEvent` in that accountant's own convention.

        If the rows are the plan, these are their events. Else it is one Gaussian release of the plan's `mu`:
        how many releases were made, and of which kinds, may depend on the data, so their events would prove
        nothing. The numerical error of the samplers is no event. Add it.

        Parameters
        ----------
        accountant : {"pld", "rdp"}
            Under replace-one the PLD accountant expects std over clip norm. The RDP accountant expects std over
            sensitivity, which is half of that. Never give one event to both.

        Returns
        -------
        dp_accounting.DpEvent

        Raises
        ------
        UnsupportedAccounting
            If the plan has no event, as with a part that is (epsilon, delta)-DP at one point only.
        """
        return Curves(self._state).event(accountant)

    # ------------------------------------------------------------------ other forms

    def to_dict(self) -> dict[str, object]:
        """The report in built-in types, ready for JSON (inf stays a float)."""
        return {**copy.deepcopy(self._state), "scope": self.scope}

    @classmethod
    def from_dict(cls, state: Mapping[str, object]) -> Self:
        """The inverse of `to_dict`."""
        given = {key: value for key, value in state.items() if key != "scope"}
        return cls(**cast("ReportState", given))  # checked by the constructor

    def to_json(self) -> str:
        """The report as strict JSON, in which an infinite number is the text "inf".

        Returns
        -------
        str
        """
        return json_text(report_json(self))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """The inverse of `to_json`.

        Parameters
        ----------
        text : str

        Returns
        -------
        PrivacyReport

        Raises
        ------
        ValueError
            If the text is no JSON, or a field is missing, unknown or impossible.
        """
        return cls(**state_of(parsed(text)))

    def card(self, path: str | os.PathLike[str], *, model: object = None, notes: str = "") -> Path:
        """Write a model card: claim, data without data, releases, assumptions, and how to verify it.

        The command ``skdp verify CARD`` and `verify_card` recompute epsilon from the ledger in the card.

        Parameters
        ----------
        path : str or path-like
            File that ends in ``.html`` or ``.md``. It is replaced if it exists, at once and never by half a card.
        model : object, optional
            The fitted object with this report as ``privacy_``. Its class and parameters are written to the card,
            but no seed, no accountant and nothing that was fitted.
        notes : str, optional
            Text for the card, such as the intended use. It is shown as given; nothing checks it.

        Returns
        -------
        pathlib.Path

        Raises
        ------
        ValueError
            If the suffix is another one, or ``model`` has another report.
        OSError
            If the file cannot be written.

        Examples
        --------
        >>> import tempfile
        >>> from pathlib import Path
        >>> from skdp import DPFrankWolfeRegressor
        >>> from skdp.datasets import make_sparse_regression
        >>> from skdp.privacy import verify_card
        >>> X, y = make_sparse_regression(500, 20, n_informative=3, random_state=0)
        >>> model = DPFrankWolfeRegressor(epsilon=1.0, delta=1e-5).fit(X, y)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = model.privacy_.card(Path(folder) / "card.md", model=model)
        ...     verify_card(path)["verified"]
        True
        """
        return write_card(self, path, model, notes)

    def __repr__(self) -> str:
        return report_text(self._state, self.scope)

    def _repr_html_(self) -> str:
        return report_html(self._state, self.scope)

    # ------------------------------------------------------------------ pictures

    def plot(self, ax: "Axes | NDArray[np.object_] | None" = None) -> "Axes | NDArray[np.object_]":
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
        return draw_report(self._state, ax)


def _check_state(state: ReportState) -> None:
    if state["guarantee"] not in GUARANTEE_TEXTS:
        raise ValueError(f"guarantee must be one of {list(GUARANTEE_TEXTS)}, got {state['guarantee']!r}.")
    if state["adjacency"] not in ADJACENCY_TEXTS:
        raise ValueError(f"adjacency must be one of {list(ADJACENCY_TEXTS)}, got {state['adjacency']!r}.")
    if state["unit"] not in UNIT_ASSUMPTIONS:
        raise ValueError(f"unit must be 'record', 'group', 'owner' or 'window', got {state['unit']!r}.")
    if not state["epsilon"] >= 0.0:
        raise ValueError(f"epsilon must be >= 0, got {state['epsilon']!r}.")
    if (state["guarantee"] == "proven") != (state["epsilon"] < math.inf):
        raise ValueError(
            "epsilon must be finite if guarantee is 'proven' and inf otherwise, "
            f"got {state['epsilon']!r} with {state['guarantee']!r}."
        )
    if not 0.0 <= state["delta"] < 1.0:
        raise ValueError(f"delta must be in [0, 1), got {state['delta']!r}.")
    if len(state["numerical_error"]) != 2 or not all(0.0 <= part < 1.0 for part in state["numerical_error"]):
        raise ValueError(f"numerical error must be a pair (epsilon, delta), got {state['numerical_error']!r}.")
    for row in (*state["mechanisms"], *(state["sampled_plan"] or ())):
        release_of(row)
