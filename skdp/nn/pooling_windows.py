"""Windows that slide over images: gathered, put back, and pooled.

Images have shape (n_rows, height, width, channels). NumPy arrays go to compiled loops, which load numba when a net
first computes. Arrays of other libraries take the plain functions here, which give the same numbers.
"""

from dataclasses import dataclass

import numpy as np

from skdp.nn.arrays import Array, array_module


@dataclass(frozen=True)
class PoolingWindows:
    """Size and steps of windows, and the padding of the images around which they slide.

    Attributes
    ----------
    size : tuple of (int, int)
        Height and width of a window.
    stride : tuple of (int, int)
        Steps downward and to the right.
    padding : tuple of four int, default=(0, 0, 0, 0)
        Zeros above, below, left and right of an image.
    """

    size: tuple[int, int]
    stride: tuple[int, int]
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)

    def padded(self, height: int, width: int) -> tuple[int, int]:
        """Return height and width of a padded image."""
        above, below, left, right = self.padding
        return height + above + below, width + left + right

    def counts(self, height: int, width: int) -> tuple[int, int]:
        """Return how many windows stand below and beside each other; 0 or less where none fits."""
        high, wide = self.padded(height, width)
        return (high - self.size[0]) // self.stride[0] + 1, (wide - self.size[1]) // self.stride[1] + 1

    def cells(self, x: Array, counts: tuple[int, int], u: int, v: int) -> Array:
        """View the pixels at row ``u`` and column ``v`` of every window of padded images."""
        (down, right), (n_high, n_wide) = self.stride, counts
        return x[:, u : u + down * (n_high - 1) + 1 : down, v : v + right * (n_wide - 1) + 1 : right]


def _pad(x: Array, windows: PoolingWindows) -> Array:
    if not any(windows.padding):
        return array_module(x).ascontiguousarray(x)
    n_rows, height, width, n_channels = x.shape
    padded = array_module(x).zeros((n_rows, *windows.padded(height, width), n_channels), dtype=x.dtype)
    above, _, left, _ = windows.padding
    padded[:, above : above + height, left : left + width] = x
    return padded


def columns_of(x: Array, windows: PoolingWindows) -> Array:
    """Gather the windows of images.

    Returns
    -------
    array of shape (n_rows, n_windows, window height * window width * channels)
    """
    (height, width), (down, right) = windows.size, windows.stride
    xp = array_module(x)
    sliding = xp.lib.stride_tricks.sliding_window_view
    cells = sliding(_pad(x, windows), (height, width), axis=(1, 2))[:, ::down, ::right]
    n_windows = cells.shape[1] * cells.shape[2]
    return xp.ascontiguousarray(cells.transpose(0, 1, 2, 4, 5, 3)).reshape(len(x), n_windows, -1)


def images_of(columns: Array, windows: PoolingWindows, image: tuple[int, int, int]) -> Array:
    """Add windows up where they stood in images of shape ``image``: the transpose of `columns_of`."""
    n_rows, (height, width, n_channels) = len(columns), image
    n_high, n_wide = windows.counts(height, width)
    shape = (n_rows, *windows.padded(height, width), n_channels)
    xp = array_module(columns)
    if isinstance(columns, np.ndarray):
        from skdp.nn import compiled

        found = np.empty(shape, dtype=columns.dtype)
        compiled.images_of(np.ascontiguousarray(columns), *windows.size, *windows.stride, n_high, n_wide, found)
    else:
        found = xp.zeros(shape, dtype=columns.dtype)
        n_cells = windows.size[0] * windows.size[1]
        cells = columns.reshape(n_rows, n_high, n_wide, n_cells, n_channels)
        for k in range(n_cells):
            target = windows.cells(found, (n_high, n_wide), *divmod(k, windows.size[1]))
            target += cells[:, :, :, k]
    above, _, left, _ = windows.padding
    return xp.ascontiguousarray(found[:, above : above + height, left : left + width])


def max_pool(x: Array, windows: PoolingWindows) -> tuple[Array, Array]:
    """Return the largest number of each window and its place there.

    Of equal numbers the first counts, row by row. A NaN counts only where it is the first of its window.

    Returns
    -------
    largest : array of shape (n_rows, n_high, n_wide, channels)
    positions : array of int32 of the same shape
    """
    xp, counts = array_module(x), windows.counts(*x.shape[1:3])
    shape = (len(x), *counts, x.shape[3])
    if isinstance(x, np.ndarray):
        from skdp.nn import compiled

        largest, positions = np.empty(shape, dtype=x.dtype), np.empty(shape, dtype=np.int32)
        compiled.max_pool(np.ascontiguousarray(x), *windows.size, *windows.stride, largest, positions)
        return largest, positions
    largest, positions = windows.cells(x, counts, 0, 0), xp.zeros(shape, dtype=xp.int32)
    for k in range(1, windows.size[0] * windows.size[1]):
        cell = windows.cells(x, counts, *divmod(k, windows.size[1]))
        larger = cell > largest
        largest, positions = xp.where(larger, cell, largest), xp.where(larger, xp.int32(k), positions)
    return largest, positions


def unpool(dy: Array, positions: Array, windows: PoolingWindows, image: tuple[int, int, int]) -> Array:
    """Add ``dy`` where `max_pool` found the largest numbers, in images of shape ``image``."""
    xp, shape = array_module(dy), (len(dy), *image)
    if isinstance(dy, np.ndarray):
        from skdp.nn import compiled

        found = np.empty(shape, dtype=dy.dtype)
        compiled.unpool(np.ascontiguousarray(dy), positions, *windows.size, *windows.stride, found)
        return found
    found = xp.zeros(shape, dtype=dy.dtype)
    for k in range(windows.size[0] * windows.size[1]):
        target = windows.cells(found, dy.shape[1:3], *divmod(k, windows.size[1]))
        target += xp.where(positions == k, dy, xp.zeros_like(dy))
    return found
