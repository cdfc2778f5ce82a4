"""A server's part of a round: it lays noise in shares, adds the owners' shares to it, and opens the noisy sum.

Offline, once for all rounds, since noise does not depend on data: every server draws its part of the noise and
shares it among the servers (`lay_gaussian_noise`). Online, in every round (`serve_round`):

1. every owner sends a share of its integers;
2. the server adds all shares and its share of the noise, and sends the sum to the other servers;
3. the server looks whether all shares of the sum lie on one polynomial, and sends the opened integers to every
   owner.

Secrecy. The t servers that may be corrupted, together with any owners, see t shares of every honest owner's
integers and of every honest server's noise, which are uniform, and all shares of the sum. The shares of the sum
lie on one polynomial of degree t: its value at 0 is the output, its values at the corrupted servers are sums of
shares that these servers hold. These t + 1 values determine all they see, which is the output, their own uniform
numbers, and nothing else.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from skdp.multiparty.engine.exchange import elements_from, exchange, receive_all, send_all, telling
from skdp.multiparty.engine.field import Elements, combine, from_int64, to_bytes, to_int64
from skdp.multiparty.engine.noise_shares import share_std
from skdp.multiparty.engine.shamir import Contradiction, recombine, share, threshold_of
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.links import Link
from skdp.privacy import noise
from skdp.privacy.noise import KeyStream

# Steps of a round; the tag of a frame is its round and its step.
INPUT, OUTPUT, RESULT = 0, 1, 2
_STEPS = 4
# Tags of frames before the rounds count from here.
_OFFLINE = 2**62
# A frame of the offline phase has this many values, which are 3 megabytes. The number is a choice, not tuned.
_BLOCK = 2**18


@dataclass(frozen=True)
class Seat:
    """A server's place among the servers.

    Attributes
    ----------
    position : int
        0 .. n_servers - 1; its shares are values at position + 1.
    n_servers : int
        3 or 5.
    """

    position: int
    n_servers: int

    @property
    def threshold(self) -> int:
        """How many servers may be corrupted."""
        return threshold_of(self.n_servers)

    @property
    def n_honest(self) -> int:
        """How many servers are honest at least."""
        return self.n_servers - self.threshold


def round_tag(number: int, step: int) -> int:
    """The tag of the frames of one step of a round."""
    return _STEPS * number + step


async def lay_gaussian_noise(
    seat: Seat,
    servers: Mapping[int, Link],
    rounds: int,
    n_values: int,
    sigma: float,
    stream: KeyStream,
    *,
    batch: int = 0,
) -> list[Elements]:
    """Shares of Gaussian noise that no ``threshold`` servers know.

    Parameters
    ----------
    seat : Seat
    servers : mapping of int to Link
        The other servers by position.
    rounds, n_values : int
        Number of openings, and of values in each.
    sigma : float
        Standard deviation, in units, that the honest servers' parts reach alone.
    stream : KeyStream
        Of this server, from the operating system.
    batch : int, default=0
        Which offline phase of this protocol run it is; the same for all servers.

    Returns
    -------
    list of elements, each of shape (2, n_values)
        One for each round. It serves one round only.

    Raises
    ------
    PartyError
        Naming the server that failed. All other servers are told.
    """
    std = share_std(sigma, seat.n_honest)
    held = []
    async with telling(servers.values()):
        for start in range(0, rounds * n_values, _BLOCK):
            size = min(_BLOCK, rounds * n_values - start)
            drawn = from_int64(noise.rounded_gaussian(std, size, stream))
            shares = share(drawn, seat.n_servers, seat.threshold, stream)
            tag = _OFFLINE + batch * 2**32 + start // _BLOCK
            sent = {i: to_bytes(shares[i]) for i in servers}
            received = await exchange(servers, tag, sent)
            parts = [elements_from(servers[i], received[i], size) for i in servers]
            held.append(combine([1] * seat.n_servers, [shares[seat.position], *parts]))
    whole = np.concatenate(held, axis=1).reshape(2, rounds, n_values)
    return [np.ascontiguousarray(whole[:, i]) for i in range(rounds)]


async def serve_round(
    seat: Seat, servers: Mapping[int, Link], owners: Sequence[Link], noise_share: Elements, *, number: int
) -> None:
    """Serve one opening: the sum of the owners' integers plus the noise goes to every owner.

    Parameters
    ----------
    seat : Seat
    servers : mapping of int to Link
        The other servers by position.
    owners : sequence of Link
    noise_share : elements of shape (2, n_values)
        This server's share of noise that was laid for this round.
    number : int
        Of the round: 0, 1, ...; the same for all parties.

    Raises
    ------
    PartyError
        Naming the party that failed, or nobody where the servers' shares contradict each other. All other
        parties are told. Owners to whom the result has gone already keep it.
    """
    size = noise_share.shape[1]
    async with telling([*servers.values(), *owners]):
        total = noise_share
        for link, payload in zip(owners, await receive_all(owners, round_tag(number, INPUT))):
            total = combine([1, 1], [total, elements_from(link, payload, size)])
        opened = await _open(seat, servers, total, round_tag(number, OUTPUT))
        # Little-endian int64: all owners read the same bytes.
        payload = to_int64(opened).astype("<i8").tobytes()
        await send_all(owners, round_tag(number, RESULT), [payload] * len(owners))


async def _open(seat: Seat, servers: Mapping[int, Link], mine: Elements, tag: int) -> Elements:
    """Exchange the shares of the sum; refuse shares that do not lie on one polynomial."""
    # Another server may still wait for an owner that is late, and will say which one.
    received = await exchange(servers, tag, dict.fromkeys(servers, to_bytes(mine)), patience=2)
    shares = {i: elements_from(servers[i], received[i], mine.shape[1]) for i in servers}
    shares[seat.position] = mine
    try:
        return recombine([shares[i] for i in range(seat.n_servers)], seat.threshold)
    except Contradiction:
        raise PartyError("", Reason.CONTRADICTION) from None
