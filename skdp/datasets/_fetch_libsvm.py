"""Sparse data sets in LIBSVM's text format: a9a, ijcnn1, rcv1.binary and E2006-tfidf."""

import bz2
import lzma
from collections.abc import Callable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import vstack
from sklearn.datasets import load_svmlight_file

from skdp.datasets._bunch import make_bunch
from skdp.datasets._documented import documented
from skdp.datasets._registry import DATASETS
from skdp.datasets._store import fetch_files

__all__ = ["fetch_a9a", "fetch_e2006", "fetch_ijcnn1", "fetch_rcv1_binary"]

_OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".bz2": bz2.open}


def _read(path: Path, name: str, part: str) -> Any:
    """X and y of one file; the number of features is given, as a file may lack the last columns."""
    dataset = DATASETS[name]
    with _OPENERS.get(path.suffix, open)(path, "rb") as stream:
        X, y = load_svmlight_file(stream, n_features=dataset.n_features, zero_based=False)
    if X.shape[0] != dataset.n_rows[part]:
        raise ValueError(
            f"{path} has {X.shape[0]} rows, expected {dataset.n_rows[part]}: it is not {name} "
            f"({part}), or it is damaged."
        )
    return X, y


def _fetch(
    name: str, labels: bool, subset: str, return_X_y: bool, as_frame: bool, **options: Any
) -> Any:
    found = fetch_files(name, subset, **options)
    parts = [_read(paths[0], name, part) for part, paths in found.items()]
    X = vstack([X for X, _ in parts], format="csr")
    y = np.concatenate([y for _, y in parts])
    dataset = DATASETS[name]
    return make_bunch(
        X,
        y.astype(np.int64) if labels else y,
        target_name="label" if labels else "target",
        feature_names=[f"x{column}" for column in range(X.shape[1])],
        return_X_y=return_X_y,
        as_frame=as_frame,
        DESCR=f"{dataset.title}. License: {dataset.license}. Source: {dataset.home_page}",
    )


@documented
def fetch_a9a(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    subset: str = "train",
) -> Any:
    """Load a9a: census income above 50,000 dollars, 123 binary features.

    32,561 training and 16,281 test rows, 13.9 ones in a row on average. The records are those of
    UCI Adult; sensitive are race, sex, marital status and income.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        ``data`` (csr_matrix or sparse DataFrame of shape (n_rows, 123), float64), ``target``
        (ndarray or Series, int64, -1 or 1), ``frame`` (DataFrame with both, or None),
        ``feature_names``, ``target_names``, ``DESCR``.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    {raises}

    Examples
    --------
    >>> from skdp.datasets import fetch_a9a
    >>> X, y = fetch_a9a(return_X_y=True)  # doctest: +SKIP
    """
    return _fetch(
        "a9a",
        True,
        subset,
        return_X_y,
        as_frame,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )


@documented
def fetch_ijcnn1(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    subset: str = "train",
) -> Any:
    """Load ijcnn1: the IJCNN 2001 challenge, 22 features.

    49,990 training rows (LIBSVM's ijcnn1.tr, then ijcnn1.val) and 91,701 test rows; about one row
    in ten has label 1.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        ``data`` (csr_matrix or sparse DataFrame of shape (n_rows, 22), float64), ``target``
        (ndarray or Series, int64, -1 or 1), ``frame`` (DataFrame with both, or None),
        ``feature_names``, ``target_names``, ``DESCR``.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    {raises}

    Examples
    --------
    >>> from skdp.datasets import fetch_ijcnn1
    >>> X, y = fetch_ijcnn1(return_X_y=True)  # doctest: +SKIP
    """
    return _fetch(
        "ijcnn1",
        True,
        subset,
        return_X_y,
        as_frame,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )


@documented
def fetch_rcv1_binary(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    subset: str = "train",
) -> Any:
    """Load RCV1 (binary): news of Reuters, 47,236 tf-idf features.

    20,242 training and 677,399 test rows. skdp knows no checksum of these files and does not
    download them: put them in the folder by hand, as the error says.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        ``data`` (csr_matrix or sparse DataFrame of shape (n_rows, 47236), float64), ``target``
        (ndarray or Series, int64, -1 or 1), ``frame`` (DataFrame with both, or None),
        ``feature_names``, ``target_names``, ``DESCR``.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    {raises}

    Examples
    --------
    >>> from skdp.datasets import fetch_rcv1_binary
    >>> X, y = fetch_rcv1_binary(return_X_y=True)  # doctest: +SKIP
    """
    return _fetch(
        "rcv1_binary",
        True,
        subset,
        return_X_y,
        as_frame,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )


@documented
def fetch_e2006(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    subset: str = "train",
) -> Any:
    """Load E2006-tfidf: volatility of stock returns from 10-K reports, 150,360 features.

    16,087 training and 3,308 test rows. skdp knows no checksum of these files and does not
    download them: put them in the folder by hand, as the error says.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        ``data`` (csr_matrix or sparse DataFrame of shape (n_rows, 150360), float64), ``target``
        (ndarray or Series, float64, log volatility), ``frame`` (DataFrame with both, or None),
        ``feature_names``, ``target_names``, ``DESCR``.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    {raises}

    Examples
    --------
    >>> from skdp.datasets import fetch_e2006
    >>> X, y = fetch_e2006(return_X_y=True)  # doctest: +SKIP
    """
    return _fetch(
        "e2006",
        False,
        subset,
        return_X_y,
        as_frame,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
