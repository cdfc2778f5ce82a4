"""Connections: a party is who its pinned certificate says, on both sides, and strangers change nothing."""

import asyncio
import ssl
from dataclasses import replace

import pytest

from skdp.multiparty.party.keys import fingerprint_of, make_keys
from skdp.multiparty.party.plan import Party
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.hello import Hello, Role
from skdp.multiparty.transport.links import abort_all
from skdp.multiparty.transport.memory import memory_pair
from skdp.multiparty.transport.network import READY_TAG
from skdp.multiparty.transport.tls import Identity, _Calls, connect_all, listen_on
from tests.multiparty.study import free_ports

HELLO = Hello(1, "0.1.0", "ab" * 32)
N_SERVERS = 3


class Town:
    """Parties with keys, the first three of them servers."""

    def __init__(self, folder, n=4, days=None):
        self.folder, self.parties = folder, []
        for i, port in enumerate(free_ports(n)):
            valid = (days or {}).get(i, 365)
            pem = make_keys(folder, f"p{i}", days=valid)[1].read_text()
            self.parties.append(Party(f"p{i}", 1, pem, fingerprint_of(pem), "127.0.0.1", port))

    async def party(self, i, *, keys=None, hello=HELLO, deadline=30.0, believes=None):
        """Party i until all are connected and have passed a barrier; ``keys`` are whose files it uses."""
        name = f"p{i}" if keys is None else keys
        identity = Identity(i, self.folder / f"{name}.crt", self.folder / f"{name}.key", hello, deadline, 1000)
        parties = self.parties if believes is None else believes
        me = self.parties[i]
        listener = listen_on(me.host, me.port) if i < N_SERVERS else None
        network = await connect_all(parties, N_SERVERS, identity, listener)
        network.set_deadline(deadline)
        try:
            await network.barrier(READY_TAG)
        except PartyError as error:
            raise await network.stop(error) from None
        numbers = {link.index for link in network.links()}
        await network.end()
        return numbers

    def run(self, deadline=30.0, *beside, skip=(), **of):
        """All parties at once; ``of["p1"]`` are arguments of party 1."""

        async def everything():
            calls = [
                self.party(i, deadline=deadline, **of.get(f"p{i}", {}))
                for i in range(len(self.parties))
                if i not in skip
            ]
            tasks = [asyncio.create_task(extra) for extra in beside]
            found = await asyncio.gather(*calls, return_exceptions=True)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            return found

        return asyncio.run(everything())


@pytest.fixture
def town(tmp_path):
    return Town(tmp_path)


def in_time(run, good):
    """What ``run`` gives with the first deadline for which it is good: a busy machine needs a longer one."""
    for deadline in (1.0, 6.0, 36.0):
        found = run(deadline)
        if good(found):
            break
    return found


def blames(error, name, *reasons):
    return isinstance(error, PartyError) and error.peer == name and error.reason in reasons


def test_everybody_is_connected_and_known_by_number(town):
    assert town.run() == [{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}]


def test_who_comes_late_is_waited_for(town):
    async def late():
        await asyncio.sleep(0.7)
        return await town.party(0)

    async def everything():
        return await asyncio.gather(late(), *(town.party(i) for i in (1, 2, 3)))

    assert asyncio.run(everything()) == [{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}]


def test_who_is_missing_is_named(town):
    def good(found):
        return all(blames(error, "p3", Reason.ABSENT) for error in found)

    found = in_time(lambda s: town.run(s, skip={3}), good)
    assert good(found), found


# ---------------------------------------------------------------- certificates


def test_a_server_with_a_certificate_that_is_not_in_the_plan(town):
    make_keys(town.folder, "stranger")

    def good(found):
        return all(blames(found[i], "p0", Reason.CERTIFICATE) for i in (1, 2, 3))

    found = in_time(lambda s: town.run(s, p0={"keys": "stranger"}), good)
    assert good(found), found


def test_an_owner_with_a_certificate_that_is_not_in_the_plan(town):
    make_keys(town.folder, "stranger")

    def good(found):
        return all(blames(found[i], "p3", Reason.ABSENT) for i in range(3))

    found = in_time(lambda s: town.run(s, p3={"keys": "stranger"}), good)
    assert good(found), found
    for i in range(3):
        assert any("not in the plan" in note for note in found[i].__notes__)
    assert isinstance(found[3], PartyError)
    assert found[3].reason is Reason.REFUSED


@pytest.mark.parametrize("who", [0, pytest.param(3, marks=pytest.mark.thorough)])
def test_an_expired_certificate_is_refused_though_it_is_in_the_plan(tmp_path, who):
    town = Town(tmp_path, days={who: 0})
    reason = Reason.CERTIFICATE if who == 0 else Reason.ABSENT

    def good(found):
        return all(blames(found[i], f"p{who}", reason) for i in {0, 1, 2} - {who})

    found = in_time(town.run, good)
    assert good(found), found
    assert isinstance(found[who], PartyError)


def test_swapped_certificates_are_refused_by_the_name_of_the_party_that_was_expected(town):

    def good(found):
        return all(blames(found[i], "p0", Reason.CERTIFICATE) for i in (2, 3))

    found = in_time(lambda s: town.run(s, p0={"keys": "p1"}, p1={"keys": "p0"}), good)
    assert good(found), found
    assert all(isinstance(error, PartyError) for error in found)


def test_a_mutant_that_trusts_every_certificate_of_the_plan_is_caught(town, monkeypatch):
    """Party 3 calls server 0, and party 1 answers in its place: the mutant takes it for server 0."""
    usual = _Calls._context
    everybody = range(4)
    monkeypatch.setattr(_Calls, "_context", lambda self, kind, trusted: usual(self, kind, everybody))
    # The fingerprint alone still refuses it ...

    def good(found):
        return blames(found[3], "p0", Reason.CERTIFICATE)

    found = in_time(lambda s: town.run(s, p0={"keys": "p1"}), good)
    assert good(found), found
    # ... and without it nothing does.
    monkeypatch.setattr(_Calls, "_number_of", lambda self, writer: _peer_by_port(self, writer))
    found = in_time(lambda s: town.run(s, p0={"keys": "p1"}), lambda found: not good(found))
    assert not blames(found[3], "p0", Reason.CERTIFICATE)


def _peer_by_port(calls, writer):
    """Believe the address, and on the accepting side anybody."""
    port = writer.get_extra_info("peername")[1]
    return next((i for i, party in enumerate(calls.parties) if party.port == port), 3)


# ---------------------------------------------------------------- the TLS itself


async def _shake_hands(town, context):
    """What a client with this context gets from server 0, which runs alone."""
    server = asyncio.create_task(town.party(0))
    await asyncio.sleep(0)  # it listens before it waits for anything
    try:
        reader, writer = await asyncio.open_connection(town.parties[0].host, town.parties[0].port, ssl=context)
        version = writer.get_extra_info("ssl_object").version()
        first = await reader.readexactly(12)
        writer.close()
        return version, first
    except (OSError, EOFError) as error:
        return error
    finally:
        server.cancel()
        await asyncio.gather(server, return_exceptions=True)


def _client(town, keys="p3"):
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    if keys:
        context.load_cert_chain(town.folder / f"{keys}.crt", town.folder / f"{keys}.key")
    return context


def test_only_tls_1_3_with_a_certificate_gets_a_word(town):
    version, first = asyncio.run(_shake_hands(town, _client(town)))
    assert version == "TLSv1.3"
    assert len(first) == 12  # the head of the server's hello
    old = _client(town)
    old.maximum_version = ssl.TLSVersion.TLSv1_2
    assert isinstance(asyncio.run(_shake_hands(town, old)), (OSError, EOFError))
    nobody = asyncio.run(_shake_hands(town, _client(town, keys=None)))
    assert isinstance(nobody, (OSError, EOFError))


def test_strangers_do_not_stop_a_run(town):
    async def knock(port, words):
        for _ in range(5):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
                continue
            try:
                writer.write(words)
                await asyncio.sleep(0.05)
            finally:  # also when the run ends first: a socket that outlives its loop is never closed
                writer.transport.abort()

    knocks = [
        knock(party.port, words)
        for party in town.parties[:3]
        for words in (b"", b"GET / HTTP/1.1\r\n\r\n", bytes(300))
    ]
    assert town.run(30.0, *knocks) == [{1, 2, 3}, {0, 2, 3}, {0, 1, 3}, {0, 1, 2}]


# ---------------------------------------------------------------- hellos


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"protocol": 2}, Reason.VERSION),
        ({"version": "0.1.1"}, Reason.VERSION),
        ({"plan_hash": "ac" * 32}, Reason.PLAN),
    ],
)
@pytest.mark.parametrize("who", [1, 3])
def test_another_version_or_plan_is_named_to_everybody(town, changed, reason, who):
    found = town.run(**{f"p{who}": {"hello": replace(HELLO, **changed)}})
    for i in {0, 1, 2, 3} - {who}:
        assert blames(found[i], f"p{who}", reason), found
    assert found[who].reason is reason


def test_a_hello_of_any_bytes_is_an_error_of_its_sender():
    link, _ = memory_pair(("here", 0), ("there", 1))
    good = HELLO.pack(Role.SERVER)
    assert HELLO.check(link, good) is Role.SERVER
    for cut in range(len(good)):
        for payload in (good[:cut], good[:cut] + bytes([good[cut] ^ 0x55]) + good[cut + 1 :]):
            with pytest.raises(PartyError) as caught:
                HELLO.check(link, payload)
            assert caught.value.peer == "there"
    with pytest.raises(PartyError):
        HELLO.check(link, good + b"\0")


def test_a_port_in_use_is_named(town):
    first = listen_on("127.0.0.1", town.parties[0].port)
    with first, pytest.raises(OSError, match=f"127.0.0.1:{town.parties[0].port}"):
        listen_on("127.0.0.1", town.parties[0].port)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyboardInterrupt(), Reason.ENDED),
        (asyncio.CancelledError(), Reason.ENDED),  # an interrupt reaches a task as this
        (ValueError("records of Smith"), Reason.STOPPED),
    ],
)
def test_a_peer_hears_whether_somebody_ended_this_party_or_it_failed(error, reason):
    async def told():
        mine, theirs = memory_pair(("p0", 0), ("p1", 1))
        await abort_all([mine], error)
        with pytest.raises(PartyError, match="p0: ") as caught:
            await theirs.receive(READY_TAG)
        return caught.value.reason

    assert asyncio.run(told()) is reason
