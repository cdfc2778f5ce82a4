"""Bundled records, fetchers and the papers' synthetic settings.

Every name is imported when it is first used; pooch and pandas are imported inside the functions
that need them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

_NAMES = {
    "clear_data_home": "_store",
    "fetch_a9a": "_fetch_libsvm",
    "fetch_adult": "_fetch_tables",
    "fetch_e2006": "_fetch_libsvm",
    "fetch_fashion_mnist": "_fetch_images",
    "fetch_ijcnn1": "_fetch_libsvm",
    "fetch_imdb": "_fetch_text",
    "fetch_kddcup99": "_fetch_tables",
    "fetch_mnist": "_fetch_images",
    "fetch_rcv1_binary": "_fetch_libsvm",
    "get_data_home": "_store",
    "list_datasets": "_store",
    "load_rand_hie": "_rand_hie",
    "make_sparse_classification": "_generators",
    "make_sparse_regression": "_generators",
    "rand_hie_bins": "_rand_hie",
}

__all__ = [
    "clear_data_home",
    "fetch_a9a",
    "fetch_adult",
    "fetch_e2006",
    "fetch_fashion_mnist",
    "fetch_ijcnn1",
    "fetch_imdb",
    "fetch_kddcup99",
    "fetch_mnist",
    "fetch_rcv1_binary",
    "get_data_home",
    "list_datasets",
    "load_rand_hie",
    "make_sparse_classification",
    "make_sparse_regression",
    "rand_hie_bins",
]

if TYPE_CHECKING:
    from skdp.datasets._fetch_images import fetch_fashion_mnist, fetch_mnist
    from skdp.datasets._fetch_libsvm import (
        fetch_a9a,
        fetch_e2006,
        fetch_ijcnn1,
        fetch_rcv1_binary,
    )
    from skdp.datasets._fetch_tables import fetch_adult, fetch_kddcup99
    from skdp.datasets._fetch_text import fetch_imdb
    from skdp.datasets._generators import make_sparse_classification, make_sparse_regression
    from skdp.datasets._rand_hie import load_rand_hie, rand_hie_bins
    from skdp.datasets._store import clear_data_home, get_data_home, list_datasets


def __getattr__(name: str) -> Any:
    if name not in _NAMES:
        raise AttributeError(f"module 'skdp.datasets' has no attribute {name!r}")
    value = getattr(import_module(f"skdp.datasets.{_NAMES[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
