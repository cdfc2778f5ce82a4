# Written by tools/make_stubs.py.

from skdp.datasets.fetchers import fetch_a9a as fetch_a9a
from skdp.datasets.fetchers import fetch_abalone as fetch_abalone
from skdp.datasets.fetchers import fetch_adult as fetch_adult
from skdp.datasets.fetchers import fetch_brown as fetch_brown
from skdp.datasets.fetchers import fetch_cifar10 as fetch_cifar10
from skdp.datasets.fetchers import fetch_dorothea as fetch_dorothea
from skdp.datasets.fetchers import fetch_e2006 as fetch_e2006
from skdp.datasets.fetchers import fetch_farm_ads as fetch_farm_ads
from skdp.datasets.fetchers import fetch_fashion_mnist as fetch_fashion_mnist
from skdp.datasets.fetchers import fetch_housing as fetch_housing
from skdp.datasets.fetchers import fetch_ijcnn1 as fetch_ijcnn1
from skdp.datasets.fetchers import fetch_imdb as fetch_imdb
from skdp.datasets.fetchers import fetch_kddcup98 as fetch_kddcup98
from skdp.datasets.fetchers import fetch_kddcup99 as fetch_kddcup99
from skdp.datasets.fetchers import fetch_mnist as fetch_mnist
from skdp.datasets.fetchers import fetch_newsgroups20 as fetch_newsgroups20
from skdp.datasets.fetchers import fetch_rcv1_binary as fetch_rcv1_binary
from skdp.datasets.fetchers import fetch_reuters_lasvm as fetch_reuters_lasvm
from skdp.datasets.fetchers import fetch_spambase as fetch_spambase
from skdp.datasets.generators import make_sparse_classification as make_sparse_classification
from skdp.datasets.generators import make_sparse_regression as make_sparse_regression
from skdp.datasets.rand_hie import load_rand_hie as load_rand_hie
from skdp.datasets.rand_hie import rand_hie_bins as rand_hie_bins
from skdp.datasets.store import clear_data_home as clear_data_home
from skdp.datasets.store import get_data_home as get_data_home
from skdp.datasets.store import list_datasets as list_datasets
