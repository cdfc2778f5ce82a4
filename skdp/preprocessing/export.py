"""Public bins in the words of scikit-learn and NumPy, for places where skdp is not installed."""

from functools import partial
from math import prod

import numpy as np
from sklearn.base import BaseEstimator

from skdp.preprocessing.blocks import CategoryBlock, EdgeBlock

Block = EdgeBlock | CategoryBlock


def bins_of(parts: list[tuple[Block, ...]], n_features: int, sparse_output: bool) -> BaseEstimator:
    """A fitted ``ColumnTransformer`` with the bins of these blocks and crosses, in their order.

    A cross of blocks is the cell of their bins, counted as `numpy.ravel_multi_index` counts.
    """
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    row: list[object] = [0.0] * n_features  # any values that can be read
    steps = []
    for place, part in enumerate(parts):
        for block in part:
            if isinstance(block, CategoryBlock) and block.texts:
                row[block.column] = block.categories[0]
        n_cells = prod(block.width for block in part)
        hot = OneHotEncoder(categories=[np.arange(n_cells)], sparse_output=sparse_output)
        columns = [block.column for block in part]
        steps.append((f"bins{place}", make_pipeline(*_cells(part), hot), columns))
    made = ColumnTransformer(steps, sparse_threshold=1.0 if sparse_output else 0.0)
    return made.set_output(transform="default").fit(np.array([row], dtype=object))


def _cells(part: tuple[Block, ...]) -> list[object]:
    """Steps from the columns of these blocks to the number of the cell that a row falls into."""
    from sklearn.compose import ColumnTransformer
    from sklearn.pipeline import make_pipeline

    if len(part) == 1:
        return _bins(part[0])
    each = [(f"{i}", make_pipeline(*_bins(block)), [i]) for i, block in enumerate(part)]
    widths = [block.width for block in part]
    strides = np.array([[prod(widths[i + 1 :])] for i in range(len(part))])
    return [ColumnTransformer(each), _function(np.tensordot, b=strides, axes=1)]


def _bins(block: Block) -> list[object]:
    """Steps from one column to the numbers of its bins."""
    if isinstance(block, EdgeBlock):
        # NaN sorts after all numbers.
        return [_function(np.asarray, dtype=float), _counted(np.append(block.edges, np.nan))]
    m = len(block.categories)
    if not block.texts:
        values = np.asarray(block.categories, dtype=float)
        order = np.argsort(values)
        known = values[order]
        ends = np.column_stack([known, np.nextafter(known, np.inf)]).ravel()
        bins = np.full(2 * m + 2, m)
        bins[1 : 2 * m : 2], bins[-1] = order, m + 1
        return [
            _function(np.asarray, dtype=float),
            _counted(np.append(ends, np.nan)),
            _function(partial(np.take, bins)),
        ]
    from sklearn.preprocessing import OrdinalEncoder

    codes = OrdinalEncoder(
        categories=[np.array([*map(str, block.categories), None, np.nan], dtype=object)],
        handle_unknown="use_encoded_value",
        unknown_value=-1,
        encoded_missing_value=-2,
    )
    bins = np.array([m + 1, m, *range(m), m + 1])  # NaN, other, categories, None
    return [
        _function(np.asarray, dtype=object),
        codes,
        _counted(np.arange(-1.5, m)),
        _function(partial(np.take, bins)),
    ]


def _counted(edges: np.ndarray) -> object:
    """A step that counts how many edges are not above a value."""
    return _function(partial(np.searchsorted, edges, side="right"))


def _function(function: object, **settings: object) -> object:
    from sklearn.preprocessing import FunctionTransformer

    return FunctionTransformer(function, kw_args=settings or None)
