"""Methods that are functions of another module: with its signature and its docstring, which stand once."""

import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

__all__ = ["described"]

P = ParamSpec("P")
Q = ParamSpec("Q")
R = TypeVar("R")


def described(method: Callable[P, R], function: Callable[Q, object]) -> Callable[P, R]:
    """Give ``method`` the name, docstring and signature of ``function``, whose first argument is ``self``."""
    _, *rest = inspect.signature(function).parameters.values()
    self = inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD)
    returned = inspect.signature(function).return_annotation
    facts = vars(method)
    facts["__signature__"] = inspect.Signature([self, *rest], return_annotation=returned)
    method.__name__ = function.__name__
    method.__doc__ = function.__doc__
    return method
