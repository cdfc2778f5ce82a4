"""Scattering of images: seconds for 1,000 images of 28 x 28, and for 250 in colour of 32 x 32."""

import os

import numpy as np

from skdp.preprocessing import ScatteringTransform


class Scattering:
    params = ("1", "2")
    param_names = ("threads",)

    def setup(self, threads):
        os.environ["SKDP_NUM_THREADS"] = threads
        rng = np.random.default_rng(0)
        self.gray = rng.random((1000, 28, 28)).astype(np.float32)
        self.colour = rng.random((250, 32, 32, 3)).astype(np.float32)
        for images in (self.gray, self.colour):
            ScatteringTransform().fit_transform(images[:1])  # compiled, and filters made

    def teardown(self, threads):
        os.environ.pop("SKDP_NUM_THREADS")

    def time_gray(self, threads):
        ScatteringTransform().fit_transform(self.gray)

    def time_colour(self, threads):
        ScatteringTransform().fit_transform(self.colour)

    def peakmem_gray(self, threads):
        ScatteringTransform().fit_transform(self.gray)
