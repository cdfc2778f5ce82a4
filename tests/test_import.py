"""A cold import is light, and one broken subpackage does not take the others down."""

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest

import skdp

HEAVY = ("numba", "matplotlib", "mpyc", "cupy", "dp_accounting", "pooch", "cryptography")
ROOT = Path(skdp.__file__).parents[1]


def run(code):
    done = subprocess.run(
        [sys.executable, "-W", "error::ImportWarning", "-c", textwrap.dedent(code)],
        capture_output=True,
        text=True,
        cwd=ROOT,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


PARTS = [
    "import skdp; [cls() for _, cls in skdp.all_estimators()]",
    "import skdp.datasets.blocks, skdp.preprocessing, skdp.losses, skdp.kernels, skdp.privacy.accounting",
    "from skdp.privacy import *",
]


@pytest.mark.parametrize(
    "statement",
    [
        "; ".join(PARTS),  # what one of these has imported stays imported
        *(pytest.param(part, marks=pytest.mark.thorough) for part in ("import skdp", *PARTS)),
        *(
            pytest.param(part, marks=pytest.mark.slow)
            for part in (
                "import skdp; skdp.all_estimators()",
                "from skdp import DPIGHTClassifier, DPIGHTRegressor, IGHTClassifier, IGHTRegressor",
            )
        ),
    ],
)
def test_nothing_heavy_is_imported(statement):
    found = run(f"import sys; {statement}; print([m for m in {HEAVY!r} if m in sys.modules])")
    assert found == "[]"


def test_import_skdp_loads_no_subpackage():
    code = "import sys, skdp; print(sorted(m for m in sys.modules if m.startswith('skdp')))"
    assert run(code) == "['skdp', 'skdp._version']"


@pytest.mark.slow
def test_full_batch_fit_does_not_import_dp_accounting():
    found = run(
        """
        import sys, warnings
        import numpy as np
        from skdp import DPIGHTClassifier
        warnings.simplefilter("ignore")
        X = np.random.default_rng(0).normal(size=(50, 3))
        model = DPIGHTClassifier(classes=(0, 1)).fit(X, (X[:, 0] > 0).astype(int))
        repr(model.privacy_), model.privacy_.epsilon_at(1e-6)
        print("dp_accounting" in sys.modules, "matplotlib" in sys.modules)
        """
    )
    assert found == "False False"


@pytest.mark.parametrize("package", ["linear_model", "datasets", "privacy", "preprocessing"])
def test_a_broken_package_does_not_break_import(package):
    found = run(
        f"""
        import sys
        class Broken:
            def find_spec(self, name, path=None, target=None):
                if name == "skdp.{package}" or name.startswith("skdp.{package}."):
                    raise ImportError("broken on purpose")
        sys.meta_path.insert(0, Broken())
        import skdp
        print(skdp.__version__, "DPIGHTClassifier" in dir(skdp))
        try:
            getattr(skdp, {package!r})
        except ImportError as error:
            print(error)
        """
    )
    assert found.endswith("broken on purpose")


def test_unknown_names_fail_and_name_what_is_near():
    with pytest.raises(AttributeError, match="No skdp attribute DPIGHTClassifer"):
        _ = skdp.DPIGHTClassifer
    done = subprocess.run(
        [sys.executable, "-c", "import skdp; skdp.DPIGHTClassifer"], capture_output=True, cwd=ROOT
    )
    assert b"Did you mean: 'DPIGHTClassifier'?" in done.stderr


@pytest.mark.thorough
def test_all_names_can_be_imported_at_once(monkeypatch):
    """With the variable of lazy-loader, as a server does before its first request."""
    monkeypatch.setenv("EAGER_IMPORT", "1")
    modules = {"skdp.nn.mlp", "skdp.metrics.functions", "skdp.linear_model.ight.estimators"}
    assert run(f"import skdp, sys; print({modules} <= sys.modules.keys())") == "True"


def test_all_estimators_is_sorted_and_complete():
    names = [name for name, _ in skdp.all_estimators()]
    assert names == sorted(names)
    assert {"DPIGHTClassifier", "DPIGHTRegressor", "IGHTClassifier", "IGHTRegressor"} <= set(names)
    for name, cls in skdp.all_estimators():
        assert getattr(skdp, name) is cls
        assert cls.__name__ == name


def test_show_versions(capsys):
    skdp.show_versions()
    text = capsys.readouterr().out
    assert "scikit-learn:" in text
    assert "numba:" in text


NO_CACHE = """
    import os, warnings
    for name in ("HOME", "NUMBA_CACHE_DIR", "XDG_CACHE_HOME"):
        os.environ.pop(name, None)
    import numba.core.caching as caching
    caching.CacheImpl._locator_classes = []
    import numpy as np
    """


@pytest.mark.thorough
def test_cache_falls_back_where_no_folder_is_writable():
    """Read-only installation without a home: numba's ``cache=True`` alone fails while decorating."""
    found = run(
        NO_CACHE
        + """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        from skdp.kernels import hard_threshold, row_squares
        print(hard_threshold(np.array([1.0, -3.0, 2.0]), 1).tolist(), row_squares(np.ones((1, 2))).tolist())
    said = [str(w.message) for w in caught if "compiled kernels" in str(w.message)]
    print(len(said), "NUMBA_CACHE_DIR" in said[0])
    """
    )
    assert found.splitlines() == ["[0.0, -3.0, 0.0] [2.0]", "1 True"]


@pytest.mark.thorough
def test_a_missing_cache_is_told_once_whatever_is_imported():
    """By one kernel of each package, and by functions that only compiled ones call."""
    found = run(
        NO_CACHE
        + """
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        import skdp.kernels.cut_scores, skdp.kernels.gradient.csr_rows, skdp.kernels.gradient.dense_rows
        import skdp.kernels.gradient.loss_rows, skdp.kernels.gradient.recursive_rows, skdp.nn.compiled
        import skdp.privacy.noise.samplers
        skdp.kernels.warn_without_cache()
    said = [str(w.message) for w in caught if "compiled kernels" in str(w.message)]
    print(len(said), "NUMBA_CACHE_DIR" in said[0])
    """
    )
    assert found == "1 True"


@pytest.mark.thorough
def test_a_missing_cache_is_told_before_a_fit_spends():
    """Under ``-W error`` a warning at the first use of a kernel would leave a spent budget and no model."""
    found = run(
        NO_CACHE
        + """
    from skdp import BudgetAccountant, DPStandardScaler
    accountant = BudgetAccountant(2.0, 1e-5)
    warnings.filterwarnings("error", message="numba finds no writable folder")
    scaler = DPStandardScaler(bounds=(0, 1), accountant=accountant)
    try:
        scaler.fit(np.full((500, 1), 0.5))
    except UserWarning:
        print("told", accountant.ledger())
    """
    )
    assert found.splitlines() == ["told []"]
