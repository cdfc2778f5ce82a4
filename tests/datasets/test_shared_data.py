"""The fetchers on the real files: in SKDP_DATA, or in shared/data beside the repository."""

import os
from pathlib import Path

import numpy as np
import pytest

from skdp.datasets import (
    fetch_a9a,
    fetch_abalone,
    fetch_adult,
    fetch_brown,
    fetch_cifar10,
    fetch_dorothea,
    fetch_farm_ads,
    fetch_fashion_mnist,
    fetch_housing,
    fetch_ijcnn1,
    fetch_imdb,
    fetch_kddcup99,
    fetch_mnist,
    fetch_newsgroups20,
    fetch_reuters_lasvm,
    fetch_spambase,
    list_datasets,
)

pytestmark = pytest.mark.thorough  # 7 s
HOME = Path(os.environ.get("SKDP_DATA") or Path(__file__).resolve().parents[3] / "shared" / "data")


def need(name):
    """Skip where a file of the data set is missing; nothing is downloaded."""
    (entry,) = [entry for entry in list_datasets(HOME) if entry["name"] == name]
    if not entry["available"]:
        pytest.skip(f"the files of {name} are not in {HOME} (set SKDP_DATA)")
    return {"data_home": HOME, "download_if_missing": False}


def name_of(fetch):
    return fetch.__name__.removeprefix("fetch_")


@pytest.mark.parametrize(
    ("fetch", "subset", "shape", "nnz", "positive"),
    [
        (fetch_a9a, "train", (32561, 123), 451592, 7841),
        (fetch_a9a, "test", (16281, 123), 225731, 3846),
        (fetch_ijcnn1, "train", (49990, 22), 649870, 4853),
        (fetch_ijcnn1, "test", (91701, 22), 1192113, 8712),
        (fetch_reuters_lasvm, "train", (7770, 8315), 339837, 538),
        (fetch_reuters_lasvm, "test", (3299, 8315), 136821, 179),
        (fetch_farm_ads, "all", (4143, 54877), 817141, 2210),
        (fetch_dorothea, "train", (800, 100000), 727760, 78),
        (fetch_dorothea, "test", (350, 100000), 317752, 34),
    ],
)
def test_libsvm(fetch, subset, shape, nnz, positive):
    X, y = fetch(return_X_y=True, subset=subset, **need(name_of(fetch)))
    assert X.shape == shape
    assert X.nnz == nnz
    assert np.unique(y).tolist() == [-1, 1]
    assert (y == 1).sum() == positive


@pytest.mark.parametrize(
    ("fetch", "shape", "smallest", "largest"),
    [(fetch_abalone, (4177, 8), 1, 29), (fetch_housing, (506, 13), 5, 50)],
)
def test_regression(fetch, shape, smallest, largest):
    X, y = fetch(return_X_y=True, **need(name_of(fetch)))
    assert X.shape == shape
    assert (y.min(), y.max()) == (smallest, largest)
    assert np.abs(X).max() <= 1


def test_spambase():
    data = fetch_spambase(**need("spambase"))
    assert data.data.shape == (4601, 57)
    assert data.target.sum() == 1813
    # George wrote the mail that is no spam; the names of the columns are right.
    george = data.data[:, data.feature_names.index("word_freq_george")] > 0
    assert data.target[george].mean() < 0.02


def test_newsgroups20():
    data = fetch_newsgroups20(**need("newsgroups20"))
    groups, counts = np.unique(data.target, return_counts=True)
    assert len(groups) == 20
    assert counts.sum() == 19997
    assert all("From:" in text for text in data.data[:100])


def test_brown():
    data = fetch_brown(**need("brown"))
    assert len(data.data) == 500
    assert len(set(data.target)) == 15
    assert sum(len(text.split()) for text in data.data) == 1161192
    assert len(data.stop_words) == 179
    assert data.data[0].startswith("The Fulton County Grand Jury said Friday")


@pytest.mark.slow
def test_cifar10():
    pytest.importorskip("PIL")
    data = fetch_cifar10(subset="test", **need("cifar10"))
    assert data.data.shape == (10000, 3072)
    assert np.bincount(data.target).tolist() == [1000] * 10


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
    X, y = fetch(return_X_y=True, subset="all", **need(name_of(fetch)))
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
    assert np.bincount(data.rating).tolist()[1:] == [5100, 2284, 2420, 2696, 0, 0, 2496, 3009] + [2263, 4732]
    assert ((data.rating > 5) == data.target).all()
