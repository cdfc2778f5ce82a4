"""Scalers that release the centre and the scale of each column, for a part of the budget."""

from dataclasses import dataclass, replace
from typing import Self, cast

import numpy as np

from skdp._docs import document
from skdp.base.column_search import (
    QUESTIONS,
    Window,
    at_the_end,
    quantile_steps,
    released_distances,
    released_magnitudes,
    released_quantiles,
    released_window,
    window_steps,
)
from skdp.base.declare import changed, fitted, parameter
from skdp.base.fit import PrivateFit
from skdp.base.kinds import flag, share
from skdp.base.plan import Decision, gaussian_steps
from skdp.base.problem import Solution
from skdp.fitting.columns import ColumnFit, ColumnProblem, per_column
from skdp.preprocessing.affine import AffineTransformer, Numbers
from skdp.privacy import PrivacySession, PrivateRecords

# All are choices, made on tables of other seeds, like the defaults of the automatic fits.
WINDOW_SHARE = 0.6  # share of mu^2 for the windows of a standard scaler
WINDOW_TAIL = 0.012  # part of a normal column outside of its window
LEAST_VARIANCE = 1e-6  # least released variance over the squared half-width of the window
# Shares of a quantile scaler: magnitudes, and twice medians and distances; magnitudes and distances.
SHARES = (0.25, 0.2, 0.15, 0.2, 0.2)
SHARES_FROM_0 = (0.5, 0.5)
LEAST_MAGNITUDE = 2.0**-26  # a column whose released magnitude is not above it is empty, or nearly so


class ColumnScaler(AffineTransformer, ColumnFit):
    """The fit of a scaler: without targets, and CSR matrices are never centred."""

    n_features_in_: int = fitted()
    feature_names_in_: np.ndarray = fitted()

    @document(PrivateFit.fit)
    def fit(self, X: object, y: object = None, *, groups: object = None, **more: object) -> Self:
        """Release the centre and the scale of each column.

        Parameters
        ----------
        X : array-like or CSR matrix of shape (n_samples, n_features)
            The records, finite numbers. Neither copied (if it is float32 or float64) nor changed.
        y : None
            Ignored.
        groups : array-like of shape (n_samples,), default=None
            Who each record belongs to; needed by, and allowed with, ``unit="group"`` only.
        **more : dict
            ``sample_weight=None`` or nothing: scalers have no weighted form.
        """
        return super().fit(X, None, groups=groups, **more)

    @property
    def learns_from_data(self) -> bool:
        """Whether it learnt what its own report does not cover; `skdp._compat` asks before a private fit."""
        report = getattr(self, "privacy_", None)
        return report is not None and report.guarantee != "proven"

    def _fitted(self, problem: ColumnProblem, solution: Solution) -> dict[str, object]:
        return {**problem.fitted, **solution.attributes}

    def _centers(self, records: PrivateRecords, wanted: bool) -> bool:
        return bool(wanted) and records.shape.container != "csr"

    def _given(self, records: PrivateRecords, centered: bool) -> Window | None:
        """The window that the user's bounds make; without centring it has 0 in its middle."""
        ends = per_column("bounds", self.bounds, records.n_features)
        if ends is None:
            return None
        low, high = ends
        if centered:
            return Window.between(low, high)
        return Window(np.zeros(records.n_features), np.maximum(np.abs(low), np.abs(high)))


@dataclass(frozen=True, eq=False)
class StandardDecision:
    """The decision of a standard scaler.

    Attributes
    ----------
    centered : bool
    window : Window or None
        The one that the user's bounds make; None is searched for.
    means, variances : float
        Shares of mu^2; 0 where they are not released.
    """

    centered: bool
    window: Window | None
    means: float
    variances: float


@document()
class DPStandardScaler(ColumnScaler):
    """Standardise columns by released means and standard deviations.

    A column is clipped to a window, which is given by ``bounds`` or searched for. Then ``z = (x - mean) / scale``.
    {guarantee}

    See Also
    --------
    PublicScaler : Known constants cost nothing.
    DPQuantileScaler : Medians and quantiles, for columns with long tails.
    skdp.statistics.mean : The means alone, with the size of their noise.

    Notes
    -----
    **Privacy.** All columns are released together, as vectors with Gaussian noise. With d columns each question of
    the search is a vector of d counts to which a unit adds 1/2 or -1/2. Means are sums of values in [-1, 1], and
    variances are sums of squares in [0, 1], less 1/2. The l2 sensitivities under replace-one are ``sqrt(d)``,
    ``2 sqrt(d)`` and ``sqrt(d)``, and half of that under zero-out and add-remove. `transform` maps each row by
    itself, by released numbers. A model that is fitted to the scaled rows pays for itself, and an accountant adds
    the two.

    {privacy.unprotected}

    **Noise.** It grows with the square root of the number of columns. For thousands of columns give public
    constants to `PublicScaler`.

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPStandardScaler
    >>> X = np.random.default_rng(0).normal(170, 10, size=(5000, 3))
    >>> scaler = DPStandardScaler(epsilon=1.0).fit(X)
    >>> bool(np.all(np.abs(scaler.mean_ - 170) < 5) and np.all(np.abs(scaler.scale_ - 10) < 5))
    True
    """

    bounds = changed(
        text="""Public numbers, or one for each column: the window. None searches for the windows on a public
        grid, which takes 60 % of the budget (of mu^2)."""
    )
    with_mean: bool = parameter(
        flag(), "Whether to centre dense columns. CSR matrices are never centred.", default=True
    )
    with_std: bool = parameter(
        flag(), "Whether to scale. A column that is not centred is divided by its root mean square.", default=True
    )
    clip: bool = parameter(
        flag(),
        """Whether `transform` clips to the window, as the statistics do. Then no row is far from the others,
        also where most values of a column are equal. `inverse_transform` does not undo it.""",
        default=True,
    )
    unit = changed(more="A group counts as one: the mean of its rows.")
    mean_: np.ndarray = fitted(
        "ndarray of shape (n_features_in_,)", "Released mean of the clipped values; 0 where nothing is centred."
    )
    scale_: np.ndarray = fitted(
        "ndarray of shape (n_features_in_,)",
        """Released standard deviation, at least its noise: a column that cannot be seen becomes small. Distances
        from the mean beyond half the width of the window count as half of it. 1 without ``with_std``.""",
    )
    bounds_: tuple[np.ndarray, np.ndarray] = fitted(
        "tuple of (ndarray, ndarray)", "The windows, given or released."
    )

    def _check_parameters(self) -> None:
        super()._check_parameters()
        if not (self.with_mean or self.with_std):
            raise ValueError("with_mean=False and with_std=False leave nothing to do: make one of them True")

    def _read_shape(self, records: PrivateRecords) -> None:
        super()._read_shape(records)
        if records.shape.container == "csr" and not self.with_std:
            raise ValueError("CSR matrices are never centred: with_std=False leaves nothing to do: use True")

    def _decide(self, session: PrivacySession, problem: ColumnProblem) -> Decision:
        centered = self._centers(problem.records, self.with_mean)
        window = self._given(problem.records, centered)
        left = 1.0 if window is not None else 1.0 - WINDOW_SHARE
        means = 0.0 if not centered else 0.5 * left if self.with_std else left
        variances = left - means if self.with_std else 0.0
        steps = (
            *(() if window is not None else window_steps(session, WINDOW_SHARE, centered)),
            *gaussian_steps(session, ("means", means, 1), ("variances", variances, 1)),
        )
        details = StandardDecision(centered, window, means, variances)
        return replace(super()._decide(session, problem), steps=steps, details=details)

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release the windows, then sums of the clipped values and of their squares."""
        records, made = problem.records, cast("StandardDecision", problem.decision.details)
        window = made.window
        if window is None:
            window = released_window(session, records, WINDOW_SHARE, tail=WINDOW_TAIL, centered=made.centered)
        middle, spread = np.zeros(records.n_features), 0.0
        if made.means:
            plan = session.plan_gaussian(1, made.means, purpose="means")
            sums = records.column_sums(window.center, window.half_width)
            middle = np.clip(session.gaussian(sums, plan) / records.n_units, -1.0, 1.0)
            spread = session.noise_std(sums, plan) / records.n_units
        scale = np.ones(records.n_features)
        if made.variances:
            scale = window.half_width * _deviation(session, records, window, middle, spread, made.variances)
        mean = window.center + window.half_width * middle
        attributes = {"mean_": mean, "scale_": scale, "bounds_": window.bounds}
        return Solution(np.stack([mean, scale]), 1, attributes)

    def _numbers(self) -> Numbers:
        return self.mean_, self.scale_, self.bounds_ if self.clip else None


def _deviation(
    session: PrivacySession,
    records: PrivateRecords,
    window: Window,
    middle: np.ndarray,
    spread: float,
    share: float,
) -> np.ndarray:
    """Release standard deviations around ``middle``, in half-widths of the window, at least their noise.

    ``spread`` is the standard deviation of the noise in ``middle``.
    """
    plan = session.plan_gaussian(1, share, purpose="variances")
    squares = records.column_sums(window.center, window.half_width, around=middle)
    # Each unit added its square less 1/2.
    variance = session.gaussian(squares, plan) / records.n_units + 0.5
    noise = session.noise_std(squares, plan) / records.n_units
    return np.sqrt(np.maximum(variance, noise + spread**2 + LEAST_VARIANCE))


@dataclass(frozen=True, eq=False)
class QuantileDecision:
    """The decision of a quantile scaler.

    Attributes
    ----------
    window : Window or None
        The one that the user's bounds make; None is searched for.
    magnitudes, distances : float
        Shares of mu^2.
    medians : tuple of float, or None
        Shares of mu^2 of the searches for medians; None is no centring.
    """

    window: Window | None
    magnitudes: float
    medians: tuple[float, float, float] | None
    distances: float


@document(DPStandardScaler)
class DPQuantileScaler(ColumnScaler):
    """Scale columns by released medians and quantiles of the distances from them.

    ``z = (x - center) / scale``. About the part ``quantile`` of the values of a column comes to lie between -1 and
    1.

    {guarantee}

    See Also
    --------
    PublicScaler : Known constants cost nothing.
    DPStandardScaler : Means and standard deviations.
    skdp.statistics.quantile : One quantile of each column.

    Notes
    -----
    **Privacy.** All columns are searched together. A question is a vector of d counts, to which a unit adds 1/2 or
    -1/2, and its l2 sensitivity is ``sqrt(d)`` under replace-one, and half of that under zero-out and add-remove.
    It is released with Gaussian noise, and the number of questions is public: 9 for magnitudes, 7 and 9 for
    medians, and twice 7 for distances. `transform` maps each row by itself, by released numbers.

    {privacy.unprotected}

    Examples
    --------
    >>> import numpy as np
    >>> from skdp.preprocessing import DPQuantileScaler
    >>> X = np.random.default_rng(0).lognormal(3, 1, size=(5000, 2))
    >>> scaler = DPQuantileScaler(epsilon=1.0).fit(X)
    >>> bool(np.all(np.abs(scaler.center_ - np.exp(3)) < 10))
    True
    """

    quantile: float = parameter(
        share(),
        """In (0, 1): level of the distances ``|x - center|`` that becomes the scale. 0.5 is the median absolute
        deviation. A level that the noise hides is replaced by one that can be seen.""",
        default=0.5,
    )
    with_centering: bool = parameter(
        flag(),
        """Whether to subtract the median from dense columns. CSR matrices are never centred, and distances are
        then measured from 0.""",
        default=True,
    )
    bounds = changed(
        text="""Public numbers, or one for each column, between which medians are searched. None searches for the
        magnitudes on a public grid first, which takes 25 % of the budget (of mu^2), or half without centring."""
    )
    unit = changed(more="A group counts as one: the share of its rows below a number.")
    center_: np.ndarray = fitted(
        "ndarray of shape (n_features_in_,)", "Released medians; 0 where nothing is centred."
    )
    scale_: np.ndarray = fitted(
        "ndarray of shape (n_features_in_,)",
        """Released quantiles of the distances. Where more of the values than ``quantile`` are equal to the
        centre, the released magnitude takes their place, or 1 where that is nothing either.""",
    )

    def _decide(self, session: PrivacySession, problem: ColumnProblem) -> Decision:
        centered = self._centers(problem.records, self.with_centering)
        window = self._given(problem.records, centered)
        shares: tuple[float, ...] = SHARES if centered else SHARES_FROM_0
        if window is not None:
            shares = (0.0, *(share / (1.0 - shares[0]) for share in shares[1:]))
        medians = (shares[1], shares[2], shares[3]) if centered else None
        steps = (
            *gaussian_steps(session, ("window", shares[0], QUESTIONS[0])),
            *(() if medians is None else quantile_steps(session, medians)),
            *gaussian_steps(session, ("window", shares[-1], QUESTIONS[2])),
        )
        details = QuantileDecision(window, shares[0], medians, shares[-1])
        return replace(super()._decide(session, problem), steps=steps, details=details)

    def solve(self, session: PrivacySession, problem: ColumnProblem) -> Solution:
        """Release magnitudes, then medians and quantiles of distances: roughly, and once more in that unit."""
        records, made = problem.records, cast("QuantileDecision", problem.decision.details)
        window = made.window
        if window is None:
            sizes = released_magnitudes(session, records, made.magnitudes)
            window = Window(np.zeros(records.n_features), sizes)
        center, unit = window.center, window.half_width
        if made.medians is not None:
            center, unit, _ = released_quantiles(session, records, made.medians, 0.5, window)
        least = 1.0 - float(self.quantile)
        found, _ = released_distances(session, records, made.distances, unit, center, least=least)
        magnitude = np.where(window.half_width > LEAST_MAGNITUDE, window.half_width, 1.0)
        scale = np.where(at_the_end(found, unit), magnitude, found)
        return Solution(np.stack([center, scale]), 1, {"center_": center, "scale_": scale})

    def _numbers(self) -> Numbers:
        return self.center_, self.scale_, None
