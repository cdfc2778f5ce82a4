"""The calls around a fit: read from the stack, or from a record that a wrapper's clone carries to its worker.

Callers pass nothing about themselves to `fit`, so their frames are read: classes, parameters and whether the rows
are a sparse matrix, never data. Because a worker's stack lacks the caller, an estimator that is cloned, or asked
for its `fit` or its tags, inside a caller's method gets a record: the lines for the report, a random name of the
call and a name of the process. Warnings are issued there, in the parent, before any worker starts. A worker writes
the lines into its report.
"""

import inspect
import os
import secrets
import sys
import threading
import weakref
from collections.abc import Iterator
from types import CodeType, FrameType
from typing import TypedDict

from skdp._compat import warn_user
from skdp.around.callers import (
    Finding,
    about_call,
    about_function,
    about_subclass,
    is_unknown,
    named,
    steps_before,
)
from skdp.around.kinds import LOOK, is_a, is_private, nested, own
from skdp.around.steps import paid_steps
from skdp.exceptions import PrivacyLeakWarning

# An estimator has its record under this name in its `__dict__` until its fit ends.
_RECORD = "_around_record"
# The outermost caller has its call under this name among its local variables for as long as it runs.
_CALL = "<skdp: this call>"
_VALIDATION = "sklearn.model_selection._validation"
_FUNCTIONS = {
    "cross_validate",
    "cross_val_score",
    "cross_val_predict",
    "learning_curve",
    "permutation_test_score",
    "validation_curve",
}
# Methods of a fitted model; it asks itself for its tags there.
_USES = {
    "decision_function",
    "inverse_transform",
    "predict",
    "predict_log_proba",
    "predict_proba",
    "score",
    "transform",
}
# The modules in which a worker's stack begins.
_WORKERS: tuple[str, ...] = (
    "joblib.externals.loky.process_executor",
    "multiprocessing.pool",
    "multiprocessing.process",
    "concurrent.futures.process",
    "concurrent.futures.thread",
    "distributed.",
)
# Those of threads that hand estimators on to workers, too.
_POOLS = ("joblib.", "multiprocessing.", "concurrent.futures.", "distributed.")
# Libraries whose functions, and not only classes, fit an estimator that they are given.
_LIBRARIES = {"mlxtend", "cleanlab", "fairlearn", "mapie", "doubleml", "feature_engine"}
_PROCESS = secrets.token_hex(8)  # the system uses process numbers again
_BUSY = threading.local()


class _Call:
    """One running call of a caller. Its frame holds it, and nothing else does: they end together."""

    __slots__ = ("__weakref__", "frame_id", "name", "warned")

    def __init__(self, frame: FrameType) -> None:
        self.name, self.frame_id = secrets.token_hex(8), id(frame)
        self.warned: set[str] = set()


_RUNNING: weakref.WeakValueDictionary[str, _Call] = weakref.WeakValueDictionary()


class _NoFit(Exception):
    """A model that predicts, or is in a FrozenEstimator, is asked for its tags: it is not fitted."""


class Record(TypedDict):
    """The record that an estimator carries to a worker: built-in types only, so that any pickler takes it."""

    findings: list[tuple[str, str]]
    call: str
    process: str


def _process_name() -> str:
    return f"{os.getpid()}-{_PROCESS}"


def _frames(top: FrameType | None = None) -> Iterator[FrameType]:
    """The frames of a stack from its top, or of this thread's."""
    frame: FrameType | None = top or sys._getframe(1)
    while frame is not None:
        yield frame
        frame = frame.f_back


def _other_tops() -> list[FrameType]:
    """The tops of the stacks of all other threads.

    The top of this thread is the frame of the function that asks. A local variable of this function that
    held the frame would make a cycle, and no frame around it, nor its variables, would be freed before a
    garbage collection.
    """
    me = threading.get_ident()
    return [top for who, top in sys._current_frames().items() if who != me]


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _in_worker() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:  # no call: this is asked several times in every fit, of a whole stack
        if str(frame.f_globals.get("__name__", "")).startswith(_WORKERS):
            return True
        frame = frame.f_back
    return False


def _is_sparse(rows: object) -> bool:
    return any(kind.__module__.startswith("scipy.sparse") for kind in type(rows).__mro__)


def _fit_name(frame: FrameType) -> str | None:
    """The name of the fit that a frame runs; None for other frames."""
    name = frame.f_code.co_name
    if name == "wrapper" and "fit_method" in frame.f_code.co_freevars:
        if _module(frame) == "sklearn.base":
            # scikit-learn looks at the parameters of a caller in this decorator, before its own frame begins.
            return str(frame.f_locals["fit_method"].__name__)
        return None
    return name if name in ("fit", "partial_fit") or name.startswith("fit_") else None


def _first_argument(frame: FrameType) -> object:
    """The object whose method a frame runs, if it is a method.

    Few frames are read, because reading a local variable makes a frame keep references to all of them until it
    ends, and none that has a frame as a local variable, which would be a cycle.
    """
    code = frame.f_code
    if code.co_argcount:
        return frame.f_locals.get(code.co_varnames[0])
    if code.co_flags & inspect.CO_VARARGS:
        given = frame.f_locals.get(code.co_varnames[code.co_kwonlyargcount], ())
        return next(iter(given), None)
    return None


def _may_be_a_method(code: CodeType) -> bool:
    if code.co_argcount:
        return code.co_varnames[0] == "self"
    return bool(code.co_flags & inspect.CO_VARARGS)


def _caller_of(frame: FrameType, inner: object, fits: bool = False) -> object | None:
    """Whose method a frame runs, if it is a fit of another object that is not skdp's own.

    With ``fits`` a private fit runs now: then a method of any name counts, if its object can be fitted and holds a
    private estimator. Methods of scikit-learn have the names that are known.
    """
    top = _module(frame).partition(".")[0]
    if top == "skdp":
        return None
    name = _fit_name(frame)
    if name is None and (not fits or top in ("sklearn", "joblib") or not _may_be_a_method(frame.f_code)):
        return None
    caller = _first_argument(frame)
    kind = caller if isinstance(caller, type) else type(caller)
    if caller is inner or is_private(caller) or own(kind):
        return None
    if name is not None:
        return caller if hasattr(kind, name) else None
    return caller if hasattr(kind, "fit") and nested(caller) else None


def _findings_in(frame: FrameType, inner: object, fits: bool) -> Iterator[Finding] | None:
    """The effect of one frame of the stack on the claim; None if it is no caller."""
    caller = _caller_of(frame, inner, fits)
    if caller is not None:
        return about_call(caller, inner, _is_sparse(frame.f_locals.get("X")))
    module, name = _module(frame), frame.f_code.co_name
    top = module.partition(".")[0]
    if name == "fit" and top not in ("skdp", "sklearn"):
        written = (inspect.unwrap(vars(kind)["fit"]) for kind in type(inner).__mro__ if "fit" in vars(kind))
        if any(getattr(fit, "__code__", None) is frame.f_code for fit in written):
            return about_subclass(inner)
    if module == _VALIDATION and name in _FUNCTIONS:
        given = frame.f_locals
        return about_function(name, given.get("method"), given.get("cv"), given.get("estimator"), inner)
    if module.startswith("skrub._data_ops."):
        line = (
            "a skrub data op around this fit runs other steps on these records, which skdp does not see: no "
            "epsilon covers those that learn"
        )
        return iter([(line, f"{line}; the report says so")])
    if fits and top in _LIBRARIES:
        line = (
            f"a function of {top} around this fit is not known to give each record once to each fit: no epsilon "
            "covers what it does"
        )
        return iter([(line, f"{line}; the report says so")])
    return None


def _read(findings: Iterator[Finding], frame: FrameType) -> list[Finding]:
    """The effect of one frame; a caller whose parameters cannot be read is named for that, and no fit breaks."""
    try:
        return list(findings)
    except Exception as error:
        line = (
            f"{frame.f_code.co_qualname} around this fit has parameters that skdp cannot read "
            f"({type(error).__name__}), so it is not known to be safe: no epsilon covers what it does"
        )
        return [(line, f"{line}; the report says so")]


def _on_stack(
    inner: object, top: FrameType | None = None, fits: bool = False
) -> tuple[dict[str, str], FrameType | None]:
    """Lines and warnings of all callers, the outermost first, and the frame of the outermost."""
    found: list[Finding] = []
    outermost = None
    at: FrameType | None = None if fits else top or sys._getframe(1)
    while at is not None:  # before anything else is asked of a frame: most who ask for tags predict
        uses = (
            at.f_code.co_name in _USES and _first_argument(at) is inner
        )  # a model predicts, and is not fitted now
        if uses or str(at.f_globals.get("__name__", "")).startswith("sklearn.frozen"):
            raise _NoFit
        at = at.f_back
    LOOK.known = {}
    try:
        at = top or sys._getframe(1)
        while at is not None:  # no call of frames of skdp, which are most of a stack
            ours = str(at.f_globals.get("__name__", "")).partition(".")[0] == "skdp"
            findings = None if ours else _findings_in(at, inner, fits)
            if findings is not None:
                outer, outermost = _read(findings, at), at
                # How a caller that is named works inside, by folds or by other wrappers, is no news.
                caller = _caller_of(at, inner, fits)
                found = outer if caller is not None and named(caller, inner) else [*outer, *found]
            at = at.f_back
    finally:
        LOOK.known = None
    return dict(found), outermost


def _in_other_threads(estimator: object) -> tuple[dict[str, str], FrameType | None]:
    """The same of a caller that runs in another thread and holds this estimator, or of which nothing is known."""
    unknown, guess = None, any(_module(frame).startswith(_POOLS) for frame in _frames())
    for top in _other_tops():
        for frame in _frames(top):
            caller = _caller_of(frame, estimator)
            if caller is None:
                continue
            if any(held is estimator for held in nested(caller)):
                return _on_stack(estimator, top)
            if guess and is_unknown(caller):
                unknown = top
    return ({}, None) if unknown is None else _on_stack(estimator, unknown)


def _call_of(frame: FrameType) -> _Call:
    """The call that a frame runs. A frame's dictionary of local variables keeps entries that are added to it."""
    call = frame.f_locals.get(_CALL)
    if not isinstance(call, _Call):
        call = _Call(frame)
        frame.f_locals[_CALL] = call
        _RUNNING[call.name] = call
    return call


def _runs(name: str) -> bool:
    """Whether a call of this process runs in any thread; a traceback may hold its frame for longer."""
    call = _RUNNING.get(name)
    if call is None:
        return False
    stacks = [_frames(), *map(_frames, _other_tops())]
    return any(id(frame) == call.frame_id for stack in stacks for frame in stack)


def _record_of(estimator: object) -> Record | None:
    record: Record | None = vars(estimator).get(_RECORD)
    return record


def _counts(record: Record) -> bool:
    here = record["process"] == _process_name()
    return (here and _runs(record["call"])) or _in_worker()


def notice(estimator: object, *, original: object = None, leaves: bool = False, fits: bool = False) -> None:
    """Warn of the calls around an estimator that is fitted, cloned or asked for its tags, once for each outer
    call.

    The estimator gets a record of it for a worker.

    Parameters
    ----------
    estimator : private estimator
    original : private estimator, default=None
        Of which the estimator is a clone.
    leaves : bool, default=False
        Whether the estimator is pickled: a thread that does that for a wrapper is not the wrapper's.
    fits : bool, default=False
        Whether its fit begins.
    """
    if getattr(_BUSY, "looking", False):  # looking asks the callers for their parameters and tags
        return
    _BUSY.looking = True
    try:
        found, frame = _on_stack(estimator, fits=fits)
        record = _record_of(estimator)
        if record is not None and not _counts(record):
            forget(estimator)
            record = None
        if (
            frame is None
            and record is None
            and (leaves or _in_worker() or threading.current_thread() is not threading.main_thread())
        ):
            # A wrapper that never looked at the estimator has handed it to this thread.
            found, frame = _in_other_threads(estimator if original is None else original)
        if frame is None or not found:
            return
        call = _call_of(frame)
        known = {line for line, _ in record["findings"]} if record else set()
        fresh = [line for line in found if line not in call.warned and line not in known]
        kept = {**(dict(record["findings"]) if record else {}), **found}
    except _NoFit:
        return
    finally:
        frame = None
        _BUSY.looking = False
    # A warning that is an error may be swallowed where a wrapper looks at tags. The fit then raises it again.
    for line in fresh:
        warn_user(found[line], PrivacyLeakWarning)
    call.warned.update(found)
    vars(estimator)[_RECORD] = Record(findings=list(kept.items()), call=call.name, process=_process_name())


def hand_on(estimator: object, copy: object) -> None:
    """Give a clone the record of its original, and look around it."""
    record = _record_of(estimator)
    if record is not None and _counts(record):
        vars(copy)[_RECORD] = record
    notice(copy, original=estimator)


def carried(estimator: object, state: dict[str, object]) -> dict[str, object]:
    """The state of an estimator for a pickle: with its record while the call runs, without it afterwards."""
    foreign = _record_of(estimator)
    if foreign is None or foreign["process"] == _process_name():
        notice(estimator, leaves=True)
    record = _record_of(estimator)
    rest = {name: value for name, value in state.items() if name != _RECORD}
    if record is None or (record["process"] == _process_name() and not _runs(record["call"])):
        return rest
    return {**rest, _RECORD: record}


def forget(estimator: object) -> None:
    """Take the record off an estimator: its fit has ended, or the call has."""
    vars(estimator).pop(_RECORD, None)


def lines_around(estimator: object) -> list[str]:
    """Lines for the report on the calls around the fit of an estimator, here or where its clone was made.

    Parameters
    ----------
    estimator : private estimator

    Returns
    -------
    list of str
    """
    _BUSY.looking = True
    try:
        found, _ = _on_stack(estimator, fits=True)
    finally:
        _BUSY.looking = False
    record = _record_of(estimator)
    if record is not None and _counts(record):
        found = {**dict(record["findings"]), **found}
    return list(found)


def paid_before(estimator: object) -> list[str]:
    """Names of the private transformers that pipelines around this fit fitted before it.

    They learnt from the records, and their own reports have the cost.
    """
    found: dict[str, None] = {}
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        ours = str(frame.f_globals.get("__name__", "")).partition(".")[0] == "skdp"
        caller = None if ours else _caller_of(frame, estimator)
        frame = frame.f_back
        if caller is not None and is_a(caller, "sklearn.pipeline", "Pipeline"):
            found.update(dict.fromkeys(paid_steps(steps_before(caller, estimator))))
    return list(found)
