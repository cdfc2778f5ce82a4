"""Write the shipped table of the canonical sigma: ``python tools/make_noise_table.py``.

The result depends on nothing but the integers of ``skdp.privacy.noise.alias_tables``; a test recomputes
every entry.
"""

import numpy as np

from skdp.privacy.noise.alias_tables import CANONICAL_SIGMA, TABLE_FILE, build_gaussian

if __name__ == "__main__":
    table = build_gaussian(float(CANONICAL_SIGMA))
    TABLE_FILE.parent.mkdir(exist_ok=True)
    np.savez(TABLE_FILE, high=table.high, low=table.low, alias=table.alias)
    print(f"{TABLE_FILE}: {table.high.size} cells, {TABLE_FILE.stat().st_size} bytes")
