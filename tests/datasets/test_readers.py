"""Files of a few rows in each format, with the oddities of the real ones."""

import io
import lzma
import tarfile
from dataclasses import replace

import numpy as np
import pytest

from skdp.datasets import fetch_adult, fetch_imdb, fetch_kddcup99
from skdp.datasets._registry import DATASETS, DataFile

ADULT_TRAIN = (
    "39, State-gov, 77516, Bachelors, 13, Never-married, Adm-clerical, Not-in-family, White, Male,"
    " 2174, 0, 40, United-States, <=50K\n"
    "54, ?, 180211, Some-college, 10, Married-civ-spouse, ?, Husband, Asian-Pac-Islander, Male, 0,"
    " 0, 60, South, >50K\n\n"
)
ADULT_TEST = (
    "|1x3 Cross validator\n"
    "25, Private, 226802, 11th, 7, Never-married, Machine-op-inspct, Own-child, Black, Male, 0, 0,"
    " 40, ?, <=50K.\n"
)
KDD = (
    "0,udp,private,SF,105,146," + "0," * 16 + "1,1," + "0.00," * 4 + "1.00,0.00,0.00,255,254,1.00,"
    "0.01," + "0.00," * 6 + "normal.\n"
    "7,tcp,http#x,S0,0,0," + "0," * 16 + "2,3," + "0.50," * 7 + "1,2," + "0.25," * 8 + "smurf.\n"
)
REVIEWS = {  # (part, folder, number, rating): text with line separators that are no line ends
    ("train", "neg", 10, 2): "Bad\u0085film",
    ("train", "neg", 9, 1): "Worse \u2028 <br />",
    ("train", "pos", 0, 10): 'A "fine" film',
    ("test", "pos", 1, 7): "Fair",
    ("train", "unsup", 0, 0): "no label",
}


@pytest.fixture
def place(tmp_path, monkeypatch):
    """Put the content of one data set's files into the folder and register them."""

    def put(name, contents, rows):
        files = {}
        for part, (path, content) in contents.items():
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            files[part] = ((DataFile(path, (), "http://x.invalid"),),)
        monkeypatch.setitem(DATASETS, name, replace(DATASETS[name], n_rows=rows, files=files))
        return tmp_path

    return put


@pytest.fixture
def adult(place):
    contents = {
        "train": ("adult/adult.data.xz", lzma.compress(ADULT_TRAIN.encode())),
        "test": ("adult/adult.test", ADULT_TEST.encode()),
    }
    return place("adult", contents, {"train": 2, "test": 1})


def test_adult(adult):
    data = fetch_adult(data_home=adult, subset="all")
    assert data.data.shape == (3, 14)
    assert data.data[0].tolist()[:5] == [39, "State-gov", 77516, "Bachelors", 13]
    assert isinstance(data.data[0, 0], int)
    assert np.isnan(data.data[1, 1])
    assert np.isnan(data.data[2, 13])
    assert data.target.tolist() == ["<=50K", ">50K", "<=50K"]  # the dot of the test file is gone
    assert data.feature_names[4] == "education-num"


def test_adult_frame(adult):
    pytest.importorskip("pandas")
    data = fetch_adult(data_home=adult, as_frame=True)
    assert data.frame.shape == (2, 15)
    assert data.data["age"].tolist() == [39, 54]
    assert data.data["age"].dtype == np.int64
    assert data.data["workclass"].isna().tolist() == [False, True]
    assert data.target.name == "income"


def test_adult_rows_are_counted(adult, monkeypatch):
    monkeypatch.setitem(
        DATASETS, "adult", replace(DATASETS["adult"], n_rows={"train": 3, "test": 1})
    )
    with pytest.raises(ValueError, match="has 2 rows, expected 3"):
        fetch_adult(data_home=adult)


def test_kddcup99(place):
    home = place("kddcup99", {"train": ("kddcup99/k.gz", b"")}, {"train": 2})
    import gzip

    (home / "kddcup99" / "k.gz").write_bytes(gzip.compress(KDD.encode()))
    data = fetch_kddcup99(data_home=home)
    assert data.data.shape == (2, 41)
    assert data.data[0].tolist()[:6] == [0, "udp", "private", "SF", 105, 146]
    assert data.data[1, 2] == "http#x"  # nothing is a comment
    assert data.data[1, 24] == 0.5
    assert data.data[1, 31:33].tolist() == [1, 2]
    assert data.target.tolist() == ["normal.", "smurf."]
    pytest.importorskip("pandas")
    frame = fetch_kddcup99(data_home=home, as_frame=True).frame
    assert frame["dst_host_srv_count"].tolist() == [254, 2]
    assert frame["duration"].dtype == np.int64
    assert frame["serror_rate"].dtype == np.float64


def imdb_tsv(part):
    lines = ["label\trating\tid\ttext"]
    for (where, folder, number, rating), text in sorted(REVIEWS.items()):
        if where == part and folder != "unsup":
            lines.append(f"{int(folder == 'pos')}\t{rating}\t{folder}/{number}\t{text}")
    return lzma.compress(("\n".join(lines) + "\n").encode())


def imdb_archive():
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for (part, folder, number, rating), text in REVIEWS.items():
            info = tarfile.TarInfo(f"aclImdb/{part}/{folder}/{number}_{rating}.txt")
            info.size = len(text.encode())
            archive.addfile(info, io.BytesIO(text.encode()))
        archive.addfile(tarfile.TarInfo("aclImdb/README"), io.BytesIO())
    return packed.getvalue()


@pytest.mark.parametrize("form", ["table", "archive"])
def test_imdb(place, form):
    if form == "table":
        contents = {part: (f"imdb/{part}.tsv.xz", imdb_tsv(part)) for part in ("train", "test")}
    else:
        contents = {part: ("imdb/acl.tar.gz", imdb_archive()) for part in ("train", "test")}
    home = place("imdb", contents, {"train": 3, "test": 1})
    data = fetch_imdb(data_home=home, subset="all")
    assert sorted(data.data[:2]) == ["Bad\u0085film", "Worse \u2028 <br />"]
    assert data.data[2:] == ['A "fine" film', "Fair"]
    assert data.target.tolist() == [0, 0, 1, 1]
    assert sorted(data.rating[:2]) == [1, 2]
    assert data.rating[2:].tolist() == [10, 7]
    if form == "archive":
        assert data.rating[:2].tolist() == [1, 2]  # number 9 stands before number 10
    texts, labels = fetch_imdb(data_home=home, subset="test", return_X_y=True)
    assert (texts, labels.tolist()) == (["Fair"], [1])
    pytest.importorskip("pandas")
    frame = fetch_imdb(data_home=home, as_frame=True).frame
    assert list(frame.columns) == ["text", "label", "rating"]
    with pytest.raises(ValueError, match="expected 4"):
        place("imdb", contents, {"train": 4, "test": 1})
        fetch_imdb(data_home=home)
