"""Discrete Laplace noise."""
