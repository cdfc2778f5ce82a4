"""The search for curves: which columns of a fit get smooth functions, which pairs get products.

The method is ours. The rounds of the automatic solver (`skdp.linear_model.auto`) fit a line first. Then one wide
gradient, released like any other, asks every column for smooth functions beyond its line. Columns whose part of
it is more than noise get 1, 2 or 4 of them: the more columns show a curve, the less evidence each needs. Where
units are many, products of the columns with the largest effects are asked for in the same way, at the same model.
Along a Gram matrix of all that was chosen these gradients become one step, and the rounds that are left mend it.

Privacy
-------
Every release is one of `Steps.ask` or of `released_gram` at expanded rows. A row's features are a function of this
row and of public or released numbers alone (`PrivateRecords.expanded`), so a unit adds a gradient in the ball of
the clip norm G, and a positive semidefinite matrix of trace at most C^2, whatever the features are: the
sensitivities equal the rounds' sensitivities (2 G / n and sqrt(2) C^2 under replace-one, G / n and C^2 under
zero-out and add-remove). Earlier releases decide which of them follow, and all shares add up to at most 1 on every
path (`BudgetSplit`). Evidence, choices and steps are post-processing.
"""

import math
from dataclasses import dataclass, field

import numpy as np

from skdp.linear_model.additive.curves import Curves
from skdp.linear_model.additive.evidence import log_bayes_factors, of_functions, probabilities
from skdp.linear_model.auto.columns import Columns
from skdp.linear_model.auto.steps import Steps, released_gram
from skdp.privacy import N_FUNCTIONS, Expansion, PrivateRecords, PublicShape, accounting

# All chosen on inner splits of the training parts of the suite, and on generated tables
# (`examples/additive_tables.py`).
# Only a line is fitted below this many units times mu, and where (d + 1)^1.5 / (n mu), the noise of a Gram matrix
# against its eigenvalues, is above the second number. With classes, both limits apply once more to 2 n mu (1 - sum
# of squared frequencies). K classes have K - 1 scores, and each needs the least effective number.
MIN_EFFECTIVE_N, MOST_NOISE = 125.0, 0.15
CURVES_EFFECTIVE_N = 1000.0  # least units times mu for more than 2 functions of a column, and for products
FEW_FUNCTIONS = 2
# Factors of the functions in the wide gradient, where a line's feature has 1.
WEIGHTS = 0.7 * np.array([1.0, 0.8, 0.5, 0.5])
# Mean square that the one-hots of a column have together, in the wide gradient and later, where a line's feature
# has 1; and their factor, as one of them is 1 in each row.
OF_LEVELS = 6.0
LEVEL_WEIGHT = math.sqrt(OF_LEVELS)
COUNTS = {1: 0.6, 2: 0.25, 4: 0.15}  # numbers of functions that a curve may get, and how likely
# Probability of a curve, or of a product, from which it is fitted. Steps shrink the coefficients of a false one,
# so it costs less than a missing one.
LIKELY_SHARE = 0.25
TOP = 8  # columns whose products are looked at
MOST_PAIRS = TOP * (TOP - 1) // 2
# Products, and a Gram matrix of more features, take these parts of the steps' budget.
PAIRS, GRAM = 0.1, 0.1
# A mean square within this distance of the mean square of a two-valued column shows no third value.
TWO_VALUED = 0.005
SAFETY_STDS = 3.0  # standard deviations of its noise that are added to this distance
MAX_COEFFICIENT = 1e60  # the noise of larger coefficients is not computed
UNIT_REACH = 1.25  # a released window about 0 whose highest power-of-two bin ends at 1 has this half-width


@dataclass(frozen=True)
class Parts:
    """Parts of the steps' budget.

    Attributes
    ----------
    first : tuple of float
        Rounds of the line, before the wide gradient.
    look : float
        The wide gradient.
    last : tuple of float
        Rounds at the end, as parts of the budget that is left then.
    """

    first: tuple[float, ...]
    look: float
    last: tuple[float, ...]


# The first `Parts` hold below `CURVES_EFFECTIVE_N`, where more is lost by curves that are not seen than by noise
# of the last rounds; the second hold above. Two rounds or more come before the look, because the part of a steep
# line that a single short step leaves looks like curves. Labels of three classes that a line tells nearly without
# error lost 7, 4 and 2 % of accuracy at epsilon .5, 1 and 4 with one round, and lose 5, 3 and 1 % with two.
OF_CLASSES = (Parts((0.09, 0.09), 0.42, (0.4, 0.6)), Parts((0.12, 0.13), 0.3, (0.4, 0.6)))
OF_NUMBERS = (Parts((0.07, 0.07, 0.08), 0.35, (0.25, 0.3, 0.45)), Parts((0.12, 0.12), 0.25, (0.45, 0.55)))


def reason_for_a_line(shape: PublicShape, epsilon: float, delta: float) -> str:
    """Why public numbers leave a fit to the linear estimator; empty where curves are looked for."""
    if not math.isfinite(epsilon):
        return ""
    effective_n = shape.n_units * accounting.gaussian_mu(epsilon, delta)
    return too_little("n mu", effective_n, shape.n_features)


def too_little(name: str, effective_n: float, n_columns: int, n_scores: int = 1) -> str:
    """Why an effective number of units of this name is too little for curves; empty where it is enough."""
    least = MIN_EFFECTIVE_N * n_scores
    if effective_n < least:
        return f"{name} = {effective_n:.3g} is below {least:g}: curves could not be told from noise"
    noise = (n_columns + 1) ** 1.5 / effective_n
    if noise > MOST_NOISE:
        return f"(d + 1)^1.5 / ({name}) = {noise:.2g} is above {MOST_NOISE:g}: too many columns"
    return ""


@dataclass(frozen=True)
class Asked:
    """The features that released gradients at one model ask for.

    Attributes
    ----------
    features : Expansion
        That were chosen.
    gradient : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
        Of the lines, of these features, and of the constant.
    noise : ndarray of shape (n_parameters,)
        Standard deviation of its entries.
    clip : float
        With which it was released, as `Steps.ask` takes it.
    """

    features: Expansion
    gradient: np.ndarray
    noise: np.ndarray
    clip: float


@dataclass
class CurveSearch:
    """A `Growth` of the automatic solver: one object for each fit.

    Parameters
    ----------
    effective_n : float
        Units times mu.
    parts : tuple of (Parts, Parts)
        Where units are few, and where they are many.
    n_interactions : int
        Most products; 0 asks for none.
    levels_of, levels : ndarray
        Columns with declared categories, once for each of their values, and these values.
    alone : ndarray of int
        Columns that take part in no product.

    Attributes
    ----------
    reason : str
        Why no curve was fitted; empty where some were. Given: why public numbers leave the fit to the line.
    """

    effective_n: float
    parts: tuple[Parts, Parts]
    n_interactions: int
    levels_of: np.ndarray
    levels: np.ndarray
    alone: np.ndarray
    reason: str = ""
    _ran: bool = False
    _lines: PrivateRecords = field(init=False)
    _weighted: PrivateRecords = field(init=False)
    _expansion: Expansion = field(init=False)
    _curved: np.ndarray = field(init=False)
    _levels_of: np.ndarray = field(init=False)
    _levels: np.ndarray = field(init=False)
    _alone: np.ndarray = field(init=False)
    _effective: float = field(init=False)

    # ---------------------------------------------------------------- before the first look

    def begins(self, columns: Columns, frequency: np.ndarray | None = None) -> bool:
        """Whether curves are looked for: not for columns of two values, nor where a class is rare."""
        d = columns.seen.size
        self._expansion = Expansion.make(np.zeros(d, dtype=np.int64))
        self._effective, n_scores = self.effective_n, 1
        if frequency is not None:
            n_scores = frequency.size - 1
            kept = min(1.0, 2.0 * (1.0 - float(frequency @ frequency)))
            self._effective = self.effective_n * kept
        seen = np.isfinite(columns.half_width[columns.seen])
        place = {int(column): j for j, column in enumerate(columns.seen) if seen[j]}
        known = np.array([int(column) in place for column in self.levels_of], dtype=bool)
        self._levels_of = np.array([place[int(c)] for c in self.levels_of[known]], dtype=np.int64)
        self._levels = self.levels[known]
        self._curved = np.flatnonzero(seen & ~two_valued(columns))
        self._curved = np.setdiff1d(self._curved, self._levels_of)
        self._alone = np.array([place[int(c)] for c in self.alone if int(c) in place], dtype=int)
        if self.reason:
            return False
        if not seen.any():
            self.reason = "no column could be seen"
        elif not self._curved.size + self._levels_of.size:
            self.reason = "every column that was seen has two values"
        else:
            effective = "n mu times 2 (1 - sum of squared class frequencies)"
            self.reason = too_little(effective, self._effective, d, n_scores)
        return not self.reason

    # ---------------------------------------------------------------- the rounds

    def run(self, steps: Steps, share: float) -> None:
        """Spend the share: rounds of the line, the wide gradient, products, rounds of all."""
        parts, self._ran = self.parts[self._effective >= CURVES_EFFECTIVE_N], True
        # In looks rows weigh as in rounds of the line: added features are bounded, and a pass is saved.
        self._lines, self._weighted = steps.rows, steps.weighted
        for i, part in enumerate(parts.first):
            steps.round(share * part, first=i == 0)
        rest = 1.0 - math.fsum(parts.first) - parts.look
        asked = self._look(steps, share * parts.look)
        if self._effective >= CURVES_EFFECTIVE_N and self.n_interactions:
            pairs = self._candidates(steps, asked)
            if len(pairs):
                asked = self._look_at_pairs(steps, asked, pairs, share * PAIRS)
                rest -= PAIRS
        self._expansion = found = asked.features
        if found.size:
            rows, squares = self._lines.expanded(found), mean_squares(found)
            steps.grow(rows, released_gram(steps.budget, rows, share * GRAM, squares), squares)
            rest -= GRAM
        steps.step(asked.gradient, asked.noise, asked.clip)
        for i, part in enumerate(parts.last):
            steps.round(share * rest * part, last=i == len(parts.last) - 1)
        if not self._expansion.size:
            self.reason = "no column showed more than a line"

    def _look(self, steps: Steps, share: float) -> "Asked":
        """Release the wide gradient, and choose the columns that get functions."""
        lines, curved = steps.rows, self._curved
        d, k = lines.n_features, N_FUNCTIONS if self._effective >= CURVES_EFFECTIVE_N else FEW_FUNCTIONS
        counts = np.zeros(d, dtype=np.int64)
        counts[curved] = k
        wide = Expansion.make(counts, (), WEIGHTS, self._levels_of, self._levels, LEVEL_WEIGHT)
        coded = np.unique(self._levels_of)
        w = WEIGHTS[:k]
        square = d + 1 + curved.size * float(w @ w) + coded.size * OF_LEVELS
        part, clip = steps.before_a_look(share)
        rows = self._weighted.expanded(wide)
        gradient, noise = steps.ask(rows, part, square, clip, purpose="wide gradient")
        along, variance = steps.outputs(gradient), steps.spread / lines.n_units
        added = noise * steps.doubled
        n_smooth = curved.size * k
        block = along[d : d + n_smooth].reshape(curved.size, k, along.shape[1])
        sd = np.sqrt(added**2 + w[:, None] ** 2 * variance)  # of the noise and of the sample
        share_of = (w / sd.mean(axis=1)) ** 2
        factors, best = of_functions(block / sd, share_of / share_of[0], COUNTS)
        of_levels = along[d + n_smooth : -1]
        for column in coded:
            own = self._levels_of == column
            sd = np.sqrt(added**2 + OF_LEVELS * variance / own.sum())
            z = (of_levels[own] / sd)[None]
            factors = np.append(factors, log_bayes_factors(z, np.ones(own.sum())))
        is_shown = np.zeros(d, dtype=bool)
        is_shown[np.append(curved, coded)] = probabilities(factors) > LIKELY_SHARE
        counts[curved] = np.where(is_shown[curved], best, 0)
        kept = is_shown[self._levels_of]
        found = Expansion.make(counts, (), 1.0, self._levels_of[kept], self._levels[kept], LEVEL_WEIGHT)
        # Entries of features that were not chosen are dropped, the others are divided by their factors.
        chosen = wide.order < counts[wide.owner]
        ratio = 1.0 / np.concatenate([np.ones(d), WEIGHTS[wide.order[chosen]], np.ones(kept.sum() + 1)])
        place = np.concatenate([np.ones(d, bool), chosen, kept, [True]])
        return Asked(found, (gradient[place].T * ratio).T, noise * ratio, clip)

    def _candidates(self, steps: Steps, asked: "Asked") -> np.ndarray:
        """All pairs of the columns with the largest coefficients, of the line and of their functions together."""
        found, d = asked.features, len(asked.features.counts)
        functions = steps.wanted(asked.gradient[d : d + found.owner.size])
        outputs = tuple(range(1, functions.ndim))
        size = np.sum(steps.theta[:d] ** 2, axis=outputs)
        np.add.at(size, found.owner, np.sum(functions**2, axis=outputs))
        size[self._alone] = -1.0
        size[np.unique(self._levels_of)] = -1.0  # a product of codes means nothing
        top = np.argsort(-size, kind="stable")[:TOP]
        top = np.sort(top[size[top] >= 0.0])
        return np.array([(b, a) for i, a in enumerate(top) for b in top[:i]], int).reshape(-1, 2)

    def _look_at_pairs(self, steps: Steps, asked: "Asked", pairs: np.ndarray, share: float) -> "Asked":
        """Release a gradient of products at the same model, and add the products that show."""
        every = _with_pairs(asked.features, pairs)
        first = every.n_features - len(pairs)
        mask = np.zeros(every.n_features + 1, dtype=bool)
        mask[first:-1] = True
        rows = self._weighted.expanded(every)
        gradient, noise = steps.ask(rows, share, len(pairs), asked.clip, mask, "products")
        sd = np.sqrt((noise * steps.doubled) ** 2 + steps.spread / rows.n_units)
        z = steps.outputs(gradient)[first:-1, None] / sd
        shown = probabilities(log_bayes_factors(z, np.ones(1)))
        best = np.argsort(-shown, kind="stable")[: self.n_interactions]
        best = np.sort(best[shown[best] > LIKELY_SHARE])
        return Asked(
            _with_pairs(asked.features, pairs[best]),
            np.concatenate([asked.gradient[:-1], gradient[first:-1][best], asked.gradient[-1:]]),
            np.concatenate([asked.noise[:-1], np.full(best.size, noise), asked.noise[-1:]]),
            asked.clip,
        )

    # ---------------------------------------------------------------- after the last round

    def finish(self, columns: Columns, steps: Steps, theta: np.ndarray) -> tuple[np.ndarray, dict[str, object]]:
        """The line's parameters, and the curves as a fitted attribute."""
        found, d = self._expansion, columns.seen.size
        (center, scale), place = columns.scaled(), columns.seen
        unit = np.ones(len(theta))  # one-hots are 1 from now on
        unit[level_positions(found)] = LEVEL_WEIGHT
        found = Expansion.make(found.counts, found.pairs, 1.0, found.levels_of, found.levels)
        # Squares of larger coefficients overflow, and no table may end a fit that has spent its budget.
        is_known = bool(np.abs(theta).max() < MAX_COEFFICIENT)
        variance = np.outer(unit, unit) * steps.variance(theta) if is_known else None
        curves = Curves(
            place, center, scale, columns.low[place], columns.high[place], found,
            (theta.T * unit).T[d:-1], variance,
        )  # fmt: skip
        attributes: dict[str, object] = {"reason_": self.reason, "_curves": curves}
        if self._ran:
            attributes["solver_"] = "additive"
        return np.concatenate([theta[:d], theta[-1:]]), attributes


def _with_pairs(found: Expansion, pairs: np.ndarray) -> Expansion:
    return Expansion.make(found.counts, pairs, 1.0, found.levels_of, found.levels, found.level_weight)


def level_positions(found: Expansion) -> slice:
    """Where the one-hots stand in a row."""
    first = len(found.counts) + found.owner.size
    return slice(first, first + found.levels.size)


def mean_squares(found: Expansion) -> np.ndarray:
    """Mean squares that are expected of the features of a row and of the constant."""
    squares = np.ones(found.n_features + 1)
    squares[level_positions(found)] = OF_LEVELS / np.bincount(found.levels_of)[found.levels_of]
    return squares


def two_valued(columns: Columns) -> np.ndarray:
    """Which of the seen columns look as if they had two values: 0 and 1, or the ends of their window.

    Of u = (x - center) / half_width the mean square is then a function of the mean, up to the noise of both.
    """
    j = columns.seen
    mean, square = columns.mean[j], columns.deviation[j] ** 2 + columns.mean[j] ** 2
    is_unit = (columns.half_width[j] == UNIT_REACH) & (columns.center[j] == 0.0)
    far = TWO_VALUED + SAFETY_STDS * columns.noise
    of_zero_and_one = is_unit & (np.abs(square - mean / UNIT_REACH) < far)
    # Columns that were taken as standardized have these moments by decree, not by a release.
    released = (mean != 0.0) | (columns.deviation[j] != 1.0)
    return np.asarray(of_zero_and_one | (released & (np.abs(square - 1.0) < far)))
