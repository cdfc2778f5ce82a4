"""The functions ``fetch_*``: one for each entry of the table, all made by :func:`_fetcher`."""

import textwrap
from collections.abc import Callable
from os import PathLike
from typing import Any

import numpy as np
from scipy.sparse import issparse, vstack

from skdp.datasets.bunch import make_bunch, make_text_bunch
from skdp.datasets.store import data_folder, fetch_files, files_at_hand, how_to_get, parts_of
from skdp.datasets.table import DATASETS

__all__ = [f"fetch_{name}" for name in DATASETS]

_DOC = """Load {summary}.

{description}

Parameters
----------
data_home : str, path-like or None, default=None
    Folder of the files. ``None`` takes the environment variable ``SKDP_DATA``, else
    ``~/skdp_data``.
download_if_missing : bool, default=True
    Download a file that is not there; False raises OSError instead.
return_X_y : bool, default=False
    Return ``(data, target)`` instead of a Bunch.
as_frame : bool, default=False
    Return pandas objects; needs pandas.
n_retries : int, default=3
    Number of attempts of a download, at least 1.
delay : float, default=1.0
    Seconds between attempts.
subset : {subset}

Returns
-------
data : :class:`~sklearn.utils.Bunch`
{contents}
(data, target) : tuple
    With ``return_X_y=True``.

Raises
------
OSError
    A file is not there and is not or cannot be downloaded; the message names the file, its
    address and where to put it.
ValueError
    A file whose checksum or number of rows is not the expected one.

Examples
--------
>>> from skdp.datasets import fetch_{name}
>>> {example}  # doctest: +SKIP
"""

_SPLIT = """{"train", "test", "all"}, default="train"
    Which part, as the files give it; "all" is the training rows, then the test rows."""
_NO_SPLIT = """{"all"}, default="all"
    The files give no split: "all" is the only part."""


def _docstring(name: str) -> str:
    dataset = DATASETS[name]
    texts = dataset.n_features is None
    both = "all columns" if texts else "both"
    contents = [
        f"``data`` ({dataset.data})",
        f"``target`` ({dataset.target})",
        *filter(None, [dataset.also]),
        f"``frame`` (DataFrame with {both}, or None)",
        *([] if texts else ["``feature_names``"]),
        "``target_names``",
        "``DESCR``.",
    ]
    indent = " " * 4
    return _DOC.format(
        name=name,
        summary=dataset.summary,
        description=textwrap.fill(dataset.description, 96, break_on_hyphens=False),
        subset=_SPLIT if "train" in dataset.files else _NO_SPLIT,
        contents=textwrap.fill(
            ", ".join(contents), 96, initial_indent=indent, subsequent_indent=indent, break_on_hyphens=False
        ),
        example=f"{'texts' if texts else 'X'}, y = fetch_{name}(return_X_y=True)",
    )


def _joined(parts: list[Any]) -> Any:
    """The rows of several parts, one part after the other."""
    first = parts[0]
    if isinstance(first, dict):
        return {key: _joined([part[key] for part in parts]) for key in first}
    if isinstance(first, list):
        return [row for part in parts for row in part]
    return vstack(parts, format="csr") if issparse(first) else np.concatenate(parts)


def _read(name: str, part: str, options: dict[str, Any]) -> dict[str, Any]:
    """The records of one part, from files or from another library; their number is checked."""
    dataset = DATASETS[name]
    if dataset.library is not None and files_at_hand(name, part, options["data_home"]) is None:
        source = f"The copy that another library holds in {options['data_home']}"
        try:
            found = dataset.library(part, **options)
        except OSError as error:
            where = how_to_get(name, part, options["data_home"])
            raise OSError(f"Data not found: {name} ({part}): {error}. {where}") from error
    else:
        paths = fetch_files(name, part, **options)
        source, found = str(paths[0]), dataset.read(paths, part, dataset)
    rows = len(found["target"])
    if rows != dataset.n_rows[part]:
        raise ValueError(
            f"{source} has {rows} rows, expected {dataset.n_rows[part]}: it is not {name} "
            f"({part}), or it is damaged."
        )
    return found


def _load(name: str, subset: str, return_X_y: bool, as_frame: bool, **options: Any) -> object:
    parts = parts_of(name, subset, options["n_retries"], options["delay"])
    options["data_home"] = data_folder(options["data_home"])
    dataset = DATASETS[name]
    pieces = [_read(name, part, options) for part in parts]
    names, *_ = [piece.pop("feature_names", None) for piece in pieces]
    found = _joined(pieces)
    found |= {
        "target_name": dataset.target_name,
        "return_X_y": return_X_y,
        "as_frame": as_frame,
        "DESCR": dataset.description_with_source,
    }
    if isinstance(found["data"], list):
        return make_text_bunch(**found)
    if isinstance(found["data"], dict):
        names = list(found["data"])
    elif names is None:
        names = [f"x{column}" for column in range(found["data"].shape[1])]
    return make_bunch(feature_names=names, **found)


def _fetcher(name: str) -> Callable[..., Any]:
    default = "train" if "train" in DATASETS[name].files else "all"

    def fetch(
        *,
        data_home: str | PathLike[str] | None = None,
        download_if_missing: bool = True,
        return_X_y: bool = False,
        as_frame: bool = False,
        n_retries: int = 3,
        delay: float = 1.0,
        subset: str = default,
    ) -> Any:
        return _load(
            name,
            subset,
            return_X_y,
            as_frame,
            data_home=data_home,
            download_if_missing=download_if_missing,
            n_retries=n_retries,
            delay=delay,
        )

    fetch.__name__ = fetch.__qualname__ = f"fetch_{name}"
    fetch.__doc__ = _docstring(name)
    return fetch


def __getattr__(attribute: str) -> Any:
    """Make the fetcher of a data set when it is first asked for."""
    if attribute not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {attribute!r}")
    made = globals()[attribute] = _fetcher(attribute.removeprefix("fetch_"))
    return made
