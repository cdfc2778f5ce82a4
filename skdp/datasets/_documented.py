"""The parameters that every fetcher shares, written once and put into each docstring."""

from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["documented"]

_PARAMETERS = """data_home : str, path-like or None, default=None
        Folder of the files. ``None`` takes the environment variable ``SKDP_DATA``, else
        ``~/skdp_data``.
    download_if_missing : bool, default=True
        Download a file that is not there; False raises OSError instead.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects; needs pandas.
    n_retries : int, default=3
        Number of attempts of a download, at least 1.
    delay : float, default=1.0
        Seconds between attempts.
    subset : {"train", "test", "all"}, default="train"
        Which part, as the files give it; "all" is the training rows, then the test rows."""

_RAISES = """OSError
        A file is not there and is not or cannot be downloaded; the message names the file, its
        address and where to put it.
    ValueError
        A file whose checksum or number of rows is not the expected one."""

F = TypeVar("F", bound=Callable[..., Any])


def documented(function: F) -> F:
    """Fill the shared parts of a fetcher's docstring."""
    if function.__doc__ is not None:  # None under python -OO
        text = function.__doc__.replace("{parameters}", _PARAMETERS)
        function.__doc__ = text.replace("{raises}", _RAISES)
    return function
