"""The kinds of values that parameters take: how each is checked, and how a docstring names it."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Protocol

from skdp.base.parameters import check_choice, check_flag, check_number

__all__ = ["Kind", "callback", "choice", "described", "flag", "integer", "real", "required", "share"]


class Kind(Protocol):
    """What values a parameter takes."""

    @property
    def words(self) -> str:
        """The type, in the words of a docstring."""

    def check(self, name: str, value: object) -> None:
        """Raise TypeError or ValueError unless the value is of this kind."""


@dataclass(frozen=True)
class Number:
    """A number in a range, or the word, or None where it is allowed; see `real` and `integer`."""

    type: type
    low: float | None = None
    high: float | None = None
    strict: bool = False
    word: str | None = None
    none: bool = False
    finite: bool = False
    hint: str = ""
    below: float | None = None

    @property
    def words(self) -> str:
        kinds = ["int" if self.type is Integral else "float"]
        kinds += [f'"{self.word}"'] if self.word else []
        if self.none and self.word:
            kinds.append("None")
        return " or ".join([", ".join(kinds[:-1]), kinds[-1]] if len(kinds) > 1 else kinds)

    def check(self, name: str, value: object) -> None:
        try:
            check_number(
                name,
                value,
                self.type,
                low=self.low,
                high=self.high,
                strict=self.strict,
                word=self.word,
                none=self.none,
            )
        except (TypeError, ValueError) as error:
            raise type(error)(f"{error}{self.hint}") from None
        if self.finite and isinstance(value, Real) and math.isinf(value):
            raise ValueError(f"{name} must be finite, got {float(value)!r}")
        if self.below is not None and isinstance(value, Real) and float(value) >= self.below:
            low, below = f"{self.low:g}", f"{self.below:g}"
            within = f"strictly between {low} and {below}" if self.strict else f"in [{low}, {below})"
            raise ValueError(f"{name} must be {within}, got {value!r}{self.hint}")


@dataclass(frozen=True)
class Choice:
    """One of a few words, or None where it is allowed; see `choice`."""

    choices: tuple[str, ...]
    none: bool = False

    @property
    def words(self) -> str:
        one_of = "{{{}}}".format(", ".join(f'"{word}"' for word in self.choices))
        return f"{one_of} or None" if self.none else one_of

    def check(self, name: str, value: object) -> None:
        if value is not None or not self.none:
            check_choice(name, value, self.choices)


@dataclass(frozen=True)
class Flag:
    """True or False; see `flag`."""

    words: str = "bool"

    def check(self, name: str, value: object) -> None:
        check_flag(name, value)


@dataclass(frozen=True)
class Described:
    """Values that the method itself checks, or a function of the name and the value; see `described`."""

    words: str
    checked: Callable[[str, object], object] | None = None

    def check(self, name: str, value: object) -> None:
        if self.checked is not None:
            self.checked(name, value)


@dataclass(frozen=True)
class Required:
    """A value that must be given, although the default is None; see `required`."""

    kind: Kind
    reason: str

    @property
    def words(self) -> str:
        return self.kind.words

    def check(self, name: str, value: object) -> None:
        if value is None:
            raise ValueError(f"{name} must be given: {self.reason}")
        self.kind.check(name, value)


def real(
    *,
    low: float | None = None,
    high: float | None = None,
    strict: bool = False,
    word: str | None = None,
    none: bool = False,
    finite: bool = False,
    hint: str = "",
    below: float | None = None,
) -> Kind:
    """A number in [low, high], where ``strict`` excludes ``low``; ``word`` and None if they are allowed.

    Parameters
    ----------
    low, high : float, default=None
    strict : bool, default=False
    word : str, default=None
        A string that is allowed as well.
    none : bool, default=False
        Whether None is allowed as well.
    finite : bool, default=False
        Whether infinity is refused.
    hint : str, default=""
        End of the message of a refusal.
    below : float, default=None
        Upper end that is excluded; it needs ``low``.
    """
    return Number(Real, low, high, strict, word, none, finite, hint, below)


def share() -> Kind:
    """A number strictly between 0 and 1."""
    return real(low=0, strict=True, below=1)


def integer(
    *,
    low: float | None = None,
    high: float | None = None,
    word: str | None = None,
    none: bool = False,
    hint: str = "",
) -> Kind:
    """An int in [low, high]; ``word`` and None if they are allowed."""
    return Number(Integral, low, high, word=word, none=none, hint=hint)


def required(kind: Kind, reason: str) -> Kind:
    """A value of this kind that has no default: None is refused, for the reason."""
    return Required(kind, reason)


def choice(*words: str, none: bool = False) -> Kind:
    """One of these strings, or None if it is allowed."""
    return Choice(words, none)


def flag() -> Kind:
    """True or False."""
    return Flag()


def described(words: str, check: Callable[[str, object], object] | None = None) -> Kind:
    """Values that need more than a type: their type in words, and the function that checks them, if one can.

    The function takes the name and the value, and raises TypeError or ValueError.
    """
    return Described(words, check)


def _check_callback(name: str, value: object) -> None:
    if value is not None and not callable(value):
        raise TypeError(f"{name} must be callable: {name}(iteration, coef)")


def callback() -> Kind:
    """A function of the iteration and the coefficients, or None."""
    return Described("callable", _check_callback)
