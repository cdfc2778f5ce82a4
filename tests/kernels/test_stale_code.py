"""Machine code that numba keeps is used only with the sources that it was compiled from."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import skdp
from skdp.kernels.numba_jit import COMPILED

PACKAGE = Path(skdp.__file__).parent
RUN = """
import numpy as np
from skdp.kernels import gradient_kernel
from skdp.losses import SquaredLoss
kernel = gradient_kernel(np.ones((3, 2)), np.ones(3), SquaredLoss())
print(int(kernel.clipped_sum(np.zeros(3), 10.0, 2.0**-10)[0]))
"""


@pytest.mark.thorough
def test_a_changed_function_of_another_file_is_compiled_anew(tmp_path):
    copy = tmp_path / "skdp"
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    environment = {"PYTHONPATH": str(tmp_path), "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PATH": ""}

    def run():
        made = subprocess.run(
            [sys.executable, "-c", RUN], env=environment, capture_output=True, text=True, cwd=tmp_path
        )
        assert made.returncode == 0, made.stderr
        return int(made.stdout)

    first = run()
    assert first == -3 * 2**10
    table = copy / "kernels" / "losses.py"
    text = table.read_text()
    changed = text.replace("return (score - target) * weight", "return 2.0 * (score - target) * weight")
    assert changed != text
    table.write_text(changed)
    assert run() == 2 * first


def test_the_digest_covers_every_compiled_function():
    compiled = [
        p for p in PACKAGE.rglob("*.py") if re.search(r"^\s*@(?:\w*jit\w*)\b", p.read_text(), re.MULTILINE)
    ]
    assert len(compiled) > 30
    assert [p for p in compiled if not any((PACKAGE / folder) in p.parents for folder in COMPILED)] == []
