"""Verify a card: epsilon again from its ledger, by the code of the recheck, and its words again from its data.

A card proves what follows from its ledger: that the listed releases cost at most the stated epsilon, and that
its words and tables are those of its data. It proves nothing about rows that are not in the ledger, and units,
sensitivities, assumptions and free text are as its author states them.
"""

import math
import os
import re
from collections.abc import Mapping
from itertools import zip_longest
from pathlib import Path
from typing import TypedDict, cast

from skdp._version import __version__
from skdp.exceptions import UnsupportedAccounting
from skdp.privacy.accounting import rows_mu
from skdp.privacy.accounting.recheck import recheck_epsilon, recheck_tail
from skdp.privacy.accounting.releases import release_of, releases_of
from skdp.privacy.accounting.text import ACCOUNTANTS, POINTWISE
from skdp.privacy.report.card import CARD_FIELDS, FORMAT, FORMAT_VERSION, UNCHECKED, Json, attack_of, report_json
from skdp.privacy.report.card import renderer as renderer_of
from skdp.privacy.report.curves import Curves, ReportState
from skdp.privacy.report.decode import parsed, state_of
from skdp.privacy.report.text import SEEDED, UNIT_ASSUMPTIONS, noise_name

# Choices, not tuned.
_MOST_BYTES = 64 * 2**20  # of a card
_RTOL = 1e-9  # by which a cost may pass the claim, as in a session: what sums round
_SAMPLED_RTOL = 2e-3  # of the recheck of sampled releases, which is no bound
_MOST_SAMPLED = 10**6  # releases of a row, which take seconds; a card of more would take memory at will
_MOST_WORDS = 10**6  # of all units of vocabulary rows, which take a second
_PLAN_RTOL = 1e-6  # by which releases may pass the mu of their plan: what sums and roots round
# Characters that end a line for some programs and not for others, or that no text has.
_CONTROL = re.compile("[^\\t\\n\\r\\x20-\\x7e\\xa0-\\u2027\\u202a-\\U0010ffff]")
_BLOCKS = (
    re.compile(r'<script type="application/json" id="skdp-card">\n(.*?)\n</script>', re.DOTALL),
    re.compile(r"^```json\n(.*?)\n```$", re.DOTALL | re.MULTILINE),
)


class CardCheck(TypedDict):
    """What `verify_card` finds.

    Attributes
    ----------
    path : str
    verified : bool
        Whether there is no problem.
    problems : list of str
        Why the card is not verified.
    estimator, unit, adjacency : str
    epsilon, delta : float
        As stated.
    recomputed : float or None
        Epsilon of the listed releases at the stated delta, by the recheck; None where it could not be computed.
    planned : float or None
        Epsilon of the plan, which may be more than what was released; None where the ledger does not tell it.
    releases : int
        Number of releases on the card.
    leaks : list of str
        What the claim does not cover because of how the fit was made, as stated.
    unchecked : str
        What is on the card as its author states it.
    text_checked : bool
        Whether there were words and tables to compare with the ledger; a file of `PrivacyReport.to_json` has none.
    """

    path: str
    verified: bool
    problems: list[str]
    estimator: str
    unit: str
    adjacency: str
    epsilon: float
    delta: float
    recomputed: float | None
    planned: float | None
    releases: int
    leaks: list[str]
    unchecked: str
    text_checked: bool


def verify_card(path: str | os.PathLike[str]) -> CardCheck:
    """Recompute epsilon from the ledger of a card, and compare all words of the card with the ledger.

    A card cannot prove that noise was drawn as it says, or that somebody wrote no other ledger: unit, adjacency,
    sensitivities, assumptions, leaks and seed, plan, sampling rates, merged or missing releases, public numbers,
    parameters and free text are as their author states them. A fit that states a seed is not verified.

    Parameters
    ----------
    path : str or path-like
        A card of `PrivacyReport.card`, or a file ``.json`` with what `PrivacyReport.to_json` returned.

    Returns
    -------
    dict
        path, verified (whether there is no problem), problems (list of str), estimator, unit, adjacency, epsilon
        and delta (as stated), recomputed (epsilon of the listed releases, or None), planned (epsilon of the
        plan, or None), releases (their number), leaks (list of str, as stated), unchecked (what is as its author
        states it) and text_checked (whether the file has words to compare).

    Raises
    ------
    OSError
        If the file cannot be read.
    ValueError
        If it is no card, or one of a later version of skdp.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from skdp.privacy import BoundedStatistic, PrivacySession, verify_card
    >>> session = PrivacySession(epsilon=1.0, delta=1e-6)
    >>> noisy = session.gaussian(BoundedStatistic([4.0], l2=1.0), session.plan_gaussian(1))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path = session.report().card(Path(folder) / "card.html")
    ...     _ = path.write_text(path.read_text().replace("<td>1</td>", "<td>0.1</td>"))
    ...     verify_card(path)["verified"]
    False
    """
    where = Path(path)
    text = _read(where)
    document = _document(where, text)
    check = _Check(where, document)
    if where.suffix.lower() != ".json":
        check.text(text)
    return check.found()


def _read(path: Path) -> str:
    if path.stat().st_size > _MOST_BYTES:
        raise ValueError(f"{path} has more than {_MOST_BYTES >> 20} MiB, so it is no card of skdp.")
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ValueError(f"{path} is no card of skdp: it is no UTF-8 text.") from error
    control = _CONTROL.search(text)
    if control is not None:
        raise ValueError(f"{path} is no card of skdp: it has the control character {control[0]!a}.")
    return text


def _document(path: Path, text: str) -> Mapping[str, object]:
    is_json = path.suffix.lower() == ".json"
    blocks = [text] if is_json else [each for block in _BLOCKS for each in block.findall(text)]
    if len(blocks) != 1:
        raise ValueError(
            f"{path} is no card of skdp: it must have one ledger as JSON, got {len(blocks)}. Cards are written by "
            "privacy_.card(path). A report of to_json must be in a file .json."
        )
    try:
        found = parsed(blocks[0])
    except ValueError as error:
        raise ValueError(f"{path} is no card of skdp: its ledger is no JSON ({error})") from error
    if not isinstance(found, Mapping) or not ("mechanisms" in found if is_json else found.get("format") == FORMAT):
        wanted = "report" if is_json else "card"
        raise ValueError(f"{path} is no card of skdp: its JSON is no {wanted}.")
    if not is_json:
        form = found.get("version")
        if not isinstance(form, int) or isinstance(form, bool) or form < 1:
            raise ValueError(f"{path} is no card of skdp: its version is {form!r}.")
        if form > FORMAT_VERSION:
            raise ValueError(
                f"{path} is a card of version {form}, and skdp {__version__} reads cards up to version "
                f"{FORMAT_VERSION}: verify it with the version of skdp that the card names."
            )
    return found


class _Check:
    """One verification: problems are collected, so that all of them are told."""

    def __init__(self, path: Path, document: Mapping[str, object]) -> None:
        from skdp.privacy.report.report import PrivacyReport

        self.path, self.document = path, document
        self.problems: list[str] = []
        self.recomputed: float | None = None
        self.planned: float | None = None
        self.text_checked = False
        self.report: PrivacyReport | None = None
        is_card = path.suffix.lower() != ".json"
        try:
            given = document.get("report") if is_card else document
            self.report = PrivacyReport(**state_of(given))
        except (ValueError, TypeError, ArithmeticError, UnsupportedAccounting) as error:
            self.problems.append(f"the report on the card cannot be read: {error}")
            return
        self._claim()
        if is_card:
            self._counts()

    def _claim(self) -> None:
        """Whether what is listed and what was planned cost at most the claim."""
        report = self.report
        assert report is not None
        state = report.__getstate__()
        if report.guarantee != "proven":
            self.problems.append(f"the card states no guarantee ({report.guarantee}): the results are not private")
            return
        if not any(each.count for each in releases_of(state["mechanisms"])):
            self.problems.append("the ledger lists no release, so that no claim follows from it")
            return
        self._statements(state)
        words = math.fsum(float(row.get("max_words", 0)) for row in state["mechanisms"])
        if words > _MOST_WORDS:
            self.problems.append(
                f"vocabularies of more than {_MOST_WORDS:,} words of a unit are not computed here"
            )
            return
        sampled = [
            row for row in (*state["mechanisms"], *(state["sampled_plan"] or ())) if release_of(row).on_sample
        ]
        if any(int(row.get("count", 1)) > _MOST_SAMPLED for row in sampled):
            self.problems.append(
                f"epsilon of more than {_MOST_SAMPLED:,} releases on samples is not computed here"
            )
            return
        log_error, tail = state["numerical_error"]
        ideal = Curves(state).ideal_delta(state["delta"]) if state["delta"] > tail else 0.0
        if state["delta"] < tail:
            self.problems.append(f"delta {state['delta']:g} is below the {tail:g} of the noise's finite precision")
        try:
            if recheck_tail(state["mechanisms"]) > tail:
                self.problems.append("a word of one unit alone is released more often than the card states")
            rows = recheck_epsilon(state["mechanisms"], ideal, state["adjacency"], complete=True)
            self.recomputed = rows + log_error
            self._compare("the listed releases cost", self.recomputed, _RTOL)
            self._planned(ideal, log_error)
        except (ValueError, ArithmeticError, MemoryError, UnsupportedAccounting) as error:
            self.problems.append(f"epsilon cannot be computed from the ledger: {error}")
            return
        if state["rechecked"] is not None:
            found, most = state["rechecked"], max(state["rechecked"], self.recomputed)
            # Fits inside a fit may have been added by their claims, which is more than their rows cost.
            fits = self.recomputed - _SAMPLED_RTOL * most <= found <= state["epsilon"] * (1.0 + _RTOL)
            said, finds = f"{found:.9g}", f"{self.recomputed:.9g}"
            if not fits and said != finds:  # where they agree, the claim is what is wrong, as told above
                self.problems.append(f"the card says that a recheck found epsilon {said}, and it finds {finds}")

    def _statements(self, state: ReportState) -> None:
        """Whether the words that follow from rows, unit and seed are there."""
        releases, accountant = releases_of(state["mechanisms"]), state["accountant"]
        seeded = SEEDED in state["leaks"]
        if seeded:
            self.problems.append(f"the fit is {SEEDED}")
        if state["noise"] != noise_name(state["mechanisms"], seeded):
            self.problems.append(f"the card states the noise {state['noise']!r}, which its releases do not have")
        if UNIT_ASSUMPTIONS[state["unit"]] not in state["assumptions"]:
            self.problems.append(f"the assumption of unit={state['unit']!r} is missing")
        mixed = not all(each.is_gaussian_dp for each in releases)
        pure = all(each.pure_epsilon() is not None for each in releases)
        if (
            accountant not in ACCOUNTANTS.values()
            or (accountant == ACCOUNTANTS["gaussian"] and mixed)
            or (accountant == ACCOUNTANTS["pure"] and not pure)
        ):
            self.problems.append(f"the card states the accountant {accountant!r}, which its releases do not have")
        self._plan_of(state)

    def _plan_of(self, state: ReportState) -> None:
        """Whether there is a plan, and no more was released than planned."""
        plan, mu = state["sampled_plan"], state["plan_mu"]
        sampled = [row for row in state["mechanisms"] if release_of(row).on_sample]
        if mu is None or (sampled and not plan):
            self.problems.append("the plan of the releases is missing")
        elif mu == math.inf and state["accountant"] not in POINTWISE:
            self.problems.append(f"no mu is stated for the plan, as only {' and '.join(POINTWISE)} have none")
        others = [row for row in state["mechanisms"] if row not in sampled]
        if mu is not None and rows_mu(others) > mu * (1.0 + _PLAN_RTOL):
            self.problems.append(f"the listed releases have mu {rows_mu(others):.9g}, and the plan has {mu:.9g}")

    def _planned(self, ideal: float, log_error: float) -> None:
        """The plan may cost more than the releases, and the claim is about the plan."""
        report = self.report
        assert report is not None
        mu, plan = report.plan_mu, report.sampled_plan
        if mu is None or mu == math.inf or ideal <= 0.0:
            return
        rest = [{"name": "gaussian", "noise_multiplier": (1.0 - 2.0**-51) / mu}] if mu > 0.0 else []
        cost = recheck_epsilon([*(plan or []), *rest], ideal, report.adjacency) + log_error
        self.planned = cost
        self._compare("the planned releases cost", cost, _SAMPLED_RTOL if plan else _RTOL)

    def _compare(self, what: str, cost: float, rtol: float) -> None:
        assert self.report is not None
        if not cost <= self.report.epsilon * (1.0 + rtol):
            self.problems.append(f"{what} epsilon {cost:.9g}, and the card states {self.report.epsilon:.9g}")

    def _counts(self) -> None:
        """Whether the numbers beside the report are those that follow from it."""
        report, attack = self.report, self.document.get("attack")
        assert report is not None
        count = sum(int(row.get("count", 1)) for row in report.mechanisms)
        unknown = sorted(self.document.keys() - set(CARD_FIELDS))
        if unknown:
            self.problems.append(f"the card has unknown fields: {unknown}")
        model = self.document.get("model")
        named = isinstance(model, Mapping) and model.keys() == {"class", "parameters"}
        if not (model is None or named) or not isinstance(self.document.get("notes"), str):
            self.problems.append("model must be null or have a class and parameters, and notes must be text")
        stated = self.document.get("releases")
        if stated != count or isinstance(stated, bool):
            self.problems.append(f"the card states {stated!r} releases, and its ledger lists {count}")
        rates = attack if isinstance(attack, Mapping) else {}
        wanted = attack_of(report)
        fine = rates.keys() == wanted.keys() and all(
            isinstance(rates[name], float) and math.isclose(rates[name], rate, rel_tol=1e-9)
            for name, rate in wanted.items()
        )
        if not fine:
            self.problems.append(
                f"the card states the rates {dict(rates)} of an attacker, and {wanted} follow from its report"
            )

    def text(self, text: str) -> None:
        """Whether the words and tables of the card are those of its ledger."""
        if self.report is None:
            return
        self.text_checked = True
        versions = self.document.get("versions")
        wrote = versions.get("skdp") if isinstance(versions, Mapping) else None
        try:
            # Through the report, so that what its reading changed would show.
            document = cast("Mapping[str, Json]", {**self.document, "report": report_json(self.report)})
            made = renderer_of(self.path)(document, self.report)
        except (ValueError, TypeError, KeyError, AssertionError, ArithmeticError) as error:
            self.problems.append(
                f"the words of the card cannot be made from its ledger: {type(error).__name__} {error}"
            )
            return
        # Not splitlines: what ends a line there may end none for who shows the card.
        for number, (shown, wanted) in enumerate(zip_longest(text.split("\n"), made.split("\n")), 1):
            if shown != wanted:
                self.problems.append(_difference(number, shown or "", wanted or "", wrote))
                return

    def found(self) -> CardCheck:
        report = self.report
        return {
            "path": str(self.path),
            "verified": not self.problems,
            "problems": self.problems,
            "estimator": "" if report is None else report.estimator or "",
            "unit": "" if report is None else report.unit,
            "adjacency": "" if report is None else report.adjacency,
            "epsilon": math.nan if report is None else report.epsilon,
            "delta": math.nan if report is None else report.delta,
            "recomputed": self.recomputed,
            "planned": self.planned,
            "releases": 0 if report is None else sum(int(row.get("count", 1)) for row in report.mechanisms),
            "leaks": [] if report is None else report.leaks,
            "unchecked": UNCHECKED,
            "text_checked": self.text_checked,
        }


def _difference(number: int, shown: str, wanted: str, wrote: object) -> str:
    at = next((i for i, (one, other) in enumerate(zip_longest(shown, wanted)) if one != other), 0)
    begin = max(0, at - 30)
    text = (
        f"line {number} of the card does not say what its ledger says: {shown[begin : at + 30]!r} instead of "
        f"{wanted[begin : at + 30]!r}"
    )
    if wrote != __version__:
        text += f". The card names skdp {wrote}, and this is skdp {__version__}: verify it with that version"
    return text
