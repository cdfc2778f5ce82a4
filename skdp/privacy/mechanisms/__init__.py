"""The mechanisms, a folder each: what it costs, and the same by other code."""

# All below goes when branch mech_release is merged, with the functions of `grid` that it moves to the folders.
import sys
from importlib import import_module
from types import ModuleType


class _Functions(ModuleType):
    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(import_module("skdp.privacy.mechanisms.grid"), name)

    def __setattr__(self, name: str, value: object) -> None:
        if not isinstance(value, ModuleType):
            setattr(import_module("skdp.privacy.mechanisms.grid"), name, value)
        elif name not in ("gaussian", "laplace"):  # functions of these names
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Functions
