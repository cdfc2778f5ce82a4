"""What "auto" takes for the size and number of batches, by public numbers."""

import math

import pytest
from scipy.sparse import csr_matrix

from skdp import BudgetAccountant, DPLSSGDClassifier, DPSGDClassifier, DPSGDRegressor
from skdp.datasets import make_sparse_classification, make_sparse_regression
from skdp.linear_model.sgd import batches
from skdp.privacy.accounting import calibrate_batches, gaussian_mu

pytestmark = [
    pytest.mark.filterwarnings("ignore:random_state is a seed"),
    pytest.mark.filterwarnings("ignore::skdp.exceptions.UtilityWarning"),
]


@pytest.fixture
def table():
    return make_sparse_classification(2000, 5, n_informative=3, random_state=0)


@pytest.fixture
def all_long(monkeypatch):
    """Every table counts as wide and long."""
    monkeypatch.setattr(batches, "LEAST_WORK", 1)


def steps_row(model):
    return next(row for row in model.privacy_.mechanisms if row["purpose"] == "steps")


def fitted(table, cls=DPSGDClassifier, **parameters):
    more = {} if cls is DPSGDRegressor else {"classes": (0, 1)}
    return cls(epsilon=1.0, random_state=0, **more, **parameters).fit(*table)


def test_small_table_takes_all_records(table):
    model = fitted(table)
    assert (model.n_iter_, steps_row(model)["sampling"]) == (100, "full batch")


@pytest.mark.parametrize("cls", [DPSGDClassifier, DPLSSGDClassifier])
@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out"])
def test_long_table_takes_batches(table, all_long, cls, adjacency):
    model = fitted(table, cls, adjacency=adjacency)
    assert (model.n_iter_, steps_row(model)["sampling"]) == (600, "Poisson")
    assert model.privacy_.epsilon == 1.0
    assert steps_row(model)["sampling_rate"] == pytest.approx(1 / 16)


def test_without_replacement_stays_on_full_batches(table, all_long):
    model = fitted(table, sampling="without_replacement")
    assert (model.n_iter_, steps_row(model)["sampling"]) == (100, "full batch")


def test_accountant_keeps_the_mu(table, all_long):
    with BudgetAccountant(2.0, 1e-4) as accountant:
        for _ in range(3):  # by basic composition three fits would cost 3
            model = DPSGDClassifier(epsilon=1.0, classes=(0, 1)).fit(*table)
    assert steps_row(model)["sampling"] == "full batch"
    assert accountant.spent()[0] <= 2.0


def test_sparse_tables_and_regressions_stay_on_full_batches(table, all_long):
    X, y = table
    assert fitted((csr_matrix(X), y)).n_iter_ == 100
    numbers = make_sparse_regression(2000, 5, n_informative=3, random_state=0)
    assert fitted(numbers, DPSGDRegressor).n_iter_ == 100


def test_numbers_of_the_user_are_taken(table, all_long):
    model = fitted(table, max_iter=50)
    assert (model.n_iter_, steps_row(model)["sampling"]) == (50, "Poisson")
    model = fitted(table, batch_size=500)
    assert (model.n_iter_, steps_row(model)["sampling_rate"]) == (100, 0.25)


@pytest.mark.parametrize("adjacency", ["replace-one", "zero-out", "add-remove"])
@pytest.mark.parametrize("epsilon", [0.5, 3.0, 8.0])
def test_batches_cost_little_accuracy(table, all_long, adjacency, epsilon, monkeypatch):
    """The noise of all steps together is at most a tenth above that of full batches."""
    seen = []

    def plan(task, max_iter, batch_size):
        seen.append(batches.steps_and_batch(task, max_iter, batch_size))
        raise StopIteration

    monkeypatch.setattr("skdp.linear_model.sgd.solver.steps_and_batch", plan)
    n_public = 2000 if adjacency == "add-remove" else None
    model = DPSGDClassifier(epsilon=epsilon, classes=(0, 1), adjacency=adjacency, n_public=n_public)
    with pytest.raises(StopIteration):
        model.fit(*table)
    ((steps, size),) = seen
    part = size / 2000
    assert batches.LEAST_PART <= part <= batches.MOST_PART
    multiplier = calibrate_batches(epsilon, 1e-5, [(1.0, part, steps)], adjacency=adjacency)
    full = math.sqrt(steps) / gaussian_mu(epsilon, 1e-5)
    assert multiplier / part <= 1.1 * full


def test_few_steps_take_all_records(table, all_long):
    """One step on a batch would have too little noise for the amplification to work."""
    model = DPSGDClassifier(epsilon=8.0, classes=(0, 1), adjacency="zero-out", max_iter=4, random_state=0).fit(
        *table
    )
    assert (model.n_iter_, steps_row(model)["sampling"]) == (4, "full batch")
