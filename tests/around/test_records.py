"""What stands around a fit, besides callers, steps and splitters (tests/around): records that appear twice."""

import copy
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import make_pipeline

from skdp import DPIGHTClassifier
from skdp.exceptions import PrivacyLeakWarning

RNG = np.random.default_rng(0)
X = RNG.normal(size=(200, 4))
Y = (X[:, 0] > 0).astype(int)
SETTINGS = {"epsilon": 5.0, "delta": 1e-6, "clip_norm": 1.0, "learning_rate": 0.5, "max_iter": 5}


def classifier(**params):
    return DPIGHTClassifier(**{**SETTINGS, "classes": (0, 1), **params})


# ------------------------------------------------------------------ records

ONCE = "each record appears once: resampling, oversampling or augmentation before fit multiplies"
ONE_GROUP = "all rows of one person carry one group"


@pytest.mark.parametrize("unit", ["record", "group"])
def test_a_report_says_that_a_person_is_there_once(unit):
    groups = {"groups": np.repeat(np.arange(50), 4)} if unit == "group" else {}
    lines = classifier(unit=unit).fit(X, Y, **groups).privacy_.assumptions
    assert sum(line.startswith(ONCE) for line in lines) == (unit == "record")
    assert sum(line.startswith(ONE_GROUP) for line in lines) == (unit == "group")


@pytest.mark.parametrize("sparse", [False, True])
def test_copies_of_a_record_change_no_warning_no_report_and_no_message(sparse, capsys):
    """To look for them would be an output that nothing pays for."""

    def everything(X, y):
        steps = []
        model = classifier(
            clip_norm="auto", learning_rate="auto", max_iter="auto", verbose=True,
            callback=lambda *released: steps.append(np.shape(released[-1])), random_state=0,
        )  # fmt: skip
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            model.fit(sp.csr_matrix(X) if sparse else X, y)
        said = [line.split()[0] for line in capsys.readouterr().out.splitlines() if line.strip()]
        texts = [(w.category, str(w.message)) for w in found]
        return (
            texts,
            model.privacy_.assumptions,
            model.privacy_.leaks,
            model.privacy_.public,
            len(steps),
            len(said),
        )

    usual = everything(X, Y)
    copies = X.copy(), Y.copy()
    for array in copies:
        array[1:] = array[:1]
    assert everything(*copies) == usual
    one = copy.deepcopy((X, Y))
    one[0][1], one[1][1] = one[0][0], one[1][0]
    assert everything(*one) == usual


def test_a_transformer_that_keeps_what_it_learnt_under_another_name_is_seen():
    class Centre(TransformerMixin, BaseEstimator):
        def fit(self, X, y=None):
            self.mean = X.mean(axis=0)
            return self

        def transform(self, X):
            return X - self.mean

    X = np.random.default_rng(0).normal(size=(60, 3))
    y = (X[:, 0] > 0).astype(int)
    pipe = make_pipeline(Centre(), DPIGHTClassifier(classes=(0, 1)))
    with pytest.warns(PrivacyLeakWarning, match="Centre before this fit may have learnt"):
        report = pipe.fit(X, y)[-1].privacy_
    assert "Centre before this fit may have learnt" in " ".join(report.leaks)
    assert "did not learn" not in " ".join(report.assumptions)  # one of the two, not both
