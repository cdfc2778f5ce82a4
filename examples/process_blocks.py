"""
Blocks in processes of this machine: an engine of the standard library
======================================================================

The adapter of :doc:`/researchers/engines`. A process loads its blocks, keeps the parts that skdp makes of them,
and answers requests through a pipe. A process that dies is started again and asked again.
"""

import contextlib
import multiprocessing
import os

from skdp.base import Placed

TRIES = 3  # starts of a process for one request


class ProcessBlocks(Placed):
    """Block i is ``load(sources[i])``, in process ``i % n_processes``; all of them must be picklable."""

    def __init__(self, load, sources, n_processes=2, **options):
        super().__init__(**options)
        self._load, self._sources, self._pipes = load, list(sources), [None] * n_processes

    def place(self, make):
        self._make = make
        for k in range(len(self._pipes)):
            self._start(k)

    def map(self, function, request, own=None):
        n = len(self._pipes)
        asked = [(function, request, None if own is None else own[k::n]) for k in range(n)]
        for pipe, message in zip(self._pipes, asked, strict=True):
            _send(pipe, message)
        answers = [self._answer(k, message) for k, message in enumerate(asked)]
        return (answers[i % n][i // n] for i in range(len(self._sources)))

    def _start(self, k):
        context, n = multiprocessing.get_context("spawn"), len(self._pipes)
        self._pipes[k], theirs = context.Pipe()
        places = range(k, len(self._sources), n)
        blocks = [(i, self._sources[i]) for i in places]
        context.Process(target=_serve, args=(theirs, self._make, self._load, blocks, n), daemon=True).start()
        theirs.close()

    def _answer(self, k, message):
        for _ in range(TRIES):
            try:
                return self._pipes[k].recv()
            except (EOFError, OSError):  # the process died
                self._start(k)
                _send(self._pipes[k], message)
        raise RuntimeError(
            f"process {k} died {TRIES} times in one request; what was released before stays charged"
        )


def _send(pipe, message):
    with contextlib.suppress(OSError):  # the process died, and its answer will be missed
        pipe.send(message)


def _serve(pipe, make, load, blocks, n_processes):
    os.environ["SKDP_NUM_THREADS"] = str(max(1, (os.cpu_count() or 1) // n_processes))
    parts = [make(_loaded(load, source), i) for i, source in blocks]
    while True:
        try:
            function, request, own = pipe.recv()
        except EOFError:  # the client is gone
            return
        pipe.send([function(part, request, own and own[j]) for j, part in enumerate(parts)])


def _loaded(load, source):
    try:
        return load(source)
    except Exception:  # its text may quote a cell, and would stand in logs; the part says that it was not read
        return None


# %%
# Two processes, four blocks, and the coefficients of the fit in memory:


def generated(seed):
    """A block of generated rows."""
    import numpy as np

    rng = np.random.default_rng(seed)
    X = rng.normal(size=(1000, 3))
    return X, (X[:, 0] + rng.normal(size=1000) > 0).astype(int)


if __name__ == "__main__":
    import numpy as np

    from skdp import DPIGHTClassifier

    model = DPIGHTClassifier(classes=[0, 1], random_state=0)  # a seed, to compare; not for real data
    print(model.fit(ProcessBlocks(generated, range(4))).coef_)
    X, y = (np.concatenate(parts) for parts in zip(*map(generated, range(4)), strict=True))
    print(model.fit(X, y).coef_)
