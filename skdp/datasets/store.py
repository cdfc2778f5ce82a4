"""The data folder: find a file, check its bytes, or download it with pooch."""

import hashlib
import time
from collections.abc import Iterable
from importlib.resources import files
from numbers import Integral, Real
from os import PathLike, environ, fspath
from pathlib import Path
from typing import Any

from sklearn.utils import check_scalar

from skdp._compat import warn_user
from skdp.datasets.dataset import DataFile, Forms, official_form
from skdp.datasets.table import DATASETS

_ENVIRONMENT = "SKDP_DATA"


def data_folder(data_home: str | PathLike[str] | None) -> Path:
    """The data folder, without making it."""
    if data_home is None:
        data_home = environ.get(_ENVIRONMENT) or Path("~", "skdp_data")
    elif not isinstance(data_home, (str, PathLike)):
        raise TypeError(f"data_home must be a str, a path or None, got {data_home!r}.")
    return Path(fspath(data_home)).expanduser().absolute()


def get_data_home(data_home: str | PathLike[str] | None = None) -> str:
    """Return the path of the data folder and make it if it does not exist.

    Parameters
    ----------
    data_home : str, path-like or None, default=None
        The folder. ``None`` takes the environment variable ``SKDP_DATA``, else ``~/skdp_data``.

    Returns
    -------
    data_home : str
        Absolute path of the folder.

    Examples
    --------
    >>> import os, tempfile
    >>> from skdp.datasets import get_data_home
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     os.path.samefile(get_data_home(folder), folder)
    True
    """
    home = data_folder(data_home)
    home.mkdir(parents=True, exist_ok=True)
    return str(home)


def clear_data_home(data_home: str | PathLike[str] | None = None) -> None:
    """Delete the downloaded files of skdp from the data folder.

    Only files that :func:`list_datasets` names are deleted, and folders that are empty afterwards;
    anything else in the folder is left alone.

    Parameters
    ----------
    data_home : str, path-like or None, default=None
        The folder. ``None`` takes the environment variable ``SKDP_DATA``, else ``~/skdp_data``.

    Examples
    --------
    >>> import tempfile
    >>> from skdp.datasets import clear_data_home
    >>> clear_data_home(tempfile.mkdtemp())
    """
    home = data_folder(data_home)
    paths = {home / file.path for name in DATASETS for _, file in _files_of(name)}
    for path in paths:
        path.unlink(missing_ok=True)
    for folder in {path.parent for path in paths} | {home}:
        if folder.is_dir() and not any(folder.iterdir()):
            folder.rmdir()


def list_datasets(data_home: str | PathLike[str] | None = None) -> list[dict[str, Any]]:
    """List the data sets that skdp can load, and which of their files are at hand.

    Parameters
    ----------
    data_home : str, path-like or None, default=None
        The folder. ``None`` takes the environment variable ``SKDP_DATA``, else ``~/skdp_data``.

    Returns
    -------
    datasets : list of dict
        One for each data set, with ``name``, ``title``, ``function`` (of ``skdp.datasets``), ``home_page``,
        ``license``, ``n_features`` (None for text), ``n_rows`` (by subset), ``available`` (True where every subset
        can be read now) and ``files``: dicts with ``subset``, ``path`` (below the data folder), ``url``,
        ``sha256`` (accepted checksums; empty: not known, so never downloaded) and ``found`` (absolute path or
        None). Where a subset has several forms of a file, one of them is enough.

    Examples
    --------
    >>> from skdp.datasets import list_datasets
    >>> [entry["name"] for entry in list_datasets()][:3]
    ['rand_hie', 'a9a', 'ijcnn1']
    """
    home = data_folder(data_home)
    return [_bundled_entry(), *(_entry(name, home) for name in DATASETS)]


def _files_of(name: str) -> Iterable[tuple[str, DataFile]]:
    for subset, needed in DATASETS[name].files.items():
        for forms in needed:
            for file in forms:
                yield subset, file


def _entry(name: str, home: Path) -> dict[str, object]:
    dataset = DATASETS[name]
    return {
        "name": name,
        "title": dataset.title,
        "function": f"fetch_{name}",
        "home_page": dataset.home_page,
        "license": dataset.license,
        "n_features": dataset.n_features,
        "n_rows": dict(dataset.n_rows),
        "available": all(files_at_hand(name, part, home) is not None for part in dataset.files),
        "files": [
            {
                "subset": subset,
                "path": file.path,
                "url": file.url,
                "sha256": list(file.sha256),
                "found": str(home / file.path) if (home / file.path).is_file() else None,
            }
            for subset, file in _files_of(name)
        ],
    }


def _bundled_entry() -> dict[str, object]:
    path = files("skdp.datasets.data").joinpath("rand_hie.csv.xz")
    checksum = hashlib.sha256(path.read_bytes()).hexdigest()
    return {
        "name": "rand_hie",
        "title": "RAND Health Insurance Experiment, 20,190 person-years (in the package)",
        "function": "load_rand_hie",
        "home_page": "https://www.rand.org/health-care/projects/hie.html",
        "license": "public domain",
        "n_features": 30,
        "n_rows": {"all": 20190},
        "available": True,
        "files": [{"subset": "all", "path": path.name, "url": None, "sha256": [checksum], "found": str(path)}],
    }


def parts_of(name: str, subset: str, n_retries: int, delay: float) -> list[str]:
    """The parts that a fetcher's arguments ask for, after a check of the arguments."""
    known = list(DATASETS[name].files)
    choices = [*known, "all"] if len(known) > 1 else known
    if subset not in choices:
        named = " or ".join(", ".join(map(repr, choices)).rsplit(", ", 1))
        raise ValueError(f"subset must be {named}, got {subset!r}.")
    check_scalar(n_retries, "n_retries", Integral, min_val=1)
    check_scalar(delay, "delay", Real, min_val=0)
    return known if subset == "all" else [subset]


def files_at_hand(name: str, part: str, home: Path) -> list[DataFile] | None:
    """The form of each needed file that lies in the folder; None where one file is missing."""
    found = [_at_hand(forms, home) for forms in DATASETS[name].files[part]]
    return None if None in found else [file for file in found if file is not None]


def _at_hand(forms: Forms, home: Path) -> DataFile | None:
    return next((form for form in forms if (home / form.path).is_file()), None)


def fetch_files(
    name: str, part: str, *, data_home: Path, download_if_missing: bool, n_retries: int, delay: float
) -> list[Path]:
    """Paths of the checked files of one part ("train", "test" or "all")."""
    found = []
    for forms in DATASETS[name].files[part]:
        file = _at_hand(forms, data_home)
        if file is None:
            file = _choose_remote(name, part, forms, data_home, download_if_missing)
            _download(file, data_home, n_retries, delay)
        else:
            _check_bytes(data_home / file.path, file.sha256)
        found.append(data_home / file.path)
    return found


def how_to_get(name: str, part: str, home: Path) -> str:
    """Where the official files of a part come from and where to put them."""
    return " ".join(_how_to_get(name, official_form(forms), home) for forms in DATASETS[name].files[part])


def _how_to_get(name: str, official: DataFile, home: Path) -> str:
    source = official.url or f"a copy in LIBSVM's text format (see {DATASETS[name].home_page})"
    return (
        f"Get {source} and put it at {home / official.path} (or set SKDP_DATA or data_home to a "
        f"folder that holds {official.path})."
    )


def _choose_remote(name: str, part: str, forms: Forms, home: Path, download_if_missing: bool) -> DataFile:
    """The form that may be downloaded, or an OSError that says which file to put where."""
    official = official_form(forms)
    where = _how_to_get(name, official, home)
    others = " or ".join(str(home / form.path) for form in forms)
    if not download_if_missing:
        raise OSError(
            f"Data not found and `download_if_missing` is False: {name} ({part}) needs {others}. {where}"
        )
    if not official.sha256:
        dataset = DATASETS[name]
        features = dataset.n_features
        raise OSError(
            f"Data not found: {name} ({part}) needs {others}. skdp does not know the checksum of "
            f"this file and therefore does not download it. {where} When it is loaded, it must "
            f"have {dataset.n_rows[part]} rows"
            + ("." if features is None else f" and at most {features} features.")
        )
    return official


def _check_bytes(path: Path, checksums: tuple[str, ...]) -> None:
    if not checksums:
        return
    with path.open("rb") as stream:
        digest = hashlib.file_digest(stream, "sha256").hexdigest()
    if digest not in checksums:
        raise ValueError(
            f"{path} has the SHA256 checksum {digest}, expected {' or '.join(checksums)}: the "
            "file is damaged or another version. Remove it, then fetch again."
        )


def _download(file: DataFile, home: Path, n_retries: int, delay: float) -> None:
    import pooch

    target = home / file.path
    for attempt in range(n_retries):
        try:
            pooch.retrieve(file.url, known_hash=f"sha256:{file.sha256[0]}", fname=target.name, path=target.parent)
            return
        except OSError as error:
            if attempt + 1 < n_retries:
                warn_user(f"Download of {file.url} failed, trying again.", UserWarning)
                time.sleep(delay)
                continue
            raise OSError(
                f"Download of {file.url} failed after {n_retries} attempts ({error}). Without a "
                f"connection, get this file elsewhere and put it at {target} (or set SKDP_DATA or "
                f"data_home to a folder that holds {file.path})."
            ) from error
