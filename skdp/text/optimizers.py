"""The values of ``optimizer`` for vectors of words."""

from skdp.fitting.optimizers import SGD, Adam

__all__ = ["SGD", "Adam"]
