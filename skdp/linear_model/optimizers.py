"""Values of ``optimizer`` for stochastic linear models."""

from skdp.fitting.optimizers import SGD, Adam

__all__ = ["SGD", "Adam"]
