"""The published noise of the multi-party methods (Table 6.1 of Wang 2021), and what it is worth."""

import math

import numpy as np
import pytest

from skdp.privacy.accounting import gaussian_delta
from skdp.privacy.noise import discrete_laplace, rounded_gaussian
from skdp.reproductions.published import METHODS, Setting, published_scale, published_std, true_epsilon, valid_std

# Table 6.1, in thousandths: input of the generator, and the standard deviation of 1,000 generated values.
INPUTS = dict(zip(METHODS, (800, 80.0, 8.00, 5.66, 8.00, 0.57)))
GENERATED = dict(zip(METHODS, (1150, 112, 11.6, 5.63, 12.2, 0.572)))
DRAWS = 1000


def relative_error_of_std(method, draws):
    """Standard error of a sample's standard deviation over the true one: sqrt((kurtosis - 1) / (4 n))."""
    kurtosis = 6.0 if METHODS[method] == "laplace" else 3.0
    return math.sqrt((kurtosis - 1) / (4 * draws))


@pytest.mark.parametrize("method", METHODS)
def test_first_row_of_table_6_1(method):
    assert 1000 * published_scale(method, Setting()) == pytest.approx(INPUTS[method], abs=0.005)


@pytest.mark.parametrize("method", METHODS)
def test_second_row_of_table_6_1(method):
    """What the paper generated lies within 3.5 standard errors of the law's standard deviation."""
    law = 1000 * published_std(method, Setting())
    assert abs(GENERATED[method] / law - 1) < 3.5 * relative_error_of_std(method, DRAWS)


@pytest.mark.parametrize("method", METHODS)
def test_our_samplers_generate_the_same_row(method):
    """On a grid of 2^-30 of the scale; five standard errors, of 20,000 draws: false alarm below 1e-6."""
    scale, grid = published_scale(method, Setting()), 2.0**-30
    draw = discrete_laplace if METHODS[method] == "laplace" else rounded_gaussian
    drawn = draw(1 / grid, 20_000, 7) * (scale * grid)
    error = relative_error_of_std(method, drawn.size)
    assert abs(drawn.std() / published_std(method, Setting()) - 1) < 5 * error
    # A generator that forgot the sqrt(2) of Laplace noise, or doubled a variance, is seen.
    assert abs(drawn.std() / (math.sqrt(2) * published_std(method, Setting())) - 1) > 5 * error


def worst_minimiser_pair(setting, n_features):
    """Sensitivity of the average of owners' minimisers: the largest l1 and l2 change that the bound allows."""
    s = 2.0 * setting.lipschitz / (setting.smallest * setting.alpha) / setting.n_owners
    direction = np.ones(n_features) / math.sqrt(n_features)  # the worst one for independent Laplace noise
    return s * direction


@pytest.mark.parametrize("n_features", [1, 104])
@pytest.mark.parametrize("method", ["Pathak", "MPC Out P"])
def test_true_epsilon_of_laplace_noise_is_reached(method, n_features):
    """The log ratio of the densities at 0, for a change along the diagonal, is the bound itself."""
    setting = Setting()
    change = worst_minimiser_pair(setting, n_features)
    ratio = np.abs(change).sum() / published_scale(method, setting)
    assert ratio == pytest.approx(true_epsilon(method, setting, n_features), rel=1e-12)


def test_published_laplace_noise_is_not_private_at_its_epsilon_in_many_coordinates():
    for method in ("Local Out P", "MPC Out P", "Local Obj P"):
        assert true_epsilon(method, Setting(), 104) > 10 * Setting().epsilon
    # Pathak et al. divide nothing by m: they pay less than they say, if owners are many enough.
    assert true_epsilon("Pathak", Setting(), 104) == pytest.approx(0.5 * math.sqrt(104) / 100)
    assert true_epsilon("Pathak", Setting(n_owners=2), 104) > Setting().epsilon


def test_published_gaussian_noise_is_that_of_zcdp_with_rho_epsilon_squared():
    setting = Setting()
    for method, owners in (("MPC Grad P", setting.n_owners), ("Local Grad P", 1)):
        # One owner's message, or the average: sensitivity over standard deviation, T times.
        sigma = published_scale(method, setting)
        moved = setting.of_owner / owners
        if method == "Local Grad P":
            sigma *= math.sqrt(setting.n_owners)  # of one owner's own noise
        mu = math.sqrt(setting.max_iter) * moved / sigma
        assert mu**2 / 2 == pytest.approx(setting.epsilon**2)  # rho
        found = true_epsilon(method, setting, 104)
        assert found > 4 * setting.epsilon
        assert gaussian_delta(mu, found) == pytest.approx(setting.delta, rel=1e-6)
    # Theorem 6.3.4 of the same paper asks for sqrt(4 log(1 / delta)) times the table's noise.
    theorem = math.sqrt(8 * 100 * math.log(1 / setting.delta)) / (100 * 500 * setting.epsilon)
    ratio = theorem / published_scale("MPC Grad P", setting)
    assert ratio == pytest.approx(math.sqrt(4 * math.log(1 / setting.delta)))


def test_valid_noise_of_output_perturbation():
    setting = Setting()
    ours = valid_std("MPC Out P", setting, n_features=104)
    assert ours * setting.n_owners == pytest.approx(
        valid_std("Local Out P", setting, n_features=104) * math.sqrt(setting.n_owners)
    )
    sensitivity = 2.0 / (100 * 500 * 0.01)
    assert gaussian_delta(sensitivity / ours, setting.epsilon) == pytest.approx(1e-3, rel=1e-6)
    laplace = valid_std("MPC Out P", setting, n_features=104, noise="laplace")
    assert laplace == pytest.approx(math.sqrt(104) * published_std("MPC Out P", setting))
    # Gaussian noise needs no sqrt(d): it beats Laplace noise from a few coordinates on.
    assert ours < laplace / 5
    assert valid_std("MPC Out P", setting, n_features=1, noise="laplace") < ours
