"""
Evaluation of a model for one charge
====================================

A private model of doctor's visits is judged on people that it was not fitted to. One release, which protects these
people as the fit protected the others, gives all scores and curves with their intervals. The records are the RAND
Health Insurance Experiment (20,190 person-years of 5,912 people), which is bundled with skdp.
"""

# %%
# Fit and evaluation on separate people
# -------------------------------------
# Whole people are in one part. Parts are drawn afresh, so each part has the whole budget of the ledger.

import warnings

import matplotlib.pyplot as plt

from skdp import BudgetAccountant, DPLogisticRegression
from skdp.datasets import load_rand_hie
from skdp.metrics import evaluate
from skdp.model_selection import train_test_split

hie = load_rand_hie(target="any_visit")
accountant = BudgetAccountant(2.0, 1e-6)
X_train, X_test, y_train, y_test, g_train, g_test, train, test = train_test_split(
    hie.data, hie.target, hie.person, groups=hie.person, test_size=0.3, accountant=accountant
)
settings = {"delta": 1e-6, "unit": "group"}
model = DPLogisticRegression(epsilon=2.0, classes=[0, 1], accountant=train, **settings)
model.fit(X_train, y_train, groups=g_train)
found = evaluate(model, X_test, y_test, groups=g_test, epsilon=2.0, accountant=test, **settings)
print(found)
print(accountant)

# %%
# All curves
# ----------
# Bands and bars are 95 % intervals for the population that the people come from. They hold the noise and the
# sampling. Each point of a curve has its own band.

figure, axes = plt.subplots(2, 2, figsize=(9.6, 8.4), layout="constrained")
found.plot_roc(ax=axes[0, 0])
found.plot_precision_recall(ax=axes[0, 1])
found.plot_calibration(ax=axes[1, 0])
found.plot_confusion(ax=axes[1, 1])
plt.show()

# %%
# Effect of the noise
# -------------------
# The same people judged with less budget. The area stays a number with an interval, which grows as one over
# epsilon: the noise of the AUC is about 3 / (n mu), for n people, where both classes are frequent.

warnings.simplefilter("ignore")
figure, axes = plt.subplots(1, 3, figsize=(12.6, 4.4), layout="constrained")
for epsilon, ax in zip((2.0, 0.5, 0.1), axes):
    judged = evaluate(model, X_test, y_test, groups=g_test, epsilon=epsilon, accountant=False, **settings)
    judged.plot_roc(ax=ax)
    low, high = judged["roc_auc"].interval
    ax.set_title(f"epsilon {epsilon:g}: AUC in [{low:.3f}, {high:.3f}]")
plt.show()

# %%
# Choice of a threshold
# ---------------------
# It is post-processing of the released table. The scores at a chosen threshold have no interval: evaluate it on a
# part that was not used to choose it.

threshold = found.best_threshold(costs={"fp": 1, "fn": 3})
print(f"threshold {threshold:.3f}")
print(found.at(threshold=threshold))
