"""Methods that are functions of another module, with their signature and their docstring, which stand once."""

import inspect
from collections.abc import Callable
from types import MethodType
from typing import Concatenate, Generic, ParamSpec, TypeVar, overload

__all__ = ["Delegated"]

Part = TypeVar("Part")
P = ParamSpec("P")
R = TypeVar("R")


class Delegated(Generic[Part, P, R]):
    """A method that is a function of one part of its object.

    On an object it is the function bound to the part: a call goes through no wrapper. On the class it is a plain
    function of the object, as for any method.

    Parameters
    ----------
    function : callable
        Its first argument is the part.
    part : str
        Attribute that holds the part.
    """

    def __init__(self, function: Callable[Concatenate[Part, P], R], part: str) -> None:
        self._function, self._part = function, part

        def method(self: object, /, *args: P.args, **kwargs: P.kwargs) -> R:
            return function(getattr(self, part), *args, **kwargs)

        given = inspect.signature(function)
        own = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        _, *others = given.parameters.values()
        vars(method)["__signature__"] = given.replace(parameters=[own, *others])
        method.__name__, method.__doc__ = function.__name__, function.__doc__
        self._of_class = method

    @overload
    def __get__(self, owner: None, kind: type) -> Callable[Concatenate[object, P], R]: ...

    @overload
    def __get__(self, owner: object, kind: type) -> Callable[P, R]: ...

    def __get__(self, owner: object, kind: type) -> object:
        return self._of_class if owner is None else MethodType(self._function, getattr(owner, self._part))
