"""The terms that the parties compare before anything is charged: the noise and the grid that each of them would
use.

The plan's hash says that all parties read the same text. Each party computes its terms from this text, so they are
compared, too: a party whose software or mathematical library computes something else would count other noise than
the servers draw. Each party announces its terms to the servers, and each server to all owners, when the data are
read and before the first noise is laid.

The width of the grid, the scale and the sensitivity may differ by `TOLERANCE`, relatively, because two machines
may differ in the last digits of a logarithm. The servers then draw noise of the largest scale that anybody
announced: each party's claim, which counts its own scale, holds. All other terms must be equal.
"""

import hashlib
import math
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from skdp._version import __version__
from skdp.multiparty.release import NOISES
from skdp.privacy import Opening

TOLERANCE = 2.0**-40
"""Relative difference that different mathematical libraries may make: a root is found to 2^-50 or so."""

_FORM = struct.Struct("<BIQQddd")
_ROOT = Path(__file__).parents[2]  # skdp
_SOURCES = (".py", ".npz")  # code, and the table of the sampler
_LETTERS = 16  # of the digest of the sources: 64 bits find every mistake


@cache
def software() -> str:
    """Version of skdp and a digest of its source files: the code that draws the noise and computes the claim.

    Returns
    -------
    str
        Like ``0.1.0+90ab12cd34ef5678``. Line endings do not count.
    """
    digest = hashlib.sha256()
    paths = (path for path in _ROOT.rglob("*") if path.suffix in _SOURCES)
    for path in sorted(paths, key=lambda path: path.relative_to(_ROOT).as_posix()):
        text = path.read_bytes().replace(b"\r\n", b"\n")
        name = path.relative_to(_ROOT).as_posix().encode()
        digest.update(struct.pack("<QQ", len(name), len(text)) + name + text)
    return f"{__version__}+{digest.hexdigest()[:_LETTERS]}"


class BadTerms(ValueError):
    """The bytes are no terms of a party."""


@dataclass(frozen=True)
class PlanTerms:
    """One party's terms for the openings to come.

    Attributes
    ----------
    opening : Opening
        Public numbers only.
    """

    opening: Opening

    def pack(self) -> bytes:
        """The payload of the frame."""
        o = self.opening
        kind = NOISES.index(o.noise)
        return _FORM.pack(kind, o.n_owners, o.n_values, o.releases, o.scale, o.grid, o.sensitivity)

    @staticmethod
    def unpack(payload: bytes) -> "PlanTerms":
        """The terms that `pack` wrote.

        Raises
        ------
        BadTerms
        """
        if len(payload) != _FORM.size:
            raise BadTerms("terms have another length")
        kind, n_owners, n_values, releases, scale, grid, sensitivity = _FORM.unpack(payload)
        positive = all(0.0 < number < math.inf for number in (scale, grid, sensitivity))
        if kind >= len(NOISES) or not positive:
            raise BadTerms("terms have numbers that no party can have")
        opening = Opening(
            n_owners=n_owners, n_values=n_values, noise=NOISES[kind], scale=scale, grid=grid,
            sensitivity=sensitivity, releases=releases,
        )  # fmt: skip
        return PlanTerms(opening)

    def agree(self, other: "PlanTerms") -> bool:
        """Whether another party would use the same, but for the last digits of a float."""
        mine, theirs = self.opening, other.opening
        equal = all(
            getattr(mine, name) == getattr(theirs, name) for name in ("n_owners", "n_values", "noise", "releases")
        )
        return equal and all(
            math.isclose(getattr(mine, name), getattr(theirs, name), rel_tol=TOLERANCE)
            for name in ("scale", "grid", "sensitivity")
        )

    def __str__(self) -> str:
        o = self.opening
        return (
            f"{o.noise} noise of scale {o.scale!r} units, grid {o.grid!r}, sensitivity {o.sensitivity!r}, "
            f"{o.releases} openings of {o.n_values} values"
        )
