"""RAND Health Insurance Experiment: real medical use, bundled with the package.

20,190 person-years of 5,912 people at six sites; public domain. The module also holds the public
bins that the demonstration uses.
"""

import lzma
from importlib.resources import files
from typing import Any

import numpy as np

from skdp.datasets.bunch import import_pandas, make_bunch

_MODULE = "skdp.datasets.data"
_FILE = "rand_hie.csv.xz"
# The columns that may be features: no outcome of the year (visits, admissions, dollars), not the identifier zper,
# and not its leading digit, the site.
_FEATURES = [
    "plan", "coins", "tookphys", "year", "black", "income", "xage", "female",
    "educdec", "time", "num", "mhi", "disea", "physlm", "ghindx", "mdeoff",
    "pioff", "child", "fchild", "lfam", "lpi", "idp", "logc", "fmde",
    "hlthg", "hlthf", "hlthp", "xghindx", "linc", "lnum",
]  # fmt: skip

_TARGETS = {
    "any_visit": lambda column: (column("mdvis") > 0).astype(np.int64),
    "n_visits": lambda column: column("mdvis").astype(np.int64),
    "log_medical_cost": lambda column: np.log1p(column("meddol")),
}

# Round numbers of the code book and of common sense, not quantiles of the records.
_BINS = {
    "income": [1000, 2500, 4000, *range(5000, 11000, 1000), 12000, 14000, 17000, 20000],
    "xage": [1, 2, 3, 4, 5, 6, 8, 10, 12, 14, 16, 18, 20, 22, 25, 28, *range(30, 65, 5)],
    "educdec": [6, *range(8, 19)],
    "num": list(range(2, 11)),
    "mhi": [40, *range(50, 100, 5)],
    "disea": [2, 5, 7.5, 10, 12.5, 15, 20, 25, 30, 40],
    "xghindx": [30, 40, 50, *range(60, 100, 5)],
    "mdeoff": [1, 150, 300, 450, 600, 750, 900, 1000],
    "pioff": [1, 50, *range(100, 1100, 100)],
    "physlm": [0.05, 0.5],
    "black": [0.1, 0.9],
    "tookphys": [0.5],
    "female": [0.5],
    "idp": [0.5],
    "hlthg": [0.5],
    "hlthf": [0.5],
    "hlthp": [0.5],
}
_CATEGORIES = {"plan": list(range(1, 20)), "coins": [0, 25, 50, 95, 100], "year": [1, 2, 3, 4, 5]}
_CROSSES = [("xage", "female")]


def _read_table() -> tuple[list[str], np.ndarray]:
    packed = files(_MODULE).joinpath(_FILE).read_bytes()
    header, *lines = lzma.decompress(packed).decode("ascii").splitlines()
    rows = [[float(cell or "nan") for cell in line.split(",")] for line in lines]
    return header.split(","), np.array(rows)


def load_rand_hie(*, target: str = "any_visit", return_X_y: bool = False, as_frame: bool = False) -> Any:
    """Load the RAND Health Insurance Experiment: 20,190 person-years, 30 features.

    The rows are real medical histories, released to the public domain. A row is a person-year; most
    people have three or five rows, so split by person and say which unit a privacy claim protects.

    Parameters
    ----------
    target : {"any_visit", "n_visits", "log_medical_cost"}, default="any_visit"
        What to predict: whether the person saw a physician that year (int, 0 or 1), how often
        (int), or log(1 + medical spending in dollars) (float).
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.
    as_frame : bool, default=False
        Return pandas objects; needs pandas.

    Returns
    -------
    data : :class:`~sklearn.utils.Bunch`
        Dictionary-like object with the following attributes.

        data : ndarray or DataFrame of shape (20190, 30), float64
            The features; missing values are NaN. No outcome, identifier or site is among them.
        target : ndarray or Series of shape (20190,)
            The chosen target.
        person : ndarray or Series of shape (20190,), int64
            Identifier of the person: the unit of user-level privacy (``groups=``) and of splits.
        site : ndarray or Series of shape (20190,), int64
            Site 1 to 6: six data owners for multi-party work. Never a feature: it says where a person lives.
        frame : DataFrame of shape (20190, 31) or None
            `data` and `target` together, with ``as_frame=True``.
        feature_names, target_names : list of str
            Names of the columns and of the target.
        DESCR : str
            Source, license, variables, and sensitive columns.
        filename, data_module : str
            The file inside the package.
    (data, target) : tuple
        With ``return_X_y=True``.

    Raises
    ------
    ValueError
        An unknown `target`.

    See Also
    --------
    rand_hie_bins : Public bins for these columns.

    References
    ----------
    Manning et al. (1987), "Health insurance and the demand for medical care: evidence from a randomized
    experiment", American Economic Review 77(3). Cameron and Trivedi (2005), *Microeconometrics*, chapter 20.

    Examples
    --------
    Split by person, so that no one is in both parts:

    >>> from sklearn.model_selection import GroupShuffleSplit
    >>> from skdp.datasets import load_rand_hie
    >>> hie = load_rand_hie()
    >>> hie.data.shape
    (20190, 30)
    >>> splitter = GroupShuffleSplit(n_splits=1, test_size=0.25, random_state=None)
    >>> train, test = next(splitter.split(hie.data, hie.target, groups=hie.person))
    >>> set(hie.person[train]) & set(hie.person[test])
    set()
    """
    if target not in _TARGETS:
        raise ValueError(f"target must be one of {sorted(_TARGETS)}, got {target!r}.")
    names, table = _read_table()
    place = {name: position for position, name in enumerate(names)}
    person = table[:, place["zper"]].astype(np.int64)
    site = table[:, place["site"]].astype(np.int64)
    if as_frame:
        pandas = import_pandas()
        person, site = pandas.Series(person, name="person"), pandas.Series(site, name="site")
    return make_bunch(
        np.ascontiguousarray(table[:, [place[name] for name in _FEATURES]]),
        _TARGETS[target](lambda name: table[:, place[name]]),
        target_name=target,
        feature_names=_FEATURES,
        return_X_y=return_X_y,
        as_frame=as_frame,
        person=person,
        site=site,
        DESCR=files(_MODULE).joinpath("rand_hie.rst").read_text(encoding="utf-8"),
        filename=_FILE,
        data_module=_MODULE,
    )


def rand_hie_bins(*, as_frame: bool = False) -> dict[str, Any]:
    """Public bins, categories and crosses for :func:`load_rand_hie`.

    They are round numbers of the code book, chosen without the records: parameters of
    :class:`skdp.preprocessing.PublicBinsEncoder` that give 263 sparse columns, 21 ones in each row.
    A non-private logistic regression on them predicts ``any_visit`` of new people with an AUC of 0.73.

    Parameters
    ----------
    as_frame : bool, default=False
        Name columns by their names (for ``load_rand_hie(as_frame=True)``), else by position.

    Returns
    -------
    parameters : dict
        ``bins``, ``categories`` and ``crosses``.

    Examples
    --------
    >>> from skdp.datasets import load_rand_hie, rand_hie_bins
    >>> from skdp.preprocessing import PublicBinsEncoder
    >>> X, y = load_rand_hie(return_X_y=True)
    >>> PublicBinsEncoder(**rand_hie_bins()).fit_transform(X).shape
    (20190, 263)
    """
    keys: dict[str, object] = {name: name for name in (*_BINS, *_CATEGORIES)}
    if not as_frame:
        keys = {name: _FEATURES.index(name) for name in keys}
    return {
        "bins": {keys[name]: list(edges) for name, edges in _BINS.items()},
        "categories": {keys[name]: list(values) for name, values in _CATEGORIES.items()},
        "crosses": [tuple(keys[name] for name in cross) for cross in _CROSSES],
    }
