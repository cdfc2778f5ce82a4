"""Bundled records, their encoder, and the synthetic settings."""

from skdp.datasets import load_rand_hie, make_sparse_classification, make_sparse_regression, rand_hie_bins
from skdp.preprocessing import PublicBinsEncoder


class RandHIE:
    def setup(self):
        self.data = load_rand_hie().data
        self.encoder = PublicBinsEncoder(**rand_hie_bins())

    def time_load(self):
        load_rand_hie()

    def time_encode(self):
        self.encoder.fit_transform(self.data)

    def peakmem_encode(self):
        self.encoder.fit_transform(self.data)


class Synthetic:
    def time_regression(self):
        make_sparse_regression(1000, 1000, random_state=0)

    def time_classification(self):
        make_sparse_classification(1000, 1000, random_state=0)
