"""The field, Shamir's shares, and that t of them tell nothing."""

import numpy as np
import pytest

from skdp.multiparty.engine import field
from skdp.multiparty.engine.shamir import THRESHOLDS, Contradiction, recombine, share
from skdp.privacy.noise import KeyStream

EDGES = [0, 1, -1, 2**44, 2**45 - 1, 2**45, -(2**45), 2**62, -(2**62), 2**63 - 1, -(2**63)]
SERVERS = pytest.mark.parametrize("k", THRESHOLDS)


def python(elements):
    """The elements as Python integers."""
    low, high = elements.reshape(2, -1)
    return [int(a) + (int(b) << 45) for a, b in zip(low, high)]


def limbs(numbers):
    """Python integers as elements."""
    return np.array(
        [[n % field.PRIME & 2**45 - 1 for n in numbers], [n % field.PRIME >> 45 for n in numbers]], dtype=np.uint64
    )


def wrapped(number):
    return (number + 2**63) % 2**64 - 2**63


def test_integers_become_elements_and_come_back():
    numbers = np.array(EDGES, dtype=np.int64)
    assert python(field.from_int64(numbers)) == [n % field.PRIME for n in EDGES]
    assert field.to_int64(field.from_int64(numbers)).tolist() == EDGES


def test_combinations_are_those_of_python_integers():
    rng = np.random.default_rng(0)
    p = field.PRIME
    numbers = [[int.from_bytes(rng.bytes(12), "little") % p for _ in range(50)] for _ in range(4)]
    numbers[0][:4] = [0, 1, p - 1, p // 2]
    for weights in ([1, 1, 1, 1], [-1, 3, -3, 1], [5, -10, 10, -4], [0, -1, 0, 0], [2**16] * 4):
        found = field.combine(weights, [limbs(row) for row in numbers])
        expected = [sum(w * n for w, n in zip(weights, column)) % p for column in zip(*numbers)]
        assert python(found) == expected
    with pytest.raises(ValueError, match="weights"):
        field.combine([2**19], [limbs([1])])


def test_the_largest_sums_do_not_overflow_and_are_reduced_modulo_2_64():
    for total in (2**83 + 2**48, -(2**83) - 2**48, 2**88 - 1, -(2**88) + 1, 2**63, 2**64 + 5):
        assert field.to_int64(limbs([total])).tolist() == [wrapped(total)]
    most = [-(2**63)] * 3 + [2**40 * 13]
    total = field.combine([2**16] * 4, [field.from_int64(np.array([n])) for n in most])
    assert field.to_int64(total).tolist() == [wrapped(2**16 * sum(most))]


def test_messages_hold_elements_only():
    elements = field.random_elements((7,), KeyStream(1))
    payload = field.to_bytes(elements)
    assert len(payload) == 7 * field.BYTES
    assert np.array_equal(field.from_bytes(payload, 7), elements)
    for wrong in (payload[:-1], payload + b"\0", b"", payload * 2):
        with pytest.raises(ValueError, match="number of elements"):
            field.from_bytes(wrong, 7)
    for number in (field.PRIME, 2**89, 2**96 - 1):
        with pytest.raises(ValueError, match="no element"):
            field.from_bytes(number.to_bytes(12, "little"), 1)
    assert python(field.from_bytes((field.PRIME - 1).to_bytes(12, "little"), 1)) == [field.PRIME - 1]


def test_random_elements_are_redrawn_at_p():
    class Words:
        drawn = 0

        def words(self, n):
            self.drawn += 1
            ones = np.full(n, 2**64 - 1, dtype=np.uint64)
            return ones if self.drawn == 1 else np.arange(n, dtype=np.uint64)

    assert python(field.random_elements((2,), Words())) == [0 + (2 << 45), 1 + (3 << 45)]


@SERVERS
def test_shares_of_all_servers_give_the_secret_and_sums_of_shares_the_sum(k):
    t, stream = THRESHOLDS[k], KeyStream(2)
    one, two = (np.array(numbers, dtype=np.int64) for numbers in (EDGES, EDGES[::-1]))
    shares = [share(field.from_int64(numbers), k, t, stream) for numbers in (one, two)]
    total = [field.combine([1, 1], list(of_server)) for of_server in zip(*shares)]
    with np.errstate(over="ignore"):
        assert np.array_equal(field.to_int64(recombine(total, t)), one + two)


@SERVERS
def test_one_wrong_share_is_a_contradiction(k):
    t = THRESHOLDS[k]
    shares = share(field.from_int64(np.arange(5)), k, t, KeyStream(3))
    for server in range(k):
        wrong = [array.copy() for array in shares]
        wrong[server][0, 4] ^= np.uint64(1)
        with pytest.raises(Contradiction):
            recombine(wrong, t)


@SERVERS
def test_for_every_secret_one_choice_of_coefficients_gives_the_same_t_shares(k):
    """Exact: so the law of any t shares does not depend on the secret."""
    t, p = THRESHOLDS[k], field.PRIME

    class Tape:
        def __init__(self, coefficients):
            self.left = [limbs([c]) for c in coefficients]

        def words(self, n):
            return self.left.pop(0).ravel()

    secret, other, coefficients = 5, -(2**40), [p // 3, p - 7][:t]
    for corrupted in ([1, 2], [2, 3], [1, 3], [k - 1, k]):
        points = corrupted[:t]
        moved = other - secret
        # f' = f + moved * prod (1 - x / point): the same at the points, and `other` at 0.
        factor = [1]
        for point in points:
            inverse = -pow(point, -1, p)
            factor = [(a + inverse * b) % p for a, b in zip([*factor, 0], [0, *factor])]  # times (1 - x / point)
        adapted = [(c + moved * f) % p for c, f in zip(coefficients, factor[1:])]
        first = share(field.from_int64(np.array([secret])), k, t, Tape(coefficients))
        second = share(field.from_int64(np.array([other])), k, t, Tape(adapted))
        for point in points:
            assert np.array_equal(first[point - 1], second[point - 1])
        assert field.to_int64(recombine(second, t)).tolist() == [other]
