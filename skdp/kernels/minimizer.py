"""The minimiser of an l2-regularised mean loss, by Newton's method and a schedule that cannot fail.

F(theta) = (1/n) sum_i l_i(theta) + (alpha/2) ||theta - c||^2 with every coordinate penalised, the intercept too.

**tau holds on every data set.** A point is accepted only if its computed gradient norm plus a proven bound on
the rounding error is at most tau. Newton's method with conjugate gradients usually gets there. If it does
not, a fixed schedule runs from theta = 0; beta is the smoothness of F, G bounds the gradient of every loss.

* Nesterov's constant momentum: f - f* <= (1 - sqrt(alpha/beta))^k 2 (f(0) - f*), f(0) - f* <= G^2/(2 alpha) and
  ||g||^2 <= 2 beta (f - f*) give k <= sqrt(beta/alpha) log(2 beta G^2 / (alpha tau^2)) in exact arithmetic.
* Should rounding spoil that, gradient descent with step 1/beta. If a step is off by e/beta, then
  f(new) - f <= -(||g||^2 - e^2)/(2 beta): while ||g|| >= 2e the gap f - f* shrinks by 1 - 3 alpha/(4 beta). Hence
  a point with ||g|| <= tau - 2e appears within (4 beta/(3 alpha)) log(beta G^2/(alpha (tau - 2e)^2)) steps if
  tau >= 4e, and there the computed norm plus the bound is at most tau.

tau >= 4e is chosen from public numbers, so convergence is never an output: no exception, no warning,
no weaker point.
"""

import math
from collections.abc import Callable, Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from skdp.kernels.blas import one_blas_thread
from skdp.kernels.clipped_rows import clipped_rows, row_blocks
from skdp.kernels.protocols import Floats, Integers, Matrix
from skdp.losses import Loss, is_shipped

GAP = 1e-6  # tau over G / n, where rounding allows it
UNIT = 2.0**-52  # twice the unit roundoff: pays for second-order terms
NEWTON_STEPS, CG_STEPS = 2000, 400  # most steps; a choice, not tuned
# An interval is halved so often at most. Between two kinks a step may be 1e-13 of Newton's, which 40 halvings do
# not reach: the fit then takes the fixed schedule, which runs for hours.
LINE_STEPS = 200
BLOCK = 1024  # rows that BLAS sums at once, in its own order
DEPTH = BLOCK + 128  # roundings of a term of a sum over any number of rows, see `added`


class Shape(Protocol):
    """Public facts of the records: `skdp.privacy.PublicShape`."""

    @property
    def n_features(self) -> int: ...
    @property
    def n_units(self) -> int: ...
    @property
    def total_weight(self) -> float: ...
    @property
    def intercept_value(self) -> float: ...


def lipschitz(loss: Loss) -> float:
    """Largest norm of the loss derivative with respect to the linear predictor.

    Raises
    ------
    TypeError
        For a loss that is not of `skdp.losses`: a wrong constant would void the sensitivity.
    ValueError
        For a loss that has none: the squared loss.
    """
    if not is_shipped(loss):
        raise TypeError(
            "a minimiser is released for the losses of skdp.losses only: its sensitivity rests on a proven "
            f"Lipschitz constant, which {type(loss).__name__} does not have"
        )
    if math.isfinite(loss.lipschitz):
        return float(loss.lipschitz)
    raise ValueError(
        f"the {loss.name} loss has unbounded gradients, so its minimiser has no bounded sensitivity; "
        "use the Huber loss"
    )


def threshold(loss: Loss) -> float:
    """Where the Huber loss becomes linear."""
    return float(getattr(loss, "threshold"))  # noqa: B009


class Domain:
    """Public facts of the objective: its constants, its rounding errors, and tau.

    Attributes
    ----------
    radius : float
        R~, bound on the norm of a clipped row with the intercept's feature.
    gradient : float
        Largest norm of the mean loss gradient on any data set.
    smoothness : float
        beta, for any data set.
    tau : float
    gap : float
        tau over G / n, where rounding allows it.
    push : float
        Largest norm of a linear term: none here.
    far : float
        Norm of the center; the solver works on theta less the center.
    """

    gap = GAP
    push = 0.0

    def __init__(
        self,
        shape: Shape,
        loss: Loss,
        alpha: float,
        row_norm: float,
        mask: NDArray[np.bool_],
        *,
        center: Floats | None = None,
    ) -> None:
        self.loss, self.alpha, self.row_norm = loss, alpha, row_norm
        d, n = self.n_features, self.n_units = shape.n_features, shape.n_units
        self.mask = mask
        self.intercept = shape.intercept_value if mask[d:].any() else None
        self.radius = math.hypot(row_norm, self.intercept or 0.0) * (1 + 2.0**-50)
        self.width = int(mask.sum())
        self.center = np.zeros(0) if center is None else center
        self.far = 0.0 if center is None else norm(center) * (1 + (center.size + 16) * UNIT)
        self.total_weight = total_weight = shape.total_weight
        self.gradient = total_weight * lipschitz(loss) * self.radius + self.push
        self.smoothness = total_weight * loss.smoothness * self.radius**2 + alpha
        farthest = self.farthest(total_weight)
        step = UNIT * (self.smoothness * farthest + 2 * self.gradient)
        error = self.rounding(total_weight, farthest) + step
        self.tau = max(self.gap * lipschitz(loss) * self.radius / n, 4 * error)

    def farthest(self, total_weight: float) -> float:
        """Bound on the norm of every point where f <= f(0), as at the iterates of gradient descent from 0."""
        return 2 * self.gradient / self.alpha

    def rounding(self, total_weight: float, size: float) -> float:
        """Bound the error of the computed gradient at a theta that lies ``size`` from the center.

        Inner products of length q are off by q u ||x~|| ||theta|| and pass on as much times the
        smoothness; a derivative is off by (2 K + 16) u times its bound; the sum over the rows by
        DEPTH u sum_i ||r_i|| ||x~_i||, however many rows there are; the penalty by a few u.
        """
        loss, k = self.loss, self.loss.n_outputs
        longest = 2 * self.far + size
        predictor = (self.width + 4) * loss.smoothness * self.radius**2 * total_weight * longest
        total = (DEPTH + 2 * k + 32) * lipschitz(loss) * self.radius * total_weight
        return UNIT * (predictor + total + 4 * self.alpha * size)

    def objective(
        self, X: Matrix, y: Floats, groups: Integers | None, count: int, linear: Floats | None = None
    ) -> "Objective":
        """F on the records of ``count`` units; ``linear``, if given, is the gradient of a linear term.

        A row weighs nothing if its target is not finite, or is no class index of a classification loss.
        """
        d = self.n_features
        columns = None if self.mask[:d].all() else np.flatnonzero(self.mask[:d])
        short, weight, kept = clipped_rows(X, columns, self.row_norm)
        if groups is not None:
            weight = weight / np.bincount(groups)[groups]
        sound = in_domain(self.loss, y)
        weight, y = np.where(sound, weight, 0.0), np.where(sound, y, 0.0)
        n = self.n_units
        return Objective(self, short, self.targets(y, kept), weight / n, count / n, linear)

    def targets(self, y: Floats, kept: Floats) -> Floats:
        """Targets of rows of which the part ``kept`` is left: here as they are."""
        return y


class Objective:
    """F on one data set."""

    def __init__(
        self, domain: Domain, rows: Matrix, y: Floats, weight: Floats, total_weight: float, linear: Floats | None
    ) -> None:
        self.domain, self.rows, self.y, self.total_weight = domain, rows, y, total_weight
        self.alpha, self.loss, self.linear = domain.alpha, domain.loss, linear
        self.weight = weight if self.loss.n_outputs == 1 else weight[:, None]
        self.blocks = list(row_blocks(rows, BLOCK))
        p, k = domain.width, self.loss.n_outputs
        self.shape = (p,) if k == 1 else (p, k)
        self.offset = self.predict(domain.center) if domain.far else 0.0

    def scores(self, theta: Floats) -> Floats:
        """Linear predictors of the rows at the center plus ``theta``."""
        return self.predict(theta) + self.offset

    def predict(self, theta: Floats) -> Floats:
        """Rows times ``theta``."""
        if self.domain.intercept is None:
            return np.asarray(self.rows @ theta)
        return np.asarray(self.rows @ theta[:-1]) + self.domain.intercept * theta[-1]

    def gather(self, r: Floats) -> Floats:
        """Sum of the rows times ``r``, a factor for each."""
        return added(self.gather_block(rows, r[part]) for part, rows in self.blocks)

    def gather_block(self, rows: Matrix, r: Floats) -> Floats:
        """The same over the rows of a block."""
        if self.domain.intercept is None:
            return np.asarray(rows.T @ r)
        total = np.empty(self.shape)
        total[:-1] = rows.T @ r
        total[-1] = self.domain.intercept * r.sum(axis=0)
        return total

    def slope(self, z: Floats) -> Floats:
        """Weighted derivatives of the losses."""
        return self.weight * self.loss.derivative(z, self.y)

    def gradient_at(self, z: Floats, theta: Floats) -> Floats:
        """Gradient of F at ``theta``, whose predictors are ``z``."""
        gradient = self.gather(self.slope(z)) + self.alpha * theta
        return gradient if self.linear is None else gradient + self.linear

    def gradient(self, theta: Floats) -> Floats:
        """Gradient of F."""
        return self.gradient_at(self.scores(theta), theta)

    def pushed(self, step: Floats) -> float:
        """Slope along ``step`` of the linear term."""
        return 0.0 if self.linear is None else float(np.vdot(self.linear, step))

    def curved(self, z: Floats) -> Callable[[Floats], Floats]:
        """Map v to Hessian times v at predictors ``z``."""
        if self.loss.n_outputs > 1:
            share = np.exp(z - z.max(axis=1, keepdims=True))
            share /= share.sum(axis=1, keepdims=True)

            def bend(u: Floats) -> Floats:
                u = share * u
                return self.weight * (u - share * u.sum(axis=1, keepdims=True))

        else:
            if not self.loss.is_classification:
                second = self.weight * (np.abs(z - self.y) < threshold(self.loss))
            else:
                share = self.loss.derivative(z, 0.0)
                second = self.weight * share * (1 - share)

            def bend(u: Floats) -> Floats:
                return second * u

        return lambda v: self.gather(bend(self.predict(v))) + self.alpha * v

    def certified(self, theta: Floats, gradient: Floats, tau: float) -> bool:
        """Whether the true gradient at ``theta`` surely has norm at most ``tau``; NaN gives False."""
        margin = 1 + (gradient.size + 16) * UNIT
        error = self.domain.rounding(self.total_weight, norm(theta) * margin)
        return bool(norm(gradient) * margin + error <= tau)


def added(parts: Iterator[Floats]) -> Floats:
    """Add arrays as the leaves of a binary tree: of 2^k arrays each meets at most 2 k additions."""
    waiting: list[tuple[int, Floats]] = []  # sums of 2^level arrays, the larger ones first
    for part in parts:
        level = 0
        while waiting and waiting[-1][0] == level:
            part, level = waiting.pop()[1] + part, level + 1
        waiting.append((level, part))
    total = waiting.pop()[1]
    while waiting:
        total = waiting.pop()[1] + total
    return total


def solve(objective: Objective, tau: float) -> Floats:
    """Return a point at which the gradient of F has norm at most ``tau``."""
    with one_blas_thread(), np.errstate(all="ignore"):
        found = newton(objective, tau)
        if found is not None:
            return found
        point = np.zeros(objective.shape)
        for point in schedule(objective, tau):
            if objective.certified(point, objective.gradient(point), tau):
                break
        return point


def newton(objective: Objective, tau: float) -> Floats | None:
    """Newton's method from 0 with inexact steps; None if no point was certified."""
    theta, start = np.zeros(objective.shape), 0.0
    for count in range(NEWTON_STEPS):
        z = objective.scores(theta)
        gradient = objective.gradient_at(z, theta)
        if objective.certified(theta, gradient, tau):
            return theta
        size = norm(gradient)
        if size == 0:  # possible for far more units than are assumed
            return None
        start = start or size
        # The accuracy grows, because along a kink the gradient is much smaller than across it.
        accuracy = max(min(0.1, size / start, 0.7**count), 0.1 * tau / size)
        step = conjugate_gradients(objective.curved(z), -gradient, accuracy)
        theta = theta + line_search(objective, theta, z, step) * step
        if not np.isfinite(theta).all():
            return None
    return None


def conjugate_gradients(times: Callable[[Floats], Floats], b: Floats, accuracy: float) -> Floats:
    """Solve ``times(x) = b`` to a relative accuracy, or as far as `CG_STEPS` lead."""
    x, residual = np.zeros_like(b), b.copy()
    direction, square = residual.copy(), float(np.vdot(b, b))
    target = min(accuracy, 1.0) ** 2 * square  # a huge accuracy would overflow
    for _ in range(CG_STEPS):
        if not square > target:
            break
        image = times(direction)
        length = square / float(np.vdot(direction, image))
        x += length * direction
        residual -= length * image
        before, square = square, float(np.vdot(residual, residual))
        direction = residual + (square / before) * direction
    return x


def line_search(objective: Objective, theta: Floats, z: Floats, step: Floats) -> float:
    """Step length at which the slope along ``step`` has fallen to a tenth, by bisection."""
    along = objective.predict(step)
    line, bend = float(np.vdot(theta, step)), float(np.vdot(step, step))

    push = objective.pushed(step)

    def slope(t: float) -> float:
        return float(np.vdot(objective.slope(z + t * along), along)) + (objective.alpha * (line + t * bend) + push)

    goal = 0.1 * abs(slope(0.0))
    low, high, t = 0.0, math.inf, 1.0
    for _ in range(LINE_STEPS):
        value = slope(t)
        if abs(value) <= goal:
            break
        if value > 0:
            high = t
        else:
            low = t
        t = 2 * low if math.isinf(high) else (low + high) / 2
        if t in (low, high):
            break
    return t


def schedule(objective: Objective, tau: float) -> Iterator[Floats]:
    """Iterate as the module's text proves sufficient: Nesterov's momentum, then gradient descent."""
    domain, alpha = objective.domain, objective.alpha
    # More than the assumed 16 n_public units make F more curved, so steps must be shorter.
    more = max(1.0, objective.total_weight / domain.total_weight)
    beta, steepest = more * domain.smoothness, more * domain.gradient
    ratio = beta / alpha
    root, reach = math.sqrt(ratio), math.log(2 * ratio) + 2 * math.log(2 * steepest / tau)
    momentum = (root - 1) / (root + 1)
    x = ahead = np.zeros(objective.shape)
    for _ in range(math.ceil(root * max(reach, 1.0)) + 1):
        before, x = x, ahead - objective.gradient(ahead) / beta
        yield x
        ahead = x + momentum * (x - before)
    x = np.zeros(objective.shape)
    for _ in range(math.ceil(4 / 3 * ratio * max(reach, 1.0)) + 1):
        yield x
        x = x - objective.gradient(x) / beta


def in_domain(loss: Loss, y: Floats) -> NDArray[np.bool_]:
    """Whether the bounds on the loss hold at each target; the records of others weigh nothing."""
    if not loss.is_classification:
        return np.isfinite(y)
    classes = max(2, loss.n_outputs)
    return (y >= 0) & (y < classes) & (y == np.floor(y))


def norm(x: Floats) -> float:
    """Euclidean (Frobenius) norm."""
    return float(np.linalg.norm(x.ravel()))
