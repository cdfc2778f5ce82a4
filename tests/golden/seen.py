"""What is kept of a seeded run: its numbers by their bits, its report, its warnings and its refusal.

A word that changes on purpose is one line of `SPELLED`. All cases of this folder state parameters in the words of
the day of the record, and make their estimators by `build`, which reads this table.
"""

import dataclasses
import hashlib
import inspect
import json
import struct
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import BaseEstimator

import skdp
from skdp import nn

# Old words -> new words: names of classes, or None for all that have these parameters still; names of parameters;
# and a function from those of them that a case gives, as keywords, to the new parameters. For example
#     (None, ("clip_norm",), lambda clip_norm: {"clip_norm": NEW_WORDS.get(clip_norm, clip_norm)}),
#     (NETS, ("solver", "momentum"), lambda solver="sgd", momentum=0.9: {"optimizer": OF[solver](momentum)}),
# A line is read only where a case gives at least one of its parameters. A line that takes a name away must name
# the classes that had it, so that their cases are still found.
NETS = {name for name in nn.__all__ if name.startswith("DP")}
DESCENT = {"DPSGDClassifier", "DPSGDRegressor", "DPLSSGDClassifier", "DPLSSGDRegressor"}


def _optimizer(solver: str = "sgd", momentum: float = 0.9, **more: Any) -> dict[str, Any]:
    if solver == "adam":
        return {"optimizer": nn.Adam(beta_1=momentum, **more)}
    return {"optimizer": nn.SGD(momentum=momentum, **more)}


def _clipping(clipping: str = "auto", **number: int) -> dict[str, Any]:
    if clipping == "microbatch":
        return {"clipping": nn.Microbatch(size=number.get("microbatch_size", 8))}
    if clipping == "projections":
        return {"clipping": nn.Projections(**number)}
    return {"clipping": clipping}


def _gradient(**given: Any) -> dict[str, Any]:
    (estimator,) = given.values()
    return {"gradient_estimator": "mean" if estimator is None else estimator}


SPELLED: list[tuple[set[str] | None, tuple[str, ...], Callable[..., dict[str, Any]]]] = [
    (NETS | {"DPWord2Vec"}, ("solver", "momentum", "schedule", "average", "smoothing"), _optimizer),
    (DESCENT, ("solver", "momentum", "schedule", "average"), _optimizer),
    (NETS, ("clipping", "microbatch_size", "n_projections"), _clipping),
    (NETS | {"DPWord2Vec"}, ("recursive", "sparsification", "select"), _gradient),
]

SKIPPED = (FunctionType, BuiltinFunctionType, MethodType, ModuleType, type)
METHODS = ("predict", "decision_function", "predict_proba", "transform")
SHOWN = 40  # rows that are predicted


def spelled(cls: type, params: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters of a case in today's words."""
    found = dict(params)
    for classes, names, new in SPELLED:
        given = {name: found.pop(name) for name in names if name in found}
        if given and (classes is None or cls.__name__ in classes):
            given = new(**given)
        found.update(given)
    return found


def build(cls: type, params: Mapping[str, Any], common: Mapping[str, Any] | None = None) -> Any:
    """An estimator with the parameters of a case, and with those of ``common`` that its class has."""
    known = inspect.signature(cls).parameters
    given = {k: v for k, v in spelled(cls, common or {}).items() if k in known}
    given.update(spelled(cls, params))
    unknown = set(given) - set(known)
    if unknown:
        raise AssertionError(f"{cls.__name__} has no {sorted(unknown)}: add a line to SPELLED")
    return cls(**given)


def has(cls: type, names: Iterable[str]) -> bool:
    """Whether a class has parameters, in the words of the cases."""
    known = set(inspect.signature(cls).parameters)
    for classes, old, _ in SPELLED:
        if classes is not None and cls.__name__ in classes:
            known.update(old)
    return known.issuperset(names)


@dataclasses.dataclass
class Seen:
    """What a case found.

    Attributes
    ----------
    numbers : dict
        Fitted attributes or released values by name.
    predictions : dict
    report : PrivacyReport or None
    """

    numbers: Mapping[str, Any]
    predictions: Mapping[str, Any] = dataclasses.field(default_factory=dict)
    report: Any = None


def of_model(model: Any, X: Any) -> Seen:
    """A fitted estimator, and what it makes of the first rows of X."""
    few = X[:SHOWN] if hasattr(X, "__getitem__") and not hasattr(X, "iloc") else X.iloc[:SHOWN]
    made = {name: getattr(model, name)(few) for name in METHODS if hasattr(model, name)}
    return Seen(attributes(model), made, getattr(model, "privacy_", None))


def attributes(model: Any) -> dict[str, Any]:
    """Fitted attributes but for the report, whose words may change."""
    return {
        name: value
        for name, value in vars(model).items()
        if name.endswith("_") and not name.startswith("_") and not isinstance(value, skdp.PrivacyReport)
    }


# ------------------------------------------------------------------ bits


def digest(item: Any) -> str:
    """A hash of nested numbers and words; numbers by their bits."""
    h = hashlib.sha256()
    _add(h, item)
    return h.hexdigest()[:10]


def _add(h: Any, item: Any) -> None:
    if item is None or isinstance(item, (bool, np.bool_, str, bytes)):
        h.update(repr(item).encode())
    elif isinstance(item, (int, float, np.number)):
        h.update(b"d" + struct.pack("<d", float(item)))
    elif isinstance(item, np.ndarray):
        _add_array(h, item)
    elif sp.issparse(item):
        h.update(item.format.encode())
        _add_array(h, item.toarray())
    elif isinstance(item, Mapping):
        h.update(b"{")
        for key in sorted(item, key=str):
            h.update(repr(key).encode())
            _add(h, item[key])
    elif isinstance(item, (list, tuple)):
        h.update(b"[%d" % len(item))
        for one in item:
            _add(h, one)
    elif hasattr(item, "to_numpy"):  # a frame, a series or an index of pandas
        for part in (getattr(item, name, None) for name in ("columns", "index")):
            h.update(repr(None if part is None else list(part)).encode())
        _add_array(h, item.to_numpy())
    elif isinstance(item, skdp.PrivacyReport):
        _add(h, item.to_dict())
    elif isinstance(item, BaseEstimator):
        _add(h, attributes(item))
    else:  # an object of the library: names and order of what it holds may change
        h.update("".join(sorted(_leaves(item, set()))).encode())


def _add_array(h: Any, array: np.ndarray) -> None:
    h.update(repr(array.shape).encode())
    if array.dtype.kind in "biufc":
        h.update(array.dtype.str.encode() + np.ascontiguousarray(array).tobytes())
    else:
        _add(h, array.tolist())


def _leaves(item: Any, met: set[int]) -> Iterator[str]:
    """Hashes of the numbers that an object holds, of its words none."""
    if item is None or isinstance(item, (bool, str, bytes, *SKIPPED)) or id(item) in met:
        return
    if isinstance(item, (int, float, np.number, np.ndarray)) or sp.issparse(item):
        yield digest(item)
        return
    met.add(id(item))
    if isinstance(item, Mapping):
        parts = list(item.values())
    elif isinstance(item, (list, tuple, set, frozenset)):
        parts = list(item)
    elif isinstance(item, BaseEstimator):
        parts = list(attributes(item).values())
    else:
        slots = [name for kind in type(item).__mro__ for name in getattr(kind, "__slots__", ())]
        held = [getattr(item, name) for name in slots if hasattr(item, name)]
        parts = [*getattr(item, "__dict__", {}).values(), *held]
    for part in parts:
        yield from _leaves(part, met)


def _ledger(report: Any) -> str:
    """The numbers of a report and the names of its mechanisms; prose may change."""
    rows = [{k: v for k, v in row.items() if k == "name" or not isinstance(v, str)} for row in report.mechanisms]
    return digest([rows, report.epsilon, report.delta, report.numerical_error])


def _report(report: Any) -> dict[str, str]:
    """Hashes of a whole report in four parts, words included."""
    state = report.to_dict()
    parts = {name: state.pop(name) for name in ("assumptions", "mechanisms", "public")}
    return {
        name: hashlib.sha256(json.dumps(part, sort_keys=True).encode()).hexdigest()[:8]
        for name, part in {**parts, "other": state}.items()
    }


# ------------------------------------------------------------------ a run


def run(case: Callable[[], Seen]) -> tuple[dict[str, Any], list[str]]:
    """The record of a case, and the texts of its warnings and of its refusal."""
    texts: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            found = _kept(case())
        except (TypeError, ValueError, RuntimeError) as error:
            texts.append(f"{type(error).__name__}: {error}")
            found = {"refusal": [type(error).__name__, digest(str(error))]}
    told = [w for w in caught if not issubclass(w.category, (DeprecationWarning, ImportWarning))]
    texts += [f"{w.category.__name__}: {w.message}" for w in told]
    found["warnings"] = [f"{w.category.__name__} {digest(str(w.message))[:6]}" for w in told]
    return found, texts


def _kept(seen: Seen) -> dict[str, Any]:
    found: dict[str, Any] = {
        "fitted": {name: digest(value) for name, value in sorted(seen.numbers.items())},
        "predictions": {name: digest(value) for name, value in seen.predictions.items()},
    }
    if seen.report is not None:
        found |= {"ledger": _ledger(seen.report), "report": _report(seen.report)}
    return found
