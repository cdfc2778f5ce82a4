"""Lazy exports: a package offers names whose modules are imported when a name is first used."""

import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

__all__ = ["lazy_exports", "stub_of"]

_EXPORTS: dict[str, dict[str, str]] = {}  # what each package offers, for its stub


def lazy_exports(
    package: str, names: Mapping[str, str], modules: tuple[str, ...] = ()
) -> tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]:
    """Make what a package's ``__init__`` needs to offer names that it has not imported yet.

    Type checkers read the package's ``__init__.pyi``, which ``tools/make_stubs.py`` writes from the same names.

    Parameters
    ----------
    package : str
        The package's ``__name__``.
    names : mapping of str to str
        Each name, and the module that defines it.
    modules : tuple of str, default=()
        Submodules that the package offers under their own names.

    Returns
    -------
    __getattr__ : callable
    __dir__ : callable
    __all__ : list of str
    """
    _EXPORTS[package] = {**names, **dict.fromkeys(modules, package)}
    public, namespace = sorted(_EXPORTS[package]), vars(sys.modules[package])

    def module_getattr(name: str) -> Any:
        if name in names:
            value = getattr(import_module(names[name]), name)
        elif name in modules:
            value = import_module(f"{package}.{name}")
        else:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        namespace[name] = value
        return value

    def module_dir() -> list[str]:
        return sorted({*namespace, *public})

    return module_getattr, module_dir, public


def stub_of(package: str) -> str:
    """Return the text of ``__init__.pyi`` of a package that has lazy exports."""
    import_module(package)
    exports = sorted(_EXPORTS[package].items(), key=lambda item: (item[1], item[0]))
    lines = [f"from {module} import {name} as {name}" for name, module in exports]
    return "\n".join(["# Written by tools/make_stubs.py.", "", *lines, ""])
