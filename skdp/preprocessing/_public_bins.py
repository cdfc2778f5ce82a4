"""One-hot bins with public edges: a table becomes a sparse 0/1 matrix, and nothing is learnt.

Quantiles, vocabularies and scalers read the records, so they would have to be paid for. Here every
edge and every category comes from the user; ``fit`` learns the shape and the column names and
nothing else. Each output row has the same number of ones, so its Euclidean norm is a public
constant (``row_norm_``) that can serve as a bound.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from itertools import product
from math import prod, sqrt
from numbers import Real
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp.base.cells import as_table
from skdp.preprocessing._blocks import CategoryBlock, EdgeBlock, check_categories, check_edges

__all__ = ["PublicBinsEncoder"]

# Half decades on both sides of zero: serves standardised, counted and monetary columns alike.
_HALF_DECADES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_DEFAULT_EDGES = (*(-edge for edge in reversed(_HALF_DECADES)), 0.0, *_HALF_DECADES)


def _is_frame(X: Any) -> bool:
    return hasattr(X, "columns") and hasattr(X, "dtypes")


def _frame_column(X: Any, j: int) -> np.ndarray:
    """A column of a frame of pandas or polars, of a NumPy type where its own type has such a twin.

    A missing value must not decide about that, so nullable types and polars' booleans are objects.
    """
    if hasattr(X, "iloc"):
        column = X.iloc[:, j]
        typed = isinstance(column.dtype, np.dtype)
        return column.to_numpy() if typed else np.asarray(column, dtype=object)
    column = X.to_series(j)
    if column.dtype.is_integer() or column.dtype.is_float():
        return np.asarray(column.to_numpy())
    return np.fromiter(column.to_list(), dtype=object, count=len(column))


class PublicBinsEncoder(TransformerMixin, BaseEstimator):
    """One-hot encode columns by fixed public bins, public categories and crosses of them.

    Nothing is learnt from the records, so the encoder costs no privacy and may stand before a
    private estimator in a ``Pipeline``. Choose edges and categories from public knowledge (round
    numbers, code books, laws), never by looking at the records.

    A column with edges ``e1 < ... < ek`` gets the bins ``(-inf, e1), [e1, e2), ..., [ek, inf)``
    and one for missing values. A column with categories gets one bin for each, one for every other
    value and one for missing values. So every number, infinite ones included, falls into
    exactly one bin.

    Each cell is looked up by itself, so that no record decides how the others are read: a number is the
    category of equal value (as float64; True is 1), a text is the category of equal text, and ``"1"`` is
    never 1. In a column with edges a text is read as Python's ``float`` reads it. ``None``, NaN, NaT and
    ``pandas.NA`` are missing; a number beyond float64 counts as infinite. Only the type that an array or a
    column of a dataframe declares for all of its cells is taken as it is.

    Parameters
    ----------
    bins : sequence of float or dict, default=None
        Finite, strictly increasing edges. A sequence holds for every column that `categories` does
        not name. A dict maps a column (name, or position for input without names) to its edges;
        columns that neither `bins` nor `categories` names are left out. ``None`` is
        the public grid 0, ±0.1, ±0.3, ±1, ..., ±300, ±1000 for every column that `categories` does
        not name.
    categories : dict, default=None
        Maps a column (name or position) to the list of its public values, all strings or all
        numbers.
    crosses : sequence of tuple, default=()
        Each tuple names two or more encoded columns; one output column is added for each
        combination of their bins.
    sparse_output : bool, default=True
        Return a ``scipy.sparse.csr_matrix``, else a NumPy array.
        ``set_output(transform="pandas")`` and ``"polars"`` need ``sparse_output=False``.

    Attributes
    ----------
    n_features_in_ : int
        Number of columns seen in ``fit``.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Names of the columns, where the input has names that are all strings.
    n_features_out_ : int
        Number of output columns, fixed by the parameters and by `n_features_in_`.
    row_norm_ : float
        Euclidean norm of every output row: the square root of the number of encoded columns and
        crosses. It is a public constant.

    See Also
    --------
    skdp.datasets.rand_hie_bins : Public bins of the bundled health-insurance records.
    sklearn.preprocessing.KBinsDiscretizer : Bins learnt from the data, which no epsilon covers.

    Notes
    -----
    **Privacy.** ``transform`` acts on each row alone and ``fit`` depends on the shape and the column
    names only: under every adjacency, encoding is a record-by-record map fixed in advance.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import PublicBinsEncoder
    >>> X = np.array([[17.0, 0.0], [42.0, 1.0], [np.nan, 1.0]])
    >>> encoder = PublicBinsEncoder(bins={0: [18, 65]}, categories={1: [0, 1]})
    >>> encoder.fit_transform(X).toarray().astype(int)
    array([[1, 0, 0, 0, 1, 0, 0, 0],
           [0, 1, 0, 0, 0, 1, 0, 0],
           [0, 0, 0, 1, 0, 1, 0, 0]])
    >>> encoder.get_feature_names_out()[:4].tolist()
    ['x0 < 18', 'x0 in [18, 65)', 'x0 >= 65', 'x0 missing']
    """

    def __init__(
        self,
        *,
        bins: Any = None,
        categories: Mapping[Any, Any] | None = None,
        crosses: Iterable[tuple[Any, ...]] = (),
        sparse_output: bool = True,
    ) -> None:
        self.bins = bins
        self.categories = categories
        self.crosses = crosses
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None) -> "PublicBinsEncoder":
        """Check the parameters against the columns and that each value can be encoded.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            The records.
        y : None
            Ignored.

        Returns
        -------
        self : PublicBinsEncoder
            The fitted encoder.

        Raises
        ------
        TypeError
            A parameter, or an edge or category in it, has the wrong type.
        ValueError
            Edges that do not increase, repeated categories, a column that `X` does not have or
            that is named twice, a cross of a column that is not encoded.
        """
        scratch = copy(self)
        scratch._fit(X)
        # Only now, so that a refused fit leaves the encoder as it was.
        self.__dict__ = scratch.__dict__
        return self

    def transform(self, X: Any) -> Any:
        """Encode each record.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            The records; numbers, missing values, infinities, and strings in the columns with
            categories.

        Returns
        -------
        X_out : csr_matrix or ndarray of shape (n_samples, n_features_out_), float64
            Zeros and ones; every row holds ``row_norm_ ** 2`` ones.

        Raises
        ------
        TypeError
            A column with edges holds a cell that is neither a number nor text, or an array's type says that
            a column is text where its categories are numbers, or the other way round.
        ValueError
            The columns are not those of ``fit``, or a column with edges holds text that is not a number
            (named, never quoted).
        """
        check_is_fitted(self)
        n_rows, column = self._read(X, reset=False)
        bins = {
            block.column: block.encode(column(block.column), self._label(block.column))
            for block in self._blocks
        }
        parts = [*((block,) for block in self._blocks), *self._crosses]
        largest = max(self.n_features_out_, len(parts) * n_rows)
        index_type = np.int32 if largest <= np.iinfo(np.int32).max else np.int64
        indices = np.empty((n_rows, len(parts)), dtype=index_type)
        offset = 0
        for place, part in enumerate(parts):
            widths = tuple(block.width for block in part)
            cell = np.ravel_multi_index([bins[block.column] for block in part], widths)
            indices[:, place] = offset + cell
            offset += prod(widths)
        indptr = np.arange(0, indices.size + 1, len(parts), dtype=index_type)
        encoded = csr_matrix(
            (np.ones(indices.size), indices.ravel(), indptr),
            shape=(n_rows, self.n_features_out_),
        )
        return encoded if self.sparse_output else encoded.toarray()

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Name the output columns, for example ``'age in [18, 65)'`` or ``'age < 18 & sex = 0'``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            Must equal `feature_names_in_` where that exists. Without names in ``fit`` the default
            is x0, x1, ...

        Returns
        -------
        names : ndarray of str objects
            One name per output column.
        """
        check_is_fitted(self)
        inputs = self._check_names(input_features)
        names = {block.column: block.names(inputs[block.column]) for block in self._blocks}
        out = [name for block in self._blocks for name in names[block.column]]
        for cross in self._crosses:
            out += [" & ".join(cell) for cell in product(*(names[b.column] for b in cross))]
        return np.array(out, dtype=object)

    learns_from_data = False  # `skdp._around` asks what stands before a private fit

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = bool(self.categories)
        return tags

    def _fit(self, X: Any) -> None:
        categories = self._check_parameters()
        _, column_of = self._read(X, reset=True)
        blocks: dict[int, EdgeBlock | CategoryBlock] = {}
        for key, values in categories.items():
            column = self._new_column(key, blocks, "categories")
            blocks[column] = CategoryBlock(column, check_categories(values, f"column {key!r}"))
        if isinstance(self.bins, Mapping):
            for key, edges in self.bins.items():
                column = self._new_column(key, blocks, "bins")
                blocks[column] = EdgeBlock(column, check_edges(edges, f"column {key!r}"))
        else:
            edges = check_edges(_DEFAULT_EDGES if self.bins is None else self.bins, "`bins`")
            for column in range(self.n_features_in_):
                blocks.setdefault(column, EdgeBlock(column, edges))
        self._set_blocks([blocks[column] for column in sorted(blocks)])
        for block in self._blocks:
            # What transform refuses is refused here already; numbers never are, only their type.
            values = column_of(block.column)
            none_left_out = values.dtype.kind not in "biuf"
            block.encode(values if none_left_out else values[:0], self._label(block.column))

    def _read(self, X: Any, *, reset: bool) -> tuple[int, Callable[[int], np.ndarray]]:
        """Number of rows, and the function that gives a column by its position."""
        if not _is_frame(X):
            table = self._validated(as_table(X), reset)
            return table.shape[0], lambda j: table[:, j]
        # scikit-learn checks the names only: it would give all columns one type.
        validate_data(self, X=X, skip_check_array=True, reset=reset)
        if min(X.shape) < 1:
            what = "sample(s)" if X.shape[0] < 1 else "feature(s)"
            raise ValueError(
                f"Found a dataframe with 0 {what} (shape={X.shape}) while 1 is required."
            )
        return X.shape[0], lambda j: _frame_column(X, j)

    def _validated(self, X: Any, reset: bool) -> Any:
        """scikit-learn's validation, whose messages quote an array that is not a table."""
        try:
            return validate_data(self, X=X, dtype=None, ensure_all_finite=False, reset=reset)
        except (TypeError, ValueError) as error:
            text = str(error)
            if text.startswith("Expected 2D array"):
                text = (
                    "Expected 2D array of shape (n_samples, n_features), got a scalar or a vector. Reshape your "
                    "data: X.reshape(-1, 1) for one column, X.reshape(1, -1) for one record"
                )
            elif text.startswith("Complex data"):
                text = "Complex data not supported: X must hold real numbers or text"
            else:
                raise
            refused = type(error)(text)
        raise refused

    def _check_parameters(self) -> Mapping[Any, Any]:
        """Types of the parameters that need no data; the categories, empty where there are none."""
        if not isinstance(self.sparse_output, (bool, np.bool_)):
            raise TypeError(f"`sparse_output` must be True or False, got {self.sparse_output!r}.")
        if self.categories is not None and not isinstance(self.categories, Mapping):
            raise TypeError(
                "`categories` must be a dict from column to public values, "
                f"got {self.categories!r}."
            )
        if isinstance(self.crosses, str) or not isinstance(self.crosses, Iterable):
            raise TypeError(
                f"`crosses` must be a sequence of tuples of columns, got {self.crosses!r}."
            )
        return self.categories or {}

    def _position(self, key: Any, parameter: str) -> int:
        """Position of a column given by name or by position."""
        if isinstance(key, str):
            names = getattr(self, "feature_names_in_", None)
            if names is None:
                raise ValueError(
                    f"`{parameter}` names the column {key!r}, but X has no column names: give "
                    "positions, or pass a dataframe."
                )
            place = np.flatnonzero(names == key)
            if place.size == 0:
                raise ValueError(f"`{parameter}` names the column {key!r}, which X does not have.")
            return int(place[0])
        if not isinstance(key, (int, np.integer)) or isinstance(key, bool):
            raise TypeError(f"`{parameter}` must name columns by str or int, got {key!r}.")
        if not 0 <= key < self.n_features_in_:
            raise ValueError(
                f"`{parameter}` names the column {key}, but X has {self.n_features_in_} features."
            )
        return int(key)

    def _new_column(self, key: Any, blocks: Mapping[int, Any], parameter: str) -> int:
        column = self._position(key, parameter)
        if column in blocks:
            raise ValueError(
                f"Column {key!r} is given twice: by name and position, or in `bins` and "
                "`categories`."
            )
        return column

    def _set_blocks(self, blocks: list[EdgeBlock | CategoryBlock]) -> None:
        """Resolve the crosses, then store everything that depends on the parameters."""
        by_column = {block.column: block for block in blocks}
        crosses = []
        for cross in self.crosses:
            if isinstance(cross, (str, Real)) or len(cross) < 2:
                raise ValueError(f"A cross must name at least two columns, got {cross!r}.")
            columns = [self._position(key, "crosses") for key in cross]
            if len(set(columns)) < len(columns) or not by_column.keys() >= set(columns):
                raise ValueError(
                    f"The cross {cross!r} must name different columns that `bins` or `categories` "
                    "encode."
                )
            crosses.append(tuple(by_column[column] for column in columns))
        if not blocks:
            raise ValueError("`bins` and `categories` name no column: nothing to encode.")
        self._blocks = blocks
        self._crosses = crosses
        widths = [b.width for b in blocks] + [prod(b.width for b in cross) for cross in crosses]
        self.n_features_out_ = sum(widths)
        self.row_norm_ = sqrt(len(widths))

    def _label(self, column: int) -> str:
        names = getattr(self, "feature_names_in_", None)
        return f"Column {column}" if names is None else f"Column {names[column]!r}"

    def _check_names(self, input_features: Any) -> list[str]:
        known = getattr(self, "feature_names_in_", None)
        if input_features is None:
            return [f"x{i}" for i in range(self.n_features_in_)] if known is None else list(known)
        given = [str(name) for name in np.asarray(input_features, dtype=object)]
        if known is not None and list(known) != given:
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(given) != self.n_features_in_:
            raise ValueError(
                f"input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(given)}"
            )
        return given
