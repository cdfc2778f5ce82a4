"""Checks of the samplers' arguments."""

from math import isfinite
from numbers import Integral, Real

import numpy as np

from skdp.privacy.noise.keystream import KeyStream, Seed

__all__ = ["check_count", "check_integer", "check_number", "check_shape", "stream_of"]


def check_integer(value: object, name: str) -> int:
    """`value` as an int; booleans are refused."""
    if type(value) is int:  # asking for an abstract type takes a microsecond
        return value
    if isinstance(value, bool | np.bool_) or not isinstance(value, Integral):
        raise TypeError(f"{name} must be an integer, got {type(value).__name__}.")
    return int(value)


def check_count(value: object, name: str) -> int:
    """`value` as an int >= 0."""
    number = check_integer(value, name)
    if number < 0:
        raise ValueError(f"{name} must not be negative, got {number}.")
    return number


def check_number(value: object, name: str, bounds: tuple[float, float]) -> float:
    """`value` as a positive, finite float within ``bounds``."""
    if type(value) is float:
        number = value
    elif isinstance(value, bool | np.bool_) or not isinstance(value, Real):
        raise TypeError(f"{name} must be a real number, got {type(value).__name__}.")
    else:
        number = float(value)
    low, high = bounds
    if not (low <= number <= high and number > 0 and isfinite(number)):
        expected = f"between {low} and {high}" if low else "positive and finite"
        raise ValueError(f"{name} must be {expected}, got {number}.")
    return number


def check_shape(size: int | tuple[int, ...]) -> tuple[int, ...]:
    """`size` as a tuple of ints >= 0."""
    if type(size) is int:
        return (check_count(size, "size"),)
    if isinstance(size, tuple | list):
        return tuple(check_count(n, "size") for n in size)
    return (check_count(size, "size"),)


def stream_of(random_state: "Seed | KeyStream", info: bytes) -> KeyStream:
    """``random_state`` if it is a stream, else a new one; ``info`` keeps the streams of one seed apart."""
    if isinstance(random_state, KeyStream):
        return random_state
    return KeyStream(random_state, info=info)
