"""Laplacian smoothing beside scipy's real FFT, with the eigenvalues inverted beforehand."""

import numpy as np
import scipy.fft

from benchmarks.common import ratio
from skdp.kernels import laplacian_smooth


class LaplacianSmooth:
    # 1,000,003 is prime: an FFT's worst case.
    # Other sizes and smoothings: docs/benchmarks/speed.rst.
    params = ([10**4, 10**6], [3.0])
    param_names = ["d", "smoothing"]

    def setup(self, d, smoothing):
        self.x = np.random.default_rng(0).normal(size=d)
        sine = np.sin(np.arange(d // 2 + 1) * (np.pi / d))
        self.inverse = 1 / (1 + 4 * smoothing * sine**2)
        laplacian_smooth(self.x, smoothing)

    def time_laplacian_smooth(self, d, smoothing):
        laplacian_smooth(self.x, smoothing)

    def track_fft_ratio(self, d, smoothing):
        """Speed over that of scipy.fft, one thread each: more than 1 is faster."""

        def reference():
            spectrum = scipy.fft.rfft(self.x, workers=1)
            spectrum *= self.inverse
            scipy.fft.irfft(spectrum, d, workers=1, overwrite_x=True)

        return 1 / ratio(lambda: laplacian_smooth(self.x, smoothing), reference)

    track_fft_ratio.unit = "times scipy.fft"


class LaplacianSmoothColumns:
    """Classes side by side, as a multinomial model holds them."""

    params = ([(784, 10), (10**5, 10), (10**4, 100)],)
    param_names = ["shape"]

    def setup(self, shape):
        self.x = np.random.default_rng(0).normal(size=shape)
        laplacian_smooth(self.x, 3.0)

    def time_laplacian_smooth(self, shape):
        laplacian_smooth(self.x, 3.0)
