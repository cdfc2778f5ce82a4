"""Files of a few rows in each format, with the oddities of the real ones."""

import io
import lzma
import tarfile
import zipfile
from dataclasses import replace

import numpy as np
import pytest
from scipy.io import savemat

from skdp.datasets import (
    fetch_adult,
    fetch_brown,
    fetch_cifar10,
    fetch_imdb,
    fetch_kddcup98,
    fetch_kddcup99,
    fetch_newsgroups20,
    fetch_spambase,
    fetch_svhn,
)
from skdp.datasets.dataset import DataFile
from skdp.datasets.table import DATASETS

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
        # A part of several files has several entries: "all", "all 2".
        files = {}
        for part, (path, content) in contents.items():
            target = tmp_path / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(content)
            needed = files.setdefault(part.split()[0], ())
            files[part.split()[0]] = (*needed, (DataFile(path, (), "http://x.invalid"),))
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
    monkeypatch.setitem(DATASETS, "adult", replace(DATASETS["adult"], n_rows={"train": 3, "test": 1}))
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


def test_kddcup98(place):
    text = "ODATEDW,STATE ,CONTROLN,TARGET_B,TARGET_D,AGE\n8901,IL,95515,0,0,60\n9401,,148535,1,4.5, \n"
    home = place("kddcup98", {"all": ("kddcup98/cup98LRN.txt", text.encode())}, {"all": 2})
    data = fetch_kddcup98(data_home=home)
    assert data.feature_names == ["ODATEDW", "STATE", "AGE"]  # neither the identifier nor a target
    assert data.data[0].tolist() == [8901.0, "IL", 60.0]
    assert np.isnan(data.data[1, 1])
    assert np.isnan(data.data[1, 2])
    assert data.target.tolist() == [0.0, 4.5]


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


def tar(contents, mode):
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode=mode) as archive:
        for name, content in contents.items():
            info = tarfile.TarInfo(name)
            info.size = len(content)
            archive.addfile(info, io.BytesIO(content))
    return packed.getvalue()


def test_cifar10_archive(place):
    """Two batches of one record each, not in their order; the test batch is another part."""
    record = {label: bytes([label]) + bytes([label]) * 3072 for label in (0, 3, 9)}
    files = {"data_batch_2": record[3], "test_batch": record[9], "data_batch_1": record[0]}
    packed = tar({f"cifar-10-batches-bin/{k}.bin": v for k, v in files.items()}, "w:gz")
    contents = dict.fromkeys(("train", "test"), ("cifar10/c.tar.gz", packed))
    home = place("cifar10", contents, {"train": 2, "test": 1})
    data = fetch_cifar10(data_home=home, subset="all")
    assert data.target.tolist() == [0, 3, 9]
    assert data.data.shape == (3, 3072)
    assert data.data.dtype == np.uint8
    assert data.data[:, 0].tolist() == [0, 3, 9]
    assert data.feature_names[1024] == "green_0_0"
    assert data.data.flags.writeable


def test_cifar10_jpegs(place):
    image = pytest.importorskip("PIL.Image")

    def jpeg(colour):
        stream = io.BytesIO()
        image.new("RGB", (32, 32), colour).save(stream, "jpeg")
        return stream.getvalue()

    files = {"train/b/1.jpg": (0, 0, 255), "train/a/2.jpg": (255, 0, 0), "test/a/1.jpg": (9, 9, 9)}
    packed = tar({name: jpeg(colour) for name, colour in files.items()}, "w:xz")
    home = place("cifar10", {"train": ("cifar10/j.tar.xz", packed)}, {"train": 2})
    X, y = fetch_cifar10(data_home=home, return_X_y=True)
    assert y.tolist() == [0, 1]
    assert X[0, 0] > 250  # red stands first
    assert X[0, -1] < 5
    assert X[1, 0] < 5
    assert X[1, -1] > 250


def mat(images, labels):
    stream = io.BytesIO()
    savemat(stream, {"X": images, "y": labels}, do_compression=True)
    return stream.getvalue()


def test_svhn(place):
    """Labels of the file are 1 to 10, and 10 is the digit 0."""
    images = np.random.default_rng(0).integers(0, 256, (32, 32, 3, 4)).astype(np.uint8)
    contents = {
        "train": ("svhn/a.mat", mat(images, np.array([[1], [10], [9], [2]], dtype=np.uint8))),
        "test": ("svhn/b.mat", mat(images[..., :1], np.array([[10]], dtype=np.uint8))),
    }
    home = place("svhn", contents, {"train": 4, "test": 1})
    data = fetch_svhn(data_home=home)
    assert data.target.tolist() == [1, 0, 9, 2]
    assert data.target.dtype == np.int64
    assert data.data.dtype == np.uint8
    for name, row, column, colour in (("red_0_0", 0, 0, 0), ("green_3_31", 3, 31, 1), ("blue_31_2", 31, 2, 2)):
        at = data.feature_names.index(name)
        assert data.data[:, at].tolist() == images[row, column, colour].tolist()
    assert fetch_svhn(data_home=home, subset="all").target.tolist() == [1, 0, 9, 2, 0]
    contents = {"train": ("svhn/c.mat", mat(images[..., 0], np.ones((1, 1))))}
    home = place("svhn", contents, {"train": 1})
    with pytest.raises(ValueError, match="no colour images"):
        fetch_svhn(data_home=home)


def test_newsgroups20(place):
    files = {"x/sci.med/10": b"Ten \xe9", "x/sci.med/9": b"Nine", "x/alt.atheism/3": b"Three"}
    packed = tar(files, "w:xz")
    home = place("newsgroups20", {"all": ("newsgroups20/n.tar.xz", packed)}, {"all": 3})
    data = fetch_newsgroups20(data_home=home)
    assert data.data == ["Three", "Nine", "Ten \u00e9"]
    assert data.target.tolist() == ["alt.atheism", "sci.med", "sci.med"]
    pytest.importorskip("pandas")
    frame = fetch_newsgroups20(data_home=home, as_frame=True).frame
    assert list(frame.columns) == ["text", "label"]


def archive_of(contents):
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, content in contents.items():
            archive.writestr(name, content)
    return packed.getvalue()


def test_brown(place):
    corpus = archive_of(
        {
            "brown/cats.txt": "cb01 lore\nca01 news\n",
            "brown/ca01": "\n\tThe/at jury/nn 1\\/2/cd ,/,\n\n\nsaid/vbd ./.\n",
            "brown/cb01": "a/at\n",
        }
    )
    words = archive_of({"stopwords/english": "i\nme\n"})
    contents = {"all": ("brown/b.zip", corpus), "all 2": ("brown/s.zip", words)}
    data = fetch_brown(data_home=place("brown", contents, {"all": 2}))
    assert data.data == ["The jury 1\\/2 ,\nsaid .", "a"]
    assert data.target.tolist() == ["news", "lore"]
    assert data.stop_words == ["i", "me"]


def test_spambase(place):
    row = ",".join(["0.5"] * 55 + ["61", "278", "1"])
    contents = {"all": ("spambase/s.data.xz", lzma.compress(row.encode()))}
    data = fetch_spambase(data_home=place("spambase", contents, {"all": 1}))
    assert data.data.shape == (1, 57)
    assert data.target.tolist() == [1]
    assert len(set(data.feature_names)) == 57
    assert data.feature_names[-1] == "capital_run_length_total"
    assert data.data[0, -1] == 278
