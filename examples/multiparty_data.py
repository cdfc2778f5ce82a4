"""
Tables for several owners, by public constants
==============================================

The multi-party experiments of Wang (2021, chapter 6) on the data that are at hand. Every constant below is public:
lists of categories and ranges that the data sets' own descriptions state, or common sense. Preparing the data thus
costs no privacy. Two steps of the paper are no public preprocessing, and are left out:

* a principal component analysis of the private rows (KDD Cup 98), and
* dividing a column, or all rows, by the largest value that the private rows hold (CMS11).

Both release something of every record, without noise. A column is divided by a public bound here, and a row that
is longer than 1 is scaled to length 1 by itself.

The documentation does not run this file. Other examples import it.
"""

import numpy as np
from sklearn.utils import Bunch

from skdp.datasets import fetch_adult, fetch_kddcup99, load_rand_hie

# ---------------------------------------------------------------- KDD Cup 99

# Values of the categorical columns, and bounds of the counts: the task's documentation and its tools.
PROTOCOLS = ["icmp", "tcp", "udp"]
FLAGS = ["OTH", "REJ", "RSTO", "RSTOS0", "RSTR", "S0", "S1", "S2", "S3", "SF", "SH"]
SERVICES = """
    IRC X11 Z39_50 aol auth bgp courier csnet_ns ctf daytime discard domain domain_u echo eco_i ecr_i efs
    exec finger ftp ftp_data gopher harvest hostnames http http_2784 http_443 http_8001 imap4 iso_tsap
    klogin kshell ldap link login mtp name netbios_dgm netbios_ns netbios_ssn netstat nnsp nntp ntp_u other
    pm_dump pop_2 pop_3 printer private red_i remote_job rje shell smtp sql_net ssh sunrpc supdup systat
    telnet tftp_u tim_i time urh_i urp_i uucp uucp_path vmnet whois
""".split()  # noqa: SIM905
DENIAL_OF_SERVICE = ["back.", "land.", "neptune.", "pod.", "smurf.", "teardrop."]
# Columns whose logarithm is taken, with their bounds: seconds of a day, bytes of 32 bits, small counts.
LOGARITHMIC = {
    "duration": 86400.0,
    "src_bytes": 2.0**32,
    "dst_bytes": 2.0**32,
    "wrong_fragment": 3.0,
    "urgent": 10.0,
    "hot": 100.0,
    "num_failed_logins": 10.0,
    "num_compromised": 1000.0,
    "num_root": 1000.0,
    "num_file_creations": 100.0,
    "num_shells": 10.0,
    "num_access_files": 10.0,
    "num_outbound_cmds": 10.0,
    "su_attempted": 2.0,
}
LINEAR = {"count": 511.0, "srv_count": 511.0, "dst_host_count": 255.0, "dst_host_srv_count": 255.0}

# ---------------------------------------------------------------- Adult

ADULT_CATEGORIES = {
    "workclass": """Private, Self-emp-not-inc, Self-emp-inc, Federal-gov, Local-gov, State-gov, Without-pay,
        Never-worked""",
    "education": """Bachelors, Some-college, 11th, HS-grad, Prof-school, Assoc-acdm, Assoc-voc, 9th, 7th-8th, 12th,
        Masters, 1st-4th, 10th, Doctorate, 5th-6th, Preschool""",
    "marital-status": """Married-civ-spouse, Divorced, Never-married, Separated, Widowed, Married-spouse-absent,
        Married-AF-spouse""",
    "occupation": """Tech-support, Craft-repair, Other-service, Sales, Exec-managerial, Prof-specialty,
        Handlers-cleaners, Machine-op-inspct, Adm-clerical, Farming-fishing, Transport-moving, Priv-house-serv,
        Protective-serv, Armed-Forces""",
    "relationship": "Wife, Own-child, Husband, Not-in-family, Other-relative, Unmarried",
    "race": "White, Asian-Pac-Islander, Amer-Indian-Eskimo, Other, Black",
    "sex": "Female, Male",
    "native-country": """United-States, Cambodia, England, Puerto-Rico, Canada, Germany,
        Outlying-US(Guam-USVI-etc), India, Japan, Greece, South, China, Cuba, Iran,
        Honduras, Philippines, Italy, Poland, Jamaica, Vietnam, Mexico, Portugal,
        Ireland, France, Dominican-Republic, Laos, Ecuador, Taiwan, Haiti, Columbia,
        Hungary, Guatemala, Nicaragua, Scotland, Thailand, Yugoslavia, El-Salvador,
        Trinadad&Tobago, Peru, Hong, Holand-Netherlands""",
}
ADULT_BOUNDS = {"age": 100.0, "education-num": 16.0, "hours-per-week": 100.0}
ADULT_LOGARITHMIC = {"capital-gain": 1e5, "capital-loss": 1e4}

# ---------------------------------------------------------------- RAND health insurance experiment

# The code book's ranges; a cost of 100,000 dollars a year is the bound of log(1 + dollars).
HIE_BOUNDS = {
    "coins": 100.0, "tookphys": 1.0, "year": 5.0, "black": 1.0, "income": 30000.0, "xage": 100.0,
    "female": 1.0, "educdec": 25.0, "time": 5.0, "num": 15.0, "mhi": 100.0, "disea": 60.0,
    "physlm": 1.0, "ghindx": 100.0, "mdeoff": 1000.0, "pioff": 1000.0, "child": 1.0, "fchild": 1.0,
    "lfam": 3.0, "lpi": 8.0, "idp": 1.0, "logc": 5.0, "fmde": 9.0, "hlthg": 1.0, "hlthf": 1.0,
    "hlthp": 1.0, "xghindx": 100.0, "linc": 11.0, "lnum": 3.0,
}  # fmt: skip
HIE_COST = (0.0, float(np.log1p(1e5)))


def one_hot(column, values):
    """One column of zeros and ones for each public value; a value outside of the list gives zeros."""
    return (np.asarray(column, dtype=str)[:, None] == np.array(values)[None, :]).astype(np.float64)


def logarithm(column, bound):
    """log(1 + x) over its public bound, in [0, 1]."""
    return np.clip(np.log1p(np.maximum(column, 0.0)) / np.log1p(bound), 0.0, 1.0)


def to_unit_ball(X):
    """Scale every row that is longer than 1 to length 1: a function of this row alone."""
    return X / np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1.0)


def split(X, y, n_train, n_test):
    """A random part for training and one for tests; the same for all methods."""
    order = np.random.default_rng(0).permutation(len(y))[: n_train + n_test]
    train, test = order[:n_train], order[n_train:]
    return Bunch(X=X[train], y=y[train], X_test=X[test], y_test=y[test])


def load_kddcup99():
    """KDD Cup 99: a denial of service or not, 50,000 and 20,000 rows of 122 features."""
    data = fetch_kddcup99(subset="train")
    order = np.random.default_rng(0).permutation(len(data.target))[:70_000]
    rows, columns = data.data[order], []
    for j, name in enumerate(data.feature_names):
        values = rows[:, j]
        if name in ("protocol_type", "service", "flag"):
            listed = {"protocol_type": PROTOCOLS, "service": SERVICES, "flag": FLAGS}[name]
            columns.append(one_hot(values, listed))
        elif name in LOGARITHMIC:
            columns.append(logarithm(values.astype(np.float64), LOGARITHMIC[name])[:, None])
        else:
            columns.append(np.clip(values.astype(np.float64) / LINEAR.get(name, 1.0), 0, 1)[:, None])
    y = np.isin(data.target[order], DENIAL_OF_SERVICE).astype(np.int64)
    return split(to_unit_ball(np.hstack(columns)), y, 50_000, 20_000)


def load_adult():
    """Adult: 45,222 rows without missing values, 30,000 and 15,222 of them, 104 features."""
    data = fetch_adult(subset="all", as_frame=True)
    known = data.data.notna().all(axis=1)
    table, income = data.data[known], np.asarray(data.target[known])
    columns = [
        one_hot(table[name], [value.strip() for value in values.split(",")])
        for name, values in ADULT_CATEGORIES.items()
    ]
    for name, bound in ADULT_BOUNDS.items():
        columns.append(np.clip(table[name].to_numpy(float) / bound, 0, 1)[:, None])
    for name, bound in ADULT_LOGARITHMIC.items():
        columns.append(logarithm(table[name].to_numpy(float), bound)[:, None])
    y = np.char.startswith(income.astype(str), ">").astype(np.int64)
    return split(to_unit_ball(np.hstack(columns)), y, 30_000, 15_222)


def load_rand():
    """RAND: a person-year's log medical cost, six sites as owners, 48 features.

    All years of a person are in one part: 70 % of the persons are for training.
    """
    frame = load_rand_hie(target="log_medical_cost", as_frame=True)
    table = frame.data
    columns = [one_hot(table["plan"].to_numpy(int), list(range(1, 20)))]
    for name, bound in HIE_BOUNDS.items():
        values = np.nan_to_num(table[name].to_numpy(float))
        columns.append(np.clip(values / bound, -1, 1)[:, None])
    X, y = to_unit_ball(np.hstack(columns)), np.asarray(frame.target, dtype=np.float64)
    persons, code = np.unique(np.asarray(frame.person), return_inverse=True)
    train = np.random.default_rng(0).random(len(persons))[code] < 0.7
    site = np.asarray(frame.site)[train]
    return Bunch(X=X[train], y=y[train], X_test=X[~train], y_test=y[~train], site=site)
