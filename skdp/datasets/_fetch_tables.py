"""Tables with columns of several types: UCI Adult and KDD Cup 1999."""

import csv
import lzma
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from skdp.datasets._bunch import make_bunch
from skdp.datasets._documented import documented
from skdp.datasets._registry import DATASETS
from skdp.datasets._store import fetch_files

__all__ = ["fetch_adult", "fetch_kddcup99"]

_ADULT = {
    "age": np.int64,
    "workclass": object,
    "fnlwgt": np.int64,
    "education": object,
    "education-num": np.int64,
    "marital-status": object,
    "occupation": object,
    "relationship": object,
    "race": object,
    "sex": object,
    "capital-gain": np.int64,
    "capital-loss": np.int64,
    "hours-per-week": np.int64,
    "native-country": object,
}

_KDD_COUNTS = (
    ["src_bytes", "dst_bytes", "land", "wrong_fragment", "urgent", "hot", "num_failed_logins"]
    + ["logged_in", "num_compromised", "root_shell", "su_attempted", "num_root"]
    + ["num_file_creations", "num_shells", "num_access_files", "num_outbound_cmds"]
    + ["is_host_login", "is_guest_login", "count", "srv_count"]
)
_KDD_RATES = ["serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate"]
_KDD_RATES += ["same_srv_rate", "diff_srv_rate", "srv_diff_host_rate"]
_KDD_HOST = ["same_srv_rate", "diff_srv_rate", "same_src_port_rate", "srv_diff_host_rate"]
_KDD_HOST += ["serror_rate", "srv_serror_rate", "rerror_rate", "srv_rerror_rate"]
_KDD_COLUMNS: list[tuple[str, Any]] = (
    [("duration", np.int64)]
    + [(name, "U16") for name in ("protocol_type", "service", "flag")]
    + [(name, np.int64) for name in _KDD_COUNTS]
    + [(name, np.float64) for name in _KDD_RATES]
    + [(name, np.int64) for name in ("dst_host_count", "dst_host_srv_count")]
    + [(f"dst_host_{name}", np.float64) for name in _KDD_HOST]
    + [("label", "U24")]
)
_KDD = np.dtype(_KDD_COLUMNS)


def _read_adult(path: Path) -> dict[str, np.ndarray]:
    opener = lzma.open if path.suffix == ".xz" else open
    with opener(path, "rt", encoding="ascii", newline="") as stream:
        # The test file begins with a remark, and both end with an empty line.
        rows = [r for r in csv.reader(stream, skipinitialspace=True) if len(r) == len(_ADULT) + 1]
    *cells, labels = zip(*rows)
    columns = {}
    for (name, dtype), column in zip(_ADULT.items(), cells):
        values = [np.nan if dtype is object and cell == "?" else cell for cell in column]
        columns[name] = np.array(values, dtype=dtype)
    # The labels of the test file end with a dot.
    columns["income"] = np.array([label.rstrip(".") for label in labels], dtype=object)
    return columns


def _read_kddcup99(path: Path) -> dict[str, np.ndarray]:
    table = np.loadtxt(path, dtype=_KDD, delimiter=",", comments=None, encoding="ascii")
    return {
        name: table[name].astype(object) if isinstance(kind, str) else table[name]
        for name, kind in _KDD_COLUMNS
    }


def _fetch(
    name: str, read: Any, subset: str, return_X_y: bool, as_frame: bool, **options: Any
) -> Any:
    found = fetch_files(name, subset, **options)
    dataset = DATASETS[name]
    parts = []
    for part, (path,) in found.items():
        parts.append(read(path))
        rows = len(next(iter(parts[-1].values())))
        if rows != dataset.n_rows[part]:
            raise ValueError(f"{path} has {rows} rows, expected {dataset.n_rows[part]}.")
    columns = {key: np.concatenate([part[key] for part in parts]) for key in parts[0]}
    *features, target_name = columns
    return make_bunch(
        {key: columns[key] for key in features},
        columns[target_name],
        target_name=target_name,
        feature_names=features,
        return_X_y=return_X_y,
        as_frame=as_frame,
        DESCR=f"{dataset.title}. License: {dataset.license}. Source: {dataset.home_page}",
    )


@documented
def fetch_adult(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    subset: str = "train",
) -> Any:
    """Load UCI Adult: census income above 50,000 dollars, 14 original columns.

    32,561 training and 16,281 test rows of the census of 1994. Sensitive are race, sex, marital
    status, country of birth and income; ``fnlwgt`` is a survey weight, not a feature of a person.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        ``data`` (object ndarray or DataFrame of shape (n_rows, 14): int and str columns, missing
        strings are NaN), ``target`` ("<=50K" or ">50K"), ``frame`` (DataFrame with both, or None),
        ``feature_names``, ``target_names``, ``DESCR``.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    {raises}

    Examples
    --------
    >>> from skdp.datasets import fetch_adult
    >>> frame = fetch_adult(as_frame=True).frame  # doctest: +SKIP
    """
    return _fetch(
        "adult",
        _read_adult,
        subset,
        return_X_y,
        as_frame,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )


@documented
def fetch_kddcup99(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    subset: str = "train",
) -> Any:
    """Load KDD Cup 1999: simulated network intrusions, 41 columns.

    Train is the 10 % file (494,021 rows, 23 labels), test the labelled test file ``corrected.gz``
    (311,029 rows, 38 labels, some of them not in the training file).

    Parameters
    ----------
    {parameters}

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        ``data`` (object ndarray or DataFrame of shape (n_rows, 41): int, float and str columns),
        ``target`` (str such as "normal." and "smurf.", as the file writes them), ``frame``
        (DataFrame with both, or None), ``feature_names``, ``target_names``, ``DESCR``.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    {raises}

    Examples
    --------
    >>> from skdp.datasets import fetch_kddcup99
    >>> X, y = fetch_kddcup99(return_X_y=True)  # doctest: +SKIP
    """
    return _fetch(
        "kddcup99",
        _read_kddcup99,
        subset,
        return_X_y,
        as_frame,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
