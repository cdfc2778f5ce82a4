"""The fits behind `skdp.metrics`: each releases its statistics through a session, as any private fit."""

import math
import sys
from dataclasses import dataclass, replace
from numbers import Integral
from typing import Any, ClassVar, Unpack, cast

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from skdp.base.blocks import Blocks
from skdp.base.declare import fitted, parameter
from skdp.base.fit import PrivateFit, SessionOptions
from skdp.base.kinds import check_number, described, real
from skdp.base.plan import Advice, Decision, NoRecords, gaussian_steps
from skdp.base.problem import Problem, Solution
from skdp.base.user_tables import encode_groups
from skdp.exceptions import PrivacyLeakWarning
from skdp.kernels.protocols import Floats, Integers
from skdp.metrics import workloads
from skdp.metrics.inversion import NoisyTable
from skdp.metrics.models import (
    class_codes,
    classes_of,
    count_rows,
    kind_of,
    name_of,
    own_threshold,
    protects_groups,
    row_scores,
    score_method,
)
from skdp.metrics.strategies import GRID, scaled, strategy
from skdp.metrics.two_classes import ClassificationEvaluation, ScoreGrid
from skdp.privacy import PrivacySession, PrivateRecords, PublicShape, accounting
from skdp.privacy.statistics import cell_sums
from skdp.statistics.column_moments import released_once

# Public n * mu from which a table has so many bins: the error of rounding scores to fewer would pass the noise.
FINER = ((8000.0, 256), (2000.0, 128), (0.0, 64))
MOST_BINS = 128  # but for the 256 that are shipped: larger strategies take seconds to compute
FURTHEST = 4.0  # logit of a threshold that the bins are laid around: p = .018 to .982; a choice
# Assumptions on the model that only an evaluation has.
MODEL_IS_PUBLIC = (
    "the model is released, or was fitted to other people: its own training rows are not protected here"
)


def advice_on_unit(unit: str, *models: object) -> tuple[Advice, ...]:
    """The warning where a model protects groups and its evaluation single rows; reports are public."""
    if unit == "group" or not any(map(protects_groups, models)):
        return ()
    said = "the model protects groups, and this evaluation protects single rows: give unit='group' and groups="
    return (Advice(said, PrivacyLeakWarning),)


@dataclass(frozen=True)
class EvaluationProblem(Problem):
    """A validated evaluation: records of codes or numbers that the model and the labels made of each row."""

    records: PrivateRecords


class EvaluationFit(PrivateFit[EvaluationProblem]):
    """Base of all evaluations: the parameters of privacy, and the assumptions of the claim."""

    model: BaseEstimator | None = parameter(described("estimator"), "A fitted model, or None.", default=None)
    answers_: Floats = fitted()
    noise_std_: Any = fitted()
    total_: float | None = fitted()
    units_: str = fitted()

    _no_blocks: ClassVar[str | None] = None
    _records_are_rows = False
    _record_checks = "accepted by the model"
    _place_is_public = True  # whether a row of X keeps its place when another record changes
    _purpose = ""  # of the release, where there is one
    _key_names_class = True

    def _check_parameters(self) -> None:
        super()._check_parameters()
        refuse_scorer()

    @property
    def _ledger_name(self) -> str:
        """Name of the release, for the report and the accountant's ledger."""
        return f"evaluate({name_of(self.model)})"

    def _open_session(self, n_units: int | None = None, **options: Unpack[SessionOptions]) -> PrivacySession:
        options["estimator"] = self._ledger_name
        return super()._open_session(n_units, **options)

    def _fixed(self) -> bool:
        """Whether the number of rows is public, and so the place of each row in a call to the model."""
        return self._place_is_public and self.unit == "record" and self.n_public is None

    def _check_blocks(self, blocks: Blocks, more: dict[str, object]) -> None:
        super()._check_blocks(blocks, more)
        blocks.check_names(self.model)

    def _read_block(self, X: object, y: object = None, groups: object = None, **more: object) -> EvaluationProblem:
        self._place_is_public = False  # a changed record may come to lie in another block
        return self.read(X, y, groups, **more)

    def _codes(self, columns: Floats, groups: object) -> PrivateRecords:
        """Records of numbers of cells, with group labels as the user gave them."""
        codes = None if groups is None else encode_groups(groups, len(columns))
        return self._coded(columns, codes)

    def _coded(self, columns: NDArray[np.generic], codes: NDArray[np.intp] | None) -> PrivateRecords:
        table = np.ascontiguousarray(columns, dtype=np.float64)
        return PrivateRecords(table, groups=codes, n_public=self.n_public)

    def _total(self, records: PrivateRecords) -> float | None:
        """The number of units that the counts add up to, where it is public."""
        private = self.adjacency == "add-remove" or (self.adjacency == "zero-out" and self.n_public is not None)
        return None if private else float(records.n_units)

    def _imagined(self, shape: PublicShape) -> EvaluationProblem:
        return EvaluationProblem(cast("PrivateRecords", NoRecords(shape)), {}, ())

    def _advice(self, session: PrivacySession, problem: EvaluationProblem) -> tuple[Advice, ...]:
        return () if session.exact else advice_on_unit(self.unit, self.model)

    def _decide(self, session: PrivacySession, problem: EvaluationProblem) -> Decision:
        return Decision(steps=gaussian_steps(session, (self._purpose, 1.0, 1)))

    def _solution(self, records: PrivateRecords, answers: Floats, noise: object, **more: object) -> Solution:
        """The released numbers, their noise, and the public numbers that scores are made with."""
        shown = {
            "answers_": answers,
            "noise_std_": noise,
            "total_": self._total(records),
            "units_": records.shape.counted(),
        }
        return Solution(answers, 1, {**shown, **more})

    def _assumptions(self, problem: EvaluationProblem) -> tuple[str, ...]:
        return (
            *super()._assumptions(problem),
            MODEL_IS_PUBLIC,
            "the model scores each row by itself, to the last bit",
            "model, bins and threshold were not chosen by looking at these rows without noise",
        )


class TwoClassTable(EvaluationFit):
    """The table (score bin x label) of a model of two classes."""

    bins: object = parameter(
        described('"auto", int or array-like of float'), "Even number of bins, or edges.", default="auto"
    )
    threshold: float | None = parameter(
        real(none=True), "Score from which on the second class is predicted.", default=None
    )
    effective_n_: float = fitted()

    _purpose = "score table"

    def _check_parameters(self) -> None:
        super()._check_parameters()
        method = self._check_model()
        probability = method == "predict_proba"
        if self.threshold is not None and probability and not 0 <= self.threshold <= 1:
            raise ValueError(
                f"threshold must be a probability in [0, 1] for a model with predict_proba, got {self.threshold!r}"
            )
        if isinstance(self.bins, str):
            if self.bins != "auto":
                raise ValueError(f"bins must be 'auto', an even int, or public edges, got {self.bins!r}")
            if not probability:
                raise ValueError(
                    f"{type(self.model).__name__} has no predict_proba: give bins= as public edges of its "
                    "decision_function, for example numpy.linspace(-4, 4, 63)"
                )
        elif isinstance(self.bins, Integral):
            if self.bins != FINER[0][1]:
                check_number("bins", self.bins, Integral, low=2, high=MOST_BINS)
            if self.bins % 2 or not probability:
                raise ValueError(
                    "bins must be even, so that one edge is at .5, and a model without predict_proba needs "
                    f"edges; got {self.bins!r}"
                )
        else:
            self._edges(probability)

    def _check_model(self) -> str:
        """Check the model, and return the method that gives its scores."""
        kind_of(self.model)
        return score_method(self.model)

    def _labels(self) -> NDArray[np.generic]:
        return classes_of(self.model)

    def _scores(self, X: object) -> Floats:
        """The score of each row."""
        method = self._check_model()
        n_outputs = 2 if method == "predict_proba" else 1
        return row_scores(self.model, method, X, n_outputs, fixed=self._fixed())[:, -1]

    def _edges(self, probability: bool) -> Floats:
        """Given edges, checked."""
        try:
            edges = np.asarray(self.bins, dtype=np.float64)
        except (TypeError, ValueError):
            edges = np.empty(0)
        inside = not probability or bool(((edges > 0) & (edges < 1)).all())
        if (
            edges.ndim != 1
            or not 1 <= edges.size < MOST_BINS - 1
            or not (np.isfinite(edges).all() and (np.diff(edges) > 0).all() and inside)
        ):
            raise ValueError(
                f"bins must be 'auto', an even int, or 1 to {MOST_BINS - 2} public inner edges that increase "
                "(probabilities strictly between 0 and 1 for a model with predict_proba)"
            )
        return edges

    def _usual_threshold(self, plain: float) -> float:
        """The threshold of ``predict``: the model's own, if it was tuned or fixed, else ``plain``."""
        return own_threshold(self.model, plain)

    def _with_threshold(self, edges: Floats, at: float) -> Floats:
        """Given edges and the threshold, so that counts at it are the exact counts of the model's predictions."""
        probability = self._check_model() == "predict_proba"
        inner = 0.0 < at < 1.0 if probability else math.isfinite(at)
        return np.union1d(edges, [at]) if inner else edges

    def read(self, X: object, y: object = None, groups: object = None) -> EvaluationProblem:
        """Find the cell of each row by its score and its label; from here on the record is its cell."""
        scored = self._scored(X, y)
        codes = None if groups is None else encode_groups(groups, len(scored))
        units = len(scored) if codes is None else int(codes.max()) + 1
        effective_n = self._effective_n(units if self.n_public is None else self.n_public)
        cells = CellOf(self._grid(effective_n)[0].edges)(scored)
        return EvaluationProblem(self._coded(cells, codes), {"effective_n_": effective_n}, ())

    def _scored(self, X: object, y: object) -> Floats:
        """The score of each row, and whether its label is the second one."""
        count_rows(X, y)
        second = class_codes(y, self._labels()) == 1
        return np.column_stack((self._scores(X), second))

    def _read_block(self, X: object, y: object = None, groups: object = None, **more: object) -> EvaluationProblem:
        # The bins follow from the number of units, which all blocks together tell.
        self._place_is_public = False
        return EvaluationProblem(self._codes(self._scored(X, y), groups), {}, ())

    def _of_blocks(self, problem: EvaluationProblem) -> EvaluationProblem:
        effective_n = self._effective_n(problem.records.n_units)
        cells = problem.records.mapped(CellOf(self._grid(effective_n)[0].edges), 1)
        return replace(problem, records=cells, fitted={"effective_n_": effective_n})

    def _imagined(self, shape: PublicShape) -> EvaluationProblem:
        return replace(super()._imagined(shape), fitted={"effective_n_": self._effective_n(shape.n_units)})

    def _effective_n(self, n_units: int) -> float:
        """Public number of units times the mu of the budget."""
        if math.isinf(self.epsilon):
            return math.inf
        return n_units * accounting.gaussian_mu(self.epsilon, self.delta)

    def _grid(self, effective_n: float) -> tuple[ScoreGrid, int]:
        """The bins, and the first one above the threshold; from public numbers."""
        if self._check_model() != "predict_proba":
            at = self._usual_threshold(0.0) if self.threshold is None else float(self.threshold)
            edges = self._with_threshold(self._edges(False), at)
            wide = np.concatenate(([2 * edges[0] - edges[-1]], edges, [2 * edges[-1] - edges[0]]))
            grid = ScoreGrid(edges, False, 0.5 * (wide[1:] + wide[:-1]))
            return grid, grid.nearest(at)
        at = self._usual_threshold(0.5) if self.threshold is None else float(self.threshold)
        if isinstance(self.bins, str | Integral):
            n_bins = int(self.bins) if isinstance(self.bins, Integral) else 0
            edges = _edges_around(at, n_bins or next(b for least, b in FINER if effective_n >= least))
        else:
            edges = self._with_threshold(self._edges(True), at)
        grid = ScoreGrid(edges, True, workloads.bin_centers(np.log(edges) - np.log1p(-edges)))
        return grid, grid.nearest(at)

    def solve(self, session: PrivacySession, problem: EvaluationProblem) -> Solution:
        """Release the strategy's answers about the table, and solve them for it."""
        records, effective_n = problem.records, problem.fitted["effective_n_"]
        matrix = self._matrix(effective_n)
        sums = cell_sums(records, [matrix], GRID, adjacency=session.adjacency)
        answers, noise = released_once(session, sums, self._purpose)
        return self._solution(records, answers, noise, effective_n_=effective_n)

    def _matrix(self, effective_n: Any) -> Integers:
        return strategy("table", self._grid(effective_n)[0].n_bins, self.adjacency)

    def evaluation(self) -> ClassificationEvaluation:
        """The result of the fitted release."""
        grid, first = self._grid(self.effective_n_)
        matrix = scaled(self._matrix(self.effective_n_))
        noisy = NoisyTable.solved(matrix, self.answers_, self.noise_std_, self.total_)
        return ClassificationEvaluation(
            noisy, grid, first, self._labels(), self.privacy_, name_of(self.model), self.units_
        )


@dataclass(frozen=True, eq=False)
class CellOf:
    """Finds the cell of rows of a score, and whether the label is the second one, by public edges of bins."""

    edges: Floats

    def __call__(self, scored: Floats) -> Floats:
        """Return a column of cell numbers; a score that is no number is in the lowest bin."""
        scores = np.ascontiguousarray(scored[:, 0])
        place = np.searchsorted(self.edges, scores, side="right")
        place[np.isnan(scores)] = 0
        place += (len(self.edges) + 1) * (scored[:, 1] != 1.0)
        return place[:, None].astype(np.float64)


def _edges_around(threshold: float, n_bins: int) -> Floats:
    """Edges of even bins on the logit scale with the threshold in their middle, where an accuracy has least noise.

    The edge nearest to .5 is moved there. A threshold far out takes the place of the nearest edge of the bins
    around .5 instead.
    """
    logits = workloads.logit_edges(n_bins)
    at = math.log(threshold) - math.log1p(-threshold) if 0.0 < threshold < 1.0 else math.inf
    middle = n_bins // 2 - 1
    if abs(at) <= FURTHEST:
        logits = logits + at
    elif math.isfinite(at):
        middle = int(np.abs(logits - at).argmin())
    edges = np.asarray(1.0 / (1.0 + np.exp(-logits)))
    edges[int(np.abs(logits).argmin())] = 0.5  # exactly, and so is the threshold
    if math.isfinite(at):
        edges[middle] = threshold
    return edges


def refuse_scorer() -> None:
    """Refuse a call by scikit-learn's scorers: each would be a charge, and a search would show many of them."""
    frame = sys._getframe()
    while frame is not None:
        if frame.f_globals.get("__name__") == "sklearn.metrics._scorer":
            raise TypeError(
                "skdp.metrics has no scorers: every call would be charged, and a search would publish one score "
                "for each candidate. Use skdp.model_selection.cross_validate, compare or DPRandomizedSearch, "
                "which plan and charge all of it once"
            )
        frame = frame.f_back  # type: ignore[assignment]
