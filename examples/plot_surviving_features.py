"""
Stability of the selected features
==================================

Hard thresholding keeps a fixed number of coefficients and sets all others to zero, so that the model can be read.
The features are chosen under noise. This example shows the choices that are stable, by epsilon.

Here 20 of the 263 binned columns of the RAND Health Insurance Experiment may stay. The same data are
fitted ten times at each of two epsilons. Only the noise differs.
"""

# %%
# Ten fits at each epsilon
# ------------------------
# The encoder gets a data frame, so that its columns have readable names.

import warnings

import matplotlib.pyplot as plt
import numpy as np

from skdp import DPIGHTClassifier, IGHTClassifier, PublicBinsEncoder
from skdp.datasets import load_rand_hie, rand_hie_bins

# Seeds make these figures repeatable. Each seeded fit warns.
warnings.filterwarnings("ignore", "random_state is a seed")

hie = load_rand_hie(target="any_visit", as_frame=True)
encoder = PublicBinsEncoder(**rand_hie_bins(as_frame=True)).fit(hie.data)
names = encoder.get_feature_names_out()
X, y = encoder.transform(hie.data), hie.target.to_numpy()

KEPT, EPSILONS, SEEDS = 20, [0.5, 4.0], range(10)


def private_coef(epsilon, seed):
    """Coefficients of one private fit, zero for the features that did not survive."""
    model = DPIGHTClassifier(epsilon=epsilon, n_nonzero_coefs=KEPT, classes=[0, 1], random_state=seed)
    return model.fit(X, y).coef_[0]


coefs = {epsilon: np.array([private_coef(epsilon, s) for s in SEEDS]) for epsilon in EPSILONS}
exact = IGHTClassifier(n_nonzero_coefs=KEPT, classes=[0, 1], tol=1e-5).fit(X, y).coef_[0]

# %%
# Agreement of the fits
# ---------------------
# Stability is the mean overlap of two supports, as a share of the 20 features; an independent random choice
# of 20 out of 263 would overlap by 20 / 263 = 0.08.


def stability(table):
    """Mean share of common features over all pairs of fits."""
    kept = table != 0
    common = (kept[:, None, :] & kept[None, :, :]).sum(axis=2)
    return common[np.triu_indices(len(table), k=1)].mean() / KEPT


for epsilon, table in coefs.items():
    with_exact = ((table != 0) & (exact != 0)).sum(axis=1).mean() / KEPT
    print(
        f"epsilon={epsilon}: two private fits share {stability(table):.2f} of their features, "
        f"a private and the non-private fit {with_exact:.2f}"
    )

# %%
# The features and their coefficients
# -----------------------------------
# Sorted by how often they survive at the larger epsilon. Left: in how many of ten fits. Right: mean and
# standard deviation of the coefficient over the fits in which the feature survived, and the non-private
# coefficient.

largest = coefs[EPSILONS[-1]]
order = np.lexsort((np.abs(largest).mean(axis=0), (largest != 0).sum(axis=0)))[::-1]
ever = np.any([table != 0 for table in coefs.values()], axis=(0, 1))
order = order[ever[order]][:24]  # a feature that never survives has nothing to show
place = np.arange(order.size)[::-1]
fig, (left, right) = plt.subplots(1, 2, figsize=(9.5, 7.5), sharey=True, layout="constrained")
for shift, (epsilon, table) in zip([-0.2, 0.2], coefs.items()):
    chosen = table[:, order]
    survived = (chosen != 0).sum(axis=0)
    left.barh(place - shift, survived, height=0.38, label=f"epsilon = {epsilon:g}")
    seen = np.where(chosen != 0, chosen, np.nan)
    some = survived > 0
    mean = np.nanmean(seen[:, some], axis=0)
    spread = np.nanstd(seen[:, some], axis=0)
    right.errorbar(mean, (place - shift)[some], xerr=spread, fmt="o", capsize=2, markersize=4)
shown = exact[order] != 0
right.plot(exact[order][shown], place[shown], "kx", markersize=7, label="no privacy")
right.axvline(0, color="0.8", zorder=0)
left.set_yticks(place, names[order])
left.set_xlabel("fits in which the feature survives, of 10")
right.set_xlabel("coefficient")
left.legend(frameon=False, loc="lower right")
right.legend(frameon=False, loc="lower right")
fig.suptitle(f"{KEPT} of {names.size} features, any visit to a doctor in a year")
plt.show()
