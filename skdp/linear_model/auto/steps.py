"""Steps along released gradients, shrunk by the known variance of their noise: for both automatic fits."""

import math
from abc import ABC, abstractmethod
from typing import Any, NamedTuple, Protocol

import numpy as np

from skdp.base.plan import BudgetSplit
from skdp.linear_model.auto.columns import Columns
from skdp.linear_model.auto.defaults import DEFAULTS
from skdp.linear_model.auto.penalty import Weigh, weighing
from skdp.linear_model.auto.scatter import Move
from skdp.losses import Loss
from skdp.privacy import PrivateRecords


class Gram(NamedTuple):
    """A released Gram matrix, the noise's deviation on its diagonal, and the data's parts of its eigenvalues.

    ``parts`` is of shape (n_parameters,): the part of each eigenvalue, ascending, that was not added to lift it.
    """

    matrix: np.ndarray
    noise: float
    parts: np.ndarray


def released_gram(
    budget: BudgetSplit, rows: PrivateRecords, share: float, squares: np.ndarray | None = None
) -> Gram:
    """Release the Gram matrix of the rows, and lift its eigenvalues above their noise.

    Columns are standardized, so the matrix is shrunk first: towards the identity, or towards the diagonal matrix
    of the mean squares that are expected of the features.
    """
    session, p, n = budget.session, rows.n_parameters, rows.n_units
    squares = np.ones(p) if squares is None else squares
    norm = math.sqrt(DEFAULTS.steps.row_norm**2 * float(squares.sum()) - rows.shape.fit_intercept)
    moment = rows.second_moment(norm, 1.0, adjacency=session.adjacency, target_weight=0.0)
    plan = budget.take(share, "Gram matrix")
    released = session.gaussian(moment, plan)[:p, :p] / n
    noise = session.noise_std(moment, plan) / n
    other = np.diag(squares - 1.0)
    shrunk, left = towards_identity(0.5 * (released + released.T) - other, noise)
    values, vectors = np.linalg.eigh(shrunk + other)
    ridge = DEFAULTS.steps.gram_floor * left * math.sqrt(2 * p)
    lifted = np.maximum(values + max(ridge, ridge - values[0]), DEFAULTS.steps.min_eigenvalue)
    matrix = np.asarray(vectors * lifted @ vectors.T)
    return Gram(matrix, left, np.maximum(values, 0.0) / lifted)


def towards_identity(gram: np.ndarray, noise: float) -> tuple[np.ndarray, float]:
    """Shrink a Gram matrix of standardized columns towards the identity; return it, and the noise that remains.

    The noise off the diagonal, where two triangles are averaged, is known, and the excess of the entries' mean
    square is their signal. A direction that many columns share shows in one eigenvalue, and hardly in an entry:
    eigenvalues beyond the largest one of noise are kept, less the amount that noise adds to them (Capitaine,
    Donati-Martin and Feral 2009). Steps would be too long there otherwise, and grow.
    """
    p = len(gram)
    away = gram - np.eye(p)
    square = float(np.mean(away[~np.eye(p, dtype=bool)] ** 2)) if p > 1 else 0.0
    kept = max(0.0, 1.0 - noise**2 / 2 / max(square, 1e-12))
    values, vectors = np.linalg.eigh(away)
    edge = noise * math.sqrt(2 * p)  # of the eigenvalues of the noise
    surely = 0.5 * (values + np.sqrt(np.maximum(values**2 - edge**2, 0.0)))
    is_sure = values > DEFAULTS.steps.eigenvalue_evidence * edge
    values = np.where(is_sure, np.maximum(surely, kept * values), kept * values)
    return np.eye(p) + np.asarray(vectors * values @ vectors.T), kept * noise


class Step(NamedTuple):
    """A step, of shape (n_directions, n_outputs), the variance that it left, and the mean of the scale t.

    ``kept`` is the step's part of gradient / curvature, and ``unsure`` the variance of the step over the scales t.
    """

    mean: np.ndarray
    unknown: np.ndarray
    scale: float
    kept: np.ndarray
    unsure: np.ndarray


def posterior_step(
    gradient: np.ndarray,
    curvature: np.ndarray,
    noise: float | np.ndarray,
    prior: np.ndarray,
    scales: np.ndarray,
    weigh: Weigh,
) -> Step:
    """Posterior mean and variance of the wanted steps b, of which ``curvature * b`` is released with noise.

    The prior of b is normal with variance t times ``prior``; t is one of ``scales``.

    Parameters
    ----------
    gradient, curvature, prior : ndarray of shape (n_directions, n_outputs)
    noise : float or ndarray of shape (n_directions, 1)
        Standard deviation of the gradient's noise.
    scales : ndarray of shape (n_scales,)
    weigh : callable
        Gives the scales their weights: one of `skdp.linear_model.auto.penalty`.
    """
    signal, noise = curvature**2 * prior, np.maximum(noise, 1e-12)
    signals = signal * scales[:, None, None]
    spread = signals + noise**2  # of the gradient, for every scale
    likelihood = weigh(gradient, curvature, noise, signals)
    weight = np.exp(likelihood - likelihood.max())
    share = weight / weight.sum()
    weight = (share * scales)[:, None, None]
    factor = (weight * prior * curvature / spread).sum(axis=0)
    each = scales[:, None, None] * prior * curvature / spread
    unsure = (share[:, None, None] * (each - factor) ** 2).sum(axis=0)
    unknown = (weight * prior * noise**2 / spread).sum(axis=0)
    return Step(factor * gradient, unknown, float(share @ scales), factor * curvature, unsure * gradient**2)


def largest_rows(theta: np.ndarray, count: int | None) -> np.ndarray:
    """Numbers of the rows of largest norm, sorted; all of them for None."""
    size = np.abs(theta) if theta.ndim == 1 else np.linalg.norm(theta, axis=1)
    if count is None or count >= size.size:
        return np.arange(size.size)
    return np.sort(np.argsort(-size, kind="stable")[:count])


class Steps(ABC):
    """The model that steps along released gradients improve; a subclass gives its curvature and its outputs.

    The eigenvectors of the Gram matrix turn a gradient into numbers that are known one by one.

    Attributes
    ----------
    theta : ndarray of shape (n_parameters,) or (n_parameters, n_classes)
    rows : PrivateRecords
        Standardized; the intercept's feature is 1.
    gram : ndarray of shape (n_parameters, n_parameters)
        Released, positive definite; entries of features without a released one are expected ones.
    gram_noise : float
        Standard deviation of the noise on its diagonal.
    squares : ndarray of shape (n_parameters,)
        Mean squares that are expected of the features and of the intercept's: their sum sets the clip norms.
    C : float
        The penalty that the shrinkage of the first step is like.
    n_steps : int
        Gradients that were released and led to a step.
    """

    C = 0.0
    n_steps = 0
    theta: np.ndarray
    _weighted: PrivateRecords | None = None
    _loss: Loss
    _variance: np.ndarray  # expected of the next step's entries, of shape (n_parameters, n_outputs)
    _scales: np.ndarray  # multiples of it that are tried
    _unknown: float  # loss that it makes
    _bend: float  # part of a squared step that the next gradient is expected to correct
    _squared = False  # whether long rows weigh less by the square
    _doubled = 1.0  # noise of a gradient's outputs over the noise that was added

    def __init__(
        self, budget: BudgetSplit, rows: PrivateRecords, gram: Gram, alpha: float, automatic: bool
    ) -> None:
        self.budget, self.rows, self.gram = budget, rows, gram.matrix
        self.gram_noise, self._held, self._moves = gram.noise, gram.parts, list[Move]()
        self.squares = np.ones(rows.n_parameters)
        self._alpha, self._weigh = alpha, weighing(automatic)

    def _turn(self) -> None:
        """Work along the eigenvectors of the Gram matrix."""
        self._values, self._vectors = np.linalg.eigh(self.gram)

    @property
    def square(self) -> float:
        """Mean square norm that is expected of a row."""
        return float(self.squares.sum())

    @property
    def weighted(self) -> PrivateRecords:
        """The rows, of which those longer than `row_norm` times the root of the expected square weigh less."""
        if self._weighted is None:
            norm = DEFAULTS.steps.row_norm * math.sqrt(self.square)
            self._weighted = self.rows.averaged(norm, squared=self._squared)
        return self._weighted

    def restrict(self, kept: np.ndarray) -> None:
        """Keep some features only."""
        if kept.size == self.rows.n_features:
            return
        j = np.append(kept, np.arange(self.rows.n_features, self.rows.n_parameters))
        self.theta, self.gram = self.theta[j], self.gram[np.ix_(j, j)]
        self.squares, self.rows = self.squares[j], self.rows.restricted(kept)
        self._weighted = None
        # No covariance is asked for of coefficients that were chosen: the choice has noise of its own.
        self._held, self._moves = np.ones(j.size), []
        self._restart(grown=False)

    def grow(self, rows: PrivateRecords, gram: Gram, squares: np.ndarray) -> None:
        """Go on with rows that have more features after the present ones, whose coefficients are 0."""
        more = rows.n_features - self.rows.n_features
        self.theta = with_zeros(self.theta, more)
        self.rows, self.squares = rows, squares
        self.gram, self.gram_noise, self._held = gram
        self._weighted = None
        self._restart(grown=True)

    @abstractmethod
    def _restart(self, *, grown: bool) -> None:
        """Turn to the eigenvectors of another Gram matrix, and set what is known of the next step."""

    # ---------------------------------------------------------------- gradients

    def ask(
        self,
        rows: PrivateRecords,
        share: float,
        square: float,
        clip: float,
        mask: np.ndarray | None = None,
        purpose: str = "gradient",
    ) -> tuple[np.ndarray, float]:
        """Release the gradient of rows that may have more features than the model, and the noise of an entry.

        Parameters
        ----------
        rows : PrivateRecords
            Weighted.
        square : float
            Mean square norm that is expected of a row, for the clip norm.
        clip : float
            Largest residual that is not cut in a typical row, in the unit of `clip_norm`.
        mask : ndarray of bool, default=None
            Entries that are released; the others are 0.

        Notes
        -----
        **Privacy.** Each unit's gradient is clipped to the norm `clip_norm` C, so that the mean moves by at most
        2 C / n when a unit is replaced, and by C / n when it is absent, whatever the rows are.
        """
        theta = with_zeros(self.theta, rows.n_parameters - len(self.theta))
        mean = rows.mean_gradient(self._loss, theta, self.clip_norm(clip, square), mask=mask)
        plan = self.budget.take(share, purpose)
        session = self.budget.session
        return session.gaussian(mean, plan), session.noise_std(mean, plan)

    def step(self, gradient: np.ndarray, noise: float | np.ndarray, clip: float) -> None:
        """Take the posterior mean of the step that a released gradient asks for.

        Parameters
        ----------
        gradient : ndarray of the shape of theta
            Changed in place.
        noise : float or ndarray of shape (n_parameters,)
            Standard deviation of its entries' noise.
        clip : float
            With which it was released.
        """
        d = self.rows.n_features
        gradient[:d] += self._alpha * self.theta[:d]
        turned, curvature = self._turned(gradient), self._curvature(clip)
        along: Any = noise
        if np.ndim(noise):
            along = np.sqrt((self._vectors**2).T @ np.square(noise))[:, None]
        along = along * self._doubled
        step, unknown, scale, kept, unsure = posterior_step(
            turned, curvature, along, self._variance, self._scales, self._weigh
        )
        if not self.C:
            self.C = self._matching_C(scale, float(curvature.mean()), along)
        self._unknown = self._loss_of(unknown, clip)
        self._note(step, kept, unsure, curvature, along)
        # The next step is expected to have the error that this gradient left, and this step's error by the bend.
        self._variance, self._scales = unknown + self._bend * step**2, np.array(DEFAULTS.steps.later_variances)
        self._move(step)
        self.n_steps += 1

    def _note(
        self,
        step: np.ndarray,
        kept: np.ndarray,
        unsure: np.ndarray,
        curvature: np.ndarray,
        noise: float | np.ndarray,
    ) -> None:
        """Keep the effect that the noise of a gradient and of the Gram matrix had on a step (`scatter`)."""
        of_values = kept * (1.0 - self._alpha / curvature) / self._values[:, None]
        bent = self.gram_noise**2 / 2.0 * ((step**2).sum(axis=0) + step**2)
        added = (kept / curvature * noise) ** 2 + of_values**2 * bent + unsure
        corrected = kept * self._held[:, None]
        self._moves.append(Move(self._vectors, corrected, added))

    def take(self, share: float, clip: float) -> None:
        """Release a gradient, and take the step that it asks for."""
        gradient, noise = self.ask(self.weighted, share, self.square, clip)
        self.step(gradient, noise, clip)

    @abstractmethod
    def round(self, share: float, *, first: bool = False, last: bool = False) -> None:
        """Spend a share on the next gradient, and on the releases that it needs."""

    @abstractmethod
    def before_a_look(self, share: float) -> tuple[float, float]:
        """The rest of a share after the releases before a gradient, and the clip of this gradient."""

    # ---------------------------------------------------------------- given by subclasses

    @abstractmethod
    def clip_norm(self, clip: float, square: float) -> float:
        """The clip norm of gradients of rows with this mean square norm."""

    @abstractmethod
    def outputs(self, gradient: np.ndarray) -> np.ndarray:
        """Entries of a gradient, along the directions of the outputs that are known one by one."""

    @abstractmethod
    def wanted(self, gradient: np.ndarray) -> np.ndarray:
        """Coefficients that entries of a gradient ask for where features are orthonormal."""

    @property
    @abstractmethod
    def spread(self) -> np.ndarray:
        """Variance of a residual along each of these directions; released."""

    @property
    def doubled(self) -> float:
        """Noise of `outputs` over the noise of the gradient."""
        return self._doubled

    @abstractmethod
    def _turned(self, gradient: np.ndarray) -> np.ndarray:
        """A gradient along the eigenvectors and the directions of the outputs."""

    @abstractmethod
    def _curvature(self, clip: float) -> np.ndarray:
        """Curvature along them, with the penalty's curvature."""

    @abstractmethod
    def _move(self, step: np.ndarray) -> None:
        """Subtract a step along them from theta."""

    @abstractmethod
    def _loss_of(self, unknown: np.ndarray, clip: float) -> float:
        """Expected loss that a variance of the steps makes."""

    @abstractmethod
    def _matching_C(self, scale: float, curvature: float, noise: float) -> float:
        """The penalty that the shrinkage of the first step is like."""

    @abstractmethod
    def variance(self, theta: np.ndarray) -> np.ndarray:
        """Covariance over the known noise, of shape (n_outputs, p, p) or (p, p): see `scatter`.

        Parameters
        ----------
        theta : ndarray of the shape of ``theta``
            Coefficients after the closing releases, which multiply all of them by one factor.
        """


class Growth(Protocol):
    """Adds features to the rows of a fit on the way, where released numbers ask for them."""

    def begins(self, columns: Columns, frequency: np.ndarray | None = None) -> bool:
        """Whether more features are looked for; ``frequency`` is the frequency of the classes."""

    def run(self, steps: Steps, share: float) -> None:
        """Spend a share of the budget on all steps, and on looks for more features."""

    def finish(self, columns: Columns, steps: Steps, theta: np.ndarray) -> tuple[np.ndarray, dict[str, object]]:
        """The parameters of the rows without more features, and fitted attributes."""


def with_zeros(theta: np.ndarray, more: int) -> np.ndarray:
    """Theta with zeros for more features before the intercept."""
    if not more:
        return theta
    return np.concatenate([theta[:-1], np.zeros((more, *theta.shape[1:])), theta[-1:]])
