"""The CUDA kernels with a thread for every lane: no data race, the CPU's values, and every barrier needed.

A race is a place where a device may compute something else, and one where a sum may depend on more than a unit's
own values. The mutants leave out one barrier at a time; ThreadSanitizer must find each of them.
"""

import itertools
import subprocess

import numpy as np
import pytest

from skdp.kernels import numeric_sparse
from skdp.losses import LogisticLoss, MultinomialLoss
from tests import strict_arrays
from tests.gpu_sources import launches
from tests.gpu_sources.host_kernels import Warps, compiler
from tools.nvrtc_check import programs

pytestmark = pytest.mark.slow

RACE = "int x; int main() { std::thread a([] { x = 1; }), b([] { x = 2; }); a.join(); b.join(); }"
BARRIERS = {
    name: programs()[name].count("__syncwarp();") + programs()[name].count("__syncthreads();")
    for name in ("rows float32 dense", "sparse vector")
}


@pytest.fixture(scope="module")
def warps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("warps")
    if compiler() is None:
        pytest.skip("no C++ compiler")
    (folder / "race.cpp").write_text(f"#include <barrier>\n#include <thread>\n{RACE}")
    command = [compiler(), "-std=c++20", "-fsanitize=thread", "-pthread", str(folder / "race.cpp")]
    built = subprocess.run([*command, "-o", str(folder / "race")], capture_output=True, text=True, check=False)
    if built.returncode:
        pytest.skip(f"this compiler has no ThreadSanitizer or no C++20: {built.stderr[-300:]}")
    ran = subprocess.run([str(folder / "race")], capture_output=True, text=True, check=False)
    if "data race" not in ran.stderr:
        pytest.skip(f"ThreadSanitizer does not run here: {ran.stderr[-300:]}")
    return Warps(folder, compiler())


@pytest.fixture
def cupy(warps):
    warps.races.clear()
    warps.dropped = -1
    with strict_arrays.installed(warps) as module:
        yield module


@pytest.mark.parametrize(("dtype", "storage"), [(np.float32, "dense"), (np.float64, "csr int32")], ids=str)
def test_lanes_do_not_race_and_give_the_sums_of_the_cpu(warps, cupy, dtype, storage):
    for loss, grouped in itertools.product((LogisticLoss(), MultinomialLoss(3)), (False, True)):
        device, host, theta = launches.kernels(loss, dtype, storage, cupy, grouped, True)
        rows = np.arange(0, host.n_units, 2)
        both = launches.sums(device, theta, rows), launches.sums(host, theta, rows)
        for (kind, ours), (_, theirs) in zip(*both, strict=True):
            assert np.abs(theirs).max() > 0
            # Predictors may differ in their last bits; a rounded sum has 2**30 units.
            tolerance = 300 if kind == "rounded" else 1e-9
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=tolerance)
    assert warps.races == []


def test_lanes_of_the_scan_do_not_race(warps, cupy):
    arguments, found = launches.scan(cupy)
    expected = numeric_sparse(*arguments)
    assert expected[0].size
    for ours, theirs in zip(found, expected, strict=True):
        np.testing.assert_array_equal(cupy.asnumpy(ours), theirs)
    assert warps.races == []


@pytest.mark.parametrize("dropped", range(BARRIERS["rows float32 dense"]))
def test_a_barrier_of_the_sums_that_is_left_out_is_found(warps, cupy, dropped):
    for loss, grouped in [(MultinomialLoss(3), True), (LogisticLoss(), False)]:
        device, _, theta = launches.kernels(loss, np.float32, "dense", cupy, grouped, True)
        warps.dropped = dropped
        for _ in launches.sums(device, theta):
            if warps.races:
                break
        if warps.races:
            break
    assert warps.races, "no race is reported: is the barrier needed?"


@pytest.mark.parametrize("dropped", range(BARRIERS["sparse vector"]))
def test_a_barrier_of_the_scan_that_is_left_out_is_found(warps, cupy, dropped):
    warps.dropped = dropped
    launches.scan(cupy)
    assert warps.races
