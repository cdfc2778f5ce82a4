"""Bundled records, fetchers and the papers' synthetic settings.

Every name is imported when it is first used; pooch and pandas are imported inside the functions
that need them.
"""

from skdp._lazy import lazy_exports

__getattr__, __dir__, __all__ = lazy_exports(
    __name__,
    {
        "clear_data_home": "skdp.datasets._store",
        "fetch_a9a": "skdp.datasets._fetch_libsvm",
        "fetch_adult": "skdp.datasets._fetch_tables",
        "fetch_e2006": "skdp.datasets._fetch_libsvm",
        "fetch_fashion_mnist": "skdp.datasets._fetch_images",
        "fetch_ijcnn1": "skdp.datasets._fetch_libsvm",
        "fetch_imdb": "skdp.datasets._fetch_text",
        "fetch_kddcup99": "skdp.datasets._fetch_tables",
        "fetch_mnist": "skdp.datasets._fetch_images",
        "fetch_rcv1_binary": "skdp.datasets._fetch_libsvm",
        "get_data_home": "skdp.datasets._store",
        "list_datasets": "skdp.datasets._store",
        "load_rand_hie": "skdp.datasets._rand_hie",
        "make_sparse_classification": "skdp.datasets._generators",
        "make_sparse_regression": "skdp.datasets._generators",
        "rand_hie_bins": "skdp.datasets._rand_hie",
    },
)
