"""Laplacian smoothing."""
