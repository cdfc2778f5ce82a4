"""What vectors of words take as ``optimizer``."""

from skdp.fitting.optimizers import SGD, Adam

__all__ = ["SGD", "Adam"]
