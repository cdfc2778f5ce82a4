"""The bundled records: unchanged bytes, no leaking column, the accuracy the demo claims."""

import hashlib
import lzma
import subprocess
import sys
import textwrap
from importlib.resources import files

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline

from skdp.datasets import load_rand_hie, rand_hie_bins
from skdp.preprocessing import PublicBinsEncoder

pytestmark = pytest.mark.thorough

# sha256 of statsmodels/datasets/randhie/src/randhie.csv
SOURCE_SHA256 = "fe64f3c8e987779daa6052dd756d9ce277e025330f5549126c7c2f6a3c9c5541"
OUTCOMES = {"outpdol", "drugdol", "suppdol", "mentdol", "inpdol", "meddol", "totadm", "inpmis"}
OUTCOMES |= {"mentvis", "mdvis", "notmdvis", "lnmeddol", "binexp"}


@pytest.fixture(scope="module")
def source():
    packed = files("skdp.datasets.data").joinpath("rand_hie.csv.xz").read_bytes()
    assert len(packed) < 1_000_000
    return lzma.decompress(packed)


@pytest.fixture(scope="module")
def columns(source):
    """The source read by other code than the loader's."""
    header, *lines = source.decode().splitlines()
    table = np.genfromtxt(lines, delimiter=",")
    return dict(zip(header.split(","), table.T))


def test_bytes_are_those_of_the_source(source):
    assert hashlib.sha256(source).hexdigest() == SOURCE_SHA256


@pytest.mark.slow
def test_data_equal_the_source(columns):
    hie = load_rand_hie()
    assert hie.data.shape == (20190, 30)
    assert hie.data.dtype == np.float64
    assert hie.data.flags.c_contiguous
    for place, name in enumerate(hie.feature_names):
        np.testing.assert_array_equal(hie.data[:, place], columns[name])
    assert hie.frame is None
    assert "Public domain" in hie.DESCR
    assert "sensitive" in hie.DESCR
    assert "person-year" in hie.DESCR


def test_no_outcome_or_identifier_is_a_feature(columns):
    hie = load_rand_hie()
    names = set(hie.feature_names)
    assert not names & (OUTCOMES | {"zper", "site"})
    assert names | OUTCOMES | {"zper", "site"} == set(columns)
    assert hie.data.shape[1] == len(names)
    # No single feature orders the rows as well as an outcome would.
    for column in np.nan_to_num(hie.data, nan=-1.0).T:
        assert 0.3 < roc_auc_score(hie.target, column) < 0.7


def test_missing_values_stay():
    hie = load_rand_hie()
    missing = dict(zip(hie.feature_names, np.isnan(hie.data).sum(axis=0)))
    counts = {name: int(count) for name, count in missing.items() if count}
    assert counts == {"educdec": 4, "ghindx": 5223, "mdeoff": 5, "pioff": 5}


@pytest.mark.parametrize(
    ("target", "dtype"), [("any_visit", np.int64), ("n_visits", np.int64), ("log_medical_cost", np.float64)]
)
def test_targets(columns, target, dtype):
    expected = {
        "any_visit": columns["mdvis"] > 0,
        "n_visits": columns["mdvis"],
        "log_medical_cost": np.log(1 + columns["meddol"]),
    }[target]
    X, y = load_rand_hie(target=target, return_X_y=True)
    assert y.dtype == dtype
    assert X.shape[0] == y.shape[0]
    np.testing.assert_allclose(y, expected, rtol=1e-14)
    assert load_rand_hie(target=target).target_names == [target]


def test_unknown_target():
    with pytest.raises(ValueError, match=r"target must be one of .*'any_visit'.*got 'visits'"):
        load_rand_hie(target="visits")


def test_person_and_site():
    hie = load_rand_hie()
    assert np.unique(hie.person).size == 5912
    assert np.unique(hie.site).tolist() == [1, 2, 3, 4, 5, 6]
    np.testing.assert_array_equal(hie.person // 100000, hie.site)
    assert hie.person.dtype == hie.site.dtype == np.int64


def test_as_frame():
    pytest.importorskip("pandas")
    hie = load_rand_hie(as_frame=True)
    plain = load_rand_hie()
    assert list(hie.frame.columns) == [*plain.feature_names, "any_visit"]
    np.testing.assert_array_equal(hie.data.to_numpy(), plain.data)
    np.testing.assert_array_equal(hie.target.to_numpy(), plain.target)
    assert hie.person.name == "person"
    assert (hie.person.to_numpy() == plain.person).all()


def test_bins_by_name_and_by_position_agree():
    pytest.importorskip("pandas")
    by_position = PublicBinsEncoder(**rand_hie_bins())
    by_name = PublicBinsEncoder(**rand_hie_bins(as_frame=True))
    X = by_position.fit_transform(load_rand_hie().data)
    named = by_name.fit_transform(load_rand_hie(as_frame=True).data)
    assert (named != X).nnz == 0
    assert X.shape == (20190, 263)
    assert by_position.row_norm_ == np.sqrt(21)
    assert "xage < 1 & female < 0.5" in by_name.get_feature_names_out()


def test_bins_are_fresh_objects():
    rand_hie_bins()["bins"].clear()
    rand_hie_bins()["crosses"].clear()
    assert len(rand_hie_bins()["bins"]) == 17
    assert len(rand_hie_bins()["crosses"]) == 1


def test_auc_on_new_people():
    """Non-private AUC 0.732 (standard error 0.0025 over five splits by person)."""
    hie = load_rand_hie()
    splitter = GroupShuffleSplit(n_splits=1, test_size=0.25, random_state=0)
    train, test = next(splitter.split(hie.data, hie.target, groups=hie.person))
    assert not set(hie.person[train]) & set(hie.person[test])
    model = make_pipeline(PublicBinsEncoder(**rand_hie_bins()), LogisticRegression(C=0.02, max_iter=500))
    model.fit(hie.data[train], hie.target[train])
    scores = model.predict_proba(hie.data[test])[:, 1]
    assert 0.715 < roc_auc_score(hie.target[test], scores) < 0.75


def test_works_without_pandas_and_loads_no_pooch():
    code = textwrap.dedent(
        """
        import sys
        sys.modules["pandas"] = None  # importing it now raises ImportError
        from skdp.datasets import load_rand_hie
        assert load_rand_hie().data.shape == (20190, 30)
        assert "pooch" not in sys.modules
        try:
            load_rand_hie(as_frame=True)
        except ImportError as error:
            assert "as_frame=True needs pandas" in str(error)
        else:
            raise AssertionError("no error")
        """
    )
    subprocess.run([sys.executable, "-c", code], check=True)
