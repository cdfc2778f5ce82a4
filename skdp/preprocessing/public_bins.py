"""One-hot bins with public edges: a table becomes a sparse 0/1 matrix, and nothing is learnt.

Quantiles, vocabularies and scalers read the records, so they would cost privacy budget. Here every edge and every
category comes from the user. `fit` learns only the shape and the column names. Each output row has the same
number of ones, so its l2 norm is a public constant, ``row_norm_``, which can serve as a bound.
"""

from collections.abc import Callable, Iterable, Mapping
from copy import copy
from itertools import product
from math import prod, sqrt
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from skdp._docs import document
from skdp._export import name_features
from skdp.base.blocks import tables_by_block
from skdp.base.cells import as_table, check_collected
from skdp.base.declare import Declared, check_parameters, fitted, parameter
from skdp.base.each_block import fit_by_block
from skdp.base.kinds import described, flag
from skdp.base.user_tables import refuse_weights
from skdp.kernels import is_cupy
from skdp.preprocessing.blocks import CategoryBlock, EdgeBlock, check_categories, check_edges
from skdp.preprocessing.export import bins_of

# Edges at half decades on both sides of zero; a choice, not tuned.
_HALF_DECADES = (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
_DEFAULT_EDGES = (*(-edge for edge in reversed(_HALF_DECADES)), 0.0, *_HALF_DECADES)


def _frame_column(X: Any, j: int) -> np.ndarray:
    """Return a column of a frame of pandas or polars.

    It keeps its type if NumPy has it or a counterpart. Otherwise it is of objects: so are nullable
    types and booleans of polars, because a missing value must not decide the type.
    """
    if hasattr(X, "iloc"):
        column = X.iloc[:, j]
        typed = isinstance(column.dtype, np.dtype)
        return column.to_numpy() if typed else np.asarray(column, dtype=object)
    column = X.to_series(j)
    if column.dtype.is_integer() or column.dtype.is_float():
        return np.asarray(column.to_numpy())
    return np.fromiter(column.to_list(), dtype=object, count=len(column))


def _check_mapping(name: str, value: object) -> None:
    if value is not None and not isinstance(value, Mapping):
        raise TypeError(f"`{name}` must be a dict from column to public values, got {value!r}.")


def _check_crosses(name: str, value: object) -> None:
    if isinstance(value, str) or not isinstance(value, Iterable):
        raise TypeError(f"`{name}` must be a sequence of tuples of columns, got {value!r}.")


@document()
@tables_by_block
class PublicBinsEncoder(TransformerMixin, Declared, BaseEstimator):
    """One-hot encode columns by fixed public bins, public categories and crosses of them.

    The encoder learns nothing from the records, costs no privacy budget and may stand before a private estimator
    in a ``Pipeline``. Choose edges and categories from public knowledge (round numbers, code books, laws), never
    by looking at the records.

    A column with edges ``e1 < ... < ek`` gets the bins ``(-inf, e1), [e1, e2), ..., [ek, inf)`` and one for
    missing values. A column with categories gets one bin for each category, one for all other values and one for
    missing values. Every value, also an infinite one, falls into exactly one bin.

    Each cell is looked up by itself, so no record decides how another one is read. A number has the category of
    equal value (as float64; True is 1). A text has the category of equal text, and ``"1"`` is never 1. In a column
    with edges a text is read as Python's ``float`` reads it. ``None``, NaN, NaT and ``pandas.NA`` are missing. A
    number beyond float64 counts as infinite. The type that an array or a dataframe declares for a whole column is
    taken as it is.

    See Also
    --------
    skdp.datasets.rand_hie_bins : Public bins of the bundled health-insurance records.
    sklearn.preprocessing.KBinsDiscretizer : Bins learnt from the data, which no epsilon covers.

    Notes
    -----
    **Privacy.** `transform` maps each row by itself, and the map follows from the parameters, the number of
    columns and their names: one record decides one encoded row and nothing else, and no budget is spent. `fit`
    looks at the records only to refuse what `transform` would refuse.

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

    bins: Any = parameter(
        described("sequence of float or dict"),
        """Finite, strictly increasing edges. A sequence holds for every column that ``categories`` does not
        name. A dict maps a column to its edges; a column that neither ``bins`` nor ``categories`` names is left
        out. A column is given by its name, or by its position in input without names. None is the public grid
        0, ±0.1, ±0.3, ±1, ..., ±300, ±1000 for every column that ``categories`` does not name.""",
        default=None,
    )
    categories: Mapping[Any, Any] | None = parameter(
        described("dict", _check_mapping),
        "Maps a column (name or position) to the list of its public values, all strings or all numbers.",
        default=None,
    )
    crosses: Iterable[tuple[object, ...]] = parameter(
        described("sequence of tuple", _check_crosses),
        """Each tuple names two or more encoded columns. One output column is added for each combination of
        their bins.""",
        default=(),
    )
    sparse_output: bool = parameter(
        flag(),
        """Whether to return a ``scipy.sparse.csr_matrix`` or a NumPy array.
        ``set_output(transform="pandas")`` and ``"polars"`` need ``sparse_output=False``.""",
        default=True,
    )
    n_features_in_: int = fitted()
    feature_names_in_: np.ndarray = fitted()
    n_features_out_: int = fitted(
        "int", "Number of output columns. It follows from the parameters and ``n_features_in_``."
    )
    row_norm_: float = fitted(
        "float",
        """The l2 norm of every output row, a public constant: the square root of the number of encoded columns
        and crosses.""",
    )

    @fit_by_block
    def fit(self, X: object, y: object = None, **more: object) -> "PublicBinsEncoder":
        """Check the parameters against the columns, and that each value can be encoded.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            The records.
        y : None
            Ignored.
        **more : dict
            ``sample_weight=None`` or nothing.

        Returns
        -------
        self : PublicBinsEncoder
            The fitted encoder.

        Raises
        ------
        TypeError
            If a parameter, or an edge or category in it, has the wrong type.
        ValueError
            If edges do not increase, categories repeat, ``X`` does not have a named column, a column is named
            twice, or a cross names a column that is not encoded.
        """
        refuse_weights(more)
        scratch = copy(self)
        scratch._fit(X)
        # Only now, so that a refused fit leaves the encoder as it was.
        self.__dict__ = scratch.__dict__
        return self

    def transform(self, X: object) -> Any:
        """Encode each record.

        Parameters
        ----------
        X : array-like or dataframe of shape (n_samples, n_features)
            The records: numbers, missing values, infinities, and strings in the columns with categories.

        Returns
        -------
        X_out : csr_matrix or ndarray of shape (n_samples, n_features_out_), float64
            Zeros and ones. Every row has ``row_norm_ ** 2`` ones.

        Raises
        ------
        TypeError
            If a column with edges holds a cell that is neither a number nor text, or if the declared type of a
            column is text and its categories are numbers, or the other way round.
        ValueError
            If the columns differ from the columns in `fit`, or a column with edges holds text that is not a
            number. The message names the column and quotes no cell.
        """
        check_is_fitted(self)
        n_rows, column = self._read(X, reset=False)
        with np.errstate(all="ignore"):  # a warning would tell of a cell
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
            (np.ones(indices.size), indices.ravel(), indptr), shape=(n_rows, self.n_features_out_)
        )
        return encoded if self.sparse_output else encoded.toarray()

    def get_feature_names_out(self, input_features: object = None) -> np.ndarray:
        """Name the output columns, for example ``'age in [18, 65)'`` or ``'age < 18 & sex = 0'``.

        Parameters
        ----------
        input_features : array-like of str, default=None
            It must equal ``feature_names_in_`` if that exists. The default is x0, x1, ... without names in `fit`.

        Returns
        -------
        names : ndarray of str objects
            One name for each output column.
        """
        check_is_fitted(self)
        inputs = self._check_names(input_features)
        names = {block.column: block.names(inputs[block.column]) for block in self._blocks}
        out = [name for block in self._blocks for name in names[block.column]]
        for cross in self._crosses:
            out += [" & ".join(cell) for cell in product(*(names[b.column] for b in cross))]
        return np.array(out, dtype=object)

    def to_sklearn(self) -> Any:
        """Return the encoder as a fitted ``ColumnTransformer`` with the same columns.

        It is made of scikit-learn's encoders and NumPy's functions, and needs no skdp. Cells are read as NumPy and
        scikit-learn read them: `pandas.NA` is refused in a column of numbers, and the columns have other names.

        Returns
        -------
        ColumnTransformer
        """
        check_is_fitted(self)
        parts = [*((block,) for block in self._blocks), *self._crosses]
        return name_features(bins_of(parts, self.n_features_in_, bool(self.sparse_output)), self)

    learns_from_data: ClassVar[bool] = False  # `skdp._compat` asks what stands before a private fit

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = bool(self.categories)
        return tags

    def _fit(self, X: object) -> None:
        """Set the attributes of this object, which `fit` throws away if something is refused."""
        check_parameters(self)
        _, column_of = self._read(X, reset=True)
        blocks: dict[int, EdgeBlock | CategoryBlock] = {}
        for key, values in (self.categories or {}).items():
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
            # What `transform` would refuse is refused here. Numbers are never refused, only their type.
            values = column_of(block.column)
            none_left_out = values.dtype.kind not in "biuf"
            block.encode(values if none_left_out else values[:0], self._label(block.column))

    def _read(self, X: Any, *, reset: bool) -> tuple[int, Callable[[int], np.ndarray]]:
        """Return the number of rows, and the function that gives a column by its position."""
        check_collected(X=X)
        if is_cupy(X):
            raise TypeError("PublicBinsEncoder works in the host's memory: pass X as a NumPy array or a DataFrame")
        if not (hasattr(X, "columns") and hasattr(X, "dtypes")):
            table = self._validated(as_table(X), reset)
            return table.shape[0], lambda j: table[:, j]
        # scikit-learn checks the names only: it would give all columns one type.
        validate_data(self, X=X, skip_check_array=True, reset=reset)
        if min(X.shape) < 1:
            what = "sample(s)" if X.shape[0] < 1 else "feature(s)"
            raise ValueError(f"Found a dataframe with 0 {what} (shape={X.shape}) while 1 is required.")
        return X.shape[0], lambda j: _frame_column(X, j)

    def _validated(self, X: object, reset: bool) -> np.ndarray:
        """Validate an array. scikit-learn's messages that quote cells are replaced."""
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

    def _position(self, key: object, parameter: str) -> int:
        """Return the position of a column that is given by its name or position."""
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
            raise ValueError(f"`{parameter}` names the column {key}, but X has {self.n_features_in_} features.")
        return int(key)

    def _new_column(self, key: object, blocks: Mapping[int, object], parameter: str) -> int:
        """Return the position of a column that no block encodes yet."""
        column = self._position(key, parameter)
        if column in blocks:
            raise ValueError(
                f"Column {key!r} is given twice: by name and position, or in `bins` and `categories`."
            )
        return column

    def _set_blocks(self, blocks: list[EdgeBlock | CategoryBlock]) -> None:
        """Resolve the crosses, and store everything that depends on the parameters."""
        by_column = {block.column: block for block in blocks}
        crosses = []
        for cross in self.crosses:
            if isinstance(cross, (str, Real)) or len(cross) < 2:
                raise ValueError(f"A cross must name at least two columns, got {cross!r}.")
            columns = [self._position(key, "crosses") for key in cross]
            if len(set(columns)) < len(columns) or not by_column.keys() >= set(columns):
                raise ValueError(
                    f"The cross {cross!r} must name different columns that `bins` or `categories` encode."
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
        """Return how error messages name a column."""
        names = getattr(self, "feature_names_in_", None)
        return f"Column {column}" if names is None else f"Column {names[column]!r}"

    def _check_names(self, input_features: object) -> list[str]:
        """Return the names of the input columns, given or known."""
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
