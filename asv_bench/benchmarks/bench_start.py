"""The first fit in a new process: import, decorate, load or compile, fit."""

import os
import subprocess
import sys
import tempfile

FIT = """
import time
begin = time.process_time()
{imported}
import numpy as np
X = np.random.default_rng(0).normal(size=(10_000, 20))
y = (X[:, 0] > 0).astype(int)
{fitted}.fit(X, y)
print(time.process_time() - begin)
"""
OURS = FIT.format(imported="from skdp import DPLogisticRegression", fitted="DPLogisticRegression(classes=(0, 1))")
THEIRS = FIT.format(imported="from sklearn.linear_model import LogisticRegression", fitted="LogisticRegression()")


def seconds(code, folder):
    """Processor seconds of one process whose cache of compiled kernels is ``folder``."""
    environment = {**os.environ, "NUMBA_CACHE_DIR": folder, "PYTHONWARNINGS": "ignore"}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    environment["PYTHONPYCACHEPREFIX"] = os.path.join(folder, "bytecode")
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    return float(done.stdout)


class FirstFit:
    """`DPLogisticRegression` on 10,000 rows, in a process of its own."""

    timeout = 600

    def setup(self):
        self.folder = tempfile.TemporaryDirectory()
        for code in (OURS, THEIRS):
            seconds(code, self.folder.name)

    def teardown(self):
        self.folder.cleanup()

    def least(self, code, repeats=5):
        return min(seconds(code, self.folder.name) for _ in range(repeats))

    def track_filled_cache(self):
        """Over the first fit of scikit-learn, import included."""
        return self.least(OURS) / self.least(THEIRS)

    track_filled_cache.unit = "times scikit-learn's time"

    def track_empty_cache(self):
        """Seconds; the bytecode is there and the kernels are not."""
        found = []
        for _ in range(2):
            with tempfile.TemporaryDirectory() as folder:
                os.symlink(os.path.join(self.folder.name, "bytecode"), os.path.join(folder, "bytecode"))
                found.append(seconds(OURS, folder))
        return min(found)

    track_empty_cache.unit = "s"
