"""Compiled loops of the scattering transform; each treats a record by itself, so its place decides nothing."""

import math

from skdp.kernels.numba_jit import jit


@jit
def product_fold(spectra, wavelets, k, out):  # type: ignore[no-untyped-def]
    """Multiply spectra with wavelets and fold the product k times, which subsamples by k.

    All arrays are of float32: complex ones as real and imaginary parts side by side. One pass over the numbers
    takes a quarter of the time of a product and a strided sum.

    Parameters
    ----------
    spectra : ndarray of shape (n, M, 2 N)
    wavelets : ndarray of shape (L, M, 2 N)
    k : int
    out : ndarray of shape (n, L, M / k, 2 N / k)
    """
    rows, width = out.shape[2:]
    for i in range(len(spectra)):
        for angle in range(len(wavelets)):
            for u in range(rows):
                row = out[i, angle, u]
                if k == 1:
                    f, w = spectra[i, u], wavelets[angle, u]
                    for v in range(width):
                        row[v] = w[v] * f[v]
                    continue
                row[:] = 0.0
                for a in range(u, u + k * rows, rows):
                    f, w = spectra[i, a], wavelets[angle, a]
                    # Two terms at once: sums are read and written half as often. Slices let LLVM vectorise.
                    for start in range(0, k * width, 2 * width):
                        middle, end = start + width, start + 2 * width
                        f0, f1 = f[start:middle], f[middle:end]
                        w0, w1 = w[start:middle], w[middle:end]
                        for v in range(width):
                            row[v] += w0[v] * f0[v] + w1[v] * f1[v]


@jit
def modulus(values, out):  # type: ignore[no-untyped-def]
    """Absolute values of complex numbers that are given as pairs of float32; both arrays are flat."""
    for i in range(out.size):
        re, im = values[2 * i], values[2 * i + 1]
        out[i] = math.sqrt(re * re + im * im)


@jit
def group_normalize(records, starts, floor, out):  # type: ignore[no-untyped-def]
    """Subtract the mean of each group of paths of a record, and divide by the standard deviation.

    Parameters
    ----------
    records : ndarray of float32 of shape (n, samples, paths)
    starts : ndarray of int64 of shape (n_groups + 1,)
        Group g holds the paths from ``starts[g]`` to ``starts[g + 1] - 1``.
    floor : float
        Added to each variance, as a share of the mean square of the record.
    out : ndarray of float32 of the shape of ``records``
        Rows of l2 norm at most 1.
    """
    n, samples, paths = records.shape
    for i in range(n):
        record = records[i]
        square = 0.0
        for s in range(samples):
            for p in range(paths):
                square += float(record[s, p]) ** 2
        least = floor * square / (samples * paths)
        for g in range(len(starts) - 1):
            first, last = starts[g], starts[g + 1]
            size = samples * (last - first)
            mean, variance = 0.0, 0.0
            for s in range(samples):
                for p in range(first, last):
                    mean += float(record[s, p])
            mean /= size
            for s in range(samples):
                for p in range(first, last):
                    variance += (float(record[s, p]) - mean) ** 2
            width = math.sqrt((variance / size + least) * samples * paths)
            for s in range(samples):
                for p in range(first, last):
                    out[i, s, p] = (float(record[s, p]) - mean) / width if width > 0 else 0.0


@jit
def unit_rows(records, out):  # type: ignore[no-untyped-def]
    """Divide each row by its l2 norm; a row of zeros stays zero. Both arrays are of float32 of shape (n, d)."""
    n, d = records.shape
    for i in range(n):
        square = 0.0
        for j in range(d):
            square += float(records[i, j]) ** 2
        norm = math.sqrt(square)
        for j in range(d):
            out[i, j] = records[i, j] / norm if norm > 0 else 0.0
