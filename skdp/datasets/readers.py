"""Readers of the files' formats: paths in, a dict with ``data`` and ``target`` out.

Every reader takes the paths of one part, the name of the part and the entry of the table. Data are
an array, a sparse matrix, a dict of columns, or a list of texts.
"""

import bz2
import csv
import gzip
import io
import lzma
import tarfile
import zipfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix
from sklearn.datasets import load_svmlight_file

from skdp.datasets.dataset import Dataset

Paths = Sequence[Path]
Read = dict[str, Any]

_OPENERS: dict[str, Callable[..., Any]] = {".xz": lzma.open, ".bz2": bz2.open, ".gz": gzip.open}


def _open(path: Path, mode: str = "rb", **options: object) -> Any:
    """Open a plain or packed file by the end of its name."""
    return _OPENERS.get(path.suffix, open)(path, mode, **options)


# ---------------------------------------------------------------- rows of numbers


def read_libsvm(paths: Paths, part: str, dataset: Dataset) -> Read:
    """Sparse rows; the number of features is given, as a file may lack the last columns."""
    with _open(paths[0]) as stream:
        X, y = load_svmlight_file(stream, n_features=dataset.n_features, zero_based=False)
    return {"data": X, "target": y.astype(np.int64) if dataset.target_name == "label" else y}


def read_rcv1_by_sklearn(part: str, **options: Any) -> Read:
    """RCV1 by scikit-learn, with the labels of LIBSVM's rcv1.binary.

    Label 1 is CCAT or ECAT, label -1 is GCAT or MCAT; rows that are in both groups are left out.
    """
    from sklearn.datasets import fetch_rcv1

    if not options["download_if_missing"] and not Path(options["data_home"], "RCV1").is_dir():
        raise FileNotFoundError("it is not in the data folder")
    # scikit-learn refuses a delay of 0.
    found = fetch_rcv1(subset=part, **{**options, "delay": max(options["delay"], 1e-9)})
    positions = {topic: place for place, topic in enumerate(found.target_names)}
    topics = csr_matrix(found.target)

    def among(*names: str) -> np.ndarray:
        return np.asarray(topics[:, [positions[name] for name in names]].sum(axis=1)).ravel() > 0

    positive, negative = among("CCAT", "ECAT"), among("GCAT", "MCAT")
    rows = np.flatnonzero(positive != negative)
    return {"data": csr_matrix(found.data)[rows], "target": np.where(positive[rows], 1, -1).astype(np.int64)}


def read_spambase(paths: Paths, part: str, dataset: Dataset) -> Read:
    """Comma-separated numbers, the label last."""
    with _open(paths[0], "rt", encoding="ascii") as stream:
        table = np.loadtxt(stream, delimiter=",", ndmin=2)
    words = (
        "make address all 3d our over remove internet order mail receive will people report "
        "addresses free business email you credit your font 000 money hp hpl george 650 lab labs "
        "telnet 857 data 415 85 technology 1999 parts pm direct cs meeting original project re "
        "edu table conference"
    )
    names = [f"word_freq_{word}" for word in words.split()]
    names += [f"char_freq_{character}" for character in ";([!$#"]
    names += [f"capital_run_length_{kind}" for kind in ("average", "longest", "total")]
    X, y = np.ascontiguousarray(table[:, :-1]), table[:, -1].astype(np.int64)
    return {"data": X, "target": y, "feature_names": names}


# ---------------------------------------------------------------- images


def _read_idx(path: Path, shape: tuple[int, ...]) -> np.ndarray:
    """One idx file: two zero bytes, type, number of axes, big-endian sizes, then the bytes."""
    unsigned_byte = 8  # the only type of these files
    with gzip.open(path, "rb") as stream:
        content = stream.read()
    start = 4 + 4 * len(shape)
    header = bytes([0, 0, unsigned_byte, len(shape)]) + np.array(shape, ">u4").tobytes()
    if content[:start] != header or len(content) != start + int(np.prod(shape)):
        raise ValueError(f"{path} is not an idx file of unsigned bytes of shape {shape}.")
    return np.frombuffer(content, dtype=np.uint8, offset=start).reshape(shape)


def read_mnist(paths: Paths, part: str, dataset: Dataset) -> Read:
    """MNIST and Fashion-MNIST: a file of images and a file of labels."""
    rows = dataset.n_rows[part]
    return {
        "data": _read_idx(paths[0], (rows, 28, 28)).reshape(rows, 784),
        "target": _read_idx(paths[1], (rows,)).astype(np.int64),
        "feature_names": [f"pixel_{row}_{column}" for row in range(28) for column in range(28)],
    }


def read_cifar10(paths: Paths, part: str, dataset: Dataset) -> Read:
    """The binary archive of Toronto, or an archive of JPEG copies in one folder a class."""
    read = _read_jpegs if paths[0].suffix == ".xz" else _read_cifar_batches
    images, labels = read(paths[0], part)
    return {"data": images, "target": labels.astype(np.int64), "feature_names": _colour_names()}


def read_svhn(paths: Paths, part: str, dataset: Dataset) -> Read:
    """A MATLAB file: X of shape (row, column, colour, image), and y with 10 for the digit 0."""
    from scipy.io import loadmat

    found = loadmat(paths[0], variable_names=["X", "y"])
    images, labels = np.asarray(found["X"]), np.asarray(found["y"]).ravel()
    rows = labels.size
    if images.shape != (32, 32, 3, rows) or images.dtype != np.uint8:
        raise ValueError(f"{paths[0]} holds no colour images of 32 x 32 pixels with labels.")
    data = np.ascontiguousarray(images.transpose(3, 2, 0, 1)).reshape(rows, 3072)
    target = labels.astype(np.int64) % 10
    return {"data": data, "target": target, "feature_names": _colour_names()}


def _colour_names() -> list[str]:
    """Names of the numbers of a colour image of 32 x 32 pixels."""
    return [
        f"{colour}_{row}_{column}"
        for colour in ("red", "green", "blue")
        for row in range(32)
        for column in range(32)
    ]


def _read_cifar_batches(path: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Batches of records: one byte for the label, then the red, green and blue bytes."""
    wanted = "test_batch" if part == "test" else "data_batch_"
    batches = {name: content for name, content in _members(path) if Path(name).name.startswith(wanted)}
    content = b"".join(batches[name] for name in sorted(batches))
    records = np.frombuffer(content, dtype=np.uint8).reshape(-1, 3073)
    return records[:, 1:].copy(), records[:, 0]


def _read_jpegs(path: Path, part: str) -> tuple[np.ndarray, np.ndarray]:
    """Files ``part/class/number.jpg``, in the order of their names."""
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError(f"{path} holds JPEG files: pip install pillow") from error
    found = {}
    for name, content in _members(path):
        folder, label, _ = name.split("/")
        if folder == part:
            pixels = np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))
            found[name] = (label, pixels.transpose(2, 0, 1).reshape(3072))
    classes = sorted({label for label, _ in found.values()})
    images = np.array([found[name][1] for name in sorted(found)], dtype=np.uint8)
    return images, np.array([classes.index(found[name][0]) for name in sorted(found)])


def _members(path: Path) -> Iterator[tuple[str, bytes]]:
    """Name and content of each file in a tar archive."""
    with tarfile.open(path) as archive:
        for member in archive:
            stream = archive.extractfile(member)
            if stream is not None:
                yield member.name, stream.read()


# ---------------------------------------------------------------- columns of several types

_ADULT = {
    "age": np.int64,
    "workclass": object,
    "fnlwgt": np.int64,
    "education": object,
    "education-num": np.int64,
    "marital-status": object,
    "occupation": object,
    "relationship": object,
    "race": object,
    "sex": object,
    "capital-gain": np.int64,
    "capital-loss": np.int64,
    "hours-per-week": np.int64,
    "native-country": object,
}

_KDD_COUNTS = (
    "src_bytes dst_bytes land wrong_fragment urgent hot num_failed_logins logged_in "
    "num_compromised root_shell su_attempted num_root num_file_creations num_shells "
    "num_access_files num_outbound_cmds is_host_login is_guest_login count srv_count"
)
_KDD_RATES = "serror srv_serror rerror srv_rerror same_srv diff_srv srv_diff_host"
_KDD_HOST_RATES = "same_srv diff_srv same_src_port srv_diff_host serror srv_serror rerror srv_rerror"
_KDD_COLUMNS: list[tuple[str, Any]] = (
    [("duration", np.int64)]
    + [(name, "U16") for name in ("protocol_type", "service", "flag")]
    + [(name, np.int64) for name in _KDD_COUNTS.split()]
    + [(f"{name}_rate", np.float64) for name in _KDD_RATES.split()]
    + [(name, np.int64) for name in ("dst_host_count", "dst_host_srv_count")]
    + [(f"dst_host_{name}_rate", np.float64) for name in _KDD_HOST_RATES.split()]
    + [("label", "U24")]
)


def read_adult(paths: Paths, part: str, dataset: Dataset) -> Read:
    """UCI Adult; a question mark is a missing value."""
    with _open(paths[0], "rt", encoding="ascii", newline="") as stream:
        # The test file begins with a remark, and both end with an empty line.
        rows = [r for r in csv.reader(stream, skipinitialspace=True) if len(r) == len(_ADULT) + 1]
    *cells, labels = zip(*rows)
    columns = {}
    for (name, dtype), column in zip(_ADULT.items(), cells):
        values = [np.nan if dtype is object and cell == "?" else cell for cell in column]
        columns[name] = np.array(values, dtype=dtype)
    # The labels of the test file end with a dot.
    target = np.array([label.rstrip(".") for label in labels], dtype=object)
    return {"data": columns, "target": target}


def read_kddcup99(paths: Paths, part: str, dataset: Dataset) -> Read:
    """KDD Cup 1999, as the files write it: the labels end with a dot."""
    table = np.loadtxt(paths[0], dtype=np.dtype(_KDD_COLUMNS), delimiter=",", comments=None, encoding="ascii")
    columns = {
        name: table[name].astype(object) if isinstance(kind, str) else table[name] for name, kind in _KDD_COLUMNS
    }
    return {"target": columns.pop("label"), "data": columns}


def read_kddcup98(paths: Paths, part: str, dataset: Dataset) -> Read:
    """KDD Cup 1998: a line of names, then rows; a blank cell is a missing value."""
    with _open(paths[0], "rt", encoding="latin-1", newline="") as stream:
        names, *rows = csv.reader(stream)
    columns = dict(zip((name.strip() for name in names), zip(*rows)))
    target = np.array(columns.pop("TARGET_D"), dtype=np.float64)
    for name in ("TARGET_B", "CONTROLN"):
        columns.pop(name)
    return {"data": {name: _cells(column) for name, column in columns.items()}, "target": target}


def _cells(column: Sequence[str]) -> np.ndarray:
    """Numbers where all cells are numbers or blank, else strings; blank is NaN."""
    cells = [cell.strip() for cell in column]
    try:
        return np.array([float(cell or "nan") for cell in cells])
    except ValueError:
        return np.array([cell or np.nan for cell in cells], dtype=object)


# ---------------------------------------------------------------- texts


def read_imdb(paths: Paths, part: str, dataset: Dataset) -> Read:
    """Reviews of a table, or of the official archive."""
    read = _read_imdb_table if paths[0].suffix == ".xz" else _read_imdb_archive
    labels, ratings, texts = zip(*read(paths[0], part))
    return {
        "data": list(texts),
        "target": np.array(labels, dtype=np.int64),
        "rating": np.array(ratings, dtype=np.int64),
    }


def _read_imdb_table(path: Path, part: str) -> Iterator[tuple[int, int, str]]:
    # Split at \n only: the texts hold other line separators, U+0085 for one.
    _, *lines = _open(path).read().decode("utf-8").split("\n")
    for line in filter(None, lines):
        label, rating, _, text = line.split("\t", 3)
        yield int(label), int(rating), text


def _read_imdb_archive(path: Path, part: str) -> Iterator[tuple[int, int, str]]:
    """The labelled reviews of one part: negative before positive, each by their numbers."""
    found = []
    for name, content in _members(path):
        folders = name.split("/")
        if len(folders) == 4 and folders[1] == part and folders[2] in ("neg", "pos"):
            number, rating = folders[3].removesuffix(".txt").split("_")
            label = int(folders[2] == "pos")
            found.append((label, int(number), int(rating), content.decode("utf-8")))
    return ((label, rating, text) for label, _, rating, text in sorted(found))


def read_newsgroups20(paths: Paths, part: str, dataset: Dataset) -> Read:
    """Files ``folder/group/number``, by group and number."""
    found = {}
    for name, content in _members(paths[0]):
        group, number = name.split("/")[-2:]
        # The articles name no encoding; Latin-1 reads every byte.
        found[group, int(number)] = content.decode("latin-1")
    return {
        "data": [found[key] for key in sorted(found)],
        "target": np.array([group for group, _ in sorted(found)], dtype=object),
    }


def read_brown(paths: Paths, part: str, dataset: Dataset) -> Read:
    """Words without their tags: one line a sentence, one blank between words."""
    with zipfile.ZipFile(paths[0]) as archive:
        genres = dict(line.split() for line in archive.read("brown/cats.txt").decode("ascii").splitlines())
        texts = [archive.read(f"brown/{name}").decode("ascii") for name in sorted(genres)]
    with zipfile.ZipFile(paths[1]) as archive:
        stop_words = archive.read("stopwords/english").decode("ascii").split()
    sentences = ([line.split() for line in text.splitlines() if line.split()] for text in texts)
    documents = [
        "\n".join(" ".join(word.rsplit("/", 1)[0] for word in words) for words in document)
        for document in sentences
    ]
    target = np.array([genres[name] for name in sorted(genres)], dtype=object)
    return {"data": documents, "target": target, "stop_words": stop_words}
