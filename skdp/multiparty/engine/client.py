"""An owner's part of a round: it shares its integers among the servers and reads the opened sum."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from skdp.multiparty.engine.exchange import receive_all, send_all, telling
from skdp.multiparty.engine.field import from_int64, to_bytes
from skdp.multiparty.engine.server import INPUT, RESULT, round_tag
from skdp.multiparty.engine.shamir import share, threshold_of
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.links import Link
from skdp.privacy.noise import KeyStream


async def open_as_owner(
    servers: Sequence[Link], integers: NDArray[np.int64], stream: KeyStream, *, number: int
) -> NDArray[np.int64]:
    """Take part in one opening.

    Parameters
    ----------
    servers : sequence of Link
        To all servers, in the order of their positions.
    integers : ndarray of int64
        This owner's; of the same shape for all owners.
    stream : KeyStream
        From the operating system: whoever knows it knows the integers from two shares.
    number : int
        Of the round: 0, 1, ...; the same for all parties.

    Returns
    -------
    ndarray of int64 of the same shape
        The sum over all owners plus the noise, modulo 2^64.

    Raises
    ------
    PartyError
        Naming the party that failed, or nobody where the servers sent different results. All servers are told.
    """
    k = len(servers)
    async with telling(servers):
        shares = share(from_int64(integers.ravel()), k, threshold_of(k), stream)
        await send_all(servers, round_tag(number, INPUT), [to_bytes(one) for one in shares])
        # A server waits for other owners and then for other servers before it sends the result.
        results = await receive_all(servers, round_tag(number, RESULT), patience=3)
        for link, payload in zip(servers, results):
            if len(payload) != 8 * integers.size:
                raise PartyError(link.peer, Reason.CONTENT, index=link.index)
        if any(payload != results[0] for payload in results):
            raise PartyError("", Reason.DIFFERENT)
    return np.frombuffer(results[0], dtype="<i8").astype(np.int64).reshape(integers.shape)
