"""An interrupt of a party, at each point of a call where Python may run the handler of a signal."""

import asyncio
import gc
import signal
import sys
import weakref

import pytest

from skdp.multiparty.party.engine import Bridge


class Owned:
    pass


async def answer():
    await asyncio.sleep(0)
    return 42


def interrupt_at(place):
    """Send SIGINT at one of the calls and returns of the main thread; returns a list, filled when it was sent."""
    sent, seen = [], iter(range(place, -1, -1))

    def look(frame, event, argument):
        if next(seen, None) == 0:
            sent.append(event)
            signal.raise_signal(signal.SIGINT)

    sys.setprofile(look)
    return sent


@pytest.fixture(autouse=True)
def quiet_profile():
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    usual = sys.getprofile()
    yield
    sys.setprofile(usual)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_an_interrupt_at_any_point_of_a_call_is_raised_and_the_next_call_works():
    """With `Future.result` and Python's own handler some points gave RuntimeError, and others kept a lock."""
    place, sent = 0, [True]
    while sent:
        with Bridge() as bridge:
            sent = interrupt_at(place)
            try:
                assert bridge.call(answer()) == 42
                sys.setprofile(None)
                assert bridge.call(answer()) == 42
                assert not sent
            except KeyboardInterrupt:
                sys.setprofile(None)
                assert sent
            assert bridge.call(answer()) == 42  # the last words of a party
        place += 1
    assert place > 20


def test_an_interrupt_between_calls_is_not_lost():
    """Python drops what the callback of a weak reference raises."""
    with Bridge() as bridge:
        owned = Owned()
        kept = weakref.ref(owned, lambda _: signal.raise_signal(signal.SIGINT))
        del owned
        gc.collect()
        assert kept() is None
        with pytest.raises(KeyboardInterrupt):
            bridge.call(answer())
        assert bridge.call(answer()) == 42


def test_an_interrupt_after_the_last_call_is_raised_at_the_end_but_replaces_no_error():
    def work(error):
        with Bridge():
            signal.raise_signal(signal.SIGINT)
            if error is not None:
                raise error

    with pytest.raises(KeyboardInterrupt):
        work(None)
    with pytest.raises(OSError, match="full"):
        work(OSError("full"))


def test_a_handler_of_the_user_stays():
    seen = []
    usual = signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))
    try:
        with Bridge() as bridge:
            signal.raise_signal(signal.SIGTERM)
            assert bridge.call(answer()) == 42
    finally:
        signal.signal(signal.SIGTERM, usual)
    assert seen == [signal.SIGTERM]
