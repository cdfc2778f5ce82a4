"""Weights of records: when `fit` takes ``sample_weight``, and when its signature names it.

scikit-learn's meta-estimators ask the signature of a model's `fit` whether they may hand weights to it. A private
fit takes weights only where their public bound ``max_weight`` is declared. So the signature of the class names
``sample_weight`` if its constructor has ``max_weight``, and that of an instance if a bound is declared. Then
CalibratedClassifierCV and AdaBoostClassifier hand weights to a model that takes them, and BaggingClassifier draws
rows of one that does not.

The checks of scikit-learn ask a model that takes weights to treat weight 0 as a row that is left out. No private
fit may: the number of records is public, and so is what the sums are divided by.
"""

import re
from functools import update_wrapper
from inspect import signature
from types import FunctionType, MethodType
from typing import Protocol, TypeVar, cast

from skdp.around import notice
from skdp.privacy import note_use

__all__ = ["UNBOUNDED", "names_weights", "refuse_weights", "taken_arguments", "watch_fit"]

UNBOUNDED = (
    "sample_weight is private: declare its public upper bound with max_weight= "
    "in the constructor; weights are clipped to [0, max_weight]"
)

_ENTRY = re.compile(r"^( *)sample_weight : .*\n(?:\1 +.*\n)*", re.MULTILINE)

FitT = TypeVar("FitT")


class _Fit:
    """A method `fit` that notes who looks at it, and of which an object shows the signature that holds for it.

    Meta-estimators look at `fit` before they start workers, in the context that knows the block of the accountant
    and the callers.
    """

    def __init__(self, fit: FunctionType, without: FunctionType) -> None:
        self._named, self._without = fit, without
        self.__wrapped__ = fit  # what `inspect.unwrap` finds of a class's own method

    def __get__(self, estimator: object, owner: type) -> object:
        if estimator is None:
            return self._named if "max_weight" in signature(owner).parameters else self._without
        note_use(estimator, outside=True)
        notice(estimator)
        is_bounded = getattr(estimator, "max_weight", None) is not None
        return MethodType(self._named if is_bounded else self._without, estimator)


class _Fits(Protocol):
    fit: object


class WatchedFit:
    """The attribute `fit` of a class of private fits, which notes who looks at it as `_Fit` does.

    It holds what the class defines, or was given later, whatever that is: a function, a ``partialmethod``, a
    property. A class that inherits a `fit` which is not watched, from a mixin, has one of these that passes on. It
    looks for the method of the later bases at each look, so it hides none of them.

    Parameters
    ----------
    owner : type
        The class that has the attribute.
    own : object, default=None
        Its own `fit`; None is that of its bases.
    """

    def __init__(self, owner: type, own: object = None) -> None:
        self._owner, self._own = owner, own
        if isinstance(own, FunctionType):
            self.__wrapped__ = own  # what `inspect.unwrap` finds of a class's own method

    def __get__(self, estimator: object, owner: type) -> object:
        if estimator is not None:
            note_use(estimator, outside=True)
            notice(estimator)
        if self._own is None:
            seen = owner if estimator is None else estimator
            found: object = super(self._owner, seen).fit  # type: ignore[misc, arg-type]
            return found
        bind = getattr(type(self._own), "__get__", None)
        return self._own if bind is None else bind(self._own, estimator, owner)


def watch_fit(cls: type[_Fits]) -> None:
    """Let a class of private fits note who looks at its `fit`: its own, or one of a base which notes nothing.

    It is called before an estimator of the class is made, as a `fit` may be assigned to a class at any time.
    """
    own = vars(cls).get("fit")
    found = next(vars(base)["fit"] for base in cls.__mro__ if "fit" in vars(base))
    if not isinstance(found, (_Fit, WatchedFit)):
        cls.fit = WatchedFit(cls, own)


def names_weights(fit: FitT) -> FitT:
    """Make a method `fit` with ``sample_weight=None`` name it as the module says, and note who looks at it.

    Without a bound the method takes the same arguments, and only its signature says less.
    """
    # The same code under another signature: a call passes through no wrapper.
    written = cast("FunctionType", fit)
    without = FunctionType(
        written.__code__, written.__globals__, closure=written.__closure__, argdefs=written.__defaults__
    )
    update_wrapper(without, written)
    without.__kwdefaults__ = written.__kwdefaults__
    told = signature(written)
    kept = [p for name, p in told.parameters.items() if name != "sample_weight"]
    vars(without)["__signature__"] = told.replace(parameters=kept)
    if without.__doc__ is not None:  # as with python -OO
        without.__doc__ = _ENTRY.sub("", without.__doc__)
    return cast("FitT", _Fit(written, without))


def refuse_weights(more: dict[str, object]) -> None:
    """Refuse all further arguments of a `fit` that has none, except for ``sample_weight=None``.

    Raises
    ------
    TypeError
        If there is another one.
    """
    for name, value in more.items():
        if name != "sample_weight" or value is not None:
            raise TypeError(_unexpected(name))


def _unexpected(name: str) -> str:
    hint = ": this method has no weighted form; leave it out" if name == "sample_weight" else ""
    return f"fit got an unexpected keyword argument {name!r}{hint}"


class _Reads(Protocol):
    def read(self, X: object, y: object = None, groups: object = None) -> object: ...


def taken_arguments(estimator: _Reads, more: dict[str, object]) -> dict[str, object]:
    """Return further arguments of `fit` without weights of None; refuse weights that the estimator does not take.

    Nothing of the weights is read.

    Parameters
    ----------
    estimator : object
        Its method `read` takes weights in its own way if it names ``sample_weight``.
    more : dict

    Raises
    ------
    TypeError
        If the method has no weighted form.
    ValueError
        If ``max_weight`` is not declared.
    """
    if more.get("sample_weight") is None:
        return {name: value for name, value in more.items() if name != "sample_weight"}
    if "sample_weight" in signature(estimator.read).parameters:
        return more
    if not hasattr(estimator, "max_weight"):
        raise TypeError(_unexpected("sample_weight"))
    if estimator.max_weight is None:
        raise ValueError(UNBOUNDED)
    return more
