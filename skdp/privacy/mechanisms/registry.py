"""The register of mechanisms: the name of a ledger row, and the package that knows the cost of such rows.

A package has a module ``cost`` with ``RELEASE``, its kind of `Release`, and a module ``recheck`` with ``terms``,
the same cost of a row by other code. Both are imported when a row asks for them, and neither by this module: so
the recheck shares nothing with the types of releases.
"""

from collections.abc import Mapping
from importlib import import_module
from types import ModuleType
from typing import Literal

from skdp.exceptions import UnsupportedAccounting

_HERE = "skdp.privacy.mechanisms"
_PACKAGES = {
    "above_threshold": f"{_HERE}.sparse_vector",
    "best_of": f"{_HERE}.best_of",
    "gaussian": f"{_HERE}.gaussian",
    "gumbel_top_k": f"{_HERE}.top_k",
    "laplace": f"{_HERE}.laplace",
    "objective_perturbation": f"{_HERE}.objective_perturbation",
    "projected_gaussian": f"{_HERE}.projected_gaussian",
    "sampled_pure": f"{_HERE}.sampled_pure",
    "selected_gaussian": f"{_HERE}.selected_gaussian",
}
# A vocabulary is a Gaussian release, and its rows say so; this key of them tells the mechanism.
_BY_KEY = {("gaussian", "threshold"): f"{_HERE}.vocabulary"}


def register_mechanism(name: str, package: str) -> None:
    """Make the ledger rows of a mechanism known, in this process.

    Parameters
    ----------
    name : str
        ``name`` of its rows.
    package : str
        Import path of the package with the modules ``cost`` and ``recheck``.

    Raises
    ------
    ValueError
        If the rows of another package have this name.
    """
    if not isinstance(name, str) or not isinstance(package, str):
        raise TypeError(f"name and package must be str, got {name!r} and {package!r}.")
    if _PACKAGES.setdefault(name, package) != package:
        raise ValueError(f"{name!r} is the name of rows of {_PACKAGES[name]} already: choose another name.")


def mechanism_names() -> list[str]:
    """The names of all rows that are known."""
    return sorted(_PACKAGES)


def module_of(row: Mapping[str, object], part: Literal["cost", "recheck"]) -> ModuleType:
    """The module ``cost`` or ``recheck`` of a row's mechanism.

    Raises
    ------
    ValueError
        If no mechanism has the name of the row.
    UnsupportedAccounting
        If the package of the mechanism has no such module, or is not installed.
    """
    name = row.get("name")
    if not isinstance(name, str) or name not in _PACKAGES:
        raise ValueError(
            f"name of a ledger row must be one of {mechanism_names()}, got {name!r}. Import the package "
            "of another mechanism first, which calls skdp.privacy.mechanisms.registry.register_mechanism, and "
            "read a row of a later version of skdp with that version."
        )
    package = next((p for (n, key), p in _BY_KEY.items() if n == name and key in row), _PACKAGES[name])
    try:
        return import_module(f"{package}.{part}")
    except ModuleNotFoundError as error:
        if error.name is None or not f"{package}.{part}".startswith(error.name):
            raise  # something that the module needs
        raise UnsupportedAccounting(
            f"{name!r} rows have no {part}: there is no module {error.name!r}. No claim is made without it: "
            f"install the package {package!r} whole."
        ) from error
