"""The fits behind scores of numbers: windows of target and residual first, then their moments."""

from dataclasses import dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from skdp.base.cells import as_cells, refuse_dates
from skdp.base.column_search import Present, Window, released_window, window_steps
from skdp.base.declare import parameter
from skdp.base.kinds import choice, described
from skdp.base.plan import Advice, Decision, gaussian_steps
from skdp.base.problem import Solution
from skdp.fitting.columns import check_bounds
from skdp.fitting.targets import finite_targets
from skdp.fitting.utility import Facts, is_given, utility_warnings
from skdp.kernels.protocols import Floats, Matrix
from skdp.metrics.fits import EvaluationFit, EvaluationProblem
from skdp.metrics.models import count_rows, kind_of, name_of, row_scores
from skdp.metrics.regression import ErrorsByPrediction, RegressionEvaluation, ScoreWindows
from skdp.metrics.regression_moments import Influence, RegressionMoments, Sum
from skdp.metrics.released_score import ReleasedScore, released_score
from skdp.privacy import PrivacySession, PrivateRecords, accounting
from skdp.privacy.statistics import binned_residuals, residual_moments, residual_squares
from skdp.statistics.column_moments import Counted, released_counts, released_once

# All are shares of mu^2. Windows of .05, .1 and .15 gave R2 nearly the same error at 1,000 and 5,000 records.
WINDOW_SHARE = 0.1  # share of mu^2 for each window that is searched
BIN_SHARE = 0.15  # share of mu^2 for mean errors by prediction; a choice
SPREAD_SHARE = 0.04  # share for the squares; bounds of sampling variances in their place double the intervals
COUNT_SHARE = 0.05  # share for the number of units, where it is private; as in the statistics' searches
CAUTION = 2.0  # noise standard deviations by which a search takes fewer units than were counted
TAIL = 0.005  # part of a normal column that lies outside of its window
MAX_CENTRE = 12.0  # half-widths from 0; beyond it a search's centres, 1/48 of the distance apart, are too coarse
N_BINS = 10  # bins of mean errors by prediction; a choice

NAMES = ("u", "u2", "v", "v2", "abs")
SPREADS = ("r2", "v2", "abs")  # in the order of `residual_squares`

# Weights of the sums. Halves of u, v and |v| let a replaced record move all of them by 1.669, where whole ones
# would give 2.828, and the squares, on which R2 rests, have the least noise for it.
WEIGHTS = {"u": 0.5, "u2": 1.0, "v": 0.5, "v2": 1.0, "abs": 0.5}
OF_SCORE = {  # the statistics of one score: its sums, and the squares for its sampling variance
    "r2": (("u", "u2", "v2"), ("r2",)),
    "mean_squared_error": (("v2",), ("v2",)),
    "mean_absolute_error": (("abs",), ("abs",)),
}


def _window(name: str, given: object) -> Window | None:
    ends = check_bounds(given, name=name)
    if ends is None:
        return None
    if any(end.ndim for end in ends):
        raise ValueError(f"{name} must be None or (low, high), two finite numbers, low < high")
    return Window.between(*(end.reshape(1) for end in ends))


class ResidualDecision(NamedTuple):
    """Decisions of an evaluation of numbers.

    Attributes
    ----------
    counts : float
        Share of mu^2 for the number of units; 0 where it is public.
    left : float
        Remaining mu^2 after that number and the window of residuals.
    given : Window or None
        The public window of y.
    searches_y : bool
        Whether a window of y is searched for.
    """

    counts: float
    left: float
    given: Window | None
    searches_y: bool


class Residuals(EvaluationFit):
    """Base of evaluations of numbers: records of (y, residual, prediction), windows and moments."""

    y_bounds: object = parameter(
        described("tuple of (float, float)", _window), "Public range of the targets.", default=None
    )

    _record_checks = "accepted by the model, with a finite target"
    _bin_share = 0.0  # of mu^2, for mean errors by prediction

    def _given(self) -> Window | None:
        """The public window of y."""
        return _window("y_bounds", self.y_bounds)

    def _problem(self, y: Floats, predictions: Floats, groups: object) -> EvaluationProblem:
        # A prediction that is none counts as the largest error.
        residuals = np.where(np.isnan(predictions), np.inf, y - predictions)
        columns = np.column_stack((y, residuals, predictions))
        return EvaluationProblem(self._codes(columns, groups), {}, ())

    def _searches_y(self) -> bool:
        return self.y_bounds is None

    def _decide(self, session: PrivacySession, problem: EvaluationProblem) -> Decision:
        session.require_feasible(4 * N_BINS + 64, 1, 1.0)  # before the searches, not after them
        counts = COUNT_SHARE if self._total(problem.records) is None else 0.0
        left, given = 1.0 - counts - WINDOW_SHARE, self._given()
        of_y = WINDOW_SHARE if given is None and self._searches_y() else 0.0
        # Where y is far from 0 a second search takes its share of the moments.
        moments = left - of_y - self._bin_share - SPREAD_SHARE
        steps = (
            *gaussian_steps(session, ("counts", counts, 1)),
            *window_steps(session, WINDOW_SHARE, centered=False),
            *window_steps(session, of_y),
            *gaussian_steps(
                session,
                ("mean errors by prediction", self._bin_share, 1),
                ("moments of y and residuals", moments, 1),
                ("squares for sampling variances", SPREAD_SHARE, 1),
            ),
        )
        return Decision(steps=steps, details=ResidualDecision(counts, left, given, bool(of_y)))

    def _advice(self, session: PrivacySession, problem: EvaluationProblem) -> tuple[Advice, ...]:
        of_model = super()._advice(session, problem)
        shape = problem.records.shape
        if session.exact:
            return of_model
        effective_n = shape.n_units * accounting.gaussian_mu(self.epsilon, self.delta)
        searched = () if self.y_bounds is not None else ("y_bounds",)
        facts = Facts(type(self).__name__, shape, self.epsilon, effective_n, "evaluate", searched=searched)
        return (*of_model, *utility_warnings(facts))

    def _counted(
        self, session: PrivacySession, records: PrivateRecords, made: ResidualDecision
    ) -> tuple[Counted, Present]:
        """The number of units, and the number that a search uses. The number is released where it is private:
        ``n_public`` may be some percent off, and means would be, too."""
        column = records.restricted([0])
        if not made.counts:
            return Counted.known(column), Present()
        found = released_counts(session, column, made.counts)
        return found, found.present(records.n_units, missing=False, less=CAUTION)

    def _windows(
        self, session: PrivacySession, records: PrivateRecords, present: Present, made: ResidualDecision
    ) -> tuple[ScoreWindows, float]:
        """Given or released windows, and the share that is left."""
        left, given = made.left, made.given
        found = released_window(
            session, records.restricted([1]), WINDOW_SHARE, tail=TAIL, centered=False, present=present
        )
        half_width = float(found.half_width[0])
        if given is not None:
            half_width = min(half_width, 2.0 * float(given.half_width[0]))
        of_y = given
        if made.searches_y:
            of_y, spent = _window_of_targets(session, records.restricted([0]), present)
            left -= spent
        if of_y is None:  # no sum of y is asked for
            return ScoreWindows(0.0, 1.0, half_width, None), left
        center, half = float(of_y.center[0]), float(of_y.half_width[0])
        return ScoreWindows(center, half, half_width, given is not None), left

    def _moments(
        self,
        session: PrivacySession,
        records: PrivateRecords,
        windows: ScoreWindows,
        counted: Counted,
        wanted: tuple[tuple[str, ...], tuple[str, ...]],
        share: float,
    ) -> RegressionMoments:
        """Release the sums, and then the squares for sampling variances, which depend on them."""
        names, squares = wanted
        both = records.restricted([0, 1])
        window = (windows.center, windows.half_width, windows.residual_half_width)
        weights = [WEIGHTS[name] if len(names) > 1 else 1.0 for name in names]
        sums = residual_moments(
            both,
            *window,
            [dict(zip(names, weights)).get(name, 0.0) for name in NAMES],
            adjacency=session.adjacency,
        )
        values, noise = released_once(session, sums, "moments of y and residuals", share - SPREAD_SHARE)
        found = RegressionMoments(
            max(float(counted.value[0]), 1.0), windows.half_width, windows.residual_half_width,
            {name: Sum(float(x) / w, noise / w) for name, x, w in zip(names, values, weights)},
            n_noise=float(counted.noise_std[0]),
        )  # fmt: skip
        influence = found.influence_on_r2() if "r2" in squares else None
        of_square = Influence(1.0, 0.0, 0.0, 1.0) if influence is None else influence
        kept = [i for i, name in enumerate(SPREADS) if name in squares]
        sums = residual_squares(both, *window, of_square[:3], kept, adjacency=session.adjacency)
        values, noise = released_once(session, sums, "squares for sampling variances", SPREAD_SHARE)
        spreads = {SPREADS[i]: Sum(float(x), noise) for i, x in zip(kept, values)}
        return found.with_spreads(influence, spreads)


class ResidualMoments(Residuals):
    """All scores of a regressor, and its mean error by prediction."""

    _bin_share = BIN_SHARE

    def _check_parameters(self) -> None:
        super()._check_parameters()
        kind_of(self.model)

    def read(self, X: object, y: object = None, groups: object = None) -> EvaluationProblem:
        """Predict each row by the model; from here on the record is its target and prediction."""
        count_rows(X, y)
        targets = column_of_numbers("y", y)
        predictions = row_scores(self.model, "predict", X, 1, fixed=self._fixed())
        return self._problem(targets, predictions[:, 0], groups)

    def solve(self, session: PrivacySession, problem: EvaluationProblem) -> Solution:
        """Release windows, mean errors by prediction, moments and squares."""
        records = problem.records
        made = cast("ResidualDecision", problem.decision.details)
        counted, present = self._counted(session, records, made)
        windows, left = self._windows(session, records, present, made)
        edges = windows.edges(N_BINS)
        sums = binned_residuals(
            records.restricted([1, 2]), edges[1:-1], windows.residual_half_width, adjacency=session.adjacency
        )
        values, noise = released_once(session, sums, "mean errors by prediction", BIN_SHARE)
        wanted = (NAMES, ("r2", "v2"))
        moments = self._moments(session, records, windows, counted, wanted, left - BIN_SHARE)
        found = {
            "moments_": moments, "windows_": windows, "bins_": values, "bins_noise_std_": noise,
            "bin_edges_": edges, "units_": records.shape.counted(),
        }  # fmt: skip
        return Solution(np.array([moments.sums[name].value for name in NAMES]), 1, found)

    def evaluation(self) -> RegressionEvaluation:
        """What the fitted releases say."""
        half_width = self.windows_.residual_half_width
        errors = ErrorsByPrediction.made(self.bins_, self.bins_noise_std_, self.bin_edges_, half_width)
        return RegressionEvaluation(
            self.moments_, self.windows_, errors, self.privacy_, name_of(self.model), self.units_
        )


class NumberScore(Residuals):
    """One score of predictions that are given: its own sums only."""

    score: str = parameter(choice(*OF_SCORE), "Name of the score.", default="r2")

    _record_checks = "a finite target and a finite prediction"

    @property
    def _ledger_name(self) -> str:
        return "r2_score" if self.score == "r2" else self.score

    def _searches_y(self) -> bool:
        return self.y_bounds is None and self.score == "r2"

    def read(self, X: object, y: object = None, groups: object = None) -> EvaluationProblem:
        """Check predictions, in the place of X, and targets: finite numbers, each read by itself."""
        if X is None or y is None:
            raise ValueError("y_true and y_pred must both be given")
        count_rows(X, y)
        predictions = column_of_numbers("y_pred", X)
        return self._problem(column_of_numbers("y_true", y), predictions, groups)

    def _assumptions(self, problem: EvaluationProblem) -> tuple[str, ...]:
        return (
            *super(EvaluationFit, self)._assumptions(problem),
            "each row's prediction was made from this row alone, by a model that is released or was fitted "
            "to other people",
            *(() if self.y_bounds is None else ("y_bounds were not chosen by looking at these records",)),
        )

    def solve(self, session: PrivacySession, problem: EvaluationProblem) -> Solution:
        """Release windows, the sums of this score, and the squares for its sampling variance."""
        records = problem.records
        made = cast("ResidualDecision", problem.decision.details)
        counted, present = self._counted(session, records, made)
        windows, left = self._windows(session, records, present, made)
        moments = self._moments(session, records, windows, counted, OF_SCORE[self.score], left)
        values = np.array([total.value for total in moments.sums.values()])
        return Solution(values, 1, {"moments_": moments, "windows_": windows})

    def released(self) -> ReleasedScore:
        """What the fitted releases say."""
        windows = self.windows_
        bounds = windows.y_window if self.score == "r2" else windows.residual_window
        return released_score(getattr(self.moments_, self.score)(), self.privacy_, bounds)


@dataclass(frozen=True, eq=False)
class Less:
    """Rows less a released centre."""

    center: Floats

    def __call__(self, rows: Matrix) -> Floats:
        """Return the rows, shifted."""
        return np.asarray(np.asarray(rows) - self.center)


def _window_of_targets(session: PrivacySession, targets: PrivateRecords, present: Present) -> tuple[Window, float]:
    """A released window, searched once more around its centre where that is far from 0; and the share it took."""
    found = released_window(session, targets, WINDOW_SHARE, tail=TAIL, present=present)
    first = found.center
    far = abs(float(first[0])) > MAX_CENTRE * float(found.half_width[0])
    if not far or is_given("few units", targets.n_units * session.mu, "evaluate"):
        return found, WINDOW_SHARE
    near = targets.mapped(Less(first), 1)
    found = released_window(session, near, WINDOW_SHARE, tail=TAIL, present=present)
    return Window(first + found.center, found.half_width), 2 * WINDOW_SHARE


def column_of_numbers(name: str, given: object) -> Floats:
    """Return targets or predictions as finite float64, each read by itself."""
    cells: Any = as_cells(given)
    refuse_dates(cells)
    dense = not hasattr(given, "indptr")
    if dense and np.ndim(cells) == 2 and np.shape(cells)[1] == 1:
        return finite_targets(np.asarray(cells)[:, 0])
    if not dense or np.ndim(cells) != 1:
        raise ValueError(
            f"{name} must be one column of numbers, got {np.ndim(cells) if dense else 2} dimensions: "
            "evaluate each of several targets by itself"
        )
    return finite_targets(cells)
