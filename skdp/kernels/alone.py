"""Whether predictions must compute each row alone: the same bits wherever it stands, and whatever else there is.

A product of BLAS treats the last rows of a table in another way, and a table of some size takes a compiled loop.
For a prediction that does not matter. An evaluation counts predictions of private rows, and an added record must
not move another row's score over the edge of a bin.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_ALONE: ContextVar[bool] = ContextVar("rows_alone", default=False)


def are_rows_alone() -> bool:
    """Whether the scores of a row must be a function of this row alone, to the last bit."""
    return _ALONE.get()


@contextmanager
def rows_alone() -> Iterator[None]:
    """Let skdp's linear and additive models compute each row alone inside the block."""
    token = _ALONE.set(True)
    try:
        yield
    finally:
        _ALONE.reset(token)
