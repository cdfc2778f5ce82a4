"""Statistics of several owners: sums of which a unit changes one, zeros for another process, scaled rows."""

import numpy as np
import pytest
import scipy.sparse as sp

from skdp.exceptions import UnsupportedAccounting
from skdp.losses import LogisticLoss
from skdp.privacy import BoundedStatistic, PrivacySession, PrivateRecords, sum_of_owners
from skdp.privacy.statistics import ridge_minimizer


def owners(count=3, n=30, **options):
    rng = np.random.default_rng(1)
    return [
        PrivateRecords(rng.normal(size=(n + j, 4)), (rng.random(n + j) < 0.5) * 1.0, **options)
        for j in range(count)
    ]


def statistics(made):
    return [r.mean_gradient(LogisticLoss(), np.ones(4), 0.5) for r in made]


def test_the_sum_has_the_largest_bound_of_the_owners():
    parts = statistics(owners())
    total = sum_of_owners(parts)
    for name in ("l1", "l2", "linf"):
        assert getattr(total, name) == max(getattr(part, name) for part in parts)
    unit = 2.0**-40
    assert np.array_equal(total._value.on_grid(unit), sum(part._value.on_grid(unit) for part in parts))
    assert total._value.magnitude == pytest.approx(sum(p._value.magnitude for p in parts))
    session = PrivacySession(epsilon=1.0, delta=1e-5, random_state=0)
    session.gaussian(total, session.plan_gaussian(1, 0.5))
    session.laplace(total, 0.1)
    gaussian, laplace = session.report().mechanisms
    assert gaussian["sensitivity"] == pytest.approx(2 * 0.5 / 30)
    assert laplace["sensitivity"] == pytest.approx(2 * 2 * 0.5 / 30, rel=1e-6)


def test_sums_without_a_proof_are_refused():
    (one, two, _), rng = owners(), np.random.default_rng(0)
    grouped = PrivateRecords(rng.normal(size=(30, 4)), np.ones(30), groups=np.arange(30) // 2)
    shifted = one.with_intercept(2.0)
    for wrong, match in (
        ([one, one], "same records"),
        ([one, shifted], "same records"),
        ([one, grouped], "one unit"),
    ):
        with pytest.raises(UnsupportedAccounting, match=match):
            sum_of_owners(statistics(wrong))
    with pytest.raises(UnsupportedAccounting, match="one shape"):
        sum_of_owners([*statistics([one]), BoundedStatistic(np.zeros(3), l2=1.0)])
    proven = ridge_minimizer(two, LogisticLoss(), alpha=0.1, row_norm=1.0, adjacency="replace-one")
    with pytest.raises(UnsupportedAccounting, match="one adjacency"):
        sum_of_owners([*statistics([one]), proven])


@pytest.mark.parametrize("grouped", [False, True])
def test_zeros_of_another_process_have_its_public_numbers(grouped):
    codes = {"groups": np.arange(30) // 3} if grouped else {}
    (real,) = owners(1, fit_intercept=True, **codes)
    stand_in = PrivateRecords.without_data(real.shape)
    assert stand_in.shape == real.shape
    calls = [
        lambda r: r.mean_gradient(LogisticLoss(), np.ones(5), 0.5) * 0.25,
        lambda r: ridge_minimizer(r, LogisticLoss(), alpha=0.1, row_norm=1.0, adjacency="replace-one"),
    ]
    for call in calls:
        here, there = call(real), call(stand_in).absent()
        assert repr(here) == repr(there)
        for name in ("roundings", "magnitude", "usual", "unit", "needs_public_n"):
            assert getattr(here._value, name) == getattr(there._value, name)
        assert here.adjacency == there.adjacency
        assert not there._value.on_grid(2.0**-30).any()
        assert not there._value.plain().any()
        assert not here.absent()._value.on_grid(2.0**-30).any()


@pytest.mark.parametrize("form", [np.asarray, np.asfortranarray, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_scaled_row_is_a_function_of_this_row_alone(form, dtype):
    X = np.random.default_rng(0).normal(size=(9, 4)).astype(dtype)
    X[2:4] = X[2] * 1e-3
    others = []
    for far in (1.0, 1e30):
        X[7] = far
        rows = PrivateRecords(form(X)).shortened(1.5)._rows
        found = rows.X.toarray() if sp.issparse(rows.X) else rows.X
        assert type(rows.X) is type(form(X))
        assert found.dtype == dtype
        assert sp.issparse(rows.X) or rows.X.flags.f_contiguous == form(X).flags.f_contiguous
        norms = np.linalg.norm(found.astype(np.float64), axis=1)
        assert norms.max() <= 1.5 * (1 + 1e-6)
        assert norms[7] == pytest.approx(1.5, rel=1e-6)
        assert np.array_equal(found[2:4], X[2:4])  # short rows stay
        others.append(np.delete(found, 7, axis=0))
    assert np.array_equal(*others)
    huge = np.full((2, 4), 1e300)
    assert np.isfinite(PrivateRecords(form(huge)).shortened(1.0)._rows.X.sum())
