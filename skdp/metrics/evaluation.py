"""The result of `skdp.metrics.evaluate`: a mapping from names to released scores, with a table as its text."""

import html
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from skdp.metrics.released_score import ReleasedScore
from skdp.privacy import PrivacyReport
from skdp.statistics.released_tables import table_text

if TYPE_CHECKING:
    import pandas as pd

NAMES = {
    "accuracy": "accuracy",
    "balanced_accuracy": "balanced accuracy",
    "precision": "precision",
    "recall": "recall",
    "specificity": "specificity",
    "f1": "F1",
    "roc_auc": "ROC AUC",
    "average_precision": "average precision",
    "log_loss": "log loss",
    "brier_score": "Brier score",
    "f1_macro": "F1, macro",
    "roc_auc_ovr": "ROC AUC, one vs rest",
    "r2": "R2",
    "mean_squared_error": "MSE",
    "root_mean_squared_error": "RMSE",
    "mean_absolute_error": "MAE",
    "mean_error": "mean error",
}


OF_TWO_CLASSES = (
    "at", "best_threshold", "bin_edges", "fpr", "plot_precision_recall", "plot_roc", "precision", "recall",
    "table", "table_noise_std", "threshold", "thresholds", "tpr",
)  # fmt: skip


class Evaluation(Mapping[str, ReleasedScore]):
    """Released scores of one model on one part of the records: a mapping from the name of a score to it.

    Attributes
    ----------
    privacy_ : PrivacyReport
        The report of all scores together.
    """

    privacy_: PrivacyReport
    _kind = ""  # the kind of model, for messages, where it has not two classes
    _instead = ""  # what such an evaluation has in the place of thresholds and curves, for messages

    if not TYPE_CHECKING:  # a type checker is to know which attributes there are

        def __getattr__(self, name: str) -> object:
            text = f"{type(self).__name__!r} object has no attribute {name!r}"
            if self._kind and name in OF_TWO_CLASSES:
                text += f": {self._kind} has no thresholds and no curve over them. {self._instead}"
            raise AttributeError(text)

    @property
    def _scores(self) -> dict[str, ReleasedScore]:
        raise NotImplementedError

    def __getitem__(self, name: str) -> ReleasedScore:
        try:
            return self._scores[name]
        except KeyError:
            raise KeyError(f"no score {name!r}; there are {', '.join(self._scores)}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._scores)

    def __len__(self) -> int:
        return len(self._scores)

    def _about(self) -> str:
        """One line on the evaluated model and the method."""
        raise NotImplementedError

    def _rows(self) -> list[tuple[str, str, str, str]]:
        return [
            ("", "value", "noise interval", "interval"),
            *(
                (
                    NAMES.get(name, name.replace("_", " ")),
                    _number(score.value),
                    _range(score.noise_interval),
                    _range(score.interval),
                )
                for name, score in self._scores.items()
            ),
        ]

    def to_frame(self) -> "pd.DataFrame":
        """Return the scores as a data frame; needs pandas.

        Returns
        -------
        DataFrame
            Index ``metric``; columns ``value``, ``noise_std``, ``noise_low``, ``noise_high``, ``low`` and
            ``high``. Limits of intervals that are None are NaN.
        """
        try:
            import pandas as pd
        except ImportError as error:
            raise ImportError("to_frame needs pandas: pip install pandas") from error
        nothing = (float("nan"), float("nan"))
        rows = {
            name: (s.value, s.noise_std, *(s.noise_interval or nothing), *(s.interval or nothing))
            for name, s in self._scores.items()
        }
        columns = ["value", "noise_std", "noise_low", "noise_high", "low", "high"]
        return pd.DataFrame.from_dict(rows, orient="index", columns=columns).rename_axis("metric")

    def __repr__(self) -> str:
        return f"{table_text(self._rows())}\n<{self._about()}>"

    def _repr_html_(self) -> str:
        return table_html(self._rows(), self._about())


def _number(value: float) -> str:
    return f"{value:.3f}" if abs(value) < 1000 else f"{value:.6g}"


def _range(interval: tuple[float, float] | None) -> str:
    if interval is None:
        return "not given"
    return f"{_number(interval[0])} to {_number(interval[1])}"


def table_html(rows: Sequence[Sequence[str]], caption: str) -> str:
    """Return rows of cells, the first of which is the head, as a table of HTML."""
    head, *body = ([html.escape(cell) for cell in row] for row in rows)
    cells = ("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in body)
    return (
        f"<table><thead><tr>{''.join(f'<th>{cell}</th>' for cell in head)}</tr></thead>"
        f"<tbody>{''.join(cells)}</tbody><caption>{html.escape(caption)}</caption></table>"
    )
