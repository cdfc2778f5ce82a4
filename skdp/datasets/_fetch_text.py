"""IMDb film reviews, from the official archive or from one table per part."""

import lzma
import tarfile
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils import Bunch

from skdp.datasets._bunch import import_pandas
from skdp.datasets._documented import documented
from skdp.datasets._registry import DATASETS
from skdp.datasets._store import fetch_files

__all__ = ["fetch_imdb"]

Reviews = list[tuple[int, int, str]]  # label, rating, text


def _read_tsv(path: Path) -> Reviews:
    with lzma.open(path, "rb") as stream:
        # Split at \n only: the texts hold other line separators, U+0085 for one.
        _, *lines = stream.read().decode("utf-8").split("\n")
    reviews = []
    for line in lines:
        if line:
            label, rating, _, text = line.split("\t", 3)
            reviews.append((int(label), int(rating), text))
    return reviews


def _read_archive(path: Path, part: str) -> Reviews:
    """The labelled reviews of one part: negative before positive, each by their numbers."""
    found = []
    with tarfile.open(path, "r:gz") as archive:
        for member in archive:
            folders = member.name.split("/")
            if len(folders) != 4 or folders[1] != part or folders[2] not in ("neg", "pos"):
                continue
            number, rating = folders[3].removesuffix(".txt").split("_")
            stream = archive.extractfile(member)
            if stream is not None:
                text = stream.read().decode("utf-8")
                found.append((int(folders[2] == "pos"), int(number), int(rating), text))
    return [(label, rating, text) for label, _, rating, text in sorted(found)]


def _read(path: Path, part: str) -> Reviews:
    reviews = _read_tsv(path) if path.suffix == ".xz" else _read_archive(path, part)
    rows = DATASETS["imdb"].n_rows[part]
    if len(reviews) != rows:
        raise ValueError(f"{path} has {len(reviews)} reviews for {part}, expected {rows}.")
    return reviews


@documented
def fetch_imdb(
    *,
    data_home: str | PathLike[str] | None = None,
    download_if_missing: bool = True,
    return_X_y: bool = False,
    as_frame: bool = False,
    n_retries: int = 3,
    delay: float = 1.0,
    subset: str = "train",
) -> Any:
    """Load IMDb film reviews: texts with a negative or positive rating.

    25,000 training and 25,000 test reviews, negative before positive: shuffle before you split. A
    person may have written several, so hiding one review does not hide its author.

    Parameters
    ----------
    {parameters}

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        ``data`` (list or Series of str), ``target`` (ndarray or Series, int64: 0 negative,
        1 positive), ``rating`` (ndarray or Series, int64: 1 to 4 negative, 7 to 10 positive; never
        a feature), ``frame`` (DataFrame with text, label and rating, or None), ``target_names``,
        ``DESCR``.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    {raises}

    Examples
    --------
    >>> from skdp.datasets import fetch_imdb
    >>> texts, y = fetch_imdb(return_X_y=True)  # doctest: +SKIP
    """
    found = fetch_files(
        "imdb",
        subset,
        data_home=data_home,
        download_if_missing=download_if_missing,
        n_retries=n_retries,
        delay=delay,
    )
    reviews = [review for part, (path,) in found.items() for review in _read(path, part)]
    labels, ratings, texts = zip(*reviews)
    data, frame = list(texts), None
    target, rating = np.array(labels, dtype=np.int64), np.array(ratings, dtype=np.int64)
    if as_frame:
        columns = {"text": data, "label": target, "rating": rating}
        frame = import_pandas().DataFrame(columns)
        data, target, rating = frame["text"], frame["label"], frame["rating"]
    if return_X_y:
        return data, target
    dataset = DATASETS["imdb"]
    return Bunch(
        data=data,
        target=target,
        rating=rating,
        frame=frame,
        target_names=["label"],
        DESCR=f"{dataset.title}. License: {dataset.license}. Source: {dataset.home_page}",
    )
