"""The estimator of the guide: one registry entry, every test of skdp's own estimators, and its sensitivity."""

import ast
import os
import subprocess
import sys
from pathlib import Path
from unittest import mock

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils.estimator_checks import check_estimator

import skdp
from skdp.base import validate_table
from skdp.exceptions import PrivacyBudgetExceeded
from skdp.privacy.accounting import gaussian_mu
from skdp.privacy.statistics import ridge_minimizer
from tests.own_estimator import DPHuberRegressor, DPNormalizedGradientClassifier
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


def test_each_has_at_most_20_lines_of_logic():
    classes = [n for n in ast.parse(FILE.read_text()).body if isinstance(n, ast.ClassDef)]
    for cls in classes:
        body = [n for n in cls.body if not isinstance(n, ast.Expr)]
        assert sum(n.end_lineno - n.lineno + 1 for n in body) <= 20
    assert len(classes) == 2


# scikit-learn skips some checks, for example those of the array API where SCIPY_ARRAY_API is not set.
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
@pytest.mark.filterwarnings("ignore:the label set was inferred")  # its checks declare no classes
@pytest.mark.parametrize(
    "cls", [DPHuberRegressor, pytest.param(DPNormalizedGradientClassifier, marks=pytest.mark.thorough)]
)
def test_check_estimator(cls):
    results = check_estimator(cls(), on_fail=None)
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


# ------------------------------------------------------------------ the plan

RNG = np.random.default_rng(0)
X = RNG.normal(size=(4000, 5))
Y = (X[:, 0] - X[:, 1] > 0).astype(int)


class PlansInSolve(DPNormalizedGradientClassifier):
    releases = None  # that of the base

    def solve(self, session, problem):
        plan = (problem.budget if self.within else session).plan_gaussian(self.max_iter)
        forged = type("Forged", (), {"records": problem.records, "loss": problem.loss, "releases": plan})
        return super().solve(session, forged)


class PlansNothing(DPNormalizedGradientClassifier):
    releases = None


@pytest.mark.parametrize(("cls", "y"), [(DPHuberRegressor, X[:, 0]), (DPNormalizedGradientClassifier, Y)])
def test_the_plan_is_what_the_report_says(cls, y):
    model = cls(random_state=0, **({"classes": (0, 1)} if y is Y else {}))
    planned = {step.purpose: step for step in model.plan(4000, 5).decision.steps}
    released = {row["purpose"]: row for row in model.fit(X, y).privacy_.mechanisms}
    assert sum(step.share for step in planned.values()) == pytest.approx(1)
    for purpose in planned.keys() - {"recalibration"}:  # one line in a plan, several kinds of releases in a fit
        row = released[purpose]
        step = (row["count"], row["noise_multiplier"])
        assert step == (planned[purpose].releases, pytest.approx(planned[purpose].noise_multiplier))
    counts = sum(row["count"] for row in model.privacy_.mechanisms if row["purpose"] == "recalibration")
    assert planned.keys() == released.keys() == ({"steps", "recalibration"} if y is Y else {"minimiser"})
    if y is Y:  # a search ends where its answer is sure
        assert 0 < counts <= planned["recalibration"].releases
        assert f"at most {planned['recalibration'].releases} releases" in str(model.plan(4000, 5))


def test_steps_that_solve_plans_leave_the_closing_steps_their_part():
    PlansInSolve.within = True
    rows = PlansInSolve(classes=(0, 1), random_state=0).fit(X, Y).privacy_.mechanisms
    assert {row["purpose"] for row in rows} == {"steps", "recalibration"}
    PlansInSolve.within = False
    with pytest.raises(PrivacyBudgetExceeded, match="shares"):
        PlansInSolve(classes=(0, 1), random_state=0).fit(X, Y)


def test_a_solve_that_reads_plans_which_nobody_made_is_told_where_to_make_them():
    with pytest.raises(TypeError, match=r"give the estimator a method releases\(budget, shape\)"):
        PlansNothing(classes=(0, 1)).fit(X, Y)


def test_too_many_coefficients_are_told_before_anything_is_released():
    model = DPNormalizedGradientClassifier(epsilon=0.1, classes=(0, 1))
    assert "2001 coefficients are too many" in str(model.plan(100, 2000))


def test_a_dense_estimator_refuses_sparse_tables():
    with pytest.raises(TypeError, match="dense data is required"):
        validate_table(DPHuberRegressor(), csr_matrix(X), sparse=False)


# ------------------------------------------------------------------ the sensitivity


class HalfTheSensitivity(DPHuberRegressor):
    """The mutant: its author counted the record that goes, and forgot the one that comes."""

    def solve(self, session, problem):
        def forged(*args, **kwargs):
            made = ridge_minimizer(*args, **kwargs)
            object.__setattr__(made, "l2", made.l2 / 2)
            return made

        with mock.patch("tests.own_estimator.ridge_minimizer", forged):
            return super().solve(session, problem)


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
