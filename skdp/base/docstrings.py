"""The decorator that puts shared texts into the docstring of an estimator."""

from skdp._docs import document as document
