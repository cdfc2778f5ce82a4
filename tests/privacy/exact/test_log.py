"""The logger `skdp`: lines for plans and charges, the same for neighbouring data, and nothing secret in them."""

import logging
import re
import warnings

import numpy as np
import pytest

import skdp
from skdp import BudgetAccountant
from skdp.exceptions import PrivacyBudgetExceeded

N = 80
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
Y = np.arange(N) % 2
GROUPS = np.arange(N) // 4
FAR = (np.array([1e6, -1e6, 0.0]), 1)  # the record that takes the place of the first

MODELS = {
    "automatic estimator": skdp.DPLogisticRegression(classes=(0, 1)),
    "regression": skdp.DPLinearRegression(),
    "thresholding": skdp.DPIGHTClassifier(classes=(0, 1)),
    "groups": skdp.DPIGHTRegressor(unit="group"),
    "add-remove": skdp.DPIGHTRegressor(adjacency="add-remove", n_public=100),
    "minibatches": skdp.DPSGDClassifier(classes=(0, 1), batch_size=8),
    "sparse vector": skdp.DPSparseERMRegressor(),
    "net": skdp.DPMLPClassifier(classes=(0, 1), hidden_layer_sizes=(2,)),
    "scaler": skdp.DPStandardScaler(),
    "pure": skdp.DPFrankWolfeClassifier(classes=(0, 1), delta=0.0, radius=1.0, clip_norm=1.0),
}


@pytest.fixture
def lines(caplog):
    """Fit under an accountant, and return the lines without the name of the ledger's file."""

    def fit(model, X, y, **more):
        caplog.clear()
        accountant = BudgetAccountant(5.0, 1e-3)
        with warnings.catch_warnings(), caplog.at_level(logging.INFO, "skdp"):
            warnings.simplefilter("ignore")
            model.set_params(accountant=accountant).fit(X, y, **more)
        assert {(r.name, r.levelname) for r in caplog.records} == {("skdp", "INFO")}
        return [r.getMessage().replace(accountant.path, "FILE") for r in caplog.records]

    return fit


def neighbours(adjacency):
    """The data, and the data after one record took other values, or went."""
    changed, labels = X.copy(), Y.copy()
    changed[0], labels[0] = FAR
    if adjacency == "add-remove":
        return (X, Y), (X[1:], Y[1:])
    return (X, Y), (changed, labels)


@pytest.mark.parametrize("name", sorted(MODELS))
def test_neighbouring_data_give_the_same_lines(name, lines):
    model = MODELS[name]
    found = []
    for table, y in neighbours(model.adjacency):
        more = {"groups": GROUPS} if model.unit == "group" else {}
        found.append(lines(model, table, y, **more))
    assert found[0] == found[1]
    head, charge, *middle, last = found[0]
    label = type(model).__name__
    assert head.startswith(f"{label}: epsilon=1, delta=")
    assert re.fullmatch(rf"charge: fit 1, {label}, epsilon=1, .* reserved in FILE", charge)
    assert "charge: fit 1 is spent in FILE" in middle
    assert last.startswith(f"{label}: report, epsilon=")
    assert name == "pure" or any(line.startswith("plan: ") for line in middle)


def test_groups_of_other_sizes_give_the_same_lines(lines):
    """With groups the number of rows is private."""
    model = MODELS["groups"]
    assert lines(model, X, Y, groups=GROUPS) == lines(model, X[:-3], Y[:-3], groups=GROUPS[:-3])


def test_no_line_holds_a_seed_or_what_was_not_released(caplog):
    seed = 123456789
    accountant = BudgetAccountant(5.0, 1e-3, allow_seeded=True)
    model = skdp.DPIGHTRegressor(random_state=seed, accountant=accountant)
    with warnings.catch_warnings(), caplog.at_level(logging.DEBUG, "skdp"):
        warnings.simplefilter("ignore")
        model.fit(X, np.full(N, 77.125))
    assert {record.levelname for record in caplog.records} == {"INFO", "DEBUG"}
    assert str(seed) not in caplog.text
    assert "77.1" not in caplog.text


def test_what_is_handed_back_or_refused_is_told_apart(caplog):
    accountant = BudgetAccountant(1.0, 1e-3)
    with caplog.at_level(logging.INFO, "skdp"):
        with pytest.raises(ValueError, match="NaN"):
            skdp.DPIGHTRegressor(accountant=accountant).fit(np.full((N, 3), np.nan), Y)
        assert caplog.messages[-1] == f"charge: fit 1 is returned in {accountant.path}"
        caplog.clear()
        with pytest.raises(PrivacyBudgetExceeded):
            skdp.DPIGHTRegressor(epsilon=2.0, accountant=accountant).fit(X, Y)
    assert not any(message.startswith("charge") for message in caplog.messages)


def test_exact_fits_write_nothing_and_nothing_is_printed_by_itself(caplog, capfd):
    with caplog.at_level(logging.INFO, "skdp"):
        skdp.IGHTRegressor(n_nonzero_coefs=2).fit(X, Y)
    assert caplog.records == []
    assert any(isinstance(h, logging.NullHandler) for h in logging.getLogger("skdp").handlers)
    assert capfd.readouterr() == ("", "")
