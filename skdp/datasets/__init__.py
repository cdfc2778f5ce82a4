"""Bundled records, fetchers of public data sets, and the synthetic settings of papers.

Every name is imported when it is first used; pooch and pandas are imported inside the functions that need them.
"""

from skdp._lazy import lazy_exports

_ROOM = "skdp.datasets"
_FETCHERS = (
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
    "fetch_kddcup98",
    "fetch_kddcup99",
    "fetch_mnist",
    "fetch_newsgroups20",
    "fetch_rcv1_binary",
    "fetch_reuters_lasvm",
    "fetch_spambase",
    "fetch_svhn",
)

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        **dict.fromkeys(_FETCHERS, f"{_ROOM}.fetchers"),
        **dict.fromkeys(("load_rand_hie", "rand_hie_bins"), f"{_ROOM}.rand_hie"),
        **dict.fromkeys(("make_sparse_classification", "make_sparse_regression"), f"{_ROOM}.generators"),
        **dict.fromkeys(("clear_data_home", "get_data_home", "list_datasets"), f"{_ROOM}.store"),
    },
)
