"""What editors know of the constructors: a user's script is checked by pyright."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
SCRIPT = """\
from typing import assert_type

from skdp import DPLogisticRegression, DPMLPClassifier, DPSGDClassifier, DPSGDRegressor
from skdp.nn import SGD, Adam, Microbatch, SparseSelection

model = DPLogisticRegression(epsilon=0.5, C="auto", classes=[0, 1], feature_bounds=(0, 1))
assert_type(model.epsilon, float)
assert_type(model.fit_intercept, bool)
DPSGDRegressor(huber_threshold=2.0, bounded=False, optimizer=SGD(average=None), learning_rate="auto")
DPMLPClassifier(optimizer=Adam(beta_1=0.5, schedule="cosine"), clipping=Microbatch(size=4))
DPMLPClassifier(optimizer="adam", clipping="ghost", gradient_estimator=SparseSelection(0.1))
DPMLPClassifier(momentum=0.5)  # wrong: a parameter of SGD
DPMLPClassifier(clipping="microbatch")  # wrong: an object
SGD(beta_1=0.5)  # wrong: a parameter of Adam
DPSGDClassifier(smoothing=1.0)  # wrong: a parameter of DPLSSGDClassifier
DPSGDClassifier(penalty="l1")  # wrong: no such penalty
DPLogisticRegression(1.0)  # wrong: by keyword only
DPLogisticRegression(solver=None)  # wrong: a word
"""


@pytest.mark.skipif(
    importlib.util.find_spec("basedpyright") is None, reason="pyright is not installed: pip install 'skdp[dev]'"
)
def test_pyright_reads_declared_constructors(tmp_path):
    """Every wrong line, and no other, is an error."""
    (tmp_path / "user.py").write_text(SCRIPT)
    config = {"extraPaths": [str(ROOT)], "typeCheckingMode": "standard"}
    (tmp_path / "pyrightconfig.json").write_text(json.dumps(config))
    command = [
        sys.executable,
        "-m",
        "basedpyright",
        "--outputjson",
        "--pythonpath",
        sys.executable,
        "-p",
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found = json.loads(done.stdout)["generalDiagnostics"]
    errors = {item["range"]["start"]["line"] for item in found if item["severity"] == "error"}
    wrong = {k for k, line in enumerate(SCRIPT.split("\n")) if "# wrong" in line}
    assert errors == wrong, found
