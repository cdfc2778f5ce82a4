"""Morlet wavelets and the low pass of a scattering transform, on a torus around a padded image.

The formulas are from kymatio 0.3 (Andreux et al. 2020), with pi where it writes 3.1415.
"""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

SIGMA = 0.8  # width of the envelope at the finest scale, in pixels
FREQUENCY = 0.75 * np.pi  # frequency of the wave at the finest scale, in radians a pixel
SLANT = 4.0  # over the number of angles: the narrower the angles, the longer the envelope


@dataclass(frozen=True)
class Filters:
    """The factors of a transform of images of one size.

    Attributes
    ----------
    padding : tuple of two (int, int)
        Pixels added before and behind each of the two axes.
    out : tuple of int
        Number of samples that are kept of each axis.
    wavelets : dict
        The spectra of the L wavelets of scale j at resolution r, by (j, r): ndarray of float32 of shape (L, M /
        2**r, 2 N / 2**r). Each real value stands twice, for the real and the imaginary part of its factor.
    low_pass : list of (ndarray, ndarray)
        For each resolution, the matrices that smooth, subsample and cut off the border along the two axes.
    """

    J: int
    L: int
    padding: tuple[tuple[int, int], tuple[int, int]]
    out: tuple[int, int]
    wavelets: dict[tuple[int, int], np.ndarray]
    low_pass: list[tuple[np.ndarray, np.ndarray]]

    @property
    def n_paths(self) -> int:
        """Number of coefficients at each sample: of order 0, 1 and 2."""
        return 1 + self.J * self.L + self.L**2 * self.J * (self.J - 1) // 2


@lru_cache(maxsize=8)
def filters_of(height: int, width: int, J: int, L: int) -> Filters:
    """Make the filters for images of one size.

    Parameters
    ----------
    height, width : int
        Of the images, in pixels.
    J, L : int
        Number of scales and of angles.
    """
    step = 2**J
    size = tuple(((n + step) // step + 1) * step for n in (height, width))
    before = [(m - n) // 2 for m, n in zip(size, (height, width))]
    padding = [(b, m - n - b) for b, m, n in zip(before, size, (height, width))]
    out = (max(1, height // step), max(1, width // step))
    wavelets = {}
    for j in range(J):
        spectra = np.array([wavelet_spectrum(size, j, angle, L) for angle in angles(L)])
        for r in range(j + 1):
            # Whoever multiplies folds the product to resolution j, which is a mean of 4**(j - r) values.
            kept = low_frequencies(spectra, r) / 4.0 ** (j - r)
            wavelets[j, r] = np.repeat(kept, 2, axis=-1).astype(np.float32)
    low_pass = [tuple(low_pass_matrix(m, n, J, r) for m, n in zip(size, out)) for r in range(J)]
    return Filters(J, L, tuple(padding), out, wavelets, low_pass)  # type: ignore[arg-type]


def angles(L: int) -> np.ndarray:
    """The L angles of the waves, in radians, in the order of kymatio."""
    return (max(0, L // 2 - 1) - np.arange(L)) * np.pi / L


def wavelet_spectrum(size: tuple[int, ...], j: int, angle: float, L: int) -> np.ndarray:
    """Spectrum, which is real, of the Morlet wavelet of scale j.

    It is a wave under a Gaussian envelope, less the multiple of the envelope that makes its mean zero.
    """
    sigma, frequency = SIGMA * 2**j, FREQUENCY / 2**j
    wave = gabor(size, sigma, angle, frequency, SLANT / L)
    envelope = gabor(size, sigma, angle, 0.0, SLANT / L)
    return np.fft.fft2(wave - wave.sum() / envelope.sum() * envelope).real


def gabor(size: tuple[int, ...], sigma: float, angle: float, frequency: float, slant: float) -> np.ndarray:
    """A wave under a Gaussian envelope, wrapped around the torus, of float64."""
    M, N = size
    cosine, sine = np.cos(angle), np.sin(angle)
    x, y = np.arange(-2 * M, 3 * M)[:, None], np.arange(-2 * N, 3 * N)[None]
    along, across = x * cosine + y * sine, y * cosine - x * sine
    exponent = -(along**2 + (slant * across) ** 2) / (2 * sigma**2) + 1j * frequency * along
    wrapped = np.exp(exponent).reshape(5, M, 5, N).sum(axis=(0, 2))
    return wrapped * slant / (2 * np.pi * sigma**2)


def low_frequencies(spectrum: np.ndarray, r: int) -> np.ndarray:
    """The lowest frequencies of the last two axes, one in 2**r, as kymatio keeps them."""
    if r == 0:
        return spectrum
    for axis in (-2, -1):
        n = spectrum.shape[axis]
        half = n >> (r + 1)
        kept = np.r_[0:half, n - half : n]
        spectrum = np.take(spectrum, kept, axis)
    return spectrum


def low_pass_matrix(length: int, out: int, J: int, r: int) -> np.ndarray:
    """Rows that smooth a line of length / 2**r samples at scale J and subsample it; the border is left out.

    The two-dimensional low pass is a product of two such lines, and two small matrix products smooth, subsample
    and cut off the border.
    """
    sigma = SIGMA * 2 ** (J - 1)
    x = np.arange(-2 * length, 3 * length)
    line = np.exp(-(x**2) / (2 * sigma**2)).reshape(5, length).sum(axis=0)
    spectrum = np.fft.fft(line / np.sqrt(2 * np.pi * sigma**2)).real
    half = length >> (r + 1)
    kept = np.r_[0:half, length - half : length] if r else np.arange(length)
    line = np.fft.ifft(spectrum[kept]).real
    samples, step = length >> r, 2 ** (J - r)
    shift = (np.arange(length // 2**J)[:, None] * step - np.arange(samples)[None]) % samples
    return line[shift][1 : 1 + out].astype(np.float32)  # the first sample and the last ones are of the border
