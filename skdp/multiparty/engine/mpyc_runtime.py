"""mpyc inside a server: its runtime, built by hand, over messages that somebody else carries.

Behaviour of mpyc 0.11, and its replacement here:

* Importing ``mpyc.runtime`` reads ``sys.argv`` and may start processes. It is imported with an argv of our own.
* Arrays travel through ``pickle``, so a peer could run code here. The module's ``pickle`` is replaced by
  `ElementCodec`, which knows field elements of fixed length and nothing else.
* A party chooses its own number, payloads may have 4 gigabytes, and nothing has a deadline. None of mpyc's sockets
  is opened: messages travel over the links of `skdp.multiparty.transport`.
* An error stops the event loop. The runtime has a thread and a loop to itself.
* Keys of pseudorandom shares (PRSS, SHAKE-128) are made when a runtime is made, and are used with its program
  counter. Every run here has a new runtime and new keys of 128 bits from the operating system. A subset of
  servers that leaves out t others holds a key together.

mpyc's other randomness, the coefficients of shares, is from ``secrets``. Of its protocols two are used: random
bits (from the square roots of opened random squares) and products. Neither hides anything statistically, so
``sec_param`` is not used; `make_runtime` makes it a value that no arithmetic accepts.
"""

import argparse
import asyncio
import importlib.util
import itertools
import os
import secrets
import sys
import threading
import warnings
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.multiparty.engine.field import BYTES, PRIME

KEY_BYTES = 16
_LOCK = threading.Lock()
_MISSING = "secret random bits need mpyc: python -m pip install 'skdp[mpc]'"


class ElementCodec:
    """Replacement of ``pickle`` in ``mpyc.runtime``: arrays of field elements, 12 bytes each."""

    @staticmethod
    def dumps(elements: Iterable[int]) -> bytes:
        """The message of an array of integers in 0 .. p - 1."""
        return b"".join([int(x).to_bytes(BYTES, "little") for x in elements])

    @staticmethod
    def loads(payload: bytes) -> NDArray[np.object_]:
        """The array of a message, whose numbers were checked when it arrived."""
        wire = np.frombuffer(payload, dtype=[("low", "<u8"), ("high", "<u4")])
        return wire["low"].astype(object) + (wire["high"].astype(object) << 64)


def require_mpyc() -> None:
    """Raise ImportError, with the cure, where mpyc is not installed. Nothing is imported."""
    if importlib.util.find_spec("mpyc") is None:
        raise ImportError(_MISSING)


def import_mpyc() -> ModuleType:
    """``mpyc.runtime`` with `ElementCodec` in the place of pickle.

    Raises
    ------
    ImportError
        If mpyc is not installed, or is a version whose messages this module does not know.
    """
    with _LOCK:
        argv, sys.argv = sys.argv, ["skdp", "--no-log", "--no-uvloop"]
        # Importing must not touch the event loop of this thread.
        os.environ.setdefault("MPYC_NOUVLOOP", "1")
        try:
            with warnings.catch_warnings():
                # It uses a name that numpy has deprecated.
                warnings.simplefilter("ignore", DeprecationWarning)
                import mpyc
                import mpyc.runtime as module
        except ImportError:
            raise ImportError(_MISSING) from None
        finally:
            sys.argv = argv
        version = tuple(int(part) for part in mpyc.__version__.split(".")[:2])
        if version < (0, 11) or not hasattr(module, "pickle"):
            raise ImportError(f"mpyc 0.11 is needed, found {mpyc.__version__}")
        module.pickle = ElementCodec
        return module


def shared_subsets(n_servers: int, threshold: int) -> list[tuple[int, ...]]:
    """The sets of servers that hold a key together: all but ``threshold`` of them."""
    return list(itertools.combinations(range(n_servers), n_servers - threshold))


def new_keys(n_servers: int, threshold: int, position: int) -> dict[tuple[int, ...], bytes]:
    """Fresh keys for the subsets whose first member is this server; it sends them to the other members."""
    subsets = shared_subsets(n_servers, threshold)
    return {s: secrets.token_bytes(KEY_BYTES) for s in subsets if s[0] == position}


def make_runtime(
    module: ModuleType, position: int, threshold: int, keys: dict[tuple[int, ...], bytes], parties: list[object]
) -> Any:
    """A runtime for this thread's event loop. mpyc has one at a time in a process.

    Parameters
    ----------
    module : module
        Of `import_mpyc`.
    position, threshold : int
    keys : dict
        Of all subsets to which this server belongs.
    parties : list
        For every position an object with ``send(counter, payload)`` and ``receive(counter)``.
    """
    options = argparse.Namespace(
        threshold=threshold, no_log=True, no_prss=False, no_async=False, no_barrier=False,
        mix32_64bit=False, sec_param=_NoSecurityParameter(), ssl=False,
    )  # fmt: skip
    mine = [module.Party(i) for i in range(len(parties))]
    runtime = module.Runtime(position, mine, options)
    runtime._prss_keys = dict(keys)
    runtime.prfs.cache_clear()
    for party, protocol in zip(mine, parties):
        party.protocol = protocol
    # The modules of mpyc find the runtime in a global of theirs, as its own `setup` arranges it.
    import mpyc.asyncoro
    import mpyc.mpctools
    import mpyc.sectypes

    for user in (mpyc.asyncoro, mpyc.mpctools, mpyc.sectypes):
        user.runtime = runtime
    return runtime


class _NoSecurityParameter:
    """In the place of mpyc's ``sec_param``: a protocol that would hide statistically fails at once."""

    def _refuse(self, *_: object) -> None:
        raise TypeError("a protocol of mpyc that hides statistically was called")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __lt__ = __gt__ = _refuse
    __le__ = __ge__ = __floordiv__ = __rfloordiv__ = __lshift__ = __rlshift__ = __pow__ = _refuse
    __rpow__ = __index__ = __int__ = _refuse


def field() -> Any:
    """mpyc's field of p elements."""
    from mpyc import finfields

    return finfields.GF(PRIME)


def new_loop() -> asyncio.AbstractEventLoop:
    """An event loop for this thread, which must not have one."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    return loop
