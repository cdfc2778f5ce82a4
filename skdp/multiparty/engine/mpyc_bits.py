"""Shares of discrete Laplace noise, from secret random bits that mpyc makes among the servers.

All secrets here are shares of degree t among the k servers: of random bits, of digits, of the noise. No bit of a
value is opened, and nobody knows one: mpyc opens squares of random numbers, which tell nothing of a root's sign,
and products are shared anew. Whatever t servers know, the noise has its full scale, with no surplus.

**That holds where every server follows the protocol, and nobody notices where one does not.** The opened squares
are products of shares, so they have degree 2t: k = 2t + 1 shares give one number each time, and none is left to
compare. A server that sees the others' shares first opens any number it wants in place of a square. Then a "random
bit" is one of two numbers of its choice, (1 +- (1 + 2^65)) / 2, say, for a sign, and the opened sum has a copy of
the noise above its lower 64 bits, which are all that owners get (`tests/multiparty/test_laplace_attack.py`).
Products that are shared anew have no redundancy either. The noise of Gaussian releases does not rest on that: its
shares and its openings have degree t.

The numbers below a public constant are found bit by bit from the lowest. Let r be the next bit of the random
number, c the next bit of the constant, and b tell whether the bits before it are below the constant's. Then ::

    b' = 1 - r + r b   where c = 1,        b' = b - r b   where c = 0.

Both need the one product r b, and all digits of all values are worked on at once. The lowest digits' numbers are
shorter, so rows join on the way; a row that joins starts with b = 0 and needs no product.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from skdp.multiparty.engine.exchange import exchange, telling
from skdp.multiparty.engine.field import Elements
from skdp.multiparty.engine.laplace_bits import Digit, bits_of, digits_of
from skdp.multiparty.engine.mpyc_post import Post
from skdp.multiparty.engine.mpyc_runtime import KEY_BYTES, field, new_keys, shared_subsets
from skdp.multiparty.engine.server import Seat
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.links import Link

# Tags of this phase.
_KEYS, _MESSAGES = 2**61, 2**61 + 2**59
MOST_BITS = 2**18
"""Random bits that are made at once, at most. A choice, not tuned: messages of three megabytes."""


async def lay_laplace_noise(
    seat: Seat,
    servers: Mapping[int, Link],
    rounds: int,
    n_values: int,
    scale: float,
    *,
    batch: int = 0,
    bits: int = MOST_BITS,
) -> list[Elements]:
    """Shares of discrete Laplace noise that no ``threshold`` servers know.

    Parameters
    ----------
    seat : Seat
    servers : mapping of int to Link
        The other servers by position.
    rounds, n_values : int
    scale : float
        In units; see `skdp.multiparty.engine.laplace_bits.LAPLACE_SCALES`.
    batch : int, default=0
        Which offline phase of this protocol run it is; the same for all servers.
    bits : int, default=2**18
        How many random bits are made at once, at least the bits of one value; a message has 12 bytes for each. The
        same for all servers.

    Returns
    -------
    list of elements, each of shape (2, n_values)

    Raises
    ------
    PartyError
        Naming the server that failed. All other servers are told.
    """
    digits, per_block = digits_of(scale), max(1, bits // bits_of(scale))
    async with telling(servers.values()):
        keys = await _exchange_keys(seat, servers, batch)
        post = Post(seat, servers, _MESSAGES + batch * 2**32)
        shares = await post.run(partial(_noise, digits, rounds * n_values, per_block), keys)
    elements = np.stack((shares & (2**45 - 1), shares >> 45)).astype(np.uint64)
    whole = elements.reshape(2, rounds, n_values)
    return [np.ascontiguousarray(whole[:, i]) for i in range(rounds)]


async def _exchange_keys(seat: Seat, servers: Mapping[int, Link], batch: int) -> dict[tuple[int, ...], bytes]:
    """The keys of all subsets that this server belongs to: made by each subset's first member."""
    keys = new_keys(seat.n_servers, seat.threshold, seat.position)
    sent = {i: b"".join(keys[s] for s in keys if i in s) for i in servers}
    received = await exchange(servers, _KEYS + batch, sent)
    for i, payload in received.items():
        subsets = [s for s in shared_subsets(seat.n_servers, seat.threshold) if s[0] == i and seat.position in s]
        if len(payload) != KEY_BYTES * len(subsets):
            raise PartyError(servers[i].peer, Reason.CONTENT, index=servers[i].index)
        for number, subset in enumerate(subsets):
            keys[subset] = payload[KEY_BYTES * number : KEY_BYTES * (number + 1)]
    return keys


# ---------------------------------------------------------------- the computation, in mpyc


async def _noise(digits: tuple[Digit, ...], n_values: int, per_block: int, runtime: object) -> NDArray[np.object_]:
    """This server's shares of ``n_values`` values of the noise, as Python integers."""
    blocks = []
    for start in range(0, n_values, per_block):
        blocks.append(await _block(digits, min(per_block, n_values - start), runtime))
    return np.concatenate(blocks)


async def _block(digits: tuple[Digit, ...], n_values: int, runtime: Any) -> NDArray[np.object_]:
    """As `_noise`, for as many values as are made at once."""
    # The digits with the longest numbers first: those that a step works on are the first ones.
    order = sorted(range(len(digits)), key=lambda i: -digits[i].kappa)
    longest, elements = digits[order[0]].kappa, field()
    total = n_values * (1 + sum(digit.kappa for digit in digits))
    bits = (await runtime.np_random_bits(elements, total)).value
    signs, bits, taken = bits[:n_values], bits[n_values:], 0
    below = np.zeros((0, n_values), dtype=object)
    for place in range(longest):  # counted from the lowest bit of the longest number
        rows = [i for i in order if digits[i].kappa >= longest - place]
        chosen = np.array(
            [[digits[i].constant >> (digits[i].kappa - (longest - place)) & 1] for i in rows], dtype=object
        )
        random = bits[taken : taken + len(rows) * n_values].reshape(len(rows), n_values)
        taken += random.size
        both = np.zeros((len(rows), n_values), dtype=object)
        if below.size:
            product = elements.array(random[: len(below)] * below)
            both[: len(below)] = (await runtime._reshare(product)).value
        before = np.zeros_like(both)
        before[: len(below)] = below
        one, zero = 1 - random + both, before - both  # where the constant's bit is one, is zero
        below = (chosen * one + (1 - chosen) * zero) % elements.modulus
    weights = np.array([[2**i] for i in order], dtype=object)
    size = (weights * below).sum(axis=0)
    turned = await runtime._reshare(elements.array(signs * (2 * size + 1)))  # twice size + 1/2, with the sign
    return (size - turned.value) % elements.modulus
