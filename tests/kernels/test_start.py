"""What a first fit imports and compiles."""

import ast
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

import skdp
from skdp.kernels.numba_jit import inner_jit, jit
from skdp.kernels.row_factors import clip_scale

PACKAGE = Path(skdp.__file__).parent
INNER = {"inner_jit", "inner_jit_any_order"}


@pytest.mark.thorough
def test_kernels_are_imported_by_storage_and_kind():
    code = """
        import sys, numba
        import numpy as np, scipy.sparse as sp
        decorated, njit = [], numba.njit
        def counted(function=None, **options):
            if function is not None and function.__module__.startswith("skdp"):
                decorated.append(function.__name__)
            return njit(function, **options)
        numba.njit = counted
        from skdp.kernels import gradient_kernel
        from skdp.losses import LogisticLoss, MultinomialLoss
        def loaded():
            names = {m.rpartition(".")[2] for m in sys.modules if m.startswith("skdp.kernels.gradient")}
            return sorted(n for n in names if n.endswith("_rows") or n == "feature_major")
        X, y = np.eye(4), np.array([0.0, 1.0, 0.0, 1.0])
        for loss in LogisticLoss(), MultinomialLoss(2):
            for rows in None, np.array([1, 2]):
                gradient_kernel(X, y, loss)._pass("sums", rows, None)
            grouped = gradient_kernel(X, y, loss, groups=y.astype(int))
            grouped._pass("sums", None, grouped._members)
        print(loaded(), len(decorated))
        gradient_kernel(sp.csr_matrix(X), y, LogisticLoss())._pass("sums", None, None)
        print(loaded())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)],
        capture_output=True, text=True, cwd=PACKAGE.parent,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    dense, sparse = done.stdout.splitlines()
    names, _, count = dense.rpartition(" ")
    assert names == "['dense_rows']"
    assert int(count) <= 64  # 86 with those of all storages; 13 choose the loss, in 2 ms
    assert sparse == "['csr_rows', 'dense_rows', 'feature_major']"


def test_an_inner_function_cannot_be_called_from_python():
    """numba would jump to address 0, and the process would die."""
    with pytest.raises(TypeError, match="clip_scale is called by compiled functions only"):
        clip_scale(1.0, 1.0, 1.0)
    assert clip_scale.py_func(2.0, 1.0, 1.0) == 0.5


@inner_jit
def _twice(x):
    return 2.0 * x


@jit
def _four_times(x):
    return _twice(_twice(x))


def test_an_inner_function_is_called_by_compiled_ones():
    assert _four_times(0.5) == 2.0
    with pytest.raises(TypeError, match="_twice is called by compiled functions only"):
        _twice(0.5)  # also after it was compiled
    assert np.isnan(_four_times(np.nan))


def test_python_code_names_no_inner_function():
    """It is named inside of compiled functions, in imports and in lists of names, and nowhere else."""
    texts = {path: path.read_text() for path in PACKAGE.rglob("*.py")}
    homes = [path for path, text in texts.items() if "@inner_jit" in text]
    trees = {
        path: ast.parse(text)
        for path, text in texts.items()
        if path in homes or any(_dotted(home) in text for home in homes)
    }

    def decorators(node):
        return {d.id for d in getattr(node, "decorator_list", ()) if isinstance(d, ast.Name)}

    inner = {(path, node.name) for path, tree in trees.items() for node in tree.body if decorators(node) & INNER}
    assert len(inner) > 40
    wrong = []
    for path, tree in trees.items():
        own = {name for place, name in inner if place == path}
        imported = {
            alias.asname or alias.name
            for node in ast.walk(tree)
            if isinstance(node, ast.ImportFrom)
            for alias in node.names
            if any(name == alias.name and _dotted(place) == node.module for place, name in inner)
        }
        for node in tree.body:
            if any("jit" in name for name in decorators(node)):
                continue
            wrong += [
                f"{path.name}: {used.id}"
                for used in ast.walk(node)
                if isinstance(used, ast.Name) and used.id in own | imported
            ]
    assert wrong == []


def _dotted(path):
    return ".".join(path.relative_to(PACKAGE.parent).with_suffix("").parts)
