"""Files that are read again for each pass: whether they are still the files that were looked at first."""

import os
from collections.abc import Iterable
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

_MAGIC = b"PAR1"  # the first and the last four bytes of a Parquet file
_TAIL = 8  # bytes at the end of a Parquet file: the length of the footer in four, and `_MAGIC`


@dataclass(frozen=True)
class FileState:
    """Public facts of a file that change with its content.

    Parameters
    ----------
    path : Path
    place : tuple of int
        Device and number of the file there: two paths with one place are one file.
    size : int
        In bytes.
    modified : int
        Time of the last change, in ns.
    footer : bytes
        Hash of a Parquet file's footer; empty for other files.
    """

    path: Path
    place: tuple[int, int]
    size: int
    modified: int
    footer: bytes

    @classmethod
    def of(cls, path: Path, *, parquet: bool) -> "FileState":
        """Look at a file; ValueError if it is to be a Parquet file and does not end as one."""
        with open(path, "rb") as file:
            facts = os.fstat(file.fileno())
            footer = b""
            if parquet:
                file.seek(max(facts.st_size - _TAIL, 0))
                tail = file.read(_TAIL)
                start = facts.st_size - _TAIL - int.from_bytes(tail[:4], "little")
                if tail[4:] != _MAGIC or start < len(_MAGIC):
                    raise ValueError(f"{path} is no Parquet file, or its footer is encrypted")
                file.seek(start)
                footer = blake2b(file.read(facts.st_size - start), digest_size=32).digest()
        return cls(path, (facts.st_dev, facts.st_ino), facts.st_size, facts.st_mtime_ns, footer)

    def check(self) -> None:
        """Raise RuntimeError if the file changed since it was looked at."""
        try:
            now = FileState.of(self.path, parquet=bool(self.footer))
        except OSError:
            changed = "it cannot be opened any more"
        except ValueError:
            changed = "it is no Parquet file any more"
        else:
            facts = {"size": "size", "modified": "time of change", "footer": "footer"}
            other = [told for name, told in facts.items() if getattr(now, name) != getattr(self, name)]
            if not other:
                return
            changed = f"it has another {' and another '.join(other)}"
        raise RuntimeError(
            f"{self.path} changed since the blocks were made: {changed}. All passes must read the same rows. Make "
            "the blocks anew from files that stay as they are; releases that were made before are paid for"
        )


def states_of(paths: Iterable[Path], *, parquet: bool) -> tuple[FileState, ...]:
    """Look at all files; ValueError if a file comes twice, as each of its rows would count twice."""
    states: dict[tuple[int, int], FileState] = {}
    for path in paths:
        state = FileState.of(path, parquet=parquet)
        if state.place in states:
            raise ValueError(f"{path} and {states[state.place].path} are one file: its rows would count twice")
        states[state.place] = state
    return tuple(states.values())
