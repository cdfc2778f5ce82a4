"""The entry of one data set in the table, and of one of its files."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class DataFile:
    """One form of one file; the first checksum is for the file at `url`."""

    path: str
    sha256: tuple[str, ...] = ()
    url: str | None = None


Forms = tuple[DataFile, ...]  # the same records, packed in several ways; the first found is read


def official_form(forms: Forms) -> DataFile:
    """The form that a user can get: the one with an address, else the last."""
    return next((form for form in forms if form.url is not None), forms[-1])


@dataclass(frozen=True)
class Dataset:
    """All that differs between two fetchers.

    `files[subset]` lists the needed files, each in all its forms. `read` takes the paths, the subset and this
    object, and returns ``data``, ``target`` and the other entries of the Bunch. `library` asks another library for
    the records when no file is at hand: it takes the subset and the options of a fetcher, and returns the same as
    `read`.
    """

    title: str
    home_page: str
    license: str
    n_features: int | None
    n_rows: dict[str, int]
    read: Callable[[Sequence[Path], str, "Dataset"], dict[str, Any]]
    # For the docstring: the summary, a paragraph, and the contents of `data` and `target`.
    summary: str
    description: str
    data: str
    target: str
    also: str = ""
    target_name: str = "label"
    library: Callable[..., dict[str, Any]] | None = None
    files: dict[str, tuple[Forms, ...]] = field(default_factory=dict)

    @property
    def description_with_source(self) -> str:
        """The ``DESCR`` of the Bunch."""
        return f"{self.title}. License: {self.license}. Source: {self.home_page}"
