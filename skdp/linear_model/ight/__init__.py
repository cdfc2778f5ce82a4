"""Iterative gradient hard thresholding."""
