"""The scattering transform of a stack of images (Mallat 2012): FFT, product, modulus, low pass.

Order 0 is the image after a low pass; order 1 the modulus of the image after each wavelet; order 2 the same of
the moduli of order 1, with the wavelets of larger scales. Each modulus is kept at the resolution of its scale.
"""

from collections.abc import Callable

import numpy as np
import scipy.fft

from skdp.kernels import run_blocks
from skdp.preprocessing.scattering.filters import Filters
from skdp.preprocessing.scattering.loops import modulus, product_fold

CHUNK = 32  # planes a thread works on at once: measured, 8 to 32 are equally fast and larger ones leave the cache


def scatter(images: np.ndarray, filters: Filters, finish: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """Transform images, on threads over chunks of them.

    Parameters
    ----------
    images : ndarray of shape (n, height, width, channels)
        Real numbers.
    filters : Filters
        For images of this size.
    finish : callable
        Applied to each chunk of results, as ``finish(records)``; returns an array of their shape.

    Returns
    -------
    ndarray of float32 of shape (n, out height, out width, channels * n_paths)
        A record's numbers are a function of its own image, to the last bit.
    """
    n, height, width, channels = images.shape
    step = max(1, CHUNK // channels)
    result = np.empty((n, *filters.out, channels * filters.n_paths), dtype=np.float32)

    def transform(slot: int, block: int) -> None:
        part = slice(block * step, (block + 1) * step)
        planes = np.ascontiguousarray(images[part].transpose(0, 3, 1, 2), dtype=np.float32)
        found = scatter_planes(planes.reshape(-1, height, width), filters)
        found = found.reshape(len(planes), -1, *filters.out).transpose(0, 2, 3, 1)
        result[part] = finish(np.ascontiguousarray(found))

    run_blocks(transform, -(-n // step))
    return result


def scatter_planes(planes: np.ndarray, filters: Filters) -> np.ndarray:
    """Transform a stack of planes of one number a pixel.

    Parameters
    ----------
    planes : ndarray of float32 of shape (n, height, width)

    Returns
    -------
    ndarray of float32 of shape (n, n_paths, out height, out width)
        Order 0; order 1 by scale and angle; order 2 by scale and angle of the first wavelet, then of the second.
    """
    n, J, L, out = len(planes), filters.J, filters.L, filters.out
    padded = np.pad(planes, ((0, 0), *filters.padding), mode="reflect")
    spectra = scipy.fft.fft2(padded)
    orders = [[smooth(padded, filters, 0)[:, None]], [], []]
    for j in range(J):
        first = moduli(spectra, filters.wavelets[j, 0], 2**j)
        orders[1].append(smooth(first, filters, j))
        if j + 1 < J:
            again = scipy.fft.fft2(first).reshape(n * L, *first.shape[2:])
            second = [
                smooth(moduli(again, filters.wavelets[i, j], 2 ** (i - j)), filters, i) for i in range(j + 1, J)
            ]
            by_angle = [found.reshape(n, L, L, *out) for found in second]
            orders[2].append(np.stack(by_angle, axis=2).reshape(n, -1, *out))
    return np.concatenate([*orders[0], *orders[1], *orders[2]], axis=1)


def moduli(spectra: np.ndarray, wavelets: np.ndarray, k: int) -> np.ndarray:
    """Moduli of planes after each wavelet, subsampled by k: of shape (n, L, M / k, N / k)."""
    n, rows, columns = spectra.shape
    shape = (n, len(wavelets), rows // k, columns // k)
    product = np.empty(shape, dtype=np.complex64)
    product_fold(spectra.view(np.float32), wavelets, k, product.view(np.float32))
    waves = scipy.fft.ifft2(product, overwrite_x=True)
    found = np.empty(shape, dtype=np.float32)
    modulus(waves.view(np.float32).reshape(-1), found.reshape(-1))
    return found


def smooth(planes: np.ndarray, filters: Filters, r: int) -> np.ndarray:
    """Low pass of planes of resolution r, subsampled to the final one, without the border."""
    down, across = filters.low_pass[r]
    return np.matmul(np.matmul(down, planes), across.T)
