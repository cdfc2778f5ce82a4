"""An additive model of scikit-learn's and NumPy's parts alone."""

import math

import numpy as np
from numpy.typing import NDArray

from skdp._export import clipper, filler, name_features, shifted_and_divided
from skdp.linear_model.additive.function import AdditiveFunction
from skdp.linear_model.additive.shapes import smooth_functions
from skdp.privacy import EDGE, N_FUNCTIONS

# Smooth function k is made of 1, the cell, and cos(pi m v), v = (cell + 2.5) / 5, for the first k + 1 of these m.
COSINES = (2, 1, 4, 3)

Array = NDArray[np.float64]


def additive_features(function: AdditiveFunction, model: object) -> tuple[object, Array, Array]:
    """Transformer, coefficients and intercepts of a linear model with the same scores.

    The transformer is a fitted ``FeatureUnion`` or ``Pipeline``. Cosines of affine maps of cut cells stand in the
    place of the smooth functions, which are sums of them, the cell and a constant.

    Parameters
    ----------
    function : AdditiveFunction
    model : estimator
        Gives names and number of its columns to the first steps.

    Returns
    -------
    transformer : FeatureUnion or Pipeline
    coef : ndarray of shape (n_outputs, n_made)
    intercept : ndarray of shape (n_outputs,)
    """
    from sklearn.pipeline import make_pipeline

    d, (low, high) = function.n_features, function.bounds
    steps = [name_features(filler(function.fill), model), clipper(low, high, d)]
    coef, intercept, made = function.linear, function.offset, function.curves.expansion
    if made.size > made.levels.size:
        cells, of_cells, constant = _of_cells(function)
        steps.append(_union([("lines", _function(None)), ("curves", cells)]))
        coef, intercept = np.vstack([coef, of_cells]), intercept + constant
    numbers: object = make_pipeline(*steps)
    if made.levels.size:
        marks, of_marks = _one_hots(function)
        # Missing cells stay missing here, so that they are no level; names are checked as in the other branch.
        first = name_features(shifted_and_divided(np.zeros(d), np.ones(d)), model)
        numbers = _union([("numbers", numbers), ("levels", make_pipeline(first, *marks))])
        coef = np.vstack([coef, of_marks])
    return numbers, np.ascontiguousarray(coef.T), intercept


def _of_cells(function: AdditiveFunction) -> tuple[object, Array, Array]:
    """Cut cells, their cosines and their products, with coefficients and the constant."""
    from sklearn.pipeline import make_pipeline

    curves, made = function.curves, function.curves.expansion
    used = np.union1d(np.flatnonzero(made.counts), made.pairs.reshape(-1)).astype(np.int64)
    curved = np.searchsorted(used, np.flatnonzero(made.counts))
    in_cosines, coef, constant = _in_cosines(function, used)
    parts: list[tuple[str, object]] = [("cells", _function(None))]
    columns = [coef]
    for m, of_cosine in zip(COSINES, in_cosines):
        if not curved.size or not np.any(of_cosine):
            continue
        width = np.full(curved.size, 2.0 * EDGE / (m * math.pi))
        turned = shifted_and_divided(np.full(curved.size, -EDGE), width)
        parts.append((f"cos{m}", make_pipeline(_chosen(curved), turned, _function(np.cos))))
        columns.append(of_cosine[curved])
    if len(made.pairs):
        products, of_products = _products(function, used)
        parts.append(("products", products))
        columns.append(of_products)
    own = curves.columns[used]
    scaled = shifted_and_divided(curves.center[used], curves.scale[used])
    cut = clipper(np.full(used.size, -EDGE), np.full(used.size, EDGE), used.size)
    pipeline = make_pipeline(_chosen(own), scaled, cut, _union(parts))
    return pipeline, np.vstack(columns), constant


def _in_cosines(function: AdditiveFunction, used: NDArray[np.int64]) -> tuple[list[Array], Array, Array]:
    """Coefficients of each cosine and of the cells, of shape (n_used, n_outputs), and the constant of all."""
    made, q = function.curves.expansion, function.n_outputs
    basis = _basis(made.weights)
    of_cosine = [np.zeros((used.size, q)) for _ in COSINES]
    of_cell, constant = np.zeros((used.size, q)), np.zeros(q)
    for at, k, theta in zip(np.searchsorted(used, made.owner), made.order, function.theta):
        constant += basis[k, 0] * theta
        of_cell[at] += basis[k, 1] * theta
        for m in range(k + 1):
            of_cosine[m][at] += basis[k, 2 + m] * theta
    return of_cosine, of_cell, constant


def _basis(weights: Array) -> Array:
    """Each smooth function in 1, the cell and cosines, of shape (4, 6)."""
    cells = np.linspace(-EDGE, EDGE, 101)
    waves = [np.cos(math.pi * m * (cells + EDGE) / (2.0 * EDGE)) for m in COSINES]
    parts = np.column_stack([np.ones_like(cells), cells, *waves])
    values = smooth_functions(cells, weights)
    found = np.zeros((N_FUNCTIONS, parts.shape[1]))
    for k in range(N_FUNCTIONS):
        found[k, : 3 + k] = np.linalg.lstsq(parts[:, : 3 + k], values[:, k])[0]
    return found


def _products(function: AdditiveFunction, used: NDArray[np.int64]) -> tuple[object, Array]:
    """All products of the columns that occur in pairs; a product that the model lacks has the coefficient 0."""
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import PolynomialFeatures

    made = function.curves.expansion
    columns = np.unique(made.pairs)
    polynomial = PolynomialFeatures(2, interaction_only=True, include_bias=False)
    polynomial.set_output(transform="default").fit(np.zeros((1, columns.size)))
    place = {tuple(np.flatnonzero(row)): i for i, row in enumerate(polynomial.powers_)}
    coef = np.zeros((len(place), function.n_outputs))
    pairs = np.sort(np.searchsorted(columns, made.pairs), axis=1)
    for pair, theta in zip(pairs, function.theta[made.size - len(pairs) :]):
        coef[place[tuple(pair)]] += theta
    return make_pipeline(_chosen(np.searchsorted(used, columns)), polynomial), coef


def _one_hots(function: AdditiveFunction) -> tuple[list[object], Array]:
    """Steps that mark levels, and the coefficients of the marks.

    The model compares in the table's own precision, and a level that float32 does not hold gets a second category,
    its rounded value, with the same coefficient.
    """
    from sklearn.preprocessing import OneHotEncoder

    curves, made = function.curves, function.curves.expansion
    positions, first = np.unique(made.levels_of, return_index=True)
    categories, coef = [], []
    for begin, end in zip(first, [*first[1:], made.levels.size]):
        exact = made.levels[begin:end]
        with np.errstate(over="ignore"):
            rounded = exact.astype(np.float32).astype(np.float64)
        known = np.unique(np.append(exact, rounded[np.isfinite(rounded)]))
        own = function.theta[made.owner.size + begin : made.owner.size + end] * made.level_weight
        for value in known:
            same = exact == value
            coef.append(own[same if same.any() else rounded == value].sum(axis=0))
        categories.append(known)
    encoder = OneHotEncoder(categories=categories, handle_unknown="ignore", sparse_output=False, dtype=np.float64)
    encoder.set_output(transform="default").fit(np.zeros((1, positions.size)))
    return [_chosen(curves.columns[positions]), encoder], np.array(coef)


def _chosen(columns: NDArray[np.int64]) -> object:
    """A step that takes columns."""
    return _function(np.take, indices=np.array(columns), axis=1)


def _union(parts: list[tuple[str, object]]) -> object:
    """The results of steps side by side, as an array whatever `set_config` asks for."""
    from sklearn.pipeline import FeatureUnion

    return FeatureUnion(parts).set_output(transform="default")


def _function(function: object, **options: object) -> object:
    """A step that applies a function of NumPy; None leaves cells as they are."""
    from sklearn.preprocessing import FunctionTransformer

    made = FunctionTransformer(function, kw_args=options or None)
    return made.set_output(transform="default").fit(np.zeros((1, 1)))
