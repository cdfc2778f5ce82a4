"""Exact types of other libraries, found without importing them: an object's module is there already."""

import sys
import threading
from collections.abc import Iterator, Mapping
from typing import Generic, TypeVar

ValueT = TypeVar("ValueT")


ClassT = TypeVar("ClassT", bound=type)

_SPENDING: list[type] = []


def spends_budget(kind: ClassT) -> ClassT:
    """Mark a class, and all that inherit from it: their fits spend a privacy budget."""
    _SPENDING.append(kind)
    return kind


def is_private(thing: object) -> bool:
    """Whether a thing is an estimator whose fit spends a privacy budget."""
    return isinstance(thing, tuple(_SPENDING))


def _is_class(kind: type, module: str, name: str) -> bool:
    """Whether users import a class under this name. A module's own `__getattr__` is not asked."""
    if kind.__name__ != name or kind.__module__.partition(".")[0] != module.partition(".")[0]:
        return False
    return vars(sys.modules.get(module, sys)).get(name, kind) is kind


def is_a(thing: object, module: str, *names: str) -> bool:
    """Whether a thing is of one of these classes or inherits from one."""
    return any(_is_class(kind, module, name) for kind in type(thing).__mro__ for name in names)


def own(kind: type) -> bool:
    """Whether a class is skdp's own; a subclass in another package is not."""
    return kind.__module__.partition(".")[0] == "skdp"


class Kinds(Generic[ValueT]):
    """A table of facts about classes, by (module, class name).

    Parameters
    ----------
    table : mapping of (str, str) to value
        The module from which users import the class, and its name.
    """

    def __init__(self, table: Mapping[tuple[str, str], ValueT]) -> None:
        self.table = dict(table)
        self._by_name: dict[str, list[tuple[str, ValueT]]] = {}
        for (module, name), value in self.table.items():
            self._by_name.setdefault(name, []).append((module, value))

    def _of_class(self, kind: type) -> ValueT | None:
        for module, value in self._by_name.get(kind.__name__, ()):
            if _is_class(kind, module, kind.__name__):
                return value
        return None

    def exact(self, thing: object) -> ValueT | None:
        """The value of this very class: a subclass may override anything, so it is another class."""
        return self._of_class(type(thing))

    def nearest(self, thing: object) -> ValueT | None:
        """The value of the first class in the thing's order of inheritance that the table has."""
        found = (self._of_class(kind) for kind in type(thing).__mro__)
        return next((value for value in found if value is not None), None)


class _Look(threading.local):
    """While the stack is read nobody changes parameters, so each object is asked once: they are kept by its id."""

    known: dict[int, tuple[object, dict[str, object]]] | None = None


LOOK = _Look()


def params_of(thing: object) -> dict[str, object]:
    """All parameters of an estimator and of estimators inside it; none without a usable `get_params`."""
    known = LOOK.known
    if known is None:
        return _asked_params(thing)
    if id(thing) not in known:
        known[id(thing)] = (thing, _asked_params(thing))  # the object is kept, so its id stays its own
    return known[id(thing)][1]


def _asked_params(thing: object) -> dict[str, object]:
    asked = getattr(thing, "get_params", None)
    if isinstance(thing, type) or is_private(thing) or not callable(asked):
        return {}
    try:
        return dict(asked(deep=True))
    except Exception:  # a class of another library may need attributes that it does not have yet
        return {}


def _boxed(values: list[object]) -> Iterator[object]:
    """Values, and the items of lists, tuples and dictionaries of them, as in scikit-learn's pairs of names."""
    for _ in range(3):
        yield from values
        boxes = [v for v in values if isinstance(v, (list, tuple, dict)) and len(v) <= _MAX_ENTRIES]
        values = [v for box in boxes for v in (box.values() if isinstance(box, dict) else box)]


def _held(thing: object) -> list[object]:
    """The parameters of an object; its attributes where the parameters show no private estimator."""
    if isinstance(thing, type) or is_private(thing):
        return []
    held = list(_boxed(list(params_of(thing).values())))
    private = tuple(_SPENDING)  # a call for each value would take longer
    if any(isinstance(value, private) for value in held):
        return held
    attributes = getattr(thing, "__dict__", None)
    return [*held, *_boxed(list(attributes.values()))] if attributes else held


_MAX_ENTRIES = 1000  # entries of a list that are looked at: longer ones are data


def nested(thing: object) -> list[object]:
    """The private estimators inside a thing, and the objects between that hold one, each once."""
    found: dict[int, object] = {}
    private = tuple(_SPENDING)
    for value in _held(thing):
        if id(value) not in found and (
            isinstance(value, private)
            or (hasattr(type(value), "fit") and any(isinstance(v, private) for v in _held(value)))
        ):
            found[id(value)] = value
    return list(found.values())
