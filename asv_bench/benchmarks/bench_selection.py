"""A private choice of coordinates and the noise on these, for tables of which a batch touches few rows."""

import time
import warnings

import numpy as np
from sklearn.base import clone

from skdp import DPNetworkClassifier
from skdp.nn import SGD, AdaFEST, Dense, Embedding, MaskedMeanPool, Sequential, SparseSelection
from skdp.privacy import BoundedStatistic, PrivacySession
from skdp.privacy.bounded import Source
from skdp.privacy.mechanisms.selected_gaussian import release as selection
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
        self.bounded = BoundedStatistic.from_source(source, (rows * WIDTH,), l2=0.75)
        self.choice, self.stream = selection.Selection(chosen, 0.05, 0.1, 1.0), KeyStream(0)
        self.grid = selection.selection_grid(self.bounded, self.choice, 1.0, "zero-out")
        self.time_step(rows, sizes)  # compiles

    def time_step(self, rows, sizes):
        selection.selected_gaussian(self.bounded, self.choice, *self.grid, self.stream)


class FitStep:
    """Steps of a whole fit without momentum. The same 10,000 tokens occur, whatever the rows of the table."""

    params = [[10**4, 10**5, 10**6], ["exponential", "uniform", "AdaFEST"]]
    param_names = ["rows", "select"]
    steps, records, length, columns, chosen = 10, 6000, 60, 10, 5000

    def setup(self, rows, select):
        rng = np.random.default_rng(0)
        ids = (10_000 ** rng.random((self.records, self.length))).astype(int)
        self.data = ids.astype(float), rng.integers(0, 2, self.records)
        fraction = self.chosen / (rows * self.columns)
        self.model = DPNetworkClassifier(
            network=Sequential([Embedding(rows, self.columns), MaskedMeanPool(), Dense(2)]), classes=(0, 1),
            gradient_estimator=AdaFEST(4.0) if select == "AdaFEST" else SparseSelection(fraction, select),
            epsilon=4.0, batch_size=1000, max_iter=self.steps + 1, optimizer=SGD(momentum=0.0), learning_rate=0.1,
        )  # fmt: skip
        self.track_seconds(rows, select)  # compiles

    def track_seconds(self, rows, select):
        """Median seconds between two batches: what a fit does once is left out."""
        starts, honest = [], PrivacySession.draw

        def draw(session, *args, **more):
            starts.append(time.perf_counter())
            return honest(session, *args, **more)

        PrivacySession.draw = draw
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                clone(self.model).fit(*self.data)
        finally:
            PrivacySession.draw = honest
        return float(np.median(np.diff(starts)))

    track_seconds.unit = "s"
