"""Nets of millions of parameters: memory of a step, and of the check before it."""

import subprocess
import sys
import tracemalloc

import numpy as np
import pytest

from skdp.privacy import OuterSum, check_batch_independence
from skdp.privacy.gradients import parts

MB = 2**20

ONE_STEP = """
import resource, sys, warnings
import numpy as np
from skdp import DPCNNClassifier
from skdp.nn import ARCHITECTURES

warnings.simplefilter("ignore")
shape, rng = ARCHITECTURES["{name}"].shape, np.random.default_rng(0)
X, y = rng.random((200, *shape), dtype=np.float32), rng.integers(0, 10, 200)
model = DPCNNClassifier(
    epsilon=3.0, delta=1e-4, architecture="{name}", clipping="ghost", batch_size=64, max_iter=1,
    classes=range(10), input_range=(0, 1), random_state=0,
)
model.fit(X, y)
assert model.parameters_.size == ARCHITECTURES["{name}"].n_parameters
assert np.isfinite(model.predict_proba(X[:2])).all()
if sys.platform == "linux":  # ru_maxrss begins with the peak of the process that started this one
    with open("/proc/self/status") as status:
        print(next(1024 * int(line.split()[1]) for line in status if line.startswith("VmHWM")))
else:
    print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


@pytest.mark.slow
@pytest.mark.parametrize("name", ["alexnet", "vgg13"])
def test_one_private_step_fits_in_memory(name):
    """Measured with one thread: 1.5 and 2.4 GB, the check of batch independence included."""
    command = [sys.executable, "-c", ONE_STEP.format(name=name)]
    run = subprocess.run(command, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr[-2000:]
    assert int(run.stdout.split()[-1]) < 4 * 2**30


def outer_sums(n_rows, positions, p, q):
    rng = np.random.default_rng(0)
    return OuterSum(
        rng.standard_normal((n_rows, positions, p)).astype(np.float32),
        rng.standard_normal((n_rows, positions, q)).astype(np.float32),
    )


def peak(function):
    tracemalloc.start()
    function()
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return most


def test_ghost_norms_keep_few_gram_matrices(monkeypatch):
    """16 pairs of them, of 256 x 256 numbers of float64, are 16 MB, and one is 1 MB. Both have the same bits."""
    piece = outer_sums(16, 256, 4, 4)
    (whole,) = parts.parts_of([piece], ghost=True)
    monkeypatch.setattr(parts, "GRAM_ENTRIES", 256**2)
    assert peak(lambda: parts.parts_of([piece], ghost=True)) < 4 * MB
    (single,) = parts.parts_of([piece], ghost=True)
    assert np.array_equal(single.squares, whole.squares)


def test_the_check_of_batch_independence_multiplies_few_rows_out():
    """64 gradients of 512 x 512 numbers of float32 are 64 MB."""

    def function(X, y):
        return [OuterSum(np.tile(X, (1, 1, 32)).reshape(-1, 1, 512), np.repeat(X, 32, axis=1)[:, None])]

    assert peak(lambda: check_batch_independence(function, 16, "float32")) < 60 * MB
