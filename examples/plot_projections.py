"""
What norms from random projections cost
=======================================

``clipping="projections"`` estimates the norm of each gradient from ``n_projections`` random projections
(DP-SGD-JL). An estimate may be much too small, so now and then a large gradient enters almost unclipped. This
example draws epsilon by epochs in the two settings of the paper's figure, at delta = 1e-5. Then it evaluates the
published settings.
"""

# %%
# The two settings
# ----------------
# With few projections one step in which a norm is badly underestimated is all of epsilon, from the first epoch on.
# More noise or fewer steps hardly help.

import math

import matplotlib.pyplot as plt

from skdp.privacy.accounting import sampled_epsilon
from skdp.privacy.accounting.pairs import OUT
from skdp.privacy.accounting.pld import composed_epsilon
from skdp.privacy.accounting.projected import ProjectedPair

DELTA = 1e-5
PROJECTIONS = (1, 4, 10, 20, 30, 100)


def epsilon(noise_multiplier, n_records, batch_size, epochs, n_projections=None):
    """Epsilon of epochs on Poisson batches; exact norms without ``n_projections``.

    `sampled_epsilon` takes projections too, and both directions of a change. Here a record leaves, which costs
    more in all of these settings, and a few percent on a coarse grid are too little to be seen.
    """
    steps, rate = epochs * n_records // batch_size, batch_size / n_records
    if n_projections is None:
        return sampled_epsilon([(noise_multiplier, rate, steps)], DELTA, adjacency="zero-out")
    pair = ProjectedPair(OUT, noise_multiplier, rate, n_projections, math.inf, steps)
    return composed_epsilon((pair,), DELTA, rtol=0.02)


def draw(axes, n_records, batch_size, noise_multiplier, epochs=(1, 5)):
    """One panel."""
    for r in (*PROJECTIONS, None):
        values = [epsilon(noise_multiplier, n_records, batch_size, e, r) for e in epochs]
        axes.semilogy(
            epochs, values, "o-", label="exact norms" if r is None else f"{r} projections"
        )
    axes.set(
        xlabel="epochs",
        ylabel="epsilon",
        title=f"{n_records} records, batches of {batch_size}, noise {noise_multiplier}",
    )


figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
draw(panels[0], 60_000, 256, 1.3)
draw(panels[1], 25_000, 64, 0.5)
panels[1].legend(fontsize="small")

# %%
# The published settings
# ----------------------
# Noise multiplier, records, batch size and epochs of the paper's runs, and what they cost.

PUBLISHED = {
    "MNIST, 26,010 parameters": (1.3, 60_000, 256, 15),
    "CIFAR-10, 623,146 parameters": (0.9, 50_000, 256, 20),
    "IMDb, 598,274 parameters": (0.6, 25_000, 256, 20),
}
print(f"{'':30}" + "".join(f"{r:>10}" for r in (1, 10, 20, 100, "exact")))
for name, setting in PUBLISHED.items():
    found = [epsilon(*setting, r) for r in (1, 10, 20, 100, None)]
    print(f"{name:30}" + "".join(f"{value:10.3g}" for value in found))
