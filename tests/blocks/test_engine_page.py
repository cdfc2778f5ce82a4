"""The adapter that the page on engines shows."""

import importlib
import multiprocessing
import re
from pathlib import Path

import numpy as np
import pytest

import skdp
from skdp import DPLinearRegression

ROOT = Path(skdp.__file__).parents[1]
PAGE = ROOT / "docs" / "researchers" / "engines.rst"
pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.skipif(not PAGE.is_file(), reason="the documentation is not here"),
]


@pytest.fixture
def adapter(monkeypatch):
    """The module whose code the page shows."""
    (name,) = re.findall(r"\.\. literalinclude:: /\.\./examples/(\w+)\.py", PAGE.read_text(encoding="utf-8"))
    monkeypatch.syspath_prepend(str(ROOT / "examples"))
    return importlib.import_module(name)


def fitted(data):
    return DPLinearRegression(random_state=0, accountant=False).fit(*data)


def test_the_adapter_of_the_page_has_the_bits_of_a_local_fit(adapter):
    killed = []

    class Killed(adapter.ProcessBlocks):
        """One process is killed at the fifth request."""

        calls = 0

        def map(self, function, request, own=None):
            self.calls += 1
            if self.calls == 5:
                victim = multiprocessing.active_children()[0]
                victim.kill()
                victim.join()
                killed.append(victim.pid)
            return super().map(function, request, own)

    local = fitted([np.concatenate(parts) for parts in zip(*map(adapter.generated, range(3)), strict=True)])
    placed = fitted([Killed(adapter.generated, range(3))])
    assert len(killed) == 1
    assert np.array_equal(local.coef_, placed.coef_)
    assert local.privacy_.to_json() == placed.privacy_.to_json()


def test_an_exception_of_a_loader_is_not_shown(adapter, capfd):
    with pytest.raises(ValueError, match="block 0 holds a record that fails the checks") as raised:
        fitted([adapter.ProcessBlocks(float, ["61 years"], n_processes=1)])
    assert "61 years" not in str(raised.value) + "".join(capfd.readouterr())
