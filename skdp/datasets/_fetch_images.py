"""MNIST and Fashion-MNIST, from their idx files."""

import gzip
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from skdp.datasets._bunch import make_bunch
from skdp.datasets._documented import documented
from skdp.datasets._registry import DATASETS
from skdp.datasets._store import fetch_files

__all__ = ["fetch_fashion_mnist", "fetch_mnist"]

_UBYTE = 8  # idx code of unsigned bytes, the only type these files use


def _read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """One idx file: two zero bytes, type, number of axes, big-endian sizes, then the bytes."""
    with gzip.open(path, "rb") as stream:
        content = stream.read()
    start = 4 + 4 * len(shape)
    header = b"".join([bytes([0, 0, _UBYTE, len(shape)]), np.array(shape, ">u4").tobytes()])
    if content[:start] != header or len(content) != start + int(np.prod(shape)):
        raise ValueError(f"{path} is not an idx file of unsigned bytes of shape {shape}.")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def _fetch(name: str, subset: str, return_X_y: bool, as_frame: bool, **options: Any) -> Any:
    found = fetch_files(name, subset, **options)
    dataset = DATASETS[name]
    images, labels = [], []
    for part, (image_path, label_path) in found.items():
        rows = dataset.n_rows[part]
        images.append(_read_idx(image_path, (rows, 28, 28)).reshape(rows, 784))
        labels.append(_read_idx(label_path, (rows,)))
    return make_bunch(
        np.concatenate(images),
        np.concatenate(labels).astype(np.int64),
        target_name="label",
        feature_names=[f"pixel_{row}_{column}" for row in range(28) for column in range(28)],
        return_X_y=return_X_y,
        as_frame=as_frame,
        DESCR=f"{dataset.title}. License: {dataset.license}. Source: {dataset.home_page}",
    )


@documented
def fetch_mnist(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    subset: str = "train",
) -> Any:
    """Load MNIST: handwritten digits, 28 x 28 pixels.

    60,000 training and 10,000 test images.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        ``data`` (ndarray or DataFrame of shape (n_rows, 784), uint8: rows of the image one after
        the other, 0 to 255; divide by 255 for floats), ``target`` (int64, 0 to 9), ``frame``
        (DataFrame with both, or None), ``feature_names``, ``target_names``, ``DESCR``.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    {raises}

    Examples
    --------
    >>> from skdp.datasets import fetch_mnist
    >>> X, y = fetch_mnist(return_X_y=True)  # doctest: +SKIP
    """
    return _fetch(
        "mnist",
        subset,
        return_X_y,
        as_frame,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )


@documented
def fetch_fashion_mnist(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    subset: str = "train",
) -> Any:
    """Load Fashion-MNIST: articles of clothing, 28 x 28 pixels.

    60,000 training and 10,000 test images; labels 0 T-shirt, 1 trouser, 2 pullover, 3 dress,
    4 coat, 5 sandal, 6 shirt, 7 sneaker, 8 bag, 9 ankle boot.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        ``data`` (ndarray or DataFrame of shape (n_rows, 784), uint8: rows of the image one after
        the other, 0 to 255; divide by 255 for floats), ``target`` (int64, 0 to 9), ``frame``
        (DataFrame with both, or None), ``feature_names``, ``target_names``, ``DESCR``.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    {raises}

    Examples
    --------
    >>> from skdp.datasets import fetch_fashion_mnist
    >>> X, y = fetch_fashion_mnist(return_X_y=True)  # doctest: +SKIP
    """
    return _fetch(
        "fashion_mnist",
        subset,
        return_X_y,
        as_frame,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
