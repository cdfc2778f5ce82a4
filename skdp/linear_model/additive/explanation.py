"""Why rows get their scores: the contribution of each column and of each pair."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from skdp.linear_model.additive.function import AdditiveFunction

if TYPE_CHECKING:
    import pandas as pd

PRINTED_TERMS, PRINTED_ROWS = 20, 3  # what a printed explanation has at most; a choice

Array = NDArray[np.float64]


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """Contributions of columns and pairs to the scores of rows; for each row they and the intercept are its score.

    ``explanation[i]`` explains row i alone, and a loop over an explanation explains row by row. Printed, it
    is a table for each row, the largest contribution first.

    Attributes
    ----------
    names : tuple of str
        Of the columns, then of the pairs, such as "age x income".
    data : ndarray of shape (n_rows, n_features)
        The rows that are explained.
    contributions : ndarray of shape (n_rows, n_terms) or (n_rows, n_terms, n_classes)
        In units of the score: log odds of the second class, a score for each of several classes, or units of the
        target. That of a column is 0 for a line at the column's centre.
    intercept : float or ndarray of shape (n_classes,)
        ``intercept_`` of the model.
    score : ndarray of shape (n_rows,) or (n_rows, n_classes)
        Intercept and contributions together: the decision function, or the prediction before it is cut to
        ``prediction_bounds_``.
    prediction : ndarray of shape (n_rows,)
        The predicted labels, or the predicted targets after the cut.
    classes : ndarray of shape (n_classes,) or None
        ``classes_`` of a classifier.

    Notes
    -----
    **Privacy.** An explanation is a function of its rows and of released numbers, as a prediction is: it says
    nothing more of the training records than the model does. It shows the explained rows themselves.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp import DPAdditiveRegressor
    >>> X = np.random.default_rng(0).normal(size=(8000, 2))
    >>> model = DPAdditiveRegressor(epsilon=4.0).fit(X, np.abs(X[:, 0]) + X[:, 1])
    >>> found = model.explain([0.0, 1.5])
    >>> bool(found.contributions[0, 0] < 0.0 < found.contributions[0, 1])
    True
    >>> total = found.intercept + found.contributions.sum()
    >>> bool(np.isclose(total, model.predict([[0.0, 1.5]])[0]))
    True
    """

    names: tuple[str, ...]
    data: Array
    contributions: Array
    intercept: Array
    score: Array
    prediction: np.ndarray
    classes: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.score)

    def __getitem__(self, row: int) -> "Explanation":
        n = len(self)
        if not -n <= row < n:
            raise IndexError(f"row {row} is outside of the {n} rows of the explanation")
        part = slice(row % n, row % n + 1)
        return Explanation(
            self.names, self.data[part], self.contributions[part], self.intercept, self.score[part],
            self.prediction[part], self.classes,
        )  # fmt: skip

    def __iter__(self) -> Iterator["Explanation"]:
        return (self[row] for row in range(len(self)))

    def __repr__(self) -> str:
        tables = ["\n".join(_lines(self, row)) for row in range(min(len(self), PRINTED_ROWS))]
        if len(self) > PRINTED_ROWS:
            tables.append(f"... and {len(self) - PRINTED_ROWS} more rows")
        return "\n\n".join(tables)

    def to_frame(self) -> "pd.DataFrame":
        """The contributions as a pandas DataFrame.

        Returns
        -------
        DataFrame
            A row for each explained row, or with three or more classes for each of them and each class. The
            columns are "intercept", the terms, "score" and "prediction".

        Raises
        ------
        ImportError
            If pandas is not installed.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        n, terms = len(self), len(self.names)
        by_output = self.contributions.reshape(n, terms, -1).transpose(0, 2, 1)
        q = by_output.shape[1]
        index: object = pd.RangeIndex(n, name="row")
        if self.contributions.ndim == 3:
            index = pd.MultiIndex.from_product([range(n), self.classes], names=["row", "class"])
        terms_of = pd.DataFrame(by_output.reshape(n * q, terms), index=index, columns=list(self.names))
        ends = {
            "intercept": np.tile(np.reshape(self.intercept, -1), n),
            "score": self.score.reshape(-1),
            "prediction": np.repeat(self.prediction, q),
        }
        first, *last = (pd.Series(end, index=index, name=name) for name, end in ends.items())
        return pd.concat([first, terms_of, *last], axis=1)


def explanation_of(
    function: AdditiveFunction, X: Array, prediction: np.ndarray, classes: np.ndarray | None
) -> Explanation:
    """Explain the scores of rows.

    Parameters
    ----------
    function : AdditiveFunction
    X : ndarray of shape (n, n_features)
    prediction : ndarray of shape (n,)
        What the model predicts for the rows.
    classes : ndarray or None
        Labels of a classifier.
    """
    contributions = function.contributions(X)
    score = function.intercept + contributions.sum(axis=1)
    in_units = function.of_outputs
    return Explanation(
        function.term_names, X, in_units(contributions), in_units(function.intercept), in_units(score),
        prediction, classes,
    )  # fmt: skip


def _lines(explanation: Explanation, row: int) -> Iterator[str]:
    """The lines of a row's table."""
    found = explanation.contributions[row].reshape(len(explanation.names), -1)
    size = np.abs(found).max(axis=1)
    order = np.argsort(-size, kind="stable")
    shown = order[: min(PRINTED_TERMS, int(np.count_nonzero(size)))]
    outputs = ["contribution"]
    if explanation.classes is not None and explanation.contributions.ndim == 3:
        outputs = [str(label) for label in explanation.classes]
    width = max(12, *(len(name) for name in outputs))

    def line(numbers: Array, text: str) -> str:
        return "".join(f"{number:>+{width}.4g}  " for number in numbers) + text

    yield "".join(f"{name:>{width}}  " for name in outputs) + "term"
    for term in shown:
        yield line(found[term], _named(explanation, row, int(term)))
    rest = order[shown.size : int(np.count_nonzero(size))]
    if rest.size:
        yield line(found[rest].sum(axis=0), f"all {rest.size} smaller terms together")
    yield line(np.reshape(explanation.intercept, -1), "intercept")
    yield line(explanation.score[row].reshape(-1), _score_text(explanation))
    predicted = explanation.prediction[row]
    text = str(predicted) if explanation.classes is not None else f"{predicted:.6g}"
    yield f"{'':{width}}  prediction: {text}"


def _named(explanation: Explanation, row: int, term: int) -> str:
    """A term's name, with the row's value of a column."""
    name = explanation.names[term]
    if term >= explanation.data.shape[1]:
        return name
    value = explanation.data[row, term]
    return f"{name} = missing" if np.isnan(value) else f"{name} = {value:.6g}"


def _score_text(explanation: Explanation) -> str:
    if explanation.classes is None:
        return "sum: the prediction before it is cut"
    if explanation.contributions.ndim == 3:
        return "sum: the scores of the classes"
    return f"sum: log odds of {explanation.classes[1]}"
