# Written by tools/make_stubs.py.

from skdp.datasets._fetch_images import fetch_fashion_mnist as fetch_fashion_mnist
from skdp.datasets._fetch_images import fetch_mnist as fetch_mnist
from skdp.datasets._fetch_libsvm import fetch_a9a as fetch_a9a
from skdp.datasets._fetch_libsvm import fetch_e2006 as fetch_e2006
from skdp.datasets._fetch_libsvm import fetch_ijcnn1 as fetch_ijcnn1
from skdp.datasets._fetch_libsvm import fetch_rcv1_binary as fetch_rcv1_binary
from skdp.datasets._fetch_tables import fetch_adult as fetch_adult
from skdp.datasets._fetch_tables import fetch_kddcup99 as fetch_kddcup99
from skdp.datasets._fetch_text import fetch_imdb as fetch_imdb
from skdp.datasets._generators import make_sparse_classification as make_sparse_classification
from skdp.datasets._generators import make_sparse_regression as make_sparse_regression
from skdp.datasets._rand_hie import load_rand_hie as load_rand_hie
from skdp.datasets._rand_hie import rand_hie_bins as rand_hie_bins
from skdp.datasets._store import clear_data_home as clear_data_home
from skdp.datasets._store import get_data_home as get_data_home
from skdp.datasets._store import list_datasets as list_datasets
