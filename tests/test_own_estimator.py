"""The estimator of the guide: one registry entry, every test of skdp's own estimators, and its sensitivity."""

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from sklearn.utils.estimator_checks import check_estimator

import skdp
from skdp.privacy.accounting import gaussian_mu
from tests.own_estimator import DPHuberRegressor
from tests.privacy.audit import mu_lower

ROOT = Path(skdp.__file__).parents[1]
FILE = ROOT / "tests" / "own_estimator.py"
# What a line in `skdp.registry` would do, before any test is collected.
REGISTERED = """
import importlib, sys
import pytest, skdp.registry
skdp.registry.ESTIMATORS["DPHuberRegressor"] = "tests.own_estimator"
importlib.reload(skdp)
sys.exit(pytest.main(sys.argv[1:]))
"""


def test_it_has_at_most_60_lines_of_logic():
    (cls,) = [n for n in ast.parse(FILE.read_text()).body if isinstance(n, ast.ClassDef)]
    methods = [n for n in cls.body if not (isinstance(n, ast.Expr))]
    assert sum(n.end_lineno - n.lineno + 1 for n in methods) <= 60


# scikit-learn skips some checks, for example those of the array API where SCIPY_ARRAY_API is not set.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_check_estimator():
    results = check_estimator(DPHuberRegressor(), on_fail=None)
    assert [r["check_name"] for r in results if r["status"] not in ("passed", "skipped")] == []


@pytest.mark.slow
@pytest.mark.parametrize("file", ["test_contract.py", "test_bad_input.py", "privacy/exact/test_public_shape.py"])
def test_one_line_in_the_registry_brings_the_tests_of_all_estimators(file):
    command = [sys.executable, "-c", REGISTERED, "-q", "-x", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, f"tests/{file}", "-k", "DPHuberRegressor"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-1000:]
    assert " passed" in done.stdout


# ------------------------------------------------------------------ the sensitivity


class HalfTheSensitivity(DPHuberRegressor):
    """The twin: its author counted the record that goes, and forgot the one that comes."""

    def solve(self, session, problem):
        make = problem.records.ridge_minimizer

        class Records:
            def ridge_minimizer(self, *args, **kwargs):
                made = make(*args, **kwargs)
                object.__setattr__(made, "l2", made.l2 / 2)
                return made

        forged = type("Forged", (), {"records": Records(), "loss": problem.loss})
        return super().solve(session, forged)


N, RUNS = 20, 700
CLAIM = dict(epsilon=8.0, delta=1e-5)
MU = gaussian_mu(8.0, 1e-5)


def runs(cls, last):
    """The released coefficient of ``RUNS`` fits; all records but the last pull up as hard as they can."""
    X, y = np.ones((N, 1)), np.full(N, 1e6)
    y[-1] = last
    options = dict(fit_intercept=False, alpha=0.5, **CLAIM)
    key = 0 if last > 0 else RUNS
    fits = (cls(random_state=key + i, **options).fit(X, y) for i in range(RUNS))
    return np.array([model.coef_[0] for model in fits])


def leaked(cls):
    down, up = runs(cls, -1e6), runs(cls, 1e6)
    return mu_lower(down, up, (down.mean() + up.mean()) / 2)


@pytest.mark.slow
def test_neighbours_are_as_far_apart_as_claimed_and_no_further():
    """False alarm below 1e-6. One record, replaced by its opposite, moves theta by 2 G / (n alpha)."""
    assert 0.6 * MU < leaked(DPHuberRegressor) <= MU


@pytest.mark.slow
def test_the_audit_finds_half_of_the_sensitivity():
    assert leaked(HalfTheSensitivity) > MU


def test_exact_minimisers_differ_by_the_bound():
    X, y = np.ones((N, 1)), np.full(N, 1e6)
    model = DPHuberRegressor(epsilon=np.inf, fit_intercept=False, alpha=0.5)
    up = model.fit(X, y).coef_[0]
    y[-1] = -1e6
    down = model.fit(X, y).coef_[0]
    assert up - down == pytest.approx(2 * 1.0 / (N * 0.5), rel=1e-6)


def test_the_report_names_the_release_and_the_assumption():
    report = DPHuberRegressor(random_state=0).fit(np.eye(5), np.arange(5.0)).privacy_
    assert [(row["name"], row["count"]) for row in report.mechanisms] == [("gaussian", 1)]
    assert any("row_norm and huber_threshold" in line for line in report.assumptions)
