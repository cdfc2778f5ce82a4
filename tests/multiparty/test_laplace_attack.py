"""One server that alters one message of mpyc's bits knows all of the Laplace noise, and nobody notices.

This is a limit that the pages, `skdp party check` and the report state. The test is red when it holds no longer:
then they must be corrected.
"""

import asyncio
import json
from functools import partial

import numpy as np
import pytest

import skdp.multiparty.engine.server as server
from skdp.multiparty.engine import mpyc_runtime
from skdp.multiparty.engine.laplace_bits import UNNOTICED
from skdp.multiparty.party.engine import NetworkEngine
from skdp.multiparty.party.planned import planned_opening
from tests.multiparty.study import Study, in_processes

pytest.importorskip("mpyc")

PRIME = 2**89 - 1
N_VALUES = 4
# A sign bit has the values (1 +- GAMMA) / 2 in place of 0 and 1. So a value of noise, size - bit (2 size + 1), has
# -+ 2^64 (2 size + 1) more than it should: the lower 64 bits of the opened sum, which owners get, are as always.
GAMMA = 1 + 2**65
LAGRANGE = (3, -3, 1)  # of the servers' points 1, 2, 3, at 0


def tell_integers(folder, index):
    """An honest party; for the test alone it writes down what it shares."""
    usual = NetworkEngine._open_as_owner

    async def watched(self, mine):
        (folder / f"integers{index}.json").write_text(json.dumps(mine.ravel().tolist()))
        return await usual(self, mine)

    NetworkEngine._open_as_owner = watched


def remove_the_noise(folder, index):
    """A server that waits for the others' shares of the squares, and then alters its own."""
    tell_integers(folder, index)
    module, altered = mpyc_runtime.import_mpyc(), []
    from mpyc import asyncoro, thresha

    @asyncoro.mpc_coro
    async def output(self, x, receivers=None, threshold=None, raw=False):
        await self.returnType(asyncio.Future)
        own, label = self.pid, self._program_counter[0]
        others = [i for i in range(3) if i != own]
        for i in others:  # skdp's box must know how long a message is to be
            self.parties[i].protocol.lengths[label] = len(module.pickle.dumps(x.value))
        shares = await self.gather([self._receive_message(i) for i in others])
        points = [(i + 1, module.pickle.loads(share)) for i, share in zip(others, shares)]
        squares = thresha.np_recombine(x.field, [*points, (own + 1, x.value)])
        squares = np.array(squares.value, dtype=object) % PRIME
        wanted = squares.copy()
        if not altered:  # the signs are the first bits
            wanted[:N_VALUES] = wanted[:N_VALUES] * pow(GAMMA, -2, PRIME) % PRIME
            altered.append(label)
        mine = (x.value + (wanted - squares) * pow(LAGRANGE[own], -1, PRIME)) % PRIME
        for i in others:
            self._send_message(i, module.pickle.dumps(mine))
        return x.field.array(wanted)

    module.Runtime.output = output
    usual = server._open

    async def reading(*given):
        opened = await usual(*given)
        found = []
        for low, high in zip(*opened.tolist()):
            value = low + (high << 45)
            value -= PRIME if value > PRIME // 2 else 0
            turned = (value + 2**63) >> 64  # -+ (2 size + 1)
            found.append(value - (turned << 64) - (turned - 1) // 2)
        (folder / "read.json").write_text(json.dumps(found))
        return opened

    server._open = reading


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
def test_one_altered_message_shows_the_exact_sum_and_nobody_notices(tmp_path):
    parameters = {
        "epsilon": 10.0, "delta": 1e-6, "adjacency": "replace-one", "unit": "record", "alpha": 0.1,
        "row_norm": 2.0, "noise": "laplace",
    }  # fmt: skip
    study = Study(tmp_path, estimator="MPCOutputPerturbationClassifier", parameters=parameters)
    opening = planned_opening(study.plan)
    assert (opening.n_values, opening.releases) == (N_VALUES, 1)
    assert 128 * opening.scale * 2**64 < 2**88
    prepare = {i: partial(remove_the_noise if i == 1 else tell_integers, tmp_path, i) for i in range(3)}
    codes, results = in_processes(study, prepare)
    assert codes == [0] * 3
    assert all(result.endswith(".model.json") for result in results.values()), results
    exact = sum(np.array(json.loads((tmp_path / f"integers{i}.json").read_text()), dtype=object) for i in range(3))
    assert json.loads((tmp_path / "read.json").read_text()) == exact.tolist()
    # The released model has noise, as far as anybody else can see.
    models = [json.loads((tmp_path / "out" / f"study-1.hospital_{x}.model.json").read_text()) for x in "abc"]
    assert models[0] == models[1] == models[2]
    released = np.array([*models[0]["coef"][0], models[0]["intercept"][0] / 2.0])
    off = np.abs(released / opening.grid - exact.astype(float)) / opening.scale
    assert 1e-3 < off.max() < 40  # either fails with probability 1e-12
    report = json.loads((tmp_path / "out" / "study-1.hospital_a.report.json").read_text())
    assert any(UNNOTICED in line for line in report["assumptions"])
