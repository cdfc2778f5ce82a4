"""Benchmarks of skdp for airspeed velocity, one file per room.

``cd asv_bench && asv machine --yes && asv run --quick --python=same`` runs them once. ``time_*`` are seconds,
``peakmem_*`` and ``track_*_mb`` memory, ``track_*_ratio`` ratios to a floor measured in the same process, the
other ``track_*`` scores at a fixed epsilon.
"""

import warnings

# Seeds make runs comparable; every fit would say that they are for tests.
warnings.filterwarnings("ignore", "random_state is a seed")
