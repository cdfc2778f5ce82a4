"""Empirical risk minimisation with sparse private gradients."""
