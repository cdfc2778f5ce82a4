"""The plan: everything public that the parties of a run agree on before any of them reads a record.

`skdp.multiparty.party` describes its use, step by step. It is not the `skdp.base.plan.FitPlan` that each party's
fit then makes.

A plan is a TOML file. It is public and complete: the estimator and its parameters, the columns with their
public bounds, the classes, the number of units of every owner, the budget, the servers, addresses,
certificates, deadlines and the version of the software. Its hash is SHA-256 of its canonical JSON. All parties
compare hashes first.
"""

import hashlib
import json
import math
import os
import re
import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from skdp._version import __version__
from skdp.base.declare import declares, parameters_of
from skdp.multiparty.engine.field import BYTES
from skdp.multiparty.engine.laplace_bits import most_bits
from skdp.multiparty.engine.mpyc_post import LABEL_BYTES
from skdp.multiparty.party.document import PlanError, TomlTable
from skdp.multiparty.party.keys import fingerprint_of
from skdp.multiparty.release import NOISES
from skdp.registry import ESTIMATORS

if TYPE_CHECKING:
    from skdp.multiparty.multiparty_fit import MultipartyFit
    from skdp.multiparty.owners import OwnRecords

PROTOCOL = 2  # version of the frames; raised when an old party could misread a new one
# Parameters that the run sets itself: they are no choice of a plan.
_NOT_IN_A_PLAN = {"engine", "accountant", "random_state", "classes", "callback", "verbose"}
_LARGEST_PAYLOAD = 2**31  # bytes; a frame's length has four
# Seconds that one value of Laplace noise takes: measured on two busy cores, and less than any machine needs.
USUAL_SECONDS, LEAST_SECONDS = 0.06, 0.005
COMPILE_SECONDS = 60.0  # most seconds of a first round on a busy machine, whatever its noise
_LONGEST = 7 * 24 * 3600.0  # longest deadline, in seconds


@dataclass(frozen=True)
class Feature:
    """A column of X; with bounds it is clipped to them and mapped to [-1, 1]."""

    name: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Party:
    """One data owner: its public number of units, and how the others know it."""

    name: str
    n_units: int
    certificate: str
    fingerprint: str
    host: str | None
    port: int | None


@dataclass(frozen=True)
class Plan:
    """A checked plan.

    Attributes
    ----------
    id : str
        Runs once in every ledger.
    estimator : str
        Public name of a class of `skdp.multiparty`.
    parameters : dict
        Of the estimator, without the parameters that a run sets itself.
    features : tuple of Feature
    target : str
        Name of the column of y.
    group : str or None
        Name of the column that says who a row belongs to, with ``unit="group"``.
    classes : tuple of int or str, or None
    parties : tuple of Party
        The first `n_servers` are also the servers.
    n_servers, threshold : int
        Any `threshold` servers together learn nothing.
    connect, data, round : float
        Deadlines in seconds: until all are connected, until all have read their data, and of one opening.
    max_payload : int
        Largest payload of a frame, in bytes.
    hash : str
        SHA-256 of the canonical JSON, in hexadecimal digits.
    """

    id: str
    estimator: str
    parameters: Mapping[str, Any]
    features: tuple[Feature, ...]
    target: str
    group: str | None
    classes: tuple[int | str, ...] | None
    parties: tuple[Party, ...]
    n_servers: int
    threshold: int
    connect: float
    data: float
    round: float
    max_payload: int
    hash: str

    @property
    def noise(self) -> str:
        """ "gaussian" or "laplace"."""
        return str(self.parameters.get("noise", "gaussian"))

    @property
    def n_values(self) -> int:
        """Number of values that a round opens."""
        of_classes = len(self.classes) if self.classes and len(self.classes) > 2 else 1
        intercept = bool(self.parameters.get("fit_intercept", True))
        return (len(self.features) + intercept) * of_classes

    def make_estimator(self, **more: object) -> "MultipartyFit":
        """The unfitted estimator of this plan; ``more`` are the parameters that a run sets itself."""
        return make_estimator(self.estimator, self.parameters, self.classes, **more)

    def own_records(self, index: int | None) -> "OwnRecords":
        """The ``owners`` of a fit by one party, from 0, or by nobody (None)."""
        from skdp.multiparty.owners import OwnRecords

        return OwnRecords(tuple(party.n_units for party in self.parties), index)


def make_estimator(
    name: str, parameters: Mapping[str, object], classes: Sequence[object] | None, **more: object
) -> "MultipartyFit":
    """An unfitted estimator, from its name and parameters in a plan.

    Raises
    ------
    PlanError
        If no estimator of several owners has this name.
    """
    given = {key: tuple(value) if isinstance(value, list) else value for key, value in parameters.items()}
    if classes is not None:
        given["classes"] = list(classes)
    return _estimator_class(name)(**given, **more)


def read_plan(path: str | os.PathLike[str]) -> Plan:
    """Read a plan from a TOML file.

    Raises
    ------
    OSError
        If the file cannot be read.
    PlanError
        If it is not TOML, or not a plan that this version of skdp can run.
    """
    try:
        document = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise PlanError(f"the plan {os.fspath(path)} is not TOML: {error}") from error
    return parse_plan(document)


def parse_plan(document: Mapping[str, object]) -> Plan:
    """Check a plan that was read from TOML.

    Unknown keys, missing keys and wrong types are errors: a misspelt key must not fall back to a default that the
    other parties never saw.

    Raises
    ------
    PlanError
        Names the key and its valid values.
    """
    top = TomlTable("the plan", document)
    plan_id, version = top.name("id"), top.text("skdp")
    if version != __version__:
        raise PlanError(f"the plan is for skdp {version!r}, and this is skdp {__version__}")
    protocol = top.integer("protocol", 0, 2**31)
    if protocol != PROTOCOL:
        raise PlanError(f"the plan speaks protocol {protocol}, and this skdp speaks {PROTOCOL}")
    parties = tuple(_party(entry) for entry in top.tables("parties"))
    n_servers = top.integer("servers", 3, 5)
    if n_servers == 4:
        raise PlanError("'servers' must be 3 or 5: an even number costs more and protects no better")
    if n_servers > len(parties):
        raise PlanError("'servers' is larger than the number of parties, of whom the first serve")
    most = (n_servers - 1) // 2
    data, deadlines = top.table("data"), top.table("deadlines")
    features = tuple(_feature(entry) for entry in data.tables("features"))
    plan = Plan(
        id=plan_id,
        estimator=top.text("estimator"),
        parameters=top.mapping("parameters"),
        features=features,
        target=data.text("target"),
        group=data.text("group", None),
        classes=_classes(data.get("classes", list, None)),
        parties=parties,
        n_servers=n_servers,
        threshold=top.integer("threshold", most, most),
        connect=deadlines.number("connect", 0.0, _LONGEST),
        data=deadlines.number("data", 0.0, _LONGEST),
        round=deadlines.number("round", 0.0, _LONGEST),
        max_payload=top.integer("max_payload", 1024, _LARGEST_PAYLOAD),
        hash=canonical_hash(document),
    )
    for table in (top, data, deadlines):
        table.finish()
    _check_parties(plan)
    _check_columns(plan)
    _check_estimator(plan)
    return plan


def canonical_hash(document: Mapping[str, object]) -> str:
    """SHA-256 of the document as JSON with sorted keys, no spaces and ASCII only.

    Python writes the shortest digits that give back a float, so equal documents have equal text on every machine.
    """
    try:
        text = json.dumps(document, sort_keys=True, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PlanError("a plan holds texts, booleans and finite numbers only") from error
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _party(entry: TomlTable) -> Party:
    certificate = entry.text("certificate")
    try:
        fingerprint = fingerprint_of(certificate)
    except ValueError as error:
        raise PlanError(f"'certificate' of {entry.where}: {error}") from error
    address = entry.text("address", None)
    host, port = (None, None) if address is None else _address(entry.where, address)
    party = Party(
        name=entry.name("name"),
        n_units=entry.integer("n_units", 1, 2**53),
        certificate=certificate,
        fingerprint=fingerprint,
        host=host,
        port=port,
    )
    entry.finish()
    return party


def _address(where: str, address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not host or not re.fullmatch(r"[0-9]{1,5}", port) or not 1 <= int(port) <= 65535:
        raise PlanError(f"'address' of {where} must be \"host:port\", got {address!r}")
    return host, int(port)


def _feature(entry: TomlTable) -> Feature:
    name, bounds = entry.text("name"), entry.get("bounds", list, None)
    entry.finish()
    if bounds is None:
        return Feature(name)
    if len(bounds) != 2 or any(type(end) not in (int, float) for end in bounds):
        raise PlanError(f"'bounds' of {entry.where} must be two numbers")
    low, high = map(float, bounds)
    if not (-1e150 <= low < high <= 1e150):
        raise PlanError(f"'bounds' of {entry.where} must be finite and increasing")
    return Feature(name, low, high)


def _classes(classes: list[int | str] | None) -> tuple[int | str, ...] | None:
    if classes is None:
        return None
    if {type(label) for label in classes} not in ({int}, {str}):
        raise PlanError("'classes' must be all integers or all strings")
    if len({*classes}) < max(2, len(classes)):
        raise PlanError("'classes' must be at least two different labels")
    return tuple(classes)


def _check_parties(plan: Plan) -> None:
    for what, values in (
        ("name", [party.name for party in plan.parties]),
        ("certificate", [party.fingerprint for party in plan.parties]),
    ):
        if len({*values}) < len(values):
            raise PlanError(f"two parties have the same {what}")
    servers: dict[tuple[str, int | None], str] = {}
    for party in plan.parties[: plan.n_servers]:
        if party.host is None:
            raise PlanError(f"{party.name} is a server and has no 'address'")
        other = servers.setdefault((party.host.lower(), party.port), party.name)
        if other != party.name:
            raise PlanError(
                f"{other} and {party.name} have the same 'address': each server listens at one of its own"
            )


def _check_columns(plan: Plan) -> None:
    names = [feature.name for feature in plan.features]
    names += [name for name in (plan.target, plan.group) if name is not None]
    if len({*names}) < len(names):
        raise PlanError("a column stands twice among the features, the target and the group")


def _check_estimator(plan: Plan) -> None:
    from sklearn.base import is_classifier

    estimator = _estimator_class(plan.estimator)
    known = parameters_of(estimator).keys() - _NOT_IN_A_PLAN
    unknown = sorted(set(plan.parameters) - known)
    if unknown:
        raise PlanError(f"[parameters] has unknown keys: {', '.join(map(repr, unknown))}")
    for needed in ("epsilon", "delta", "adjacency", "unit"):
        if needed not in plan.parameters:
            raise PlanError(f"[parameters] has no {needed!r}")
    epsilon = plan.parameters["epsilon"]
    if type(epsilon) not in (int, float) or not 0 < epsilon < math.inf:
        raise PlanError("'epsilon' of [parameters] must be a finite number > 0")
    delta = plan.parameters["delta"]
    if type(delta) not in (int, float) or not 0 < delta < 1:
        raise PlanError("'delta' of [parameters] must be a number in (0, 1): no noise here is pure")
    if is_classifier(estimator()) != (plan.classes is not None):
        word = "needs" if plan.classes is None else "takes no"
        raise PlanError(f"{plan.estimator} {word} 'classes' in [data]")
    if plan.noise not in NOISES:
        raise PlanError(f"'noise' of [parameters] must be one of {', '.join(NOISES)}")
    _check_values(plan)
    _check_payload(plan)
    _check_round(plan)
    if plan.parameters["unit"] == "owner" and any(party.n_units != 1 for party in plan.parties):
        raise PlanError(
            "'n_units' must be 1 for every party with unit = \"owner\": an owner is one unit, and how many "
            "records it has is private"
        )
    if (plan.parameters["unit"] == "group") != (plan.group is not None):
        raise PlanError("'group' of [data] belongs to unit = \"group\", and only to it")


def _check_values(plan: Plan) -> None:
    """The estimator's own checks of its parameters, which a fit would make after all are connected."""
    groups = () if plan.parameters["unit"] == "group" else None
    try:
        model = plan.make_estimator(accountant=False)
        model._check_before_data(groups)
        with model._open_session():
            pass
    except (TypeError, ValueError) as error:
        raise PlanError(f"[parameters] cannot be used: {error}") from error


def _check_round(plan: Plan) -> None:
    """Refuse a deadline in which no machine makes the Laplace noise of a round."""
    if plan.noise == "laplace" and plan.round < LEAST_SECONDS * plan.n_values:
        raise PlanError(
            f"'round' of [deadlines] is too short: it is {plan.round:g} seconds, and the Laplace noise of a round "
            f"has {plan.n_values} values. Give at least {recommended_round(plan):g} seconds"
        )


def recommended_round(plan: Plan) -> float:
    """Seconds of the deadline ``round`` that are enough for Laplace noise on busy machines.

    Twice the usual time, for finer grids; and the first round also compiles.
    """
    return max(COMPILE_SECONDS, math.ceil(2 * USUAL_SECONDS * plan.n_values))


def _check_payload(plan: Plan) -> None:
    """A frame must hold the values of a round, and one value of Laplace noise in bits."""
    needed = BYTES * (len(plan.features) + 1) * len(plan.classes or (0,))
    if plan.noise == "laplace":
        needed = max(needed, LABEL_BYTES + BYTES * most_bits())
    if needed > plan.max_payload:
        raise PlanError(
            f"'max_payload' must be at least {needed} for this noise and number of features and classes"
        )


def _estimator_class(name: str) -> "Callable[..., MultipartyFit]":
    known = {n: module for n, module in ESTIMATORS.items() if n.startswith("MPC")}
    why = ""
    if name in known:
        found = getattr(import_module(known[name]), name)
        if declares(found, "engine"):  # its sums can be opened by several parties
            return found
        why = f"{name} adds its noise in one process, so it cannot run between parties; "
    offered = sorted(n for n, m in known.items() if declares(getattr(import_module(m), n), "engine"))
    raise PlanError(f"{why}'estimator' must be one of {', '.join(offered)}, got {name!r}")
