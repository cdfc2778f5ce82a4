"""Which files make up a data set, where they come from and what their bytes must hash to.

A file may stand in the data folder in several forms (the official one, a recompressed one); each
form has its own checksums. A form without a known checksum is never downloaded: the user puts it in
place and the number of rows is checked instead.

Checksums of recompressed files are those of the project's own copies. Checksums of official files:
a9a, ijcnn1, adult, MNIST, Fashion-MNIST and IMDb were found alike in several independent public
registries; KDD Cup 99 10 % is the one of scikit-learn; ``corrected.gz`` was found in one registry.
"""

from dataclasses import dataclass

__all__ = ["DATASETS", "DataFile", "Dataset"]

_LIBSVM = "https://www.csie.ntu.edu.tw/~cjlin/libsvmtools/datasets"
_UCI_ADULT = "https://archive.ics.uci.edu/ml/machine-learning-databases/adult"
_MNIST = "https://storage.googleapis.com/cvdf-datasets/mnist"
_FASHION = "http://fashion-mnist.s3-website.eu-central-1.amazonaws.com"
_TICK = "https://raw.githubusercontent.com/X-DataInitiative/tick-datasets/master/binary/ijcnn1"


@dataclass(frozen=True)
class DataFile:
    """One form of one file; the first checksum is that of `url`."""

    path: str
    sha256: tuple[str, ...] = ()
    url: str | None = None


@dataclass(frozen=True)
class Dataset:
    """`files[subset]` lists the needed files, each as a tuple of forms; any one form will do."""

    title: str
    home_page: str
    license: str
    n_features: int | None
    n_rows: dict[str, int]
    files: dict[str, tuple[tuple[DataFile, ...], ...]]


def _idx_files(
    folder: str, base: str, checksums: dict[str, tuple[str, ...]]
) -> dict[str, tuple[tuple[DataFile, ...], ...]]:
    def part(prefix: str) -> tuple[tuple[DataFile, ...], ...]:
        names = (f"{prefix}-images-idx3-ubyte.gz", f"{prefix}-labels-idx1-ubyte.gz")
        return tuple(
            (DataFile(f"{folder}/{name}", checksums[name], f"{base}/{name}"),) for name in names
        )

    return {"train": part("train"), "test": part("t10k")}


_ACL_IMDB = DataFile(
    "imdb/aclImdb_v1.tar.gz",
    ("c40f74a18d3b61f90feba1e17730e0d38e8b97c05fde7008942e91923d1658fe",),
    "https://ai.stanford.edu/~amaas/data/sentiment/aclImdb_v1.tar.gz",
)

DATASETS: dict[str, Dataset] = {
    "a9a": Dataset(
        title="Adult census income, 123 binary features (LIBSVM a9a)",
        home_page=f"{_LIBSVM}/binary.html#a9a",
        license="CC BY 4.0 (UCI Adult); none stated by LIBSVM",
        n_features=123,
        n_rows={"train": 32561, "test": 16281},
        files={
            "train": (
                (
                    DataFile(
                        "a9a/a9a.xz",
                        ("cea7c541c650d123ac692cb8e2244d1c2e82f67c75cbfeccdb25a4b6fc88ef72",),
                    ),
                    DataFile(
                        "a9a/a9a",
                        ("f5d5ffd8d865ff41328e7ee043e4b020816914ff6843ff15b98905ddbedce906",),
                        f"{_LIBSVM}/binary/a9a",
                    ),
                ),
            ),
            "test": (
                (
                    DataFile(
                        "a9a/a9a.t.xz",
                        ("11dcdf09d2c3502c1e972986b8d8022b5adf895311e41e37e06e26ebc1ef45f3",),
                    ),
                    DataFile(
                        "a9a/a9a.t",
                        ("1f448a153f0320399a7e40836eb207655b0bde0f21fc941cc472193daa9f5de9",),
                        f"{_LIBSVM}/binary/a9a.t",
                    ),
                ),
            ),
        },
    ),
    "ijcnn1": Dataset(
        title="IJCNN 2001 challenge, 22 features (LIBSVM ijcnn1, training and validation rows)",
        home_page=f"{_LIBSVM}/binary.html#ijcnn1",
        license="none stated (the copy's repository: BSD-3-Clause)",
        n_features=22,
        n_rows={"train": 49990, "test": 91701},
        files={
            "train": (
                (
                    DataFile(
                        "ijcnn1/ijcnn1.bz2",
                        ("b38a4198ce142d43e96fb86d17b87211feec1f909ac344fa057455c69de29de3",),
                        f"{_TICK}/ijcnn1.trn.bz2",
                    ),
                ),
            ),
            "test": (
                (
                    DataFile(
                        "ijcnn1/ijcnn1.t.bz2",
                        ("acd1db430684fdd3f0c768ecc49aa8e749d0004fc117611220c2aa576a7b6a24",),
                        f"{_TICK}/ijcnn1.tst.bz2",
                    ),
                ),
            ),
        },
    ),
    "rcv1_binary": Dataset(
        title="Reuters RCV1, CCAT and ECAT against GCAT and MCAT (LIBSVM rcv1.binary)",
        home_page=f"{_LIBSVM}/binary.html#rcv1.binary",
        license="research use, as Reuters licensed RCV1; none stated by LIBSVM",
        n_features=47236,
        n_rows={"train": 20242, "test": 677399},
        files={
            "train": (
                (
                    DataFile(
                        "rcv1/rcv1_train.binary.bz2", (), f"{_LIBSVM}/binary/rcv1_train.binary.bz2"
                    ),
                ),
            ),
            "test": (
                (
                    DataFile(
                        "rcv1/rcv1_test.binary.bz2", (), f"{_LIBSVM}/binary/rcv1_test.binary.bz2"
                    ),
                ),
            ),
        },
    ),
    "e2006": Dataset(
        title="Volatility from 10-K reports, tf-idf (LIBSVM E2006-tfidf)",
        home_page=f"{_LIBSVM}/regression.html#E2006-tfidf",
        license="none stated",
        n_features=150360,
        n_rows={"train": 16087, "test": 3308},
        files={
            "train": (
                (DataFile("e2006/E2006.train.bz2", (), f"{_LIBSVM}/regression/E2006.train.bz2"),),
            ),
            "test": (
                (DataFile("e2006/E2006.test.bz2", (), f"{_LIBSVM}/regression/E2006.test.bz2"),),
            ),
        },
    ),
    "adult": Dataset(
        title="Adult census income, 14 original columns (UCI)",
        home_page="https://archive.ics.uci.edu/dataset/2/adult",
        license="CC BY 4.0",
        n_features=14,
        n_rows={"train": 32561, "test": 16281},
        files={
            "train": (
                (
                    DataFile(
                        "adult/adult.data.xz",
                        ("03c5722d4eaeaa2962f81284344def3c5150dadc6ddf841fcbb57f233371445c",),
                    ),
                    DataFile(
                        "adult/adult.data",
                        ("5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",),
                        f"{_UCI_ADULT}/adult.data",
                    ),
                ),
            ),
            "test": (
                (
                    DataFile(
                        "adult/adult.test.xz",
                        ("45248f451a46bace9a234ece542aeadb66ea52e3c078f136d4b2c069cb38b1cd",),
                    ),
                    DataFile(
                        "adult/adult.test",
                        ("a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",),
                        f"{_UCI_ADULT}/adult.test",
                    ),
                ),
            ),
        },
    ),
    "kddcup99": Dataset(
        title="KDD Cup 1999 network intrusion: 10 % training file, labelled test file",
        home_page="https://kdd.ics.uci.edu/databases/kddcup99/kddcup99.html",
        license="CC BY 4.0 (UCI)",
        n_features=41,
        n_rows={"train": 494021, "test": 311029},
        files={
            "train": (
                (
                    DataFile(
                        "kddcup99/kddcup.data_10_percent.gz",
                        ("8045aca0d84e70e622d1148d7df782496f6333bf6eb979a1b0837c42a9fd9561",),
                        "https://ndownloader.figshare.com/files/5976042",
                    ),
                ),
            ),
            "test": (
                (
                    DataFile(
                        "kddcup99/corrected.gz",
                        (
                            "abd8165508378859b07e38537271f0ebf8a4d7319f643188cd7361e939a05c43",
                            "74f0daef49b242badc09f2adbd457dea6a45b4f77177efbd11216d333651044b",
                        ),
                        "http://kdd.ics.uci.edu/databases/kddcup99/corrected.gz",
                    ),
                ),
            ),
        },
    ),
    "mnist": Dataset(
        title="MNIST handwritten digits, 28 x 28",
        home_page="http://yann.lecun.com/exdb/mnist/",
        license="CC BY-SA 3.0, as its mirrors state",
        n_features=784,
        n_rows={"train": 60000, "test": 10000},
        files=_idx_files(
            "mnist",
            _MNIST,
            {
                "train-images-idx3-ubyte.gz": (
                    "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
                    "71524e2cd1ad2968737f7f2f2ff69cbfc32df8ccddff51593f7cb2d4e0eb5b64",
                ),
                "train-labels-idx1-ubyte.gz": (
                    "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
                    "fe03b8bd7915f70bf5aa08be480aa413fbd85afcaa58b35d230d335f284fd88e",
                ),
                "t10k-images-idx3-ubyte.gz": (
                    "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
                    "5634745efa576a17e7d4cf5cd9d09123c75e6538e5114267c2d156edaf519341",
                ),
                "t10k-labels-idx1-ubyte.gz": (
                    "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
                    "ae18e77e031ccde52407f794d123116439864147d33ac992975f85dd4dc42af6",
                ),
            },
        ),
    ),
    "fashion_mnist": Dataset(
        title="Fashion-MNIST articles of clothing, 28 x 28",
        home_page="https://github.com/zalandoresearch/fashion-mnist",
        license="MIT",
        n_features=784,
        n_rows={"train": 60000, "test": 10000},
        files=_idx_files(
            "fashion_mnist",
            _FASHION,
            {
                "train-images-idx3-ubyte.gz": (
                    "3aede38d61863908ad78613f6a32ed271626dd12800ba2636569512369268a84",
                    "b0564c3eedabfbf835052cff8503ea422014ce006caf5b757f851416ee8300c7",
                ),
                "train-labels-idx1-ubyte.gz": (
                    "a04f17134ac03560a47e3764e11b92fc97de4d1bfaf8ba1a3aa29af54cc90845",
                    "0ae29f65d86684f32d1b9c85147786c547b9c6aebcaf235f0400a0cce308b056",
                ),
                "t10k-images-idx3-ubyte.gz": (
                    "346e55b948d973a97e58d2351dde16a484bd415d4595297633bb08f03db6a073",
                    "cc1d090a38ace84dfa1aa66e3ada7c336ef481a96936906477e6dd344da56eaa",
                ),
                "t10k-labels-idx1-ubyte.gz": (
                    "67da17c76eaffca5446c3361aaab5c3cd6d1c2608764d35dfb1850b086bf8dd5",
                    "8d3605d196f4be44669e46906da9733c8131fef761fdbfec72c424d5222f1a05",
                ),
            },
        ),
    ),
    "imdb": Dataset(
        title="IMDb film reviews with sentiment (Maas et al. 2011)",
        home_page="https://ai.stanford.edu/~amaas/data/sentiment/",
        license="none stated; cite Maas et al. (2011)",
        n_features=None,
        n_rows={"train": 25000, "test": 25000},
        files={
            "train": (
                (
                    DataFile(
                        "imdb/imdb_train.tsv.xz",
                        ("53d5d4c4ebe1036c7f64d6941acdec646343f960888d7aa5949e35d99585f9c7",),
                    ),
                    _ACL_IMDB,
                ),
            ),
            "test": (
                (
                    DataFile(
                        "imdb/imdb_test.tsv.xz",
                        ("c0d2f66f97f3f3829c5c88da904cb6cc725e241cc63b273585c0aae5fabf7189",),
                    ),
                    _ACL_IMDB,
                ),
            ),
        },
    ),
}
