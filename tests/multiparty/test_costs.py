"""What a fit over sockets sends depends on public numbers only (Wang 2021, section 6.7)."""

import numpy as np
import pytest

from skdp import MPCGradientPerturbationClassifier
from skdp.exceptions import UtilityWarning
from skdp.multiparty.engine.loopback import LoopbackEngine

N_OWNERS, ROUNDS = 3, 4


def sent_in_a_fit(engine, n_records, n_features, size):
    """Bytes and frames of all parties in one fit, with `n_records` an owner."""
    rng = np.random.default_rng(n_records)
    X = size * rng.normal(size=(N_OWNERS * n_records, n_features))
    y = (rng.random(len(X)) < 0.5) * 1
    y[:2] = 0, 1
    model = MPCGradientPerturbationClassifier(classes=(0, 1), max_iter=ROUNDS, engine=engine, random_state=0)
    before = engine.traffic()
    model.fit(X, y, owners=np.repeat(np.arange(N_OWNERS), n_records))
    after = engine.traffic()
    return after.sent_bytes - before.sent_bytes, after.sent_frames - before.sent_frames


@pytest.mark.thorough
@pytest.mark.filterwarnings(f"ignore::{UtilityWarning.__module__}.{UtilityWarning.__name__}")
def test_costs_do_not_depend_on_the_number_of_records_nor_on_their_values():
    with LoopbackEngine(N_OWNERS, rounds=ROUNDS) as engine:
        engine.prepare(1, 1, 2.0**14)  # a server's answer to a command counts with the next one
        few = sent_in_a_fit(engine, 30, 6, 1.0)
        assert sent_in_a_fit(engine, 3000, 6, 1.0) == few
        assert sent_in_a_fit(engine, 30, 6, 1e6) == few
        n_bytes, n_frames = sent_in_a_fit(engine, 30, 7, 1.0)
    # One more coefficient: of 12 bytes in a share and 8 in the result, in the same frames.
    assert n_frames == few[1]
    shares = ROUNDS * (2 * 6 + 3 * N_OWNERS)
    assert n_bytes - few[0] == 12 * shares + 8 * ROUNDS * 3 * N_OWNERS
