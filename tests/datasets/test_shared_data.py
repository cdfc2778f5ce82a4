"""The fetchers on the real files: in SKDP_DATA, or in shared/data beside the repository."""

import os
from pathlib import Path

import numpy as np
import pytest

from skdp.datasets import (
    fetch_a9a,
    fetch_adult,
    fetch_fashion_mnist,
    fetch_ijcnn1,
    fetch_imdb,
    fetch_kddcup99,
    fetch_mnist,
    list_datasets,
)

HOME = Path(os.environ.get("SKDP_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


def need(name):
    """Skip where a file of the data set is missing; nothing is downloaded."""
    (entry,) = [entry for entry in list_datasets(HOME) if entry["name"] == name]
    if not entry["available"]:
        pytest.skip(f"the files of {name} are not in {HOME} (set SKDP_DATA)")
    return {"data_home": HOME, "download_if_missing": False}


@pytest.mark.parametrize(
    ("fetch", "subset", "shape", "nnz", "positive"),
    [
        (fetch_a9a, "train", (32561, 123), 451592, 7841),
        (fetch_a9a, "test", (16281, 123), 225731, 3846),
        (fetch_ijcnn1, "train", (49990, 22), 649870, 4853),
        (fetch_ijcnn1, "test", (91701, 22), 1192113, 8712),
    ],
)
def test_libsvm(fetch, subset, shape, nnz, positive):
    X, y = fetch(return_X_y=True, subset=subset, **need(fetch.__name__.removeprefix("fetch_")))
    assert X.shape == shape
    assert X.nnz == nnz
    assert np.unique(y).tolist() == [-1, 1]
    assert (y == 1).sum() == positive


def test_adult():
    data = fetch_adult(subset="all", **need("adult"))
    assert data.data.shape == (48842, 14)
    assert (data.target == ">50K").sum() == 7841 + 3846
    assert set(data.target) == {"<=50K", ">50K"}


def test_a9a_is_adult():
    """The rows of a9a are those of Adult, in the same order."""
    _, y = fetch_a9a(return_X_y=True, **need("a9a"))
    _, income = fetch_adult(return_X_y=True, **need("adult"))
    np.testing.assert_array_equal(y == 1, income == ">50K")


def test_kddcup99():
    data = fetch_kddcup99(subset="test", **need("kddcup99"))
    assert data.data.shape == (311029, 41)
    assert len(set(data.target)) == 38
    assert (data.target == "normal.").sum() == 60593


@pytest.mark.parametrize("fetch", [fetch_mnist, fetch_fashion_mnist])
def test_images(fetch):
    X, y = fetch(return_X_y=True, subset="all", **need(fetch.__name__.removeprefix("fetch_")))
    assert X.shape == (70000, 784)
    assert X.dtype == np.uint8
    assert X.max() == 255
    expected = {
        "fetch_mnist": [5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949],
        "fetch_fashion_mnist": [6000] * 10,
    }[fetch.__name__]
    assert np.bincount(y[:60000]).tolist() == expected


def test_imdb():
    data = fetch_imdb(**need("imdb"))
    assert len(data.data) == 25000
    assert np.bincount(data.target).tolist() == [12500, 12500]
    assert np.bincount(data.rating).tolist()[1:] == [5100, 2284, 2420, 2696, 0, 0, 2496, 3009] + [
        2263,
        4732,
    ]
    assert ((data.rating > 5) == data.target).all()
