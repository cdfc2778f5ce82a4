"""The data folder: where files are looked for, how bytes are checked, what is refused."""

import bz2
import gzip
import hashlib
import inspect
import lzma
import pickle
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse
from sklearn.utils import Bunch

import skdp.datasets
from skdp.datasets import (
    clear_data_home,
    fetch_a9a,
    fetch_e2006,
    fetch_farm_ads,
    fetch_kddcup98,
    fetch_mnist,
    fetch_newsgroups20,
    fetch_rcv1_binary,
    get_data_home,
    list_datasets,
)
from skdp.datasets.dataset import DataFile, official_form
from skdp.datasets.table import DATASETS

ROWS = b"-1 1:1 3:1\n+1 2:0.5\n-1 3:2\n"


def sha256(content):
    return hashlib.sha256(content).hexdigest()


class _Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass


@pytest.fixture
def server(tmp_path, monkeypatch):
    """A web server of a folder, with the paths that were asked for."""
    folder = tmp_path / "served"
    folder.mkdir()
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")
    asked = []

    class Handler(_Quiet):
        def do_GET(self):
            asked.append(self.path)
            super().do_GET()

    handler = partial(Handler, directory=str(folder))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        thread = threading.Thread(target=http.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield folder, f"http://127.0.0.1:{http.server_port}", asked
        http.shutdown()
        thread.join()


def tiny_a9a(url=None, checksums=(), path="a9a/a9a"):
    """a9a with three rows and three features, in one official form."""
    return replace(
        DATASETS["a9a"],
        n_features=4,
        n_rows={"train": 3, "test": 3},
        files={part: ((DataFile(path, checksums, url),),) for part in ("train", "test")},
    )


@pytest.fixture
def home(tmp_path, monkeypatch):
    monkeypatch.delenv("SKDP_DATA", raising=False)
    return tmp_path / "home"


def test_every_dataset_has_a_fetcher_and_a_checksum_or_a_refusal():
    unknown, nowhere = set(), set()
    for name, dataset in DATASETS.items():
        assert callable(getattr(skdp.datasets, f"fetch_{name}"))
        assert set(dataset.files) == set(dataset.n_rows)
        assert set(dataset.files) in ({"train", "test"}, {"all"})
        for part, needed in dataset.files.items():
            assert dataset.n_rows[part] > 0
            for forms in needed:
                official = official_form(forms)
                for file in forms:
                    assert file.sha256 or file is official
                    assert all(len(c) == 64 and int(c, 16) for c in file.sha256)
                if official.url is None:
                    nowhere.add(name)
                else:
                    assert official.url.startswith(("https://", "http://"))
                if not official.sha256:
                    unknown.add(name)
    # What is never downloaded, and what has no address of a form that skdp reads.
    assert unknown == {"rcv1_binary", "e2006", "farm_ads", "dorothea", "kddcup98", "newsgroups20"}
    assert nowhere == {"farm_ads", "dorothea", "kddcup98"}


def test_every_fetcher_is_public():
    fetchers = {name for name in skdp.datasets.__all__ if name.startswith("fetch_")}
    assert fetchers == {f"fetch_{name}" for name in DATASETS}
    for name in fetchers:
        function = getattr(skdp.datasets, name)
        assert pickle.loads(pickle.dumps(function)) is function
        assert function.__name__ == name
    with pytest.raises(AttributeError, match="fetch_nothing"):
        skdp.datasets.fetchers.fetch_nothing  # noqa: B018


def test_data_home(tmp_path, monkeypatch):
    monkeypatch.setenv("SKDP_DATA", str(tmp_path / "variable"))
    assert get_data_home() == str(tmp_path / "variable")
    assert (tmp_path / "variable").is_dir()
    assert get_data_home(tmp_path / "argument") == str(tmp_path / "argument")
    monkeypatch.setenv("SKDP_DATA", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert get_data_home() == str(tmp_path / "skdp_data")
    with pytest.raises(TypeError, match="data_home must be a str"):
        get_data_home(3)


def test_clear_removes_only_what_skdp_knows(home):
    known, strange = home / "a9a" / "a9a", home / "mine" / "thesis.tex"
    for path in (known, strange):
        path.parent.mkdir(parents=True)
        path.write_bytes(b"x")
    clear_data_home(home)
    assert not known.parent.exists()
    assert strange.read_bytes() == b"x"
    strange.unlink()
    strange.parent.rmdir()
    clear_data_home(home)
    assert not home.exists()


def test_list_datasets(home):
    entries = {entry["name"]: entry for entry in list_datasets(home)}
    assert set(entries) == {"rand_hie", *DATASETS}
    assert not home.exists()  # asking makes no folder
    assert entries["rand_hie"]["available"]
    assert Path(entries["rand_hie"]["files"][0]["found"]).is_file()
    assert not entries["a9a"]["available"]
    for entry in entries.values():
        assert callable(getattr(skdp.datasets, entry["function"]))
        assert entry["license"]
        assert {"subset", "path", "url", "sha256", "found"} == set(entry["files"][0])
    (home / "a9a").mkdir(parents=True)
    for name in ("a9a", "a9a.t.xz"):  # one form of each part is enough
        (home / "a9a" / name).write_bytes(b"x")
    (a9a,) = [entry for entry in list_datasets(home) if entry["name"] == "a9a"]
    assert a9a["available"]
    assert {f["path"]: f["found"] for f in a9a["files"]}["a9a/a9a"] == str(home / "a9a" / "a9a")


def test_download_then_read_from_disk(server, home, monkeypatch):
    folder, url, asked = server
    (folder / "a9a").write_bytes(ROWS)
    monkeypatch.setitem(DATASETS, "a9a", tiny_a9a(f"{url}/a9a", (sha256(ROWS),)))
    data = fetch_a9a(data_home=home)
    np.testing.assert_array_equal(data.data.toarray(), [[1, 0, 1, 0], [0, 0.5, 0, 0], [0, 0, 2, 0]])
    assert data.target.tolist() == [-1, 1, -1]
    assert data.target.dtype == np.int64
    assert (home / "a9a" / "a9a").read_bytes() == ROWS
    assert asked == ["/a9a"]
    X, y = fetch_a9a(data_home=home, return_X_y=True, subset="all", download_if_missing=False)
    assert X.shape == (6, 4)
    assert y.shape == (6,)
    assert asked == ["/a9a"]  # the second call asked nobody


def test_wrong_bytes_are_not_kept(server, home, monkeypatch):
    folder, url, _ = server
    (folder / "a9a").write_bytes(ROWS + b"-1 1:1\n")
    monkeypatch.setitem(DATASETS, "a9a", tiny_a9a(f"{url}/a9a", (sha256(ROWS),)))
    with pytest.raises(ValueError, match="does not match the known hash"):
        fetch_a9a(data_home=home)
    assert not (home / "a9a" / "a9a").exists()


def test_damaged_local_file_is_named(home, monkeypatch):
    monkeypatch.setitem(DATASETS, "a9a", tiny_a9a("http://x.invalid/a9a", (sha256(ROWS),)))
    (home / "a9a").mkdir(parents=True)
    (home / "a9a" / "a9a").write_bytes(ROWS[:-5])
    with pytest.raises(ValueError, match=r"home/a9a/a9a has the SHA256 checksum .* Remove it"):
        fetch_a9a(data_home=home)


def test_missing_and_download_forbidden(home):
    with pytest.raises(OSError, match="`download_if_missing` is False") as caught:
        fetch_a9a(data_home=home, download_if_missing=False)
    message = str(caught.value)
    assert "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets/binary/a9a" in message
    assert str(home / "a9a" / "a9a") in message


@pytest.mark.parametrize(
    ("fetch", "file", "rows"),
    [
        (fetch_e2006, "e2006/E2006.train.bz2", 16087),
        (fetch_farm_ads, "farm_ads/farm_ads.svm", 4143),
        (fetch_kddcup98, "kddcup98/cup98LRN.txt", 95412),
        (fetch_newsgroups20, "newsgroups20/20_newsgroups.tar.gz", 19997),
    ],
)
def test_without_checksum_no_download(fetch, file, rows, home, monkeypatch):
    monkeypatch.setattr("pooch.retrieve", lambda *a, **k: pytest.fail("a download was tried"))
    with pytest.raises(OSError, match="does not know the checksum") as caught:
        fetch(data_home=home)
    message = str(caught.value)
    assert str(home / file) in message
    assert f"must have {rows} rows" in message
    dataset = DATASETS[fetch.__name__.removeprefix("fetch_")]
    forms, *_ = next(iter(dataset.files.values()))
    assert (official_form(forms).url or dataset.home_page) in message


@pytest.fixture
def library(monkeypatch):
    """scikit-learn's fetch_rcv1 with six articles, and what it was asked."""
    asked = []
    found = Bunch(
        data=sparse.csr_matrix(np.arange(1.0, 7.0)[:, None]),
        target=sparse.csr_matrix(
            np.array([[1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [1, 1, 0, 0]] + [[0] * 4])
        ),
        target_names=np.array(["CCAT", "GCAT", "ECAT", "MCAT"], dtype=object),
    )

    def fetch_rcv1(**options):
        asked.append(options)
        return found

    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", fetch_rcv1)
    counts = replace(DATASETS["rcv1_binary"], n_rows={"train": 4, "test": 4})
    monkeypatch.setitem(DATASETS, "rcv1_binary", counts)
    return asked


def test_rcv1_comes_from_scikit_learn(library, home):
    """Article 5 is in both groups and article 6 in none: both are left out."""
    X, y = fetch_rcv1_binary(data_home=home, return_X_y=True, delay=0)
    assert X.toarray().ravel().tolist() == [1, 2, 3, 4]
    assert y.tolist() == [1, -1, 1, -1]
    assert y.dtype == np.int64
    (asked,) = library
    assert asked["data_home"] == home
    assert asked["subset"] == "train"
    assert asked["n_retries"] == 3
    assert asked["delay"] > 0  # scikit-learn refuses 0


def test_rcv1_files_come_first_and_rows_are_counted(library, home, monkeypatch):
    monkeypatch.setitem(DATASETS, "rcv1_binary", replace(DATASETS["rcv1_binary"], n_rows={"train": 3, "test": 3}))
    with pytest.raises(ValueError, match="has 4 rows, expected 3"):
        fetch_rcv1_binary(data_home=home)
    (home / "rcv1").mkdir(parents=True)
    (home / "rcv1" / "rcv1_train.binary.bz2").write_bytes(bz2.compress(ROWS))
    assert fetch_rcv1_binary(data_home=home).data.shape == (3, 47236)
    assert len(library) == 1


def test_rcv1_says_where_to_put_the_file(library, home, monkeypatch):
    def fail(**options):
        raise ConnectionError("no route")

    with pytest.raises(OSError, match="not in the data folder") as caught:
        fetch_rcv1_binary(data_home=home, download_if_missing=False)
    assert not library
    assert not home.exists()
    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", fail)
    with pytest.raises(OSError, match="no route") as failed:
        fetch_rcv1_binary(data_home=home)
    for message in (str(caught.value), str(failed.value)):
        assert DATASETS["rcv1_binary"].files["train"][0][0].url in message
        assert str(home / "rcv1" / "rcv1_train.binary.bz2") in message


def test_file_put_by_hand_is_checked_by_its_rows(home, monkeypatch):
    monkeypatch.setitem(DATASETS, "a9a", tiny_a9a("http://x.invalid/a9a"))
    (home / "a9a").mkdir(parents=True)
    (home / "a9a" / "a9a").write_bytes(ROWS)
    assert fetch_a9a(data_home=home).data.shape == (3, 4)
    (home / "a9a" / "a9a").write_bytes(ROWS + ROWS)
    with pytest.raises(ValueError, match="has 6 rows, expected 3"):
        fetch_a9a(data_home=home)
    (home / "a9a" / "a9a").write_bytes(ROWS.replace(b"3:2", b"9:2"))
    with pytest.raises(ValueError, match="n_features"):
        fetch_a9a(data_home=home)


def test_offline(home, monkeypatch):
    calls = []

    def fail(url, **options):
        calls.append(url)
        raise ConnectionError("no route")

    monkeypatch.setattr("pooch.retrieve", fail)
    with (
        pytest.warns(UserWarning, match="trying again"),
        pytest.raises(OSError, match="after 3 attempts") as caught,
    ):
        fetch_a9a(data_home=home, delay=0)
    assert len(calls) == 3
    message = str(caught.value)
    assert calls[0] in message
    assert str(home / "a9a" / "a9a") in message
    assert "SKDP_DATA" in message


def test_retry_succeeds(home, monkeypatch):
    monkeypatch.setitem(DATASETS, "a9a", tiny_a9a("http://x.invalid/a9a", (sha256(ROWS),)))
    calls = []

    def second_time(url, *, known_hash, fname, path):
        calls.append(known_hash)
        if len(calls) == 1:
            raise TimeoutError
        Path(path).mkdir(parents=True)
        (Path(path) / fname).write_bytes(ROWS)

    monkeypatch.setattr("pooch.retrieve", second_time)
    with pytest.warns(UserWarning, match="trying again"):
        assert fetch_a9a(data_home=home, delay=0).data.shape == (3, 4)
    assert calls == [f"sha256:{sha256(ROWS)}"] * 2


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"subset": "valid"}, ValueError, "subset must be 'train', 'test' or 'all', got 'valid'"),
        ({"n_retries": 0}, ValueError, "n_retries == 0"),
        ({"n_retries": 1.5}, TypeError, "n_retries must be an instance of"),
        ({"delay": -1}, ValueError, "delay == -1"),
        ({"data_home": 3}, TypeError, "data_home must be a str"),
    ],
)
def test_bad_arguments(options, error, message):
    with pytest.raises(error, match=message):
        fetch_a9a(**options)


def test_a_set_without_split_has_one_part():
    with pytest.raises(ValueError, match="subset must be 'all', got 'train'"):
        skdp.datasets.fetch_abalone(subset="train")


@pytest.mark.parametrize("suffix", ["", ".xz", ".bz2"])
def test_compressed_forms(suffix, home, monkeypatch):
    pack = {"": bytes, ".xz": lzma.compress, ".bz2": bz2.compress}[suffix]
    monkeypatch.setitem(DATASETS, "a9a", tiny_a9a("http://x.invalid/a9a", path=f"a9a/a9a{suffix}"))
    (home / "a9a").mkdir(parents=True)
    (home / "a9a" / f"a9a{suffix}").write_bytes(pack(ROWS))
    assert fetch_a9a(data_home=home).data.nnz == 4


def test_second_form_and_second_checksum_are_accepted(home, monkeypatch):
    """MNIST of two rows in files that were packed anew, as those of a mirror."""
    images = bytes([0, 0, 8, 3, 0, 0, 0, 2, 0, 0, 0, 28, 0, 0, 0, 28]) + bytes(range(256)) * 6
    images += bytes(1568 - 1536)
    contents = {"i.gz": gzip.compress(images), "l.gz": gzip.compress(bytes([0, 0, 8, 1, 0, 0, 0, 2, 7, 3]))}
    forms = tuple(
        (
            DataFile(f"mnist/absent-{name}", ("0" * 64,)),
            DataFile(f"mnist/{name}", ("1" * 64, sha256(content)), f"http://x.invalid/{name}"),
        )
        for name, content in contents.items()
    )
    (home / "mnist").mkdir(parents=True)
    for name, content in contents.items():
        (home / "mnist" / name).write_bytes(content)
    tiny = replace(DATASETS["mnist"], n_rows={"train": 2, "test": 2}, files={"train": forms, "test": forms})
    monkeypatch.setitem(DATASETS, "mnist", tiny)
    X, y = fetch_mnist(data_home=home, return_X_y=True)
    assert X.dtype == np.uint8
    assert X[0, :256].tolist() == list(range(256))
    assert y.tolist() == [7, 3]
    wrong = replace(tiny, n_rows={"train": 3, "test": 2})
    monkeypatch.setitem(DATASETS, "mnist", wrong)
    with pytest.raises(ValueError, match=r"not an idx file of unsigned bytes of shape \(3, 28, 28\)"):
        fetch_mnist(data_home=home)


@pytest.mark.parametrize("name", list(DATASETS))
def test_docstring_names_every_parameter(name):
    function = getattr(skdp.datasets, f"fetch_{name}")
    text = function.__doc__
    subset = inspect.signature(function).parameters["subset"].default
    choices = '{"train", "test", "all"}' if subset == "train" else '{"all"}'
    assert f'subset : {choices}, default="{subset}"' in text
    assert "{" not in text.replace(choices, "")
    for parameter in inspect.signature(function).parameters:
        assert f"\n{parameter} : " in text
    for section in ("Parameters", "Returns", "Raises", "Examples"):
        assert f"\n{section}\n{'-' * len(section)}\n" in text
    assert f">>> from skdp.datasets import fetch_{name}\n" in text
    assert max(map(len, text.splitlines())) <= 100


@pytest.mark.thorough
def test_import_is_light():
    code = (
        "import sys, skdp.datasets, skdp.preprocessing; dir(skdp.datasets);"
        "heavy = {'pooch', 'pandas', 'sklearn', 'scipy', 'requests'} & set(sys.modules);"
        "assert not heavy, heavy;"
        "from skdp.datasets import fetch_a9a, fetch_imdb, fetch_mnist, fetch_adult;"
        "from skdp.preprocessing import PublicBinsEncoder;"
        "assert 'pooch' not in sys.modules and 'numba' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_every_name_can_be_imported():
    for room in (skdp.datasets, skdp.preprocessing):
        for name in room.__all__:
            assert callable(getattr(room, name))
            assert name in dir(room)
        with pytest.raises(AttributeError, match="attribute nothing"):
            room.nothing  # noqa: B018


def test_the_lossy_copy_is_the_second_choice():
    for forms in (*DATASETS["cifar10"].files["train"], *DATASETS["cifar10"].files["test"]):
        assert forms[0] is official_form(forms)
