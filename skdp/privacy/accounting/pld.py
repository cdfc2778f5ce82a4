"""Upper bounds of epsilon for composed releases, by their privacy loss distributions.

Privacy
-------
A release is a dominating pair (P, R), see `skdp.privacy.accounting.pairs`. Its loss is moved to the grid
h, 2h, ... so that the mass and E e^-loss of every cell stay what they are. The hockey-stick curve then becomes its
own interpolation, linear in e^epsilon. The interpolation lies above the curve because the curve is convex, so the
discrete pair dominates (Doroshenko et al. 2022); the error is of second order in h. Losses above the last cell
have infinite loss, those below the first are rounded up.

The composition is one FFT of the *tilted* masses g(l) = f(l) e^(theta l) / M(theta), raised to the number of
releases. With the tilt of the saddle point the composed g sits at epsilon. Rounding is then relative to delta
itself, not to 1, and neither T = 1e7 nor delta = 1e-100 is out of reach. The value is an upper bound
numerically as well. With u = 2^-53:

* Wrap-around adds what lies beyond the window to points inside, which only raises delta. What lies above the
  window counts by Chernoff's bound, e^(K(theta + kappa) - (theta + kappa) top), for one kappa >= 0.
* An FFT of size N has a relative error of at most 6.7 u log2 N in the l2 norm (Higham, Accuracy and Stability
  of Numerical Algorithms, theorem 24.2), so each Fourier coefficient of a release is off by at most
  e = 6.7 u log2(N) sqrt(N) |g|_2. A power T by squaring multiplies that by T |coefficient|^(T-1) and adds
  5 T u |coefficient|^T; the inverse transform adds its own. The l2 norm of the result, times the l2 norm of
  the weights (1 - e^(epsilon - l)) e^(-theta (l - centre)) above epsilon, is added to delta.
* Normal tails have a relative error of (8 + t^2) u at t standard deviations. It is added to the part of a cell's
  mass that moves up. The masses telescope, so no other sum of theirs is off by more than the factor that
  `_ROUNDING` gives to delta per release.

References
----------
Zhu, Dong and Wang, "Optimal accounting of differential privacy via characteristic function" (2022).
Doroshenko, Ghazi, Kamath, Kumar and Manurangsi, "Connect the dots: tighter discrete approximations of
privacy loss distributions" (2022).
Koskela, Jalko and Honkela, "Computing tight differential privacy guarantees using FFT" (2020).
"""

import math

import numpy as np
from numpy.typing import NDArray
from scipy.fft import irfft, next_fast_len, rfft
from scipy.special import erfcx

from skdp.kernels.protocols import Floats
from skdp.privacy.accounting.pairs import LOG_TAIL, DominatingPair, discretised

_U = 2.0**-53  # unit roundoff
_ROUNDING = 200.0 * _U  # relative error of delta for each release
_KAPPAS = (0.25, 0.5, 1.0, 2.0, 3.0, 4.5, 6.0, 9.0)  # tilts that Chernoff's bound is tried with
# A grid that would need more cells stays coarser than asked for. Its bound is valid and looser.
_MOST_CELLS = 2**17
_TILTS = (0.3, 1.0, 3.0, 10.0, 30.0)  # tilts over the widest loss, for heavy tails; a choice, not tuned
_LARGEST_WINDOW = 2**21  # cells of an FFT; a choice, not tuned


class _Composed:
    """The releases together on one grid: their cumulant function, and epsilon by a tilted FFT."""

    def __init__(self, pairs: tuple[DominatingPair, ...], grid: float, log_delta: float) -> None:
        self.grid, self.log_delta = grid, log_delta
        self.counts = [pair.releases for pair in pairs]
        self.total = sum(self.counts)
        log_tail = log_delta - math.log(self.total) - LOG_TAIL
        self.parts = [discretised(pair, grid, log_tail) for pair in pairs]
        with np.errstate(divide="ignore"):
            self._logs = [np.log(part.masses) for part in self.parts]
        self._losses = [np.arange(part.first, part.first + part.masses.size) * grid for part in self.parts]

    def infinite(self) -> float:
        """Probability that one of the releases has infinite loss, bounded."""
        return math.fsum(part.infinite * count for part, count in zip(self.parts, self.counts))

    def tilted(self, theta: float) -> tuple[list[Floats], float, float, float]:
        """Tilted masses of each release; K, K' and K'' of all at theta."""
        masses, value, mean, variance = [], 0.0, 0.0, 0.0
        for logs, losses, count in zip(self._logs, self._losses, self.counts):
            exponents = logs + theta * losses
            peak = float(exponents.max())
            weights = np.exp(exponents - peak)
            size = float(weights.sum())
            weights /= size
            centre = float(np.sum(weights * losses))
            masses.append(weights)
            value += count * (peak + math.log(size))
            mean += count * centre
            variance += count * float(np.sum(weights * np.square(losses - centre)))
        return masses, value, mean, variance

    def cumulant(self, theta: float) -> float:
        """K(theta), the logarithm of E e^(theta loss) of all releases."""
        return self.tilted(theta)[1]

    def log_delta_at(self, theta: float) -> tuple[float, float, float]:
        """Saddle-point value of log delta at epsilon = K'(theta); that epsilon; the standard deviation."""
        _, value, mean, variance = self.tilted(theta)
        spread = math.sqrt(variance)
        near, far = (erfcx(a * spread / math.sqrt(2.0)) for a in (theta, 1.0 + theta))
        gap = max(0.5 * float(near - far), 1e-300)
        return value - theta * mean + math.log(gap), mean, spread

    def saddle(self, guess: float) -> tuple[float, float, float]:
        """A tilt whose epsilon has about this delta; that epsilon; the standard deviation there.

        delta falls as theta grows. The bisection ends by the error in log delta, because epsilon leaps within a
        narrow range of theta if few releases see the record.
        """
        low, high = -math.inf, math.inf
        log_theta, step = math.log(guess), 0.7
        for _ in range(80):
            value, mean, spread = self.log_delta_at(math.exp(log_theta))
            error = value - self.log_delta
            if abs(error) < 0.3 or (error < 0.0 and math.exp(log_theta) * spread < 0.5):
                break
            low, high = (log_theta, high) if error > 0.0 else (low, log_theta)
            if math.isinf(low) or math.isinf(high):
                log_theta += math.copysign(step, error)
                step *= 1.6
            else:
                log_theta = 0.5 * (low + high)
            if high - low < 1e-13:
                break
        return math.exp(log_theta), mean, spread

    # ------------------------------------------------------------------ composition

    def _window(
        self, theta: float, value: float, centre: float, spread: float, log_small: float
    ) -> tuple[float, float, float]:
        """Reach above and below the centre, and log of the truncated tail relative to e^(K - theta centre)."""
        above = beyond = below = math.inf
        kappa_above = 0.0
        for part in _KAPPAS:
            kappa = part / spread
            rise = self.cumulant(theta + kappa) - value - kappa * centre
            fall = self.cumulant(theta - kappa) - value + kappa * centre
            reach = (rise - log_small) / (theta + kappa)
            if reach < above:
                above, kappa_above = reach, kappa
            beyond = min(beyond, (rise - log_small) / kappa)
            below = min(below, (fall - log_small) / kappa)
        above = max(above, self.grid)
        rise = self.cumulant(theta + kappa_above) - value - kappa_above * centre
        total = max(above + 4.0 * spread, beyond, below)
        return above, total - above, rise - (theta + kappa_above) * above

    def epsilon(self, theta: float) -> float | None:
        """Upper bound of epsilon. Any theta > 0 gives a bound, and the saddle point gives a tight one.

        None if the grid is so fine that the window has too many cells.
        """
        masses, value, mean, variance = self.tilted(theta)
        spread = max(math.sqrt(variance), self.grid)
        centre = round(mean / self.grid) * self.grid
        if not abs(centre) < 2.0**50 * self.grid:
            return math.inf
        log_scale = value - theta * centre
        reach = max(float(np.max(np.abs(losses))) for losses in self._losses)
        rounding = self.total * (_ROUNDING + theta * reach * _U)
        # A smaller target is safe: far above the target the tilt was too large to say more.
        target = math.exp(min(600.0, self.log_delta - log_scale - rounding))
        target -= self.infinite() * math.exp(min(600.0, -log_scale))
        if target <= 0.0:
            return math.inf
        above, below, log_top = self._window(theta, value, centre, spread, math.log(target) - 16.0)
        size = next_fast_len(math.ceil((above + below) / self.grid) + 3, real=True)
        if size > _LARGEST_WINDOW:
            return None
        start = round(centre / self.grid) - math.ceil(below / self.grid)
        density, error = self._compose(masses, size, start)
        # Far below the centre the weights overflow; epsilon at the first point kept is a bound then.
        keep = max(0, size - 2 - math.floor((above + 600.0 / (1.0 + theta)) / self.grid))
        losses = np.arange(start + keep, start + size) * self.grid - centre
        scale = np.exp(-theta * losses)
        weighted = density[keep:] * scale
        mass = np.cumsum(weighted[::-1])[::-1]
        mass_r = np.cumsum((weighted * np.exp(-losses))[::-1])[::-1]
        target -= math.exp(log_top)
        first = self._solve(mass, mass_r, losses, target)
        weights = -np.expm1(np.minimum(first - losses, 0.0)) * scale
        target -= error * _norm(weights) + 1e-10 * target
        found = self._solve(mass, mass_r, losses, target)
        return max(0.0, found + centre)

    @staticmethod
    def _solve(mass: Floats, mass_r: Floats, losses: Floats, target: float) -> float:
        """Epsilon (from the centre) at which delta is the target: between grid points linear in e^epsilon."""
        if not target > 0.0:
            return math.inf
        curve = mass - np.exp(np.minimum(losses, 700.0)) * mass_r  # delta at each grid point
        if not np.isfinite(curve).all():  # the tilt was much too large
            return math.inf
        over = np.flatnonzero(curve > target)
        cell = int(over[-1]) + 1 if over.size else 0
        if cell == losses.size:
            return math.inf
        if cell == 0 or mass[cell] <= target:
            return float(losses[cell])
        return min(float(losses[cell]), math.log((mass[cell] - target) / mass_r[cell]))

    def _compose(self, masses: list[Floats], size: int, start: int) -> tuple[Floats, float]:
        """The composed tilted masses from grid point `start` on, and a bound of their l2 error."""
        spectrum: NDArray[np.complex128] | None = None
        transforms, errors = [], []
        fft_error = 6.7 * _U * math.log2(size)
        for part, tilted, count in zip(self.parts, masses, self.counts):
            at = (np.arange(part.first, part.first + tilted.size)) % size
            wrapped: Floats = np.bincount(at, weights=tilted, minlength=size).astype(np.float64)
            transform = rfft(wrapped)
            transforms.append(np.abs(transform))
            errors.append(fft_error * math.sqrt(size) * _norm(wrapped))
            power = _power(transform, count)
            spectrum = power if spectrum is None else spectrum * power
        assert spectrum is not None
        modulus = np.abs(spectrum)
        off = 5.0 * _U * self.total * modulus
        for transform_size, error, count in zip(transforms, errors, self.counts):
            if count <= 2:
                off += count * error
            else:
                off += count * error * modulus / np.maximum(transform_size, error)
        composed = irfft(spectrum, size)
        error = math.sqrt(2.0 / size) * _norm(off)
        error += fft_error * _norm(composed)
        return np.roll(composed, -(start % size)), 1.1 * error


def _norm(values: Floats) -> float:
    # Not by BLAS, whose threads cost more than the sum when cores are shared.
    return math.sqrt(float(np.sum(np.square(values))))


def _power(values: NDArray[np.complex128], count: int) -> NDArray[np.complex128]:
    """values ** count by squaring."""
    result: NDArray[np.complex128] | None = None
    square = values.copy()
    while True:
        if count & 1:
            result = square.copy() if result is None else result * square
        count >>= 1
        if not count:
            break
        np.multiply(square, square, out=square)
    assert result is not None
    return result


def composed_epsilon(pairs: tuple[DominatingPair, ...], delta: float, rtol: float = 5e-4) -> float:
    """Upper bound of the epsilon of the releases, in this one direction.

    Parameters
    ----------
    pairs : tuple of DominatingPair
    delta : float in (0, 1)
    rtol : float, default=5e-4
        The grid is chosen so that it raises epsilon by about this.
    """
    log_delta = math.log(delta)
    widest = _widest(pairs, log_delta)
    if any(pair.heavy_tailed for pair in pairs):
        return _by_search(pairs, log_delta, widest, rtol)
    grid, theta = widest / 400.0, 1.0
    composed = _Composed(pairs, grid, log_delta)
    while True:
        theta, epsilon, spread = composed.saddle(theta)
        if 2.0 * widest > _MOST_CELLS * grid:
            break
        # The grid adds K(theta) of the fine grid to K(theta) of this one, and that over theta to epsilon.
        finer = _Composed(pairs, 0.5 * grid, log_delta)
        gain = (composed.cumulant(theta) - finer.cumulant(theta)) / theta
        allowed = rtol * max(epsilon, 0.02 * spread)
        # With cells as large as epsilon, or as the tilted losses, the error is unknown.
        fine = min(0.02 * max(epsilon, 0.02 * spread), 0.5 * spread)
        if gain <= 0.75 * allowed and grid <= fine:
            break
        factor = 0.8 * math.sqrt(0.75 * allowed / max(gain, 1e-3 * allowed))
        factor = min(0.5, max(0.05, min(factor, fine / grid)))
        factor = max(factor, widest / (_MOST_CELLS * grid))
        grid *= factor
        composed = finer if factor == 0.5 else _Composed(pairs, grid, log_delta)
    found = composed.epsilon(theta)
    while found is None:
        grid *= 2.0
        found = _Composed(pairs, grid, log_delta).epsilon(theta)
    return found


def _by_search(pairs: tuple[DominatingPair, ...], log_delta: float, widest: float, rtol: float) -> float:
    """The same where no saddle point tells a good tilt: the smallest of the bounds by several tilts.

    The grid is halved until little changes. Its error is of second order, so a third of the last change is left.
    """
    cells, last = 2**11, math.inf
    composed = _Composed(pairs, widest / cells, log_delta)
    tilts = [composed.saddle(1.0)[0], *(part / widest for part in _TILTS)]
    while True:
        with np.errstate(over="ignore", invalid="ignore"):  # tilts that are too large overflow
            found = [composed.epsilon(theta) for theta in tilts]
        bounds = [(value, theta) for value, theta in zip(found, tilts) if value is not None]
        if not bounds:
            break
        best, theta = min(bounds)
        small = last - best <= 3.0 * rtol * best
        last, tilts, cells = min(last, best), [theta], 2 * cells
        if small or cells > _MOST_CELLS:
            break
        composed = _Composed(pairs, widest / cells, log_delta)
    return last


def _widest(pairs: tuple[DominatingPair, ...], log_delta: float) -> float:
    """Range of the losses of the widest release, at least as large as rounding makes it."""
    ranges = (part.loss_range(log_delta - math.log(part.releases) - LOG_TAIL) for part in pairs)
    return max(max(high - low, 1e-9 * abs(high), 1e-300) for low, high in ranges)
