"""One party from its plan to its model.

The order is the guarantee. Plan and keys come first. Connections and hellos follow, so that all plans are the same
before any data are read. Then the data are read and checked. Then the fit reserves the budget in this party's own
ledger, computes its first statistic, and waits until all parties are ready and the servers have laid noise. Then
it commits the charge to disk, and only then lets the first share of its input go. Before that commit a failure of
whatever kind spends nothing. After it the whole plan is spent, output or not. Whoever stops learns which of the
two it was, from this process and the file together (`PlanLedger.what_was_spent`).
"""

import json
import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from skdp._version import __version__
from skdp.base.fit import PrivateFit
from skdp.multiparty.party.document import PlanError
from skdp.multiparty.party.engine import Bridge, NetworkEngine, check_installed
from skdp.multiparty.party.hints import hints
from skdp.multiparty.party.keys import CertificateError, check_dates, check_key, fingerprint_of
from skdp.multiparty.party.model import model_document
from skdp.multiparty.party.plan import PROTOCOL, Plan, read_plan
from skdp.multiparty.party.plan_ledger import LedgerFull, PlanLedger, open_ledger
from skdp.multiparty.party.planned import noise_text, planned_opening
from skdp.multiparty.party.table import DataError, check_file_type, read_own_records
from skdp.multiparty.party.terms import PlanTerms, software
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.hello import Hello
from skdp.multiparty.transport.network import DONE_TAG, Network
from skdp.multiparty.transport.tls import Identity, connect_all, listen_on


@dataclass(frozen=True)
class Options:
    """One party's additions to the plan.

    Attributes
    ----------
    config : path-like
        The plan.
    index : int
        Number of this party in the plan, from 0.
    data : path-like
        Its table.
    key : path-like or None
        Its private key; None is NAME.key beside the plan.
    certificate : path-like or None
        Its certificate; None is the one in the plan.
    ledger : path-like or None
        Its ledger; None is beside the key, with the suffix ``.ledger``. The key stays with the party, whatever
        plan comes, and so does the ledger.
    ceiling : (epsilon, delta) or None
        Of a new ledger, which needs one. None opens a ledger that is there.
    out : path-like
        Folder of the model and the report.
    listen : (host, port) or None
        Where a server listens, if not at its address in the plan.
    timeout : float or None
        Seconds until all parties must be connected; None is the plan's.
    """

    config: str | os.PathLike[str]
    index: int
    data: str | os.PathLike[str]
    key: str | os.PathLike[str] | None = None
    certificate: str | os.PathLike[str] | None = None
    ledger: str | os.PathLike[str] | None = None
    ceiling: tuple[float, float] | None = None
    out: str | os.PathLike[str] = "."
    listen: tuple[str, int] | None = None
    timeout: float | None = None


def run(options: Options, say: Callable[[str], None] = print) -> Path:
    """Run one party, and return the path of the model.

    Parameters
    ----------
    options : Options
    say : callable, default=print
        Called with lines of progress: public words only.

    Returns
    -------
    Path
        Of the model, a JSON document; the report lies beside it.

    Raises
    ------
    PlanError, CertificateError, DataError, LedgerError, ImportError
        If something of this party is wrong. Nothing is spent.
    PrivacyBudgetExceeded
        If this party's ledger does not hold the plan, or holds it already.
    PartyError
        If another party failed; the message names it. This party writes no model. Others may have finished.
    OSError
        If a file cannot be read or written. The plan may be spent: the model is written last.
    KeyboardInterrupt
        If somebody ended this party. The others were told.

    Notes
    -----
    Every error from the first connection on, and every interrupt, has a note (``__notes__``), the last one, that
    says whether the plan was charged.
    """
    try:
        plan, ledger = _prepared(options, say)
    except KeyboardInterrupt as error:
        error.add_note("this process charged nothing: it had not begun to connect")
        raise
    try:
        return _take_part(options, plan, ledger, say)
    except BaseException as error:
        _add_hints(error, options, plan)
        # Whoever catches the error learns whether it cost anything.
        error.add_note(f"{plan.parties[options.index].name}: {ledger.what_was_spent()}")
        raise


def _prepared(options: Options, say: Callable[[str], None]) -> tuple[Plan, PlanLedger]:
    """Read the plan and open the ledger; everything that can be refused without the others is refused here."""
    plan = read_plan(options.config)
    say(f"plan {plan.id}, hash {plan.hash[:12]}: {len(plan.parties)} parties, {plan.n_servers} servers")
    if not 0 <= options.index < len(plan.parties):
        raise PlanError(f"the plan has parties 0..{len(plan.parties) - 1}, got index {options.index}")
    for hint in hints(plan):
        say(f"hint: {hint}")
    if not Path(options.data).is_file():
        raise FileNotFoundError(f"there is no table {options.data}; give this party's own with --data")
    check_file_type(options.data)
    check_installed(plan, options.index)
    planned_opening(plan)
    _check_identity(options, plan)
    return plan, _open_ledger(options, plan)


def _add_hints(error: BaseException, options: Options, plan: Plan) -> None:
    """Add the repair for plans, versions or noise that differ."""
    if not isinstance(error, PartyError):
        return
    if error.reason in (Reason.VERSION, Reason.TERMS):
        error.add_note(
            f"here runs skdp {software()}, and the plan gives {PlanTerms(planned_opening(plan))}\n"
            "to compare: each party runs `skdp party check PLAN`. All must have the same skdp; if they have, "
            "install the same versions of Python, NumPy and SciPy"
        )
    if error.reason is not Reason.PLAN:
        return
    error.add_note(
        f"the plan here, {options.config}, has the hash {plan.hash}\n"
        "to compare: each party runs `skdp party check PLAN` on its own file, and reads its hash to the others by "
        "telephone. All must have the same file: send it again to whoever has another hash"
    )


def _take_part(options: Options, plan: Plan, ledger: PlanLedger, say: Callable[[str], None]) -> Path:
    """Connect, fit, and write the model; returns its path."""
    out = _folder(options.out)
    me = plan.parties[options.index].name
    with _identity(options, plan) as identity, Bridge() as bridge:
        say(f"{me}: waiting for the other parties, {options.timeout or plan.connect:g} seconds at most")
        network = _connect(bridge, plan, identity, options)
        say(f"{me}: connected to all, and all plans are the same")
        try:
            X, y, groups = read_own_records(options.data, plan, options.index)
            engine = NetworkEngine(bridge, network, plan)
            model = _fit(plan, options.index, engine, ledger, X, y, groups)
            bridge.call(network.barrier(DONE_TAG))
        except BaseException as error:
            cause = _stopped(bridge, network, plan, error)
            if cause is error:
                raise
            raise cause from None
        bridge.call(network.end())
    path = _write(out, plan, options.index, model, _compared(plan, engine))
    say(f"model: {path}\nreport: {path.with_name(path.name.replace('.model.', '.report.'))}")
    spent = f"epsilon {model.privacy_.epsilon:g}, delta {model.privacy_.delta:g}"
    say(f"{me}: {ledger.what_was_spent()} ({spent})")
    return path


def _fit(
    plan: Plan, index: int, engine: NetworkEngine, ledger: PlanLedger, X: object, y: object, groups: object
) -> PrivateFit:
    """The estimator of the plan, fitted on this party's records; the others' are in other processes."""
    model = plan.make_estimator(engine=engine, accountant=ledger)
    return model.fit(X, y, owners=plan.own_records(index), groups=groups)


def _stopped(bridge: Bridge, network: Network, plan: Plan, error: BaseException) -> BaseException:
    """Tell the others, and return the error: this party's own error, or the party that failed first."""
    for kind, reason in ((DataError, Reason.DATA), (LedgerFull, Reason.LEDGER)):
        if isinstance(error, kind):
            me = plan.parties[network.own].name
            bridge.call(network.stop(PartyError(me, reason, index=network.own)))
            return error
    return bridge.call(network.stop(error))


# ---------------------------------------------------------------- before the connections


def _open_ledger(options: Options, plan: Plan) -> PlanLedger:
    path = options.ledger or _key(options, plan).with_suffix(".ledger")
    return open_ledger(path, plan, options.ceiling)


def _key(options: Options, plan: Plan) -> Path:
    name = plan.parties[options.index].name
    return Path(options.key or Path(options.config).resolve().parent / f"{name}.key")


def _check_identity(options: Options, plan: Plan) -> None:
    """Check this party's key and certificate; every certificate of the plan must be valid now."""
    me = plan.parties[options.index]
    for party in plan.parties:
        check_dates(party.certificate, party.name)
    if options.certificate is not None and _shown(options.certificate) != me.fingerprint:
        raise CertificateError(
            f"the certificate {options.certificate} is not the one that the plan has for {me.name}"
        )
    check_key(_key(options, plan), me.certificate, me.name)


@contextmanager
def _identity(options: Options, plan: Plan) -> Iterator[Identity]:
    """This party's key and certificate, as the connections need them."""
    me = plan.parties[options.index]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "certificate.pem")  # the ssl module reads files only
        path.write_text(me.certificate)
        yield Identity(
            index=options.index,
            certificate_path=path,
            key_path=_key(options, plan),
            hello=Hello(PROTOCOL, software(), plan.hash),
            deadline=options.timeout or plan.connect,
            limit=plan.max_payload,
        )


def _shown(certificate: str | os.PathLike[str]) -> str:
    """The fingerprint of this party's certificate file."""
    try:
        return fingerprint_of(Path(certificate).read_text())
    except ValueError as error:  # no certificate, or no text
        raise CertificateError(
            f"{os.fspath(certificate)} is no certificate in PEM form: give the one that `skdp party keys` wrote"
        ) from error


def _connect(bridge: Bridge, plan: Plan, identity: Identity, options: Options) -> Network:
    listener = None
    if options.index < plan.n_servers:
        me = plan.parties[options.index]
        host, port = options.listen or (str(me.host), int(me.port or 0))
        listener = listen_on(host, port)
    return bridge.call(connect_all(plan.parties, plan.n_servers, identity, listener))


# ---------------------------------------------------------------- after the fit


def _folder(out: str | os.PathLike[str]) -> Path:
    """The folder of the output, which must be writable before the work starts."""
    folder = Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryFile(dir=folder):
        return folder


def _write(folder: Path, plan: Plan, index: int, model: PrivateFit, compared: str) -> Path:
    """Write the model and its report; a reader never sees half a file."""
    name = f"{plan.id}.{plan.parties[index].name}"
    _replace(folder / f"{name}.report.json", _report(plan, model, compared))
    document = {
        "plan": plan.id,
        "plan_hash": plan.hash,
        "skdp": __version__,
        "estimator": plan.estimator,
        "features": [
            {"name": f.name, "bounds": None if f.low is None else [f.low, f.high]} for f in plan.features
        ],
        "target": plan.target,
        "parameters": dict(plan.parameters),
        **model_document(model),
    }
    path = folder / f"{name}.model.json"
    _replace(path, document)
    return path


def _report(plan: Plan, model: PrivateFit, compared: str) -> dict[str, object]:
    """The report of the fit, and the facts that this party's ledger cannot know."""
    unit = plan.parameters["unit"]
    report: dict[str, Any] = model.privacy_.to_dict()
    charged = (
        f"the ledger of each owner is charged for one {unit}. A person with records at h owners is one unit in "
        "each of h ledgers, and no ledger adds them up"
    )
    return {**report, "assumptions": [*report["assumptions"], compared, charged]}


def _compared(plan: Plan, engine: NetworkEngine) -> str:
    """The noise on which the parties agreed before any of them was charged."""
    terms = engine.terms
    assert terms is not None  # the fit has opened something
    return (
        f"all {len(plan.parties)} parties announced the same noise, grid and software before any of them was "
        f"charged: {noise_text(plan, terms.opening)}; skdp {software()}"
    )


def _replace(path: Path, document: object) -> None:
    half = path.with_name(f"{path.name}.part")
    half.write_text(json.dumps(document, indent=2), encoding="utf-8")
    half.replace(path)
