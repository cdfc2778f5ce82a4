"""Bundled records, fetchers and the papers' synthetic settings.

Every name is imported when it is first used; pooch and pandas are imported inside the functions
that need them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__all__ = [
    "clear_data_home",
    "fetch_a9a",
    "fetch_abalone",
    "fetch_adult",
    "fetch_brown",
    "fetch_cifar10",
    "fetch_dorothea",
    "fetch_e2006",
    "fetch_farm_ads",
    "fetch_fashion_mnist",
    "fetch_housing",
    "fetch_ijcnn1",
    "fetch_imdb",
    "fetch_kddcup99",
    "fetch_mnist",
    "fetch_newsgroups20",
    "fetch_rcv1_binary",
    "fetch_reuters_lasvm",
    "fetch_spambase",
    "get_data_home",
    "list_datasets",
    "load_rand_hie",
    "make_sparse_classification",
    "make_sparse_regression",
    "rand_hie_bins",
]

if TYPE_CHECKING:
    from skdp.datasets.fetchers import (
        fetch_a9a,
        fetch_abalone,
        fetch_adult,
        fetch_brown,
        fetch_cifar10,
        fetch_dorothea,
        fetch_e2006,
        fetch_farm_ads,
        fetch_fashion_mnist,
        fetch_housing,
        fetch_ijcnn1,
        fetch_imdb,
        fetch_kddcup99,
        fetch_mnist,
        fetch_newsgroups20,
        fetch_rcv1_binary,
        fetch_reuters_lasvm,
        fetch_spambase,
    )
    from skdp.datasets.generators import make_sparse_classification, make_sparse_regression
    from skdp.datasets.rand_hie import load_rand_hie, rand_hie_bins
    from skdp.datasets.store import clear_data_home, get_data_home, list_datasets

# The module of a name, by the first word of the name; all other names stand in `store`.
_MODULES = {"fetch": "fetchers", "load": "rand_hie", "rand": "rand_hie", "make": "generators"}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"module 'skdp.datasets' has no attribute {name!r}")
    module = _MODULES.get(name.split("_")[0], "store")
    value = getattr(import_module(f"skdp.datasets.{module}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
