"""The table of data sets: their descriptions, and the readers of their files.

``data/files.tsv`` lists the files, their addresses and checksums. A file may be in the data folder in several
forms (the official one, a recompressed one). Each form has its own checksums. A form without a known checksum or
address is never downloaded: the user puts it in place, and the number of rows is checked instead.

Checksums of recompressed files were taken from the project's own copies. Checksums of official files: a9a, ijcnn1,
adult, MNIST, Fashion-MNIST, IMDb, CIFAR-10, SVHN, Spambase and Brown were found alike in several independent
public registries. KDD Cup 99 10 % has the checksum of scikit-learn. ``corrected.gz`` was found in one registry.
Reuters, Abalone, Housing and the stop words have the checksums of the copies at their addresses.
"""

from dataclasses import replace
from importlib import resources
from itertools import groupby

from skdp.datasets import readers
from skdp.datasets.dataset import DataFile, Dataset, Forms

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_UCI_PAGE = "https://archive.ics.uci.edu/dataset"

_SPARSE = "csr_matrix or sparse DataFrame of shape (n_rows, {}), float64"
_SIGNS = "ndarray or Series, int64, -1 or 1"
_PIXELS = (
    "ndarray or DataFrame of shape (n_rows, 784), uint8: rows of the image one after the other, "
    "0 to 255; divide by 255 for floats"
)
_COLOURS = (
    "ndarray or DataFrame of shape (n_rows, 3072), uint8: the red, green and blue image, each row by row, "
    "0 to 255. Nets and `ScatteringTransform` take the channels last: "
    "``data.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)`` of an array"
)
_BY_HAND = (
    "skdp knows no checksum of these files and does not download them: put them in the folder by "
    "hand, as the error says."
)


def _files() -> dict[str, dict[str, tuple[Forms, ...]]]:
    """The files of every data set, by subset, from ``data/files.tsv``."""
    text = resources.files("skdp.datasets.data").joinpath("files.tsv").read_text(encoding="utf-8")
    rows = (line.split("\t") for line in text.splitlines() if not line.startswith("#"))
    found: dict[str, dict[str, tuple[Forms, ...]]] = {}
    for (name, subset, _), group in groupby(rows, key=lambda row: tuple(row[:3])):
        forms = tuple(
            DataFile(path, tuple(sha256.split(",")) if sha256 else (), url or None)
            for *_, path, url, sha256 in group
        )
        parts = found.setdefault(name, {})
        parts[subset] = (*parts.get(subset, ()), forms)
    return found


_DESCRIBED = {
    "a9a": Dataset(
        title="Adult census income, 123 binary features (LIBSVM a9a)",
        home_page=f"{_LIBSVM}/binary.html#a9a",
        license="CC BY 4.0 (UCI Adult); none stated by LIBSVM",
        n_features=123,
        n_rows={"train": 32561, "test": 16281},
        read=readers.read_libsvm,
        summary="a9a: census income above 50,000 dollars, 123 binary features",
        description="32,561 training and 16,281 test rows, 13.9 ones in a row on average. The "
        "records come from UCI Adult; sensitive are race, sex, marital status and income.",
        data=_SPARSE.format(123),
        target=_SIGNS,
    ),
    "ijcnn1": Dataset(
        title="IJCNN 2001 challenge, 22 features (LIBSVM ijcnn1, training and validation rows)",
        home_page=f"{_LIBSVM}/binary.html#ijcnn1",
        license="none stated (the copy's repository: BSD-3-Clause)",
        n_features=22,
        n_rows={"train": 49990, "test": 91701},
        read=readers.read_libsvm,
        summary="ijcnn1: the IJCNN 2001 challenge, 22 features",
        description="49,990 training rows (LIBSVM's ijcnn1.tr, then ijcnn1.val) and 91,701 test "
        "rows; about one row in ten has label 1.",
        data=_SPARSE.format(22),
        target=_SIGNS,
    ),
    "rcv1_binary": Dataset(
        title="Reuters RCV1, CCAT and ECAT against GCAT and MCAT (LIBSVM rcv1.binary)",
        home_page=f"{_LIBSVM}/binary.html#rcv1.binary",
        license="research use, as Reuters licensed RCV1; none stated by LIBSVM",
        n_features=47236,
        n_rows={"train": 20242, "test": 677399},
        read=readers.read_libsvm,
        library=readers.read_rcv1_by_sklearn,
        summary="RCV1 (binary): news of Reuters, 47,236 tf-idf features",
        description="20,242 training and 677,399 test rows. skdp knows no checksum of LIBSVM's "
        "files and does not download them. Where they are not in the folder, the rows come from "
        ":func:`sklearn.datasets.fetch_rcv1`, which keeps large files of its own there: the articles "
        "in CCAT or ECAT (label 1) and those in GCAT or MCAT (label -1), without those in both. "
        "The number of rows is checked; their order may differ from LIBSVM's.",
        data=_SPARSE.format(47236),
        target=_SIGNS,
    ),
    "e2006": Dataset(
        title="Volatility from 10-K reports, tf-idf (LIBSVM E2006-tfidf)",
        home_page=f"{_LIBSVM}/regression.html#E2006-tfidf",
        license="none stated",
        n_features=150360,
        n_rows={"train": 16087, "test": 3308},
        read=readers.read_libsvm,
        summary="E2006-tfidf: volatility of stock returns from 10-K reports, 150,360 features",
        description=f"16,087 training and 3,308 test rows. {_BY_HAND}",
        data=_SPARSE.format(150360),
        target="ndarray or Series, float64, log volatility",
        target_name="target",
    ),
    "adult": Dataset(
        title="Adult census income, 14 original columns (UCI)",
        home_page=f"{_UCI_PAGE}/2/adult",
        license="CC BY 4.0",
        n_features=14,
        n_rows={"train": 32561, "test": 16281},
        read=readers.read_adult,
        summary="UCI Adult: census income above 50,000 dollars, 14 original columns",
        description="32,561 training and 16,281 test rows of the census of 1994. Sensitive are "
        "race, sex, marital status, country of birth and income; ``fnlwgt`` is a survey weight, "
        "not a feature of a person.",
        data="object ndarray or DataFrame of shape (n_rows, 14): int and str columns, missing strings are NaN",
        target='"<=50K" or ">50K"',
        target_name="income",
    ),
    "kddcup99": Dataset(
        title="KDD Cup 1999 network intrusion: 10 % training file, labelled test file",
        home_page="https://kdd.ics.uci.edu/databases/kddcup99/kddcup99.html",
        license="CC BY 4.0 (UCI)",
        n_features=41,
        n_rows={"train": 494021, "test": 311029},
        read=readers.read_kddcup99,
        summary="KDD Cup 1999: simulated network intrusions, 41 columns",
        description="Train is the 10 % file (494,021 rows, 23 labels), test the labelled test file "
        "``corrected.gz`` (311,029 rows, 38 labels, some of them not in the training file).",
        data="object ndarray or DataFrame of shape (n_rows, 41): int, float and str columns",
        target='str such as "normal." and "smurf.", as the file writes them',
    ),
    "kddcup98": Dataset(
        title="KDD Cup 1998: donations to a charity by mail, 478 columns (learning file)",
        home_page="https://kdd.ics.uci.edu/databases/kddcup98/kddcup98.html",
        license="none stated for new uses; the donor asks to be named",
        n_features=478,
        n_rows={"all": 95412},
        read=readers.read_kddcup98,
        summary="KDD Cup 1998: what people of a mailing list donated, 478 columns",
        description="The 95,412 rows of the learning file: American veterans who had donated before. skdp "
        "knows no checksum of the file and does not download it: unpack ``cup98lrn.zip`` of the home page "
        "into the folder. The number of rows is checked. The identifier ``CONTROLN`` and both targets are "
        "no features. A column whose cells are all numbers or blank is float64, any other str; blank is NaN.",
        data="object ndarray or DataFrame of shape (n_rows, 478): float and str columns",
        target="ndarray or Series, float64: dollars, most of them 0 (``TARGET_D``)",
        target_name="TARGET_D",
    ),
    "mnist": Dataset(
        title="MNIST handwritten digits, 28 x 28",
        home_page="http://yann.lecun.com/exdb/mnist/",
        license="CC BY-SA 3.0, as its mirrors state",
        n_features=784,
        n_rows={"train": 60000, "test": 10000},
        read=readers.read_mnist,
        summary="MNIST: handwritten digits, 28 x 28 pixels",
        description="60,000 training and 10,000 test images.",
        data=_PIXELS,
        target="int64, 0 to 9",
    ),
    "fashion_mnist": Dataset(
        title="Fashion-MNIST articles of clothing, 28 x 28",
        home_page="https://github.com/zalandoresearch/fashion-mnist",
        license="MIT",
        n_features=784,
        n_rows={"train": 60000, "test": 10000},
        read=readers.read_mnist,
        summary="Fashion-MNIST: articles of clothing, 28 x 28 pixels",
        description="60,000 training and 10,000 test images; labels 0 T-shirt, 1 trouser, "
        "2 pullover, 3 dress, 4 coat, 5 sandal, 6 shirt, 7 sneaker, 8 bag, 9 ankle boot.",
        data=_PIXELS,
        target="int64, 0 to 9",
    ),
    "imdb": Dataset(
        title="IMDb film reviews with sentiment (Maas et al. 2011)",
        home_page="https://ai.stanford.edu/~amaas/data/sentiment/",
        license="none stated; cite Maas et al. (2011)",
        n_features=None,
        n_rows={"train": 25000, "test": 25000},
        read=readers.read_imdb,
        summary="IMDb film reviews: texts with a negative or positive rating",
        description="25,000 training and 25,000 test reviews, negative before positive: shuffle "
        "before you split. A person may have written several, so hiding one review does not hide "
        "its author.",
        data="list or Series of str",
        target="ndarray or Series, int64: 0 negative, 1 positive",
        also="``rating`` (ndarray or Series, int64: 1 to 4 negative, 7 to 10 positive; never a feature)",
    ),
    "abalone": Dataset(
        title="Abalone: rings from measures of the shell, 8 features (LIBSVM abalone, scaled)",
        home_page=f"{_LIBSVM}/regression.html#abalone",
        license="CC BY 4.0 (UCI Abalone)",
        n_features=8,
        n_rows={"all": 4177},
        read=readers.read_libsvm,
        summary="Abalone: the number of rings of a shell, 8 features in [-1, 1]",
        description="4,177 rows without a split. Few entries are zero: use ``data.toarray()``.",
        data=_SPARSE.format(8),
        target="ndarray or Series, float64, 1 to 29 rings",
        target_name="target",
    ),
    "housing": Dataset(
        title="Boston housing, 13 features (LIBSVM housing_scale)",
        home_page=f"{_LIBSVM}/regression.html#housing",
        license="none stated (the copy's repository: Apache-2.0)",
        n_features=13,
        n_rows={"all": 506},
        read=readers.read_libsvm,
        summary="Boston housing: the median price of homes, 13 features in [-1, 1]",
        description="506 rows without a split. A small set for tests of regression. One feature "
        "was made from the share of Black inhabitants of a town: show no results on it as advice.",
        data=_SPARSE.format(13),
        target="ndarray or Series, float64, thousands of dollars, 5 to 50",
        target_name="target",
    ),
    "spambase": Dataset(
        title="Spambase: e-mail, spam or not, 57 features (UCI)",
        home_page=f"{_UCI_PAGE}/94/spambase",
        license="CC BY 4.0",
        n_features=57,
        n_rows={"all": 4601},
        read=readers.read_spambase,
        summary="Spambase: e-mail, spam or not, 57 features",
        description="4,601 rows without a split, spam first: shuffle before you split. The mail "
        "that is no spam came from one workplace, so ``word_freq_george`` is a name.",
        data="ndarray or DataFrame of shape (n_rows, 57), float64: percentages of words and "
        "characters, and lengths of runs of capitals",
        target="ndarray or Series, int64: 1 spam, 0 not",
    ),
    "reuters_lasvm": Dataset(
        title="Reuters-21578, one category against the rest, 8,315 words (paper of LASVM)",
        home_page="https://github.com/X-DataInitiative/tick-datasets",
        license="none stated (the copy's repository: BSD-3-Clause)",
        n_features=8315,
        n_rows={"train": 7770, "test": 3299},
        read=readers.read_libsvm,
        summary="Reuters (LASVM): news in one category or not, 8,315 words",
        description="7,770 training and 3,299 test rows with values like tf-idf; about one row in "
        "fifteen has label 1. The copy does not name the category.",
        data=_SPARSE.format(8315),
        target=_SIGNS,
    ),
    "farm_ads": Dataset(
        title="Farm Ads: advertisements, accepted or not, 54,877 binary words (UCI)",
        home_page=f"{_UCI_PAGE}/218/farm+ads",
        license="CC BY 4.0",
        n_features=54877,
        n_rows={"all": 4143},
        read=readers.read_libsvm,
        summary="Farm Ads: advertisements on farm animals, 54,877 binary words",
        description=f"4,143 rows without a split, 197 words in a row on average. {_BY_HAND}",
        data=_SPARSE.format(54877),
        target=f"{_SIGNS}: the owner of the page accepts the advertisement",
    ),
    "dorothea": Dataset(
        title="Dorothea: molecules that bind to thrombin, 100,000 binary features (NIPS 2003)",
        home_page=f"{_UCI_PAGE}/169/dorothea",
        license="CC BY 4.0",
        n_features=100000,
        n_rows={"train": 800, "test": 350},
        read=readers.read_libsvm,
        summary="Dorothea: molecules that bind to thrombin or not, 100,000 binary features",
        description="800 training rows, and the 350 validation rows of the challenge as test; one "
        f"row in ten has label 1, and half of the features are probes without meaning. {_BY_HAND}",
        data=_SPARSE.format("100000"),
        target=_SIGNS,
    ),
    "cifar10": Dataset(
        title="CIFAR-10, 32 x 32 colour images of ten kinds",
        home_page="https://www.cs.toronto.edu/~kriz/cifar.html",
        license="none stated; cite Krizhevsky (2009)",
        n_features=3072,
        n_rows={"train": 50000, "test": 10000},
        read=readers.read_cifar10,
        summary="CIFAR-10: colour images of ten kinds, 32 x 32 pixels",
        description="50,000 training and 10,000 test images; labels 0 airplane, 1 automobile, "
        "2 bird, 3 cat, 4 deer, 5 dog, 6 frog, 7 horse, 8 ship, 9 truck. A folder may hold JPEG "
        "copies (``cifar10_jpeg.tar.xz``, needs pillow) in place of the original archive: their "
        "pixels differ a little, and their rows are sorted by label.",
        data=_COLOURS,
        target="int64, 0 to 9",
    ),
    "svhn": Dataset(
        title="SVHN, 32 x 32 colour images of house numbers",
        home_page="http://ufldl.stanford.edu/housenumbers/",
        license="non-commercial use only; cite Netzer et al. (2011)",
        n_features=3072,
        n_rows={"train": 73257, "test": 26032},
        read=readers.read_svhn,
        summary="SVHN: colour images of the digits of house numbers, 32 x 32 pixels",
        description="73,257 training and 26,032 test images of format 2, a digit in the middle of each. "
        "Their 531,131 easier images are not loaded. Labels are the digits: 10 in the files is 0 here.",
        data=_COLOURS,
        target="int64, 0 to 9",
    ),
    "newsgroups20": Dataset(
        title="20 newsgroups, 19,997 articles with their headers (UCI)",
        home_page=f"{_UCI_PAGE}/113/twenty+newsgroups",
        license="CC BY 4.0 (UCI)",
        n_features=None,
        n_rows={"all": 19997},
        read=readers.read_newsgroups20,
        summary="20 newsgroups: articles with their headers",
        description="19,997 articles without a split, sorted by group: shuffle before you split. "
        "The headers name their authors and often the group; for a split by date and clean texts "
        f"see :func:`sklearn.datasets.fetch_20newsgroups`. {_BY_HAND}",
        data="list or Series of str",
        target='ndarray or Series of str: the group, such as "alt.atheism"',
    ),
    "brown": Dataset(
        title="Brown corpus: 500 American texts of 1961, and English stop words (NLTK)",
        home_page="https://www.nltk.org/nltk_data/",
        license="non-commercial use (Brown); none stated (stop words)",
        n_features=None,
        n_rows={"all": 500},
        read=readers.read_brown,
        summary="the Brown corpus: 500 American texts of 1961",
        description="1,161,192 words and signs in 15 genres, without a split. One line is a "
        "sentence, its words separated by blanks and without their tags.",
        data="list or Series of str",
        target='ndarray or Series of str: the genre, such as "news"',
        also="``stop_words`` (list of 179 English words)",
    ),
}

_FILES = _files()
DATASETS = {name: replace(entry, files=_FILES[name]) for name, entry in _DESCRIBED.items()}
