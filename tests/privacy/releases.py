"""Wraps the functions that draw releases, for tests that watch them or play them back."""

from dataclasses import replace

from skdp.privacy.mechanisms.gaussian import release as gaussian_release
from skdp.privacy.mechanisms.laplace.release import LaplaceMechanism
from skdp.privacy.mechanisms.selected_gaussian import release as selected_release
from skdp.privacy.mechanisms.sparse_vector import release as sparse_release
from skdp.privacy.mechanisms.top_k.release import TopKMechanism

MODULES = {
    "gaussian": gaussian_release,
    "gaussian_above": gaussian_release,
    "numeric_sparse": sparse_release,
    "selected_gaussian": selected_release,
}
MECHANISMS = {"laplace": LaplaceMechanism, "gumbel_top_k": TopKMechanism}


def drawn(mechanism, bounded, adjacency, stream):
    """What a mechanism draws of a statistic, and its ledger row."""
    made = mechanism.prepare(bounded, adjacency)
    return made.draw(bounded._value, stream), made.release.describe()


def wrap_release(monkeypatch, name, wrapper):
    """Put ``wrapper(name, honest)`` in the place of a function (bounded, ...) -> (released, *ledger_rows)."""
    if name in MODULES:
        monkeypatch.setattr(MODULES[name], name, wrapper(name, getattr(MODULES[name], name)))
        return
    kind = MECHANISMS[name]
    prepare = kind.prepare

    def prepared(self, bounded, adjacency):
        made = prepare(self, bounded, adjacency)

        def honest(bounded, mechanism, stream):
            return made.draw(bounded._value, stream), made.release.describe()

        release = wrapper(name, honest)
        return replace(made, draw=lambda source, stream: release(bounded, self, stream)[0])

    monkeypatch.setattr(kind, "prepare", prepared)
