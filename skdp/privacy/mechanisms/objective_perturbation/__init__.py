"""Objective perturbation: (epsilon, delta)-DP, outside of Gaussian DP."""
