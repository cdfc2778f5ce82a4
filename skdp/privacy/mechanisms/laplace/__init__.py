"""Discrete Laplace noise: pure epsilon-DP."""
