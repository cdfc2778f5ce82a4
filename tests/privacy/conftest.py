"""Fixtures of the privacy tests; `audit.py` has the tools of attacks."""

import functools

import joblib
import pytest

from skdp.privacy import BudgetAccountant, accounting


@pytest.fixture
def accountant():
    """A ceiling that no test reaches unless it means to."""
    return BudgetAccountant(100.0, 1e-5)


@pytest.fixture(scope="module")
def fresh_workers():
    """Workers that other tests left behind do not know the folder of the dummy."""
    joblib.externals.loky.get_reusable_executor(max_workers=2).shutdown(wait=True)


@pytest.fixture(scope="module")
def one_calibration():
    """Fits by the hundred with one calibration."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(accounting, "gaussian_mu", functools.lru_cache(accounting.gaussian_mu))
        yield
