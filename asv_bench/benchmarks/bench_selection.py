"""A private choice of coordinates and the noise on these, for tables of which a batch touches few rows."""

import numpy as np

from skdp.privacy import Bounded, selection
from skdp.privacy.bounded import Source
from skdp.privacy.noise import KeyStream

WIDTH = 100  # columns of the table


class SelectedStep:
    """The cost follows the touched rows and the choices, and not the rows of the table."""

    params = [[10**4, 10**5, 10**6], [(340, 100), (1000, 10_000)]]
    param_names = ["rows", "touched, chosen"]

    def setup(self, rows, sizes):
        touched, chosen = sizes
        rng = np.random.default_rng(0)
        at = np.sort(rng.choice(rows, touched, replace=False))[:, None] * WIDTH + np.arange(WIDTH)
        at, values = at.ravel(), 0.01 * rng.normal(size=at.size)

        def listed(unit):
            return at, np.rint(values / unit).astype(np.int64)

        def whole(unit):
            dense = np.zeros(rows * WIDTH, dtype=np.int64)
            dense[at] = listed(unit)[1]
            return dense

        source = Source(whole, lambda: whole(1.0) * 1.0, 0, 20.0, sparse=listed)
        self.bounded = Bounded.from_source(source, (rows * WIDTH,), l2=0.75)
        self.choice, self.stream = selection.Choice(chosen, 0.05, 0.1, 1.0), KeyStream(0)
        self.grid = selection.selection_grid(self.bounded, self.choice, 1.0, "zero-out")
        self.time_step(rows, sizes)  # compiles

    def time_step(self, rows, sizes):
        selection.selected_gaussian(self.bounded, self.choice, *self.grid, self.stream)
