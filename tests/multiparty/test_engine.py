"""The protocol over links inside one process: what is opened, who is blamed, what t servers see."""

import asyncio

import numpy as np
import pytest

from skdp.multiparty.engine import field, server
from skdp.multiparty.engine.client import open_as_owner
from skdp.multiparty.engine.field import from_int64, to_bytes
from skdp.multiparty.engine.server import INPUT, OUTPUT, Seat, lay_gaussian_noise, round_tag
from skdp.multiparty.engine.shamir import THRESHOLDS, share
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.privacy.noise import KeyStream
from tests.multiparty.links import memory_links

SERVERS = pytest.mark.parametrize("k", THRESHOLDS)
X = [np.array([1, -2, 2**40]), np.array([10, 20, -(2**41)])]


class Tap:
    """A link that writes down what arrives, and may change what leaves."""

    def __init__(self, link, seen=None, change=None):
        self.link, self.seen, self.change = link, seen, change
        self.peer, self.index = link.peer, link.index

    async def send(self, tag, payload):
        await self.link.send(*(self.change(tag, payload) if self.change else (tag, payload)))

    async def receive(self, tag, *, patience=1):
        payload = await self.link.receive(tag, patience=patience)
        if self.seen is not None:
            self.seen.append((self.peer, tag, payload))
        return payload

    def close(self):
        self.link.close()


class Room:
    """Owners 0 .. m - 1 and servers m .. m + k - 1 on memory links."""

    def __init__(self, m, k, deadline=5.0):
        self.m, self.k = m, k
        names = [f"owner {i}" for i in range(m)] + [f"server {i}" for i in range(k)]
        self.links = memory_links(m + k, deadline=deadline, names=names)

    def servers_of(self, position):
        return {i: self.links[self.m + position][self.m + i] for i in range(self.k) if i != position}

    def owners_of(self, position):
        return [self.links[self.m + position][i] for i in range(self.m)]

    def of_owner(self, i):
        return [self.links[i][self.m + j] for j in range(self.k)]


def play(room, integers, noise_shares, streams=None, rounds=1, absent=()):
    """Run rounds; what every party returned or raised: owners, then servers."""

    async def serve(position):
        for number in range(rounds):
            await server.serve_round(
                Seat(position, room.k), room.servers_of(position), room.owners_of(position),
                noise_shares[position], number=number,
            )  # fmt: skip

    async def own(i):
        stream = KeyStream(100 + i) if streams is None else streams[i]
        for number in range(rounds):
            found = await open_as_owner(room.of_owner(i), integers[i], stream, number=number)
        return found

    async def all_parties():
        owners = [own(i) for i in range(room.m) if i not in absent]
        parties = [*owners, *map(serve, range(room.k))]
        return await asyncio.gather(*parties, return_exceptions=True)

    return asyncio.run(all_parties())


def no_noise(k, size=3):
    return [np.zeros((2, size), dtype=np.uint64)] * k


def everybody(results, peer, reason, but=()):
    """All parties, but these, failed for this reason and name this party."""
    for i, error in enumerate(results):
        if i not in but:
            assert isinstance(error, PartyError), (i, error)
            assert (error.peer, error.reason) == (peer, reason), (i, error)


@SERVERS
def test_without_noise_the_exact_sum_is_opened_to_every_owner(k):
    results = play(Room(2, k), X, no_noise(k), rounds=3)
    for opened in results[:2]:
        assert opened.tolist() == (X[0] + X[1]).tolist()
    assert results[2:] == [None] * k


def test_sums_are_modulo_2_64_and_keep_their_shape():
    x = [np.full((2, 2), 2**63 - 1)] * 3
    results = play(Room(3, 3), x, no_noise(3, 4))
    assert results[0].tolist() == [[2**63 - 3] * 2] * 2
    assert results[0].dtype == np.int64


@SERVERS
def test_the_noise_is_the_sum_of_what_all_servers_drew(k, monkeypatch):
    """And any number of rounds of it is laid at once, in several frames."""
    monkeypatch.setattr(server, "_BLOCK", 7)
    sigma, seen = 2.0**12, []
    drawn = server.noise.rounded_gaussian

    def watched(std, size, stream):
        made = drawn(std, size, stream)
        seen.append((std, made))
        return made

    monkeypatch.setattr(server.noise, "rounded_gaussian", watched)
    room = Room(1, k)

    async def lay():
        parties = [lay_gaussian_noise(Seat(i, k), room.servers_of(i), 4, 3, sigma, KeyStream(i)) for i in range(k)]
        return await asyncio.gather(*parties)

    held = asyncio.run(lay())
    assert [std for std, _ in seen] == pytest.approx([sigma / np.sqrt(k - THRESHOLDS[k])] * len(seen))
    total = np.concatenate([sum(made for _, made in seen[b : b + k]) for b in range(0, len(seen), k)])
    for number in range(4):
        results = play(Room(1, k), [np.zeros(3, dtype=np.int64)], [h[number] for h in held])
        assert results[0].tolist() == total[3 * number : 3 * number + 3].tolist()


@pytest.mark.parametrize("wrong", ["short", "long", "empty", "range"])
def test_an_owner_that_lies_is_named_to_all_and_nobody_gets_an_output(wrong):
    room = Room(2, 3)
    bad = {"short": b"\0" * 12, "long": b"\0" * 48, "empty": b"", "range": b"\xff" * 36}[wrong]
    room.links[1][3] = Tap(room.links[1][3], change=lambda tag, payload: (tag, bad))  # to server 1
    results = play(room, X, no_noise(3))
    everybody(results, "owner 1", Reason.CONTENT)
    assert results[3].told_by == ""
    assert {error.told_by for error in (results[0], results[1])} <= {f"server {i}" for i in range(3)}


def test_shares_that_contradict_each_other_blame_nobody():
    room = Room(2, 3)

    def change(tag, payload):
        if tag == round_tag(0, OUTPUT):
            payload = bytes([payload[0] ^ 1]) + payload[1:]
        return tag, payload

    for other in (2, 3):
        room.links[4][other] = Tap(room.links[4][other], change=change)
    results = play(room, X, no_noise(3))
    everybody(results, "", Reason.CONTRADICTION, but=(4,))  # who lies sees no contradiction
    assert "contradict" in str(results[0])


def test_a_server_that_sends_another_result_is_refused():
    room = Room(2, 3)
    room.links[3][0] = Tap(
        room.links[3][0], change=lambda tag, payload: (tag, payload if len(payload) != 24 else b"\1" * 24)
    )
    results = play(room, X, no_noise(3))
    assert (results[0].peer, results[0].reason) == ("", Reason.DIFFERENT)


def test_a_server_that_sends_a_result_of_another_length_is_named():
    room = Room(1, 3)
    room.links[2][0] = Tap(
        room.links[2][0], change=lambda tag, payload: (tag, payload if len(payload) != 24 else b"\1" * 16)
    )
    error = play(room, X[:1], no_noise(3))[0]
    assert (error.peer, error.reason) == ("server 1", Reason.CONTENT)


def test_an_owner_that_is_late_is_named_and_not_those_who_wait_for_it():
    results = play(Room(3, 3, deadline=0.2), [*X, X[0]], no_noise(3), absent=(1,))
    everybody(results, "owner 1", Reason.LATE)


def test_an_owner_that_is_gone_is_named():
    room = Room(2, 3)
    for link in room.of_owner(1):
        link.close()
    everybody(play(room, X, no_noise(3)), "owner 1", Reason.LOST, but=(1,))


def test_a_replayed_frame_names_its_sender():
    room = Room(2, 3)
    tap = room.links[1][2]

    class Twice(Tap):
        async def send(self, tag, payload):
            await self.link.send(tag, payload)
            await self.link.send(tag, payload)

    room.links[1][2] = Twice(tap)
    everybody(play(room, X, no_noise(3), rounds=2), "owner 1", Reason.ORDER)


def test_what_is_sent_depends_on_the_number_of_values_only():
    counts = []
    for scale in (1, 2**35):
        room = Room(2, 3)
        play(room, [x // 7 * scale for x in X], no_noise(3))
        counts.append([(link.sent_bytes, link.sent_frames) for row in room.links for link in row.values()])
    assert counts[0] == counts[1]


# ---------------------------------------------------------------- what t servers see


class Tape:
    """Words that were written before; for elements of one value each."""

    def __init__(self, numbers):
        self.left = [np.array([n & 2**45 - 1, n >> 45], dtype=np.uint64) for n in numbers]

    def words(self, n):
        return self.left.pop(0)


def view(corrupted, inputs, tapes, noise_shares, k):
    """All that the corrupted servers receive, where two owners share with these tapes."""
    room, seen = Room(2, k), []
    for position in corrupted:
        links = room.links[2 + position]
        for peer in links:
            links[peer] = Tap(links[peer], seen)
    integers = [np.array([x]) for x in inputs]
    results = play(room, integers, noise_shares, [Tape(tape) for tape in tapes])
    return sorted(seen), results[0].tolist()


@pytest.mark.parametrize("corrupted", [(0,), (2,)])
@pytest.mark.parametrize("moved", [1, -(2**50)])
def test_for_every_input_of_the_same_sum_one_choice_of_coins_gives_the_same_view(corrupted, moved):
    """Exact: the coins that lead to a view for two inputs are as many, so the views have one law."""
    p, k, (position,) = field.PRIME, 3, corrupted
    noise_shares = share(from_int64(np.array([12345])), k, 1, KeyStream(8))
    inputs, coins = (7, -9), (p // 3, p // 5)
    change = -moved * pow(position + 1, -1, p)  # keeps f(position + 1) where f(0) moves
    adapted = ((coins[0] + change) % p, (coins[1] - change) % p)
    one = view(corrupted, inputs, [[c] for c in coins], noise_shares, k)
    two = view(corrupted, (7 + moved, -9 - moved), [[c] for c in adapted], noise_shares, k)
    assert one == two
    assert one[1] == [7 - 9 + 12345]


@pytest.mark.parametrize("honest", [True, False])
def test_the_law_of_a_servers_view_does_not_depend_on_the_input(honest, monkeypatch):
    """Chi-square over fresh shares; the mutant's coefficients are constant. False alarms below 1e-6."""
    if not honest:
        constant = lambda shape, stream: np.full((2, *shape), 5, dtype=np.uint64)  # noqa: E731
        monkeypatch.setattr("skdp.multiparty.engine.shamir.random_elements", constant)
    stream, n, counts = KeyStream(9), 2**13, []
    for x in (3, 2**43):
        of_server = share(from_int64(np.full(n, x)), 3, 1, stream)[1]
        cells = (of_server[1] >> np.uint64(41)) * np.uint64(8) + (of_server[0] >> np.uint64(42))
        counts.append(np.bincount(cells.astype(int), minlength=64))
    first, second = counts
    statistic = ((first - second) ** 2 / np.maximum(first + second, 1)).sum()
    assert (statistic < 140) == honest  # chi-square with 63 degrees of freedom: 140 has probability 1e-7


def test_the_protocol_shares_with_the_owners_stream():
    """The test of views above looks at the shares that really travel."""
    room, seen = Room(1, 3), []
    links = room.links[1]
    links[0] = Tap(links[0], seen)
    play(room, [np.array([5])], no_noise(3, 1), [Tape([17])])
    (_, tag, payload) = seen[0]
    assert tag == round_tag(0, INPUT)
    assert payload == to_bytes(from_int64(np.array([5 + 17])))
