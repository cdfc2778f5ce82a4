"""Checks of parameters before any data, and the kinds of values that declared parameters take."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Literal, Protocol, cast

import numpy as np

from skdp.privacy import BudgetAccountant, check_accountant, check_adjacency, check_budget, check_unit


class Kind(Protocol):
    """The values that a parameter takes."""

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


def check_privacy(
    epsilon: float,
    delta: float,
    *,
    adjacency: str,
    unit: str,
    accountant: BudgetAccountant | Literal[False] | None,
    n_public: int | None,
) -> None:
    """Check the parameters that every private estimator has."""
    check_budget(epsilon, delta)
    check_adjacency(adjacency)
    check_unit(unit)
    check_accountant(accountant)
    if n_public is not None:
        check_number("n_public", n_public, Integral, low=1)
    if adjacency == "add-remove" and n_public is None:
        raise ValueError(
            "under adjacency='add-remove' the number of records is private: give n_public, a "
            "public number that means divide by, or use adjacency='zero-out'"
        )


def check_groups(unit: str, groups: object) -> None:
    """Raise ValueError unless ``groups`` is given exactly where the group is the unit."""
    if unit == "group" and groups is None:
        raise ValueError(
            "unit='group' needs groups=: who each row belongs to. scikit-learn hands groups "
            "to a search's splitter only; route them with "
            "sklearn.set_config(enable_metadata_routing=True) and then set_fit_request(groups=True), "
            "or give both cross_validate(groups=g, params={'groups': g})"
        )
    if unit == "record" and groups is not None:
        raise ValueError(
            "groups= was given but unit='record' protects single rows; "
            "use unit='group' to protect everything that belongs to one group"
        )


def check_number(
    name: str,
    value: object,
    kind: type,
    *,
    low: float | None = None,
    high: float | None = None,
    strict: bool = False,
    word: str | None = None,
    none: bool = False,
) -> None:
    """Raise TypeError or ValueError unless ``value`` is a number of ``kind`` in its range.

    Parameters
    ----------
    name : str
    value : object
    kind : type
        ``numbers.Integral`` or ``numbers.Real``.
    low, high : float, default=None
        Inclusive bounds; ``low`` is exclusive with ``strict``.
    strict : bool, default=False
    word : str, default=None
        A string that is allowed as well.
    none : bool, default=False
        Whether None is allowed as well.
    """
    if none and value is None:
        return
    wanted = "an int" if kind is Integral else "a number"
    also = (f" or {word!r}" if word else "") + (" or None" if none else "")
    if word is not None and isinstance(value, str):
        if value != word:
            raise ValueError(f"{name} must be {wanted}{also}, got {value!r}")
        return
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, kind):
        raise TypeError(f"{name} must be {wanted}{also}, got {type(value).__name__}")
    number = cast("float", value)  # of the kind, which compares with floats
    try:
        float(number)
    except OverflowError:
        raise ValueError(f"{name} must be a number that float64 can hold") from None
    if low is None and math.isnan(number):
        raise ValueError(f"{name} must be {wanted}{also}, got {value!r}")
    if math.isnan(number) or (low is not None and (number <= low if strict else number < low)):
        raise ValueError(f"{name} must be {'>' if strict else '>='} {low:g}{also}, got {value!r}")
    if high is not None and number > high:
        raise ValueError(f"{name} must be <= {high:.10g}{also}, got {value!r}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise ValueError unless ``value`` is one of ``choices``."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {list(choices)}, got {value!r}")


def check_flag(name: str, value: object) -> None:
    """Raise TypeError unless ``value`` is True or False."""
    if not isinstance(value, (bool, np.bool_)):
        raise TypeError(f"{name} must be True or False, got {type(value).__name__}")
