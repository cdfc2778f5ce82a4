"""Gaussian noise on gradients that are clipped by norms from random projections."""
