"""
Curves of an additive model
===========================

This example predicts a visit to a physician in a year, from ten columns of the RAND Health Insurance Experiment
(20,190 person-years, bundled with skdp). A line in each column misses two facts: small children and old people go,
and a middle deductible deters more than a small or a large one. :class:`~skdp.linear_model.DPAdditiveClassifier`
finds curves for them under the same epsilon, and every part of the model can be drawn.
"""

# %%
# Lines and curves
# ----------------
# The columns are as they were recorded. The experiment's own logarithms of them are left out. The public ranges of
# the columns are declared. Whole persons are protected, and a quarter of them is the test part.

import warnings

import matplotlib.pyplot as plt
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupShuffleSplit

from skdp import DPAdditiveClassifier, DPLogisticRegression
from skdp.datasets import load_rand_hie

BOUNDS = {  # public ranges by the questionnaire and the plans
    "coins": (0, 100), "income": (0, 50_000), "xage": (0, 65), "female": (0, 1), "educdec": (0, 25),
    "num": (1, 15), "mhi": (0, 100), "disea": (0, 60), "physlm": (0, 1), "mdeoff": (0, 1000),
}  # fmt: skip
COLUMNS = list(BOUNDS)
hie = load_rand_hie(target="any_visit", as_frame=True)
X, y, person = hie.data[COLUMNS], hie.target, hie.person
part = GroupShuffleSplit(1, test_size=0.25, random_state=0).split(X, y, person)
train, test = next(iter(part))
settings = {"delta": 1e-6, "unit": "group", "classes": [0, 1], "feature_bounds": BOUNDS}
warnings.simplefilter("ignore")  # on a split by scikit-learn


def fitted(estimator, epsilon):
    """The model of the training part, and its AUC on the test part."""
    model = estimator(epsilon=epsilon, **settings)
    model.fit(X.iloc[train], y.iloc[train], groups=person[train])
    return model, roc_auc_score(y.iloc[test], model.decision_function(X.iloc[test]))


models = {}
for epsilon in (1.0, 4.0, float("inf")):
    _, of_line = fitted(DPLogisticRegression, epsilon)
    models[epsilon], of_curves = fitted(DPAdditiveClassifier, epsilon)
    print(f"epsilon {epsilon:3g}: AUC {of_line:.3f} with lines, {of_curves:.3f} with curves")

# %%
# Contribution of a column
# ------------------------
# A panel shows the contribution of one column to the log odds of a visit. The band is 1.96 standard deviations of
# the privacy noise, which is known. It leaves out that these people are a sample. A value beyond the window counts
# as its end.

models[4.0].plot_shapes()
plt.show()

# %%
# The same with less budget, and without noise
# --------------------------------------------
# At epsilon 1 fewer curves may show, and their bands are wider. A curve that the fit cannot tell from noise stays
# a line.

figure, axes = plt.subplots(1, 3, figsize=(12.6, 4.2), sharey=True, layout="constrained")
for ax, column in zip(axes, ("xage", "mdeoff", "coins"), strict=True):
    for (epsilon, model), color in zip(models.items(), ("C1", "C0", "black"), strict=True):
        shape = model.shapes_[COLUMNS.index(column)]
        ax.plot(shape.knots, shape.values, color=color, label=f"epsilon {epsilon:g}")
        if epsilon < float("inf"):
            low = shape.values - 1.96 * shape.noise_std
            high = shape.values + 1.96 * shape.noise_std
            ax.fill_between(shape.knots, low, high, color=color, alpha=0.2, lw=0)
    ax.set_xlabel({"xage": "age", "mdeoff": "maximum deductible", "coins": "coinsurance, %"}[column])
axes[0].set_ylabel("part of the log odds of a visit")
axes[0].legend()
plt.show()

# %%
# One person
# ----------
# The contributions of the columns, and of the products of two columns that were chosen, add up to the log odds.

print(models[4.0].explain(X.iloc[test[:1]]))
print(models[4.0].interactions_)
