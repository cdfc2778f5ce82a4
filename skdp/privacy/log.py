"""The logger ``skdp``: the plans of a fit and its charges, as lines of level INFO.

These lines hold parameters and public numbers, and are the same for neighbouring data. Plans that were made after
a release may follow from it and are of level DEBUG. No line holds a record, a key or a seed. Nothing is printed
unless the program asks for it, for example by ``logging.basicConfig(level=logging.INFO)``. When a line comes is
not protected, as the time of a fit is not.
"""

import contextlib
import logging
from collections.abc import Iterator
from contextvars import ContextVar

LOGGER = logging.getLogger("skdp")
LOGGER.addHandler(logging.NullHandler())

_SILENT: ContextVar[bool] = ContextVar("silent", default=False)


def _is_open(record: logging.LogRecord) -> bool:
    return not _SILENT.get()


LOGGER.addFilter(_is_open)


@contextlib.contextmanager
def no_log_lines() -> Iterator[None]:
    """Write no line in this context: a line for each trial would tell the number of trials."""
    token = _SILENT.set(True)
    try:
        yield
    finally:
        _SILENT.reset(token)
