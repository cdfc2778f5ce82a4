"""The values of ``optimizer`` and ``gradient_estimator`` for nets."""

from skdp.fitting.optimizers import SGD, Adam
from skdp.fitting.recursive import RecursiveMomentum
from skdp.fitting.selection import AdaFEST, SparseSelection
from skdp.fitting.sparsification import RandomSparsification

__all__ = ["SGD", "AdaFEST", "Adam", "RandomSparsification", "RecursiveMomentum", "SparseSelection"]
