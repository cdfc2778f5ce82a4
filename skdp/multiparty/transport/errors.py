"""Errors between parties, as codes: no text of a peer is ever shown."""

import struct
from enum import IntEnum

# The tag of a frame that ends the protocol; no round uses it.
ABORT_TAG = 2**64 - 1
# The number that stands for no party in an abort frame.
NOBODY = 2**32 - 1
_ABORT = struct.Struct("<BI")


class Reason(IntEnum):
    """Why a party stopped. The number travels; the text is the reader's own."""

    LOST = 1
    LATE = 2
    SIZE = 3
    ORDER = 4
    CONTENT = 5
    CONTRADICTION = 6
    DIFFERENT = 7
    VERSION = 8
    PLAN = 9
    DATA = 10
    STOPPED = 11
    CERTIFICATE = 12
    ABSENT = 13
    REFUSED = 14
    ENDED = 15
    LEDGER = 16
    TERMS = 17


_TEXTS = {
    Reason.LOST: "the connection ended before the protocol did",
    Reason.LATE: "it sent nothing within the deadline",
    Reason.SIZE: "it sent a frame that is longer than the plan allows",
    Reason.ORDER: "it sent a frame that is not the next one of the protocol",
    Reason.CONTENT: "it sent values that the protocol does not allow",
    Reason.CONTRADICTION: "the servers' shares contradict each other",
    Reason.DIFFERENT: "the servers sent different results",
    Reason.VERSION: "it runs another version of skdp, or other source files of the same version",
    Reason.PLAN: "its plan is another one",
    Reason.DATA: "its data do not fit the plan",
    Reason.STOPPED: "it stopped because of an error of its own",
    Reason.CERTIFICATE: "its certificate is not the one in the plan, or not valid now",
    Reason.ABSENT: "it was not connected within the deadline",
    Reason.REFUSED: "it hung up before its first word: it may have refused this party's certificate",
    Reason.ENDED: "somebody ended it there (Ctrl-C, or a signal)",
    Reason.LEDGER: "its ledger does not hold the plan",
    Reason.TERMS: "it computes other noise or another grid from the same plan",
}


class PartyError(RuntimeError):
    """Another party, or the agreement between parties, failed; this party has no output.

    Parameters
    ----------
    peer : str
        Name of the party that failed, as the plan has it; "" if no party can be named.
    reason : Reason
    index : int or None, default=None
        The party's number in the plan.
    told_by : str, default=""
        Name of the party that reported it; "" if it was seen here.

    Attributes
    ----------
    peer, reason, index, told_by
        As given.
    """

    def __init__(self, peer: str, reason: Reason, *, index: int | None = None, told_by: str = "") -> None:
        text = _TEXTS[reason]
        told = f" ({told_by} reported it)" if told_by else ""
        super().__init__(f"{peer}: {text}{told}" if peer else f"{text}{told}")
        self.peer, self.reason, self.index, self.told_by = peer, reason, index, told_by


def pack_abort(reason: Reason, index: int | None) -> bytes:
    """The payload of an abort frame: the reason, and the number of the party that caused it."""
    return _ABORT.pack(reason, NOBODY if index is None else index)


def unpack_abort(payload: bytes) -> tuple[Reason, int | None]:
    """The frame that `pack_abort` wrote; an unreadable one is an error of its sender, so ``(STOPPED, None)``."""
    try:
        code, index = _ABORT.unpack(payload)
        return Reason(code), None if index == NOBODY else index
    except (struct.error, ValueError):
        return Reason.STOPPED, None
