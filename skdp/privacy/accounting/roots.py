"""The point at which a computed quantity passes its limit, rounded to the side that the caller calls safe.

References
----------
Chandrupatla, A new hybrid quadratic/bisection algorithm for finding the zero of a nonlinear function without using
derivatives (1997): the steps.
"""

from collections.abc import Callable

# Relative width of the bracket that is left: a few units in the last place, so that the results for arguments that
# differ by a rounding are in order, as far as the excess is monotone.
_WIDTH = 1e-15
_STEPS = 200  # bisection alone needs 50 to go from a factor of two to that width


def last_safe(excess: Callable[[float], float], safe: float, unsafe: float, floor: float = 0.0) -> float:
    """The last point that is known to be safe, next to a point that is not.

    Parameters
    ----------
    excess : callable float -> float
        How far a point is beyond the limit. A point is safe if this is at most 0; at NaN it is not.
    safe, unsafe : float
        A bracket, in either order. The caller knows from a proof or from a computation that the first is safe.
    floor : float >= 0, default=0.0
        A bracket of this width is small enough, also where its points are near 0.

    Returns
    -------
    float
        `safe` itself, or a point x for which ``excess(x) <= 0`` was computed.

    Notes
    -----
    **Why the result is safe.** Only `good` is returned, or `unsafe` where its excess was computed to be at most 0.
    `good` begins as `safe`. It changes in one line, to a point whose excess was just computed and found to be at
    most 0; a comparison with NaN is false. Where the next point lies is another matter: an interpolation that is
    wrong, and an excess that is infinite, NaN or not monotone in its last digits, change which points are computed
    and how many. None of them makes an unsafe point `good`.

    **How tight it is.** `near` and `far` are always on different sides of the limit, so one of them is `good` and
    the excess of the other was computed not to be at most 0. The loop ends when they are within 1e-15 of their
    size plus `floor`, or after 200 steps, or when no float lies between them. A step leaves at least half that
    width to both ends, so that a zero that is found from one side only does not leave a wide bracket.
    """
    near, f_near, far, f_far = safe, min(excess(safe), 0.0), unsafe, excess(unsafe)
    good, near_is_safe, share = near, True, 0.5
    if f_far <= 0.0:
        return far
    for _ in range(_STEPS):
        at = near + share * (far - near)
        if at in (near, far):
            break
        f = excess(at)
        if (f <= 0.0) == near_is_safe:
            old, f_old = near, f_near
        else:
            old, f_old, far, f_far = far, f_far, near, f_near
            near_is_safe = not near_is_safe
        near, f_near = at, f
        if f <= 0.0:
            good = at
        width, enough = abs(far - near), _WIDTH * max(abs(far), abs(near)) + floor
        if width <= enough:
            break
        margin = 0.5 * enough / width
        share = _next_share((near, far, old), (f_near, f_far, f_old))
        share = min(max(share, margin), 1.0 - margin)
    return good


def _next_share(x: tuple[float, float, float], f: tuple[float, float, float]) -> float:
    """Where between x[0] and x[1] the next point lies: inverse quadratic interpolation, or the middle.

    The interpolation is taken if it is monotone between the points. The condition is false for anything infinite
    or NaN, and where two of the values are the same, so that no division below is by 0.
    """
    near, far, old = f
    place = (x[0] - x[1]) / (x[2] - x[1])
    level = (near - far) / (old - far)
    if level * level < place and (1.0 - level) * (1.0 - level) < 1.0 - place:
        first = near / (far - near) * (old / (far - old))
        second = (x[2] - x[0]) / (x[1] - x[0]) * (near / (old - near)) * (far / (old - far))
        return first + second
    return 0.5
