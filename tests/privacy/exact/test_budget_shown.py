"""What an accountant shows: text, HTML, places that cannot hold a ledger, and what of `spent` may be claimed."""

import os
import sys
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from skdp.privacy import BudgetAccountant
from skdp.privacy.accounting import gaussian_epsilon
from skdp.privacy.budget import ledger_file

HERE = str(Path(__file__).parent)
if HERE not in sys.path:
    sys.path.insert(0, HERE)

import dummy_estimator as dummy  # noqa: E402

CLAIM = "claim the ceiling, unless number and cost of the fits were fixed beforehand"


class Cells(HTMLParser):
    """The texts of cells, and tags that were opened and not closed."""

    def __init__(self, page):
        super().__init__()
        self.open, self.texts = [], []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.texts.append(data)


def test_html_has_the_ceiling_the_reading_and_the_fits(tmp_path):
    path = tmp_path / "a<b>&c.ledger"
    accountant = BudgetAccountant(3.0, 1e-5, path=path)
    empty = Cells(accountant._repr_html_())
    assert empty.open == []
    assert "epsilon 3, delta 1e-05" in empty.texts
    assert "estimator" not in empty.texts
    dummy.gauss(accountant, 1.0, estimator="<script>alert(1)</script>").commit()
    page = accountant._repr_html_()
    found = Cells(page)
    assert found.open == []
    assert "<script>" not in page
    assert "<script>alert(1)</script>" in found.texts
    assert {str(path), "spent", "replace-one", "record"} <= set(found.texts)
    assert f"epsilon 1, delta 1e-05 ({CLAIM})" in found.texts
    path.unlink()
    gone = Cells(accountant._repr_html_())
    assert any("is gone" in text for text in gone.texts)


def test_the_repr_and_the_docstring_say_what_may_be_claimed():
    assert CLAIM in repr(BudgetAccountant(1.0, 1e-5))
    assert "claim the\n        ceiling" in BudgetAccountant.spent.__doc__ or "claim the ceiling" in " ".join(
        BudgetAccountant.spent.__doc__.split()
    )


def test_a_reading_is_no_claim_where_results_decide_when_to_stop():
    """Why the ceiling is to be claimed: fits of mu = 0.1 that stop at a lucky one, and the delta of their reading.

    The loss of k fits is a walk with steps N(mu^2 / 2, mu^2). Whoever stops at the first k where the loss is above
    the reading has delta = E (1 - exp(reading - loss))+. The mean of 20,000 walks has a standard error below 4e-4,
    so the bound of 3 times the stated delta is more than 6 of them away from the 7 times that are found.
    """
    mu, delta, fits, walks = 0.1, 1e-3, 400, 20_000
    reading = np.array([gaussian_epsilon(mu * np.sqrt(k), delta) for k in range(1, fits + 1)])
    rng = np.random.default_rng(0)
    loss = np.cumsum(mu * rng.standard_normal((walks, fits), dtype=np.float32) + mu**2 / 2, axis=1)
    above = loss > reading + 0.1
    stop = above.argmax(axis=1)
    excess = loss[np.arange(walks), stop] - reading[stop]
    real = np.where(above.any(axis=1), -np.expm1(-excess), 0.0)
    assert real.std() / np.sqrt(walks) < 4e-4
    assert real.mean() > 3 * delta
    # Fixed beforehand, the reading is the cost: at the last fit the delta is what it says.
    last = np.maximum(0.0, -np.expm1(reading[-1] - loss[:, -1])).mean()
    assert last < 1.6 * delta


def test_a_missing_folder_is_named(tmp_path):
    path = tmp_path / "projects" / "census.ledger"
    with pytest.raises(FileNotFoundError) as error:
        BudgetAccountant(1.0, 1e-5, path=path)
    said = str(error.value)
    assert f"there is no folder {path.parent}" in said
    assert "Create the folder first" in said
    assert "unable to open" not in said
    path.parent.mkdir()
    assert BudgetAccountant(1.0, 1e-5, path=path).spent() == (0.0, 0.0)


def test_a_folder_in_place_of_a_file_is_named(tmp_path):
    with pytest.raises(IsADirectoryError, match=r"is a folder: path= of BudgetAccountant names a file"):
        BudgetAccountant(1.0, 1e-5, path=tmp_path)


def test_a_folder_without_the_right_to_write_is_named(tmp_path, monkeypatch):
    """The superuser may write everywhere, so what the system says is given here."""

    def refuse(*args, **kwargs):
        raise ledger_file.sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(ledger_file.sqlite3, "connect", refuse)
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    with pytest.raises(PermissionError, match=f"the folder {tmp_path} is not writable"):
        BudgetAccountant(1.0, 1e-5, path=tmp_path / "ledger")
