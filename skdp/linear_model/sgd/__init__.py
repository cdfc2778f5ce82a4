"""Stochastic gradient descent, with or without Laplacian smoothing."""
