"""
AUC against epsilon, for records and for persons
================================================

This example predicts a doctor's visit from insurance records by models that protect a record, or a person. The
records are the RAND Health Insurance Experiment (20,190 person-years of 5,912 people), which is bundled with skdp.
A quarter of the people is kept for testing.

Two privacy units are compared. ``unit="record"`` protects one row, that is, one year of one person.
``unit="group"`` protects everything that a person has in the data, mostly three or five years: a stronger
promise, hence more noise for the same epsilon.
"""

# %%
# The records as they are
# -----------------------
# Thirty columns of counts, money, ages and 0/1 answers, in their own units, and some values are missing. Nothing
# is scaled or filled in: `DPLogisticRegression` releases what it needs, and pays for it.

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skdp import DPLogisticRegression
from skdp.datasets import load_rand_hie

# Seeds make these figures repeatable. Each seeded fit warns.
warnings.filterwarnings("ignore", "random_state is a seed")

hie = load_rand_hie(target="any_visit")
X, y, person = hie.data, hie.target, hie.person
# A seed repeats the figure. With private groups it is None, so that no label of a group moves other groups.
splitter = GroupShuffleSplit(n_splits=1, test_size=0.25, random_state=0)
train, test = next(splitter.split(X, y, groups=person))
print(f"{train.size} person-years of {np.unique(person[train]).size} people for training")

# %%
# The model without privacy
# -------------------------

exact = make_pipeline(SimpleImputer(), StandardScaler(), LogisticRegression(max_iter=2000))
exact.fit(X[train], y[train])
ceiling = roc_auc_score(y[test], exact.decision_function(X[test]))
print(f"non-private AUC {ceiling:.3f}")

# %%
# Private models
# --------------
# Nothing is tuned: every fit uses the defaults. The seeds make this page reproducible; a seed is for
# documentation and tests only, because whoever knows it can subtract the noise.

EPSILONS = [0.25, 0.5, 1.0, 2.0, 4.0, 8.0]
SEEDS = range(5)
UNITS = {"record": {}, "group": {"groups": person[train]}}


def private_auc(epsilon, unit, seed):
    """AUC on new people of one private fit."""
    model = DPLogisticRegression(epsilon=epsilon, classes=[0, 1], unit=unit, random_state=seed)
    model.fit(X[train], y[train], **UNITS[unit])
    return roc_auc_score(y[test], model.decision_function(X[test]))


scores = {
    unit: np.array([[private_auc(epsilon, unit, seed) for seed in SEEDS] for epsilon in EPSILONS])
    for unit in UNITS
}
for unit, table in scores.items():
    errors = table.std(axis=1, ddof=1) / np.sqrt(len(SEEDS))
    for epsilon, row, error in zip(EPSILONS, table, errors):
        print(f"unit={unit:<7} epsilon={epsilon:<5} AUC {row.mean():.3f} +- {error:.3f}")

# %%
# AUC of the private models
# -------------------------
# Points are means over the seeds, bars are standard errors. Some points lie a little above the dashed line. Both
# are scored on the same 5,042 person-years, where an AUC has a standard error of 0.008: such a difference is not
# significant.

names = {"record": "a person-year is protected", "group": "a person is protected"}
styles = {"record": ("C0", "o"), "group": ("C1", "s")}
fig, ax = plt.subplots(figsize=(7, 4.2), layout="constrained")
for unit, table in scores.items():
    error = table.std(axis=1, ddof=1) / np.sqrt(len(SEEDS))
    color, marker = styles[unit]
    ax.errorbar(
        EPSILONS, table.mean(axis=1), yerr=error, label=names[unit],
        color=color, marker=marker, capsize=3,
    )  # fmt: skip
ax.axhline(ceiling, color="0.4", linestyle="--", label="no privacy (LogisticRegression)")
ax.set_xscale("log", base=2)
ax.set_xticks(EPSILONS, [f"{epsilon:g}" for epsilon in EPSILONS])
ax.set_xlabel("epsilon (delta = 1e-5)")
ax.set_ylabel("AUC on new people (0.5 is guessing)")
ax.set_title("Predicting a visit to the doctor, RAND HIE")
ax.legend(frameon=False, loc="lower right")
plt.show()

# %%
# The privacy report of one of these models:

model = DPLogisticRegression(epsilon=1.0, classes=[0, 1], unit="group", random_state=0)
print(model.fit(X[train], y[train], groups=person[train]).privacy_)
