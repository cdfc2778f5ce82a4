"""Laplace noise from secret bits: constants and their error, the circuit, mpyc's messages, peers that lie."""

import asyncio
import os
import pickle
import subprocess
import sys
import textwrap
import types

import mpmath
import numpy as np
import pytest

from skdp.multiparty.engine import mpyc_bits, mpyc_post, mpyc_runtime
from skdp.multiparty.engine.field import PRIME, from_int64, to_bytes
from skdp.multiparty.engine.laplace_bits import (
    LAPLACE_SCALES,
    Digit,
    bits_of,
    digits_of,
    laplace_bits_numerical_error,
    log_error,
    most_bits,
)
from skdp.multiparty.engine.loopback import LoopbackEngine
from skdp.multiparty.engine.mpyc_bits import lay_laplace_noise
from skdp.multiparty.engine.server import Seat
from skdp.multiparty.transport.errors import PartyError, Reason
from skdp.multiparty.transport.links import abort_all
from skdp.privacy import BoundedStatistic, PrivacySession
from tests.multiparty.links import memory_links

SCALE = LAPLACE_SCALES[0]
SCALES = pytest.mark.parametrize("scale", [SCALE, 20000.5, 2.0**21 + 0.25, LAPLACE_SCALES[1]])
pytest.importorskip("mpyc")


# ---------------------------------------------------------------- constants


@SCALES
def test_a_digits_constant_is_right_to_2_to_the_minus_41_and_the_log_error_is_their_sum(scale):
    mpmath.mp.prec = 400
    total = mpmath.mpf(0)
    for i, (kappa, constant) in enumerate(digits_of(scale)):
        q = 1 / (1 + mpmath.exp(mpmath.mpf(2) ** i / mpmath.mpf(scale)))
        made = mpmath.mpf(constant) / mpmath.mpf(2) ** kappa
        assert 0 < constant < 2**kappa
        assert abs(made / q - 1) <= mpmath.mpf(2) ** -41
        total += max(abs(mpmath.log(made / q)), abs(mpmath.log((1 - made) / (1 - q))))
    assert total + mpmath.mpf(2) ** -93 <= log_error(scale) <= total * (1 + 1e-9)
    assert log_error(scale) < len(digits_of(scale)) * 2.0**-41


@SCALES
def test_what_the_cut_off_moves_is_within_its_part_of_the_numerical_error(scale):
    mpmath.mp.prec = 400
    top, s = mpmath.mpf(2) ** len(digits_of(scale)), mpmath.mpf(scale)
    assert top >= 64 * s
    assert -mpmath.log(1 - mpmath.exp(-top / s)) < mpmath.mpf(2) ** -92
    epsilon, delta = laplace_bits_numerical_error(1, scale, 0.5)
    assert epsilon == 2 * log_error(scale)
    # A size of at least 64 s - epsilon s may be beyond the cut-off of a neighbour.
    tail = mpmath.exp(-mpmath.ceil(64 * s - s / 2) / s)
    assert tail * (1 + 1e-3) <= delta <= 1.02 * tail
    assert laplace_bits_numerical_error(10, scale, 0.5) == pytest.approx((10 * epsilon, 10 * delta))


@pytest.mark.parametrize("scale", [1.0, 2.5])
def test_size_and_sign_give_laplace_noise_around_minus_one_half(scale):
    """And moving it by m costs at most |m| / scale, with equality: the law of the docstring."""
    ratio = np.exp(-1 / scale)
    size = lambda g: (1 - ratio) * ratio**g  # noqa: E731
    law = np.array([size(k) / 2 if k >= 0 else size(-1 - k) / 2 for k in range(-60, 60)])
    constant = (1 - ratio) * np.exp(0.5 / scale) / 2
    assert law == pytest.approx(constant * np.exp(-abs(np.arange(-60, 60) + 0.5) / scale))
    for m in (1, 3):
        assert abs(np.log(law[m:] / law[:-m])).max() == pytest.approx(m / scale)


def test_exact_digits_make_a_geometric_variable_and_rounded_ones_the_stated_error():
    """All values of the digits of a small scale: P(G = g) ~ exp(-g / s), up to what `log_error` says."""
    scale, n = SCALE, len(digits_of(SCALE))
    values = np.unique(np.concatenate([np.arange(300), 2 ** np.arange(n), 2**n - 1 - np.arange(300)]))
    mpmath.mp.prec = 200
    for exact in (True, False):
        one = [
            1 / (1 + mpmath.exp(mpmath.mpf(2**i) / scale)) if exact else mpmath.mpf(c) / mpmath.mpf(2) ** k
            for i, (k, c) in enumerate(digits_of(scale))
        ]
        normal = 1 - mpmath.exp(-mpmath.mpf(2**n) / scale)
        worst = 0
        for g in map(int, values):
            made = mpmath.fprod(q if g >> i & 1 else 1 - q for i, q in enumerate(one))
            right = (1 - mpmath.exp(-1 / mpmath.mpf(scale))) * mpmath.exp(-mpmath.mpf(g) / scale)
            worst = max(worst, abs(mpmath.log(made / (right / normal))))
        assert worst < 1e-40 if exact else log_error(scale) / 8 < worst <= log_error(scale)


def test_scales_out_of_range_are_refused():
    for scale in (SCALE / 2, 2.0**41, float("nan")):
        with pytest.raises(ValueError, match="scale must be"):
            digits_of(scale)


# ---------------------------------------------------------------- the circuit


class Clear:
    """In the place of mpyc's runtime: one party, whose shares are the values."""

    def __init__(self, bits):
        self.bits, self.products = np.array(bits, dtype=object), 0

    async def np_random_bits(self, elements, n):
        made, self.bits = self.bits[:n], self.bits[n:]
        return elements.array(made)

    async def _reshare(self, product):
        self.products += product.value.size
        return product


def test_the_circuit_compares_with_the_constants_and_weighs_the_digits():
    mpyc_runtime.import_mpyc()
    digits = (Digit(4, 11), Digit(3, 4), Digit(6, 1), Digit(6, 42))
    n_values, rng = 500, np.random.default_rng(0)
    order = sorted(range(4), key=lambda i: -digits[i].kappa)
    numbers = {i: rng.integers(0, 2 ** digits[i].kappa, n_values) for i in range(4)}
    signs = rng.integers(0, 2, n_values)
    bits = signs.tolist()
    for place in range(6):  # as the circuit takes them
        for i in order:
            lowest = place - (6 - digits[i].kappa)
            if lowest >= 0:
                bits.extend((numbers[i] >> lowest & 1).tolist())
    runtime = Clear(bits)
    found = asyncio.run(mpyc_bits._block(digits, n_values, runtime))
    size = sum(2**i * (numbers[i] < digits[i].constant).astype(int) for i in range(4))
    expected = np.where(signs, -1 - size, size)
    assert found.tolist() == (expected.astype(object) % PRIME).tolist()
    assert runtime.bits.size == 0
    assert runtime.products == n_values * (1 + sum(digit.kappa - 1 for digit in digits))


def drawn_noise(n_values, **options):
    zero = [np.zeros(n_values, dtype=np.int64)]
    with LoopbackEngine(1, **options) as engine:
        return engine.open_laplace(zero, SCALE) / SCALE


def test_noise_of_the_stated_scale_is_opened():
    """Mean of |noise| / scale within 5.2 standard deviations: false alarms below 1e-6."""
    drawn = drawn_noise(64)
    assert abs(abs(drawn).mean() - 1) < 5.2 / np.sqrt(drawn.size)
    assert np.unique(drawn).size > 60


@pytest.mark.thorough
def test_five_servers_make_noise_too():
    drawn = drawn_noise(6, n_servers=5)
    assert 0 < abs(drawn).max() < 64


@pytest.mark.slow
def test_the_noise_has_the_laplace_law():
    """As above on more values; a mutant of half the scale is caught. False alarms below 1e-6."""
    drawn = drawn_noise(300)
    spread = 5.2 / np.sqrt(drawn.size)
    assert abs(abs(drawn).mean() - 1) < spread
    assert abs(abs(drawn / 2).mean() - 1) > spread
    assert abs(drawn.mean()) < spread * np.sqrt(2)
    # P(|noise| > scale) is 1 / e.
    beyond = (abs(drawn) > 1).mean()
    assert abs(beyond - 1 / np.e) < 5.2 * np.sqrt(1 / np.e * (1 - 1 / np.e) / drawn.size)


def test_no_scale_takes_more_bits_than_the_plan_checks():
    low, high = LAPLACE_SCALES
    scales = np.concatenate([np.geomspace(low, high, 60), high / 2 * np.array([1, 1 + 1e-12, 1.01])])
    taken = [bits_of(float(min(scale, high))) for scale in scales]
    assert max(taken) == most_bits()
    assert bits_of(high) < most_bits()  # the largest scale does not take most


# ---------------------------------------------------------------- mpyc


def test_elements_travel_without_pickle():
    codec = mpyc_runtime.import_mpyc().pickle
    assert codec is mpyc_runtime.ElementCodec
    numbers = np.array([0, 1, 2**64 - 1, 2**64, PRIME - 1], dtype=object)
    assert codec.loads(codec.dumps(numbers)).tolist() == numbers.tolist()
    assert codec.dumps(np.array([3, -5 % PRIME], dtype=object)) == to_bytes(from_int64(np.array([3, -5])))


def test_nothing_is_unpickled_in_a_server(tmp_path, monkeypatch):
    """Every Python process below fails where it unpickles; a mutant that does is seen to fail."""
    marker = tmp_path / "unpickled"
    (tmp_path / "sitecustomize.py").write_text(
        textwrap.dedent(f"""
        import pickle
        def refuse(*args, **kwargs):
            open({str(marker)!r}, "w").close()
            raise AssertionError("something was unpickled")
        pickle.loads = pickle.load = pickle.Unpickler = refuse
        """)
    )
    path = os.pathsep.join([str(tmp_path), *sys.path])
    monkeypatch.setenv("PYTHONPATH", path)
    with LoopbackEngine(2) as engine:
        assert engine.open_laplace([np.arange(2), np.arange(2)], SCALE).shape == (2,)
    assert not marker.exists()
    code = "import pickle; pickle.loads(pickle.dumps(1))"
    mutant = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=300)
    assert mutant.returncode != 0
    assert marker.exists()


def test_importing_mpyc_reads_no_arguments(monkeypatch):
    code = (
        "import sys; sys.argv = ['x', '-M3', '-H', '--VERSION']\n"
        "from skdp.multiparty.engine.mpyc_runtime import import_mpyc\n"
        "module = import_mpyc(); print(sys.argv[1:], len(module.mpc.parties))"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.stdout.strip() == "['-M3', '-H', '--VERSION'] 1"


@pytest.mark.thorough
def test_mpyc_is_not_imported_with_the_engine():
    code = "import sys, skdp.multiparty.engine.loopback; print('mpyc' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert ran.stdout.strip() == "False"


def test_another_mpyc_is_refused(monkeypatch):
    import mpyc

    monkeypatch.setattr(mpyc, "__version__", "0.10.2")
    with pytest.raises(ImportError, match=r"0\.11"):
        mpyc_runtime.import_mpyc()


def test_without_mpyc_nothing_is_spent(monkeypatch):
    monkeypatch.setattr(mpyc_runtime.importlib.util, "find_spec", lambda name: None)
    session = PrivacySession(epsilon=1.0, delta=1e-6, random_state=0)
    with pytest.raises(ImportError, match="pip install"):
        session.laplace_by_engine([BoundedStatistic(np.zeros(3), l1=1.0)], 0.1, LoopbackEngine(1))
    assert not session.released


def test_protocols_that_hide_statistically_fail():
    parameter = mpyc_runtime._NoSecurityParameter()
    for act in (lambda: 1 << parameter, lambda: 2**parameter, lambda: 5 < parameter, lambda: parameter + 1):
        with pytest.raises(TypeError, match="statistically"):
            act()


def test_keys_are_fresh_and_go_to_their_subsets_only():
    one, two = mpyc_runtime.new_keys(3, 1, 0), mpyc_runtime.new_keys(3, 1, 0)
    assert set(one) == {(0, 1), (0, 2)}
    assert not set(one.values()) & set(two.values())
    assert mpyc_runtime.new_keys(3, 1, 2) == {}


# ---------------------------------------------------------------- peers that lie


def against(peer, deadline=3.0):
    """What an honest server 0 raises where server 1 follows ``peer`` and server 2 answers nothing wrong."""
    names = ["server 0", "server 1", "server 2"]
    links = memory_links(3, deadline=deadline, names=names)

    async def sends(position, then):
        link = links[position][0]
        keys = {1: b"", 2: b""}[position]
        await link.send(mpyc_bits._KEYS, keys)
        await link.receive(mpyc_bits._KEYS)
        if then is not None:
            await then(link)

    async def play():
        tasks = [asyncio.ensure_future(sends(1, peer)), asyncio.ensure_future(sends(2, None))]
        try:
            with pytest.raises(PartyError) as caught:
                await lay_laplace_noise(Seat(0, 3), links[0], 1, 1, SCALE)
        finally:
            for task in tasks:
                task.cancel()
        return caught.value

    return asyncio.run(play())


FIRST = mpyc_bits._MESSAGES


def test_a_peer_that_sends_numbers_outside_of_the_field_is_named():
    async def lies(link):
        await link.send(FIRST, b"\0" * 8 + b"\xff" * 12)

    error = against(lies)
    assert (error.peer, error.reason) == ("server 1", Reason.CONTENT)


def test_a_peer_that_sends_another_number_of_elements_is_named():
    async def lies(link):
        first = await link.receive(FIRST)
        await link.send(FIRST, first[:8] + b"\0" * 12)

    error = against(lies)
    assert (error.peer, error.reason) == ("server 1", Reason.CONTENT)


def test_a_peer_that_sends_ahead_without_end_is_named():
    async def floods(link):
        for i in range(200):
            await link.send(FIRST + i, i.to_bytes(8, "little") + b"\0" * 12)

    error = against(floods)
    assert (error.peer, error.reason) == ("server 1", Reason.CONTENT)


def test_a_peer_that_ends_early_is_named():
    async def ends(link):
        await link.send(FIRST, b"")

    error = against(ends)
    assert (error.peer, error.reason) == ("server 1", Reason.CONTENT)


def test_a_peer_that_stops_is_named():
    async def stops(link):
        await abort_all([link], ValueError())

    error = against(stops)
    assert (error.peer, error.reason) == ("server 1", Reason.STOPPED)


def test_a_wrong_set_of_keys_is_named():
    links = memory_links(3, deadline=3.0, names=["server 0", "server 1", "server 2"])

    async def play():
        await links[1][0].send(mpyc_bits._KEYS, b"k" * 16)
        await links[2][0].send(mpyc_bits._KEYS, b"")
        await lay_laplace_noise(Seat(0, 3), links[0], 1, 1, SCALE)

    with pytest.raises(PartyError) as caught:
        asyncio.run(play())
    assert (caught.value.peer, caught.value.reason) == ("server 1", Reason.CONTENT)


def test_after_a_failure_mpyc_can_be_used_again():
    assert not mpyc_post._RUNNING.locked()
    with mpyc_post._RUNNING, pytest.raises(RuntimeError, match="one protocol at a time"):
        mpyc_post.Post._compute(types.SimpleNamespace(), None, {})
    assert pickle.loads(pickle.dumps(1)) == 1  # of this process nothing was replaced
