"""Hooks: the methods of the frames of a fit that classes of skdp override, against the documented list."""

import importlib
import inspect
import pkgutil
import re
from pathlib import Path

import skdp
from skdp.base import PrivateFit
from skdp.base.fit import FitFrame
from skdp.fitting.linear import LinearFit

PAGE = Path(__file__).parents[2] / "docs" / "contributing" / "architecture.rst"
MOST = 22


def subclasses(kind):
    for found in kind.__subclasses__():
        yield found
        yield from subclasses(found)


def overridden():
    """Names of methods and properties, each with the classes that override it."""
    for module in pkgutil.walk_packages(skdp.__path__, "skdp."):
        importlib.import_module(module.name)
    hooks = {}
    for frame in (FitFrame, PrivateFit, LinearFit):
        own = {k for k, v in vars(frame).items() if inspect.isfunction(v) or isinstance(v, property)}
        for kind in set(subclasses(frame)):
            if kind.__module__.startswith("skdp."):
                for nearer in kind.__mro__[: kind.__mro__.index(frame)]:
                    for name in own & vars(nearer).keys():
                        hooks.setdefault(name, set()).add(nearer.__name__)
    return {name: kinds for name, kinds in hooks.items() if not name.startswith("__")}


def test_classes_override_the_documented_hooks_and_no_other_method():
    section = PAGE.read_text().split("Hooks\n-----")[1]
    listed = re.findall(r'^   "``(\w+)``", ', section, re.MULTILINE)
    hooks = overridden()
    assert len(listed) == len(set(listed)) <= MOST
    assert {name: kinds for name, kinds in hooks.items() if name not in listed} == {}
    assert set(listed) <= hooks.keys(), "the list has methods that no class overrides"
