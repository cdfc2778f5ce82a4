"""
Settings of the comparison of sparse methods
============================================

The data, splits, sizes and published figures that ``compare_sparse_methods.py`` runs on. A setting is loaded for a
seed: synthetic data are drawn anew for every seed, real data are the same for all. Every number here is
public or a choice that was made before a fit; nothing is tuned on a test part.
"""

import os
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.datasets import load_svmlight_file
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize

from skdp.datasets import (
    fetch_e2006,
    fetch_imdb,
    fetch_rcv1_binary,
    get_data_home,
    make_sparse_classification,
    make_sparse_regression,
)

__all__ = ["SETTINGS", "Problem", "Setting"]


@dataclass
class Problem:
    """One instance: training data, and either the truth or test data."""

    X: Any
    y: np.ndarray
    truth: np.ndarray | None = None
    X_test: Any = None
    y_test: np.ndarray | None = None


@dataclass(frozen=True)
class Setting:
    """A task at one size.

    ``n_nonzero_coefs`` None keeps all features, or as many as a method's default says. ``published`` maps a method
    to its published figures by epsilon.
    """

    title: str
    task: str
    n_nonzero_coefs: int | None
    delta: float
    epsilons: tuple[float, ...]
    load: Callable[[int], Problem]
    metric: str
    fit_intercept: bool = True
    published: dict[str, dict[float, float]] = field(default_factory=dict)


# ---------------------------------------------------------------- synthetic


def chapter_two(task: str, n: int, s: int) -> Callable[[int], Problem]:
    """The settings of chapter 2, as `skdp.datasets` makes them."""

    def load(seed: int) -> Problem:
        regression = task == "regression"
        make = make_sparse_regression if regression else make_sparse_classification
        X, y, theta = make(n, n, n_informative=s, coef=True, random_state=seed)
        # In the paper's logistic model a large <x, theta*> makes label 1 unlikely.
        return Problem(X, y, theta if regression else -theta)

    return load


def chapter_three(task: str, n: int, d: int, s: int) -> Callable[[int], Problem]:
    """The settings of chapter 3: entries uniform on (-1, 1), rows as they come; theta* uniform on (-1, 1)."""

    def load(seed: int) -> Problem:
        rng = np.random.default_rng(seed)
        X = rng.uniform(-1.0, 1.0, (n, d))
        theta = np.zeros(d)
        theta[rng.choice(d, s, replace=False)] = rng.uniform(-1.0, 1.0, s)
        z = X @ theta
        if task == "regression":
            return Problem(X, z + rng.normal(0.0, np.sqrt(0.1), n), theta)
        labels = (rng.uniform(size=n) < 1 / (1 + np.exp(z))).astype(np.int64)
        return Problem(X, labels, -theta)

    return load


# ---------------------------------------------------------------- real


def whole(load: Callable[[], Problem]) -> Callable[[int], Problem]:
    """The same data for every seed."""
    once = cache(load)
    return lambda seed: once()


@cache
def reviews() -> tuple[Any, Any, Any, Any]:
    """IMDb's two parts as hashed binary words; the vectorizer learns nothing."""
    words = HashingVectorizer(n_features=32768, binary=True, alternate_sign=False, stop_words="english", norm="l2")
    train, test = fetch_imdb(subset="train"), fetch_imdb(subset="test")
    return words.transform(train.data), train, words.transform(test.data), test


def imdb_labels() -> Problem:
    """Whether a review is positive."""
    X, train, X_test, test = reviews()
    return Problem(X, train.target, X_test=X_test, y_test=test.target)


def imdb_ratings() -> Problem:
    """The rating, 1 to 10, brought to [-1, 1] by public constants."""
    X, train, X_test, test = reviews()
    y, y_test = ((part.rating - 5.5) / 4.5 for part in (train, test))
    return Problem(X, y, X_test=X_test, y_test=y_test)


def file_of(name: str) -> str:
    """Path of a LIBSVM file in the data folder."""
    path = Path(get_data_home()) / name
    if not path.exists():
        raise FileNotFoundError(
            f"{path} is missing: skdp has no fetcher for it; put it there, or point "
            f"{'SKDP_DATA'} to the folder that holds it (now {os.environ.get('SKDP_DATA')})"
        )
    return str(path)


def read_libsvm(name: str, n_features: int) -> tuple[Any, np.ndarray]:
    """Rows of norm 1 and targets of a LIBSVM file, compressed by xz or bz2 or not at all."""
    import bz2
    import lzma

    opener = {".xz": lzma.open, ".bz2": bz2.open}.get(Path(name).suffix, open)
    with opener(file_of(name), "rb") as stream:
        X, y = load_svmlight_file(stream, n_features=n_features, zero_based=False)
    return normalize(X), y


def farm_ads() -> Problem:
    """4,143 advertisements, 54,877 words; a random quarter, by a fixed seed, is the test part."""
    X, y = read_libsvm("farm_ads/farm_ads.svm.xz", 54877)
    order = np.random.default_rng(0).permutation(len(y))
    test, train = order[: len(y) // 4], order[len(y) // 4 :]
    return Problem(X[train], y[train], X_test=X[test], y_test=y[test])


def dorothea() -> Problem:
    """800 compounds, 100,000 binary features; the validation part is the test part."""
    X, y = read_libsvm("dorothea/dorothea_train.svm.xz", 100_000)
    X_test, y_test = read_libsvm("dorothea/dorothea_valid.svm.xz", 100_000)
    return Problem(X, y, X_test=X_test, y_test=y_test)


def reuters() -> Problem:
    """7,770 and 3,299 news, 8,315 words; one topic against the rest."""
    X, y = read_libsvm("reuters_lasvm/reuters.trn.bz2", 8315)
    X_test, y_test = read_libsvm("reuters_lasvm/reuters.tst.bz2", 8315)
    return Problem(X, y, X_test=X_test, y_test=y_test)


def rcv1() -> Problem:
    """The published RCV1 task: all training rows, 20,000 test rows drawn by a fixed seed."""
    train, test = fetch_rcv1_binary(subset="train"), fetch_rcv1_binary(subset="test")
    rows = np.random.default_rng(0).choice(test.data.shape[0], 20_000, replace=False)
    return Problem(train.data, train.target, X_test=test.data[rows], y_test=test.target[rows])


def e2006() -> Problem:
    """The published E2006 task: 50,000 features drawn by a fixed seed."""
    train, test = fetch_e2006(subset="train"), fetch_e2006(subset="test")
    columns = np.sort(np.random.default_rng(0).choice(train.data.shape[1], 50_000, replace=False))
    return Problem(train.data[:, columns], train.target, X_test=test.data[:, columns], y_test=test.target)


# ---------------------------------------------------------------- published figures


def figures(epsilons: tuple[float, ...], **rows: tuple[float, ...]) -> dict[str, dict[float, float]]:
    """Figures of a published table by method and epsilon."""
    return {name.replace("_", " "): dict(zip(epsilons, values, strict=True)) for name, values in rows.items()}


CHAPTER_TWO = (2.0, 4.0, 6.0, 8.0, 10.0)
E2006_TABLE = figures(
    CHAPTER_TWO,
    IGHT=(0.785,) * 5,
    Frank_Wolfe=(1.514, 1.320, 1.210, 1.105, 1.094),
    Two_stage=(1.286, 1.072, 1.042, 0.997, 0.986),
    DP_IGHT=(1.057, 0.890, 0.854, 0.823, 0.810),
)
RCV1_TABLE = figures(
    CHAPTER_TWO,
    IGHT=(0.0625,) * 5,
    Frank_Wolfe=(0.1271, 0.1034, 0.0938, 0.0852, 0.0807),
    Two_stage=(0.1213, 0.0989, 0.0893, 0.0810, 0.0791),
    DP_IGHT=(0.1168, 0.0956, 0.0841, 0.0797, 0.0762),
)
# Chapter 3, with half of the data as public inputs, delta = 1e-5.
E2006_TRANSFER_TABLE = figures(
    (0.8, 1.5, 2.5, 3.5, 4.5),
    IGHT=(0.8541,) * 5,
    Frank_Wolfe=(4.471, 2.004, 1.535, 1.206, 1.099),
    Two_stage=(4.022, 1.803, 1.326, 1.107, 1.053),
    DP_IGHT=(3.731, 1.687, 1.304, 1.067, 0.968),
    DPSL_KT=(1.227, 1.178, 1.065, 0.971, 0.952),
)
RCV1_TRANSFER_TABLE = figures(
    (2.0, 4.0, 6.0, 8.0),
    IGHT=(0.0645,) * 4,
    Frank_Wolfe=(0.1381, 0.1134, 0.0978, 0.0882),
    Two_stage=(0.1272, 0.1061, 0.0949, 0.0866),
    DP_IGHT=(0.1179, 0.1026, 0.0922, 0.0824),
    DPSL_KT=(0.1105, 0.0974, 0.0885, 0.0787),
)


def halved(load: Callable[[], Problem], n_features: int, n_test: int | None) -> Problem:
    """Chapter 3's split: half of the rows are private; features and test rows are drawn by a fixed seed."""
    problem, rng = load(), np.random.default_rng(1)
    rows = rng.permutation(len(problem.y))[: (len(problem.y) + 1) // 2]
    columns = np.sort(rng.choice(problem.X.shape[1], n_features, replace=False))
    test = rng.permutation(len(problem.y_test))[:n_test]
    return Problem(
        problem.X[rows][:, columns],
        problem.y[rows],
        X_test=problem.X_test[test][:, columns],
        y_test=problem.y_test[test],
    )


# ---------------------------------------------------------------- the table of settings

SYNTHETIC_EPSILONS = (0.5, 0.8, 1.0, 2.0, 4.0, 6.0, 8.0, 10.0)
REAL_EPSILONS = (0.5, 1.0, 2.0, 4.0)


def synthetic(title: str, task: str, s: int, load: Callable[[int], Problem]) -> Setting:
    """A setting with a known truth, at the published delta."""
    return Setting(title, task, s, 0.01, SYNTHETIC_EPSILONS, load, "relative error", fit_intercept=False)


def real(title: str, task: str, s: int | None, load: Callable[[], Problem], metric: str) -> Setting:
    """A setting with a test part."""
    return Setting(title, task, s, 1e-5, REAL_EPSILONS, whole(load), metric)


SETTINGS = {
    f"synthetic-{task}-{n}": synthetic(
        f"Synthetic {task}, (n, d, s*) = ({n}, {n}, {s})", task, s, chapter_two(task, n, s)
    )
    for n, s in ((1000, 10), (5000, 30))
    for task in ("regression", "classification")
}
SETTINGS |= {
    f"transfer-{task}-{n}": synthetic(
        f"Synthetic {task} of chapter 3, (n, d, s*) = ({n}, {d}, {s})", task, s, chapter_three(task, n, d, s)
    )
    for n, d, s in ((800, 1000, 10), (4000, 5000, 50))
    for task in ("regression", "classification")
}
SETTINGS |= {
    "imdb-classification": real(
        "IMDb, 32,768 words, 2,000 kept", "classification", 2000, imdb_labels, "test error"
    ),
    "imdb-classification-100": real(
        "IMDb, 32,768 words, 100 kept", "classification", 100, imdb_labels, "test error"
    ),
    "imdb-classification-all": real(
        "IMDb, 32,768 words, all kept", "classification", None, imdb_labels, "test error"
    ),
    "imdb-ratings": real("IMDb ratings, 32,768 words, 2,000 kept", "regression", 2000, imdb_ratings, "MSE / 2"),
    "imdb-ratings-100": real("IMDb ratings, 32,768 words, 100 kept", "regression", 100, imdb_ratings, "MSE / 2"),
    "farm_ads": real("Farm Ads, 54,877 words, 50 kept", "classification", 50, farm_ads, "test error"),
    "dorothea": real("Dorothea, 100,000 features, 20 kept", "classification", 20, dorothea, "balanced error"),
    "reuters": real("Reuters (LASVM), 8,315 words, 50 kept", "classification", 50, reuters, "balanced error"),
    "rcv1": Setting(
        "RCV1, 47,236 words, 500 kept",
        "classification",
        500,
        0.01,
        CHAPTER_TWO,
        whole(rcv1),
        "test error",
        published=RCV1_TABLE,
    ),
    "e2006": Setting(
        "E2006-tfidf, 50,000 of its features, 2,000 kept",
        "regression",
        2000,
        0.01,
        CHAPTER_TWO,
        whole(e2006),
        "MSE / 2",
        published=E2006_TABLE,
    ),
    "rcv1-half": Setting(
        "RCV1, half of the rows, 20,000 words, 500 kept",
        "classification",
        500,
        1e-5,
        tuple(RCV1_TRANSFER_TABLE["IGHT"]),
        whole(lambda: halved(rcv1, 20_000, 10_000)),
        "test error",
        published=RCV1_TRANSFER_TABLE,
    ),
    "e2006-half": Setting(
        "E2006-tfidf, half of the rows, 25,000 features, 2,000 kept",
        "regression",
        2000,
        1e-5,
        tuple(E2006_TRANSFER_TABLE["IGHT"]),
        whole(lambda: halved(e2006, 25_000, None)),
        "MSE / 2",
        published=E2006_TRANSFER_TABLE,
    ),
}
