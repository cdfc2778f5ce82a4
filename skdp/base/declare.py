"""Parameters of estimators, declared once: name, type, default, range, text, and whether they change a release.

A class below `Declared` writes each parameter as an annotated field::

    class Ridge(Declared, BaseEstimator):
        alpha: float = parameter(real(low=0), "Weight of the l2 penalty.", default=1.0)

It inherits the fields of its bases, the nearest in the order of methods first. Its constructor takes them by
keyword, stores them and checks nothing. Type checkers and editors know it, because `Declared` is a
``dataclass_transform``. `check_parameters` checks each value by its kind, and `skdp._docs.document` writes the
section Parameters of the docstring.

A subclass changes the default or the text of an inherited field with `changed`, and takes the field out of the
constructor with `fixed`. Fitted attributes are annotated with ``= fitted()``, which makes the section Attributes,
and constants of a class as ``ClassVar``, because a type checker takes every other annotation for a parameter.

A class with a constructor of its own keeps it, and so do the classes below it that declare nothing.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, Literal, TypeVar, cast, dataclass_transform

from sklearn.base import BaseEstimator

from skdp.base.kinds import Kind

Place = Literal["positional", "first", "targets", "middle", "last"]
Releases = bool | Literal["unless default"]
T = TypeVar("T")


@dataclass(frozen=True)
class Parameter:
    """The declaration of a parameter, besides its name and annotation.

    Attributes
    ----------
    default : object
    kind : Kind
    text : str
        Description for the docstring.
    releases : bool or "unless default"
        Whether the value changes what is released, so that it separates the noise of two fits with one seed;
        "unless default" if the default changes nothing.
    place : {"positional", "first", "targets", "middle", "last"}
        Where the parameter stands in the signature and in the docstring. All but "positional" ones are taken by
        keyword only.
    """

    default: object
    kind: Kind
    text: str
    releases: Releases = True
    place: Place = "middle"

    def changes_releases(self, value: object) -> bool:
        """Whether a value separates the noise of two fits with one seed."""
        if self.releases != "unless default":
            return bool(self.releases)
        return value is not None if self.default is None else bool(value != self.default)

    @cached_property
    def default_passes(self) -> bool:
        """Whether the default is of the kind: then no fit need check it again."""
        try:
            self.kind.check("default", self.default)
        except (TypeError, ValueError):
            return False
        return True


@dataclass(frozen=True)
class _Change:
    """A parameter that differs from the inherited one."""

    default: object
    kind: Kind | None
    text: str | None
    more: str
    releases: Releases | None

    def of(self, inherited: Parameter) -> Parameter:
        default = inherited.default if self.default is _KEPT else self.default
        text = inherited.text if self.text is None else self.text
        if self.more:
            text = f"{inspect.cleandoc(text)}\n{inspect.cleandoc(self.more)}"
        releases = inherited.releases if self.releases is None else self.releases
        return replace(inherited, default=default, kind=self.kind or inherited.kind, text=text, releases=releases)


@dataclass(frozen=True)
class _Fixed:
    """A value that is no parameter."""

    value: object


@dataclass(frozen=True)
class Attribute:
    """The declaration of a fitted attribute, besides its name and annotation; see `fitted`."""

    words: str
    text: str
    is_set: bool


_OF_ALL = ("privacy_", "n_features_in_", "feature_names_in_")
_KEPT: object = object()  # stands for "as inherited"


def parameter(kind: Kind, text: str, *, default: T, releases: Releases = True, place: Place = "middle") -> T:
    """Declare a parameter of the constructor; see `Parameter`.

    Parameters
    ----------
    kind : Kind
        Made by `real`, `integer`, `choice`, `flag`, `callback` or `described` of `skdp.base.kinds`.
    text : str
        Description for the docstring; its lines are cleaned like a docstring.
    default : object
        Type checkers look for this keyword.
    releases : bool or "unless default", default=True
    place : {"first", "targets", "middle", "last"}, default="middle"
    """
    return cast("T", Parameter(default, kind, text, releases, place))


def positional(
    kind: Kind, text: str, *, default: object = inspect.Parameter.empty, kw_only: Literal[False] = False
) -> Any:
    """Declare a parameter that comes first and may be given without its name; see `Parameter`.

    scikit-learn passes the estimator of a search without its name. Without a default it must be given.
    """
    return Parameter(default, kind, text, place="positional")


def changed(
    *,
    default: object = _KEPT,
    kind: Kind | None = None,
    text: str | None = None,
    more: str = "",
    releases: Releases | None = None,
) -> Any:
    """Declare an inherited parameter with another default, kind or text, or with ``more`` lines of text.

    Annotate the field if its default changes, and only then: type checkers take a field with an annotation and
    without a default for a parameter that must be given.
    """
    return _Change(default, kind, text, more, releases)


def fixed(*, default: T, init: Literal[False] = False) -> T:
    """Take an inherited parameter out of the constructor: the attribute has this value for good."""
    return cast("T", _Fixed(default))


def fitted(words: str = "", text: str = "", *, is_set: bool = True, init: Literal[False] = False) -> Any:
    """Declare an attribute that `fit` sets.

    Parameters
    ----------
    words : str, default=""
        Its type in the docstring.
    text : str, default=""
        Its description. Without one it is the inherited description, or a text of `skdp._docs`.
        Declare a new attribute by ``fitted(type, text)``.
    is_set : bool, default=True
        False of an inherited attribute that the fits of this class do not set.
    """
    return Attribute(words, text, is_set)


@dataclass_transform(
    kw_only_default=True, eq_default=False, field_specifiers=(parameter, positional, changed, fixed, fitted)
)
class Declared:
    """Base of classes whose parameters are fields; put it before `BaseEstimator`."""

    # The fields that a class declares itself, and all that it declares or inherits.
    _own_fields: ClassVar[dict[str, object]] = {}
    _parameters: ClassVar[dict[str, Parameter]] = {}
    _attributes: ClassVar[dict[str, Attribute]] = {}
    # Parameters that are gone, and their replacement.
    _gone: ClassVar[dict[str, str]] = {}

    def __init_subclass__(cls, **kwargs: object) -> None:
        super().__init_subclass__(**kwargs)
        cls._own_fields = _take_fields(cls)
        cls._parameters = _ordered(cls, _inherited(cls))
        cls._attributes = _fitted_by(cls)
        if not _keeps_constructor(cls):
            cls.__init__ = _constructor(cls)  # type: ignore[method-assign]
        # Sphinx would show the signature of `__new__`, where a class has one.
        own = list(inspect.signature(cls.__init__).parameters.values())[1:]
        cls.__signature__ = inspect.Signature(own)  # type: ignore[attr-defined]


def _take_fields(cls: type) -> dict[str, object]:
    """Remove the fields from the class body, and leave the values of parameters and constants in their place."""
    marks = (Parameter, _Change, _Fixed, Attribute)
    found: dict[str, object] = {k: v for k, v in vars(cls).items() if isinstance(v, marks)}
    for name, field in found.items():
        value = field.value if isinstance(field, _Fixed) else getattr(field, "default", _KEPT)
        if value is _KEPT or value is inspect.Parameter.empty:
            delattr(cls, name)
        else:
            setattr(cls, name, value)
    return found


def _keeps_constructor(cls: type) -> bool:
    for base in cls.__mro__:
        written = vars(base).get("__init__")
        if written is not None:
            generated = base is object or hasattr(written, "_of_fields")
            return not generated and (base is cls or not vars(cls)["_own_fields"])
    raise AssertionError("every class has a constructor")


def _inherited(cls: type) -> dict[str, Parameter]:
    """All parameters of the constructor of a class."""
    found: dict[str, Parameter] = {}
    for base in reversed(cls.__mro__):
        for name, field in vars(base).get("_own_fields", {}).items():
            if isinstance(field, Parameter):
                found[name] = field
            elif isinstance(field, _Change) and name in found:
                found[name] = field.of(found[name])
            elif isinstance(field, _Change):
                if issubclass(cls, BaseEstimator):  # a mixin may change what comes after it among the bases
                    raise TypeError(f"{base.__name__}.{name} changes a parameter that no base declares")
            else:
                found.pop(name, None)
    return found


def _fitted_by(cls: type) -> dict[str, Attribute]:
    """The attributes that `fit` sets: first the method's, then the ones of every estimator."""
    found: dict[str, Attribute] = {}
    for base in reversed(cls.__mro__):
        for name, field in vars(base).get("_own_fields", {}).items():
            if isinstance(field, Attribute) and not (field.is_set and not field.text and name in found):
                found[name] = field
    names = [name for name, field in found.items() if field.is_set]
    return {name: found[name] for name in sorted(names, key=lambda name: name in _OF_ALL)}


def _ordered(cls: type, found: dict[str, Parameter]) -> dict[str, Parameter]:
    """Parameters by their place; within a place those that the nearest class introduces come first."""
    near: dict[str, int] = {}
    for depth, base in enumerate(cls.__mro__):
        for name, field in vars(base).get("_own_fields", {}).items():
            if isinstance(field, Parameter):
                near[name] = depth
    positions = ("positional", "first", "targets", "middle", "last")
    names = sorted(found, key=lambda name: (positions.index(found[name].place), near[name]))
    return {name: found[name] for name in names}


def _constructor(cls: type[Declared]) -> Callable[..., None]:
    fields = cls._parameters
    by_place = [name for name, field in fields.items() if field.place == "positional"]
    required = [k for k, field in fields.items() if field.default is inspect.Parameter.empty]
    defaults = {k: field.default for k, field in fields.items() if k not in required}
    types = {k: v for base in reversed(cls.__mro__) for k, v in inspect.get_annotations(base).items()}

    def __init__(self: Declared, *given: object, **values: object) -> None:
        called = f"{type(self).__name__}.__init__()"
        if len(given) > len(by_place):
            raise TypeError(
                f"{called} takes {1 + len(by_place)} positional arguments but {1 + len(given)} were given"
            )
        for name in values.keys() - fields.keys():
            hint = f": give {self._gone[name]}" if name in self._gone else ""
            raise TypeError(f"{called} got an unexpected keyword argument {name!r}{hint}")
        for name, value in zip(by_place, given):
            if name in values:
                raise TypeError(f"{called} got multiple values for argument {name!r}")
            values[name] = value
        for name in required:
            if name not in values:
                raise TypeError(f"{called} missing 1 required argument: {name!r}")
        vars(self).update({**defaults, **values})

    __init__.__qualname__ = f"{cls.__qualname__}.__init__"
    vars(__init__)["_of_fields"] = True
    vars(__init__)["__signature__"] = inspect.Signature(
        [
            inspect.Parameter("self", inspect.Parameter.POSITIONAL_OR_KEYWORD),
            *(
                inspect.Parameter(
                    name,
                    inspect.Parameter.POSITIONAL_OR_KEYWORD
                    if name in by_place
                    else inspect.Parameter.KEYWORD_ONLY,
                    default=field.default,
                    annotation=types[name],
                )
                for name, field in fields.items()
            ),
        ],
        return_annotation=None,
    )
    return __init__


def parameters_of(estimator: object) -> dict[str, Parameter]:
    """Return the parameters of the constructor of an estimator, or of its class, that are declared."""
    cls = estimator if isinstance(estimator, type) else type(estimator)
    declared: dict[str, Parameter] = getattr(cls, "_parameters", {})
    return {x: declared[x] for x in inspect.signature(cls).parameters if x in declared}


def declares(estimator: object, name: str) -> bool:
    """Whether an estimator, or its class, has a parameter of this name."""
    cls = estimator if isinstance(estimator, type) else type(estimator)
    return name in inspect.signature(cls).parameters


def check_parameters(estimator: object, prefix: str = "") -> None:
    """Check each declared parameter by its kind, also where a constructor of a subclass's own leaves it out.

    Parameters
    ----------
    estimator : object
    prefix : str, default=""
        Stands before the names in messages.

    Raises
    ------
    TypeError, ValueError
        With the name of the first one that is not of its kind.
    """
    for name, declared in getattr(estimator, "_parameters", {}).items():
        value = getattr(estimator, name)
        if value is not declared.default or not declared.default_passes:
            declared.kind.check(f"{prefix}{name}", value)


@dataclass(frozen=True)
class WordOrObject:
    """A word, or an object with declared parameters; see `word_or_object`."""

    choices: tuple[str, ...]
    types: tuple[type, ...]

    @property
    def words(self) -> str:
        names = [cls.__name__ for cls in self.types]
        listed = [*(f'"{word}"' for word in self.choices), *names]
        return " or ".join([", ".join(listed[:-1]), listed[-1]])

    def check(self, name: str, value: object) -> None:
        if isinstance(value, self.types):
            check_parameters(value, f"{name}__")
        elif not isinstance(value, str) or value not in self.choices:
            objects = " or ".join(f"{cls.__name__}(...)" for cls in self.types)
            raise (ValueError if isinstance(value, str) else TypeError)(
                f"{name} must be one of {list(self.choices)} or an object {objects}, got {value!r}"
            )


def word_or_object(*words: str, types: tuple[type, ...]) -> Kind:
    """One of these strings, or an object of one of these classes, whose declared parameters are checked, too."""
    return WordOrObject(words, types)
