"""Declared parameters: constructors, their signatures and documentation, and checks."""

import inspect
import pickle
from math import inf, nan
from typing import ClassVar, Literal

import numpy as np
import pytest
from sklearn.base import BaseEstimator, RegressorMixin, clone

import skdp
from skdp._docs import document
from skdp.base.declare import (
    Declared,
    changed,
    check_parameters,
    declares,
    fitted,
    fixed,
    parameter,
    parameters_of,
    positional,
)
from skdp.base.kinds import Required, callback, choice, described, flag, integer, real, share


class Frame(Declared, BaseEstimator):
    alpha: float = parameter(real(low=0), "Weight of the penalty.", default=1.0)
    seed: int | None = parameter(integer(none=True), "Seed.", default=None, releases=False, place="last")
    epsilon: float = parameter(real(low=0, strict=True), "Budget.", default=1.0, place="first")
    coef_: np.ndarray = fitted()
    constant: ClassVar[int] = 3


class Mixin(Declared):
    beta: float | Literal["auto"] = parameter(real(low=0, word="auto"), "Beta.", default="auto")


class Model(Mixin, RegressorMixin, Frame):
    """A model.

    Attributes
    ----------
    coef_ : ndarray
    """

    gamma: bool = parameter(flag(), "Gamma.", default=True)
    alpha: float = changed(default=0.5, more="0 is none.")


class Left(Frame):
    alpha: float = changed(default=2.0)


class Right(Frame):
    """Changes nothing."""


class Diamond(Right, Left):
    """Takes the default of the nearest class that changes it."""


def names(cls):
    return list(inspect.signature(cls).parameters)


def test_a_constructor_takes_all_fields_by_keyword_and_stores_them():
    assert names(Model) == ["epsilon", "gamma", "beta", "alpha", "seed"]
    model = Model(alpha=3, seed=7)
    assert model.get_params() == {"epsilon": 1.0, "gamma": True, "beta": "auto", "alpha": 3, "seed": 7}
    assert vars(model) == model.get_params()
    with pytest.raises(TypeError, match="positional"):
        Model(3.0)
    with pytest.raises(TypeError, match="unexpected keyword argument 'delta'"):
        Model(delta=1.0)


def test_the_nearest_change_counts_in_a_diamond():
    assert Diamond().alpha == Left().alpha == 2.0
    assert Right().alpha == 1.0


def test_copies_are_alike():
    model = Model(beta=2.0)
    for copy in (clone(model), pickle.loads(pickle.dumps(model)), Model().set_params(beta=2.0)):
        assert copy.get_params() == model.get_params()
    assert repr(model) == "Model(beta=2.0)"
    assert not hasattr(model, "coef_")


def test_a_fixed_field_leaves_the_constructor():
    class Fixed(Model):
        beta: float | Literal["auto"] = fixed(default=4.0)

    assert "beta" not in names(Fixed)
    assert Fixed().beta == 4.0
    assert not declares(Fixed, "beta")
    assert declares(Fixed(), "alpha")


def test_a_parameter_that_is_gone_names_the_new_one():
    class Renamed(Model):
        _gone = {"penalty": "alpha=..."}

    with pytest.raises(TypeError, match=r"unexpected keyword argument 'penalty': give alpha=\.\.\."):
        Renamed(penalty=1.0)


def test_a_hand_written_constructor_stays_and_is_inherited():
    class Own(Model):
        def __init__(self, *, only=1):
            super().__init__()
            self.only = only

    class Below(Own):
        pass

    assert names(Own) == names(Below) == ["only"]
    assert Below(only=2).get_params() == {"only": 2}
    assert Below().alpha == 0.5
    assert parameters_of(Below) == {}


def test_inherited_declarations_are_checked_where_a_constructor_leaves_them_out():
    class Own(Model):
        def __init__(self, *, beta=-1.0):
            super().__init__(beta=beta)
            self.beta = beta

    with pytest.raises(ValueError, match=r"^beta must be >= 0"):
        check_parameters(Own())
    assert list(parameters_of(Own)) == ["beta"]

    class Hidden(Model):
        def __init__(self, *, only=1):
            super().__init__(alpha=-1.0)
            self.only = only

    with pytest.raises(ValueError, match=r"^alpha must be >= 0"):
        check_parameters(Hidden())


def test_a_change_without_a_field_is_refused():
    with pytest.raises(TypeError, match=r"Wrong\.zeta changes a parameter that no base declares"):

        class Wrong(Model):
            zeta = changed(more="Nothing.")


def test_the_docstring_is_made_of_the_fields():
    made = document()(Model)
    doc = inspect.getdoc(made)
    assert "alpha : float, default=0.5\n    Weight of the penalty.\n    0 is none.\n" in doc
    assert 'beta : float or "auto", default="auto"\n    Beta.\n' in doc
    assert doc.index("Parameters") < doc.index("epsilon :") < doc.index("seed :") < doc.index("Attributes")


KINDS = [
    (real(low=0), [0, 1.5, inf, np.float64(2)], [-1, nan, "auto", None, True, 1j]),
    (real(low=0, strict=True, finite=True), [1e-9], [0, inf, -inf, nan]),
    (real(low=1, high=2, word="auto", none=True), [1, 2, "auto", None], [0.9, 2.1, "most"]),
    (integer(low=1), [1, np.int64(3)], [0, 1.0, True, "1", None]),
    (integer(word="auto"), [-4, "auto"], ["many", None, 2.5]),
    (choice("a", "b"), ["a", "b"], ["c", None, 1]),
    (flag(), [True, np.False_], [0, None, "yes"]),
    (callback(), [None, print], [3, "print"]),
    (described("anything"), [None, object()], []),
]


@pytest.mark.parametrize(("kind", "good", "bad"), KINDS)
def test_kinds(kind, good, bad):
    for value in good:
        kind.check("name", value)
    for value in bad:
        with pytest.raises((TypeError, ValueError), match=r"^name must be "):
            kind.check("name", value)


def test_checks_name_the_parameter_and_its_hint():
    model = Model(beta=-1.0)
    with pytest.raises(ValueError, match=r"^beta must be >= 0 or 'auto', got -1\.0$"):
        check_parameters(model)
    hinted = integer(low=1, hint=" (n takes all)")
    with pytest.raises(ValueError, match=r"must be >= 1, got 0 \(n takes all\)$"):
        hinted.check("batch_size", 0)


@pytest.mark.parametrize("name", [name for name, _ in skdp.all_estimators()])
def test_every_estimator_declares_and_documents_its_parameters(name):
    """Signature, declarations and docstring say the same, and nothing is annotated as a parameter by accident."""
    cls = dict(skdp.all_estimators())[name]
    assert names(cls) == list(parameters_of(cls))
    assert inspect.signature(cls) == inspect.signature(cls.__init__).replace(
        parameters=list(inspect.signature(cls.__init__).parameters.values())[1:],
        return_annotation=inspect.Signature.empty,
    )
    for one, declared in parameters_of(cls).items():
        assert f"\n    {one} : " in cls.__doc__ or f"\n{one} : " in cls.__doc__
        assert declared.text.strip().endswith("."), one
        if not isinstance(declared.kind, Required):  # which has no default that a fit would take
            declared.kind.check(one, declared.default)


class Around(Declared, BaseEstimator):
    cv: int = parameter(integer(low=2), "Folds.", default=5)
    estimator: object = positional(described("estimator"), "What is fitted inside.")
    grid: object = positional(described("dict"), "What is tried.", default=None)


def test_positional_parameters_come_first_and_without_a_default_must_be_given():
    made = Around("model", {"alpha": [1]}, cv=3)
    assert list(inspect.signature(Around).parameters) == ["estimator", "grid", "cv"]
    assert clone(made).get_params() == {"estimator": "model", "grid": {"alpha": [1]}, "cv": 3}
    for given, named, words in (
        ((), {}, "missing 1 required argument: 'estimator'"),
        (("model",), {"estimator": "other"}, "multiple values for argument 'estimator'"),
        (("model", {}, 3), {}, "takes 3 positional arguments but 4 were given"),
    ):
        with pytest.raises(TypeError, match=words):
            Around(*given, **named)


def test_the_open_end_of_a_range_is_refused():
    for kind, words in ((share(), "strictly between 0 and 1"), (real(low=0, below=1), r"in \[0, 1\)")):
        kind.check("test_size", 0.5)
        with pytest.raises(ValueError, match=f"test_size must be {words}, got 1"):
            kind.check("test_size", 1)
