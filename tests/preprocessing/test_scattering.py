"""ScatteringTransform: kymatio's numbers, the contract, and that a row of features is a function of its image."""

import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from skdp import DPSGDClassifier
from skdp.preprocessing import ScatteringTransform

# Random images, and what kymatio 0.3.0 (numpy front end, SciPy 1.12) made of them.
KYMATIO = np.load(Path(__file__).parent / "fixtures" / "scattering_kymatio.npz")
CASES = sorted(name.removeprefix("images_") for name in KYMATIO.files if name.startswith("images_"))
SHORT_PI = 3.1415 / np.pi  # kymatio divides each filter by its own pi


@parametrize_with_checks(
    [
        ScatteringTransform(J=1, L=4, normalize="l2"),  # tests/test_contract.py has those of the defaults
        ScatteringTransform(J=3, L=3, normalize=None),
    ]
)
def test_sklearn_contract(estimator, check):
    check(estimator)


def images(n, *shape, seed=0):
    return np.random.default_rng(seed).random((n, *shape)).astype(np.float32)


def by_path(transform, X):
    """Features of shape (n, paths, height, width)."""
    return transform.transform(X).reshape(-1, *transform.output_shape_).transpose(0, 3, 1, 2)


@pytest.mark.parametrize("case", CASES)
def test_equals_kymatio(case):
    X, expected = KYMATIO[f"images_{case}"], KYMATIO[f"scattering_{case}"]
    J, L = (int(part[1:]) for part in case.split("_")[1:])
    transform = ScatteringTransform(J=J, L=L, normalize=None).fit(X)
    order = np.full(expected.shape[1], 2)
    order[0], order[1 : 1 + J * L] = 0, 1
    corrected = expected * (SHORT_PI ** (order + 1.0))[:, None, None]
    found = by_path(transform, X)
    assert found.dtype == np.float32
    np.testing.assert_allclose(found, corrected, rtol=1e-5)
    # kymatio's own numbers differ by no more than its factor.
    np.testing.assert_allclose(found, expected, rtol=1e-4)


@pytest.mark.blas
@pytest.mark.parametrize("normalize", [None, "group", "l2"])
@pytest.mark.parametrize("shape", [(28, 28, 1), (11, 9, 3)])
def test_row_is_function_of_its_image_to_the_last_bit(normalize, shape):
    X = images(70, *shape)
    transform = ScatteringTransform(J=2, L=4, normalize=normalize).fit(X)
    whole = transform.transform(X)
    order = np.random.default_rng(1).permutation(len(X))
    np.testing.assert_array_equal(transform.transform(X[order]), whole[order])
    for count in (1, 2, 3, 31, 33, 65):
        np.testing.assert_array_equal(transform.transform(X[5 : 5 + count]), whole[5 : 5 + count])
    other = X.copy()
    other[6] = 1e6
    assert_all_but(transform.transform(other), whole, 6)


def assert_all_but(found, expected, row):
    np.testing.assert_array_equal(np.delete(found, row, 0), np.delete(expected, row, 0))
    assert not np.array_equal(found[row], expected[row])


def test_threads_do_not_change_a_bit(monkeypatch):
    X = images(100, 16, 16)
    transform = ScatteringTransform(L=4).fit(X)
    found = []
    for threads in ("1", "3"):
        monkeypatch.setenv("SKDP_NUM_THREADS", threads)
        found.append(transform.transform(X))
    np.testing.assert_array_equal(*found)


def test_images_and_tables_give_the_same():
    X = images(4, 12, 10, 3)
    expected = ScatteringTransform(L=3).fit_transform(X)
    table = X.reshape(4, -1)
    np.testing.assert_array_equal(ScatteringTransform(L=3, image_shape=(12, 10, 3)).fit_transform(table), expected)
    np.testing.assert_array_equal(ScatteringTransform(L=3, image_shape=[12, 10, 3]).fit_transform(X), expected)
    gray = X[..., 0]
    np.testing.assert_array_equal(
        ScatteringTransform(L=3).fit_transform(gray),
        ScatteringTransform(L=3, image_shape=(12, 10)).fit_transform(gray.reshape(4, -1)),
    )


def test_channels_are_transformed_one_by_one():
    X = images(3, 12, 12, 2)
    transform = ScatteringTransform(L=3, normalize=None).fit(X)
    together = by_path(transform, X)
    for channel in range(2):
        alone = ScatteringTransform(L=3, normalize=None).fit(X[..., channel])
        n_paths = alone.output_shape_[2]
        part = together[:, channel * n_paths : (channel + 1) * n_paths]
        np.testing.assert_array_equal(part, by_path(alone, X[..., channel]))


def test_bytes_are_exact():
    X = np.random.default_rng(0).integers(0, 256, (3, 16, 16)).astype(np.uint8)
    transform = ScatteringTransform(L=2).fit(X)
    np.testing.assert_array_equal(transform.transform(X), transform.transform(X.astype(float)))


def test_group_normalization_is_the_definition():
    X = images(3, 16, 16)
    plain = ScatteringTransform(L=4, normalize=None).fit_transform(X).astype(np.float64)
    transform = ScatteringTransform(L=4, n_groups=7).fit(X)
    found = transform.transform(X)
    rows, columns, paths = transform.output_shape_
    floor = 1e-3 * (plain**2).mean(axis=1)
    expected = np.empty((3, rows, columns, paths))
    for i, record in enumerate(plain.reshape(3, rows, columns, paths)):
        ends = [g * paths // 7 for g in range(8)]
        for a, b in pairwise(ends):
            group = record[..., a:b]
            expected[i, ..., a:b] = (group - group.mean()) / np.sqrt(group.var() + floor[i])
    np.testing.assert_allclose(found, expected.reshape(3, -1) / np.sqrt(found.shape[1]), atol=1e-6)
    norms = np.linalg.norm(found.astype(np.float64), axis=1)
    assert (norms <= 1 + 1e-6).all()
    assert (norms > 0.7).all()


def test_groups_keep_how_strong_a_path_is():
    """Waves of two directions differ in which paths are strong, which groups of single paths would not show."""
    X = images(2, 16, 16)
    few = ScatteringTransform(L=4, n_groups=8).fit_transform(X)  # 25 paths
    np.testing.assert_array_equal(ScatteringTransform(L=4).fit_transform(X), few)
    wave = np.cos(2.0 * np.arange(16))[:, None] * np.ones(16)
    across, along = ScatteringTransform(L=4).fit_transform(np.stack([wave, wave.T])).astype(float)
    assert across @ along < 0.9 * np.linalg.norm(across) * np.linalg.norm(along)


@pytest.mark.parametrize("normalize", ["group", "l2"])
def test_normalized_features_do_not_depend_on_the_unit_of_pixels(normalize):
    X = images(3, 16, 16)
    transform = ScatteringTransform(L=4, normalize=normalize).fit(X)
    np.testing.assert_allclose(transform.transform(256 * X), transform.transform(X), atol=1e-6)
    assert np.linalg.norm(transform.transform(X), axis=1).max() <= 1 + 1e-6


@pytest.mark.parametrize("normalize", [None, "group", "l2"])
def test_blank_images_give_finite_features(normalize):
    blank = np.zeros((2, 8, 8))
    found = ScatteringTransform(L=2, normalize=normalize).fit_transform(blank)
    np.testing.assert_array_equal(found, np.zeros_like(found))


@pytest.mark.parametrize("shape", [(1, 1), (1, 5), (2, 3), (3, 40)])
def test_small_sides_give_one_sample(shape):
    transform = ScatteringTransform(L=2).fit(images(2, *shape))
    assert transform.output_shape_[:2] == tuple(max(1, side // 4) for side in shape)
    assert np.isfinite(transform.transform(images(2, *shape))).all()


def test_names_say_what_a_feature_is():
    transform = ScatteringTransform(J=3, L=2, normalize=None).fit(images(2, 16, 24, 2))
    names = transform.get_feature_names_out()
    assert len(set(names)) == len(names) == np.prod(transform.output_shape_)
    assert names[0] == "r0c0 k0 mean"
    # A wave along the rows is seen by wavelets across them: the largest coefficient names its angle and scale.
    wave = np.cos(np.arange(16) * 0.75 * np.pi)[:, None] * np.ones(24)
    one = ScatteringTransform(J=3, L=2, normalize=None).fit(wave[None])
    found = dict(zip(one.get_feature_names_out(), one.transform(wave[None])[0]))
    first = {name: found[f"r1c1 k0 {name}"] for name in ("j0a0", "j0a1", "j1a0", "j2a0")}
    assert max(first, key=first.get) == "j0a0"


def test_keeps_no_records():
    small, large = images(2, 12, 12), images(500, 12, 12)
    size = [len(pickle.dumps(ScatteringTransform(L=2).fit(X))) for X in (small, large)]
    assert size[0] == size[1]
    transform = ScatteringTransform(L=2).fit(large)
    copy = pickle.loads(pickle.dumps(transform))
    np.testing.assert_array_equal(copy.transform(small), transform.transform(small))


def test_pipeline_is_private():
    X = images(300, 8, 8)
    y = (X[:, :4].mean(axis=(1, 2)) > X[:, 4:].mean(axis=(1, 2))).astype(int)
    model = make_pipeline(
        ScatteringTransform(J=1, L=2), DPSGDClassifier(epsilon=1, classes=(0, 1), max_iter=5)
    ).fit(X, y)
    assert model.predict(X).shape == (300,)
    lines = [line for line in model[-1].privacy_.assumptions if "earlier pipeline" in line]
    assert lines == ["earlier pipeline steps did not learn from these records"]


def test_refused_fit_changes_nothing():
    X = images(3, 8, 8)
    transform = ScatteringTransform(L=2).fit(X)
    before = dict(vars(transform))
    with pytest.raises(ValueError, match="image_shape"):
        transform.set_params(image_shape=(5, 5)).fit(X)
    after = {**vars(transform), "image_shape": None}
    assert before == after


@pytest.mark.parametrize(
    ("parameters", "error", "message"),
    [
        ({"J": 0}, ValueError, "J must be"),
        ({"J": 2.0}, TypeError, "J must be"),
        ({"L": 65}, ValueError, "L must be"),
        ({"n_groups": 0}, ValueError, "n_groups must be"),
        ({"normalize": "batch"}, ValueError, "normalize must be one of"),
        ({"image_shape": 8}, TypeError, r"image_shape must be \(height, width\)"),
        ({"image_shape": (8,)}, ValueError, r"image_shape must be \(height, width\)"),
        ({"image_shape": (8, 0)}, ValueError, "each number of image_shape"),
        ({"image_shape": (8, 9)}, ValueError, r"image_shape=\(8, 9\) has 72 numbers"),
    ],
)
def test_bad_parameters(parameters, error, message):
    with pytest.raises(error, match=message):
        ScatteringTransform(**parameters).fit(images(3, 64))


def test_bad_images():
    X = images(3, 8, 8)
    transform = ScatteringTransform(L=2)
    with pytest.raises(NotFittedError):
        transform.transform(X)
    transform.fit(X)
    with pytest.raises(ValueError, match=r"images of shape \(8, 7, 1\), but fit saw \(8, 8, 1\)"):
        transform.transform(X[:, :, :7])
    with pytest.raises(ValueError, match="63 features, but ScatteringTransform is expecting 64"):
        transform.transform(X.reshape(3, -1)[:, :63])
    with pytest.raises(ValueError, match=r"images of shape \(8, 8, 1\), but image_shape=\(4, 16\)"):
        clone(transform).set_params(image_shape=(4, 16)).fit(X)
    with pytest.raises(TypeError, match=r"toarray"):
        transform.transform(csr_matrix(X.reshape(3, -1)))
    with pytest.raises(ValueError, match=r"above 1e\+15"):
        transform.transform(X * 1e16)
    with pytest.raises(ValueError, match="NaN"):
        transform.transform(np.where(X > 0.5, np.nan, X))
