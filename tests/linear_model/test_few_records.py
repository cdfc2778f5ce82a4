"""Few records for the budget: scales get a larger share, and what is released stays sane."""

import math

import numpy as np
import pytest

import skdp
from skdp.linear_model._scales import LARGEST_SHARE, PRECISION, grown_share
from skdp.privacy import PrivacySession, accounting

N = 400
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 6)) * 3 + 0.8
Y = X @ np.array([1, -1, 0.5, 0, 0, 0]) + 10 + RNG.normal(size=N)


def test_the_share_of_the_scales_grows_where_units_are_few_by_public_numbers():
    session = PrivacySession(epsilon=1.0, delta=1e-5)
    mu = accounting.gaussian_mu(1.0, 1e-5)
    shares = [grown_share(session, n, 16) for n in (50, N, 1000, 10**6)]
    assert shares[0] == LARGEST_SHARE
    assert shares[1] == pytest.approx(16 * (PRECISION / (N * mu)) ** 2, rel=1e-3)
    assert shares[2:] == [0.02, 0.02]  # exactly: larger fits stay what they were
    assert grown_share(session, N, 16, part=0.9) == pytest.approx(shares[1] / 0.9)
    assert grown_share(PrivacySession(epsilon=math.inf, delta=1e-5), 50, 16) == 0.02


@pytest.mark.parametrize("kind", ["DPIGHT", "DPSLKT", "DPAdaSSP", "DPTwoStage"])
def test_few_records_make_no_nonsense(kind):
    for seed in range(20):
        model = getattr(skdp, kind + "Regressor")(random_state=seed).fit(X, Y)
        assert model.score(X, Y) > -5.0
