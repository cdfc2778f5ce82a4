"""Gaussian noise on sums whose records are clipped by norms from random projections."""
